//! Aggregation: plain, over sorted input, hashed, and grouping sets.
//!
//! # Invariants
//! What is to be sorted or made distinct before it is aggregated is in a sorter for each group, which keeps no more than `work_mem` in memory;
//! or its different values, where their order is nothing to the aggregate, in a hash table, which keeps no more than such may
//! ([`different`]). Of groups in a hash table, which the planner takes if their rows are few, those sorters and tables go to disk by
//! which they grow together beyond that.
//! Nothing is put aside of what the input is sorted by already (`in_order`).
//! A hash table takes no more groups than fit in the memory for such: the rows of others wait on disk, parted by the groups' hashes, until
//! those are handed out. Their keys are computed anew then: what may come out otherwise, the planner has made a column of.

mod different;
mod groups;

use self::different::Different;
use super::batch::{BATCH_ROWS, Batch};
use super::hypothetical::{Neighbours, Place};
use super::parts::{Part, Parted, Split};
use super::sort::{KeyPlace, Sorter};
use super::{Cx, HashTold, Node, Told};
use crate::plan::AggregateStrategy;
use base::sync::CancelFlag;
use base::{Oid, Result, bail};
use expr::code::{Code, int_of};
use expr::eval::EvalContext;
use expr::ops::{compare, compare_key};
use smallvec::SmallVec;
use types::{AggregateState, Datum, oids};

/// How an aggregate is made.
#[derive(Clone, Copy)]
pub(crate) enum Maker {
    CountStar,
    Count,
    /// sum of int2 or int4 as int8
    SumInt,
    /// min or max
    Extreme {
        greatest: bool,
        ty: Oid,
    },
    Other(types::Aggregate),
    /// The place of a row that is not there.
    Place(Place),
}

/// An aggregate call, compiled.
pub(crate) struct Call {
    pub maker: Maker,
    pub args: Vec<Code>,
    pub arg_types: Vec<Oid>,
    pub result: Oid,
    pub filter: Option<Code>,
    pub distinct: bool,
    /// ORDER BY: (value, type, descending, nulls first).
    pub order: Vec<(Code, Oid, bool, bool)>,
    /// The different values of its argument are all that it needs ([`Call::takes_different`]).
    pub different: bool,
    /// The rows of each group come in the order in which they are to be aggregated.
    pub in_order: bool,
}

/// Rows to be sorted before they are aggregated.
pub(crate) struct Collected {
    sorter: Sorter,
    /// How many have a last argument that is not NULL.
    values: u64,
}

/// One group's state of one aggregate.
pub(crate) enum State {
    Count(i64),
    /// The sum, and of how many values.
    Sum(i64, u64),
    Extreme(Datum),
    Other(Box<dyn AggregateState>),
    Place(Neighbours),
    /// Rows of arguments and keys, to be sorted first.
    Collected(Option<Box<Collected>>),
    /// The different values of the argument.
    Different(Option<Box<Different>>),
    /// Of arguments that come in order, of which each is to be aggregated once: those that came last.
    Once(Box<Once>),
}

/// What arguments have come to which come in order and are taken once.
pub(crate) struct Once {
    inner: State,
    last: Option<SmallVec<[Datum; 2]>>,
}

pub(crate) fn add_int(a: i64, b: i64) -> Result<i64> {
    match a.checked_add(b) {
        Some(sum) => Ok(sum),
        None => bail!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"),
    }
}

impl State {
    /// What it holds beside its place among the states, if it may hold more and more.
    fn held_bytes(&self) -> Option<usize> {
        match self {
            State::Other(state) => state.memory_bytes(),
            State::Once(once) => once.inner.held_bytes(),
            _ => None,
        }
    }

    /// What is put aside in memory, which can go to disk.
    fn put_aside(&self) -> usize {
        match self {
            State::Collected(Some(collected)) => collected.sorter.bytes(),
            State::Different(Some(different)) => different.bytes(),
            _ => 0,
        }
    }

    /// Takes what is put aside to disk.
    fn spill(&mut self, cancel: &CancelFlag) -> Result<()> {
        match self {
            State::Collected(Some(collected)) => collected.sorter.spill(cancel),
            State::Different(Some(different)) => different.spill(cancel),
            _ => Ok(()),
        }
    }
}

impl Call {
    fn needs_rows(&self) -> bool {
        self.distinct || !self.order.is_empty()
    }

    pub(crate) fn start(&self) -> State {
        match self.needs_rows() {
            true if self.in_order && !self.distinct => self.start_plain(),
            true if self.in_order => {
                State::Once(Box::new(Once { inner: self.start_plain(), last: None }))
            }
            true if self.different => State::Different(None),
            true => State::Collected(None),
            false => self.start_plain(),
        }
    }

    fn start_plain(&self) -> State {
        match self.maker {
            Maker::CountStar | Maker::Count => State::Count(0),
            Maker::SumInt => State::Sum(0, 0),
            Maker::Extreme { .. } => State::Extreme(Datum::Null),
            Maker::Other(make) => State::Other(make(&self.arg_types, self.result)),
            Maker::Place(_) => State::Place(Neighbours::default()),
        }
    }

    /// Notes a sorted row, behind `last`: arguments are the row that is not there, then the row that is.
    fn place(&self, at: &mut Neighbours, row: &[Datum], last: Option<&[Datum]>) {
        let (asked, there) = row.split_at(row.len() / 2);
        let order = |a: &[Datum], b: &[Datum]| {
            let keys = self.order.iter().zip(a.iter().zip(b));
            keys.map(|(k, (a, b))| compare_key(k.1, a, b, k.2, k.3))
                .find(|o| o.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        };
        let again = || last.is_some_and(|l| order(&l[l.len() / 2..], there).is_eq());
        at.note(order(there, asked), again);
    }

    pub(crate) fn add(&self, state: &mut State, row: &[Datum], cx: &Cx<'_>) -> Result<()> {
        match state {
            State::Collected(collected) => self.collect(collected, row, cx),
            State::Different(different) => self.add_different(different, row, cx),
            State::Once(once) => self.add_once(once, row, cx),
            state => self.add_simple(state, row, &cx.eval),
        }
    }

    /// Does the row pass the call's FILTER?
    #[inline]
    fn counts(&self, row: &[Datum], eval: &EvalContext<'_>) -> Result<bool> {
        self.filter.as_ref().map_or(Ok(true), |f| f.is_true(row, eval))
    }

    /// Puts a row's arguments aside, to be sorted.
    fn collect(
        &self,
        collected: &mut Option<Box<Collected>>,
        row: &[Datum],
        cx: &Cx<'_>,
    ) -> Result<()> {
        if !self.counts(row, &cx.eval)? {
            return Ok(());
        }
        let mut values: SmallVec<[Datum; 4]> = SmallVec::new();
        for code in self.args.iter().chain(self.order.iter().map(|k| &k.0)) {
            values.push(code.eval(row, &cx.eval)?);
        }
        let new = || {
            let limit = cx.x.work_mem_bytes;
            let sorter = Sorter::new(self.sort_keys(), values.len(), limit, None);
            Box::new(Collected { sorter, values: 0 })
        };
        let collected = collected.get_or_insert_with(new);
        let last = self.args.len().checked_sub(1).map(|i| &values[i]);
        collected.values += u64::from(last.is_some_and(|v| !v.is_null()));
        collected.sorter.take(&mut values, cx.x.cancel)
    }

    /// Adds a row's arguments unless they came just before.
    fn add_once(&self, once: &mut Once, row: &[Datum], cx: &Cx<'_>) -> Result<()> {
        if !self.counts(row, &cx.eval)? {
            return Ok(());
        }
        let mut args: SmallVec<[Datum; 2]> = SmallVec::new();
        for a in &self.args {
            args.push(a.eval(row, &cx.eval)?);
        }
        if once.last.as_ref().is_some_and(|last| self.are_same(last, &args)) {
            return Ok(());
        }
        self.add_values(&mut once.inner, &args, cx)?;
        once.last = Some(args);
        Ok(())
    }

    fn are_same(&self, a: &[Datum], b: &[Datum]) -> bool {
        let mut pairs = self.arg_types.iter().zip(a.iter().zip(b));
        pairs.all(|(ty, (a, b))| compare_key(*ty, a, b, false, false).is_eq())
    }

    /// How collected rows are sorted.
    fn sort_keys(&self) -> Vec<KeyPlace> {
        let n = self.args.len();
        let mut keys: Vec<KeyPlace> = self
            .order
            .iter()
            .enumerate()
            .map(|(i, k)| KeyPlace { slot: n + i, ty: k.1, descending: k.2, nulls_first: k.3 })
            .collect();
        if self.distinct {
            // Equal arguments must be neighbours.
            for (i, ty) in self.arg_types.iter().enumerate() {
                keys.push(KeyPlace { slot: i, ty: *ty, descending: false, nulls_first: false });
            }
        }
        keys
    }

    /// Aggregates collected rows in their order.
    fn finish_collected(&self, collected: Option<Box<Collected>>, cx: &Cx<'_>) -> Result<Datum> {
        let mut inner = self.start_plain();
        if let Some(collected) = collected {
            self.aggregate_collected(*collected, &mut inner, cx)?;
        }
        self.finish(&mut inner, cx)
    }

    fn aggregate_collected(
        &self,
        collected: Collected,
        inner: &mut State,
        cx: &Cx<'_>,
    ) -> Result<()> {
        let Collected { mut sorter, values } = collected;
        sorter.finish(cx.x.cancel)?;
        if let State::Other(inner) = inner {
            inner.expect(values);
        }
        let mut batch = Batch::new();
        let mut last: Option<Vec<Datum>> = None;
        loop {
            cx.poll()?;
            batch.reset(self.args.len());
            sorter.read(&mut batch, self.args.len(), BATCH_ROWS, cx.x.cancel)?;
            if batch.is_empty() {
                return Ok(());
            }
            for row in batch.rows() {
                if let State::Place(at) = inner {
                    self.place(at, row, last.as_deref());
                    last = Some(row.to_vec());
                    continue;
                }
                if self.distinct {
                    if last.as_ref().is_some_and(|l| self.are_same(l, row)) {
                        continue;
                    }
                    last = Some(row.to_vec());
                }
                self.add_values(inner, row, cx)?;
            }
        }
    }

    /// Adds a row's arguments.
    pub(crate) fn add_simple(
        &self,
        state: &mut State,
        row: &[Datum],
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        if !self.counts(row, cx)? {
            return Ok(());
        }
        match (state, self.maker) {
            (State::Count(n), Maker::CountStar) => *n += 1,
            (State::Count(n), _) => {
                if !self.args[0].is_null(row, cx)? {
                    *n += 1;
                }
            }
            (State::Sum(total, n), _) => {
                let mut scratch = Datum::Null;
                if let Some(v) = int_of(self.args[0].eval_ref(row, cx, &mut scratch)?) {
                    (*total, *n) = (add_int(*total, v)?, *n + 1);
                }
            }
            (State::Extreme(best), Maker::Extreme { greatest, ty }) => {
                let mut scratch = Datum::Null;
                let v = self.args[0].eval_ref(row, cx, &mut scratch)?;
                if !v.is_null()
                    && (best.is_null() || {
                        let o = compare(ty, v, best);
                        if greatest { o.is_gt() } else { o.is_lt() }
                    })
                {
                    *best = v.clone();
                }
            }
            (State::Extreme(_), _) => {}
            (State::Other(s), _) => match &self.args[..] {
                // A column's value is not copied.
                [one] => {
                    let mut scratch = Datum::Null;
                    let v = one.eval_ref(row, cx, &mut scratch)?;
                    s.add(cx.env, std::slice::from_ref(v))?;
                }
                several => {
                    let mut args: SmallVec<[Datum; 2]> = SmallVec::new();
                    for a in several {
                        args.push(a.eval(row, cx)?);
                    }
                    s.add(cx.env, &args)?;
                }
            },
            (State::Collected(_) | State::Different(_) | State::Once(_) | State::Place(_), _) => {
                bail!(INTERNAL_ERROR, "rows to be sorted are not added one by one")
            }
        }
        Ok(())
    }

    /// Takes a row's arguments, which were added before, out again. False: it cannot be done, and the state is of no more use.
    pub(crate) fn remove(&self, state: &mut State, row: &[Datum], cx: &Cx<'_>) -> Result<bool> {
        if !self.counts(row, &cx.eval)? {
            return Ok(true);
        }
        let mut scratch = Datum::Null;
        match (state, self.maker) {
            (State::Count(n), Maker::CountStar) => *n -= 1,
            (State::Count(n), _) => *n -= i64::from(!self.args[0].is_null(row, &cx.eval)?),
            (State::Sum(total, n), _) => {
                if let Some(v) = int_of(self.args[0].eval_ref(row, &cx.eval, &mut scratch)?) {
                    (*total, *n) = (add_int(*total, v.saturating_neg())?, *n - 1);
                }
            }
            (State::Other(s), _) => {
                let mut args: SmallVec<[Datum; 2]> = SmallVec::new();
                for a in &self.args {
                    args.push(a.eval(row, &cx.eval)?);
                }
                return s.remove(cx.x.env, &args);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The argument of a row that passes FILTER, or NULL.
    pub(crate) fn argument(&self, row: &[Datum], cx: &Cx<'_>) -> Result<Datum> {
        match (&self.filter, self.args.first()) {
            (Some(f), _) if !f.is_true(row, &cx.eval)? => Ok(Datum::Null),
            (_, Some(a)) => a.eval(row, &cx.eval),
            (_, None) => Ok(Datum::Null),
        }
    }

    /// The result.
    pub(crate) fn finish(&self, state: &mut State, cx: &Cx<'_>) -> Result<Datum> {
        Ok(match state {
            State::Collected(collected) => return self.finish_collected(collected.take(), cx),
            State::Different(different) => return self.finish_different(different.take(), cx),
            State::Once(once) => return self.finish(&mut once.inner, cx),
            State::Count(n) => Datum::Int8(*n),
            State::Sum(_, 0) => Datum::Null,
            State::Sum(t, _) => Datum::Int8(*t),
            State::Extreme(d) => d.clone(),
            State::Other(s) => s.finish(cx.x.env)?,
            State::Place(at) => match self.maker {
                Maker::Place(place) => at.told(place),
                _ => Datum::Null,
            },
        })
    }

    /// Adds argument values.
    pub(crate) fn add_values(&self, state: &mut State, args: &[Datum], cx: &Cx<'_>) -> Result<()> {
        match (state, self.maker) {
            (State::Count(n), Maker::CountStar) => *n += 1,
            (State::Count(n), _) => *n += i64::from(!args[0].is_null()),
            (State::Sum(total, n), _) => {
                if let Some(v) = int_of(&args[0]) {
                    (*total, *n) = (add_int(*total, v)?, *n + 1);
                }
            }
            (State::Extreme(best), Maker::Extreme { greatest, ty })
                if !args[0].is_null()
                    && (best.is_null() || {
                        let o = compare(ty, &args[0], best);
                        if greatest { o.is_gt() } else { o.is_lt() }
                    }) =>
            {
                *best = args[0].clone();
            }
            (State::Other(s), _) => s.add(cx.x.env, args)?,
            _ => {}
        }
        Ok(())
    }

    /// Which maker suits a function.
    pub(crate) fn maker(function: u32, star: bool, arg: Option<Oid>) -> Result<Maker> {
        let name = types::facts::proc(Oid(function)).map_or("", |p| p.name);
        let simple = |t: Oid| {
            matches!(
                t,
                oids::INT2
                    | oids::INT4
                    | oids::INT8
                    | oids::TEXT
                    | oids::DATE
                    | oids::TIMESTAMP
                    | oids::TIMESTAMPTZ
            )
        };
        match (name, arg) {
            ("count", None) => return Ok(Maker::CountStar),
            ("count", Some(_)) if star => return Ok(Maker::CountStar),
            ("count", Some(_)) => return Ok(Maker::Count),
            ("sum", Some(oids::INT2 | oids::INT4)) => return Ok(Maker::SumInt),
            ("min", Some(t)) if simple(t) => return Ok(Maker::Extreme { greatest: false, ty: t }),
            ("max", Some(t)) if simple(t) => return Ok(Maker::Extreme { greatest: true, ty: t }),
            _ => {}
        }
        if types::facts::aggregate(Oid(function)).is_some_and(|f| f.kind == 'h') {
            return Ok(Maker::Place(Place::of(name)));
        }
        match types::registry::function(Oid(function)).map(|f| f.body) {
            Some(types::FunctionBody::Aggregate(make)) => Ok(Maker::Other(make)),
            _ => Err(base::Error::unsupported(format!("aggregate {name}"))),
        }
    }
}

/// An aggregation.
pub(crate) struct AggregateNode {
    pub input: Box<dyn Node>,
    pub strategy: AggregateStrategy,
    pub groups: Vec<Code>,
    pub group_types: Vec<Oid>,
    pub sets: Vec<Vec<usize>>,
    pub calls: Vec<Call>,
    pub grouping: Vec<Vec<usize>>,
    pub filter: Option<Code>,
    pub input_width: usize,
    pub state: AggregateWork,
}

const NONE: u32 = u32::MAX;
/// What states hold is counted after so many rows at least.
const COUNTED_AFTER: usize = 256;
/// Less than so much in memory is no run on disk.
const LEAST_RUN_BYTES: usize = 64 << 10;
/// The memory of so many states is kept for another execution.
const KEPT_STATES: usize = 128;

#[derive(Default)]
pub(crate) struct AggregateWork {
    started: bool,
    ended: bool,
    /// Hashed: keys of the groups, one after the other.
    keys: Vec<Datum>,
    hashes: Vec<u64>,
    next: Vec<u32>,
    heads: Vec<u32>,
    set_of: Vec<u32>,
    states: Vec<State>,
    bytes: usize,
    /// What states that grow hold, when that was counted last; in how many rows it is counted again, if there are such.
    held: usize,
    count_in: Option<usize>,
    emit_at: usize,
    /// Input rows of groups that found no room, each set's in parts of its own.
    waiting: Parted<1>,
    told: HashTold,
    /// Sorted: the group in hand.
    batch: Batch,
    at: usize,
    current: Option<Vec<Datum>>,
    current_states: Vec<State>,
}

impl AggregateNode {
    fn group_of(&self, row: &[Datum], cx: &Cx<'_>, out: &mut Vec<Datum>) -> Result<()> {
        out.clear();
        for g in &self.groups {
            out.push(g.eval(row, &cx.eval)?);
        }
        Ok(())
    }

    fn same(&self, a: &[Datum], b: &[Datum]) -> bool {
        self.group_types
            .iter()
            .zip(a.iter().zip(b))
            .all(|(ty, (a, b))| compare_key(*ty, a, b, false, false).is_eq())
    }

    /// Puts a finished group into the output if it passes HAVING.
    fn output(
        &self,
        key: &[Datum],
        set: usize,
        states: &mut [State],
        cx: &Cx<'_>,
        out: &mut Batch,
    ) -> Result<()> {
        for d in key {
            out.push_value(d.clone());
        }
        for (c, s) in self.calls.iter().zip(states) {
            let v = c.finish(s, cx)?;
            out.push_value(v);
        }
        for g in &self.grouping {
            let mut bits = 0i32;
            for e in g {
                bits = bits << 1 | i32::from(!self.sets[set].contains(e));
            }
            out.push_value(Datum::Int4(bits));
        }
        out.end_row();
        if let Some(f) = &self.filter
            && !f.is_true(out.row(out.len() - 1), &cx.eval)?
        {
            out.truncate(out.len() - 1);
        }
        Ok(())
    }

    fn new_states(&self) -> impl Iterator<Item = State> {
        self.calls.iter().map(Call::start)
    }

    fn plain(&mut self, cx: &Cx<'_>, out: &mut Batch) -> Result<()> {
        let mut states: Vec<State> = self.new_states().collect();
        let mut batch = std::mem::take(&mut self.state.batch);
        loop {
            cx.poll()?;
            self.input.next(cx, &mut batch, BATCH_ROWS)?;
            if batch.is_empty() {
                break;
            }
            for row in batch.rows() {
                for (c, s) in self.calls.iter().zip(&mut states) {
                    c.add(s, row, cx)?;
                }
            }
        }
        self.state.batch = batch;
        self.output(&[], 0, &mut states, cx, out)
    }

    /// As before the first row, the groups' memory kept.
    fn reset(&mut self) {
        self.clear_groups();
        let w = &mut self.state;
        w.started = false;
        w.ended = false;
        w.waiting.clear();
        w.current = None;
        w.current_states.clear();
        w.at = 0;
        let width = w.batch.width();
        w.batch.reset(width);
    }

    fn clear_groups(&mut self) {
        let w = &mut self.state;
        w.keys.clear();
        w.hashes.clear();
        w.next.clear();
        w.heads.clear();
        w.set_of.clear();
        w.states.clear();
        (w.bytes, w.held) = (0, 0);
        w.emit_at = 0;
    }

    /// Groups the input's rows, or those of a part that had to wait.
    fn hash_input(&mut self, cx: &Cx<'_>, mut part: Option<Part<1>>) -> Result<()> {
        let level = part.as_ref().map_or(0, |part| part.level);
        let sets = part.as_ref().map_or(0..self.sets.len(), |part| part.of..part.of + 1);
        let several = self.sets.len() > 1;
        let grow = |c: &Call| c.start().held_bytes().is_some();
        self.state.count_in = self.calls.iter().any(grow).then_some(COUNTED_AFTER);
        let mut batch = Batch::new();
        let mut scratch = vec![Datum::Null; self.groups.len()];
        let mut splits: Vec<Option<Split<1>>> = self.sets.iter().map(|_| None).collect();
        loop {
            cx.poll()?;
            match &mut part {
                None => {
                    self.input.next(cx, &mut batch, BATCH_ROWS)?;
                    self.input_width = batch.width();
                }
                Some(part) => {
                    batch.reset(self.input_width);
                    part.read_batch(0, &mut batch, BATCH_ROWS)?;
                }
            }
            if batch.is_empty() {
                break;
            }
            let parts = (&self.calls[..], &self.group_types[..]);
            for row in batch.rows() {
                let values = self.groups.iter().zip(&mut scratch);
                let key: SmallVec<[&Datum; 8]> =
                    values.map(|(g, v)| g.eval_ref(row, &cx.eval, v)).collect::<Result<_>>()?;
                for set in sets.clone() {
                    let mut of_set = key.clone();
                    if several {
                        let own = &self.sets[set];
                        for (i, d) in of_set.iter_mut().enumerate() {
                            *d = if own.contains(&i) { *d } else { &Datum::Null };
                        }
                    }
                    let (of_set, waits) = ((set, &of_set[..]), splits[set].is_some());
                    let Some(h) = self.state.hash_row(parts, of_set, row, cx, waits)? else {
                        continue;
                    };
                    let split = match &mut splits[set] {
                        Some(split) => split,
                        none => none.insert(self.state.waiting.split(
                            level,
                            set,
                            cx.x.hash_mem_bytes,
                        )?),
                    };
                    split.put(0, h, row)?;
                }
            }
        }
        for split in splits.into_iter().flatten() {
            self.state.waiting.end(split)?;
        }
        self.state.tell();
        Ok(())
    }

    fn hashed(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        if !self.state.started {
            self.state.started = true;
            self.clear_groups();
            self.hash_input(cx, None)?;
            // A grouping set of nothing has its group even without input.
            if self.state.hashes.is_empty() {
                for set in 0..self.sets.len() {
                    if self.sets[set].is_empty() {
                        let key = vec![Datum::Null; self.groups.len()];
                        let mut states: Vec<State> = self.new_states().collect();
                        self.output(&key, set, &mut states, cx, out)?;
                    }
                }
                if !out.is_empty() {
                    return Ok(());
                }
            }
        }
        let (width, n) = (self.groups.len(), self.calls.len());
        loop {
            while self.state.emit_at < self.state.hashes.len() && out.len() < max {
                let i = self.state.emit_at;
                self.state.emit_at += 1;
                let key: SmallVec<[Datum; 4]> = self.state.keys[i * width..(i + 1) * width]
                    .iter_mut()
                    .map(std::mem::take)
                    .collect();
                let set = self.state.set_of[i] as usize;
                let mut states = std::mem::take(&mut self.state.states);
                let r = self.output(&key, set, &mut states[i * n..(i + 1) * n], cx, out);
                self.state.states = states;
                r?;
            }
            if out.len() >= max {
                return Ok(());
            }
            match self.state.waiting.next() {
                Some(part) => {
                    self.clear_groups();
                    self.hash_input(cx, Some(part))?;
                }
                None => return Ok(()),
            }
        }
    }

    fn sorted(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        let mut key = Vec::new();
        while !self.state.ended && out.len() < max {
            if self.state.at >= self.state.batch.len() {
                cx.poll()?;
                let mut batch = std::mem::take(&mut self.state.batch);
                let r = self.input.next(cx, &mut batch, BATCH_ROWS);
                self.state.batch = batch;
                r?;
                self.state.at = 0;
                if self.state.batch.is_empty() {
                    self.state.ended = true;
                    if let Some(k) = self.state.current.take() {
                        let mut states = std::mem::take(&mut self.state.current_states);
                        self.output(&k, 0, &mut states, cx, out)?;
                    }
                    return Ok(());
                }
            }
            let at = self.state.at;
            self.state.at += 1;
            self.group_of(self.state.batch.row(at), cx, &mut key)?;
            let same = self.state.current.as_ref().is_some_and(|c| self.same(c, &key));
            if !same {
                if let Some(k) = self.state.current.take() {
                    let mut states = std::mem::take(&mut self.state.current_states);
                    self.output(&k, 0, &mut states, cx, out)?;
                }
                self.state.current_states = self.new_states().collect();
                self.state.current = Some(key.clone());
            }
            let w = &mut self.state;
            for (c, s) in self.calls.iter().zip(&mut w.current_states) {
                c.add(s, w.batch.row(at), cx)?;
            }
        }
        Ok(())
    }
}

impl Node for AggregateNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.groups.len() + self.calls.len() + self.grouping.len());
        match self.strategy {
            AggregateStrategy::Plain => {
                if self.state.ended {
                    return Ok(());
                }
                self.state.ended = true;
                self.plain(cx, out)
            }
            AggregateStrategy::Hashed => self.hashed(cx, out, max),
            AggregateStrategy::Sorted => self.sorted(cx, out, max),
        }
    }
    fn told(&self) -> Told {
        let hash = (self.strategy == AggregateStrategy::Hashed).then_some(self.state.told);
        Told { hash, ..Told::default() }
    }
    fn let_go(&mut self) {
        if self.state.states.len() > KEPT_STATES {
            self.state = AggregateWork { told: self.state.told, ..AggregateWork::default() };
        }
        self.reset();
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.reset();
        self.input.rescan(cx)
    }
}
