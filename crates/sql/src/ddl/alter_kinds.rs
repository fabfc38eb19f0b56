//! Which actions of ALTER TABLE are for which kinds of relations. A view's columns and a sequence's are its definition's: taking one
//! away would leave a relation that nobody can read.

use base::{Result, SqlError, SqlState};
use engine::catalog::model::{RelationKind, Table};

use crate::parse::utility::{AlterTable, AlterTableAction as A, ObjectKind};

/// Is it an ALTER TABLE of an index with what ALTER INDEX can do to it?
///
/// # Errors
/// `42809` for what is done to tables only.
pub(super) fn are_for_an_index(statement: &AlterTable, table: &Table) -> Result<bool> {
    if statement.kind != ObjectKind::Table || table.kind != RelationKind::Index {
        return Ok(false);
    }
    for action in &statement.actions {
        check_action(table, action)?;
    }
    let fits = |a: &A| matches!(a, A::SetOptions(_) | A::ResetOptions(_) | A::SetStatistics { .. });
    Ok(statement.actions.iter().all(fits))
}

/// Fails if `action` is not for relations of `table`'s kind.
///
/// # Errors
/// `42809`
pub(super) fn check_action(table: &Table, action: &A) -> Result<()> {
    use RelationKind as K;
    // What the action is called in messages, and what it is for besides tables.
    let (name, others): (&str, &[K]) = match action {
        A::AddColumn { .. } => ("ADD COLUMN", &[K::Composite]),
        A::DropColumn { .. } => ("DROP COLUMN", &[K::Composite]),
        A::AlterType { .. } => ("ALTER COLUMN ... SET DATA TYPE", &[K::Composite]),
        A::SetDefault { .. } => ("ALTER COLUMN ... SET DEFAULT", &[K::View]),
        A::SetNotNull { .. } => ("ALTER COLUMN ... SET NOT NULL", &[]),
        A::DropNotNull { .. } => ("ALTER COLUMN ... DROP NOT NULL", &[]),
        A::SetExpression { .. } => ("ALTER COLUMN ... SET EXPRESSION", &[]),
        A::DropExpression { .. } => ("ALTER COLUMN ... DROP EXPRESSION", &[]),
        A::SetStatistics { .. } => {
            ("ALTER COLUMN ... SET STATISTICS", &[K::MaterializedView, K::Index])
        }
        A::SetStorage { .. } => ("ALTER COLUMN ... SET STORAGE", &[K::MaterializedView]),
        A::SetCompression { .. } => ("ALTER COLUMN ... SET COMPRESSION", &[K::MaterializedView]),
        A::SetColumnOptions { .. } => ("ALTER COLUMN ... SET", &[K::MaterializedView]),
        A::ResetColumnOptions { .. } => ("ALTER COLUMN ... RESET", &[K::MaterializedView]),
        A::AddIdentity { .. } => ("ALTER COLUMN ... ADD IDENTITY", &[K::View]),
        A::SetIdentity { .. } => ("ALTER COLUMN ... SET", &[K::View]),
        A::DropIdentity { .. } => ("ALTER COLUMN ... DROP IDENTITY", &[K::View]),
        A::AddConstraint(_) => ("ADD CONSTRAINT", &[]),
        A::AlterConstraint { .. } => ("ALTER CONSTRAINT", &[]),
        A::ValidateConstraint(_) => ("VALIDATE CONSTRAINT", &[]),
        A::DropConstraint { .. } => ("DROP CONSTRAINT", &[]),
        A::SetOptions(_) => ("SET", &[K::View, K::MaterializedView, K::Index]),
        A::ResetOptions(_) => ("RESET", &[K::View, K::MaterializedView, K::Index]),
        A::SetLogged(true) => ("SET LOGGED", &[K::Sequence]),
        A::SetLogged(false) => ("SET UNLOGGED", &[K::Sequence]),
        A::ClusterOn(_) => ("CLUSTER ON", &[K::MaterializedView]),
        A::SetWithoutCluster => ("SET WITHOUT CLUSTER", &[K::MaterializedView]),
        A::EnableDisable { enable, what } if what.starts_with("trigger ") => {
            let name = match (*enable, what.as_str()) {
                (true, "trigger all") => "ENABLE TRIGGER ALL",
                (true, "trigger user") => "ENABLE TRIGGER USER",
                (true, _) => "ENABLE TRIGGER",
                (false, "trigger all") => "DISABLE TRIGGER ALL",
                (false, "trigger user") => "DISABLE TRIGGER USER",
                (false, _) => "DISABLE TRIGGER",
            };
            (name, &[])
        }
        A::ReplicaIdentity(_) | A::ReplicaIdentityUsing(_) => {
            ("REPLICA IDENTITY", &[K::MaterializedView])
        }
        _ => return Ok(()),
    };
    if matches!(table.kind, K::Table | K::Toast) || others.contains(&table.kind) {
        return Ok(());
    }
    let plural = match table.kind {
        K::Index | K::PartitionedIndex => "indexes".to_owned(),
        kind => format!("{}s", crate::acl::noun(kind)),
    };
    Err(SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("ALTER action {name} cannot be performed on relation \"{}\"", table.name),
    )
    .detail(format!("This operation is not supported for {plural}."))
    .into())
}
