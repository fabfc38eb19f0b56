//! REINDEX CONCURRENTLY: readers and writers go on.
//!
//! # Layout
//! For all indexes of a table at once, and those of its TOAST table: a new index `NAME_ccnew` is made of each as CREATE INDEX
//! CONCURRENTLY makes one ([`super::concurrently`]), up to the moment when it would be valid. Then it takes the old one's place
//! ([`super::index_swap`]); who may still read the old one, `NAME_ccold` now, is waited for; it is marked dead, so
//! that writers stop keeping it up; who may still write it is waited for; and it is dropped.
//!
//! # Invariants
//! At every moment one of the two is valid and whole, and all who write keep up every index that anybody may read. Who
//! locks a table and plans under the lock is either waited for or knows better: plans are made anew when the catalogs have
//! changed by the time the locks are held.
//! A failure leaves `NAME_ccnew` or `NAME_ccold`, invalid and to be dropped; the index itself stays valid.
//!
//! # Locks
//! As CREATE INDEX CONCURRENTLY, and ShareUpdateExclusive on the indexes too. Values out of line are read and
//! written under the lock of their table, so that holders of both tables' locks are waited for.

use super::concurrently::{SessionLocks, enter, fill, mark, validate, wait_for_holders};
use super::depend::Object;
use super::index::NewIndex;
use super::index_swap::swap;
use super::relation::{self, IndexColumnRow};
use super::truncate::lock_and_look_again;
use super::{Ddl, table};
use crate::client::{Notice, Severity};
use crate::maintenance::commands::{self, Command, create_index as progress};
use crate::session::SessionState;
use base::{Oid, Result, SqlState};
use engine::catalog::load::RowSource;
use engine::catalog::model::{Index, RelationKind, Table};
use std::rc::Rc;
use std::sync::Arc;
use txn::{LockMode, LockTag};
use types::Datum;
use vacuum::UsageMeter;

/// An index and the one that is to take its place.
struct Pair {
    /// The table it is on: a TOAST table, perhaps.
    table: Oid,
    old: Oid,
    new: Oid,
    /// `schema.name`
    name: String,
}

impl Ddl<'_> {
    /// REINDEX CONCURRENTLY of one index of `table`, or of all and its TOAST table's. False: there is none to be made anew.
    ///
    /// # Errors
    /// `23505`, `40P01`, `57014`; I/O. New or old indexes may be left behind, invalid.
    pub(super) fn reindex_concurrently(
        &mut self,
        table: Oid,
        only: Option<Oid>,
        verbose: bool,
    ) -> Result<bool> {
        let usage = UsageMeter::start();
        let table = lock_and_look_again(self.state(), table, LockMode::ShareUpdateExclusive)?;
        let mut tables = vec![Arc::clone(&table)];
        if only.is_none() && table.toast.is_valid() {
            let mode = LockMode::ShareUpdateExclusive;
            tables.push(lock_and_look_again(self.state(), table.toast, mode)?);
        }
        let mut chosen = Vec::new();
        for table in &tables {
            for index in table.indexes.iter().filter(|i| only.is_none_or(|o| o == i.oid)) {
                if only.is_some() || index.live && self.is_worth_it(table, index)? {
                    chosen.push((Arc::clone(table), Arc::clone(index)));
                }
            }
        }
        if chosen.is_empty() {
            return Ok(false);
        }
        let name = format!("{}.{}", table.namespace_name, table.name);
        let pairs = self.in_steps(&tables, &chosen)?;
        if verbose {
            self.tell(&pairs, only.is_none().then_some(name.as_str()), &usage)?;
        }
        Ok(true)
    }

    /// An invalid index is not made anew unless it is named.
    fn is_worth_it(&mut self, table: &Table, index: &Index) -> Result<bool> {
        if !index.valid {
            let mut notice = Notice::new(
                Severity::Warning,
                format!(
                    "skipping reindex of invalid index \"{}.{}\"",
                    table.namespace_name, index.name
                ),
            );
            notice.body.state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            notice.body.hint = Some("Use DROP INDEX or REINDEX INDEX.".to_owned());
            self.client.notice(&notice)?;
        }
        Ok(index.valid)
    }

    fn in_steps(
        &mut self,
        tables: &[Arc<Table>],
        chosen: &[(Arc<Table>, Arc<Index>)],
    ) -> Result<Vec<Pair>> {
        let state = Rc::clone(self.session.state());
        let mut locks = SessionLocks::new(&state);
        let mut tags = Vec::new();
        for table in tables {
            tags.push(locks.add(table.oid)?);
            // Values out of line are reached under the lock of the table they belong to.
            if table.kind == RelationKind::Toast && tables.len() == 1 {
                for of in whose_toast(&state, table.oid)? {
                    tags.push(crate::relations::lock_tag(&state, of));
                }
            }
        }
        let shown = commands::show(&state, Command::CreateIndex, tables[0].oid);
        if let Some(shown) = &shown {
            shown.progress.set(progress::COMMAND, 4);
        }
        let mut pairs = Vec::new();
        for (table, index) in chosen {
            locks.add(index.oid)?;
            let new = self.copy_of(table, index)?;
            locks.add(new)?;
            let name = format!("{}.{}", table.namespace_name, index.name);
            pairs.push(Pair { table: table.oid, old: index.oid, new, name });
        }
        note_owners(&state, &pairs)?;
        self.build_all(&tags, &pairs)?;
        self.swap_all(&tags, &pairs)?;
        Ok(pairs)
    }

    /// Makes an index like `index`, empty, invalid, and of no constraint.
    fn copy_of(&mut self, table: &Arc<Table>, index: &Index) -> Result<Oid> {
        let columns = index.columns.iter().map(|c| IndexColumnRow {
            name: c.name.clone(),
            column: c.column,
            expr: c.expr.as_deref().cloned(),
            ty: c.ty,
            opclass: c.opclass,
            collation: c.collation,
            descending: c.descending,
            nulls_first: c.nulls_first,
        });
        let new = NewIndex {
            name: Some(table::choose_name(
                self.state(),
                &index.name,
                "",
                "ccnew",
                index.namespace,
            )?),
            unique: index.unique,
            primary: false,
            nulls_not_distinct: index.nulls_not_distinct,
            deferrable: !index.immediate,
            columns: columns.collect(),
            key_columns: index.key_columns,
            predicate: index.predicate.as_deref().cloned(),
            options: index.options.clone(),
            suffix: "ccnew",
            concurrently: true,
        };
        let (oid, _) = self.make_index(table, &new)?;
        self.copy_statistics_targets(index.oid, oid)?;
        Ok(oid)
    }

    fn copy_statistics_targets(&self, from: Oid, to: Oid) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        for row in rows.find("pg_attribute", &[("attrelid", Datum::Oid(from))])? {
            let target = row.get("attstattarget").clone();
            if !target.is_null() {
                relation::update_attribute(state, to, row.i32("attnum"), |row| {
                    row.set("attstattarget", target);
                })?;
            }
        }
        Ok(())
    }

    /// From here on the new indexes are whole, and no snapshot is older than they.
    fn build_all(&mut self, tags: &[LockTag], pairs: &[Pair]) -> Result<()> {
        let state = Rc::clone(self.session.state());
        let session = &mut *self.session;
        let show = |pair: &Pair| {
            state.progress.set(Command::CreateIndex, progress::INDEX, u64::from(pair.new.0));
        };
        session.end_own()?;
        enter(&state, progress::WAIT_BEFORE_BUILD);
        wait_for_holders(&state, tags, LockMode::Share)?;
        for pair in pairs {
            show(pair);
            session.begin_own()?;
            fill(session, pair.table, pair.new)?;
            note_owners(&state, std::slice::from_ref(pair))?;
            session.end_own()?;
        }
        enter(&state, progress::WAIT_BEFORE_VALIDATION);
        wait_for_holders(&state, tags, LockMode::Share)?;
        for pair in pairs {
            show(pair);
            validate(session, pair.table, pair.new)?;
        }
        Ok(())
    }

    /// The new indexes take the old ones' places, and those go.
    fn swap_all(&mut self, tags: &[LockTag], pairs: &[Pair]) -> Result<()> {
        let state = Rc::clone(self.session.state());
        let session = &mut *self.session;
        for pair in pairs {
            session.begin_own()?;
            swap(&state, pair.old, pair.new)?;
            note_owners(&state, std::slice::from_ref(pair))?;
            session.end_own()?;
        }
        base::stop_point!("sql.reindex.concurrently.swapped");
        enter(&state, progress::WAIT_BEFORE_DEAD);
        wait_for_holders(&state, tags, LockMode::AccessExclusive)?;
        session.begin_own()?;
        for pair in pairs {
            let dead = [("indisready", false), ("indislive", false)];
            mark(&state, pair.table, pair.old, &dead)?;
        }
        note_owners(&state, pairs)?;
        session.end_own()?;
        base::stop_point!("sql.reindex.concurrently.dead");
        enter(&state, progress::WAIT_BEFORE_DROP);
        wait_for_holders(&state, tags, LockMode::AccessExclusive)?;
        session.begin_own()?;
        let old: Vec<Object> = pairs.iter().map(|p| Object::relation(p.old)).collect();
        super::drop::drop_objects(&state, &old, false)?;
        note_owners(&state, pairs)?;
        // The locks go after the commit.
        session.next_transaction()
    }

    /// VERBOSE
    fn tell(&mut self, pairs: &[Pair], table: Option<&str>, usage: &UsageMeter) -> Result<()> {
        let detail = format!("{}.", usage.used().cpu_text());
        let mut lines: Vec<String> =
            pairs.iter().map(|p| format!("index \"{}\" was reindexed", p.name)).collect();
        lines.extend(table.map(|table| format!("table \"{table}\" was reindexed")));
        let last = lines.len() - 1;
        for (n, line) in lines.into_iter().enumerate() {
            let mut notice = Notice::new(Severity::Info, line);
            notice.body.detail = (n == last).then(|| detail.clone());
            self.client.notice(&notice)?;
        }
        Ok(())
    }
}

/// The tables whose values `toast` keeps.
pub(crate) fn whose_toast(state: &SessionState, toast: Oid) -> Result<Vec<Oid>> {
    let txn = state.txn()?;
    let rows =
        state.catalog.rows(&txn).find("pg_class", &[("reltoastrelid", Datum::Oid(toast))])?;
    Ok(rows.iter().map(|r| r.oid("oid")).collect())
}

/// A table is opened together with its TOAST table and that one's indexes: sessions must open it anew when those change.
pub(super) fn note_owner(state: &SessionState, toast: Oid) -> Result<()> {
    for of in whose_toast(state, toast)? {
        state.catalog.changed(of);
    }
    Ok(())
}

fn note_owners(state: &SessionState, pairs: &[Pair]) -> Result<()> {
    pairs.iter().try_for_each(|pair| note_owner(state, pair.table))
}
