//! VACUUM's reports, read back: VERBOSE's lines and autovacuum's in the log, of PostgreSQL 13 to 18 and Ebb.
//!
//! A report begins with a line that names the table and goes on with lines of `words: number words, number
//! words …`. Every number is kept under its words, so that a version's own lines are not lost; the fields that
//! experiments ask for are found by name.

use std::collections::BTreeMap;

/// One table's report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VacuumReport {
    /// `database.schema.table`, or what there is of it.
    pub table: String,
    /// By autovacuum.
    pub automatic: bool,
    /// Every page not all-frozen was to be read.
    pub aggressive: bool,
    /// For age, not for dead rows.
    pub to_prevent_wraparound: bool,
    /// Numbers by `line: words`, e.g. `pages: scanned`.
    pub numbers: BTreeMap<String, f64>,
    /// How it went with the indexes: `needed`, `not needed`, `bypassed`, `bypassed by failsafe`.
    pub index_scan: String,
    /// The lines as they came.
    pub text: String,
}

impl VacuumReport {
    /// A number by the line that it is on and the words that follow it.
    pub fn number(&self, line: &str, words: &str) -> Option<f64> {
        self.numbers.get(&format!("{line}: {words}")).copied()
    }

    /// Seconds on the wall.
    pub fn elapsed_s(&self) -> Option<f64> {
        self.number("system usage", "elapsed")
    }

    /// Pages read.
    pub fn pages_scanned(&self) -> Option<f64> {
        self.number("pages", "scanned").or_else(|| {
            // 13 and 14 say what was skipped.
            let skipped = self.number("pages", "skipped frozen")?;
            Some(self.number("pages", "remain")? - skipped)
        })
    }

    /// Pages on which rows were frozen; 16 and later say.
    pub fn pages_frozen(&self) -> Option<f64> {
        self.number("frozen", "pages from table")
    }

    /// Pages newly marked all-frozen; 18 and later say.
    pub fn pages_set_frozen(&self) -> Option<f64> {
        self.number("visibility map", "pages set all-frozen")
    }

    /// Bytes of WAL; 13 and later say in the log, 15 and later with VERBOSE.
    pub fn wal_bytes(&self) -> Option<f64> {
        self.number("WAL usage", "bytes")
    }

    /// Milliseconds of reading and writing, with track_io_timing.
    pub fn io_ms(&self) -> Option<f64> {
        let read = self.number("I/O timings", "read");
        let write = self.number("I/O timings", "write");
        if read.is_none() && write.is_none() {
            return None;
        }
        Some(read.unwrap_or(0.0) + write.unwrap_or(0.0))
    }

    /// MB/s.
    pub fn write_rate(&self) -> Option<f64> {
        self.number("avg read rate", "avg write rate")
    }
}

/// The reports in a text, in order.
pub fn parse(text: &str) -> Vec<VacuumReport> {
    let mut reports: Vec<VacuumReport> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(report) = head(line) {
            reports.push(report);
            inside = true;
        } else if inside && let Some(report) = reports.last_mut() {
            let words = line.trim_start();
            // In a log each line of a report but the first begins with a tab; the next entry ends it.
            inside = report.take(words) || !is_entry(line);
        }
    }
    reports
}

/// A new entry of a log, or a message of its own.
fn is_entry(line: &str) -> bool {
    ["LOG:", "INFO:", "ERROR:", "WARNING:", "STATEMENT:"].iter().any(|w| line.contains(w))
}

fn head(line: &str) -> Option<VacuumReport> {
    let (before, after) = line.split_once('"')?;
    let (table, rest) = after.split_once('"')?;
    let automatic = before.contains("automatic ") && before.trim_end().ends_with("of table");
    let finished = before.contains("finished vacuuming");
    if !(automatic && before.contains("vacuum")) && !finished {
        return None;
    }
    let mut report = VacuumReport {
        table: table.to_owned(),
        automatic,
        aggressive: before.contains("aggressive"),
        to_prevent_wraparound: before.contains("wraparound"),
        text: line.to_owned(),
        ..VacuumReport::default()
    };
    if let Some((_, scans)) = rest.split_once("index scans: ") {
        report.keep("index scans", scans);
    }
    Some(report)
}

impl VacuumReport {
    /// Takes a line of the report; false if it is none.
    fn take(&mut self, line: &str) -> bool {
        let known = [
            "pages:",
            "tuples:",
            "tuples missed:",
            "removable cutoff:",
            "new relfrozenxid:",
            "new relminmxid:",
            "frozen:",
            "visibility map:",
            "index scan ",
            "index \"",
            "delay time:",
            "I/O timings:",
            "avg read rate:",
            "buffer usage:",
            "WAL usage:",
            "system usage:",
        ];
        if is_entry(line) {
            return false;
        }
        self.text.push('\n');
        self.text.push_str(line);
        if let Some(rest) = line.strip_prefix("index scan ") {
            let (how, rest) = rest.split_once(": ").unwrap_or((rest, ""));
            how.clone_into(&mut self.index_scan);
            self.keep("index scan", rest);
            return true;
        }
        let Some((words, rest)) = line.split_once(": ") else { return true };
        if known.iter().any(|k| line.starts_with(k)) || !rest.is_empty() {
            self.keep(words, rest);
        }
        true
    }

    /// Keeps the numbers of `rest` under `line`: each goes by the words after it (`3 removed`), or by the
    /// words before it where it ends its part (`elapsed: 0.02 s`).
    fn keep(&mut self, line: &str, rest: &str) {
        for part in rest.split(", ") {
            let part = part.trim();
            let digit = part.find(|c: char| c.is_ascii_digit());
            let Some(at) = digit else { continue };
            let end = part[at..].find(|c: char| !(c.is_ascii_digit() || c == '.'));
            let end = end.map_or(part.len(), |e| at + e);
            let Ok(value) = part[at..end].trim_end_matches('.').parse::<f64>() else { continue };
            let before = part[..at].rsplit(": ").find(|p| !p.trim().is_empty()).unwrap_or("");
            let before = before.trim().trim_end_matches(':');
            let after = part[end..].split('(').next().unwrap_or("").trim();
            let name = if before.is_empty() { after } else { before };
            self.numbers.insert(format!("{line}: {name}"), value);
            // `4 pages from table (2.00 % of total) had 9 tuples frozen`: the second number.
            if let Some((_, second)) =
                part[end..].split_once(") had ").or(part[end..].split_once(") have "))
            {
                let (number, words) = second.split_once(' ').unwrap_or((second, ""));
                if let Ok(value) = number.parse() {
                    self.numbers.insert(format!("{line}: {words}"), value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_18s_report() {
        let text = "\
INFO:  aggressively vacuuming \"postgres.public.t\"
INFO:  finished vacuuming \"postgres.public.t\": index scans: 1
pages: 0 removed, 1667 remain, 1600 scanned (96.00% of total), 12 eagerly scanned
tuples: 66666 removed, 133334 remain, 0 are dead but not yet removable
removable cutoff: 755, which was 0 XIDs old when operation ended
frozen: 1667 pages from table (100.00% of total) had 133334 tuples frozen
visibility map: 1667 pages set all-visible, 1660 pages set all-frozen (0 were all-visible)
index scan bypassed: 17 pages from table (1.02% of total) have 66 dead item identifiers
index \"t_pkey\": pages: 551 in total, 0 newly deleted, 0 currently deleted, 0 reusable
I/O timings: read: 1.500 ms, write: 0.026 ms
avg read rate: 0.000 MB/s, avg write rate: 1.150 MB/s
buffer usage: 5612 hits, 0 reads, 4 dirtied
WAL usage: 5553 records, 4 full page images, 1025892 bytes, 0 buffers full
system usage: CPU: user: 0.02 s, system: 0.01 s, elapsed: 0.03 s
INFO:  vacuuming \"postgres.pg_toast.pg_toast_1\"
INFO:  finished vacuuming \"postgres.pg_toast.pg_toast_1\": index scans: 0
pages: 0 removed, 0 remain, 0 scanned (100.00% of total), 0 eagerly scanned";
        let reports = parse(text);
        assert_eq!(reports.len(), 2);
        let r = &reports[0];
        assert_eq!((r.table.as_str(), r.automatic), ("postgres.public.t", false));
        assert_eq!(r.pages_scanned(), Some(1600.0));
        assert_eq!(r.number("pages", "eagerly scanned"), Some(12.0));
        assert_eq!(r.pages_frozen(), Some(1667.0));
        assert_eq!(r.number("frozen", "tuples frozen"), Some(133_334.0));
        assert_eq!(r.pages_set_frozen(), Some(1660.0));
        assert_eq!(r.index_scan, "bypassed");
        assert_eq!(r.number("index scan", "dead item identifiers"), Some(66.0));
        assert_eq!(r.wal_bytes(), Some(1_025_892.0));
        assert_eq!(r.elapsed_s(), Some(0.03));
        assert_eq!(r.io_ms(), Some(1.526));
        assert_eq!(r.number("avg read rate", "avg write rate"), Some(1.15));
        assert_eq!(r.number("system usage", "user"), Some(0.02));
        assert_eq!(reports[1].number("pages", "remain"), Some(0.0));
    }

    #[test]
    fn reads_the_log_of_13() {
        let text = "\
2026-11-22 00:30:00.265 UTC [27] LOG:  automatic aggressive vacuum to prevent wraparound of table \"postgres.public.h\": index scans: 0
\tpages: 0 removed, 84 remain, 1 skipped due to pins, 4 skipped frozen
\ttuples: 3000 removed, 10000 remain, 0 are dead but not yet removable, oldest xmin: 500
\tbuffer usage: 100 hits, 3 misses, 50 dirtied
\tavg read rate: 0.000 MB/s, avg write rate: 30.720 MB/s
\tsystem usage: CPU: user: 0.01 s, system: 0.00 s, elapsed: 1.25 s
\tWAL usage: 136 records, 1 full page images, 29120 bytes
2026-11-22 00:30:00.265 UTC [27] LOG:  automatic analyze of table \"postgres.public.h\" system usage: CPU: user: 0.0 s
2026-11-22 00:30:01.000 UTC [27] LOG:  automatic vacuum of table \"postgres.public.h\": index scans: 1";
        let reports = parse(text);
        assert_eq!(reports.len(), 2);
        let r = &reports[0];
        assert!(r.automatic && r.aggressive && r.to_prevent_wraparound);
        assert_eq!(r.pages_scanned(), Some(80.0));
        assert_eq!(r.elapsed_s(), Some(1.25));
        assert_eq!(r.wal_bytes(), Some(29_120.0));
        assert!(!reports[1].aggressive);
        assert_eq!(reports[1].number("index scans", ""), Some(1.0));
    }
}
