//! `pg_depend`: who depends on whom.

use crate::session::SessionState;
use base::{Oid, Result};
use engine::catalog::defs;
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;
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
    // Catalogs' row types stay, and the arrays over them.
    let row = types::row_types::row_of(ty).unwrap_or(ty);
    if row < Oid::FIRST_NORMAL {
        return Ok(());
    }
    super::enums::lock_used_type(state, ty)?;
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
    let ty = e.ty().oid;
    if names_type(e) && is_of_users(ty) {
        types.insert(ty);
    }
}

/// An enum, a domain, a relation's row type, or an array of such?
pub(super) fn is_of_users(ty: Oid) -> bool {
    super::enums::is_ours(ty) || is_of_rows(ty)
}

/// A relation's row type, or the array type over one?
fn is_of_rows(ty: Oid) -> bool {
    let row = types::row_types::row_of(ty).unwrap_or(ty);
    row >= Oid::FIRST_NORMAL && row.0 < types::row_types::ROWS_END
}

/// Does this node itself say of which type its value is? That of others follows from what they are made of, and goes with it.
pub(super) fn names_type(e: &expr::Expr) -> bool {
    use expr::Expr as E;
    matches!(
        e,
        E::Const(_)
            | E::Row { .. }
            | E::FieldStore { .. }
            | E::CoerceViaIo { .. }
            | E::Relabel { .. }
            | E::ArrayCoerce { .. }
            | E::Json(_)
            // NULL
            | E::Case { otherwise: None, .. }
    )
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
    let mut fields = std::collections::BTreeSet::new();
    expr.walk(&mut |e| match e {
        expr::Expr::Field { arg, index, .. } => {
            fields.insert((arg.ty().oid, *index));
        }
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
    let of_others = columns_of_fields(state, fields)?.into_iter().filter(|(of, _)| *of != table);
    for (relation, column) in of_others {
        record(state, dependent, Object::column(relation, column), Kind::Normal)?;
    }
    let mut types = std::collections::BTreeSet::new();
    types_of(expr, &mut types);
    for ty in types {
        record_type(state, dependent, ty)?;
    }
    Ok(())
}

/// The columns on which fields of rows depend, given by the rows' types and the fields' places.
///
/// # Errors
/// I/O.
pub(super) fn columns_of_fields(
    state: &SessionState,
    fields: std::collections::BTreeSet<(Oid, usize)>,
) -> Result<std::collections::BTreeSet<(Oid, i32)>> {
    let mut columns = std::collections::BTreeSet::new();
    for (ty, field) in fields {
        if let Some(table) = state.table_of_row_type(ty)? {
            let mut there = table.columns.iter().filter(|c| !c.dropped);
            columns.extend(there.nth(field).map(|c| (table.oid, c.number)));
        }
    }
    Ok(columns)
}
