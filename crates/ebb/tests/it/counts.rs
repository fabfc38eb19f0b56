//! What autovacuum goes by outlives the server. What threads wait for.

use crate::support::server;
use lab::servers::Stop;
use std::time::{Duration, Instant};

const COUNTS: &str = "SELECT n_live_tup || ' ' || n_dead_tup || ' ' || n_tup_ins || ' ' || n_tup_del || ' ' || \
     n_mod_since_analyze || ' ' || vacuum_count || ' ' || (last_vacuum IS NOT NULL)::text \
     FROM pg_stat_user_tables WHERE relname = 't'";

#[test]
fn a_restarted_server_knows_what_is_dead() {
    let mut server = server(&[("autovacuum_naptime", "1s")]);
    let mut client = server.connect().unwrap();
    client.run("CREATE TABLE t AS SELECT g FROM generate_series(1, 1000) g").unwrap();
    client.run("ALTER TABLE t SET (autovacuum_enabled = off)").unwrap();
    client.run("CREATE TABLE other AS SELECT g FROM generate_series(1, 10) g").unwrap();
    client.run("VACUUM ANALYZE t").unwrap();
    client.run("DELETE FROM t WHERE g <= 900").unwrap();
    client.close();
    // A session's changes are told when it has ended.
    let before = "100 900 1000 900 900 1 true";
    let mut client = server.connect().unwrap();
    assert_eq!(client.value(COUNTS).unwrap(), before);
    client.close();
    server.restart(Stop::Fast).unwrap();
    // Fewer than the threshold have been deleted since: it is those of before that autovacuum comes for.
    let mut client = server.connect().unwrap();
    assert_eq!(client.value(COUNTS).unwrap(), before);
    client.run("ALTER TABLE t RESET (autovacuum_enabled)").unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let count = "SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 't'";
    while client.value(count).unwrap() == "0" {
        assert!(Instant::now() < end, "autovacuum came: {}", client.value(COUNTS).unwrap());
        std::thread::sleep(Duration::from_millis(20));
    }
    let after = "SELECT n_dead_tup || ' ' || n_tup_del || ' ' || vacuum_count FROM pg_stat_user_tables WHERE relname = 't'";
    assert_eq!(client.value(after).unwrap(), "0 900 1");
    client.close();
}

/// Anti-wraparound work apart, autovacuum goes by counts: without them the log says so, but not to who has turned both off.
#[test]
fn the_log_tells_of_settings_that_leave_autovacuum_nothing_to_go_by() {
    let said = [
        "WARNING:  autovacuum not started because of misconfiguration",
        "HINT:  Enable the \"track_counts\" option.",
    ];
    for (autovacuum, says) in [("on", true), ("off", false)] {
        let server = server(&[("autovacuum", autovacuum), ("track_counts", "off")]);
        server.connect().unwrap().close();
        let log = server.log();
        assert!(said.iter().all(|line| log.contains(line) == says), "{log}");
    }
}

#[test]
fn what_threads_wait_for_is_shown() {
    let server = server(&[]);
    let mut client = server.connect().unwrap();
    let wants = [
        ("checkpointer", "Activity|CheckpointerMain"),
        ("background writer", "Activity|BgwriterMain"),
        ("walwriter", "Activity|WalWriterMain"),
        ("autovacuum launcher", "Activity|AutovacuumMain"),
    ];
    for (kind, event) in wants {
        let question = format!(
            "SELECT wait_event_type || '|' || wait_event FROM pg_stat_activity WHERE backend_type = '{kind}'"
        );
        // It goes on now and then.
        let end = Instant::now() + Duration::from_secs(60);
        while client.value(&question).ok().as_deref() != Some(event) {
            assert!(Instant::now() < end, "{kind}");
        }
    }
    let unnamed = "SELECT count(*) FROM pg_stat_activity a LEFT JOIN pg_wait_events w \
                   ON (w.type, w.name) = (a.wait_event_type, a.wait_event) \
                   WHERE a.wait_event IS NOT NULL AND w.name IS NULL";
    assert_eq!(client.value(unnamed).unwrap(), "0");
}
