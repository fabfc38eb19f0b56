//! Tables of inputs and the answers of PostgreSQL 18.

mod coverage;
mod forms;
mod functions;
mod fuzz;
mod resolution;

use base::{Oid, Result};
use types::env::PlainEnv;
use types::{Datum, FunctionBody, registry, text_input, type_by_name};

pub(crate) fn oid_of(name: &str) -> Oid {
    type_by_name(name).unwrap_or_else(|| panic!("no type {name}")).oid
}

pub(crate) fn input(ty: &str, text: &str) -> Result<Datum> {
    text_input(oid_of(ty), -1, text, &PlainEnv)
}

pub(crate) fn output(ty: &str, value: &Datum) -> String {
    if value.is_null() {
        return "NULL".to_owned();
    }
    types::io::to_text(oid_of(ty), value, &PlainEnv).unwrap_or_else(|e| panic!("{e}"))
}

/// Calls a function with its signature's types: `call("int4pl(int4,int4)", &["1", "2"])`. The answer is in text form, or
/// the error's message. A set's rows are joined by `|`.
pub(crate) fn call(signature: &str, arguments: &[&str]) -> String {
    let (name, types) = signature.split_once('(').unwrap_or_else(|| panic!("{signature}"));
    let types: Vec<Oid> = types
        .trim_end_matches(')')
        .split(',')
        .filter(|t| !t.is_empty())
        .map(|t| oid_of(t.trim()))
        .collect();
    if let Some(name) = name.strip_prefix("agg ") {
        return aggregate(name, &types, arguments.first().copied().unwrap_or(""));
    }
    let name = name.trim_matches('"');
    let found = registry::function_exact(name, &types).or_else(|| {
        registry::functions_by_name(name)
            .iter()
            .find(|f| f.args.len() == types.len() || f.variadic.0 != 0)
            .copied()
    });
    let Some(f) = found else { return format!("no function {signature}") };
    let mut args = Vec::new();
    for (ty, text) in types.iter().zip(arguments) {
        args.push(if *text == "NULL" {
            Datum::Null
        } else {
            match text_input(*ty, -1, text, &PlainEnv) {
                Ok(d) => d,
                Err(e) => return error(&e),
            }
        });
    }
    if f.strict && args.iter().any(Datum::is_null) {
        return "NULL".to_owned();
    }
    let result = match f.body {
        FunctionBody::Scalar(body) => body(&PlainEnv, &args),
        FunctionBody::ScalarTyped(body) => body(&PlainEnv, &args, &types, f.result),
        FunctionBody::Set(body) => {
            let rows = match body(&PlainEnv, &args) {
                Ok(rows) => rows,
                Err(e) => return error(&e),
            };
            let mut out = Vec::new();
            for row in rows {
                match row {
                    Ok(row) => out.push(
                        row.iter()
                            .map(|d| show(types::io::natural_type(d), d))
                            .collect::<Vec<_>>()
                            .join(","),
                    ),
                    Err(e) => return error(&e),
                }
            }
            return if out.is_empty() { "NULL".to_owned() } else { out.join("|") };
        }
        _ => panic!("{signature} is no scalar function"),
    };
    match result {
        Ok(d) => {
            let ty = if types::type_info(f.result).is_some_and(|t| t.kind == 'p') {
                types::io::natural_type(&d)
            } else {
                f.result
            };
            show(ty, &d)
        }
        Err(e) => error(&e),
    }
}

fn error(e: &base::Error) -> String {
    format!("ERROR {}: {e}", e.state())
}

fn show(ty: Oid, d: &Datum) -> String {
    if d.is_null() {
        return "NULL".to_owned();
    }
    types::io::to_text(ty, d, &PlainEnv).unwrap_or_else(|e| error(&e))
}

fn aggregate(name: &str, types: &[Oid], rows: &str) -> String {
    let found = registry::function_exact(name, types).or_else(|| {
        registry::functions_by_name(name)
            .iter()
            .find(|f| {
                let polymorphic = f.args.first().is_some_and(|a| {
                    types::type_info(*a).is_some_and(|t| t.kind == 'p')
                        && (types::type_info(types[0]).is_some_and(types::TypeInfo::is_array)
                            == (*a == types::oids::ANYARRAY))
                });
                f.args.len() == types.len() && polymorphic
            })
            .copied()
    });
    let Some(f) = found else { return format!("no aggregate {name}") };
    let FunctionBody::Aggregate(make) = f.body else { return "no aggregate".to_owned() };
    let mut state = make(types, f.result);
    for row in rows.split(';') {
        let mut args = Vec::new();
        for (ty, text) in types.iter().zip(row.split('/')) {
            args.push(match text.trim() {
                "NULL" => Datum::Null,
                text => text_input(*ty, -1, text, &PlainEnv).unwrap_or_else(|e| panic!("{e}")),
            });
        }
        if let Err(e) = state.add(&PlainEnv, &args) {
            return error(&e);
        }
    }
    match state.finish(&PlainEnv) {
        Ok(d) => show(types::io::natural_type(&d), &d),
        Err(e) => error(&e),
    }
}
