//! Names of variables in statements, and the places that values go to.

use super::{Parser, may_be_name};
use crate::ast::{Into, Scalar, Step, Target};
use crate::host::Mode;
use crate::lex::{Tok, Token};
use crate::names::VarId;
use base::{Error, Result, SqlState};
use std::rc::Rc;
use std::sync::Arc;

/// The most variables of an INTO list.
const LIST_MAX: usize = 1024;

/// A variable, or a record's field, as it is written.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub variable: VarId,
    pub field: Option<Arc<str>>,
    /// A name after the field's.
    pub rest: Option<Arc<str>>,
    pub start: usize,
}

impl Parser<'_> {
    /// The names that stand there, joined by dots: at most three. Also how many tokens they take, and where they end.
    pub(super) fn names_from(&self, at: usize) -> (Vec<String>, usize, usize) {
        let token = |at: usize| self.tokens.get(at);
        let (mut names, mut used, mut end) = (Vec::new(), 0, 0);
        let is_name = |t: &&Rc<Token>, first| may_be_name(t) || (first && t.kind == Tok::Param);
        while let Some(name) = token(at + used).filter(|t| is_name(t, used == 0)) {
            names.push(name.text.clone());
            used += 1;
            end = name.end;
            let goes_on = token(at + used).is_some_and(|t| t.is("."))
                && token(at + used + 1).is_some_and(|t| may_be_name(t));
            if names.len() == 3 || !goes_on {
                break;
            }
            used += 1;
        }
        (names, used, end)
    }

    pub(super) fn is_record(&self, id: VarId) -> bool {
        self.variables.get(id.index()).is_some_and(|v| v.is_record())
    }

    pub(super) fn look_up(&self, names: &[String]) -> Option<(VarId, usize)> {
        self.names.find(self.names.scope(), names, |id| self.is_record(id))
    }

    /// The variable or field that is named there; nothing is taken if it is none.
    pub(super) fn named(&mut self) -> Result<Option<Named>> {
        let first = self.peek()?;
        let (names, used, _) = self.names_from(self.at);
        let Some((variable, own)) = self.look_up(&names) else { return Ok(None) };
        self.at += used;
        let mut rest = names.into_iter().skip(own).map(Arc::<str>::from);
        let (field, rest) = (rest.next(), rest.next());
        Ok(Some(Named { variable, field, rest, start: first.start }))
    }

    /// A variable that has to be there.
    pub(super) fn known(&mut self) -> Result<Named> {
        match self.named()? {
            Some(named) => Ok(named),
            None => Err(self.not_known()),
        }
    }

    /// What stands there is no variable.
    pub(super) fn not_known(&mut self) -> Error {
        let token = match self.peek() {
            Ok(token) => token,
            Err(error) => return error,
        };
        let (names, used, _) = self.names_from(self.at);
        if used == 0 {
            return self.syntax(&token);
        }
        self.at += used;
        let text = format!("\"{}\" is not a known variable", names.join("."));
        self.error_at(SqlState::SYNTAX_ERROR, text, token.start)
    }

    /// `22005` for a constant.
    pub(super) fn check_assignable(&self, named: &Named) -> Result<()> {
        let variable = &self.variables[named.variable.index()];
        if !variable.constant {
            return Ok(());
        }
        let text = format!("variable \"{}\" is declared CONSTANT", variable.name);
        Err(self.error_at(SqlState(*b"22005"), text, named.start))
    }

    pub(super) fn is_whole_record(&self, named: &Named) -> bool {
        named.field.is_none() && self.is_record(named.variable)
    }

    /// The text that names it.
    pub(super) fn written(&self, named: &Named) -> String {
        let name = &self.variables[named.variable.index()].name;
        match &named.field {
            Some(field) => field.to_string(),
            None => name.to_string(),
        }
    }

    /// The target of an assignment, up to its sign.
    pub(super) fn target(&mut self, named: &Named) -> Result<Target> {
        let fields = [&named.field, &named.rest].into_iter().flatten();
        let mut steps: Vec<Step> = fields.map(|f| Step::Field(Arc::clone(f))).collect();
        loop {
            if self.accept("[")? {
                steps.push(self.subscript()?);
            } else if self.accept(".")? {
                let field = self.take()?;
                if !field.is_name() {
                    return Err(self.syntax(&field));
                }
                steps.push(Step::Field(field.text.as_str().into()));
            } else {
                return Ok(Target { variable: named.variable, steps });
            }
        }
    }

    fn subscript(&mut self) -> Result<Step> {
        if self.accept(":")? {
            let high = if self.accept("]")? { None } else { Some(self.expression("]")?) };
            return Ok(Step::Slice(None, high));
        }
        let (start, end, sign) = self.span(&["]", ":"], "]", true)?;
        let text = self.source[start..end].to_owned();
        let first = self.site(text, Mode::Expression, start)?;
        if sign == "]" {
            return Ok(Step::Element(first));
        }
        let high = if self.accept("]")? { None } else { Some(self.expression("]")?) };
        Ok(Step::Slice(Some(first), high))
    }

    fn scalar_of(&self, named: &Named) -> Scalar {
        Scalar { variable: named.variable, field: named.field.clone() }
    }

    /// What follows INTO; whether STRICT stood there.
    pub(super) fn into_target(&mut self) -> Result<(Into, bool)> {
        let strict = self.accept("strict")?;
        let first = self.known()?;
        self.check_assignable(&first)?;
        if self.is_whole_record(&first) {
            let next = self.peek()?;
            if next.is(",") {
                self.at += 1;
                let text = "record variable cannot be part of multiple-item INTO list";
                return Err(self.error_at(SqlState::SYNTAX_ERROR, text, next.start));
            }
            return Ok((Into::Record(first.variable), strict));
        }
        Ok((Into::List(self.scalar_list(&first)?), strict))
    }

    /// `, x, r.f …` after the first.
    pub(super) fn scalar_list(&mut self, first: &Named) -> Result<Vec<Scalar>> {
        let mut list = vec![self.scalar_of(first)];
        while self.accept(",")? {
            let next: Rc<Token> = self.peek()?;
            if list.len() >= LIST_MAX {
                let text = "too many INTO variables specified";
                return Err(self.error_at(SqlState::PROGRAM_LIMIT_EXCEEDED, text, next.start));
            }
            let named = self.known()?;
            self.check_assignable(&named)?;
            if self.is_whole_record(&named) {
                let text = format!("\"{}\" is not a scalar variable", self.written(&named));
                return Err(self.error_at(SqlState::SYNTAX_ERROR, text, named.start));
            }
            list.push(self.scalar_of(&named));
        }
        Ok(list)
    }
}
