//! The triggers of constraints, and what becomes of foreign keys when they are off.

use crate::support::Database;

fn tables() -> Database {
    let db = Database::new();
    db.session().run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY, b int UNIQUE, d int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TABLE c (a int REFERENCES p, b int REFERENCES p (b) ON DELETE CASCADE ON UPDATE SET NULL DEFERRABLE)",
    ]);
    db
}

/// Each foreign key has two on either table, a deferrable key has one; they go with it.
#[test]
fn constraints_have_them() {
    let db = tables();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT tgrelid::regclass, left(tgname, 22), tgname LIKE '%\\_' || oid, tgfoid::regproc, tgtype, tgenabled, \
             tgisinternal, tgconstrrelid::regclass, tgconstrindid::regclass, tgdeferrable, tginitdeferred \
             FROM pg_trigger ORDER BY oid",
            "p|Unique_ConstraintTrigg|t|unique_key_recheck|21|O|t|-|p_d_key|t|t\n\
             p|RI_ConstraintTrigger_a|t|\"RI_FKey_noaction_del\"|9|O|t|c|p_pkey|f|f\n\
             p|RI_ConstraintTrigger_a|t|\"RI_FKey_noaction_upd\"|17|O|t|c|p_pkey|f|f\n\
             c|RI_ConstraintTrigger_c|t|\"RI_FKey_check_ins\"|5|O|t|p|p_pkey|f|f\n\
             c|RI_ConstraintTrigger_c|t|\"RI_FKey_check_upd\"|17|O|t|p|p_pkey|f|f\n\
             p|RI_ConstraintTrigger_a|t|\"RI_FKey_cascade_del\"|9|O|t|c|p_b_key|f|f\n\
             p|RI_ConstraintTrigger_a|t|\"RI_FKey_setnull_upd\"|17|O|t|c|p_b_key|f|f\n\
             c|RI_ConstraintTrigger_c|t|\"RI_FKey_check_ins\"|5|O|t|p|p_b_key|t|f\n\
             c|RI_ConstraintTrigger_c|t|\"RI_FKey_check_upd\"|17|O|t|p|p_b_key|t|f",
        ),
        (
            "SELECT replace(pg_get_triggerdef(oid, true), oid::text, 'N') FROM pg_trigger ORDER BY oid LIMIT 2",
            "CREATE CONSTRAINT TRIGGER \"Unique_ConstraintTrigger_N\" AFTER INSERT OR UPDATE ON p DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION unique_key_recheck()\n\
             CREATE CONSTRAINT TRIGGER \"RI_ConstraintTrigger_a_N\" AFTER DELETE ON p FROM c NOT DEFERRABLE INITIALLY IMMEDIATE FOR EACH ROW EXECUTE FUNCTION \"RI_FKey_noaction_del\"()",
        ),
        ("SELECT count(*) FROM pg_depend WHERE classid = 'pg_trigger'::regclass AND deptype = 'i'", "9"),
        ("ALTER TABLE c DROP CONSTRAINT c_a_fkey", ""),
        ("SELECT count(*) FROM pg_trigger", "5"),
        ("DROP TABLE c, p", ""),
        ("SELECT count(*) FROM pg_trigger", "0"),
        ("SELECT count(*) FROM pg_depend WHERE classid = 'pg_trigger'::regclass", "0"),
    ]);
}

/// What is switched off asks, and does, nothing: on one side, or on the other; for what comes from elsewhere, both.
#[test]
fn they_are_switched_off_and_on() {
    let db = tables();
    let mut s = db.session();
    let refused = "23503 insert or update on table \"c\" violates foreign key constraint \"c_a_fkey\"\n\
                   Key (a)=(1) is not present in table \"p\".";
    s.check(&[
        ("INSERT INTO c VALUES (1)", refused),
        ("ALTER TABLE c DISABLE TRIGGER ALL", ""),
        ("INSERT INTO c VALUES (1)", ""),
        ("UPDATE c SET a = 2; DELETE FROM c", ""),
        ("ALTER TABLE c ENABLE TRIGGER ALL", ""),
        ("INSERT INTO c VALUES (1)", refused),
        ("SET session_replication_role = replica; INSERT INTO c VALUES (1); DELETE FROM c; RESET session_replication_role", ""),
        ("INSERT INTO p VALUES (1, 1); INSERT INTO c VALUES (1, 1)", ""),
        ("ALTER TABLE p DISABLE TRIGGER ALL", ""),
        ("DELETE FROM p", ""),
        ("SELECT * FROM c", "1|1"),
        ("ALTER TABLE c DISABLE TRIGGER nope", "42704 trigger \"nope\" for table \"c\" does not exist"),
        ("ALTER TABLE c DISABLE TRIGGER USER", ""),
        ("SELECT tgrelid::regclass, tgenabled, count(*) FROM pg_trigger GROUP BY 1, 2 ORDER BY 2", "p|D|5\nc|O|4"),
        ("CREATE ROLE low; ALTER TABLE c OWNER TO low; SET ROLE low", ""),
        ("ALTER TABLE c DISABLE TRIGGER USER", ""),
    ]);
    let said = s.run("ALTER TABLE c DISABLE TRIGGER ALL");
    assert!(said.starts_with("42501 permission denied: \"RI_ConstraintTrigger_c_"), "{said}");
}

/// What is not enforced is asked of nobody, has no triggers, and can be enforced later.
#[test]
fn constraints_that_are_not_enforced() {
    let db = Database::new();
    let mut s = db.session();
    let constraints = "SELECT conname, conenforced, convalidated, pg_get_constraintdef(oid) FROM pg_constraint \
                       WHERE conrelid = 'c'::regclass ORDER BY conname";
    s.check(&[
        ("CREATE TABLE p (a int PRIMARY KEY)", ""),
        (
            "CREATE TABLE c (a int CHECK (a > 0) NOT ENFORCED, b int, CONSTRAINT k FOREIGN KEY (b) REFERENCES p NOT ENFORCED)",
            "",
        ),
        ("INSERT INTO c VALUES (-1, 5)", ""),
        (
            constraints,
            "c_a_check|f|f|CHECK ((a > 0)) NOT ENFORCED\nk|f|f|FOREIGN KEY (b) REFERENCES p(a) NOT ENFORCED",
        ),
        ("SELECT count(*) FROM pg_trigger", "0"),
        ("ALTER TABLE c VALIDATE CONSTRAINT k", "55000 cannot validate NOT ENFORCED constraint"),
        (
            "ALTER TABLE c ALTER CONSTRAINT c_a_check ENFORCED",
            "42809 cannot alter enforceability of constraint \"c_a_check\" of relation \"c\"",
        ),
        (
            "ALTER TABLE c ALTER CONSTRAINT k ENFORCED",
            "23503 insert or update on table \"c\" violates foreign key constraint \"k\"\nKey (b)=(5) is not present in table \"p\".",
        ),
        ("INSERT INTO p VALUES (5)", ""),
        ("ALTER TABLE c ALTER CONSTRAINT k ENFORCED", ""),
        ("SELECT count(*) FROM pg_trigger", "4"),
        (
            "DELETE FROM p",
            "23503 update or delete on table \"p\" violates foreign key constraint \"k\" on table \"c\"\nKey (a)=(5) is still referenced from table \"c\".",
        ),
        ("ALTER TABLE c ALTER CONSTRAINT k NOT ENFORCED", ""),
        ("DELETE FROM p", ""),
        ("SELECT count(*) FROM pg_trigger", "0"),
    ]);
}

/// ON DELETE SET NULL and SET DEFAULT of some of a key's columns.
#[test]
fn some_columns_are_set_on_delete() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int, b int, PRIMARY KEY (a, b)); INSERT INTO p VALUES (1, 1), (2, 2)",
    ]);
    s.check(&[
        ("CREATE TABLE c (a int, b int, FOREIGN KEY (a, b) REFERENCES p ON DELETE SET NULL (b) ON UPDATE CASCADE)", ""),
        ("INSERT INTO c VALUES (1, 1), (2, 2)", ""),
        ("DELETE FROM p WHERE a = 1; UPDATE p SET a = 3", ""),
        ("SELECT * FROM c ORDER BY a", "1|~\n3|2"),
        (
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'",
            "FOREIGN KEY (a, b) REFERENCES p(a, b) ON UPDATE CASCADE ON DELETE SET NULL (b)",
        ),
    ]);
}

/// An index that is built anew beside its readers is another one.
#[test]
fn they_name_the_index_that_is_there() {
    let db = tables();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE d (a int UNIQUE DEFERRABLE)", "REINDEX SCHEMA CONCURRENTLY public"]);
    s.check(&[
        (
            "SELECT count(*) FROM pg_trigger LEFT JOIN pg_class c ON c.oid = tgconstrindid WHERE c.oid IS NULL",
            "0",
        ),
        ("SELECT count(*) > 4 FROM pg_trigger", "t"),
    ]);
}
