//! The functions of a window, a row at a time.
//!
//! # Invariants
//! A call is asked for the rows of a partition in their order. What it keeps of an aggregate is that of the frame it was asked for last:
//! rows that left the frame are taken out again where that gives exactly what starting over would, else it starts over.

use super::super::Cx;
use super::super::aggregate::{Call, Maker, State};
use super::frame::{Bound, Frame, Ranges};
use super::reader::Reader;
use base::{Result, SqlError, SqlState};
use expr::code::{Code, int_of};
use expr::ops::compare;
use std::collections::VecDeque;
use types::Datum;

/// A window call, compiled.
pub(crate) struct WindowCallCode {
    pub name: &'static str,
    pub args: Vec<Code>,
    /// The second argument, if it is a constant: how far lag and lead look.
    pub offset: Option<i64>,
    /// Set for aggregates.
    pub aggregate: Option<Call>,
    /// An aggregate whose arguments are the same when they are computed again.
    pub repeatable: bool,
    pub state: Running,
}

/// What a call keeps between rows.
#[derive(Default)]
pub(crate) struct Running {
    /// The rows that `sum` is of.
    from: usize,
    to: usize,
    sum: Option<State>,
    /// min and max of a moving frame: candidates with their rows, the best first.
    best: VecDeque<(usize, Datum)>,
    /// The result for these rows.
    value: Datum,
    known: bool,
}

/// What a call may look at beyond a row and its frame.
struct Place {
    i: usize,
    ends: (usize, usize),
}

impl WindowCallCode {
    pub(super) fn restart(&mut self) {
        self.state = Running::default();
    }

    /// Whether it looks at the row's frame.
    pub(super) fn wants_frame(&self) -> bool {
        self.aggregate.is_some() || matches!(self.name, "first_value" | "last_value" | "nth_value")
    }

    /// Whether any frame gives the same.
    pub(super) fn ranks(&self) -> bool {
        self.wants_peers() || matches!(self.name, "row_number" | "ntile")
    }

    /// Whether it looks at the row's peers.
    pub(super) fn wants_peers(&self) -> bool {
        matches!(self.name, "rank" | "dense_rank" | "percent_rank" | "cume_dist")
    }

    /// The first row that it may ask for when it is asked about rows after `i`.
    pub(super) fn needed_from(&self, i: usize, frame: &Frame) -> usize {
        let next = i + 1;
        match (self.name, self.offset) {
            ("lag", Some(k)) => next.saturating_sub(usize::try_from(k).unwrap_or(0)),
            ("lead", Some(k)) => {
                next.saturating_sub(usize::try_from(k.saturating_neg()).unwrap_or(0))
            }
            ("lag" | "lead", None) => 0,
            ("first_value", _) if frame.only_grows() => next,
            ("last_value", _) if frame.only_grows() => frame.needed_from().saturating_sub(1),
            ("nth_value", _) if frame.only_grows() => 0,
            ("first_value" | "last_value" | "nth_value", _) => frame.needed_from(),
            _ if self.aggregate.is_some() => frame.needed_from(),
            _ => next,
        }
    }

    /// The value for row `i`, whose frame has these ends.
    pub(super) fn value(
        &mut self,
        i: usize,
        ends: (usize, usize),
        frame: &mut Frame,
        rows: &mut Reader,
        cx: &Cx<'_>,
    ) -> Result<Datum> {
        if self.aggregate.is_some() {
            return self.aggregate(&Place { i, ends }, frame, rows, cx);
        }
        Ok(match self.name {
            "row_number" => Datum::Int8(i as i64 + 1),
            "rank" => Datum::Int8(frame.peers_start() as i64 + 1),
            "dense_rank" => Datum::Int8(frame.group() + 1),
            "percent_rank" => {
                let others = rows.fill_all(cx)? - 1;
                let before = frame.peers_start() as f64;
                Datum::Float8(if others == 0 { 0.0 } else { before / others as f64 })
            }
            "cume_dist" => {
                let n = rows.fill_all(cx)?;
                Datum::Float8(frame.peers_end(rows, cx)? as f64 / n as f64)
            }
            "ntile" => self.ntile(i, rows, cx)?,
            "lag" | "lead" => self.neighbour(i, rows, cx)?,
            "first_value" if frame.only_grows() && self.state.known => self.state.value.clone(),
            "first_value" | "last_value" | "nth_value" => {
                let ranges = frame.ranges(i, ends, rows, cx)?;
                let value = self.of_frame(i, &ranges, rows, cx)?;
                if self.name == "first_value" && !ranges.is_empty() {
                    (self.state.value, self.state.known) = (value.clone(), true);
                }
                value
            }
            other => return Err(base::Error::unsupported(format!("window function {other}"))),
        })
    }

    /// An argument's value for a row; NULL if it was not given.
    fn arg(&self, n: usize, row: usize, rows: &mut Reader, cx: &Cx<'_>) -> Result<Datum> {
        match self.args.get(n) {
            Some(code) => code.eval(rows.row(row)?, &cx.eval),
            None => Ok(Datum::Null),
        }
    }

    fn ntile(&mut self, i: usize, rows: &mut Reader, cx: &Cx<'_>) -> Result<Datum> {
        let n = rows.fill_all(cx)?;
        // The first number that is not NULL holds for the partition, and counting begins there.
        if !self.state.known {
            self.state.value = self.arg(0, i, rows, cx)?;
            (self.state.from, self.state.known) = (i, !self.state.value.is_null());
        }
        let Some(buckets) = int_of(&self.state.value) else { return Ok(Datum::Null) };
        let Ok(buckets @ 1..) = usize::try_from(buckets) else {
            let text = "argument of ntile must be greater than zero";
            return Err(SqlError::new(SqlState(*b"22014"), text).into());
        };
        let i = i - self.state.from;
        let (size, larger) = (n / buckets, n % buckets);
        let in_larger = larger * (size + 1);
        let bucket =
            if i < in_larger { i / (size + 1) } else { larger + (i - in_larger) / size.max(1) };
        Ok(Datum::Int4(i32::try_from(bucket + 1).unwrap_or(i32::MAX)))
    }

    /// lag and lead.
    fn neighbour(&self, i: usize, rows: &mut Reader, cx: &Cx<'_>) -> Result<Datum> {
        let offset = match self.offset {
            Some(offset) => offset,
            None => match int_of(&self.arg(1, i, rows, cx)?) {
                Some(offset) => offset,
                None => return Ok(Datum::Null),
            },
        };
        let at = i as i64;
        let at = if self.name == "lag" { at.checked_sub(offset) } else { at.checked_add(offset) };
        match at.and_then(|at| usize::try_from(at).ok()) {
            Some(at) if rows.fill(at, cx)? => self.arg(0, at, rows, cx),
            _ => self.arg(2, i, rows, cx),
        }
    }

    /// first_value, last_value and nth_value.
    fn of_frame(&self, i: usize, ranges: &Ranges, rows: &mut Reader, cx: &Cx<'_>) -> Result<Datum> {
        let total: usize = ranges.iter().map(|r| r.1 - r.0).sum();
        let mut wanted = match self.name {
            "first_value" => 0,
            "last_value" if total == 0 => return Ok(Datum::Null),
            "last_value" => total - 1,
            _ => match int_of(&self.arg(1, i, rows, cx)?) {
                None => return Ok(Datum::Null),
                Some(n @ 1..) => n as usize - 1,
                Some(_) => {
                    let text = "argument of nth_value must be greater than zero";
                    return Err(SqlError::new(SqlState(*b"22016"), text).into());
                }
            },
        };
        for r in ranges {
            if wanted < r.1 - r.0 {
                return self.arg(0, r.0 + wanted, rows, cx);
            }
            wanted -= r.1 - r.0;
        }
        Ok(Datum::Null)
    }

    fn aggregate(
        &mut self,
        place: &Place,
        frame: &mut Frame,
        rows: &mut Reader,
        cx: &Cx<'_>,
    ) -> Result<Datum> {
        let Some(call) = &self.aggregate else { return Ok(Datum::Null) };
        let (start, end) = place.ends;
        if frame.exclude != crate::query::FrameExclude::NoOthers {
            let mut sum = call.start();
            for (from, to) in frame.ranges(place.i, place.ends, rows, cx)? {
                add(call, &mut sum, from..to, rows, cx)?;
            }
            return call.finish(&mut sum, cx);
        }
        let s = &mut self.state;
        let end = end.max(start);
        if s.known && (s.from, s.to) == (start, end) {
            return Ok(s.value.clone());
        }
        let moving = !matches!(frame.start, Bound::UnboundedPreceding);
        s.value = match call.maker {
            Maker::Extreme { greatest, ty } if moving && self.repeatable => {
                let better = |a: &Datum, b: &Datum| {
                    let order = compare(ty, a, b);
                    if greatest { order.is_gt() } else { order.is_lt() }
                };
                s.slide(call, (start, end), better, rows, cx)?
            }
            _ => s.accumulate(call, (start, end), self.repeatable, rows, cx)?,
        };
        (s.from, s.to, s.known) = (start, end, true);
        Ok(s.value.clone())
    }
}

/// Adds rows to an aggregate.
fn add(
    call: &Call,
    sum: &mut State,
    range: std::ops::Range<usize>,
    rows: &mut Reader,
    cx: &Cx<'_>,
) -> Result<()> {
    for i in range {
        if i % 256 == 0 {
            cx.poll()?;
        }
        call.add(sum, rows.row(i)?, cx)?;
    }
    Ok(())
}

impl Running {
    /// The aggregate of a frame's rows, from that of the frame before.
    fn accumulate(
        &mut self,
        call: &Call,
        (start, end): (usize, usize),
        repeatable: bool,
        rows: &mut Reader,
        cx: &Cx<'_>,
    ) -> Result<Datum> {
        let mut kept = self.sum.take().filter(|_| start < self.to && end >= self.to);
        if let Some(sum) = &mut kept {
            for i in self.from..start {
                if !repeatable || !call.remove(sum, rows.row(i)?, cx)? {
                    kept = None;
                    break;
                }
            }
        }
        let from = if kept.is_some() { self.to } else { start };
        let mut sum = kept.unwrap_or_else(|| call.start());
        add(call, &mut sum, from..end, rows, cx)?;
        let value = call.finish(&mut sum, cx)?;
        self.sum = Some(sum);
        Ok(value)
    }

    /// The least or greatest of a frame's rows: of those that none after them betters.
    fn slide(
        &mut self,
        call: &Call,
        (start, end): (usize, usize),
        better: impl Fn(&Datum, &Datum) -> bool,
        rows: &mut Reader,
        cx: &Cx<'_>,
    ) -> Result<Datum> {
        while self.best.front().is_some_and(|(at, _)| *at < start) {
            self.best.pop_front();
        }
        for i in self.to.max(start)..end {
            if i % 256 == 0 {
                cx.poll()?;
            }
            let value = call.argument(rows.row(i)?, cx)?;
            if value.is_null() {
                continue;
            }
            while self.best.back().is_some_and(|(_, v)| !better(v, &value)) {
                self.best.pop_back();
            }
            self.best.push_back((i, value));
        }
        Ok(self.best.front().map_or(Datum::Null, |(_, v)| v.clone()))
    }
}
