//! What a body is read into.
//!
//! # Invariants
//! Every [`crate::SiteId`] stands in the tree once. A variable is in [`Routine::variables`] once, however often its block is entered.

use crate::conditions::Conditions;
use crate::host::{Conflict, Direction, Level, Site, TypeKind};
use crate::names::{Namespace, VarId};
use base::Oid;
use expr::TypeRef;
use std::sync::Arc;

/// A compiled routine. It may be kept and run by many, one after another or side by side.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its name as context lines have it: `inline_code_block`, `f(integer)`.
    pub name: Arc<str>,
    /// `pg_proc.oid`, or 0 of a DO block.
    pub oid: Oid,
    /// All its variables; FOUND is the first.
    pub variables: Vec<Variable>,
    /// How many sites it has.
    pub site_count: u32,
    /// `#variable_conflict`
    pub conflict: Conflict,
    /// `#print_strict_params`
    pub print_strict_params: bool,
    /// Are ASSERTs looked at? (`plpgsql.check_asserts`)
    pub check_asserts: bool,
    /// How it may end: whoever asked for a value has to mind [`crate::Ended::FellOff`] (`2F005`).
    pub returns: crate::parse::Returns,
    pub(crate) names: Namespace,
    pub(crate) body: Block,
}

/// A variable's declaration.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name; `(unnamed row)` is none.
    pub name: Arc<str>,
    /// Its type. Of a RECORD: record.
    pub ty: TypeRef,
    /// What its type is.
    pub kind: TypeKind,
    pub(crate) constant: bool,
    pub(crate) not_null: bool,
    pub(crate) default: Option<Arc<Site>>,
    pub(crate) cursor: Option<Arc<BoundCursor>>,
    /// Does it take the type of what is assigned: the subject of a CASE?
    pub(crate) takes_type: bool,
    pub(crate) line: u32,
}

impl Variable {
    /// Is it a record, with fields?
    pub fn is_record(&self) -> bool {
        matches!(self.kind, TypeKind::Row { .. } | TypeKind::AnyRow)
    }
}

/// `c CURSOR (args) FOR query`
#[derive(Clone, Debug)]
pub(crate) struct BoundCursor {
    pub args: Vec<VarId>,
    pub query: Arc<Site>,
    pub scroll: Option<bool>,
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub line: u32,
    pub label: Option<Arc<str>>,
    /// The variables it declares: set to their defaults on entry.
    pub variables: Vec<VarId>,
    pub body: Vec<Statement>,
    pub handlers: Option<Arc<Handlers>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Handlers {
    pub sqlstate: VarId,
    pub sqlerrm: VarId,
    pub handlers: Vec<Handler>,
}

#[derive(Clone, Debug)]
pub(crate) struct Handler {
    pub conditions: Conditions,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub line: u32,
    /// What context lines call it.
    pub name: &'static str,
    pub kind: Kind,
}

/// Where a value is assigned to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub variable: VarId,
    pub steps: Vec<Step>,
}

/// A step into a variable.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// `.f`
    Field(Arc<str>),
    /// `[i]`
    Element(Arc<Site>),
    /// `[i:j]`
    Slice(Option<Arc<Site>>, Option<Arc<Site>>),
}

/// What a row is put into.
#[derive(Clone, Debug)]
pub(crate) enum Into {
    /// A record variable.
    Record(VarId),
    /// Scalars and fields of records.
    List(Vec<Scalar>),
}

/// A scalar variable, or a field of a record.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub variable: VarId,
    pub field: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub(crate) struct IfArm {
    pub condition: Arc<Site>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub label: Option<Arc<str>>,
    pub body: Vec<Statement>,
}

/// How a query is given.
#[derive(Clone, Debug)]
pub(crate) enum Query {
    Site(Arc<Site>),
    Dynamic { text: Arc<Site>, using: Vec<Arc<Site>> },
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Block(Block),
    Assign {
        target: Target,
        value: Arc<Site>,
    },
    If {
        arms: Vec<IfArm>,
        otherwise: Vec<Statement>,
    },
    Case {
        subject: Option<(Arc<Site>, VarId)>,
        arms: Vec<IfArm>,
        otherwise: Option<Vec<Statement>>,
    },
    Loop(Loop),
    While(Arc<Site>, Loop),
    ForInteger {
        variable: VarId,
        low: Arc<Site>,
        high: Arc<Site>,
        step: Option<Arc<Site>>,
        reverse: bool,
        run: Loop,
    },
    ForQuery {
        into: Into,
        query: Query,
        run: Loop,
    },
    ForCursor {
        record: VarId,
        cursor: VarId,
        args: Vec<Arc<Site>>,
        run: Loop,
    },
    ForEach {
        into: Into,
        slice: u32,
        array: Arc<Site>,
        run: Loop,
    },
    Exit {
        next: bool,
        label: Option<Arc<str>>,
        when: Option<Arc<Site>>,
    },
    Return(Option<Arc<Site>>),
    ReturnNext(Option<Arc<Site>>),
    ReturnQuery(Query),
    Raise(Raise),
    Assert {
        condition: Arc<Site>,
        message: Option<Arc<Site>>,
    },
    Sql {
        site: Arc<Site>,
        into: Option<Into>,
        strict: bool,
    },
    Perform(Arc<Site>),
    Call(Arc<Site>, &'static str),
    Execute {
        text: Arc<Site>,
        into: Option<Into>,
        strict: bool,
        using: Vec<Arc<Site>>,
    },
    Get {
        stacked: bool,
        items: Vec<(Target, Diagnostic)>,
    },
    Open {
        cursor: VarId,
        how: Opening,
        scroll: Option<bool>,
    },
    Fetch {
        cursor: VarId,
        direction: Going,
        into: Option<Into>,
    },
    Close(VarId),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
}

/// What OPEN opens.
#[derive(Clone, Debug)]
pub(crate) enum Opening {
    /// The cursor's own query.
    Bound(Vec<Arc<Site>>),
    /// `FOR query`
    Query(Query),
}

/// Where FETCH goes: the count may be an expression.
#[derive(Clone, Debug)]
pub(crate) struct Going {
    pub direction: Direction,
    pub count: Option<Arc<Site>>,
}

/// What GET DIAGNOSTICS gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Diagnostic {
    RowCount,
    RoutineOid,
    Context,
    ErrorContext,
    Detail,
    Hint,
    Returned,
    Column,
    Constraint,
    DataType,
    Message,
    Table,
    Schema,
}

#[derive(Clone, Debug)]
pub(crate) struct Raise {
    /// None: EXCEPTION.
    pub level: Option<Level>,
    /// `RAISE condition`: its name or SQLSTATE.
    pub condition: Option<Arc<str>>,
    pub format: Option<Arc<str>>,
    pub params: Vec<Arc<Site>>,
    pub options: Vec<(RaiseOption, Arc<Site>)>,
    /// RAISE alone.
    pub again: bool,
}

/// An option of RAISE … USING.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RaiseOption {
    ErrCode,
    Message,
    Detail,
    Hint,
    Column,
    Constraint,
    DataType,
    Table,
    Schema,
}

impl RaiseOption {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            RaiseOption::ErrCode => "ERRCODE",
            RaiseOption::Message => "MESSAGE",
            RaiseOption::Detail => "DETAIL",
            RaiseOption::Hint => "HINT",
            RaiseOption::Column => "COLUMN",
            RaiseOption::Constraint => "CONSTRAINT",
            RaiseOption::DataType => "DATATYPE",
            RaiseOption::Table => "TABLE",
            RaiseOption::Schema => "SCHEMA",
        }
    }
}

impl Kind {
    /// What context lines call it.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Block(_) => "statement block",
            Kind::Assign { .. } => "assignment",
            Kind::If { .. } => "IF",
            Kind::Case { .. } => "CASE",
            Kind::Loop(_) => "LOOP",
            Kind::While(..) => "WHILE",
            Kind::ForInteger { .. } => "FOR with integer loop variable",
            Kind::ForQuery { query: Query::Site(_), .. } => "FOR over SELECT rows",
            Kind::ForQuery { .. } => "FOR over EXECUTE statement",
            Kind::ForCursor { .. } => "FOR over cursor",
            Kind::ForEach { .. } => "FOREACH over array",
            Kind::Exit { next: false, .. } => "EXIT",
            Kind::Exit { .. } => "CONTINUE",
            Kind::Return(_) => "RETURN",
            Kind::ReturnNext(_) => "RETURN NEXT",
            Kind::ReturnQuery(_) => "RETURN QUERY",
            Kind::Raise(_) => "RAISE",
            Kind::Assert { .. } => "ASSERT",
            Kind::Sql { .. } => "SQL statement",
            Kind::Perform(_) => "PERFORM",
            Kind::Call(_, name) => name,
            Kind::Execute { .. } => "EXECUTE",
            Kind::Get { stacked: false, .. } => "GET DIAGNOSTICS",
            Kind::Get { .. } => "GET STACKED DIAGNOSTICS",
            Kind::Open { .. } => "OPEN",
            Kind::Fetch { into: Some(_), .. } => "FETCH",
            Kind::Fetch { .. } => "MOVE",
            Kind::Close(_) => "CLOSE",
            Kind::Commit { .. } => "COMMIT",
            Kind::Rollback { .. } => "ROLLBACK",
        }
    }
}
