//! The variables of a routine that runs.

use crate::ast::{Routine, Variable};
use crate::host::{Columns, Site, TypeKind};
use crate::names::{Names, Reference, VarId, not_assigned};
use base::{Result, bail};
use expr::TypeRef;
use std::sync::Arc;
use types::{Datum, RecordColumn, RecordValue, oids};

/// A variable's value.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// Of a scalar.
    Scalar(Datum),
    /// Of a record: None is one that nothing was assigned to, or NULL.
    Row(Option<Arc<RecordValue>>),
}

/// What a routine does at the moment, for context lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// A statement of that line and name.
    Statement(u32, &'static str),
    /// Something of that line, in these words.
    Doing(u32, &'static str),
    /// Nothing that could be said.
    Nowhere,
}

/// The variables of a routine, and where it is.
#[derive(Clone, Debug)]
pub struct Frame {
    routine: Arc<Routine>,
    slots: Vec<Slot>,
    /// Of each variable: that of its declaration, but for the subject of a CASE.
    types: Vec<TypeRef>,
    pub(crate) at: At,
}

impl Frame {
    /// All variables NULL, FOUND false. Parameters are set with [`Frame::set`] before the routine runs.
    pub fn new(routine: Arc<Routine>) -> Frame {
        let empty = |v: &Variable| {
            if v.is_record() { Slot::Row(None) } else { Slot::Scalar(Datum::Null) }
        };
        let slots = routine.variables.iter().map(empty).collect();
        let types = routine.variables.iter().map(|v| v.ty).collect();
        let mut frame = Frame { routine, slots, types, at: At::Nowhere };
        frame.set_found(false);
        frame
    }

    /// The routine.
    pub fn routine(&self) -> &Arc<Routine> {
        &self.routine
    }

    /// The names in sight of a site, with their types by now.
    pub fn names(&self, site: &Site) -> Names {
        let shapes = (0..self.slots.len()).map(|i| self.columns(VarId(i as u32))).collect();
        let types = self.types.as_slice().into();
        Names { routine: Arc::clone(&self.routine), scope: site.scope, shapes, types }
    }

    /// The fields that a record has by now. Of a row type's: even if it is NULL.
    pub fn columns(&self, id: VarId) -> Option<Columns> {
        match self.slots.get(id.index())? {
            Slot::Row(Some(row)) => Some(Arc::clone(&row.columns)),
            Slot::Row(None) => match &self.variable(id).kind {
                TypeKind::Row { columns, .. } => Some(Arc::clone(columns)),
                _ => None,
            },
            Slot::Scalar(_) => None,
        }
    }

    /// A variable's declaration.
    pub fn variable(&self, id: VarId) -> &Variable {
        &self.routine.variables[id.index()]
    }

    /// A scalar variable's value, without a copy; None: it is a record.
    #[inline]
    pub fn scalar(&self, id: VarId) -> Option<&Datum> {
        match self.slots.get(id.index()) {
            Some(Slot::Scalar(value)) => Some(value),
            _ => None,
        }
    }

    /// The type of a scalar variable that may be NULL and whose values are not checked: one of that very type may be put into it as it is.
    #[inline]
    pub fn unchecked(&self, id: VarId) -> Option<TypeRef> {
        let variable = self.variable(id);
        let plain = matches!(variable.kind, TypeKind::Scalar { checked: false });
        (plain && !variable.not_null).then_some(variable.ty)
    }

    /// A scalar variable's value, to be written to.
    #[inline]
    pub fn scalar_mut(&mut self, id: VarId) -> Option<&mut Datum> {
        match self.slots.get_mut(id.index()) {
            Some(Slot::Scalar(value)) => Some(value),
            _ => None,
        }
    }

    /// The value of a variable, field or whole row.
    ///
    /// # Errors
    /// `42703`, `55000`: a record that has no such field by now.
    pub fn value(&self, reference: &Reference) -> Result<Datum> {
        let id = reference.variable();
        match (self.slots.get(id.index()), reference) {
            (Some(Slot::Scalar(value)), Reference::Whole(_)) => Ok(value.clone()),
            (Some(Slot::Row(row)), Reference::Whole(_)) => {
                Ok(row.as_ref().map_or(Datum::Null, |row| Datum::Record(Arc::clone(row))))
            }
            (Some(Slot::Row(Some(row))), Reference::Field(_, name)) => {
                let at = self.field_of(&row.columns, id, name)?.0;
                Ok(row.fields.get(at).cloned().unwrap_or_default())
            }
            (Some(Slot::Row(None)), Reference::Field(_, name)) => {
                self.field(id, name)?;
                Ok(Datum::Null)
            }
            _ => bail!(INTERNAL_ERROR, "no such variable"),
        }
    }

    /// The type that it has by now.
    ///
    /// # Errors
    /// `42703`, `55000`: a record that has no such field by now.
    pub fn type_of(&self, reference: &Reference) -> Result<TypeRef> {
        match reference {
            Reference::Whole(id) => Ok(self.types[id.index()]),
            Reference::Field(id, name) => Ok(self.field(*id, name)?.1),
        }
    }

    /// A field's place and type.
    pub(crate) fn field(&self, id: VarId, name: &str) -> Result<(usize, TypeRef)> {
        let Some(columns) = self.columns(id) else {
            return Err(not_assigned(&self.variable(id).name));
        };
        self.field_of(&columns, id, name)
    }

    fn field_of(
        &self,
        columns: &[RecordColumn],
        id: VarId,
        name: &str,
    ) -> Result<(usize, TypeRef)> {
        match columns.iter().position(|c| *c.name == *name) {
            Some(at) => {
                let RecordColumn { type_oid, typmod, .. } = columns[at];
                Ok((at, TypeRef { oid: type_oid, typmod }))
            }
            None => {
                let record = &self.variable(id).name;
                bail!(UNDEFINED_COLUMN, "record \"{record}\" has no field \"{name}\"")
            }
        }
    }

    /// Sets a variable, of its very type: a parameter's value. A record takes a row or NULL.
    pub fn set(&mut self, id: VarId, value: Datum) {
        match (self.slots.get_mut(id.index()), value) {
            (Some(Slot::Scalar(slot)), value) => *slot = value,
            (Some(Slot::Row(slot)), Datum::Record(row)) => *slot = Some(row),
            (Some(Slot::Row(slot)), _) => *slot = None,
            (None, _) => {}
        }
    }

    /// What a variable holds, which is NULL then.
    pub(crate) fn take(&mut self, id: VarId) -> Datum {
        match self.slots.get_mut(id.index()) {
            Some(Slot::Scalar(value)) => std::mem::take(value),
            Some(Slot::Row(row)) => row.take().map_or(Datum::Null, Datum::Record),
            None => Datum::Null,
        }
    }

    /// Sets a variable that takes the type of what is assigned.
    pub(crate) fn set_typed(&mut self, id: VarId, value: Datum, ty: TypeRef) {
        self.types[id.index()] = ty;
        self.set(id, value);
    }

    /// FOUND.
    pub(crate) fn set_found(&mut self, found: bool) {
        self.set(VarId::FOUND, Datum::Bool(found));
    }

    /// Where the routine is, in PostgreSQL's words: what a notice or an error that arises now has as a context line.
    pub fn context(&self) -> String {
        let name = &self.routine.name;
        match self.at {
            At::Statement(line, what) => format!("PL/pgSQL function {name} line {line} at {what}"),
            At::Doing(line, what) => format!("PL/pgSQL function {name} line {line} {what}"),
            At::Nowhere => format!("PL/pgSQL function {name}"),
        }
    }
}

impl VarId {
    /// FOUND, which every routine has.
    pub const FOUND: VarId = VarId(0);
}

/// The type of a boolean.
pub(crate) const BOOLEAN: TypeRef = TypeRef { oid: oids::BOOL, typmod: -1 };
/// The type of text.
pub(crate) const TEXT: TypeRef = TypeRef { oid: oids::TEXT, typmod: -1 };
/// The type of an integer.
pub(crate) const INT4: TypeRef = TypeRef { oid: oids::INT4, typmod: -1 };
/// The type of a bigint.
pub(crate) const INT8: TypeRef = TypeRef { oid: oids::INT8, typmod: -1 };
