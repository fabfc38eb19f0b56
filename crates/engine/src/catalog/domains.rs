//! Domains in the catalogs: `pg_type` and `pg_constraint`.

use super::load::{RowSource, stored_expr};
use super::model::Column;
use super::rows::Row;
use super::store::Catalogs;
use base::{Error, Oid, Result};
use expr::code::Code;
use expr::{Expr, TypeRef};
use std::sync::Arc;
use types::Datum;
use types::domains::{is_domain, is_domain_array};

/// A CHECK of a domain.
#[derive(Debug)]
pub struct DomainCheck {
    /// Its name.
    pub name: String,
    /// The condition over a row whose one column is the value.
    pub code: Code,
}

/// What values of a domain must satisfy: its own constraints and those of the domains below.
#[derive(Debug, Default)]
pub struct DomainConstraints {
    /// NULL is refused.
    pub not_null: bool,
    /// Those of the domains below first; of one domain in order of their names.
    pub checks: Vec<DomainCheck>,
}

/// The condition of a domain's CHECK, whose value is the column 1 of entry 0, compiled.
///
/// # Errors
/// `0A000` for functions that are not there.
pub fn compile_check(expr: &Expr) -> Result<Code> {
    let mut expr = expr.clone();
    expr.rewrite(&mut |e| {
        if let Expr::Var { ty, .. } = e {
            *e = Expr::Slot { index: 0, ty: *ty };
        }
        false
    });
    expr::code::compile(&expr)
}

fn type_row(source: &dyn RowSource, oid: Oid) -> Result<Option<Row>> {
    Ok(source.find("pg_type", &[("oid", Datum::Oid(oid))])?.into_iter().next())
}

impl DomainConstraints {
    /// Those of domain `oid`.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn load(source: &dyn RowSource, oid: Oid) -> Result<DomainConstraints> {
        let mut found = DomainConstraints::default();
        let mut levels = Vec::new();
        let mut next = oid;
        while is_domain(next) {
            let Some(row) = type_row(source, next)? else { break };
            found.not_null |= row.bool("typnotnull");
            levels.push(next);
            next = row.oid("typbasetype");
        }
        for level in levels.into_iter().rev() {
            let mut rows = source.find("pg_constraint", &[("contypid", Datum::Oid(level))])?;
            rows.retain(|r| r.char("contype") == b'c');
            rows.sort_by(|a, b| a.text("conname").cmp(b.text("conname")));
            for row in rows {
                let code = compile_check(&*stored_expr(row.text("conbin"))?)?;
                found.checks.push(DomainCheck { name: row.text("conname").to_owned(), code });
            }
        }
        Ok(found)
    }
}

/// The type and modifier of the values of a type: of a domain, or array of one, what is below it; and the domain's own row. The base of a
/// domain is read from the catalogs here, and not from what is noted of it, for who reads pages does so by it.
fn base_of(source: &dyn RowSource, oid: Oid) -> Result<(TypeRef, Option<Row>)> {
    let missing = || Error::corrupt_file(format!("domain {oid} has no pg_type row"));
    if is_domain_array(oid) {
        let element = type_row(source, oid)?.ok_or_else(missing)?.oid("typelem");
        let (base, _) = base_of(source, element)?;
        let array = types::type_info(base.oid).map(|t| t.array).ok_or_else(missing)?;
        return Ok((TypeRef { oid: array, typmod: base.typmod }, None));
    }
    let own = type_row(source, oid)?.ok_or_else(missing)?;
    let mut base = TypeRef { oid: own.oid("typbasetype"), typmod: own.i32("typtypmod") };
    while is_domain(base.oid) {
        let row = type_row(source, base.oid)?.ok_or_else(missing)?;
        base = TypeRef { oid: row.oid("typbasetype"), typmod: row.i32("typtypmod") };
    }
    Ok((base, Some(own)))
}

/// The type of the values of a column that is said to be of a type.
pub(super) fn plain(source: &dyn RowSource, oid: Oid, typmod: i32) -> Result<TypeRef> {
    match types::domains::OIDS.contains(&oid.0) {
        true => Ok(base_of(source, oid)?.0),
        false => Ok(TypeRef { oid, typmod }),
    }
}

/// Makes a column that `pg_attribute` says is of a domain one of the base type. It has the domain's default if it has none of its own.
///
/// # Errors
/// I/O, corruption.
pub(super) fn resolve(source: &dyn RowSource, column: &mut Column) -> Result<()> {
    if !types::domains::OIDS.contains(&column.declared.0) {
        return Ok(());
    }
    let (base, own) = base_of(source, column.declared)?;
    column.ty = base;
    if column.default.is_none()
        && let Some(text) = own.as_ref().and_then(|r| r.text_opt("typdefaultbin"))
    {
        let value = stored_expr(text)?;
        column.domain_default = Some(Arc::new(Expr::CoerceToDomain {
            arg: Box::new((*value).clone()),
            domain: column.declared.0,
            ty: base,
            explicit: false,
        }));
    }
    Ok(())
}

/// Notes the domains of a database ([`types::domains`]).
///
/// # Errors
/// I/O, corruption.
pub fn learn(catalogs: &Catalogs<'_>) -> Result<()> {
    let columns = ["oid", "typname", "typbasetype", "typtypmod"];
    let mut found = Vec::new();
    catalogs.scan_columns("pg_type", &columns, &mut |row| {
        if let [Datum::Oid(oid), Datum::Text(name), Datum::Oid(below), Datum::Int4(typmod)] = row
            && types::domains::OIDS.contains(&oid.0)
        {
            found.push((*oid, name.clone(), *below, *typmod));
        }
        Ok(true)
    })?;
    // A domain over another comes after that, whatever their OIDs.
    let mut left: Vec<_> = found.iter().filter(|f| is_domain(f.0)).collect();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|(oid, name, below, typmod)| {
            if is_domain(*below) && types::domains::base(*below).is_none() {
                return true;
            }
            let array = found.iter().find(|f| f.0.0 == oid.0 + 1).map_or("", |f| f.1.as_str());
            types::domains::learn(*oid, name.as_str(), array, *below, *typmod);
            false
        });
        if left.len() == before {
            return Err(Error::corrupt_file("a domain in pg_type is over none that is there"));
        }
    }
    Ok(())
}
