//! Random schedules of a few sessions, step by step on Ebb and on PostgreSQL.
//!
//! # Purpose
//! What the scripts of `tests/isolation` do not think of: row locks of all modes, READ COMMITTED's second look at rows through joins, sub-selects and
//! views, ON CONFLICT, MERGE, foreign keys with actions, savepoints and cursors in any order, VACUUM and index builds in between. The same step goes to
//! both servers; the answers must be the same, and so must who waits for whom.
//!
//! # Invariants
//! - A seed decides what is tried, given the answers.
//! - A step whose session waits is waited for until the server says that it is blocked, not for a time.
//!
//! # What ends a schedule without being a difference
//! A deadlock, as either may be the victim. More than one session that waited, once a step has set them free: who is next is decided elsewhere in the
//! two. A VACUUM that has to freeze a page for whose row somebody waits: PostgreSQL's waits as well. A difference counts if it comes three times in a row.

mod statements;

use lab::Result;
use lab::client::{Client, Outcome, Target};
use lab::isolation::print;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use statements::Session;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// How long a step may neither end nor be blocked.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a VACUUM may: it may wait for a pinned page, of which no server tells.
const PATIENCE_WITH_VACUUM: Duration = Duration::from_secs(2);
/// A session is blocked if it is so often in a row, by the same.
const STABLE: usize = 3;
/// A difference must come so often.
const TIMES: usize = 3;

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Schedules run.
    pub schedules: usize,
    /// Their steps.
    pub steps: usize,
    /// Steps after which a session waited, each counted.
    pub waits: usize,
    /// Schedules that ended in a deadlock, or where the next in turn may be another.
    pub open: usize,
    /// Differences, with all that led to them.
    pub differences: Vec<String>,
}

/// What a step under way has come to.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Its answer.
    Done(String),
    /// It waits for these sessions; [`usize::MAX`] is none of the schedule's.
    Waits(Vec<usize>),
    /// It neither ends nor is blocked.
    Hangs,
}

/// One of the two servers.
struct Side {
    clients: Vec<Client>,
    /// Which have not answered yet.
    busy: Vec<bool>,
    control: Client,
}

impl Side {
    fn connect(target: &Target, sessions: usize) -> Result<Side> {
        let mut clients = Vec::new();
        for _ in 0..sessions {
            let mut client = Client::connect(target)?;
            client.run("SET deadlock_timeout = '100ms'")?;
            clients.push(client);
        }
        Ok(Side { clients, busy: vec![false; sessions], control: Client::connect(target)? })
    }

    fn send(&mut self, session: usize, sql: &str) -> Result<()> {
        self.busy[session] = true;
        self.clients[session].send_simple(sql)
    }

    /// Who blocks a session.
    fn blockers(&mut self, session: usize) -> Result<Vec<usize>> {
        let sql = format!("SELECT pg_blocking_pids({})", self.clients[session].pid);
        let said = self.control.value(&sql)?;
        let pids = said.trim_matches(['{', '}']).split(',').filter(|p| !p.is_empty());
        let session = |pid: &str| self.clients.iter().position(|c| c.pid.to_string() == pid);
        let mut found: Vec<usize> = pids.map(|pid| session(pid).unwrap_or(usize::MAX)).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Until each step under way has ended or is blocked.
    fn settle(&mut self, steps: &[Option<String>]) -> Result<Vec<Option<State>>> {
        let vacuums = steps.iter().flatten().any(|sql| sql.starts_with("VACUUM"));
        let end = Instant::now() + if vacuums { PATIENCE_WITH_VACUUM } else { PATIENCE };
        let mut states: Vec<Option<State>> = steps.iter().map(|_| None).collect();
        let (mut seen, mut last) = (0, Vec::new());
        loop {
            let mut blocked = Vec::new();
            for (session, step) in steps.iter().enumerate() {
                let Some(sql) = step else { continue };
                if matches!(states[session], Some(State::Done(_))) {
                    continue;
                }
                states[session] =
                    match self.clients[session].finish_within(Duration::from_millis(5))? {
                        Some(outcome) => {
                            self.busy[session] = false;
                            Some(State::Done(answer(sql, &outcome)))
                        }
                        None => {
                            blocked.push((session, self.blockers(session)?));
                            Some(State::Hangs)
                        }
                    };
            }
            let all = blocked.iter().all(|(_, by)| !by.is_empty());
            seen = if all && blocked == last { seen + 1 } else { 0 };
            last = blocked;
            if last.is_empty() || seen >= STABLE || Instant::now() > end {
                break;
            }
        }
        for (session, by) in last {
            if !by.is_empty() {
                states[session] = Some(State::Waits(by));
            }
        }
        Ok(states)
    }

    /// Ends what is under way.
    fn reset(&mut self) -> Result<()> {
        for (client, busy) in self.clients.iter_mut().zip(&mut self.busy) {
            if std::mem::take(busy) {
                client.cancel()?;
                client.finish_within(PATIENCE)?;
            }
        }
        for client in &mut self.clients {
            client.simple("ROLLBACK")?;
        }
        Ok(())
    }
}

/// An answer as text; rows that come in no order are sorted, and those before an error, which PostgreSQL keeps to itself, left out.
fn answer(sql: &str, outcome: &Outcome) -> String {
    if let Some(error) = outcome.error() {
        return format!("{}: {}: {}", error.severity(), error.sqlstate(), error.message());
    }
    let text = print(outcome);
    let mut lines: Vec<&str> = text.lines().filter(|l| !l.contains("WARNING: ")).collect();
    if !sql.starts_with("SELECT") || !sql.contains("ORDER BY") {
        lines.sort_unstable();
    }
    lines.join("; ")
}

/// How a schedule ended.
enum End {
    Same,
    Open,
    Differs(String),
}

struct Schedule {
    rng: SmallRng,
    sessions: Vec<Session>,
    steps: Vec<Option<String>>,
    log: String,
}

/// Runs schedules for some time; the differences, and what was done.
///
/// # Errors
/// A server that is gone.
pub fn run(ebb: &Target, peer: &Target, time: Duration, seed: u64, most: usize) -> Result<Found> {
    let mut found = Found::default();
    let end = Instant::now() + time;
    let mut seeds = seed..;
    while Instant::now() < end
        && found.differences.len() < most
        && let Some(seed) = seeds.next()
    {
        let sessions = 2 + (seed % 4) as usize;
        let mut sides = [Side::connect(ebb, sessions)?, Side::connect(peer, sessions)?];
        let mut last = End::Same;
        for _ in 0..TIMES {
            last = schedule(&mut sides, sessions, seed, &mut found)?;
            if !matches!(last, End::Differs(_)) {
                break;
            }
        }
        found.schedules += 1;
        match last {
            End::Same => {}
            End::Open => found.open += 1,
            End::Differs(told) => found.differences.push(format!("seed {seed}: {told}")),
        }
        for side in sides {
            side.clients.into_iter().chain([side.control]).for_each(Client::close);
        }
    }
    Ok(found)
}

fn schedule(sides: &mut [Side; 2], sessions: usize, seed: u64, found: &mut Found) -> Result<End> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let keys = [3, 5, 7][rng.random_range(0..3)];
    let repeatable = rng.random_range(0..10);
    let setup = statements::setup(&mut rng);
    for side in sides.iter_mut() {
        side.control.run(&setup)?;
    }
    let mut s = Schedule {
        rng,
        sessions: (0..sessions).map(|_| Session::new(keys, repeatable)).collect(),
        steps: vec![None; sessions],
        log: format!("{setup}\n"),
    };
    let mut end = End::Same;
    for _ in 0..s.rng.random_range(10..45) {
        let free: Vec<usize> = (0..sessions).filter(|i| s.steps[*i].is_none()).collect();
        if free.is_empty() {
            break;
        }
        let next = free[s.rng.random_range(0..free.len())];
        found.steps += 1;
        end = s.step(sides, next, sessions - free.len(), found)?;
        if !matches!(end, End::Same) {
            break;
        }
    }
    for side in sides.iter_mut() {
        side.reset()?;
    }
    if matches!(end, End::Same) { s.compare_tables(sides) } else { Ok(end) }
}

impl Schedule {
    /// The next step, of such a session, while so many wait.
    fn step(
        &mut self,
        sides: &mut [Side; 2],
        session: usize,
        waiting: usize,
        found: &mut Found,
    ) -> Result<End> {
        let sql = self.sessions[session].next(&mut self.rng);
        let _ = writeln!(self.log, "s{session}: {sql}");
        for side in sides.iter_mut() {
            side.send(session, &sql)?;
        }
        self.steps[session] = Some(sql);
        let [ebb, peer] = sides;
        let (ours, theirs) = (ebb.settle(&self.steps)?, peer.settle(&self.steps)?);
        let is_deadlock =
            |s: &Option<State>| matches!(s, Some(State::Done(a)) if a.starts_with("ERROR: 40P01"));
        if ours.iter().chain(&theirs).any(is_deadlock) {
            return self.close(&ours, End::Open);
        }
        for (i, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let Some(sql) = &self.steps[i] else { continue };
            if ours != theirs {
                let for_a_pin = sql.starts_with("VACUUM") && *theirs == Some(State::Hangs);
                let _ = writeln!(
                    self.log,
                    "  s{i} [{sql}]\n    Ebb {ours:?}\n    PostgreSQL {theirs:?}"
                );
                let told = std::mem::take(&mut self.log);
                return Ok(if for_a_pin || waiting > 1 { End::Open } else { End::Differs(told) });
            }
            found.waits += usize::from(matches!(ours, Some(State::Waits(_))));
            let _ = writeln!(self.log, "  s{i} {ours:?}");
        }
        self.close(&ours, End::Same)
    }

    /// Takes note of the steps that have ended.
    fn close(&mut self, states: &[Option<State>], end: End) -> Result<End> {
        for (i, state) in states.iter().enumerate() {
            if let Some(State::Done(answer)) = state
                && let Some(sql) = self.steps[i].take()
            {
                self.sessions[i].has_run(&sql, answer.starts_with("ERROR: "));
            }
        }
        Ok(end)
    }

    /// What is left is the same on both, and on Ebb whichever way it is found.
    fn compare_tables(&mut self, [ebb, peer]: &mut [Side; 2]) -> Result<End> {
        for sql in statements::LEFT {
            let mut answers = vec![print(&peer.control.run(sql)?)];
            for way in ["enable_seqscan = off", "enable_indexscan = off"] {
                ebb.control.run(&format!("SET {way}"))?;
                answers.push(print(&ebb.control.run(sql)?));
                ebb.control.run("RESET ALL")?;
            }
            if answers.iter().any(|a| *a != answers[0]) {
                let _ = writeln!(self.log, "{sql}: {answers:#?}");
                return Ok(End::Differs(std::mem::take(&mut self.log)));
            }
        }
        Ok(End::Same)
    }
}
