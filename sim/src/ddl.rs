//! DDL in transactions, with savepoints and without, on a disk that fills up at any point, that fails once, or whose power goes.
//!
//! # Purpose
//! A script of statements runs whole on one copy of a database, which is the truth, and on others where the disk refuses from the n-th byte on, or
//! loses its power at the n-th change, for every n. What the refused statements should have left is what a run without them leaves.
//!
//! # Invariants checked
//! A statement that meets a full disk says so (53100), and nothing else fails; catalogs, rows and files are those of the run without it, at once, after the next
//! try with room again, and after a restart; no catalog row and no file is nobody's; heaps, indexes and maps agree (`sql::check`).

mod state;
mod statements;

use crate::frame::no_orphans;
use crate::{Server, frame::Left};
use base::{Result, SqlState};
use disk::sim::{Fault, Operation, SimDisk};
use engine::CheckpointFlags;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use sql::client::Quiet;
use sql::session::Session;
use state::State;
use statements::{Kind, START, Script};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What the disk counts space in.
const BLOCK: u64 = 4096;
const EIO: i32 = 5;

/// What became of each statement that was tried.
type Outcomes = Vec<Option<Result<(), SqlState>>>;

/// A run of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Played {
    outcomes: Outcomes,
    /// The transaction's end; Ok for statements that were none.
    end: Result<(), SqlState>,
}

impl Played {
    /// Which statements the disk refused.
    fn refused(&self) -> Vec<bool> {
        self.outcomes.iter().map(|o| matches!(o, Some(Err(s)) if is_disks(*s))).collect()
    }

    fn any_refused(&self) -> bool {
        self.end.is_err() || self.refused().contains(&true)
    }
}

/// Is it an error of the disk?
fn is_disks(state: SqlState) -> bool {
    [SqlState::DISK_FULL, SqlState::IO_ERROR, SqlState::CRASH_SHUTDOWN].contains(&state)
}

/// A database with something of each kind.
///
/// # Errors
/// None on a disk that works.
pub fn prepared(seed: u64) -> Result<Arc<SimDisk>> {
    crate::database(seed, |session| {
        for sql in START {
            session.simple_query(sql, &mut Quiet)?;
        }
        Ok(())
    })
}

/// Runs the script without the statements to `skip`. Whatever fails is taken back as a user would.
fn play(session: &mut Session, script: &Script, skip: &[bool]) -> Played {
    let mut run = |sql: &str| session.simple_query(sql, &mut Quiet).map_err(|e| e.state());
    let mut outcomes: Outcomes = vec![None; script.statements.len()];
    if script.kind != Kind::Alone
        && let Err(state) = run("BEGIN")
    {
        return Played { outcomes, end: Err(state) };
    }
    let mut end = "COMMIT";
    for (i, sql) in script.statements.iter().enumerate() {
        if skip.get(i) == Some(&true) {
            continue;
        }
        if script.kind == Kind::Savepoints
            && let Err(state) = run("SAVEPOINT before")
        {
            outcomes[i] = Some(Err(state));
            continue;
        }
        let done = run(sql);
        outcomes[i] = Some(done);
        match (script.kind, done) {
            (Kind::Together, Err(_)) => {
                end = "ROLLBACK";
                break;
            }
            (Kind::Savepoints, Err(_)) => {
                if let Err(state) = run("ROLLBACK TO before") {
                    return Played { outcomes, end: Err(state) };
                }
            }
            _ => {}
        }
    }
    let end = if script.kind == Kind::Alone { Ok(()) } else { run(end) };
    Played { outcomes, end }
}

/// What runs without faults come to.
struct Truth<'a> {
    start: &'a SimDisk,
    script: Script,
    before: State,
    /// By what was left out.
    runs: BTreeMap<Vec<bool>, Run>,
}

/// What a run asks of the disk.
#[derive(Clone, Copy)]
struct Used {
    blocks: u64,
    writes: u64,
    reads: u64,
    changes: u64,
}

#[derive(Clone)]
struct Run {
    played: Played,
    state: State,
    used: Used,
    /// After the whole script once more.
    again: (Played, State),
}

impl<'a> Truth<'a> {
    fn new(start: &'a SimDisk, script: Script) -> Result<Truth<'a>> {
        let server = Server::open(start.snapshot(1))?;
        let mut session = server.session()?;
        let before = State::read(&mut session)?;
        session.close();
        server.engine.stop_at_once();
        Ok(Truth { start, script, before, runs: BTreeMap::new() })
    }

    fn without(&mut self, skip: &[bool]) -> Result<&Run> {
        if !self.runs.contains_key(skip) {
            let disk = self.start.snapshot(1);
            let server = Server::open(disk.clone())?;
            let mut session = server.session()?;
            let (before, space) = (disk.counts(), disk.used_space());
            let played = play(&mut session, &self.script, skip);
            let after = disk.counts();
            let used = Used {
                blocks: disk.used_space().saturating_sub(space) / BLOCK,
                writes: after.writes - before.writes,
                reads: after.reads - before.reads,
                changes: after.operations - before.operations,
            };
            let state = State::read(&mut session)?;
            let again = play(&mut session, &self.script, &[]);
            let again = (again, State::read(&mut session)?);
            session.close();
            server.engine.stop_at_once();
            self.runs.insert(skip.to_vec(), Run { played, state, used, again });
        }
        Ok(&self.runs[skip])
    }

    fn whole(&mut self) -> Result<&Run> {
        let none = vec![false; self.script.statements.len()];
        self.without(&none)
    }
}

/// What is the matter with the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// It has room for so many blocks more.
    Full(u64),
    /// This operation on a relation's file fails.
    Fails(Operation, u64),
}

impl Trouble {
    fn befall(self, disk: &SimDisk) {
        match self {
            Trouble::Full(blocks) => disk.set_free_space(blocks * BLOCK),
            Trouble::Fails(operation, after) => disk.inject(Fault {
                operation,
                path_contains: "base/".to_owned(),
                after,
                error: EIO,
                once: true,
            }),
        }
    }
}

/// How a series of runs went.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Runs.
    pub runs: u64,
    /// Those of which the disk refused something.
    pub refused: u64,
    /// Those whose server had to end.
    pub ended: u64,
}

/// The script of `seed`, in trouble of each kind at so many places each, from the first at which it may begin to the last.
///
/// # Errors
/// None: what is wrong panics, with the seed.
///
/// # Panics
/// When a refusal has an effect, files or catalog rows are left over, or damage is found.
pub fn run(start: &SimDisk, seed: u64, cases: u64) -> Result<Outcome> {
    let script = Script::random(&mut SmallRng::seed_from_u64(seed));
    let mut truth = Truth::new(start, script)?;
    let used = truth.whole()?.used;
    let mut outcome = Outcome::default();
    let kinds: [(fn(u64) -> Trouble, u64); 3] = [
        (Trouble::Full, used.blocks),
        (|n| Trouble::Fails(Operation::Write, n), used.writes),
        (|n| Trouble::Fails(Operation::Read, n), used.reads),
    ];
    for (kind, most) in kinds {
        let step = (most / cases).max(1);
        let mut n = seed % step;
        while n < most {
            one(&mut truth, seed, kind(n), &mut outcome)?;
            n += step;
        }
    }
    Ok(outcome)
}

/// One run.
fn one(truth: &mut Truth<'_>, seed: u64, trouble: Trouble, outcome: &mut Outcome) -> Result<()> {
    let at = format!("seed {seed}, {trouble:?}, {:?}", truth.script);
    let disk = truth.start.snapshot(seed);
    let server = Server::open(disk.clone())?;
    let mut session = server.session()?;
    trouble.befall(&disk);
    let played = play(&mut session, &truth.script, &[]);
    disk.heal();
    outcome.runs += 1;
    let refused = played.any_refused();
    outcome.refused += u64::from(refused);
    if server.engine.has_failed() {
        outcome.ended += 1;
        std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
        server.engine.stop_at_once();
        return Ok(());
    }
    if let Trouble::Full(_) = trouble {
        let states = played.outcomes.iter().flatten().chain([&played.end]);
        for state in states.filter_map(|o| o.err()).filter(|s| is_disks(*s)) {
            assert_eq!(state, SqlState::DISK_FULL, "{at}");
        }
    }
    let expected = expected(truth, &played, &at)?;
    let read = |session: &mut Session, when: &str| {
        State::read(session).unwrap_or_else(|e| panic!("{at}, {when}: {e}"))
    };
    let found = read(&mut session, "at once");
    let run = expected.iter().find(|run| run.state == found);
    let Some(run) = run else {
        panic!("{at}, {played:?}: {}", found.differences(&expected[0].state))
    };
    sound(&disk, &server, &mut session, &at, "at once");
    let again = play(&mut session, &truth.script, &[]);
    assert!(!again.any_refused(), "{at}: {again:?} with room again");
    let found = read(&mut session, "with room again");
    // An index that an interrupted statement has left is in the way of the next.
    if !(refused && truth.script.kind == Kind::Alone) {
        assert_eq!(again, run.again.0, "{at}");
        let wrong = found.differences(&run.again.1);
        assert!(found == run.again.1, "{at}, again: {wrong}");
    }
    sound(&disk, &server, &mut session, &at, "with room again");
    session.close();
    server.engine.stop_at_once();
    if seed.is_multiple_of(3) {
        let left = disk.after_crash(seed);
        after_a_crash(left, &[found.without_unlogged()], &at)?;
    }
    Ok(())
}

/// What may be there after `played`.
fn expected(truth: &mut Truth<'_>, played: &Played, at: &str) -> Result<Vec<Run>> {
    let nothing = vec![true; truth.script.statements.len()];
    let refused = played.refused();
    if played.end.is_err() || (truth.script.kind == Kind::Together && refused.contains(&true)) {
        return Ok(vec![truth.without(&nothing)?.clone()]);
    }
    let run = truth.without(&refused)?.clone();
    for (i, outcome) in played.outcomes.iter().enumerate().filter(|(i, _)| !refused[*i]) {
        assert_eq!(*outcome, run.played.outcomes[i], "{at}: statement {i} of {played:?}");
    }
    let mut all = vec![run];
    // It is several transactions.
    let splits = |sql: &str| sql.contains("CONCURRENTLY") || sql.starts_with("VACUUM");
    let mut with: Vec<bool> = refused.clone();
    for (i, sql) in truth.script.statements.clone().into_iter().enumerate() {
        if refused[i] && truth.script.kind == Kind::Alone && splits(sql) {
            with[i] = false;
            all.push(truth.without(&with)?.clone());
        }
    }
    Ok(all)
}

/// Nothing is left over, and what is there agrees.
fn sound(disk: &SimDisk, server: &Server, session: &mut Session, at: &str, when: &str) {
    let checkpoint = server.engine.checkpoint(CheckpointFlags::MANUAL);
    checkpoint.unwrap_or_else(|e| panic!("{at}, {when}: {e}"));
    let lost = state::lost(session).unwrap_or_else(|e| panic!("{at}, {when}: {e}"));
    assert!(lost.is_empty(), "{at}, {when}: {lost:#?}");
    no_orphans(disk, server, session, &format!("{at}, {when}"));
    let report = sql::check::check(&server.engine).unwrap_or_else(|e| panic!("{at}, {when}: {e}"));
    assert!(report.faults.is_empty(), "{at}, {when}: {:#?}", report.faults);
}

/// The script of `seed`, the power going at so many of its changes of the disk.
///
/// # Errors
/// None: what is wrong panics, with the seed.
///
/// # Panics
/// As [`run`].
pub fn crash(start: &SimDisk, seed: u64, cases: u64) -> Result<Outcome> {
    let script = Script::random(&mut SmallRng::seed_from_u64(seed));
    let mut truth = Truth::new(start, script)?;
    let most = truth.whole()?.used.changes;
    let mut outcome = Outcome::default();
    let step = (most / cases).max(1);
    let mut n = seed % step;
    while n < most {
        outcome.runs += 1;
        crashed(&mut truth, seed, n)?;
        n += step;
    }
    Ok(outcome)
}

/// One run.
fn crashed(truth: &mut Truth<'_>, seed: u64, n: u64) -> Result<()> {
    let at = format!("seed {seed}, crash at {n}, {:?}", truth.script);
    let disk = truth.start.snapshot(seed);
    let server = Server::open(disk.clone())?;
    let mut session = server.session()?;
    disk.crash_at(n);
    let played = play(&mut session, &truth.script, &[]);
    std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
    server.engine.stop_at_once();
    let count = truth.script.statements.len();
    let mut states = Vec::new();
    if truth.script.kind == Kind::Alone {
        let failed = played.outcomes.iter().position(|o| matches!(o, Some(Err(s)) if is_disks(*s)));
        let done = failed.unwrap_or(count);
        for done in [done, (done + 1).min(count)] {
            let skip: Vec<bool> = (0..count).map(|i| i >= done).collect();
            states.push(truth.without(&skip)?.state.clone());
        }
    } else {
        // A transaction of which something was refused has not committed, however it was ended.
        let tried = !played.refused().contains(&true);
        if tried {
            states.push(truth.whole()?.state.clone());
        }
        if !tried || played.end.is_err() {
            states.push(truth.before.clone());
        }
    }
    let states: Vec<State> = states.into_iter().map(State::without_unlogged).collect();
    after_a_crash(disk.after_crash(seed ^ n), &states, &at)
}

/// What is left is one of `states`, and can be gone on with.
fn after_a_crash(disk: Arc<SimDisk>, states: &[State], at: &str) -> Result<()> {
    let mut left = Left::open(disk.clone(), at);
    let found = State::read(&mut left.session).unwrap_or_else(|e| panic!("{at}: {e}"));
    let found = found.without_unlogged();
    assert!(states.contains(&found), "{at}: {}", found.differences(&states[0]));
    sound(&disk, &left.server, &mut left.session, at, "after the crash");
    left.run("CREATE TABLE afterwards (id int PRIMARY KEY, b text)");
    left.run("INSERT INTO afterwards SELECT g, repeat('a', 3000) FROM generate_series(1, 5) g");
    left.shut_down("gone on with")
}
