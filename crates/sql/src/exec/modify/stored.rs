//! Expressions that the catalogs keep of a table: defaults, checks, generated columns, index keys and predicates.

use base::Result;
use engine::catalog::model::{Column, Index, Table};
use expr::code::{Code, compile};
use expr::ops::identical;
use expr::tree::Constant;
use expr::{Expr, TypeRef};
use types::Datum;

/// Compiles an expression stored in the catalogs (variables of entry 0) over a row of all attributes.
///
/// # Errors
/// `0A000` for functions that do not exist here.
pub fn compile_stored(e: &Expr) -> Result<Code> {
    compile_stored_of(e, None)
}

/// [`compile_stored`] of a table's expression, which may ask for `tableoid` and for the whole row.
///
/// # Errors
/// `0A000` for functions that do not exist here.
pub fn compile_stored_of(e: &Expr, table: Option<&Table>) -> Result<Code> {
    let mut e = expr::fold::fold(e);
    if let Some(table) = table.filter(|t| t.columns.iter().any(Column::is_virtual)) {
        expand_virtual(&mut e, table);
    }
    e.rewrite(&mut |e| {
        if let Expr::Var { column, ty, .. } = e
            && *column > 0
        {
            *e = Expr::Slot { index: *column as usize - 1, ty: *ty };
            return true;
        }
        if let (Expr::Var { column: -6, ty, .. }, Some(table)) = (&*e, table) {
            *e = Expr::Const(Constant { value: Datum::Oid(table.oid), ty: *ty });
            return true;
        }
        if let (Expr::Var { column: 0, ty, .. }, Some(table)) = (&*e, table) {
            *e = whole_row(table, *ty);
            return false;
        }
        false
    });
    compile(&e)
}

/// Virtual columns are in no row: what they are made of stands for them.
fn expand_virtual(e: &mut Expr, table: &Table) {
    e.rewrite(&mut |e| {
        let Expr::Var { column, ty, .. } = e else { return false };
        if *column == 0 {
            *e = whole_row(table, *ty);
            return false;
        }
        let of = usize::try_from(*column - 1).ok().and_then(|at| table.columns.get(at));
        if let Some(value) = of.and_then(Column::virtual_value) {
            *e = (**value).clone();
        }
        true
    });
}

fn whole_row(table: &Table, ty: TypeRef) -> Expr {
    let live = || table.columns.iter().enumerate().filter(|(_, c)| !c.dropped);
    let field = |(_, c): (usize, &Column)| {
        let ty = TypeRef { oid: c.ty.oid, typmod: c.ty.typmod };
        Expr::Var { levels_up: 0, rte: 0, column: c.number, ty }
    };
    let names = live().map(|(_, c)| c.name.clone()).collect();
    Expr::Row { fields: live().map(field).collect(), names, ty }
}

/// Columns that a stored expression reads.
fn columns_of(e: &Expr, out: &mut Vec<i32>) {
    e.walk(&mut |e| {
        if let Expr::Var { column, .. } = e {
            out.push(*column);
        }
    });
}

/// Columns on which an index's entries depend.
pub(crate) fn columns_of_index(index: &Index) -> Vec<i32> {
    let mut out = Vec::new();
    for c in &index.columns {
        match &c.expr {
            Some(e) => columns_of(e, &mut out),
            None => out.push(c.column),
        }
    }
    if let Some(p) = &index.predicate {
        columns_of(p, &mut out);
    }
    out
}

/// A stored generated column.
pub(super) struct Generated {
    pub(super) at: usize,
    pub(super) code: Code,
    /// The columns that it is made of, from 0; None: all, perhaps.
    of: Option<Vec<usize>>,
}

impl Generated {
    pub(super) fn new(at: usize, expr: &Expr, table: &Table) -> Result<Generated> {
        let mut columns = Vec::new();
        columns_of(expr, &mut columns);
        // Where the row is, is not what it is made of; the whole row is all of it.
        columns.retain(|c| *c >= 0);
        let of = columns.iter().map(|c| usize::try_from(*c - 1).ok()).collect();
        Ok(Generated { at, code: compile_stored_of(expr, Some(table))?, of })
    }

    /// Is it made of the same as before? Then it is the same.
    pub(super) fn stays(&self, old: &[Datum], new: &[Datum]) -> bool {
        let same =
            |i: &usize| matches!((old.get(*i), new.get(*i)), (Some(a), Some(b)) if identical(a, b));
        !old.is_empty() && self.of.as_ref().is_some_and(|of| of.iter().all(same))
    }
}
