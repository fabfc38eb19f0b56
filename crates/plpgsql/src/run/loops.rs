//! Loops.

use super::{Flow, Run};
use crate::ast::{Into, Kind, Loop, Query, Scalar};
use crate::frame::INT4;
use crate::host::{Direction, OpenCursor, Site, Source, Value, Want};
use crate::names::VarId;
use base::{Result, SqlError, SqlState, bail};
use expr::TypeRef;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{ArrayValue, Datum};

/// What is to become of a loop after a turn: on with it, or out of it with that.
fn turned(flow: Flow, run: &Loop) -> ControlFlow<Flow> {
    let ours = |label: &Option<Arc<str>>| label.is_none() || *label == run.label;
    match flow {
        Flow::Next => ControlFlow::Continue(()),
        Flow::Continue(label) if ours(&label) => ControlFlow::Continue(()),
        Flow::Exit(label) if ours(&label) => ControlFlow::Break(Flow::Next),
        other => ControlFlow::Break(other),
    }
}

impl Run<'_> {
    pub(super) fn endless(&mut self, run: &Loop) -> Result<Flow> {
        loop {
            if let ControlFlow::Break(flow) = turned(self.statements(&run.body)?, run) {
                return Ok(flow);
            }
        }
    }

    pub(super) fn while_loop(&mut self, condition: &Site, run: &Loop) -> Result<Flow> {
        while self.is_true(condition)? {
            if let ControlFlow::Break(flow) = turned(self.statements(&run.body)?, run) {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn bound(&mut self, site: &Site, what: &str) -> Result<i32> {
        let value = self.evaluate(site)?;
        match self.cast(value, INT4)? {
            Datum::Int4(n) => Ok(n),
            _ => bail!(NULL_VALUE_NOT_ALLOWED, "{what} of FOR loop cannot be null"),
        }
    }

    pub(super) fn for_integer(&mut self, kind: &Kind) -> Result<Flow> {
        let Kind::ForInteger { variable, low, high, step, reverse, run } = kind else {
            return Ok(Flow::Next);
        };
        let mut at = self.bound(low, "lower bound")?;
        let end = self.bound(high, "upper bound")?;
        let step = match step {
            Some(step) => self.bound(step, "BY value")?,
            None => 1,
        };
        if step <= 0 {
            bail!(INVALID_PARAMETER_VALUE, "BY value of FOR loop must be greater than zero");
        }
        let mut found = false;
        let mut flow = Flow::Next;
        while if *reverse { at >= end } else { at <= end } {
            found = true;
            self.frame.set(*variable, Datum::Int4(at));
            if let ControlFlow::Break(out) = turned(self.statements(&run.body)?, run) {
                flow = out;
                break;
            }
            let next = if *reverse { at.checked_sub(step) } else { at.checked_add(step) };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        self.frame.set_found(found);
        Ok(flow)
    }

    pub(super) fn for_query(&mut self, into: &Into, query: &Query, run: &Loop) -> Result<Flow> {
        let name = self.open_query(query, None, None, true)?;
        let flow = self.over_rows(&name, into, run)?;
        self.host.close(&name, true)?;
        Ok(flow)
    }

    /// Opens a cursor over a query.
    pub(super) fn open_query(
        &mut self,
        query: &Query,
        name: Option<&str>,
        scroll: Option<bool>,
        in_loop: bool,
    ) -> Result<String> {
        match query {
            Query::Site(site) => {
                let source = Source::Site(site);
                let cursor = OpenCursor { name, source, scroll, in_loop, positioned: !in_loop };
                self.host.open(cursor, self.frame)
            }
            Query::Dynamic { text, using } => {
                let text = self.dynamic_text(text)?;
                let using = self.values(using)?;
                let source = Source::Text { text: &text, using: &using };
                let cursor = OpenCursor { name, source, scroll, in_loop, positioned: !in_loop };
                self.host.open(cursor, self.frame)
            }
        }
    }

    /// A loop over a cursor's rows. They are asked for one by one: the loop's statements may see or move the cursor, and what they did before the query
    /// fails in a later row has been done (and perhaps committed).
    fn over_rows(&mut self, name: &str, into: &Into, run: &Loop) -> Result<Flow> {
        let mut found = false;
        let mut out = Flow::Next;
        'rows: loop {
            let got = self.host.fetch(name, Direction::Forward(1), Want::All)?;
            let columns = got.columns.unwrap_or_else(|| Arc::new([]));
            if got.rows.is_empty() {
                if !found {
                    self.row_into(into, &columns, None)?;
                }
                break;
            }
            for row in got.rows {
                found = true;
                self.row_into(into, &columns, Some(row))?;
                if let ControlFlow::Break(flow) = turned(self.statements(&run.body)?, run) {
                    out = flow;
                    break 'rows;
                }
            }
        }
        self.frame.set_found(found);
        Ok(out)
    }

    pub(super) fn for_cursor(
        &mut self,
        record: VarId,
        cursor: VarId,
        args: &[Arc<Site>],
        run: &Loop,
    ) -> Result<Flow> {
        let given = self.cursor_name(cursor);
        let name = self.open_bound(cursor, args, true)?;
        if given.is_none() {
            self.frame.set(cursor, Datum::text(&name));
        }
        let flow = self.over_rows(&name, &Into::Record(record), run)?;
        self.host.close(&name, true)?;
        if given.is_none() {
            self.frame.set(cursor, Datum::Null);
        }
        Ok(flow)
    }

    pub(super) fn for_each(
        &mut self,
        into: &Into,
        slice: u32,
        array: &Site,
        run: &Loop,
    ) -> Result<Flow> {
        let Value { value, ty } = self.evaluate(array)?;
        if value.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED, "FOREACH expression must not be null");
        }
        let base = ty.base();
        let (Some(element), Datum::Array(array)) = (types::element_type(base.oid), value) else {
            let ty = types::format_type(ty.oid, ty.typmod);
            bail!(DATATYPE_MISMATCH, "FOREACH expression must yield an array, not type {ty}");
        };
        let dimensions = array.dims.len();
        if slice as usize > dimensions {
            bail!(
                ARRAY_SUBSCRIPT_ERROR,
                "slice dimension ({slice}) is out of the valid range 0..{dimensions}"
            );
        }
        self.check_each_target(into, slice)?;
        let element = TypeRef { oid: element, typmod: base.typmod };
        let size = slice_size(&array, slice);
        let mut found = false;
        let mut out = Flow::Next;
        for at in (0..array.elements.len()).step_by(size.max(1)) {
            found = true;
            let value = if slice == 0 {
                Value { value: array.elements[at].clone(), ty: element }
            } else {
                Value { value: slice_of(&array, slice, at, size), ty: base }
            };
            self.each_into(into, value)?;
            if let ControlFlow::Break(flow) = turned(self.statements(&run.body)?, run) {
                out = flow;
                break;
            }
        }
        self.frame.set_found(found);
        Ok(out)
    }

    fn check_each_target(&self, into: &Into, slice: u32) -> Result<()> {
        let is_array = match into {
            Into::List(list) if list.len() == 1 => {
                let Scalar { variable, field } = &list[0];
                let ty = match field {
                    None => self.frame.variable(*variable).ty,
                    Some(field) => self.frame.field(*variable, field)?.1,
                };
                types::element_type(ty.base().oid).is_some()
            }
            _ => false,
        };
        let wrong = |text| Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text).into());
        match (slice, is_array) {
            (0, true) => wrong("FOREACH loop variable must not be of an array type"),
            (1.., false) => wrong("FOREACH ... SLICE loop variable must be of an array type"),
            _ => Ok(()),
        }
    }

    fn each_into(&mut self, into: &Into, value: Value) -> Result<()> {
        match into {
            Into::Record(id) => self.assign(*id, value),
            Into::List(list) if list.len() == 1 => self.assign_scalar(&list[0], value),
            Into::List(_) => match value.value {
                Datum::Record(row) => {
                    let columns = Arc::clone(&row.columns);
                    self.row_into(into, &columns, Some(Arc::unwrap_or_clone(row).fields))
                }
                Datum::Null => self.row_into(into, &(Arc::new([]) as _), None),
                _ => {
                    bail!(DATATYPE_MISMATCH, "cannot assign non-composite value to a row variable")
                }
            },
        }
    }
}

/// How many elements a slice of so many dimensions has.
fn slice_size(array: &ArrayValue, slice: u32) -> usize {
    let inner = &array.dims[array.dims.len() - slice as usize..];
    inner.iter().map(|(len, _)| usize::try_from(*len).unwrap_or(0)).product()
}

fn slice_of(array: &ArrayValue, slice: u32, at: usize, size: usize) -> Datum {
    let dims = array.dims[array.dims.len() - slice as usize..].to_vec();
    let elements = array.elements[at..(at + size).min(array.elements.len())].to_vec();
    Datum::Array(Arc::new(ArrayValue { element_type: array.element_type, dims, elements }))
}
