//! Constraints: CHECK, PRIMARY KEY, UNIQUE, FOREIGN KEY.

use super::depend::{self, Kind, Object};
use super::index::{NewIndex, opclass};
use super::relation::IndexColumnRow;
use super::{Ddl, new_oid, relation};
use crate::analyse;
use crate::parse::utility::{
    ConstraintTiming, References, TableConstraint, TableConstraintKind, UniqueOptions,
};
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::{RowSource, store_expr};
use engine::catalog::model::{Index, ReferentialAction, RelationKind, Table};
use engine::catalog::rows::{NewRow, int2_array, oid_array};
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

/// Is there a constraint of that name in the schema?
///
/// # Errors
/// I/O.
pub fn name_taken(state: &SessionState, namespace: Oid, name: &str) -> Result<bool> {
    let txn = state.txn()?;
    let key = [("conname", Datum::text(name)), ("connamespace", Datum::Oid(namespace))];
    Ok(!state.catalog.rows(&txn).find("pg_constraint", &key)?.is_empty())
}

fn constraint_row(table: &Table, oid: Oid, name: &str, kind: u8, t: ConstraintTiming) -> NewRow {
    NewRow::of("pg_constraint")
        .oid("oid", oid)
        .text("conname", name)
        .oid("connamespace", table.namespace)
        .char("contype", kind)
        .bool("condeferrable", t.deferrable)
        .bool("condeferred", t.initially_deferred)
        .bool("conenforced", !t.not_enforced)
        .bool("convalidated", !t.not_valid)
        .oid("conrelid", table.oid)
        .char("confupdtype", b' ')
        .char("confdeltype", b' ')
        .char("confmatchtype", b' ')
        .bool("conislocal", true)
        .bool("connoinherit", kind != b'c' || t.no_inherit)
}

/// A table without rows leaves nothing to validate.
fn validity(timing: ConstraintTiming, fresh: bool) -> ConstraintTiming {
    let not_valid = timing.not_valid && (!fresh || timing.not_enforced);
    ConstraintTiming { not_valid, ..timing }
}

impl Ddl<'_> {
    /// Adds a constraint to a table. `fresh`: the table has no rows yet.
    ///
    /// # Errors
    /// `42710`, `42P16`, `42830`, `42703`; `23505`, `23514`, `23503` when rows violate it; I/O.
    pub fn add_constraint(&mut self, oid: Oid, c: &TableConstraint, fresh: bool) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let Some(table) = state.catalog.table(&txn, oid)? else {
            bail!(UNDEFINED_TABLE, "relation with OID {oid} does not exist");
        };
        let is_not_null = matches!(c.kind, TableConstraintKind::NotNull(_));
        if let Some(name) = c.name.as_ref().filter(|_| !is_not_null) {
            let key = [("conrelid", Datum::Oid(oid)), ("conname", Datum::text(name))];
            let makes_index = matches!(
                &c.kind,
                TableConstraintKind::PrimaryKey { .. } | TableConstraintKind::Unique { .. }
            );
            if makes_index && state.catalog.relation_oid(&txn, table.namespace, name)?.is_some() {
                bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
            }
            if !state.catalog.rows(&txn).find("pg_constraint", &key)?.is_empty() {
                if fresh && matches!(c.kind, TableConstraintKind::Check(_)) {
                    bail!(DUPLICATE_OBJECT, "check constraint \"{name}\" already exists");
                }
                bail!(
                    DUPLICATE_OBJECT,
                    "constraint \"{name}\" for relation \"{}\" already exists",
                    table.name
                );
            }
        }
        drop(txn);
        match &c.kind {
            TableConstraintKind::Check(expr) => self.add_check(&table, c, expr, fresh),
            // A new table has been made with it.
            TableConstraintKind::NotNull(_) if fresh => Ok(()),
            TableConstraintKind::NotNull(column) => self.add_not_null(&table, c, column),
            TableConstraintKind::PrimaryKey { columns, options } => {
                check_first_primary(&table)?;
                for column in columns {
                    let number = match table.column(column) {
                        None if !fresh => bail!(
                            UNDEFINED_COLUMN,
                            "column \"{column}\" of relation \"{}\" does not exist",
                            table.name
                        ),
                        _ => column_number(&table, column)?,
                    };
                    if super::virtual_columns::is_asked(&table, number, None) {
                        return Err(super::virtual_columns::no_key(true));
                    }
                    self.make_key_column(&table, number)?;
                }
                self.add_key(&table, c, columns, options, true)
            }
            TableConstraintKind::Unique { columns, options } => {
                self.add_key(&table, c, columns, options, false)
            }
            TableConstraintKind::UsingIndex { primary, index } => {
                if *primary {
                    check_first_primary(&table)?;
                }
                self.key_using_index(&table, c, *primary, index)
            }
            TableConstraintKind::ForeignKey { columns, references } => {
                self.add_foreign_key(&table, c, columns, references, fresh)
            }
        }
    }

    fn add_check(
        &mut self,
        table: &Arc<Table>,
        c: &TableConstraint,
        expr: &crate::parse::ast::Expr,
        fresh: bool,
    ) -> Result<()> {
        let state = self.state();
        let env = self.session.env().as_ref();
        let analysed = analyse::analyse_check(expr, table, &self.source, state, env)?;
        let mut columns = std::collections::BTreeSet::new();
        analysed.walk(&mut |e| {
            if let expr::Expr::Var { column, .. } = e {
                columns.insert(*column);
            }
        });
        let columns: Vec<i32> = columns.into_iter().collect();
        let name = match &c.name {
            Some(name) => name.clone(),
            None => {
                let part = match columns[..] {
                    [one] => usize::try_from(one - 1)
                        .ok()
                        .and_then(|i| table.columns.get(i))
                        .map_or("", |c| c.name.as_str()),
                    _ => "",
                };
                super::table::choose_name(state, &table.name, part, "check", table.namespace)?
            }
        };
        if !fresh && !c.timing.not_valid {
            self.verify_check(table, &name, &analysed)?;
        }
        let state = self.state();
        let oid = new_oid(state, "pg_constraint")?;
        let timing = validity(c.timing, fresh);
        let row = constraint_row(table, oid, &name, b'c', timing)
            .set("conkey", int2_array(&columns))
            .text("conbin", &store_expr(&analysed));
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&row)?;
        relation::update_class(state, table.oid, |row| {
            let checks = i16::try_from(row.int("relchecks") + 1).unwrap_or(i16::MAX);
            row.set("relchecks", Datum::Int2(checks));
        })?;
        let object = Object::of("pg_constraint", oid);
        for column in &columns {
            depend::record(state, object, Object::column(table.oid, *column), Kind::Auto)?;
        }
        if columns.is_empty() {
            depend::record(state, object, Object::relation(table.oid), Kind::Auto)?;
        }
        depend::record_expr(state, object, Oid::INVALID, &analysed, Kind::Auto)
    }

    /// Looks for a row that has NULL in a column.
    pub(super) fn verify_not_null(&mut self, table: &Arc<Table>, number: i32) -> Result<()> {
        let at = usize::try_from(number - 1).unwrap_or(0);
        let column = &table.columns[at].name;
        let name = crate::system::names::relation_name(self.state(), table);
        let quoted = crate::system::names::quote_identifier(column);
        let sql = format!("SELECT 1 FROM ONLY {name} WHERE {quoted} IS NULL LIMIT 1");
        if !self.session.internal_query(&sql, &[])?.is_empty() {
            return Err(SqlError::new(
                SqlState::NOT_NULL_VIOLATION,
                format!("column \"{column}\" of relation \"{}\" contains null values", table.name),
            )
            .table(&table.namespace_name, &table.name)
            .column(column)
            .into());
        }
        Ok(())
    }

    /// Looks for a row that violates a check.
    pub(super) fn verify_check(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        check: &expr::Expr,
    ) -> Result<()> {
        let relation = crate::system::names::relation_name(self.state(), table);
        let text = relation::expr_text(check, table, self.session.env().as_ref())?;
        let sql = format!("SELECT 1 FROM ONLY {relation} WHERE NOT ({text}) LIMIT 1");
        if !self.session.internal_query(&sql, &[])?.is_empty() {
            return Err(SqlError::new(
                SqlState::CHECK_VIOLATION,
                format!(
                    "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                    table.name
                ),
            )
            .table(&table.namespace_name, &table.name)
            .constraint(name)
            .into());
        }
        Ok(())
    }

    fn add_key(
        &mut self,
        table: &Arc<Table>,
        c: &TableConstraint,
        columns: &[String],
        options: &UniqueOptions,
        primary: bool,
    ) -> Result<()> {
        let mut rows = Vec::new();
        for name in columns.iter().chain(&options.include) {
            let number = column_number(table, name)?;
            let at = usize::try_from(number - 1).unwrap_or(0);
            if rows.len() < columns.len()
                && rows.iter().any(|r: &IndexColumnRow| r.column == number)
            {
                bail!(
                    DUPLICATE_COLUMN,
                    "column \"{name}\" appears twice in {} constraint",
                    if primary { "primary key" } else { "unique" }
                );
            }
            if table.columns[at].is_virtual() {
                return Err(super::virtual_columns::no_key(primary));
            }
            let ty = table.columns[at].ty;
            // What is only carried along need not be comparable.
            let class = if rows.len() < columns.len() { opclass(ty, None)? } else { Oid::INVALID };
            let mut row = IndexColumnRow::simple(name, number, ty, class);
            row.collation = types::type_info(ty.oid).map_or(Oid::INVALID, |i| i.collation);
            rows.push(row);
        }
        let new = NewIndex {
            concurrently: false,
            name: c.name.clone(),
            unique: true,
            primary,
            nulls_not_distinct: options.nulls_not_distinct,
            deferrable: c.timing.deferrable,
            columns: rows,
            key_columns: columns.len(),
            predicate: None,
            options: super::storage_options::index_options(&options.options)?,
            suffix: if primary { "pkey" } else { "key" },
        };
        super::index::check_may_make_index(self.state(), table)?;
        let (index, name) = self.make_index(table, &new)?;
        let numbers: Vec<i32> = new.columns.iter().map(|c| c.column).collect();
        let (keys, carried) = numbers.split_at(columns.len());
        self.key_constraint(table, index, &name, primary, (keys, carried), c.timing)
    }

    /// Notes the constraint that `index` is. `columns`: by number, those of the key, and those that are only carried along.
    pub(super) fn key_constraint(
        &mut self,
        table: &Arc<Table>,
        index: Oid,
        name: &str,
        primary: bool,
        columns: (&[i32], &[i32]),
        timing: ConstraintTiming,
    ) -> Result<()> {
        let state = self.state();
        let oid = new_oid(state, "pg_constraint")?;
        let row = constraint_row(table, oid, name, if primary { b'p' } else { b'u' }, timing)
            .oid("conindid", index)
            .set("conkey", int2_array(columns.0));
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&row)?;
        let object = Object::of("pg_constraint", oid);
        super::drop::forget_dependencies(state, Object::relation(index))?;
        depend::record(state, Object::relation(index), object, Kind::Internal)?;
        for number in columns.0.iter().chain(columns.1) {
            depend::record(state, object, Object::column(table.oid, *number), Kind::Auto)?;
        }
        if timing.deferrable {
            let how = (primary, timing.initially_deferred);
            super::triggers::of_key(state, table.oid, (oid, index), how)?;
        }
        state.catalog.changed_alone(table.oid);
        Ok(())
    }

    /// An index that a constraint can be made of: whole, unique, over plain columns, and nobody's yet.
    fn check_can_be_key(&self, c: &TableConstraint, index: &Index) -> Result<()> {
        let name = &index.name;
        let at = |e: SqlError| Err(crate::parse::error_at(&self.source, e.into(), c.loc));
        let not_now =
            |text: String| at(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text));
        if index.constraint.is_some() {
            return not_now(format!("index \"{name}\" is already associated with a constraint"));
        }
        // What it does not hold may be there twice.
        if !index.valid {
            return not_now(format!("index \"{name}\" is not valid"));
        }
        let wrong = if !index.unique {
            format!("\"{name}\" is not a unique index")
        } else if index.columns.iter().any(|c| c.expr.is_some()) {
            format!("index \"{name}\" contains expressions")
        } else if index.predicate.is_some() {
            format!("\"{name}\" is a partial index")
        } else {
            return Ok(());
        };
        at(SqlError::new(SqlState::WRONG_OBJECT_TYPE, wrong)
            .detail("Cannot create a primary key or unique constraint using such an index."))
    }

    fn key_using_index(
        &mut self,
        table: &Arc<Table>,
        c: &TableConstraint,
        primary: bool,
        index: &str,
    ) -> Result<()> {
        let Some(found) = table.indexes.iter().find(|i| i.name == index).cloned() else {
            bail!(UNDEFINED_OBJECT, "index \"{index}\" does not exist");
        };
        self.check_can_be_key(c, &found)?;
        let keys = &found.columns[..found.key_columns];
        // What a dump would make of the constraint has the default order.
        let other = keys.iter().position(|c| {
            let default = types::registry::default_btree_class(c.ty.oid).map(|d| d.oid);
            c.expr.is_none() && (c.descending || c.nulls_first || default != Some(c.opclass))
        });
        if let Some(other) = other {
            let message = format!(
                "index \"{index}\" column number {} does not have default sorting behavior",
                other + 1
            );
            let e = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .detail("Cannot create a primary key or unique constraint using such an index.");
            return Err(crate::parse::error_at(&self.source, e.into(), c.loc));
        }
        if primary && found.nulls_not_distinct {
            bail!(INVALID_TABLE_DEFINITION, "primary keys cannot use NULLS NOT DISTINCT indexes");
        }
        let numbers: Vec<i32> = found.columns.iter().map(|c| c.column).collect();
        let columns = numbers.split_at(found.key_columns);
        if primary {
            for column in columns.0 {
                self.make_key_column(table, *column)?;
            }
            set_primary(self.state(), found.oid)?;
        }
        if c.timing.deferrable {
            set_index(self.state(), found.oid, ("indimmediate", false))?;
        }
        let name = c.name.clone().unwrap_or_else(|| index.to_owned());
        if name != index {
            let state = self.state();
            if state.catalog.relation_oid(&*state.txn()?, table.namespace, &name)?.is_some() {
                bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
            }
            self.notice(
                SqlState::SUCCESSFUL_COMPLETION,
                format!(
                    "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{index}\" to \"{name}\""
                ),
            )?;
            relation::update_class(self.state(), found.oid, |row| {
                row.set("relname", Datum::text(&name));
            })?;
        }
        self.key_constraint(table, found.oid, &name, primary, columns, c.timing)
    }

    fn add_foreign_key(
        &mut self,
        table: &Arc<Table>,
        c: &TableConstraint,
        columns: &[String],
        references: &References,
        fresh: bool,
    ) -> Result<()> {
        let state = self.state();
        let referenced = crate::relations::lock_named(state, LockMode::ShareRowExclusive, || {
            let found = self.relation(&references.table)?;
            if found.kind != RelationKind::Table {
                bail!(WRONG_OBJECT_TYPE, "referenced relation \"{}\" is not a table", found.name);
            }
            super::refuse_catalog(&found)?;
            check_persistence(table, &found)?;
            crate::acl::check_table(state, &found, crate::acl::REFERENCES, Oid::INVALID)?;
            Ok(found)
        })?;
        let from = foreign_columns(table, columns)?;
        if from.iter().any(|c| super::virtual_columns::is_asked(table, *c, None)) {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "foreign key constraints on virtual generated columns are not supported"
            );
        }
        check_actions(table, &from, references)?;
        let (to, index) = referenced_key(&referenced, &references.columns)?;
        if from.len() != to.len() {
            bail!(
                INVALID_FOREIGN_KEY,
                "number of referencing and referenced columns for foreign key disagree"
            );
        }
        let mut operators = Vec::new();
        for (f, t) in from.iter().zip(&to) {
            operators.push(key_operator(table, *f, &referenced, *t, c.name.as_deref())?);
        }
        let set_columns = columns_set_on_delete(table, &from, references)?;
        let name = match &c.name {
            Some(name) => name.clone(),
            None => {
                let part = columns.join("_");
                super::table::choose_name(state, &table.name, &part, "fkey", table.namespace)?
            }
        };
        let oid = new_oid(state, "pg_constraint")?;
        let timing = validity(c.timing, fresh);
        let row = constraint_row(table, oid, &name, b'f', timing)
            .oid("conindid", index.oid)
            .oid("confrelid", referenced.oid)
            .char("confupdtype", action_letter(references.on_update))
            .char("confdeltype", action_letter(references.on_delete))
            .char("confmatchtype", if references.match_full { b'f' } else { b's' })
            .set("conkey", int2_array(&from))
            .set("confdelsetcols", set_columns)
            .set("confkey", int2_array(&to))
            .set("conpfeqop", oid_array(&operators))
            .set("conppeqop", oid_array(&operators))
            .set("conffeqop", oid_array(&operators));
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&row)?;
        let object = Object::of("pg_constraint", oid);
        for number in &from {
            depend::record(state, object, Object::column(table.oid, *number), Kind::Auto)?;
        }
        for number in &to {
            depend::record(state, object, Object::column(referenced.oid, *number), Kind::Normal)?;
        }
        depend::record(state, object, Object::relation(index.oid), Kind::Normal)?;
        let key = super::triggers::Key {
            constraint: oid,
            table: table.oid,
            referenced: referenced.oid,
            index: index.oid,
            on_delete: references.on_delete,
            on_update: references.on_update,
            timing: (c.timing.deferrable, c.timing.initially_deferred),
        };
        if !c.timing.not_enforced {
            super::triggers::of_foreign_key(state, &key)?;
        }
        state.catalog.changed_alone(table.oid);
        state.catalog.changed_alone(referenced.oid);
        drop(txn);
        if !fresh && !c.timing.not_valid {
            self.verify_foreign_key(table, &referenced, &name, &from, &to, references.match_full)?;
        }
        Ok(())
    }

    /// Looks for a row without a partner, by one join.
    pub(super) fn verify_foreign_key(
        &mut self,
        table: &Arc<Table>,
        referenced: &Arc<Table>,
        name: &str,
        from: &[i32],
        to: &[i32],
        match_full: bool,
    ) -> Result<()> {
        let column = |t: &Table, n: i32| {
            let at = usize::try_from(n - 1).unwrap_or(0);
            crate::system::names::quote_identifier(&t.columns[at].name)
        };
        let on: Vec<String> = from
            .iter()
            .zip(to)
            .map(|(f, t)| format!("pk.{} = fk.{}", column(referenced, *t), column(table, *f)))
            .collect();
        let present: Vec<String> =
            from.iter().map(|f| format!("fk.{} IS NOT NULL", column(table, *f))).collect();
        let present = present.join(if match_full { " OR " } else { " AND " });
        let keys: Vec<String> =
            from.iter().map(|f| format!("fk.{}::text", column(table, *f))).collect();
        let state = self.state();
        let sql = format!(
            "SELECT {} FROM ONLY {} fk LEFT JOIN ONLY {} pk ON {} WHERE pk.{} IS NULL AND ({present}) LIMIT 1",
            keys.join(", "),
            crate::system::names::relation_name(state, table),
            crate::system::names::relation_name(state, referenced),
            on.join(" AND "),
            column(referenced, to[0]),
        );
        let found = self.session.internal_query(&sql, &[])?;
        let Some(row) = found.first() else { return Ok(()) };
        let text = |d: &Datum| match d {
            Datum::Text(s) => s.to_string(),
            _ => "null".to_owned(),
        };
        let names: Vec<String> = from
            .iter()
            .map(|f| table.columns[usize::try_from(*f - 1).unwrap_or(0)].name.clone())
            .collect();
        let values: Vec<String> = row.iter().map(text).collect();
        let detail = if row.iter().any(|d| matches!(d, Datum::Null)) {
            "MATCH FULL does not allow mixing of null and nonnull key values.".to_owned()
        } else {
            format!(
                "Key ({})=({}) is not present in table \"{}\".",
                names.join(", "),
                values.join(", "),
                referenced.name
            )
        };
        Err(SqlError::new(
            SqlState::FOREIGN_KEY_VIOLATION,
            format!(
                "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
                table.name
            ),
        )
        .detail(detail)
        .table(&table.namespace_name, &table.name)
        .constraint(name)
        .into())
    }
}

fn check_first_primary(table: &Table) -> Result<()> {
    if table.primary_key().is_some() {
        bail!(
            INVALID_TABLE_DEFINITION,
            "multiple primary keys for table \"{}\" are not allowed",
            table.name
        );
    }
    Ok(())
}

fn check_persistence(table: &Table, referenced: &Table) -> Result<()> {
    use engine::catalog::model::RelationPersistence as P;
    let message = match (table.persistence, referenced.persistence) {
        (P::Permanent, P::Permanent) | (P::Unlogged, P::Permanent | P::Unlogged) => return Ok(()),
        (P::Temporary, P::Temporary) => return Ok(()),
        (P::Permanent, _) => "constraints on permanent tables may reference only permanent tables",
        (P::Unlogged, _) => {
            "constraints on unlogged tables may reference only permanent or unlogged tables"
        }
        (P::Temporary, _) => "constraints on temporary tables may reference only temporary tables",
    };
    bail!(INVALID_TABLE_DEFINITION, "{message}")
}

fn set_primary(state: &SessionState, index: Oid) -> Result<()> {
    set_index(state, index, ("indisprimary", true))
}

/// Sets one thing that `pg_index` says of an index.
fn set_index(state: &SessionState, index: Oid, (column, is): (&str, bool)) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let found = rows.find("pg_index", &[("indexrelid", Datum::Oid(index))])?;
    if let Some(mut row) = found.into_iter().next() {
        row.set(column, Datum::Bool(is));
        rows.update(&row)?;
    }
    Ok(())
}

pub(super) fn column_number(table: &Table, name: &str) -> Result<i32> {
    match table.column(name) {
        Some(column) => Ok(column.number),
        None => bail!(UNDEFINED_COLUMN, "column \"{name}\" named in key does not exist"),
    }
}

/// The columns of a foreign key.
fn foreign_columns(table: &Table, names: &[String]) -> Result<Vec<i32>> {
    let number = |name: &String| match table.column(name) {
        Some(column) => Ok(column.number),
        None => bail!(
            UNDEFINED_COLUMN,
            "column \"{name}\" referenced in foreign key constraint does not exist"
        ),
    };
    names.iter().map(number).collect()
}

/// The columns that ON DELETE SET NULL or SET DEFAULT names, as they are kept; NULL: it names none, and sets all.
fn columns_set_on_delete(table: &Table, from: &[i32], references: &References) -> Result<Datum> {
    let mut numbers = Vec::new();
    let named = foreign_columns(table, &references.on_delete_columns)?;
    for (name, number) in references.on_delete_columns.iter().zip(named) {
        if !from.contains(&number) {
            bail!(
                INVALID_COLUMN_REFERENCE,
                "column \"{name}\" referenced in ON DELETE SET action must be part of foreign key"
            );
        }
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    Ok(if numbers.is_empty() { Datum::Null } else { int2_array(&numbers) })
}

/// A generated column cannot be set, to whatever.
fn check_actions(table: &Table, from: &[i32], references: &References) -> Result<()> {
    use ReferentialAction as R;
    if !table.columns.iter().any(|c| c.is_generated() && from.contains(&c.number)) {
        return Ok(());
    }
    let wrong = |when: &str| {
        bail!(
            SYNTAX_ERROR,
            "invalid {when} action for foreign key constraint containing generated column"
        )
    };
    if matches!(references.on_update, R::SetNull | R::SetDefault | R::Cascade) {
        return wrong("ON UPDATE");
    }
    if matches!(references.on_delete, R::SetNull | R::SetDefault) {
        return wrong("ON DELETE");
    }
    Ok(())
}

/// The columns that a foreign key refers to, in their order, and the unique index that finds them.
fn referenced_key(table: &Table, names: &[String]) -> Result<(Vec<i32>, Arc<Index>)> {
    if names.is_empty() {
        let Some(index) = table.primary_key() else {
            bail!(
                UNDEFINED_OBJECT,
                "there is no primary key for referenced table \"{}\"",
                table.name
            );
        };
        if !index.immediate {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot use a deferrable primary key for referenced table \"{}\"",
                table.name
            );
        }
        let columns = index.columns[..index.key_columns].iter().map(|c| c.column).collect();
        return Ok((columns, Arc::clone(index)));
    }
    let numbers: Vec<i32> = names
        .iter()
        .map(|name| match table.column(name) {
            Some(column) => Ok(column.number),
            None => bail!(
                UNDEFINED_COLUMN,
                "column \"{name}\" referenced in foreign key constraint does not exist"
            ),
        })
        .collect::<Result<_>>()?;
    if (1..numbers.len()).any(|n| numbers[..n].contains(&numbers[n])) {
        bail!(
            INVALID_FOREIGN_KEY,
            "foreign key referenced-columns list must not contain duplicates"
        );
    }
    let fits = |index: &&Arc<Index>| {
        let keys: Vec<i32> = index.columns[..index.key_columns].iter().map(|c| c.column).collect();
        index.unique
            && index.valid
            && index.predicate.is_none()
            && keys.len() == numbers.len()
            && numbers.iter().all(|n| keys.contains(n))
    };
    let found = table.indexes.iter().find(|i| i.immediate && fits(i));
    match found.or_else(|| table.indexes.iter().find(fits)) {
        Some(index) if !index.immediate => bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot use a deferrable unique constraint for referenced table \"{}\"",
            table.name
        ),
        Some(index) => Ok((numbers, Arc::clone(index))),
        None => bail!(
            INVALID_FOREIGN_KEY,
            "there is no unique constraint matching given keys for referenced table \"{}\"",
            table.name
        ),
    }
}

/// The `=` operator between a referenced and a referencing column.
pub(super) fn key_operator(
    table: &Table,
    from: i32,
    referenced: &Table,
    to: i32,
    name: Option<&str>,
) -> Result<Oid> {
    let column = |t: &Table, n: i32| t.columns[usize::try_from(n - 1).unwrap_or(0)].clone();
    let (f, t) = (column(table, from), column(referenced, to));
    // Different enums can't be compared.
    let (fk, pk) = if f.ty.oid == t.ty.oid && types::enums::is_enum(f.ty.oid) {
        (types::oids::ANYENUM, types::oids::ANYENUM)
    } else {
        (plain(f.ty.oid), plain(t.ty.oid))
    };
    let operators = types::registry::operators_by_name("=");
    let found = operators
        .iter()
        .find(|o| o.left == pk && o.right == fk)
        .or_else(|| operators.iter().find(|o| o.left == pk && o.right == pk && implicitly(fk, pk)));
    match found {
        Some(operator) => Ok(operator.oid),
        None => Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "foreign key constraint \"{}\" cannot be implemented",
                name.unwrap_or(&format!("{}_{}_fkey", table.name, f.name))
            ),
        )
        .detail(format!(
            "Key columns \"{}\" of the referencing table and \"{}\" of the referenced table are of incompatible types: {} and {}.",
            f.name,
            t.name,
            types::format_type(f.ty.oid, -1),
            types::format_type(t.ty.oid, -1)
        ))
        .into()),
    }
}

fn plain(ty: Oid) -> Oid {
    match ty {
        types::oids::VARCHAR => types::oids::TEXT,
        types::oids::CIDR => types::oids::INET,
        _ => ty,
    }
}

fn implicitly(from: Oid, to: Oid) -> bool {
    from == to
        || types::registry::cast(from, to)
            .is_some_and(|c| c.context == types::CastContext::Implicit)
}

fn action_letter(action: ReferentialAction) -> u8 {
    match action {
        ReferentialAction::NoAction => b'a',
        ReferentialAction::Restrict => b'r',
        ReferentialAction::Cascade => b'c',
        ReferentialAction::SetNull => b'n',
        ReferentialAction::SetDefault => b'd',
    }
}

/// Removes a constraint's row (its index, if it has one, depends on it and goes first).
///
/// # Errors
/// I/O.
pub fn remove(state: &SessionState, oid: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for row in rows.find("pg_constraint", &[("oid", Datum::Oid(oid))])? {
        let (table, referenced) = (row.oid("conrelid"), row.oid("confrelid"));
        let is_check = row.char("contype") == b'c';
        rows.delete(&row)?;
        if row.oid("contypid").is_valid() {
            super::domains::constraint_gone(state, &row)?;
            continue;
        }
        if is_check {
            relation::update_class(state, table, |row| {
                let checks = i16::try_from(row.int("relchecks") - 1).unwrap_or(0).max(0);
                row.set("relchecks", Datum::Int2(checks));
            })?;
        }
        if row.char("contype") == b'n' {
            for number in row.ints("conkey") {
                relation::update_attribute(state, table, number, |row| {
                    row.set("attnotnull", Datum::Bool(false));
                })?;
            }
        }
        state.catalog.changed_alone(table);
        if referenced.is_valid() {
            state.catalog.changed_alone(referenced);
        }
    }
    Ok(())
}
