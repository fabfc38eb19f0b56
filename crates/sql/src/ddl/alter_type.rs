//! ALTER TABLE … ALTER COLUMN … TYPE: the rows, and what is said of the column elsewhere.

use super::alter::column_of;
use super::depend::{self, Object};
use super::{Ddl, relation, rewrite, virtual_columns};
use crate::analyse;
use crate::parse::ast::IndexElement;
use crate::parse::utility::{AlterTableAction as A, SequenceOption};
use crate::session::Session;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{Check, Column, ForeignKey, Index, IndexColumn, Table};
use engine::catalog::rows::Row;
use expr::Expr;
use std::sync::Arc;
use types::Datum;

/// One ALTER COLUMN … TYPE of a statement, read against the table as it was before the statement.
pub(super) struct Retyping {
    column: Column,
    new: expr::TypeRef,
    collation: Oid,
    /// Makes the new value from the old row.
    conversion: Expr,
}

impl Ddl<'_> {
    /// What a statement's ALTER COLUMN … TYPE ask for: USING sees all columns as they were, also those that the same statement drops or
    /// gives another type.
    ///
    /// # Errors
    /// `42703`, `42804`, `0A000` and what analysis finds.
    pub(super) fn retypings(&mut self, table: &Arc<Table>, actions: &[A]) -> Result<Vec<Retyping>> {
        let mut list: Vec<Retyping> = Vec::new();
        for action in actions {
            let A::AlterType { column, ty, collation, using } = action else { continue };
            super::alter_kinds::check_action(table, action)?;
            let made = self.retyping(table, column, ty, collation.as_deref(), using.as_ref())?;
            if list.iter().any(|r| r.column.number == made.column.number) {
                bail!(FEATURE_NOT_SUPPORTED, "cannot alter type of column \"{column}\" twice");
            }
            list.push(made);
        }
        Ok(list)
    }

    fn retyping(
        &mut self,
        table: &Arc<Table>,
        column: &str,
        ty: &crate::parse::ast::TypeName,
        collation: Option<&[String]>,
        using: Option<&crate::parse::ast::Expr>,
    ) -> Result<Retyping> {
        let found = column_of(table, column)?.clone();
        let env = std::rc::Rc::clone(self.session.env());
        let new = analyse::resolve_type_name(ty, &self.source, self.state(), env.as_ref())?;
        let collation = match collation {
            Some(names) => super::table::column_collation(names, new.oid)?,
            None => types::type_info(new.oid).map_or(Oid::INVALID, |i| i.collation),
        };
        super::table::check_column_type(column, new.oid)?;
        self.check_not_within(table, new.oid)?;
        if found.is_virtual() {
            virtual_columns::check_type(column, new.oid)?;
        }
        if found.is_generated() && using.is_some() {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_DEFINITION,
                "cannot specify USING when altering type of generated column",
            )
            .detail(format!("Column \"{column}\" is a generated column."))
            .into());
        }
        self.check_row_type_unused(table)?;
        if let Some(sequence) = found.identity_sequence {
            super::table::check_identity_type(new.oid)?;
            // Or its bound would still be the old type's.
            let sequence = self.described(sequence)?;
            self.alter_sequence(&sequence, &[SequenceOption::As(ty.clone())])?;
        }
        let conversion = analyse::analyse_using(
            using,
            column,
            new,
            table,
            &self.source,
            self.state(),
            env.as_ref(),
        )?;
        if conversion.any(&mut |e| matches!(e, expr::Expr::Var { column: 0, .. })) {
            return Err(base::SqlError::new(
                base::SqlState::FEATURE_NOT_SUPPORTED,
                "cannot convert whole-row table reference",
            )
            .detail("USING expression contains a whole-row table reference.")
            .into());
        }
        Ok(Retyping { column: found, new, collation, conversion })
    }

    /// Carries them out together, the rows being written once. `before`: the table as it was before the statement.
    ///
    /// # Errors
    /// `0A000`, `42804`, `23514` and what the conversions meet.
    pub(super) fn retype(&mut self, before: &Arc<Table>, list: &[Retyping]) -> Result<()> {
        let table = &self.described(before.oid)?;
        let mut changed = (**table).clone();
        for r in list {
            // The same statement may have dropped it.
            column_of(table, &r.column.name)?;
            self.refuse_dependent_views(table, &r.column)?;
            super::enums::refuse_used_column(table, &r.column, r.new.oid)?;
            refuse_generated(table, &r.column)?;
            for c in changed.columns.iter_mut().filter(|c| c.number == r.column.number) {
                c.ty = r.new.base();
                c.declared = r.new.oid;
            }
        }
        let checks = self.retyped_checks(table, &changed, list)?;
        for r in list {
            self.retype_column(table, r)?;
        }
        for (check, expr) in &checks {
            self.set_stored("pg_constraint", "oid", check.oid, "conbin", expr)?;
        }
        self.retype_indexes(table, &changed, list)?;
        let numbers: Vec<i32> = list.iter().map(|r| r.column.number).collect();
        self.retype_statistics(table, &changed, &numbers)?;
        let mut conversions = Vec::new();
        // Virtual columns are in no row.
        for r in list.iter().filter(|r| !r.column.is_virtual()) {
            let at = usize::try_from(r.column.number - 1).unwrap_or(0);
            let code = crate::exec::modify::compile_stored_of(&r.conversion, Some(before))?;
            conversions.push((at, code));
        }
        let dropped: Vec<usize> = (0..table.columns.len().min(before.columns.len()))
            .filter(|n| table.columns[*n].dropped)
            .collect();
        let mut convert = |session: &mut Session, mut row: Vec<Datum>| -> Result<Vec<Datum>> {
            let mut values = Vec::with_capacity(conversions.len());
            for (_, code) in &conversions {
                values.push(session.evaluate_over(code, &row)?);
            }
            for ((at, _), value) in conversions.iter().zip(values) {
                row[*at] = value;
            }
            dropped.iter().for_each(|n| row[*n] = Datum::Null);
            Ok(row)
        };
        if conversions.is_empty() {
            self.state().catalog.changed(before.oid);
        } else {
            rewrite::rewrite(self.session, before, &mut convert)?;
        }
        let table = self.described(before.oid)?;
        // What a conversion makes may be NULL.
        for r in list {
            let column = column_of(&table, &r.column.name)?;
            if column.not_null && !column.may_hold_null {
                self.verify_not_null(&table, column.number)?;
            }
        }
        for (check, expr) in checks.iter().filter(|(c, _)| c.validated) {
            self.verify_check(&table, &check.name, expr)?;
        }
        Ok(())
    }

    /// What the catalogs say of one column.
    fn retype_column(&mut self, table: &Arc<Table>, r: &Retyping) -> Result<()> {
        let (found, new) = (column_of(table, &r.column.name)?.clone(), r.new);
        let env = std::rc::Rc::clone(self.session.env());
        let default = match &found.default {
            Some(default) => {
                let (e, state) = ((**default).clone(), self.state());
                let made = analyse::retyped_default(e, new, &found.name, state, env.as_ref());
                Some(made.map_err(|e| no_cast_of_default(e, &found, new.oid))?)
            }
            None => None,
        };
        relation::update_attribute(self.state(), table.oid, found.number, |row| {
            set_type(row, new);
            row.set("attcollation", Datum::Oid(r.collation));
            row.set("atthasmissing", Datum::Bool(false));
            row.set("attmissingval", Datum::Null);
        })?;
        let object = Object::column(table.oid, found.number);
        depend::forget(self.state(), object, Object::of("pg_type", found.declared))?;
        depend::record_type(self.state(), object, new.oid)?;
        super::table::forget_statistics(self.state(), table.oid, found.number)?;
        if let Some(default) = &default {
            relation::set_default(self.state(), table.oid, found.number, Some(default))?;
        }
        Ok(())
    }

    /// ALTER COLUMN … SET EXPRESSION: the rows are computed anew.
    pub(super) fn set_expression(
        &mut self,
        table: &Arc<Table>,
        column: &str,
        expression: &crate::parse::ast::Expr,
    ) -> Result<()> {
        let found = column_of(table, column)?.clone();
        if !found.is_generated() {
            let text = super::alter::not_generated(table, column);
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{text}");
        }
        if found.is_virtual() && !table.checks.is_empty() {
            let what = "ALTER TABLE / SET EXPRESSION is not supported for virtual generated columns in tables with check constraints";
            return Err(virtual_columns::refused(what, table, column));
        }
        if !found.is_virtual() {
            self.check_row_type_unused(table)?;
        }
        let state = self.state();
        let env = self.session.env().as_ref();
        let analysed = analyse::analyse_generated(
            expression,
            column,
            found.declared(),
            table,
            &self.source,
            state,
            env,
        )?;
        super::table::forget_statistics(state, table.oid, found.number)?;
        relation::set_default(state, table.oid, found.number, Some(&analysed))?;
        state.catalog.changed(table.oid);
        if found.is_virtual() {
            virtual_columns::refuse_user_types(&analysed, &self.source, expression.loc)?;
            let table = self.described(table.oid)?;
            return if found.not_null {
                self.verify_not_null(&table, found.number)
            } else {
                Ok(())
            };
        }
        let at = usize::try_from(found.number - 1).unwrap_or(0);
        let code = crate::exec::modify::compile_stored_of(&analysed, Some(table))?;
        rewrite::rewrite(self.session, table, &mut |session, mut row| {
            row[at] = session.evaluate_over(&code, &row)?;
            Ok(row)
        })?;
        let table = self.described(table.oid)?;
        if found.not_null {
            self.verify_not_null(&table, found.number)?;
        }
        for check in table.checks.iter().filter(|c| c.validated && uses(&c.expr, found.number)) {
            self.verify_check(&table, &check.name, &check.expr)?;
        }
        Ok(())
    }

    /// The foreign keys that have columns of `changed`, or refer to them: can both sides still be compared, and has every row its
    /// partner?
    ///
    /// # Errors
    /// `42804`, `23503`
    pub(super) fn recheck_foreign_keys(&mut self, table: Oid, changed: &[i32]) -> Result<()> {
        if changed.is_empty() {
            return Ok(());
        }
        let own = self.described(table)?;
        let has = |columns: &[i32]| columns.iter().any(|c| changed.contains(c));
        let mut keys: Vec<_> =
            own.foreign_keys.iter().filter(|k| has(&k.columns)).cloned().collect();
        for key in own.referenced_by.iter().filter(|k| has(&k.referenced_columns)) {
            if !keys.iter().any(|k| k.oid == key.oid) {
                keys.push(Arc::clone(key));
            }
        }
        for key in keys {
            for other in [key.table, key.referenced_table].into_iter().filter(|t| *t != table) {
                crate::relations::lock(self.state(), other, txn::LockMode::ShareRowExclusive)?;
            }
            let (from, to) = (self.described(key.table)?, self.described(key.referenced_table)?);
            self.renew_operators(&key, &from, &to)?;
            if key.validated {
                self.verify_foreign_key(
                    &from,
                    &to,
                    &key.name,
                    &key.columns,
                    &key.referenced_columns,
                    key.match_full,
                )?;
            }
        }
        Ok(())
    }

    /// The operators that compare both sides of a foreign key, by the types that its columns have now.
    fn renew_operators(&self, key: &ForeignKey, from: &Table, to: &Table) -> Result<()> {
        let mut operators = Vec::new();
        for (f, t) in key.columns.iter().zip(&key.referenced_columns) {
            operators.push(super::foreign_key::key_operator(from, *f, to, *t, Some(&key.name))?);
        }
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        for mut row in rows.find("pg_constraint", &[("oid", Datum::Oid(key.oid))])? {
            for name in ["conpfeqop", "conppeqop", "conffeqop"] {
                row.set(name, engine::catalog::rows::oid_array(&operators));
            }
            rows.update(&row)?;
        }
        state.catalog.changed_alone(from.oid);
        state.catalog.changed_alone(to.oid);
        Ok(())
    }

    /// The checks that use one of the columns, analysed anew for the types that those are to have: what compared integers is no
    /// judge of anything else.
    fn retyped_checks(
        &self,
        table: &Table,
        changed: &Table,
        list: &[Retyping],
    ) -> Result<Vec<(Check, Expr)>> {
        let env = self.session.env().as_ref();
        let mut made = Vec::new();
        for check in table.checks.iter().filter(|c| uses_any(&c.expr, list)) {
            let text = relation::expr_text(&check.expr, table, env)?;
            let parsed = crate::parse::parse_expression(&text)?;
            let expr = analyse::analyse_check(&parsed, changed, &text, self.state(), env)?;
            made.push((check.clone(), expr));
        }
        Ok(made)
    }

    /// Key columns of indexes follow the types of the columns.
    fn retype_indexes(&mut self, table: &Table, changed: &Table, list: &[Retyping]) -> Result<()> {
        for index in &table.indexes {
            if let Some(predicate) = index.predicate.as_ref().filter(|p| uses_any(p, list)) {
                let env = self.session.env().as_ref();
                let text = relation::expr_text(predicate, table, env)?;
                let parsed = crate::parse::parse_expression(&text)?;
                let state = self.state();
                let made = analyse::analyse_index_predicate(&parsed, changed, &text, state, env)?;
                self.set_stored("pg_index", "indexrelid", index.oid, "indpred", &made)?;
            }
            let exprs = self.retyped_exprs(table, changed, index, list)?;
            for (number, key) in (1i32..).zip(&index.columns) {
                let made = exprs.iter().find(|(n, _)| *n == number).map(|(_, e)| e.ty());
                let retyping = list.iter().find(|r| r.column.number == key.column);
                let of = retyping.map(|r| r.new.base());
                let Some(new) = made.or(of).map(expr::TypeRef::base) else { continue };
                let at = usize::try_from(number - 1).unwrap_or(0);
                let collation = retyped_collation(table, key, new, retyping);
                let collation = if at < index.key_columns { collation } else { Oid::INVALID };
                relation::update_attribute(self.state(), index.oid, number, |row| {
                    set_type(row, new);
                    row.set("attcollation", Datum::Oid(collation));
                })?;
                if at < index.key_columns {
                    let opclass = retyped_class(key, new)?;
                    let state = self.state();
                    let txn = state.txn()?;
                    let rows = state.catalog.rows(&txn);
                    let found = rows.find("pg_index", &[("indexrelid", Datum::Oid(index.oid))])?;
                    if let Some(mut row) = found.into_iter().next() {
                        let mut classes = row.oids("indclass");
                        classes[at] = opclass;
                        row.set("indclass", engine::catalog::rows::oid_array(&classes));
                        let mut collations = row.oids("indcollation");
                        if let Some(old) = collations.get_mut(at) {
                            *old = collation;
                            row.set("indcollation", engine::catalog::rows::oid_array(&collations));
                        }
                        rows.update(&row)?;
                    }
                }
            }
        }
        self.state().catalog.changed(table.oid);
        Ok(())
    }

    /// An index's expressions that use one of the columns, analysed anew, by the numbers of their columns; they are stored, too.
    fn retyped_exprs(
        &self,
        table: &Table,
        changed: &Table,
        index: &Index,
        list: &[Retyping],
    ) -> Result<Vec<(i32, Expr)>> {
        let mut made = Vec::new();
        let mut all = Vec::new();
        for (number, key) in (1i32..).zip(&index.columns) {
            let Some(old) = &key.expr else { continue };
            if !uses_any(old, list) {
                all.push((**old).clone());
                continue;
            }
            let (state, env) = (self.state(), self.session.env().as_ref());
            let text = relation::expr_text(old, table, env)?;
            let element = IndexElement::of(crate::parse::parse_expression(&text)?);
            let new = analyse::analyse_index_expr(&element, changed, &text, state, env)?;
            let Some(new) = new.expr else {
                let what = "altering the type of a column so that an index expression is a column";
                return Err(base::Error::unsupported(what));
            };
            if engine::relation::is_only_told_apart(new.ty().oid) {
                let what =
                    format!("an index on type {}", types::format_type(new.ty().base().oid, -1));
                return Err(base::Error::unsupported(what));
            }
            made.push((number, new.clone()));
            all.push(new);
        }
        if !made.is_empty() {
            let exprs: Vec<&Expr> = all.iter().collect();
            self.set_stored("pg_index", "indexrelid", index.oid, "indexprs", &exprs)?;
        }
        Ok(made)
    }
}

/// The collation of a key of another type: its own if it was written, else the column's.
fn retyped_collation(
    table: &Table,
    key: &IndexColumn,
    new: expr::TypeRef,
    retyping: Option<&Retyping>,
) -> Oid {
    let default = types::type_info(new.oid).map_or(Oid::INVALID, |i| i.collation);
    let was = table.columns.iter().find(|c| c.number == key.column).map(|c| c.collation);
    match retyping {
        Some(r) if was == Some(key.collation) => r.collation,
        _ if default.is_valid() && key.collation.is_valid() => key.collation,
        _ => default,
    }
}

/// What a column's row says of its type.
pub(super) fn set_type(row: &mut Row, ty: expr::TypeRef) {
    let info = types::type_info(ty.oid);
    row.set("atttypid", Datum::Oid(ty.oid));
    row.set("atttypmod", Datum::Int4(ty.typmod));
    row.set("attlen", Datum::Int2(info.map_or(-1, |i| i.len)));
    row.set("attbyval", Datum::Bool(info.is_some_and(|i| i.by_value)));
    row.set("attalign", Datum::Char(info.map_or(b'd', |i| i.align as u8)));
    row.set("attstorage", Datum::Char(info.map_or(b'x', |i| i.storage as u8)));
    row.set("attcompression", Datum::Char(0));
}

/// There is no cast to the new type but one that would have to be written.
fn no_cast_of_default(e: base::Error, column: &Column, new: Oid) -> base::Error {
    if e.state() != SqlState::DATATYPE_MISMATCH {
        return e;
    }
    let what = if column.is_generated() { "generation expression" } else { "default" };
    base::err!(
        DATATYPE_MISMATCH,
        "{what} for column \"{}\" cannot be cast automatically to type {}",
        column.name,
        types::format_type(new, -1)
    )
}

/// The operator class of a key column of another type: that one by name which was asked for by name.
fn retyped_class(key: &engine::catalog::model::IndexColumn, new: expr::TypeRef) -> Result<Oid> {
    let default = types::registry::default_btree_class(key.ty.oid).map(|c| c.oid);
    let named = types::facts::operator_classes()
        .iter()
        .find(|c| c.oid == key.opclass && default != Some(key.opclass))
        .map(|c| [c.name.to_owned()]);
    super::index::opclass(new, named.as_ref().map(<[String; 1]>::as_slice))
}

/// Whether a stored expression reads a column.
fn uses(expr: &Expr, column: i32) -> bool {
    let mut used = false;
    expr.walk(&mut |e| used |= matches!(e, Expr::Var { column: c, .. } if *c == column));
    used
}

fn uses_any(expr: &Expr, list: &[Retyping]) -> bool {
    list.iter().any(|r| uses(expr, r.column.number))
}

/// Generated columns that use the column would have to be analysed anew.
fn refuse_generated(table: &Table, column: &Column) -> Result<()> {
    for other in table.columns.iter().filter(|c| c.is_generated()) {
        if other.default.as_ref().is_some_and(|e| uses(e, column.number)) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a generated column",
            )
            .detail(format!(
                "Column \"{}\" is used by generated column \"{}\".",
                column.name, other.name
            ))
            .into());
        }
    }
    Ok(())
}
