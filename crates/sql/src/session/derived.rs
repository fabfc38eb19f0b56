//! What statements need of the settings, read once after each change of one.

use super::SessionState;
use super::statement_log::StatementLog;
use crate::client::Severity;
use crate::exec::{TempFileBounds, bound_temp_files};
use crate::plan::PlannerSettings;
use crate::system::fetched::Consistency;
use base::settings::SessionSettings;
use std::rc::Rc;
use std::time::Duration;
use txn::IsolationLevel;

/// Values of settings in the form in which they are used.
#[derive(Debug)]
pub struct Derived {
    version: u64,
    user: base::Oid,
    /// The names in `search_path`, `$user` replaced.
    pub search_path: Rc<[String]>,
    /// `statement_timeout`
    pub statement_timeout: Option<Duration>,
    /// How long locks are waited for, of whatever kind.
    lock_timeout: Option<Duration>,
    /// `transaction_timeout`
    pub transaction_timeout: Option<Duration>,
    /// `client_connection_check_interval`
    pub client_check: Option<Duration>,
    /// `tcp_keepalives_idle`, `_interval`, `_count` and `tcp_user_timeout`; 0: as the system has it.
    pub tcp: [u32; 4],
    /// `idle_session_timeout`
    pub idle_session_timeout: Option<Duration>,
    /// `idle_in_transaction_session_timeout`
    pub idle_in_transaction_timeout: Option<Duration>,
    /// `work_mem` in bytes.
    pub work_mem_bytes: usize,
    /// `hash_mem_multiplier`
    hash_mem_multiplier: f64,
    /// `client_min_messages`
    pub min_notice: Severity,
    /// A commit waits for its WAL (`synchronous_commit`).
    pub sync_commit: bool,
    /// `default_transaction_isolation`; None: SERIALIZABLE, which is not there.
    pub isolation: Option<IsolationLevel>,
    /// `default_transaction_read_only`
    pub read_only: bool,
    /// Transactions begin as others than plain ones.
    pub modes_differ: bool,
    /// `stats_fetch_consistency`
    pub stats_consistency: Consistency,
    /// `track_counts`
    counts_rows: bool,
    /// `io_combine_limit`, in pages.
    combines: usize,
    /// `temp_file_limit`, `log_temp_files`
    temp_files: TempFileBounds,
    /// `log_statement`, `log_duration`, `log_min_duration_statement`; None: no statement is logged.
    pub(super) statement_log: Option<StatementLog>,
    /// `log_min_messages`, `log_min_error_statement`, `log_error_verbosity`
    log_manner: base::log::Manner,
    /// What the planner heeds.
    pub planner: PlannerSettings,
    /// `compute_query_id`, `pg_stat_statements.track` and its like
    pub(super) counting: super::counting::Counting,
}

impl Derived {
    /// What a hash table may take where `work_mem` is so much.
    pub fn hash_mem_bytes(&self, work_mem: usize) -> usize {
        (work_mem as f64 * self.hash_mem_multiplier) as usize
    }

    fn new(state: &SessionState, settings: &SessionSettings) -> Derived {
        let duration = |name| {
            let ms = u64::try_from(settings.int(name)).unwrap_or(0);
            (ms > 0).then(|| Duration::from_millis(ms))
        };
        let user = state.current_user.borrow();
        let search_path = crate::names::split_identifier_list(settings.text("search_path"))
            .into_iter()
            .map(|n| if n == "$user" { user.name.clone() } else { n })
            .collect();
        Derived {
            version: settings.version(),
            user: user.oid,
            counting: super::counting::Counting::new(settings),
            planner: planner_settings(settings),
            search_path,
            statement_timeout: duration("statement_timeout"),
            lock_timeout: duration("lock_timeout"),
            transaction_timeout: duration("transaction_timeout"),
            client_check: duration("client_connection_check_interval"),
            tcp: [
                "tcp_keepalives_idle",
                "tcp_keepalives_interval",
                "tcp_keepalives_count",
                "tcp_user_timeout",
            ]
            .map(|name| u32::try_from(settings.int(name)).unwrap_or(0)),
            idle_session_timeout: duration("idle_session_timeout"),
            idle_in_transaction_timeout: duration("idle_in_transaction_session_timeout"),
            work_mem_bytes: usize::try_from(settings.int("work_mem"))
                .unwrap_or(4096)
                .saturating_mul(1024),
            hash_mem_multiplier: settings.real("hash_mem_multiplier"),
            min_notice: match settings.text("client_min_messages") {
                "debug" | "debug1" | "debug2" | "debug3" | "debug4" | "debug5" => Severity::Debug,
                "log" => Severity::Log,
                "warning" => Severity::Warning,
                "error" => Severity::Error,
                _ => Severity::Notice,
            },
            sync_commit: settings.text("synchronous_commit") != "off",
            isolation: match settings.text("default_transaction_isolation") {
                "repeatable read" => Some(IsolationLevel::RepeatableRead),
                "serializable" => None,
                _ => Some(IsolationLevel::ReadCommitted),
            },
            read_only: settings.bool("default_transaction_read_only"),
            modes_differ: settings.bool("default_transaction_read_only")
                || settings.bool("default_transaction_deferrable")
                || settings.text("default_transaction_isolation") != "read committed",
            combines: usize::try_from(settings.int("io_combine_limit")).unwrap_or(1),
            stats_consistency: Consistency::named(settings.text("stats_fetch_consistency")),
            counts_rows: settings.bool("track_counts"),
            temp_files: TempFileBounds {
                limit_kb: settings.int("temp_file_limit"),
                log_kb: settings.int("log_temp_files"),
            },
            statement_log: StatementLog::new(settings),
            log_manner: base::log::Manner::from_settings(
                settings.text("log_min_messages"),
                settings.text("log_min_error_statement"),
                settings.text("log_error_verbosity"),
            ),
        }
    }

    /// Tells those who go by the thread that they work on.
    pub(super) fn hold_for_this_thread(&self) {
        bound_temp_files(self.temp_files);
        buffer::count_blocks(self.counts_rows);
        buffer::bound_combined(self.combines);
        base::log::set_thread_manner(self.log_manner);
    }
}

impl SessionState {
    /// No XID in progress in this database, or still to come there, is below this, and no snapshot needs one.
    pub fn oldest_xmin(&self) -> base::Xid {
        let txns = &self.cluster.engine().txns;
        txns.oldest_xmin_in(&txns.scope(self.database.oid))
    }

    /// Is what this session does to tables counted (`track_counts`)?
    pub fn counts_rows(&self) -> bool {
        self.derived().counts_rows
    }

    /// What the settings in force come to.
    pub fn derived(&self) -> Rc<Derived> {
        let settings = self.settings.borrow();
        if let Some(derived) = &*self.derived.borrow()
            && derived.version == settings.version()
            && derived.user == self.current_user.borrow().oid
        {
            return Rc::clone(derived);
        }
        let derived = Rc::new(Derived::new(self, &settings));
        let timeout = u64::try_from(settings.int("deadlock_timeout")).unwrap_or(1000);
        self.backend.set_deadlock_timeout_ms(timeout);
        self.backend.set_lock_timeout(derived.lock_timeout);
        self.backend.log_lock_waits(settings.bool("log_lock_waits"));
        self.backend.log_lock_failures(settings.bool("log_lock_failures"));
        derived.hold_for_this_thread();
        let before = self.derived.borrow_mut().replace(Rc::clone(&derived));
        if before.is_some_and(|b| b.stats_consistency != derived.stats_consistency) {
            self.fetched.clear();
        }
        derived
    }
}

/// What the planner heeds.
fn planner_settings(s: &SessionSettings) -> PlannerSettings {
    let bytes = |name: &str| usize::try_from(s.int(name)).unwrap_or(0).saturating_mul(1024);
    #[expect(clippy::cast_precision_loss, reason = "a page count for cost estimates")]
    let cache_pages = s.int("effective_cache_size") as f64;
    PlannerSettings {
        work_mem_bytes: bytes("work_mem"),
        hash_mem_bytes: bytes("work_mem") as f64 * s.real("hash_mem_multiplier"),
        random_page_cost: s.real("random_page_cost"),
        seq_page_cost: s.real("seq_page_cost"),
        cpu_tuple_cost: s.real("cpu_tuple_cost"),
        cpu_index_tuple_cost: s.real("cpu_index_tuple_cost"),
        cpu_operator_cost: s.real("cpu_operator_cost"),
        effective_cache_pages: cache_pages,
        enable_seqscan: s.bool("enable_seqscan"),
        enable_indexscan: s.bool("enable_indexscan"),
        enable_indexonlyscan: s.bool("enable_indexonlyscan"),
        enable_bitmapscan: s.bool("enable_bitmapscan"),
        enable_hashjoin: s.bool("enable_hashjoin"),
        enable_mergejoin: s.bool("enable_mergejoin"),
        enable_nestloop: s.bool("enable_nestloop"),
        enable_hashagg: s.bool("enable_hashagg"),
        enable_sort: s.bool("enable_sort"),
        enable_tidscan: s.bool("enable_tidscan"),
        enable_incremental_sort: s.bool("enable_incremental_sort"),
        enable_presorted_aggregate: s.bool("enable_presorted_aggregate"),
        enable_material: s.bool("enable_material"),
        ..PlannerSettings::default()
    }
}
