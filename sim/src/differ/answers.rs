//! What a server answered, and whether two answers are the same.

use super::values::TYPES;
use lab::client::{Event, Outcome};

/// An answer without what may differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Types of the columns.
    pub types: Vec<u32>,
    /// Rows, in the order given.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// Command tags.
    pub tags: Vec<String>,
    /// SQLSTATE of the first error, or empty.
    pub state: String,
    /// Its message.
    pub message: String,
}

impl Answer {
    /// Of everything said up to ReadyForQuery.
    pub fn of(outcome: Outcome) -> Answer {
        let mut answer = Answer::default();
        for event in outcome.events {
            match event {
                Event::Columns(columns) => {
                    answer.types = columns.iter().map(|c| c.type_oid).collect()
                }
                Event::Row(row) => answer.rows.push(row),
                Event::Tag(tag) => answer.tags.push(tag),
                Event::Error(report) if answer.state.is_empty() => {
                    answer.state = report.sqlstate().to_owned();
                    answer.message = report.message().to_owned();
                }
                _ => {}
            }
        }
        answer
    }

    /// The connection went away.
    pub fn lost(why: &str) -> Answer {
        Answer { state: "LOST".into(), message: why.into(), ..Answer::default() }
    }

    /// Without rows' order.
    pub fn sorted(mut self) -> Answer {
        self.rows.sort();
        self
    }

    /// For people.
    pub fn show(&self) -> String {
        if !self.state.is_empty() {
            return format!("{} {}", self.state, self.message);
        }
        let field = |f: &Option<Vec<u8>>| {
            f.as_ref().map_or("~".into(), |b| String::from_utf8_lossy(b).into_owned())
        };
        let rows: Vec<String> = self
            .rows
            .iter()
            .take(12)
            .map(|r| r.iter().map(field).collect::<Vec<_>>().join("|"))
            .collect();
        let types: Vec<String> = self
            .types
            .iter()
            .map(|t| {
                TYPES.iter().find(|k| k.oid.0 == *t).map_or(t.to_string(), |k| k.name.to_owned())
            })
            .collect();
        format!(
            "{} ({} rows; {})\n    {}",
            self.tags.join(" "),
            self.rows.len(),
            types.join(", "),
            rows.join("\n    ")
        )
    }
}

/// How two answers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same.
    Equal,
    /// Different, but a server may do so: an error of evaluation that another plan does not meet, or meets another one first.
    Soft,
    /// Ebb does not have it.
    Unsupported,
    /// Other rows.
    Rows,
    /// Other types of columns.
    Types,
    /// Another SQLSTATE, or one where there is none, or none where there is one.
    State,
    /// The server failed inside.
    Broken,
}

fn number(bytes: &[u8]) -> Option<f64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// A numeric without zeroes at its end, which depend on which of equal values stood first.
fn trimmed(bytes: &[u8]) -> &[u8] {
    if !bytes.contains(&b'.') {
        return bytes;
    }
    let mut end = bytes.len();
    while end > 0 && bytes[end - 1] == b'0' {
        end -= 1;
    }
    if end > 0 && bytes[end - 1] == b'.' { &bytes[..end - 1] } else { &bytes[..end] }
}

fn same_value(ty: u32, a: &Option<Vec<u8>>, b: &Option<Vec<u8>>, strict: bool) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return a.is_none() && b.is_none() };
    if a == b {
        return true;
    }
    match ty {
        1700 if !strict => {
            trimmed(a) == trimmed(b)
                || a.len() == b.len() && a.len() >= 8 && a[..6] == b[..6] && a[8..] == b[8..]
        }
        700 | 701 => match (number(a), number(b)) {
            (Some(x), Some(y)) => {
                let near = if ty == 700 {
                    1e-5
                } else if strict {
                    4e-16
                } else {
                    1e-9
                };
                (x - y).abs() <= near * x.abs().max(y.abs()) || !strict && (x - y).abs() < 1e-9
            }
            _ => false,
        },
        _ => false,
    }
}

/// Compares Ebb's answer with a peer's. `strict`: nothing but the statement decides, so errors must agree too.
pub fn compare(ebb: &Answer, peer: &Answer, ordered: bool, strict: bool) -> Verdict {
    if matches!(ebb.state.as_str(), "LOST" | "XX000" | "XX001" | "XX002") && ebb.state != peer.state
    {
        return Verdict::Broken;
    }
    if ebb.state == "0A000" && peer.state != "0A000" {
        return Verdict::Unsupported;
    }
    if ebb.state != peer.state {
        let convert = |a: &Answer| a.message.starts_with("cannot convert");
        if !strict && (convert(ebb) || convert(peer)) {
            return Verdict::Soft;
        }
        let evaluation = |s: &str| {
            s.is_empty()
                || s.starts_with("22")
                || s.starts_with("23")
                || s.starts_with("54")
                || s == "0A000"
                || s == "2201B"
        };
        let soft = !strict && evaluation(&ebb.state) && evaluation(&peer.state);
        // Time and memory are the machine's.
        let machine =
            |s: &str| matches!(s, "57014" | "53200" | "53400" | "54000" | "54001" | "21000");
        return if soft || machine(&ebb.state) && !ebb.state.is_empty() || machine(&peer.state) {
            Verdict::Soft
        } else {
            Verdict::State
        };
    }
    if !ebb.state.is_empty() {
        return Verdict::Equal;
    }
    if ebb.types != peer.types {
        return Verdict::Types;
    }
    if ebb.tags != peer.tags || ebb.rows.len() != peer.rows.len() {
        return Verdict::Rows;
    }
    let same = |a: &Answer, b: &Answer| {
        a.rows.iter().zip(&b.rows).all(|(x, y)| {
            x.len() == y.len()
                && x.iter().zip(y).zip(&a.types).all(|((x, y), t)| same_value(*t, x, y, strict))
        })
    };
    let equal = same(ebb, peer) || !ordered && same(&ebb.clone().sorted(), &peer.clone().sorted());
    if equal { Verdict::Equal } else { Verdict::Rows }
}
