//! What must be true of a server that came up again, of its log, and of its folder once it is stopped.

use super::tables::{BOTH_WAYS, always};
use super::worker::{Fate, World};
use lab::Result;
use lab::client::Client;
use lab::servers::Server;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::process::Command;

fn lines(client: &mut Client, sql: &str) -> Result<Vec<String>> {
    let rows = client.run(sql)?.rows();
    let line = |r: Vec<Option<String>>| {
        r.into_iter().map(|v| v.unwrap_or_else(|| "~".into())).collect::<Vec<_>>().join("|")
    };
    Ok(rows.into_iter().map(line).collect())
}

/// The ledger holds what was acknowledged and nothing that was not; `whole` says that the server had the time to write all down.
/// From then on each number is known to be there, or not.
pub fn ledger(
    client: &mut Client,
    clients: &[usize],
    fates: &mut [Vec<Fate>],
    whole: bool,
    world: &World,
) -> Result<()> {
    for id in clients {
        let Some(fates) = fates.get_mut(*id) else { continue };
        let sql = format!("SELECT n FROM ledger WHERE client = {id} ORDER BY n");
        let there: HashSet<usize> =
            lines(client, &sql)?.iter().filter_map(|n| n.parse().ok()).collect();
        if let Some(n) = there.iter().find(|n| **n >= fates.len()) {
            world.fault(format!("client {id}: the ledger has number {n}, which never was"));
        }
        let last = there.iter().max().copied().unwrap_or(0);
        for (n, fate) in fates.iter_mut().enumerate() {
            let is_there = there.contains(&n);
            let wrong = match *fate {
                Fate::Kept => !is_there,
                // A later one, which is there, had its WAL after this one's.
                Fate::Promised => !is_there && (whole || n < last),
                Fate::Undone => is_there,
                Fate::Unknown => false,
            };
            if wrong {
                let how = if is_there { "there" } else { "lost" };
                world.fault(format!("client {id}: transaction {n}, {fate:?}, is {how}"));
            }
            *fate = if is_there { Fate::Kept } else { Fate::Undone };
        }
    }
    Ok(())
}

/// Sums, references and keys, by every way of reading them.
pub fn contents(client: &mut Client, world: &World) -> Result<()> {
    const BY_INDEX: &str =
        "SET enable_seqscan = off; SET enable_indexscan = on; SET enable_indexonlyscan = on";
    const BY_SCAN: &str = "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off";
    for way in [BY_SCAN, BY_INDEX] {
        client.run(way)?;
        for (sql, wanted) in always() {
            let got = lines(client, &sql)?.join("\n");
            if got != wanted {
                world.fault(format!(
                    "after the start: {got:?}, not {wanted:?}, from: {sql} ({way})"
                ));
            }
        }
    }
    for sql in BOTH_WAYS {
        client.run(BY_SCAN)?;
        let scanned = lines(client, sql)?;
        client.run(BY_INDEX)?;
        let looked_up = lines(client, sql)?;
        if scanned != looked_up {
            world.fault(format!("{scanned:?} by scan, {looked_up:?} by index, from: {sql}"));
        }
    }
    client.run("RESET ALL")?;
    Ok(())
}

/// Every file in the database's folder belongs to a relation.
pub fn files(client: &mut Client, folder: &Path, world: &World) -> Result<()> {
    let oid = client.value("SELECT oid FROM pg_database WHERE datname = current_database()")?;
    let folder = folder.join("base").join(&oid);
    let listed = || -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(&folder)? {
            names.insert(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    };
    let numbers = |client: &mut Client| -> Result<HashSet<String>> {
        let sql = "SELECT pg_relation_filenode(oid) FROM pg_class WHERE NOT relisshared AND relpersistence <> 't' AND pg_relation_filenode(oid) > 0";
        Ok(lines(client, sql)?.into_iter().collect())
    };
    // What autovacuum makes and drops meanwhile is in one list only.
    let before = listed()?;
    let known = numbers(client)?;
    let after = listed()?;
    for name in before.intersection(&after) {
        let number = name.split(['_', '.']).next().unwrap_or(name);
        // Below are the catalogs', whose TOAST tables have no row in pg_class; above, what sessions hold for themselves.
        let ours = number.parse().is_ok_and(|n: u32| (16384..1 << 31).contains(&n));
        if ours && !known.contains(number) {
            world.fault(format!("file {name} of database {oid} is nobody's"));
        }
    }
    for number in &known {
        if !before.contains(number) && !after.contains(number) {
            world.fault(format!("file {number} of database {oid} is not there"));
        }
    }
    Ok(())
}

/// `ebb check` of a stopped server's folder.
pub fn check(server: &Server, world: &World) -> Result<()> {
    let output = Command::new(server.program()).arg("check").arg(server.data_folder()).output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let faults: Vec<&str> = text.lines().filter(|l| !l.contains(" LOG:  ")).take(10).collect();
        world.fault(format!("ebb check: {}", faults.join("\n  ")));
    }
    Ok(())
}

/// Lines of the log that no session was told of: what the server itself had trouble with.
pub fn log(text: &str, world: &World) {
    for line in troubles(text) {
        world.fault(format!("in the log: {line}"));
    }
}

fn troubles(text: &str) -> Vec<&str> {
    const BAD: [&str; 10] = [
        "PANIC",
        "panicked",
        "corrupt",
        "checksum",
        "nvalid page",
        "unexpected",
        "internal error",
        "could not open",
        "could not read",
        "rank",
    ];
    // What autovacuum is told when somebody wants its table, or drops it.
    const GOOD: [&str; 4] =
        ["canceling autovacuum task", "canceling statement", "does not exist", "terminating"];
    // Why redo ended, told in the line before. A kill cuts a write off between two pages, within a record; what was lost by that the ledger tells.
    const LOG_ENDS: &str = "checksum in record at ";
    let mut out = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut said = HashSet::new();
    for (i, line) in lines.iter().enumerate() {
        let own = |l: &&&str| {
            l.starts_with('\t')
                || ["STATEMENT:", "DETAIL:", "HINT:", "CONTEXT:"].iter().any(|w| l.contains(w))
        };
        let of_session = lines[i + 1..].iter().take_while(own).any(|l| l.contains("STATEMENT:"));
        let error = line.contains("ERROR:  ") && !of_session;
        let good = GOOD.iter().any(|g| line.contains(g));
        let message = line.split_once("] ").map_or(*line, |(_, m)| m);
        let redo_ends = line.contains(LOG_ENDS)
            && lines.get(i + 1).is_some_and(|next| next.contains("LOG:  redo done at "));
        let bad =
            BAD.iter().any(|b| line.contains(b)) && !line.contains("STATEMENT:") && !redo_ends;
        if (bad || error && !good) && said.insert(message) {
            out.push(*line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::troubles;

    #[test]
    fn where_redo_ends_is_no_trouble() {
        let torn = "t [1] LOG:  incorrect resource manager data checksum in record at 0/116C2FC0\n";
        let done = "t [1] LOG:  redo done at 0/116C2F74 elapsed: 0.01 s\n";
        let page = "t [1] LOG:  page verification failed, calculated checksum 7 but expected 8\n";
        assert_eq!(troubles(&format!("{torn}{done}")), Vec::<&str>::new());
        assert_eq!(troubles(torn), [torn.trim_end()]);
        assert_eq!(troubles(&format!("{page}{torn}{done}")), [page.trim_end()]);
    }
}
