//! The statements that PostgreSQL would run for a foreign key: what an error that is met in between tells as its context.
//!
//! # Differs from PostgreSQL
//! No such statement is run; the same rows are found, locked and changed without one.

use base::{Oid, Result};
use engine::catalog::model::{ForeignKey, ReferentialAction, Table};
use std::fmt::Write;
use types::{oids, registry, type_info};

/// What is done for a constraint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// The referenced row is looked for and kept.
    Referenced,
    /// Rows that refer are looked for.
    Referring,
    /// They are changed; `true`: by an update of the key.
    Action(ReferentialAction, bool),
}

/// `result`, with the statement that met its error.
pub(super) fn within<T>(
    result: Result<T>,
    asked: Asked,
    key: &ForeignKey,
    parent: &Table,
    child: &Table,
) -> Result<T> {
    result.map_err(|error| {
        error.within(format_args!("SQL statement \"{}\"", statement(asked, key, parent, child)))
    })
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn relation(t: &Table) -> String {
    format!("{}.{}", quoted(&t.namespace_name), quoted(&t.name))
}

/// The type that `=` takes for values of this one where it is not that itself.
fn operand(ty: Oid) -> Oid {
    match type_info(ty) {
        _ if ty == oids::VARCHAR => oids::TEXT,
        _ if ty == oids::CIDR => oids::INET,
        _ if types::enums::is_enum(ty) => oids::ANYENUM,
        _ if types::row_types::is_row(ty) => oids::RECORD,
        Some(info) if info.is_array() => oids::ANYARRAY,
        _ => ty,
    }
}

fn cast(from: Oid, to: Oid) -> String {
    match type_info(to) {
        Some(info) if from != to => format!("::pg_catalog.{}", types::quote_ident(info.name)),
        _ => String::new(),
    }
}

/// `key = value` for each column, the `first`th parameter on; the referenced side stands left.
fn condition(
    key: &ForeignKey,
    parent: &Table,
    child: &Table,
    first: usize,
    of_parent: bool,
) -> String {
    let mut text = String::new();
    for (i, (c, p)) in key.columns.iter().zip(&key.referenced_columns).enumerate() {
        let (fk, pk) = (&child.columns[*c as usize - 1], &parent.columns[*p as usize - 1]);
        let (mut left, mut right) = (operand(pk.ty.oid), operand(fk.ty.oid));
        let equals = registry::operators_by_name("=");
        let known = left == right || equals.iter().any(|o| o.left == left && o.right == right);
        if !known {
            // The referring value becomes one of the referenced type, or else the other way round.
            let implicit = registry::cast(right, left)
                .is_some_and(|c| c.context == types::CastContext::Implicit);
            (left, right) = if implicit { (left, left) } else { (right, right) };
        }
        let value = format!("${}", first + i);
        let (pk_text, fk_text) = match of_parent {
            true => (quoted(&pk.name), value),
            false => (value, quoted(&fk.name)),
        };
        let word = if i == 0 { "WHERE" } else { "AND" };
        let _ = write!(
            text,
            " {word} {pk_text}{} OPERATOR(pg_catalog.=) {fk_text}{}",
            cast(pk.declared, left),
            cast(fk.declared, right)
        );
    }
    text
}

fn statement(asked: Asked, key: &ForeignKey, parent: &Table, child: &Table) -> String {
    let look = |t: &Table, of_parent| {
        let condition = condition(key, parent, child, 1, of_parent);
        format!("SELECT 1 FROM ONLY {} x{condition} FOR KEY SHARE OF x", relation(t))
    };
    let (action, updated) = match asked {
        Asked::Referenced => return look(parent, true),
        Asked::Referring => return look(child, false),
        Asked::Action(action, updated) => (action, updated),
    };
    let name = relation(child);
    if action == ReferentialAction::Cascade && !updated {
        return format!("DELETE FROM ONLY {name}{}", condition(key, parent, child, 1, false));
    }
    let cascades = action == ReferentialAction::Cascade;
    let set = |(i, c): (usize, &i32)| {
        let column = quoted(&child.columns[*c as usize - 1].name);
        match action {
            _ if cascades => format!("{column} = ${}", i + 1),
            ReferentialAction::SetDefault => format!("{column} = DEFAULT"),
            _ => format!("{column} = NULL"),
        }
    };
    let all = updated || key.on_delete_columns.is_empty();
    let columns = key.columns.iter().enumerate();
    let list: Vec<String> =
        columns.filter(|(_, c)| all || key.on_delete_columns.contains(c)).map(set).collect();
    let first = if cascades { key.columns.len() + 1 } else { 1 };
    let condition = condition(key, parent, child, first, false);
    format!("UPDATE ONLY {name} SET {}{condition}", list.join(", "))
}
