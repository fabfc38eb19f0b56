//! An experiment's figures as text: a line for each figure and setting, a column for each server.

use crate::measure::number;
use crate::results::{Experiment, Results, ratio};
use std::fmt::Write as _;

/// The whole run.
pub fn all(results: &Results) -> String {
    results.experiments.iter().map(|e| one(results, e)).collect()
}

/// One experiment.
pub fn one(results: &Results, e: &Experiment) -> String {
    let servers: Vec<&str> = results.servers.iter().map(|s| s.label.as_str()).collect();
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut head = vec!["figure".to_owned(), "setting".into(), "unit".into()];
    head.extend(servers.iter().map(|s| (*s).to_owned()));
    let both = results.ebb().zip(results.peer());
    if both.is_some() {
        head.push("ratio".into());
    }
    lines.push(head);
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let mut figures: Vec<&str> = Vec::new();
    for row in &e.rows {
        if !figures.contains(&row.figure.as_str()) {
            figures.push(&row.figure);
        }
    }
    for figure in figures {
        for row in e.rows.iter().filter(|r| r.figure == figure) {
            if seen.contains(&(figure, &row.x)) {
                continue;
            }
            seen.push((figure, &row.x));
            let mut line = vec![figure.to_owned(), row.x.clone(), row.unit.clone()];
            let value = |server: &str| e.median(server, &row.x, figure);
            line.extend(servers.iter().map(|s| value(s).map_or("".into(), number)));
            if let Some((ours, theirs)) = both {
                let both = value(ours).zip(value(theirs));
                line.push(both.map_or("".into(), |(a, b)| number(ratio(a, b))));
            }
            lines.push(line);
        }
    }
    let mut text = format!("{}: {}\n{}\n\n", e.name, e.title, e.workload);
    let columns = lines.first().map_or(0, Vec::len);
    let width = |at: usize| lines.iter().map(|l| l[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in &lines {
        for (at, cell) in line.iter().enumerate() {
            let pad = " ".repeat(widths[at] - cell.chars().count());
            let _ =
                if at < 3 { write!(text, "{cell}{pad}  ") } else { write!(text, "{pad}{cell}  ") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text.push('\n');
    for wanted in &e.wanted {
        let measured = wanted.measured.map_or("not measured".into(), number);
        let met = match wanted.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        let _ = writeln!(text, "wanted {}: {} {measured} {met}", wanted.bound, wanted.what);
    }
    for note in &e.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text.push('\n');
    text
}
