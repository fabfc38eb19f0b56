//! Ways of computing a set of relations, with their costs.

use super::rels::RelSet;
use super::{IndexKey, JoinKey, TidBound};
use crate::query::JoinKind;
use engine::catalog::model::Index;
use expr::Expr;
use std::rc::Rc;
use std::sync::Arc;

/// What a way costs more when its `enable_*` setting is off: it is taken only if there is no
/// other (`disable_cost` of PostgreSQL to 17; 18 counts disabled nodes instead).
pub(crate) const DISABLED: f64 = 1e10;

/// An element of an order: an equivalence class and a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PathKey {
    pub class: usize,
    pub descending: bool,
    pub nulls_first: bool,
}

/// How a join is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JoinMethod {
    NestLoop,
    Hash,
    Merge,
}

/// A join.
#[derive(Debug)]
pub(crate) struct JoinPath {
    pub method: JoinMethod,
    pub kind: JoinKind,
    pub left: Rc<Path>,
    pub right: Rc<Path>,
    /// Hash and merge: equalities, over variables.
    pub keys: Vec<JoinKey>,
    /// The rest of the join condition.
    pub on: Vec<Expr>,
    /// Conditions after an outer join.
    pub filter: Vec<Expr>,
    /// Keep the right side's rows.
    pub materialize: bool,
}

/// What a path does.
#[derive(Debug)]
pub(crate) enum PathKind {
    /// One row, if the conditions hold.
    Result { quals: Vec<Expr> },
    /// Whole table.
    Seq { rel: usize, quals: Vec<Expr> },
    /// TABLESAMPLE
    Sample { rel: usize, quals: Vec<Expr> },
    /// Through an index.
    Index {
        rel: usize,
        index: Arc<Index>,
        keys: Vec<IndexKey>,
        quals: Vec<Expr>,
        backward: bool,
        index_only: bool,
        /// Columns of the relation that are left out: only conditions that the index's predicate implies need them.
        left_out: Vec<i32>,
    },
    /// Several indexes' TIDs.
    Bitmap { rel: usize, arms: Vec<(Arc<Index>, Vec<IndexKey>)>, quals: Vec<Expr> },
    /// By address: `tids`, which the condition `asked` asks for.
    Tid { rel: usize, tids: Expr, asked: Expr, quals: Vec<Expr> },
    /// The pages between bounds of the address (true: from here on); conditions on it, and the others.
    TidRange { rel: usize, bounds: Vec<TidBound>, asked: Vec<Expr>, rest: Vec<Expr> },
    /// Sub-select, perhaps by such a key of it ([`super::sub_select_keys`]), function, VALUES, CTE.
    Other { rel: usize, quals: Vec<Expr>, by_key: Option<usize> },
    /// A join.
    Join(JoinPath),
    /// Sorted by expressions.
    Sort { input: Rc<Path>, exprs: Vec<(Expr, bool, bool)> },
    /// Duplicates by these expressions taken out.
    Distinct { input: Rc<Path>, exprs: Vec<Expr> },
}

/// A way of computing `rels`.
#[derive(Debug)]
pub(crate) struct Path {
    pub kind: PathKind,
    pub rels: RelSet,
    pub rows: f64,
    pub startup: f64,
    pub total: f64,
    /// The order of its rows.
    pub keys: Vec<PathKey>,
    /// Relations whose values it needs from an enclosing nested loop.
    pub param: RelSet,
    pub width: i32,
}

/// True if an order begins with what is wanted.
pub(crate) fn ordered(have: &[PathKey], want: &[PathKey]) -> bool {
    have.len() >= want.len() && have[..want.len()] == *want
}

const FUZZ: f64 = 1.01;

/// What a path is judged by.
#[derive(Clone, Copy)]
pub(crate) struct Merit<'a> {
    pub rows: f64,
    pub startup: f64,
    pub total: f64,
    pub keys: &'a [PathKey],
    pub param: RelSet,
}

impl Merit<'_> {
    /// At least as good in everything.
    fn beats(&self, other: &Merit<'_>) -> bool {
        self.total <= other.total * FUZZ
            && self.startup <= other.startup * FUZZ
            && self.param.within(other.param)
            && self.rows <= other.rows * FUZZ
            && ordered(self.keys, other.keys)
    }
    /// True if [`add_path`] would not take such a path: it need not be made.
    pub(crate) fn is_beaten(&self, list: &[Rc<Path>]) -> bool {
        list.iter().any(|p| p.merit().beats(self))
    }
}

impl Path {
    fn merit(&self) -> Merit<'_> {
        let Path { rows, startup, total, param, .. } = *self;
        Merit { rows, startup, total, keys: &self.keys, param }
    }
}

/// Adds a path unless another is at least as good in everything; drops those it beats.
pub(crate) fn add_path(list: &mut Vec<Rc<Path>>, new: Path) {
    if new.merit().is_beaten(list) {
        return;
    }
    list.retain(|p| !new.merit().beats(&p.merit()));
    list.push(Rc::new(new));
}

/// The cheapest path without parameters.
pub(crate) fn cheapest(list: &[Rc<Path>]) -> Option<Rc<Path>> {
    list.iter().filter(|p| p.param.is_empty()).min_by(|a, b| a.total.total_cmp(&b.total)).cloned()
}
