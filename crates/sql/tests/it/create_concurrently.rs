//! CREATE INDEX CONCURRENTLY beside others.

use crate::support::Database;

#[test]
fn an_index_is_made_concurrently_beside_readers_who_do_nothing() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE t (a int, b int) WITH (autovacuum_enabled = off)",
        "INSERT INTO t SELECT g, g FROM generate_series(1, 500) g",
        "DELETE FROM t WHERE a % 2 = 0",
        "CREATE TABLE p (a int PRIMARY KEY)",
        "INSERT INTO p VALUES (1)",
        "CREATE TABLE c (a int REFERENCES p)",
    ]);
    let mut reader = db.session();
    reader.run_each(&["BEGIN", "INSERT INTO c VALUES (1)"]);
    reader.check(&[("SELECT count(*) FROM t", "250")]);
    s.run_each(&["SET lock_timeout = '1ms'"]);
    s.check(&[("CREATE INDEX CONCURRENTLY ON p (a)", "")]);
    // He reads pages with dead rows while the index of a table that had none is filled, not knowing of it.
    let armed = base::stop::arm("sql.index.concurrently.filled");
    let subject = armed.subject();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut s = db.session();
            s.run_each(&["SET lock_timeout = '1ms'"]);
            subject.run(|| s.run("CREATE INDEX CONCURRENTLY t_a ON t (a)"))
        });
        armed.wait_reached();
        db.session().run_each(&["DELETE FROM t WHERE a < 100", "UPDATE t SET b = -b"]);
        reader.check(&[("SELECT count(*), sum(a) FROM t", "200|60000")]);
        db.session().run_each(&["INSERT INTO t SELECT g, g FROM generate_series(1, 99) g"]);
        reader.check(&[("SELECT count(*) FROM t", "299")]);
        armed.release();
        assert_eq!(worker.join().unwrap(), "");
    });
    reader.run_each(&["COMMIT"]);
    s.run_each(&["SET enable_seqscan = off"]);
    s.check(&[
        ("SELECT count(*), sum(a) FROM t WHERE a > 0", "299|64950"),
        ("SELECT count(*) FROM t WHERE a < 100", "99"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
    s.run_each(&["VACUUM t"]);
    assert_eq!(db.faults(), [""; 0]);
}
