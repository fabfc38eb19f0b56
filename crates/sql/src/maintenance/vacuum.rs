//! VACUUM of one table, its TOAST table after it.
//!
//! # Locks
//! ShareUpdateExclusive on the table, then RowExclusive on its indexes (AccessExclusive on both for FULL), in a transaction of its own. FULL of a catalog: `full_catalog.rs`.
//!
//! # Differs from PostgreSQL
//! A catalog's TOAST table has no row of its own in `pg_class` and is vacuumed under its catalog's `relfrozenxid`. FULL of a TOAST table
//! by its name locks its table too.

use super::commands::{Command, cluster};
use super::explain::Foretold;
use super::freezing::{Whose, freeze_settings, note_vacuum};
use super::options::{Options, parameters, stored_index_cleanup};
use super::throttle::throttle;
use crate::client::{Client, Notice, Severity};
use crate::ddl::concurrently::SessionLocks;
use crate::ddl::reindex_concurrently::whose_toast;
use crate::session::{Session, SessionState};
use base::{BlockNumber, Fork, Oid, RelationId, Result, SqlState, Xid};
use buffer::Persistence;
use engine::catalog::model::{CatalogView, Index, RelationKind, RelationPersistence, Table};
use heap::{Heap, HeapOptions};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use txn::{LockMode, LockOutcome, LockTag, Wait};
use types::Datum;
use types::io::parse_bool;
use vacuum::{
    IndexCleanup, IndexTarget, Message, TableFacts, Trigger, UsageMeter, VacuumContext,
    VacuumCutoffs, VacuumHost, VacuumOptions, VacuumProgress, VacuumReport, VacuumSettings,
    VacuumTarget,
};

/// Sends messages as they come, or logs them.
pub(super) struct Host<'a> {
    state: &'a SessionState,
    client: Option<RefCell<&'a mut dyn Client>>,
    verbose: bool,
}

impl<'a> Host<'a> {
    pub(super) fn new(
        state: &'a SessionState,
        client: Option<&'a mut dyn Client>,
        verbose: bool,
    ) -> Host<'a> {
        Host { state, client: client.map(RefCell::new), verbose }
    }
}

const FAILSAFE_HINT: &str = "Consider increasing configuration parameter \"maintenance_work_mem\" or \"autovacuum_work_mem\".\nYou might also need to consider other ways for VACUUM to keep up with the allocation of transaction IDs.";

const HELD_BACK_HINT: &str = "Close open transactions soon to avoid wraparound problems.\nYou might also need to commit or roll back old prepared transactions, or drop stale replication slots.";

impl VacuumHost for Host<'_> {
    fn truncate(&self, heap: &Heap, len: BlockNumber) -> Result<()> {
        self.state.cluster.engine().files.truncate(heap.relation(), &[(Fork::Main, len)])
    }

    fn say(&self, kind: Message, text: String) {
        let severity = match kind {
            Message::Verbose => Severity::Info,
            Message::Warning | Message::Failsafe => Severity::Warning,
        };
        let mut notice = Notice::new(severity, text);
        if kind == Message::Failsafe {
            notice.body.detail =
                Some("The table's relfrozenxid or relminmxid is too far in the past.".to_owned());
            notice.body.hint = Some(FAILSAFE_HINT.to_owned());
        }
        self.tell(kind, &notice);
    }
}

impl Host<'_> {
    fn tell(&self, kind: Message, notice: &Notice) {
        match &self.client {
            // A client that is gone is found out at the next message.
            Some(client) if self.verbose || kind != Message::Verbose => {
                let _ = client.borrow_mut().notice(notice);
            }
            None if kind != Message::Verbose => {
                base::log::write_error(base::log::Level::Warning, &notice.body);
            }
            _ => {}
        }
    }

    /// Says so if this vacuum can't do what it may have been called for, since somebody's snapshot holds everything back.
    fn warn_if_held_back(&self, cutoffs: &VacuumCutoffs) {
        if let Some(notice) = held_back(self.state, cutoffs.oldest_xmin, cutoffs.next_xid) {
            self.tell(Message::Warning, &notice);
        }
    }
}

/// As [`Host::warn_if_held_back`], before something is written anew.
pub(super) fn warn_if_held_back(state: &SessionState, client: &mut dyn Client) -> Result<()> {
    let next_xid = state.cluster.engine().txns.next_xid();
    let notice = held_back(state, state.oldest_xmin(), next_xid);
    notice.map_or(Ok(()), |notice| client.notice(&notice))
}

/// What is said when nothing younger than `oldest_xmin` can be removed or frozen, and that is old.
fn held_back(state: &SessionState, oldest_xmin: Xid, next_xid: Xid) -> Option<Notice> {
    let age = state.cluster.settings().int("autovacuum_freeze_max_age");
    let age = u64::try_from(age).unwrap_or(u64::MAX);
    (oldest_xmin.0 < next_xid.0.saturating_sub(age)).then(|| {
        let text = "cutoff for removing and freezing tuples is far in the past";
        let mut notice = Notice::new(Severity::Warning, text.to_owned());
        notice.body.hint = Some(HELD_BACK_HINT.to_owned());
        notice
    })
}

/// The horizon of this session counts again when this is dropped.
pub(super) struct Ignored(Rc<SessionState>);

impl Ignored {
    /// Snapshots of this session hold nobody's clean-up back for now.
    pub(super) fn new(state: &Rc<SessionState>) -> Ignored {
        state.backend.set_ignored_by_horizons(true);
        Ignored(Rc::clone(state))
    }
}

impl Drop for Ignored {
    fn drop(&mut self) {
        self.0.backend.set_ignored_by_horizons(false);
    }
}

/// A relation to be looked after.
#[derive(Clone, Debug)]
pub struct Target {
    /// `pg_class.oid`
    pub oid: Oid,
    /// As it was written, for messages; empty when the whole database is vacuumed.
    pub name: String,
    /// Columns to be analysed.
    pub columns: Vec<String>,
}

fn vacuum_settings(
    state: &SessionState,
    table: &Table,
    options: &Options,
) -> Result<VacuumSettings> {
    let automatic = options.automatic;
    let whose = match (automatic, options.of_template) {
        (false, _) => Whose::Statement,
        (true, false) => Whose::Autovacuum,
        (true, true) => Whose::Template,
    };
    let freeze = freeze_settings(state, table, whose)?;
    let s = state.settings.borrow();
    let own_memory = if automatic { s.int("autovacuum_work_mem") } else { -1 };
    let memory_kb = if own_memory >= 0 { own_memory } else { s.int("maintenance_work_mem") };
    let workers = match automatic {
        true => 0,
        false => s.int("max_parallel_maintenance_workers").min(s.int("max_parallel_workers")),
    };
    Ok(VacuumSettings {
        freeze,
        work_mem_bytes: usize::try_from(memory_kb).unwrap_or(65_536).saturating_mul(1024),
        buffer_usage_limit_kb: usize::try_from(s.int("vacuum_buffer_usage_limit")).unwrap_or(2048),
        max_parallel_workers: u32::try_from(workers).unwrap_or(0),
        min_parallel_index_pages: u32::try_from(s.int("min_parallel_index_scan_size")).unwrap_or(0),
        min_parallel_table_pages: u32::try_from(s.int("min_parallel_table_scan_size")).unwrap_or(0),
        track_io_timing: s.bool("track_io_timing"),
        track_cost_delay_timing: s.bool("track_cost_delay_timing"),
        machine: state.cluster.maintenance.rates.now().machine,
        ..VacuumSettings::default()
    })
}

/// The table after its lock; None when there is nothing to do, of which the client has been told.
pub(super) fn lock_target(
    session: &Session,
    target: &Target,
    mode: LockMode,
    options: &Options,
    verb: &str,
    client: &mut dyn Client,
) -> Result<Option<Arc<Table>>> {
    let state = session.state();
    let gerund = if verb == "vacuum" { "vacuum" } else { "analyze" };
    let mut warn = |sqlstate: SqlState, text: String| -> Result<()> {
        // Autovacuum's go to the log, if that is to hear of its work at all.
        if options.automatic {
            let table = state.table_by_oid(target.oid)?;
            let used = table.map(|t| parameters(state, &t, true)).transpose()?;
            if log_limit(state, used.as_deref()) < 0 {
                return Ok(());
            }
        }
        let severity = if options.automatic { Severity::Log } else { Severity::Warning };
        let mut notice = Notice::new(severity, text);
        notice.body.state = sqlstate;
        client.notice(&notice)
    };
    let wait = if options.skip_locked { Wait::NoWait } else { Wait::Block };
    for oid in to_lock(state, target.oid, mode)? {
        let tag = crate::relations::lock_tag(state, oid);
        if state.txn()?.lock(tag, mode, wait)? == LockOutcome::NotAvailable {
            if !target.name.is_empty() {
                warn(
                    SqlState::LOCK_NOT_AVAILABLE,
                    format!("skipping {gerund} of \"{}\" --- lock not available", target.name),
                )?;
            }
            return Ok(None);
        }
    }
    let Some(table) = state.table_by_oid(target.oid)? else {
        if !target.name.is_empty() {
            warn(
                SqlState::UNDEFINED_TABLE,
                format!("skipping {gerund} of \"{}\" --- relation no longer exists", target.name),
            )?;
        }
        return Ok(None);
    };
    if !may_maintain(state, &table, target)? {
        warn(
            SqlState::WARNING,
            format!("permission denied to {gerund} \"{}\", skipping it", table.name),
        )?;
        return Ok(None);
    }
    let fits = match table.kind {
        RelationKind::Table | RelationKind::MaterializedView => true,
        RelationKind::Toast => verb == "vacuum",
        _ => false,
    };
    if !fits || table.storage.is_none() {
        if verb == "analyze" && options.vacuum {
            // It has been vacuumed, or complained of, before.
            return Ok(None);
        }
        warn(
            SqlState::WARNING,
            format!(
                "skipping \"{}\" --- cannot {gerund} non-tables or special system tables",
                table.name
            ),
        )?;
        return Ok(None);
    }
    // None of our business.
    if super::options::of_another_session(state, &table)? {
        return Ok(None);
    }
    Ok(Some(table))
}

/// What is locked for `relation`: itself, after the table whose TOAST table it is, if that is to get another file. Values out of
/// line are read under the lock of the table that they belong to.
fn to_lock(state: &SessionState, relation: Oid, mode: LockMode) -> Result<Vec<Oid>> {
    let mut oids = Vec::new();
    if mode == LockMode::AccessExclusive
        && state.table_by_oid(relation)?.is_some_and(|t| t.kind == RelationKind::Toast)
    {
        oids = whose_toast(state, relation)?;
    }
    oids.push(relation);
    Ok(oids)
}

/// See [`VacuumContext::writers_locks`]. The answer stays right under the TOAST table's own lock: who gives its table another one locks both.
fn writers_locks(state: &SessionState, table: &Table) -> Result<Vec<LockTag>> {
    if table.kind != RelationKind::Toast {
        return Ok(Vec::new());
    }
    let owner = super::options::whose_values(state, table)?;
    Ok(owner.iter().map(|of| crate::relations::lock_tag(state, of.oid)).collect())
}

fn may_maintain(state: &SessionState, table: &Table, target: &Target) -> Result<bool> {
    // Who may vacuum a table may vacuum its TOAST table, which goes with it unnamed.
    if state.is_superuser() || (table.kind == RelationKind::Toast && target.name.is_empty()) {
        return Ok(true);
    }
    crate::acl::may_vacuum(state, table.oid, table.owner, table.acl.as_deref())
}

/// The heap and index of a catalog's TOAST table.
fn catalog_toast(state: &SessionState, table: &Table) -> Result<Option<(Heap, IndexTarget)>> {
    let Some(def) = engine::catalog::defs::by_oid(table.oid) else { return Ok(None) };
    let Some(toast) = def.toast else { return Ok(None) };
    let database = if def.shared { Oid::INVALID } else { state.database.oid };
    let at = |file_number| RelationId { database, file_number };
    let storage = state.cluster.storage();
    let handle = storage.heap.pool.open(at(toast.0), Persistence::Permanent);
    let heap = Heap::new(handle, Arc::clone(&storage.heap), HeapOptions::default());
    let index = storage.toast_index(at(toast.0 + 1), Persistence::Permanent)?;
    let name = format!("pg_toast_{}_index", table.oid);
    Ok(Some((heap, IndexTarget { oid: Oid(toast.0 + 1), name, index, keys: None })))
}

impl Session {
    /// Vacuums one table in transactions of its own, then its TOAST table. True if there was something to do.
    ///
    /// # Errors
    /// I/O, corruption, cancellation; the transaction has been rolled back then.
    pub(crate) fn vacuum_table(
        &mut self,
        target: &Target,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<bool> {
        if options.full && target.oid < Oid::FIRST_NORMAL {
            return self.vacuum_catalog_full(target, options, client);
        }
        self.begin_own()?;
        let result = self.vacuum_one(target, options, client);
        let toast = match result {
            Ok(toast) => toast,
            Err(error) => {
                self.abort_own();
                return Err(error);
            }
        };
        let Some(toast) = toast else {
            self.end_own()?;
            return Ok(false);
        };
        // Nobody drops, empties or rewrites the table between its own turn and its TOAST table's, nor vacuums it beside.
        let state = Rc::clone(self.state());
        let kept = (toast.is_valid() && options.process_toast && !options.full)
            .then(|| SessionLocks::of(&state, target.oid));
        let kept = match kept.transpose() {
            Ok(kept) => kept,
            Err(error) => {
                self.abort_own();
                return Err(error);
            }
        };
        self.end_own()?;
        // FULL has written it anew with its table, if it has written that.
        let with_table = options.full && options.process_main;
        if toast.is_valid() && options.process_toast && !with_table {
            base::stop_point!("sql.vacuum.before_toast");
            let target = Target { oid: toast, name: String::new(), columns: Vec::new() };
            let options = Options {
                process_main: true,
                index_cleanup: options.index_cleanup,
                ..options.clone()
            };
            self.vacuum_table(&target, &options, client)?;
        }
        drop(kept);
        Ok(true)
    }

    /// Foretells the vacuum of a table, in the transaction that is open, then its TOAST table's.
    pub(super) fn foretell_table(
        &mut self,
        target: &Target,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<()> {
        let toast = self.vacuum_one(target, options, client)?;
        if let Some(toast) = toast.filter(|t| t.is_valid() && options.process_toast) {
            let target = Target { oid: toast, name: String::new(), columns: Vec::new() };
            self.vacuum_one(&target, &Options { process_main: true, ..options.clone() }, client)?;
        }
        Ok(())
    }

    /// Returns the TOAST table (0: none), or None if there was nothing to do.
    fn vacuum_one(
        &mut self,
        target: &Target,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<Option<Oid>> {
        let foretell = options.foretell.as_deref();
        let only_foretell = foretell.is_some_and(|f| f.only);
        let mode = match (only_foretell, options.full) {
            (true, _) => LockMode::AccessShare,
            (false, true) => LockMode::AccessExclusive,
            (false, false) => LockMode::ShareUpdateExclusive,
        };
        let state = Rc::clone(self.state());
        let Some(table) = lock_target(self, target, mode, options, "vacuum", client)? else {
            return Ok(None);
        };
        if !options.process_main {
            return Ok(Some(table.toast));
        }
        if options.full {
            self.write_anew(&table, None, options.verbose, client)?;
            return Ok(Some(Oid::INVALID));
        }
        let cleaned = self.clean(&table, options, client)?;
        if let Some(cleaned) = cleaned {
            note(&state, &table, &cleaned)?;
            count(&state, &table, &cleaned, options.automatic);
        }
        Ok(Some(table.toast))
    }

    /// Vacuums a table that is locked; what is to be told of it then. None: it was only foretold.
    pub(super) fn clean(
        &mut self,
        table: &Arc<Table>,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<Option<Cleaned>> {
        let state = Rc::clone(self.state());
        let foretell = options.foretell.as_deref();
        let only_foretell = foretell.is_some_and(|f| f.only);
        let started = Instant::now();
        let automatic = options.automatic;
        if !only_foretell {
            crate::relations::lock_indexes(&state, table, LockMode::RowExclusive)?;
        }
        let used = parameters(&state, table, automatic)?;
        let settings = vacuum_settings(&state, &used, options)?;
        let merged = merged_options(&state, table, options);
        let open = state.open_relation(table)?;
        let facts = TableFacts {
            database: state.database.name.clone(),
            schema: table.namespace_name.clone(),
            table: table.name.clone(),
            oid: table.oid,
            relfrozenxid: table.relfrozenxid,
            reltuples: f64::from(table.reltuples),
            relpages: u32::try_from(table.relpages).unwrap_or(0),
        };
        let progress = VacuumProgress::new(state.backend.pid, state.database.oid, table.oid);
        // Who only foretells a vacuum is none.
        let _shown = (!only_foretell).then(|| state.cluster.maintenance.vacuum(&progress));
        let host = Host::new(
            &state,
            (!automatic).then_some(&mut *client as &mut dyn Client),
            options.verbose,
        );
        let context = VacuumContext {
            backend: &state.backend,
            lock_tag: crate::relations::lock_tag(&state, table.oid),
            writers_locks: writers_locks(&state, table)?,
            progress,
            throttle: throttle(&state, &used, automatic, settings.freeze.failsafe()),
            host: &host,
            trigger: if automatic { Trigger::Automatic } else { Trigger::Statement },
        };
        let indexes = table
            .indexes
            .iter()
            .zip(&open.indexes)
            .filter(|(i, _)| i.ready)
            .map(|(i, tree)| {
                Ok(IndexTarget {
                    oid: i.oid,
                    name: i.name.clone(),
                    index: Arc::clone(tree) as _,
                    keys: super::index_keys::index_keys(&state, table, i)?,
                })
            })
            .collect::<Result<_>>()?;
        let catalog_toast = catalog_toast(&state, table)?.filter(|_| !only_foretell);
        // From here on nothing is read through a snapshot. Before, and when all is done, the rows of catalogs are looked up by snapshots that must
        // count: others change them.
        let _ignored = (!only_foretell).then(|| Ignored::new(&state));
        let mut frozen_bound = None;
        if let Some((heap, index)) = catalog_toast {
            let facts = TableFacts {
                schema: "pg_toast".to_owned(),
                table: format!("pg_toast_{}", table.oid),
                reltuples: -1.0,
                relpages: 0,
                ..facts.clone()
            };
            let target = VacuumTarget { heap: &heap, indexes: vec![index], facts };
            let plan = vacuum::plan(&target, &merged, &settings)?;
            let report = vacuum::run(&plan, &target, &context)?;
            frozen_bound = Some(report.new_relfrozenxid.unwrap_or(table.relfrozenxid));
        }
        let target = VacuumTarget { heap: &open.heap, indexes, facts };
        let mut plan = vacuum::plan(&target, &merged, &settings)?;
        plan.truncate_any = options.full;
        let rates = &state.cluster.maintenance.rates;
        let budget = state.cluster.maintenance.budget.get().copied().unwrap_or_default();
        let foretold = match foretell {
            Some(_) => Some(Foretold {
                schema: table.namespace_name.clone(),
                relation: table.name.clone(),
                foresight: vacuum::foresee(
                    &plan,
                    &target,
                    &rates.now(),
                    &context.throttle,
                    &budget,
                )?,
                report: None,
            }),
            None => None,
        };
        if let (Some(to), true) = (foretell, only_foretell) {
            to.found.borrow_mut().extend(foretold);
            return Ok(None);
        }
        // VACUUM FULL of a catalog comes here twice, and has said so.
        if !options.full {
            host.warn_if_held_back(&plan.cutoffs);
        }
        host.say(Message::Verbose, VacuumReport::begin_line(&target.facts, plan.mode));
        if asked_in_vain(table, options, &merged, target.indexes.len()) {
            host.say(
                Message::Warning,
                format!(
                    "disabling parallel option of vacuum on \"{}\" --- cannot vacuum temporary tables in parallel",
                    table.name
                ),
            );
        }
        let report = vacuum::run(&plan, &target, &context)?;
        rates.learn(&report);
        if let (Some(to), Some(foretold)) = (foretell, foretold) {
            to.found.borrow_mut().push(Foretold { report: Some(report.clone()), ..foretold });
        }
        if options.verbose {
            host.say(Message::Verbose, report.text());
        }
        if automatic {
            log_report(&state, &used, &report);
        }
        let watch = settings.freeze.watch;
        Ok(Some(Cleaned { report, watch, frozen_bound, started }))
    }
}

/// What a vacuum has done.
pub(super) struct Cleaned {
    pub(super) report: VacuumReport,
    /// What it watched for.
    watch: Option<vacuum::quiet::Watch>,
    /// `relfrozenxid` is no younger than this.
    frozen_bound: Option<Xid>,
    started: Instant,
}

impl Session {
    /// Writes what anybody sees of a table into a new file, in the order of `by` if there is such an index.
    ///
    /// # Errors
    /// What the rewrite meets; I/O.
    pub(crate) fn write_anew(
        &mut self,
        table: &Arc<Table>,
        by: Option<&Arc<Index>>,
        verbose: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        let started = UsageMeter::start();
        let name = format!("{}.{}", table.namespace_name, table.name);
        if verbose {
            let text = match by {
                None => format!("vacuuming \"{name}\""),
                Some(_) => format!("clustering \"{name}\" using sequential scan and sort"),
            };
            client.notice(&Notice::new(Severity::Info, text))?;
        }
        let state = Rc::clone(self.state());
        warn_if_held_back(&state, client)?;
        let before = state.relation_pages(table)?;
        let shown = super::commands::show(&state, Command::Cluster, table.oid);
        state.progress.set(Command::Cluster, cluster::COMMAND, if by.is_some() { 1 } else { 2 });
        let order = by.map_or(0, |index| u64::from(index.oid.0));
        state.progress.set(Command::Cluster, cluster::INDEX, order);
        let done = crate::ddl::compact::compact(self, table, by)?;
        state.progress.set(Command::Cluster, cluster::PHASE, cluster::CLEANING_UP);
        let after = crate::ddl::reload(&state, table.oid)?;
        let now = state.relation_pages(&after)?;
        let (visible, frozen) = state.open_relation(&after)?.heap.visibility_map().count()?;
        #[expect(clippy::cast_precision_loss, reason = "pg_class keeps float4")]
        crate::ddl::relation::update_class(&state, table.oid, |row| {
            row.set("relpages", self::pages(now));
            row.set("reltuples", Datum::Float4(done.live as f32));
            row.set("relallvisible", self::pages(visible));
            row.set("relallfrozen", self::pages(frozen));
        })?;
        if let Some(chunks) = &done.toasted
            && after.toast.is_valid()
        {
            note_toast(&state, after.toast, chunks.inserted.saturating_sub(chunks.deleted))?;
        }
        drop(shown);
        if verbose {
            let mut notice = Notice::new(
                Severity::Info,
                format!(
                    "\"{name}\": found {} removable, {} nonremovable row versions in {before} pages",
                    done.removed,
                    done.live + done.recently_dead
                ),
            );
            notice.body = notice.body.detail(format!(
                "{} dead row versions cannot be removed yet.\n{}.",
                done.recently_dead,
                started.used().cpu_text()
            ));
            client.notice(&notice)?;
        }
        if !state.counts_rows() {
            return Ok(());
        }
        // As in PostgreSQL, this is not counted as a vacuum.
        let set = |table, live: u64, dead: u64| {
            let counts = state.database.activity.of(table);
            counts.live.store(i64::try_from(live).unwrap_or(0), Ordering::Relaxed);
            counts.dead.store(i64::try_from(dead).unwrap_or(0), Ordering::Relaxed);
        };
        set(table.oid, done.live, done.recently_dead);
        if after.toast.is_valid() && after.toast == table.toast {
            let chunks = done.toasted.map_or((0, 0), |t| (t.inserted, t.deleted));
            set(after.toast, chunks.0.saturating_sub(chunks.1), chunks.1);
        }
        Ok(())
    }
}

/// As its pages are all-visible from the beginning the next VACUUM reads none of them, and could not tell how many rows there are.
#[expect(clippy::cast_precision_loss, reason = "pg_class keeps float4")]
fn note_toast(state: &SessionState, toast: Oid, rows: u64) -> Result<()> {
    let table = crate::ddl::reload(state, toast)?;
    let len = state.relation_pages(&table)?;
    let (visible, frozen) = state.open_relation(&table)?.heap.visibility_map().count()?;
    crate::ddl::relation::update_class(state, toast, |row| {
        row.set("relpages", pages(len));
        row.set("reltuples", Datum::Float4(rows as f32));
        row.set("relallvisible", pages(visible));
        row.set("relallfrozen", pages(frozen));
    })
}

/// Workers were asked for where there are none.
fn asked_in_vain(table: &Table, asked: &Options, used: &VacuumOptions, indexes: usize) -> bool {
    table.persistence == RelationPersistence::Temporary
        && asked.parallel.is_some_and(|n| n > 0)
        && indexes > 1
        && used.index_cleanup != IndexCleanup::Off
}

fn merged_options(state: &SessionState, table: &Table, options: &Options) -> VacuumOptions {
    let stored = |name: &str| table.options.get(name).map(String::as_str);
    let index_cleanup = options
        .index_cleanup
        .or_else(|| stored("vacuum_index_cleanup").map(stored_index_cleanup))
        .unwrap_or(IndexCleanup::Auto);
    let truncate = options
        .truncate
        .or_else(|| stored("vacuum_truncate").and_then(parse_bool))
        .unwrap_or_else(|| state.settings.borrow().bool("vacuum_truncate"));
    VacuumOptions {
        freeze: options.freeze,
        disable_page_skipping: options.disable_page_skipping,
        index_cleanup,
        truncate,
        parallel: if table.persistence == RelationPersistence::Temporary {
            options.parallel.map(|_| 0)
        } else {
            options.parallel
        },
        buffer_usage_limit_kb: options.buffer_usage_limit_kb,
        for_age: options.for_age,
    }
}

/// The milliseconds from which on autovacuum's work on a table is logged; below 0: never. A table's own -1 is none of its own, as in PostgreSQL:
/// only the server's setting silences.
pub(super) fn log_limit(state: &SessionState, table: Option<&Table>) -> i64 {
    table
        .and_then(|t| t.option_i64("log_autovacuum_min_duration"))
        .filter(|own| *own >= 0)
        .unwrap_or_else(|| state.settings.borrow().int("log_autovacuum_min_duration"))
}

fn log_report(state: &SessionState, table: &Table, report: &VacuumReport) {
    let limit = log_limit(state, Some(table));
    let elapsed = i64::try_from(report.usage.elapsed.as_millis()).unwrap_or(i64::MAX);
    if limit >= 0 && elapsed >= limit {
        base::log::write(base::log::Level::Log, &report.text());
    }
}

fn pages(n: impl TryInto<i32>) -> Datum {
    Datum::Int4(n.try_into().unwrap_or(i32::MAX))
}

/// What the catalogs are to say now.
#[expect(clippy::cast_possible_truncation, reason = "pg_class keeps float4")]
pub(super) fn note(state: &SessionState, table: &Table, cleaned: &Cleaned) -> Result<()> {
    let (report, bound) = (&cleaned.report, cleaned.frozen_bound);
    crate::ddl::relation::update_class_in_place(state, table.oid, |row| {
        row.set("relpages", pages(report.pages_after));
        row.set("reltuples", Datum::Float4(report.new_reltuples as f32));
        row.set("relallvisible", pages(report.all_visible_pages));
        row.set("relallfrozen", pages(report.all_frozen_pages));
        row.set("relhasindex", Datum::Bool(!table.indexes.is_empty()));
        if let Some(new) = report.new_relfrozenxid {
            let new = bound.map_or(new, |b| new.min(b));
            if new > row.xid8("relfrozenxid8") {
                row.set("relfrozenxid", Datum::Oid(Oid(crate::ddl::relation::low_half(new))));
                row.set("relfrozenxid8", Datum::Xid8(new.0));
            }
        }
    })?;
    let new_reltuples = report.new_reltuples as f32;
    let index_reltuples = |row: &engine::catalog::rows::Row| row.f32("reltuples");
    for (index, report) in table
        .indexes
        .iter()
        .filter_map(|i| report.indexes.iter().find(|r| r.oid == i.oid).map(|r| (i, r)))
    {
        let stats = report.stats;
        if stats.entries_estimated && stats.entries_removed == 0 {
            // Not read: nothing new is known of it.
            continue;
        }
        crate::ddl::relation::update_class_in_place(state, index.oid, |row| {
            base::stop_point!("sql.vacuum.index_row_found");
            row.set("relpages", pages(stats.pages));
            // Who looks entries up does not see the others.
            let entries = match (stats.entries_estimated, &index.predicate) {
                (false, _) => stats.entries as f32,
                // Of how many rows there are nothing is known.
                (true, None) if new_reltuples < 0.0 => return,
                (true, None) => new_reltuples,
                (true, Some(_)) if index_reltuples(row) < 0.0 => return,
                // Taken to be the same part of the rows as before.
                (true, Some(_)) if table.reltuples > 0.0 && new_reltuples >= 0.0 => {
                    index_reltuples(row) * (new_reltuples / table.reltuples)
                }
                (true, Some(_)) => return,
            };
            row.set("reltuples", Datum::Float4(entries));
        })?;
    }
    Ok(())
}

/// What the statistics are to say now.
#[expect(clippy::cast_possible_truncation, reason = "row counts")]
fn count(state: &SessionState, table: &Table, cleaned: &Cleaned, automatic: bool) {
    if !state.counts_rows() {
        return;
    }
    let (report, started) = (&cleaned.report, cleaned.started);
    let counts = state.database.activity.of(table.oid);
    let set = |to: &std::sync::atomic::AtomicI64, n: i64| to.store(n, Ordering::Relaxed);
    let dead = report.counts.recently_dead_tuples + report.counts.missed_dead_tuples;
    set(&counts.live, (report.new_reltuples as i64).max(0));
    set(&counts.dead, i64::try_from(dead).unwrap_or(0));
    set(&counts.inserted_since_vacuum, 0);
    let lsn = state.cluster.engine().wal.insert_lsn();
    note_vacuum(&counts, cleaned.watch, report, lsn);
    let now = base::sync::now_timestamp_us();
    if automatic {
        set(&counts.last_autovacuum, now);
        counts.autovacuum_count.fetch_add(1, Ordering::Relaxed);
    } else {
        set(&counts.last_vacuum, now);
        counts.vacuum_count.fetch_add(1, Ordering::Relaxed);
    }
    let us = u64::try_from(started.elapsed().as_micros()).unwrap_or(0);
    let total = if automatic { &counts.autovacuum_time_us } else { &counts.vacuum_time_us };
    total.fetch_add(us, Ordering::Relaxed);
}
