//! Rows by their addresses: `ctid = …`, and ranges of `ctid`.

use super::TidBound;
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

    /// `ctid < value` and its like.
    fn tid_bound(&self, i: usize, e: &Expr) -> Option<TidBound> {
        let rte = self.rels[i].rte;
        let is_tid =
            |e: &Expr| matches!(e, Expr::Var { levels_up: 0, column: -1, rte: r, .. } if *r == rte);
        let Expr::Call { args, operator, .. } = e else { return None };
        let [l, r] = &args[..] else { return None };
        let (lower, inclusive) = match types::registry::operator(Oid(*operator))?.name {
            ">" => (true, false),
            ">=" => (true, true),
            "<" => (false, false),
            "<=" => (false, true),
            _ => return None,
        };
        let value = |v: &Expr| self.rels_of(v).is_empty() && !expr::fold::contains_volatile(v);
        if is_tid(l) && value(r) {
            Some(TidBound { lower, inclusive, value: r.clone() })
        } else if is_tid(r) && value(l) {
            Some(TidBound { lower: !lower, inclusive, value: l.clone() })
        } else {
            None
        }
    }

    /// The part of a table whose `ctid` is less than a value (or more; or that, too), if that is what the expression is: as
    /// PostgreSQL reckons it, from how far into the table the value points.
    pub(super) fn part_by_address(
        &self,
        e: &Expr,
        value: &Datum,
        less: bool,
        equal_too: bool,
    ) -> Option<f64> {
        let (Expr::Var { levels_up: 0, column: -1, rte, .. }, Datum::Tid(tid)) = (e, value) else {
            return None;
        };
        let rel = &self.rels[(*self.rel_of_rte.get(*rte)?)?];
        if rel.pages < 1.0 {
            return None;
        }
        let block = f64::from(tid.block.0);
        // The last page is half full, as far as anybody knows.
        let last = block >= rel.pages - 1.0;
        let density = rel.tuples / rel.pages * if last { 0.5 } else { 1.0 };
        let within = if density > 0.0 { (f64::from(tid.offset.0) / density).min(1.0) } else { 0.0 };
        let mut below = (block + within) / rel.pages;
        if less != equal_too && rel.tuples >= 1.0 {
            below -= 1.0 / rel.tuples;
        }
        let below = below.clamp(0.0, 1.0);
        Some(if less { below } else { 1.0 - below })
    }

    /// What lies between bounds of `ctid`.
    fn tid_range_path(&self, i: usize, paths: &mut Vec<std::rc::Rc<Path>>) {
        let rel = &self.rels[i];
        let s = self.g.settings;
        let (mut bounds, mut asked, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let (mut from, mut to) = (0.0, 1.0);
        for e in &rel.quals {
            let Some(bound) = self.tid_bound(i, e) else {
                rest.push(e.clone());
                continue;
            };
            let at = match constant(&bound.value) {
                Some(Datum::Tid(t)) => Some(f64::from(t.block.0) / rel.pages.max(1.0)),
                _ => None,
            };
            if bound.lower {
                from = f64::max(from, at.unwrap_or(DEFAULT_PART));
            } else {
                to = f64::min(to, at.unwrap_or(1.0 - DEFAULT_PART));
            }
            bounds.push(bound);
            asked.push(e.clone());
        }
        if bounds.is_empty() || !s.enable_tidscan || rel.pages < 1.0 {
            return;
        }
        let part = f64::clamp(to - from, 1.0 / rel.pages, 1.0);
        let each = s.cpu_tuple_cost + self.quals_cost(&rest);
        let total = (rel.pages * part).ceil() * s.seq_page_cost + rel.tuples * part * each;
        add_path(
            paths,
            Path {
                kind: PathKind::TidRange { rel: i, bounds, asked, rest },
                rels: RelSet::one(i),
                rows: rel.rows,
                startup: 0.0,
                total,
                keys: Vec::new(),
                param: RelSet::EMPTY,
                width: self.output_width(i),
            },
        );
    }
}
