//! JSON_TABLE(): each of its columns is JSON_VALUE(), JSON_QUERY() or JSON_EXISTS() of the row's value.

use super::Analyser;
use super::coerce::{constant, element_type, is_composite};
use crate::parse::ast::{self, ExprKind, JsonAnswer, Loc};
use base::{Result, SqlError, SqlState, err};
use expr::json::{
    JsonBehaviour, JsonExpr, JsonExprKind, JsonFind, JsonFinder, JsonTable, JsonTableColumn,
    JsonTableItem, JsonTableRows, JsonWrapper,
};
use expr::{Constant, Expr, TypeRef};
use types::oids::*;
use types::{Datum, Text};

/// The names and types of JSON_TABLE()'s columns; None for any other expression.
pub(super) fn columns(e: &Expr) -> Option<Vec<(String, TypeRef)>> {
    let Expr::Json(json) = e else { return None };
    let JsonExprKind::Table(table) = &json.kind else { return None };
    Some(table.columns.iter().map(|c| (c.name.clone(), c.ty.base())).collect())
}

/// What is gathered while the columns are gone through.
struct Making {
    names: Vec<String>,
    args: Vec<Expr>,
    columns: Vec<JsonTableColumn>,
    /// Names of paths that are taken.
    paths: Vec<String>,
    /// How many paths were given names that nobody wrote.
    numbered: usize,
    counts: bool,
}

impl Analyser<'_> {
    pub(super) fn json_table(&mut self, table: &ast::JsonTable, loc: Loc) -> Result<Expr> {
        if self.clause() != super::Clause::From {
            return self.at(loc, err!(SYNTAX_ERROR, "JSON_TABLE() is not allowed here"));
        }
        let error_on_error = match &table.on_error {
            None | Some(JsonAnswer::Plain(JsonBehaviour::EmptyArray, _)) => false,
            Some(JsonAnswer::Plain(JsonBehaviour::Error, _)) => true,
            Some(JsonAnswer::Plain(_, at)) => return self.table_answer(*at),
            Some(JsonAnswer::Default(e)) => return self.table_answer(e.loc),
        };
        let input = self.known_expr(&table.value.value)?;
        let mut args = vec![self.json_input(input, JSONB, table.value.value.loc)?];
        if !matches!(table.rows.path.kind, ExprKind::String(_)) {
            let e = err!(
                FEATURE_NOT_SUPPORTED,
                "only string constants are supported in JSON_TABLE path specification"
            );
            return self.at(table.rows.path.loc, e);
        }
        args.push(self.json_path(&table.rows.path)?);
        let names = self.json_passing(&table.passing, &mut args)?;
        let mut making = Making {
            names,
            args,
            columns: Vec::new(),
            paths: Vec::new(),
            numbered: 0,
            counts: false,
        };
        self.named_paths(&table.rows, &mut making.paths)?;
        let rows = self.table_rows(&table.rows, &mut making)?;
        let Making { names, args, columns, .. } = making;
        let kind = JsonExprKind::Table(JsonTable {
            format: table.value.format,
            names,
            error_on_error,
            rows,
            columns,
        });
        Ok(Expr::Json(Box::new(JsonExpr { kind, args, ty: TypeRef::of(RECORD) })))
    }

    fn table_answer<T>(&self, at: Loc) -> Result<T> {
        let e = SqlError::new(SqlState::SYNTAX_ERROR, "invalid ON ERROR behavior")
            .detail("Only EMPTY [ ARRAY ] or ERROR is allowed in the top-level ON ERROR clause.");
        self.at(at, e.into())
    }

    fn table_rows(
        &mut self,
        rows: &ast::JsonTableRows,
        making: &mut Making,
    ) -> Result<JsonTableRows> {
        let path = self.json_path(&rows.path)?;
        let Expr::Const(Constant { value: Datum::Text(path), .. }) = path else {
            return self.at(rows.path.loc, err!(INTERNAL_ERROR, "a path that is no constant"));
        };
        let name = match &rows.name {
            Some(name) => name.clone(),
            None => loop {
                let name = format!("json_table_path_{}", making.numbered);
                making.numbered += 1;
                if !making.paths.contains(&name) {
                    break name;
                }
            },
        };
        let counted = std::mem::take(&mut making.counts);
        let mut items = Vec::new();
        // The columns of a level come before those nested in it.
        for item in &rows.items {
            if let Some(column) = self.table_column(item, making)? {
                items.push(JsonTableItem::Column(column));
            }
        }
        for item in &rows.items {
            if let ast::JsonTableItem::Nested(inner) = item {
                items.push(JsonTableItem::Nested(self.table_rows(inner, making)?));
            }
        }
        making.counts = counted;
        Ok(JsonTableRows { path: path.to_string(), name, items })
    }

    /// A column's number; None for what is none.
    fn table_column(
        &mut self,
        item: &ast::JsonTableItem,
        making: &mut Making,
    ) -> Result<Option<usize>> {
        let (name, loc) = match item {
            ast::JsonTableItem::Nested(_) => return Ok(None),
            ast::JsonTableItem::Ordinality { name, loc } => (name, *loc),
            ast::JsonTableItem::Column(c) => (&c.name, c.loc),
        };
        if making.columns.iter().any(|c| c.name == *name) || making.paths.contains(name) {
            return self.twice(name, loc);
        }
        let column = match item {
            ast::JsonTableItem::Column(c) => {
                let ty = self.type_ref(&c.ty)?;
                let value = self.table_value(c, ty, making)?;
                making.args.push(value);
                let value = Some(making.args.len() - 1);
                JsonTableColumn { name: name.clone(), ty, value, format: c.format }
            }
            _ => {
                if std::mem::replace(&mut making.counts, true) {
                    let e = err!(SYNTAX_ERROR, "only one FOR ORDINALITY column is allowed");
                    return self.at(loc, e);
                }
                let ty = TypeRef::of(INT4);
                JsonTableColumn { name: name.clone(), ty, value: None, format: false }
            }
        };
        making.columns.push(column);
        Ok(Some(making.columns.len() - 1))
    }

    /// What a column is, over the row's value.
    fn table_value(
        &mut self,
        column: &ast::JsonTableColumn,
        ty: TypeRef,
        making: &Making,
    ) -> Result<Expr> {
        let base = ty.base().oid;
        if base == RECORD || is_composite(base) {
            return self
                .at(column.loc, base::Error::unsupported("a composite type in JSON_TABLE()"));
        }
        if column.format {
            self.json_format_fits(base, column.loc)?;
        }
        let wrapped = column.wrapper.is_some_and(|w| w != JsonWrapper::Without);
        if wrapped && column.omit_quotes == Some(true) {
            let e = err!(
                SYNTAX_ERROR,
                "SQL/JSON QUOTES behavior must not be specified when WITH WRAPPER is used"
            );
            return self.at(column.loc, e);
        }
        let queries = column.format
            || column.wrapper.is_some()
            || column.omit_quotes.is_some()
            || matches!(base, JSON | JSONB)
            || element_type(base).is_some();
        let what = match (column.exists, queries) {
            (true, _) => JsonFinder::Exists,
            (_, true) => JsonFinder::Query,
            _ => JsonFinder::Value,
        };
        let path = match &column.path {
            Some(path) => self.json_path(path)?,
            None => {
                let mut text = String::from("$.");
                types::json::push_json(
                    TEXT,
                    &Datum::text(&column.name),
                    &types::env::PlainEnv,
                    false,
                    &mut text,
                )?;
                constant(JSONPATH, Datum::Text(Text::from(text)))
            }
        };
        let mut args = vec![Expr::CaseTestValue(TypeRef::of(JSONB)), path];
        args.extend_from_slice(&making.args[2..2 + making.names.len()]);
        let on_empty = self.json_answer(what, column.on_empty.as_ref(), "EMPTY", ty, &mut args)?;
        let on_error = self.json_answer(what, column.on_error.as_ref(), "ERROR", ty, &mut args)?;
        // Truth is cast to integer; what other types read is the word.
        let counted = column.exists && base == INT4;
        let returning = if counted { TypeRef::of(BOOL) } else { ty };
        let find = JsonFind {
            what,
            format: false,
            returning,
            names: making.names.clone(),
            wrapper: column.wrapper.unwrap_or(JsonWrapper::Without),
            omit_quotes: column.omit_quotes == Some(true),
            on_empty,
            on_error,
            column: Some(column.name.clone()),
        };
        let found = Expr::Json(Box::new(JsonExpr {
            kind: JsonExprKind::Find(find),
            args,
            ty: returning.base(),
        }));
        if !counted {
            return Ok(found);
        }
        let explicit = types::facts::CastContext::Explicit;
        self.coerce(found, ty, explicit, false, column.loc).map(Expr::plain)
    }

    /// The names that paths were given.
    fn named_paths(&self, rows: &ast::JsonTableRows, out: &mut Vec<String>) -> Result<()> {
        if let Some(name) = &rows.name {
            if out.contains(name) {
                return self.twice(name, rows.path.loc);
            }
            out.push(name.clone());
        }
        for item in &rows.items {
            if let ast::JsonTableItem::Nested(inner) = item {
                self.named_paths(inner, out)?;
            }
        }
        Ok(())
    }

    fn twice<T>(&self, name: &str, at: Loc) -> Result<T> {
        self.at(at, err!(DUPLICATE_ALIAS, "duplicate JSON_TABLE column or path name: {name}"))
    }
}
