//! ALTER TABLE … ALTER COLUMN … TYPE: the rows, and what is said of the column elsewhere.

use super::alter::column_of;
use super::depend::{self, Object};
use super::{Ddl, relation, rewrite};
use crate::analyse;
use base::{Oid, Result, SqlError, SqlState};
use engine::catalog::load::RowSource;
use engine::catalog::model::{Check, Column, Table};
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
        let conversion = analyse::analyse_using(
            using,
            column,
            new,
            table,
            &self.source,
            self.state(),
            env.as_ref(),
        )?;
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
                let opclass = super::index::opclass(new, None)?;
                let info = types::type_info(new.oid);
                relation::update_attribute(self.state(), index.oid, number, |row| {
                    row.set("atttypid", Datum::Oid(new.oid));
                    row.set("atttypmod", Datum::Int4(new.typmod));
                    row.set("attlen", Datum::Int2(info.map_or(-1, |i| i.len)));
                })?;
                let at = usize::try_from(number - 1).unwrap_or(0);
                if at < index.key_columns {
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
