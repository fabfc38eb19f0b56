//! Index entries of dead rows, looked up by their keys.

use crate::support::Database;

/// Something long stands between the columns that the indexes are on, or out of line.
#[test]
fn wide_rows_keep_their_keys() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE e (id int PRIMARY KEY, payload text, made timestamptz, who text)",
        "ALTER TABLE e ALTER payload SET STORAGE EXTERNAL",
        "CREATE INDEX e_made ON e (made)",
        "CREATE INDEX e_who ON e (who, id)",
        "INSERT INTO e SELECT g, repeat(md5(g::text), CASE WHEN g % 500 = 7 THEN 100 ELSE 20 END), \
            timestamptz 'epoch' + g * interval '1 minute', CASE WHEN g % 3 > 0 THEN 'w' || g % 7 END \
            FROM generate_series(1, 5000) g",
        "VACUUM e",
        // Those out of line, and others.
        "DELETE FROM e WHERE id % 500 IN (7, 8)",
        // On access the rows are cut down to what is kept.
        "SELECT count(*) FROM e WHERE payload > 'x'",
    ]);
    let said = s.run("VACUUM (VERBOSE, INDEX_CLEANUP ON) e");
    for index in ["e_pkey", "e_made", "e_who"] {
        let line = format!("index \"{index}\" method: retail, 20 entries removed\n");
        assert!(said.contains(&line), "{said}");
    }
    s.check(&[
        ("CREATE EXTENSION amcheck", ""),
        (
            "SELECT count(bt_index_parent_check(i::regclass, true)) \
                FROM unnest('{e_pkey,e_made,e_who}'::text[]) i",
            "3",
        ),
        ("SELECT count(*), count(who), sum(id) FROM e", "4980|3320|12457350"),
    ]);
    assert_eq!(db.faults(), [""; 0]);
}
