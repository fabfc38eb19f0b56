//! A client of the soak: its connection, its numbered commits, and what it may be told.
//!
//! # Invariants
//! A transaction's number is in the ledger if and only if its COMMIT was acknowledged, but for those whose connection was lost between
//! COMMIT and its answer, and those that did not wait for their WAL and were lost with the process.

use lab::client::{Batch, Client, Outcome, Target};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What became of a numbered transaction, as its client saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// COMMIT was answered, and waited for the disk.
    Kept,
    /// COMMIT was answered, and did not wait.
    Promised,
    /// It was rolled back, or COMMIT was never sent.
    Undone,
    /// Nobody answered COMMIT.
    Unknown,
}

/// Why a step did not do what it was to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Halt {
    /// The server said no, with this SQLSTATE.
    Refused(String),
    /// The connection is gone.
    Gone,
}

/// A step's end.
pub type Step<T> = Result<T, Halt>;

/// What all clients share.
pub struct World {
    /// Where the server is.
    pub target: Target,
    /// The round is over.
    pub over: AtomicBool,
    faults: Mutex<Vec<String>>,
    /// Errors that were expected, by SQLSTATE, and statements under "ok".
    pub counts: Mutex<BTreeMap<String, u64>>,
    /// What each client is at, and since when.
    pub at: Mutex<BTreeMap<usize, (Instant, String)>>,
}

/// What concurrency, cancels and terminates may bring any statement.
const EXPECTED: [&str; 5] = ["40001", "40P01", "57014", "57P01", "55P03"];

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// For the server at `target`.
    pub fn new(target: Target) -> World {
        World {
            target,
            over: AtomicBool::new(false),
            faults: Mutex::default(),
            counts: Mutex::default(),
            at: Mutex::default(),
        }
    }

    /// Notes what is wrong, and says it at once.
    pub fn fault(&self, what: impl Into<String>) {
        let what = what.into();
        println!("WRONG: {what}");
        locked(&self.faults).push(what);
    }

    /// How much was wrong.
    pub fn faults(&self) -> usize {
        locked(&self.faults).len()
    }

    /// Whether the clients are to end.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Waits, but not beyond the round's end.
    pub fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.is_over() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn count(&self, what: &str) {
        *locked(&self.counts).entry(what.to_owned()).or_default() += 1;
    }

    /// What has been under way for longer than `patience`.
    pub fn stuck(&self, patience: Duration) -> Vec<String> {
        let at = locked(&self.at);
        let old = at.iter().filter(|(_, (since, _))| since.elapsed() > patience);
        old.map(|(id, (_, sql))| format!("client {id} waits for: {sql}")).collect()
    }
}

/// One client.
pub struct Worker<'a> {
    /// Its number, which is in all that it writes.
    pub id: usize,
    /// What it shares.
    pub world: &'a World,
    /// Its choices.
    pub rng: SmallRng,
    /// Transactions by number, over all rounds.
    pub fates: &'a mut Vec<Fate>,
    target: Target,
    client: Option<Client>,
    setup: String,
    promises: bool,
}

impl<'a> Worker<'a> {
    /// A client of `database`.
    pub fn new(
        id: usize,
        seed: u64,
        world: &'a World,
        database: &str,
        fates: &'a mut Vec<Fate>,
    ) -> Worker<'a> {
        let mut rng = SmallRng::seed_from_u64(seed ^ (id as u64) << 40);
        let promises = rng.random_range(0..4) == 0;
        let mut setup = format!("SET synchronous_commit = {}", if promises { "off" } else { "on" });
        if rng.random_range(0..4) == 0 {
            setup += "; SET lock_timeout = '300ms'";
        }
        if rng.random_range(0..8) == 0 {
            setup += "; SET enable_seqscan = off";
        }
        let mut target = world.target.clone();
        target.database = database.into();
        Worker { id, world, rng, fates, target, client: None, setup, promises }
    }

    /// Another client of the same database, in the same thread.
    pub fn another<'b>(&self, id: usize, seed: u64, fates: &'b mut Vec<Fate>) -> Worker<'b>
    where
        'a: 'b,
    {
        Worker::new(id, seed, self.world, &self.target.database, fates)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.rng.random_range(0..n.max(1))
    }

    /// A place in a list of `n`.
    pub fn rng_index(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.random_range(0..of.len())]
    }

    fn client(&mut self) -> Step<&mut Client> {
        if self.client.is_none() {
            let mut client = match Client::connect(&self.target) {
                Ok(client) => client,
                Err(error) => {
                    self.note_lost(&error.to_string());
                    return Err(Halt::Gone);
                }
            };
            if client.simple(&self.setup).is_err() {
                return Err(Halt::Gone);
            }
            self.client = Some(client);
        }
        self.client.as_mut().ok_or(Halt::Gone)
    }

    /// A connection that ended while the round goes on must have been told why.
    fn note_lost(&self, error: &str) {
        self.world.count("lost");
        let told = ["57P01", "57P03", "53300", "3D000", "55006"];
        if !self.world.is_over() && !told.iter().any(|code| error.contains(code)) {
            self.world.pause(Duration::from_millis(200));
            if !self.world.is_over() {
                self.world.fault(format!("client {}: {error}", self.id));
            }
        }
    }

    /// Leaves, with or without a word.
    pub fn leave(&mut self, politely: bool) {
        match self.client.take() {
            Some(client) if politely => client.close(),
            _ => {}
        }
    }

    /// Runs statements; none but the SQLSTATEs expected of anything and `may` are taken.
    pub fn exec_with(&mut self, sql: &str, data: &[u8], may: &[&str]) -> Step<Outcome> {
        self.ask(sql, may, |client| client.simple_with(sql, data))
    }

    /// Sends messages of the extended protocol, of which `sql` says what they are for.
    pub fn batch(&mut self, batch: &Batch, sql: &str, may: &[&str]) -> Step<Outcome> {
        self.ask(sql, may, |client| client.send(batch).and_then(|()| client.finish()))
    }

    fn ask(
        &mut self,
        sql: &str,
        may: &[&str],
        how: impl FnOnce(&mut Client) -> lab::Result<Outcome>,
    ) -> Step<Outcome> {
        self.client()?;
        locked(&self.world.at).insert(self.id, (Instant::now(), sql.chars().take(300).collect()));
        let outcome = how(self.client()?);
        locked(&self.world.at).remove(&self.id);
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                self.client = None;
                self.note_lost(&format!("{error} in: {sql}"));
                return Err(Halt::Gone);
            }
        };
        // Who is told to end between a statement's error and Sync is told so after that error.
        let Some(report) = outcome.fatal().or_else(|| outcome.error()) else {
            self.world.count("ok");
            return Ok(outcome);
        };
        let state = report.sqlstate().to_owned();
        self.world.count(&state);
        if !EXPECTED.contains(&state.as_str()) && !may.contains(&state.as_str()) {
            let sql: String = sql.chars().take(600).collect();
            self.world.fault(format!("client {}: {report} in: {sql}", self.id));
        }
        if report.is_fatal() {
            self.client = None;
            return Err(Halt::Gone);
        }
        Err(Halt::Refused(state))
    }

    /// Runs statements.
    pub fn exec(&mut self, sql: &str) -> Step<Outcome> {
        self.exec_with(sql, b"", &[])
    }

    /// Runs statements, any of whose errors in `may` is taken too.
    pub fn exec_may(&mut self, sql: &str, may: &[&str]) -> Step<Outcome> {
        self.exec_with(sql, b"", may)
    }

    /// The rows, a line each, `|` between the values.
    pub fn table(&mut self, sql: &str) -> Step<String> {
        let outcome = self.exec(sql)?;
        let row = |r: Vec<Option<String>>| {
            r.into_iter().map(|v| v.unwrap_or_else(|| "~".into())).collect::<Vec<_>>().join("|")
        };
        Ok(outcome.rows().into_iter().map(row).collect::<Vec<_>>().join("\n"))
    }

    /// What a query answers must be this.
    pub fn expect(&mut self, sql: &str, wanted: &str) -> Step<()> {
        let got = self.table(sql)?;
        if got != wanted {
            self.world.fault(format!("client {}: {got:?}, not {wanted:?}, from: {sql}", self.id));
        }
        Ok(())
    }

    /// Out of whatever transaction it is in.
    pub fn roll_back(&mut self) {
        if self.client.as_ref().is_some_and(|c| c.status != b'I') {
            let _ = self.exec("ROLLBACK");
        }
    }

    /// A numbered transaction of `body`, whose rows in the ledger are written in several parts, some of which are taken back.
    pub fn transaction(
        &mut self,
        begin: &str,
        body: impl FnOnce(&mut Self) -> Step<()>,
    ) -> Step<()> {
        self.roll_back();
        self.client()?;
        let n = self.fates.len();
        self.fates.push(Fate::Undone);
        let parts = 1 + self.below(3);
        let done = self.parts(begin, n, parts, body);
        if let Err(halt) = done {
            self.roll_back();
            return Err(halt);
        }
        if self.one_in(15) {
            self.exec("ROLLBACK")?;
            return Err(Halt::Refused("rolled back".into()));
        }
        self.fates[n] = Fate::Unknown;
        match self.exec("COMMIT") {
            Ok(outcome) if outcome.tags() == ["COMMIT"] => {
                self.fates[n] = if self.promises { Fate::Promised } else { Fate::Kept };
                Ok(())
            }
            Ok(outcome) => {
                self.world.fault(format!("client {}: COMMIT said {outcome:?}", self.id));
                Ok(())
            }
            Err(Halt::Refused(state)) => {
                self.fates[n] = Fate::Undone;
                Err(Halt::Refused(state))
            }
            Err(Halt::Gone) => Err(Halt::Gone),
        }
    }

    fn parts(
        &mut self,
        begin: &str,
        n: usize,
        parts: u64,
        body: impl FnOnce(&mut Self) -> Step<()>,
    ) -> Step<()> {
        let id = self.id;
        self.exec(begin)?;
        self.exec(&format!("INSERT INTO ledger VALUES ({id}, {n}, {parts})"))?;
        let before = self.below(parts + 1);
        self.some_parts(n, 0..before)?;
        body(self)?;
        self.some_parts(n, before..parts)
    }

    fn some_parts(&mut self, n: usize, which: std::ops::Range<u64>) -> Step<()> {
        let id = self.id;
        for part in which {
            let insert = |i: i64| format!("INSERT INTO ledger_part VALUES ({id}, {n}, {i}, 'p')");
            let part = part.cast_signed();
            match self.below(4) {
                0 => {
                    let wrong = insert(-1 - part);
                    self.exec(&format!("SAVEPOINT s; {wrong}; ROLLBACK TO s"))?;
                    self.exec(&insert(part))?;
                }
                1 => {
                    let (wrong, right) = (insert(-1 - part), insert(part));
                    self.exec(&format!(
                        "SAVEPOINT s; SAVEPOINT t; {wrong}; ROLLBACK TO t; {right}; RELEASE s"
                    ))?;
                }
                _ => {
                    self.exec(&insert(part))?;
                }
            }
        }
        Ok(())
    }

    /// Whether its transaction goes on.
    pub fn is_in_transaction(&self) -> bool {
        self.client.as_ref().is_some_and(|c| c.status == b'T')
    }

    /// Whether the round is over.
    pub fn is_over(&self) -> bool {
        self.world.is_over()
    }
}
