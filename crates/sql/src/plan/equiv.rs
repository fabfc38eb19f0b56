//! Equivalence classes: expressions known to be equal, and what follows.

use super::rels::{
    Equality, EquivalenceClass, JoinSpace, Qual, RelSet, equality_family, family_equality,
    type_family,
};
use super::selectivity::strip;
use crate::query::JoinKind;
use base::Oid;
use expr::tree::CallForm;
use expr::{Expr, TypeRef};
use types::oids;

impl JoinSpace<'_, '_> {
    /// Relations that some outer join can pad with NULLs.
    pub(crate) fn nullable(&self) -> RelSet {
        let mut set = RelSet::EMPTY;
        for s in &self.specials {
            match s.kind {
                JoinKind::Left => set = set.or(s.right),
                JoinKind::Full => set = set.or(s.left).or(s.right),
                _ => {}
            }
        }
        set
    }

    /// The inner side of semi and anti joins, which is out of sight above them.
    pub(crate) fn hidden(&self) -> RelSet {
        let mut set = RelSet::EMPTY;
        for s in &self.specials {
            if matches!(s.kind, JoinKind::Semi | JoinKind::Anti) {
                set = set.or(s.right);
            }
        }
        set
    }

    /// Builds the classes from inner-join equalities, and gives relations what they imply.
    pub(crate) fn build_classes(&mut self) {
        let unsafe_rels = self.nullable().or(self.hidden());
        let mut kept = Vec::new();
        for q in std::mem::take(&mut self.quals) {
            let usable = q.special.is_none()
                && !q.required.overlaps(unsafe_rels)
                && q.equality.as_ref().is_some_and(|e| {
                    e.left_rels.or(e.right_rels) == q.required
                        && e.left_rels.count() == 1
                        && e.right_rels.count() == 1
                });
            match (&q.equality, usable) {
                (Some(e), true) if self.mergeable(e) => {
                    let e = e.clone();
                    self.merge(e.family, (e.left, e.left_rels), (e.right, e.right_rels));
                }
                _ => kept.push(q),
            }
        }
        self.quals = kept;
        // Equalities with constants.
        for i in 0..self.rels.len() {
            if unsafe_rels.has(i) {
                continue;
            }
            let quals = self.rels[i].quals.clone();
            let mut left = Vec::new();
            for e in quals {
                if let Expr::Call { args, operator, .. } = &e
                    && let [l, r] = &args[..]
                    && let Some(family) = equality_family(*operator)
                    && !expr::fold::contains_volatile(&e)
                {
                    let (lr, rr) = (self.rels_of(l), self.rels_of(r));
                    let pair = match (lr.is_empty(), rr.is_empty()) {
                        (false, true) => Some((l, r)),
                        (true, false) => Some((r, l)),
                        _ => None,
                    };
                    if let Some((member, value)) = pair
                        && let Some(c) = self.find(member, family)
                        && !self.classes[c].constant
                        && self.compatible(c, value)
                    {
                        self.classes[c].constant = true;
                        self.classes[c].members.push((value.clone(), RelSet::EMPTY));
                    }
                }
                left.push(e);
            }
            self.rels[i].quals = left;
        }
        self.imply();
        self.imply_across_outer_joins();
    }

    fn mergeable(&self, e: &Equality) -> bool {
        let (a, b) = (e.left.ty().oid, e.right.ty().oid);
        family_equality(e.family, a, b).is_some() && family_equality(e.family, b, a).is_some()
    }

    fn compatible(&self, class: usize, value: &Expr) -> bool {
        let c = &self.classes[class];
        c.members
            .iter()
            .all(|(m, _)| family_equality(c.family, m.ty().oid, value.ty().oid).is_some())
    }

    /// The class an expression belongs to.
    pub(crate) fn find(&self, e: &Expr, family: Oid) -> Option<usize> {
        let e = strip(e);
        self.classes
            .iter()
            .position(|c| c.family == family && c.members.iter().any(|m| strip(&m.0) == e))
    }

    /// The class of a sort expression, made if there is none.
    pub(crate) fn class_for(&mut self, e: &Expr) -> Option<usize> {
        let family = type_family(e.ty().oid)?;
        if let Some(c) = self.find(e, family) {
            return Some(c);
        }
        if expr::fold::contains_volatile(e) {
            return None;
        }
        let rels = self.rels_of(e);
        self.classes.push(EquivalenceClass {
            family,
            members: vec![(e.clone(), rels)],
            constant: rels.is_empty(),
        });
        Some(self.classes.len() - 1)
    }

    fn merge(&mut self, family: Oid, a: (Expr, RelSet), b: (Expr, RelSet)) {
        match (self.find(&a.0, family), self.find(&b.0, family)) {
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => {
                let moved = self.classes.remove(x.max(y));
                self.classes[x.min(y)].members.extend(moved.members);
            }
            (Some(x), None) => self.classes[x].members.push(b),
            (None, Some(y)) => self.classes[y].members.push(a),
            (None, None) => {
                self.classes.push(EquivalenceClass { family, members: vec![a, b], constant: false })
            }
        }
    }

    /// `l = r` in a class.
    pub(crate) fn equal_expr(&self, class: usize, l: &Expr, r: &Expr) -> Option<(Expr, u32, u32)> {
        let family = self.classes[class].family;
        let (operator, function) = family_equality(family, l.ty().oid, r.ty().oid)?;
        let e = Expr::Call {
            function,
            args: vec![l.clone(), r.clone()],
            arg_types: vec![l.ty(), r.ty()],
            ty: TypeRef::of(oids::BOOL),
            operator,
            form: CallForm::Operator,
        };
        Some((e, operator, function))
    }

    /// Conditions on single relations that classes imply.
    fn imply(&mut self) {
        for c in 0..self.classes.len() {
            let class = self.classes[c].clone();
            let value = class.members.iter().find(|m| m.1.is_empty()).cloned();
            if let Some((value, _)) = value {
                for (m, rels) in &class.members {
                    if rels.is_empty() {
                        continue;
                    }
                    let Some((e, ..)) = self.equal_expr(c, m, &value) else { continue };
                    if rels.count() == 1 {
                        let Some(i) = rels.iter().next() else { continue };
                        let known = self.rels[i].quals.iter().any(|q| same_equality(q, m, &value));
                        if !known {
                            self.rels[i].quals.push(e);
                        }
                    } else {
                        self.quals.push(Qual {
                            expr: e,
                            required: *rels,
                            special: None,
                            equality: None,
                        });
                    }
                }
                continue;
            }
            // Several members of one relation.
            for i in 0..self.rels.len() {
                let mine: Vec<&Expr> =
                    class.members.iter().filter(|m| m.1 == RelSet::one(i)).map(|m| &m.0).collect();
                for pair in mine.windows(2) {
                    if let Some((e, ..)) = self.equal_expr(c, pair[0], pair[1]) {
                        self.rels[i].quals.push(e);
                    }
                }
            }
        }
    }

    /// `a LEFT JOIN b ON a.x = b.y` with a.x known to be a constant: b.y may as well be.
    fn imply_across_outer_joins(&mut self) {
        for q in self.quals.clone() {
            let (Some(s), Some(e)) = (q.special, &q.equality) else { continue };
            let special = &self.specials[s];
            if special.kind == JoinKind::Full {
                continue;
            }
            let (outer, inner, inner_rels) = if e.right_rels.within(special.right) {
                (&e.left, &e.right, e.right_rels)
            } else if e.left_rels.within(special.right) {
                (&e.right, &e.left, e.left_rels)
            } else {
                continue;
            };
            if inner_rels.count() != 1 || self.nullable().minus(special.right).overlaps(inner_rels)
            {
                continue;
            }
            let value = self.known_constant(outer, e.family);
            let Some(value) = value else { continue };
            let Some((operator, function)) =
                family_equality(e.family, inner.ty().oid, value.ty().oid)
            else {
                continue;
            };
            let Some(i) = inner_rels.iter().next() else { continue };
            if self.rels[i].quals.iter().any(|q| same_equality(q, inner, &value)) {
                continue;
            }
            let arg_types = vec![inner.ty(), value.ty()];
            self.rels[i].quals.push(Expr::Call {
                function,
                args: vec![inner.clone(), value],
                arg_types,
                ty: TypeRef::of(oids::BOOL),
                operator,
                form: CallForm::Operator,
            });
        }
    }

    fn known_constant(&self, e: &Expr, family: Oid) -> Option<Expr> {
        if let Some(c) = self.find(e, family)
            && let Some(m) = self.classes[c].members.iter().find(|m| m.1.is_empty())
        {
            return Some(m.0.clone());
        }
        let rels = self.rels_of(e);
        let i = rels.iter().next().filter(|_| rels.count() == 1)?;
        if self.nullable().has(i) {
            return None;
        }
        for q in &self.rels[i].quals {
            if let Expr::Call { args, operator, .. } = q
                && let [l, r] = &args[..]
                && equality_family(*operator) == Some(family)
                && !expr::fold::contains_volatile(q)
            {
                if strip(l) == strip(e) && self.rels_of(r).is_empty() {
                    return Some(r.clone());
                }
                if strip(r) == strip(e) && self.rels_of(l).is_empty() {
                    return Some(l.clone());
                }
            }
        }
        None
    }

    /// The equality by which a class connects two sets of relations.
    pub(crate) fn class_equality(
        &self,
        class: usize,
        left: RelSet,
        right: RelSet,
    ) -> Option<Equality> {
        let c = &self.classes[class];
        if c.constant {
            return None;
        }
        let side = |set: RelSet| {
            c.members
                .iter()
                .find(|(e, r)| {
                    !r.is_empty() && r.within(set) && matches!(strip(e), Expr::Var { .. })
                })
                .or_else(|| c.members.iter().find(|(_, r)| !r.is_empty() && r.within(set)))
        };
        let (l, r) = (side(left)?, side(right)?);
        let (_, _, function) = self.equal_expr(class, &l.0, &r.0)?;
        Some(Equality {
            left: l.0.clone(),
            right: r.0.clone(),
            left_rels: l.1,
            right_rels: r.1,
            function,
            family: c.family,
        })
    }
}

fn same_equality(q: &Expr, a: &Expr, b: &Expr) -> bool {
    let Expr::Call { args, operator, .. } = q else { return false };
    let [l, r] = &args[..] else { return false };
    equality_family(*operator).is_some()
        && ((strip(l) == strip(a) && strip(r) == strip(b))
            || (strip(l) == strip(b) && strip(r) == strip(a)))
}
