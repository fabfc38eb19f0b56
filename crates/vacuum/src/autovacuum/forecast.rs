//! When a table's next vacuums come due, if things go on as they have.

use super::{TableState, limits};
use base::Xid;

/// What has happened since the counts began: the last vacuum, or the server's start.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Microseconds that the table's counts took to become what they are.
    pub counted_us: i64,
    /// Transactions per second that take an XID.
    pub xids_per_second: f64,
}

/// Microseconds until something is due: 0 when it is, `None` when it is not coming.
pub type Due = Option<i64>;

/// When the next vacuum of each kind comes due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Forecast {
    /// For dead rows.
    pub dead_rows: Due,
    /// For inserted rows.
    pub inserts: Due,
    /// Every unfrozen page is read by the next vacuum (`vacuum_freeze_table_age`).
    pub aggressive: Due,
    /// Autovacuum comes for its age alone (`autovacuum_freeze_max_age`).
    pub age: Due,
}

/// Further off than this is never.
const HORIZON_US: f64 = 100.0 * 365.25 * 86_400.0 * 1e6;

fn due(have: f64, limit: f64, per_us: f64) -> Due {
    if have > limit {
        return Some(0);
    }
    let left = (limit - have) / per_us;
    // Not a number, or infinite, when nothing happens.
    (per_us > 0.0 && left <= HORIZON_US).then_some(left as i64)
}

/// Looks ahead for `table`, at `next_xid`; `freeze_table_age` is the setting's.
pub fn forecast(table: &TableState, pace: &Pace, next_xid: Xid, freeze_table_age: u64) -> Forecast {
    let (dead_limit, insert_limit, _) = limits(table);
    let per_us = |n: i64| if pace.counted_us > 0 { n as f64 / pace.counted_us as f64 } else { 0.0 };
    let s = &table.thresholds;
    let enabled = s.active && s.enabled;
    let (dead, inserted) = (table.dead_tuples, table.inserts_since_vacuum);
    let age = next_xid.0.saturating_sub(table.relfrozenxid.0) as f64;
    let xids_per_us = pace.xids_per_second / 1e6;
    let max_age = s.freeze_max_age as f64;
    // As VACUUM takes it: at most 95 % of the age at which autovacuum comes.
    let table_age = (freeze_table_age as f64).min(max_age * 0.95);
    Forecast {
        dead_rows: due(dead as f64, dead_limit, per_us(dead)).filter(|_| enabled),
        inserts: due(inserted as f64, insert_limit, per_us(inserted))
            .filter(|_| enabled && s.vacuum_insert_threshold >= 0),
        aggressive: due(age, table_age, xids_per_us),
        age: due(age, max_age, xids_per_us),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Thresholds;
    use super::*;
    use base::Oid;

    fn table() -> TableState {
        TableState {
            oid: Oid(1),
            relfrozenxid: Xid(1000),
            reltuples: 1000.0,
            relpages: 10,
            all_frozen_pages: 0,
            dead_tuples: 125,
            inserts_since_vacuum: 0,
            changes_since_analyze: 0,
            analyzable: true,
            thresholds: Thresholds::default(),
        }
    }

    #[test]
    fn half_way_there_takes_as_long_again() {
        let pace = Pace { counted_us: 60_000_000, xids_per_second: 1000.0 };
        let f = forecast(&table(), &pace, Xid(101_000), 150_000_000);
        assert_eq!(f.dead_rows, Some(60_000_000));
        assert_eq!(f.inserts, None);
        assert_eq!(f.age, Some((200_000_000 - 100_000) * 1000));
        assert_eq!(f.aggressive, Some((150_000_000 - 100_000) * 1000));
    }

    #[test]
    fn due_now_never_and_switched_off() {
        let mut t = table();
        t.dead_tuples = 251;
        let still = Pace { counted_us: 0, xids_per_second: 0.0 };
        let f = forecast(&t, &still, Xid(200_001_001), 150_000_000);
        assert_eq!((f.dead_rows, f.age, f.inserts), (Some(0), Some(0), None));
        // At the threshold it is not due, and nothing happens.
        t.dead_tuples = 250;
        assert_eq!(forecast(&t, &still, Xid(2000), 150_000_000).dead_rows, None);
        // An age that autovacuum would not wait for is as VACUUM takes it.
        let aggressive = |age| forecast(&t, &still, Xid(190_001_001), age).aggressive;
        assert_eq!((aggressive(190_000_002), aggressive(2_000_000_000)), (Some(0), Some(0)));
        t.thresholds.enabled = false;
        let f = forecast(&t, &still, Xid(2000), 150_000_000);
        assert_eq!(f, Forecast::default());
    }
}
