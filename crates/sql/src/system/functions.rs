//! What functions look like (`pg_get_function_*`), and what an object is called.

use super::extensions;
use super::names::{self, row_by_oid};
use super::{Bodies, state, text_or_null};
use base::{Oid, Result};
use engine::catalog::defs;
use engine::catalog::model::CatalogView;
use std::fmt::Write as _;
use types::FunctionBody::Scalar;
use types::args::{int4, oid};
use types::facts::ProcFact;
use types::{Datum, facts, format_type, quote_ident};

pub(super) const BODIES: Bodies = &[
    ("pg_get_function_arguments", Scalar(|_, a| Ok(text_or_null(arguments_of(oid(a, 0)?, true))))),
    (
        "pg_get_function_identity_arguments",
        Scalar(|_, a| Ok(text_or_null(arguments_of(oid(a, 0)?, false)))),
    ),
    (
        "pg_get_function_result",
        Scalar(|_, a| {
            let oid = oid(a, 0)?;
            let of_extension = || extensions::signature(oid).map(|s| s.result_text());
            Ok(text_or_null(facts::proc(oid).map(result).or_else(of_extension)))
        }),
    ),
    ("pg_get_function_sqlbody", Scalar(|_, _| Ok(Datum::Null))),
    (
        "pg_get_function_arg_default",
        Scalar(|_, a| {
            let Some(p) = facts::proc(oid(a, 0)?) else { return Ok(Datum::Null) };
            let first = p.args.len().saturating_sub(usize::from(p.defaults));
            let n = usize::try_from(int4(a, 1)?).ok().and_then(|n| n.checked_sub(first + 1));
            let text = n.and_then(|n| p.default_text.split('|').nth(n));
            Ok(text_or_null(text.filter(|_| p.defaults > 0)))
        }),
    ),
    (
        "pg_get_functiondef",
        Scalar(|_, a| Ok(text_or_null(facts::proc(oid(a, 0)?).map(definition)))),
    ),
    ("pg_describe_object", Scalar(|env, a| describe(env, oid(a, 0)?, oid(a, 1)?, int4(a, 2)?))),
];

fn arguments_of(function: Oid, whole: bool) -> Option<String> {
    let of_extension = || extensions::signature(function).map(|s| s.arguments(whole));
    facts::proc(function).map(|p| arguments(p, whole)).or_else(of_extension)
}

/// `(name type DEFAULT value, OUT name type, …)` without the parentheses.
fn arguments(p: &ProcFact, defaults: bool) -> String {
    let all: &[Oid] = if p.all_args.is_empty() { p.args } else { p.all_args };
    let first_default = p.args.len().saturating_sub(usize::from(p.defaults));
    let default_texts: Vec<&str> = p.default_text.split('|').collect();
    let (mut out, mut inputs) = (String::new(), 0usize);
    for (i, ty) in all.iter().enumerate() {
        let mode = p.modes.get(i).copied().unwrap_or("i");
        let input = matches!(mode, "i" | "b" | "v");
        inputs += usize::from(input);
        if mode == "t" {
            continue;
        }
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(match mode {
            "o" => "OUT ",
            "b" => "INOUT ",
            "v" => "VARIADIC ",
            _ => "",
        });
        if let Some(name) = p.arg_names.get(i).filter(|n| !n.is_empty()) {
            let _ = write!(out, "{} ", quote_ident(name));
        }
        out.push_str(&format_type(*ty, -1));
        if defaults && input && p.defaults > 0 && inputs > first_default {
            let text = default_texts.get(inputs - 1 - first_default).copied().unwrap_or("NULL");
            let _ = write!(out, " DEFAULT {text}");
        }
    }
    // Aggregates over nothing in particular, and ordered-set ones.
    if p.kind == 'a'
        && let Some(aggregate) = facts::aggregate(p.oid)
        && aggregate.kind != 'n'
    {
        let direct = usize::from(aggregate.direct_args);
        let parts: Vec<&str> = out.split(", ").collect();
        let (left, right) = parts.split_at(direct.min(parts.len()));
        let right = if right.is_empty() {
            left.last().into_iter().copied().collect()
        } else {
            right.to_vec()
        };
        let left = left.join(", ");
        let gap = if left.is_empty() { "" } else { " " };
        return format!("{left}{gap}ORDER BY {}", right.join(", "));
    }
    out
}

fn result(p: &ProcFact) -> String {
    let columns: Vec<String> = p
        .modes
        .iter()
        .enumerate()
        .filter(|(_, mode)| **mode == "t")
        .map(|(i, _)| {
            let name = p.arg_names.get(i).copied().unwrap_or("");
            let ty = p.all_args.get(i).copied().unwrap_or_default();
            format!("{} {}", quote_ident(name), format_type(ty, -1))
        })
        .collect();
    if !columns.is_empty() {
        return format!("TABLE({})", columns.join(", "));
    }
    let set = if p.returns_set { "SETOF " } else { "" };
    format!("{set}{}", format_type(p.result, -1))
}

fn definition(p: &ProcFact) -> String {
    let mut out = format!(
        "CREATE OR REPLACE FUNCTION pg_catalog.{}({})\n RETURNS {}\n LANGUAGE {}\n",
        quote_ident(p.name),
        arguments(p, true),
        result(p),
        p.language
    );
    let mut words = Vec::new();
    if p.kind == 'w' {
        words.push("WINDOW".to_owned());
    }
    match p.volatility {
        'i' => words.push("IMMUTABLE".to_owned()),
        's' => words.push("STABLE".to_owned()),
        _ => {}
    }
    match p.parallel {
        's' => words.push("PARALLEL SAFE".to_owned()),
        'r' => words.push("PARALLEL RESTRICTED".to_owned()),
        _ => {}
    }
    if p.strict {
        words.push("STRICT".to_owned());
    }
    if p.leakproof {
        words.push("LEAKPROOF".to_owned());
    }
    #[expect(clippy::float_cmp, reason = "a default that is stored exactly")]
    if p.cost != 1.0 {
        words.push(format!("COST {}", p.cost));
    }
    #[expect(clippy::float_cmp, reason = "a default that is stored exactly")]
    if p.returns_set && p.rows != 1000.0 {
        words.push(format!("ROWS {}", p.rows));
    }
    if !words.is_empty() {
        let _ = writeln!(out, " {}", words.join(" "));
    }
    let source = if p.symbol.is_empty() { p.name } else { p.symbol };
    let _ = writeln!(out, "AS $function${source}$function$");
    out
}

fn describe(env: &dyn types::Env, class: Oid, object: Oid, sub: i32) -> Result<Datum> {
    let state = state(env)?;
    let Some(def) = defs::by_oid(class) else { return Ok(Datum::Null) };
    let named = |catalog: &str, column: &str, what: &str| -> Result<Datum> {
        let row = row_by_oid(state, catalog, "oid", object)?;
        Ok(text_or_null(row.map(|r| format!("{what} {}", quote_ident(r.text(column))))))
    };
    match def.name {
        "pg_class" => {
            let Some(table) = state.table_by_oid(object)? else { return Ok(Datum::Null) };
            let noun = crate::acl::noun(table.kind);
            let text = format!("{noun} {}", names::relation_name(state, &table));
            let column = usize::try_from(sub - 1).ok().and_then(|i| table.columns.get(i));
            Ok(Datum::text(match column {
                Some(column) => format!("column {} of {text}", quote_ident(&column.name)),
                None => text,
            }))
        }
        "pg_namespace" => named("pg_namespace", "nspname", "schema"),
        "pg_default_acl" => {
            let row = row_by_oid(state, "pg_default_acl", "oid", object)?;
            let described = row.map(|row| crate::ddl::default_acl::describe(state, &row));
            Ok(text_or_null(described.transpose()?))
        }
        "pg_authid" => named("pg_authid", "rolname", "role"),
        "pg_database" => named("pg_database", "datname", "database"),
        "pg_language" => named("pg_language", "lanname", "language"),
        "pg_tablespace" => named("pg_tablespace", "spcname", "tablespace"),
        "pg_constraint" => {
            let Some(row) = row_by_oid(state, "pg_constraint", "oid", object)? else {
                return Ok(Datum::Null);
            };
            let name = row.text("conname");
            if !row.oid("conrelid").is_valid() {
                return Ok(Datum::text(format!("constraint {name}")));
            }
            let table = names::relation_name_by_oid(state, row.oid("conrelid"));
            Ok(Datum::text(format!("constraint {name} on table {table}")))
        }
        "pg_trigger" => {
            let Some(row) = row_by_oid(state, "pg_trigger", "oid", object)? else {
                return Ok(Datum::Null);
            };
            let table = names::relation_name_by_oid(state, row.oid("tgrelid"));
            Ok(Datum::text(format!("trigger {} on table {table}", row.text("tgname"))))
        }
        catalog @ ("pg_attrdef" | "pg_rewrite" | "pg_extension" | "pg_statistic_ext") => {
            let there = row_by_oid(state, catalog, "oid", object)?.is_some();
            let it = crate::ddl::depend::Object::of(catalog, object);
            let text = there.then(|| crate::ddl::drop::describe(state, it)).transpose()?;
            Ok(text_or_null(text))
        }
        "pg_type" => Ok(text_or_null(
            names::type_name(state, object, Some(-1)).map(|name| format!("type {name}")),
        )),
        "pg_proc" => {
            let known = facts::proc(object).map(|p| (p.name, p.args));
            let known = known.or_else(|| extensions::signature(object).map(|s| (s.name, s.args)));
            Ok(text_or_null(known.map(|(name, args)| {
                let args: Vec<String> = args.iter().map(|a| format_type(*a, -1)).collect();
                format!("function {}({})", quote_ident(name), args.join(","))
            })))
        }
        _ => Ok(Datum::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> &'static ProcFact {
        facts::procs_by_name(name)[0]
    }

    #[test]
    fn functions_print_as_in_postgresql() {
        assert_eq!(
            definition(one("now")),
            "CREATE OR REPLACE FUNCTION pg_catalog.now()\n RETURNS timestamp with time zone\n \
             LANGUAGE internal\n STABLE PARALLEL SAFE STRICT\nAS $function$now$function$\n"
        );
        assert_eq!(
            arguments(one("pg_terminate_backend"), true),
            "pid integer, timeout bigint DEFAULT 0"
        );
        assert_eq!(arguments(one("pg_terminate_backend"), false), "pid integer, timeout bigint");
        assert_eq!(result(one("pg_lock_status")), "SETOF record");
    }
}
