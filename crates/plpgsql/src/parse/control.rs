//! Branches and loops.

use super::{Parser, may_be_name};
use crate::ast::{IfArm, Into, Kind, Loop, Query, Scalar};
use crate::frame::INT4;
use crate::host::{Mode, TypeKind};
use crate::lex::{Tok, Token};
use crate::names::{LabelKind, VarId};
use base::{Result, SqlState};
use expr::TypeRef;
use std::sync::Arc;
use types::oids;

/// What stands between FOR and IN.
enum LoopVariable {
    /// A name that is no variable.
    New,
    /// One scalar.
    One(Scalar),
    /// Several.
    List(Vec<Scalar>),
    /// A record.
    Record(VarId),
}

impl LoopVariable {
    /// For rows.
    fn into(self) -> Option<Into> {
        match self {
            LoopVariable::New => None,
            LoopVariable::One(one) => Some(Into::List(vec![one])),
            LoopVariable::List(list) => Some(Into::List(list)),
            LoopVariable::Record(id) => Some(Into::Record(id)),
        }
    }
}

impl Parser<'_> {
    /// After IF.
    pub(super) fn if_statement(&mut self) -> Result<Kind> {
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let condition = self.expression("then")?;
            let body = self.statements()?;
            arms.push(IfArm { condition, body });
            let next = self.take()?;
            match next.text.as_str() {
                "elsif" | "elseif" => {}
                "else" => {
                    otherwise = self.statements()?;
                    self.expect("end")?;
                    break;
                }
                "end" => break,
                _ => return Err(self.syntax(&next)),
            }
        }
        self.expect("if")?;
        self.expect(";")?;
        Ok(Kind::If { arms, otherwise })
    }

    /// After CASE.
    pub(super) fn case_statement(&mut self) -> Result<Kind> {
        let line = self.line(self.last_start());
        let mut subject = None;
        if !self.accept("when")? {
            let value = self.expression("when")?;
            let name = format!("__Case__Variable_{}__", self.variables.len());
            let kind = TypeKind::Scalar { checked: false };
            // Known from here on, which is no matter: nobody else writes such a name.
            let id = self.declare(&name, INT4, kind, line, true);
            self.variables[id.index()].takes_type = true;
            subject = Some((value, id, name));
        }
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            let mut condition = self.expression("then")?;
            if let Some((_, _, name)) = &subject {
                let text = format!("\"{name}\" IN ({})", condition.text);
                condition = self.made_site(text, condition.start as usize);
            }
            arms.push(IfArm { condition, body: self.statements()? });
            let next = self.take()?;
            match next.text.as_str() {
                "when" => {}
                "else" => {
                    otherwise = Some(self.statements()?);
                    self.expect("end")?;
                    break;
                }
                "end" => break,
                _ => return Err(self.syntax(&next)),
            }
        }
        self.expect("case")?;
        self.expect(";")?;
        let subject = subject.map(|(value, id, _)| (value, id));
        Ok(Kind::Case { subject, arms, otherwise })
    }

    /// `[<<label>>] LOOP …`
    pub(super) fn any_loop(&mut self) -> Result<Kind> {
        let label = self.label(LabelKind::Loop)?;
        let level = self.names.scope();
        let word = self.take()?;
        let kind = match word.text.as_str() {
            "loop" if word.kind == Tok::Word => Kind::Loop(self.loop_body(label)?),
            "while" if word.kind == Tok::Word => {
                let condition = self.expression("loop")?;
                Kind::While(condition, self.loop_body(label)?)
            }
            "for" if word.kind == Tok::Word => self.for_loop(label)?,
            "foreach" if word.kind == Tok::Word => self.for_each(label)?,
            _ => return Err(self.syntax(&word)),
        };
        self.names.leave_level(level);
        Ok(kind)
    }

    /// After LOOP, to the end.
    fn loop_body(&mut self, label: Option<Arc<str>>) -> Result<Loop> {
        let body = self.statements()?;
        self.expect("end")?;
        self.expect("loop")?;
        self.end_label(label.as_deref())?;
        self.expect(";")?;
        Ok(Loop { label, body })
    }

    fn loop_variable(&mut self) -> Result<(LoopVariable, String, usize)> {
        let first = self.peek()?;
        if !may_be_name(&first) {
            return Err(self.syntax(&first));
        }
        let Some(named) = self.named()? else {
            if self.token(1).is(",") || self.token(1).is(".") {
                return Err(self.not_known());
            }
            self.at += 1;
            return Ok((LoopVariable::New, first.text.clone(), first.start));
        };
        let name = self.written(&named);
        let variable = if self.is_whole_record(&named) {
            LoopVariable::Record(named.variable)
        } else {
            self.check_loop_target(&named)?
        };
        Ok((variable, name, first.start))
    }

    fn check_loop_target(&mut self, first: &super::targets::Named) -> Result<LoopVariable> {
        if self.peek()?.is(",") {
            self.check_assignable(first)?;
            return Ok(LoopVariable::List(self.scalar_list(first)?));
        }
        Ok(LoopVariable::One(Scalar { variable: first.variable, field: first.field.clone() }))
    }

    /// After FOR.
    fn for_loop(&mut self, label: Option<Arc<str>>) -> Result<Kind> {
        let line = self.line(self.last_start());
        let (variable, name, at) = self.loop_variable()?;
        self.expect("in")?;
        if self.accept("execute")? {
            let query = self.dynamic("loop", "LOOP or USING", ", or LOOP")?;
            return self.for_query(variable, at, query, label);
        }
        if let Some(cursor) = self.loop_cursor()? {
            return self.for_cursor(&name, at, &variable, cursor, line, label);
        }
        let first = self.peek()?;
        let reverse = self.accept("reverse")?;
        let (start, end, found) = self.span(&["..", "loop"], "LOOP", true)?;
        let text = self.source[start..end].to_owned();
        if found == ".." {
            let low = self.site(text, Mode::Expression, start)?;
            let (high, by) = self.expression_to(&["loop", "by"], "LOOP")?;
            let step = if by == "by" { Some(self.expression("loop")?) } else { None };
            if let LoopVariable::List(_) = variable {
                let text = "integer FOR loop must have only one target variable";
                return Err(self.error_at(SqlState::SYNTAX_ERROR, text, at));
            }
            let kind = TypeKind::Scalar { checked: false };
            let variable = self.declare(&name, INT4, kind, line, true);
            let run = self.loop_body(label)?;
            return Ok(Kind::ForInteger { variable, low, high, step, reverse, run });
        }
        if reverse {
            let text = "cannot specify REVERSE in query FOR loop";
            return Err(self.error_at(SqlState::SYNTAX_ERROR, text, first.start));
        }
        let query = Query::Site(self.site(text, Mode::Statement, start)?);
        self.for_query(variable, at, query, label)
    }

    fn for_query(
        &mut self,
        variable: LoopVariable,
        at: usize,
        query: Query,
        label: Option<Arc<str>>,
    ) -> Result<Kind> {
        let assigned = match &variable {
            LoopVariable::One(one) => Some(one.variable),
            LoopVariable::Record(id) => Some(*id),
            _ => None,
        };
        if let Some(id) = assigned {
            let named = super::targets::Named { variable: id, field: None, rest: None, start: at };
            self.check_assignable(&named)?;
        }
        let Some(into) = variable.into() else {
            let text = "loop variable of loop over rows must be a record variable or list of scalar \
                        variables";
            return Err(self.error_at(SqlState::SYNTAX_ERROR, text, at));
        };
        let run = self.loop_body(label)?;
        Ok(Kind::ForQuery { into, query, run })
    }

    /// The cursor variable that a loop goes over, if there is one.
    fn loop_cursor(&mut self) -> Result<Option<VarId>> {
        let before = self.at;
        let named = self.named()?;
        let is_cursor = |id: VarId| {
            let v = &self.variables[id.index()];
            v.ty.oid == oids::REFCURSOR
        };
        match named {
            Some(named) if named.field.is_none() && is_cursor(named.variable) => {
                let cursor = named.variable;
                if self.variables[cursor.index()].cursor.is_none() {
                    let text = "cursor FOR loop must use a bound cursor variable";
                    return Err(self.error_at(SqlState::SYNTAX_ERROR, text, named.start));
                }
                Ok(Some(cursor))
            }
            _ => {
                self.at = before;
                Ok(None)
            }
        }
    }

    fn for_cursor(
        &mut self,
        name: &str,
        at: usize,
        variable: &LoopVariable,
        cursor: VarId,
        line: u32,
        label: Option<Arc<str>>,
    ) -> Result<Kind> {
        if let LoopVariable::List(_) = variable {
            let text = "cursor FOR loop must have only one target variable";
            return Err(self.error_at(SqlState::SYNTAX_ERROR, text, at));
        }
        let args = self.cursor_arguments(cursor, "loop")?;
        let ty = TypeRef { oid: oids::RECORD, typmod: -1 };
        let record = self.declare(name, ty, TypeKind::AnyRow, line, true);
        let run = self.loop_body(label)?;
        Ok(Kind::ForCursor { record, cursor, args, run })
    }

    /// After FOREACH.
    fn for_each(&mut self, label: Option<Arc<str>>) -> Result<Kind> {
        let (variable, _, at) = self.loop_variable()?;
        let mut slice = 0;
        if self.accept("slice")? {
            let number: std::rc::Rc<Token> = self.take()?;
            slice = match number.text.parse::<u32>() {
                Ok(n) if number.kind == Tok::Int => n,
                _ => return Err(self.syntax(&number)),
            };
        }
        self.expect("in")?;
        self.expect("array")?;
        let array = self.expression("loop")?;
        let Some(into) = variable.into() else {
            let text = "loop variable of FOREACH must be a known variable or list of variables";
            return Err(self.error_at(SqlState::SYNTAX_ERROR, text, at));
        };
        let run = self.loop_body(label)?;
        Ok(Kind::ForEach { into, slice, array, run })
    }
}
