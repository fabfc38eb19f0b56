//! Constraints that are not enforced, not valid, or validated later; and the columns that ON DELETE sets. The answers are PostgreSQL 18's.

use crate::support::Database;

const STATES: &str = "SELECT conname, conenforced, convalidated, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'c'::regclass AND contype IN ('c', 'f') ORDER BY 1";

#[test]
fn on_delete_sets_the_columns_that_it_names() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int, b int, PRIMARY KEY (a, b))",
        "INSERT INTO p VALUES (1, 1), (1, 2), (2, 1), (1, 0), (3, 3)",
        "CREATE TABLE n (id int, pa int, pb int DEFAULT 0, FOREIGN KEY (pa, pb) REFERENCES p ON DELETE SET NULL (pb))",
        "INSERT INTO n VALUES (1, 1, 1), (2, 2, 1)",
        "CREATE TABLE d (id int, pa int DEFAULT 9, pb int DEFAULT 0, FOREIGN KEY (pa, pb) REFERENCES p ON DELETE SET DEFAULT (pb) ON UPDATE CASCADE)",
        "INSERT INTO d VALUES (1, 1, 2)",
        "CREATE TABLE f (pa int, pb int, FOREIGN KEY (pa, pb) REFERENCES p MATCH FULL ON DELETE SET NULL (pb, pb))",
        "INSERT INTO f VALUES (3, 3)",
        "DELETE FROM p WHERE (a, b) IN ((2, 1), (1, 2))",
    ]);
    s.check(&[
        ("SELECT * FROM n ORDER BY id", "1|1|1\n2|2|~"),
        ("SELECT * FROM d", "1|1|0"),
        ("UPDATE p SET a = 5 WHERE (a, b) = (1, 0)", ""),
        ("SELECT * FROM d", "1|5|0"),
        ("DELETE FROM p WHERE a = 5", "23503 update or delete on table \"p\" violates foreign key constraint \"d_pa_pb_fkey\" on table \"d\"\nKey (a, b)=(5, 0) is still referenced from table \"d\"."),
        ("DELETE FROM p WHERE a = 3", "23503 insert or update on table \"f\" violates foreign key constraint \"f_pa_pb_fkey\"\nMATCH FULL does not allow mixing of null and nonnull key values."),
        ("SELECT confdelsetcols, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' ORDER BY conname",
         "{3}|FOREIGN KEY (pa, pb) REFERENCES p(a, b) ON UPDATE CASCADE ON DELETE SET DEFAULT (pb)\n{2}|FOREIGN KEY (pa, pb) REFERENCES p(a, b) MATCH FULL ON DELETE SET NULL (pb)\n{3}|FOREIGN KEY (pa, pb) REFERENCES p(a, b) ON DELETE SET NULL (pb)"),
        ("CREATE TABLE x (a int, b int, c int, FOREIGN KEY (a, b) REFERENCES p ON DELETE SET NULL (c))", "42P10 column \"c\" referenced in ON DELETE SET action must be part of foreign key"),
        ("CREATE TABLE x (a int, b int, FOREIGN KEY (a, b) REFERENCES p ON UPDATE SET DEFAULT (a))", "0A000 a column list with SET DEFAULT is only supported for ON DELETE actions"),
    ]);
}

#[test]
fn what_is_not_enforced_is_not_asked() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE p (a int PRIMARY KEY)",
        "INSERT INTO p VALUES (1)",
        "CREATE TABLE c (id int CONSTRAINT pos CHECK (id > 0) NOT ENFORCED, a int CONSTRAINT fk REFERENCES p ON DELETE CASCADE NOT ENFORCED)",
        "INSERT INTO c VALUES (-1, 7), (2, 1)",
    ]);
    let off = "fk|f|f|FOREIGN KEY (a) REFERENCES p(a) ON DELETE CASCADE NOT ENFORCED\npos|f|f|CHECK ((id > 0)) NOT ENFORCED";
    s.check(&[
        (STATES, off),
        ("BEGIN; DELETE FROM p; SELECT count(*) FROM c; ROLLBACK", "2"),
        ("ALTER TABLE c VALIDATE CONSTRAINT fk", "55000 cannot validate NOT ENFORCED constraint"),
        ("ALTER TABLE c ALTER CONSTRAINT pos ENFORCED", "42809 cannot alter enforceability of constraint \"pos\" of relation \"c\""),
        ("ALTER TABLE c ALTER CONSTRAINT fk ENFORCED", "23503 insert or update on table \"c\" violates foreign key constraint \"fk\"\nKey (a)=(7) is not present in table \"p\"."),
        (STATES, off),
        ("UPDATE c SET a = 1; ALTER TABLE c ALTER CONSTRAINT fk ENFORCED", ""),
        ("INSERT INTO c VALUES (3, 8)", "23503 insert or update on table \"c\" violates foreign key constraint \"fk\"\nKey (a)=(8) is not present in table \"p\"."),
        (STATES, "fk|t|t|FOREIGN KEY (a) REFERENCES p(a) ON DELETE CASCADE\npos|f|f|CHECK ((id > 0)) NOT ENFORCED"),
        ("BEGIN; DELETE FROM p; SELECT count(*) FROM c; ROLLBACK", "0"),
        ("ALTER TABLE c ALTER CONSTRAINT fk NOT ENFORCED", ""),
        (STATES, off),
        ("INSERT INTO c VALUES (3, 8)", ""),
        ("CREATE TABLE l (LIKE c INCLUDING CONSTRAINTS); SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'l'::regclass", "CHECK ((id > 0)) NOT ENFORCED"),
    ]);
}

#[test]
fn attributes_that_do_not_fit_are_refused() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE c (id int CONSTRAINT u UNIQUE, a int)",
        "INSERT INTO c VALUES (1, 1)",
    ]);
    s.check(&[
        ("ALTER TABLE c ADD UNIQUE (a) NOT ENFORCED", "0A000 UNIQUE constraints cannot be marked NOT ENFORCED"),
        ("ALTER TABLE c ADD PRIMARY KEY (a) ENFORCED", "0A000 PRIMARY KEY constraints cannot be marked ENFORCED"),
        ("ALTER TABLE c ADD NOT NULL a NOT ENFORCED", "0A000 NOT NULL constraints cannot be marked NOT ENFORCED"),
        ("CREATE TABLE x (a int UNIQUE ENFORCED)", "42601 misplaced ENFORCED clause"),
        ("CREATE TABLE x (a int CHECK (a > 0) ENFORCED NOT ENFORCED)", "42601 multiple ENFORCED/NOT ENFORCED clauses not allowed"),
        ("ALTER TABLE c ADD CHECK (a > 5) ENFORCED NOT ENFORCED", "42601 conflicting constraint properties"),
        ("ALTER TABLE c VALIDATE CONSTRAINT u", "42809 cannot validate constraint \"u\" of relation \"c\"\nThis operation is not supported for this type of constraint."),
        ("ALTER TABLE c ADD CONSTRAINT v CHECK (a > 5) NOT VALID", ""),
        ("ALTER TABLE c VALIDATE CONSTRAINT v", "23514 check constraint \"v\" of relation \"c\" is violated by some row"),
        ("UPDATE c SET a = 6; ALTER TABLE c VALIDATE CONSTRAINT v", ""),
        (STATES, "v|t|t|CHECK ((a > 5))"),
        ("CREATE DOMAIN d AS int CHECK (VALUE > 0) NOT ENFORCED", "42P17 specifying constraint enforceability not supported for domains"),
    ]);
}
