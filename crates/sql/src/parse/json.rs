//! The syntax of SQL/JSON: JSON_OBJECT(), JSON_VALUE() and the like.

use super::ast::{
    Expr, ExprKind, FuncArg, FuncCall, JsonAnswer, JsonArg, JsonCall, JsonReturning, JsonTable,
    JsonTableColumn, JsonTableItem, JsonTableRows, Loc,
};
use super::expr::{boxed, node};
use super::lexer::Kind;
use super::parser::Parser;
use base::{Result, SqlError, SqlState};
use expr::json::{JsonBehaviour, JsonConstructor, JsonFinder, JsonWrapper};

/// What begins with `json_object(`.
enum Object {
    Made(JsonCall),
    /// The arguments of the function.
    Called(Vec<FuncArg>),
}

fn function_call(name: &str, args: Vec<FuncArg>) -> FuncCall {
    FuncCall::plain(vec!["pg_catalog".into(), name.into()], args)
}

impl Parser<'_> {
    /// A call of SQL/JSON, by its name in lower case.
    pub fn json_call(&mut self, word: &str, loc: Loc) -> Result<Expr> {
        let call = match word {
            "json" | "json_scalar" | "json_serialize" => self.json_of_one(word)?,
            "json_object" => match self.json_object()? {
                Object::Made(call) => call,
                Object::Called(args) => {
                    let call = Box::new(function_call(word, args));
                    return Ok(node(ExprKind::Call(call), loc));
                }
            },
            "json_array" => self.json_array()?,
            "json_objectagg" | "json_arrayagg" => self.json_aggregate(word)?,
            "json_exists" => self.json_find(JsonFinder::Exists)?,
            "json_query" => self.json_find(JsonFinder::Query)?,
            "json_value" => self.json_find(JsonFinder::Value)?,
            _ => self.json_table()?,
        };
        Ok(node(ExprKind::Json(Box::new(call)), loc))
    }

    /// `x [FORMAT JSON [ENCODING UTF8]]`
    fn json_arg(&mut self) -> Result<JsonArg> {
        let value = self.expr()?;
        Ok(JsonArg { value, format: self.json_format()? })
    }

    fn json_format(&mut self) -> Result<bool> {
        if !self.accept_all(&["format", "json"]) {
            return Ok(false);
        }
        if self.accept("encoding") {
            let loc = self.loc();
            let name = self.label()?;
            if !name.eq_ignore_ascii_case("utf8") {
                let e = match name.to_ascii_lowercase().as_str() {
                    "utf16" | "utf32" => {
                        let text = "unsupported JSON encoding";
                        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
                            .hint("Only UTF8 JSON encoding is supported.")
                            .into()
                    }
                    _ => base::err!(INVALID_PARAMETER_VALUE, "unrecognized JSON encoding: {name}"),
                };
                return self.error_here(e, loc);
            }
        }
        Ok(true)
    }

    fn json_returning(&mut self) -> Result<Option<JsonReturning>> {
        if !self.accept("returning") {
            return Ok(None);
        }
        let ty = self.type_name()?;
        Ok(Some(JsonReturning { ty, format: self.json_format()? }))
    }

    fn json_unique(&mut self) -> bool {
        let unique = self.accept_all(&["with", "unique"]);
        if unique || self.accept_all(&["without", "unique"]) {
            self.accept("keys");
        }
        unique
    }

    /// `NULL ON NULL`, `ABSENT ON NULL`
    fn json_absent(&mut self, usual: bool) -> bool {
        if self.accept_all(&["absent", "on", "null"]) {
            return true;
        }
        if self.accept_all(&["null", "on", "null"]) {
            return false;
        }
        usual
    }

    fn json_of_one(&mut self, word: &str) -> Result<JsonCall> {
        self.skip(2);
        let (mut unique, mut returning) = (false, None);
        let (what, arg) = match word {
            "json_scalar" => {
                (JsonConstructor::Scalar, JsonArg { value: self.expr()?, format: false })
            }
            "json" => {
                let arg = self.json_arg()?;
                unique = self.json_unique();
                (JsonConstructor::Parse, arg)
            }
            _ => {
                let arg = self.json_arg()?;
                returning = self.json_returning()?;
                (JsonConstructor::Serialize, arg)
            }
        };
        self.expect_op(")")?;
        Ok(JsonCall::Make { what, args: vec![arg], absent: false, unique, returning })
    }

    /// A value behind its key: `: v` or `VALUE v`; None if there is none.
    fn json_member(&mut self) -> Result<Option<JsonArg>> {
        if !self.accept_op(":") && !self.accept("value") {
            return Ok(None);
        }
        self.json_arg().map(Some)
    }

    /// `k : v` or `k VALUE v`
    fn json_pair(&mut self) -> Result<[JsonArg; 2]> {
        let key = JsonArg { value: self.expr()?, format: false };
        let value = self.json_member()?.ok_or_else(|| self.unexpected())?;
        Ok([key, value])
    }

    /// JSON_OBJECT(), or a call of the function json_object(). Which of them it is can be seen behind the first argument.
    fn json_object(&mut self) -> Result<Object> {
        self.skip(2);
        let mut args = Vec::new();
        let empty = self.is_op(")") || self.is("returning");
        if !empty {
            let FuncArg { name, value } = self.func_arg()?;
            let member = if name.is_none() { self.json_member()? } else { None };
            let Some(member) = member else {
                return self.json_object_args(FuncArg { name, value }).map(Object::Called);
            };
            args.extend([JsonArg { value, format: false }, member]);
            while self.accept_op(",") {
                args.extend(self.json_pair()?);
            }
        }
        let absent = !empty && self.json_absent(false);
        let unique = !empty && self.json_unique();
        let returning = self.json_returning()?;
        self.expect_op(")")?;
        let what = JsonConstructor::Object;
        Ok(Object::Made(JsonCall::Make { what, args, absent, unique, returning }))
    }

    /// The rest of a function's arguments.
    fn json_object_args(&mut self, first: FuncArg) -> Result<Vec<FuncArg>> {
        let mut args = vec![first];
        while self.accept_op(",") {
            args.push(self.func_arg()?);
        }
        self.expect_op(")")?;
        Ok(args)
    }

    fn json_array(&mut self) -> Result<JsonCall> {
        self.skip(1);
        if self.subselect_ahead() {
            self.expect_op("(")?;
            let query = Box::new(self.deeper(Self::select)?);
            let format = self.json_format()?;
            let returning = self.json_returning()?;
            self.expect_op(")")?;
            return Ok(JsonCall::ArraySelect { query, format, returning });
        }
        self.expect_op("(")?;
        let empty = self.is_op(")") || self.is("returning");
        let args = if empty { Vec::new() } else { self.list(Self::json_arg)? };
        let absent = empty || self.json_absent(true);
        let returning = self.json_returning()?;
        self.expect_op(")")?;
        let what = JsonConstructor::Array;
        Ok(JsonCall::Make { what, args, absent, unique: false, returning })
    }

    fn json_aggregate(&mut self, word: &str) -> Result<JsonCall> {
        self.skip(2);
        let (mut order_by, mut unique) = (Vec::new(), false);
        let (what, args, absent);
        if word == "json_objectagg" {
            what = JsonConstructor::ObjectAgg;
            args = self.json_pair()?.to_vec();
            absent = self.json_absent(false);
            unique = self.json_unique();
        } else {
            what = JsonConstructor::ArrayAgg;
            args = vec![self.json_arg()?];
            if self.is("order") {
                order_by = self.order_by()?;
            }
            absent = self.json_absent(true);
        }
        let returning = self.json_returning()?;
        self.expect_op(")")?;
        let (filter, over) = self.filter_and_over()?;
        Ok(JsonCall::Aggregate { what, args, absent, unique, returning, order_by, filter, over })
    }

    fn json_find(&mut self, what: JsonFinder) -> Result<JsonCall> {
        self.skip(2);
        let value = self.json_arg()?;
        self.expect_op(",")?;
        let path = self.expr()?;
        let passing = self.json_passing()?;
        let returning = match what {
            JsonFinder::Exists => None,
            _ => self.json_returning()?,
        };
        let (wrapper, omit_quotes) = match what {
            JsonFinder::Query => {
                (self.json_wrapper().unwrap_or(JsonWrapper::Without), self.json_quotes()?)
            }
            _ => (JsonWrapper::Without, None),
        };
        let (on_empty, on_error) = self.json_answers(what != JsonFinder::Exists)?;
        self.expect_op(")")?;
        Ok(JsonCall::Find {
            what,
            value,
            path,
            passing,
            returning,
            wrapper,
            omit_quotes,
            on_empty,
            on_error,
        })
    }

    fn json_passing(&mut self) -> Result<Vec<(JsonArg, String)>> {
        if !self.accept("passing") {
            return Ok(Vec::new());
        }
        self.list(|p| {
            let arg = p.json_arg()?;
            p.expect("as")?;
            Ok((arg, p.label()?))
        })
    }

    fn json_table(&mut self) -> Result<JsonCall> {
        self.skip(2);
        let value = self.json_arg()?;
        self.expect_op(",")?;
        let path = self.expr()?;
        let name = if self.accept("as") { Some(self.name()?) } else { None };
        let passing = self.json_passing()?;
        let items = self.json_columns()?;
        let on_error = if self.is_op(")") {
            None
        } else {
            let answer = self.json_answer()?;
            self.expect_all(&["on", "error"])?;
            Some(answer)
        };
        self.expect_op(")")?;
        let rows = JsonTableRows { path, name, items };
        Ok(JsonCall::Table(Box::new(JsonTable { value, rows, passing, on_error })))
    }

    fn json_columns(&mut self) -> Result<Vec<JsonTableItem>> {
        self.expect("columns")?;
        self.paren_list(|p| p.deeper(Self::json_column))
    }

    fn json_column(&mut self) -> Result<JsonTableItem> {
        let loc = self.loc();
        if self.is("nested") && (self.is_at(1, "path") || self.peek_at(1).kind == Kind::String) {
            self.skip(1);
            self.accept("path");
            let path = self.json_path_text()?;
            let name = if self.accept("as") { Some(self.name()?) } else { None };
            let items = self.json_columns()?;
            return Ok(JsonTableItem::Nested(JsonTableRows { path, name, items }));
        }
        let name = self.name()?;
        if self.accept_all(&["for", "ordinality"]) {
            return Ok(JsonTableItem::Ordinality { name, loc });
        }
        let ty = self.type_name()?;
        let exists = self.accept("exists");
        let format = !exists && self.json_format()?;
        let path = if self.accept("path") { Some(self.json_path_text()?) } else { None };
        let (mut wrapper, mut omit_quotes) = (None, None);
        if !exists {
            wrapper = self.json_wrapper();
            omit_quotes = self.json_quotes()?;
        }
        let mut answers = (None, None);
        if !self.is_op(",") && !self.is_op(")") {
            answers = self.json_answers(!exists)?;
        }
        let (on_empty, on_error) = answers;
        Ok(JsonTableItem::Column(Box::new(JsonTableColumn {
            name,
            ty,
            exists,
            format,
            path,
            wrapper,
            omit_quotes,
            on_empty,
            on_error,
            loc,
        })))
    }

    fn json_path_text(&mut self) -> Result<Expr> {
        let loc = self.loc();
        Ok(node(ExprKind::String(self.string()?), loc))
    }

    fn json_wrapper(&mut self) -> Option<JsonWrapper> {
        if self.accept("without") {
            self.accept("array");
            self.accept("wrapper");
            return Some(JsonWrapper::Without);
        }
        if !self.accept("with") {
            return None;
        }
        let conditional = self.accept("conditional");
        if !conditional {
            self.accept("unconditional");
        }
        self.accept("array");
        self.accept("wrapper");
        Some(if conditional { JsonWrapper::Conditional } else { JsonWrapper::Unconditional })
    }

    fn json_quotes(&mut self) -> Result<Option<bool>> {
        let omit = self.is("omit");
        if !omit && !self.is("keep") {
            return Ok(None);
        }
        self.skip(1);
        self.expect("quotes")?;
        self.accept_all(&["on", "scalar", "string"]);
        Ok(Some(omit))
    }

    /// `… ON EMPTY … ON ERROR`, the first where `empty` lets it.
    fn json_answers(&mut self, empty: bool) -> Result<(Option<JsonAnswer>, Option<JsonAnswer>)> {
        let (mut on_empty, mut on_error) = (None, None);
        while on_error.is_none() && !self.is_op(")") && !self.is_op(",") {
            let answer = self.json_answer()?;
            self.expect("on")?;
            if on_empty.is_none() && empty && self.accept("empty") {
                on_empty = Some(answer);
            } else {
                self.expect("error")?;
                on_error = Some(answer);
            }
        }
        Ok((on_empty, on_error))
    }

    fn json_answer(&mut self) -> Result<JsonAnswer> {
        let loc = self.loc();
        if self.accept("default") {
            return Ok(JsonAnswer::Default(boxed(self.expr()?)));
        }
        const WORDS: [(&str, JsonBehaviour); 5] = [
            ("error", JsonBehaviour::Error),
            ("null", JsonBehaviour::Null),
            ("true", JsonBehaviour::True),
            ("false", JsonBehaviour::False),
            ("unknown", JsonBehaviour::Unknown),
        ];
        for (word, behaviour) in WORDS {
            if self.accept(word) {
                return Ok(JsonAnswer::Plain(behaviour, loc));
            }
        }
        self.expect("empty")?;
        if self.accept("object") {
            return Ok(JsonAnswer::Plain(JsonBehaviour::EmptyObject, loc));
        }
        self.accept("array");
        Ok(JsonAnswer::Plain(JsonBehaviour::EmptyArray, loc))
    }
}
