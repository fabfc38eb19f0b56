//! SEARCH and CYCLE of a recursive WITH query, written out as columns of its two sides.
//!
//! # Purpose
//! Both sides become sub-selects, and beside their columns stand, as SQL's standard has it:
//! - SEARCH DEPTH FIRST: the rows that led to this one, `ARRAY[ROW(…)]` and then `sequence || ROW(…)`;
//! - SEARCH BREADTH FIRST: how many they are and this one, `ROW(0, …)` and then `ROW(depth + 1, …)`;
//! - CYCLE: whether this row is among those that led to it, and those; a row that is goes on to no others.
//!
//! What the recursive side adds to is what the row had that it comes from: columns of the WITH query that it names in its own FROM.

use super::pull_up::conjuncts;
use crate::analyse::set_ops::{empty_query, wrap};
use crate::query::{Cte, Cycle, Query, RteKind, Search, SetOperation, TargetEntry};
use base::{Result, bail};
use expr::tree::{CallForm, CaseWhen};
use expr::{Constant, Expr, TypeRef};
use types::Datum;
use types::oids::{INT8, RECORD, RECORD_ARRAY};

/// `int8pl`
const PLUS: u32 = 463;
/// `array_append`
const APPEND: u32 = 378;
/// `record_eq`, and its operator.
const EQUAL: (u32, u32) = (2981, 2988);

/// The query of a WITH query with the columns of its SEARCH and CYCLE.
///
/// # Errors
/// `0A000` where the recursive side does not name the query in its own FROM.
pub(super) fn written_out(def: &Cte, index: usize) -> Result<Query> {
    let mut q = (*def.query).clone();
    if def.added_columns() == 0 {
        return Ok(q);
    }
    let Some(SetOperation::Node { left, right, types, .. }) = &mut q.set_operation else {
        return Ok(q);
    };
    let (SetOperation::Leaf(left), SetOperation::Leaf(right)) = (&**left, &**right) else {
        return Ok(q);
    };
    let (left, right) = (*left, *right);
    let own = types.len();
    let added: Vec<(String, TypeRef)> =
        def.columns[own..].iter().cloned().zip(def.types[own..].iter().copied()).collect();
    types.extend(added.iter().map(|(_, ty)| *ty));
    for (leaf, recursive) in [(left, false), (right, true)] {
        let entry = &mut q.range_table[leaf];
        let RteKind::Subquery { query, .. } = &mut entry.kind else { continue };
        let side = std::mem::replace(&mut **query, empty_query());
        **query = match recursive {
            true => recursive_side(side, def, index, own, &added)?,
            false => first_side(side, def, &added),
        };
        entry.column_names.extend(added.iter().map(|(name, _)| name.clone()));
        entry.column_types.extend(added.iter().map(|(_, ty)| *ty));
    }
    let outputs = added.iter().enumerate();
    q.targets.extend(outputs.map(|(n, (name, ty))| output(name, column(left, own + n, *ty))));
    Ok(q)
}

fn output(name: &str, expr: Expr) -> TargetEntry {
    let name = name.to_owned();
    TargetEntry { expr, name, target_column: None, origin: (0, 0), hidden: false }
}

/// Column `n`, from 0, of an entry.
fn column(rte: usize, n: usize, ty: TypeRef) -> Expr {
    Expr::Var { levels_up: 0, rte, column: n as i32 + 1, ty }
}

/// The row of these columns of the sub-select that a side has become, behind `first`.
fn row(def: &Cte, names: &[String], first: Option<Expr>) -> Expr {
    let mut fields: Vec<Expr> = first.into_iter().collect();
    let mut called: Vec<String> = fields.iter().map(|_| "*DEPTH*".to_owned()).collect();
    for name in names {
        let at = def.columns.iter().position(|c| c == name).unwrap_or(0);
        fields.push(column(0, at, def.types[at]));
        called.push(name.clone());
    }
    Expr::Row { fields, names: called, ty: TypeRef::of(RECORD) }
}

fn list_of(row: Expr) -> Expr {
    Expr::Array {
        elements: vec![row],
        element_type: TypeRef::of(RECORD),
        multidim: false,
        ty: TypeRef::of(RECORD_ARRAY),
    }
}

fn call(function: u32, args: Vec<Expr>, ty: TypeRef) -> Expr {
    let arg_types = args.iter().map(Expr::ty).collect();
    Expr::Call { function, args, arg_types, ty, operator: 0, form: CallForm::Function }
}

fn bigint(n: i64) -> Expr {
    Expr::Const(Constant { ty: TypeRef::of(INT8), value: Datum::Int8(n) })
}

fn first_side(side: Query, def: &Cte, added: &[(String, TypeRef)]) -> Query {
    let mut values = Vec::new();
    if let Some(Search { breadth_first, columns, .. }) = &def.search {
        values.push(match breadth_first {
            true => row(def, columns, Some(bigint(0))),
            false => list_of(row(def, columns, None)),
        });
    }
    if let Some(cycle) = &def.cycle {
        values.push(cycle.default.clone());
        values.push(list_of(row(def, &cycle.columns, None)));
    }
    let mut out = wrap(side);
    out.targets.extend(added.iter().zip(values).map(|((name, _), e)| output(name, e)));
    out
}

fn recursive_side(
    mut side: Query,
    def: &Cte,
    index: usize,
    own: usize,
    added: &[(String, TypeRef)],
) -> Result<Query> {
    let is_itself = |kind: &RteKind| matches!(kind, RteKind::Cte { levels_up: 2, index: i, self_reference: true } if *i == index);
    let Some(itself) = side.range_table.iter().position(|r| is_itself(&r.kind)) else {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{}\" must be at the top level of its right-hand SELECT",
            def.name
        );
    };
    if !side.group_exprs.is_empty() || !side.grouping_sets.is_empty() {
        return Err(base::Error::unsupported(
            "SEARCH or CYCLE over a recursive term with GROUP BY",
        ));
    }
    let before = |n: usize| column(itself, own + n, added[n].1);
    let had: Vec<TargetEntry> =
        added.iter().enumerate().map(|(n, (name, _))| output(name, before(n))).collect();
    side.targets.extend(had);
    let mark = usize::from(def.search.is_some());
    if let Some(cycle) = &def.cycle {
        let mut conditions = Vec::new();
        side.filter.take().into_iter().for_each(|f| conjuncts(f, &mut conditions));
        conditions.push(over_mark(cycle, &before(mark)));
        side.filter = super::create::and_all(conditions);
    }
    let mut out = wrap(side);
    // What the row that it comes from had.
    let had = |n: usize| column(0, own + n, added[n].1);
    let mut values = Vec::new();
    if let Some(Search { breadth_first, columns, .. }) = &def.search {
        values.push(match breadth_first {
            true => row(def, columns, Some(one_deeper(had(0)))),
            false => appended(had(0), row(def, columns, None)),
        });
    }
    if let Some(cycle) = &def.cycle {
        let this = || row(def, &cycle.columns, None);
        values.push(marked(cycle, this(), had(mark + 1)));
        values.push(appended(had(mark + 1), this()));
    }
    let at = out.targets.len() - added.len();
    for (target, value) in out.targets[at..].iter_mut().zip(values) {
        target.expr = value;
    }
    Ok(out)
}

/// The row is not one that a cycle ends at.
fn over_mark(cycle: &Cycle, mark: &Expr) -> Expr {
    let mut e = cycle.goes_on.clone();
    e.rewrite(&mut |e| {
        let is = matches!(e, Expr::CaseTestValue(_));
        if is {
            *e = mark.clone();
        }
        is
    });
    e
}

fn appended(list: Expr, row: Expr) -> Expr {
    call(APPEND, vec![list, row], TypeRef::of(RECORD_ARRAY))
}

fn one_deeper(before: Expr) -> Expr {
    let ty = TypeRef::of(INT8);
    let depth = Expr::Field { arg: Box::new(before), index: 0, name: "*DEPTH*".into(), ty };
    call(PLUS, vec![depth, bigint(1)], ty)
}

fn marked(cycle: &Cycle, row: Expr, path: Expr) -> Expr {
    let (function, operator) = EQUAL;
    let among = Expr::ScalarArrayOp {
        function,
        operator,
        any: true,
        left: Box::new(row),
        array: Box::new(path),
    };
    Expr::Case {
        operand: None,
        arms: vec![CaseWhen { when: among, then: cycle.value.clone() }],
        otherwise: Some(Box::new(cycle.default.clone())),
        ty: cycle.value.ty(),
    }
}
