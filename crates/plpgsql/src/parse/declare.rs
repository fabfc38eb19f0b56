//! Blocks, their declarations and their handlers.

use super::{Parser, is, may_be_name};
use crate::ast::{Block, BoundCursor, Handler, Handlers};
use crate::conditions::{Condition, Conditions, sqlstate, states};
use crate::frame::TEXT;
use crate::host::{Mode, TypeKind};
use crate::lex::{Tok, Token};
use crate::names::{Item, LabelKind, VarId};
use base::{Result, SqlState};
use expr::TypeRef;
use std::rc::Rc;
use std::sync::Arc;
use types::oids;

impl Parser<'_> {
    /// `<<name>>`, or nothing; a level of names begins with it.
    pub(super) fn label(&mut self, kind: LabelKind) -> Result<Option<Arc<str>>> {
        let mut label = None;
        if self.accept("<<")? {
            let name = self.name()?;
            self.expect(">>")?;
            label = Some(Arc::<str>::from(name.text.as_str()));
        }
        self.names.add(Item::Label(kind), label.as_deref().unwrap_or(""));
        Ok(label)
    }

    /// The label that may follow an END.
    pub(super) fn end_label(&mut self, label: Option<&str>) -> Result<()> {
        let next = self.peek()?;
        if !may_be_name(&next) {
            return Ok(());
        }
        self.at += 1;
        let text = match label {
            None => format!("end label \"{}\" specified for unlabeled block", next.text),
            Some(label) if label != next.text => {
                format!("end label \"{}\" differs from block's label \"{label}\"", next.text)
            }
            Some(_) => return Ok(()),
        };
        Err(self.error_at(SqlState::SYNTAX_ERROR, text, next.start))
    }

    /// `[DECLARE …] BEGIN … [EXCEPTION …] END [label]`, whose label has been read.
    pub(super) fn block(&mut self, label: Option<Arc<str>>) -> Result<Block> {
        let level = self.names.scope();
        let block = self.nested(|p| p.block_within(label))?;
        self.names.leave_level(level);
        Ok(block)
    }

    fn block_within(&mut self, label: Option<Arc<str>>) -> Result<Block> {
        let first = self.variables.len();
        if self.accept("declare")? {
            self.declarations()?;
        }
        let variables = (first..self.variables.len()).map(|i| VarId(i as u32)).collect();
        let begin = self.expect("begin")?;
        let line = self.line(begin.start);
        let body = self.statements()?;
        let handlers = if self.accept("exception")? { Some(self.handlers()?) } else { None };
        self.expect("end")?;
        self.end_label(label.as_deref())?;
        Ok(Block { line, label, variables, body, handlers })
    }

    fn declarations(&mut self) -> Result<()> {
        loop {
            let next = self.peek()?;
            if next.is_word("declare") {
                self.at += 1;
            } else if next.is("<<") {
                self.at += 1;
                self.name()?;
                self.expect(">>")?;
                let text = "block label must be placed before DECLARE, not after";
                return Err(self.error_at(SqlState::SYNTAX_ERROR, text, next.start));
            } else if next.is_word("begin") {
                return Ok(());
            } else {
                self.declaration()?;
            }
        }
    }

    /// A name that is new in its block.
    fn new_name(&mut self) -> Result<Rc<Token>> {
        let name = self.name()?;
        if self.names.is_here(&name.text) {
            return Err(self.near("duplicate declaration", &name));
        }
        Ok(name)
    }

    fn declaration(&mut self) -> Result<()> {
        let name = self.new_name()?;
        let line = self.line(name.start);
        let next = self.peek()?;
        let after = self.token(1);
        if next.is_word("alias") && after.is_word("for") {
            self.at += 2;
            return self.alias(&name);
        }
        let no_scroll = next.is_word("no") && after.is_word("scroll");
        if no_scroll
            || next.is_word("cursor")
            || (next.is_word("scroll") && after.is_word("cursor"))
        {
            return self.cursor_declaration(&name, line);
        }
        let constant = self.accept("constant")?;
        let ty = self.data_type()?;
        self.collation(ty)?;
        let not_null = self.peek()?;
        let is_not_null = self.accept("not")?;
        if is_not_null {
            self.expect("null")?;
        }
        let default = if self.accept(";")? {
            None
        } else if self.accept(":=")? || self.accept("=")? || self.accept("default")? {
            Some(self.expression(";")?)
        } else {
            let token = self.peek()?;
            return Err(self.syntax(&token));
        };
        if is_not_null && default.is_none() {
            let text = format!(
                "variable \"{}\" must have a default value, since it's declared NOT NULL",
                name.text
            );
            return Err(self.error_at(SqlState::NULL_VALUE_NOT_ALLOWED, text, not_null.start));
        }
        let kind = self.kind(&name.text, ty)?;
        let id = self.declare(&name.text, ty, kind, line, true);
        let variable = &mut self.variables[id.index()];
        variable.constant = constant;
        variable.not_null = is_not_null;
        variable.default = default;
        Ok(())
    }

    /// What a variable's type is.
    ///
    /// # Errors
    /// `0A000`: a pseudo-type.
    fn kind(&mut self, name: &str, ty: TypeRef) -> Result<TypeKind> {
        let kind = self.host.kind_of(ty)?;
        if let TypeKind::Pseudo = kind {
            let ty = types::format_type(ty.oid, ty.typmod);
            base::bail!(FEATURE_NOT_SUPPORTED, "variable \"{name}\" has pseudo-type {ty}");
        }
        Ok(kind)
    }

    fn collation(&mut self, ty: TypeRef) -> Result<()> {
        let start = self.peek()?.start;
        if !self.accept("collate")? {
            return Ok(());
        }
        let (names, used, _) = self.names_from(self.at);
        if used == 0 {
            let token = self.peek()?;
            return Err(self.syntax(&token));
        }
        self.at += used;
        self.host.check_collation(&names, ty).map_err(|error| {
            let mut error = error.to_sql_error();
            error.position = None;
            match error.state {
                SqlState::DATATYPE_MISMATCH => self.placed(error, start),
                _ => error.into(),
            }
        })
    }

    fn alias(&mut self, name: &Token) -> Result<()> {
        let start = self.peek()?;
        let (names, used, _) = self.names_from(self.at);
        if used == 0 {
            return Err(self.syntax(&start));
        }
        self.at += used;
        let found = self.look_up(&names).filter(|(_, own)| *own == names.len());
        let Some((id, _)) = found else {
            let text = format!("variable \"{}\" does not exist", names.join("."));
            return Err(self.error_at(SqlState::UNDEFINED_OBJECT, text, start.start));
        };
        self.expect(";")?;
        self.names.add(Item::Variable(id), &name.text);
        Ok(())
    }

    /// A type, as a declaration has it.
    fn data_type(&mut self) -> Result<TypeRef> {
        let first = self.peek()?;
        let (names, used, _) = self.names_from(self.at);
        if used > 0 && self.token(used).is("%") {
            let what = self.token(used + 1);
            let is_row = what.is_word("rowtype");
            if is_row || what.is_word("type") {
                self.at += used + 2;
                let ty = if is_row { self.row_type(&names) } else { self.type_of(&names) };
                let ty = ty.map_err(|e| self.moved(e, first.start))?;
                return self.array_of(ty);
            }
        }
        self.type_text()
    }

    /// `names%TYPE`
    fn type_of(&mut self, names: &[String]) -> Result<TypeRef> {
        if let Some((id, own)) = self.look_up(names) {
            let variable = &self.variables[id.index()];
            if own == names.len() {
                return Ok(variable.ty);
            }
            if let TypeKind::Row { columns, .. } = &variable.kind
                && own + 1 == names.len()
                && let Some(c) = columns.iter().find(|c| *c.name == *names[own])
            {
                return Ok(TypeRef { oid: c.type_oid, typmod: c.typmod });
            }
        }
        if let [name] = names {
            base::bail!(UNDEFINED_OBJECT, "variable \"{name}\" does not exist");
        }
        self.host.type_of_column(names)
    }

    /// `names%ROWTYPE`
    fn row_type(&mut self, names: &[String]) -> Result<TypeRef> {
        self.host.type_of_row(names)
    }

    /// `[]`, `[3]`, `ARRAY`, `ARRAY[3]` after `%TYPE`
    fn array_of(&mut self, ty: TypeRef) -> Result<TypeRef> {
        let mut is_array = self.accept("array")?;
        while self.accept("[")? {
            is_array = true;
            let next = self.take()?;
            let close = if next.kind == Tok::Int { self.take()? } else { next };
            if !close.is("]") {
                return Err(self.near("syntax error, expected \"]\"", &close));
            }
        }
        if !is_array || types::element_type(ty.oid).is_some() {
            return Ok(ty);
        }
        match types::array_type(ty.oid) {
            Some(oid) => Ok(TypeRef { oid, typmod: ty.typmod }),
            None => {
                let ty = types::format_type(ty.oid, -1);
                base::bail!(UNDEFINED_OBJECT, "could not find array type for data type {ty}")
            }
        }
    }

    fn type_text(&mut self) -> Result<TypeRef> {
        let start = self.peek()?.start;
        let (mut end, mut depth) = (start, 0usize);
        loop {
            let token = self.peek()?;
            let ends = ["collate", "not", "=", ":=", "default", ";"].iter().any(|w| is(&token, w));
            if ends || (depth == 0 && (token.is(",") || token.is(")"))) {
                break;
            }
            if token.kind == Tok::End {
                let what = if depth > 0 {
                    "mismatched parentheses"
                } else {
                    "incomplete data type declaration"
                };
                return Err(self.near(what, &token));
            }
            if token.is("(") {
                depth += 1;
            } else if token.is(")") {
                depth = depth.saturating_sub(1);
            }
            end = token.end;
            self.at += 1;
        }
        if end == start {
            let token = self.peek()?;
            return Err(self.near("missing data type declaration", &token));
        }
        let text = &self.source[start..end];
        if self.token_at(start).is_some_and(|t| t.is_word("setof")) {
            let text = format!("invalid type name \"{text}\"");
            return Err(self.error_at(SqlState::SYNTAX_ERROR, text, start));
        }
        let next = self.peek()?.start;
        self.host.type_of_text(text).map_err(|error| {
            let error = match error.state() {
                SqlState::SYNTAX_ERROR => error
                    .within(format_args!("invalid type name \"{}\"", &self.source[start..next])),
                _ => error,
            };
            self.moved(error, start)
        })
    }

    /// `[NO] SCROLL`, if it stands there.
    pub(super) fn scroll(&mut self) -> Result<Option<bool>> {
        if self.accept("no")? {
            self.expect("scroll")?;
            return Ok(Some(false));
        }
        Ok(self.accept("scroll")?.then_some(true))
    }

    /// `c [[NO] SCROLL] CURSOR [(x int, …)] FOR query;`
    fn cursor_declaration(&mut self, name: &Token, line: u32) -> Result<()> {
        let scroll = self.scroll()?;
        self.expect("cursor")?;
        let outside = self.names.scope();
        self.names.add(Item::Label(LabelKind::Block), "");
        let mut args = Vec::new();
        if self.accept("(")? {
            loop {
                let arg = self.new_name()?;
                let ty = self.data_type()?;
                let kind = self.kind(&arg.text, ty)?;
                let line = self.line(arg.start);
                args.push(self.declare(&arg.text, ty, kind, line, true));
                if !self.accept(",")? {
                    break;
                }
            }
            self.expect(")")?;
        }
        if !self.accept("is")? {
            self.expect("for")?;
        }
        let query = self.statement_text()?;
        self.names.leave(outside);
        let ty = TypeRef { oid: oids::REFCURSOR, typmod: -1 };
        let id = self.declare(&name.text, ty, TypeKind::Scalar { checked: false }, line, true);
        let cursor = BoundCursor { args, query, scroll };
        self.variables[id.index()].cursor = Some(Arc::new(cursor));
        Ok(())
    }

    /// What follows EXCEPTION.
    fn handlers(&mut self) -> Result<Arc<Handlers>> {
        let line = self.line(self.last_start());
        let text = |p: &mut Self, name| {
            let id = p.declare(name, TEXT, TypeKind::Scalar { checked: false }, line, true);
            p.variables[id.index()].constant = true;
            id
        };
        let (state, message) = (text(self, "sqlstate"), text(self, "sqlerrm"));
        let mut handlers = Vec::new();
        self.expect("when")?;
        loop {
            let conditions = self.conditions()?;
            let body = self.statements()?;
            handlers.push(Handler { conditions, body });
            if !self.accept("when")? {
                break;
            }
        }
        Ok(Arc::new(Handlers { sqlstate: state, sqlerrm: message, handlers }))
    }

    /// `a OR b OR SQLSTATE '22012' THEN`
    fn conditions(&mut self) -> Result<Conditions> {
        let mut all = Vec::new();
        loop {
            let name = self.name()?;
            if name.text == "sqlstate" {
                let code = self.take()?;
                match sqlstate(&code.text).filter(|_| code.kind == Tok::Str) {
                    Some(state) => all.push(Condition::State(state)),
                    None => return Err(self.near("invalid SQLSTATE code", &code)),
                }
            } else if name.text == "others" {
                all.push(Condition::Others);
            } else {
                let before = all.len();
                all.extend(states(&name.text).map(Condition::State));
                if all.len() == before {
                    return Err(self.unknown_condition(&name));
                }
            }
            if !self.accept("or")? {
                self.expect("then")?;
                return Ok(Conditions(all));
            }
        }
    }

    /// `42704`
    pub(super) fn unknown_condition(&self, name: &Token) -> base::Error {
        let text = format!("unrecognized exception condition \"{}\"", name.text);
        base::Error::sql(SqlState::UNDEFINED_OBJECT, text)
    }

    /// A text that is made here, of a site of the body.
    pub(super) fn made_site(&mut self, text: String, start: usize) -> Arc<crate::host::Site> {
        self.unchecked_site(text, Mode::Expression, start)
    }
}
