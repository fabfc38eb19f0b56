//! Binary forms that no value has are refused.

use crate::oid_of;
use types::binary_input;
use types::env::PlainEnv;

/// (type, modifier, bytes, the error or the value)
fn check(ty: &str, typmod: i32, bytes: &[u8], expected: &str) {
    let got = match binary_input(oid_of(ty), typmod, bytes, &PlainEnv) {
        Ok(d) => crate::output(ty, &d),
        Err(e) => format!("{} {e}", e.state()),
    };
    assert_eq!(got, expected, "{ty} {bytes:?}");
}

#[test]
fn what_is_out_of_range_is_refused() {
    check("date", -1, &i32::MAX.to_be_bytes(), "infinity");
    check("date", -1, &(i32::MAX - 1).to_be_bytes(), "22008 date out of range");
    check("date", -1, &(-2_451_546i32).to_be_bytes(), "22008 date out of range");
    check("date", -1, &(-2_451_545i32).to_be_bytes(), "4714-11-24 BC");
    check("time", -1, &(-1i64).to_be_bytes(), "22008 time out of range");
    check("time", -1, &86_400_000_000i64.to_be_bytes(), "24:00:00");
    check("time", -1, &86_400_000_001i64.to_be_bytes(), "22008 time out of range");
    check("time", 0, &1_600_000i64.to_be_bytes(), "00:00:02");
    let zoned = |t: i64, west: i32| [&t.to_be_bytes()[..], &west.to_be_bytes()].concat();
    check("timetz", -1, &zoned(0, 57_600), "22009 time zone displacement out of range");
    check("timetz", -1, &zoned(0, i32::MIN), "22009 time zone displacement out of range");
    check("timetz", -1, &zoned(-5, 0), "22008 time out of range");
    check("timetz", 0, &zoned(700_000, 3600), "00:00:01-01");
    for ty in ["timestamp", "timestamptz"] {
        check(ty, -1, &i64::MIN.to_be_bytes(), "-infinity");
        check(ty, -1, &(i64::MIN + 1).to_be_bytes(), "22008 timestamp out of range");
        check(ty, -1, &(i64::MAX - 1).to_be_bytes(), "22008 timestamp out of range");
    }
    let interval = [&1_234_567i64.to_be_bytes()[..], &[0; 8]].concat();
    check("interval", 0x7fff << 16 | 1, &interval, "00:00:01.2");
}

#[test]
fn bytes_that_are_too_few_or_too_many_are_refused() {
    let one = |flags: u8, tail: &[u8]| {
        let head = [0, 0, 0, 1, 0, 0, 0, flags, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1];
        [&head[..], &[0, 0, 0, 4, 0, 0, 0, 7], tail].concat()
    };
    check("int4[]", -1, &one(0, &[]), "{7}");
    check("int4[]", -1, &one(1, &[]), "{7}");
    check("int4[]", -1, &one(2, &[]), "22P03 invalid array flags");
    check("int4[]", -1, &one(0, &[0]), "22P03 incorrect binary data format");
    let dims = |n: u8| [&[0, 0, 0, n, 0, 0, 0, 0, 0, 0, 0, 23][..], &[0; 64]].concat();
    let many = "54000 number of array dimensions (7) exceeds the maximum allowed (6)";
    check("int4[]", -1, &dims(7), many);
    check("bit", -1, &[0, 0, 0, 3, 0b1010_0000], "101");
    check(
        "bit",
        4,
        &[0, 0, 0, 3, 0b1010_0000],
        "22026 bit string length 3 does not match type bit(4)",
    );
    let long = "22001 bit string too long for type bit varying(2)";
    check("varbit", 2, &[0, 0, 0, 3, 0b1010_0000], long);
    check("varbit", -1, &[255, 255, 255, 255], "22P03 invalid length in external bit string");
    check("varbit", -1, &[0, 0, 0, 3, 0, 0], "22P03 incorrect binary data format");
    check("numeric", -1, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 9], "22P03 incorrect binary data format");
    let row = "0A000 input of anonymous composite types is not implemented";
    check("record", -1, &[0, 0, 0, 0], row);
}
