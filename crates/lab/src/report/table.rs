//! What both reports say, before it is HTML or markdown: the table of an experiment with published
//! and measured figures side by side, and the figures at which Ebb does worse.

use crate::plots::{by_size, distinct};
use crate::results::{Experiment, Results, Row, ratio};

/// A table of text.
#[derive(Debug)]
pub struct Table {
    /// The heads of the columns.
    pub columns: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line of a table: a figure at a setting.
#[derive(Debug)]
pub struct Line {
    /// The figure and its unit.
    pub figure: String,
    /// The setting.
    pub x: String,
    /// A cell for each column after these two.
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Debug, Default)]
pub struct Cell {
    /// Its text; empty where there is nothing.
    pub text: String,
    /// All rounds, where there are several.
    pub rounds: String,
    /// Whether it is a ratio at which Ebb does worse.
    pub worse: bool,
}

/// Something at which Ebb does worse.
#[derive(Debug)]
pub struct Worse {
    /// The figure and the setting.
    pub what: String,
    /// Ebb's value.
    pub ours: String,
    /// The peer's value.
    pub theirs: String,
    /// How many times as much.
    pub times: String,
}

/// Whether less of a unit is better: seconds and calls, yes; transactions per second, no; of some
/// figures (pages frozen, a rate of writing) neither can be said.
fn less_is_better(unit: &str) -> Option<bool> {
    match unit {
        "s" | "ms" | "µs" | "us" | "calls" | "writes" | "syncs" | "bytes" | "buffers" => {
            Some(true)
        }
        "tps" | "TPS" | "/s" => Some(false),
        _ => None,
    }
}

/// How many times worse counts as worse; below it is noise.
const NOISE: f64 = 1.02;

/// The side-by-side table of an experiment; none when it has no figures.
pub fn side_by_side(results: &Results, e: &Experiment) -> Option<Table> {
    let published = distinct(e.published.iter().map(|r| r.server.as_str()));
    let mut here: Vec<&str> = results.servers.iter().map(|s| s.label.as_str()).collect();
    // Ebb stands last, next to the ratio.
    here.sort_by_key(|label| results.ebb() == Some(label));
    here.retain(|label| e.rows.iter().any(|r| r.server == *label));
    let pair =
        results.ebb().zip(results.peer(e)).filter(|(a, b)| here.contains(a) && here.contains(b));
    let figures = distinct(e.rows.iter().chain(&e.published).map(|r| r.figure.as_str()));
    let mut columns = vec!["figure".to_owned(), "at".to_owned()];
    columns.extend(published.iter().map(|p| format!("{p} (published)")));
    columns.extend(here.iter().map(|h| format!("{h} (here)")));
    columns.extend(pair.map(|(a, b)| format!("{a} / {b}")));
    let mut lines = Vec::new();
    for figure in figures {
        let all = || e.rows.iter().chain(&e.published).filter(|r| r.figure == figure);
        let unit = all().next().map_or("", |r| r.unit.as_str());
        let mut settings = distinct(all().map(|r| r.x.as_str()));
        by_size(&mut settings);
        for x in settings {
            let find = |rows: &[Row], server: &str| {
                rows.iter().find(|r| r.server == server && r.x == x && r.figure == figure).cloned()
            };
            let mut cells: Vec<Cell> = Vec::new();
            cells.extend(published.iter().map(|p| cell(find(&e.published, p))));
            cells.extend(here.iter().map(|h| cell(find(&e.rows, h))));
            if let Some((ours, theirs)) = pair {
                let of = |server| e.median(server, x, figure);
                cells.push(of(ours).zip(of(theirs)).map_or_else(Cell::default, |(a, b)| Cell {
                    text: times(ratio(a, b)),
                    rounds: String::new(),
                    worse: worse(unit, a, b),
                }));
            }
            lines.push(Line { figure: with_unit(figure, unit), x: x.into(), cells });
        }
    }
    (!lines.is_empty()).then_some(Table { columns, lines })
}

fn worse(unit: &str, ours: f64, theirs: f64) -> bool {
    let r = ratio(ours, theirs);
    match less_is_better(unit) {
        Some(true) => r > NOISE,
        Some(false) => r < 1.0 / NOISE,
        None => false,
    }
}

/// Every figure at which Ebb does worse than the first PostgreSQL.
pub fn worse_figures(results: &Results, e: &Experiment) -> Vec<Worse> {
    let Some((ours, theirs)) = results.ebb().zip(results.peer(e)) else { return Vec::new() };
    let mut found = Vec::new();
    for row in e.rows.iter().filter(|r| r.server == ours) {
        let Some(other) = e.median(theirs, &row.x, &row.figure) else { continue };
        if worse(&row.unit, row.median, other) {
            let what = match row.x.as_str() {
                "" => row.figure.clone(),
                x => format!("{} at {x}", row.figure),
            };
            found.push(Worse {
                what,
                ours: value(row.median, &row.unit),
                theirs: value(other, &row.unit),
                times: times(ratio(row.median, other)),
            });
        }
    }
    found
}

fn cell(row: Option<Row>) -> Cell {
    let Some(row) = row else { return Cell::default() };
    let rounds: Vec<String> = row.values.iter().map(|v| plain(*v, &row.unit)).collect();
    Cell {
        text: plain(row.median, &row.unit),
        rounds: if rounds.len() > 1 { rounds.join(", ") } else { String::new() },
        worse: false,
    }
}

fn with_unit(figure: &str, unit: &str) -> String {
    match unit {
        "" | "bytes" => figure.to_owned(),
        unit if figure.contains(unit) && unit.len() > 3 => figure.to_owned(),
        unit => format!("{figure} ({unit})"),
    }
}

/// A value with its unit.
pub fn value(value: f64, unit: &str) -> String {
    match unit {
        "" | "bytes" => plain(value, unit),
        unit => format!("{} {unit}", plain(value, unit)),
    }
}

/// A value whose unit is said elsewhere: whole numbers in full, others to three digits.
fn plain(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    if unit == "bytes" {
        return crate::plots::bytes(value);
    }
    if value.fract() == 0.0 || value.abs() >= 1000.0 {
        return thousands(&format!("{value:.0}"));
    }
    match value.abs() {
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A ratio.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "∞ ×".into(),
        r if r >= 100.0 => format!("{} ×", thousands(&format!("{r:.0}"))),
        r if r >= 10.0 => format!("{r:.1} ×"),
        r if r >= 0.1 || r == 0.0 => format!("{r:.2} ×"),
        r => format!("1/{} ×", thousands(&format!("{:.0}", 1.0 / r))),
    }
}

fn thousands(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |d| ("-", d));
    let mut text = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(plain(337_800.0, "calls"), "337,800");
        assert_eq!(plain(32.42, "s"), "32.42");
        assert_eq!(plain(0.03, "s"), "0.030");
        assert_eq!(plain(11.8e9, "bytes"), "11 GB");
        assert_eq!(times(0.0211), "1/47 ×");
        assert_eq!(times(1.5), "1.50 ×");
        assert_eq!(thousands("-1234567"), "-1,234,567");
    }
}
