//! Domains over the wire: what types clients are told, values in both formats, errors' fields, COPY, a dump that is restored.

use crate::support::{have, server};
use lab::client::{Batch, Client, Event};
use lab::servers::{Server, Stop};
use std::process::Command;

const SCHEMA: &str = "CREATE DOMAIN posint AS int CHECK (VALUE > 0);
    CREATE DOMAIN code AS varchar(5) NOT NULL DEFAULT 'none';
    CREATE DOMAIN evens AS posint CONSTRAINT even CHECK (VALUE % 2 = 0);
    CREATE TABLE t (id posint PRIMARY KEY, c code, many posint[])";

fn with_schema(server: &Server) -> Client {
    let mut client = server.connect().unwrap();
    client.run(SCHEMA).unwrap();
    client
}

#[test]
fn clients_are_told_the_base_type_and_give_values_in_both_formats() {
    let server = server(&[]);
    let mut client = with_schema(&server);
    let posint: u32 = client.value("SELECT 'posint'::regtype::oid").unwrap().parse().unwrap();
    let mut batch = Batch::default();
    batch.parse("s", "INSERT INTO t VALUES ($1, $2) RETURNING id, c", &[posint]);
    batch.describe_statement("s").sync();
    client.send(&batch).unwrap();
    let outcome = client.finish().unwrap();
    assert_eq!(outcome.error(), None);
    let columns = outcome.events.iter().find_map(|e| match e {
        Event::Columns(c) => {
            Some(c.iter().map(|c| (c.type_oid, c.type_modifier)).collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(columns, Some(vec![(23, -1), (1043, 9)]));
    for (format, value, expected) in [
        (1, &7i32.to_be_bytes()[..], ""),
        (0, &b"8"[..], ""),
        (1, &(-7i32).to_be_bytes()[..], "23514"),
        (0, &b"0"[..], "23514"),
    ] {
        let mut batch = Batch::default();
        batch.bind("", "s", &[format, 0], &[Some(value), Some(b"x")], &[]).execute("", 0).sync();
        client.send(&batch).unwrap();
        assert_eq!(client.finish().unwrap().sqlstate(), expected, "{value:?}");
    }
    let mut batch = Batch::default();
    batch.bind("", "s", &[], &[Some(b"9"), None], &[]).execute("", 0).sync();
    client.send(&batch).unwrap();
    assert_eq!(client.finish().unwrap().sqlstate(), "23502");
    assert_eq!(
        client.value("SELECT string_agg(id || c, ' ' ORDER BY id) FROM t").unwrap(),
        "7x 8x"
    );
}

#[test]
fn errors_say_which_domain_and_constraint() {
    let server = server(&[]);
    let mut client = with_schema(&server);
    let fields = |client: &mut Client, sql: &str| {
        let outcome = client.simple(sql).unwrap();
        let report = outcome.error().unwrap().clone();
        ['C', 's', 'd', 'n'].map(|f| report.field(f).to_owned())
    };
    let mut check = |sql: &str, expected: [&str; 4]| {
        assert_eq!(fields(&mut client, sql), expected.map(str::to_owned), "{sql}");
    };
    check("SELECT 0::posint", ["23514", "public", "posint", "posint_check"]);
    check("SELECT 1::evens", ["23514", "public", "evens", "even"]);
    check("SELECT (-2)::evens", ["23514", "public", "evens", "posint_check"]);
    check("SELECT NULL::code", ["23502", "public", "code", ""]);
}

#[test]
fn copy_asks_the_domains() {
    let server = server(&[]);
    let mut client = with_schema(&server);
    let mut copy = |data: &[u8], options: &str| {
        let sql = format!("COPY t FROM STDIN {options}");
        let outcome = client.simple_with(&sql, data).unwrap();
        let said = outcome.error().map(|e| format!("{} {}", e.sqlstate(), e.field('W')));
        said.unwrap_or_else(|| outcome.tags().join(","))
    };
    assert_eq!(copy(b"1\ta\t{1,2}\n2\tb\t\\N\n", ""), "COPY 2");
    assert_eq!(copy(b"3\ta\t\\N\n-4\ta\t\\N\n", ""), "23514 COPY t, line 2, column id: \"-4\"");
    assert_eq!(copy(b"3\t\\N\t\\N\n", ""), "23502 COPY t, line 1, column c: null input");
    assert_eq!(copy(b"3\ttoolong\t\\N\n", ""), "22001 COPY t, line 1, column c: \"toolong\"");
    assert_eq!(copy(b"3\ta\t{1,0}\n", ""), "23514 COPY t, line 1, column many: \"{1,0}\"");
    assert_eq!(copy(b"0\ta\t\\N\n3\t\\N\t\\N\n4\ta\t\\N\n", "(ON_ERROR ignore)"), "COPY 1");
    assert_eq!(
        client.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM t").unwrap(),
        "1 2 4"
    );
}

/// What a dump of a schema with domains says; then the server is killed.
#[test]
fn a_dump_is_restored_and_a_restart_forgets_nothing() {
    let mut server = server(&[]);
    let dump = "SET search_path = '';
        CREATE DOMAIN public.code AS character varying(5) COLLATE pg_catalog.\"C\" NOT NULL DEFAULT 'none'::character varying
            CONSTRAINT code_check CHECK (((VALUE)::text <> 'bad'::text));
        ALTER DOMAIN public.code OWNER TO postgres;
        COMMENT ON DOMAIN public.code IS 'short';
        COMMENT ON CONSTRAINT code_check ON DOMAIN public.code IS 'of it';
        CREATE DOMAIN public.posint AS integer CONSTRAINT posint_check CHECK ((VALUE > 0));
        CREATE DOMAIN public.evens AS public.posint CONSTRAINT even CHECK (((VALUE % 2) = 0));
        ALTER DOMAIN public.evens ADD CONSTRAINT small CHECK ((VALUE < 100)) NOT VALID;
        CREATE TABLE public.t (id public.evens NOT NULL, c public.code DEFAULT 'x'::character varying, p public.posint[]);
        COPY public.t (id, c, p) FROM stdin;";
    let mut client = server.connect().unwrap();
    for statement in dump.split_inclusive(';').filter(|s| !s.contains("COPY")) {
        client.run(statement).unwrap();
    }
    let copied =
        client.simple_with("COPY public.t FROM STDIN", b"2\tab\t{1}\n4\tcd\t\\N\n").unwrap();
    assert_eq!(copied.error(), None);
    client.run("ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (id)").unwrap();
    let told = |client: &mut Client| {
        let sql = "SELECT string_agg(format_type(atttypid, atttypmod), ' ' ORDER BY attnum), \
            (SELECT string_agg(pg_get_constraintdef(oid), ' ' ORDER BY conname) FROM pg_constraint WHERE contypid <> 0), \
            (SELECT string_agg(t::text, ' ' ORDER BY id) FROM t) \
            FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0";
        client.run("SET search_path = public").unwrap();
        format!("{:?}", client.run(sql).unwrap().rows())
    };
    let before = told(&mut client);
    assert!(before.contains("evens code posint[]"), "{before}");
    assert!(before.contains("(2,ab,{1}) (4,cd,)"), "{before}");
    drop(client);
    server.restart(Stop::Kill).unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(told(&mut client), before);
    for (sql, state) in [
        ("INSERT INTO t (id) VALUES (3)", "23514"),
        ("INSERT INTO t (id) VALUES (102)", "23514"),
        ("INSERT INTO t (id, c) VALUES (6, NULL)", "23502"),
        ("INSERT INTO t (id) VALUES (6)", ""),
    ] {
        assert_eq!(client.simple(sql).unwrap().sqlstate(), state, "{sql}");
    }
    if !have("psql") {
        return;
    }
    let port = server.port().to_string();
    let output = Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-XAtc", "\\dD", "postgres"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("public|code|character varying(5)|C|not null|'none'::character varying|"),
        "{text}"
    );
}
