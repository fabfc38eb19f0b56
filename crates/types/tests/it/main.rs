//! Tables of inputs and the answers of PostgreSQL 18.

mod agreement;
mod forms;
mod functions;
mod fuzz;

mod json_errors;
mod readers;
mod received;
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
    let (env, signature) = match signature.strip_prefix('@') {
        Some(rest) => {
            let (settings, signature) = rest.split_once(' ').unwrap_or((rest, ""));
            (Session::with(settings), signature)
        }
        None => (Session(types::Style::default()), signature),
    };
    call_in(&env, signature, arguments)
}

/// A session with settings of its own.
struct Session(types::Style);

impl Session {
    /// `TimeZone=Europe/Berlin;DateStyle=German`
    fn with(settings: &str) -> Session {
        use types::env::{DateOrder, DateStyle, IntervalStyle};
        let mut style = types::Style::default();
        for pair in settings.split(';') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "TimeZone" => {
                    let zone = types::datetime::zone::TimeZone::by_name(value);
                    style.time_zone = std::sync::Arc::new(zone.expect(value));
                }
                "DateStyle" => {
                    for word in value.split(',') {
                        match word {
                            "ISO" => style.date_style = DateStyle::Iso,
                            "SQL" => style.date_style = DateStyle::Sql,
                            "Postgres" => style.date_style = DateStyle::Postgres,
                            "German" => {
                                style.date_style = DateStyle::German;
                                style.date_order = DateOrder::Dmy;
                            }
                            "DMY" => style.date_order = DateOrder::Dmy,
                            "MDY" => style.date_order = DateOrder::Mdy,
                            "YMD" => style.date_order = DateOrder::Ymd,
                            other => panic!("{other}"),
                        }
                    }
                }
                "IntervalStyle" => {
                    style.interval_style = match value {
                        "postgres_verbose" => IntervalStyle::PostgresVerbose,
                        "sql_standard" => IntervalStyle::SqlStandard,
                        "iso_8601" => IntervalStyle::Iso8601,
                        _ => IntervalStyle::Postgres,
                    }
                }
                other => panic!("{other}"),
            }
        }
        Session(style)
    }
}

impl types::Env for Session {
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    fn style(&self) -> &types::Style {
        &self.0
    }
    fn transaction_timestamp(&self) -> i64 {
        0
    }
    fn statement_timestamp(&self) -> i64 {
        0
    }
    fn check_cancel(&self) -> Result<()> {
        Ok(())
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn call_in(env: &Session, signature: &str, arguments: &[&str]) -> String {
    let (name, types) = signature.split_once('(').unwrap_or_else(|| panic!("{signature}"));
    let types: Vec<Oid> = types
        .trim_end_matches(')')
        .split(',')
        .filter(|t| !t.is_empty())
        .map(|t| oid_of(t.trim()))
        .collect();
    if let Some(name) = name.strip_prefix("agg ") {
        return aggregate(env, name, &types, arguments.first().copied().unwrap_or(""));
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
            match text_input(*ty, -1, text, env) {
                Ok(d) => d,
                Err(e) => return error(&e),
            }
        });
    }
    if f.strict && args.iter().any(Datum::is_null) {
        return "NULL".to_owned();
    }
    let result = match f.body {
        FunctionBody::Scalar(body) => body(env, &args),
        FunctionBody::ScalarTyped(body) => body(env, &args, &types, f.result),
        FunctionBody::Set(body) => {
            let rows = match body(env, &args) {
                Ok(rows) => rows,
                Err(e) => return error(&e),
            };
            let mut out = Vec::new();
            for row in rows {
                match row {
                    Ok(row) => out.push(match row.as_slice() {
                        [d] => show(env, types::io::natural_type(d), d),
                        _ => show(env, types::oids::RECORD, &record(row)),
                    }),
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
            show(env, ty, &d)
        }
        Err(e) => error(&e),
    }
}

fn error(e: &base::Error) -> String {
    format!("ERROR {}: {e}", e.state())
}

fn record(row: Vec<Datum>) -> Datum {
    let columns: Vec<types::RecordColumn> = row
        .iter()
        .map(|d| types::RecordColumn {
            name: types::Text::from("c"),
            type_oid: types::io::natural_type(d),
            typmod: -1,
        })
        .collect();
    Datum::Record(std::sync::Arc::new(types::RecordValue {
        type_oid: types::oids::RECORD,
        columns: columns.into(),
        fields: row,
    }))
}

fn show(env: &Session, ty: Oid, d: &Datum) -> String {
    if d.is_null() {
        return "NULL".to_owned();
    }
    types::io::to_text(ty, d, env).unwrap_or_else(|e| error(&e))
}

fn aggregate(env: &Session, name: &str, types: &[Oid], rows: &str) -> String {
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
                text => text_input(*ty, -1, text, env).unwrap_or_else(|e| panic!("{e}")),
            });
        }
        if let Err(e) = state.add(env, &args) {
            return error(&e);
        }
    }
    match state.finish(env) {
        Ok(d) => show(env, types::io::natural_type(&d), &d),
        Err(e) => error(&e),
    }
}
