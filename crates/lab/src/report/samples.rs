//! Every sample, as CSV; the machine, as JSON.

use crate::Result;
use crate::results::Results;
use std::fmt::Write as _;

/// A line for each value of each round.
pub fn rows(results: &Results) -> String {
    let mut text = String::from("experiment,server,setting,figure,unit,round,value\n");
    for e in &results.experiments {
        for row in &e.rows {
            for (round, value) in row.values.iter().enumerate() {
                let fields =
                    [&e.name, &row.server, &row.x, &row.figure, &row.unit].map(|f| field(f));
                let _ = writeln!(text, "{},{},{value}", fields.join(","), round + 1);
            }
        }
    }
    text
}

/// A line for each point of each figure over time.
pub fn series(results: &Results) -> String {
    let mut text = String::from("experiment,server,setting,figure,unit,seconds,value\n");
    for e in &results.experiments {
        for s in &e.series {
            let fields = [&e.name, &s.server, &s.x, &s.figure, &s.unit].map(|f| field(f)).join(",");
            for (at, value) in &s.points {
                let _ = writeln!(text, "{fields},{at},{value}");
            }
        }
    }
    text
}

/// The machine, and the servers with their settings.
pub fn machine(results: &Results) -> Result<String> {
    let value = serde_json::json!({ "machine": results.machine, "servers": results.servers });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
