//! A routine's variables as the names around a statement.
//!
//! # Invariants
//! A name that analysis makes use of becomes a parameter. Before the statement runs its parameters are compared with what the variables are by
//! then ([`SiteNames::values`]): a record may have got other fields, and then all that was made of the text is forgotten.

use crate::analyse::{Conflict, OuterName, OuterNames};
use base::Result;
use expr::TypeRef;
use plpgsql::{Columns, Found, Frame, Names, Reference, VarId};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use types::Datum;

/// The names in sight of a statement, and those of them that it has as parameters.
#[derive(Debug)]
pub(super) struct SiteNames {
    names: Names,
    /// Its parameters, in their order.
    used: RefCell<Vec<Found>>,
}

impl SiteNames {
    /// Nobody has looked for any yet.
    pub fn new(names: Names) -> SiteNames {
        SiteNames { names, used: RefCell::default() }
    }

    /// The variables that are its parameters.
    pub fn references(&self) -> Vec<Reference> {
        self.used.borrow().iter().map(|found| found.reference.clone()).collect()
    }

    /// Its parameters, if all of them are scalar variables, whose types stay what they are.
    pub fn scalars(&self) -> Option<Box<[VarId]>> {
        let scalar = |found: &Found| match found.reference {
            Reference::Whole(id) if !found.may_change => Some(id),
            _ => None,
        };
        self.used.borrow().iter().map(scalar).collect()
    }

    /// Puts the parameters' values into `values`; false if one is of another type by now than it was.
    pub fn values(&self, frame: &Frame, values: &mut Vec<Datum>) -> Result<bool> {
        values.clear();
        for found in self.used.borrow().iter() {
            if found.may_change && !is_as_it_was(found, frame)? {
                return Ok(false);
            }
            let value = match frame.scalar(found.reference.variable()) {
                Some(value) => value.clone(),
                None => frame.value(&found.reference)?,
            };
            values.push(value);
        }
        Ok(true)
    }
}

fn is_as_it_was(found: &Found, frame: &Frame) -> Result<bool> {
    if frame.type_of(&found.reference)? != found.ty {
        return Ok(false);
    }
    let Some(before) = &found.fields else { return Ok(true) };
    let now = frame.columns(found.reference.variable());
    Ok(now.is_some_and(|now| Arc::ptr_eq(&now, before) || are_alike(&now, before)))
}

fn are_alike(a: &Columns, b: &Columns) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b.iter())
            .all(|(a, b)| a.name == b.name && a.type_oid == b.type_oid && a.typmod == b.typmod)
}

/// Columns as analysis knows them.
fn fields_of(columns: &Columns) -> Rc<[(String, TypeRef)]> {
    let field = |c: &types::RecordColumn| {
        (c.name.as_str().to_owned(), TypeRef { oid: c.type_oid, typmod: c.typmod })
    };
    columns.iter().map(field).collect()
}

impl OuterNames for SiteNames {
    fn conflict(&self) -> Conflict {
        match self.names.conflict() {
            plpgsql::Conflict::Error => Conflict::Error,
            plpgsql::Conflict::UseVariable => Conflict::Outer,
            plpgsql::Conflict::UseColumn => Conflict::Column,
        }
    }

    fn find(&self, names: &[String], whole: bool, must_have: bool) -> Result<Option<OuterName>> {
        let Some(found) = self.names.find(names, whole, must_have)? else { return Ok(None) };
        let mut used = self.used.borrow_mut();
        let same = |before: &Found| before.reference == found.reference;
        let at = used.iter().position(same).unwrap_or_else(|| {
            used.push(found.clone());
            used.len() - 1
        });
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        Ok(Some(OuterName { number, ty: found.ty, fields: found.fields.as_ref().map(fields_of) }))
    }

    fn fields(&self, number: u32) -> Option<Rc<[(String, TypeRef)]>> {
        let used = self.used.borrow();
        used.get(number as usize - 1)?.fields.as_ref().map(fields_of)
    }
}
