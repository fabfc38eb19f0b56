use super::*;

fn fails(sql: &str) -> (String, Option<u32>) {
    match parse(sql) {
        Ok(_) => panic!("{sql} should not parse"),
        Err(base::Error::Sql(e)) => (e.message, e.position),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn what_clients_send_parses() {
    let mut bad = Vec::new();
    for text in include_str!("testdata/clients.sql").split('\x0c') {
        if let Err(e) = parse(text) {
            bad.push(format!("{e}: {text}"));
        }
    }
    for text in include_str!("testdata/syntax.sql").lines() {
        if let Err(e) = parse(text) {
            bad.push(format!("{e}: {text}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n---\n"));
}

#[test]
fn statements_are_split_with_their_text() {
    let all = parse("select 1; ;\n insert into t values ('a;b') ; -- end\n").unwrap();
    let texts: Vec<&str> = all.iter().map(Parsed::text).collect();
    assert_eq!(texts, ["select 1", "insert into t values ('a;b')"]);
    assert!(parse(" ;; /* nothing */").unwrap().is_empty());
}

#[test]
fn syntax_errors_name_the_token() {
    let at = |m: &str, p: u32| (m.to_owned(), Some(p));
    assert_eq!(fails("selec 1"), at("syntax error at or near \"selec\"", 1));
    assert_eq!(fails("select 1 frm t"), at("syntax error at or near \"t\"", 14));
    assert_eq!(fails("select (1"), at("syntax error at end of input", 10));
    assert_eq!(fails("select * from t where"), at("syntax error at end of input", 22));
    assert_eq!(fails("select 'é', 1 +"), at("syntax error at end of input", 16));
    assert_eq!(fails("select 'abc"), at("unterminated quoted string at or near \"'abc\"", 8));
    assert_eq!(
        fails("select 12abc"),
        at("trailing junk after numeric literal at or near \"12abc\"", 8)
    );
    assert_eq!(fails("select 1 < 2 < 3"), at("syntax error at or near \"<\"", 14));
    assert_eq!(fails("create tabel t ()"), at("syntax error at or near \"tabel\"", 8));
    assert_eq!(
        fails("insert into t (a, b values (1)"),
        at("syntax error at or near \"values\"", 21)
    );
}

#[test]
fn long_names_are_cut_and_said_to_be() {
    let long = "a".repeat(62);
    let said = |sql: &str| {
        let mut notices = Vec::new();
        let ok = parse_noting(sql, Dialect::STANDARD, &mut notices).is_ok();
        (
            ok,
            notices
                .into_iter()
                .map(|n| format!("{} {}", n.body.state, n.body.message))
                .collect::<Vec<_>>(),
        )
    };
    let cut = |from: &str, to: &str| {
        format!("42622 identifier \"{long}{from}\" will be truncated to \"{long}{to}\"")
    };
    assert_eq!(said(&format!("SELECT {long}b")), (true, vec![]));
    // As it is folded; at a character; after escapes are resolved.
    assert_eq!(said(&format!("SELECT {long}BC")), (true, vec![cut("bc", "b")]));
    assert_eq!(said(&format!("SELECT \"{long}é\"")), (true, vec![cut("é", "")]));
    assert_eq!(said(&format!("SELECT U&\"{long}\\00e9\"")), (true, vec![cut("é", "")]));
    assert_eq!(said(&format!("SELECT U&\"\\0061{}\"", &long[1..])), (true, vec![]));
    // Of what does not parse, up to where it fails.
    let text = format!("VACUUM {long}bc; SELECT 1 1 {long}cd");
    assert_eq!(said(&text), (false, vec![cut("bc", "b")]));
    assert_eq!(said(&format!("SELECT {long}bc, 'abc")), (false, vec![cut("bc", "b")]));
}

#[test]
fn unicode_escapes_have_a_character_of_their_choice() {
    let parses = |sql: &str| parse(sql).map(|_| ()).map_err(|e| e.to_sql_error().message);
    for sql in [
        "SELECT U&'d!0061t!+000061' UESCAPE '!'",
        "SELECT u&\"d!0061\" uescape /* no */ E'!'",
        "SELECT U&'a' AS uescaped, U&'b' uescape1",
        "SELECT U&'a'\n 'b' UESCAPE '#' FROM x",
    ] {
        assert_eq!(parses(sql), Ok(()), "{sql}");
    }
    let strange = "invalid Unicode escape character at or near";
    let missing = "UESCAPE must be followed by a simple string literal at";
    assert_eq!(parses("SELECT U&'a' UESCAPE '+'"), Err(format!("{strange} \"'+'\"")));
    assert_eq!(parses("SELECT U&'a' UESCAPE 'ab'"), Err(format!("{strange} \"'ab'\"")));
    assert_eq!(parses("SELECT U&'a' UESCAPE;"), Err(format!("{missing} or near \";\"")));
    assert_eq!(parses("SELECT U&'a' UESCAPE"), Err(format!("{missing} end of input")));
    assert!(parses("SELECT U&'a' UESCAPE U&'b' UESCAPE 'c'").is_err());
}

#[test]
fn backslashes_in_plain_strings() {
    let old = Dialect { standard_strings: false, escape_warning: true };
    let said = |sql: &str, dialect| {
        let mut notices = Vec::new();
        assert!(parse_noting(sql, dialect, &mut notices).is_ok(), "{sql}");
        notices
            .iter()
            .map(|n| (n.body.position.unwrap(), n.body.message.clone()))
            .collect::<Vec<_>>()
    };
    let escape = "nonstandard use of escape in a string literal".to_owned();
    let quote = "nonstandard use of \\' in a string literal".to_owned();
    let back = "nonstandard use of \\\\ in a string literal".to_owned();
    let text = r"SELECT 'a\n\\', 'b\'', '\\', E'\n'";
    assert_eq!(said(text, old), [(8, escape), (17, quote), (24, back)]);
    let quiet = Dialect { escape_warning: false, ..old };
    assert_eq!(said(r"SELECT '\'', 'a\n'", quiet), []);
    assert_eq!(said(r"SELECT '\', 'a\n'", Dialect::STANDARD), []);
}

/// Whether json_object() is the function or SQL's own is not found out by reading its arguments twice: each level would take twice as long
/// as the one in it.
#[test]
fn nested_calls_of_json_object_are_read_once() {
    let thread =
        std::thread::Builder::new().stack_size(16 << 20).spawn(nested_json_objects).unwrap();
    thread.join().unwrap();
}

fn nested_json_objects() {
    for (first, last) in
        [("json_object(", ")"), ("json_object('k': ", ")"), ("json_object(a => ", ")")]
    {
        let sql = format!("SELECT {}x{}", first.repeat(80), last.repeat(80));
        assert!(parse(&sql).is_ok(), "{first}");
    }
    assert!(parse("SELECT json_object('a', 'b': 1)").is_err());
    assert!(parse("SELECT json_object('a': 1, 'b')").is_err());
    assert!(parse("SELECT json_object('a', 'b') OVER ()").is_err());
    assert!(parse("SELECT json_object(value), json_object(v.value VALUE value)").is_ok());
}

/// Unoptimised frames are several times as large, hence the larger stack there.
#[test]
fn depth_is_bounded() {
    let stack = if cfg!(debug_assertions) { 16 << 20 } else { 1 << 20 };
    let thread = std::thread::Builder::new().stack_size(stack).spawn(deep_statements).unwrap();
    thread.join().unwrap();
}

fn deep_statements() {
    for deep in [
        format!("select {}1{}", "(".repeat(50_000), ")".repeat(50_000)),
        format!("select {}1{}", "(select ".repeat(20_000), ")".repeat(20_000)),
        format!("select {}1", "- ".repeat(50_000)),
        format!("select {}1", "json_object(".repeat(50_000)),
        format!("select {}1", "json_object('k': ".repeat(50_000)),
        format!("select {}1", "json_query(json_array(".repeat(50_000)),
        format!("select {}1", "not ".repeat(50_000)),
        format!("select 1{}", " + 1".repeat(50_000)),
        format!("select {}1{}", "array[".repeat(50_000), "]".repeat(50_000)),
        format!("select {}1", "case when ".repeat(50_000)),
        format!("select * from {}t", "(".repeat(50_000)),
        format!("select 1{}", " union select 1".repeat(50_000)),
        format!("{}select 1", "explain ".repeat(50_000)),
        // Levels of chains, none of them too long.
        format!("select {}1{}", "(".repeat(150), format!("{})", " + 1".repeat(1000)).repeat(150)),
        format!(
            "select {}1{}",
            "1 + (".repeat(150),
            format!("){}", " + 1".repeat(1000)).repeat(150)
        ),
        format!("select {}1{}", "(".repeat(150), format!("{})", "::int".repeat(1000)).repeat(150)),
        format!(
            "{}select 1{}",
            "(".repeat(150),
            format!("{})", " union select 1".repeat(400)).repeat(150)
        ),
        format!(
            "select * from {}t{}",
            "(".repeat(150),
            format!("{})", " cross join t".repeat(400)).repeat(150)
        ),
        format!("select * from t join t{} on true", " join t on true".repeat(50_000)),
        format!("select (a){}", ".a".repeat(50_000)),
        format!("select (a){}", "[1].a".repeat(50_000)),
    ] {
        assert!(parse(&deep).is_err(), "{}", &deep[..200]);
    }
    for long in [
        format!("select 1{}", " + 1".repeat(1900)),
        format!("select a{}", " and a".repeat(20_000)),
        format!("select a in (1{})", ", 1 + 1".repeat(20_000)),
        format!("select 1{}", " union all select 1 + 1".repeat(490)),
    ] {
        assert!(parse(&long).is_ok(), "{}", &long[..200]);
    }
    assert!(parse(&format!("select {}1{}", "(".repeat(100), ")".repeat(100))).is_ok());
}

/// Cuts, doubles and swaps pieces of real statements: an error or a statement, never a panic.
#[test]
fn mangled_statements_do_not_panic() {
    let texts: Vec<&str> = include_str!("testdata/syntax.sql")
        .lines()
        .chain(include_str!("testdata/clients.sql").split('\x0c'))
        .collect();
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n.max(1) as u64) as usize
    };
    for _ in 0..4000 {
        let mut bytes = texts[next(texts.len())].as_bytes().to_vec();
        bytes.truncate(600);
        for _ in 0..=next(4) {
            let at = next(bytes.len() + 1);
            match next(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, b"x"[0]),
                2 => {
                    let other = texts[next(texts.len())].as_bytes();
                    let from = next(other.len());
                    let piece = other[from..(from + 20).min(other.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => {
                    let end = (at + next(10)).min(bytes.len());
                    bytes.drain(at..end);
                }
            }
        }
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }
}
