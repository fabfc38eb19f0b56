//! Snapshots of many ages over one small table that changes without end, and statements and portals that outlive what they were
//! planned for.
//!
//! Only half of the readers keep their table lock: the others let VACUUM FULL, CLUSTER and new indexes come between two readings.

use super::tables::{AGED, SCRATCH};
use super::worker::{Fate, Halt, Step, Worker};
use lab::client::{Batch, Event, Outcome};
use std::time::{Duration, Instant};

/// Changes a few rows again and again: HOT and not, to another page and back, by what is rolled back.
pub fn aging(w: &mut Worker<'_>) -> Step<()> {
    let begin = w.pick(&["BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"]);
    w.transaction(begin, |w| {
        for _ in 0..=w.below(6) {
            let (a, b) = (row(w), row(w));
            match w.below(9) {
                0 => {
                    let g = w.below(9);
                    w.exec(&format!("UPDATE aged SET g = {g} WHERE id = {a}"))?;
                }
                1 => {
                    let n = w.pick(&[1, 40, 700, 2500, 9000]);
                    w.exec(&format!("UPDATE aged SET pad = (SELECT string_agg(md5(g::text), '') FROM generate_series(1, {n} / 32 + 1) g) WHERE id = {a}"))?;
                }
                2 => {
                    w.exec(&format!("SAVEPOINT s; UPDATE aged SET v = v + 7, g = g + 1 WHERE id IN ({a}, {b}); ROLLBACK TO s; RELEASE s"))?;
                }
                3 => {
                    let a = reborn(a);
                    let gone = w.exec(&format!("DELETE FROM aged WHERE id = {a} RETURNING g, v"))?;
                    if let Some([Some(g), Some(v)]) = gone.rows().first().map(Vec::as_slice) {
                        w.exec(&format!("INSERT INTO aged VALUES ({a}, {g}, {v}, 'again')"))?;
                    }
                }
                4 => {
                    let how = w.pick(&["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"]);
                    let wait = w.pick(&["", " NOWAIT", " SKIP LOCKED", " SKIP LOCKED"]);
                    w.exec(&format!("SELECT v FROM aged WHERE id IN ({a}, {b}) FOR {how}{wait}"))?;
                }
                _ => {}
            }
            if a != b {
                let n = 1 + w.below(9);
                let sql = format!("UPDATE aged SET v = v + CASE id WHEN {a} THEN {n} ELSE -{n} END WHERE id IN ({a}, {b})");
                if w.exec(&sql)?.tags() != ["UPDATE 2"] {
                    return Err(gone(w, &[a, b], &sql));
                }
            }
        }
        Ok(())
    })
}

/// Mostly one of the few that change all the time.
fn row(w: &mut Worker<'_>) -> u64 {
    let of = w.pick(&[3, 12, AGED]);
    1 + w.below(of)
}

/// One of the rows that are deleted and made anew.
fn reborn(id: u64) -> u64 {
    id.next_multiple_of(3)
}

/// A row was not found: somebody deleted it and made it anew while the statement waited, or its chain is broken.
fn gone(w: &Worker<'_>, ids: &[u64], sql: &str) -> Halt {
    if ids.iter().all(|id| reborn(*id) != *id) {
        w.world.fault(format!("client {}: a row is not found by {sql}", w.id));
    }
    Halt::Refused("a row is gone".into())
}

/// What a snapshot saw when it was young.
struct Seen {
    rows: Vec<String>,
    keeps_lock: bool,
}

const ROWS: &str = "SELECT id, g, v, md5(pad) FROM aged";

/// Several sessions, each with a snapshot of its own age, which read the same again and again in every way.
pub fn ages(w: &mut Worker<'_>) -> Step<()> {
    let count = 2 + w.rng_index(5);
    let mut fates: Vec<Vec<Fate>> = vec![Vec::new(); count];
    let mut readers = Vec::new();
    for (i, fates) in fates.iter_mut().enumerate() {
        let seed = w.below(1 << 40);
        readers.push((w.another(200 + i, seed, fates), None::<Seen>));
    }
    let end = Instant::now() + Duration::from_millis(2000 + w.below(8000));
    while Instant::now() < end && !w.is_over() {
        let pause = w.below(60);
        w.world.pause(Duration::from_millis(pause));
        let (reader, seen) = &mut readers[w.rng_index(count)];
        let done = match seen {
            Some(_) if !reader.is_in_transaction() => Err(Halt::Gone),
            Some(_) if reader.one_in(12) => {
                reader.exec("COMMIT").and_then(|_| Err(Halt::Refused("over".into())))
            }
            Some(first) => again(reader, first),
            None => young(reader).map(|s| *seen = Some(s)),
        };
        if done.is_err() {
            reader.roll_back();
            *seen = None;
        }
    }
    for (reader, _) in &mut readers {
        reader.leave(true);
    }
    Ok(())
}

fn young(w: &mut Worker<'_>) -> Step<Seen> {
    w.roll_back();
    w.exec("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
    let keeps_lock = w.one_in(2);
    let text = reading(w, &format!("{ROWS} ORDER BY id"), keeps_lock, "")?;
    let rows: Vec<String> = text.lines().map(String::from).collect();
    let sum: i64 = rows.iter().filter_map(|r| r.split('|').nth(2)?.parse::<i64>().ok()).sum();
    let wanted = (AGED * 100).cast_signed();
    if rows.len() != usize::try_from(AGED).unwrap_or(0) || sum != wanted {
        w.world.fault(format!("client {}: {} rows of aged, their sum {sum}", w.id, rows.len()));
    }
    Ok(Seen { rows, keeps_lock })
}

fn reading(w: &mut Worker<'_>, sql: &str, keeps_lock: bool, way: &str) -> Step<String> {
    if !way.is_empty() || !keeps_lock {
        w.exec(&format!("SAVEPOINT r; {way}"))?;
    }
    let text = w.table(sql)?;
    if !way.is_empty() || !keeps_lock {
        w.exec("ROLLBACK TO r; RELEASE r")?;
    }
    Ok(text)
}

/// Reads once more, and compares.
fn again(w: &mut Worker<'_>, first: &Seen) -> Step<()> {
    let way = w.pick(&[
        "SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off",
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off",
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexscan = off",
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off",
    ]);
    let column = |at: usize| first.rows.iter().filter_map(move |r| r.split('|').nth(at));
    let (sql, wanted) = match w.below(6) {
        0 => (format!("{ROWS} ORDER BY id"), first.rows.join("\n")),
        1 => (format!("{ROWS} WHERE g >= 0 ORDER BY id"), first.rows.join("\n")),
        2 => ("SELECT id FROM aged WHERE id > 0 ORDER BY id".into(), {
            column(0).collect::<Vec<_>>().join("\n")
        }),
        3 => ("SELECT g FROM aged WHERE g >= 0 ORDER BY g".into(), {
            let mut all: Vec<i64> = column(1).filter_map(|g| g.parse().ok()).collect();
            all.sort_unstable();
            all.iter().map(i64::to_string).collect::<Vec<_>>().join("\n")
        }),
        4 => {
            let id = row(w);
            let at = usize::try_from(id - 1).unwrap_or(0);
            (format!("{ROWS} WHERE id = {id}"), first.rows.get(at).cloned().unwrap_or_default())
        }
        _ => {
            let (g, id) = (w.below(9), row(w));
            let has = |r: &&String| {
                let mut v = r.split('|');
                v.next() == Some(&id.to_string()) || v.next() == Some(&g.to_string())
            };
            let rows: Vec<String> = first.rows.iter().filter(has).cloned().collect();
            (format!("{ROWS} WHERE g = {g} OR id = {id} ORDER BY id"), rows.join("\n"))
        }
    };
    let got = reading(w, &sql, first.keeps_lock, way)?;
    if got != wanted {
        let differ = |a: &str, b: &str| {
            let b: Vec<&str> = b.lines().collect();
            a.lines().filter(|l| !b.contains(l)).take(4).collect::<Vec<_>>().join(" ; ")
        };
        let text = format!(
            "client {}: an old snapshot sees now [{}] and not [{}], from: {sql} ({way})",
            w.id,
            differ(&got, &wanted),
            differ(&wanted, &got)
        );
        w.world.fault(text);
    }
    Ok(())
}

/// Whatever may take versions of `aged` away, or move them.
pub fn upkeep(w: &mut Worker<'_>) -> Step<()> {
    let pause = w.below(300);
    w.world.pause(Duration::from_millis(pause));
    let sql = w.pick(&[
        "VACUUM aged",
        "VACUUM aged",
        "VACUUM (FREEZE) aged",
        "VACUUM (INDEX_CLEANUP off) aged",
        "VACUUM (INDEX_CLEANUP on, PARALLEL 2) aged",
        "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING, BUFFER_USAGE_LIMIT '128 kB') aged",
        "VACUUM (TRUNCATE off, PARALLEL 0) aged, swing",
        "VACUUM FULL aged",
        "VACUUM (FULL, FREEZE) aged",
        "CLUSTER aged USING aged_g",
        "CLUSTER aged USING aged_pkey",
        "REINDEX TABLE aged",
        "REINDEX TABLE CONCURRENTLY aged",
        "REINDEX INDEX CONCURRENTLY aged_g",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS aged_v ON aged (v)",
        "CREATE INDEX IF NOT EXISTS aged_gv ON aged (g, id) INCLUDE (v)",
        "DROP INDEX IF EXISTS aged_v",
        "DROP INDEX IF EXISTS aged_gv",
        "DROP INDEX CONCURRENTLY IF EXISTS aged_v",
        "ALTER TABLE aged SET (fillfactor = 100)",
        "ALTER TABLE aged SET (fillfactor = 20)",
        "ANALYZE aged",
        "SET vacuum_freeze_min_age = 0",
        "SET maintenance_work_mem = '64kB'",
        "CHECKPOINT",
    ]);
    w.exec_may(sql, &["42P07", "42704", "42P01"]).map(drop)
}

/// A READ COMMITTED transaction whose portals are read bit by bit, while it and others change what they read; and statements kept
/// for as long as the session lives.
pub fn portals(w: &mut Worker<'_>) -> Step<()> {
    w.roll_back();
    w.exec("BEGIN")?;
    let ways = [
        "SELECT id, g, v, md5(pad) FROM aged",
        "SELECT id, g, v, md5(pad) FROM aged ORDER BY g, id",
        "SELECT id, g, v, md5(pad) FROM aged WHERE id > 0 ORDER BY id",
        "SELECT id, g, v, md5(pad) FROM aged WHERE g IN (0, 1, 2, 3, 4, 5, 6, 7, 8)",
        "SELECT a.id, a.g, b.v, md5(b.pad) FROM aged a JOIN aged b ON b.id = a.id",
    ];
    let mut open: Vec<(String, u8, Vec<(i64, i64)>)> = Vec::new();
    for _ in 0..5 + w.below(25) {
        let pause = w.below(80);
        w.world.pause(Duration::from_millis(pause));
        if w.is_over() {
            return Err(Halt::Gone);
        }
        match w.below(5) {
            0 if open.len() < 4 => {
                let (name, format) = (format!("p{}", w.below(1 << 30)), w.pick(&[0, 1]));
                let mut batch = Batch::default();
                let sql = w.pick(&ways);
                batch.parse("", sql, &[]).bind(&name, "", &[], &[], &[format]).sync();
                w.batch(&batch, sql, &[])?;
                open.push((name, format, Vec::new()));
            }
            1 => own_change(w)?,
            _ if !open.is_empty() => {
                let at = w.rng_index(open.len());
                let n = w.pick(&[1, 7, 40, 400]);
                if portal_goes_on(w, &mut open[at], n)? {
                    open.remove(at);
                }
            }
            _ => {}
        }
    }
    let end = w.pick(&["COMMIT", "ROLLBACK"]);
    w.exec(end).map(drop)
}

/// Changes that no portal opened before may see.
fn own_change(w: &mut Worker<'_>) -> Step<()> {
    let (a, b) = (row(w), row(w));
    if a == b {
        return Ok(());
    }
    let sql = format!(
        "SAVEPOINT o; UPDATE aged SET v = v + CASE id WHEN {a} THEN 1 ELSE -1 END, g = (g + 1) % 9 WHERE id IN ({a}, {b}) RETURNING id"
    );
    let changed = w.exec(&sql)?.rows().len();
    if changed != 2 {
        let _ = gone(w, &[a, b], &sql);
    }
    let end = if changed == 2 { w.pick(&["RELEASE o", "ROLLBACK TO o"]) } else { "ROLLBACK TO o" };
    w.exec(end).map(drop)
}

/// Whether the portal has come to its end; its rows are a whole snapshot's then.
fn portal_goes_on(
    w: &mut Worker<'_>,
    portal: &mut (String, u8, Vec<(i64, i64)>),
    rows: i32,
) -> Step<bool> {
    let (name, format, got) = portal;
    let mut batch = Batch::default();
    batch.execute(name, rows).sync();
    // A ROLLBACK TO of a savepoint older than the portal has closed it.
    let outcome = w.batch(&batch, "a portal goes on", &[])?;
    got.extend(numbers(&outcome, *format));
    if outcome.events.contains(&Event::Suspended) {
        return Ok(false);
    }
    let sum: i64 = got.iter().map(|(_, v)| v).sum();
    let mut ids: Vec<i64> = got.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    if sum != (AGED * 100).cast_signed() || !ids.into_iter().eq(1..=AGED.cast_signed()) {
        let text = format!("client {}: a portal gave {} rows with the sum {sum}", w.id, got.len());
        w.world.fault(text);
    }
    Ok(true)
}

/// The first and the third value of each row.
fn numbers(outcome: &Outcome, format: u8) -> Vec<(i64, i64)> {
    let number = |v: &Option<Vec<u8>>| -> Option<i64> {
        let v = v.as_deref()?;
        if format == 0 {
            return std::str::from_utf8(v).ok()?.parse().ok();
        }
        Some(
            v.iter()
                .fold(if v.first()? & 128 == 0 { 0 } else { -1 }, |n, b| n << 8 | i64::from(*b)),
        )
    };
    let row = |e: &Event| match e {
        Event::Row(v) => Some((number(v.first()?)?, number(v.get(2)?)?)),
        _ => None,
    };
    outcome.events.iter().filter_map(row).collect()
}

/// Statements that live as long as the session, whatever becomes of the tables and indexes they were planned for.
pub fn kept(w: &mut Worker<'_>) -> Step<()> {
    let whole = Some((AGED.cast_signed(), (AGED * 100).cast_signed()));
    let swing = Some((SCRATCH.cast_signed(), (SCRATCH * (SCRATCH + 1) / 2).cast_signed()));
    let statements = [
        ("k0", "SELECT id, g, v FROM aged WHERE id = $1", None),
        ("k1", "SELECT count(*), 0, sum(v)::bigint FROM aged WHERE g >= $1::int - $1", whole),
        ("k2", "UPDATE aged SET pad = 'kept' WHERE id = $1 RETURNING id, g, v", None),
        ("k3", "SELECT count(*), 0, sum(v)::bigint FROM swing WHERE id > $1::int - $1", swing),
    ];
    for _ in 0..10 + w.below(20) {
        let (name, sql, wanted) = w.pick(&statements);
        let id = row(w);
        let format = w.pick(&[0, 1]);
        let text = id.to_string();
        let mut batch = Batch::default();
        batch.bind("", name, &[0], &[Some(text.as_bytes())], &[format]).execute("", 0).sync();
        let outcome = match w.batch(&batch, sql, &["26000"]) {
            Err(Halt::Refused(state)) if state == "26000" => {
                let mut batch = Batch::default();
                w.batch(batch.parse(name, sql, &[]).sync(), sql, &[])?;
                continue;
            }
            other => other?,
        };
        let got = numbers(&outcome, format);
        let good = match (got.as_slice(), wanted) {
            ([row], Some(wanted)) => *row == wanted,
            ([row], None) => row.0 == id.cast_signed(),
            // Deleted and made anew by whom it waited for.
            (rows, _) => rows.is_empty() && name == "k2" && reborn(id) == id,
        };
        if !good {
            w.world.fault(format!("client {}: {got:?} from {sql} with {id}", w.id));
        }
    }
    Ok(())
}
