//! The whole server on a disk that loses what was not synced.

/// Runs every so many operations apart, so that the test stays short; `EBB_SIM_STRIDE=1` crashes at each.
fn stride(default: u64) -> u64 {
    std::env::var("EBB_SIM_STRIDE").ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

#[test]
fn without_a_crash_everything_is_there() {
    let disk = sim::prepared(1).unwrap();
    let outcome = sim::run(&disk, 11, 60, None).unwrap();
    assert!(outcome.acknowledged > 30);
    assert_eq!(outcome.found, outcome.acknowledged);
}

#[test]
fn acknowledged_transfers_survive_power_loss_at_any_write_and_sync() {
    let disk = sim::prepared(2).unwrap();
    let whole = sim::run(&disk, 21, 25, None).unwrap();
    let mut at = 0;
    let mut lost_power = 0;
    while at < whole.operations {
        let outcome = sim::run(&disk, 21, 25, Some(at)).unwrap();
        lost_power += u64::from(outcome.acknowledged < whole.acknowledged);
        at += stride(whole.operations / 25 + 1);
    }
    assert!(lost_power > 0, "no crash came before the end");
}

#[test]
fn other_seeds_other_workloads() {
    let disk = sim::prepared(3).unwrap();
    for seed in 31..41 {
        sim::run(&disk, seed, 40, Some(seed * 7 % 150)).unwrap();
    }
}

/// Tables that VACUUM cuts to fewer pages, whose files follow later: no row is lost, no dead one comes back.
#[test]
fn what_is_cut_off_stays_away_and_nothing_else_goes() {
    let disk = sim::emptied::prepared(4).unwrap();
    for seed in 51..54 {
        let whole = sim::emptied::run(&disk, seed, 30, None, u64::MAX).unwrap();
        let mut at = seed % 5;
        while at < whole {
            sim::emptied::run(&disk, seed, 30, Some(at), at * 7 % 97).unwrap();
            at += stride(whole / 6 + 1);
        }
    }
}

/// Catalogs are made smaller between DDL: no table is lost, none comes back.
#[test]
fn catalogs_made_smaller_lose_nothing() {
    let disk = sim::catalogs::prepared(5).unwrap();
    for seed in 61..63 {
        let whole = sim::catalogs::run(&disk, seed, 16, None).unwrap();
        let mut at = seed % 5;
        while at < whole {
            sim::catalogs::run(&disk, seed, 16, Some(at)).unwrap();
            at += stride(whole / 5 + 1);
        }
    }
}

/// Indexes are rebuilt concurrently between changes: at any moment there is a whole one under each name.
#[test]
fn rebuilt_indexes_are_whole_at_any_moment() {
    let disk = sim::rebuilt::prepared(6).unwrap();
    let whole = sim::rebuilt::run(&disk, 71, 24, None).unwrap();
    let mut at = 1;
    while at < whole {
        sim::rebuilt::run(&disk, 71, 24, Some(at)).unwrap();
        at += stride(whole / 12 + 1);
    }
}

/// An enum gets labels anywhere in its order while rows with its values come and go: indexes keep the order.
#[test]
fn keys_of_an_enum_keep_their_order() {
    let disk = sim::enums::prepared(7).unwrap();
    for seed in 81..83 {
        let whole = sim::enums::run(&disk, seed, 40, None).unwrap();
        let mut at = seed % 5;
        while at < whole {
            sim::enums::run(&disk, seed, 40, Some(at)).unwrap();
            at += stride(whole / 5 + 1);
        }
    }
}

/// Everything that keeps tables in order, and everything that it meets; the power goes three times in a row.
#[test]
fn tables_kept_in_order_lose_nothing() {
    let disk = sim::upkeep::prepared(8).unwrap();
    for seed in 91..93 {
        let whole = sim::upkeep::run(&disk, seed, 30, None, u64::MAX).unwrap();
        let mut at = seed % 5;
        while at < whole {
            sim::upkeep::run(&disk, seed, 30, Some(at), at * 7 % 61).unwrap();
            at += stride(whole / 3 + 1);
        }
    }
}

/// A process is killed that writes no whole pages to its log: each record fits the page that it finds.
#[test]
fn a_killed_process_without_page_images() {
    let disk = sim::upkeep::prepared(9).unwrap();
    for seed in 0..3 {
        sim::killed::run(&disk, seed, 30).unwrap();
    }
}

/// Several threads replay a log as one does.
#[test]
fn several_threads_replay_as_one_does() {
    let disk = sim::upkeep::prepared(11).unwrap();
    for seed in 0..6 {
        sim::replayed::run(&disk, seed, 40).unwrap();
    }
}

/// The disk is full for a while, or fails once: what it refuses has no effect, and all goes on when it lets it.
#[test]
fn a_disk_that_refuses_costs_nothing_but_what_it_refused() {
    let disk = sim::upkeep::prepared(10).unwrap();
    let mut sum = sim::filled::Outcome::default();
    for seed in 0..6 {
        let outcome = sim::filled::run(&disk, seed, 40).unwrap();
        sum.refused += outcome.refused;
        sum.ended += outcome.ended;
    }
    assert!(sum.refused > sum.ended && sum.ended > 0, "{sum:?}");
}

/// How many times more than usual: `EBB_SOAK`.
fn more() -> u64 {
    std::env::var("EBB_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Where seeds begin: `EBB_SOAK_FROM`.
fn from() -> u64 {
    std::env::var("EBB_SOAK_FROM").ok().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Whatever DDL a full disk refuses has no effect, leaves no file, and works with room again.
#[test]
fn ddl_that_a_disk_refuses() {
    let disk = sim::ddl::prepared(12).unwrap();
    let mut sum = sim::ddl::Outcome::default();
    for seed in from()..from() + 3 + more() * 10 {
        let outcome = sim::ddl::run(&disk, seed, 1 + more()).unwrap();
        sum.runs += outcome.runs;
        sum.refused += outcome.refused;
    }
    assert!(sum.refused > 0, "{sum:?}");
}

/// DDL is done or not when the power goes, whole.
#[test]
fn ddl_whose_power_goes() {
    let disk = sim::ddl::prepared(13).unwrap();
    for seed in from()..from() + 2 + more() * 10 {
        sim::ddl::crash(&disk, seed, 2 + more()).unwrap();
    }
}

/// VACUUM is stopped anywhere by a disk, a user or the power; the next one does the rest.
#[test]
fn a_vacuum_that_is_stopped_anywhere() {
    let disk = sim::swept::prepared(14).unwrap();
    let mut felt = 0;
    for i in from()..from() + 6 + more() * 100 {
        felt += u64::from(sim::swept::run(&disk, i).unwrap());
    }
    assert!(felt > 1, "{felt}");
}

/// Others change the table at each phase of a VACUUM, which is cancelled there, or goes on.
#[test]
fn a_vacuum_that_is_held_anywhere() {
    let disk = sim::swept::prepared(15).unwrap();
    let mut reached = 0;
    for i in from()..from() + 4 + more() * 60 {
        reached += u64::from(sim::swept::held(&disk, i).unwrap());
    }
    assert!(reached > 0, "{reached}");
}

/// Snapshots of all ages see what they saw, whatever is done to chains of versions.
#[test]
fn old_snapshots_see_what_they_saw() {
    let disk = sim::aged::prepared(16).unwrap();
    for seed in from()..from() + 1 + more() * 10 {
        sim::aged::run(&disk, seed, 150 + 50 * more() as usize, seed % 2 == 1).unwrap();
    }
}
