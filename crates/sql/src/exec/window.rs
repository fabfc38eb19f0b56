//! Window functions, a partition at a time.

use super::aggregate::{Call, State};
use super::batch::{BATCH_ROWS, Batch};
use super::sort::Key;
use super::{Cx, Node};
use crate::plan::RunStop;
use crate::query::{FrameExclude, FrameMode};
use base::{Oid, Result, bail};
use expr::code::{Code, int_of};
use expr::ops::compare_key;
use types::{Datum, oids};

/// A frame's end, compiled.
pub(crate) enum Bound {
    UnboundedPreceding,
    Preceding(Code),
    CurrentRow,
    Following(Code),
    UnboundedFollowing,
}

/// A window call, compiled.
pub(crate) struct WindowCallCode {
    pub name: &'static str,
    pub args: Vec<Code>,
    /// Set for aggregates.
    pub aggregate: Option<Call>,
}

/// A window node.
pub(crate) struct WindowNode {
    pub input: Box<dyn Node>,
    pub partition: Vec<(Code, Oid)>,
    pub order: Vec<Key>,
    pub mode: FrameMode,
    pub start: Bound,
    pub end: Bound,
    pub exclude: FrameExclude,
    pub calls: Vec<WindowCallCode>,
    /// The condition after which a partition has no more rows to give, and how far beyond that row the calls look.
    pub run: Option<(Code, RunStop)>,
    pub width: usize,
    pub work: WindowWork,
}

#[derive(Default)]
pub(crate) struct WindowWork {
    batch: Batch,
    at: usize,
    ended: bool,
    /// The partition: rows with their results behind.
    rows: Vec<Vec<Datum>>,
    out_at: usize,
    bytes: usize,
    run: Run,
}

/// A partition's row numbers and ranks while it is read.
#[derive(Default)]
struct Run {
    number: i64,
    rank: i64,
    dense: i64,
    key: Vec<Datum>,
    /// Rows before the first one that the condition did not hold for.
    passed: Option<usize>,
    /// The output row that the condition is asked of.
    row: Vec<Datum>,
}

/// A partition with its peer groups.
struct Partition {
    /// For each row, its first peer and the row after its last.
    peers: Vec<(usize, usize)>,
    /// For each row the number of its peer group.
    group: Vec<usize>,
    groups: Vec<(usize, usize)>,
    keys: Vec<Vec<Datum>>,
}

impl WindowNode {
    fn keys(&self, row: &[Datum], cx: &Cx<'_>) -> Result<Vec<Datum>> {
        self.partition.iter().map(|p| p.0.eval(row, &cx.eval)).collect()
    }

    /// Counts a row; false: the condition does not hold for it or for one before, and no row before needs it.
    fn goes_on(&mut self, row: &[Datum], cx: &Cx<'_>) -> Result<bool> {
        let Some((test, stop)) = &self.run else { return Ok(true) };
        let run = &mut self.work.run;
        if run.passed.is_some() && *stop != RunStop::Peers {
            return Ok(*stop == RunStop::Partition);
        }
        let key: Vec<Datum> =
            self.order.iter().map(|k| k.code.eval(row, &cx.eval)).collect::<Result<_>>()?;
        let same =
            run.number > 0
                && self.order.iter().zip(run.key.iter().zip(&key)).all(|(k, (a, b))| {
                    compare_key(k.ty, a, b, k.descending, k.nulls_first).is_eq()
                });
        if run.passed.is_some() {
            return Ok(same);
        }
        run.number += 1;
        if !same {
            (run.rank, run.key) = (run.number, key);
            run.dense += 1;
        }
        run.row.resize(self.width + self.calls.len(), Datum::Null);
        for (call, slot) in self.calls.iter().zip(&mut run.row[self.width..]) {
            *slot = match call.name {
                "row_number" => Datum::Int8(run.number),
                "rank" => Datum::Int8(run.rank),
                "dense_rank" => Datum::Int8(run.dense),
                _ => Datum::Null,
            };
        }
        if matches!(test.eval(&run.row, &cx.eval)?, Datum::Bool(true)) {
            return Ok(true);
        }
        run.passed = Some(self.work.rows.len());
        Ok(*stop == RunStop::Partition || (*stop == RunStop::Peers && same))
    }

    /// Reads the next partition, as far as it is wanted. False: there is none.
    fn load(&mut self, cx: &Cx<'_>) -> Result<bool> {
        // Of what is read beyond the last row nothing is seen, locks and volatile functions but.
        let stops = matches!(self.run, Some((_, RunStop::Row | RunStop::Peers)));
        let one_by_one = stops && self.partition.is_empty();
        self.work.run = Run::default();
        let mut wanted = true;
        self.work.rows.clear();
        self.work.out_at = 0;
        self.work.bytes = 0;
        let mut first: Option<Vec<Datum>> = None;
        loop {
            if self.work.at >= self.work.batch.len() {
                if self.work.ended {
                    break;
                }
                cx.poll()?;
                let mut batch = std::mem::take(&mut self.work.batch);
                let max = if one_by_one { 1 } else { BATCH_ROWS };
                let r = self.input.next(cx, &mut batch, max);
                self.work.batch = batch;
                r?;
                self.work.at = 0;
                if self.work.batch.is_empty() {
                    self.work.ended = true;
                    break;
                }
            }
            let key = self.keys(self.work.batch.row(self.work.at), cx)?;
            match &first {
                None => first = Some(key),
                Some(f) => {
                    let same = self
                        .partition
                        .iter()
                        .zip(f.iter().zip(&key))
                        .all(|(p, (a, b))| compare_key(p.1, a, b, false, false).is_eq());
                    if !same {
                        break;
                    }
                }
            }
            let at = self.work.at;
            self.work.at += 1;
            let row = self.work.batch.take_row(at);
            wanted = wanted && self.goes_on(&row, cx)?;
            if !wanted {
                if self.partition.is_empty() {
                    self.work.ended = true;
                    self.work.batch.reset(self.width);
                    break;
                }
                continue;
            }
            self.work.bytes += super::batch::row_bytes(&row);
            if self.work.bytes > (2 << 30) {
                bail!(OUT_OF_MEMORY, "out of memory");
            }
            self.work.rows.push(row);
        }
        if first.is_none() {
            return Ok(false);
        }
        match self.work.run.passed {
            Some(0) => self.work.rows.clear(),
            Some(n) => {
                self.compute(cx)?;
                self.work.rows.truncate(n);
            }
            None => self.compute(cx)?,
        }
        Ok(true)
    }

    fn compute(&mut self, cx: &Cx<'_>) -> Result<()> {
        let n = self.work.rows.len();
        let mut keys = Vec::with_capacity(n);
        for r in &self.work.rows {
            keys.push(
                self.order.iter().map(|k| k.code.eval(r, &cx.eval)).collect::<Result<Vec<_>>>()?,
            );
        }
        let same = |a: &[Datum], b: &[Datum]| {
            self.order
                .iter()
                .zip(a.iter().zip(b))
                .all(|(k, (a, b))| compare_key(k.ty, a, b, k.descending, k.nulls_first).is_eq())
        };
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for i in 0..n {
            match groups.last_mut() {
                Some(g) if same(&keys[g.0], &keys[i]) => g.1 = i + 1,
                _ => groups.push((i, i + 1)),
            }
        }
        let mut peers = Vec::with_capacity(n);
        let mut group = Vec::with_capacity(n);
        for (gi, g) in groups.iter().enumerate() {
            for _ in g.0..g.1 {
                peers.push(*g);
                group.push(gi);
            }
        }
        let p = Partition { peers, group, groups, keys };
        let mut results: Vec<Vec<Datum>> = Vec::with_capacity(self.calls.len());
        for c in 0..self.calls.len() {
            results.push(self.call(c, &p, cx)?);
        }
        for (i, row) in self.work.rows.iter_mut().enumerate() {
            for r in &mut results {
                row.push(std::mem::take(&mut r[i]));
            }
        }
        Ok(())
    }

    fn arg(&self, c: usize, a: usize, row: usize, cx: &Cx<'_>) -> Result<Datum> {
        self.calls[c]
            .args
            .get(a)
            .map_or(Ok(Datum::Null), |e| e.eval(&self.work.rows[row], &cx.eval))
    }

    fn call(&self, c: usize, p: &Partition, cx: &Cx<'_>) -> Result<Vec<Datum>> {
        let n = self.work.rows.len();
        let call = &self.calls[c];
        if let Some(a) = &call.aggregate {
            return self.aggregate(a, p, cx);
        }
        let mut out = Vec::with_capacity(n);
        match call.name {
            "row_number" => out.extend((1..=n as i64).map(Datum::Int8)),
            "rank" => out.extend(p.peers.iter().map(|g| Datum::Int8(g.0 as i64 + 1))),
            "dense_rank" => out.extend(p.group.iter().map(|g| Datum::Int8(*g as i64 + 1))),
            "percent_rank" => out.extend(
                p.peers
                    .iter()
                    .map(|g| Datum::Float8(if n <= 1 { 0.0 } else { g.0 as f64 / (n - 1) as f64 })),
            ),
            "cume_dist" => out.extend(p.peers.iter().map(|g| Datum::Float8(g.1 as f64 / n as f64))),
            "ntile" => {
                let Some(k) = int_of(&self.arg(c, 0, 0, cx)?) else {
                    return Ok(vec![Datum::Null; n]);
                };
                if k <= 0 {
                    bail!(INVALID_PARAMETER_VALUE, "argument of ntile must be greater than zero");
                }
                let k = k as usize;
                let (size, bigger) = (n / k, n % k);
                for i in 0..n {
                    let b = if i < bigger * (size + 1) {
                        i / (size + 1)
                    } else {
                        bigger + (i - bigger * (size + 1)) / size.max(1)
                    };
                    out.push(Datum::Int4(b as i32 + 1));
                }
            }
            "lag" | "lead" => {
                for i in 0..n {
                    let offset = if call.args.len() > 1 {
                        match int_of(&self.arg(c, 1, i, cx)?) {
                            Some(o) => o,
                            None => {
                                out.push(Datum::Null);
                                continue;
                            }
                        }
                    } else {
                        1
                    };
                    let at = if call.name == "lag" { i as i64 - offset } else { i as i64 + offset };
                    out.push(if at >= 0 && at < n as i64 {
                        self.arg(c, 0, at as usize, cx)?
                    } else {
                        self.arg(c, 2, i, cx)?
                    });
                }
            }
            "first_value" | "last_value" | "nth_value" => {
                for i in 0..n {
                    let ranges = self.frame(i, p, cx)?;
                    let total: usize = ranges.iter().map(|r| r.1 - r.0).sum();
                    let want = match call.name {
                        "first_value" => Some(0),
                        "last_value" => total.checked_sub(1),
                        _ => match int_of(&self.arg(c, 1, i, cx)?) {
                            None => None,
                            Some(k) if k <= 0 => bail!(
                                INVALID_PARAMETER_VALUE,
                                "argument of nth_value must be greater than zero"
                            ),
                            Some(k) => Some(k as usize - 1),
                        },
                    };
                    let mut value = Datum::Null;
                    if let Some(mut w) = want {
                        for r in &ranges {
                            if w < r.1 - r.0 {
                                value = self.arg(c, 0, r.0 + w, cx)?;
                                break;
                            }
                            w -= r.1 - r.0;
                        }
                    }
                    out.push(value);
                }
            }
            other => return Err(base::Error::unsupported(format!("window function {other}"))),
        }
        Ok(out)
    }

    /// The rows of row `i`'s frame, as ranges.
    fn frame(&self, i: usize, p: &Partition, cx: &Cx<'_>) -> Result<Vec<(usize, usize)>> {
        let n = self.work.rows.len();
        let row = &self.work.rows[i];
        let offset = |code: &Code, word: &str| -> Result<i64> {
            let v = code.eval(row, &cx.eval)?;
            match int_of(&v) {
                None => bail!(NULL_VALUE_NOT_ALLOWED, "frame {word} offset must not be null"),
                Some(k) if k < 0 => {
                    bail!(INVALID_PARAMETER_VALUE, "frame {word} offset must not be negative")
                }
                Some(k) => Ok(k),
            }
        };
        let clamp = |x: i64| x.clamp(0, n as i64) as usize;
        let group_start = |g: i64| {
            if g < 0 { 0 } else { p.groups.get(g as usize).map_or(n, |g| g.0) }
        };
        let group_end = |g: i64| {
            if g < 0 { 0 } else { p.groups.get(g as usize).map_or(n, |g| g.1) }
        };
        let (at, g) = (i as i64, p.group[i] as i64);
        let start = match (&self.start, self.mode) {
            (Bound::UnboundedPreceding, _) => 0,
            (Bound::UnboundedFollowing, _) => n,
            (Bound::CurrentRow, FrameMode::Rows) => i,
            (Bound::CurrentRow, _) => p.peers[i].0,
            (Bound::Preceding(e), FrameMode::Rows) => {
                clamp(at.saturating_sub(offset(e, "starting")?))
            }
            (Bound::Following(e), FrameMode::Rows) => {
                clamp(at.saturating_add(offset(e, "starting")?))
            }
            (Bound::Preceding(e), FrameMode::Groups) => {
                group_start(g.saturating_sub(offset(e, "starting")?))
            }
            (Bound::Following(e), FrameMode::Groups) => {
                group_start(g.saturating_add(offset(e, "starting")?))
            }
            (Bound::Preceding(e), FrameMode::Range) => self.range_edge(i, p, e, true, true, cx)?,
            (Bound::Following(e), FrameMode::Range) => self.range_edge(i, p, e, false, true, cx)?,
        };
        let end = match (&self.end, self.mode) {
            (Bound::UnboundedPreceding, _) => 0,
            (Bound::UnboundedFollowing, _) => n,
            (Bound::CurrentRow, FrameMode::Rows) => i + 1,
            (Bound::CurrentRow, _) => p.peers[i].1,
            (Bound::Preceding(e), FrameMode::Rows) => {
                clamp(at.saturating_sub(offset(e, "ending")?) + 1)
            }
            (Bound::Following(e), FrameMode::Rows) => {
                clamp(at.saturating_add(offset(e, "ending")?).saturating_add(1))
            }
            (Bound::Preceding(e), FrameMode::Groups) => {
                group_end(g.saturating_sub(offset(e, "ending")?))
            }
            (Bound::Following(e), FrameMode::Groups) => {
                group_end(g.saturating_add(offset(e, "ending")?))
            }
            (Bound::Preceding(e), FrameMode::Range) => self.range_edge(i, p, e, true, false, cx)?,
            (Bound::Following(e), FrameMode::Range) => {
                self.range_edge(i, p, e, false, false, cx)?
            }
        };
        if start >= end {
            return Ok(Vec::new());
        }
        let hole = match self.exclude {
            FrameExclude::NoOthers => return Ok(vec![(start, end)]),
            FrameExclude::CurrentRow => (i, i + 1),
            FrameExclude::Group | FrameExclude::Ties => p.peers[i],
        };
        let mut out = Vec::new();
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

    /// Where a RANGE frame with an offset begins or ends.
    fn range_edge(
        &self,
        i: usize,
        p: &Partition,
        offset: &Code,
        preceding: bool,
        start: bool,
        cx: &Cx<'_>,
    ) -> Result<usize> {
        let [key] = &self.order[..] else {
            bail!(
                WINDOWING_ERROR,
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
            );
        };
        let here = &p.keys[i][0];
        if here.is_null() {
            return Ok(if start { p.peers[i].0 } else { p.peers[i].1 });
        }
        let off = offset.eval(&self.work.rows[i], &cx.eval)?;
        if off.is_null() {
            bail!(
                NULL_VALUE_NOT_ALLOWED,
                "frame {} offset must not be null",
                if start { "starting" } else { "ending" }
            );
        }
        if is_negative(&off) {
            let text = "invalid preceding or following size in window function";
            return Err(base::SqlError::new(base::SqlState(*b"22013"), text).into());
        }
        let minus = preceding != key.descending;
        let edge = shift(key.ty, here, &off, minus, cx)?;
        let n = p.keys.len();
        let cmp =
            |j: usize| compare_key(key.ty, &p.keys[j][0], &edge, key.descending, key.nulls_first);
        // Keys are sorted: the first that is not before the edge, or the first after it.
        let (mut lo, mut hi) = (0, n);
        while lo < hi {
            let mid = (lo + hi) / 2;
            let before = if start { cmp(mid).is_lt() } else { cmp(mid).is_le() };
            if before {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        // NULLs are never within an offset of a value.
        if key.nulls_first && start {
            while lo < n && p.keys[lo][0].is_null() {
                lo += 1;
            }
        }
        if !start {
            while lo > 0 && p.keys[lo - 1][0].is_null() && !key.nulls_first {
                lo -= 1;
            }
        }
        Ok(lo)
    }

    fn aggregate(&self, call: &Call, p: &Partition, cx: &Cx<'_>) -> Result<Vec<Datum>> {
        let n = self.work.rows.len();
        let mut out = Vec::with_capacity(n);
        let growing = matches!(self.start, Bound::UnboundedPreceding)
            && self.exclude == FrameExclude::NoOthers
            && !call.distinct
            && call.order.is_empty();
        let mut state: State = call.start();
        let mut done = 0;
        let mut last: Option<(usize, usize)> = None;
        for i in 0..n {
            if i % 256 == 0 {
                cx.poll()?;
            }
            let ranges = self.frame(i, p, cx)?;
            if growing {
                let end = ranges.last().map_or(0, |r| r.1);
                // Ends that move back (an odd offset) start over.
                if end < done {
                    state = call.start();
                    done = 0;
                }
                if end == done && last.is_some() {
                    let v = out.last().cloned().unwrap_or(Datum::Null);
                    out.push(v);
                    continue;
                }
                for row in &self.work.rows[done..end] {
                    call.add(&mut state, row, cx)?;
                }
                done = end;
                last = Some((0, end));
                out.push(call.finish(&mut state, cx)?);
                continue;
            }
            let mut s = call.start();
            for r in &ranges {
                for row in &self.work.rows[r.0..r.1] {
                    call.add(&mut s, row, cx)?;
                }
            }
            out.push(call.finish(&mut s, cx)?);
        }
        Ok(out)
    }
}

fn is_negative(d: &Datum) -> bool {
    match d {
        Datum::Float8(v) => *v < 0.0,
        Datum::Float4(v) => *v < 0.0,
        Datum::Interval(i) => i.months < 0 || i.days < 0 || i.micros < 0,
        Datum::Numeric(n) => n.to_string().starts_with('-'),
        other => int_of(other).is_some_and(|v| v < 0),
    }
}

/// `value ± offset` in the value's type.
fn shift(ty: Oid, value: &Datum, offset: &Datum, minus: bool, cx: &Cx<'_>) -> Result<Datum> {
    if let (Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_), Some(v), Some(o)) =
        (value, int_of(value), int_of(offset))
    {
        let r = if minus { v.saturating_sub(o) } else { v.saturating_add(o) };
        return Ok(Datum::Int8(r));
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
    // date ± interval is a timestamp: compare as such by bringing it back.
    Ok(match (ty, v) {
        (oids::DATE, Datum::Timestamp(t)) => {
            Datum::Date(i32::try_from(t.div_euclid(86_400_000_000)).unwrap_or(i32::MAX))
        }
        (_, v) => v,
    })
}

impl Node for WindowNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.width + self.calls.len());
        while out.len() < max {
            while self.work.out_at >= self.work.rows.len() {
                if !self.load(cx)? {
                    return Ok(());
                }
            }
            let i = self.work.out_at;
            self.work.out_at += 1;
            out.push_values(std::mem::take(&mut self.work.rows[i]));
        }
        Ok(())
    }
    fn let_go(&mut self) {
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.work = WindowWork::default();
        self.input.rescan(cx)
    }
}
