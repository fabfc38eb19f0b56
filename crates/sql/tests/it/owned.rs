//! What new objects may be used for by whom (ALTER DEFAULT PRIVILEGES), all that a role owns (DROP OWNED, REASSIGN OWNED), and what
//! CREATE SCHEMA makes at once.

use crate::support::Database;

const ACLS: &str = "SELECT string_agg(relname || ' ' || relacl::text, ' ' ORDER BY relname) FROM pg_class \
                    WHERE relname IN ('t', 'v', 'm', 't_a_seq')";
const DEFAULTS: &str = "SELECT string_agg(pg_describe_object(tableoid, oid, 0) || ': ' || defaclacl::text, '; ' ORDER BY 1) \
                        FROM (SELECT tableoid, * FROM pg_default_acl ORDER BY defaclobjtype, defaclnamespace) d";

#[test]
fn new_objects_have_the_privileges_of_their_owner_and_schema() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE a; CREATE ROLE b; CREATE ROLE c; CREATE SCHEMA other; GRANT ALL ON SCHEMA public, other TO a",
        "GRANT CREATE ON DATABASE postgres TO a",
        "ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT SELECT ON TABLES TO b",
        "ALTER DEFAULT PRIVILEGES FOR USER a IN SCHEMA public GRANT INSERT ON TABLES TO c WITH GRANT OPTION",
        "ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT USAGE ON SEQUENCES TO b",
        "ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT USAGE ON SCHEMAS TO b",
        "ALTER DEFAULT PRIVILEGES FOR ROLE a REVOKE USAGE ON TYPES FROM public",
        "SET ROLE a",
        "CREATE TABLE t (a serial); CREATE VIEW v AS SELECT 1; CREATE MATERIALIZED VIEW m AS SELECT 1",
        "CREATE TABLE other.u (a int); CREATE TYPE e AS ENUM ('x'); CREATE DOMAIN d AS int; CREATE SCHEMA made",
        "RESET ROLE; CREATE TABLE mine (a int)",
    ]);
    let (owner, seen) = ("a=arwdDxtm/a", "b=r/a");
    let both = format!("{{{owner},{seen},c=a*/a}}");
    s.check(&[
        (ACLS, &format!("m {both} t {both} t_a_seq {{a=rwU/a,b=U/a}} v {both}")),
        ("SELECT relacl FROM pg_class WHERE relname = 'u'", &format!("{{{owner},{seen}}}")),
        ("SELECT relacl FROM pg_class WHERE relname = 'mine'", "~"),
        (
            "SELECT typname, typacl FROM pg_type WHERE typname IN ('d', 'e', '_e') ORDER BY 1",
            "_e|~\nd|{a=U/a}\ne|{a=U/a}",
        ),
        ("SELECT nspacl FROM pg_namespace WHERE nspname = 'made'", "{a=UC/a,b=U/a}"),
        ("SET ROLE b", ""),
        ("SELECT count(*) FROM t", "0"),
        ("INSERT INTO t DEFAULT VALUES", "42501 permission denied for table t"),
        (
            "ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT SELECT ON TABLES TO c",
            "42501 permission denied to change default privileges",
        ),
        ("RESET ROLE", ""),
    ]);
}

#[test]
fn a_default_that_says_nothing_new_is_not_kept() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE a", "CREATE ROLE b", "CREATE SCHEMA n"]);
    let relations = "default privileges on new relations belonging to role a";
    s.check(&[
        ("ALTER DEFAULT PRIVILEGES FOR ROLE a GRANT SELECT, UPDATE ON TABLES TO b", ""),
        (DEFAULTS, &format!("{relations}: {{a=arwdDxtm/a,b=rw/a}}")),
        ("ALTER ROLE b RENAME TO c", ""),
        ("ALTER DEFAULT PRIVILEGES FOR ROLE a REVOKE UPDATE ON TABLES FROM c", ""),
        (DEFAULTS, &format!("{relations}: {{a=arwdDxtm/a,c=r/a}}")),
        ("ALTER DEFAULT PRIVILEGES FOR ROLE a REVOKE ALL ON TABLES FROM c", ""),
        (DEFAULTS, "~"),
        ("ALTER DEFAULT PRIVILEGES FOR ROLE a IN SCHEMA n GRANT SELECT ON TABLES TO c", ""),
        (DEFAULTS, &format!("{relations} in schema n: {{c=r/a}}")),
        ("DROP ROLE c", "2BP01 role \"c\" cannot be dropped because some objects depend on it\nprivileges for default privileges on new relations belonging to role a in schema n"),
        ("DROP ROLE a", "2BP01 role \"a\" cannot be dropped because some objects depend on it\nowner of default privileges on new relations belonging to role a in schema n"),
        ("DROP SCHEMA n", ""),
        (DEFAULTS, "~"),
        ("ALTER DEFAULT PRIVILEGES FOR ROLE a REVOKE EXECUTE ON FUNCTIONS FROM public", ""),
        ("DROP OWNED BY a", ""),
        ("DROP ROLE a, c", ""),
        (DEFAULTS, "~"),
    ]);
}

#[test]
fn defaults_that_cannot_be_are_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE ROLE a", "CREATE SCHEMA n"]);
    s.check(&[
        (
            "ALTER DEFAULT PRIVILEGES IN SCHEMA n GRANT USAGE ON SCHEMAS TO a",
            "0LP01 cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS",
        ),
        (
            "ALTER DEFAULT PRIVILEGES GRANT CONNECT ON TABLES TO a",
            "0LP01 invalid privilege type CONNECT for relation",
        ),
        (
            "ALTER DEFAULT PRIVILEGES GRANT SELECT (x) ON TABLES TO a",
            "0LP01 default privileges cannot be set for columns",
        ),
        (
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO public WITH GRANT OPTION",
            "0LP01 grant options can only be granted to roles",
        ),
        (
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON VIEWS TO a",
            "42601 syntax error at or near \"VIEWS\"",
        ),
        (
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO nobody",
            "42704 role \"nobody\" does not exist",
        ),
        (
            "ALTER DEFAULT PRIVILEGES IN SCHEMA nowhere GRANT SELECT ON TABLES TO a",
            "3F000 schema \"nowhere\" does not exist",
        ),
    ]);
}

const OWNERS: &str = "SELECT string_agg(relname || ' ' || relowner::regrole, ' ' ORDER BY relname) FROM pg_class \
                      WHERE relname IN ('t', 't_pkey', 't_a_seq', 'v', 'kept')";

#[test]
fn all_that_a_role_owns_is_another_ones_or_goes() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE a; CREATE ROLE b; CREATE ROLE c; GRANT ALL ON SCHEMA public TO a, b; GRANT CREATE ON DATABASE postgres TO a",
        "CREATE TABLE kept (x int); GRANT SELECT ON kept TO a WITH GRANT OPTION",
        "SET ROLE a; GRANT SELECT ON kept TO c",
        "CREATE TABLE t (a serial PRIMARY KEY); CREATE VIEW v AS SELECT * FROM t; CREATE TYPE e AS ENUM ('x'); CREATE SCHEMA n",
        "CREATE STATISTICS st ON (a + 1) FROM t; GRANT SELECT ON t TO b; RESET ROLE",
    ]);
    let refused = |what: &str, role: &str, whose: &str| {
        format!(
            "42501 permission denied to {what} objects\nOnly roles with privileges of role \"{role}\" may {what} objects {whose}."
        )
    };
    let first = |s: String| s.lines().next().unwrap_or_default().to_owned();
    s.run_each(&["SET ROLE b"]);
    assert_eq!(first(s.run("DROP OWNED BY a")), first(refused("drop", "a", "owned by it")));
    assert_eq!(first(s.run("REASSIGN OWNED BY b TO a")), first(refused("reassign", "a", "to it")));
    s.check(&[
        ("RESET ROLE", ""),
        (
            "DROP OWNED BY postgres",
            "2BP01 cannot drop objects owned by role postgres because they are required by the database system",
        ),
        (
            "REASSIGN OWNED BY postgres TO a",
            "2BP01 cannot reassign ownership of objects owned by role postgres because they are required by the database system",
        ),
        ("REASSIGN OWNED BY a TO nobody", "42704 role \"nobody\" does not exist"),
        ("REASSIGN OWNED BY a TO b", ""),
        (OWNERS, "kept postgres t b t_a_seq b t_pkey b v b"),
        ("SELECT typowner::regrole FROM pg_type WHERE typname IN ('e', '_e')", "b\nb"),
        ("SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'n'", "b"),
        ("SELECT stxowner::regrole FROM pg_statistic_ext", "b"),
        ("SELECT relacl FROM pg_class WHERE relname = 't'", "{b=arwdDxtm/b}"),
        // What was granted to it stays until it is done with.
        ("SELECT relacl FROM pg_class WHERE relname = 'kept'", "{postgres=arwdDxtm/postgres,a=r*/postgres,c=r/a}"),
        ("DROP OWNED BY a", ""),
        ("SELECT relacl FROM pg_class WHERE relname = 'kept'", "{postgres=arwdDxtm/postgres}"),
        ("DROP ROLE a", ""),
        ("CREATE TABLE r (a int REFERENCES t)", ""),
        ("DROP OWNED BY b", "2BP01 cannot drop desired object(s) because other objects depend on them\nconstraint r_a_fkey on table r depends on table t"),
        ("SELECT count(*) FROM t", "0"),
        ("BEGIN", ""),
        ("DROP OWNED BY b CASCADE", "NOTICE 00000 drop cascades to constraint r_a_fkey on table r"),
        (OWNERS, "kept postgres"),
        ("ROLLBACK", ""),
        (OWNERS, "kept postgres t b t_a_seq b t_pkey b v b"),
        ("DROP OWNED BY b, c CASCADE", "NOTICE 00000 drop cascades to constraint r_a_fkey on table r"),
        ("DROP ROLE b, c", ""),
        ("SELECT count(*) FROM r", "0"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}

#[test]
fn a_schema_is_made_with_what_is_in_it() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE ROLE o",
        "CREATE SCHEMA n AUTHORIZATION o CREATE VIEW v AS SELECT a FROM t CREATE INDEX ON t (b) \
         CREATE TABLE t (a serial PRIMARY KEY, b text) CREATE SEQUENCE q GRANT SELECT ON t TO public",
    ]);
    s.check(&[
        ("SHOW search_path", "\"$user\", public"),
        (
            "SELECT string_agg(relname || relkind::text || relowner::regrole, ' ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'n'::regnamespace",
            "qSo tro t_a_seqSo t_b_idxio t_pkeyio vvo",
        ),
        ("SELECT relacl FROM pg_class WHERE relname = 't'", "{o=arwdDxtm/o,=r/o}"),
        ("SELECT current_user, pg_get_viewdef('n.v'::regclass)", "postgres| SELECT a\n   FROM n.t;"),
        (
            "CREATE SCHEMA m CREATE TABLE n.u (a int)",
            "42P15 CREATE specifies a schema (n) different from the one being created (m)",
        ),
        ("SELECT count(*) FROM pg_namespace WHERE nspname = 'm'", "0"),
        ("CREATE SCHEMA m CREATE TABLE x (a int) CREATE VIEW y AS SELECT * FROM nothing", "42P01 relation \"nothing\" does not exist"),
        ("SELECT current_user, current_setting('search_path')", "postgres|\"$user\", public"),
        (
            "CREATE SCHEMA IF NOT EXISTS m CREATE TABLE t (a int)",
            "0A000 CREATE SCHEMA IF NOT EXISTS cannot include schema elements",
        ),
        ("CREATE SCHEMA m CREATE DOMAIN d AS int", "42601 syntax error at or near \"DOMAIN\""),
        ("CREATE SCHEMA m SELECT 1", "42601 syntax error at or near \"SELECT\""),
        ("CREATE SCHEMA m CREATE TABLE m.t (a int UNIQUE) CREATE TABLE u (a int REFERENCES t (a))", ""),
        ("SELECT 'm.u'::regclass::text", "m.u"),
    ]);
}
