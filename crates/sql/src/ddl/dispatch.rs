//! Which statement goes where.

use super::Ddl;
use crate::parse::utility::{ObjectKind, UtilityStatement as U};
use base::{Error, Result};
use engine::catalog::model::Table;
use txn::LockMode;

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
                let check = |table: &Table| super::sequence::check_may_alter(self.state(), table);
                let mode = LockMode::ShareRowExclusive;
                match self.find_locked(name, mode, &check)? {
                    Some(table) => self.alter_sequence(&table, options)?,
                    None if *if_exists => {
                        let text = format!("relation \"{name}\" does not exist, skipping");
                        self.notice(base::SqlState::SUCCESSFUL_COMPLETION, text)?;
                    }
                    None => self.relation(name).map(|_| ())?,
                }
                "ALTER SEQUENCE"
            }
            U::AlterTable(s) => {
                self.alter_table(s)?;
                return Ok(format!("ALTER {}", s.kind.command()));
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
                return Ok(format!("DROP {}", s.kind.command()));
            }
            U::Drop(s) if s.kind == ObjectKind::Extension => {
                self.drop_extension(s)?;
                "DROP EXTENSION"
            }
            U::Drop(s) if matches!(s.kind, ObjectKind::Type | ObjectKind::Domain) => {
                self.drop_type(s)?;
                return Ok(format!("DROP {}", s.kind.command()));
            }
            U::Drop(s) if s.kind == ObjectKind::Statistics => {
                self.drop_statistics(s)?;
                "DROP STATISTICS"
            }
            U::Drop(s) => {
                return Err(Error::unsupported(format!("DROP {}", s.kind.command())));
            }
            U::CreateIndex(s) => {
                self.create_index_concurrently(s)?;
                "CREATE INDEX"
            }
            U::CreateTableAs(s) => return self.create_table_as(s),
            U::RefreshMaterializedView { concurrently, name, with_data } => {
                self.refresh(name, *concurrently, *with_data)?;
                "REFRESH MATERIALIZED VIEW"
            }
            U::CreateEnum { name, labels } => {
                self.create_enum(name, labels)?;
                "CREATE TYPE"
            }
            U::CreateComposite { name, attributes } => {
                self.create_composite(name, attributes)?;
                "CREATE TYPE"
            }
            U::AlterEnum(s) => {
                self.alter_enum(s)?;
                "ALTER TYPE"
            }
            U::CreateDomain(s) => {
                self.create_domain(s)?;
                "CREATE DOMAIN"
            }
            U::AlterDomain(s) => {
                self.alter_domain(s)?;
                "ALTER DOMAIN"
            }
            U::CreateStatistics(s) => {
                self.create_statistics(s)?;
                "CREATE STATISTICS"
            }
            U::AlterStatistics { if_exists, name, target } => {
                self.set_statistics_target(*if_exists, name, *target)?;
                "ALTER STATISTICS"
            }
            U::CreateSchema { if_not_exists, name, authorization, elements } => {
                let (name, owner) = (name.as_deref(), authorization.as_ref());
                self.create_schema(*if_not_exists, name, owner, elements)?;
                "CREATE SCHEMA"
            }
            U::CreateDatabase { name, options } => {
                self.create_database(name, options)?;
                "CREATE DATABASE"
            }
            U::DropDatabase { if_exists, name, force } => {
                self.drop_database(*if_exists, name, *force)?;
                "DROP DATABASE"
            }
            U::AlterDatabase { name, options } => {
                self.alter_database(name, options)?;
                "ALTER DATABASE"
            }
            U::AlterDatabaseSet { database, setting } => {
                self.database_setting(database, setting)?;
                "ALTER DATABASE"
            }
            U::CreateRole { name, login, options } => {
                self.create_role(name, *login, options)?;
                "CREATE ROLE"
            }
            U::AlterRole { role, options } => {
                self.alter_role(role, options)?;
                "ALTER ROLE"
            }
            U::AlterRoleSet { role, database, setting } => {
                self.role_setting(role.as_ref(), database.as_deref(), setting)?;
                "ALTER ROLE"
            }
            U::DropRole { if_exists, roles } => {
                self.drop_role(*if_exists, roles)?;
                "DROP ROLE"
            }
            U::CreateExtension { if_not_exists, name, options } => {
                self.create_extension(*if_not_exists, name, options)?;
                "CREATE EXTENSION"
            }
            U::UpdateExtension { name, version } => {
                self.update_extension(name, version.as_deref())?;
                "ALTER EXTENSION"
            }
            U::Rename(s) => {
                self.rename(s)?;
                return Ok(format!("ALTER {}", s.of.command()));
            }
            U::SetSchema { kind, if_exists, name, schema } => {
                self.set_schema(*kind, *if_exists, name, schema)?;
                return Ok(format!("ALTER {}", kind.command()));
            }
            U::OwnerTo { kind, if_exists, name, owner } => {
                self.owner_to(*kind, *if_exists, name, owner)?;
                return Ok(format!("ALTER {}", kind.command()));
            }
            U::Grant(s) => {
                self.grant(s)?;
                if s.grant { "GRANT" } else { "REVOKE" }
            }
            U::GrantRole(s) => {
                self.grant_role(s)?;
                if s.grant { "GRANT ROLE" } else { "REVOKE ROLE" }
            }
            U::Comment(s) => {
                self.comment(s)?;
                "COMMENT"
            }
            U::Reindex(s) => {
                self.reindex(s)?;
                "REINDEX"
            }
            U::SetConstraints { names, deferred } => {
                self.set_constraints(names, *deferred)?;
                "SET CONSTRAINTS"
            }
            U::Cluster { options, table, index } => {
                self.cluster(options, table.as_ref(), index.as_deref())?;
                "CLUSTER"
            }
            U::AlterDefaultPrivileges { roles, schemas, grant } => {
                self.alter_default_privileges(roles, schemas, grant)?;
                "ALTER DEFAULT PRIVILEGES"
            }
            U::ReassignOwned { from, to } => {
                self.reassign_owned(from, to)?;
                "REASSIGN OWNED"
            }
            U::DropOwned { roles, cascade } => {
                self.drop_owned(roles, *cascade)?;
                "DROP OWNED"
            }
            _ => return Err(Error::unsupported("this statement")),
        };
        Ok(tag.to_owned())
    }
}
