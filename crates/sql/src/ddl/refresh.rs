//! REFRESH MATERIALIZED VIEW.
//!
//! CONCURRENTLY leaves readers alone: the query's rows go to a table of their own, and only what differs is changed in the view. A row
//! of the view stays where it is if a new one has its unique keys and is, byte by byte, the same.

use super::relation::{self, NewColumn, NewRelation};
use super::{Ddl, drop, reload};
use crate::ddl::depend::Object;
use crate::exec::modify::TableWriter;
use crate::parse::ast::ObjectName;
use crate::session::run::{exec_context, work_mem_bytes};
use crate::session::{Lent, Session};
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::model::{Index, RelationKind, RelationPersistence, Table};
use engine::relation::RowEncoder;
use heap::{RowQueue, TupleOutcome};
use std::rc::Rc;
use std::sync::Arc;
use txn::LockMode;
use types::{Datum, quote_ident};

impl Ddl<'_> {
    /// REFRESH MATERIALIZED VIEW
    ///
    /// # Errors
    /// `0A000`, `42501`, `55000`, `21000`; the query's.
    pub fn refresh(
        &mut self,
        name: &ObjectName,
        concurrently: bool,
        with_data: bool,
    ) -> Result<()> {
        let check = |view: &Table| {
            if !matches!(
                view.kind,
                RelationKind::Table | RelationKind::MaterializedView | RelationKind::Toast
            ) {
                bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table or materialized view", view.name);
            }
            crate::acl::check_table(self.state(), view, crate::acl::MAINTAIN, Oid::INVALID)?;
            if view.kind != RelationKind::MaterializedView {
                bail!(FEATURE_NOT_SUPPORTED, "\"{}\" is not a materialized view", view.name);
            }
            Ok(())
        };
        let mode = if concurrently { LockMode::Exclusive } else { LockMode::AccessExclusive };
        let view = self.relation_locked(name, mode, &check)?;
        if concurrently && !view.populated {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "CONCURRENTLY cannot be used when the materialized view is not populated"
            );
        }
        if concurrently && !with_data {
            bail!(SYNTAX_ERROR, "CONCURRENTLY and WITH NO DATA options cannot be used together");
        }
        if concurrently {
            return self.refresh_concurrently(&view);
        }
        // Whoever refreshes it, it reads with its owner's rights.
        let query = crate::updatable::query_to_run(self.state(), &view)?;
        self.check_not_in_use(&view, "REFRESH MATERIALIZED VIEW")?;
        super::truncate::empty(self.state(), &view)?;
        relation::update_class(self.state(), view.oid, |row| {
            row.set("relispopulated", Datum::Bool(with_data));
        })?;
        if with_data {
            // Nor are its functions the refresher's.
            let owner = view.owner;
            self.as_role(owner, Lent::Restricted, |ddl| {
                ddl.fill(view.oid, query, &mut Session::stream_query)
            })?;
        }
        Ok(())
    }

    fn refresh_concurrently(&mut self, view: &Arc<Table>) -> Result<()> {
        let state = self.state();
        let schema = quote_ident(
            &crate::system::names::schema_name(state, view.namespace)?.unwrap_or_default(),
        );
        let shown = format!("{schema}.{}", quote_ident(&view.name));
        let keys = key_columns(view);
        if keys.is_empty() {
            let text =
                format!("cannot refresh materialized view \"{schema}.{}\" concurrently", view.name);
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
                .hint("Create a unique index with no WHERE clause on one or more columns of the materialized view.")
                .into());
        }
        self.check_not_in_use(view, "REFRESH MATERIALIZED VIEW")?;
        let query = crate::updatable::query_to_run(state, view)?;
        self.as_role(view.owner, Lent::Restricted, |ddl| {
            let new = ddl.make_diff_table(view)?;
            ddl.fill(new, query, &mut Session::stream_query)?;
            let table = reload(ddl.state(), new)?;
            let diff = Diff { view, new: &table, shown: &shown, keys: &keys };
            ddl.check_no_twins(&diff)?;
            ddl.apply(&diff)?;
            let notices = drop::drop_objects(ddl.state(), &[Object::relation(new)], true)?;
            debug_assert!(notices.is_empty(), "nobody else has seen the table");
            Ok(())
        })
    }

    /// The current user is `role` meanwhile, and what is set by then is set no longer afterwards: what runs is `role`'s, not the session's.
    pub(super) fn as_role<T>(
        &mut self,
        role: Oid,
        why: Lent,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let state = Rc::clone(self.session.state());
        state.settings.borrow_mut().begin_nested();
        let done = state.as_another(role, why, || f(self));
        state.settings.borrow_mut().end_nested(false);
        done
    }

    /// A temporary table with the view's columns.
    fn make_diff_table(&mut self, view: &Table) -> Result<Oid> {
        let namespace = super::temp::namespace(self.session)?;
        let columns = view
            .columns
            .iter()
            .map(|c| NewColumn { collation: Some(c.collation), ..NewColumn::plain(&c.name, c.ty) });
        let new = NewRelation {
            name: format!("pg_temp_{}", view.oid),
            namespace,
            kind: RelationKind::Table,
            persistence: RelationPersistence::Temporary,
            owner: view.owner,
            columns: columns.collect(),
            options: Default::default(),
            toast_options: Default::default(),
        };
        relation::create(self.state(), &new)
    }

    /// Fails if two new rows are the same and have no NULL: no unique index would take them.
    fn check_no_twins(&mut self, diff: &Diff<'_>) -> Result<()> {
        let sql = format!(
            "SELECT n.*, m.* FROM {new} n JOIN {new} m ON {} AND n.ctid < m.ctid",
            diff.same_keys("n", "m"),
            new = diff.new_name(),
        );
        let mut same = Images::of(diff.view);
        let session = &mut *self.session;
        let env = Rc::clone(session.env());
        let width = diff.view.columns.len();
        session.internal_rows(&sql, &[], &mut |row| {
            let (one, other) = (&row[..width], &row[width..]);
            if one.iter().any(Datum::is_null) || !same.are_same(one, other)? {
                return Ok(());
            }
            let mut shown = Vec::new();
            for (value, column) in one.iter().zip(&diff.view.columns) {
                let mut text = String::new();
                types::text_output(column.ty.oid, value, env.as_ref(), &mut text)?;
                shown.push(text);
            }
            let text = format!(
                "new data for materialized view \"{}\" contains duplicate rows without any null columns",
                diff.view.name
            );
            let detail = format!("Row: ({})", shown.join(","));
            Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, text).detail(detail).into())
        })
    }

    /// Deletes what no new row is the same as, then inserts what is not there.
    fn apply(&mut self, diff: &Diff<'_>) -> Result<()> {
        let width = diff.view.columns.len();
        let gone = format!(
            "SELECT v.ctid, n.ctid, v.*, n.* FROM {} v LEFT JOIN {} n ON {}",
            diff.shown,
            diff.new_name(),
            diff.same_keys("v", "n"),
        );
        let come = format!(
            "SELECT v.ctid, n.*, v.* FROM {} n LEFT JOIN {} v ON {}",
            diff.new_name(),
            diff.shown,
            diff.same_keys("n", "v"),
        );
        let mut same = Images::of(diff.view);
        self.write(diff.view, &gone, &mut |x, writer, row| {
            let values = &row[2..];
            if !row[1].is_null() && same.are_same(&values[..width], &values[width..])? {
                return Ok(());
            }
            let Datum::Tid(tid) = row[0] else { return Ok(()) };
            match writer.delete(&mut RowQueue::new(x.txn), tid)? {
                // Several new rows had its keys.
                TupleOutcome::Ok(()) | TupleOutcome::SelfModified => Ok(()),
                _ => bail!(INTERNAL_ERROR, "a row of \"{}\" has been changed", diff.view.name),
            }
        })?;
        self.write(diff.view, &come, &mut |x, writer, row| {
            let values = &row[1..];
            if row[0].is_null() || !same.are_same(&values[..width], &values[width..])? {
                writer.insert(x, &mut values[..width].to_vec())?;
            }
            Ok(())
        })
    }

    /// Hands each row of a query to `change`, with the view to be written.
    fn write(
        &mut self,
        view: &Arc<Table>,
        sql: &str,
        change: &mut dyn FnMut(
            &crate::exec::ExecContext<'_>,
            &mut TableWriter,
            &[Datum],
        ) -> Result<()>,
    ) -> Result<()> {
        let state = Rc::clone(self.session.state());
        let env = Rc::clone(self.session.env());
        crate::relations::lock(&state, view.oid, LockMode::RowExclusive)?;
        let txn = state.txn()?;
        txn.advance_command()?;
        let memory = work_mem_bytes(&state);
        let x = exec_context(&state, &env, &txn, txn.take_latest_snapshot(), &[], memory);
        let mut writer = TableWriter::new(&x, view)?;
        self.session.internal_rows(sql, &[], &mut |row| change(&x, &mut writer, row))?;
        writer.finish()?;
        writer.note(&x);
        txn.advance_command()
    }
}

/// What is compared with what.
struct Diff<'a> {
    view: &'a Arc<Table>,
    new: &'a Table,
    /// The view's name.
    shown: &'a str,
    /// The columns of all its unique indexes.
    keys: &'a [i32],
}

impl Diff<'_> {
    fn new_name(&self) -> String {
        format!("pg_temp.{}", self.new.name)
    }

    fn same_keys(&self, one: &str, other: &str) -> String {
        let columns = self.view.columns.iter().filter(|c| self.keys.contains(&c.number));
        let names = columns.map(|c| quote_ident(&c.name));
        names.map(|n| format!("{one}.{n} = {other}.{n}")).collect::<Vec<_>>().join(" AND ")
    }
}

/// Compares rows as they are stored.
struct Images {
    encoder: RowEncoder,
    one: Vec<u8>,
    other: Vec<u8>,
}

impl Images {
    fn of(table: &Table) -> Images {
        Images { encoder: RowEncoder::for_table(table), one: Vec::new(), other: Vec::new() }
    }

    fn are_same(&mut self, one: &[Datum], other: &[Datum]) -> Result<bool> {
        self.encoder.encode(one, &mut self.one)?;
        self.encoder.encode(other, &mut self.other)?;
        Ok(self.one == self.other)
    }
}

/// The columns of the unique indexes by which a view's rows can be told apart.
fn key_columns(view: &Table) -> Vec<i32> {
    let usable = |i: &&Arc<Index>| {
        let keys = &i.columns[..i.key_columns];
        i.unique
            && i.immediate
            && i.valid
            && i.predicate.is_none()
            && keys.iter().all(|c| c.expr.is_none() && c.column > 0)
    };
    let indexes = view.indexes.iter().filter(usable);
    indexes.flat_map(|i| i.columns[..i.key_columns].iter().map(|c| c.column)).collect()
}
