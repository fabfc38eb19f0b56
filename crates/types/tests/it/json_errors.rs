//! What is wrong with text that is no json: PostgreSQL 18's detail and context.

use crate::functions::unescaped;
use crate::{input, oid_of};
use types::env::PlainEnv;
use types::{Datum, FunctionBody, registry};

/// Reads json, jsonb, or takes a field of json (`->`), which makes characters of escapes.
fn read(what: &str, text: &str) -> base::Result<Datum> {
    if what != "->" {
        return input(what, text);
    }
    let json = input("json", text)?;
    let field = registry::function_exact("json_object_field", &["json", "text"].map(oid_of));
    let Some(FunctionBody::Scalar(body)) = field.map(|f| &f.body) else { panic!("no ->") };
    body(&PlainEnv, &[json, Datum::text("x")])
}

#[test]
fn every_complaint_is_postgresql_s() {
    let mut wrong = Vec::new();
    for line in include_str!("json_errors.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [what, text, wanted] = fields[..] else { panic!("{line}") };
        let got = match read(what, &unescaped(text)) {
            Ok(_) => "ok".to_owned(),
            Err(base::Error::Sql(e)) => format!(
                "{}|{}|{}",
                e.state,
                e.detail.unwrap_or_default(),
                e.context.unwrap_or_default()
            ),
            Err(e) => panic!("{e}"),
        };
        if got != unescaped(wanted) {
            wrong.push(format!("{what} {text}\n  wanted {wanted}\n  got    {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
