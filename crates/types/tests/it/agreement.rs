//! Equality, order and hashes say the same, whichever way a value came to be.

use crate::{input, oid_of};
use std::hash::{DefaultHasher, Hasher};
use types::env::PlainEnv;
use types::{Datum, FunctionBody, registry};

fn hashed(ty: &str, d: &Datum) -> u64 {
    let mut state = DefaultHasher::new();
    types::hash(oid_of(ty), d, &mut state);
    state.finish()
}

fn stored(ty: &str, d: &Datum) -> (Datum, Vec<u8>) {
    let mut page = Vec::new();
    types::encode(oid_of(ty), d, &mut page).unwrap();
    (types::decode(oid_of(ty), &page).unwrap(), page)
}

/// Of every two values, all that compares and hashes them agrees.
fn check(ty: &str, values: &[Datum]) {
    let oid = oid_of(ty);
    for a in values {
        for b in values {
            let order = types::compare::compare(oid, a, b);
            let what = || format!("{ty} {a:?} {b:?}");
            assert_eq!(order.reverse(), types::compare::compare(oid, b, a), "{}", what());
            assert_eq!(types::equal(oid, a, b), order.is_eq(), "{}", what());
            if order.is_eq() {
                assert_eq!(hashed(ty, a), hashed(ty, b), "{}", what());
            }
            let ((_, x), (_, y)) = (stored(ty, a), stored(ty, b));
            assert_eq!(types::compare_encoded(oid, &x, &y), order, "{}", what());
            let (k, l) = (types::abbreviated_key(oid, &x), types::abbreviated_key(oid, &y));
            assert!(k.cmp(&l).is_eq() || k.cmp(&l) == order, "keys of {}", what());
        }
    }
}

/// A numeric of 38 digits is held otherwise when it was read than when it was computed or stored.
#[test]
fn numerics_hash_alike_however_they_came_to_be() {
    let n = |text: &str| input("numeric", text).unwrap();
    let add = registry::function_exact("numeric_add", &[types::oids::NUMERIC; 2]).unwrap();
    let FunctionBody::Scalar(add) = add.body else { panic!() };
    let sum = |a: &str, b: &str| add(&PlainEnv, &[n(a), n(b)]).unwrap();
    let mut values = Vec::new();
    for (text, a, b) in [
        ("99999999999999999999999999999999999999", "99999999999999999999999999999999999998", "1"),
        (
            "-99999999999999999999999999999999999999",
            "-99999999999999999999999999999999999998",
            "-1.00",
        ),
        ("85070591730234615865843651857942052864", "85070591730234615865843651857942052863", "1"),
        (
            "9999999999999999999.9999999999999999999",
            "9999999999999999999.9999999999999999998",
            "0.0000000000000000001",
        ),
        ("1e40", "1e40", "0.00"),
        ("0", "1", "-1.000"),
        ("NaN", "NaN", "1"),
    ] {
        values.extend([
            n(text),
            stored("numeric", &sum(a, b)).0,
            stored("numeric", &n(text)).0,
            sum(a, b),
        ]);
    }
    check("numeric", &values);
}

#[test]
fn values_of_other_types_agree() {
    let of = |ty: &str, texts: &[&str]| {
        let values: Vec<Datum> = texts.iter().map(|t| input(ty, t).unwrap()).collect();
        check(ty, &values);
    };
    of("float8", &["0", "-0", "1", "NaN", "-Infinity", "Infinity", "1e-320", "-1e-320"]);
    of("float4", &["0", "-0", "1", "NaN", "-Infinity", "Infinity", "1e-44"]);
    of("bpchar", &["", " ", "a", "a  ", "a b", "a\u{1}", "é "]);
    of("text", &["", " ", "a", "a ", "ab", "abcdefgh", "abcdefghi", "é"]);
    of("interval", &["1 mon", "30 days", "720:00:00", "-1 mon", "29 days 24:00:00", "infinity"]);
    of("timetz", &["12:00:00+00", "13:00:00+01", "12:00:00+01", "00:00:00-12"]);
    of("jsonb", &["1", "1.0", "10e-1", "[]", "{}", "null", "\"1\"", "[1]", "[1.00]", "{\"a\":1}"]);
    of(
        "int4[]",
        &["{}", "{1}", "[2:2]={1}", "{{1}}", "{NULL}", "{1,NULL}", "{1,2}", "{{1,2}}", "{{1},{2}}"],
    );
    of(
        "int4[]",
        &[
            "[2:3][1:1][1:2]={{{1,1}},{{1,1}}}",
            "{{{1,1}},{{1,1}}}",
            "{{{1},{1}},{{1},{1}}}",
            "[1:2][3:3][1:2]={{{1,1}},{{1,1}}}",
        ],
    );
    of("numeric[]", &["{1}", "{1.00}", "{NaN}", "{NULL}"]);
    of("bytea", &["\\x", "\\x00", "\\x0000", "\\xff", "\\x6100", "\\x61"]);
}
