//! The work of [`upkeep`](crate::upkeep) on a disk that is full for a while, or fails once.
//!
//! # Purpose
//! What a power loss never shows: the ways out of a statement that the disk refuses in the midst of it. Room runs out at any byte and is
//! there again later; a write, a read, a sync or an open fails.
//!
//! # Invariants checked
//! A statement that was refused has done nothing, the server goes on or says that it has to end, and once there is room everything can be
//! done as before. After an end of the process or of the power: what was acknowledged is there, heaps, indexes and maps agree, and no file
//! is nobody's.

use crate::Server;
use crate::upkeep::{World, found, is_one, step, verify};
use base::Result;
use base::settings::Value;
use disk::sim::{Fault, Operation, SimDisk};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use sql::client::Quiet;
use sql::session::Session;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;

/// What came of a run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Steps that the disk refused.
    pub refused: u64,
    /// Times that the server had to end.
    pub ended: u64,
}

/// Something is the matter with the disk from now on. Whether what it has not synced may be gone for good.
fn ail(disk: &SimDisk, rng: &mut SmallRng) -> bool {
    let (operation, error) = match rng.random_range(0..10) {
        0..5 => {
            let most = 1 << rng.random_range(1..21);
            disk.set_free_space(rng.random_range(0..most));
            return false;
        }
        5 | 6 => (Operation::Write, ENOSPC),
        7 => (Operation::Name, EMFILE),
        8 => (Operation::Read, EIO),
        _ => (Operation::Sync, EIO),
    };
    let most = 1 << rng.random_range(1..8);
    let after = rng.random_range(0..most);
    let once = rng.random_bool(0.7);
    disk.inject(Fault { operation, path_contains: String::new(), after, error, once });
    operation == Operation::Sync
}

/// Runs `steps` steps of the workload of `seed` on a copy of `start`.
///
/// # Errors
/// None: what is wrong panics, with the seed.
///
/// # Panics
/// When rows are lost or come back, a refusal has an effect, or damage is found.
pub fn run(start: &SimDisk, seed: u64, steps: usize) -> Result<Outcome> {
    let at = format!("seed {seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut disk = start.snapshot(seed);
    let mut w = World::new();
    let mut outcome = Outcome::default();
    let mut left = steps;
    while left > 0 {
        let before = left;
        let syncs_fail = life(&disk, &mut rng, &mut w, &mut left, &mut outcome, &at);
        if left > 0 {
            outcome.ended += 1;
        }
        assert!(left < before || outcome.ended < 1000, "{at}: it does not come up any more");
        let power = syncs_fail || rng.random_bool(0.3);
        disk = if power { disk.after_crash(rng.random()) } else { disk.snapshot(rng.random()) };
    }
    verify(disk, &w, &at)?;
    Ok(outcome)
}

/// From a start to an end.
fn life(
    disk: &Arc<SimDisk>,
    rng: &mut SmallRng,
    w: &mut World,
    left: &mut usize,
    outcome: &mut Outcome,
    at: &str,
) -> bool {
    let mut syncs_fail = false;
    if rng.random_range(0..4) == 0 {
        syncs_fail |= ail(disk, rng);
    }
    let server = match Server::open(disk.clone()) {
        Ok(server) => server,
        Err(_) => return syncs_fail,
    };
    server.cluster.settings().set_internal("autovacuum_freeze_max_age", Value::Int(1000));
    disk.heal();
    let Ok(mut session) = server.session() else { return syncs_fail };
    let (mut look, mut begun) = (true, false);
    while *left > 0 && !server.engine.has_failed() {
        if look {
            disk.heal();
            match found(&server, &mut session) {
                Ok(found) => {
                    is_one(if begun { w.after_a_step() } else { w.states() }, &found, at);
                    w.settle(found, !begun);
                    begun = true;
                }
                Err(error) => {
                    assert!(server.engine.has_failed(), "{at}: with room again: {error}");
                    break;
                }
            }
            look = false;
        }
        *left -= 1;
        match rng.random_range(0..6) {
            0 => syncs_fail |= ail(disk, rng),
            1 => disk.heal(),
            _ => {}
        }
        if let Err(error) = step(&server, &mut session, rng, w) {
            outcome.refused += 1;
            w.forget_other();
            if session.simple_query("ROLLBACK", &mut Quiet).is_err() {
                assert!(server.engine.has_failed(), "{at}: not even a ROLLBACK after: {error}");
            }
            look = true;
        }
    }
    close(w, session);
    server.engine.stop_at_once();
    syncs_fail
}

/// Sessions that cannot take their transactions back may say so as they like.
fn close(w: &mut World, session: Session) {
    std::mem::drop(catch_unwind(AssertUnwindSafe(|| w.forget_other())));
    std::mem::drop(catch_unwind(AssertUnwindSafe(|| session.close())));
}
