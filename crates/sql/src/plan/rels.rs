//! Relations, conditions and outer joins of one query level.

use super::path::{Path, PathKey};
use super::prep::{Global, LevelPlan};
use super::pull_up::JoinTree;
use super::selectivity::VarFacts;
use super::sub_select_keys::ByKey;
use crate::query::{JoinKind, Query, TableSample};
use base::{FactMap, Oid, Result};
use engine::catalog::model::{ColumnStatistics, Table};
use expr::tree::SortKey;
use expr::{Expr, TypeRef};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use types::Datum;

/// A set of relations of one level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct RelSet(pub u128);

impl std::fmt::Debug for RelSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:b}", self.0)
    }
}

impl RelSet {
    pub(crate) const EMPTY: RelSet = RelSet(0);
    pub(crate) fn one(i: usize) -> RelSet {
        RelSet(1 << i)
    }
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
    pub(crate) fn has(self, i: usize) -> bool {
        self.0 >> i & 1 == 1
    }
    pub(crate) fn or(self, o: RelSet) -> RelSet {
        RelSet(self.0 | o.0)
    }
    pub(crate) fn and(self, o: RelSet) -> RelSet {
        RelSet(self.0 & o.0)
    }
    pub(crate) fn minus(self, o: RelSet) -> RelSet {
        RelSet(self.0 & !o.0)
    }
    pub(crate) fn overlaps(self, o: RelSet) -> bool {
        self.0 & o.0 != 0
    }
    pub(crate) fn within(self, o: RelSet) -> bool {
        self.0 & !o.0 == 0
    }
    pub(crate) fn count(self) -> u32 {
        self.0.count_ones()
    }
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..128).filter(move |i| self.has(*i))
    }
}

/// What a relation is.
pub(crate) enum RelKind {
    Table(Arc<Table>),
    /// Planned, with its output columns.
    Subquery(Option<Box<LevelPlan>>),
    Function,
    Values,
    Cte {
        store: usize,
        work_table: bool,
    },
}

/// TABLESAMPLE, with parameters for what it refers to, and as it was written.
#[derive(Clone)]
pub(crate) struct SampleParts {
    pub asked: Box<TableSample>,
    pub told: Box<TableSample>,
}

/// A relation in the join space.
pub(crate) struct Rel {
    pub rte: usize,
    pub kind: RelKind,
    /// Columns that the scan yields.
    pub needed: BTreeSet<i32>,
    /// Those of them that somebody needs beside its own conditions.
    pub needed_beside: BTreeSet<i32>,
    /// Conditions on it alone.
    pub quals: Vec<Expr>,
    pub tuples: f64,
    pub pages: f64,
    pub rows: f64,
    pub width: i32,
    /// TABLESAMPLE
    pub sample: Option<SampleParts>,
    /// Relations that it refers to (LATERAL), and the parameters by which it does.
    pub lateral: RelSet,
    pub lateral_args: Vec<(usize, Expr)>,
    pub paths: Vec<Rc<Path>>,
    /// A sub-select that gives its rows in the query's order.
    pub ordered: bool,
    /// Plans of a sub-select for one value of a key at a time.
    pub by_keys: Vec<ByKey>,
    pub stats: RefCell<HashMap<i32, Option<Arc<ColumnStatistics>>>>,
    /// What is known of the columns of what is not a table; none: nothing.
    pub columns: Vec<VarFacts>,
}

/// An equality between two sides that can be joined on.
#[derive(Clone, Debug)]
pub(crate) struct Equality {
    pub left: Expr,
    pub right: Expr,
    pub left_rels: RelSet,
    pub right_rels: RelSet,
    pub function: u32,
    /// btree operator family.
    pub family: Oid,
}

/// A condition that is not on one relation alone.
#[derive(Clone, Debug)]
pub(crate) struct Qual {
    pub expr: Expr,
    /// Relations that must be joined first.
    pub required: RelSet,
    /// The outer join whose ON it is in.
    pub special: Option<usize>,
    pub equality: Option<Equality>,
}

/// A join that is not a plain inner one.
#[derive(Clone, Debug)]
pub(crate) struct SpecialJoin {
    pub kind: JoinKind,
    pub left: RelSet,
    pub right: RelSet,
    pub min_left: RelSet,
    pub min_right: RelSet,
    /// A left join's conditions on what it keeps, where rows are locked: to be asked of a newer version.
    pub on: Vec<Expr>,
}

/// Expressions known to be equal.
#[derive(Clone, Debug)]
pub(crate) struct EquivalenceClass {
    pub family: Oid,
    pub members: Vec<(Expr, RelSet)>,
    pub constant: bool,
}

/// How the rows of a path that was chosen for an order stand to it.
#[derive(Default)]
pub(crate) enum InOrder {
    /// They are to be sorted.
    #[default]
    Not,
    /// They begin in it.
    Begins(Presorted),
    /// They come in it.
    Whole,
}

impl InOrder {
    pub(crate) fn whole(&self) -> bool {
        matches!(self, InOrder::Whole)
    }
}

/// A sort of a path that is in the order of the first elements already: these, and what it costs.
pub(crate) struct Presorted {
    pub elements: Vec<SortKey>,
    pub startup: f64,
    pub total: f64,
}

/// One level's join problem.
pub(crate) struct JoinSpace<'g, 'a> {
    pub g: &'g mut Global<'a>,
    pub q: Query,
    pub rels: Vec<Rel>,
    pub rel_of_rte: Vec<Option<usize>>,
    pub quals: Vec<Qual>,
    pub constant_quals: Vec<Expr>,
    pub specials: Vec<SpecialJoin>,
    pub classes: Vec<EquivalenceClass>,
    /// Variables needed above all joins.
    pub top_vars: BTreeSet<(usize, i32)>,
    /// Where this level's entries begin in the statement's list of names.
    pub names_base: usize,
    /// Parameters of nested loops that no loop has taken yet.
    pub pending: Vec<(usize, Expr)>,
    /// What the side that leads the loop being made has made unique: all that is left of its columns.
    pub made_unique: Vec<Expr>,
    /// ORs over several relations, and how much conditions that they imply let through of one.
    pub implied_by_or: Vec<(Expr, f64)>,
    /// Order wanted at the top.
    pub wanted: Vec<PathKey>,
    /// Fraction of rows expected to be fetched (see `plan_level`).
    pub fraction: f64,
    /// How many rows are wanted, if the rows as they are read are sorted by ORDER BY and given.
    pub sorted_rows: Option<f64>,
}

/// The btree family and equality of an `=` operator.
pub(crate) fn equality_family(operator: u32) -> Option<Oid> {
    static MAP: OnceLock<FactMap<u32, Oid>> = OnceLock::new();
    MAP.get_or_init(|| {
        types::facts::family_operators()
            .iter()
            .filter(|a| a.strategy == 3 && a.method == Oid(403))
            .map(|a| (a.operator.0, a.family))
            .collect()
    })
    .get(&operator)
    .copied()
}

/// `=` of a family between two types: (operator, function).
pub(crate) fn family_equality(family: Oid, left: Oid, right: Oid) -> Option<(u32, u32)> {
    type Key = (Oid, Oid, Oid);
    static MAP: OnceLock<FactMap<Key, (u32, u32)>> = OnceLock::new();
    MAP.get_or_init(|| {
        types::facts::family_operators()
            .iter()
            .filter(|a| a.strategy == 3 && a.method == Oid(403))
            .filter_map(|a| {
                let o = types::registry::operator(a.operator)?;
                Some(((a.family, a.left, a.right), (o.oid.0, o.function.0)))
            })
            .collect()
    })
    .get(&(family, base_type(left), base_type(right)))
    .copied()
}

/// The btree strategy of an operator in a family.
pub(crate) fn family_strategy(family: Oid, operator: u32) -> Option<u16> {
    static MAP: OnceLock<FactMap<(Oid, u32), u16>> = OnceLock::new();
    MAP.get_or_init(|| {
        types::facts::family_operators()
            .iter()
            .filter(|a| a.purpose == 's' && a.method == Oid(403))
            .map(|a| ((a.family, a.operator.0), a.strategy))
            .collect()
    })
    .get(&(family, operator))
    .copied()
}

/// The family of an operator class.
pub(crate) fn class_family(class: Oid) -> Option<Oid> {
    static MAP: OnceLock<FactMap<Oid, Oid>> = OnceLock::new();
    MAP.get_or_init(|| types::facts::operator_classes().iter().map(|c| (c.oid, c.family)).collect())
        .get(&class)
        .copied()
}

/// The type whose operators a type uses.
pub(crate) fn base_type(t: Oid) -> Oid {
    use types::oids;
    match t {
        oids::VARCHAR => oids::TEXT,
        oids::CIDR => oids::INET,
        t if types::io::is_oid_like(t) => oids::OID,
        t if types::registry::type_info(t).is_some_and(types::TypeInfo::is_array) => oids::ANYARRAY,
        t if types::enums::is_enum(t) => oids::ANYENUM,
        t if types::row_types::is_row(t) => oids::RECORD,
        t => t,
    }
}

/// The default btree family of a type.
pub(crate) fn type_family(t: Oid) -> Option<Oid> {
    types::registry::default_btree_class(t).map(|c| c.family)
}

impl<'g, 'a> JoinSpace<'g, 'a> {
    /// Collects relations and conditions of a prepared query.
    pub(crate) fn new(g: &'g mut Global<'a>, q: Query, tree: &JoinTree) -> Result<Self> {
        let names_base = g.names.len();
        for r in &q.range_table {
            g.names.push((r.alias.clone(), r.column_names.clone()));
        }
        let mut list = Vec::new();
        tree.rels(&mut list);
        if list.len() > 120 {
            return Err(base::Error::unsupported("a query level with more than 120 relations"));
        }
        let mut rel_of_rte = vec![None; q.range_table.len()];
        for (i, r) in list.iter().enumerate() {
            rel_of_rte[*r] = Some(i);
        }
        let mut s = JoinSpace {
            g,
            q,
            rels: Vec::new(),
            rel_of_rte,
            quals: Vec::new(),
            constant_quals: Vec::new(),
            specials: Vec::new(),
            classes: Vec::new(),
            top_vars: BTreeSet::new(),
            names_base,
            pending: Vec::new(),
            made_unique: Vec::new(),
            implied_by_or: Vec::new(),
            wanted: Vec::new(),
            fraction: 0.0,
            sorted_rows: None,
        };
        for rte in list {
            let rel = s.base_rel(rte)?;
            s.rels.push(rel);
        }
        // Lateral references are counted when every relation has its number.
        for i in 0..s.rels.len() {
            let mut set = RelSet::EMPTY;
            for (_, e) in &s.rels[i].lateral_args {
                set = set.or(s.rels_of(e));
            }
            s.rels[i].lateral = set.minus(RelSet::one(i));
        }
        s.collect(tree);
        s.expand_lateral();
        Ok(s)
    }

    /// Relations an expression refers to.
    pub(crate) fn rels_of(&self, e: &Expr) -> RelSet {
        let mut set = RelSet::EMPTY;
        e.walk(&mut |e| {
            if let Expr::Var { levels_up: 0, rte, .. } = e
                && let Some(Some(i)) = self.rel_of_rte.get(*rte)
            {
                set = set.or(RelSet::one(*i));
            }
        });
        set
    }

    /// The type of a column of a range-table entry.
    pub(crate) fn column_type(&self, rte: usize, column: i32) -> TypeRef {
        use types::oids;
        match column {
            -1 => TypeRef::of(oids::TID),
            -2 | -4 => TypeRef::of(oids::XID),
            -3 | -5 => TypeRef::of(oids::CID),
            -6 => TypeRef::of(oids::OID),
            _ => usize::try_from(column - 1)
                .ok()
                .and_then(|c| self.q.range_table[rte].column_types.get(c).copied())
                .unwrap_or(TypeRef::of(oids::RECORD)),
        }
    }

    pub(crate) fn take_constant_quals(&mut self) -> Vec<Expr> {
        std::mem::take(&mut self.constant_quals)
    }

    fn collect(&mut self, tree: &JoinTree) -> RelSet {
        match tree {
            JoinTree::Rel(rte) => self.rel_of_rte[*rte].map_or(RelSet::EMPTY, RelSet::one),
            JoinTree::Group { items, quals } => {
                let first = self.specials.len();
                let mut all = RelSet::EMPTY;
                for i in items {
                    all = all.or(self.collect(i));
                }
                for e in quals {
                    let below = first..self.specials.len();
                    self.add_qual(e, all, below, None);
                }
                all
            }
            JoinTree::Join { kind, left, right, quals } => {
                let first = self.specials.len();
                let l = self.collect(left);
                let middle = self.specials.len();
                let r = self.collect(right);
                let number = self.specials.len();
                let mut used = RelSet::EMPTY;
                for e in quals {
                    used = used.or(self.rels_of(e));
                }
                let mut min_left = used.and(l);
                let mut min_right = r;
                if *kind == JoinKind::Full {
                    min_left = l;
                }
                // An outer join below whose padded side the condition looks at comes first.
                for s in &self.specials[first..middle] {
                    let nullable =
                        if s.kind == JoinKind::Full { s.left.or(s.right) } else { s.right };
                    if nullable.overlaps(min_left) || s.kind == JoinKind::Full {
                        min_left = min_left.or(s.min_left).or(s.min_right);
                    }
                }
                if min_left.is_empty() {
                    min_left = l;
                }
                if min_right.is_empty() {
                    min_right = r;
                }
                let locks = *kind == JoinKind::Left && !self.q.row_marks.is_empty();
                let asked = quals.iter().filter(|e| locks && self.rels_of(e).overlaps(l));
                let on = asked.cloned().collect();
                self.specials.push(SpecialJoin {
                    on,
                    kind: *kind,
                    left: l,
                    right: r,
                    min_left,
                    min_right,
                });
                for e in quals {
                    let rels = self.rels_of(e);
                    let inner_only = *kind != JoinKind::Full && rels.within(r) && !rels.is_empty();
                    let delayed = self.specials[middle..number].iter().any(|s| {
                        let n = if s.kind == JoinKind::Full { s.left.or(s.right) } else { s.right };
                        n.overlaps(rels)
                    });
                    if inner_only && !delayed {
                        self.add_qual(e, r, middle..number, None);
                    } else if *kind == JoinKind::Semi && rels.within(l) && !rels.is_empty() {
                        self.add_qual(e, l, first..middle, None);
                    } else {
                        self.add_qual(e, l.or(r), number..number, Some(number));
                    }
                }
                l.or(r)
            }
        }
    }

    fn add_qual(
        &mut self,
        e: &Expr,
        scope: RelSet,
        below: std::ops::Range<usize>,
        special: Option<usize>,
    ) {
        if matches!(e, Expr::Const(c) if matches!(c.value, Datum::Bool(true))) {
            return;
        }
        let rels = self.rels_of(e);
        let mut required = rels;
        if let Some(s) = special {
            required = required.or(self.specials[s].min_left).or(self.specials[s].min_right);
        } else {
            loop {
                let before = required;
                for s in self.specials.get(below.clone()).unwrap_or(&[]) {
                    let nullable =
                        if s.kind == JoinKind::Full { s.left.or(s.right) } else { s.right };
                    if nullable.overlaps(required)
                        && matches!(s.kind, JoinKind::Left | JoinKind::Full)
                    {
                        required = required.or(s.min_left).or(s.min_right);
                    }
                }
                if required == before {
                    break;
                }
            }
        }
        if required.is_empty() {
            if scope.is_empty() || scope.count() as usize == self.rels.len() {
                self.constant_quals.push(e.clone());
                return;
            }
            required = scope;
        }
        if special.is_none() && required.count() == 1 {
            if let Some(i) = required.iter().next() {
                self.rels[i].quals.push(e.clone());
            }
            return;
        }
        let equality = self.equality(e);
        self.quals.push(Qual { expr: e.clone(), required, special, equality });
    }

    /// The two sides of an equality between different relations.
    pub(crate) fn equality(&self, e: &Expr) -> Option<Equality> {
        let Expr::Call { function, args, operator, .. } = e else { return None };
        let [l, r] = &args[..] else { return None };
        if *operator == 0 {
            return None;
        }
        let family = equality_family(*operator)?;
        let (left_rels, right_rels) = (self.rels_of(l), self.rels_of(r));
        if left_rels.overlaps(right_rels) || left_rels.is_empty() || right_rels.is_empty() {
            return None;
        }
        if expr::fold::contains_volatile(e) {
            return None;
        }
        Some(Equality {
            left: l.clone(),
            right: r.clone(),
            left_rels,
            right_rels,
            function: *function,
            family,
        })
    }

    /// A lateral relation under the padded side of an outer join needs that join's left side first.
    pub(crate) fn expand_lateral(&mut self) {
        for i in 0..self.rels.len() {
            if self.rels[i].lateral.is_empty() {
                continue;
            }
            // Reach through other lateral relations.
            loop {
                let before = self.rels[i].lateral;
                let mut set = before;
                for j in before.iter() {
                    set = set.or(self.rels[j].lateral);
                }
                self.rels[i].lateral = set.minus(RelSet::one(i));
                if self.rels[i].lateral == before {
                    break;
                }
            }
        }
        for s in 0..self.specials.len() {
            let mut need = RelSet::EMPTY;
            for i in self.specials[s].right.iter() {
                need = need.or(self.rels[i].lateral);
            }
            let left = self.specials[s].left;
            self.specials[s].min_left = self.specials[s].min_left.or(need.and(left));
        }
    }

    /// Notes which columns of which relations are needed, and by whom.
    pub(crate) fn note_needed<'e>(&mut self, exprs: impl Iterator<Item = &'e Expr>, top: bool) {
        for e in exprs {
            e.walk(&mut |e| {
                if let Expr::Var { levels_up: 0, rte, column, .. } = e {
                    if let Some(Some(i)) = self.rel_of_rte.get(*rte) {
                        self.rels[*i].needed.insert(*column);
                    }
                    if top {
                        self.top_vars.insert((*rte, *column));
                    }
                }
            });
        }
    }

    /// Notes the columns that conditions need. Called once, before paths are made.
    pub(crate) fn note_qual_columns(&mut self) {
        let mut exprs: Vec<Expr> = self.quals.iter().map(|q| q.expr.clone()).collect();
        exprs.extend(self.rels.iter().flat_map(|r| r.lateral_args.iter().map(|a| a.1.clone())));
        exprs.extend(self.constant_quals.iter().cloned());
        // What equals a constant, and nothing of another relation, is in the relation's conditions and nowhere else.
        let (alone, joined): (Vec<_>, Vec<_>) = self.classes.iter().partition(|c| {
            let mut of_rels = c.members.iter().map(|m| m.1).filter(|rels| !rels.is_empty());
            let first = of_rels.next().unwrap_or(RelSet::EMPTY);
            c.constant && first.count() <= 1 && of_rels.all(|rels| rels == first)
        });
        let members = |c: &&EquivalenceClass| c.members.iter().map(|m| m.0.clone()).collect();
        exprs.extend(joined.iter().flat_map::<Vec<Expr>, _>(members));
        let of_conditions: Vec<Expr> = alone.iter().flat_map::<Vec<Expr>, _>(members).collect();
        self.note_needed(exprs.iter(), false);
        for rel in &mut self.rels {
            rel.needed_beside = rel.needed.clone();
        }
        let own: Vec<Expr> = self.rels.iter().flat_map(|r| r.quals.iter().cloned()).collect();
        self.note_needed(own.iter().chain(&of_conditions), false);
    }

    /// True if a variable is needed above the join of `rels`.
    pub(crate) fn needed_above(&self, rte: usize, column: i32, rels: RelSet) -> bool {
        if self.top_vars.contains(&(rte, column)) {
            return true;
        }
        let uses = |e: &Expr| {
            e.any(&mut |e| {
                matches!(e, Expr::Var { levels_up: 0, rte: r, column: c, .. } if *r == rte && *c == column)
            })
        };
        self.quals.iter().any(|q| !q.required.within(rels) && uses(&q.expr))
            || self.classes.iter().any(|c| {
                c.members.iter().any(|(e, r)| r.within(rels) && uses(e))
                    && c.members.iter().any(|(_, r)| !r.within(rels))
            })
            || self
                .rels
                .iter()
                .enumerate()
                .any(|(i, r)| !rels.has(i) && r.lateral_args.iter().any(|(_, e)| uses(e)))
    }

    /// The table of a relation, if it is one.
    pub(crate) fn table(&self, rel: usize) -> Option<&Arc<Table>> {
        match &self.rels[rel].kind {
            RelKind::Table(t) => Some(t),
            _ => None,
        }
    }
}
