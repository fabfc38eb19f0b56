//! Errors: three kinds that must never be confused.
//!
//! A *user* error ([`SqlError`], with its SQLSTATE) is an answer to a statement. An *I/O* error is
//! the disk's. *Corruption* names the relation and block whose bytes are wrong. Bugs panic instead.
//! All storage crates share this one enum, because an error crosses all of them on its way up and
//! each crate's own wrapper would only add a layer to unwrap (docs/decisions/0002).

use crate::ids::PageTag;
use std::fmt;

/// A five-character SQLSTATE.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// The five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! sqlstates {
    ($($name:ident = $code:literal),* $(,)?) => {
        /// PostgreSQL's SQLSTATEs by their condition names (its Appendix A).
        #[allow(missing_docs, reason = "the names are PostgreSQL's condition names")]
        impl SqlState {
            $(pub const $name: SqlState = SqlState(*$code);)*
        }
    };
}

sqlstates! {
    SUCCESSFUL_COMPLETION = b"00000",
    WARNING = b"01000",
    CONNECTION_EXCEPTION = b"08000",
    CONNECTION_FAILURE = b"08006",
    PROTOCOL_VIOLATION = b"08P01",
    FEATURE_NOT_SUPPORTED = b"0A000",
    CARDINALITY_VIOLATION = b"21000",
    DATA_EXCEPTION = b"22000",
    STRING_DATA_RIGHT_TRUNCATION = b"22001",
    NUMERIC_VALUE_OUT_OF_RANGE = b"22003",
    NULL_VALUE_NOT_ALLOWED = b"22004",
    INVALID_DATETIME_FORMAT = b"22007",
    DATETIME_FIELD_OVERFLOW = b"22008",
    INVALID_TIME_ZONE_DISPLACEMENT_VALUE = b"22009",
    INTERVAL_FIELD_OVERFLOW = b"22015",
    DIVISION_BY_ZERO = b"22012",
    INVALID_ROW_COUNT_IN_LIMIT_CLAUSE = b"2201W",
    INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE = b"2201X",
    INVALID_ARGUMENT_FOR_LOGARITHM = b"2201E",
    INVALID_ARGUMENT_FOR_POWER_FUNCTION = b"2201F",
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET = b"2201G",
    INVALID_REGULAR_EXPRESSION = b"2201B",
    CHARACTER_NOT_IN_REPERTOIRE = b"22021",
    INVALID_PARAMETER_VALUE = b"22023",
    SUBSTRING_ERROR = b"22011",
    INVALID_ESCAPE_SEQUENCE = b"22025",
    INVALID_USE_OF_ESCAPE_CHARACTER = b"2200C",
    NONSTANDARD_USE_OF_ESCAPE_CHARACTER = b"22P06",
    STRING_DATA_LENGTH_MISMATCH = b"22026",
    ARRAY_SUBSCRIPT_ERROR = b"2202E",
    INVALID_TABLESAMPLE_REPEAT = b"2202G",
    INVALID_TABLESAMPLE_ARGUMENT = b"2202H",
    DUPLICATE_JSON_OBJECT_KEY_VALUE = b"22030",
    INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION = b"22031",
    INVALID_SQL_JSON_SUBSCRIPT = b"22033",
    MORE_THAN_ONE_SQL_JSON_ITEM = b"22034",
    NO_SQL_JSON_ITEM = b"22035",
    NON_NUMERIC_SQL_JSON_ITEM = b"22036",
    SINGLETON_SQL_JSON_ITEM_REQUIRED = b"22038",
    SQL_JSON_ARRAY_NOT_FOUND = b"22039",
    SQL_JSON_MEMBER_NOT_FOUND = b"2203A",
    SQL_JSON_NUMBER_NOT_FOUND = b"2203B",
    SQL_JSON_OBJECT_NOT_FOUND = b"2203C",
    SQL_JSON_SCALAR_REQUIRED = b"2203F",
    SQL_JSON_ITEM_CANNOT_BE_CAST_TO_TARGET_TYPE = b"2203G",
    INVALID_TEXT_REPRESENTATION = b"22P02",
    INVALID_BINARY_REPRESENTATION = b"22P03",
    BAD_COPY_FILE_FORMAT = b"22P04",
    UNTRANSLATABLE_CHARACTER = b"22P05",
    NOT_NULL_VIOLATION = b"23502",
    FOREIGN_KEY_VIOLATION = b"23503",
    UNIQUE_VIOLATION = b"23505",
    CHECK_VIOLATION = b"23514",
    RESTRICT_VIOLATION = b"23001",
    INVALID_CURSOR_STATE = b"24000",
    INVALID_TRANSACTION_STATE = b"25000",
    ACTIVE_SQL_TRANSACTION = b"25001",
    READ_ONLY_SQL_TRANSACTION = b"25006",
    NO_ACTIVE_SQL_TRANSACTION = b"25P01",
    IN_FAILED_SQL_TRANSACTION = b"25P02",
    IDLE_IN_TRANSACTION_SESSION_TIMEOUT = b"25P03",
    TRANSACTION_TIMEOUT = b"25P04",
    INVALID_SQL_STATEMENT_NAME = b"26000",
    INVALID_AUTHORIZATION_SPECIFICATION = b"28000",
    INVALID_PASSWORD = b"28P01",
    DEPENDENT_OBJECTS_STILL_EXIST = b"2BP01",
    INVALID_TRANSACTION_TERMINATION = b"2D000",
    INVALID_CURSOR_NAME = b"34000",
    SAVEPOINT_EXCEPTION = b"3B000",
    INVALID_SAVEPOINT_SPECIFICATION = b"3B001",
    INVALID_CATALOG_NAME = b"3D000",
    INVALID_SCHEMA_NAME = b"3F000",
    SERIALIZATION_FAILURE = b"40001",
    DEADLOCK_DETECTED = b"40P01",
    SYNTAX_ERROR = b"42601",
    INVALID_GRANT_OPERATION = b"0LP01",
    INSUFFICIENT_PRIVILEGE = b"42501",
    CANNOT_COERCE = b"42846",
    GROUPING_ERROR = b"42803",
    WINDOWING_ERROR = b"42P20",
    INVALID_RECURSION = b"42P19",
    INVALID_FOREIGN_KEY = b"42830",
    INVALID_NAME = b"42602",
    NAME_TOO_LONG = b"42622",
    RESERVED_NAME = b"42939",
    DATATYPE_MISMATCH = b"42804",
    INDETERMINATE_DATATYPE = b"42P18",
    COLLATION_MISMATCH = b"42P21",
    WRONG_OBJECT_TYPE = b"42809",
    GENERATED_ALWAYS = b"428C9",
    UNDEFINED_COLUMN = b"42703",
    UNDEFINED_FUNCTION = b"42883",
    UNDEFINED_TABLE = b"42P01",
    UNDEFINED_PARAMETER = b"42P02",
    UNDEFINED_OBJECT = b"42704",
    DUPLICATE_COLUMN = b"42701",
    DUPLICATE_CURSOR = b"42P03",
    DUPLICATE_DATABASE = b"42P04",
    DUPLICATE_FUNCTION = b"42723",
    DUPLICATE_PREPARED_STATEMENT = b"42P05",
    DUPLICATE_SCHEMA = b"42P06",
    DUPLICATE_TABLE = b"42P07",
    DUPLICATE_ALIAS = b"42712",
    DUPLICATE_OBJECT = b"42710",
    AMBIGUOUS_COLUMN = b"42702",
    AMBIGUOUS_FUNCTION = b"42725",
    AMBIGUOUS_PARAMETER = b"42P08",
    AMBIGUOUS_ALIAS = b"42P09",
    INVALID_COLUMN_REFERENCE = b"42P10",
    INVALID_COLUMN_DEFINITION = b"42611",
    INVALID_CURSOR_DEFINITION = b"42P11",
    INVALID_DATABASE_DEFINITION = b"42P12",
    INVALID_FUNCTION_DEFINITION = b"42P13",
    INVALID_SCHEMA_DEFINITION = b"42P15",
    INVALID_TABLE_DEFINITION = b"42P16",
    INVALID_OBJECT_DEFINITION = b"42P17",
    WITH_CHECK_OPTION_VIOLATION = b"44000",
    INSUFFICIENT_RESOURCES = b"53000",
    DISK_FULL = b"53100",
    OUT_OF_MEMORY = b"53200",
    TOO_MANY_CONNECTIONS = b"53300",
    CONFIGURATION_LIMIT_EXCEEDED = b"53400",
    PROGRAM_LIMIT_EXCEEDED = b"54000",
    STATEMENT_TOO_COMPLEX = b"54001",
    TOO_MANY_COLUMNS = b"54011",
    TOO_MANY_ARGUMENTS = b"54023",
    OBJECT_NOT_IN_PREREQUISITE_STATE = b"55000",
    OBJECT_IN_USE = b"55006",
    CANT_CHANGE_RUNTIME_PARAM = b"55P02",
    LOCK_NOT_AVAILABLE = b"55P03",
    QUERY_CANCELED = b"57014",
    ADMIN_SHUTDOWN = b"57P01",
    CRASH_SHUTDOWN = b"57P02",
    CANNOT_CONNECT_NOW = b"57P03",
    DATABASE_DROPPED = b"57P04",
    IDLE_SESSION_TIMEOUT = b"57P05",
    SYSTEM_ERROR = b"58000",
    IO_ERROR = b"58030",
    UNDEFINED_FILE = b"58P01",
    CONFIG_FILE_ERROR = b"F0000",
    INTERNAL_ERROR = b"XX000",
    DATA_CORRUPTED = b"XX001",
    INDEX_CORRUPTED = b"XX002",
}

/// An error with everything PostgreSQL's protocol can say about it.
#[derive(Clone, Debug)]
pub struct SqlError {
    /// The SQLSTATE.
    pub state: SqlState,
    /// The primary message, in PostgreSQL's words: lower case, no full stop.
    pub message: String,
    /// Detail: a full sentence.
    pub detail: Option<String>,
    /// The detail that the server's log has in place of it.
    pub detail_log: Option<String>,
    /// Hint: a full sentence.
    pub hint: Option<String>,
    /// Character position in the statement, from 1.
    pub position: Option<u32>,
    /// Context lines.
    pub context: Option<String>,
    /// Character position, from 1, in a text that the statement did not have: in [`SqlError::internal_query`].
    pub internal_position: Option<u32>,
    /// A text that came from within a statement: a procedure's own, or one that it runs.
    pub internal_query: Option<String>,
    /// Schema concerned.
    pub schema: Option<String>,
    /// Table concerned.
    pub table: Option<String>,
    /// Column concerned.
    pub column: Option<String>,
    /// Data type concerned.
    pub data_type: Option<String>,
    /// Constraint concerned.
    pub constraint: Option<String>,
}

impl SqlError {
    /// An error with `state` and `message`.
    pub fn new(state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError {
            state,
            message: message.into(),
            detail: None,
            detail_log: None,
            hint: None,
            position: None,
            context: None,
            internal_position: None,
            internal_query: None,
            schema: None,
            table: None,
            column: None,
            data_type: None,
            constraint: None,
        }
    }
    /// `0A000`, naming what is not supported.
    pub fn unsupported(what: impl fmt::Display) -> SqlError {
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }
    /// Adds a detail sentence.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
    /// Adds the detail that only the server's log has.
    pub fn detail_log(mut self, detail: impl Into<String>) -> Self {
        self.detail_log = Some(detail.into());
        self
    }
    /// Adds a hint sentence.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Sets the position (characters, from 1).
    pub fn at(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }
    /// Names the table.
    pub fn table(mut self, schema: impl Into<String>, table: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self.table = Some(table.into());
        self
    }
    /// Names the column.
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }
    /// Names the constraint.
    pub fn constraint(mut self, constraint: impl Into<String>) -> Self {
        self.constraint = Some(constraint.into());
        self
    }
}

/// Bytes on disk that cannot be right.
#[derive(Clone, Debug)]
pub struct Corruption {
    /// Where, if it is a page.
    pub tag: Option<PageTag>,
    /// What is wrong with it.
    pub what: String,
}

/// What can go wrong below the wire.
#[derive(Debug)]
pub enum Error {
    /// An answer to a statement.
    Sql(Box<SqlError>),
    /// The disk's fault.
    Io {
        /// What was being done, e.g. `could not read block 3 of relation "base/5/16384"`.
        what: String,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// Bytes that cannot be right.
    Corruption(Box<Corruption>),
}

/// The result of everything that can fail below the wire.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A user error.
    pub fn sql(state: SqlState, message: impl Into<String>) -> Error {
        Error::Sql(Box::new(SqlError::new(state, message)))
    }
    /// `0A000`, naming what is not supported.
    pub fn unsupported(what: impl fmt::Display) -> Error {
        Error::Sql(Box::new(SqlError::unsupported(what)))
    }
    /// An I/O error with what was being done.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Error {
        Error::Io { what: what.into(), source }
    }
    /// A page whose bytes are wrong.
    pub fn corrupt(tag: PageTag, what: impl Into<String>) -> Error {
        Error::Corruption(Box::new(Corruption { tag: Some(tag), what: what.into() }))
    }
    /// Bytes that are wrong, not on a page of a relation.
    pub fn corrupt_file(what: impl Into<String>) -> Error {
        Error::Corruption(Box::new(Corruption { tag: None, what: what.into() }))
    }
    /// The SQLSTATE a client is told.
    pub fn state(&self) -> SqlState {
        // The system's numbers.
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        const ENOSPC: i32 = 28;
        const EDQUOT: i32 = 122;
        match self {
            Error::Sql(e) => e.state,
            Error::Io { source, .. } => match source.raw_os_error() {
                Some(ENOSPC | EDQUOT) => SqlState::DISK_FULL,
                Some(ENFILE | EMFILE) => SqlState::INSUFFICIENT_RESOURCES,
                _ => SqlState::IO_ERROR,
            },
            Error::Corruption(_) => SqlState::DATA_CORRUPTED,
        }
    }
    /// As a [`SqlError`], for the wire.
    pub fn to_sql_error(&self) -> SqlError {
        match self {
            Error::Sql(e) => (**e).clone(),
            other => SqlError::new(other.state(), other.to_string()),
        }
    }

    /// With a line that says what was being done, after those that are there.
    #[must_use]
    pub fn within(self, line: impl fmt::Display) -> Error {
        let mut e = match self {
            Error::Sql(e) => e,
            other => Box::new(other.to_sql_error()),
        };
        e.context = Some(match e.context.take() {
            Some(inner) => format!("{inner}\n{line}"),
            None => line.to_string(),
        });
        Error::Sql(e)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sql(e) => f.write_str(&e.message),
            Error::Io { what, source } => write!(f, "{what}: {source}"),
            Error::Corruption(c) => match c.tag {
                Some(tag) => write!(f, "{} in {tag}", c.what),
                None => f.write_str(&c.what),
            },
        }
    }
}

impl std::error::Error for Error {}
impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for SqlError {}
impl From<SqlError> for Error {
    fn from(e: SqlError) -> Error {
        Error::Sql(Box::new(e))
    }
}

/// `return Err(...)` with a SQLSTATE constant's name and a format string.
///
/// `bail!(UNDEFINED_TABLE, "relation \"{}\" does not exist", name)`
#[macro_export]
macro_rules! bail {
    ($state:ident, $($arg:tt)*) => {
        return Err($crate::Error::sql($crate::SqlState::$state, format!($($arg)*)).into())
    };
}

/// An [`Error`] value with a SQLSTATE constant's name and a format string.
#[macro_export]
macro_rules! err {
    ($state:ident, $($arg:tt)*) => {
        $crate::Error::sql($crate::SqlState::$state, format!($($arg)*))
    };
}
