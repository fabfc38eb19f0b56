//! Readers of dates, intervals, templates and json take any text without panicking.

use crate::call;

const SEEDS: &[&str] = &[
    "2024-02-29 12:34:56.789+05:30",
    "Jan 8, 1999 04:05 PM America/New_York",
    "J2451187.5",
    "20240101T040506-08",
    "-1 year 2 mons -3 days 4:05:06.7 ago",
    "P1Y2M3W4DT5H6M7.8S",
    "P0001-02-03T04:05:06",
    "1.5 months 99999999999 days",
    "EST5EDT,M3.2.0/2:30,J300/-1",
    "<+03>-03:30",
    "{\"a\": [1, {\"b\\\"\": \"\\u00e9\"}], \"c\": 1e400}",
    "YYYY-MM-DD HH24:MI:SS.FF3 TZH:TZM FMMonth \"q\" DDth é",
    "S9,990.00EEEEPR RN V99 L TH é",
];

/// xorshift
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize
}

#[test]
fn nothing_panics_on_damaged_text() {
    let bits = [
        "9",
        "-",
        ":",
        ".",
        "T",
        "é",
        " ",
        "99999999999999999999",
        "\"",
        "\\",
        "P",
        "/",
        "+",
        "M",
        "0",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for round in 0..1500 {
        let mut chars: Vec<char> = SEEDS[round % SEEDS.len()].chars().collect();
        for _ in 0..1 + next(&mut state) % 4 {
            let at = next(&mut state) % (chars.len() + 1);
            match next(&mut state) % 3 {
                0 if at < chars.len() => {
                    chars.remove(at);
                }
                1 => chars.truncate(at.max(1)),
                _ => {
                    let bit = bits[next(&mut state) % bits.len()];
                    chars.splice(at..at, bit.chars());
                }
            }
        }
        let text: String = chars.into_iter().collect();
        let text = text.as_str();
        for signature in [
            "timestamp(timestamp,int4)",
            "@TimeZone=America/New_York timestamptz(timestamptz,int4)",
            "\"time\"(time,int4)",
            "timetz(timetz,int4)",
            "interval(interval,int4)",
        ] {
            call(signature, &[text, "3"]);
        }
        call("date_pli(date,int4)", &[text, "0"]);
        call("timezone(text,timestamp)", &[text, "2024-07-01 12:00"]);
        call("json_each(json)", &[text]);
        call("jsonb_pretty(jsonb)", &[text]);
        call("to_char(timestamp,text)", &["0044-03-15 12:34:56.789 BC", text]);
        call("to_char(interval,text)", &["-1 year -3 days 04:05:06", text]);
        call("to_char(numeric,text)", &["-1234.567", text]);
        call("to_char(float8,text)", &["1e300", text]);
        call("to_number(text,text)", &[text, "S9,990.00"]);
        call("to_number(text,text)", &["-12,345.67", text]);
        call("to_timestamp(text,text)", &[text, "YYYY-MM-DD HH24:MI:SS TZH"]);
        call("to_timestamp(text,text)", &["2024-02-29 12:34:56é", text]);
        call("to_date(text,text)", &[text, "YYYYMMDD"]);
    }
}
