//! Which statement goes where.

use super::Ddl;
use crate::parse::utility::{ObjectKind, UtilityStatement as U};
use base::{Error, Result};

impl Ddl<'_> {
    /// Carries out a statement of data definition; returns its tag.
    ///
    /// # Errors
    /// The statement's.
    pub fn run(&mut self, statement: &U) -> Result<String> {
        let tag = match statement {
            U::CreateTable(s) => {
                self.create_table(s)?;
                "CREATE TABLE"
            }
            U::CreateIndex(s) if !s.concurrently => {
                self.create_index(s)?;
                "CREATE INDEX"
            }
            U::CreateView(s) => {
                self.create_view(s)?;
                "CREATE VIEW"
            }
            U::CreateSequence(s) => {
                self.create_sequence(s)?;
                "CREATE SEQUENCE"
            }
            U::AlterSequence { if_exists, name, options } => {
                match self.find(name)? {
                    None if *if_exists => {
                        let text = format!("relation \"{name}\" does not exist, skipping");
                        self.notice(base::SqlState::SUCCESSFUL_COMPLETION, text)?;
                    }
                    _ => {
                        let table = self.relation(name)?;
                        self.alter_sequence(&table, options)?;
                    }
                }
                "ALTER SEQUENCE"
            }
            U::AlterTable(s) => {
                self.alter_table(s)?;
                return Ok(format!("ALTER {}", s.kind.noun().to_uppercase()));
            }
            U::Truncate(s) => {
                self.truncate(s)?;
                "TRUNCATE TABLE"
            }
            U::Drop(s)
                if matches!(
                    s.kind,
                    ObjectKind::Table
                        | ObjectKind::Index
                        | ObjectKind::View
                        | ObjectKind::MaterializedView
                        | ObjectKind::Sequence
                        | ObjectKind::Schema
                ) =>
            {
                self.drop_statement(s)?;
                return Ok(format!("DROP {}", s.kind.noun().to_uppercase()));
            }
            _ => return Err(Error::unsupported("this statement")),
        };
        Ok(tag.to_owned())
    }
}
