//! SQL/JSON's own expressions: IS JSON, JSON_OBJECT() and the other constructors, JSON_EXISTS(), JSON_QUERY(), JSON_VALUE().
//!
//! # Layout
//! Whatever is evaluated is in [`JsonExpr::args`], in the order that each kind says; the kind holds the rest of what was written.

use crate::code::Code;
use crate::eval::EvalContext;
use crate::tree::{Expr, TypeRef};
use base::{Oid, Result, SqlError, SqlState, err};
use serde::{Deserialize, Serialize};
use types::json::path::{Item, PathCall, array_of, find, find_items, finds_any};
use types::json::standard::{self, Making, Shape};
use types::json::{Jsonb, View};
use types::{Datum, oids};

/// An expression of SQL/JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonExpr {
    /// Which.
    pub kind: JsonExprKind,
    /// What is evaluated.
    pub args: Vec<Expr>,
    /// The result's type.
    pub ty: TypeRef,
}

/// What an expression of SQL/JSON does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum JsonExprKind {
    /// `x IS JSON …`, of one argument.
    Is {
        /// Which values it is true of.
        shape: Shape,
        /// WITH UNIQUE KEYS
        unique: bool,
    },
    /// A constructor.
    Make(JsonMake),
    /// JSON_EXISTS(), JSON_QUERY(), JSON_VALUE(): arguments are the value, the path, those PASSING, those of DEFAULT.
    Find(JsonFind),
    /// JSON_TABLE(), in FROM: arguments are the value, the path, those PASSING, then the columns' own expressions, each over
    /// [`Expr::CaseTestValue`].
    Table(JsonTable),
}

/// JSON_TABLE()
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonTable {
    /// FORMAT JSON behind the value.
    pub format: bool,
    /// The names of what is PASSING.
    pub names: Vec<String>,
    /// ERROR ON ERROR
    pub error_on_error: bool,
    /// What its rows are.
    pub rows: JsonTableRows,
    /// All its columns, those of nested rows too, in the order that they were written.
    pub columns: Vec<JsonTableColumn>,
}

/// What a path of JSON_TABLE() finds: a row for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonTableRows {
    /// The path.
    pub path: String,
    /// What it is called.
    pub name: String,
    /// Its columns and nested rows, in the order that they were written.
    pub items: Vec<JsonTableItem>,
}

/// One of what COLUMNS lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum JsonTableItem {
    /// A column, by its number.
    Column(usize),
    /// NESTED PATH
    Nested(JsonTableRows),
}

/// A column of JSON_TABLE().
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonTableColumn {
    /// What it is called.
    pub name: String,
    /// Its type.
    pub ty: TypeRef,
    /// The argument that is its value; None counts rows (FOR ORDINALITY).
    pub value: Option<usize>,
    /// FORMAT JSON
    pub format: bool,
}

/// Which constructor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JsonConstructor {
    /// JSON(x)
    Parse,
    /// JSON_SCALAR(x)
    Scalar,
    /// JSON_SERIALIZE(x)
    Serialize,
    /// JSON_OBJECT(k : v, …): arguments are keys and values in turn.
    Object,
    /// JSON_ARRAY(x, …)
    Array,
    /// JSON_OBJECTAGG(k : v), of the aggregate that it is.
    ObjectAgg,
    /// JSON_ARRAYAGG(x), of the aggregate that it is.
    ArrayAgg,
}

/// A constructor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonMake {
    /// Which.
    pub what: JsonConstructor,
    /// ABSENT ON NULL
    pub absent: bool,
    /// WITH UNIQUE KEYS
    pub unique: bool,
    /// For each argument, that FORMAT JSON stands behind it: it is then a cast to json.
    pub formats: Vec<bool>,
    /// What RETURNING says, which may be a domain.
    pub returning: TypeRef,
    /// FORMAT JSON behind RETURNING.
    pub format: bool,
}

/// Which of the functions that look into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JsonFinder {
    /// JSON_EXISTS()
    Exists,
    /// JSON_QUERY()
    Query,
    /// JSON_VALUE()
    Value,
}

/// What JSON_QUERY() puts into an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JsonWrapper {
    /// Nothing.
    Without,
    /// What is not exactly one value.
    Conditional,
    /// Whatever is found.
    Unconditional,
}

/// What ON EMPTY and ON ERROR say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JsonBehaviour {
    /// ERROR
    Error,
    /// NULL
    Null,
    /// TRUE
    True,
    /// FALSE
    False,
    /// UNKNOWN
    Unknown,
    /// EMPTY ARRAY
    EmptyArray,
    /// EMPTY OBJECT
    EmptyObject,
    /// DEFAULT: the argument with that index.
    Default(usize),
}

/// A function that looks into a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonFind {
    /// Which.
    pub what: JsonFinder,
    /// FORMAT JSON behind the value.
    pub format: bool,
    /// What RETURNING says, which may be a domain.
    pub returning: TypeRef,
    /// The names of what is PASSING.
    pub names: Vec<String>,
    /// WRAPPER
    pub wrapper: JsonWrapper,
    /// OMIT QUOTES
    pub omit_quotes: bool,
    /// ON EMPTY
    pub on_empty: Option<JsonBehaviour>,
    /// ON ERROR
    pub on_error: Option<JsonBehaviour>,
    /// The column of JSON_TABLE() that it makes, for its errors.
    pub column: Option<String>,
}

/// A compiled [`JsonExpr`].
pub struct JsonCode {
    pub(crate) kind: JsonExprKind,
    pub(crate) args: Box<[Code]>,
    pub(crate) arg_types: Box<[Oid]>,
    pub(crate) ty: TypeRef,
}

/// Why JSON_QUERY() and JSON_VALUE() have no value.
enum Without {
    /// The path has found nothing.
    Nothing,
    Error(base::Error),
}

impl JsonCode {
    pub(crate) fn eval(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        match &self.kind {
            JsonExprKind::Is { shape, unique } => {
                let value = self.args[0].eval(row, cx)?;
                Ok(match &value {
                    Datum::Null => Datum::Null,
                    Datum::Jsonb(j) => Datum::Bool(standard::is_shaped(j, *shape)),
                    Datum::Text(t) => Datum::Bool(standard::is_json(t, *shape, *unique)?),
                    Datum::Bytea(b) => {
                        Datum::Bool(standard::is_json(types::utf8(b)?, *shape, *unique)?)
                    }
                    _ => Datum::Bool(false),
                })
            }
            JsonExprKind::Make(make) => self.make(make, row, cx),
            JsonExprKind::Find(find) => self.find(find, row, cx),
            JsonExprKind::Table(_) => Err(base::Error::unsupported("JSON_TABLE() outside of FROM")),
        }
    }

    fn make(&self, make: &JsonMake, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        let mut values = Vec::with_capacity(self.args.len());
        for a in &self.args {
            values.push(a.eval(row, cx)?);
        }
        let making =
            Making { absent: make.absent, unique: make.unique, binary: self.ty.oid == oids::JSONB };
        let ty = |i: usize| self.arg_types.get(i).copied().unwrap_or(oids::TEXT);
        let made = match make.what {
            JsonConstructor::Object => {
                let pairs: Vec<standard::Pair> = values
                    .chunks_exact(2)
                    .enumerate()
                    .map(|(i, pair)| ((ty(2 * i), &pair[0]), (ty(2 * i + 1), &pair[1])))
                    .collect();
                standard::object(&pairs, making, cx.env)?
            }
            JsonConstructor::Array => {
                let items: Vec<(Oid, &Datum)> =
                    values.iter().enumerate().map(|(i, v)| (ty(i), v)).collect();
                standard::array(&items, making, cx.env)?
            }
            JsonConstructor::Scalar => match values.swap_remove(0) {
                Datum::Null => return Ok(Datum::Null),
                value => standard::scalar(ty(0), &value, cx.env)?,
            },
            JsonConstructor::Parse => {
                let value = values.swap_remove(0);
                if let (true, Datum::Text(text)) = (make.unique, &value) {
                    standard::check_unique(text)?;
                }
                value
            }
            JsonConstructor::Serialize | JsonConstructor::ObjectAgg | JsonConstructor::ArrayAgg => {
                values.swap_remove(0)
            }
        };
        self.returned(made, make.returning, cx)
    }

    /// A json value as what RETURNING says.
    fn returned(&self, made: Datum, to: TypeRef, cx: &EvalContext<'_>) -> Result<Datum> {
        let text = match (&made, self.ty.oid) {
            (Datum::Null, _) | (Datum::Jsonb(_), oids::JSONB) => return Ok(made),
            (Datum::Text(_), oids::JSON | oids::TEXT) => return Ok(made),
            (Datum::Text(t), _) => t.to_string(),
            (Datum::Jsonb(j), _) => {
                let mut out = String::new();
                types::json::jsonb_output(j.view(), &mut out);
                out
            }
            _ => return Ok(made),
        };
        if self.ty.oid == oids::BYTEA {
            return Ok(Datum::Bytea(text.into_bytes().into()));
        }
        types::text_input(to.oid, to.typmod, &text, cx.env)
    }

    /// What the path finds, as the type that RETURNING says; NULL is a value that a domain may not have.
    fn found(
        &self,
        asked: &JsonFind,
        row: &[Datum],
        cx: &EvalContext<'_>,
    ) -> Result<std::result::Result<Datum, Without>> {
        let null = || checked(Datum::Null, asked, cx).map_err(Without::Error);
        let Datum::Jsonb(root) = self.args[0].eval(row, cx)? else { return Ok(null()) };
        let Datum::Text(path) = self.args[1].eval(row, cx)? else { return Ok(null()) };
        let variables = self.variables(&asked.names, row, cx)?;
        let silent = asked.on_error != Some(JsonBehaviour::Error);
        let call = PathCall { root: &root, path: &path, variables: &variables, silent };
        Ok(match asked.what {
            JsonFinder::Exists => match finds_any(&call, cx.env)? {
                Ok(found) => truth(found, asked, cx).map_err(Without::Error),
                Err(e) => Err(Without::Error(e)),
            },
            JsonFinder::Query => match find(&call, cx.env)? {
                Ok(items) => self.query(asked, &items, cx),
                Err(e) => Err(Without::Error(e)),
            },
            JsonFinder::Value => match find_items(&call, cx.env)? {
                Ok(items) => self.value(asked, items, cx),
                Err(e) => Err(Without::Error(e)),
            },
        })
    }

    fn find(&self, asked: &JsonFind, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
        match self.found(asked, row, cx)? {
            Ok(value) => Ok(value),
            Err(Without::Nothing) => {
                let behaviour = asked.on_empty.unwrap_or(JsonBehaviour::Null);
                let error = || match &asked.column {
                    Some(c) => err!(
                        NO_SQL_JSON_ITEM,
                        "no SQL/JSON item found for specified path of column \"{c}\""
                    ),
                    None => err!(NO_SQL_JSON_ITEM, "no SQL/JSON item found for specified path"),
                };
                self.otherwise(asked, ("ON EMPTY", behaviour), error(), row, cx)
            }
            Err(Without::Error(e)) => {
                let usual = match asked.what {
                    JsonFinder::Exists => JsonBehaviour::False,
                    _ => JsonBehaviour::Null,
                };
                let behaviour = asked.on_error.unwrap_or(usual);
                self.otherwise(asked, ("ON ERROR", behaviour), e, row, cx)
            }
        }
    }

    /// What is PASSING.
    fn variables(
        &self,
        names: &[String],
        row: &[Datum],
        cx: &EvalContext<'_>,
    ) -> Result<Vec<(String, Datum)>> {
        let mut variables = Vec::with_capacity(names.len());
        for (i, name) in names.iter().enumerate() {
            let value = self.args[2 + i].eval(row, cx)?;
            // Text that is json, rather than a string.
            let value = match (value, self.arg_types.get(2 + i)) {
                (Datum::Text(t), Some(&oids::JSON)) => types::json::jsonb_input(&t)?,
                (value, _) => value,
            };
            variables.push((name.clone(), value));
        }
        Ok(variables)
    }

    fn query(
        &self,
        asked: &JsonFind,
        items: &[Jsonb],
        cx: &EvalContext<'_>,
    ) -> std::result::Result<Datum, Without> {
        let wrap = match asked.wrapper {
            JsonWrapper::Without => false,
            JsonWrapper::Conditional => items.len() > 1,
            JsonWrapper::Unconditional => !items.is_empty(),
        };
        let wrapped;
        let value = match items {
            _ if wrap => {
                wrapped = array_of(items).map_err(Without::Error)?;
                &wrapped
            }
            [] => return Err(Without::Nothing),
            [one] => one,
            _ => {
                let text = match &asked.column {
                    Some(c) => format!("JSON path expression for column \"{c}\" must return single item when no wrapper is requested"),
                    None => "JSON path expression in JSON_QUERY must return single item when no wrapper is requested".to_owned(),
                };
                let e = SqlError::new(SqlState::MORE_THAN_ONE_SQL_JSON_ITEM, text)
                    .hint("Use the WITH WRAPPER clause to wrap SQL/JSON items into an array.");
                return Err(Without::Error(e.into()));
            }
        };
        if self.ty.oid == oids::JSONB && !asked.omit_quotes {
            return Ok(Datum::Jsonb(value.clone()));
        }
        let to = asked.returning;
        standard::convert(value, to.oid, to.typmod, asked.omit_quotes, cx.env)
            .map_err(Without::Error)
    }

    fn value(
        &self,
        asked: &JsonFind,
        mut items: Vec<Item>,
        cx: &EvalContext<'_>,
    ) -> std::result::Result<Datum, Without> {
        let place = || match &asked.column {
            Some(c) => format!("for column \"{c}\""),
            None => "in JSON_VALUE".to_owned(),
        };
        if items.len() > 1 {
            let text = format!("JSON path expression {} must return single scalar item", place());
            return Err(Without::Error(err!(MORE_THAN_ONE_SQL_JSON_ITEM, "{text}")));
        }
        let Some(item) = items.pop() else { return Err(Without::Nothing) };
        let (Item::Json(json) | Item::Moment(_, json)) = &item;
        if matches!(json.view(), View::Array(_) | View::Object(_)) {
            let text = format!("JSON path expression {} must return single scalar item", place());
            return Err(Without::Error(err!(SQL_JSON_SCALAR_REQUIRED, "{text}")));
        }
        self.scalar(asked, &item, json, cx).map_err(Without::Error)
    }

    /// A scalar as JSON_VALUE() gives it.
    fn scalar(
        &self,
        asked: &JsonFind,
        item: &Item,
        json: &Jsonb,
        cx: &EvalContext<'_>,
    ) -> Result<Datum> {
        let text = match (item, json.view()) {
            (_, View::Null) => return checked(Datum::Null, asked, cx),
            _ if matches!(self.ty.oid, oids::JSON | oids::JSONB) => {
                return standard::convert(json, self.ty.oid, self.ty.typmod, false, cx.env);
            }
            (Item::Moment(value, _), _) => {
                types::io::to_text(types::io::natural_type(value), value, cx.env)?
            }
            (_, View::Bool(b)) => (if b { "t" } else { "f" }).to_owned(),
            _ => standard::unquoted(json),
        };
        let to = asked.returning;
        types::text_input(to.oid, to.typmod, &text, cx.env)
    }

    /// What ON EMPTY or ON ERROR says: it is to be of the type that RETURNING says too.
    fn otherwise(
        &self,
        asked: &JsonFind,
        (clause, behaviour): (&str, JsonBehaviour),
        error: base::Error,
        row: &[Datum],
        cx: &EvalContext<'_>,
    ) -> Result<Datum> {
        let shaped = |empty: &str| -> Result<Datum> {
            let Datum::Jsonb(empty) = types::json::jsonb_input(empty)? else {
                return Ok(Datum::Null);
            };
            standard::convert(&empty, asked.returning.oid, asked.returning.typmod, false, cx.env)
        };
        let (said, made) = match behaviour {
            JsonBehaviour::Error => return Err(error),
            JsonBehaviour::Default(i) => return self.args[i].eval(row, cx),
            JsonBehaviour::Null => ("NULL", checked(Datum::Null, asked, cx)),
            JsonBehaviour::Unknown => ("UNKNOWN", checked(Datum::Null, asked, cx)),
            JsonBehaviour::True => ("TRUE", truth(true, asked, cx)),
            JsonBehaviour::False => ("FALSE", truth(false, asked, cx)),
            JsonBehaviour::EmptyArray => ("EMPTY ARRAY", shaped("[]")),
            JsonBehaviour::EmptyObject => ("EMPTY OBJECT", shaped("{}")),
        };
        made.map_err(|e| {
            if asked.on_error == Some(JsonBehaviour::Error) {
                return e;
            }
            let text =
                format!("could not coerce {clause} expression ({said}) to the RETURNING type");
            SqlError::new(SqlState::DATATYPE_MISMATCH, text).detail(e.to_sql_error().message).into()
        })
    }
}

/// The value, if it is one of the type that RETURNING says, which may be a domain.
fn checked(value: Datum, asked: &JsonFind, cx: &EvalContext<'_>) -> Result<Datum> {
    types::domains::check(asked.returning.oid, &value, cx.env)?;
    Ok(value)
}

/// Whether something was found, as the type of a column of JSON_TABLE().
fn truth(found: bool, asked: &JsonFind, cx: &EvalContext<'_>) -> Result<Datum> {
    let to = asked.returning;
    if to.oid == oids::BOOL {
        return Ok(Datum::Bool(found));
    }
    match types::json::jsonb_input(if found { "true" } else { "false" })? {
        Datum::Jsonb(made) => standard::convert(&made, to.oid, to.typmod, false, cx.env),
        other => Ok(other),
    }
}

/// A compiled JSON_TABLE().
pub struct JsonTableCode {
    table: JsonTable,
    code: JsonCode,
}

/// The columns of a row that are set, by their numbers.
type Cells = Vec<(usize, Datum)>;

impl JsonTableCode {
    /// Compiles it; None if the expression is another.
    ///
    /// # Errors
    /// What [`crate::code::compile`] says.
    pub fn compile(e: &Expr) -> Result<Option<JsonTableCode>> {
        match (e, crate::code::compile(e)?) {
            (Expr::Json(json), Code::Json(code)) => match &json.kind {
                JsonExprKind::Table(table) => {
                    Ok(Some(JsonTableCode { table: table.clone(), code: *code }))
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Its rows.
    ///
    /// # Errors
    /// What ON ERROR does not answer.
    pub fn rows(&self, row: &[Datum], cx: &EvalContext<'_>) -> Result<Vec<Vec<Datum>>> {
        let Datum::Jsonb(root) = self.code.args[0].eval(row, cx)? else { return Ok(Vec::new()) };
        let variables = self.code.variables(&self.table.names, row, cx)?;
        let mut out = Vec::new();
        for cells in self.scan(&self.table.rows, &root, &variables, row, cx)? {
            let mut made = vec![Datum::Null; self.table.columns.len()];
            for (i, value) in cells {
                made[i] = value;
            }
            out.push(made);
        }
        Ok(out)
    }

    /// The rows that a path finds in a value, with those nested in them.
    fn scan(
        &self,
        rows: &JsonTableRows,
        within: &Jsonb,
        variables: &[(String, Datum)],
        row: &[Datum],
        cx: &EvalContext<'_>,
    ) -> Result<Vec<Cells>> {
        let silent = !self.table.error_on_error;
        let call = PathCall { root: within, path: &rows.path, variables, silent };
        let items = match find(&call, cx.env)? {
            Err(e) if self.table.error_on_error => return Err(e),
            found => found.unwrap_or_default(),
        };
        let mut out = Vec::new();
        for (number, item) in items.iter().enumerate() {
            cx.env.check_cancel()?;
            let mut cells = Cells::new();
            let mut nested = Vec::new();
            for part in &rows.items {
                match part {
                    JsonTableItem::Column(i) => {
                        cells.push((*i, self.cell(*i, number, item, row, cx)?));
                    }
                    JsonTableItem::Nested(inner) => {
                        nested.extend(self.scan(inner, item, variables, row, cx)?);
                    }
                }
            }
            if nested.is_empty() {
                out.push(cells);
                continue;
            }
            for mut more in nested {
                more.extend(cells.iter().cloned());
                out.push(more);
            }
        }
        Ok(out)
    }

    fn cell(
        &self,
        column: usize,
        number: usize,
        item: &Jsonb,
        row: &[Datum],
        cx: &EvalContext<'_>,
    ) -> Result<Datum> {
        let Some(value) = self.table.columns[column].value else {
            return Ok(Datum::Int4(i32::try_from(number + 1).unwrap_or(i32::MAX)));
        };
        cx.case_values.borrow_mut().push(Datum::Jsonb(item.clone()));
        let made = self.code.args[value].eval(row, cx);
        cx.case_values.borrow_mut().pop();
        made
    }
}
