//! `report.html`: one file without scripts or anything from the network.

use super::markdown::{measured, met};
use super::table::{side_by_side, worse_figures};
use crate::plots::{Plot, bytes};
use crate::results::{Experiment, Results};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn page(results: &Results, plots: &[Vec<Plot>]) -> String {
    let mut body = String::new();
    let _ = writeln!(body, "<h1>ebb lab</h1>");
    let peers: Vec<&str> = results.servers.iter().map(|s| s.label.as_str()).collect();
    let _ = writeln!(
        body,
        "<p class=\"lead\">{} · {}</p>",
        escape(&peers.join(", ")),
        escape(&results.machine.date)
    );
    if let Some(line) = super::unfinished(results) {
        let _ = writeln!(body, "<div class=\"worse\"><p>{}</p></div>", escape(&line));
    }
    targets(&mut body, results);
    for (e, plots) in results.experiments.iter().zip(plots) {
        experiment(&mut body, results, e, plots);
    }
    let _ = writeln!(body, "<h2 id=\"machine\">Machine and servers</h2>\n<dl>");
    for (name, value) in facts(results) {
        let _ = writeln!(body, "<dt>{}</dt><dd>{}</dd>", escape(&name), escape(&value));
    }
    body.push_str("</dl>\n");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>ebb lab</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// The machine and the servers, as names and values.
pub fn facts(results: &Results) -> Vec<(String, String)> {
    let m = &results.machine;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let memory = bytes(m.memory_bytes as f64);
    let mut facts = vec![
        ("date".to_owned(), m.date.clone()),
        ("machine".into(), format!("{} × {}, {memory}", m.cores, m.cpu)),
        ("disk".into(), m.disk.clone()),
        ("kernel".into(), m.kernel.clone()),
        ("commit".into(), m.commit.clone()),
        ("command".into(), m.command.clone()),
    ];
    facts.extend(m.more.iter().cloned());
    for server in &results.servers {
        let settings: Vec<String> =
            server.settings.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let mut value = server.version.clone();
        let joined = match results.joined(&server.label) {
            _ if results.experiments.len() < 2 => String::new(),
            all if all.len() == results.experiments.len() => "in all experiments".to_owned(),
            some => format!("in {}", some.join(", ")),
        };
        for part in [&joined, &server.from, &settings.join(", ")] {
            if !part.is_empty() {
                value.push_str(" · ");
                value.push_str(part);
            }
        }
        facts.push((server.label.clone(), value));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn targets(body: &mut String, results: &Results) {
    let all = || results.experiments.iter().flat_map(|e| &e.wanted);
    if all().next().is_none() {
        return;
    }
    let judged = all().filter(|w| w.met.is_some()).count();
    let reached = all().filter(|w| w.met == Some(true)).count();
    let _ = writeln!(body, "<h2 id=\"targets\">Targets: {reached} of {judged} met</h2>");
    body.push_str("<table class=\"targets\">\n<tr><th>experiment<th>target<th class=\"n\">wanted<th class=\"n\">measured<th>met</tr>\n");
    for e in &results.experiments {
        for w in &e.wanted {
            let class = match w.met {
                Some(true) => "yes",
                Some(false) => "no",
                None => "none",
            };
            let _ = writeln!(
                body,
                "<tr><td><a href=\"#{0}\">{0}</a><td>{1}<td class=\"n\" data-name=\"wanted\">{2}<td class=\"n\" data-name=\"measured\">{3}<td class=\"{class}\">{4}</tr>",
                escape(&e.name),
                escape(&w.what),
                escape(&w.bound.to_string()),
                measured(w),
                met(w),
            );
        }
    }
    body.push_str("</table>\n");
}

fn experiment(body: &mut String, results: &Results, e: &Experiment, plots: &[Plot]) {
    let _ = writeln!(body, "<section id=\"{}\">\n<h2>{}</h2>", escape(&e.name), escape(&e.title));
    let _ =
        writeln!(body, "<p><code>ebb lab {}</code> {}</p>", escape(&e.name), escape(&e.workload));
    let worse = worse_figures(results, e);
    if !worse.is_empty() {
        body.push_str("<div class=\"worse\"><p>Where Ebb does worse:</p>\n<ul>\n");
        for w in &worse {
            let _ = writeln!(
                body,
                "<li>{}: {} against {} ({})</li>",
                escape(&w.what),
                escape(&w.ours),
                escape(&w.theirs),
                escape(&w.times)
            );
        }
        body.push_str("</ul></div>\n");
    }
    if !plots.is_empty() {
        body.push_str("<div class=\"plots\">\n");
    }
    for plot in plots {
        let _ = writeln!(
            body,
            "<figure>\n<div class=\"desk\">{}</div>\n<div class=\"phone\">{}</div>\n</figure>",
            plot.desk, plot.phone
        );
    }
    if !plots.is_empty() {
        body.push_str("</div>\n");
    }
    if let Some(table) = side_by_side(results, e) {
        body.push_str("<div class=\"wide\"><table>\n<tr>");
        for (at, column) in table.columns.iter().enumerate() {
            let class = if at < 2 { "" } else { " class=\"n\"" };
            let _ = write!(body, "<th{class}>{}", escape(column));
        }
        body.push_str("</tr>\n");
        let mut last = String::new();
        for line in table.lines {
            let first = line.figure != last;
            let figure = if first { escape(&line.figure) } else { String::new() };
            let class = if first { " class=\"first\"" } else { "" };
            let _ = write!(body, "<tr{class}><td>{figure}<td class=\"x\">{}", escape(&line.x));
            for cell in &line.cells {
                let class = if cell.worse { "n no" } else { "n" };
                let title = match cell.rounds.as_str() {
                    "" => String::new(),
                    rounds => format!(" title=\"rounds: {}\"", escape(rounds)),
                };
                let _ = write!(body, "<td class=\"{class}\"{title}>{}", escape(&cell.text));
            }
            body.push_str("</tr>\n");
            last = line.figure;
        }
        body.push_str("</table></div>\n");
    }
    if !e.notes.is_empty() {
        body.push_str("<ul class=\"notes\">\n");
        for note in &e.notes {
            let _ = writeln!(body, "<li>{}</li>", escape(note));
        }
        body.push_str("</ul>\n");
    }
    if !e.steps.is_empty() {
        let mut steps = e.steps.join("\n");
        for (name, value) in &e.settings {
            let _ = write!(steps, "\n-- {name} = {value}");
        }
        details(body, "Statements and settings", &steps);
    }
    for report in &e.reports {
        let mut name = format!("{}: {}", report.server, report.what);
        if !report.x.is_empty() {
            let _ = write!(name, " at {}", report.x);
        }
        details(body, &name, &report.text);
    }
    body.push_str("</section>\n");
}

fn details(body: &mut String, name: &str, text: &str) {
    let (name, text) = (escape(name), escape(text));
    let _ = writeln!(body, "<details><summary>{name}</summary><pre>{text}</pre></details>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
