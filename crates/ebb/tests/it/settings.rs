//! Settings: units, ALTER SYSTEM, files, pg_settings.

use crate::support::server;
use lab::servers::Stop;

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
