//! `report.md`, and the summary for a terminal.

use super::table::{self, side_by_side, times, worse_figures};
use crate::plots::Plot;
use crate::results::{Results, Wanted};
use std::fmt::Write as _;

/// The whole report.
pub fn page(results: &Results, plots: &[Vec<Plot>]) -> String {
    let mut text = String::from("# ebb lab\n\n");
    if let Some(line) = super::unfinished(results) {
        let _ = writeln!(text, "**{}**\n", escape(&line));
    }
    for (name, value) in super::html::facts(results) {
        let _ = writeln!(text, "- {name}: {}", escape(&value));
    }
    text.push('\n');
    text.push_str(&targets(results));
    for (e, plots) in results.experiments.iter().zip(plots) {
        let _ = writeln!(text, "\n## `{}`: {}\n", e.name, escape(&e.title));
        if !e.workload.is_empty() {
            let _ = writeln!(text, "{}\n", escape(&e.workload));
        }
        if let Some(table) = side_by_side(results, e) {
            let _ = writeln!(text, "| {} |", table.columns.join(" | "));
            let numbers = table.columns.len().saturating_sub(2);
            let _ = writeln!(text, "|---|---|{}", "---:|".repeat(numbers));
            let mut last = String::new();
            for line in table.lines {
                let figure = if line.figure == last { "" } else { &line.figure };
                let cells: Vec<String> = line
                    .cells
                    .iter()
                    .map(|c| if c.worse { format!("**{}**", c.text) } else { c.text.clone() })
                    .collect();
                let _ = writeln!(text, "| {figure} | {} | {} |", line.x, cells.join(" | "));
                last = line.figure;
            }
            text.push('\n');
        }
        let worse = worse_figures(results, e);
        if !worse.is_empty() {
            text.push_str("Where Ebb does worse:\n\n");
            for w in worse {
                let _ =
                    writeln!(text, "- {}: {} against {} ({})", w.what, w.ours, w.theirs, w.times);
            }
            text.push('\n');
        }
        for plot in plots {
            let _ = writeln!(text, "![{}]({}.svg)\n", escape(&plot.alt), plot.name);
        }
        for note in &e.notes {
            let _ = writeln!(text, "- {}", escape(note));
        }
        if !e.steps.is_empty() {
            let _ = writeln!(text, "\n```sql\n{}\n```", e.steps.join("\n"));
        }
        if !e.settings.is_empty() {
            let settings: Vec<String> =
                e.settings.iter().map(|(n, v)| format!("`{n}={v}`")).collect();
            let _ = writeln!(text, "\nSettings: {}", settings.join(", "));
        }
    }
    text
}

/// The table of targets, for README and the head of the report.
fn targets(results: &Results) -> String {
    let mut text = String::new();
    if results.experiments.iter().all(|e| e.wanted.is_empty()) {
        return text;
    }
    text.push_str("| experiment | target | wanted | measured | met |\n|---|---|---:|---:|---|\n");
    for e in &results.experiments {
        for w in &e.wanted {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                e.name,
                escape(&w.what),
                w.bound,
                measured(w),
                met(w)
            );
        }
    }
    text
}

/// What was measured for a target.
pub fn measured(w: &Wanted) -> String {
    let number = |m: f64| match m {
        m if m.fract() == 0.0 => table::value(m, ""),
        m => times(m).trim_end_matches(" ×").into(),
    };
    w.measured.map_or_else(|| "–".into(), number)
}

/// Whether a target was met, in a word.
pub fn met(w: &Wanted) -> &'static str {
    match w.met {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not measured",
    }
}

/// The targets and what Ebb does worse, for a terminal.
pub fn summary(results: &Results) -> String {
    let mut text = String::new();
    for e in &results.experiments {
        let _ = writeln!(text, "{}: {}", e.name, e.title);
        for w in &e.wanted {
            let sign = match w.met {
                Some(true) => "met   ",
                Some(false) => "MISSED",
                None => "-     ",
            };
            let _ = writeln!(text, "  {sign} {}: {} (wanted {})", w.what, measured(w), w.bound);
        }
        for w in table::worse_figures(results, e) {
            let _ = writeln!(
                text,
                "  worse  {}: {} against {} ({})",
                w.what, w.ours, w.theirs, w.times
            );
        }
        for note in &e.notes {
            let _ = writeln!(text, "  note   {note}");
        }
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
