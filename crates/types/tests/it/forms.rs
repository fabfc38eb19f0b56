//! Text, binary and on-page forms.

use crate::{input, oid_of, output};
use types::env::PlainEnv;

/// (type, input, output or error)
const TEXT_FORMS: &[(&str, &str, &str)] = &[
    ("int4", " 42 ", "42"),
    ("int4", "-0x1F", "-31"),
    ("int4", "1_000", "1000"),
    ("int4", "2147483648", "ERROR: value \"2147483648\" is out of range for type integer"),
    ("int4", "4x", "ERROR: invalid input syntax for type integer: \"4x\""),
    ("int2", "-32768", "-32768"),
    ("int8", "9223372036854775807", "9223372036854775807"),
    ("int8", "", "ERROR: invalid input syntax for type bigint: \"\""),
    ("bool", " TRUE ", "t"),
    ("bool", "of", "f"),
    ("bool", "o", "ERROR: invalid input syntax for type boolean: \"o\""),
    ("float8", "1e20", "1e+20"),
    ("float8", "0.00001", "1e-05"),
    ("float8", "100000000000000", "100000000000000"),
    ("float8", "1000000000000000", "1e+15"),
    ("float8", "0.1", "0.1"),
    ("float8", "-0", "-0"),
    ("float8", "inf", "Infinity"),
    ("float8", "1e400", "ERROR: \"1e400\" is out of range for type double precision"),
    ("float4", "16777216", "1.6777216e+07"),
    ("float4", "123456", "123456"),
    ("float4", "1234567", "1.234567e+06"),
    ("numeric", "1.50", "1.50"),
    ("numeric", "-.5e3", "-500"),
    ("numeric", "1e-3", "0.001"),
    ("numeric", "0x1F", "31"),
    ("numeric", "NaN", "NaN"),
    ("numeric", "-inf", "-Infinity"),
    ("numeric", "1_000.5", "1000.5"),
    (
        "numeric",
        "123456789012345678901234567890123456789012.5",
        "123456789012345678901234567890123456789012.5",
    ),
    ("numeric", "1.2.3", "ERROR: invalid input syntax for type numeric: \"1.2.3\""),
    ("bytea", "\\xDEADbeef", "\\xdeadbeef"),
    ("bytea", "a\\\\b\\000", "\\x615c6200"),
    ("uuid", "{A0EEBC99-9C0B4EF8-BB6D6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("int4[]", "{1,NULL, 3}", "{1,NULL,3}"),
    ("int4[]", "{{1,2},{3,4}}", "{{1,2},{3,4}}"),
    ("int4[]", "[0:1]={1,2}", "[0:1]={1,2}"),
    ("text[]", "{a,\"b c\",\"\",\"nu\\\"ll\",\"NULL\"}", "{a,\"b c\",\"\",\"nu\\\"ll\",\"NULL\"}"),
    ("int4[]", "{1,2", "ERROR: malformed array literal: \"{1,2\""),
    ("int2vector", "1 2 3", "1 2 3"),
    ("tid", "(3,4)", "(3,4)"),
    ("pg_lsn", "16/B374D848", "16/B374D848"),
    ("regtype", "integer", "integer"),
    ("regtype", "timestamp with time zone", "timestamp with time zone"),
    ("date", "2024-02-29", "2024-02-29"),
    ("timestamp", "2024-02-29 12:34:56.789", "2024-02-29 12:34:56.789"),
    ("interval", "1 year 2 mons 3 days 04:05:06.7", "1 year 2 mons 3 days 04:05:06.7"),
];

#[test]
fn text_forms() {
    for (ty, text, expected) in TEXT_FORMS {
        let got = match input(ty, text) {
            Ok(d) => output(ty, &d),
            Err(e) => format!("ERROR: {e}"),
        };
        assert_eq!(&got, expected, "{ty} {text:?}");
    }
}

#[test]
fn stored_and_binary_forms_read_back() {
    for (ty, text, expected) in TEXT_FORMS {
        let Ok(d) = input(ty, text) else { continue };
        let oid = oid_of(ty);
        let mut page = Vec::new();
        types::encode(oid, &d, &mut page).unwrap_or_else(|e| panic!("{ty} {text}: {e}"));
        let back = types::decode(oid, &page).unwrap_or_else(|e| panic!("{ty} {text}: {e}"));
        assert_eq!(&output(ty, &back), expected, "{ty} {text:?} stored");
        assert!(types::equal(oid, &d, &back), "{ty} {text:?} equal");
        for cut in 0..page.len() {
            let _ = types::decode(oid, &page[..cut]);
        }
        if matches!(*ty, "jsonb" | "json") {
            continue;
        }
        let mut wire = Vec::new();
        types::binary_output(oid, &d, &PlainEnv, &mut wire).unwrap();
        let back = types::binary_input(oid, -1, &wire, &PlainEnv)
            .unwrap_or_else(|e| panic!("{ty} {text}: {e}"));
        assert_eq!(&output(ty, &back), expected, "{ty} {text:?} binary");
    }
}

#[test]
fn numerics_are_ordered_alike_everywhere() {
    let texts = [
        "-Infinity",
        "-1e40",
        "-12345.678",
        "-1",
        "-0.001",
        "0",
        "1e-20",
        "0.5",
        "1",
        "1.0001",
        "9999",
        "10000",
        "10000.5",
        "99999999",
        "12345678901234567890",
        "1e40",
        "1e200",
        "Infinity",
        "NaN",
    ];
    let values: Vec<_> = texts
        .iter()
        .map(|t| {
            let d = input("numeric", t).unwrap();
            let mut page = Vec::new();
            types::encode(types::oids::NUMERIC, &d, &mut page).unwrap();
            assert_eq!(
                output("numeric", &types::decode(types::oids::NUMERIC, &page).unwrap()),
                output("numeric", &d)
            );
            (d, page)
        })
        .collect();
    let raw = types::raw_comparator(types::oids::NUMERIC).unwrap();
    for (i, (a, pa)) in values.iter().enumerate() {
        for (j, (b, pb)) in values.iter().enumerate() {
            assert_eq!(types::compare::compare(types::oids::NUMERIC, a, b), i.cmp(&j), "{i} {j}");
            assert_eq!(raw(pa, pb), i.cmp(&j), "raw {} {}", texts[i], texts[j]);
            let key = |p: &[u8]| types::abbreviated_key(types::oids::NUMERIC, p);
            if i < j {
                assert!(key(pa) <= key(pb), "key {} {}", texts[i], texts[j]);
            }
        }
    }
}

/// What a client sends in binary form is as long as it should be, and within its type's bounds and modifier.
#[test]
fn binary_forms_are_looked_at() {
    let send = |ty: &str, typmod: i32, bytes: &[u8]| match types::binary_input(
        oid_of(ty),
        typmod,
        bytes,
        &PlainEnv,
    ) {
        Ok(value) => output(ty, &value),
        Err(error) => error.state().to_string(),
    };
    let i32s = |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
    let date = |n: i32| send("date", -1, &n.to_be_bytes());
    assert_eq!(date(-2_451_545), "4714-11-24 BC");
    assert_eq!(date(2_145_031_948), "5874897-12-31");
    assert_eq!(date(i32::MAX), "infinity");
    for wrong in [-2_451_546, 2_145_031_949, i32::MIN + 1] {
        assert_eq!(date(wrong), "22008");
    }
    let time = |typmod, n: i64| send("time", typmod, &n.to_be_bytes());
    assert_eq!(time(-1, 86_400_000_000), "24:00:00");
    assert_eq!(time(1, 1_234_567), "00:00:01.2");
    assert_eq!((time(-1, -1), time(-1, 86_400_000_001)), ("22008".into(), "22008".into()));
    let timetz = |typmod, t: i64, zone: i32| {
        send("timetz", typmod, &[&t.to_be_bytes()[..], &zone.to_be_bytes()].concat())
    };
    assert_eq!(timetz(1, 1_234_567, -57_599), "00:00:01.2+15:59:59");
    assert_eq!(timetz(-1, 0, 57_600), "22009");
    assert_eq!(timetz(-1, -1, 0), "22008");
    for ty in ["timestamp", "timestamptz"] {
        let stamp = |n: i64| send(ty, -1, &n.to_be_bytes());
        assert_eq!(stamp(i64::MIN), "-infinity");
        assert_eq!(stamp(-211_813_488_000_000_001), "22008");
        assert_eq!(stamp(9_223_371_331_200_000_000), "22008");
    }
    // interval hour to minute
    let interval = [&3_723_000_001_i64.to_be_bytes()[..], &i32s(&[1, 0])].concat();
    assert_eq!(send("interval", 201_392_127, &interval), "1 day 01:02:00");
    let bits =
        |ty, typmod, n: i32, bytes: &[u8]| send(ty, typmod, &[&n.to_be_bytes(), bytes].concat());
    assert_eq!(bits("bit", 3, 3, b"\xa0"), "101");
    assert_eq!(bits("bit", 3, 2, b"\x80"), "22026");
    assert_eq!(bits("varbit", 3, 4, b"\xf0"), "22001");
    assert_eq!(bits("varbit", -1, -1, b""), "22P03");
    assert_eq!(bits("varbit", -1, 3, b"\xff\0"), "22P03");
    let numeric = [0, 1, 0, 0, 0, 0, 0, 0, 0, 12];
    assert_eq!(send("numeric", -1, &numeric), "12");
    assert_eq!(send("numeric", -1, &[&numeric[..], b"x"].concat()), "22P03");
    let array = |numbers: &[i32]| send("int4[]", -1, &i32s(numbers));
    assert_eq!(array(&[1, 1, 23, 2, 1, 4, 7, -1]), "{7,NULL}");
    assert_eq!(array(&[0, 0, 23]), "{}");
    for (wrong, state) in [
        (&[0, 0, 23, 0][..], "22P03"),
        (&[0, 5, 23], "22P03"),
        (&[7, 0, 23], "54000"),
        (&[-1, 0, 23], "22P03"),
        (&[1, 0, 23, 1, i32::MAX], "54000"),
        (&[1, 0, 23, 1, 1, -2], "22P03"),
        (&[1, 0, 23, 1, 1, 8, 7], "22P03"),
        (&[1, 0, 23, 1, 1, 4, 7, 8], "22P03"),
    ] {
        assert_eq!(array(wrong), state, "{wrong:?}");
    }
}
