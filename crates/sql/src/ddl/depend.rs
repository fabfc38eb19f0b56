//! `pg_depend`: who depends on whom.

use crate::session::SessionState;
use base::{Oid, Result};
use engine::catalog::defs;
use engine::catalog::load::RowSource;
use engine::catalog::rows::NewRow;
use types::Datum;

/// An object: its catalog, OID, and column (0: the whole).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Object {
    /// The catalog's OID.
    pub class: Oid,
    /// The object's OID.
    pub oid: Oid,
    /// A column, or 0.
    pub sub: i32,
}

impl Object {
    /// A relation.
    pub fn relation(oid: Oid) -> Object {
        Object { class: defs::by_name("pg_class").oid, oid, sub: 0 }
    }
    /// A column of a relation.
    pub fn column(oid: Oid, column: i32) -> Object {
        Object { sub: column, ..Object::relation(oid) }
    }
    /// A row of `catalog`.
    pub fn of(catalog: &str, oid: Oid) -> Object {
        Object { class: defs::by_name(catalog).oid, oid, sub: 0 }
    }
}

/// `pg_depend.deptype`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// n: DROP of the one needs CASCADE.
    Normal,
    /// a: goes with the one.
    Auto,
    /// i: goes with the one, and not alone.
    Internal,
    /// e: belongs to an extension.
    Extension,
}

impl Kind {
    /// The letter.
    pub fn letter(self) -> u8 {
        match self {
            Kind::Normal => b'n',
            Kind::Auto => b'a',
            Kind::Internal => b'i',
            Kind::Extension => b'e',
        }
    }
}

/// Notes that `dependent` depends on `on`. Built-in objects can't be dropped, so nothing is noted of them.
///
/// # Errors
/// I/O.
pub fn record(state: &SessionState, dependent: Object, on: Object, kind: Kind) -> Result<()> {
    if on.oid < Oid::FIRST_NORMAL {
        return Ok(());
    }
    let txn = state.txn()?;
    let row = NewRow::of("pg_depend")
        .oid("classid", dependent.class)
        .oid("objid", dependent.oid)
        .int("objsubid", i64::from(dependent.sub))
        .oid("refclassid", on.class)
        .oid("refobjid", on.oid)
        .int("refobjsubid", i64::from(on.sub))
        .char("deptype", kind.letter());
    state.catalog.rows(&txn).insert(&row).map(|_| ())
}

/// Forgets that `dependent` depends on `on`.
///
/// # Errors
/// I/O.
pub fn forget(state: &SessionState, dependent: Object, on: Object) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let key = [("classid", Datum::Oid(dependent.class)), ("objid", Datum::Oid(dependent.oid))];
    for row in rows.find("pg_depend", &key)? {
        if row.oid("refclassid") == on.class
            && row.oid("refobjid") == on.oid
            && row.i32("objsubid") == dependent.sub
        {
            rows.delete(&row)?;
        }
    }
    Ok(())
}

/// Notes that `dependent` uses a type, if that is one that can be dropped: nobody drops it meanwhile.
///
/// # Errors
/// `42704` when the type is not there any more; I/O.
pub fn record_type(state: &SessionState, dependent: Object, ty: Oid) -> Result<()> {
    if super::enums::is_ours(ty) || types::row_types::row_of(ty).is_some() {
        super::enums::lock_used_type(state, ty)?;
    } else if ty < Oid::FIRST_NORMAL {
        return Ok(());
    }
    // The array type over a system catalog's row type stays as that does.
    if types::row_types::row_of(ty).is_some_and(|row| row < Oid::FIRST_NORMAL) {
        return Ok(());
    }
    // A table's row type, too, is not to go while a column is of it.
    record(state, dependent, Object::of("pg_type", ty), Kind::Normal)
}

/// Adds the types of users that an expression mentions.
pub fn types_of(expr: &expr::Expr, types: &mut std::collections::BTreeSet<Oid>) {
    expr.walk(&mut |e| types_of_node(e, types));
}

/// As [`types_of`], of one node.
pub(super) fn types_of_node(e: &expr::Expr, types: &mut std::collections::BTreeSet<Oid>) {
    if let expr::Expr::CoerceToDomain { domain, .. } = e {
        types.insert(Oid(*domain));
    }
    if !matches!(e, expr::Expr::Var { .. }) && super::enums::is_ours(e.ty().oid) {
        types.insert(e.ty().oid);
    }
}

/// Notes the columns of `table` that a stored expression of `dependent` uses, and sequences it calls.
///
/// # Errors
/// I/O.
pub fn record_expr(
    state: &SessionState,
    dependent: Object,
    table: Oid,
    expr: &expr::Expr,
    kind: Kind,
) -> Result<()> {
    let mut columns = std::collections::BTreeSet::new();
    let mut sequences = std::collections::BTreeSet::new();
    expr.walk(&mut |e| match e {
        expr::Expr::Var { column, .. } if *column > 0 => {
            columns.insert(*column);
        }
        expr::Expr::Const(c) if c.ty.oid == types::oids::REGCLASS => {
            if let types::Datum::Oid(oid) = c.value {
                sequences.insert(oid);
            }
        }
        _ => {}
    });
    for column in columns {
        record(state, dependent, Object::column(table, column), kind)?;
    }
    for sequence in sequences {
        record(state, dependent, Object::relation(sequence), Kind::Normal)?;
    }
    let mut types = std::collections::BTreeSet::new();
    types_of(expr, &mut types);
    for ty in types {
        record_type(state, dependent, ty)?;
    }
    Ok(())
}
