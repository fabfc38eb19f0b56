//! Indexes and constraints, as `pg_get_indexdef` and `pg_get_constraintdef` print them.

use super::expression;
use super::exprs::{IntoOwnedString, looks_like_function};
use base::Result;
use engine::catalog::model::{Check, ForeignKey, Index, IndexColumn, ReferentialAction, Table};
use std::fmt::Write;
use types::{Env, quote_ident};

fn ident(name: &str) -> String {
    quote_ident(name).into_owned_string()
}

/// What the columns of a table are called, to print its expressions.
pub(crate) fn column_names(t: &Table) -> Vec<String> {
    t.columns.iter().map(|c| c.name.clone()).collect()
}

fn key(i: &Index, n: usize, t: &Table, pretty: bool, env: &dyn Env) -> Result<String> {
    let c = &i.columns[n];
    match &c.expr {
        None => Ok(ident(t.name_of_indexed(c))),
        Some(e) => {
            let text = expression(e, &column_names(t), pretty, env)?;
            Ok(if looks_like_function(e) { text } else { format!("({text})") })
        }
    }
}

/// The name of a key's collation, if what is indexed has another one.
fn other_collation(c: &IndexColumn, t: &Table) -> Option<&'static str> {
    let own = match &c.expr {
        Some(e) => crate::analyse::collation::of_expr(e, t),
        None => t.columns.iter().find(|column| column.number == c.column)?.collation,
    };
    let known = types::facts::collations();
    known.iter().find(|known| known.oid == c.collation && c.collation != own).map(|c| c.name)
}

/// CREATE INDEX …; with `column` (from 1) only that column. `qualified`: the table with its schema.
///
/// # Errors
/// Those of printing constants.
pub fn index_definition(
    i: &Index,
    t: &Table,
    column: Option<usize>,
    pretty: bool,
    qualified: bool,
    env: &dyn Env,
) -> Result<String> {
    if let Some(n) = column {
        if n == 0 || n > i.columns.len() {
            return Ok(String::new());
        }
        return key(i, n - 1, t, pretty, env);
    }
    let mut out = String::from(if i.unique { "CREATE UNIQUE INDEX " } else { "CREATE INDEX " });
    out.push_str(&ident(&i.name));
    out.push_str(" ON ");
    if qualified {
        out.push_str(&ident(&t.namespace_name));
        out.push('.');
    }
    out.push_str(&ident(&t.name));
    out.push_str(" USING btree (");
    for n in 0..i.key_columns {
        if n > 0 {
            out.push_str(", ");
        }
        out.push_str(&key(i, n, t, pretty, env)?);
        let c = &i.columns[n];
        if let Some(name) = other_collation(c, t) {
            out.push_str(&format!(" COLLATE {}", ident(name)));
        }
        let default = types::registry::default_btree_class(c.ty.oid).map(|d| d.oid);
        if default != Some(c.opclass) {
            let class = types::facts::operator_classes().iter().find(|o| o.oid == c.opclass);
            if let Some(class) = class {
                out.push(' ');
                out.push_str(class.name);
            }
        }
        if c.descending {
            out.push_str(" DESC");
        }
        if c.nulls_first != c.descending {
            out.push_str(if c.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
    }
    out.push(')');
    if i.key_columns < i.columns.len() {
        out.push_str(&format!(" INCLUDE ({})", column_list(i, t, i.key_columns, i.columns.len())));
    }
    if i.nulls_not_distinct {
        out.push_str(" NULLS NOT DISTINCT");
    }
    if !i.options.is_empty() {
        // A value that could stand as a word does.
        let word = |v: &str| if ident(v) == v { v.to_owned() } else { format!("'{v}'") };
        let list: Vec<String> =
            i.options.iter().map(|(k, v)| format!("{}={}", ident(k), word(v))).collect();
        out.push_str(&format!(" WITH ({})", list.join(", ")));
    }
    if let Some(p) = &i.predicate {
        out.push_str(" WHERE ");
        out.push_str(&expression(p, &column_names(t), pretty, env)?);
    }
    Ok(out)
}

/// `CHECK (…)`
///
/// # Errors
/// Those of printing constants.
pub fn check_definition(c: &Check, t: &Table, pretty: bool, env: &dyn Env) -> Result<String> {
    let text = expression(&c.expr, &column_names(t), pretty, env)?;
    let no_inherit = if c.no_inherit { " NO INHERIT" } else { "" };
    let not_valid = not_valid(c.enforced, c.validated);
    Ok(format!("CHECK ({text}){no_inherit}{not_valid}"))
}

fn not_valid(enforced: bool, validated: bool) -> &'static str {
    match (enforced, validated) {
        (false, _) => " NOT ENFORCED",
        (true, false) => " NOT VALID",
        (true, true) => "",
    }
}

/// The table's names of these columns of an index: its own may be others, to tell them apart.
fn column_list(i: &Index, t: &Table, from: usize, to: usize) -> String {
    let names: Vec<String> =
        i.columns[from..to].iter().map(|c| ident(t.name_of_indexed(c))).collect();
    names.join(", ")
}

/// `PRIMARY KEY (…)`, `UNIQUE (…)` of a constraint's index.
pub fn key_definition(i: &Index, t: &Table) -> String {
    let list = |from: usize, to: usize| column_list(i, t, from, to);
    let mut out = String::from(if i.primary {
        "PRIMARY KEY ("
    } else if i.nulls_not_distinct {
        "UNIQUE NULLS NOT DISTINCT ("
    } else {
        "UNIQUE ("
    });
    out.push_str(&list(0, i.key_columns));
    out.push(')');
    if i.key_columns < i.columns.len() {
        out.push_str(&format!(" INCLUDE ({})", list(i.key_columns, i.columns.len())));
    }
    if !i.options.is_empty() {
        let list: Vec<String> = i.options.iter().map(|(k, v)| format!("{k}='{v}'")).collect();
        out.push_str(&format!(" WITH ({})", list.join(", ")));
    }
    if !i.immediate {
        out.push_str(" DEFERRABLE");
    }
    out
}

/// `FOREIGN KEY (…) REFERENCES …`; `other_name`: the referenced table, qualified where it must be.
pub fn foreign_key_definition(
    f: &ForeignKey,
    t: &Table,
    other: &Table,
    other_name: &str,
) -> String {
    let list = |t: &Table, columns: &[i32]| {
        let names: Vec<String> = columns
            .iter()
            .filter_map(|c| t.columns.get(usize::try_from(*c - 1).ok()?))
            .map(|c| ident(&c.name))
            .collect();
        names.join(", ")
    };
    let mut out = format!(
        "FOREIGN KEY ({}) REFERENCES {other_name}({})",
        list(t, &f.columns),
        list(other, &f.referenced_columns)
    );
    if f.match_full {
        out.push_str(" MATCH FULL");
    }
    for (event, action) in [(" ON UPDATE ", f.on_update), (" ON DELETE ", f.on_delete)] {
        let word = match action {
            ReferentialAction::NoAction => continue,
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
        };
        out.push_str(event);
        out.push_str(word);
    }
    if !f.on_delete_columns.is_empty() {
        // ON DELETE comes last.
        let _ = write!(out, " ({})", list(t, &f.on_delete_columns));
    }
    if f.deferrable {
        out.push_str(" DEFERRABLE");
    }
    if f.deferred {
        out.push_str(" INITIALLY DEFERRED");
    }
    out.push_str(not_valid(f.enforced, f.validated));
    out
}
