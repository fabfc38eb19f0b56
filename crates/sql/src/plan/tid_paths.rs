//! Rows by their addresses: `ctid = …`, and ranges of `ctid`.

use super::path::{Path, PathKind, add_path};
use super::rels::{JoinSpace, RelSet};
use super::sub_links::constant;
use base::Oid;
use expr::Expr;
use types::Datum;

/// What a bound that is not known leaves of the table.
const DEFAULT_PART: f64 = 1.0 / 3.0;

impl JoinSpace<'_, '_> {
    /// `ctid = …`
    pub(super) fn tid_paths(&self, i: usize, paths: &mut Vec<std::rc::Rc<Path>>) {
        let rel = &self.rels[i];
        for (n, e) in rel.quals.iter().enumerate() {
            if let Some((value, many)) = self.addresses(i, e)
                && self.rels_of(value).is_empty()
            {
                let mut quals = rel.quals.clone();
                quals.remove(n);
                add_path(paths, self.tid_path(i, e, (value, many), quals, RelSet::EMPTY));
            }
        }
        self.tid_range_path(i, paths);
        for (e, outer) in self.join_clauses(i) {
            if let Some((value, many)) = self.addresses(i, &e)
                && self.rels_of(value) == outer
            {
                add_path(paths, self.tid_path(i, &e, (value, many), rel.quals.clone(), outer));
            }
        }
    }

    /// What `ctid = value` and `ctid = ANY (value)` ask for, if the condition is one of these and
    /// the value can be had without reading relation `i`; true for many.
    fn addresses<'e>(&self, i: usize, e: &'e Expr) -> Option<(&'e Expr, bool)> {
        let rte = self.rels[i].rte;
        let is_tid =
            |e: &Expr| matches!(e, Expr::Var { levels_up: 0, column: -1, rte: r, .. } if *r == rte);
        if let Some(current) = super::current_of::asked(e) {
            return Some((current, false));
        }
        let outside = |v: &Expr| !self.rels_of(v).has(i) && !expr::fold::contains_volatile(v);
        let (l, r, many) = match e {
            Expr::Call { args, operator, .. }
                if args.len() == 2 && super::rels::equality_family(*operator).is_some() =>
            {
                (&args[0], &args[1], false)
            }
            Expr::ScalarArrayOp { any: true, left, array, function, .. }
                if expr::code::comparison(Oid(*function))
                    .is_some_and(|c| c.0 == expr::code::CompareOp::Eq) =>
            {
                (&**left, &**array, true)
            }
            _ => return None,
        };
        if is_tid(l) && outside(r) {
            Some((r, many))
        } else if !many && is_tid(r) && outside(l) {
            Some((l, many))
        } else {
            None
        }
    }

    fn tid_path(
        &self,
        i: usize,
        asked: &Expr,
        (value, many): (&Expr, bool),
        quals: Vec<Expr>,
        param: RelSet,
    ) -> Path {
        let rows = if many { super::selectivity::array_length(value) } else { 1.0 };
        Path {
            kind: PathKind::Tid { rel: i, tids: value.clone(), asked: asked.clone(), quals },
            rels: RelSet::one(i),
            rows,
            startup: 0.0,
            total: rows * 4.01,
            keys: Vec::new(),
            param,
            width: self.rels[i].width,
        }
    }

    /// `ctid < value` and its like: true for a lower bound.
    fn tid_bound<'e>(&self, i: usize, e: &'e Expr) -> Option<(bool, &'e Expr)> {
        let rte = self.rels[i].rte;
        let is_tid =
            |e: &Expr| matches!(e, Expr::Var { levels_up: 0, column: -1, rte: r, .. } if *r == rte);
        let Expr::Call { args, operator, .. } = e else { return None };
        let [l, r] = &args[..] else { return None };
        let lower = match types::registry::operator(Oid(*operator))?.name {
            ">" | ">=" => true,
            "<" | "<=" => false,
            _ => return None,
        };
        let value = |v: &Expr| self.rels_of(v).is_empty() && !expr::fold::contains_volatile(v);
        if is_tid(l) && value(r) {
            Some((lower, r))
        } else if is_tid(r) && value(l) {
            Some((!lower, l))
        } else {
            None
        }
    }

    /// The pages between bounds of `ctid`.
    fn tid_range_path(&self, i: usize, paths: &mut Vec<std::rc::Rc<Path>>) {
        let rel = &self.rels[i];
        let s = self.g.settings;
        let (mut bounds, mut asked, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let (mut from, mut to) = (0.0, 1.0);
        for e in &rel.quals {
            let Some((lower, value)) = self.tid_bound(i, e) else {
                rest.push(e.clone());
                continue;
            };
            let at = match constant(value) {
                Some(Datum::Tid(t)) => Some(f64::from(t.block.0) / rel.pages.max(1.0)),
                _ => None,
            };
            if lower {
                from = f64::max(from, at.unwrap_or(DEFAULT_PART));
            } else {
                to = f64::min(to, at.unwrap_or(1.0 - DEFAULT_PART));
            }
            bounds.push((lower, value.clone()));
            asked.push(e.clone());
        }
        if bounds.is_empty() || !s.enable_tidscan || rel.pages < 1.0 {
            return;
        }
        let part = f64::clamp(to - from, 1.0 / rel.pages, 1.0);
        let each = s.cpu_tuple_cost + self.quals_cost(&rel.quals);
        let total = (rel.pages * part).ceil() * s.seq_page_cost + rel.tuples * part * each;
        add_path(
            paths,
            Path {
                kind: PathKind::TidRange { rel: i, bounds, asked, rest },
                rels: RelSet::one(i),
                rows: rel.rows.min((rel.tuples * part).ceil().max(1.0)),
                startup: 0.0,
                total,
                keys: Vec::new(),
                param: RelSet::EMPTY,
                width: self.output_width(i),
            },
        );
    }
}
