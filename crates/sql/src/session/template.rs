//! Statements of the simple protocol without their constants: `WHERE aid = 5` and `WHERE aid = 6` have one plan.
//!
//! # Purpose
//! Clients that write their values into the text send a new text each time. [`Templates`] keeps plans under the text with its whole numbers
//! struck out, and knows which of the numbers are parameters of the plan.
//!
//! # Invariants
//! A number becomes a parameter only where it is the whole of what the analyser sees as a constant of type integer, and where the plan
//! could not have depended on it: compared for equality with a column, all columns of a unique index being so compared; or a
//! value that INSERT or UPDATE writes, or an operand of arithmetic in one. All other numbers of the text must be the same again.
//! A plan is used under the catalogs, and the search path, that it was made under, and under no others.

use super::Session;
use super::prepared::Prepared;
use crate::analyse::ParamTypes;
use crate::parse::ast::{
    Expr, ExprKind, ObjectName, QueryStatement, Select, SelectBody, SetClause, TableRef,
};
use crate::parse::{Parsed, Statement};
use base::Result;
use engine::catalog::cache::SessionCatalog;
use engine::catalog::model::{CatalogView, RelationKind};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;
use types::{Datum, oids};

/// How many statements are kept.
const KEPT: usize = 256;
/// How many are remembered as having come once.
const SEEN: usize = 1024;
/// Longer texts are not looked at.
const LONGEST: usize = 2048;

/// A run of digits in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: usize,
    end: usize,
}

/// What stands where a run was.
enum Slot {
    /// A parameter of the plan, or its negative.
    Param { negative: bool },
    /// These digits and no others.
    Fixed(Box<str>),
}

struct Template {
    prepared: Rc<Prepared>,
    slots: Vec<Slot>,
    generation: u64,
    search_path: Rc<[String]>,
}

/// Plans by text without numbers.
#[derive(Default)]
pub(super) struct Templates {
    templates: HashMap<Box<str>, Template>,
    /// Hashes of keys that came once, by their low bits.
    seen: Vec<u64>,
    hasher: std::hash::RandomState,
    /// The key and the runs of the text looked up last.
    key: String,
    runs: Vec<Run>,
    /// How often a plan was found.
    used: u64,
}

/// Strikes the whole numbers out of `text`.
fn strike_out(text: &str, key: &mut String, runs: &mut Vec<Run>) {
    key.clear();
    runs.clear();
    let bytes = text.as_bytes();
    // Part of a name, of a number that is not whole, of $1: those digits stay.
    let joins = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$') || b >= 0x80;
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        if !joins(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && joins(bytes[at]) {
            at += 1;
        }
        if bytes[start..at].iter().all(u8::is_ascii_digit) {
            key.push_str(&text[copied..start]);
            // No text that is looked up has this byte.
            key.push('\u{1}');
            copied = at;
            runs.push(Run { start, end: at });
        }
    }
    key.push_str(&text[copied..]);
}

impl Templates {
    /// The plan for `text` and its parameters.
    pub(super) fn get(
        &mut self,
        text: &str,
        catalog: &SessionCatalog,
        path: &[String],
    ) -> Option<(Rc<Prepared>, Vec<Datum>)> {
        self.key.clear();
        // A text with the byte that stands for a number in it could be taken for another one.
        if text.len() > LONGEST || text.as_bytes().contains(&1) {
            return None;
        }
        strike_out(text, &mut self.key, &mut self.runs);
        let template = self.templates.get_mut(self.key.as_str())?;
        if *template.search_path != *path
            || !catalog.still_good(&mut template.generation, &template.prepared.footing)
        {
            return None;
        }
        let mut params = Vec::with_capacity(self.runs.len());
        for (slot, run) in template.slots.iter().zip(&self.runs) {
            let digits = &text[run.start..run.end];
            match slot {
                Slot::Fixed(same) if **same == *digits => {}
                Slot::Fixed(_) => return None,
                Slot::Param { negative } => {
                    let n = digits.parse::<i64>().ok()?;
                    let n = i32::try_from(if *negative { -n } else { n }).ok()?;
                    params.push(Datum::Int4(n));
                }
            }
        }
        self.used += 1;
        Some((Rc::clone(&template.prepared), params))
    }

    /// Whether the text looked up last has come before in all but its numbers.
    fn came_before(&mut self) -> bool {
        if self.key.is_empty() || self.runs.is_empty() {
            return false;
        }
        let hash = self.hasher.hash_one(self.key.as_str());
        self.seen.resize(SEEN, 0);
        let slot = usize::try_from(hash % SEEN as u64).unwrap_or(0);
        std::mem::replace(&mut self.seen[slot], hash) == hash
    }

    pub(super) fn clear(&mut self) {
        self.templates.clear();
    }
}

impl Session {
    /// How many statements of the simple protocol ran with the plan of another one that differs in numbers alone.
    pub fn templates_used(&self) -> u64 {
        self.templates.used
    }

    /// Keeps the statement that was prepared of the text looked up last, for the texts that differ from it in numbers alone.
    ///
    /// # Errors
    /// None of the statement's: one that does not analyse with parameters is not kept.
    pub(super) fn keep_template(&mut self, whole: &Prepared) -> Result<()> {
        let Some(parsed) = &whole.parsed else { return Ok(()) };
        let Statement::Query(query) = &parsed.statement else { return Ok(()) };
        // What is none by its form is not copied to find that out.
        if self.state.catalog.is_dirty() || !self.templates.came_before() || !has_form(query) {
            return Ok(());
        }
        let mut changed = Parsed::clone(parsed);
        let Statement::Query(query) = &mut changed.statement else { return Ok(()) };
        let mut taker = Taker { source: &parsed.source, taken: Vec::new() };
        if !taker.statement(query, self.state.as_ref())? || taker.taken.is_empty() {
            return Ok(());
        }
        let taken = taker.taken;
        let runs = self.templates.runs.clone();
        let mut slots = Vec::with_capacity(runs.len());
        // Parameters are numbered as they were met in the tree; values are read in the order of the text.
        let mut order: Vec<usize> = (0..taken.len()).collect();
        order.sort_by_key(|i| taken[*i].start);
        if !order.iter().enumerate().all(|(n, i)| n == *i) {
            return Ok(());
        }
        for run in &runs {
            slots.push(match taken.iter().find(|t| t.start == run.start) {
                Some(t) => Slot::Param { negative: t.negative },
                None => Slot::Fixed(parsed.source[run.start..run.end].into()),
            });
        }
        let params = slots.iter().filter(|s| matches!(s, Slot::Param { .. })).count();
        if params != taken.len() {
            return Ok(());
        }
        changed.max_param = u32::try_from(params).unwrap_or(u32::MAX);
        let types = ParamTypes::variable(vec![oids::INT4; params]);
        let Ok(prepared) = self.prepare(changed, types) else { return Ok(()) };
        if self.state.clock_read.get() {
            return Ok(());
        }
        if prepared.params.iter().any(|t| *t != oids::INT4) || prepared.params.len() != params {
            return Ok(());
        }
        if self.templates.templates.len() >= KEPT {
            self.templates.templates.clear();
        }
        prepared.identity.become_template_of(&whole.identity);
        let template = Template {
            prepared: Rc::new(prepared),
            slots,
            generation: self.state.catalog.generation(),
            search_path: self.state.search_path_names(),
        };
        self.templates.templates.insert(self.templates.key.as_str().into(), template);
        Ok(())
    }
}

/// Are statements of this form kept, if their conditions and values are such?
fn has_form(s: &QueryStatement) -> bool {
    match s {
        QueryStatement::Select(s) => {
            let SelectBody::Core(core) = &s.body else { return false };
            s.with.is_none()
                && s.order_by.is_empty()
                && s.limit.is_none()
                && s.offset.is_none()
                && matches!(core.from.as_slice(), [TableRef::Table { sample: None, .. }])
                && core.into.is_none()
                && core.group_by.is_empty()
                && core.having.is_none()
                && core.windows.is_empty()
        }
        QueryStatement::Update(u) => {
            let single = |clause: &SetClause| matches!(clause, SetClause::Single { .. });
            u.with.is_none() && u.from.is_empty() && u.set.iter().all(single)
        }
        QueryStatement::Delete(d) => d.with.is_none() && d.using.is_empty(),
        QueryStatement::Insert(i) => {
            let one_row = |source: &Select| {
                source.with.is_none()
                    && matches!(&source.body, SelectBody::Values(rows) if rows.len() == 1)
            };
            i.with.is_none() && i.on_conflict.is_none() && i.source.as_ref().is_some_and(one_row)
        }
        QueryStatement::Merge(_) => false,
    }
}

/// A number that has become a parameter.
struct Taken {
    /// Its first digit.
    start: usize,
    negative: bool,
}

/// Makes parameters of numbers.
struct Taker<'a> {
    source: &'a Arc<str>,
    taken: Vec<Taken>,
}

impl Taker<'_> {
    /// Takes the numbers of a statement that [`has_form`]. False: it is left as it is.
    fn statement(&mut self, s: &mut QueryStatement, catalog: &dyn CatalogView) -> Result<bool> {
        Ok(match s {
            QueryStatement::Select(s) => {
                let SelectBody::Core(core) = &mut s.body else { return Ok(false) };
                let [TableRef::Table { name, .. }] = core.from.as_slice() else {
                    return Ok(false);
                };
                self.one_row(name, core.filter.as_mut(), catalog)?
            }
            QueryStatement::Update(u) => {
                for clause in &mut u.set {
                    if let SetClause::Single { value, .. } = clause {
                        self.value(value);
                    }
                }
                self.one_row(&u.table, u.filter.as_mut(), catalog)?
            }
            QueryStatement::Delete(d) => self.one_row(&d.table, d.filter.as_mut(), catalog)?,
            QueryStatement::Insert(i) => {
                let Some(Select { body: SelectBody::Values(rows), .. }) = &mut i.source else {
                    return Ok(false);
                };
                rows.iter_mut().flatten().for_each(|value| self.value(value));
                true
            }
            QueryStatement::Merge(_) => false,
        })
    }

    /// A value that is written: a number, or arithmetic with one.
    fn value(&mut self, e: &mut Expr) {
        match &mut e.kind {
            ExprKind::Number(_) => {
                self.take(e);
            }
            ExprKind::Binary { op, left, right }
                if op.schema.is_none() && matches!(op.name.as_str(), "+" | "-" | "*") =>
            {
                self.value(left);
                self.value(right);
            }
            _ => {}
        }
    }

    /// Takes the numbers of a condition, if it can be true of one row at most.
    fn one_row(
        &mut self,
        table: &ObjectName,
        filter: Option<&mut Expr>,
        catalog: &dyn CatalogView,
    ) -> Result<bool> {
        let Some(filter) = filter else { return Ok(false) };
        let Some(table) = catalog.table_by_name(table.schema.as_deref(), &table.name)? else {
            return Ok(false);
        };
        if table.kind != RelationKind::Table {
            return Ok(false);
        }
        let mut columns = Vec::new();
        let conditions = match &mut filter.kind {
            ExprKind::And(list) => list.iter_mut().collect(),
            _ => vec![filter],
        };
        for condition in conditions {
            let ExprKind::Binary { op, left, right } = &mut condition.kind else { continue };
            if op.schema.is_some() || op.name != "=" {
                continue;
            }
            let (column, number) = match (&left.kind, &right.kind) {
                (ExprKind::Column(c), ExprKind::Number(_)) => (c.last().cloned(), right),
                (ExprKind::Number(_), ExprKind::Column(c)) => (c.last().cloned(), left),
                _ => continue,
            };
            if self.take(number) {
                columns.extend(column);
            }
        }
        let found = |number: i32| {
            let column = usize::try_from(number - 1).ok().and_then(|n| table.columns.get(n));
            column.is_some_and(|c| columns.contains(&c.name))
        };
        Ok(table.indexes.iter().any(|i| {
            i.unique
                && i.immediate
                && i.valid
                && i.predicate.is_none()
                && i.columns[..i.key_columns].iter().all(|c| c.expr.is_none() && found(c.column))
        }))
    }

    /// Makes a parameter of a number; false if it is no integer, or not written in the usual way.
    fn take(&mut self, e: &mut Expr) -> bool {
        let ExprKind::Number(text) = &e.kind else { return false };
        if text.parse::<i32>().is_err() {
            return false;
        }
        let Some(written) = self.source.get(e.loc as usize..) else { return false };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => match written.strip_prefix('-') {
                Some(rest) if rest.starts_with(digits) => (true, digits),
                _ => return false,
            },
            None if written.starts_with(text.as_str()) => (false, text.as_str()),
            None => return false,
        };
        // The number is all there is: no fraction, no exponent.
        let start = e.loc as usize + usize::from(negative);
        let after = self.source.as_bytes().get(start + digits.len());
        if after.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_')) {
            return false;
        }
        self.taken.push(Taken { start, negative });
        let number = u32::try_from(self.taken.len()).unwrap_or(u32::MAX);
        e.kind = ExprKind::Param(number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(text: &str) -> (String, Vec<&str>) {
        let (mut key, mut runs) = (String::new(), Vec::new());
        strike_out(text, &mut key, &mut runs);
        (key.replace('\u{1}', "?"), runs.iter().map(|r| &text[r.start..r.end]).collect())
    }

    #[test]
    fn whole_numbers_are_struck_out() {
        let (key, runs) =
            struck("SELECT a1, 12 FROM t WHERE b=-345 AND c=$1 AND d<1.5e3 OR é7=0x1F");
        assert_eq!(key, "SELECT a1, ? FROM t WHERE b=-? AND c=$1 AND d<1.5e3 OR é7=0x1F");
        assert_eq!(runs, ["12", "345"]);
        assert_eq!(struck("99").0, "?");
        assert_eq!(struck("").0, "");
    }
}
