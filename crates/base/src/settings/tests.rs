use super::*;
use std::sync::Arc;

fn shown(name: &str, text: &str) -> String {
    let (_, def) = definition(name).unwrap();
    def.show(&def.parse(text).unwrap())
}

#[test]
fn units_parse_and_print_as_postgresql() {
    assert_eq!(shown("shared_buffers", "16384"), "128MB");
    assert_eq!(shown("shared_buffers", "1GB"), "1GB");
    assert_eq!(shown("shared_buffers", "128kB"), "128kB");
    assert_eq!(shown("vacuum_buffer_usage_limit", "2MB"), "2MB");
    assert_eq!(shown("statement_timeout", "1500"), "1500ms");
    assert_eq!(shown("statement_timeout", "2min"), "2min");
    assert_eq!(shown("statement_timeout", "0"), "0");
    assert_eq!(shown("autovacuum_vacuum_cost_delay", "2ms"), "2ms");
    assert_eq!(shown("autovacuum_vacuum_cost_delay", "0.5"), "500us");
    assert_eq!(shown("vacuum_cost_delay", "2.5ms"), "2500us");
    assert_eq!(shown("vacuum_cost_delay", "0.0003"), "0.3us");
    assert_eq!(shown("vacuum_cost_delay", "0"), "0");
    assert_eq!(shown("seq_page_cost", "1e10"), "1e+10");
    assert_eq!(shown("seq_page_cost", "0.00001234567"), "1.23457e-05");
    assert_eq!(shown("random_page_cost", "4"), "4");
    // A fraction of a unit is a whole number of the next smaller one.
    assert_eq!(shown("work_mem", "1.1GB"), "1126MB");
    assert_eq!(shown("work_mem", "0.5005MB"), "513kB");
    assert_eq!(shown("shared_buffers", "30.1MB"), "30824kB");
    assert_eq!(shown("statement_timeout", "1.0005min"), "1min");
    assert_eq!(shown("vacuum_cost_delay", "2.0004ms"), "2ms");
    assert_eq!(shown("fsync", "of"), "off");
    assert_eq!(shown("synchronous_commit", "TRUE"), "on");
}

#[test]
fn bad_values_are_refused_in_postgresql_words() {
    let (_, def) = definition("work_mem").unwrap();
    assert_eq!(
        def.parse("1").unwrap_err().to_string(),
        "1 kB is outside the valid range for parameter \"work_mem\" (64 kB .. 2147483647 kB)"
    );
    assert_eq!(
        def.parse("x").unwrap_err().to_string(),
        "invalid value for parameter \"work_mem\": \"x\""
    );
    let (_, def) = definition("vacuum_cost_delay").unwrap();
    assert_eq!(
        def.parse("1h").unwrap_err().to_string(),
        "3.6e+06 ms is outside the valid range for parameter \"vacuum_cost_delay\" (0 ms .. 100 ms)"
    );
    let (_, def) = definition("maintenance_work_mem").unwrap();
    let e = def.parse("2TB").unwrap_err().to_sql_error();
    assert_eq!(e.message, "invalid value for parameter \"maintenance_work_mem\": \"2TB\"");
    assert_eq!(e.hint.as_deref(), Some("Value exceeds integer range."));
    assert_eq!(
        definition("nope").unwrap_err().to_string(),
        "unrecognized configuration parameter \"nope\""
    );
}

#[test]
fn set_local_and_rollback_put_values_back() {
    let mut s = SessionSettings::new(Arc::new(ServerSettings::new()));
    s.set("work_mem", "8MB", SetScope::Session, false).unwrap();
    s.end_transaction(true);
    s.set("work_mem", "16MB", SetScope::Local, false).unwrap();
    assert_eq!(s.show("work_mem").unwrap(), "16MB");
    s.end_transaction(true);
    assert_eq!(s.show("work_mem").unwrap(), "8MB");
    s.set("work_mem", "32MB", SetScope::Session, false).unwrap();
    s.begin_nested();
    s.set("work_mem", "64MB", SetScope::Session, false).unwrap();
    s.end_nested(false);
    assert_eq!(s.show("work_mem").unwrap(), "32MB");
    s.end_transaction(false);
    assert_eq!(s.show("work_mem").unwrap(), "8MB");
    s.set("work_mem", "1MB", SetScope::Session, false).unwrap();
    s.set("work_mem", "2MB", SetScope::Local, false).unwrap();
    s.end_transaction(true);
    assert_eq!(s.show("work_mem").unwrap(), "1MB");
    s.reset_all();
    assert_eq!(s.show("work_mem").unwrap(), "4MB");
}

#[test]
fn configuration_files_parse() {
    let text = "# a comment\nwork_mem = 8MB\n search_path = 'a, ''b'''  # more\nfsync on\n";
    let a = parse_file("postgresql.conf", text).unwrap();
    let pairs: Vec<(&str, &str)> = a.iter().map(|a| (a.name.as_str(), a.value.as_str())).collect();
    assert_eq!(pairs, [("work_mem", "8MB"), ("search_path", "a, 'b'"), ("fsync", "on")]);
    assert!(parse_file("f", "= 3").is_err());
    // What a backslash means in quotes is as in PostgreSQL's files.
    let b = parse_file("f", r"a.b = '\t\n\\\x\101\'\60''7'").unwrap();
    assert_eq!(b[0].value, "\t\n\\xA'0'7");
    let odd = "it's \\ and \t";
    let line = format!("a.b = {}", quote_value(odd));
    assert_eq!(parse_file("f", &line).unwrap()[0].value, odd);
    let server = ServerSettings::new();
    server.apply(&a, true).unwrap();
    assert_eq!(server.int("work_mem"), 8192);
}

#[test]
fn a_setting_nobody_defined_goes_back_to_what_the_start_gave_it() {
    let mut s = SessionSettings::new(Arc::new(ServerSettings::new()));
    s.set_default("app.tenant", "of the role", Source::User).unwrap();
    s.set("app.tenant", "mine", SetScope::Session, false).unwrap();
    assert_eq!(s.show("app.tenant").unwrap(), "mine");
    s.reset("app.tenant", SetScope::Session, false).unwrap();
    assert_eq!(s.show("app.tenant").unwrap(), "of the role");
    s.end_transaction(true);
    s.set("app.tenant", "mine", SetScope::Session, false).unwrap();
    s.set("app.other", "mine", SetScope::Session, false).unwrap();
    s.reset_all();
    assert_eq!(s.show("app.tenant").unwrap(), "of the role");
    assert_eq!(s.show("app.other").unwrap(), "");
    // RESET is undone like SET.
    s.end_transaction(false);
    assert_eq!(s.show("app.tenant").unwrap(), "of the role");
}

#[test]
fn whole_numbers_are_read_as_c_reads_them() {
    // A number that begins with 0 is octal, and permissions are shown so.
    assert_eq!(shown("log_file_mode", "0640"), "0640");
    assert_eq!(shown("log_file_mode", "416"), "0640");
    assert_eq!(shown("work_mem", "0200"), "128kB");
    assert_eq!(shown("work_mem", "0200MB"), "128MB");
    assert_eq!(shown("work_mem", "0x100"), "256kB");
    assert_eq!(shown("work_mem", "0.5MB"), "512kB");
    assert_eq!(shown("checkpoint_completion_target", "0.5"), "0.5");
    for (name, wrong) in [("unix_socket_permissions", "0788"), ("work_mem", "09")] {
        let (_, def) = definition(name).unwrap();
        assert!(def.parse(wrong).is_err(), "{name} {wrong}");
    }
}

#[test]
fn what_the_server_does_anyway_cannot_be_set_otherwise() {
    let (_, def) = definition("zero_damaged_pages").unwrap();
    assert!(def.parse("off").is_ok());
    let error = def.parse("on").unwrap_err();
    assert_eq!(error.to_string(), "invalid value for parameter \"zero_damaged_pages\": \"on\"");
    let (_, def) = definition("io_method").unwrap();
    assert!(def.parse("sync").is_ok() && def.parse("worker").is_err());
    // What has no meaning has none, whatever it is.
    assert_eq!(shown("log_rotation_age", "1440"), "1d");
    assert_eq!(shown("restore_command", "cp %f %p"), "cp %f %p");
    for list in [fixed::FIXED, void::VOID] {
        assert!(list.is_sorted_by_key(|d| d.name));
    }
    let mut names: Vec<&str> = DEFINITIONS.iter().map(|d| d.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|w| w[0] != w[1]));
}

/// Whoever connects sets no more by it than by SET.
#[test]
fn a_client_is_not_given_what_only_superusers_set() {
    let mut s = SessionSettings::new(Arc::new(ServerSettings::new()));
    for name in ["temp_file_limit", "track_counts", "log_connections"] {
        let (_, def) = definition(name).unwrap();
        let text = if def.type_name() == "integer" { "5" } else { "on" };
        let error = check_start(name, false).unwrap_err();
        assert_eq!(error.to_string(), format!("permission denied to set parameter \"{name}\""));
        check_start(name, true).unwrap();
        s.set_default(name, text, Source::Client).unwrap();
    }
    check_start("work_mem", false).unwrap();
    s.set_default("work_mem", "1MB", Source::Client).unwrap();
    let (index, def) = definition("work_mem").unwrap();
    s.set("work_mem", "2MB", SetScope::Session, false).unwrap();
    assert_eq!(def.show(&s.reset_value(index)), "1MB");
    // Nor are such settings kept for sessions to come that count before a session begins.
    let kept = |name: &str, superuser| check_default(definition(name).unwrap().1, superuser);
    assert!(kept("work_mem", false).is_ok() && kept("temp_file_limit", true).is_ok());
    assert!(kept("temp_file_limit", false).is_err() && kept("log_connections", true).is_err());
    assert!(checked(definition("DateStyle").unwrap().1, "garbage").is_err());
}

#[test]
fn a_reload_takes_what_is_right() {
    let take = |server: &ServerSettings, text: &str, starting| {
        server.apply(&parse_file("f", text).unwrap(), starting)
    };
    let server = ServerSettings::new();
    take(&server, "work_mem = 8MB\nport = 5433\nDateStyle = 'sql, dmy'", true).unwrap();
    assert_eq!(server.string("DateStyle"), "SQL, DMY");
    let text = "work_mem = 16MB\nwork_mem = x\nstatement_timeout = 1s\nport = 5433\n\
                lock_timeout = bad\nlock_timeout = 7";
    let wrong = take(&server, text, false).unwrap();
    let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    assert_eq!(wrong, ["invalid value for parameter \"work_mem\": \"x\" in file \"f\" line 2"]);
    assert_eq!((server.int("work_mem"), server.int("statement_timeout")), (8192, 1000));
    assert_eq!(server.int("lock_timeout"), 7);
    let nothing = take(&server, "work_mem = 1MB\nnope = 1", false).unwrap_err();
    let text = "unrecognized configuration parameter \"nope\" in file \"f\" line 2";
    assert_eq!((nothing.to_string(), server.int("work_mem")), (text.to_owned(), 8192));
    // What needs a restart is marked until the file says again what is in force.
    let port = || server.entry(find("port").unwrap().0);
    take(&server, "port = 5434", false).unwrap();
    assert!(port().pending_restart && server.int("port") == 5433);
    take(&server, "port = 5433", false).unwrap();
    assert!(!port().pending_restart);
    assert!(take(&server, "work_mem = x", true).is_err());
}

#[test]
fn files_set_what_nobody_has_defined() {
    let server = Arc::new(ServerSettings::new());
    let take = |text: &str| server.apply(&parse_file("f", text).unwrap(), false).unwrap();
    take("My.own = 'a'\nmy.other = 'b'");
    let mut s = SessionSettings::new(Arc::clone(&server));
    assert_eq!(s.show("my.own").unwrap(), "a");
    s.set("my.other", "mine", SetScope::Session, false).unwrap();
    s.end_transaction(true);
    take("my.own = 'c'\nmy.other = 'd'\nmy.third = 'e'");
    s.refresh();
    let seen = |s: &SessionSettings| {
        ["my.own", "my.other", "my.third"].map(|n| s.show(n).unwrap()).join(" ")
    };
    assert_eq!(seen(&s), "c mine e");
    s.reset_all();
    assert_eq!(seen(&s), "c d e");
}
