//! Primary expressions: constants, columns, calls, CASE, and SQL's own function syntax.

use super::ast::{Expr, ExprKind, FuncArg, FuncCall, Loc, Over, TypeName};
use super::expr::{boxed, node};
use super::keywords::Category;
use super::lexer::Kind;
use super::parser::Parser;
use base::{Result, err};
use expr::SqlValueFunction as Sql;

fn arg(value: Expr) -> FuncArg {
    FuncArg { name: None, value }
}

impl Parser<'_> {
    /// A call in SQL's own syntax.
    pub fn sql_call(&self, name: &str, args: Vec<Expr>, loc: Loc) -> Expr {
        let args = args.into_iter().map(arg).collect();
        let plain = FuncCall::plain(vec!["pg_catalog".into(), name.into()], args);
        let call = FuncCall { sql_syntax: true, ..plain };
        node(ExprKind::Call(Box::new(call)), loc)
    }

    pub fn primary(&mut self) -> Result<Expr> {
        let t = self.peek();
        let loc = t.start;
        match t.kind {
            Kind::Number => {
                let text = self.next().text.into_owned();
                Ok(node(ExprKind::Number(text), loc))
            }
            Kind::String => {
                let text = self.next().text.into_owned();
                Ok(node(ExprKind::String(text), loc))
            }
            Kind::Bits | Kind::Hex => {
                let hex = t.kind == Kind::Hex;
                let digits = self.next().text.into_owned();
                Ok(node(ExprKind::BitString { hex, digits }, loc))
            }
            Kind::Param => {
                let n: u32 = self.next().text.parse().unwrap_or(0);
                self.max_param = self.max_param.max(n);
                self.indirection(node(ExprKind::Param(n), loc))
            }
            Kind::Op if t.text == "(" => {
                let e = self.parenthesis()?;
                self.indirection(e)
            }
            Kind::Quoted => self.column_or_call(),
            Kind::Word => self.word(),
            Kind::Op | Kind::End => Err(self.unexpected()),
        }
    }

    /// Does `(` open a sub-select? Looks through further parentheses.
    pub fn subselect_ahead(&mut self) -> bool {
        if !self.is_op("(") {
            return false;
        }
        let mut n = 1;
        while self.is_op_at(n, "(") {
            n += 1;
        }
        let t = self.peek_at(n);
        if t.kind != Kind::Word || !matches!(&*t.text, "select" | "values" | "with" | "table") {
            return false;
        }
        if n == 1 {
            return true;
        }
        if let Some(known) = self.selects.get(&self.at) {
            return *known;
        }
        let (at, max_param) = (self.at, self.max_param);
        self.skip(1);
        let fits = self.select().is_ok() && self.is_op(")");
        self.at = at;
        self.max_param = max_param;
        self.selects.insert(at, fits);
        fits
    }

    fn parenthesis(&mut self) -> Result<Expr> {
        let loc = self.loc();
        if self.subselect_ahead() {
            self.expect_op("(")?;
            let query = self.deeper(Self::select)?;
            self.expect_op(")")?;
            return Ok(node(ExprKind::Subquery(Box::new(query)), loc));
        }
        self.expect_op("(")?;
        let first = self.expr()?;
        if self.accept_op(")") {
            return Ok(first);
        }
        self.expect_op(",")?;
        let mut fields = vec![first];
        fields.extend(self.list(Self::expr)?);
        self.expect_op(")")?;
        Ok(node(ExprKind::Row { fields, explicit: false }, loc))
    }

    fn word(&mut self) -> Result<Expr> {
        let t = self.peek();
        let loc = t.start;
        let word = t.text.clone();
        match t.category {
            Category::Reserved => self.reserved(&word, loc),
            Category::ColumnName => match self.column_name_keyword(&word, loc)? {
                Some(e) => Ok(e),
                None => self.typed_or_column(),
            },
            _ => match &*word {
                "double" if self.is_at(1, "precision") => self.typed_or_column(),
                "current_schema" => {
                    self.skip(1);
                    if self.is_op("(") {
                        self.at -= 1;
                        return self.column_or_call();
                    }
                    Ok(node(ExprKind::SqlValue { kind: Sql::CurrentSchema, precision: None }, loc))
                }
                "collation" if self.is_at(1, "for") => {
                    self.skip(2);
                    self.expect_op("(")?;
                    let e = self.expr()?;
                    self.expect_op(")")?;
                    Ok(self.sql_call("pg_collation_for", vec![e], loc))
                }
                _ => self.column_or_call(),
            },
        }
    }

    fn reserved(&mut self, word: &str, loc: Loc) -> Result<Expr> {
        let simple = |kind| Ok(node(kind, loc));
        let sql = |kind| ExprKind::SqlValue { kind, precision: None };
        match word {
            "null" | "true" | "false" | "default" => {
                self.skip(1);
                simple(match word {
                    "null" => ExprKind::Null,
                    "true" => ExprKind::Bool(true),
                    "false" => ExprKind::Bool(false),
                    _ => ExprKind::Default,
                })
            }
            "case" => self.case(),
            "cast" => {
                self.skip(1);
                self.expect_op("(")?;
                let e = self.expr()?;
                self.expect("as")?;
                let ty = Box::new(self.type_name()?);
                self.expect_op(")")?;
                simple(ExprKind::Cast { arg: boxed(e), ty })
            }
            "array" => {
                self.skip(1);
                if self.is_op("[") {
                    return self.array(loc);
                }
                self.expect_op("(")?;
                let query = Box::new(self.deeper(Self::select)?);
                self.expect_op(")")?;
                simple(ExprKind::ArraySelect(query))
            }
            "current_date" => {
                self.skip(1);
                simple(sql(Sql::CurrentDate))
            }
            "current_time" | "current_timestamp" | "localtime" | "localtimestamp" => {
                self.skip(1);
                let mut precision = None;
                if self.accept_op("(") {
                    precision = Some(self.integer()?);
                    self.expect_op(")")?;
                }
                let kind = match word {
                    "current_time" => Sql::CurrentTime,
                    "current_timestamp" => Sql::CurrentTimestamp,
                    "localtime" => Sql::LocalTime,
                    _ => Sql::LocalTimestamp,
                };
                simple(ExprKind::SqlValue { kind, precision })
            }
            "current_user" | "user" => {
                self.skip(1);
                simple(sql(Sql::CurrentUser))
            }
            "current_role" => {
                self.skip(1);
                simple(sql(Sql::CurrentRole))
            }
            "session_user" => {
                self.skip(1);
                simple(sql(Sql::SessionUser))
            }
            "system_user" => {
                self.skip(1);
                Ok(self.sql_call("system_user", Vec::new(), loc))
            }
            "current_catalog" => {
                self.skip(1);
                simple(sql(Sql::CurrentCatalog))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn array(&mut self, loc: Loc) -> Result<Expr> {
        self.expect_op("[")?;
        let mut elements = Vec::new();
        if !self.is_op("]") {
            elements = self.list(|p| {
                let loc = p.loc();
                if p.is_op("[") { p.deeper(|p| p.array(loc)) } else { p.expr() }
            })?;
        }
        self.expect_op("]")?;
        Ok(node(ExprKind::Array(elements), loc))
    }

    fn case(&mut self) -> Result<Expr> {
        let loc = self.loc();
        self.expect("case")?;
        let operand = if self.is("when") { None } else { Some(boxed(self.expr()?)) };
        let mut arms = Vec::new();
        while self.accept("when") {
            let when = self.expr()?;
            self.expect("then")?;
            arms.push((when, self.expr()?));
        }
        if arms.is_empty() {
            return Err(self.unexpected());
        }
        let otherwise = if self.accept("else") { Some(boxed(self.expr()?)) } else { None };
        self.expect("end")?;
        Ok(node(ExprKind::Case { operand, arms, otherwise }, loc))
    }

    /// Words with a syntax of their own. None: none of them here.
    fn column_name_keyword(&mut self, word: &str, loc: Loc) -> Result<Option<Expr>> {
        if !self.is_op_at(1, "(") {
            return Ok(None);
        }
        let e = match word {
            "exists" => {
                self.skip(1);
                self.expect_op("(")?;
                let query = self.deeper(Self::select)?;
                self.expect_op(")")?;
                node(ExprKind::Exists(Box::new(query)), loc)
            }
            "row" => {
                self.skip(2);
                let fields = if self.is_op(")") { Vec::new() } else { self.list(Self::expr)? };
                self.expect_op(")")?;
                let row = node(ExprKind::Row { fields, explicit: true }, loc);
                return Ok(Some(row));
            }
            "coalesce" | "greatest" | "least" | "grouping" => {
                self.skip(1);
                let args = self.paren_list(Self::expr)?;
                node(
                    match word {
                        "coalesce" => ExprKind::Coalesce(args),
                        "grouping" => ExprKind::Grouping(args),
                        _ => ExprKind::MinMax { greatest: word == "greatest", args },
                    },
                    loc,
                )
            }
            "merge_action" => {
                self.skip(2);
                self.expect_op(")")?;
                self.sql_call("merge_action", Vec::new(), loc)
            }
            "nullif" => {
                self.skip(2);
                let a = boxed(self.expr()?);
                self.expect_op(",")?;
                let b = boxed(self.expr()?);
                self.expect_op(")")?;
                node(ExprKind::NullIf(a, b), loc)
            }
            "extract" => {
                self.skip(2);
                let at = self.loc();
                let field = if self.is_string() { self.string()? } else { self.label()? };
                self.expect("from")?;
                let e = self.expr()?;
                self.expect_op(")")?;
                let field = node(ExprKind::String(field), at);
                self.sql_call("extract", vec![field, e], loc)
            }
            "position" => {
                self.skip(2);
                let needle = self.restricted_expr()?;
                self.expect("in")?;
                let hay = self.restricted_expr()?;
                self.expect_op(")")?;
                self.sql_call("position", vec![hay, needle], loc)
            }
            "overlay" => {
                self.skip(2);
                let e = self.expr()?;
                if !self.accept("placing") {
                    return self.plain_args("overlay", e, loc).map(Some);
                }
                let mut args = vec![e, self.expr()?];
                self.expect("from")?;
                args.push(self.expr()?);
                if self.accept("for") {
                    args.push(self.expr()?);
                }
                self.expect_op(")")?;
                self.sql_call("overlay", args, loc)
            }
            word if word.starts_with("json") => return self.json_call(word, loc).map(Some),
            "substring" => self.substring(loc)?,
            "trim" => self.trim(loc)?,
            "normalize" => {
                self.skip(2);
                let mut args = vec![self.expr()?];
                if self.accept_op(",") {
                    let at = self.loc();
                    args.push(node(ExprKind::String(self.label()?.to_ascii_uppercase()), at));
                }
                self.expect_op(")")?;
                self.sql_call("normalize", args, loc)
            }
            _ => return Ok(None),
        };
        Ok(Some(e))
    }

    /// The rest of an ordinary argument list whose first argument was read.
    fn plain_args(&mut self, name: &str, first: Expr, loc: Loc) -> Result<Expr> {
        let mut args = vec![first];
        while self.accept_op(",") {
            args.push(self.expr()?);
        }
        self.expect_op(")")?;
        let mut call = self.sql_call(name, args, loc);
        if let ExprKind::Call(c) = &mut call.kind {
            c.sql_syntax = false;
        }
        Ok(call)
    }

    fn substring(&mut self, loc: Loc) -> Result<Expr> {
        self.skip(2);
        let e = self.expr()?;
        let mut args = vec![e];
        if self.accept("from") {
            args.push(self.expr()?);
            if self.accept("for") {
                args.push(self.expr()?);
            }
        } else if self.accept("for") {
            let count = self.expr()?;
            if self.accept("from") {
                args.push(self.expr()?);
            } else {
                args.push(node(ExprKind::Number("1".into()), loc));
            }
            args.push(count);
        } else if self.accept("similar") {
            let pattern = self.expr()?;
            self.expect("escape")?;
            args.push(pattern);
            args.push(self.expr()?);
        } else {
            let first = args.swap_remove(0);
            return self.plain_args("substring", first, loc);
        }
        self.expect_op(")")?;
        Ok(self.sql_call("substring", args, loc))
    }

    fn trim(&mut self, loc: Loc) -> Result<Expr> {
        self.skip(2);
        let name = if self.accept("leading") {
            "ltrim"
        } else if self.accept("trailing") {
            "rtrim"
        } else {
            self.accept("both");
            "btrim"
        };
        let mut args = Vec::new();
        if self.accept("from") {
            args = self.list(Self::expr)?;
        } else {
            let first = self.expr()?;
            if self.accept("from") {
                args = self.list(Self::expr)?;
                args.push(first);
            } else {
                args.push(first);
                while self.accept_op(",") {
                    args.push(self.expr()?);
                }
            }
        }
        self.expect_op(")")?;
        Ok(self.sql_call(name, args, loc))
    }

    /// `type 'literal'` when it is one, else a column or a call.
    fn typed_or_column(&mut self) -> Result<Expr> {
        let (at, max_param) = (self.at, self.max_param);
        if let Ok(ty) = self.simple_type()
            && self.is_string()
        {
            return self.typed_literal(ty);
        }
        self.at = at;
        self.max_param = max_param;
        self.column_or_call()
    }

    fn typed_literal(&mut self, mut ty: TypeName) -> Result<Expr> {
        let loc = self.loc();
        let text = self.string()?;
        // `char 'abc'` is as long as it is.
        if ty.names.len() == 2 && ty.names[1] == "bpchar" && ty.modifiers.is_empty() {
            ty.fixed_typmod = None;
        }
        if ty.names.len() == 2
            && ty.names[1] == "interval"
            && ty.fixed_typmod.is_none()
            && let Some(fields) = self.interval_fields()?
        {
            let mut precision = 0xffff;
            if fields & (1 << 12) != 0 && self.accept_op("(") {
                precision = self.integer()?;
                self.expect_op(")")?;
            }
            ty.fixed_typmod = Some((fields << 16) | precision);
        }
        // A constant of char or bit is as long as it is written, other than in a cast.
        if ty.names.len() == 2
            && matches!(&*ty.names[1], "bpchar" | "bit")
            && ty.modifiers.is_empty()
        {
            ty.fixed_typmod = None;
        }
        let value = node(ExprKind::String(text), loc);
        Ok(node(ExprKind::Cast { arg: boxed(value), ty: Box::new(ty) }, loc))
    }

    fn column_or_call(&mut self) -> Result<Expr> {
        let loc = self.loc();
        let category = self.peek().category;
        if category == Category::Reserved {
            return Err(self.unexpected());
        }
        let mut names = vec![self.label()?];
        while self.is_op(".") {
            self.skip(1);
            if self.accept_op("*") {
                return Ok(node(ExprKind::Star(names), loc));
            }
            names.push(self.label()?);
        }
        if self.is_op("(") {
            return self.plain_call(names, loc);
        }
        if self.is_string() {
            let ty = TypeName {
                names,
                modifiers: Vec::new(),
                fixed_typmod: None,
                array_dims: 0,
                setof: false,
                percent_type: false,
                loc,
            };
            return self.typed_literal(ty);
        }
        if category == Category::TypeOrFunction && names.len() == 1 {
            return Err(self.unexpected());
        }
        let column = node(ExprKind::Column(names), loc);
        if self.is_op("[") { self.indirection(column) } else { Ok(column) }
    }

    pub fn plain_call(&mut self, name: Vec<String>, loc: Loc) -> Result<Expr> {
        self.expect_op("(")?;
        let mut call = FuncCall::plain(name, Vec::new());
        if self.is_op("*") && self.is_op_at(1, ")") {
            self.skip(1);
            call.star = true;
        } else if !self.is_op(")") {
            if self.accept("distinct") {
                call.distinct = true;
            } else {
                self.accept("all");
            }
            loop {
                if self.accept("variadic") {
                    call.variadic = true;
                    let value = self.func_arg()?;
                    call.args.push(value);
                    break;
                }
                let value = self.func_arg()?;
                call.args.push(value);
                if !self.accept_op(",") {
                    break;
                }
            }
            if self.is("order") {
                call.order_by = self.order_by()?;
            }
        }
        self.expect_op(")")?;
        if self.is_string() && call.order_by.is_empty() && !call.star && !call.args.is_empty() {
            let ty = TypeName {
                names: call.name,
                modifiers: call.args.into_iter().map(|a| a.value).collect(),
                fixed_typmod: None,
                array_dims: 0,
                setof: false,
                percent_type: false,
                loc,
            };
            return self.typed_literal(ty);
        }
        if self.is("within") && self.is_at(1, "group") {
            let at = self.loc();
            if !call.order_by.is_empty() || call.distinct || call.variadic {
                let with = if call.distinct {
                    "cannot use DISTINCT with WITHIN GROUP"
                } else if call.variadic {
                    "cannot use VARIADIC with WITHIN GROUP"
                } else {
                    "cannot use multiple ORDER BY clauses with WITHIN GROUP"
                };
                return self.error_here(err!(SYNTAX_ERROR, "{with}"), at);
            }
            self.skip(2);
            self.expect_op("(")?;
            call.order_by = self.order_by()?;
            self.expect_op(")")?;
            call.within_group = true;
        }
        (call.filter, call.over) = self.filter_and_over()?;
        Ok(node(ExprKind::Call(Box::new(call)), loc))
    }

    /// `FILTER (…)` and `OVER …` behind a call.
    pub fn filter_and_over(&mut self) -> Result<(Option<Box<Expr>>, Option<Over>)> {
        let mut filter = None;
        if self.is("filter") && self.is_op_at(1, "(") {
            self.skip(2);
            self.expect("where")?;
            filter = Some(boxed(self.expr()?));
            self.expect_op(")")?;
        }
        if !self.accept("over") {
            return Ok((filter, None));
        }
        let at = self.loc();
        let over = if self.is_op("(") {
            Over::Spec(self.window_spec()?)
        } else {
            Over::Name(self.name()?, at)
        };
        Ok((filter, Some(over)))
    }

    pub(super) fn func_arg(&mut self) -> Result<FuncArg> {
        let named = matches!(self.peek().kind, Kind::Word | Kind::Quoted)
            && (self.is_op_at(1, "=>") || self.is_op_at(1, ":="));
        let mut name = None;
        if named {
            name = Some(self.type_or_function_name()?);
            self.skip(1);
        }
        Ok(FuncArg { name, value: self.expr()? })
    }
}
