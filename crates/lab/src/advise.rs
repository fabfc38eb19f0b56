//! `ebb lab advise`: what a VACUUM setting would do to one table of the user's own server.
//!
//! [`facts`] looks at the table twice, in read-only transactions, and changes nothing; [`rules`] turns
//! what was seen into advice, without a server, so that the rules can be tested; this file prints it.

mod connect;
mod facts;
mod rules;

pub use facts::{Facts, Index};
pub use rules::{Advice, Item, advise};

use crate::Result;
use crate::plots::bytes;
use clap::Args;
use std::fmt::Write as _;
use std::time::Duration;

/// The arguments of `ebb lab advise`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The table, as you would write it in SQL.
    #[arg(long, value_name = "NAME")]
    pub table: String,
    /// How long to watch the table's churn.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub seconds: u64,
}

/// Looks, thinks and prints.
pub fn run(arguments: &Arguments, servers: &[String]) -> Result<bool> {
    let [server] = servers else {
        return Err("advise needs one --server postgres://user@host:port/database".into());
    };
    let mut session = connect::Session::new(server)?;
    let facts =
        facts::look(&mut session, &arguments.table, Duration::from_secs(arguments.seconds))?;
    print!("{}", page(&facts, &advise(&facts)));
    Ok(true)
}

/// What is printed.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub fn page(f: &Facts, advice: &Advice) -> String {
    let mut text = String::new();
    let size = |b: u64| bytes(b as f64);
    let _ = writeln!(text, "{} on {}\n", f.table, f.version);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<16} {value}");
    };
    line(
        "size",
        format!(
            "{} heap, {} in {}, {} TOAST",
            size(f.heap_bytes),
            size(f.index_bytes()),
            match f.indexes.len() {
                1 => "1 index".to_owned(),
                n => format!("{n} indexes"),
            },
            size(f.toast_bytes)
        ),
    );
    line(
        "rows",
        format!(
            "{} live, {} dead ({})",
            count(f.live),
            count(f.dead),
            percent(f.dead, f.live + f.dead)
        ),
    );
    let period = format!("over {}", span(f.watched_seconds));
    line(
        "churn",
        format!(
            "{}/s inserted, {}/s updated ({} HOT), {}/s deleted, {period}",
            rate(f.inserts),
            rate(f.updates),
            share(f.hot_share),
            rate(f.deletes)
        ),
    );
    if let (Some(now), true) = (f.dead_rate_now, f.look_seconds > 0.0) {
        line("just now", format!("{}/s rows dying, over {}", rate(now), span(f.look_seconds)));
    }
    let mut ages = format!(
        "{} transactions old ({} of autovacuum_freeze_max_age)",
        count(f.age),
        share(f.age / f.freeze_max_age)
    );
    if let Some(xids) = f.xids_per_second.filter(|x| *x > 0.0) {
        let left = (f.freeze_max_age - f.age).max(0.0) / xids;
        let _ = write!(ages, ", due in {} at {}/s", span(left), rate(xids));
    }
    line("relfrozenxid", ages);
    if let Some(backlog) = f.backlog_pages {
        line(
            "freeze backlog",
            format!(
                "{} pages all-visible, not all-frozen ({})",
                count(backlog),
                size((backlog * 8192.0) as u64)
            ),
        );
    }
    match (f.cached_buffers, f.dirty_buffers) {
        (Some(cached), Some(dirty)) => line(
            "buffers",
            format!(
                "{} cached, {} of them dirty, of {} shared_buffers",
                size((cached * 8192.0) as u64),
                size((dirty * 8192.0) as u64),
                size(f.shared_buffers)
            ),
        ),
        _ => line(
            "buffers",
            format!(
                "{} shared_buffers; what is cached, pg_buffercache would tell",
                size(f.shared_buffers)
            ),
        ),
    }
    line(
        "vacuums",
        format!(
            "{} by autovacuum, {} by hand; last {}",
            count(f.autovacuums),
            count(f.vacuums),
            f.last_vacuum.as_deref().unwrap_or("never")
        ),
    );
    for index in &f.indexes {
        line(
            "index",
            format!("{} {}, {} scans", index.name, size(index.bytes), count(index.scans as f64)),
        );
    }
    if !f.options.is_empty() {
        line(
            "options",
            f.options.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(", "),
        );
    }
    if f.watched_seconds < 3600.0 {
        let _ = writeln!(
            text,
            "\n  The statistics cover {} only; ask again when they cover a day.",
            span(f.watched_seconds)
        );
    }
    text.push('\n');
    for (at, item) in advice.items.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", at + 1, item.what);
        for line in wrapped(&item.why, 94) {
            let _ = writeln!(text, "   {line}");
        }
        for line in wrapped(&format!("Rests on: {}", item.rests_on), 94) {
            let _ = writeln!(text, "   {line}");
        }
        text.push('\n');
    }
    if advice.statements.is_empty() {
        text.push_str("-- nothing to change\n");
    }
    for statement in &advice.statements {
        let _ = writeln!(text, "{statement}");
    }
    text
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A count with separators.
pub(crate) fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

fn rate(value: f64) -> String {
    if value >= 100.0 { count(value) } else { format!("{value:.1}") }
}

pub(crate) fn share(value: f64) -> String {
    match value * 100.0 {
        p if p >= 10.0 || p == 0.0 => format!("{p:.0} %"),
        p if p >= 0.1 => format!("{p:.1} %"),
        p => format!("{p:.3} %"),
    }
}

fn percent(part: f64, whole: f64) -> String {
    share(if whole > 0.0 { part / whole } else { 0.0 })
}

/// A length of time as a person says it.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "never".into(),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s if s < 86_400.0 * 730.0 => format!("{:.0} days", s / 86_400.0),
        s => format!("{:.0} years", s / (365.25 * 86_400.0)),
    }
}
