//! EXPLAIN's `Window:` line, as PostgreSQL 18 writes it.
//!
//! A frame that was written as its start alone is shown with BETWEEN, as views show it: the query does not keep which it was.

use crate::query::{FrameBound, FrameExclude, FrameMode, Query, WindowFrame};
use base::Oid;
use expr::Expr;
use expr::tree::WindowCall;

/// What each window of a query is called: as written, or w1, w2 and so on, whatever is free.
pub(super) fn window_names(q: &Query, used: &[bool]) -> Vec<String> {
    let taken: Vec<&String> = q.windows.iter().filter_map(|w| w.name.as_ref()).collect();
    let mut number = 0;
    let mut next = || loop {
        number += 1;
        let name = format!("w{number}");
        if !taken.contains(&&name) {
            return name;
        }
    };
    let name = |(w, used): (&crate::query::WindowDefinition, &bool)| match &w.name {
        Some(n) => n.clone(),
        None if *used => next(),
        None => String::new(),
    };
    q.windows.iter().zip(used).map(name).collect()
}

/// Row numbers and ranks are the same in any frame: PostgreSQL gives them the one that is the least work.
fn in_any_frame(call: &WindowCall) -> bool {
    types::facts::proc(Oid(call.function)).is_some_and(|f| {
        matches!(
            f.name,
            "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" | "ntile"
        )
    })
}

fn bound(b: &FrameBound, print: &dyn Fn(&Expr) -> String) -> String {
    match b {
        FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
        FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
        FrameBound::CurrentRow => "CURRENT ROW".to_owned(),
        FrameBound::Preceding(e) => format!("{} PRECEDING", print(e)),
        FrameBound::Following(e) => format!("{} FOLLOWING", print(e)),
    }
}

fn frame_text(frame: &WindowFrame, print: &dyn Fn(&Expr) -> String) -> String {
    let mode = match frame.mode {
        FrameMode::Rows => "ROWS",
        FrameMode::Range => "RANGE",
        FrameMode::Groups => "GROUPS",
    };
    let exclude = match frame.exclude {
        FrameExclude::NoOthers => "",
        FrameExclude::CurrentRow => " EXCLUDE CURRENT ROW",
        FrameExclude::Group => " EXCLUDE GROUP",
        FrameExclude::Ties => " EXCLUDE TIES",
    };
    let (start, end) = (bound(&frame.start, print), bound(&frame.end, print));
    format!("{mode} BETWEEN {start} AND {end}{exclude}")
}

/// `w1 AS (PARTITION BY a ORDER BY b)`; of the keys the expressions alone.
pub(super) fn window_line(
    name: &str,
    partition: &[String],
    order: &[String],
    frame: &WindowFrame,
    calls: &[WindowCall],
    print: &dyn Fn(&Expr) -> String,
) -> String {
    let mut parts = Vec::new();
    if !partition.is_empty() {
        parts.push(format!("PARTITION BY {}", partition.join(", ")));
    }
    if !order.is_empty() {
        parts.push(format!("ORDER BY {}", order.join(", ")));
    }
    if calls.iter().all(in_any_frame) {
        parts.push("ROWS UNBOUNDED PRECEDING".to_owned());
    } else if frame.explicit {
        parts.push(frame_text(frame, print));
    }
    format!("{} AS ({})", crate::system::names::quote_identifier(name), parts.join(" "))
}

/// A condition on a window's calls, printed, with the window's name for its number.
pub(super) fn with_window_name(text: &str, name: &str, calls: &[WindowCall]) -> String {
    let Some(call) = calls.first() else { return text.to_owned() };
    let name = crate::system::names::quote_identifier(name);
    [" ", ")"].iter().fold(text.to_owned(), |text, end| {
        let number = format!(" OVER w{}{end}", call.window + 1);
        text.replace(&number, &format!(" OVER {name}{end}"))
    })
}
