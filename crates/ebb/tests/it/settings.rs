//! Settings: units, ALTER SYSTEM, files, pg_settings.

use crate::support::{refused_to_serve, server};
use lab::servers::{Stop, free_port};

#[test]
fn units_are_taken_and_shown_as_postgresql_does() {
    let server = server(&[("work_mem", "8192"), ("checkpoint_timeout", "10min")]);
    let mut client = server.connect().unwrap();
    for (name, value, shown) in [
        ("work_mem", "1024", "1MB"),
        ("work_mem", "'1536kB'", "1536kB"),
        ("work_mem", "'2GB'", "2GB"),
        ("statement_timeout", "1500", "1500ms"),
        ("statement_timeout", "'2s'", "2s"),
        ("statement_timeout", "'1.5min'", "90s"),
        ("vacuum_cost_delay", "'2ms'", "2ms"),
        ("synchronous_commit", "off", "off"),
        ("enable_seqscan", "no", "off"),
        ("random_page_cost", "1.1", "1.1"),
    ] {
        client.run(&format!("SET {name} TO {value}")).unwrap();
        assert_eq!(client.value(&format!("SHOW {name}")).unwrap(), shown, "{name} = {value}");
        client.run(&format!("RESET {name}")).unwrap();
    }
    assert_eq!(client.value("SHOW work_mem").unwrap(), "8MB");
    assert_eq!(client.value("SHOW checkpoint_timeout").unwrap(), "10min");
    let row = client
        .run("SELECT setting, unit, min_val, max_val, boot_val FROM pg_settings WHERE name = 'work_mem'")
        .unwrap();
    let row: Vec<String> = row.rows()[0].iter().map(|v| v.clone().unwrap_or_default()).collect();
    assert_eq!(row, ["8192", "kB", "64", "2147483647", "4096"]);
}

#[test]
fn alter_system_holds_after_a_restart() {
    let mut server = server(&[]);
    let mut client = server.connect().unwrap();
    client.run("ALTER SYSTEM SET work_mem TO '16MB'").unwrap();
    client.run("ALTER SYSTEM SET vacuum_buffer_usage_limit TO '256kB'").unwrap();
    assert_eq!(client.value("SHOW work_mem").unwrap(), "4MB");
    let wrong = client.simple("ALTER SYSTEM SET no_such_setting TO 1").unwrap();
    assert_eq!(wrong.sqlstate(), "42704");
    let wrong = client.simple("ALTER SYSTEM SET work_mem TO 'x'").unwrap();
    assert_eq!(wrong.sqlstate(), "22023");
    client.close();
    server.restart(Stop::Fast).unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(client.value("SHOW work_mem").unwrap(), "16MB");
    assert_eq!(client.value("SHOW vacuum_buffer_usage_limit").unwrap(), "256kB");
    client.run("ALTER SYSTEM RESET work_mem").unwrap();
    client.close();
    server.restart(Stop::Kill).unwrap();
    assert_eq!(server.connect().unwrap().value("SHOW work_mem").unwrap(), "4MB");
}

#[test]
fn startup_parameters_are_settings() {
    let server = server(&[]);
    let mut target = server.target();
    target.options = vec![
        ("application_name".into(), "from the startup packet".into()),
        ("options".into(), "-c work_mem=3MB".into()),
    ];
    let mut client = lab::client::Client::connect(&target).unwrap();
    assert_eq!(client.parameters["application_name"], "from the startup packet");
    assert_eq!(client.value("SHOW work_mem").unwrap(), "3MB");
    assert_eq!(client.parameters["server_encoding"], "UTF8");
    assert_eq!(client.parameters["integer_datetimes"], "on");
    client.run("SET application_name TO 'later'").unwrap();
    assert_eq!(client.parameters["application_name"], "later");
}

#[test]
fn what_the_log_goes_by_is_read_again() {
    let server = server(&[("autovacuum", "off")]);
    let mut client = server.connect().unwrap();
    client
        .run("CREATE TABLE t AS SELECT g, repeat('x', 100) FROM generate_series(1, 1000) g")
        .unwrap();
    // Full page images of one change of every page, their number, and the bytes of WAL.
    let mut turn = 0;
    let mut images = |setting: &str| -> (i64, i64) {
        client.run(&format!("ALTER SYSTEM SET {setting}")).unwrap();
        client.run("SELECT pg_reload_conf()").unwrap();
        client.run("CHECKPOINT").unwrap();
        let mut now = |what: &str| -> i64 {
            client.value(&format!("SELECT {what} FROM pg_stat_wal")).unwrap().parse().unwrap()
        };
        let before = (now("wal_fpi"), now("wal_bytes"));
        turn += 1;
        client.run(&format!("UPDATE t SET g = g WHERE g % 40 = {turn}")).unwrap();
        let mut now = |what: &str| -> i64 {
            client.value(&format!("SELECT {what} FROM pg_stat_wal")).unwrap().parse().unwrap()
        };
        (now("wal_fpi") - before.0, now("wal_bytes") - before.1)
    };
    images("wal_compression = off");
    let (plain, plain_bytes) = images("full_page_writes = on");
    assert!(plain >= 15, "{plain}");
    let (none, _) = images("full_page_writes = off");
    assert_eq!(none, 0);
    let (again, _) = images("full_page_writes = on");
    assert!(again >= 15, "{again}");
    let (_, compressed_bytes) = images("wal_compression = lz4");
    assert!(compressed_bytes < plain_bytes / 2, "{compressed_bytes} {plain_bytes}");
}

/// A value that would end its line makes no file that no server starts with.
#[test]
fn alter_system_writes_a_file_that_can_be_read() {
    let mut server = server(&[]);
    let mut client = server.connect().unwrap();
    for (statement, state) in [
        ("ALTER SYSTEM SET application_name TO E'two\\nlines'", "22023"),
        ("ALTER SYSTEM SET transaction_isolation TO 'read committed'", "55P02"),
        ("ALTER SYSTEM SET role TO 'postgres'", "55P02"),
        ("ALTER SYSTEM SET datestyle TO 'garbage'", "22023"),
        ("ALTER SYSTEM SET timezone TO 'Nowhere/Land'", "22023"),
        ("ALTER ROLE postgres SET timezone TO 'Nowhere/Land'", "22023"),
        ("ALTER ROLE postgres SET client_encoding TO 'garbage'", "22023"),
    ] {
        assert_eq!(client.simple(statement).unwrap().sqlstate(), state, "{statement}");
    }
    client.run("ALTER SYSTEM SET application_name TO E'it''s \\\\ and\\t#'").unwrap();
    client.run("ALTER SYSTEM SET search_path TO \"A b\", public").unwrap();
    client.run("ALTER SYSTEM SET my.own TO 'here'").unwrap();
    client.run("ALTER SYSTEM SET \"my.gö$ne\" TO 1").unwrap();
    client.run("ALTER SYSTEM SET my.gone TO 1").unwrap();
    client.run("ALTER SYSTEM RESET my.gone").unwrap();
    client.run("CREATE ROLE r LOGIN; ALTER ROLE r SET search_path TO \"C\", \"$user\"").unwrap();
    client.close();
    server.restart(Stop::Fast).unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(client.value("SHOW application_name").unwrap(), "it's \\ and\\x09#");
    assert_eq!(client.value("SHOW search_path").unwrap(), "\"A b\", public");
    assert_eq!(client.value("SHOW my.own").unwrap(), "here");
    assert_eq!(client.value("SHOW \"my.gö$ne\"").unwrap(), "1");
    assert_eq!(client.simple("SHOW my.gone").unwrap().sqlstate(), "42704");
    let mut target = server.target();
    target.user = "r".into();
    let mut client = lab::client::Client::connect(&target).unwrap();
    assert_eq!(client.value("SHOW search_path").unwrap(), "\"C\", \"$user\"");
}

/// Files include files; what is wrong in one is left out at a reload; pg_file_settings tells of it all.
#[test]
fn files_are_read_again() {
    let server = server(&[]);
    let folder = server.data_folder();
    let mut client = server.connect().unwrap();
    let loaded = client.value("SELECT pg_conf_load_time()").unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let text = std::fs::read_to_string(folder.join("postgresql.conf")).unwrap();
    write("postgresql.conf", &format!("{text}\nlock_timeout = 3\ninclude 'more.conf'\n"));
    write("more.conf", "lock_timeout = 7s\nmax_connections = 77\nwork_mem = lots\nmy.own = 1\n");
    let all = "SELECT string_agg(concat_ws(' ', sourcefile, sourceline, name, setting, applied, \
               error), '; ' ORDER BY seqno) FROM pg_file_settings WHERE name IN ('lock_timeout', \
               'max_connections', 'work_mem', 'my.own')";
    let told = client.value(all).unwrap();
    assert!(told.contains(" lock_timeout 3 f; more.conf 1 lock_timeout 7s t; "), "{told}");
    let wrong = "more.conf 2 max_connections 77 f setting could not be applied; \
                 more.conf 3 work_mem lots f setting could not be applied; \
                 more.conf 4 my.own 1 t";
    assert!(told.ends_with(wrong), "{told}");
    client.run("SELECT pg_reload_conf()").unwrap();
    assert_eq!(client.value("SHOW lock_timeout").unwrap(), "7s");
    assert_eq!(client.value("SHOW work_mem").unwrap(), "4MB");
    assert_ne!(client.value("SELECT pg_conf_load_time()").unwrap(), loaded);
    let of = |name: &str| {
        format!(
            "SELECT concat_ws(' ', setting, source, sourcefile, sourceline, reset_val, \
             pending_restart) FROM pg_settings WHERE name = '{name}'"
        )
    };
    let shown = client.value(&of("lock_timeout")).unwrap();
    assert_eq!(shown, "7000 configuration file more.conf 1 7000 f");
    client.run("SET lock_timeout TO 5").unwrap();
    assert_eq!(client.value(&of("lock_timeout")).unwrap(), "5 session 7000 f");
    let pending = client.value(&of("max_connections")).unwrap();
    assert!(pending.ends_with(" t"), "{pending}");
}

/// What a database, a role, and a role in a database are given; what RESET goes back to.
#[test]
fn the_most_special_default_counts() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client
        .run(
            "CREATE ROLE g; CREATE ROLE r LOGIN IN ROLE g; CREATE ROLE other; \
             ALTER ROLE ALL SET work_mem TO '2MB'; ALTER ROLE ALL SET idle_session_timeout TO 9000; \
             ALTER DATABASE postgres SET work_mem TO '1MB'; ALTER ROLE r SET lock_timeout TO 2; \
             ALTER ROLE r IN DATABASE postgres SET LOCK_TIMEOUT TO 3; \
             ALTER ROLE r IN DATABASE postgres SET lock_timeout TO 4; ALTER ROLE r SET role TO g",
        )
        .unwrap();
    let mut target = server.target();
    target.user = "r".into();
    let connect = |options: &str| {
        let mut target = target.clone();
        target.options = vec![("options".into(), options.into())];
        lab::client::Client::connect(&target)
    };
    let mut theirs = connect("").unwrap();
    let told = "SELECT string_agg(concat_ws(' ', setting, reset_val, source), ', ' ORDER BY name) \
                FROM pg_settings WHERE name IN ('work_mem', 'lock_timeout', 'idle_session_timeout')";
    let all = "9000 9000 global, 4 4 database user, 1024 1024 database";
    assert_eq!(theirs.value(told).unwrap(), all);
    let who = "SELECT concat_ws(' ', session_user, current_user, current_setting('role'))";
    assert_eq!(theirs.value(who).unwrap(), "r g g");
    theirs.run("SET ROLE r").unwrap();
    assert_eq!(theirs.value(who).unwrap(), "r r r");
    theirs.run("RESET ROLE").unwrap();
    assert_eq!(theirs.value(who).unwrap(), "r g g");
    theirs.run("BEGIN; SET ROLE NONE; ROLLBACK").unwrap();
    assert_eq!(theirs.value(who).unwrap(), "r g g");
    // What may not be is told in the log, unless the client has asked for it.
    assert!(connect("-c role=other").is_err());
    assert!(connect("-c temp_file_limit=5").is_err());
    client.run("ALTER ROLE r SET role TO other").unwrap();
    assert_eq!(connect("").unwrap().value(who).unwrap(), "r r none");
}

#[test]
fn a_database_lets_in_whom_it_has_room_for() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    client
        .run("CREATE ROLE r LOGIN; CREATE ROLE s LOGIN; ALTER DATABASE postgres CONNECTION LIMIT 2")
        .unwrap();
    let connect = |user: &str| {
        let mut target = server.target();
        target.user = user.into();
        lab::client::Client::connect(&target)
    };
    let one = connect("r").unwrap();
    let error = connect("r").unwrap_err().to_string();
    assert!(error.contains("too many connections for database \"postgres\""), "{error}");
    connect("postgres").unwrap().close();
    one.close();
    client
        .run(
            "ALTER DATABASE postgres CONNECTION LIMIT -1; \
             REVOKE CONNECT ON DATABASE postgres FROM PUBLIC; GRANT CONNECT ON DATABASE postgres TO s",
        )
        .unwrap();
    let error = connect("r").unwrap_err().to_string();
    assert!(error.contains("permission denied for database \"postgres\""), "{error}");
    connect("s").unwrap();
    connect("postgres").unwrap();
}

/// Texts are looked at like numbers: at start, at a reload and by ALTER SYSTEM.
#[test]
fn texts_in_files_are_looked_at() {
    let mut server = server(&[]);
    let conf = server.data_folder().join("postgresql.conf");
    let before = std::fs::read_to_string(&conf).unwrap();
    let line = before.lines().count() + 1;
    let mut client = server.connect().unwrap();
    for (setting, value, detail) in [
        ("TimeZone", "nowhere", ""),
        ("log_timezone", "nowhere", ""),
        ("DateStyle", "foo", "Unrecognized key word: \"foo\"."),
        ("search_path", "a,,b", "List syntax is invalid."),
        ("client_encoding", "nope", ""),
        ("lc_time", "nope", ""),
        ("createrole_self_grant", "nope", "Unrecognized key word: \"nope\"."),
    ] {
        let kept = client.value(&format!("SHOW {setting}")).unwrap();
        let wrong = format!("invalid value for parameter \"{setting}\": \"{value}\"");
        // There it is one name.
        if setting != "search_path" {
            let set = format!("ALTER SYSTEM SET {setting} = '{value}'");
            assert_eq!(client.simple(&set).unwrap().error().unwrap().message(), wrong);
        }
        let text = format!("{before}{setting} = '{value}'\nlock_timeout = 3\n");
        std::fs::write(&conf, text).unwrap();
        let of_file = format!("SELECT error FROM pg_file_settings WHERE name = '{setting}'");
        assert_eq!(client.value(&of_file).unwrap(), "setting could not be applied");
        client.run("SELECT pg_reload_conf()").unwrap();
        assert_eq!(client.value("SHOW lock_timeout").unwrap(), "3ms", "{setting}");
        assert_eq!(client.value(&format!("SHOW {setting}")).unwrap(), kept);
        std::fs::write(&conf, &before).unwrap();
        client.run("SELECT pg_reload_conf()").unwrap();
        assert_eq!(client.value("SHOW lock_timeout").unwrap(), "0", "{setting}");
        let port = free_port().unwrap();
        let said = refused_to_serve(&server, port, &["-c", &format!("{setting}={value}")]);
        let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        assert_eq!(said, format!("ebb: {wrong}{detail}"));
    }
    drop(client);
    server.stop(Stop::Fast).unwrap();
    std::fs::write(&conf, format!("{before}search_path = 'a,,b'\n")).unwrap();
    let said = refused_to_serve(&server, free_port().unwrap(), &[]);
    let place = format!("in file \"postgresql.conf\" line {line} (List syntax is invalid.)");
    assert_eq!(said, format!("ebb: invalid value for parameter \"search_path\": \"a,,b\" {place}"));
}
