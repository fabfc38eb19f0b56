//! Statements whose WITH holds several that write, each reading what others return; and cursors that outlive their transaction.
//!
//! # Invariants
//! No row is written twice by one statement: which of two changes is made is not said. Each statement of a chain has a table of its own.

use super::exprs::Gen;

/// Tables with `id`, `n` and `s` that take rows with any `id`.
const PLACES: [&str; 3] = ["t2", "t3", "t4"];

impl Gen<'_> {
    /// A statement of a chain on `table`, of what `source (k, m)` returns.
    fn link(&mut self, table: &str, source: &str, base: usize) -> String {
        match self.c.below(5) {
            0 => format!(
                "INSERT INTO {table} (id, n, s) SELECT k + {base}, m, '{source}' FROM {source} ON CONFLICT DO NOTHING RETURNING id, n"
            ),
            1 => format!(
                "UPDATE {table} SET s = '{source}' FROM {source} WHERE {table}.id = {source}.k RETURNING {table}.id, {table}.n"
            ),
            2 => {
                format!("DELETE FROM {table} WHERE id IN (SELECT k FROM {source}) RETURNING id, n")
            }
            3 => format!(
                "UPDATE {table} SET s = s || (SELECT count(*) FROM {source} WHERE k = n) WHERE id < (SELECT max(k) FROM {source}) RETURNING id, n"
            ),
            _ => format!(
                "MERGE INTO {table} USING (SELECT k, max(m) AS m FROM {source} GROUP BY k) q ON {table}.id = q.k \
                 WHEN MATCHED AND q.m > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'merged' \
                 WHEN NOT MATCHED THEN INSERT (id, n, s) VALUES (q.k + {base}, q.m, 'new') RETURNING {table}.id, {table}.n"
            ),
        }
    }

    /// Several statements in one WITH, the last of a chain behind it.
    pub(super) fn several(&mut self) -> String {
        let first = self.c.below(PLACES.len());
        let place = |n: usize| PLACES[(first + n) % PLACES.len()];
        let head = place(0);
        let begun = match self.c.below(3) {
            0 => format!("UPDATE {head} SET s = 'first' WHERE n % 2 = 0"),
            1 => format!("DELETE FROM {head} WHERE n % 3 = {}", self.c.below(3)),
            _ => format!(
                "INSERT INTO {head} (id, n, s) SELECT id + 5000, n, 'first' FROM {} WHERE id < {} ON CONFLICT DO NOTHING",
                place(1),
                self.c.below(20)
            ),
        };
        let mut list = vec![format!("a(k, m) AS ({begun} RETURNING id, n)")];
        let mut sources = vec!["a"];
        if self.c.percent(40) {
            let kept = self.c.below(4);
            list.push(format!(
                "f(k, m) AS {}(SELECT k, m FROM a WHERE m > {kept} OR k IN (SELECT id FROM {head}))",
                self.c.pick(&["", "MATERIALIZED ", "NOT MATERIALIZED "])
            ));
            sources.push("f");
        }
        let source = sources[self.c.below(sources.len())];
        list.push(format!("b(k, m) AS ({})", self.link(place(1), source, 6000)));
        sources.push("b");
        let source = sources[self.c.below(sources.len())];
        let end = match self.c.below(6) {
            0 => format!(
                "SELECT (SELECT count(*) FROM a), (SELECT sum(k) FROM b), (SELECT count(*) FROM {}), (SELECT sum(n) FROM {head})",
                place(1)
            ),
            1 => "SELECT a.k, a.m, b.k, b.m FROM a FULL JOIN b ON a.k = b.k".into(),
            2 => format!("SELECT k FROM {source} WHERE false"),
            3 => format!(
                "SELECT k, m FROM a UNION ALL SELECT k, m FROM {source} WHERE EXISTS (SELECT 1 FROM b WHERE b.m > 1)"
            ),
            _ => self.link(place(2), source, 7000),
        };
        format!("WITH {} {end}", list.join(", "))
    }

    /// A cursor WITH HOLD, read before and after its transaction is over, while tables change.
    pub(super) fn held(&mut self) -> Vec<String> {
        let query = self.query(&[0, 1], true);
        let scroll = *self.c.pick(&["SCROLL ", "", "NO SCROLL "]);
        let mut list = vec![
            "BEGIN".to_owned(),
            format!("DECLARE held {scroll}CURSOR WITH HOLD FOR {query} ORDER BY 1, 2"),
        ];
        for _ in 0..self.c.below(3) {
            list.push(self.held_step());
        }
        list.push((*self.c.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"])).into());
        for _ in 0..=self.c.below(5) {
            list.push(match self.c.below(5) {
                0 => format!("BEGIN; DELETE FROM {}; ROLLBACK", self.c.pick(&PLACES)),
                1 => format!("BEGIN; {}; ROLLBACK", self.held_step()),
                _ => self.held_step(),
            });
        }
        list.push("CLOSE held".into());
        list
    }

    fn held_step(&mut self) -> String {
        let n = self.c.below(7);
        match self.c.below(9) {
            0 | 1 => format!("FETCH {n} FROM held"),
            2 => "FETCH ALL FROM held".into(),
            3 => format!("FETCH BACKWARD {n} FROM held"),
            4 => format!("FETCH ABSOLUTE {n} FROM held"),
            5 => format!("FETCH ABSOLUTE -{n} FROM held"),
            6 => format!("MOVE {n} FROM held"),
            7 => "FETCH LAST FROM held".into(),
            _ => "FETCH FROM held".into(),
        }
    }
}
