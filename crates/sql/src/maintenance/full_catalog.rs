//! VACUUM FULL of a system catalog.
//!
//! # Purpose
//! A catalog is vacuumed, its last rows are moved to the free room before them (`engine`'s `relocation.rs`), and it is
//! vacuumed again, which takes the moved rows' old versions away and cuts the empty end off. Then its indexes are made shorter (`ddl/shrink_catalog.rs`), in
//! rounds: what is free at the end of a file is cut off; a tree that is loose is built anew, among free pages or, should there be too few of them, behind the old tree.
//! The old tree's pages are free when the searches are over that may be in it, so the next round comes after these, and builds it anew there, or cuts.
//!
//! # Locks
//! ShareUpdateExclusive for the first vacuum, Exclusive for the moves, for the second, and for each round over the indexes, each in a transaction of its own: DDL, which has
//! RowExclusive on the catalogs that it writes, waits, and comes in between. Reading goes on. What `pg_class` is to say comes
//! after the locks on others: who has changed that catalog, and wants `pg_class`, is not waited for with it locked.
//!
//! # Crash cases
//! Between two of the transactions the catalog is whole, and as long as it was; VACUUM takes away what is left over. Within one: `btree`'s `rebuild` and `extent`.
//!
//! # Differs from PostgreSQL
//! It writes catalogs anew under AccessExclusive. Here rows that an old snapshot may still see keep their pages where they are; and while a search goes
//! on for long its index is not built anew, which would only be longer until it ends.

use super::options::Options;
use super::vacuum::{Cleaned, Target, lock_target, note, warn_if_held_back};
use crate::client::{Client, Notice, Severity};
use crate::ddl::{Ddl, shrink_catalog};
use crate::session::{Arguments, Session};
use base::{Oid, Result};
use engine::catalog::defs::{self, CatalogDef};
use engine::catalog::model::Table;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use txn::LockMode;
use vacuum::{IndexCleanup, UsageMeter};

/// Of a tree without room before it: built anew behind itself, then at the beginning, then cut.
const ROUNDS: u32 = 3;
/// So long is waited for searches that may be in an old tree.
const SEARCHES_TAKE: Duration = Duration::from_millis(250);

impl Session {
    /// VACUUM FULL of a catalog, in transactions of its own. True if there was something to do.
    ///
    /// # Errors
    /// I/O, corruption, cancellation; the transaction has been rolled back then.
    pub(super) fn vacuum_catalog_full(
        &mut self,
        target: &Target,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<bool> {
        let result = self.shrink(target, options, client);
        if result.is_err() {
            self.abort_own();
        }
        result
    }

    fn shrink(
        &mut self,
        target: &Target,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<bool> {
        let started = UsageMeter::start();
        let share = LockMode::ShareUpdateExclusive;
        let Some(table) = self.locked(target, share, options, client)? else { return Ok(false) };
        let def = defs::by_oid(target.oid).filter(|_| options.process_main);
        let Some(def) = def else {
            self.end_own()?;
            return Ok(true);
        };
        let name = format!("{}.{}", table.namespace_name, table.name);
        if options.verbose {
            client.notice(&Notice::new(Severity::Info, format!("vacuuming \"{name}\"")))?;
        }
        warn_if_held_back(self.state(), client)?;
        let mut quiet = Options {
            verbose: false,
            // Dead line pointers would keep their pages.
            index_cleanup: Some(IndexCleanup::On),
            // The end is cut off once, when those who might use it are kept away.
            truncate: Some(false),
            ..options.clone()
        };
        let Some(first) = self.cleaned(&table, &quiet, client)? else { return Ok(true) };
        let (mut last, mut shorter) = (None, false);
        if self.locked(target, LockMode::Exclusive, options, client)?.is_some() {
            let moved = {
                let state = self.state();
                let txn = state.txn()?;
                state.catalog.rows(&txn).move_rows_forward(def)?
            };
            self.end_own()?;
            base::stop_point!("sql.full_catalog.moved");
            let wants_cut =
                moved > 0 || first.report.counts.nonempty_pages < first.report.pages_before;
            if wants_cut && self.locked(target, LockMode::Exclusive, options, client)?.is_some() {
                (quiet.freeze, quiet.truncate) = (true, Some(true));
                last = self.cleaned(&table, &quiet, client)?;
            }
            shorter = self.shrink_indexes_of(target, def, options, client)?;
        }
        let last = last.as_ref().unwrap_or(&first);
        if let Some(table) = self.locked(target, share, options, client)? {
            note(self.state(), &table, last)?;
            if shorter {
                shrink_catalog::note_lengths(self.state(), &table)?;
            }
            self.end_own()?;
        }
        self.tell_shrunk(&table, &first, last);
        if options.verbose {
            let (before, after) = (&first.report.counts, &last.report.counts);
            let kept = before.live_tuples + before.recently_dead_tuples;
            let text = format!(
                "\"{name}\": found {} removable, {kept} nonremovable row versions in {} pages",
                before.removed_tuples, first.report.pages_before
            );
            let mut notice = Notice::new(Severity::Info, text);
            notice.body = notice.body.detail(format!(
                "{} dead row versions cannot be removed yet.\n{}.",
                after.recently_dead_tuples,
                started.used().cpu_text()
            ));
            client.notice(&notice)?;
        }
        Ok(true)
    }

    /// Makes a catalog's indexes shorter. False: there was nothing to do.
    fn shrink_indexes_of(
        &mut self,
        target: &Target,
        def: &'static CatalogDef,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<bool> {
        let share = LockMode::ShareUpdateExclusive;
        let Some(table) = self.locked(target, share, options, client)? else { return Ok(false) };
        let worth_it = shrink_catalog::can_shrink(self.state(), def, &table)?;
        if worth_it {
            // Uses up an XID: what the vacuums took out of the trees is older than whoever begins from now on.
            self.state().txn()?.xid()?;
        }
        self.end_own()?;
        let mut round = 0;
        let mut goes_on = worth_it;
        while goes_on {
            round += 1;
            let over = self.searches_end(def)?;
            let exclusive = LockMode::Exclusive;
            let Some(table) = self.locked(target, exclusive, options, client)? else { break };
            let source = Arc::from("");
            let mut ddl = Ddl { session: self, client, source, arguments: Arguments::default() };
            goes_on = ddl.shrink_indexes(def, &table, over && round < ROUNDS)?;
            self.end_own()?;
            base::stop_point!("sql.full_catalog.indexes_shrunk");
        }
        Ok(worth_it)
    }

    /// Waits until the searches are over that are under way now. False: that takes too long.
    fn searches_end(&self, def: &CatalogDef) -> Result<bool> {
        let state = self.state();
        let database = if def.shared { Oid::INVALID } else { state.database.oid };
        let txns = &state.cluster.engine().txns;
        let (now, begun) = (txns.next_xid(), Instant::now());
        while txns.oldest_scan(database) < now {
            if begun.elapsed() > SEARCHES_TAKE {
                return Ok(false);
            }
            state.check_cancel()?;
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(true)
    }

    /// The catalog locked, in a transaction that has just begun; None (and no transaction) if it may not be vacuumed.
    fn locked(
        &mut self,
        target: &Target,
        mode: LockMode,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<Option<Arc<Table>>> {
        self.begin_own()?;
        let table = lock_target(self, target, mode, options, "vacuum", client)?;
        if table.is_none() {
            self.end_own()?;
        }
        Ok(table)
    }

    /// Vacuums the locked catalog and ends the transaction.
    fn cleaned(
        &mut self,
        table: &Arc<Table>,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<Option<Cleaned>> {
        let cleaned = self.clean(table, options, client)?;
        self.end_own()?;
        Ok(cleaned)
    }

    /// As in PostgreSQL, this is not counted as a vacuum.
    fn tell_shrunk(&self, table: &Table, first: &Cleaned, last: &Cleaned) {
        if !self.state().counts_rows() {
            return;
        }
        let counts = self.state().database.activity.of(table.oid);
        let dead = last.report.counts.recently_dead_tuples + last.report.counts.missed_dead_tuples;
        #[expect(clippy::cast_possible_truncation, reason = "a row count")]
        let live = (first.report.new_reltuples as i64).max(0);
        counts.live.store(live, Ordering::Relaxed);
        counts.dead.store(i64::try_from(dead).unwrap_or(0), Ordering::Relaxed);
    }
}
