//! The real server under everything at once, stopped and killed, started again and looked at.
//!
//! # Purpose
//! What the simulation cannot have: threads that run together, the wire, signals, autovacuum by the clock, a process that is killed.
//! Some twenty clients do to shared tables whatever SQL has for them while others alter, rebuild and vacuum the tables, cancel and
//! terminate each other. The seed decides what each client tries; what comes of it is the machine's.
//!
//! # Invariants checked
//! In every snapshot: sums, references, unique keys, checksums of large values ([`tables::always`]), and a held snapshot sees the same
//! rows again. After each end of the server: a commit that was acknowledged is there and any other whole or not at all
//! ([`verdict::ledger`]), indexes and tables say the same, each file is a relation's, `ebb check` finds nothing, the log tells of no
//! trouble. Errors are those that concurrency brings.

mod ages;
pub mod tables;
mod upkeep;
mod verdict;
mod work;
mod worker;

use lab::Result;
use lab::client::{Client, Target};
use lab::servers::{Server, Stop};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use std::time::{Duration, Instant};
use worker::{Fate, Halt, Step, Worker, World};

type Job = fn(&mut Worker<'_>) -> Step<()>;

/// What each client does, one of the list at a time, and in which database.
const CLIENTS: [(&str, &[Job]); 21] = [
    ("postgres", &[work::transfer]),
    ("postgres", &[work::transfer, work::reborn]),
    ("postgres", &[work::transfer, work::tags, work::glance]),
    ("postgres", &[work::queue]),
    ("postgres", &[work::queue, work::upsert]),
    ("postgres", &[work::upsert, work::toast]),
    ("postgres", &[work::toast, work::family]),
    ("postgres", &[work::family, work::tags, work::glance]),
    ("postgres", &[work::snapshot, work::glance]),
    ("postgres", &[work::snapshot]),
    ("postgres", &[upkeep::own_table, work::temporary]),
    ("postgres", &[upkeep::own_table, work::copy, work::notify]),
    ("postgres", &[upkeep::shape, work::scratch, work::notify]),
    ("postgres", &[upkeep::indexes, upkeep::indexes, upkeep::no_invalid_indexes]),
    ("postgres", &[upkeep::vacuum]),
    ("postgres", &[upkeep::mischief]),
    ("postgres", &[ages::aging, ages::kept, ages::portals, upkeep::swing]),
    ("postgres", &[ages::aging, ages::ages]),
    ("second", &[work::transfer, work::tags, work::family, work::toast, upkeep::own_table]),
    (
        "second",
        &[work::snapshot, upkeep::vacuum, upkeep::indexes, work::scratch, upkeep::third_database],
    ),
    ("second", &[work::temporary, work::queue, upkeep::shape, work::copy, upkeep::vacuum]),
];

/// Fewer clients, most of whom are after what old snapshots see.
const OF_AGES: [(&str, &[Job]); 13] = [
    ("postgres", &[ages::aging]),
    ("postgres", &[ages::aging]),
    ("postgres", &[ages::aging, ages::kept, upkeep::swing]),
    ("postgres", &[ages::ages]),
    ("postgres", &[ages::ages]),
    ("postgres", &[ages::portals]),
    ("postgres", &[ages::portals, ages::kept]),
    ("postgres", &[ages::upkeep]),
    ("postgres", &[ages::upkeep]),
    ("postgres", &[upkeep::mischief]),
    ("postgres", &[work::transfer, work::queue]),
    ("postgres", &[ages::aging, upkeep::own_table, work::snapshot]),
    ("second", &[work::transfer]),
];

/// What all clients do: everything, or what is after old snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Focus {
    /// Everything.
    All,
    /// Old snapshots, portals and kept statements.
    Ages,
}

impl Focus {
    fn clients(self) -> &'static [(&'static str, &'static [Job])] {
        match self {
            Focus::All => &CLIENTS,
            Focus::Ages => &OF_AGES,
        }
    }
}

/// How long a statement may take before it is said to be stuck.
const PATIENCE: Duration = Duration::from_secs(90);

/// Rounds until the time is over, each of about `round` seconds.
///
/// # Errors
/// What keeps the soak itself from going on; what is wrong with the server is printed and counted.
pub fn run(
    server: &mut Server,
    time: Duration,
    round: Duration,
    seed: u64,
    focus: Focus,
) -> Result<usize> {
    let clients = focus.clients();
    let end = Instant::now() + time;
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut fates: Vec<Vec<Fate>> = clients.iter().map(|_| Vec::new()).collect();
    let mut faults = 0;
    settings(server, &mut rng);
    server.start()?;
    make(server)?;
    let mut logged = 0;
    for number in 0.. {
        let how = [Stop::Fast, Stop::Kill, Stop::Kill, Stop::Immediate][rng.random_range(0..4)];
        let world = World::new(server.target());
        let seed = seed ^ (number + 1) << 20;
        let stopped = busy(server, &world, clients, &mut fates, seed, round, how);
        if let Err(error) = stopped {
            world.fault(format!("the server does not stop: {error}"));
        }
        if rng.random_range(0..3) == 0 {
            verdict::check(server, &world)?;
        }
        settings(server, &mut rng);
        if how != Stop::Fast {
            struck_again(server, &mut rng)?;
        }
        server.start()?;
        looked_at(server, &world, clients, &mut fates, how == Stop::Fast)?;
        server.stop(Stop::Fast)?;
        verdict::check(server, &world)?;
        let log = server.log();
        verdict::log(log.get(logged..).unwrap_or_default(), &world);
        logged = log.len();
        faults += world.faults();
        let counts = world.counts.lock().map(|c| format!("{c:?}")).unwrap_or_default();
        let known: usize = fates.iter().flatten().filter(|f| **f == Fate::Kept).count();
        println!("round {number}, {how:?}: {known} commits so far; {counts}");
        if Instant::now() + round > end {
            break;
        }
        server.start()?;
    }
    Ok(faults)
}

/// A server that is killed while it recovers, or just after, some times over.
fn struck_again(server: &mut Server, rng: &mut SmallRng) -> Result<()> {
    for _ in 0..rng.random_range(0..5) {
        server.launch()?;
        std::thread::sleep(Duration::from_millis(rng.random_range(1..800)));
        server.stop(Stop::Kill)?;
    }
    Ok(())
}

/// Settings of a round: little memory or more, thresholds and ages low, what a crash meets varied.
fn settings(server: &mut Server, rng: &mut SmallRng) {
    let mut set = |name: &str, of: &[&str]| {
        let value = of[rng.random_range(0..of.len())];
        server.set(name, value);
    };
    set("shared_buffers", &["1MB", "2MB", "4MB", "16MB", "64MB"]);
    set("ebb.staging_size", &["128kB", "1MB", "32MB"]);
    set("wal_buffers", &["64kB", "1MB", "16MB"]);
    set("full_page_writes", &["on", "off"]);
    set("max_wal_size", &["4MB", "32MB", "1GB"]);
    set("checkpoint_timeout", &["30s", "300s"]);
    set("autovacuum_naptime", &["1s"]);
    set("autovacuum_vacuum_threshold", &["5", "50"]);
    set("autovacuum_vacuum_scale_factor", &["0", "0.05"]);
    set("autovacuum_vacuum_insert_threshold", &["20", "1000"]);
    set("autovacuum_analyze_threshold", &["10", "50"]);
    set("autovacuum_vacuum_cost_delay", &["0", "2"]);
    set("autovacuum_freeze_max_age", &["1000", "20000", "200000000"]);
    set("vacuum_freeze_min_age", &["0", "500", "50000000"]);
    set("vacuum_freeze_table_age", &["1000", "150000000"]);
    set("autovacuum_max_workers", &["1", "3", "6"]);
    set("vacuum_buffer_usage_limit", &["128kB", "2MB", "0"]);
    set("maintenance_work_mem", &["1MB", "64MB"]);
    set("work_mem", &["64kB", "4MB"]);
    set("deadlock_timeout", &["20ms", "200ms"]);
    set("log_min_messages", &["warning"]);
}

fn make(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    client.run("CREATE DATABASE second")?;
    for database in ["postgres", "second"] {
        let mut client = Client::connect(&Target { database: database.into(), ..server.target() })?;
        for sql in tables::made() {
            client.run(&sql)?;
        }
    }
    Ok(())
}

/// All clients at once until the round is over, and the server with them.
fn busy(
    server: &mut Server,
    world: &World,
    clients: &[(&str, &[Job])],
    fates: &mut [Vec<Fate>],
    seed: u64,
    round: Duration,
    how: Stop,
) -> Result<()> {
    std::thread::scope(|scope| {
        for (id, (fates, (database, jobs))) in fates.iter_mut().zip(clients).enumerate() {
            scope.spawn(move || {
                let mut worker = Worker::new(id, seed, world, database, fates);
                while !worker.is_over() {
                    let job = worker.pick(jobs);
                    worker.roll_back();
                    if job(&mut worker) == Err(Halt::Gone) {
                        world.pause(Duration::from_millis(20));
                    }
                }
            });
        }
        let end = Instant::now() + round;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(100));
            if server
                .pid()
                .is_none_or(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
            {
                world.fault("the server is gone");
                break;
            }
            for stuck in world.stuck(PATIENCE) {
                world.fault(format!("{stuck}\n{}", activity(server)));
            }
        }
        world.over.store(true, std::sync::atomic::Ordering::SeqCst);
        server.stop(how).map(drop)
    })
}

fn activity(server: &Server) -> String {
    let sql = "SELECT pid, backend_type, state, wait_event_type, wait_event, left(query, 120) FROM pg_stat_activity";
    match server.connect().and_then(|mut c| c.run(sql)) {
        Ok(outcome) => outcome.rows().iter().map(|r| format!("  {r:?}\n")).collect(),
        Err(error) => error.to_string(),
    }
}

/// Everything that a server which came up must answer.
fn looked_at(
    server: &Server,
    world: &World,
    clients: &[(&str, &[Job])],
    fates: &mut [Vec<Fate>],
    whole: bool,
) -> Result<()> {
    for database in ["postgres", "second"] {
        let mut client = Client::connect(&Target { database: database.into(), ..server.target() })?;
        let ids: Vec<usize> = (0..clients.len()).filter(|id| clients[*id].0 == database).collect();
        let done = verdict::ledger(&mut client, &ids, fates, whole, world)
            .and_then(|()| verdict::contents(&mut client, world))
            .and_then(|()| verdict::files(&mut client, &server.data_folder(), world));
        if let Err(error) = done {
            world.fault(format!("after the start, in {database}: {error}"));
        }
    }
    Ok(())
}
