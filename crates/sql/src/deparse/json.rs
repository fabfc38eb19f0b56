//! SQL/JSON, as PostgreSQL prints it.

use super::Printer;
use super::calls::uncast;
use crate::analyse::{constructor_name, finder_name};
use base::Result;
use expr::json::{
    JsonBehaviour, JsonConstructor, JsonExpr, JsonExprKind, JsonFind, JsonFinder, JsonMake,
    JsonTable, JsonTableColumn, JsonTableItem, JsonTableRows, JsonWrapper,
};
use expr::{Constant, Expr, TypeRef};
use types::json::standard::Shape;
use types::oids::{BOOL, JSON, JSONPATH, TEXT};
use types::{Datum, quote_ident, type_text};

/// True for JSON_TABLE() whose columns are called as they are in it.
pub(super) fn has_its_columns(call: &Expr, called: &[String]) -> bool {
    let Expr::Json(json) = call else { return false };
    match &json.kind {
        JsonExprKind::Table(table) => table.columns.iter().map(|c| &c.name).eq(called),
        _ => false,
    }
}

impl Printer<'_> {
    pub(super) fn json(&mut self, json: &JsonExpr) -> Result<()> {
        match &json.kind {
            JsonExprKind::Is { shape, unique } => {
                self.open();
                self.operand(uncast(&json.args[0]))?;
                self.text(match shape {
                    Shape::Value => " IS JSON",
                    Shape::Object => " IS JSON OBJECT",
                    Shape::Array => " IS JSON ARRAY",
                    Shape::Scalar => " IS JSON SCALAR",
                });
                if *unique {
                    self.text(" WITH UNIQUE KEYS");
                }
                self.close();
                Ok(())
            }
            JsonExprKind::Make(make) => self.json_make(make, &json.args),
            JsonExprKind::Find(find) => self.json_find(find, &json.args),
            JsonExprKind::Table(table) => self.json_table(table, &json.args),
        }
    }

    /// A value, and that it has FORMAT JSON.
    fn json_arg(&mut self, e: &Expr, format: bool) -> Result<()> {
        if !format {
            return self.expr(e);
        }
        let inner = match e {
            Expr::CoerceViaIo { arg, ty, .. } if ty.oid == JSON => arg,
            e => e,
        };
        self.expr(inner)?;
        self.text(" FORMAT JSON");
        Ok(())
    }

    fn json_make(&mut self, make: &JsonMake, args: &[Expr]) -> Result<()> {
        self.text(&constructor_name(make.what).to_ascii_uppercase());
        self.text("(");
        let format = |i: usize| make.formats.get(i).copied().unwrap_or(false);
        let mut behind = None;
        match args {
            [Expr::Aggregate(a)]
                if matches!(make.what, JsonConstructor::ObjectAgg | JsonConstructor::ArrayAgg) =>
            {
                self.json_args(&a.args, make, &format)?;
                if !a.order_by.is_empty() {
                    self.text(" ORDER BY ");
                    self.sort_keys(&a.order_by)?;
                }
                behind = Some((a.filter.as_deref(), None));
            }
            [Expr::Window(w)]
                if matches!(make.what, JsonConstructor::ObjectAgg | JsonConstructor::ArrayAgg) =>
            {
                self.json_args(&w.args, make, &format)?;
                behind = Some((w.filter.as_deref(), Some(w.window)));
            }
            _ => self.json_args(args, make, &format)?,
        }
        match make.what {
            JsonConstructor::Object | JsonConstructor::ObjectAgg if make.absent => {
                self.text(" ABSENT ON NULL");
            }
            JsonConstructor::Array | JsonConstructor::ArrayAgg if !make.absent => {
                self.text(" NULL ON NULL");
            }
            _ => {}
        }
        if make.unique {
            self.text(" WITH UNIQUE KEYS");
        }
        if !matches!(make.what, JsonConstructor::Parse | JsonConstructor::Scalar) {
            self.returning(make.returning);
        }
        self.text(")");
        let Some((filter, window)) = behind else { return Ok(()) };
        self.filter(filter)?;
        if let Some(window) = window {
            self.over(window)?;
        }
        Ok(())
    }

    fn json_args(
        &mut self,
        args: &[Expr],
        make: &JsonMake,
        format: &dyn Fn(usize) -> bool,
    ) -> Result<()> {
        let pairs = matches!(make.what, JsonConstructor::Object | JsonConstructor::ObjectAgg);
        for (i, e) in args.iter().enumerate() {
            if i > 0 {
                self.text(if pairs && i % 2 == 1 { " : " } else { ", " });
            }
            let e = match make.what {
                JsonConstructor::Parse | JsonConstructor::Serialize => match e {
                    Expr::CoerceViaIo { arg, explicit: false, .. } => arg,
                    e => e,
                },
                // A key that is a constant needs no type.
                JsonConstructor::Object if i % 2 == 0 => {
                    if let Expr::Const(Constant { value: Datum::Text(key), ty }) = e
                        && ty.oid == TEXT
                    {
                        self.text(&types::quote_literal(key));
                        continue;
                    }
                    e
                }
                _ => e,
            };
            self.json_arg(e, format(i))?;
        }
        Ok(())
    }

    fn returning(&mut self, ty: TypeRef) {
        let ty = type_text(ty.oid, ty.typmod, self.env);
        self.text(&format!(" RETURNING {ty}"));
    }

    /// JSON_TABLE(), each column on a line of its own.
    fn json_table(&mut self, table: &JsonTable, args: &[Expr]) -> Result<()> {
        self.text("JSON_TABLE(");
        self.indent += 8;
        self.json_line(2)?;
        let input = match &args[0] {
            Expr::CoerceViaIo { arg, explicit: false, .. } => arg,
            e => e,
        };
        self.json_arg(input, table.format)?;
        let path = types::quote_literal(&table.rows.path).to_string();
        self.text(&format!(", {path} AS {}", quote_ident(&table.rows.name)));
        if !table.names.is_empty() {
            self.json_line(2)?;
            self.text("PASSING");
            for (i, name) in table.names.iter().enumerate() {
                self.text(if i > 0 { "," } else { "" });
                self.json_line(4)?;
                self.expr(&args[2 + i])?;
                self.text(&format!(" AS {}", quote_ident(name)));
            }
        }
        self.json_columns(table, &table.rows, args, 2)?;
        if table.error_on_error {
            self.text(" ERROR ON ERROR");
        }
        self.json_line(0)?;
        self.indent -= 8;
        self.text(")");
        Ok(())
    }

    fn json_line(&mut self, depth: usize) -> Result<()> {
        self.line(depth * 2);
        Ok(())
    }

    fn json_columns(
        &mut self,
        table: &JsonTable,
        rows: &JsonTableRows,
        args: &[Expr],
        depth: usize,
    ) -> Result<()> {
        self.json_line(depth)?;
        self.text("COLUMNS (");
        for (i, item) in rows.items.iter().enumerate() {
            if i > 0 {
                self.text(",");
            }
            self.json_line(depth + 2)?;
            match item {
                JsonTableItem::Nested(inner) => {
                    let path = types::quote_literal(&inner.path).to_string();
                    self.text(&format!("NESTED PATH {path} AS {}", quote_ident(&inner.name)));
                    self.json_columns(table, inner, args, depth + 2)?;
                }
                JsonTableItem::Column(column) => {
                    let column = &table.columns[*column];
                    self.text(&format!("{} ", quote_ident(&column.name)));
                    match column.value {
                        None => self.text("FOR ORDINALITY"),
                        Some(value) => {
                            self.text(&type_text(column.ty.oid, column.ty.typmod, self.env));
                            self.json_column(column, &args[value])?;
                        }
                    }
                }
            }
        }
        self.json_line(depth)?;
        self.text(")");
        Ok(())
    }

    fn json_column(&mut self, column: &JsonTableColumn, value: &Expr) -> Result<()> {
        let Expr::Json(json) = value.as_plain() else { return Ok(()) };
        let JsonExprKind::Find(find) = &json.kind else { return Ok(()) };
        if find.what == JsonFinder::Exists {
            self.text(" EXISTS");
        } else if column.format {
            self.text(" FORMAT JSON");
        }
        if let Some(Expr::Const(Constant { value: Datum::Text(path), .. })) = json.args.get(1) {
            self.text(&format!(" PATH {}", types::quote_literal(path)));
        }
        if find.what == JsonFinder::Query {
            self.json_wrapping(find);
        }
        self.json_answers(find, &json.args)
    }

    fn json_wrapping(&mut self, find: &JsonFind) {
        self.text(match find.wrapper {
            JsonWrapper::Without => " WITHOUT WRAPPER",
            JsonWrapper::Conditional => " WITH CONDITIONAL WRAPPER",
            JsonWrapper::Unconditional => " WITH UNCONDITIONAL WRAPPER",
        });
        self.text(if find.omit_quotes { " OMIT QUOTES" } else { " KEEP QUOTES" });
    }

    fn json_find(&mut self, find: &JsonFind, args: &[Expr]) -> Result<()> {
        self.text(&finder_name(find.what).to_ascii_uppercase());
        self.text("(");
        let input = match &args[0] {
            Expr::CoerceViaIo { arg, explicit: false, .. } => arg,
            e => e,
        };
        self.json_arg(input, find.format)?;
        self.text(", ");
        match &args[1] {
            Expr::Const(Constant { value: Datum::Text(path), ty }) if ty.oid == JSONPATH => {
                self.text(&types::quote_literal(path));
            }
            e => self.expr(e)?,
        }
        for (i, name) in find.names.iter().enumerate() {
            self.text(if i == 0 { " PASSING " } else { ", " });
            self.expr(&args[2 + i])?;
            self.text(&format!(" AS {}", quote_ident(name)));
        }
        if find.what != JsonFinder::Exists || find.returning.oid != BOOL {
            self.returning(find.returning);
        }
        if find.what == JsonFinder::Query {
            self.json_wrapping(find);
        }
        self.json_answers(find, args)?;
        self.text(")");
        Ok(())
    }

    /// ON EMPTY and ON ERROR, where they say what is not said anyway.
    fn json_answers(&mut self, find: &JsonFind, args: &[Expr]) -> Result<()> {
        let usual = match find.what {
            JsonFinder::Exists => JsonBehaviour::False,
            _ => JsonBehaviour::Null,
        };
        for (answer, of) in [(find.on_empty, "EMPTY"), (find.on_error, "ERROR")] {
            let Some(answer) = answer.filter(|a| *a != usual) else { continue };
            match answer {
                JsonBehaviour::Default(i) => {
                    self.text(" DEFAULT ");
                    self.expr(&args[i])?;
                }
                JsonBehaviour::Error => self.text(" ERROR"),
                JsonBehaviour::Null => self.text(" NULL"),
                JsonBehaviour::True => self.text(" TRUE"),
                JsonBehaviour::False => self.text(" FALSE"),
                JsonBehaviour::Unknown => self.text(" UNKNOWN"),
                JsonBehaviour::EmptyArray => self.text(" EMPTY ARRAY"),
                JsonBehaviour::EmptyObject => self.text(" EMPTY OBJECT"),
            }
            self.text(&format!(" ON {of}"));
        }
        Ok(())
    }
}
