//! CREATE TABLE, CREATE INDEX, ALTER TABLE as they were written.

use super::*;

#[derive(Clone, Debug)]
pub struct CreateTable {
    pub name: ObjectName,
    pub persistence: RelationPersistence,
    pub if_not_exists: bool,
    pub elements: Vec<TableElement>,
    pub inherits: Vec<ObjectName>,
    pub partition_by: Option<PartitionBy>,
    pub partition_of: Option<PartitionOf>,
    pub access_method: Option<String>,
    pub options: Vec<UtilityOption>,
    pub on_commit: OnCommit,
    pub tablespace: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnCommit {
    PreserveRows,
    DeleteRows,
    Drop,
}

#[derive(Clone, Debug)]
pub struct PartitionBy {
    /// range, list, hash
    pub strategy: String,
    pub elements: Vec<IndexElement>,
}

#[derive(Clone, Debug)]
pub struct PartitionOf {
    pub parent: ObjectName,
    pub bound: PartitionBound,
}

#[derive(Clone, Debug)]
pub enum PartitionBound {
    Default,
    In(Vec<Expr>),
    /// MINVALUE and MAXVALUE are columns of that name.
    Range {
        from: Vec<Expr>,
        to: Vec<Expr>,
    },
    Hash {
        modulus: i32,
        remainder: i32,
    },
}

#[derive(Clone, Debug)]
pub enum TableElement {
    Column(ColumnDef),
    Constraint(TableConstraint),
    Like { table: ObjectName, options: Vec<(bool, String)> },
}

#[derive(Clone, Debug)]
pub struct ColumnDef {
    pub name: String,
    pub ty: TypeName,
    pub collation: Option<Vec<String>>,
    pub storage: Option<String>,
    pub compression: Option<String>,
    pub constraints: Vec<ColumnConstraint>,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub struct ColumnConstraint {
    pub name: Option<String>,
    pub kind: ColumnConstraintKind,
    pub timing: ConstraintTiming,
    pub loc: Loc,
}

/// DEFERRABLE and the like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConstraintTiming {
    pub deferrable: bool,
    pub initially_deferred: bool,
    pub not_valid: bool,
    pub no_inherit: bool,
    pub not_enforced: bool,
}

#[derive(Clone, Debug)]
pub enum ColumnConstraintKind {
    NotNull,
    Null,
    Default(Expr),
    Check(Expr),
    Unique(UniqueOptions),
    PrimaryKey(UniqueOptions),
    References(References),
    Identity {
        always: bool,
        options: Vec<SequenceOption>,
    },
    /// GENERATED ALWAYS AS (…) STORED | VIRTUAL
    Generated {
        expr: Expr,
        when: Generation,
    },
}

#[derive(Clone, Debug, Default)]
pub struct UniqueOptions {
    pub nulls_not_distinct: bool,
    pub include: Vec<String>,
    pub options: Vec<UtilityOption>,
    pub tablespace: Option<String>,
}

#[derive(Clone, Debug)]
pub struct References {
    pub table: ObjectName,
    /// Empty: the primary key.
    pub columns: Vec<String>,
    pub match_full: bool,
    pub on_update: ReferentialAction,
    pub on_delete: ReferentialAction,
    /// SET NULL (a, b), SET DEFAULT (a, b)
    pub on_delete_columns: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct TableConstraint {
    pub name: Option<String>,
    pub kind: TableConstraintKind,
    pub timing: ConstraintTiming,
    pub loc: Loc,
}

#[derive(Clone, Debug)]
pub enum TableConstraintKind {
    Check(Expr),
    NotNull(String),
    Unique {
        columns: Vec<String>,
        options: UniqueOptions,
    },
    PrimaryKey {
        columns: Vec<String>,
        options: UniqueOptions,
    },
    /// ADD CONSTRAINT … UNIQUE | PRIMARY KEY USING INDEX
    UsingIndex {
        primary: bool,
        index: String,
    },
    ForeignKey {
        columns: Vec<String>,
        references: References,
    },
}

#[derive(Clone, Debug)]
pub struct CreateTableAs {
    pub name: ObjectName,
    pub columns: Vec<String>,
    pub persistence: RelationPersistence,
    pub if_not_exists: bool,
    pub materialized_view: bool,
    /// SELECT … INTO
    pub select_into: bool,
    pub access_method: Option<String>,
    pub options: Vec<UtilityOption>,
    pub on_commit: OnCommit,
    pub tablespace: Option<String>,
    /// A query, or EXECUTE.
    pub statement: Statement,
    /// Where the query's text lies in the source.
    pub query_span: (Loc, Loc),
    pub with_data: bool,
}

#[derive(Clone, Debug)]
pub struct CreateIndex {
    pub name: Option<String>,
    pub unique: bool,
    pub concurrently: bool,
    pub if_not_exists: bool,
    pub only: bool,
    pub table: ObjectName,
    /// btree when not written.
    pub method: String,
    pub elements: Vec<IndexElement>,
    pub include: Vec<IndexElement>,
    pub nulls_not_distinct: bool,
    pub options: Vec<UtilityOption>,
    pub tablespace: Option<String>,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct AlterTable {
    /// Table, Index, View, MaterializedView, Sequence.
    pub kind: ObjectKind,
    pub if_exists: bool,
    pub only: bool,
    pub name: ObjectName,
    pub actions: Vec<AlterTableAction>,
}

#[derive(Clone, Debug)]
pub enum AlterTableAction {
    AddColumn {
        if_not_exists: bool,
        column: ColumnDef,
    },
    DropColumn {
        if_exists: bool,
        column: String,
        cascade: bool,
    },
    /// ALTER COLUMN … TYPE
    AlterType {
        column: String,
        ty: TypeName,
        collation: Option<Vec<String>>,
        using: Option<Expr>,
    },
    /// None: DROP DEFAULT
    SetDefault {
        column: String,
        default: Option<Expr>,
    },
    SetNotNull {
        column: String,
    },
    DropNotNull {
        column: String,
    },
    SetExpression {
        column: String,
        expression: Expr,
    },
    DropExpression {
        column: String,
        if_exists: bool,
    },
    SetStatistics {
        column: String,
        target: Option<i32>,
    },
    SetStorage {
        column: String,
        storage: String,
    },
    SetCompression {
        column: String,
        compression: String,
    },
    SetColumnOptions {
        column: String,
        options: Vec<UtilityOption>,
    },
    ResetColumnOptions {
        column: String,
        options: Vec<String>,
    },
    AddIdentity {
        column: String,
        always: bool,
        options: Vec<SequenceOption>,
    },
    /// SET GENERATED and sequence options
    SetIdentity {
        column: String,
        always: Option<bool>,
        options: Vec<SequenceOption>,
    },
    DropIdentity {
        column: String,
        if_exists: bool,
    },
    AddConstraint(TableConstraint),
    AlterConstraint {
        name: String,
        timing: Option<ConstraintTiming>,
        inherit: Option<bool>,
        enforced: Option<bool>,
    },
    ValidateConstraint(String),
    DropConstraint {
        if_exists: bool,
        name: String,
        cascade: bool,
    },
    SetOptions(Vec<UtilityOption>),
    ResetOptions(Vec<UtilityOption>),
    SetLogged(bool),
    SetTablespace(String),
    SetAccessMethod(String),
    ClusterOn(String),
    SetWithoutCluster,
    SetWithoutOids,
    /// nothing, full or default
    ReplicaIdentity(String),
    /// an index
    ReplicaIdentityUsing(String),
    OwnerTo(RoleName),
    Inherit(ObjectName),
    NoInherit(ObjectName),
    AttachPartition {
        name: ObjectName,
        bound: PartitionBound,
    },
    DetachPartition {
        name: ObjectName,
        concurrently: bool,
    },
    /// ENABLE | DISABLE … (triggers, rules, row security): what was written.
    EnableDisable {
        enable: bool,
        what: String,
    },
}
