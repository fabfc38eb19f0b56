//! Names of variables, and what they mean at a place of a routine.
//!
//! # Invariants
//! Items are never removed: a place is the number of the item that was the last when its text was read, and each item knows the one before
//! it that is still in sight. So a lookup walks from a place outwards, block by block.

use crate::ast::{Routine, Variable};
use crate::host::{Columns, Conflict, ScopeId};
use base::{Result, SqlError, SqlState, bail};
use expr::TypeRef;
use std::sync::Arc;
use types::RecordColumn;

/// A variable's number within its routine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VarId(pub u32);

impl VarId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a label stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LabelKind {
    /// A block.
    Block,
    /// A loop.
    Loop,
}

/// One thing that has a name.
#[derive(Clone, Debug)]
pub enum Item {
    /// A block or loop begins; perhaps without a name.
    Label(LabelKind),
    /// A variable.
    Variable(VarId),
}

#[derive(Clone, Debug)]
struct Entry {
    item: Item,
    name: Arc<str>,
    /// The entry before it, plus one; 0: none.
    before: u32,
}

/// All names of a routine.
#[derive(Clone, Debug, Default)]
pub struct Namespace {
    entries: Vec<Entry>,
    /// The innermost entry, plus one.
    top: u32,
}

impl Namespace {
    /// The place where we are.
    pub fn scope(&self) -> ScopeId {
        ScopeId(self.top)
    }
    /// A name comes into sight.
    pub fn add(&mut self, item: Item, name: &str) {
        self.entries.push(Entry { item, name: name.into(), before: self.top });
        self.top = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
    }
    /// Back to where it was before the level of names began whose label is at `label`.
    pub fn leave_level(&mut self, label: ScopeId) {
        let entry = (label.0 as usize).checked_sub(1).and_then(|at| self.entries.get(at));
        self.top = entry.map_or(0, |e| e.before);
    }
    /// Back to a place.
    pub fn leave(&mut self, scope: ScopeId) {
        self.top = scope.0;
    }

    fn walk(&self, scope: ScopeId) -> impl Iterator<Item = &Entry> {
        let mut at = scope.0;
        std::iter::from_fn(move || {
            let entry = self.entries.get((at as usize).checked_sub(1)?)?;
            at = entry.before;
            Some(entry)
        })
    }

    /// The variable that `names` begins with, and how many of the names it takes: `x`, or `label.x`. A scalar that more names follow than
    /// its own is none.
    pub fn find(
        &self,
        scope: ScopeId,
        names: &[String],
        is_record: impl Fn(VarId) -> bool,
    ) -> Option<(VarId, usize)> {
        let first = names.first()?;
        let mut level: Vec<(VarId, &str)> = Vec::new();
        for entry in self.walk(scope) {
            match entry.item {
                Item::Variable(id) => {
                    if *entry.name == **first && (names.len() == 1 || is_record(id)) {
                        return Some((id, 1));
                    }
                    level.push((id, &entry.name));
                }
                Item::Label(_) => {
                    if *entry.name == **first
                        && let Some(second) = names.get(1)
                    {
                        let fits = |(id, name): &&(VarId, &str)| {
                            *name == second && (names.len() == 2 || is_record(*id))
                        };
                        if let Some((id, _)) = level.iter().find(fits) {
                            return Some((*id, 2));
                        }
                    }
                    level.clear();
                }
            }
        }
        None
    }

    /// Is there such a name in the innermost block?
    pub fn is_here(&self, name: &str) -> bool {
        self.walk(self.scope())
            .take_while(|e| matches!(e.item, Item::Variable(_)))
            .any(|e| *e.name == *name)
    }

    /// The label of that name around us.
    pub fn label(&self, name: &str) -> Option<LabelKind> {
        self.walk(self.scope()).find_map(|e| match e.item {
            Item::Label(kind) if *e.name == *name && !name.is_empty() => Some(kind),
            _ => None,
        })
    }

    /// Are we within a loop?
    pub fn in_loop(&self) -> bool {
        self.walk(self.scope()).any(|e| matches!(e.item, Item::Label(LabelKind::Loop)))
    }
}

/// What a value is taken from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reference {
    /// A variable: its value, or the whole row.
    Whole(VarId),
    /// A field of a record.
    Field(VarId, Arc<str>),
}

impl Reference {
    /// The variable.
    pub fn variable(&self) -> VarId {
        match self {
            Reference::Whole(id) | Reference::Field(id, _) => *id,
        }
    }
}

/// What a name means.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where its value is.
    pub reference: Reference,
    /// Its type by now.
    pub ty: TypeRef,
    /// Of a whole row: its fields by now; None: none are known, or it is no row variable.
    pub fields: Option<Columns>,
    /// May its type change, or its fields?
    pub may_change: bool,
}

/// The names in sight of a site, with the types they have by now: a copy, to be kept as long as the analysis takes.
#[derive(Clone, Debug)]
pub struct Names {
    pub(crate) routine: Arc<Routine>,
    pub(crate) scope: ScopeId,
    /// Of each variable that is a record and has fields by now.
    pub(crate) shapes: Arc<[Option<Columns>]>,
    pub(crate) types: Arc<[TypeRef]>,
}

impl Names {
    /// What becomes of a name that is a column too.
    pub fn conflict(&self) -> Conflict {
        self.routine.conflict
    }

    /// What `names`, joined by dots, mean; `whole`: a row is wanted (`names.*`). If they name a record that has no such field, it is an
    /// error where `must_have` is set, or else nothing.
    ///
    /// # Errors
    /// `42703` `record "r" has no field "f"`; `55000` `record "r" is not assigned yet`
    pub fn find(&self, names: &[String], whole: bool, must_have: bool) -> Result<Option<Found>> {
        let variables = &self.routine.variables;
        let is_record = |id: VarId| variables.get(id.index()).is_some_and(Variable::is_record);
        // With `.*` the names are looked up as if one more followed.
        let found = if whole {
            let mut longer = names.to_vec();
            longer.push("*".to_owned());
            self.routine.names.find(self.scope, &longer, is_record)
        } else {
            self.routine.names.find(self.scope, names, is_record)
        };
        let Some((id, used)) = found else { return Ok(None) };
        let Some(variable) = variables.get(id.index()) else { return Ok(None) };
        let shape = self.shapes.get(id.index()).cloned().flatten();
        let record = variable.is_record();
        if used == names.len() {
            return Ok((record || !whole).then(|| Found {
                reference: Reference::Whole(id),
                ty: self.types.get(id.index()).copied().unwrap_or(variable.ty),
                fields: shape,
                may_change: record || variable.takes_type,
            }));
        }
        if whole || !record || used + 1 != names.len() {
            return Ok(None);
        }
        let field = &names[used];
        let Some(columns) = shape else { return Err(not_assigned(&variable.name)) };
        match columns.iter().find(|c| *c.name == **field) {
            Some(RecordColumn { type_oid, typmod, .. }) => Ok(Some(Found {
                reference: Reference::Field(id, field.as_str().into()),
                ty: TypeRef { oid: *type_oid, typmod: *typmod },
                fields: None,
                may_change: true,
            })),
            None if must_have => {
                bail!(UNDEFINED_COLUMN, "record \"{}\" has no field \"{field}\"", variable.name)
            }
            None => Ok(None),
        }
    }
}

/// `55000`
pub(crate) fn not_assigned(name: &str) -> base::Error {
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("record \"{name}\" is not assigned yet"),
    )
    .detail("The tuple structure of a not-yet-assigned record is indeterminate.")
    .into()
}
