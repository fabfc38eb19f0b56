//! Nothing panics: every function over edge values, every decoder over damaged bytes.

use types::env::PlainEnv;
use types::{Datum, FunctionBody, oids, registry, text_input};

/// Edge values of each type, in text form.
const VALUES: &[(&str, &[&str])] = &[
    ("bool", &["t", "f"]),
    ("char", &["a", "", "\\377"]),
    ("int2", &["0", "1", "-1", "32767", "-32768"]),
    ("int4", &["0", "1", "-1", "2147483647", "-2147483648", "20"]),
    ("int8", &["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "63"]),
    ("float4", &["0", "-0", "1.5", "NaN", "Infinity", "-Infinity", "3e38", "1e-45"]),
    ("float8", &["0", "-0", "1.5", "NaN", "Infinity", "-Infinity", "1e308", "5e-324", "0.5"]),
    (
        "numeric",
        &[
            "0",
            "0.000",
            "1",
            "-1.5",
            "NaN",
            "Infinity",
            "-Infinity",
            "1e200",
            "1e-200",
            "99999999999999999999999999999999999999.9",
            "170141183460469231731687303715884105727",
        ],
    ),
    (
        "text",
        &[
            "",
            "a",
            "hällo wörld",
            "%_\\",
            "(a|b)*",
            "[[:alpha:]]+",
            "\\",
            "1",
            "g",
            "hex",
            "UTF8",
            "{1,2}",
        ],
    ),
    ("varchar", &["", "abc"]),
    ("bpchar", &["", "abc  "]),
    ("name", &["", "abc"]),
    ("cstring", &["", "1", "{1}"]),
    ("bytea", &["", "\\x00", "\\xff00ff", "abc"]),
    (
        "date",
        &["2000-01-01", "infinity", "-infinity", "4714-11-24 BC", "5874897-12-31", "2024-02-29"],
    ),
    ("time", &["00:00:00", "24:00:00", "12:34:56.789"]),
    ("timetz", &["00:00:00+00", "24:00:00-15:59", "12:34:56.789+05:30"]),
    (
        "timestamp",
        &[
            "2000-01-01",
            "infinity",
            "-infinity",
            "4714-11-24 00:00:00 BC",
            "294276-12-31 23:59:59.999999",
        ],
    ),
    (
        "timestamptz",
        &["2000-01-01 00:00:00+00", "infinity", "-infinity", "294276-12-31 23:59:59.999999+00"],
    ),
    (
        "interval",
        &[
            "0",
            "1 mon",
            "-1 day",
            "178000000 years",
            "-178000000 years",
            "2147483647 days",
            "2562047788 hours",
            "infinity",
            "-infinity",
        ],
    ),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-7000-8000-000000000000"]),
    ("oid", &["0", "23", "4294967295"]),
    ("regclass", &["0", "4294967295"]),
    ("regtype", &["0", "23", "4294967295"]),
    ("regproc", &["0", "31"]),
    ("xid", &["0", "4294967295"]),
    ("cid", &["0", "1"]),
    ("xid8", &["0", "18446744073709551615"]),
    ("tid", &["(0,0)", "(4294967295,65535)"]),
    ("pg_lsn", &["0/0", "FFFFFFFF/FFFFFFFF"]),
    ("json", &["null", "{\"a\":[1,{\"b\":2}]}", "[1,\"x\",null]", "1e1000"]),
    ("jsonb", &["null", "{\"a\":[1,{\"b\":2}]}", "[1,\"x\",null]", "1.50", "\"s\""]),
    ("int2vector", &["", "1 2"]),
    ("oidvector", &["", "23 25"]),
    (
        "_int4",
        &[
            "{}",
            "{1,NULL,3}",
            "{{1,2},{3,4}}",
            "[5:6]={7,8}",
            "[2147483640:2147483645]={1,2,3,4,5,6}",
        ],
    ),
    ("_int8", &["{}", "{1,2}"]),
    ("_int2", &["{}", "{1,2}"]),
    ("_float8", &["{}", "{0.1,0.5,NULL}", "{1,2,3}"]),
    ("_text", &["{}", "{a,NULL,\"b c\"}"]),
    ("_oid", &["{}", "{1}"]),
    ("_numeric", &["{}", "{1.5,NaN}"]),
    ("_interval", &["{}"]),
    ("_char", &["{a}"]),
    ("_name", &["{a}"]),
    ("_cstring", &["{a}", "{10,2}"]),
];

fn values(ty: base::Oid) -> Vec<Datum> {
    let ty = match ty {
        oids::ANYELEMENT
        | oids::ANYNONARRAY
        | oids::ANYCOMPATIBLE
        | oids::ANYCOMPATIBLENONARRAY
        | oids::ANY => oids::INT4,
        oids::ANYARRAY | oids::ANYCOMPATIBLEARRAY => oids::INT4_ARRAY,
        t => t,
    };
    let Some(info) = types::type_info(ty) else { return Vec::new() };
    VALUES
        .iter()
        .find(|(n, _)| *n == info.name)
        .map(|(_, v)| v.iter().filter_map(|s| text_input(ty, -1, s, &PlainEnv).ok()).collect())
        .unwrap_or_default()
}

fn concrete(ty: base::Oid) -> base::Oid {
    match ty {
        oids::ANYELEMENT
        | oids::ANYNONARRAY
        | oids::ANYCOMPATIBLE
        | oids::ANYCOMPATIBLENONARRAY
        | oids::ANY => oids::INT4,
        oids::ANYARRAY | oids::ANYCOMPATIBLEARRAY => oids::INT4_ARRAY,
        t => t,
    }
}

/// A small fixed generator.
struct Dice(u64);
impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// `FUZZ_SEED` tries others.
fn seed(usual: u64) -> u64 {
    std::env::var("FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(usual)
}

#[test]
fn no_function_panics() {
    let mut dice = Dice(seed(7));
    let mut failed = Vec::new();
    let mut all: Vec<_> = registry::functions().collect();
    all.sort_by_key(|f| f.oid);
    for f in all {
        let choices: Vec<Vec<Datum>> = f.args.iter().map(|t| values(*t)).collect();
        if choices.iter().any(Vec::is_empty) {
            continue;
        }
        // too slow or too large on purpose
        if matches!(
            f.name,
            "generate_series"
                | "factorial"
                | "repeat"
                | "lpad"
                | "rpad"
                | "array_fill"
                | "format"
                | "pg_sleep"
                | "pg_sleep_for"
                | "pg_sleep_until"
        ) {
            continue;
        }
        let types: Vec<_> = f.args.iter().map(|t| concrete(*t)).collect();
        let combinations: usize = choices.iter().map(|c| c.len() + 1).product();
        for n in 0..combinations.min(60) {
            let mut rest = n;
            let mut args: Vec<Datum> = Vec::new();
            for c in &choices {
                let len = c.len() + usize::from(!f.strict);
                let pick = if combinations <= 60 { rest % len } else { dice.below(len) };
                rest /= len;
                args.push(c.get(pick).cloned().unwrap_or_default());
            }
            if std::env::var_os("FUZZ_TRACE").is_some() {
                eprintln!("{} {args:?}", f.name);
            }
            let call = || match f.body {
                FunctionBody::Scalar(body) => {
                    if let Ok(d) = body(&PlainEnv, &args) {
                        let _ = types::io::to_text(f.result, &d, &PlainEnv);
                    }
                }
                FunctionBody::ScalarTyped(body) => {
                    if let Ok(d) = body(&PlainEnv, &args, &types, f.result) {
                        let _ = types::io::to_text(f.result, &d, &PlainEnv);
                    }
                }
                FunctionBody::Set(body) => {
                    if let Ok(rows) = body(&PlainEnv, &args) {
                        for row in rows.take(20) {
                            let _ = row;
                        }
                    }
                }
                FunctionBody::Aggregate(make) => {
                    let mut state = make(&types, f.result);
                    for _ in 0..3 {
                        let _ = state.add(&PlainEnv, &args);
                        let _ = state.finish(&PlainEnv);
                    }
                }
                FunctionBody::Window => {}
            };
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err() {
                failed.push(format!("{}({:?}) {args:?}", f.name, f.args));
                break;
            }
        }
    }
    assert!(failed.is_empty(), "{} panicked:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn damaged_forms_are_errors() {
    let mut dice = Dice(seed(11));
    for (name, texts) in VALUES {
        let Some(info) = types::typename::type_by_typname(name) else { continue };
        for text in *texts {
            for _ in 0..40 {
                // text
                let mut s: Vec<char> = text.chars().collect();
                for _ in 0..=dice.below(3) {
                    let c =
                        ['{', '}', '"', '\\', ',', '-', '.', 'e', '9', ' ', ':', '(', 'ö', '\0']
                            [dice.below(14)];
                    let at = dice.below(s.len() + 1);
                    if dice.below(2) == 0 && at < s.len() { s[at] = c } else { s.insert(at, c) }
                }
                let s: String = s.into_iter().collect();
                let _ = text_input(info.oid, -1, &s, &PlainEnv);
                let Ok(d) = text_input(info.oid, -1, text, &PlainEnv) else { continue };
                // on-page and wire
                let mut page = Vec::new();
                let mut wire = Vec::new();
                let _ = types::encode(info.oid, &d, &mut page);
                let _ = types::binary_output(info.oid, &d, &PlainEnv, &mut wire);
                for bytes in [&mut page, &mut wire] {
                    for _ in 0..=dice.below(3) {
                        if bytes.is_empty() {
                            break;
                        }
                        let at = dice.below(bytes.len());
                        match dice.below(3) {
                            0 => bytes[at] ^= 1 << dice.below(8),
                            1 => bytes.truncate(at),
                            _ => bytes.insert(at, 0xff),
                        }
                    }
                }
                if let Ok(d) = types::decode(info.oid, &page) {
                    let _ = types::io::to_text(info.oid, &d, &PlainEnv);
                    let mut again = Vec::new();
                    let _ = types::encode(info.oid, &d, &mut again);
                }
                if let Some(f) = types::raw_comparator(info.oid) {
                    let _ = f(&page, &wire);
                }
                let _ = types::abbreviated_key(info.oid, &page);
                if let Ok(d) = types::binary_input(info.oid, -1, &wire, &PlainEnv) {
                    let _ = types::io::to_text(info.oid, &d, &PlainEnv);
                }
            }
        }
    }
}
