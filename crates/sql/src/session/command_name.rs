//! What statements that may write are called in errors: their command tags.

use crate::parse::utility::{ObjectKind, UtilityStatement as U};

fn of_kind(verb: &str, kind: ObjectKind) -> String {
    let kind = match kind {
        ObjectKind::Column | ObjectKind::Constraint => ObjectKind::Table,
        other => other,
    };
    format!("{verb} {}", kind.command())
}

/// What a statement is called in an error.
pub(super) fn command_name(statement: &U) -> String {
    let name = match statement {
        U::CreateTable(_) => "CREATE TABLE",
        U::CreateTableAs(s) if s.materialized_view => "CREATE MATERIALIZED VIEW",
        U::CreateTableAs(s) if s.select_into => "SELECT INTO",
        U::CreateTableAs(_) => "CREATE TABLE AS",
        U::RefreshMaterializedView { .. } => "REFRESH MATERIALIZED VIEW",
        U::CreateIndex(_) => "CREATE INDEX",
        U::CreateView(_) => "CREATE VIEW",
        U::CreateSequence(_) => "CREATE SEQUENCE",
        U::AlterSequence { .. } => "ALTER SEQUENCE",
        U::CreateSchema { .. } => "CREATE SCHEMA",
        U::CreateDatabase { .. } => "CREATE DATABASE",
        U::DropDatabase { .. } => "DROP DATABASE",
        U::AlterDatabase { .. } | U::AlterDatabaseSet { .. } => "ALTER DATABASE",
        U::CreateRole { .. } => "CREATE ROLE",
        U::AlterRole { .. } | U::AlterRoleSet { .. } => "ALTER ROLE",
        U::DropRole { .. } => "DROP ROLE",
        U::CreateEnum { .. } | U::CreateComposite { .. } => "CREATE TYPE",
        U::AlterEnum(_) => "ALTER TYPE",
        U::CreateDomain(_) => "CREATE DOMAIN",
        U::AlterDomain(_) => "ALTER DOMAIN",
        U::CreateStatistics(_) => "CREATE STATISTICS",
        U::AlterStatistics { .. } => "ALTER STATISTICS",
        U::CreateExtension { .. } => "CREATE EXTENSION",
        U::UpdateExtension { .. } => "ALTER EXTENSION",
        U::AlterTable(s) => return of_kind("ALTER", s.kind),
        U::Rename(s) if s.of == ObjectKind::Type => "ALTER TYPE",
        U::Rename(s) => return of_kind("ALTER", s.kind),
        U::SetSchema { kind, .. } | U::OwnerTo { kind, .. } => return of_kind("ALTER", *kind),
        U::Drop(s) => return of_kind("DROP", s.kind),
        U::Grant(s) if s.grant => "GRANT",
        U::Grant(_) => "REVOKE",
        U::GrantRole(s) if s.of_group => "ALTER ROLE",
        U::GrantRole(s) if s.grant => "GRANT ROLE",
        U::GrantRole(_) => "REVOKE ROLE",
        U::AlterDefaultPrivileges { .. } => "ALTER DEFAULT PRIVILEGES",
        U::ReassignOwned { .. } => "REASSIGN OWNED",
        U::DropOwned { .. } => "DROP OWNED",
        U::Comment(_) => "COMMENT",
        U::Truncate(_) => "TRUNCATE TABLE",
        U::Do { .. } => "DO",
        _ => "this statement",
    };
    name.to_owned()
}
