//! What becomes of rights when roles change, and when things get other owners and places.

use crate::support::Database;

/// A role's name may be anything: it says neither whose the rights are nor which.
#[test]
fn names_of_roles_grant_nothing_to_others() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        r#"CREATE ROLE bob; CREATE ROLE "bob=r/"; CREATE ROLE "=arwd/z"; CREATE ROLE """bob"""; CREATE ROLE """""#,
        "CREATE TABLE t (a int)",
        r#"GRANT SELECT ON t TO "=arwd/z" WITH GRANT OPTION"#,
        r#"SET ROLE "=arwd/z""#,
        r#"GRANT SELECT ON t TO "bob=r/""#,
        "RESET ROLE",
        r#"GRANT INSERT ON t TO """bob""", """""#,
    ]);
    s.check(&[
        ("SELECT has_table_privilege('bob=r/', 't', 'SELECT'), has_table_privilege('bob=r/', 't', 'INSERT')", "t|f"),
        (r#"SELECT has_table_privilege('"bob"', 't', 'INSERT'), has_table_privilege('bob', 't', 'INSERT')"#, "t|f"),
        ("SELECT has_table_privilege('bob', 't', 'SELECT')", "f"),
    ]);
}

/// A role of the old name is another one, in whatever database.
#[test]
fn a_renamed_role_keeps_its_rights_in_every_database() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE DATABASE d", "CREATE ROLE old"]);
    let mut there = db.session_of("d");
    there.run_each(&["CREATE TABLE t (a int)", "GRANT SELECT ON t TO old"]);
    there.check(&[("SELECT has_table_privilege('old', 't', 'SELECT')", "t")]);
    s.run_each(&["ALTER ROLE old RENAME TO new", "CREATE ROLE old"]);
    there.check(&[
        ("SELECT has_table_privilege('new', 't', 'SELECT')", "t"),
        ("SELECT has_table_privilege('old', 't', 'SELECT')", "f"),
        ("SET ROLE new", ""),
        ("SELECT * FROM t", ""),
        ("RESET ROLE; SET ROLE old", ""),
        ("SELECT * FROM t", "42501 permission denied for table t"),
    ]);
}

#[test]
fn a_role_with_something_in_another_database_is_not_dropped() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE DATABASE d", "CREATE ROLE r", "CREATE ROLE g"]);
    let mut there = db.session_of("d");
    there.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY)",
        "ALTER TABLE t OWNER TO r",
        "CREATE TABLE u (a int)",
        "GRANT SELECT ON u TO g",
    ]);
    for role in ["r", "g"] {
        let refused = s.run(&format!("DROP ROLE {role}"));
        assert!(refused.starts_with("2BP01"), "{refused}");
        assert!(refused.ends_with("1 object in database d"), "{refused}");
    }
    there.run_each(&["DROP TABLE t, u"]);
    drop(there);
    s.run_each(&["DROP ROLE r, g", "DROP DATABASE d"]);
}

#[test]
fn who_is_superuser_no_more_has_its_rights_no_more() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE su SUPERUSER LOGIN",
        "CREATE TABLE t (a int)",
        "CREATE ROLE m; CREATE SCHEMA x",
    ]);
    s.run_each(&[
        "CREATE TABLE x.t (a int)",
        "GRANT USAGE ON SCHEMA x TO m",
        "GRANT SELECT ON x.t TO m",
        "CREATE ROLE u; GRANT m TO u",
    ]);
    let mut other = db.session();
    other.run_each(&["SET SESSION AUTHORIZATION su", "SELECT * FROM t"]);
    s.run_each(&["ALTER ROLE su NOSUPERUSER"]);
    other.check(&[
        ("SELECT * FROM t", "42501 permission denied for table t"),
        ("SHOW is_superuser", "off"),
    ]);
    s.run_each(&["ALTER ROLE su RENAME TO sv", "ALTER ROLE sv SUPERUSER"]);
    other.check(&[("SELECT current_user, session_user", "sv|sv"), ("SELECT * FROM t", "")]);
    other.run_each(&["RESET SESSION AUTHORIZATION", "SET ROLE u"]);
    other.check(&[("SELECT * FROM x.t", "")]);
    s.run_each(&["REVOKE m FROM u"]);
    other.check(&[("SELECT * FROM x.t", "42501 permission denied for schema x")]);
}

/// Who gets something must have been able to make it there, and who renames it too.
#[test]
fn other_owners_and_names_take_the_right_to_create() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE a; CREATE ROLE b; GRANT b TO a",
        "CREATE SCHEMA x; GRANT CREATE, USAGE ON SCHEMA x TO a; GRANT USAGE ON SCHEMA x TO b",
        "CREATE SCHEMA own AUTHORIZATION a",
        "SET ROLE a",
        "CREATE TABLE x.t (a text); CREATE TYPE x.e AS ENUM ('a')",
        "CREATE STATISTICS x.st ON a, (a || 'x') FROM x.t",
    ]);
    s.check(&[
        ("ALTER TABLE x.t OWNER TO b", "42501 permission denied for schema x"),
        ("ALTER TABLE x.t OWNER TO a", ""),
        ("ALTER TYPE x.e OWNER TO b", "42501 permission denied for schema x"),
        ("ALTER STATISTICS x.st OWNER TO b", "42501 permission denied for schema x"),
        ("ALTER SCHEMA own RENAME TO o", "42501 permission denied for database postgres"),
        ("ALTER SCHEMA own OWNER TO b", "42501 permission denied for database postgres"),
        ("RESET ROLE", ""),
        ("GRANT CREATE ON SCHEMA x TO b", ""),
        ("SET ROLE a", ""),
        ("ALTER TABLE x.t OWNER TO b", ""),
        ("ALTER TABLE x.t OWNER TO a", ""),
        ("RESET ROLE", ""),
        ("REVOKE CREATE ON SCHEMA x FROM a, b", ""),
        ("SET ROLE a", ""),
        ("ALTER TABLE x.t RENAME TO u", "42501 permission denied for schema x"),
        ("ALTER TABLE x.t RENAME a TO b", ""),
        ("RESET ROLE", ""),
        ("ALTER TABLE x.t OWNER TO b", ""),
        ("SELECT typowner::regrole FROM pg_type WHERE typname = 't'", "b"),
        (
            "SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname LIKE 'pg_toast_' || 'x.t'::regclass::oid || '%'",
            "b",
        ),
    ]);
}

#[test]
fn temporary_relations_take_a_right() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE r", "REVOKE TEMP ON DATABASE postgres FROM PUBLIC", "SET ROLE r"]);
    let denied = "42501 permission denied to create temporary tables in database \"postgres\"";
    for made in [
        "CREATE TEMP TABLE t (a int)",
        "CREATE TABLE pg_temp.t (a int)",
        "CREATE TEMP VIEW t AS SELECT 1",
        "CREATE TEMP SEQUENCE t",
        "SELECT 1 AS a INTO TEMP t",
    ] {
        assert_eq!(s.run(made), denied, "{made}");
    }
    s.run_each(&["RESET ROLE", "GRANT TEMP ON DATABASE postgres TO r", "SET ROLE r"]);
    s.run_each(&["CREATE TEMP TABLE t (a int)", "ALTER TABLE t RENAME TO u"]);
}

#[test]
fn sequences_are_restarted_by_their_owner() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE r",
        "CREATE TABLE t (id serial)",
        "GRANT TRUNCATE ON t TO r",
        "SET ROLE r",
    ]);
    s.check(&[
        ("TRUNCATE t RESTART IDENTITY", "42501 must be owner of sequence t_id_seq"),
        ("TRUNCATE t", ""),
    ]);
}

/// A setting that was given to a role by who may is not the role's to take back.
#[test]
fn a_role_keeps_the_settings_that_it_may_not_change() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE r",
        "ALTER ROLE r SET log_statement = 'all'",
        "ALTER ROLE r SET temp_file_limit = '1GB'",
        "ALTER ROLE r SET work_mem = '1MB'",
        "SET ROLE r",
    ]);
    let denied = "42501 permission denied to set parameter";
    s.check(&[
        ("ALTER ROLE r RESET log_statement", &*format!("{denied} \"log_statement\"")),
        ("ALTER ROLE r SET log_statement TO DEFAULT", &*format!("{denied} \"log_statement\"")),
        ("ALTER ROLE r SET log_duration FROM CURRENT", &*format!("{denied} \"log_duration\"")),
        ("ALTER ROLE r RESET ALL", ""),
        ("RESET ROLE", ""),
        (
            "SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'r'::regrole",
            "{log_statement=all,temp_file_limit=1GB}",
        ),
        (
            "ALTER ROLE pg_monitor LOGIN",
            "42939 role name \"pg_monitor\" is reserved\nCannot alter reserved roles.",
        ),
        ("ALTER ROLE r RESET ALL", ""),
        ("SELECT count(*) FROM pg_db_role_setting", "0"),
    ]);
}

#[test]
fn nothing_moves_into_schemas_of_sessions_and_toast() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY)",
        "CREATE TYPE e AS ENUM ('a')",
        "CREATE SCHEMA x",
        "CREATE TABLE x.t_pkey (a int)",
        "CREATE TEMP TABLE mine (a int)",
    ]);
    let toast = "0A000 cannot move objects into or out of TOAST schema";
    let temp = "0A000 cannot move objects into or out of temporary schemas";
    s.check(&[
        ("ALTER TABLE t SET SCHEMA pg_toast", toast),
        ("ALTER TYPE e SET SCHEMA pg_toast", toast),
        ("ALTER TYPE e SET SCHEMA pg_temp", temp),
        ("ALTER TABLE mine SET SCHEMA x", temp),
        ("ALTER TABLE t SET SCHEMA x", "42P07 relation \"t_pkey\" already exists in schema \"x\""),
    ]);
}

/// Who may say something of a table, or refer to it, need not be able to read it.
#[test]
fn constraints_are_checked_whoever_may_read_the_rows() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE r; GRANT CREATE ON SCHEMA public TO r",
        "CREATE TABLE pk (a int PRIMARY KEY)",
        "INSERT INTO pk VALUES (1)",
        "GRANT REFERENCES ON pk TO r",
        "SET ROLE r",
        "CREATE TABLE t (a int)",
        "INSERT INTO t VALUES (1)",
        "REVOKE ALL ON t FROM r",
        "ALTER TABLE t ADD CHECK (a > 0)",
        "ALTER TABLE t ALTER a SET NOT NULL",
        "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES pk",
        "ALTER TABLE t ADD CONSTRAINT v FOREIGN KEY (a) REFERENCES pk NOT VALID",
        "ALTER TABLE t VALIDATE CONSTRAINT v",
    ]);
    s.check(&[("SELECT * FROM t", "42501 permission denied for table t")]);
    // Nor is he told what is in it.
    s.run_each(&[
        "RESET ROLE",
        "CREATE TABLE fk (a int REFERENCES pk)",
        "GRANT INSERT ON fk TO r",
        "SET ROLE r",
    ]);
    s.check(&[(
        "INSERT INTO fk SELECT 2",
        "23503 insert or update on table \"fk\" violates foreign key constraint \"fk_a_fkey\"\nKey is not present in table \"pk\".",
    )]);
    s.run_each(&[
        "RESET ROLE",
        "CREATE SCHEMA x AUTHORIZATION r",
        "CREATE TYPE x.e AS ENUM ('a')",
        "SET ROLE r",
        "DROP TYPE x.e",
    ]);
}

/// Whose privileges a role has is looked up once: what changes it, by whatever way, counts from the next statement on.
#[test]
fn whose_rights_a_role_has_is_as_of_now() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE worker; CREATE ROLE readers; CREATE ROLE staff; CREATE ROLE boss",
        "CREATE TABLE t (a int); CREATE TABLE owned (a int)",
        "GRANT SELECT ON t TO readers",
        "GRANT SELECT ON owned TO pg_database_owner",
    ]);
    let mut w = db.session();
    w.run_each(&["SET SESSION AUTHORIZATION worker"]);
    let (may, denied) = ("", "42501 permission denied for table t");
    let asked = |w: &mut crate::support::Connection, want: &str| {
        for _ in 0..2 {
            assert_eq!(w.run("SELECT * FROM t"), want);
        }
    };
    asked(&mut w, denied);
    for (change, want) in [
        ("GRANT readers TO worker", may),
        ("REVOKE readers FROM worker", denied),
        ("GRANT readers TO staff; GRANT staff TO worker", may),
        ("GRANT readers TO staff WITH INHERIT FALSE", denied),
        ("GRANT readers TO staff WITH INHERIT TRUE", may),
        // As a superuser may.
        (
            "UPDATE pg_auth_members SET inherit_option = false WHERE roleid = 'readers'::regrole",
            denied,
        ),
        ("UPDATE pg_auth_members SET inherit_option = true WHERE roleid = 'readers'::regrole", may),
        ("ALTER ROLE readers RENAME TO lookers", may),
        ("DROP OWNED BY lookers", denied),
        ("GRANT SELECT ON t TO lookers", may),
        ("DELETE FROM pg_auth_members WHERE member = 'worker'::regrole", denied),
        ("BEGIN; GRANT lookers TO worker; ROLLBACK", denied),
        ("BEGIN; SAVEPOINT a; GRANT lookers TO worker; ROLLBACK TO a; COMMIT", denied),
        ("GRANT pg_read_all_data TO worker", may),
        ("REVOKE pg_read_all_data FROM worker", denied),
    ] {
        s.run_each(&change.split("; ").collect::<Vec<_>>());
        asked(&mut w, want);
    }
    // Who owns the database is a member of pg_database_owner.
    let denied = "42501 permission denied for table owned";
    w.check(&[("SELECT * FROM owned", denied)]);
    s.run_each(&["ALTER DATABASE postgres OWNER TO worker"]);
    w.check(&[("SELECT * FROM owned", "")]);
    s.run_each(&["REASSIGN OWNED BY worker TO boss"]);
    w.check(&[("SELECT * FROM owned", denied)]);
    s.run_each(&["CREATE DATABASE d"]);
    db.session_of("d").run_each(&["ALTER DATABASE postgres OWNER TO worker"]);
    w.check(&[("SELECT * FROM owned", "")]);
    // A view's owner.
    s.run_each(&[
        "ALTER ROLE boss SUPERUSER",
        "CREATE VIEW v AS SELECT * FROM t",
        "ALTER VIEW v OWNER TO boss",
        "GRANT SELECT ON v TO worker",
    ]);
    w.check(&[("SELECT * FROM v", "")]);
    s.run_each(&["ALTER ROLE boss NOSUPERUSER"]);
    w.check(&[("SELECT * FROM v", "42501 permission denied for table t")]);
}

/// What a transaction makes of roles it heeds itself, and its rollback too.
#[test]
fn whose_rights_a_role_has_is_as_the_transaction_has_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE worker; CREATE ROLE readers",
        "CREATE TABLE t (a int)",
        "GRANT SELECT ON t TO readers",
    ]);
    let denied = "42501 permission denied for table t";
    s.check(&[("SET ROLE worker", ""), ("SELECT * FROM t", denied), ("RESET ROLE", "")]);
    s.run_each(&["BEGIN", "GRANT readers TO worker", "SET LOCAL ROLE worker"]);
    s.check(&[("SELECT * FROM t", ""), ("ROLLBACK", "")]);
    s.check(&[("SET ROLE worker", ""), ("SELECT * FROM t", denied), ("RESET ROLE", "")]);
    s.run_each(&["BEGIN", "SAVEPOINT a", "GRANT readers TO worker"]);
    s.run_each(&["SET LOCAL ROLE worker", "SELECT * FROM t", "ROLLBACK TO a"]);
    s.run_each(&["SET LOCAL ROLE worker"]);
    s.check(&[("SELECT * FROM t", denied), ("ROLLBACK", "")]);
}

/// What a role may do is not read from catalogs for each statement.
#[test]
fn a_role_s_rights_are_looked_up_once() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE worker; CREATE ROLE readers; GRANT readers TO worker",
        "CREATE TABLE t (a int); INSERT INTO t VALUES (1)",
        "GRANT SELECT ON t TO readers",
        "SET ROLE worker",
        "SELECT * FROM t",
    ]);
    let plan = s.run("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t");
    assert!(plan.ends_with("\nBuffers: shared hit=1"), "{plan}");
}

/// Who says that something is to be owned by whom it is owned by already need not own it.
#[test]
fn an_owner_that_stays_the_same_is_anybodys_to_name() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE own; CREATE ROLE other; CREATE SCHEMA sc AUTHORIZATION own",
        "CREATE TYPE e AS ENUM ('a'); CREATE DOMAIN d AS int; CREATE TABLE t (a int, b int)",
        "CREATE STATISTICS st ON a, b FROM t",
    ]);
    s.check(&[
        ("SET ROLE other", ""),
        ("ALTER SCHEMA sc OWNER TO own", ""),
        ("ALTER TYPE e OWNER TO postgres", ""),
        ("ALTER DOMAIN d OWNER TO postgres", ""),
        ("ALTER STATISTICS st OWNER TO postgres", ""),
        ("ALTER DATABASE postgres OWNER TO postgres", ""),
        ("ALTER TABLE t OWNER TO postgres", "42501 must be owner of table t"),
        ("ALTER SCHEMA sc OWNER TO other", "42501 must be owner of schema sc"),
        ("ALTER TYPE e OWNER TO other", "42501 must be owner of type e"),
        ("ALTER DOMAIN d OWNER TO other", "42501 must be owner of type d"),
        ("ALTER STATISTICS st OWNER TO other", "42501 must be owner of statistics object st"),
        ("ALTER DATABASE postgres OWNER TO other", "42501 must be owner of database postgres"),
        ("ALTER TYPE nosuch OWNER TO postgres", "42704 type \"nosuch\" does not exist"),
        ("ALTER TYPE nosuch OWNER TO nobody", "42704 role \"nobody\" does not exist"),
    ]);
}
