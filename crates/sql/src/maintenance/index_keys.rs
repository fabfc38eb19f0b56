//! # Purpose
//! How VACUUM makes the keys of an index's dead entries, of what dead line pointers keep of their rows: the columns as they are, or expressions
//! evaluated, for the rows of which a partial index has entries.
//!
//! # Invariants
//! - What was not kept of a row is never evaluated: its place stays empty, and what reads it is not asked.
//! - *No entry* is said of a row only if insertion can't have thought otherwise. Its columns are those that the entry would have been made of: an update
//!   that changes a column of the predicate is no HOT update, and an index build makes its entry of a chain's newest member, whose columns are kept
//!   (if that one went before an older one, this is not believed: [`page::tuple::KeySource::is_newest`]). And the predicate has asked nothing of the
//!   session ([`Outside`]), whose settings, or the database whose locale, could have answered something else then; nor is there a function in it that
//!   has tables of its own which change with the years ([`depends_on_tables`]).
//! - A key that was made may be another one than insertion made (an expression may ask for a setting: `float8::text` does). It is not found then, and who
//!   does not find one reads the index whole.
//! - Whatever fails is not to be had. The rows are dead: an expression may fail of a value with which no row could be inserted.
//!
//! # Locks
//! Keys are made with the heap page latched, in several threads: nothing is asked of catalogs here.

use crate::ddl::index_swap::class_row;
use crate::exec::modify::compile_stored;
use crate::session::SessionState;
use base::{Error, Oid, Result};
use engine::catalog::model::{CatalogView, Index, Table};
use engine::relation::{index_columns, is_plain};
use expr::Expr;
use expr::code::Code;
use expr::eval::EvalContext;
use page::tuple::AttrValue;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use types::Datum;
use types::datum::{EnumValue, RecordColumn, Text};
use types::env::{Env, Style};
use vacuum::{ComputedKey, IndexKeys, KeyFunction, RowKey};

/// How deep an expression is evaluated: VACUUM's helpers have small stacks.
const DEPTH: u32 = 100;
/// A longer key is not made. (The index itself holds somewhat longer ones, and refuses those beyond.)
const LONGEST_KEY: usize = 2000;

/// "C" and "POSIX".
const C_COLLATIONS: [u32; 2] = [950, 951];

/// How the keys of an index's dead entries are made. None: they can't be.
///
/// # Errors
/// I/O.
pub(super) fn index_keys(
    state: &SessionState,
    table: &Table,
    index: &Index,
) -> Result<Option<IndexKeys>> {
    let first = &index.columns[0];
    let place = if first.expr.is_none() { (table.oid, first.column) } else { (index.oid, 1) };
    let known = state.column_statistics(place.0, place.1)?;
    let correlation = known.and_then(|s| s.correlation).map(f64::from);
    if is_plain(index) {
        let keys = index.columns[..index.key_columns].iter();
        let at = |c: i32| usize::try_from(c - 1).unwrap_or(usize::MAX);
        return Ok(Some(IndexKeys::plain(keys.map(|c| at(c.column)).collect(), correlation)));
    }
    let Some(function) = Computed::new(state, table, index)? else { return Ok(None) };
    let share = match &index.predicate {
        Some(_) => {
            let (own, all) =
                (class_row(state, index.oid)?.f32("reltuples"), f64::from(table.reltuples));
            let known = own >= 0.0 && all > 0.0;
            Some(if known { (f64::from(own) / all).min(1.0) } else { 1.0 })
        }
        None => None,
    };
    let columns = function.columns.iter().map(|c| c.at).collect();
    Ok(Some(IndexKeys { columns, function: Some(Arc::new(function)), share, correlation }))
}

/// A column that the keys are made of.
struct Column {
    at: usize,
    ty: Oid,
}

/// Something evaluated, and which columns that reads.
struct Evaluated {
    code: Code,
    reads: Vec<usize>,
}

enum Part {
    /// The column as it is.
    Column(usize),
    /// An expression, and the type of what it gives.
    Expr(Evaluated, Oid),
}

/// Evaluates an index's predicate and expressions.
struct Computed {
    columns: Vec<Column>,
    /// The row has so many places.
    places: usize,
    predicate: Option<Evaluated>,
    parts: Vec<Part>,
    style: Style,
}

impl Computed {
    fn new(state: &SessionState, table: &Table, index: &Index) -> Result<Option<Computed>> {
        if index.predicate.as_ref().is_some_and(|p| depends_on_tables(p)) {
            return Ok(None);
        }
        let mut columns = Vec::new();
        for at in index_columns(index) {
            let Some(at) = usize::try_from(at).ok().and_then(|n| n.checked_sub(1)) else {
                return Ok(None);
            };
            let Some(column) = table.columns.get(at).filter(|c| !c.dropped && !c.is_virtual())
            else {
                return Ok(None);
            };
            columns.push(Column { at, ty: column.ty.oid });
        }
        let evaluated = |e: &Expr| -> Result<Evaluated> {
            let mut reads = Vec::new();
            e.walk(&mut |e| {
                if let Expr::Var { column, .. } = e {
                    reads.push(usize::try_from(*column - 1).unwrap_or(usize::MAX));
                }
            });
            Ok(Evaluated { code: compile_stored(e)?, reads })
        };
        let part = |c: &engine::catalog::model::IndexColumn| -> Result<Part> {
            Ok(match &c.expr {
                Some(e) => Part::Expr(evaluated(e)?, c.ty.oid),
                None => Part::Column(usize::try_from(c.column - 1).unwrap_or(usize::MAX)),
            })
        };
        Ok(Some(Computed {
            places: columns.iter().map(|c| c.at + 1).max().unwrap_or(0),
            columns,
            predicate: index.predicate.as_ref().map(|p| evaluated(p)).transpose()?,
            parts: index.columns[..index.key_columns].iter().map(part).collect::<Result<_>>()?,
            style: Style { ctype: state.database.ctype, ..Style::default() },
        }))
    }

    /// The values that `what` reads, each in its place; None: one of them was not kept.
    fn read(
        &self,
        what: &Evaluated,
        row: &[Option<AttrValue<'_>>],
        to: &mut [Datum],
    ) -> Option<()> {
        for column in self.columns.iter().filter(|c| what.reads.contains(&c.at)) {
            to[column.at] = match row.get(column.at)?.as_ref()? {
                AttrValue::Null => Datum::Null,
                AttrValue::Inline(bytes) => types::decode(column.ty, bytes).ok()?,
                _ => return None,
            };
        }
        Some(())
    }

    /// None: it can't be told.
    fn make(&self, row: &[Option<AttrValue<'_>>], out: &mut ComputedKey) -> Option<RowKey> {
        let outside = Outside { style: &self.style, asked: Cell::new(false) };
        let params = RefCell::new(Vec::new());
        let mut cx = EvalContext::new(&outside, &params);
        cx.depth_left = Cell::new(DEPTH);
        let mut values = vec![Datum::Null; self.places];
        if let Some(predicate) = &self.predicate {
            self.read(predicate, row, &mut values)?;
            if !predicate.code.is_true(&values, &cx).ok()? {
                return (!outside.asked.get()).then_some(RowKey::NoEntry);
            }
        }
        for part in &self.parts {
            let from = out.bytes.len();
            let is_null = match part {
                Part::Column(at) => match row.get(*at)?.as_ref()? {
                    AttrValue::Null => true,
                    AttrValue::Inline(bytes) => {
                        out.bytes.extend_from_slice(bytes);
                        false
                    }
                    _ => return None,
                },
                Part::Expr(what, ty) => {
                    self.read(what, row, &mut values)?;
                    let mut scratch = Datum::Null;
                    let value = what.code.eval_ref(&values, &cx, &mut scratch).ok()?;
                    if !value.is_null() {
                        types::encode(*ty, value, &mut out.bytes).ok()?;
                    }
                    value.is_null()
                }
            };
            out.columns.push((!is_null).then_some(from..out.bytes.len()));
        }
        (out.bytes.len() <= LONGEST_KEY).then_some(RowKey::Made)
    }
}

impl KeyFunction for Computed {
    fn key(&self, row: &[Option<AttrValue<'_>>], out: &mut ComputedKey) -> RowKey {
        self.make(row, out).unwrap_or(RowKey::Unknown)
    }
}

/// Is there a function in it that has tables of its own, which may be others in another version of this program: time zones, what letters are made
/// of? PostgreSQL's answer to such a change is that the index must be built anew; until it is, its entries must go as they came.
fn depends_on_tables(predicate: &Expr) -> bool {
    predicate.any(&mut |e| match e {
        Expr::Call { function, .. } | Expr::ScalarArrayOp { function, .. } => {
            types::facts::proc(Oid(*function)).is_none_or(|p| {
                let has_tables = ["zone", "normal", "unicode", "jsonb_path", "tz"];
                has_tables.iter().any(|word| p.symbol.contains(word))
            })
        }
        Expr::Json(_) | Expr::SubLink { .. } | Expr::SubPlan { .. } => true,
        Expr::Collate { collation, .. } => !C_COLLATIONS.contains(collation),
        _ => false,
    })
}

/// What an expression sees of the outside: the database's locale, and nothing else. It is noted if it asks.
struct Outside<'a> {
    style: &'a Style,
    asked: Cell<bool>,
}

impl Outside<'_> {
    fn refuse<T>(&self) -> Result<T> {
        self.asked.set(true);
        Err(Error::unsupported("an index's expression that asks a session"))
    }
}

impl Env for Outside<'_> {
    fn setting(&self, _: &str) -> Option<String> {
        self.asked.set(true);
        None
    }
    fn style(&self) -> &Style {
        self.asked.set(true);
        self.style
    }
    fn transaction_timestamp(&self) -> i64 {
        self.asked.set(true);
        0
    }
    fn statement_timestamp(&self) -> i64 {
        self.asked.set(true);
        0
    }
    fn check_cancel(&self) -> Result<()> {
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self.asked.set(true);
        &()
    }
    fn object_oid(&self, _: Oid, _: &str) -> Result<Option<Oid>> {
        self.refuse()
    }
    fn object_name(&self, _: Oid, _: Oid) -> Option<String> {
        self.asked.set(true);
        None
    }
    fn enum_label(&self, _: EnumValue) -> Result<Text> {
        self.refuse()
    }
    fn enum_value(&self, _: Oid, _: &str) -> Result<EnumValue> {
        self.refuse()
    }
    fn check_enum_use(&self, _: EnumValue) -> Result<()> {
        Ok(())
    }
    fn check_domain(&self, _: Oid, _: &Datum) -> Result<()> {
        self.refuse()
    }
    fn row_columns(&self, _: Oid) -> Result<Option<Arc<[RecordColumn]>>> {
        self.refuse()
    }
    fn enum_values(&self, _: Oid) -> Result<Vec<EnumValue>> {
        self.refuse()
    }
}
