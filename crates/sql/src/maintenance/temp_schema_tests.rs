//! Schemas of temporary tables: how many there are, and what becomes of those that nobody uses.

use super::autovacuum::launcher;
use super::tests::{cluster, connect, int, lost, run};

const SCHEMAS: &str = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg\\_temp\\_%'";
const LEFT: &str = "SELECT count(*) FROM pg_class WHERE relname LIKE 'left%'";

/// Sessions that end leave their schemas to the next: a pool that connects anew all day does not fill `pg_namespace`.
#[test]
fn sessions_after_one_another_use_one_schema() {
    let (_folder, cluster) = cluster();
    let mut looks_on = connect(&cluster);
    for n in 0..5 {
        let mut s = connect(&cluster);
        run(&mut s, &format!("CREATE TEMP TABLE left{n} (a serial PRIMARY KEY, b text)"));
        run(&mut s, "CREATE TEMP TABLE same (a int)");
        run(&mut s, &format!("CREATE TEMP VIEW view{n} AS SELECT a FROM left{n}"));
        assert_eq!(int(&mut s, "SELECT count(*) FROM same"), 0);
        run(&mut s, "INSERT INTO same VALUES (1)");
        assert_eq!(int(&mut looks_on, LEFT), 3, "the table, its key and its sequence");
        s.close();
        assert_eq!((int(&mut looks_on, LEFT), int(&mut looks_on, SCHEMAS)), (0, 1));
    }
    // Two at a time have two.
    let (mut one, mut two) = (connect(&cluster), connect(&cluster));
    for (n, s) in [&mut one, &mut two].into_iter().enumerate() {
        run(s, "CREATE TEMP TABLE same (a int8)");
        run(s, &format!("INSERT INTO same VALUES ({n})"));
    }
    assert_eq!(int(&mut one, "SELECT a FROM same"), 0);
    assert_eq!(int(&mut two, "SELECT a FROM same"), 1);
    assert_eq!(int(&mut looks_on, SCHEMAS), 2);
    [one, two, looks_on].into_iter().for_each(|s| s.close());
}

/// One that rolls back the making of its schema makes it again, and so does the next session of its number.
#[test]
fn a_schema_whose_making_is_rolled_back() {
    let (_folder, cluster) = cluster();
    let mut s = connect(&cluster);
    run(&mut s, "BEGIN; CREATE TEMP TABLE t (a int); ROLLBACK");
    assert_eq!(int(&mut s, SCHEMAS), 0);
    s.close();
    for _ in 0..2 {
        let mut s = connect(&cluster);
        run(&mut s, "BEGIN; CREATE TEMP TABLE t (a int); ROLLBACK");
        run(&mut s, "CREATE TEMP TABLE t (a int)");
        assert_eq!((int(&mut s, "SELECT count(*) FROM t"), int(&mut s, SCHEMAS)), (0, 1));
        s.close();
    }
}

/// What a lost server left in a session's schema goes when a session of its number comes to use it, also while autovacuum does the same.
#[test]
fn what_a_lost_server_left_goes_before_the_schema_is_used() {
    let (folder, first) = cluster();
    let mut s = connect(&first);
    let number = s.state().backend.number();
    run(&mut s, "CREATE TEMP TABLE left1 (a serial PRIMARY KEY, b text)");
    run(&mut s, "CREATE TEMP TABLE left2 (a int)");
    drop(s);
    let cluster = lost(&folder, first);
    let mut user = connect(&cluster);
    assert_eq!(user.state().backend.number(), number);
    assert_eq!(int(&mut user, LEFT), 4);
    let dropping = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut s = connect(&cluster);
            run(&mut s, &format!("BEGIN; DROP TABLE pg_temp_{number}.left1"));
            dropping.wait();
            while int(&mut s, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0 {
                std::thread::yield_now();
            }
            run(&mut s, "COMMIT");
            s.close();
        });
        dropping.wait();
        run(&mut user, "CREATE TEMP TABLE left3 (a int)");
    });
    assert_eq!(int(&mut user, LEFT), 1);
    launcher(&cluster).look_at(user.state().database.oid);
    assert_eq!((int(&mut user, LEFT), int(&mut user, SCHEMAS)), (1, 1));
    user.close();
}

/// Those of a time with more sessions go, with all that is in them; those in use stay.
#[test]
fn schemas_that_no_session_will_use_go() {
    let (folder, first) = cluster();
    let mut many: Vec<_> = (0..8).map(|_| connect(&first)).collect();
    for (n, s) in many.iter_mut().enumerate() {
        run(s, &format!("CREATE TEMP TABLE left{n} (a int)"));
    }
    many.truncate(4);
    many.drain(..).for_each(|s| s.close());
    let cluster = lost(&folder, first);
    let mut s = connect(&cluster);
    assert_eq!((int(&mut s, LEFT), int(&mut s, SCHEMAS)), (4, 8));
    run(&mut s, "CREATE TEMP TABLE mine AS SELECT 5::int8 AS a");
    let launcher = launcher(&cluster);
    let database = s.state().database.oid;
    launcher.look_at(database);
    let greatest = i64::from(cluster.backends().greatest_number());
    assert!(greatest < 8 && int(&mut s, SCHEMAS) <= greatest);
    assert_eq!((int(&mut s, LEFT), int(&mut s, "SELECT a FROM mine")), (0, 5));
    // Whoever comes now makes his own.
    let mut many: Vec<_> = (0..8).map(|_| connect(&cluster)).collect();
    for s in &mut many {
        run(s, "CREATE TEMP TABLE left1 (a int)");
    }
    launcher.look_at(database);
    assert_eq!((int(&mut s, LEFT), int(&mut s, SCHEMAS)), (8, 9));
    many.into_iter().for_each(|s| s.close());
    s.close();
}
