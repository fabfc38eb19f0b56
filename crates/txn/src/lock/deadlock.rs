//! Deadlocks.
//!
//! # Purpose
//! A backend that has waited for `deadlock_timeout` asks whether it waits, through others, for itself.
//!
//! # Layout
//! The graph's edges: to holders of a conflicting lock and to the owner of a transaction waited for (hard), and to
//! those ahead in the queue with a conflicting request (soft). A cycle with a soft edge may be undone by letting the
//! waiter go ahead of the one it merely queues behind; if no such change helps, the asker is the victim. No edge leads from one who
//! waits for a moment only ([`super::Wait::AtMost`]).

use super::held::ModeSet;
use super::table::{Table, WaitingFor};
use super::{LockMode, LockTag, TransactionTarget};
use crate::backend::Backend;
use base::sync::Arc;
use std::collections::HashSet;

/// What the detector found.
#[derive(PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No deadlock.
    None,
    /// One that changing a queue has undone.
    Undone,
    /// A deadlock; PostgreSQL's detail lines, and whom they tell of.
    Deadlock(String, Vec<i32>),
}

#[derive(Clone, Copy)]
struct Edge {
    waiter: i32,
    tag: LockTag,
    mode: LockMode,
    blocker: i32,
    soft: bool,
}

/// Looks for a cycle through `me`, and undoes it if a change of queues can.
pub fn check(table: &mut Table, me: &Backend, all: &[Arc<Backend>]) -> Verdict {
    if table.waiting(me.pid).is_none() {
        return Verdict::None;
    }
    let Some(cycle) = find_cycle(table, me.pid, all) else { return Verdict::None };
    if let Some(changed) = resolve(table, me.pid, all, &cycle, 4) {
        for tag in changed {
            table.wake(&tag);
        }
        return Verdict::Undone;
    }
    let lines: Vec<String> = cycle
        .iter()
        .map(|e| {
            format!(
                "Process {} waits for {} on {}; blocked by process {}.",
                e.waiter,
                e.mode.name(),
                e.tag,
                e.blocker
            )
        })
        .collect();
    Verdict::Deadlock(lines.join("\n"), cycle.iter().map(|e| e.waiter).collect())
}

/// Tries queue changes until no cycle through `me` is left: which queues have changed. The table is as before if none helps.
fn resolve(
    table: &mut Table,
    me: i32,
    all: &[Arc<Backend>],
    cycle: &[Edge],
    depth: usize,
) -> Option<HashSet<LockTag>> {
    if depth == 0 {
        return None;
    }
    // From the cycle's end on, as PostgreSQL goes: of two waiters that could go ahead the one further from `me` does.
    for edge in cycle.iter().rev().filter(|e| e.soft) {
        let Some(before) = move_ahead(table, edge) else { continue };
        match find_cycle(table, me, all) {
            None => return Some(HashSet::from([edge.tag])),
            Some(next) => {
                if let Some(mut changed) = resolve(table, me, all, &next, depth - 1) {
                    changed.insert(edge.tag);
                    return Some(changed);
                }
            }
        }
        restore(table, &edge.tag, &before);
    }
    None
}

/// Puts the edge's waiter right before its blocker in the queue; the former order of pids.
fn move_ahead(table: &mut Table, edge: &Edge) -> Option<Vec<i32>> {
    let object = table.objects.get_mut(&edge.tag)?;
    let before: Vec<i32> = object.queue.iter().map(|w| w.backend.pid).collect();
    let from = before.iter().position(|p| *p == edge.waiter)?;
    let to = before.iter().position(|p| *p == edge.blocker)?;
    if from < to {
        return None;
    }
    let waiter = object.queue.remove(from);
    object.queue.insert(to, waiter);
    Some(before)
}

fn restore(table: &mut Table, tag: &LockTag, order: &[i32]) {
    if let Some(object) = table.objects.get_mut(tag) {
        object.queue.sort_by_key(|w| order.iter().position(|p| *p == w.backend.pid));
    }
}

fn find_cycle(table: &Table, me: i32, all: &[Arc<Backend>]) -> Option<Vec<Edge>> {
    let mut visited = HashSet::new();
    let mut path = Vec::new();
    search(table, me, me, all, &mut visited, &mut path).then_some(path)
}

fn search(
    table: &Table,
    me: i32,
    at: i32,
    all: &[Arc<Backend>],
    visited: &mut HashSet<i32>,
    path: &mut Vec<Edge>,
) -> bool {
    if !visited.insert(at) {
        return false;
    }
    for edge in edges(table, at, all) {
        path.push(edge);
        if edge.blocker == me || search(table, me, edge.blocker, all, visited, path) {
            return true;
        }
        path.pop();
    }
    false
}

fn edges(table: &Table, waiter: i32, all: &[Arc<Backend>]) -> Vec<Edge> {
    let mut out = Vec::new();
    match table.waiting(waiter) {
        None => {}
        Some(WaitingFor::Lock(tag, mode)) => {
            let Some(object) = table.objects.get(&tag) else { return out };
            if object.queue.iter().any(|w| w.backend.pid == waiter && w.brief) {
                return out;
            }
            for (pid, modes) in &object.holders {
                if *pid != waiter && modes.conflicts_with(mode) {
                    out.push(Edge { waiter, tag, mode, blocker: *pid, soft: false });
                }
            }
            let hard = out.len();
            for ahead in object.queue.iter().take_while(|w| w.backend.pid != waiter) {
                if ModeSet::of(ahead.mode).conflicts_with(mode) {
                    let blocker = ahead.backend.pid;
                    // One who already holds what we want has been listed as a hard edge.
                    if !out[..hard].iter().any(|e| e.blocker == blocker) {
                        out.push(Edge { waiter, tag, mode, blocker, soft: true });
                    }
                }
            }
        }
        Some(WaitingFor::Transaction(TransactionTarget::Xid(xid))) => {
            if let Some(owner) = all.iter().find(|b| b.is_mine(xid)) {
                out.push(Edge {
                    waiter,
                    tag: LockTag::Transaction(xid),
                    mode: LockMode::Share,
                    blocker: owner.pid,
                    soft: false,
                });
            }
        }
        Some(WaitingFor::Transaction(TransactionTarget::Virtual(pid, number))) => {
            if let Some(owner) = all.iter().find(|b| b.pid == pid)
                && owner.virtual_xid().1 == number
            {
                out.push(Edge {
                    waiter,
                    tag: LockTag::Virtual(owner.virtual_xid().0, number),
                    mode: LockMode::Share,
                    blocker: pid,
                    soft: false,
                });
            }
        }
    }
    out
}
