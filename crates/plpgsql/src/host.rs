//! The boundary: what the language asks of the database server it runs in.
//!
//! # Purpose
//! Everything that is SQL is the host's: analysis, plans, execution, types by their names, casts, cursors and transactions. The language
//! hands it *sites* ([`Site`]: one embedded text with a number of its own) and the *frame* ([`Frame`]: the variables by now).
//!
//! # How names become parameters
//! When the host analyses a site it takes [`Frame::names`] and asks it ([`Names::find`]) of each name that may be a variable. What it
//! finds it notes as one of the site's parameters, and asks [`Frame::value`] for the values each time the site is executed. The types of scalar
//! variables never change; those of records do: before it uses what it has analysed, the host compares [`Frame::type_of`] for the
//! parameters that are (or are fields of) records, and analyses anew where one differs.
//!
//! # Who says where an error was
//! The language adds the line of the routine (`PL/pgSQL function … line 3 at assignment`) to errors that the host returns. The host adds the
//! line of the embedded text ([`Site::context`]) to errors without a position of their own that arise while it analyses, plans
//! or runs it (not for simple expressions that it only evaluates, as PostgreSQL); to one with a position it gives `internal_position` and
//! `internal_query` instead. Notices that arise in SQL get the same lines: the host asks [`Frame::context`].

use crate::frame::Frame;
use crate::names::{Reference, VarId};
use base::{Result, SqlError};
use expr::TypeRef;
use std::sync::Arc;
use types::{Datum, RecordColumn};

/// A site's number: dense from 0 within a routine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SiteId(pub u32);

/// Where names are looked up from: a place in the routine's tree of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScopeId(pub u32);

/// How an embedded text is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// What may follow the word SELECT: mostly one expression, perhaps with FROM, WHERE and so on.
    Expression,
    /// The same, from this byte of the text on: what stands before it is the assignment's target, for messages.
    Assignment {
        /// Where the expression begins.
        expression_at: u32,
    },
    /// A statement.
    Statement,
}

/// One embedded text of a routine.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its number.
    pub id: SiteId,
    /// The text, without an INTO clause (blanks stand in its place).
    pub text: Arc<str>,
    /// How it is read.
    pub mode: Mode,
    /// From where its names are looked up.
    pub scope: ScopeId,
    /// Its first byte within the routine's body.
    pub start: u32,
    /// The line of the body it is on.
    pub line: u32,
}

impl Site {
    /// The context line that says which text was run, as PostgreSQL words it.
    pub fn context(&self) -> String {
        match self.mode {
            Mode::Expression => format!("PL/pgSQL expression \"{}\"", self.text),
            Mode::Assignment { .. } => format!("PL/pgSQL assignment \"{}\"", self.text),
            Mode::Statement => format!("SQL statement \"{}\"", self.text),
        }
    }

    /// The part that is SQL: all of it but an assignment's target.
    pub fn sql(&self) -> &str {
        match self.mode {
            Mode::Assignment { expression_at } => {
                self.text.get(expression_at as usize..).unwrap_or("")
            }
            Mode::Expression | Mode::Statement => &self.text,
        }
    }
}

/// What a name that is also a column's means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Conflict {
    /// Nothing: 42702.
    #[default]
    Error,
    /// The variable.
    UseVariable,
    /// The column.
    UseColumn,
}

/// A value with the type it has.
#[derive(Clone, Debug)]
pub struct Value {
    /// The value.
    pub value: Datum,
    /// Its type, by the expression's or column's declaration.
    pub ty: TypeRef,
}

/// What a type is to the language.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// A value by itself (arrays too).
    Scalar {
        /// Must each value be cast even if it comes with this very type: a domain with constraints, say?
        checked: bool,
    },
    /// A row of known fields; `checked` as above, for a domain over a row type.
    Row {
        /// Its columns.
        columns: Arc<[RecordColumn]>,
        /// Must each value be cast?
        checked: bool,
    },
    /// `record`: whatever row is assigned.
    AnyRow,
    /// A pseudo-type, which no variable can have.
    Pseudo,
}

/// What is run: a site or a text made at run time.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A statement or query of the routine.
    Site(&'a Site),
    /// `EXECUTE text USING values`: names of variables mean nothing in it; `$1`, `$2` … are the values.
    Text {
        /// The text.
        text: &'a str,
        /// The values, with their types.
        using: &'a [Value],
    },
}

/// Which rows of a result the language wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// None: run to the end; they are only counted.
    Count,
    /// At most so many: the rest need not be computed (of a SELECT; a statement that writes runs to its end).
    UpTo(u64),
    /// All.
    All,
}

/// What kind of statement ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// SELECT, VALUES, TABLE, WITH … SELECT.
    Select,
    /// SELECT … INTO, CREATE TABLE AS.
    SelectInto,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// MERGE.
    Merge,
    /// CALL.
    Call,
    /// Anything else; FETCH, SHOW and EXPLAIN too, though they return rows.
    Utility,
}

impl Command {
    /// Does `FOUND` follow from how many rows there were?
    pub fn sets_found(self) -> bool {
        matches!(
            self,
            Command::Select | Command::Insert | Command::Update | Command::Delete | Command::Merge
        )
    }
}

/// The columns of a result.
pub type Columns = Arc<[RecordColumn]>;

/// What a statement came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its kind.
    pub command: Command,
    /// Rows returned (as many as were asked for), or changed.
    pub processed: u64,
    /// The result's columns, with their names and types; None: it is no statement that returns rows.
    pub columns: Option<Columns>,
    /// The rows that were wanted.
    pub rows: Vec<Vec<Datum>>,
}

/// How a cursor is opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenCursor<'a> {
    /// The portal's name; None: the host makes one (`<unnamed portal 1>`).
    pub name: Option<&'a str>,
    /// Its query. One that is no query: 42P11 `cannot open … query as cursor`.
    pub source: Source<'a>,
    /// SCROLL (true), NO SCROLL (false), or neither.
    pub scroll: Option<bool>,
    /// It belongs to a FOR loop that is under way: nothing else may close it, and COMMIT leaves it open.
    pub in_loop: bool,
    /// A cursor variable has its name: WHERE CURRENT OF may ask where it stands.
    pub positioned: bool,
}

/// Where FETCH and MOVE go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// So many rows on; `i64::MAX`: all.
    Forward(i64),
    /// So many rows back; `i64::MAX`: all.
    Backward(i64),
    /// To the row of this number.
    Absolute(i64),
    /// To the row so many from here.
    Relative(i64),
}

/// How bad a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// DEBUG (`DEBUG1`)
    Debug,
    /// LOG
    Log,
    /// INFO
    Info,
    /// NOTICE
    Notice,
    /// WARNING
    Warning,
}

/// The database server around a routine.
///
/// Errors are PostgreSQL's. A cancel, a timeout or a broken disk comes back as an error like any other: [`base::Error`] that is not
/// `Sql`, and 57014 and P0004, are not caught by `WHEN OTHERS`.
///
/// Values that are handed out have been read: never [`Datum::Late`], since a variable may outlive a COMMIT.
pub trait Host {
    // --- when a routine is compiled ---

    /// Is the site's text good syntax? Nothing is looked up in catalogs.
    ///
    /// # Errors
    /// `42601`, with the position in [`Site::text`] (characters, from 1) as `position`.
    fn check_syntax(&mut self, site: &Site) -> Result<()>;

    /// The type that a declaration names: `numeric(10,2)`, `int[]`, `double precision`, a domain, a table's name, `s.t`.
    ///
    /// # Errors
    /// `42704`, `42601`, … with the position in `text` as `position`.
    fn type_of_text(&mut self, text: &str) -> Result<TypeRef>;

    /// The type of a table's column: `t.c%TYPE`, `s.t.c%TYPE`.
    ///
    /// # Errors
    /// `42P01`, `42703`
    fn type_of_column(&mut self, names: &[String]) -> Result<TypeRef>;

    /// The row type of a table, view or composite type: `t%ROWTYPE`, `s.t%ROWTYPE`.
    ///
    /// # Errors
    /// `42P01` `relation "t" does not exist`; `42809` `relation "t" does not have a composite type`.
    fn type_of_row(&mut self, names: &[String]) -> Result<TypeRef>;

    /// Is there a collation of that name, and may `ty` have one?
    ///
    /// # Errors
    /// `42704`, `42804` `collations are not supported by type …`, `0A000`.
    fn check_collation(&mut self, names: &[String], ty: TypeRef) -> Result<()>;

    /// What a type is. Of a row type: its columns by now.
    ///
    /// # Errors
    /// Those of the catalogs.
    fn kind_of(&mut self, ty: TypeRef) -> Result<TypeKind>;

    // --- values ---

    /// A cast as an assignment does it (PL/pgSQL's: where there is no assignment cast, through text), with modifier and domain constraints.
    /// Not asked where the types are the same and neither modifier nor constraint is to be minded. NULL is cast too (domains).
    ///
    /// # Errors
    /// `42846` `cannot cast type … to …`, and those of the cast.
    fn cast(&mut self, value: Datum, from: TypeRef, to: TypeRef) -> Result<Datum>;

    /// The text form of a value, as its output function gives it. Not asked for NULL.
    ///
    /// # Errors
    /// Those of the output function.
    fn text(&mut self, value: &Datum, ty: TypeRef) -> Result<String>;

    /// The value of an expression: one column, at most one row; no row is NULL.
    ///
    /// # Errors
    /// `42601` `query returned 2 columns`, `21000` `query returned more than one row` (each with the context line `query: …`), and all of SQL's.
    fn evaluate(&mut self, site: &Site, frame: &Frame) -> Result<Value>;

    /// Computes an expression straight into a variable that [`Frame::unchecked`] lets it, if its value comes of that very type and is at hand
    /// without ado; false: it has not been computed.
    ///
    /// # Errors
    /// As [`Host::evaluate`].
    fn evaluate_into(&mut self, site: &Site, frame: &mut Frame, id: VarId) -> Result<bool> {
        let _ = (site, frame, id);
        Ok(false)
    }

    // --- statements ---

    /// Runs a statement to its end.
    ///
    /// Refuses itself what PL/pgSQL cannot run: `cannot COPY to/from client in PL/pgSQL`, `unsupported transaction command in PL/pgSQL` (both
    /// 0A000), `EXECUTE of SELECT ... INTO is not implemented` for a [`Source::Text`], … .
    ///
    /// # Errors
    /// All of SQL's.
    fn run(&mut self, source: Source<'_>, frame: &Frame, want: Want) -> Result<Outcome>;

    // --- cursors ---

    /// Opens a cursor and says what its portal is called.
    ///
    /// # Errors
    /// `42P03` `cursor "c" already in use`, and all of SQL's.
    fn open(&mut self, cursor: OpenCursor<'_>, frame: &Frame) -> Result<String>;

    /// FETCH ([`Want::All`]) or MOVE ([`Want::Count`]).
    ///
    /// # Errors
    /// `34000` `cursor "c" does not exist`, `55000` for a cursor that can only go forward, and all of SQL's.
    fn fetch(&mut self, name: &str, direction: Direction, want: Want) -> Result<Outcome>;

    /// Closes a cursor. One of a loop is closed by the loop's end alone (`in_loop`); it may be gone by then, which is no error.
    ///
    /// # Errors
    /// `34000`, `24000` `cannot close pinned portal`.
    fn close(&mut self, name: &str, in_loop: bool) -> Result<()>;

    // --- transactions ---

    /// A block with EXCEPTION begins: a subtransaction.
    ///
    /// # Errors
    /// Those of a transaction.
    fn begin_subtransaction(&mut self) -> Result<()>;
    /// The block has ended well: what it did is its parent's.
    ///
    /// # Errors
    /// Those of a transaction.
    fn release_subtransaction(&mut self) -> Result<()>;
    /// The block failed: what it did is undone. Called before handlers are looked at, and whatever the error was.
    ///
    /// # Errors
    /// Those of a transaction.
    fn roll_back_subtransaction(&mut self) -> Result<()>;
    /// COMMIT [AND CHAIN]: another transaction begins at once.
    ///
    /// # Errors
    /// `2D000` `invalid transaction termination`, and all that a commit can say.
    fn commit(&mut self, chain: bool) -> Result<()>;
    /// ROLLBACK [AND CHAIN]: another transaction begins at once.
    ///
    /// # Errors
    /// `2D000`
    fn roll_back(&mut self, chain: bool) -> Result<()>;

    // --- the rest ---

    /// RAISE of a level below EXCEPTION. The message has its context lines.
    ///
    /// # Errors
    /// Those of the client's connection.
    fn report(&mut self, level: Level, message: SqlError) -> Result<()>;

    /// Has somebody cancelled the statement? Asked at each turn of a loop and at each statement.
    ///
    /// # Errors
    /// `57014`, `57P01`
    fn check_interrupts(&mut self) -> Result<()>;

    /// The variables that a site which has run uses, in order of their numbers: for `print_strict_params`.
    fn parameters(&mut self, site: &Site) -> Vec<Reference> {
        let _ = site;
        Vec::new()
    }

    /// The context lines of what called the routine, for PG_CONTEXT: None at the top.
    fn outer_context(&self) -> Option<String> {
        None
    }

    /// RETURN NEXT and RETURN QUERY: rows of a function that returns a set.
    ///
    /// # Errors
    /// `42804` `structure of query does not match function result type`, …
    fn return_rows(&mut self, columns: &Columns, rows: Vec<Vec<Datum>>) -> Result<()> {
        let _ = (columns, rows);
        Err(base::Error::unsupported("a routine that returns a set"))
    }
}
