//! Aggregates that want their arguments in an order, or each once, over rows that are in that order already.
//!
//! # Purpose
//! `array_agg(x ORDER BY y)` sorts the rows of each group before it takes them. Where a path gives all rows in the order of the groups and
//! of `y` within each, it need not: an index may well be read for that. What is only counted or added up once each
//! ([`Call::takes_different`]) is hashed otherwise, which costs less than a sort, but more than to look at the value before.
//!
//! # Invariants
//! - Only expressions that give the same whenever they are computed are an order.
//! - Ordered-set aggregates are told beforehand how many rows there are, and hypothetical ones look at their neighbours: both sort themselves.

use super::path::{Path, PathKey};
use super::rels::JoinSpace;
use super::upper::ascending;
use crate::exec::aggregate::Call;
use base::Oid;
use expr::Expr;
use expr::tree::{AggregateCall, SortKey};
use std::ops::Deref;

/// A call of an aggregate, as a plan has it.
#[derive(Clone, Debug)]
pub struct PlannedCall {
    /// The call.
    pub call: AggregateCall,
    /// The rows of each group come in its order.
    pub in_order: bool,
}

impl Deref for PlannedCall {
    type Target = AggregateCall;
    fn deref(&self) -> &AggregateCall {
        &self.call
    }
}

/// The order in which a call sorts the rows of a group, or in which it need not hash them.
fn order_of(call: &AggregateCall) -> Option<Vec<SortKey>> {
    let sorts = call.distinct || !call.order_by.is_empty();
    let plain = types::facts::aggregate(Oid(call.function)).is_some_and(|f| f.kind == 'n');
    if !sorts || !plain {
        return None;
    }
    let mut order = call.order_by.clone();
    if call.distinct {
        order.extend(ascending(&call.args).into_iter().filter(|k| !has(&call.order_by, &k.expr)));
    }
    let stable = order.iter().all(|k| !expr::fold::contains_volatile(&k.expr));
    stable.then_some(order)
}

fn has(order: &[SortKey], e: &Expr) -> bool {
    order.iter().any(|k| k.expr == *e)
}

impl JoinSpace<'_, '_> {
    fn heeds_calls(&self) -> bool {
        self.g.settings.enable_presorted_aggregate && self.q.grouping_sets.len() <= 1
    }

    /// The order to read rows in for the sake of calls: that of the groups, then what suits most of those.
    pub(super) fn order_for_calls(
        &self,
        groups: &[SortKey],
        calls: &[AggregateCall],
    ) -> Vec<SortKey> {
        let mut out = groups.to_vec();
        if !self.heeds_calls() {
            return out;
        }
        let orders: Vec<(Vec<SortKey>, bool)> =
            calls.iter().filter_map(|c| Some((order_of(c)?, Call::takes_different(c)))).collect();
        let suited = |o: &[SortKey], hashes: bool| {
            let alike = orders.iter().filter(|(other, h)| *h == hashes && o.starts_with(other));
            alike.count()
        };
        // What saves sorts comes before what saves hashing; of those that suit as many the first.
        let worth = |o: &Vec<SortKey>| (suited(o, false), suited(o, true));
        if let Some(best) = orders.iter().map(|(o, _)| o).rev().max_by_key(|o| worth(o)) {
            out.extend(best.iter().filter(|k| !has(groups, &k.expr)).cloned());
        }
        out
    }

    /// What each call asks of a path's order behind that of the groups; None where it must sort, or wants no order.
    pub(super) fn keys_of_calls(
        &mut self,
        groups: &[SortKey],
        calls: &[AggregateCall],
    ) -> Vec<Option<Vec<PathKey>>> {
        let heeded = self.heeds_calls();
        let mut out = Vec::new();
        for call in calls {
            let order = order_of(call).filter(|_| heeded);
            out.push(order.and_then(|order| {
                let all: Vec<SortKey> = groups.iter().chain(&order).cloned().collect();
                self.order_keys(&all)
            }));
        }
        out
    }

    /// What calls cost that sort or hash for themselves, with rows that come as a path's do, in so many groups; those `in_order` need not.
    pub(super) fn sorting_of_calls(
        &self,
        calls: &[AggregateCall],
        in_order: &[bool],
        path: &Path,
        groups: f64,
    ) -> f64 {
        let sort = groups * self.sort_cost(path.rows / groups, path.width, 0.0);
        let alone = calls.iter().zip(in_order).filter(|(c, o)| !**o && order_of(c).is_some());
        let each = alone.map(|(c, _)| match Call::takes_different(c) {
            true => self.hashing_cost(c, path.rows, groups).min(sort),
            false => sort,
        });
        each.sum()
    }

    /// What it costs to look up each row's value among its group's, and to keep those that are new.
    fn hashing_cost(&self, call: &AggregateCall, rows: f64, groups: f64) -> f64 {
        let values = self.groups_of(call.args.iter(), rows).max(groups);
        let kept = if Call::is_word(call) { 12.0 } else { 30.0 };
        (2.0 * rows + kept * values) * self.g.settings.cpu_operator_cost
    }

    /// Must what is grouped be sorted, since a hash table of groups, with what calls put aside for each of them, would be too big?
    pub(super) fn too_big_to_hash(
        &self,
        groups: &[Expr],
        calls: &[AggregateCall],
        rows: f64,
        width: i32,
    ) -> bool {
        let s = self.g.settings;
        let width = f64::from(width) + 64.0;
        let made = self.groups_of(groups.iter(), rows);
        // Rows that an aggregate sorts are all kept until their group is whole: of one group at a time, then.
        let kept = |c: &AggregateCall| c.distinct || !c.order_by.is_empty();
        let sorts = calls.iter().any(|c| kept(c) && !Call::takes_different(c));
        let different: f64 = calls
            .iter()
            .filter(|c| Call::takes_different(c))
            .map(|c| {
                let each = if Call::is_word(c) { 24.0 } else { 64.0 + width };
                self.groups_of(groups.iter().chain(&c.args), rows) * each + made * 192.0
            })
            .sum();
        made * width > s.hash_mem_bytes * 8.0
            || sorts && rows * width > s.work_mem_bytes as f64
            || different > s.hash_mem_bytes
            || !s.enable_hashagg
    }
}
