//! ALTER TABLE … ADD GENERATED, DROP IDENTITY, SET GENERATED: identity columns.

use super::Ddl;
use super::alter::column_of;
use super::depend::Object;
use base::{Result, SqlState, bail};
use engine::catalog::model::Table;
use std::sync::Arc;
use types::Datum;

impl Ddl<'_> {
    /// ADD GENERATED … AS IDENTITY
    ///
    /// # Errors
    /// `55000`; I/O.
    pub(super) fn add_identity(
        &mut self,
        table: &Arc<Table>,
        column: &str,
        always: bool,
        options: &[crate::parse::utility::SequenceOption],
    ) -> Result<()> {
        let found = column_of(table, column)?.clone();
        super::table::check_identity_type(found.ty.oid)?;
        if found.identity.is_some() {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "column \"{column}\" of relation \"{}\" is already an identity column",
                table.name
            );
        }
        if !found.not_null {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "column \"{column}\" of relation \"{}\" must be declared NOT NULL before identity can be added",
                table.name
            );
        }
        super::not_null::check_valid(self.state(), table, found.number)?;
        if found.default.is_some() {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "column \"{column}\" of relation \"{}\" already has a default value",
                table.name
            );
        }
        let sequence = self.column_sequence(
            &table.name,
            column,
            super::sequence::Home::of(table),
            found.ty.oid,
            options,
        )?;
        self.own_sequence(sequence, table.oid, found.number, true)?;
        let letter = if always { b'a' } else { b'd' };
        self.set_attribute(table, found.number, "attidentity", Datum::Char(letter))
    }

    /// DROP IDENTITY
    ///
    /// # Errors
    /// `55000`; I/O.
    pub(super) fn drop_identity(
        &mut self,
        table: &Arc<Table>,
        column: &str,
        if_exists: bool,
    ) -> Result<()> {
        let found = column_of(table, column)?.clone();
        if found.identity.is_none() {
            let text = format!(
                "column \"{column}\" of relation \"{}\" is not an identity column",
                table.name
            );
            if if_exists {
                return self.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{text}, skipping"));
            }
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{text}");
        }
        self.set_attribute(table, found.number, "attidentity", Datum::Char(0))?;
        if let Some(sequence) = found.identity_sequence {
            super::drop::drop_objects(self.state(), &[Object::relation(sequence)], true)?;
        }
        Ok(())
    }

    /// SET GENERATED, and the sequence's options.
    ///
    /// # Errors
    /// `55000`; those of ALTER SEQUENCE.
    pub(super) fn set_identity(
        &mut self,
        table: &Arc<Table>,
        column: &str,
        always: Option<bool>,
        options: &[crate::parse::utility::SequenceOption],
    ) -> Result<()> {
        let found = column_of(table, column)?.clone();
        let Some(sequence) = found.identity_sequence else {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "column \"{column}\" of relation \"{}\" is not an identity column",
                table.name
            );
        };
        if let Some(always) = always {
            let letter = if always { b'a' } else { b'd' };
            self.set_attribute(table, found.number, "attidentity", Datum::Char(letter))?;
        }
        if !options.is_empty() {
            let sequence = self.described(sequence)?;
            self.alter_sequence(&sequence, options)?;
        }
        Ok(())
    }
}
