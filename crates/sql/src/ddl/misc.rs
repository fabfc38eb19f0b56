//! CREATE EXTENSION, SET CONSTRAINTS, and small things.

use super::{Ddl, new_oid};
use crate::parse::ast::ObjectName;
use crate::parse::utility::{Drop, UtilityOption};
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::bootstrap::PUBLIC;
use engine::catalog::load::RowSource;
use engine::catalog::rows::NewRow;
use types::Datum;

/// Extensions whose functions are built in, with their versions.
const EXTENSIONS: [(&str, &str); 5] = [
    ("pg_buffercache", "1.6"),
    ("pg_visibility", "1.2"),
    ("pgstattuple", "1.5"),
    ("pg_freespacemap", "1.3"),
    ("pageinspect", "1.13"),
];

impl Ddl<'_> {
    /// CREATE EXTENSION
    ///
    /// # Errors
    /// `42710`, `0A000` for others than those that are built in; `42501`
    pub fn create_extension(
        &mut self,
        if_not_exists: bool,
        name: &str,
        options: &[UtilityOption],
    ) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        if !rows.find("pg_extension", &[("extname", Datum::text(name))])?.is_empty() {
            if if_not_exists {
                drop(rows);
                drop(txn);
                return self.notice(
                    SqlState::DUPLICATE_OBJECT,
                    format!("extension \"{name}\" already exists, skipping"),
                );
            }
            bail!(DUPLICATE_OBJECT, "extension \"{name}\" already exists");
        }
        let Some((_, version)) = EXTENSIONS.iter().find(|(n, _)| *n == name) else {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("extension \"{name}\" is not available"),
            )
            .hint(
                "The extension must first be installed on the system where PostgreSQL is running.",
            )
            .into());
        };
        if !state.is_superuser() {
            return Err(SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("permission denied to create extension \"{name}\""),
            )
            .hint("Must be superuser to create this extension.")
            .into());
        }
        let mut version = (*version).to_owned();
        for option in options {
            match option.name.as_str() {
                "version" => version = option.string()?,
                "schema" | "cascade" => {}
                other => bail!(SYNTAX_ERROR, "option \"{other}\" not recognized"),
            }
        }
        let row = NewRow::of("pg_extension")
            .oid("oid", new_oid(state, "pg_extension")?)
            .text("extname", name)
            .oid("extowner", state.current_user.borrow().oid)
            .oid("extnamespace", PUBLIC)
            .bool("extrelocatable", true)
            .text("extversion", &version);
        rows.insert(&row).map(|_| ())
    }

    /// DROP EXTENSION
    ///
    /// # Errors
    /// `42704`
    pub fn drop_extension(&mut self, statement: &Drop) -> Result<()> {
        for name in &statement.names {
            let state = self.state();
            let txn = state.txn()?;
            let key = [("extname", Datum::text(&name.name))];
            let gone = state.catalog.rows(&txn).delete_where("pg_extension", &key)?;
            drop(txn);
            if gone == 0 {
                if !statement.if_exists {
                    bail!(UNDEFINED_OBJECT, "extension \"{}\" does not exist", name.name);
                }
                self.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("extension \"{}\" does not exist, skipping", name.name),
                )?;
            }
        }
        Ok(())
    }

    /// SET CONSTRAINTS
    ///
    /// # Errors
    /// `42704`, `42809`; `23503` when a check that is no longer put off fails.
    pub fn set_constraints(&mut self, names: &[ObjectName], deferred: bool) -> Result<()> {
        if !self.session.in_block() {
            let mut notice = crate::client::Notice::new(
                crate::client::Severity::Warning,
                "SET CONSTRAINTS can only be used in transaction blocks",
            );
            notice.body.state = SqlState::NO_ACTIVE_SQL_TRANSACTION;
            self.client.notice(&notice)?;
        }
        let state = self.state();
        let mut chosen: Vec<Oid> = Vec::new();
        for name in names {
            let txn = state.txn()?;
            let key = [("conname", Datum::text(&name.name))];
            let found = state.catalog.rows(&txn).find("pg_constraint", &key)?;
            if found.is_empty() {
                bail!(UNDEFINED_OBJECT, "constraint \"{name}\" does not exist");
            }
            for row in &found {
                if !row.bool("condeferrable") {
                    bail!(WRONG_OBJECT_TYPE, "constraint \"{name}\" is not deferrable");
                }
                chosen.push(row.oid("oid"));
            }
        }
        {
            let mut set = state.deferred.borrow_mut();
            if names.is_empty() {
                set.by_constraint.clear();
                set.all = Some(deferred);
            } else {
                set.by_constraint.extend(chosen.iter().map(|oid| (*oid, deferred)));
            }
        }
        if deferred {
            return Ok(());
        }
        self.session.run_queued_checks(&|oid| names.is_empty() || chosen.contains(&oid))
    }
}
