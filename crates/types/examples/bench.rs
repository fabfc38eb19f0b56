//! Speeds of the hot paths, in nanoseconds a value.
use std::hint::black_box;
use std::time::Instant;
use types::env::PlainEnv;
use types::*;

fn time(name: &str, n: u32, mut f: impl FnMut(u32)) {
    let start = Instant::now();
    for i in 0..n {
        f(i);
    }
    println!("{name:32} {:8.1} ns", start.elapsed().as_nanos() as f64 / f64::from(n));
}

fn main() {
    let n = 1_000_000;
    let mut s = String::new();
    time("int4 in", n, |i| {
        drop(black_box(text_input(
            oids::INT4,
            -1,
            if i & 1 == 0 { "123456" } else { "-7" },
            &PlainEnv,
        )))
    });
    time("int4 out", n, |i| {
        s.clear();
        let _ = text_output(oids::INT4, &Datum::Int4(i as i32), &PlainEnv, &mut s);
        black_box(&s);
    });
    for (ty, text) in [
        (oids::NUMERIC, "12345.678"),
        (oids::FLOAT8, "12345.678"),
        (oids::TIMESTAMP, "2024-02-29 12:34:56.789"),
        (oids::TIMESTAMPTZ, "2024-02-29 12:34:56.789+00"),
        (oids::DATE, "2024-02-29"),
        (oids::TEXT, "hello world, this is a text"),
        (oids::BPCHAR, "hello world, this is a text"),
        (oids::UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        (oids::INT4_ARRAY, "{1,2,3,4}"),
    ] {
        let name = format_type(ty, -1);
        time(&format!("{name} in"), n, |_| drop(black_box(text_input(ty, -1, text, &PlainEnv))));
        let d = text_input(ty, -1, text, &PlainEnv).unwrap_or_default();
        time(&format!("{name} out"), n, |_| {
            s.clear();
            let _ = text_output(ty, &d, &PlainEnv, &mut s);
            black_box(&s);
        });
        let mut bytes = Vec::new();
        time(&format!("{name} encode"), n, |_| {
            bytes.clear();
            let _ = encode(ty, &d, &mut bytes);
            black_box(&bytes);
        });
        time(&format!("{name} decode"), n, |_| drop(black_box(decode(ty, &bytes))));
    }
    let f = |name: &str, a: &str, b: &str, ty| {
        let (Ok(a), Ok(b)) = (text_input(ty, -1, a, &PlainEnv), text_input(ty, -1, b, &PlainEnv))
        else {
            return;
        };
        let Some(FunctionBody::Scalar(body)) =
            registry::functions_by_name(name).iter().find(|f| f.args == [ty, ty]).map(|f| f.body)
        else {
            return;
        };
        let args = [a, b];
        time(name, n, |_| drop(black_box(body(&PlainEnv, black_box(&args)))));
    };
    f("int4pl", "1", "2", oids::INT4);
    f("numeric_add", "12345.678", "1.5", oids::NUMERIC);
    f("numeric_mul", "12345.678", "1.5", oids::NUMERIC);
    f("numeric_div", "12345.678", "1.7", oids::NUMERIC);
    f("textcat", "hello", "world", oids::TEXT);
    f("texteq", "hello", "hello", oids::TEXT);
    f("textlike", "hello world, this is a text", "%this%", oids::TEXT);
    f("textregexeq", "hello world, this is a text", "th.s", oids::TEXT);
    let start = Instant::now();
    let count = registry::functions().count();
    println!("{count} functions, {:?}", start.elapsed());
}
