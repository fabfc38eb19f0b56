//! Filters, projections, and functions that return sets.

use super::batch::{Batch, Later};
use super::{Cx, Node, Told};
use base::{Oid, Result, SqlError, SqlState};
use expr::code::Code;
use expr::{Expr, TypeRef};
use types::registry::RowIter;
use types::{Datum, FunctionBody};

/// Lets rows through that satisfy a condition.
pub(crate) struct FilterNode {
    pub input: Box<dyn Node>,
    pub filter: Code,
    pub batch: Batch,
    /// The condition has no columns: tested once.
    pub constant: bool,
    pub removed: u64,
    pub later: Later,
}

impl Node for FilterNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        if self.constant && !self.filter.is_true(&[], &cx.eval)? {
            out.reset(out.width());
            return Ok(());
        }
        self.later.raise()?;
        loop {
            cx.poll()?;
            self.input.next(cx, &mut self.batch, max)?;
            out.reset(self.batch.width());
            if self.batch.is_empty() {
                return Ok(());
            }
            for row in self.batch.rows() {
                match if self.constant { Ok(true) } else { self.filter.is_true(row, &cx.eval) } {
                    Ok(true) => out.push(row),
                    Ok(false) => {}
                    Err(error) => return self.later.keep(error, out),
                }
            }
            self.removed += (self.batch.len() - out.len()) as u64;
            if !out.is_empty() {
                return Ok(());
            }
        }
    }
    fn let_go(&mut self) {
        self.input.let_go();
    }
    fn told(&self) -> Told {
        Told { removed: self.removed, ..Told::default() }
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.later.forget();
        self.input.rescan(cx)
    }
}

/// Computes expressions.
pub(crate) struct ProjectNode {
    pub input: Box<dyn Node>,
    pub exprs: Vec<Code>,
    /// Of each expression whether it is a column that none behind it looks at: its value is moved, not copied.
    pub moved: Vec<bool>,
    pub batch: Batch,
    later: Later,
}

impl ProjectNode {
    pub(crate) fn new(input: Box<dyn Node>, exprs: &[Expr]) -> Result<ProjectNode> {
        let uses = |e: &Expr, slot: usize| {
            e.any(&mut |e| matches!(e, Expr::Slot { index, .. } if *index == slot))
        };
        let moved = |(n, e): (usize, &Expr)| match e {
            Expr::Slot { index, .. } => !exprs[n + 1..].iter().any(|e| uses(e, *index)),
            _ => false,
        };
        Ok(ProjectNode {
            input,
            moved: exprs.iter().enumerate().map(moved).collect(),
            exprs: exprs.iter().map(expr::code::compile).collect::<Result<_>>()?,
            batch: Batch::new(),
            later: Later::default(),
        })
    }
}

impl Node for ProjectNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        self.later.raise()?;
        self.input.next(cx, &mut self.batch, max)?;
        out.reset(self.exprs.len());
        for i in 0..self.batch.len() {
            let row = self.batch.row_mut(i);
            for (e, moved) in self.exprs.iter().zip(&self.moved) {
                out.push_value(match e {
                    // It may be late: then so may this.
                    Code::Slot(i) if *moved => std::mem::take(&mut row[*i]),
                    Code::Slot(i) => row[*i].clone(),
                    e => match e.eval(row, &cx.eval) {
                        Ok(value) => value,
                        Err(error) => return self.later.keep(error, out),
                    },
                });
            }
            out.end_row();
        }
        Ok(())
    }
    fn let_go(&mut self) {
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.later.forget();
        self.input.rescan(cx)
    }
    fn set_bound(&mut self, rows: Option<usize>) {
        self.input.set_bound(rows);
    }
}

/// A set-returning call.
pub(crate) struct SetCall {
    pub body: SetBody,
    pub args: Vec<Code>,
    pub strict: bool,
    pub columns: usize,
    /// The columns that a column definition list says a record has.
    pub defined: Option<Vec<TypeRef>>,
    /// A record is taken apart, though it may have one column.
    pub spread: bool,
}

/// What yields the rows.
pub(crate) enum SetBody {
    Set(types::registry::SetFn),
    /// One value (a function in FROM that returns no set).
    One(Code),
    /// JSON_TABLE()
    Table(Box<expr::json::JsonTableCode>),
}

impl SetCall {
    pub(crate) fn compile(e: &expr::Expr, columns: usize) -> Result<SetCall> {
        if let expr::Expr::Call { function, args, .. } = e
            && let Some(info) = types::registry::function(Oid(*function))
            && info.returns_set()
            && let FunctionBody::Set(f) = info.body
        {
            return Ok(SetCall {
                body: SetBody::Set(f),
                args: args.iter().map(expr::code::compile).collect::<Result<_>>()?,
                strict: info.strict,
                columns,
                defined: None,
                spread: false,
            });
        }
        let body = match e {
            expr::Expr::Json(_) => expr::json::JsonTableCode::compile(e)?.map(Box::new),
            _ => None,
        };
        Ok(SetCall {
            body: match body {
                Some(table) => SetBody::Table(table),
                None => SetBody::One(expr::code::compile(e)?),
            },
            args: Vec::new(),
            strict: false,
            columns,
            defined: None,
            spread: false,
        })
    }

    pub(crate) fn rows(&self, row: &[Datum], cx: &Cx<'_>) -> Result<RowIter> {
        match &self.body {
            SetBody::Set(f) => {
                let mut args = Vec::with_capacity(self.args.len());
                for a in &self.args {
                    args.push(a.eval(row, &cx.eval)?);
                }
                if self.strict && args.iter().any(Datum::is_null) {
                    return Ok(Box::new(std::iter::empty()));
                }
                f(cx.x.env, &args)
            }
            SetBody::Table(table) => Ok(Box::new(table.rows(row, &cx.eval)?.into_iter().map(Ok))),
            SetBody::One(code) => {
                let v = code.eval(row, &cx.eval)?;
                let columns = self.columns;
                let row = match v {
                    Datum::Record(r) if self.defined.is_some() => {
                        as_defined(&r, self.defined.as_deref().unwrap_or_default())?;
                        r.fields.clone()
                    }
                    Datum::Record(r) if columns > 1 || self.spread => r.fields.clone(),
                    Datum::Null if columns > 1 || self.spread => vec![Datum::Null; columns],
                    other => vec![other],
                };
                Ok(Box::new(std::iter::once(Ok(row))))
            }
        }
    }
}

/// A record must have the columns that were said.
fn as_defined(row: &types::RecordValue, defined: &[TypeRef]) -> Result<()> {
    let wrong = |detail: String| {
        let text = "function return row and query-specified return row do not match";
        SqlError::new(SqlState::DATATYPE_MISMATCH, text.to_owned()).detail(detail).into()
    };
    let (has, wants) = (row.fields.len(), defined.len());
    if has != wants {
        let s = if has == 1 { "" } else { "s" };
        return Err(wrong(format!(
            "Returned row contains {has} attribute{s}, but query expects {wants}."
        )));
    }
    for (i, (c, d)) in row.columns.iter().zip(defined).enumerate() {
        let text = |t: Oid| t == types::oids::TEXT || t == types::oids::VARCHAR;
        if c.type_oid != d.oid && !(text(c.type_oid) && text(d.oid)) {
            return Err(wrong(format!(
                "Returned type {} at ordinal position {}, but query expects {}.",
                types::typename::format_type(c.type_oid, -1),
                i + 1,
                types::typename::format_type(d.oid, -1)
            )));
        }
    }
    Ok(())
}

/// An expression of a target list with sets in it: its set-returning calls are taken out as extra columns.
pub(crate) struct ProjectSetNode {
    pub input: Box<dyn Node>,
    /// Over the input row ++ one column for each call.
    pub exprs: Vec<Code>,
    pub calls: Vec<SetCall>,
    /// Calls whose arguments hold other calls run first: (their own row is input ++ earlier calls).
    pub batch: Batch,
    pub at: usize,
    pub open: Option<Vec<Option<RowIter>>>,
    pub row: Vec<Datum>,
}

impl Node for ProjectSetNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.exprs.len());
        while out.len() < max {
            if self.open.is_none() {
                if self.at >= self.batch.len() {
                    cx.poll()?;
                    self.input.next(cx, &mut self.batch, max)?;
                    self.at = 0;
                    if self.batch.is_empty() {
                        return Ok(());
                    }
                }
                self.row.clear();
                self.row.extend_from_slice(self.batch.row(self.at));
                self.row.resize(self.batch.width() + self.calls.len(), Datum::Null);
                let mut iters = Vec::with_capacity(self.calls.len());
                for c in &self.calls {
                    iters.push(Some(c.rows(&self.row, cx)?));
                }
                self.open = Some(iters);
                self.at += 1;
            }
            let Some(iters) = &mut self.open else { continue };
            let base = self.batch.width();
            let mut any = false;
            for (i, slot) in iters.iter_mut().enumerate() {
                let value = match slot {
                    Some(it) => match it.next() {
                        Some(row) => {
                            any = true;
                            let mut row = row?;
                            if row.len() == 1 { row.swap_remove(0) } else { record(row) }
                        }
                        None => {
                            *slot = None;
                            Datum::Null
                        }
                    },
                    None => Datum::Null,
                };
                self.row[base + i] = value;
            }
            if !any {
                self.open = None;
                continue;
            }
            for e in &self.exprs {
                out.push_value(e.eval(&self.row, &cx.eval)?);
            }
            out.end_row();
        }
        cx.poll()
    }
    fn let_go(&mut self) {
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.open = None;
        self.at = 0;
        let w = self.batch.width();
        self.batch.reset(w);
        self.input.rescan(cx)
    }
}

fn record(fields: Vec<Datum>) -> Datum {
    let columns = fields
        .iter()
        .enumerate()
        .map(|(i, f)| types::RecordColumn {
            name: types::Text::from(format!("f{}", i + 1)),
            type_oid: types::io::natural_type(f),
            typmod: -1,
        })
        .collect();
    Datum::Record(std::sync::Arc::new(types::RecordValue {
        type_oid: types::oids::RECORD,
        columns,
        fields,
    }))
}

/// Functions in FROM, side by side.
pub(crate) struct FunctionNode {
    pub calls: Vec<SetCall>,
    pub ordinality: bool,
    pub width: usize,
    pub open: Option<Vec<Option<RowIter>>>,
    pub number: i64,
    pub ended: bool,
}

impl Node for FunctionNode {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.width);
        if self.ended {
            return Ok(());
        }
        cx.poll()?;
        if self.open.is_none() {
            let mut iters = Vec::new();
            for c in &self.calls {
                iters.push(Some(c.rows(&[], cx)?));
            }
            self.open = Some(iters);
            self.number = 0;
        }
        let Some(iters) = &mut self.open else { return Ok(()) };
        while out.len() < max {
            let mut any = false;
            for (slot, call) in iters.iter_mut().zip(&self.calls) {
                let row = match slot {
                    Some(it) => it.next().transpose()?,
                    None => None,
                };
                match row {
                    Some(mut row) => {
                        any = true;
                        if row.len() == 1
                            && (call.columns != 1 || call.spread)
                            && let Datum::Record(r) = &row[0]
                        {
                            row = r.fields.clone();
                        }
                        row.resize(call.columns, Datum::Null);
                        row.into_iter().for_each(|v| out.push_value(v));
                    }
                    None => {
                        *slot = None;
                        (0..call.columns).for_each(|_| out.push_value(Datum::Null));
                    }
                }
            }
            if !any {
                out.drop_partial();
                self.ended = true;
                self.open = None;
                break;
            }
            if self.ordinality {
                self.number += 1;
                out.push_value(Datum::Int8(self.number));
            }
            out.end_row();
        }
        Ok(())
    }
    fn let_go(&mut self) {}
    fn rescan(&mut self, _cx: &Cx<'_>) -> Result<()> {
        self.open = None;
        self.ended = false;
        Ok(())
    }
}
