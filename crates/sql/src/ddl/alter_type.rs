//! ALTER TABLE … ALTER COLUMN … TYPE: the rows, and what is said of the column elsewhere.

use super::alter::column_of;
use super::depend::{self, Object};
use super::{Ddl, relation, rewrite};
use crate::analyse;
use crate::parse::utility::SequenceOption;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{Check, Column, ForeignKey, Table};
use expr::Expr;
use std::sync::Arc;
use types::Datum;

impl Ddl<'_> {
    pub(super) fn alter_type(
        &mut self,
        table: &Arc<Table>,
        column: &str,
        ty: &crate::parse::ast::TypeName,
        collation: Option<&[String]>,
        using: Option<&crate::parse::ast::Expr>,
    ) -> Result<()> {
        let found = column_of(table, column)?.clone();
        let env = std::rc::Rc::clone(self.session.env());
        let new = analyse::resolve_type_name(ty, &self.source, self.state(), env.as_ref())?;
        let collation = match collation {
            Some(names) => super::table::column_collation(names, new.oid)?,
            None => types::type_info(new.oid).map_or(Oid::INVALID, |i| i.collation),
        };
        self.check_not_within(table, new.oid)?;
        if found.generated && using.is_some() {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_DEFINITION,
                "cannot specify USING when altering type of generated column",
            )
            .detail(format!("Column \"{column}\" is a generated column."))
            .into());
        }
        self.check_row_type_unused(table)?;
        if let Some(sequence) = found.identity_sequence {
            if !matches!(new.oid, types::oids::INT2 | types::oids::INT4 | types::oids::INT8) {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "identity column type must be smallint, integer, or bigint"
                );
            }
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
        self.refuse_dependent_views(table, &found)?;
        super::enums::refuse_used_column(table, &found, new.oid)?;
        refuse_generated(table, &found)?;
        let checks = self.retyped_checks(table, &found, new)?;
        let default = match &found.default {
            Some(default) => Some(analyse::coerce_assignment(
                (**default).clone(),
                new,
                column,
                self.state(),
                env.as_ref(),
            )?),
            _ => None,
        };
        let info = types::type_info(new.oid);
        relation::update_attribute(self.state(), table.oid, found.number, |row| {
            row.set("atttypid", Datum::Oid(new.oid));
            row.set("atttypmod", Datum::Int4(new.typmod));
            row.set("attlen", Datum::Int2(info.map_or(-1, |i| i.len)));
            row.set("attbyval", Datum::Bool(info.is_some_and(|i| i.by_value)));
            row.set("attalign", Datum::Char(info.map_or(b'd', |i| i.align as u8)));
            row.set("attstorage", Datum::Char(info.map_or(b'x', |i| i.storage as u8)));
            row.set("attcollation", Datum::Oid(collation));
            row.set("atthasmissing", Datum::Bool(false));
            row.set("attmissingval", Datum::Null);
        })?;
        let object = Object::column(table.oid, found.number);
        depend::forget(self.state(), object, Object::of("pg_type", found.ty.oid))?;
        depend::record_type(self.state(), object, new.oid)?;
        super::table::forget_statistics(self.state(), table.oid, found.number)?;
        if let Some(default) = &default {
            relation::set_default(self.state(), table.oid, found.number, Some(default))?;
        }
        for (check, expr) in &checks {
            self.set_stored("pg_constraint", "oid", check.oid, "conbin", expr)?;
        }
        self.retype_indexes(table, &found, new)?;
        let at = usize::try_from(found.number - 1).unwrap_or(0);
        let code = crate::exec::modify::compile_stored(&conversion)?;
        rewrite::rewrite(self.session, table, &mut |session, mut row| {
            row[at] = session.evaluate_over(&code, &row)?;
            Ok(row)
        })?;
        let txn = self.state().txn()?;
        let Some(table) = self.state().catalog.table(&txn, table.oid)? else { return Ok(()) };
        for (check, expr) in checks.iter().filter(|(c, _)| c.validated) {
            self.verify_check(&table, &check.name, expr)?;
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
        if !found.generated {
            let text = super::alter::not_generated(table, column);
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{text}");
        }
        self.check_row_type_unused(table)?;
        let state = self.state();
        let env = self.session.env().as_ref();
        let analysed = analyse::analyse_generated(
            expression,
            column,
            found.ty,
            table,
            &self.source,
            state,
            env,
        )?;
        super::table::forget_statistics(state, table.oid, found.number)?;
        relation::set_default(state, table.oid, found.number, Some(&analysed))?;
        state.catalog.changed(table.oid);
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
            operators.push(super::constraint::key_operator(from, *f, to, *t, Some(&key.name))?);
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

    /// Rows of `table` as values of others' columns are not rewritten with it.
    ///
    /// # Errors
    /// `0A000`
    pub(super) fn check_row_type_unused(&self, table: &Table) -> Result<()> {
        if !table.row_type.is_valid() {
            return Ok(());
        }
        let class = |name| engine::catalog::defs::by_name(name).oid;
        let key = [
            ("refclassid", Datum::Oid(class("pg_type"))),
            ("refobjid", Datum::Oid(table.row_type)),
        ];
        let txn = self.state().txn()?;
        for row in self.state().catalog.rows(&txn).find("pg_depend", &key)? {
            if row.oid("classid") != class("pg_class") || row.i32("objsubid") == 0 {
                continue;
            }
            let user = self.described(row.oid("objid"))?;
            let column = user.columns.iter().find(|c| c.number == row.i32("objsubid"));
            if let Some(column) = column.filter(|_| user.storage.is_some()) {
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot alter table \"{}\" because column \"{}.{}\" uses its row type",
                    table.name,
                    user.name,
                    column.name
                );
            }
        }
        Ok(())
    }

    /// A row does not hold a row of its own kind: there would be no end to it.
    ///
    /// # Errors
    /// `42P16`
    pub(super) fn check_not_within(&self, table: &Table, ty: Oid) -> Result<()> {
        if ty < Oid::FIRST_NORMAL || super::enums::is_ours(ty) {
            return Ok(());
        }
        if ty == table.row_type {
            bail!(
                INVALID_TABLE_DEFINITION,
                "composite type {} cannot be made a member of itself",
                table.name
            );
        }
        let txn = self.state().txn()?;
        let key = [("oid", Datum::Oid(ty))];
        for row in self.state().catalog.rows(&txn).find("pg_type", &key)? {
            if let Some(of) = self.state().catalog.table(&txn, row.oid("typrelid"))? {
                for column in of.columns.iter().filter(|c| !c.dropped) {
                    self.check_not_within(table, column.ty.oid)?;
                }
            }
        }
        Ok(())
    }

    /// The checks that use a column, analysed anew for the type that it is to have: what compared integers is no
    /// judge of anything else.
    fn retyped_checks(
        &self,
        table: &Table,
        column: &Column,
        new: expr::TypeRef,
    ) -> Result<Vec<(Check, Expr)>> {
        let env = self.session.env().as_ref();
        let changed = retyped(table, column, new);
        let mut list = Vec::new();
        for check in table.checks.iter().filter(|c| uses(&c.expr, column.number)) {
            let text = relation::expr_text(&check.expr, table, env)?;
            let parsed = crate::parse::parse_expression(&text)?;
            let expr = analyse::analyse_check(&parsed, &changed, &text, self.state(), env)?;
            list.push((check.clone(), expr));
        }
        Ok(list)
    }

    /// Key columns of indexes follow the type of the column.
    fn retype_indexes(&mut self, table: &Table, column: &Column, new: expr::TypeRef) -> Result<()> {
        for index in &table.indexes {
            if let Some(predicate) = index.predicate.as_ref().filter(|p| uses(p, column.number)) {
                let env = self.session.env().as_ref();
                let text = relation::expr_text(predicate, table, env)?;
                let parsed = crate::parse::parse_expression(&text)?;
                let changed = retyped(table, column, new);
                let state = self.state();
                let made = analyse::analyse_index_predicate(&parsed, &changed, &text, state, env)?;
                self.set_stored("pg_index", "indexrelid", index.oid, "indpred", &made)?;
            }
            for (number, key) in (1i32..).zip(&index.columns) {
                if key.column != column.number {
                    if key.expr.as_ref().is_some_and(|e| uses(e, column.number)) {
                        return Err(base::Error::unsupported(
                            "altering the type of a column used in an index expression",
                        ));
                    }
                    continue;
                }
                let info = types::type_info(new.oid);
                relation::update_attribute(self.state(), index.oid, number, |row| {
                    row.set("atttypid", Datum::Oid(new.oid));
                    row.set("atttypmod", Datum::Int4(new.typmod));
                    row.set("attlen", Datum::Int2(info.map_or(-1, |i| i.len)));
                })?;
                let at = usize::try_from(number - 1).unwrap_or(0);
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
                        rows.update(&row)?;
                    }
                }
            }
        }
        self.state().catalog.changed(table.oid);
        Ok(())
    }
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

/// The table as it is to be when a column has another type.
fn retyped(table: &Table, column: &Column, new: expr::TypeRef) -> Table {
    let mut table = table.clone();
    for c in table.columns.iter_mut().filter(|c| c.number == column.number) {
        c.ty = new;
    }
    table
}

/// Generated columns that use the column would have to be analysed anew.
fn refuse_generated(table: &Table, column: &Column) -> Result<()> {
    for other in table.columns.iter().filter(|c| c.generated) {
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
