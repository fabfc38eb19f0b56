//! What slows VACUUM and ANALYZE down: settings, storage parameters, and the other workers.
//!
//! # Invariants
//! The workers without storage parameters of their own share autovacuum's limit out among them; each reads its share again when
//! one begins or ends, and all settings after a reload.

use crate::session::SessionState;
use base::settings::ServerSettings;
use engine::catalog::model::Table;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vacuum::{CostSource, Costs, ThrottleSettings};

/// The autovacuum workers among whom the cost limit is shared out.
#[derive(Default, Debug)]
pub struct Workers {
    sharing: AtomicU64,
    changes: AtomicU64,
}

impl Workers {
    fn count(&self, more: bool) {
        if more {
            self.sharing.fetch_add(1, Ordering::SeqCst);
        } else {
            self.sharing.fetch_sub(1, Ordering::SeqCst);
        }
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
    /// How many there are.
    pub fn sharing(&self) -> u64 {
        self.sharing.load(Ordering::SeqCst)
    }
}

/// One worker's table.
struct Automatic {
    server: Arc<ServerSettings>,
    workers: Arc<Workers>,
    own_delay_ms: Option<f64>,
    own_limit: Option<i64>,
    own_latency_ms: Option<f64>,
}

impl Automatic {
    fn new(state: &SessionState, table: &Table) -> Automatic {
        let own = Automatic {
            server: Arc::clone(state.cluster.settings()),
            workers: Arc::clone(&state.cluster.workers),
            own_delay_ms: real(table, "autovacuum_vacuum_cost_delay").filter(|d| *d >= 0.0),
            own_limit: table.option_i64("autovacuum_vacuum_cost_limit").filter(|l| *l > 0),
            own_latency_ms: real(table, "vacuum_latency_target"),
        };
        if own.shares() {
            own.workers.count(true);
        }
        own
    }
    fn shares(&self) -> bool {
        self.own_delay_ms.is_none() && self.own_limit.is_none()
    }
}

impl Drop for Automatic {
    fn drop(&mut self) {
        if self.shares() {
            self.workers.count(false);
        }
    }
}

impl CostSource for Automatic {
    fn generation(&self) -> u64 {
        let changes = self.workers.changes.load(Ordering::SeqCst);
        self.server.generation().wrapping_mul(1 << 32).wrapping_add(changes)
    }

    fn costs(&self) -> Costs {
        let s = &self.server;
        let delay = self.own_delay_ms.unwrap_or_else(|| {
            let general = s.real("autovacuum_vacuum_cost_delay");
            if general >= 0.0 { general } else { s.real("vacuum_cost_delay") }
        });
        let limit = self.own_limit.unwrap_or_else(|| {
            let general = s.int("autovacuum_vacuum_cost_limit");
            let limit = if general > 0 { general } else { s.int("vacuum_cost_limit") };
            let among = if self.shares() { self.workers.sharing().max(1) } else { 1 };
            (limit / i64::try_from(among).unwrap_or(1)).max(1)
        });
        let latency = self.own_latency_ms.unwrap_or_else(|| s.real("vacuum_latency_target"));
        costs(delay, limit, latency, |name| s.int(name))
    }
}

fn real(table: &Table, option: &str) -> Option<f64> {
    table.options.number(option)
}

fn micros(ms: f64) -> u64 {
    u64::try_from(std::time::Duration::from_secs_f64(ms.max(0.0) / 1000.0).as_micros())
        .unwrap_or(u64::MAX)
}

fn costs(delay_ms: f64, limit: i64, latency_ms: f64, int: impl Fn(&str) -> i64) -> Costs {
    let of = |name: &str| u32::try_from(int(name)).unwrap_or(1);
    Costs {
        delay_us: micros(delay_ms),
        limit: u32::try_from(limit).unwrap_or(200),
        page_hit: of("vacuum_cost_page_hit"),
        page_miss: of("vacuum_cost_page_miss"),
        page_dirty: of("vacuum_cost_page_dirty"),
        latency_target_us: micros(latency_ms),
    }
}

/// What slows the vacuum or analyze of `table` down. From nine tenths of `failsafe_age` on it heeds no latency target.
pub(super) fn throttle(
    state: &SessionState,
    table: &Table,
    automatic: bool,
    failsafe_age: u64,
) -> Arc<ThrottleSettings> {
    let mut settings = if automatic {
        ThrottleSettings::from_source(Arc::new(Automatic::new(state, table)))
    } else {
        let s = state.settings.borrow();
        let own = real(table, "vacuum_latency_target");
        ThrottleSettings::of(&costs(
            s.real("vacuum_cost_delay"),
            s.int("vacuum_cost_limit"),
            own.unwrap_or_else(|| s.real("vacuum_latency_target")),
            |name| s.int(name),
        ))
    };
    settings.latency = Some(Arc::clone(&state.cluster.latency));
    let urgent = table.relfrozenxid.0.saturating_add(failsafe_age / 10 * 9);
    settings.urgent_from_xid = AtomicU64::new(urgent);
    Arc::new(settings)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cluster, connect, run};
    use super::*;
    use engine::catalog::model::CatalogView;

    #[test]
    fn workers_share_the_limit_but_for_tables_with_their_own() {
        let (_folder, cluster) = cluster();
        let mut s = connect(&cluster);
        run(&mut s, "CREATE TABLE a (x int); CREATE TABLE b (x int)");
        run(&mut s, "CREATE TABLE own (x int) WITH (autovacuum_vacuum_cost_limit = 700)");
        let state = std::rc::Rc::clone(s.state());
        let mut tables = ["a", "b", "own"].into_iter().map(|name| {
            run(&mut s, "BEGIN");
            let table = state.table_by_name(None, name).unwrap().unwrap();
            run(&mut s, "COMMIT");
            table
        });
        let [a, b, own] = std::array::from_fn(|_| tables.next().unwrap());
        drop(tables);
        let a = Automatic::new(&state, &a);
        let alone = a.generation();
        assert_eq!(a.costs().limit, 200);
        let own = Automatic::new(&state, &own);
        assert_eq!((a.costs().limit, own.costs().limit, a.generation()), (200, 700, alone));
        let b = Automatic::new(&state, &b);
        assert_eq!((a.costs().limit, b.costs().limit, own.costs().limit), (100, 100, 700));
        assert_ne!(a.generation(), alone);
        drop(b);
        assert_eq!(a.costs().limit, 200);
        // A reload.
        let before = a.generation();
        let set = |name: &str, value| cluster.settings().set_internal(name, value);
        set("autovacuum_vacuum_cost_limit", base::settings::Value::Int(50));
        set("vacuum_latency_target", base::settings::Value::Real(1.5));
        assert_ne!(a.generation(), before);
        assert_eq!((a.costs().limit, a.costs().latency_target_us), (50, 1500));
        assert_eq!(a.costs().delay_us, 2000);
        drop((a, own));
        assert_eq!(cluster.workers.sharing(), 0);
        s.close();
    }

    #[test]
    fn statements_are_measured_and_maintenance_is_not() {
        let (_folder, cluster) = cluster();
        let mut s = connect(&cluster);
        run(&mut s, "CREATE TABLE t (x int)");
        let p99 = || {
            let now = u64::try_from(base::sync::now_timestamp_us()).unwrap();
            // Whatever the test's machine does, statements of the last seconds count.
            (0..40).find_map(|n| cluster.latency.p99_us(now - n * 100_000))
        };
        run(&mut s, "SELECT 1");
        assert_eq!(p99(), None);
        cluster.latency.listen();
        // A Sync that ends nothing is no statement.
        s.sync(&mut crate::client::Quiet).unwrap();
        assert_eq!(p99(), None);
        run(&mut s, "VACUUM t");
        assert_eq!(p99(), None);
        run(&mut s, "INSERT INTO t VALUES (1)");
        assert!(p99().is_some());
        cluster.latency.unlisten();
        s.close();
    }
}
