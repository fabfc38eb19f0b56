//! PostgreSQL's vacuumdb, reindexdb, clusterdb and pg_amcheck 15 with their options, where they are on the machine.

use crate::support::{have, server};
use std::process::Command;

const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

#[test]
fn vacuumdb_works_with_its_options() {
    let program = format!("{PROGRAMS}/vacuumdb");
    if !have(&program) {
        return;
    }
    let server = server(&[("autovacuum", "off")]);
    let mut session = server.connect().expect("a session");
    let made = session.simple(
        "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT g, 'x' FROM generate_series(1, 500) g",
    );
    assert!(made.expect("a reply").error().is_none());
    let port = server.port().to_string();
    for options in [
        "",
        "--all",
        "--analyze",
        "--analyze-only",
        "--analyze-in-stages",
        "--freeze",
        "--full",
        "--verbose",
        "--table=t",
        "--analyze --table=t(a)",
        "--jobs=2",
        "--jobs=2 --analyze --no-truncate",
        "--parallel=2 --table=t",
        "--parallel=0 --table=t",
        "--full --freeze --analyze --table=t",
        "--disable-page-skipping --table=t",
        "--skip-locked --table=t",
        "--min-xid-age=1",
        "--min-mxid-age=1",
        "--no-index-cleanup --table=t",
        "--force-index-cleanup --table=t",
        "--no-process-toast --table=t",
        "--no-truncate --table=t",
    ] {
        let mut command = Command::new(&program);
        command.args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres"]);
        command.args(options.split_whitespace());
        if options != "--all" {
            command.arg("postgres");
        }
        let output = command.output().expect("vacuumdb runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "vacuumdb {options}: {text}");
    }
}

/// reindexdb, clusterdb and pg_amcheck, whose statements go on while others read and write.
#[test]
fn reindexdb_clusterdb_and_pg_amcheck_work() {
    if !have(&format!("{PROGRAMS}/reindexdb")) {
        return;
    }
    let server = server(&[("autovacuum", "off")]);
    let mut session = server.connect().expect("a session");
    let made = session.simple(
        "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT g, 'x' FROM generate_series(1, 500) g; \
         ALTER TABLE t CLUSTER ON t_pkey",
    );
    assert!(made.expect("a reply").error().is_none());
    let port = server.port().to_string();
    for (program, options) in [
        ("reindexdb", "--concurrently --verbose postgres"),
        ("reindexdb", "--concurrently --table=t postgres"),
        ("reindexdb", "--concurrently --index=t_pkey postgres"),
        ("reindexdb", "--concurrently --schema=public --jobs=2 postgres"),
        ("reindexdb", "--all --concurrently"),
        ("reindexdb", "--table=t postgres"),
        ("reindexdb", "--system postgres"),
        ("reindexdb", "--system --verbose template1"),
        ("reindexdb", "--table=pg_class --index=pg_type_oid_index postgres"),
        ("reindexdb", "--schema=pg_catalog --jobs=2 postgres"),
        ("clusterdb", "--verbose postgres"),
        ("clusterdb", "--table=t postgres"),
        ("clusterdb", "--all"),
        ("pg_amcheck", "--install-missing --table=t postgres"),
        ("pg_amcheck", "--all --install-missing --heapallindexed --jobs=2"),
        ("pg_amcheck", "--parent-check --heapallindexed --table=pg_catalog.pg_* postgres"),
        ("pg_amcheck", "--parent-check --rootdescend --heapallindexed --on-error-stop postgres"),
        (
            "pg_amcheck",
            "--no-dependent-indexes --exclude-toast-pointers --skip=all-frozen postgres",
        ),
    ] {
        let mut command = Command::new(format!("{PROGRAMS}/{program}"));
        command.args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres"]);
        command.args(options.split_whitespace());
        let output = command.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{program} {options}: {text}");
    }
}
