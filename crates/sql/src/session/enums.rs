//! Enum types as the session sees them: labels of values and values of labels.
//!
//! # Invariants
//! A label added by a transaction is not used before it has committed, unless the type was made in it too: were it rolled back,
//! its key could stand in indexes (of which entries of rolled back rows go later) and be given to another label.

use super::state::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::enums::EnumLabels;
use std::collections::HashSet;
use std::sync::Arc;
use types::enums::invalid_label;
use types::{EnumValue, Text};

/// What the transaction has made.
#[derive(Default)]
pub struct NewEnums {
    /// Types: all their values may be used.
    pub types: HashSet<Oid>,
    /// Values added to types that were there before: none may be used.
    pub values: HashSet<EnumValue>,
}

impl NewEnums {
    /// The transaction has ended.
    pub fn clear(&mut self) {
        self.types.clear();
        self.values.clear();
    }
}

impl SessionState {
    fn enum_labels(&self, ty: Oid) -> Result<Arc<EnumLabels>> {
        self.catalog.enum_labels(&*self.txn()?, ty)
    }

    fn type_text(&self, ty: Oid) -> String {
        crate::system::names::type_name(self, ty, None)
            .unwrap_or_else(|| types::format_type(ty, -1))
    }

    /// The label of a value.
    ///
    /// # Errors
    /// `XX000` when the type has no such value; I/O.
    pub fn enum_label(&self, value: EnumValue) -> Result<Text> {
        if let Some(label) = self.enum_labels(value.type_oid)?.label(value.key) {
            return Ok(label.clone());
        }
        // What all sessions share is emptied a little after a transaction that added the label has committed.
        let txn = self.txn()?;
        let labels = EnumLabels::load(&self.catalog.rows(&txn), value.type_oid)?;
        match labels.label(value.key) {
            Some(label) => Ok(label.clone()),
            None => bail!(INTERNAL_ERROR, "invalid internal value for enum: {}", value.key),
        }
    }

    /// The value with that label.
    ///
    /// # Errors
    /// `22P02` when there is none, `55P04` when it was added in this transaction; I/O.
    pub fn enum_value(&self, type_oid: Oid, label: &str) -> Result<EnumValue> {
        let Some(key) = self.enum_labels(type_oid)?.key(label) else {
            return Err(invalid_label(&self.type_text(type_oid), label));
        };
        let value = EnumValue { type_oid, key };
        self.check_enum_use(value)?;
        Ok(value)
    }

    /// Fails for a value that was added in this transaction.
    ///
    /// # Errors
    /// `55P04`
    pub fn check_enum_use(&self, value: EnumValue) -> Result<()> {
        if !self.new_enums.borrow().values.contains(&value) {
            return Ok(());
        }
        let label = self.enum_label(value)?;
        let name = self.type_text(value.type_oid);
        Err(SqlError::new(
            SqlState(*b"55P04"),
            format!("unsafe use of new value \"{label}\" of enum type {name}"),
        )
        .hint("New enum values must be committed before they can be used.")
        .into())
    }

    /// All values of a type, in order.
    ///
    /// # Errors
    /// I/O.
    pub fn enum_values(&self, type_oid: Oid) -> Result<Vec<EnumValue>> {
        let labels = self.enum_labels(type_oid)?;
        Ok(labels.keys().map(|key| EnumValue { type_oid, key }).collect())
    }
}
