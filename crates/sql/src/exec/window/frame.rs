//! The frame of a window's row: where it begins, where it ends, and what is excluded from it.
//!
//! # Invariants
//! Rows are asked about in their order, and an offset is the same for all of them: neither end of a frame moves back. Where the
//! arithmetic of a type would move one back (a month before 30 March 23:00, and before 31 March 1:00) it stays, as in PostgreSQL.

use super::super::Cx;
use super::super::sort::KeyPlace;
use super::reader::Reader;
use crate::query::{FrameExclude, FrameMode};
use base::{Oid, Result, SqlState, bail};
use expr::code::{Code, int_of};
use expr::ops::compare_key;
use smallvec::SmallVec;
use std::cmp::Ordering;
use types::{Datum, oids};

/// PostgreSQL's invalid_preceding_or_following_size.
const BAD_SIZE: SqlState = SqlState(*b"22013");

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// One end of a frame, compiled.
pub(crate) enum Bound {
    UnboundedPreceding,
    Preceding(Code),
    CurrentRow,
    Following(Code),
    UnboundedFollowing,
}

/// Rows, from the first to before the last.
pub(super) type Ranges = SmallVec<[(usize, usize); 3]>;

/// The current row's peers.
#[derive(Default)]
struct Peers {
    start: usize,
    /// How far they are known to go, and whether that is their end.
    end: usize,
    ended: bool,
    /// Groups of peers before.
    number: i64,
    key: Vec<Datum>,
}

/// One end of the frame on its way.
#[derive(Default)]
struct Cursor {
    at: usize,
    /// GROUPS: groups of peers before `at`.
    groups: i64,
    /// The offset, if it has one.
    offset: Datum,
}

pub(crate) struct Frame {
    pub mode: FrameMode,
    pub start: Bound,
    pub end: Bound,
    pub exclude: FrameExclude,
    /// Whether peers matter: to the frame, or to rank and its like.
    wants_peers: bool,
    peers: Peers,
    head: Cursor,
    tail: Cursor,
}

impl Frame {
    pub(crate) fn new(mode: FrameMode, start: Bound, end: Bound, exclude: FrameExclude) -> Frame {
        Frame {
            mode,
            start,
            end,
            exclude,
            wants_peers: true,
            peers: Peers::default(),
            head: Cursor::default(),
            tail: Cursor::default(),
        }
    }

    /// Peers are looked for only if somebody wants them.
    pub(super) fn want_peers(&mut self, wanted: bool) {
        let excluded = matches!(self.exclude, FrameExclude::Group | FrameExclude::Ties);
        self.wants_peers = wanted || excluded || self.mode != FrameMode::Rows;
    }

    /// Whether its first row is that of the partition for every row, and none is excluded.
    pub(super) fn only_grows(&self) -> bool {
        matches!(self.start, Bound::UnboundedPreceding) && self.exclude == FrameExclude::NoOthers
    }

    /// Begins an execution: has the offsets computed, whoever may use them.
    pub(super) fn begin(&mut self, cx: &Cx<'_>) -> Result<()> {
        let ends =
            [(&self.start, &mut self.head, "starting"), (&self.end, &mut self.tail, "ending")];
        for (bound, cursor, word) in ends {
            let (Bound::Preceding(code) | Bound::Following(code)) = bound else { continue };
            cursor.offset = code.eval(&[], &cx.eval)?;
            if cursor.offset.is_null() {
                bail!(NULL_VALUE_NOT_ALLOWED, "frame {word} offset must not be null");
            }
            if self.mode != FrameMode::Range && is_negative(&cursor.offset) {
                let text = format!("frame {word} offset must not be negative");
                return Err(base::SqlError::new(BAD_SIZE, text).into());
            }
        }
        Ok(())
    }

    /// A new partition.
    pub(super) fn restart(&mut self) {
        self.peers = Peers::default();
        for cursor in [&mut self.head, &mut self.tail] {
            (cursor.at, cursor.groups) = (0, 0);
        }
    }

    /// Goes on to row `i`, which has been read.
    pub(super) fn step(&mut self, i: usize, rows: &mut Reader) -> Result<()> {
        let peers = &mut self.peers;
        if !self.wants_peers || i > 0 && i < peers.end {
            return Ok(());
        }
        if i > 0 && !peers.ended && rows.is_peer(i, &peers.key)? {
            peers.end = i + 1;
            return Ok(());
        }
        peers.number += i64::from(i > 0);
        (peers.start, peers.end, peers.ended) = (i, i + 1, false);
        rows.order_key(i, &mut peers.key)
    }

    /// The first of the current row's peers.
    pub(super) fn peers_start(&self) -> usize {
        self.peers.start
    }

    /// Groups of peers before the current row's.
    pub(super) fn group(&self) -> i64 {
        self.peers.number
    }

    /// Where the current row's peers end.
    pub(super) fn peers_end(&mut self, rows: &mut Reader, cx: &Cx<'_>) -> Result<usize> {
        let peers = &mut self.peers;
        while !peers.ended {
            if rows.fill(peers.end, cx)? && rows.is_peer(peers.end, &peers.key)? {
                peers.end += 1;
            } else {
                peers.ended = true;
            }
        }
        Ok(peers.end)
    }

    /// Where row `i`'s frame begins and ends, but for what is excluded.
    pub(super) fn ends(
        &mut self,
        i: usize,
        rows: &mut Reader,
        cx: &Cx<'_>,
    ) -> Result<(usize, usize)> {
        let (at, group) = (i as i64, self.peers.number);
        let start = match (&self.start, self.mode) {
            (Bound::UnboundedPreceding, _) => 0,
            (Bound::UnboundedFollowing, _) => rows.fill_all(cx)?,
            (Bound::CurrentRow, FrameMode::Rows) => i,
            (Bound::CurrentRow, _) => self.peers.start,
            (Bound::Preceding(_), FrameMode::Rows) => {
                row_at(at.saturating_sub(self.head.rows()), rows, cx)?
            }
            (Bound::Following(_), FrameMode::Rows) => {
                row_at(at.saturating_add(self.head.rows()), rows, cx)?
            }
            (Bound::Preceding(_), FrameMode::Groups) => {
                let to = group.saturating_sub(self.head.rows());
                self.head.to_group(to, rows, cx)?
            }
            (Bound::Following(_), FrameMode::Groups) => {
                let to = group.saturating_add(self.head.rows());
                self.head.to_group(to, rows, cx)?
            }
            (Bound::Preceding(_), FrameMode::Range) => {
                self.head.to_edge(&self.peers.key, true, true, rows, cx)?
            }
            (Bound::Following(_), FrameMode::Range) => {
                self.head.to_edge(&self.peers.key, false, true, rows, cx)?
            }
        };
        let end = match (&self.end, self.mode) {
            (Bound::UnboundedPreceding, _) => 0,
            (Bound::UnboundedFollowing, _) => rows.fill_all(cx)?,
            (Bound::CurrentRow, FrameMode::Rows) => i + 1,
            (Bound::CurrentRow, _) => self.peers_end(rows, cx)?,
            (Bound::Preceding(_), FrameMode::Rows) => {
                row_at(at.saturating_sub(self.tail.rows()).saturating_add(1), rows, cx)?
            }
            (Bound::Following(_), FrameMode::Rows) => {
                row_at(at.saturating_add(self.tail.rows()).saturating_add(1), rows, cx)?
            }
            (Bound::Preceding(_), FrameMode::Groups) => {
                let to = group.saturating_sub(self.tail.rows()).saturating_add(1);
                self.tail.to_group(to, rows, cx)?
            }
            (Bound::Following(_), FrameMode::Groups) => {
                let to = group.saturating_add(self.tail.rows()).saturating_add(1);
                self.tail.to_group(to, rows, cx)?
            }
            (Bound::Preceding(_), FrameMode::Range) => {
                self.tail.to_edge(&self.peers.key, true, false, rows, cx)?
            }
            (Bound::Following(_), FrameMode::Range) => {
                self.tail.to_edge(&self.peers.key, false, false, rows, cx)?
            }
        };
        (self.head.at, self.tail.at) = (start, end);
        Ok((start, end))
    }

    /// The rows of row `i`'s frame, whose ends are known.
    pub(super) fn ranges(
        &mut self,
        i: usize,
        (start, end): (usize, usize),
        rows: &mut Reader,
        cx: &Cx<'_>,
    ) -> Result<Ranges> {
        let hole = match self.exclude {
            FrameExclude::NoOthers => (end, end),
            FrameExclude::CurrentRow => (i, i + 1),
            FrameExclude::Group | FrameExclude::Ties => {
                (self.peers.start, self.peers_end(rows, cx)?)
            }
        };
        let mut out = Ranges::new();
        let mut add = |a: usize, b: usize| {
            if a < b {
                out.push((a, b));
            }
        };
        add(start, end.min(hole.0));
        if self.exclude == FrameExclude::Ties && i >= start && i < end {
            add(i, i + 1);
        }
        add(start.max(hole.1), end);
        Ok(out)
    }

    /// The first row that a later frame, or the way to it, may ask for.
    pub(super) fn needed_from(&self) -> usize {
        if self.only_grows() { self.tail.at } else { self.head.at.min(self.tail.at) }
    }
}

/// Place `at` within the partition: its end if there are fewer rows.
fn row_at(at: i64, rows: &mut Reader, cx: &Cx<'_>) -> Result<usize> {
    let Ok(at) = usize::try_from(at) else { return Ok(0) };
    if at == 0 || rows.fill(at - 1, cx)? { Ok(at) } else { rows.fill_all(cx) }
}

impl Cursor {
    /// An offset in rows or groups.
    fn rows(&self) -> i64 {
        int_of(&self.offset).unwrap_or(0)
    }

    /// Goes on to where group `to` of peers begins.
    fn to_group(&mut self, to: i64, rows: &mut Reader, cx: &Cx<'_>) -> Result<usize> {
        let mut key = Vec::new();
        while self.groups < to && rows.fill(self.at, cx)? {
            rows.order_key(self.at, &mut key)?;
            self.at += 1;
            while rows.fill(self.at, cx)? && rows.is_peer(self.at, &key)? {
                self.at += 1;
            }
            self.groups += 1;
        }
        Ok(self.at)
    }

    /// Goes on to the first row that is not before the current row's key less (or plus) the offset or, for an end, to the first one after it.
    fn to_edge(
        &mut self,
        key: &[Datum],
        preceding: bool,
        start: bool,
        rows: &mut Reader,
        cx: &Cx<'_>,
    ) -> Result<usize> {
        let &[place] = &rows.places[..] else {
            bail!(
                WINDOWING_ERROR,
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
            );
        };
        let (here, offset) = (&key[0], &self.offset);
        let edge = if here.is_null() {
            Edge::Nulls
        } else if is_nan(offset) || is_backward(here, offset) {
            let text = "invalid preceding or following size in window function";
            return Err(base::SqlError::new(BAD_SIZE, text).into());
        } else {
            edge(place.ty, here, offset, preceding != place.descending, cx)?
        };
        while rows.fill(self.at, cx)? {
            let there = &rows.row(self.at)?[place.slot];
            let before = match &edge {
                // NULLs are within no offset of a value: their place alone counts.
                _ if there.is_null() || matches!(edge, Edge::Nulls) => {
                    match (place.nulls_first, start) {
                        (true, true) => there.is_null() && !matches!(edge, Edge::Nulls),
                        (true, false) => there.is_null() || !matches!(edge, Edge::Nulls),
                        (false, true) => !there.is_null() && matches!(edge, Edge::Nulls),
                        (false, false) => !there.is_null() || matches!(edge, Edge::Nulls),
                    }
                }
                Edge::Nulls | Edge::Everything => {
                    // A NaN is beyond all.
                    let within = !is_nan(there) || start != place.descending;
                    within != start
                }
                Edge::At(edge) => {
                    let order = against(place, there, edge);
                    if start { order.is_lt() } else { order.is_le() }
                }
            };
            if !before {
                break;
            }
            self.at += 1;
        }
        Ok(self.at)
    }
}

/// Where a RANGE frame ends.
enum Edge {
    /// The current row's key is NULL.
    Nulls,
    /// Infinity less infinity: everything is within.
    Everything,
    At(Datum),
}

fn is_negative(d: &Datum) -> bool {
    match d {
        Datum::Float8(v) => *v < 0.0,
        Datum::Float4(v) => *v < 0.0,
        Datum::Interval(i) => {
            let days = i128::from(i.months) * 30 + i128::from(i.days);
            days * i128::from(DAY_US) + i128::from(i.micros) < 0
        }
        Datum::Numeric(n) => n.to_string().starts_with('-'),
        other => int_of(other).is_some_and(|v| v < 0),
    }
}

/// Of what is added to a time of day only hours and less count.
fn is_backward(value: &Datum, offset: &Datum) -> bool {
    match (value, offset) {
        (Datum::Time(_) | Datum::TimeTz(..), Datum::Interval(o)) => o.micros < 0,
        _ => is_negative(offset),
    }
}

/// Infinity: true; minus infinity: false.
fn end_of_time(value: &Datum) -> Option<bool> {
    let end = |least: bool, greatest: bool| (least || greatest).then_some(greatest);
    match value {
        Datum::Timestamp(t) | Datum::TimestampTz(t) => end(*t == i64::MIN, *t == i64::MAX),
        Datum::Date(d) => end(*d == i32::MIN, *d == i32::MAX),
        Datum::Interval(i) => types::datetime::infinite_interval(i),
        _ => None,
    }
}

fn is_nan(d: &Datum) -> bool {
    match d {
        Datum::Float8(v) => v.is_nan(),
        Datum::Float4(v) => v.is_nan(),
        Datum::Numeric(n) => n.is_nan(),
        _ => false,
    }
}

/// `value ± offset` in the value's type.
fn edge(ty: Oid, value: &Datum, offset: &Datum, minus: bool, cx: &Cx<'_>) -> Result<Edge> {
    if let (Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_), Some(v), Some(o)) =
        (value, int_of(value), int_of(offset))
    {
        let r = if minus { v.saturating_sub(o) } else { v.saturating_add(o) };
        return Ok(Edge::At(Datum::Int8(r)));
    }
    if let Datum::Interval(o) = offset {
        // A day's times do not go round.
        let shifted =
            |v: i64| if minus { v.saturating_sub(o.micros) } else { v.saturating_add(o.micros) };
        match value {
            Datum::Time(v) => return Ok(Edge::At(Datum::Time(shifted(*v)))),
            Datum::TimeTz(v, zone) => return Ok(Edge::At(Datum::TimeTz(shifted(*v), *zone))),
            _ => {}
        }
        let endless = types::datetime::infinite_interval(o) == Some(true);
        if endless && end_of_time(value) == Some(minus) {
            return Ok(Edge::Everything);
        }
    }
    let off_ty = types::io::natural_type(offset);
    let name = if minus { "-" } else { "+" };
    let op =
        types::registry::operators_by_name(name).iter().find(|o| o.left == ty && o.right == off_ty);
    let Some(f) = op.and_then(|o| types::registry::function(o.function)) else {
        return Err(base::Error::unsupported(format!(
            "RANGE with offset PRECEDING/FOLLOWING for column type {} and offset type {}",
            types::format_type(ty, -1),
            types::format_type(off_ty, -1)
        )));
    };
    let args = [value.clone(), offset.clone()];
    let v = match f.body {
        types::FunctionBody::Scalar(b) => b(cx.x.env, &args)?,
        types::FunctionBody::ScalarTyped(b) => b(cx.x.env, &args, f.args, f.result)?,
        _ => Datum::Null,
    };
    if is_nan(&v) && !is_nan(value) {
        return Ok(Edge::Everything);
    }
    Ok(Edge::At(v))
}

/// How a key compares with an edge.
fn against(place: KeyPlace, there: &Datum, edge: &Datum) -> Ordering {
    match (there, edge) {
        // date ± interval is a timestamp.
        (Datum::Date(d), Datum::Timestamp(_)) => {
            let midnight = Datum::Timestamp(i64::from(*d).saturating_mul(DAY_US));
            compare_key(oids::TIMESTAMP, &midnight, edge, place.descending, false)
        }
        _ => compare_key(place.ty, there, edge, place.descending, false),
    }
}
