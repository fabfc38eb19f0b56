//! CREATE, ALTER and DROP STATISTICS.
//!
//! # Invariants
//! An object of extended statistics goes with any of its columns, and with its table. Its rows are written under a
//! ShareUpdateExclusive lock on the table, as ANALYZE's are.

use super::depend::{self, Kind, Object};
use super::drop::drop_objects;
use super::{Ddl, new_oid, virtual_columns};
use crate::analyse;
use crate::client::{Notice, Severity};
use crate::parse::ast::{ObjectName, TableRef};
use crate::parse::utility::{CreateStatistics, Drop, RoleName};
use crate::session::SessionState;
use base::{Error, Oid, Result, SqlError, SqlState, bail};
use engine::catalog::extended::{ExtendedStatistics, store_exprs};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Column, RelationKind, Table};
use engine::catalog::rows::{NewRow, Row, int2_array};
use expr::Expr;
use std::sync::Arc;
use txn::LockMode;
use types::{Datum, quote_ident};

/// The most columns and expressions of one object.
const COLUMNS_MAX: usize = 8;

/// What CREATE STATISTICS is of.
struct Elements {
    columns: Vec<i32>,
    exprs: Vec<Expr>,
}

/// A new object.
struct Made<'a> {
    name: &'a str,
    namespace: Oid,
    kinds: &'a [u8],
    columns: &'a [i32],
    exprs: &'a [Expr],
}

fn row_of(state: &SessionState, namespace: Oid, name: &str) -> Result<Option<Row>> {
    let txn = state.txn()?;
    let key = [("stxname", Datum::text(name)), ("stxnamespace", Datum::Oid(namespace))];
    Ok(state.catalog.rows(&txn).find("pg_statistic_ext", &key)?.into_iter().next())
}

fn row_by_oid(state: &SessionState, oid: Oid) -> Result<Option<Row>> {
    let txn = state.txn()?;
    let key = [("oid", Datum::Oid(oid))];
    Ok(state.catalog.rows(&txn).find("pg_statistic_ext", &key)?.into_iter().next())
}

/// The name as messages show it: with its schema if it is not found without.
///
/// # Errors
/// I/O.
pub(super) fn shown_name(state: &SessionState, row: &Row) -> Result<String> {
    let (name, namespace) = (row.text("stxname"), row.oid("stxnamespace"));
    for (_, schema) in state.search_schemas()? {
        if row_of(state, schema, name)?.is_some() {
            if schema == namespace {
                return Ok(quote_ident(name));
            }
            break;
        }
    }
    let schema = crate::system::names::schema_name(state, namespace)?.unwrap_or_default();
    Ok(format!("{}.{}", quote_ident(&schema), quote_ident(name)))
}

/// Removes an object's rows.
pub(super) fn remove(state: &SessionState, oid: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    rows.delete_where("pg_statistic_ext_data", &[("stxoid", Datum::Oid(oid))])?;
    for row in rows.find("pg_statistic_ext", &[("oid", Datum::Oid(oid))])? {
        rows.delete(&row)?;
        state.catalog.changed(row.oid("stxrelid"));
    }
    Ok(())
}

/// Waits for who gathers or alters them.
pub(super) fn lock(state: &SessionState, oid: Oid) -> Result<()> {
    match row_by_oid(state, oid)? {
        Some(row) => {
            crate::relations::lock(state, row.oid("stxrelid"), LockMode::ShareUpdateExclusive)
        }
        None => Ok(()),
    }
}

/// `{table}_{columns}_stat`, with a number if it is taken.
fn choose_name(state: &SessionState, table: &Table, parts: &[&str]) -> Result<String> {
    let mut columns = String::new();
    for part in parts {
        if !columns.is_empty() {
            columns.push('_');
        }
        columns.push_str(part);
        if columns.len() >= 64 {
            break;
        }
    }
    for n in 0.. {
        let label = if n == 0 { "stat".to_owned() } else { format!("stat{n}") };
        let name = super::table::make_object_name(&table.name, &columns, &label);
        if row_of(state, table.namespace, &name)?.is_none() {
            return Ok(name);
        }
    }
    bail!(PROGRAM_LIMIT_EXCEEDED, "no name is left for statistics of \"{}\"", table.name)
}

/// Of d, f, m, those that are asked for.
fn kinds(names: &[String]) -> Result<Vec<u8>> {
    let mut wanted = [false; 3];
    for name in names {
        match name.as_str() {
            "ndistinct" => wanted[0] = true,
            "dependencies" => wanted[1] = true,
            "mcv" => wanted[2] = true,
            _ => bail!(SYNTAX_ERROR, "unrecognized statistics kind \"{name}\""),
        }
    }
    Ok(b"dfm".iter().zip(wanted).filter(|(_, w)| *w).map(|(k, _)| *k).collect())
}

fn char_array(letters: &[u8]) -> Datum {
    let elements = letters.iter().map(|c| Datum::Char(*c)).collect();
    Datum::Array(Arc::new(types::ArrayValue::one_dimension(types::oids::CHAR, elements)))
}

/// Statistics are of columns whose values have an order.
fn refuse_unordered(column: &Column) -> Result<()> {
    if has_order(column.ty.oid) {
        return Ok(());
    }
    bail!(
        FEATURE_NOT_SUPPORTED,
        "column \"{}\" cannot be used in statistics because its type {} has no default btree operator class",
        column.name,
        types::format_type(column.declared, -1)
    );
}

fn has_order(ty: Oid) -> bool {
    types::compare::is_orderable(ty)
}

fn check_kind(table: &Table) -> Result<()> {
    let what = match table.kind {
        RelationKind::Table | RelationKind::MaterializedView | RelationKind::PartitionedTable => {
            return Ok(());
        }
        RelationKind::Index | RelationKind::PartitionedIndex => "indexes",
        RelationKind::Sequence => "sequences",
        RelationKind::View => "views",
        RelationKind::Toast => "TOAST tables",
        RelationKind::Composite => "composite types",
    };
    let text = format!("cannot define statistics for relation \"{}\"", table.name);
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
        .detail(format!("This operation is not supported for {what}."))
        .into())
}

impl Ddl<'_> {
    /// CREATE STATISTICS
    ///
    /// # Errors
    /// `42P01`, `42809`, `42501`, `42710`, `42703`, `42701`, `42P17`, `54011`, `0A000`; I/O.
    pub fn create_statistics(&mut self, statement: &CreateStatistics) -> Result<()> {
        let table_name = match &statement.from[..] {
            [TableRef::Table { name, .. }] => name,
            [_] => {
                let text = "CREATE STATISTICS only supports relation names in the FROM clause";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).into());
            }
            _ => bail!(
                FEATURE_NOT_SUPPORTED,
                "only a single relation is allowed in CREATE STATISTICS"
            ),
        };
        let check = |table: &Table| {
            check_kind(table)?;
            crate::acl::check_owner(self.state(), table)?;
            super::refuse_catalog(table)
        };
        let table = self.relation_locked(table_name, LockMode::ShareUpdateExclusive, &check)?;
        let named: Vec<&str> =
            statement.elements.iter().map(|e| e.column.as_deref().unwrap_or("expr")).collect();
        let (namespace, name) = match &statement.name {
            Some(name) => (self.creation_namespace(name, false)?, name.name.clone()),
            None => {
                let state = self.state();
                super::check_schema_create(state, table.namespace, &table.namespace_name)?;
                (table.namespace, choose_name(state, &table, &named)?)
            }
        };
        // A temporary schema is emptied of relations, and what is of them, when its session ends.
        if namespace == self.state().temp_schema.get() && namespace != table.namespace {
            return Err(Error::unsupported("temporary statistics of a permanent table"));
        }
        if row_of(self.state(), namespace, &name)?.is_some() {
            let text = format!("statistics object \"{name}\" already exists");
            if statement.if_not_exists {
                return self.notice(SqlState::DUPLICATE_OBJECT, format!("{text}, skipping"));
            }
            bail!(DUPLICATE_OBJECT, "{text}");
        }
        if statement.elements.len() > COLUMNS_MAX {
            bail!(TOO_MANY_COLUMNS, "cannot have more than {COLUMNS_MAX} columns in statistics");
        }
        let elements = self.statistics_elements(statement, &table)?;
        let kinds = self.statistics_kinds(statement, &elements)?;
        let mut sorted = elements.columns.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|w| w[0] == w[1]) {
            bail!(DUPLICATE_COLUMN, "duplicate column name in statistics definition");
        }
        let exprs = &elements.exprs;
        if exprs.iter().enumerate().any(|(n, e)| exprs[..n].contains(e)) {
            bail!(DUPLICATE_COLUMN, "duplicate expression in statistics definition");
        }
        let made = Made { name: &name, namespace, kinds: &kinds, columns: &sorted, exprs };
        self.make_statistics(&table, &made).map(|_| ())
    }

    /// The statistics objects of a table for one that is like it, whose columns have other numbers. They get names of their own.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn copy_statistics(
        &self,
        source: &Table,
        table: &Table,
        renumbered: &dyn Fn(i32) -> i32,
    ) -> Result<Vec<(Oid, Oid)>> {
        let mut copies = Vec::new();
        for statistics in self.state().extended_statistics(source.oid)?.iter() {
            let mut columns: Vec<i32> = statistics.columns.iter().map(|c| renumbered(*c)).collect();
            let moved = |e: &Arc<Expr>| {
                let mut e = (**e).clone();
                e.rewrite(&mut |e| match e {
                    Expr::Var { column, .. } => {
                        *column = renumbered(*column);
                        true
                    }
                    _ => false,
                });
                e
            };
            let exprs: Vec<Expr> = statistics.exprs.iter().map(moved).collect();
            let named = columns.iter().filter_map(|c| {
                let at = usize::try_from(c - 1).ok()?;
                table.columns.get(at).map(|c| c.name.as_str())
            });
            let named: Vec<&str> = named.chain(exprs.iter().map(|_| "expr")).collect();
            let name = choose_name(self.state(), table, &named)?;
            columns.sort_unstable();
            let (namespace, kinds) = (table.namespace, &statistics.kinds[..]);
            let made = Made { name: &name, namespace, kinds, columns: &columns, exprs: &exprs };
            copies.push((statistics.oid, self.make_statistics(table, &made)?));
        }
        Ok(copies)
    }

    fn make_statistics(&self, table: &Table, made: &Made<'_>) -> Result<Oid> {
        let Made { name, namespace, kinds, columns: sorted, exprs } = *made;
        let state = self.state();
        let owner = state.current_user.borrow().oid;
        super::lock_role(state, owner)?;
        let oid = new_oid(state, "pg_statistic_ext")?;
        let txn = state.txn()?;
        let mut row = NewRow::of("pg_statistic_ext")
            .oid("oid", oid)
            .oid("stxrelid", table.oid)
            .text("stxname", name)
            .oid("stxnamespace", namespace)
            .oid("stxowner", owner)
            .set("stxkeys", int2_array(sorted))
            .set("stxstattarget", Datum::Null)
            .set("stxkind", char_array(kinds))
            .set("stxexprs", Datum::Null);
        if !exprs.is_empty() {
            row = row.text("stxexprs", &store_exprs(exprs.iter())?);
        }
        state.catalog.rows(&txn).insert(&row)?;
        let object = Object::of("pg_statistic_ext", oid);
        for column in sorted {
            depend::record(state, object, Object::column(table.oid, *column), Kind::Auto)?;
        }
        for expr in exprs {
            depend::record_expr(state, object, table.oid, expr, Kind::Auto)?;
        }
        if sorted.is_empty() {
            depend::record(state, object, Object::relation(table.oid), Kind::Auto)?;
        }
        depend::record(state, object, Object::of("pg_namespace", namespace), Kind::Normal)?;
        state.catalog.changed(table.oid);
        Ok(oid)
    }

    fn statistics_elements(
        &self,
        statement: &CreateStatistics,
        table: &Arc<Table>,
    ) -> Result<Elements> {
        let (state, env) = (self.state(), self.session.env());
        let mut found = Elements { columns: Vec::new(), exprs: Vec::new() };
        let several = statement.elements.len() > 1;
        for element in &statement.elements {
            let analysed = match (&element.column, &element.expr) {
                (None, Some(e)) => {
                    let env = env.as_ref();
                    Some(analyse::analyse_statistics_expr(e, table, &self.source, state, env)?)
                }
                _ => None,
            };
            let column = match (&analysed, &element.column) {
                (_, Some(name)) if super::alter::is_system_column(name) => Some(-1),
                (_, Some(name)) => match table.column(name) {
                    Some(column) => Some(column.number),
                    None => bail!(UNDEFINED_COLUMN, "column \"{name}\" does not exist"),
                },
                (Some(Expr::Var { column, .. }), None) if *column != 0 => Some(*column),
                _ => None,
            };
            if let Some(number) = column {
                let at = usize::try_from(number - 1).ok();
                let Some(column) = at.and_then(|at| table.columns.get(at)) else {
                    bail!(
                        FEATURE_NOT_SUPPORTED,
                        "statistics creation on system columns is not supported"
                    );
                };
                if column.is_virtual() {
                    return Err(virtual_columns::unsupported("statistics creation"));
                }
                refuse_unordered(column)?;
                found.columns.push(number);
            } else if let Some(expr) = analysed {
                let mut system = false;
                expr.walk(&mut |e| {
                    system |= matches!(e, Expr::Var { column, .. } if *column < 0);
                });
                if system {
                    bail!(
                        FEATURE_NOT_SUPPORTED,
                        "statistics creation on system columns is not supported"
                    );
                }
                if virtual_columns::is_asked(table, 0, Some(&expr)) {
                    return Err(virtual_columns::unsupported("statistics creation"));
                }
                if several && !has_order(expr.ty().oid) {
                    bail!(
                        FEATURE_NOT_SUPPORTED,
                        "expression cannot be used in multivariate statistics because its type {} has no default btree operator class",
                        types::format_type(expr.ty().oid, -1)
                    );
                }
                found.exprs.push(expr);
            }
        }
        Ok(found)
    }

    fn statistics_kinds(
        &self,
        statement: &CreateStatistics,
        elements: &Elements,
    ) -> Result<Vec<u8>> {
        let all = elements.columns.len() + elements.exprs.len();
        let mut kinds = kinds(&statement.kinds)?;
        if all == 1 && elements.exprs.len() == 1 && !statement.kinds.is_empty() {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "when building statistics on a single expression, statistics kinds may not be specified"
            );
        }
        if all < 2 && elements.exprs.len() != 1 {
            bail!(INVALID_OBJECT_DEFINITION, "extended statistics require at least 2 columns");
        }
        if statement.kinds.is_empty() && all >= 2 {
            kinds = b"dfm".to_vec();
        }
        if !elements.exprs.is_empty() {
            kinds.push(b'e');
        }
        Ok(kinds)
    }

    /// The row of a statistics object, if there is one of that name.
    fn find_statistics(&self, name: &ObjectName) -> Result<Option<Row>> {
        super::check_catalog(self.state(), name)?;
        let state = self.state();
        if let Some(schema) = &name.schema {
            let Some(oid) = state.schema_by_name(schema)? else {
                bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist");
            };
            crate::acl::check_schema_usage(state, oid, schema)?;
            return row_of(state, oid, &name.name);
        }
        for (_, oid) in state.search_schemas()? {
            if let Some(row) = row_of(state, oid, &name.name)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// With IF EXISTS: is it not there? Says so.
    fn skips_statistics(&mut self, name: &ObjectName) -> Result<bool> {
        let text = match &name.schema {
            Some(schema) if self.state().schema_by_name(schema)?.is_none() => {
                format!("schema \"{schema}\" does not exist, skipping")
            }
            _ if self.find_statistics(name)?.is_none() => {
                format!("statistics object \"{name}\" does not exist, skipping")
            }
            _ => return Ok(false),
        };
        self.notice(SqlState::SUCCESSFUL_COMPLETION, text)?;
        Ok(true)
    }

    /// The row of a statistics object of the current user, under the lock that altering it needs.
    pub(super) fn own_statistics(&self, name: &ObjectName) -> Result<Row> {
        let state = self.state();
        let mut locked = None;
        loop {
            let Some(row) = self.find_statistics(name)? else {
                bail!(UNDEFINED_OBJECT, "statistics object \"{name}\" does not exist");
            };
            let me = state.current_user.borrow().oid;
            if !state.is_superuser()
                && !crate::acl::roles_of(state, me)?.contains(&row.oid("stxowner"))
            {
                bail!(INSUFFICIENT_PRIVILEGE, "must be owner of statistics object {name}");
            }
            if locked == Some(row.oid("stxrelid")) {
                return Ok(row);
            }
            lock(state, row.oid("oid"))?;
            locked = Some(row.oid("stxrelid"));
        }
    }

    fn update_statistics(&self, row: &Row) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(row)?;
        state.catalog.changed(row.oid("stxrelid"));
        Ok(())
    }

    /// ALTER STATISTICS … SET STATISTICS
    ///
    /// # Errors
    /// `42704`, `42501`, `22023`
    pub fn set_statistics_target(
        &mut self,
        if_exists: bool,
        name: &ObjectName,
        target: Option<i64>,
    ) -> Result<()> {
        let target = target.filter(|t| *t != -1);
        if let Some(t) = target
            && t < 0
        {
            bail!(INVALID_PARAMETER_VALUE, "statistics target {t} is too low");
        }
        if target.is_some_and(|t| t > 10_000) {
            let mut notice = Notice::new(Severity::Warning, "lowering statistics target to 10000");
            notice.body.state = SqlState::INVALID_PARAMETER_VALUE;
            self.client.notice(&notice)?;
        }
        if if_exists && self.skips_statistics(name)? {
            return Ok(());
        }
        let mut row = self.own_statistics(name)?;
        let value = target
            .map_or(Datum::Null, |t| Datum::Int2(i16::try_from(t.min(10_000)).unwrap_or(10_000)));
        row.set("stxstattarget", value);
        self.update_statistics(&row)
    }

    pub(super) fn rename_statistics(&mut self, name: &ObjectName, new: &str) -> Result<()> {
        let mut row = self.own_statistics(name)?;
        let schema = row.oid("stxnamespace");
        self.check_statistics_name(schema, new)?;
        row.set("stxname", Datum::text(new));
        self.update_statistics(&row)
    }

    fn check_statistics_name(&self, namespace: Oid, name: &str) -> Result<()> {
        if row_of(self.state(), namespace, name)?.is_some() {
            let schema = crate::system::names::schema_name(self.state(), namespace)?;
            bail!(
                DUPLICATE_OBJECT,
                "statistics object \"{name}\" already exists in schema \"{}\"",
                schema.unwrap_or_default()
            );
        }
        Ok(())
    }

    pub(super) fn set_statistics_schema(&mut self, name: &ObjectName, schema: &str) -> Result<()> {
        let mut row = self.own_statistics(name)?;
        let moved = ObjectName { schema: Some(schema.to_owned()), ..name.clone() };
        let namespace = self.creation_namespace(&moved, false)?;
        let old = row.oid("stxnamespace");
        self.check_set_namespace(old, namespace)?;
        if old == namespace {
            return Ok(());
        }
        self.check_statistics_name(namespace, row.text("stxname"))?;
        row.set("stxnamespace", Datum::Oid(namespace));
        self.update_statistics(&row)?;
        let object = Object::of("pg_statistic_ext", row.oid("oid"));
        depend::forget(self.state(), object, Object::of("pg_namespace", old))?;
        depend::record(self.state(), object, Object::of("pg_namespace", namespace), Kind::Normal)
    }

    pub(super) fn set_statistics_owner(
        &mut self,
        name: &ObjectName,
        owner: &RoleName,
    ) -> Result<()> {
        let owner = self.role(owner)?;
        super::lock_role(self.state(), owner)?;
        // Who changes nothing need not own it.
        if self.find_statistics(name)?.is_some_and(|row| row.oid("stxowner") == owner) {
            return Ok(());
        }
        let mut row = self.own_statistics(name)?;
        self.check_may_own_in(owner, row.oid("stxnamespace"))?;
        row.set("stxowner", Datum::Oid(owner));
        self.update_statistics(&row)
    }

    /// DROP STATISTICS
    ///
    /// # Errors
    /// `42704`, `42501`; I/O.
    pub fn drop_statistics(&mut self, statement: &Drop) -> Result<()> {
        let mut objects = Vec::new();
        for name in &statement.names {
            if statement.if_exists && self.skips_statistics(name)? {
                continue;
            }
            objects.push(Object::of("pg_statistic_ext", self.own_statistics(name)?.oid("oid")));
        }
        if objects.is_empty() {
            return Ok(());
        }
        for notice in drop_objects(self.state(), &objects, statement.cascade)? {
            self.client.notice(&notice)?;
        }
        Ok(())
    }

    /// Columns have other types: what was known of them is forgotten, and expressions over them are analysed again.
    pub(super) fn retype_statistics(
        &mut self,
        table: &Table,
        changed: &Table,
        columns: &[i32],
    ) -> Result<()> {
        let (state, env) = (self.state(), self.session.env().as_ref());
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        for mut row in rows.find("pg_statistic_ext", &[("stxrelid", Datum::Oid(table.oid))])? {
            let statistics = ExtendedStatistics::of(&row)?;
            let uses = |e: &Expr| {
                e.any(&mut |e| matches!(e, Expr::Var { column, .. } if columns.contains(column)))
            };
            if !statistics.columns.iter().any(|c| columns.contains(c))
                && !statistics.exprs.iter().any(|e| uses(e))
            {
                continue;
            }
            for number in &statistics.columns {
                let at = usize::try_from(number - 1).unwrap_or(0);
                let column = &changed.columns[at];
                refuse_unordered(column)?;
            }
            let mut exprs = Vec::new();
            for expr in &statistics.exprs {
                if uses(expr) {
                    let text = super::relation::expr_text(expr, table, env)?;
                    let parsed = crate::parse::parse_expression(&text)?;
                    exprs.push(analyse::analyse_statistics_expr(
                        &parsed, changed, &text, state, env,
                    )?);
                } else {
                    exprs.push((**expr).clone());
                }
            }
            if !exprs.is_empty() {
                row.set("stxexprs", Datum::text(store_exprs(exprs.iter())?));
                rows.update(&row)?;
            }
            rows.delete_where("pg_statistic_ext_data", &[("stxoid", Datum::Oid(statistics.oid))])?;
        }
        state.catalog.changed(table.oid);
        Ok(())
    }
}
