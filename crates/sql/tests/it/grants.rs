//! Who has granted what, several roles that go at once, and names that change meanwhile. The answers are PostgreSQL 18's.

use crate::support::{Database, waiting};

const ACL: &str = "SELECT relacl FROM pg_class WHERE relname = 't'";

/// The owner of a database is the member of `pg_database_owner` there, whose the schema `public` is.
#[test]
fn a_databases_owner_owns_its_public_schema() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE boss; CREATE ROLE other", "CREATE DATABASE d OWNER boss"]);
    s.check(&[
        ("SELECT pg_has_role('boss', 'pg_database_owner', 'MEMBER')", "f"),
        ("SET ROLE boss; CREATE TABLE t (a int)", "42501 permission denied for schema public"),
        ("RESET ROLE", ""),
    ]);
    let mut there = db.session_of("d");
    there.check(&[
        ("SELECT pg_has_role('boss', 'pg_database_owner', 'USAGE')", "t"),
        ("SET ROLE boss; CREATE TABLE t (a int)", ""),
        ("COMMENT ON SCHEMA public IS 'x'", ""),
        ("GRANT CREATE ON SCHEMA public TO other", ""),
        (
            "SELECT nspacl FROM pg_namespace WHERE nspname = 'public'",
            "{pg_database_owner=UC/pg_database_owner,=U/pg_database_owner,other=C/pg_database_owner}",
        ),
        ("RESET ROLE; ALTER DATABASE d OWNER TO other; SET ROLE boss", ""),
        ("CREATE TABLE u (a int)", "42501 permission denied for schema public"),
    ]);
}

/// Who may grant something himself grants and takes back as himself, also if he is the owner's member besides.
#[test]
fn who_may_grant_does_so_as_himself() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE o; CREATE ROLE alice; CREATE ROLE bob; CREATE TABLE t (a int); ALTER TABLE t OWNER TO o",
        "GRANT SELECT ON t TO alice WITH GRANT OPTION",
        "SET ROLE alice; GRANT SELECT ON t TO bob; RESET ROLE",
        "GRANT o TO alice; SET ROLE alice",
    ]);
    s.check(&[
        ("REVOKE SELECT ON t FROM bob", ""),
        (ACL, "{o=arwdDxtm/o,alice=r*/o}"),
        // As whoever may grant all of it.
        ("GRANT SELECT, INSERT ON t TO bob", ""),
        (ACL, "{o=arwdDxtm/o,alice=r*/o,bob=ar/o}"),
        ("RESET ROLE; REVOKE o FROM alice; SET ROLE alice", ""),
        ("GRANT INSERT ON t TO bob", "WARNING 01007 no privileges were granted for \"t\""),
        (ACL, "{o=arwdDxtm/o,alice=r*/o,bob=ar/o}"),
        ("RESET ROLE", ""),
        (
            "CREATE SEQUENCE s; GRANT SELECT, INSERT ON s TO bob",
            "WARNING 0LP01 sequence \"s\" only supports USAGE, SELECT, and UPDATE privileges",
        ),
        (
            "SELECT relacl FROM pg_class WHERE relname = 's'",
            "{postgres=rwU/postgres,bob=r/postgres}",
        ),
        ("GRANT INSERT ON SEQUENCE s TO bob", "0LP01 invalid privilege type INSERT for sequence"),
        ("GRANT USAGE ON t TO bob", "0LP01 invalid privilege type USAGE for table"),
    ]);
}

#[test]
fn grant_options_are_told() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        r#"CREATE ROLE o; CREATE ROLE a; CREATE ROLE "b=r/c"; CREATE ROLE m; CREATE ROLE n"#,
        "CREATE TABLE t (a int); ALTER TABLE t OWNER TO o; CREATE SEQUENCE q",
        "GRANT SELECT ON t TO a WITH GRANT OPTION",
        r#"GRANT INSERT ON t TO "b=r/c""#,
        "GRANT m TO n WITH ADMIN OPTION; GRANT n TO a",
    ]);
    s.check(&[
        ("SELECT has_table_privilege('o', 't', 'INSERT WITH GRANT OPTION')", "t"),
        ("SELECT has_table_privilege('a', 't', 'SELECT WITH GRANT OPTION'), has_table_privilege('a', 't', 'INSERT WITH GRANT OPTION')", "t|f"),
        ("SELECT has_sequence_privilege('a', 'q', 'USAGE')", "f"),
        ("SELECT has_sequence_privilege('a', 't', 'USAGE')", "42809 \"t\" is not a sequence"),
        ("SELECT pg_has_role('a', 'm', 'MEMBER WITH ADMIN OPTION'), pg_has_role('m', 'm', 'MEMBER WITH ADMIN OPTION')", "t|f"),
        (
            "SELECT grantee::regrole, privilege_type FROM pg_class, aclexplode(relacl) WHERE relname = 't' AND grantor <> grantee ORDER BY 1",
            "a|SELECT\n\"b=r/c\"|INSERT",
        ),
    ]);
}

#[test]
fn roles_that_go_together_may_have_granted_each_other() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE r; CREATE ROLE a CREATEROLE; CREATE ROLE b; CREATE ROLE c",
        "GRANT r TO a WITH ADMIN OPTION; SET ROLE a; GRANT r TO b; GRANT r TO c; RESET ROLE",
    ]);
    s.check(&[
        (
            "DROP ROLE a, b",
            "2BP01 role \"a\" cannot be dropped because some objects depend on it\nprivileges for membership of role c in role r",
        ),
        ("DROP ROLE a, b, c, a", ""),
        ("SELECT count(*) FROM pg_auth_members WHERE roleid = 'r'::regrole", "0"),
    ]);
}

#[test]
fn default_privileges_elsewhere_keep_their_roles() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE a; CREATE ROLE b", "CREATE DATABASE d"]);
    let mut there = db.session_of("d");
    there.run_each(&["ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT SELECT ON TABLES TO b"]);
    drop(there);
    let refused = |role: &str| {
        format!(
            "2BP01 role \"{role}\" cannot be dropped because some objects depend on it\n1 object in database d"
        )
    };
    s.check(&[("DROP ROLE a", &refused("a")), ("DROP ROLE b", &refused("b"))]);
}

#[test]
fn roles_that_cannot_be() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE r; CREATE ROLE su SUPERUSER; GRANT r TO su WITH ADMIN OPTION; CREATE ROLE m",
    ]);
    s.check(&[
        (
            "ALTER ROLE postgres NOSUPERUSER",
            "0A000 permission denied to alter role\nThe bootstrap superuser must have the SUPERUSER attribute.",
        ),
        ("ALTER ROLE postgres SUPERUSER", ""),
        ("ALTER ROLE r RENAME TO public", "42939 role name \"public\" is reserved"),
        ("ALTER ROLE r IN ROLE m", "42601 syntax error at or near \"ROLE\""),
        ("CREATE ROLE current_user", "42939 CURRENT_USER cannot be used as a role name here"),
        ("GRANT r TO m WITH ADMIN maybe", "42601 syntax error at or near \"maybe\""),
        ("GRANT pg_database_owner TO m", "0A000 role \"pg_database_owner\" cannot have explicit members"),
        ("GRANT r TO m GRANTED BY su", ""),
        ("SELECT grantor::regrole FROM pg_auth_members WHERE member = 'm'::regrole", "su"),
    ]);
}

#[test]
fn names_do_not_change_while_they_are_written() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE o; CREATE ROLE g; CREATE TABLE t (a int); ALTER TABLE t OWNER TO o",
        "CREATE DATABASE d",
        "CREATE DATABASE e",
    ]);
    assert_eq!(waiting(&db, "ALTER ROLE o RENAME TO p", "GRANT SELECT ON t TO g"), "");
    s.check(&[(ACL, "{p=arwdDxtm/p,g=r/p}"), ("REVOKE ALL ON t FROM g", "")]);
    let gone = waiting(&db, "DROP ROLE g", "ALTER ROLE g SET work_mem = '1MB'");
    assert!(gone.starts_with("42704"), "{gone}");
    s.check(&[("SELECT count(*) FROM pg_db_role_setting", "0")]);
    let renamed = waiting(&db, "ALTER DATABASE d RENAME TO f", "CREATE DATABASE x TEMPLATE d");
    assert_eq!(renamed, "3D000 template database \"d\" does not exist");
    let renamed =
        waiting(&db, "ALTER DATABASE e RENAME TO h", "ALTER DATABASE e SET work_mem = 100");
    assert_eq!(renamed, "3D000 database \"e\" does not exist");
}

/// What things could be used for from the beginning is compared with what they can be used for.
#[test]
fn the_bootstrap_superuser_may_get_another_name() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE su SUPERUSER; CREATE ROLE c; GRANT pg_checkpoint TO c",
        "SET SESSION AUTHORIZATION su",
    ]);
    s.run_each(&["ALTER ROLE postgres RENAME TO boss"]);
    s.check(&[
        ("SELECT count(*) FROM pg_init_privs WHERE initprivs::text LIKE '%postgres%'", "0"),
        (
            "SELECT count(*) FROM pg_class c JOIN pg_init_privs i ON objoid = c.oid AND classoid = 'pg_class'::regclass WHERE relacl IS DISTINCT FROM initprivs",
            "0",
        ),
        ("SET ROLE c; CHECKPOINT", ""),
    ]);
}

#[test]
fn a_databases_owner_says_what_is_set_there() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE r; ALTER DATABASE postgres OWNER TO r",
        "SET timezone = 'UTC'; SET ROLE r",
    ]);
    let denied = "42501 permission denied to set parameter \"my.own\"";
    s.check(&[
        ("ALTER ROLE ALL IN DATABASE postgres SET work_mem = '1MB'", ""),
        ("ALTER ROLE ALL SET work_mem = '1MB'", "42501 permission denied to alter setting\nOnly roles with the SUPERUSER attribute may alter settings globally."),
        ("ALTER ROLE r SET my.own = 'x'", denied),
        ("ALTER ROLE r RESET my.own", denied),
        ("ALTER ROLE r RESET nosuch", ""),
        ("ALTER ROLE r SET timezone FROM CURRENT", ""),
        ("ALTER ROLE r SET TimeZone = 'UTC'", ""),
        ("SELECT setconfig FROM pg_db_role_setting ORDER BY 1", "{TimeZone=UTC}\n{work_mem=1MB}"),
        ("CREATE DATABASE x CONNECTION LIMIT -5", "22023 invalid connection limit: -5"),
        ("RESET ROLE; ALTER ROLE r SET my.own = 'x'; SET ROLE r; ALTER ROLE r RESET ALL; RESET ROLE", ""),
        ("SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'r'::regrole", "{my.own=x}"),
    ]);
}

/// REASSIGN OWNED gives away what ALTER … OWNER TO could give away.
#[test]
fn schemas_are_reassigned_by_who_may_make_them() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE a; CREATE ROLE b; CREATE ROLE m; GRANT a TO m; GRANT b TO m WITH SET FALSE",
        "CREATE SCHEMA n AUTHORIZATION a; CREATE TABLE n.t (a int); ALTER TABLE n.t OWNER TO a",
        "SET ROLE m",
    ]);
    s.check(&[
        ("REASSIGN OWNED BY a TO b", "42501 must be able to SET ROLE \"b\""),
        ("RESET ROLE; GRANT b TO m WITH SET TRUE; SET ROLE m", ""),
        ("REASSIGN OWNED BY a TO b", "42501 permission denied for database postgres"),
        ("RESET ROLE; GRANT CREATE ON DATABASE postgres TO m; SET ROLE m", ""),
        ("REASSIGN OWNED BY a TO b", ""),
    ]);
}

#[test]
fn predefined_roles_reach_sequences_and_files() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE w; GRANT pg_write_all_data TO w; CREATE ROLE r; GRANT pg_read_all_data TO r",
        "CREATE SEQUENCE q; CREATE TABLE t (a int); CREATE ROLE f; GRANT pg_write_server_files TO f; GRANT SELECT ON t TO f",
        "SET ROLE w",
    ]);
    s.check(&[
        ("SELECT nextval('q')", "1"),
        ("SELECT currval('q')", "42501 permission denied for sequence q"),
        ("RESET ROLE; SET ROLE r", ""),
        ("SELECT currval('q')", "1"),
        ("SELECT nextval('q')", "42501 permission denied for sequence q"),
        ("RESET ROLE; SET ROLE f", ""),
        ("COPY t TO '/nowhere/at/all'", "58P01 could not open file \"/nowhere/at/all\" for writing: No such file or directory"),
        ("COPY t FROM '/nowhere'", "42501 permission denied to COPY from a file\nOnly roles with privileges of the \"pg_read_server_files\" role may COPY from a file."),
    ]);
}
