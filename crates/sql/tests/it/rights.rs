//! Who may vacuum, analyze, reindex and refresh what.

use crate::support::Database;

const T: &str = "WARNING 01000 permission denied to vacuum \"t\", skipping it";

#[test]
fn maintaining_takes_the_privilege() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int PRIMARY KEY, b text)",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
        "CREATE ROLE nobody; CREATE ROLE one; CREATE ROLE every",
        "GRANT MAINTAIN ON t, m TO one",
        "GRANT pg_maintain TO every",
        "SET ROLE nobody",
    ]);
    s.check(&[
        ("VACUUM t", T),
        ("ANALYZE t", "WARNING 01000 permission denied to analyze \"t\", skipping it"),
        ("REINDEX TABLE t", "42501 permission denied for table t"),
        ("REINDEX INDEX t_pkey", "42501 permission denied for index t_pkey"),
        ("REINDEX SCHEMA public", "42501 must be owner of schema public"),
        ("REINDEX DATABASE", "42501 must be owner of database postgres"),
        ("REFRESH MATERIALIZED VIEW m", "42501 permission denied for materialized view m"),
        ("BEGIN; LOCK TABLE t IN SHARE MODE", "42501 permission denied for table t"),
        ("ROLLBACK", ""),
    ]);
    let all = s.run("VACUUM");
    assert!(all.lines().any(|l| l == T), "{all}");
    assert!(all.lines().any(|l| l.contains("permission denied to vacuum \"pg_class\"")), "{all}");
    for role in ["one", "every"] {
        s.run_each(&[
            "RESET ROLE",
            &format!("SET ROLE {role}"),
            "VACUUM t",
            "VACUUM (FULL, ANALYZE) t",
            "REINDEX TABLE t",
            "REINDEX INDEX t_pkey",
            "BEGIN; LOCK TABLE t; COMMIT",
        ]);
        s.check(&[
            ("SELECT has_table_privilege('t', 'MAINTAIN')", "t"),
            ("SELECT * FROM t", "42501 permission denied for table t"),
        ]);
    }
    s.run_each(&["VACUUM pg_authid", "ANALYZE pg_class", "REINDEX SCHEMA public"]);
    // Its query reads with the owner's rights.
    s.run_each(&["REFRESH MATERIALIZED VIEW m"]);
}

#[test]
fn a_databases_owner_maintains_what_is_not_shared() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "CREATE ROLE boss",
        "ALTER DATABASE postgres OWNER TO boss",
        "SET ROLE boss",
        "VACUUM t",
        "ANALYZE pg_class",
        "REINDEX DATABASE",
    ]);
    s.check(&[
        (
            "VACUUM pg_authid",
            "WARNING 01000 permission denied to vacuum \"pg_authid\", skipping it",
        ),
        ("REINDEX TABLE t", "42501 permission denied for table t"),
    ]);
}

/// Who may do nothing with a table does not wait until it may be vacuumed, nor make others wait.
#[test]
fn rights_are_looked_at_before_locks() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "CREATE ROLE nobody",
        "BEGIN; LOCK TABLE t IN EXCLUSIVE MODE",
    ]);
    let mut other = db.session();
    other.run_each(&["SET ROLE nobody"]);
    other.check(&[("VACUUM t", T)]);
    s.run_each(&["COMMIT"]);
}

#[test]
fn owners_comment() {
    let db = Database::new();
    let mut s = db.session();
    let lacks =
        |what: &str| format!("42501 permission denied\nThe current user must have the {what}.");
    s.run_each(&[
        "CREATE SCHEMA s; CREATE TABLE s.t (a int); CREATE INDEX i ON s.t (a)",
        "CREATE ROLE r; CREATE ROLE other; GRANT USAGE ON SCHEMA s TO r",
        "SET ROLE r",
    ]);
    s.check(&[
        ("COMMENT ON SCHEMA s IS 'x'", "42501 must be owner of schema s"),
        ("COMMENT ON DATABASE postgres IS 'x'", "42501 must be owner of database postgres"),
        ("COMMENT ON DATABASE nope IS 'x'", "WARNING 3D000 database \"nope\" does not exist"),
        ("COMMENT ON ROLE other IS 'x'", &lacks("CREATEROLE attribute")),
        ("COMMENT ON ROLE postgres IS 'x'", &lacks("SUPERUSER attribute")),
        ("COMMENT ON TABLE s.t IS 'x'", "42501 must be owner of table t"),
        (
            "COMMENT ON COLUMN s.t.nope IS 'x'",
            "42703 column \"nope\" of relation \"s.t\" does not exist",
        ),
        ("COMMENT ON INDEX s.t IS 'x'", "42809 \"t\" is not an index"),
        ("RESET ROLE; ALTER ROLE r CREATEROLE; SET ROLE r", ""),
        ("COMMENT ON ROLE other IS 'x'", &lacks("ADMIN option on role \"other\"")),
        ("RESET ROLE; GRANT other TO r WITH ADMIN OPTION", ""),
        ("ALTER SCHEMA s OWNER TO r; ALTER DATABASE postgres OWNER TO r; SET ROLE r", ""),
        ("COMMENT ON SCHEMA s IS 'x'; COMMENT ON DATABASE postgres IS 'x'", ""),
        ("COMMENT ON ROLE other IS 'x'", ""),
        ("RESET ROLE", ""),
        (
            "COMMENT ON COLUMN s.i.a IS 'x'",
            "42809 cannot set comment on relation \"i\"\nThis operation is not supported for indexes.",
        ),
    ]);
}

#[test]
fn predefined_roles_read_and_write_every_table() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int)",
        "CREATE ROLE r; GRANT pg_read_all_data TO r",
        "CREATE ROLE w; GRANT pg_write_all_data TO w",
        "SET ROLE r",
    ]);
    s.check(&[
        ("SELECT count(*) FROM t", "0"),
        ("INSERT INTO t VALUES (1)", "42501 permission denied for table t"),
        ("RESET ROLE; SET ROLE w", ""),
        ("INSERT INTO t VALUES (1)", ""),
        ("SELECT count(*) FROM t", "42501 permission denied for table t"),
    ]);
}

#[test]
fn names_are_looked_up_where_one_may() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE SCHEMA hidden",
        "CREATE SEQUENCE hidden.n; CREATE TABLE hidden.t (a int PRIMARY KEY)",
        "INSERT INTO hidden.t VALUES (1)",
        "CREATE VIEW public.v AS SELECT a FROM hidden.t",
        "CREATE TABLE public.o (a int DEFAULT nextval('hidden.n') REFERENCES hidden.t, b int)",
        "CREATE ROLE r; CREATE ROLE reader; GRANT pg_read_all_data TO reader",
        "GRANT ALL ON hidden.t, v, o, hidden.n TO r",
    ]);
    // Prepared by who may, run by who may not: as another statement of its.
    s.check(&[("SELECT * FROM hidden.t", "1"), ("SET ROLE r", "")]);
    let denied = "42501 permission denied for schema hidden";
    s.check(&[
        ("SELECT * FROM hidden.t", denied),
        ("SELECT * FROM hidden.nothing", denied),
        ("INSERT INTO hidden.t VALUES (2)", denied),
        ("VACUUM hidden.t", denied),
        ("SELECT 'hidden.t'::regclass", denied),
        ("SELECT nextval('hidden.n')", denied),
        ("SELECT has_schema_privilege('hidden', 'USAGE')", "f"),
        // What is not named is not looked up.
        ("SELECT * FROM v", "1"),
        ("INSERT INTO o (b) VALUES (7) RETURNING a, b", "1|7"),
        ("SET search_path = hidden, public", ""),
        ("SELECT current_schemas(false)", "{public}"),
        ("SELECT * FROM t", "42P01 relation \"t\" does not exist"),
        ("CREATE TABLE x ()", "42501 permission denied for schema public"),
        ("SET search_path = hidden", ""),
        ("CREATE TABLE x ()", "3F000 no schema has been selected to create in"),
        ("RESET ROLE; GRANT USAGE ON SCHEMA hidden TO r; SET ROLE r", ""),
        ("SELECT * FROM t", "1"),
        ("SELECT count(*) FROM hidden.t", "1"),
        ("SELECT has_schema_privilege('hidden', 'USAGE')", "t"),
        ("RESET ROLE; REVOKE USAGE ON SCHEMA hidden FROM r; SET ROLE r", ""),
        ("SELECT * FROM hidden.t", denied),
        // What a transaction granted is not remembered when it is rolled back.
        ("RESET ROLE; BEGIN; GRANT USAGE ON SCHEMA hidden TO r; SET ROLE r", ""),
        ("SELECT * FROM hidden.t", "1"),
        ("ROLLBACK; SET ROLE r", ""),
        ("SELECT * FROM hidden.t", denied),
        ("RESET ROLE; SET ROLE reader", ""),
        ("SELECT * FROM hidden.t", "1"),
        ("SELECT a FROM pg_catalog.pg_class, hidden.t LIMIT 1", "1"),
        ("CREATE TEMP TABLE mine (a int); SELECT * FROM pg_temp.mine", ""),
    ]);
}

/// Who owns a schema may drop it, and what is in it, whoever that belongs to; nobody else may.
#[test]
fn a_schema_is_its_owners_to_drop() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE one; CREATE ROLE other; CREATE ROLE member IN ROLE one",
        "CREATE SCHEMA s AUTHORIZATION one; CREATE TABLE s.t (a int); CREATE TABLE s.u (a int)",
        "GRANT ALL ON SCHEMA s TO other",
        "SET ROLE other",
    ]);
    s.check(&[
        ("DROP SCHEMA s CASCADE", "42501 must be owner of schema s"),
        ("DROP SCHEMA public CASCADE", "42501 must be owner of schema public"),
        ("ALTER SCHEMA s RENAME TO x", "42501 must be owner of schema s"),
        ("DROP TABLE s.t", "42501 must be owner of table t"),
        ("SET ROLE member", ""),
        ("DROP TABLE s.t", ""),
        ("ALTER SCHEMA s RENAME TO x", "42501 permission denied for database postgres"),
        ("RESET ROLE", ""),
        ("GRANT CREATE ON DATABASE postgres TO one", ""),
        ("SET ROLE member", ""),
        ("ALTER SCHEMA s RENAME TO x", ""),
        ("DROP SCHEMA x CASCADE", "NOTICE 00000 drop cascades to table x.u"),
    ]);
}

/// Who creates roles governs those that he may give to others, not all; and none gives what he does not have.
#[test]
fn creating_roles_is_no_way_to_more_rights() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE boss CREATEROLE; CREATE ROLE victim; CREATE ROLE root SUPERUSER",
        "CREATE ROLE mine; GRANT mine TO boss WITH ADMIN OPTION",
        "SET ROLE boss",
    ]);
    let admin = |verb: &str| {
        format!(
            "42501 permission denied to {verb} role\nOnly roles with the CREATEROLE attribute and the ADMIN option on role \"victim\" may {verb} this role."
        )
    };
    let superuser = |verb: &str| {
        format!(
            "42501 permission denied to {verb} role\nOnly roles with the SUPERUSER attribute may {verb} roles with the SUPERUSER attribute."
        )
    };
    let lacks = |name: &str| {
        format!(
            "42501 permission denied to grant role \"{name}\"\nOnly roles with the ADMIN option on role \"{name}\" may grant this role."
        )
    };
    s.check(&[
        ("CREATE ROLE x IN ROLE pg_execute_server_program", &lacks("pg_execute_server_program")),
        (
            "CREATE ROLE x IN ROLE root",
            "42501 permission denied to grant role \"root\"\nOnly roles with the SUPERUSER attribute may grant roles with the SUPERUSER attribute.",
        ),
        ("CREATE ROLE x IN ROLE victim", &lacks("victim")),
        (
            "ALTER ROLE victim PASSWORD 'p'",
            "42501 permission denied to alter role\nTo change another role's password, the current user must have the CREATEROLE attribute and the ADMIN option on the role.",
        ),
        ("ALTER ROLE victim SET work_mem = '1MB'", &admin("alter")),
        ("DROP ROLE victim", &admin("drop")),
        ("ALTER ROLE root PASSWORD 'p'", &superuser("alter")),
        ("ALTER ROLE root SET work_mem = '1MB'", &superuser("alter")),
        ("DROP ROLE root", &superuser("drop")),
        (
            "CREATE ROLE x CREATEDB",
            "42501 permission denied to create role\nOnly roles with the CREATEDB attribute may create roles with the CREATEDB attribute.",
        ),
        (
            "ALTER ROLE mine CREATEDB",
            "42501 permission denied to alter role\nOnly roles with the CREATEDB attribute may change the CREATEDB attribute.",
        ),
        (
            "ALTER ROLE ALL SET work_mem = '1MB'",
            "42501 permission denied to alter setting\nOnly roles with the SUPERUSER attribute may alter settings globally.",
        ),
        ("COMMENT ON ROLE victim IS 'x'", "42501 permission denied\nThe current user must have the ADMIN option on role \"victim\"."),
        ("COMMENT ON ROLE root IS 'x'", "42501 permission denied\nThe current user must have the SUPERUSER attribute."),
        ("COMMENT ON SCHEMA public IS 'x'", "42501 must be owner of schema public"),
        ("COMMENT ON DATABASE postgres IS 'x'", "42501 must be owner of database postgres"),
    ]);
    s.run_each(&[
        "ALTER ROLE mine LOGIN PASSWORD 'p'; ALTER ROLE mine SET work_mem = '1MB'; COMMENT ON ROLE mine IS 'x'",
        "CREATE ROLE made NOSUPERUSER IN ROLE mine; ALTER ROLE made LOGIN; GRANT made TO boss; DROP ROLE made",
        "ALTER ROLE boss PASSWORD 'p'; ALTER ROLE boss SET work_mem = '1MB'",
        "DROP ROLE mine",
    ]);
}

/// Where the data lies is told to those with the rights of `pg_read_all_settings`.
#[test]
fn some_settings_are_not_for_everybody() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE nobody",
        "CREATE ROLE reader",
        "GRANT pg_read_all_settings TO reader",
    ]);
    let refused = "42501 permission denied to examine \"data_directory\"\nOnly roles with privileges of the \"pg_read_all_settings\" role may examine this parameter.";
    s.check(&[
        ("SET ROLE nobody", ""),
        ("SHOW data_directory", refused),
        ("SELECT current_setting('Data_Directory')", refused),
        ("SELECT count(*) FROM pg_settings WHERE name IN ('data_directory', 'work_mem')", "1"),
        ("RESET ROLE", ""),
        ("SET ROLE reader", ""),
        ("SELECT count(*) FROM pg_settings WHERE name IN ('data_directory', 'work_mem')", "2"),
    ]);
}

#[test]
fn a_table_that_truncate_reaches_by_a_key_is_asked_for_too() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY)",
        "CREATE TABLE c (a int REFERENCES p)",
        "INSERT INTO p VALUES (1)",
        "INSERT INTO c VALUES (1)",
        "CREATE ROLE one",
        "GRANT TRUNCATE ON p TO one",
        "SET ROLE one",
    ]);
    let told = "NOTICE 00000 truncate cascades to table \"c\"";
    let refused = format!("{told}\n42501 permission denied for table c");
    s.check(&[("TRUNCATE p CASCADE", &refused), ("RESET ROLE", ""), ("SELECT * FROM c", "1")]);
    s.run_each(&["GRANT TRUNCATE ON c TO one", "SET ROLE one"]);
    s.check(&[("TRUNCATE p CASCADE", told), ("RESET ROLE", ""), ("SELECT * FROM c", "")]);
}

#[test]
fn another_session_authorization_ends_the_role() {
    let db = Database::new();
    let mut s = db.session();
    let who = "SELECT session_user, current_user, current_setting('role')";
    s.run_each(&[
        "CREATE ROLE one LOGIN; CREATE ROLE two LOGIN; CREATE ROLE other",
        "GRANT other TO one; GRANT two TO one",
        "SET SESSION AUTHORIZATION one",
        "SET ROLE other",
    ]);
    s.check(&[
        (who, "one|other|other"),
        ("SET SESSION AUTHORIZATION two", ""),
        (who, "two|two|none"),
        ("SET SESSION AUTHORIZATION one", ""),
        ("SET ROLE other", ""),
        ("RESET SESSION AUTHORIZATION", ""),
        (who, "postgres|postgres|none"),
        // Nor does a pooler's next client find another's role.
        ("SET SESSION AUTHORIZATION one", ""),
        ("SET ROLE other", ""),
        ("DISCARD ALL", ""),
        (who, "postgres|postgres|none"),
        ("SET ROLE other", ""),
        ("DISCARD ALL", ""),
        (who, "postgres|postgres|none"),
        ("SET SESSION AUTHORIZATION one", ""),
        ("SET ROLE other", ""),
        ("BEGIN", ""),
        ("SET SESSION AUTHORIZATION two", ""),
        ("ROLLBACK", ""),
        (who, "one|other|other"),
    ]);
}

#[test]
fn inherit_and_set_are_options_of_a_membership() {
    let db = Database::new();
    let mut s = db.session();
    let no = |role: &str| format!("42501 permission denied to set role \"{role}\"");
    let denied = "42501 permission denied for table t";
    s.check(&[
        ("CREATE TABLE t (a int)", ""),
        ("CREATE ROLE reader; CREATE ROLE other; GRANT SELECT ON t TO reader", ""),
        ("CREATE ROLE one NOINHERIT; CREATE ROLE two", ""),
        ("GRANT reader TO one; GRANT reader TO two WITH SET FALSE", ""),
        ("GRANT other TO two", ""),
        // NOINHERIT: by SET ROLE only.
        ("SET SESSION AUTHORIZATION one", ""),
        ("SELECT * FROM t", denied),
        ("SELECT pg_has_role('reader', 'USAGE'), pg_has_role('reader', 'SET')", "f|t"),
        ("SET ROLE reader", ""),
        ("SELECT * FROM t", ""),
        // SET FALSE: without.
        ("SET SESSION AUTHORIZATION two", ""),
        ("SELECT * FROM t", ""),
        ("SET ROLE reader", &no("reader")),
        ("SELECT pg_has_role('reader', 'USAGE'), pg_has_role('reader', 'SET')", "t|f"),
        ("SET ROLE other", ""),
        ("RESET SESSION AUTHORIZATION", ""),
        // What is said anew holds, what is not said stays.
        ("GRANT other TO two WITH INHERIT FALSE", ""),
        (
            "SELECT admin_option, inherit_option, set_option FROM pg_auth_members \
             WHERE member = 'two'::regrole AND roleid = 'other'::regrole",
            "f|f|t",
        ),
        ("REVOKE SET OPTION FOR other FROM two", ""),
        ("SET SESSION AUTHORIZATION two", ""),
        ("SET ROLE other", &no("other")),
        ("RESET SESSION AUTHORIZATION", ""),
        ("GRANT two TO other", "0LP01 role \"two\" is a member of role \"other\""),
        // To own for another, one must be able to become it.
        ("GRANT CREATE ON SCHEMA public TO reader, one, two", ""),
        ("CREATE TABLE of_two (a int); ALTER TABLE of_two OWNER TO two", ""),
        ("SET SESSION AUTHORIZATION two", ""),
        ("ALTER TABLE of_two OWNER TO reader", "42501 must be able to SET ROLE \"reader\""),
    ]);
}

#[test]
fn what_one_may_not_grant_is_warned_of() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int); CREATE ROLE one; CREATE ROLE two; CREATE ROLE group_of_one",
        "GRANT SELECT ON t TO one; GRANT group_of_one TO one",
        "GRANT INSERT ON t TO group_of_one WITH GRANT OPTION",
        "SET ROLE one",
    ]);
    let columns = ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid", "a"];
    let of_columns = columns.map(|c| format!("column \"{c}\" of relation \"t\""));
    let revoked = std::iter::once("\"t\"".to_owned()).chain(of_columns);
    let of_columns: Vec<String> = revoked
        .map(|what| format!("WARNING 01006 no privileges could be revoked for {what}"))
        .collect();
    let of_columns = of_columns.join("\n");
    s.check(&[
        ("GRANT SELECT ON t TO two", "WARNING 01007 no privileges were granted for \"t\""),
        (
            "GRANT SELECT, INSERT ON t TO two",
            "WARNING 01007 not all privileges were granted for \"t\"",
        ),
        ("GRANT ALL ON t TO two", ""),
        ("REVOKE SELECT ON t FROM two", &of_columns),
        (
            "SELECT relacl FROM pg_class WHERE relname = 't'",
            "{postgres=arwdDxtm/postgres,one=r/postgres,group_of_one=a*/postgres,two=a/group_of_one}",
        ),
        ("GRANT INSERT ON t TO two GRANTED BY group_of_one", "0A000 grantor must be current user"),
        ("GRANT INSERT ON t TO two GRANTED BY CURRENT_USER", ""),
    ]);
}

#[test]
fn what_was_granted_on_goes_with_the_right_to() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int); CREATE ROLE one; CREATE ROLE two; CREATE ROLE three",
        "GRANT SELECT, INSERT ON t TO one WITH GRANT OPTION",
        "SET ROLE one; GRANT SELECT ON t TO two WITH GRANT OPTION; GRANT INSERT ON t TO PUBLIC",
        "SET ROLE two; GRANT SELECT ON t TO three",
    ]);
    let acl = "SELECT relacl FROM pg_class WHERE relname = 't'";
    let dependent = "2BP01 dependent privileges exist";
    s.check(&[
        (
            "GRANT SELECT ON t TO one WITH GRANT OPTION",
            "0LP01 grant options cannot be granted back to your own grantor",
        ),
        ("GRANT SELECT ON t TO one", ""),
        ("RESET ROLE", ""),
        ("REVOKE SELECT ON t FROM one", dependent),
        ("REVOKE GRANT OPTION FOR ALL ON t FROM one", dependent),
        (
            acl,
            "{postgres=arwdDxtm/postgres,one=a*r*/postgres,two=r*/one,=a/one,three=r/two,one=r/two}",
        ),
        ("REVOKE GRANT OPTION FOR SELECT ON t FROM one CASCADE", ""),
        (acl, "{postgres=arwdDxtm/postgres,one=a*r/postgres,=a/one}"),
        ("REVOKE ALL ON t FROM one CASCADE", ""),
        (acl, "{postgres=arwdDxtm/postgres}"),
        // Who has the right from elsewhere keeps what he has granted.
        ("GRANT SELECT ON t TO one WITH GRANT OPTION; GRANT SELECT ON t TO three WITH GRANT OPTION", ""),
        ("GRANT three TO one; SET ROLE one; GRANT SELECT ON t TO two; RESET ROLE", ""),
        ("REVOKE SELECT ON t FROM one", ""),
        (acl, "{postgres=arwdDxtm/postgres,three=r*/postgres,two=r/one}"),
    ]);
}

#[test]
fn roles_are_granted_by_those_who_may() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE one; CREATE ROLE two; CREATE ROLE r; GRANT r TO one WITH ADMIN OPTION",
    ]);
    s.check(&[
        (
            "GRANT r TO two GRANTED BY two",
            "42501 permission denied to grant privileges as role \"two\"\nThe grantor must have the ADMIN option on role \"r\".",
        ),
        ("GRANT r TO two GRANTED BY nobody", "42704 role \"nobody\" does not exist"),
        ("SET ROLE one", ""),
        (
            "GRANT r TO two GRANTED BY postgres",
            "42501 permission denied to grant privileges as role \"postgres\"\nOnly roles with privileges of role \"postgres\" may grant privileges as this role.",
        ),
        ("GRANT r TO two GRANTED BY one", ""),
    ]);
}

/// Who gets an object gets what its owner had: it stood in the privileges under the old one's name, and the new one could not use his own table.
#[test]
fn privileges_go_to_the_new_owner() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE one; CREATE ROLE two; CREATE ROLE three",
        "CREATE TABLE t (a serial)",
        "GRANT SELECT ON t TO two; GRANT UPDATE ON t TO one",
        "GRANT USAGE ON SEQUENCE t_a_seq TO two",
        "CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO two",
        "CREATE DATABASE d",
        "GRANT CREATE ON DATABASE d TO two",
        "CREATE TYPE e AS ENUM ('x'); GRANT USAGE ON TYPE e TO two",
        "ALTER TABLE t OWNER TO one; ALTER SCHEMA s OWNER TO one",
        "ALTER DATABASE d OWNER TO one; ALTER TYPE e OWNER TO one",
    ]);
    let of_table = "SELECT relacl FROM pg_class WHERE relname = 't'";
    s.check(&[
        (of_table, "{one=arwdDxtm/one,two=r/one}"),
        ("SELECT relacl FROM pg_class WHERE relname = 't_a_seq'", "{one=rwU/one,two=U/one}"),
        ("SELECT nspacl FROM pg_namespace WHERE nspname = 's'", "{one=UC/one,two=U/one}"),
        ("SELECT datacl FROM pg_database WHERE datname = 'd'", "{=Tc/one,one=CTc/one,two=C/one}"),
        ("SELECT typacl FROM pg_type WHERE typname = 'e'", "{=U/one,one=U/one,two=U/one}"),
        ("SET ROLE one", ""),
        ("SELECT count(*) FROM t", "0"),
        ("VACUUM t", ""),
        ("RESET ROLE", ""),
        ("ALTER TABLE t OWNER TO two", ""),
        (of_table, "{two=arwdDxtm/two}"),
        // What others have granted stays theirs.
        ("GRANT SELECT ON t TO one WITH GRANT OPTION", ""),
        ("SET ROLE one", ""),
        ("GRANT SELECT ON t TO three", ""),
        ("RESET ROLE", ""),
        ("ALTER TABLE t OWNER TO three", ""),
        (of_table, "{three=arwdDxtm/three,one=r*/three,three=r/one}"),
    ]);
}

/// An index is made in its table's schema, by who may make something there.
#[test]
fn an_index_is_something_made_in_a_schema() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE r",
        "CREATE SCHEMA s; CREATE TABLE s.t (a int, b int); ALTER TABLE s.t OWNER TO r",
        "CREATE INDEX there ON s.t (b)",
        "GRANT USAGE ON SCHEMA s TO r",
        "SET ROLE r",
    ]);
    let denied = "42501 permission denied for schema s";
    s.check(&[
        ("CREATE INDEX ON s.t (a)", denied),
        ("CREATE INDEX IF NOT EXISTS there ON s.t (a)", denied),
        ("CREATE INDEX CONCURRENTLY ON s.t (a)", denied),
        ("ALTER TABLE s.t ADD PRIMARY KEY (a)", denied),
        ("ALTER TABLE s.t ADD UNIQUE (a)", denied),
        ("ALTER TABLE s.t ADD COLUMN c int UNIQUE", denied),
        // What is there already may be used and made anew.
        ("REINDEX TABLE s.t", ""),
        ("ALTER TABLE s.t ALTER b TYPE bigint", ""),
        ("CREATE TEMP TABLE mine (a int PRIMARY KEY); CREATE INDEX ON mine (a)", ""),
        ("ALTER TABLE mine ADD UNIQUE (a)", ""),
        ("RESET ROLE; GRANT CREATE ON SCHEMA s TO r; SET ROLE r", ""),
        ("CREATE INDEX CONCURRENTLY ON s.t (a)", ""),
        ("ALTER TABLE s.t ADD PRIMARY KEY (a)", ""),
    ]);
}

#[test]
fn catalogs_and_toast_tables_are_written_by_superusers_alone() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a text); CREATE ROLE writer; CREATE ROLE granted",
        "GRANT pg_write_all_data, pg_read_all_data TO writer",
        "GRANT SELECT, UPDATE, TRUNCATE ON pg_description TO granted",
        "GRANT INSERT ON t TO granted; ALTER TABLE t OWNER TO granted",
    ]);
    s.check(&[
        ("SET ROLE writer", ""),
        ("INSERT INTO t VALUES ('x')", ""),
        ("UPDATE pg_class SET relname = 'gone'", "42501 permission denied for table pg_class"),
        ("DELETE FROM pg_catalog.pg_authid", "42501 permission denied for table pg_authid"),
        ("INSERT INTO pg_description VALUES (1, 1, 0, 'x')", "42501 permission denied for table pg_description"),
        ("SELECT has_table_privilege('pg_class', 'UPDATE'), has_table_privilege('pg_class', 'SELECT'), has_table_privilege('t', 'DELETE')", "f|t|t"),
        ("RESET ROLE; SET ROLE granted", ""),
        ("UPDATE pg_description SET description = 'x'", "42501 permission denied for table pg_description"),
        ("SELECT count(*) > 0 FROM pg_description", "t"),
        ("SELECT has_table_privilege(reltoastrelid, 'SELECT'), has_table_privilege(reltoastrelid, 'DELETE') FROM pg_class WHERE relname = 't'", "t|f"),
        ("RESET ROLE; BEGIN; UPDATE pg_description SET description = 'x' WHERE objoid = 1; ROLLBACK", ""),
    ]);
}

#[test]
fn who_may_call_a_function() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE plain; CREATE ROLE mon; GRANT pg_monitor TO mon",
        "CREATE ROLE sta; GRANT pg_read_all_stats TO sta",
    ]);
    let ask = |role: &str, function: &str| {
        format!("SELECT has_function_privilege('{role}', '{function}', 'execute')")
    };
    s.check(&[
        (&ask("plain", "pg_read_file(text)"), "f"),
        (&ask("plain", "abs(int)"), "t"),
        (&ask("public", "abs(int)"), "t"),
        (&ask("public", "pg_ls_dir(text)"), "f"),
        (&ask("mon", "pg_ls_waldir()"), "t"),
        (&ask("mon", "pg_ls_dir(text)"), "f"),
        (&ask("mon", "pg_get_aios()"), "t"),
        (&ask("sta", "pg_get_aios()"), "t"),
        (&ask("sta", "pg_ls_waldir()"), "f"),
        ("SELECT has_function_privilege('pg_read_file(text)', 'execute with grant option')", "t"),
        ("SELECT has_function_privilege('plain', 'abs(int)', 'execute with grant option')", "f"),
        ("SELECT has_function_privilege('plain', 0::oid, 'execute')", "~"),
        ("SELECT has_function_privilege('plain', 1::oid, 'execute')", "~"),
        ("SELECT has_function_privilege('plain', 1397::oid, 'execute')", "t"),
        (&ask("plain", "nosuch(int)"), "42883 function \"nosuch(int)\" does not exist"),
        (
            "SELECT has_function_privilege('plain', 'abs(int)', 'execute, select')",
            "22023 unrecognized privilege type: \"select\"",
        ),
        (&ask("nobody", "abs(int)"), "42704 role \"nobody\" does not exist"),
        ("SET ROLE plain", ""),
        (
            "SELECT has_function_privilege('pg_stat_reset()', 'execute'), \
             has_function_privilege('pg_stat_reset()'::regprocedure, 'execute')",
            "f|f",
        ),
    ]);
}

/// Each membership has its grantor: who is named, or the nearest role that may; what was granted on goes with the option to.
#[test]
fn memberships_have_grantors() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE one; CREATE ROLE two; CREATE ROLE three; CREATE ROLE r",
        "CREATE VIEW m AS SELECT member::regrole, grantor::regrole, admin_option, inherit_option, set_option \
         FROM pg_auth_members WHERE roleid = 'r'::regrole ORDER BY member, grantor",
        "GRANT r TO one WITH ADMIN OPTION",
        "SET ROLE one",
        "GRANT r TO two WITH ADMIN TRUE, INHERIT FALSE; GRANT r TO three",
        "RESET ROLE; GRANT r TO three",
    ]);
    let dependent = "2BP01 dependent privileges exist";
    s.check(&[
        ("TABLE m", "one|postgres|t|t|t\ntwo|one|t|f|t\nthree|postgres|f|t|t\nthree|one|f|t|t"),
        (
            "GRANT r TO three",
            "NOTICE 00000 role \"three\" has already been granted membership in role \"r\" by role \"postgres\"",
        ),
        (
            "GRANT r TO one WITH ADMIN OPTION GRANTED BY two",
            "0LP01 ADMIN option cannot be granted back to your own grantor",
        ),
        ("GRANT r TO three WITH INHERIT FALSE GRANTED BY two", ""),
        ("REVOKE r FROM one", dependent),
        ("REVOKE ADMIN OPTION FOR r FROM one", dependent),
        ("REVOKE r FROM two GRANTED BY one", dependent),
        ("REVOKE r FROM three", ""),
        (
            "REVOKE r FROM three",
            "WARNING 01000 role \"three\" has not been granted membership in role \"r\" by role \"postgres\"",
        ),
        ("TABLE m", "one|postgres|t|t|t\ntwo|one|t|f|t\nthree|one|f|t|t\nthree|two|f|f|t"),
        (
            "DROP ROLE two",
            "2BP01 role \"two\" cannot be dropped because some objects depend on it\n\
             privileges for membership of role three in role r",
        ),
        ("REVOKE ADMIN OPTION FOR r FROM one CASCADE", ""),
        ("TABLE m", "one|postgres|f|t|t"),
        ("GRANT r TO one WITH ADMIN OPTION; GRANT r TO two GRANTED BY one; DROP OWNED BY one", ""),
        ("TABLE m", "one|postgres|t|t|t"),
        ("ALTER GROUP r ADD USER two; ALTER GROUP r DROP USER one", ""),
        ("TABLE m", "two|postgres|f|t|t"),
    ]);
}

/// Who makes a role without being a superuser may give it to himself, or has that done.
#[test]
fn who_makes_a_role_may_give_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE boss CREATEROLE; CREATE ROLE one; SET ROLE boss"]);
    let all = "SELECT roleid::regrole, member::regrole, grantor::regrole, admin_option, inherit_option, set_option \
               FROM pg_auth_members WHERE roleid >= 16384 ORDER BY roleid, member, grantor";
    s.check(&[
        ("CREATE ROLE a ROLE one", ""),
        ("SET createrole_self_grant = 'set, inherit'; CREATE ROLE b", ""),
        (all, "a|boss|postgres|t|f|f\na|one|boss|f|t|t\nb|boss|postgres|t|f|f\nb|boss|boss|f|t|t"),
    ]);
}

/// What a type is comes before whose it is, where PostgreSQL asks so.
#[test]
fn types_that_are_altered_otherwise() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE t (a int)", "CREATE TYPE e AS ENUM ('a')", "CREATE ROLE plain"]);
    let row = "42809 t is a table's row type";
    let array = "42809 cannot alter array type t[]";
    s.check(&[
        ("ALTER TYPE _t RENAME TO x", array),
        ("ALTER TYPE _t SET SCHEMA public", array),
        ("ALTER TYPE t RENAME TO x", row),
        ("SET ROLE plain", ""),
        ("ALTER TYPE t OWNER TO plain", row),
        ("ALTER TYPE _t OWNER TO plain", array),
        ("ALTER TYPE t ADD VALUE 'x'", "42809 t is not an enum"),
        ("ALTER TYPE _t RENAME VALUE 'x' TO 'y'", "42809 t[] is not an enum"),
        ("ALTER TYPE int4 ADD VALUE 'x'", "42809 integer is not an enum"),
        ("ALTER TYPE t RENAME TO x", "42501 must be owner of type t"),
        ("ALTER TYPE _t RENAME TO x", "42501 must be owner of type t"),
        ("ALTER TYPE e ADD VALUE 'x'", "42501 must be owner of type e"),
        ("ALTER DOMAIN e RENAME TO x", "42501 must be owner of type e"),
        ("ALTER DOMAIN e SET NOT NULL", "42809 e is not a domain"),
        ("DROP TYPE _t", "42501 must be owner of type t"),
        ("DROP DOMAIN e", "42809 \"e\" is not a domain"),
    ]);
}
