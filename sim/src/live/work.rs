//! What clients do to rows.

use super::tables::{ACCOUNTS, SCRATCH, TAGS, TOASTS, UPSERTS, always};
use super::worker::{Halt, Step, Worker};
use std::time::Duration;

const LEVELS: [&str; 3] = ["BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"];

/// Money between accounts, locked first or not, the owner sometimes changed (a key of an index, so not HOT).
pub fn transfer(w: &mut Worker<'_>) -> Step<()> {
    let begin = w.pick(&LEVELS);
    w.transaction(begin, |w| {
        for _ in 0..=w.below(3) {
            let (a, b) = (1 + w.below(ACCOUNTS), 1 + w.below(ACCOUNTS));
            let amount = w.below(50);
            match w.below(6) {
                0 => {
                    let how = w.pick(&["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"]);
                    let wait = w.pick(&["", "", " NOWAIT", " SKIP LOCKED"]);
                    w.exec(&format!(
                        "SELECT * FROM account WHERE id IN ({a}, {b}) ORDER BY id FOR {how}{wait}"
                    ))?;
                }
                1 => {
                    let owner = w.below(17);
                    w.exec(&format!("UPDATE account SET owner = {owner} WHERE id = {a}"))?;
                }
                2 => {
                    let n = w.below(300);
                    w.exec(&format!(
                        "UPDATE account SET note = repeat('n', {n}) WHERE id BETWEEN {a} AND {a} + 5"
                    ))?;
                }
                3 => {
                    w.exec(&format!(
                        "SAVEPOINT t; UPDATE account SET balance = balance + 1000 WHERE id = {a}; DELETE FROM account WHERE id = {b}; ROLLBACK TO t; RELEASE t"
                    ))?;
                }
                _ => {}
            }
            for (id, change) in [(a, format!("- {amount}")), (b, format!("+ {amount}"))] {
                let sql = format!("UPDATE account SET balance = balance {change} WHERE id = {id}");
                // Deleted and made anew meanwhile, it is not the row that was waited for.
                if w.exec(&sql)?.tags() != ["UPDATE 1"] {
                    return Err(Halt::Refused("an account is gone".into()));
                }
            }
        }
        Ok(())
    })
}

/// An account is deleted and made anew.
pub fn reborn(w: &mut Worker<'_>) -> Step<()> {
    let begin = w.pick(&LEVELS);
    let a = 1 + w.below(ACCOUNTS);
    w.transaction(begin, |w| {
        let row =
            w.exec(&format!("DELETE FROM account WHERE id = {a} RETURNING owner, balance"))?;
        if let Some([Some(owner), Some(balance)]) = row.rows().first().map(Vec::as_slice) {
            w.exec(&format!("INSERT INTO account VALUES ({a}, {owner}, {balance}, 'again')"))?;
        }
        Ok(())
    })
}

/// A queue: rows come at its end and go from its beginning.
pub fn queue(w: &mut Worker<'_>) -> Step<()> {
    let id = w.id;
    if w.one_in(2) {
        return w.transaction("BEGIN", |w| {
            let (k, size) = (1 + w.below(40), w.below(400));
            w.exec(&format!(
                "WITH m AS (INSERT INTO queue (v, body) SELECT g, repeat('q', {size}) FROM generate_series(1, {k}) g RETURNING v) UPDATE total SET made = made + (SELECT sum(v) FROM m) WHERE client = {id}"
            ))?;
            Ok(())
        });
    }
    w.transaction("BEGIN", |w| {
        let k = 1 + w.below(60);
        w.exec(&format!(
            "WITH d AS (DELETE FROM queue WHERE id IN (SELECT id FROM queue ORDER BY id LIMIT {k} FOR UPDATE SKIP LOCKED) RETURNING v) UPDATE total SET done = done + (SELECT coalesce(sum(v), 0) FROM d) WHERE client = {id}"
        ))?;
        Ok(())
    })
}

/// Counters that everybody inserts or raises; some are deleted and given to another.
pub fn upsert(w: &mut Worker<'_>) -> Step<()> {
    let id = w.id;
    w.transaction("BEGIN", |w| {
        let n = 1 + w.below(3);
        for _ in 0..n {
            let k = w.below(UPSERTS);
            w.exec(&format!(
                "INSERT INTO upsert VALUES ({k}, 1, 'new') ON CONFLICT (k) DO UPDATE SET n = upsert.n + 1, t = 'raised'"
            ))?;
        }
        w.exec(&format!("UPDATE total SET upserts = upserts + {n} WHERE client = {id}"))?;
        if w.one_in(3) {
            let k = w.below(UPSERTS);
            w.exec(&format!(
                "WITH d AS (DELETE FROM upsert WHERE k = {k} RETURNING n) UPDATE total SET upserts = upserts - coalesce((SELECT sum(n) FROM d), 0) WHERE client = {id}"
            ))?;
        }
        Ok(())
    })
}

/// Values of many pages with their checksum beside.
pub fn toast(w: &mut Worker<'_>) -> Step<()> {
    let begin = w.pick(&LEVELS);
    w.transaction(begin, |w| {
        let (id, n, m) = (1 + w.below(TOASTS), w.below(400), w.below(9000));
        let c = char::from(b'a' + u8::try_from(w.below(26)).unwrap_or(0));
        let body = format!("(SELECT string_agg(md5(g::text || '{c}'), '') FROM generate_series(1, {n}) g)");
        w.exec(&format!(
            "UPDATE toast SET sum = md5(b || m), body = b, more = m FROM (SELECT coalesce({body}, '') AS b, repeat('{c}', {m}) AS m) s WHERE id = {id}"
        ))?;
        if w.one_in(3) {
            w.exec(&format!("SAVEPOINT t; UPDATE toast SET body = repeat('wrong', 3000) WHERE id = {id}; ROLLBACK TO t"))?;
        }
        Ok(())
    })
}

/// Parents and their children: keys change, rows go, others follow.
pub fn family(w: &mut Worker<'_>) -> Step<()> {
    let begin = w.pick(&LEVELS);
    let may = &["23503", "23505"];
    w.transaction(begin, |w| {
        for _ in 0..=w.below(3) {
            let (p, q) = (1 + w.below(60), 1 + w.below(60));
            let sql = match w.below(6) {
                0 => format!("INSERT INTO parent VALUES ({p}, 'p') ON CONFLICT DO NOTHING"),
                1 => format!("DELETE FROM parent WHERE id = {p}"),
                2 => format!("UPDATE parent SET id = {q} WHERE id = {p}"),
                3 => format!("UPDATE child SET p = {q} WHERE p = {p}"),
                _ => format!("INSERT INTO child (p, t) SELECT {p}, 'c' FROM generate_series(1, 5)"),
            };
            w.exec_may(&sql, may)?;
        }
        Ok(())
    })
}

/// Unique keys change places.
pub fn tags(w: &mut Worker<'_>) -> Step<()> {
    let begin = w.pick(&LEVELS);
    let may = &["23505"];
    w.transaction(begin, |w| {
        let (a, b) = (1 + w.below(TAGS), 1 + w.below(TAGS));
        let free = 1000 + w.id;
        let ids = format!("SELECT id, k FROM tag WHERE k IN ({a}, {b}) ORDER BY id FOR UPDATE");
        let rows = w.exec(&ids)?.rows();
        let [one, other] = rows.as_slice() else { return Ok(()) };
        let [Some(i), Some(k)] = one.as_slice() else { return Ok(()) };
        let [Some(j), Some(l)] = other.as_slice() else { return Ok(()) };
        w.exec_may(&format!("UPDATE tag SET k = -{free} WHERE id = {i}"), may)?;
        w.exec_may(&format!("UPDATE tag SET k = {k}, t = 'moved' WHERE id = {j}"), may)?;
        w.exec_may(&format!("UPDATE tag SET k = {l}, t = 'moved' WHERE id = {i}"), may)?;
        // What is there already, and what somebody has just made.
        if w.one_in(4) {
            let got =
                w.exec_may(&format!("SAVEPOINT u; UPDATE tag SET k = {k} WHERE id = {i}"), may);
            if got.is_ok() {
                w.world.fault(format!("client {}: two rows of tag have the key {k}", w.id));
            } else if got == Err(Halt::Gone) {
                return Err(Halt::Gone);
            }
            w.exec("ROLLBACK TO u")?;
        }
        Ok(())
    })
}

/// A snapshot that is held for seconds: everything is true of it, and remains so.
pub fn snapshot(w: &mut Worker<'_>) -> Step<()> {
    w.roll_back();
    w.exec("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
    // Before there is a snapshot: a table emptied or written anew after it would look empty.
    w.exec("LOCK TABLE account, queue, total, upsert, toast, parent, child, tag, scratch, shape, aged, swing, ledger, ledger_part IN ACCESS SHARE MODE")?;
    let mut seen = Vec::new();
    let order = ["id", "owner, id", "balance, id"];
    let by = w.pick(&order);
    w.exec(&format!(
        "DECLARE c CURSOR FOR SELECT id, owner, balance, note FROM account ORDER BY {by}"
    ))?;
    w.exec("DECLARE d SCROLL CURSOR FOR SELECT id, sum, md5(body || more) FROM toast")?;
    let half = w.table("FETCH 250 FROM c")?;
    let toasts = w.table("FETCH 10 FROM d")?;
    let whole = format!("SELECT id, owner, balance, note FROM account ORDER BY {by}");
    let accounts = w.table(&whole)?;
    for _ in 0..=w.below(3) {
        for (at, (sql, wanted)) in always().iter().enumerate() {
            w.expect(sql, wanted)?;
            // What no invariant says: the very rows.
            let rows = w.table("SELECT sum(balance * id), sum(owner * id) FROM account")?
                + &w.table("SELECT sum(made), sum(done), sum(upserts) FROM total")?;
            match seen.first() {
                None => seen.push(rows),
                Some(first) if *first != rows => {
                    let text =
                        format!("client {}: a snapshot saw {first}, then {rows} (at {at})", w.id);
                    w.world.fault(text);
                }
                Some(_) => {}
            }
            if w.is_over() {
                return Err(Halt::Gone);
            }
        }
        let pause = 100 + w.below(1500);
        w.world.pause(Duration::from_millis(pause));
    }
    let rest = w.table("FETCH ALL FROM c")?;
    if format!("{half}\n{rest}") != accounts {
        w.world.fault(format!("client {}: a cursor and a query of one snapshot differ", w.id));
    }
    w.table("FETCH ALL FROM d")?;
    w.exec("MOVE ABSOLUTE 0 IN d")?;
    if w.table("FETCH 10 FROM d")? != toasts {
        w.world.fault(format!("client {}: a scrolled cursor sees other values", w.id));
    }
    w.exec("COMMIT").map(drop)
}

/// One statement's snapshot.
pub fn glance(w: &mut Worker<'_>) -> Step<()> {
    let all = always();
    let at = w.rng_index(all.len());
    w.expect(&all[at].0, &all[at].1)?;
    let id = 1 + w.below(ACCOUNTS);
    w.table(&format!("SELECT balance FROM account WHERE id = {id}"))?;
    let owner = w.below(17);
    w.table(&format!("SELECT count(*) FROM account WHERE owner = {owner}"))?;
    // A plan that outlives the table's shape and indexes.
    let plan = "SELECT count(*), sum(id), sum(a)::text FROM shape WHERE id > 0";
    match w.exec_may("EXECUTE kept", &["26000"]) {
        Err(Halt::Refused(state)) if state == "26000" => {
            w.exec(&format!("PREPARE kept AS {plan}"))?;
        }
        other => drop(other?),
    }
    w.expect("EXECUTE kept", "400|80200|561400")
}

/// A table that is emptied and filled again, always whole.
pub fn scratch(w: &mut Worker<'_>) -> Step<()> {
    w.transaction("BEGIN", |w| {
        match w.below(3) {
            0 => w.exec("TRUNCATE scratch")?,
            1 => w.exec("SAVEPOINT s; TRUNCATE scratch; ROLLBACK TO s; DELETE FROM scratch")?,
            _ => w.exec("DELETE FROM scratch")?,
        };
        w.exec_may(
            &format!("INSERT INTO scratch SELECT g, g FROM generate_series(1, {SCRATCH}) g"),
            &["23505"],
        )?;
        Ok(())
    })
}

/// A temporary table, with what is too large for a row; left to the session's end, now and then without a word.
pub fn temporary(w: &mut Worker<'_>) -> Step<()> {
    let (n, name) = (1 + w.below(600), format!("temp{}", w.below(5)));
    let how = w.pick(&["", "", " ON COMMIT DROP"]);
    w.roll_back();
    w.exec("BEGIN")?;
    w.exec(&format!("DROP TABLE IF EXISTS {name}"))?;
    w.exec(&format!("CREATE TEMP TABLE {name} (id int PRIMARY KEY, s text, b text){how}"))?;
    w.exec(&format!("INSERT INTO {name} SELECT g, md5(repeat('z', g * 20)), repeat('z', g * 20) FROM generate_series(1, {n}) g"))?;
    w.exec(&format!(
        "UPDATE {name} SET b = b WHERE id % 3 = 0; DELETE FROM {name} WHERE id % 7 = 0"
    ))?;
    w.expect(&format!("SELECT count(*) FROM {name} WHERE md5(b) <> s"), "0")?;
    if w.one_in(5) {
        return w.exec("ROLLBACK").map(drop);
    }
    w.exec("COMMIT")?;
    if how.is_empty() {
        w.exec(&format!("VACUUM {name}"))?;
        w.expect(&format!("SELECT count(*) FROM {name}"), &(n - n / 7).to_string())?;
        if w.one_in(2) {
            w.exec(&format!("DROP TABLE {name}"))?;
        }
    }
    if w.one_in(4) {
        let politely = w.one_in(2);
        w.leave(politely);
    }
    Ok(())
}

/// Rows out by COPY, and in.
pub fn copy(w: &mut Worker<'_>) -> Step<()> {
    let out = w.exec("COPY (SELECT id, owner, balance, note FROM account) TO STDOUT")?.copied();
    let text = String::from_utf8_lossy(&out).into_owned();
    let sum: i64 = text.lines().filter_map(|l| l.split('\t').nth(2)?.parse::<i64>().ok()).sum();
    let wanted = (ACCOUNTS * 100).cast_signed();
    if sum != wanted {
        w.world.fault(format!("client {}: COPY TO gives the sum {sum}, not {wanted}", w.id));
    }
    let name = format!("copied{}", w.id);
    w.exec(&format!("DROP TABLE IF EXISTS {name}"))?;
    let kind = w.pick(&["", "", "UNLOGGED "]);
    w.exec("BEGIN")?;
    w.exec(&format!("CREATE {kind}TABLE {name} (id int, owner int, balance bigint, note text)"))?;
    if w.one_in(2) {
        w.exec("COMMIT; BEGIN")?;
    }
    w.exec_with(&format!("COPY {name} FROM STDIN"), &out, &[])?;
    w.expect(
        &format!("SELECT count(*), sum(balance) FROM {name}"),
        &format!("{ACCOUNTS}|{wanted}"),
    )?;
    w.exec("COMMIT").map(drop)
}

/// Says and hears.
pub fn notify(w: &mut Worker<'_>) -> Step<()> {
    w.exec("LISTEN soak")?;
    w.transaction("BEGIN", |w| {
        let n = w.below(5000);
        w.exec(&format!("NOTIFY soak, 'said {n}'"))?;
        w.exec(&format!("SELECT pg_notify('soak', repeat('x', {n}))"))?;
        Ok(())
    })?;
    if w.one_in(3) {
        w.exec("UNLISTEN *")?;
    }
    Ok(())
}
