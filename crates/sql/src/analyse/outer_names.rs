//! Names that mean something beside columns: the variables of the procedure that a statement stands in.
//!
//! # Purpose
//! A name in an expression is looked for among the columns in sight and among what stands around the statement ([`OuterNames`]). What is found
//! there becomes a parameter, whose number whoever knows the names has given out, and whose value is asked for when the statement runs.
//!
//! # Invariants
//! A name has the same number each time that the statement is analysed, and a parameter of a number has the same type: whose names change
//! their types has the statement prepared anew.

use super::Analyser;
use crate::parse::ast::Loc;
use base::{Result, SqlError, SqlState};
use expr::{Expr, TypeRef};
use std::fmt::Debug;
use std::rc::Rc;

/// What a name means that is a column too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conflict {
    /// Nothing: it is an error.
    Error,
    /// What stands around the statement.
    Outer,
    /// The column.
    Column,
}

/// A name's meaning.
#[derive(Clone, Debug)]
pub struct OuterName {
    /// The parameter's number, from 1.
    pub number: u32,
    /// Its type.
    pub ty: TypeRef,
    /// Of a row: its fields.
    pub fields: Option<Rc<[(String, TypeRef)]>>,
}

/// Who knows the names around a statement.
pub trait OuterNames: Debug {
    /// What is to become of a name that is a column too.
    fn conflict(&self) -> Conflict;
    /// What `names`, joined by dots, means; `whole`: a row is wanted (`names.*`). A name that has no such field is an error if `must_have` is set.
    ///
    /// # Errors
    /// `42703`, `55000`
    fn find(&self, names: &[String], whole: bool, must_have: bool) -> Result<Option<OuterName>>;
    /// The fields of the parameter `number`, if it is a row whose fields are known.
    fn fields(&self, number: u32) -> Option<Rc<[(String, TypeRef)]>>;
}

/// Was a name not found, rather than found to be wrong?
fn is_missing(error: &base::Error) -> bool {
    matches!(error.state(), SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE)
}

impl Analyser<'_> {
    /// What the names mean that stand around the statement, or what `in_query` finds.
    pub(super) fn or_outer<T>(
        &mut self,
        names: &[String],
        whole: bool,
        loc: Loc,
        in_query: impl FnOnce(&mut Self) -> Result<T>,
        made: impl Fn(&mut Self, Expr) -> Result<T>,
    ) -> Result<T> {
        let Some(outer) = self.params.outer.clone() else { return in_query(self) };
        if outer.conflict() == Conflict::Outer
            && let Some(found) = self.outer(outer.as_ref(), names, whole, false)?
        {
            return made(self, found);
        }
        match in_query(self) {
            Err(error) if is_missing(&error) => {
                match self.outer(outer.as_ref(), names, whole, true)? {
                    Some(found) => made(self, found),
                    None => Err(error),
                }
            }
            Ok(_)
                if outer.conflict() == Conflict::Error
                    && self.outer(outer.as_ref(), names, whole, false)?.is_some() =>
            {
                let text = format!("column reference \"{}\" is ambiguous", written(names, whole));
                let error = SqlError::new(SqlState::AMBIGUOUS_COLUMN, text)
                    .detail("It could refer to either a PL/pgSQL variable or a table column.");
                self.at(loc, error.into())
            }
            found => found,
        }
    }

    fn outer(
        &mut self,
        outer: &dyn OuterNames,
        names: &[String],
        whole: bool,
        must_have: bool,
    ) -> Result<Option<Expr>> {
        // Errors of a record have no place, as PostgreSQL's.
        let found = outer.find(names, whole, must_have)?;
        let Some(OuterName { number, ty, .. }) = found else { return Ok(None) };
        let types = &mut self.params.types;
        if types.len() < number as usize {
            types.resize(number as usize, base::Oid::INVALID);
        }
        types[number as usize - 1] = ty.oid;
        Ok(Some(Expr::Param { number, ty: ty.base() }.declared(ty)))
    }

    /// The number of the parameter that is a cursor's name, if a variable of that name around the statement is one; else 0.
    pub(super) fn cursor_variable(&mut self, name: &str) -> Result<u32> {
        let Some(outer) = self.params.outer.clone() else { return Ok(0) };
        let names = [name.to_owned()];
        match outer.find(&names, false, false)? {
            Some(found) if found.ty.oid == types::oids::REFCURSOR => {
                match self.outer(outer.as_ref(), &names, false, false)? {
                    Some(Expr::Param { number, .. }) => Ok(number),
                    _ => Ok(0),
                }
            }
            _ => Ok(0),
        }
    }

    /// The fields of a parameter that is a row.
    pub(super) fn outer_fields(&self, number: u32) -> Option<Vec<(String, TypeRef)>> {
        Some(self.params.outer.as_ref()?.fields(number)?.to_vec())
    }
}

fn written(names: &[String], whole: bool) -> String {
    let mut text = names.join(".");
    if whole {
        text.push_str(".*");
    }
    text
}
