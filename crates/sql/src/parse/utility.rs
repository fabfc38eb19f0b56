//! Every statement that is not a query, in typed form, for those who carry it out.
//!
//! # Invariants
//! Expressions and queries inside are syntax trees ([`super::ast`]); `crate::analyse` resolves them.
//! Locations are byte offsets into the statement's source string ([`super::Parsed::error_at`]).
#![allow(missing_docs, reason = "the fields are named after the SQL they hold")]

use super::Statement;
use super::ast::{Alias, Expr, IndexElement, Loc, ObjectName, QueryStatement, TableRef, TypeName};
use base::{Result, err};

pub use engine::catalog::model::{Generation, ReferentialAction, RelationPersistence};

mod tables;
pub use tables::*;

#[derive(Clone, Debug)]
pub enum UtilityStatement {
    CreateTable(Box<CreateTable>),
    CreateTableAs(Box<CreateTableAs>),
    CreateIndex(Box<CreateIndex>),
    CreateView(Box<CreateView>),
    RefreshMaterializedView {
        concurrently: bool,
        name: ObjectName,
        with_data: bool,
    },
    CreateSequence(Box<CreateSequence>),
    AlterSequence {
        if_exists: bool,
        name: ObjectName,
        options: Vec<SequenceOption>,
    },
    CreateSchema {
        if_not_exists: bool,
        name: Option<String>,
        authorization: Option<RoleName>,
        /// What is made in it at once.
        elements: Vec<UtilityStatement>,
    },
    CreateDatabase {
        name: String,
        options: Vec<UtilityOption>,
    },
    DropDatabase {
        if_exists: bool,
        name: String,
        force: bool,
    },
    /// `ALTER DATABASE d WITH option …`, `SET TABLESPACE`
    AlterDatabase {
        name: String,
        options: Vec<UtilityOption>,
    },
    /// CREATE ROLE, USER, GROUP: `login` is the default for the word used.
    CreateRole {
        name: String,
        login: bool,
        options: Vec<UtilityOption>,
    },
    AlterRole {
        role: RoleName,
        options: Vec<UtilityOption>,
    },
    DropRole {
        if_exists: bool,
        roles: Vec<RoleName>,
    },
    CreateEnum {
        name: ObjectName,
        labels: Vec<String>,
    },
    AlterEnum(Box<AlterEnum>),
    /// CREATE TYPE … AS (…)
    CreateComposite {
        name: ObjectName,
        attributes: Vec<ColumnDef>,
    },
    CreateDomain(Box<CreateDomain>),
    AlterDomain(Box<AlterDomain>),
    CreateStatistics(Box<CreateStatistics>),
    /// ALTER STATISTICS … SET STATISTICS; None: DEFAULT
    AlterStatistics {
        if_exists: bool,
        name: ObjectName,
        target: Option<i64>,
    },
    CreateExtension {
        if_not_exists: bool,
        name: String,
        options: Vec<UtilityOption>,
    },
    /// ALTER EXTENSION … UPDATE.
    UpdateExtension {
        name: String,
        version: Option<String>,
    },
    /// ALTER TABLE, and ALTER INDEX | VIEW | SEQUENCE | MATERIALIZED VIEW with the same actions.
    AlterTable(Box<AlterTable>),
    Rename(Box<Rename>),
    SetSchema {
        kind: ObjectKind,
        if_exists: bool,
        name: ObjectName,
        schema: String,
    },
    OwnerTo {
        kind: ObjectKind,
        if_exists: bool,
        name: ObjectName,
        owner: RoleName,
    },
    Drop(Box<Drop>),
    Grant(Box<Grant>),
    GrantRole(Box<GrantRole>),
    AlterDefaultPrivileges {
        roles: Vec<RoleName>,
        schemas: Vec<String>,
        grant: Box<Grant>,
    },
    ReassignOwned {
        from: Vec<RoleName>,
        to: RoleName,
    },
    DropOwned {
        roles: Vec<RoleName>,
        cascade: bool,
    },
    Comment(Box<Comment>),
    Truncate(Box<Truncate>),
    Reindex(Box<Reindex>),
    Cluster {
        options: Vec<UtilityOption>,
        table: Option<ObjectName>,
        index: Option<String>,
    },
    /// VACUUM and ANALYZE.
    Vacuum(Box<Vacuum>),
    Explain(Box<Explain>),
    Copy(Box<Copy>),
    Set(SetStatement),
    /// RESET name; None: RESET ALL
    Reset(Option<String>),
    /// SHOW name; None: SHOW ALL
    Show(Option<String>),
    AlterSystem(AlterSystem),
    AlterDatabaseSet {
        database: String,
        setting: SettingChange,
    },
    /// `role` None: ALL
    AlterRoleSet {
        role: Option<RoleName>,
        database: Option<String>,
        setting: SettingChange,
    },
    /// SET [SESSION CHARACTERISTICS AS] TRANSACTION
    SetTransaction {
        session: bool,
        modes: TransactionModes,
        snapshot: Option<String>,
    },
    /// `names` empty: ALL
    SetConstraints {
        names: Vec<ObjectName>,
        deferred: bool,
    },
    Transaction(TransactionStatement),
    Prepare {
        name: String,
        types: Vec<TypeName>,
        statement: Box<Statement>,
    },
    Execute {
        name: String,
        args: Vec<Expr>,
    },
    /// None: ALL
    Deallocate(Option<String>),
    DeclareCursor(Box<DeclareCursor>),
    Fetch(Fetch),
    /// None: ALL
    Close(Option<String>),
    LockTable {
        tables: Vec<TableName>,
        mode: LockMode,
        nowait: bool,
    },
    Checkpoint {
        options: Vec<UtilityOption>,
    },
    Discard(DiscardKind),
    Listen(String),
    /// None: `*`
    Unlisten(Option<String>),
    Notify {
        channel: String,
        payload: String,
    },
    Load(String),
    Do {
        language: Option<String>,
        body: String,
    },
    /// Known to PostgreSQL, not to Ebb: whoever executes it raises `0A000` naming `what`.
    Unsupported {
        what: String,
    },
}

/// A role, or one of the words that stand for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleName {
    Name(String),
    CurrentUser,
    SessionUser,
    Public,
}

/// `[ONLY] name [*]`
#[derive(Clone, Debug)]
pub struct TableName {
    pub name: ObjectName,
    pub only: bool,
}

/// `name [value]` in a list of options.
#[derive(Clone, Debug)]
pub struct UtilityOption {
    /// Lower case; of storage parameters with their namespace, `toast.autovacuum_enabled`.
    pub name: String,
    pub value: Option<OptionValue>,
    pub loc: Loc,
}

#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// A word (`on`, `true`, `auto`, …).
    Word(String),
    String(String),
    /// With its sign.
    Number(String),
    /// `(a, b)`, as in COPY's FORCE_NULL.
    List(Vec<String>),
    /// `*`
    Star,
}

impl OptionValue {
    /// As text; a list joined by commas.
    pub fn text(&self) -> String {
        match self {
            OptionValue::Word(s) | OptionValue::String(s) | OptionValue::Number(s) => s.clone(),
            OptionValue::List(l) => l.join(","),
            OptionValue::Star => "*".into(),
        }
    }
}

impl UtilityOption {
    /// A Boolean option: no value means true.
    ///
    /// # Errors
    /// 42601 when it is none.
    pub fn boolean(&self) -> Result<bool> {
        let Some(value) = &self.value else { return Ok(true) };
        let text = value.text().to_ascii_lowercase();
        Ok(match (value, text.as_str()) {
            (OptionValue::Number(_), "0") => false,
            (OptionValue::Number(_), "1") => true,
            (OptionValue::Number(_), _) => return Err(self.not_boolean()),
            (_, "true" | "on") => true,
            (_, "false" | "off") => false,
            _ => return Err(self.not_boolean()),
        })
    }
    fn not_boolean(&self) -> base::Error {
        err!(SYNTAX_ERROR, "{} requires a Boolean value", self.name)
    }
    /// A text option.
    ///
    /// # Errors
    /// 42601 when there is no value.
    pub fn string(&self) -> Result<String> {
        match &self.value {
            Some(v) => Ok(v.text()),
            None => Err(err!(SYNTAX_ERROR, "{} requires a parameter", self.name)),
        }
    }
    /// An integer option.
    ///
    /// # Errors
    /// 42601 when it is none.
    pub fn integer(&self) -> Result<i64> {
        match &self.value {
            None => Err(err!(SYNTAX_ERROR, "{} requires an integer value", self.name)),
            Some(v) => v
                .text()
                .parse()
                .map_err(|_| err!(SYNTAX_ERROR, "{} requires an integer value", self.name)),
        }
    }
    /// The value as a storage parameter is kept (`reloptions`): no value means `true`.
    pub fn storage_text(&self) -> String {
        self.value.as_ref().map_or_else(|| "true".into(), OptionValue::text)
    }
}

#[derive(Clone, Debug)]
pub struct CreateView {
    pub or_replace: bool,
    pub temporary: bool,
    pub name: ObjectName,
    pub columns: Vec<String>,
    pub options: Vec<UtilityOption>,
    pub query: QueryStatement,
    /// WITH [CASCADED | LOCAL] CHECK OPTION
    pub check_option: Option<String>,
}

#[derive(Clone, Debug)]
pub struct CreateSequence {
    pub name: ObjectName,
    pub persistence: RelationPersistence,
    pub if_not_exists: bool,
    pub options: Vec<SequenceOption>,
}

#[derive(Clone, Debug)]
pub enum SequenceOption {
    As(TypeName),
    Increment(i64),
    /// None: NO MINVALUE
    MinValue(Option<i64>),
    MaxValue(Option<i64>),
    Start(i64),
    /// RESTART [WITH n]
    Restart(Option<i64>),
    Cache(i64),
    Cycle(bool),
    /// OWNED BY table.column; None: NONE
    OwnedBy(Option<(ObjectName, String)>),
    /// `SEQUENCE NAME name` (pg_dump's identity columns)
    Name(ObjectName),
    Logged(bool),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    Table,
    Index,
    View,
    MaterializedView,
    Sequence,
    Schema,
    Database,
    Role,
    Column,
    Constraint,
    Type,
    Domain,
    Function,
    Procedure,
    Aggregate,
    Operator,
    Extension,
    Trigger,
    Rule,
    Policy,
    Collation,
    Cast,
    Language,
    Tablespace,
    Publication,
    Subscription,
    Statistics,
    ForeignTable,
    Other,
}

impl ObjectKind {
    /// Its name in messages.
    pub fn noun(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::Index => "index",
            ObjectKind::View => "view",
            ObjectKind::MaterializedView => "materialized view",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Schema => "schema",
            ObjectKind::Database => "database",
            ObjectKind::Role => "role",
            ObjectKind::Column => "column",
            ObjectKind::Constraint => "constraint",
            ObjectKind::Type => "type",
            ObjectKind::Domain => "domain",
            ObjectKind::Function => "function",
            ObjectKind::Procedure => "procedure",
            ObjectKind::Aggregate => "aggregate",
            ObjectKind::Operator => "operator",
            ObjectKind::Extension => "extension",
            ObjectKind::Trigger => "trigger",
            ObjectKind::Rule => "rule",
            ObjectKind::Policy => "policy",
            ObjectKind::Collation => "collation",
            ObjectKind::Cast => "cast",
            ObjectKind::Language => "language",
            ObjectKind::Tablespace => "tablespace",
            ObjectKind::Publication => "publication",
            ObjectKind::Subscription => "subscription",
            ObjectKind::Statistics => "statistics object",
            ObjectKind::ForeignTable => "foreign table",
            ObjectKind::Other => "object",
        }
    }

    /// Its name in commands and their tags.
    pub fn command(self) -> String {
        match self {
            ObjectKind::Statistics => "STATISTICS".to_owned(),
            other => other.noun().to_uppercase(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Rename {
    /// What holds the name: Table, Index, …; Column and Constraint rename a part of `name`.
    pub kind: ObjectKind,
    /// What `name` is called in the statement.
    pub of: ObjectKind,
    pub if_exists: bool,
    pub name: ObjectName,
    /// The column or constraint.
    pub part: Option<String>,
    pub new_name: String,
}

/// CREATE STATISTICS
#[derive(Clone, Debug)]
pub struct CreateStatistics {
    pub if_not_exists: bool,
    pub name: Option<ObjectName>,
    /// ndistinct, …
    pub kinds: Vec<String>,
    pub elements: Vec<IndexElement>,
    /// FROM: a list, of which one plain table is all that can be carried out.
    pub from: Vec<TableRef>,
}

/// CREATE DOMAIN
#[derive(Clone, Debug)]
pub struct CreateDomain {
    pub name: ObjectName,
    /// Its type, collation and constraints, written as a column's.
    pub column: ColumnDef,
}

/// ALTER DOMAIN, but for what all objects have
#[derive(Clone, Debug)]
pub struct AlterDomain {
    pub name: ObjectName,
    pub action: AlterDomainAction,
}

#[derive(Clone, Debug)]
pub enum AlterDomainAction {
    /// SET DEFAULT, or DROP DEFAULT
    Default(Option<Expr>),
    /// SET NOT NULL, or DROP NOT NULL
    NotNull(bool),
    Add {
        name: Option<String>,
        kind: ColumnConstraintKind,
        not_valid: bool,
    },
    Drop {
        if_exists: bool,
        name: String,
        cascade: bool,
    },
    Validate(String),
}

/// ALTER TYPE … ADD VALUE | RENAME VALUE
#[derive(Clone, Debug)]
pub struct AlterEnum {
    pub name: ObjectName,
    pub action: AlterEnumAction,
}

#[derive(Clone, Debug)]
pub enum AlterEnumAction {
    AddValue {
        if_not_exists: bool,
        label: String,
        /// BEFORE (true) or AFTER a label.
        neighbour: Option<(bool, String)>,
    },
    RenameValue {
        old: String,
        new: String,
    },
}

#[derive(Clone, Debug)]
pub struct Drop {
    pub kind: ObjectKind,
    pub if_exists: bool,
    pub concurrently: bool,
    pub names: Vec<ObjectName>,
    pub cascade: bool,
    /// DROP TRIGGER | RULE | POLICY name ON table
    pub on: Option<ObjectName>,
}

#[derive(Clone, Debug)]
pub struct Grant {
    /// GRANT rather than REVOKE.
    pub grant: bool,
    /// Lower case words and their columns; None: ALL.
    pub privileges: Option<Vec<(String, Vec<String>)>>,
    pub object: GrantObject,
    pub grantees: Vec<RoleName>,
    /// WITH GRANT OPTION, or REVOKE GRANT OPTION FOR.
    pub grant_option: bool,
    pub cascade: bool,
    /// GRANTED BY
    pub granted_by: Option<RoleName>,
}

#[derive(Clone, Debug)]
pub enum GrantObject {
    Tables(Vec<ObjectName>),
    Sequences(Vec<ObjectName>),
    Databases(Vec<String>),
    Schemas(Vec<String>),
    /// Each function with its argument types, if written.
    Functions(Vec<(ObjectName, Vec<TypeName>)>),
    Types(Vec<ObjectName>),
    Languages(Vec<String>),
    Tablespaces(Vec<String>),
    Parameters(Vec<String>),
    AllTablesInSchema(Vec<String>),
    AllSequencesInSchema(Vec<String>),
    AllFunctionsInSchema(Vec<String>),
    /// In ALTER DEFAULT PRIVILEGES: tables, sequences, functions, types, schemas.
    Default(String),
    /// Foreign servers, large objects and the like.
    Other(String),
}

#[derive(Clone, Debug)]
pub struct GrantRole {
    pub grant: bool,
    pub roles: Vec<String>,
    pub members: Vec<RoleName>,
    /// admin, inherit, set
    pub options: Vec<UtilityOption>,
    /// REVOKE … OPTION FOR
    pub option_for: Option<String>,
    pub cascade: bool,
    /// GRANTED BY
    pub granted_by: Option<RoleName>,
    /// It is ALTER GROUP.
    pub of_group: bool,
}

#[derive(Clone, Debug)]
pub struct Comment {
    pub kind: ObjectKind,
    /// Of a column: its table.
    pub name: ObjectName,
    /// The column, constraint, trigger, …
    pub part: Option<String>,
    /// None: IS NULL
    pub text: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Truncate {
    pub tables: Vec<TableName>,
    pub restart_identity: bool,
    pub cascade: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReindexKind {
    Index,
    Table,
    Schema,
    System,
    Database,
}

#[derive(Clone, Debug)]
pub struct Reindex {
    /// verbose, concurrently, tablespace
    pub options: Vec<UtilityOption>,
    pub kind: ReindexKind,
    /// None: REINDEX DATABASE | SYSTEM of the current one.
    pub name: Option<ObjectName>,
    pub concurrently: bool,
}

#[derive(Clone, Debug)]
pub struct Vacuum {
    /// VACUUM rather than ANALYZE.
    pub vacuum: bool,
    /// Old syntax (FULL FREEZE VERBOSE ANALYZE) comes as the same options.
    pub options: Vec<UtilityOption>,
    /// Empty: the whole database.
    pub tables: Vec<VacuumTable>,
}

#[derive(Clone, Debug)]
pub struct VacuumTable {
    pub name: ObjectName,
    pub only: bool,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Explain {
    /// analyze, verbose, buffers, costs, timing, format, …
    pub options: Vec<UtilityOption>,
    /// A query; or CREATE TABLE AS, EXECUTE, DECLARE, VACUUM.
    pub statement: Statement,
}

#[derive(Clone, Debug)]
pub enum CopySource {
    Table { name: ObjectName, columns: Vec<String> },
    Query(QueryStatement),
}

#[derive(Clone, Debug)]
pub enum CopyTarget {
    Stdin,
    Stdout,
    File(String),
    Program(String),
}

#[derive(Clone, Debug)]
pub struct Copy {
    pub source: CopySource,
    /// COPY FROM
    pub from: bool,
    pub target: CopyTarget,
    /// Old syntax (CSV HEADER DELIMITER AS …) comes as the same options.
    pub options: Vec<UtilityOption>,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct SetStatement {
    /// SET LOCAL
    pub local: bool,
    pub setting: SettingChange,
}

#[derive(Clone, Debug)]
pub enum SettingChange {
    /// `name = a, b`; names in lower case. `TIME ZONE`, `SESSION AUTHORIZATION`, `NAMES`, `SCHEMA`
    /// and `ROLE` come as the settings they stand for.
    Set {
        name: String,
        values: Vec<String>,
    },
    SetDefault {
        name: String,
    },
    FromCurrent {
        name: String,
    },
    Reset {
        name: String,
    },
    ResetAll,
}

#[derive(Clone, Debug)]
pub enum AlterSystem {
    Set {
        name: String,
        values: Vec<String>,
    },
    /// SET … TO DEFAULT and RESET
    Reset {
        name: String,
    },
    ResetAll,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// What was written, None for what was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionModes {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

#[derive(Clone, Debug)]
pub enum TransactionStatement {
    /// `start`: written START TRANSACTION (its command tag differs).
    Begin {
        modes: TransactionModes,
        start: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    PrepareTransaction(String),
    CommitPrepared(String),
    RollbackPrepared(String),
}

#[derive(Clone, Debug)]
pub struct DeclareCursor {
    pub name: String,
    pub binary: bool,
    pub scroll: Option<bool>,
    pub hold: bool,
    pub insensitive: bool,
    pub query: QueryStatement,
    /// Where the query's text lies in the source.
    pub query_span: (Loc, Loc),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchDirection {
    Next,
    Prior,
    First,
    Last,
    Absolute(i64),
    Relative(i64),
    /// FORWARD n (also plain `FETCH n`)
    Forward(i64),
    ForwardAll,
    Backward(i64),
    BackwardAll,
}

#[derive(Clone, Debug)]
pub struct Fetch {
    /// MOVE rather than FETCH.
    pub move_only: bool,
    pub direction: FetchDirection,
    pub cursor: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiscardKind {
    All,
    Plans,
    Sequences,
    Temp,
}

impl CreateView {
    /// The view's name as an alias, column names included.
    pub fn alias(&self) -> Alias {
        Alias { name: self.name.name.clone(), columns: self.columns.clone() }
    }
}
