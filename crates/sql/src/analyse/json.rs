//! SQL/JSON: IS JSON, JSON_OBJECT() and the other constructors, JSON_EXISTS(), JSON_QUERY(), JSON_VALUE(). And the functions whose rows
//! are filled from json objects: what columns those have.

use super::Analyser;
use super::coerce::{category, constant, is_composite};
use crate::parse::ast::{
    self, ExprKind, FuncArg, FuncCall, JsonAnswer, JsonArg, JsonCall, JsonKind, JsonReturning, Loc,
    SelectBody, TableRef, Target,
};
use base::{Oid, Result, SqlError, SqlState, err};
use expr::json::{
    JsonBehaviour, JsonConstructor, JsonExpr, JsonExprKind, JsonFind, JsonFinder, JsonMake,
    JsonWrapper,
};
use expr::{Constant, Expr, TypeRef};
use std::borrow::Cow;
use types::Datum;
use types::facts::CastContext;
use types::json::standard::Shape;
use types::oids::*;

/// What a column is called that such a call makes.
pub(super) fn label(call: &JsonCall) -> &'static str {
    match call {
        JsonCall::Make { what, .. } | JsonCall::Aggregate { what, .. } => constructor_name(*what),
        JsonCall::ArraySelect { .. } => "json_array",
        JsonCall::Find { what, .. } => finder_name(*what),
        JsonCall::Table(_) => "json_table",
    }
}

/// A constructor's name, in lower case.
pub(crate) fn constructor_name(what: JsonConstructor) -> &'static str {
    match what {
        JsonConstructor::Parse => "json",
        JsonConstructor::Scalar => "json_scalar",
        JsonConstructor::Serialize => "json_serialize",
        JsonConstructor::Object => "json_object",
        JsonConstructor::Array => "json_array",
        JsonConstructor::ObjectAgg => "json_objectagg",
        JsonConstructor::ArrayAgg => "json_arrayagg",
    }
}

/// The name of a function that looks into a value, in lower case.
pub(crate) fn finder_name(what: JsonFinder) -> &'static str {
    match what {
        JsonFinder::Exists => "json_exists",
        JsonFinder::Query => "json_query",
        JsonFinder::Value => "json_value",
    }
}

fn json(kind: JsonExprKind, args: Vec<Expr>, returning: TypeRef) -> Expr {
    let ty = returning.base();
    Expr::Json(Box::new(JsonExpr { kind, args, ty })).declared(returning)
}

impl Analyser<'_> {
    /// `x IS JSON …`
    pub fn is_json(
        &mut self,
        arg: &ast::Expr,
        kind: JsonKind,
        unique: bool,
        negated: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let mut value = self.expr(arg)?;
        let ty = value.ty().oid;
        if !matches!(ty, UNKNOWN | JSON | JSONB | BYTEA) && category(ty) != 'S' {
            let e = err!(
                DATATYPE_MISMATCH,
                "cannot use type {} in IS JSON predicate",
                self.type_name_of(ty)
            );
            return self.at(loc, e);
        }
        if !matches!(ty, JSON | JSONB | BYTEA) {
            value = self.coerce_implicit(value, TEXT, arg.loc)?;
        }
        let shape = match kind {
            JsonKind::Value => Shape::Value,
            JsonKind::Object => Shape::Object,
            JsonKind::Array => Shape::Array,
            JsonKind::Scalar => Shape::Scalar,
        };
        let e = json(JsonExprKind::Is { shape, unique }, vec![value], TypeRef::of(BOOL));
        Ok(if negated { Expr::Not(Box::new(e)) } else { e })
    }

    pub(super) fn json_call(&mut self, call: &JsonCall, loc: Loc) -> Result<Expr> {
        match call {
            JsonCall::Make { what, args, absent, unique, returning } => {
                self.json_make(*what, args, (*absent, *unique), returning.as_ref(), loc)
            }
            JsonCall::ArraySelect { query, format, returning } => {
                self.json_array_select(query, *format, returning.as_ref(), loc)
            }
            JsonCall::Aggregate { .. } => self.json_aggregate(call, loc),
            JsonCall::Find { .. } => self.json_find(call, loc),
            JsonCall::Table(table) => self.json_table(table, loc),
        }
    }

    /// What RETURNING says.
    fn json_returning(
        &mut self,
        returning: Option<&JsonReturning>,
        usual: TypeRef,
    ) -> Result<(TypeRef, bool)> {
        match returning {
            None => Ok((usual, false)),
            Some(r) => Ok((self.type_ref(&r.ty)?, r.format)),
        }
    }

    /// A value: with FORMAT JSON it is json, not a string.
    fn json_arg(&mut self, arg: &JsonArg) -> Result<Expr> {
        let value = self.known_expr(&arg.value)?;
        if !arg.format || matches!(value.ty().oid, JSON | JSONB) {
            return Ok(value);
        }
        self.json_text(value, JSON, arg.value.loc)
    }

    /// Text, or bytes of it, as json or jsonb.
    fn json_text(&mut self, value: Expr, to: Oid, loc: Loc) -> Result<Expr> {
        let from = value.ty().oid;
        let mut value = value;
        if from == BYTEA {
            let utf8 = constant(NAME, Datum::text("UTF8"));
            value = self.call_named(
                "convert_from",
                vec![(value, loc), (utf8, loc)],
                expr::tree::CallForm::ImplicitCast,
                loc,
            )?;
        } else if category(from) != 'S' {
            let e = err!(
                DATATYPE_MISMATCH,
                "cannot use non-string types with explicit FORMAT JSON clause"
            );
            return self.at(loc, e);
        }
        Ok(Expr::CoerceViaIo { arg: Box::new(value), ty: TypeRef::of(to), explicit: false })
    }

    fn json_make(
        &mut self,
        what: JsonConstructor,
        list: &[JsonArg],
        (absent, unique): (bool, bool),
        returning: Option<&JsonReturning>,
        loc: Loc,
    ) -> Result<Expr> {
        let mut args = Vec::with_capacity(list.len());
        for arg in list {
            let value = self.json_arg(arg)?;
            args.push(match what {
                JsonConstructor::Parse => self.json_parsed(value, arg.value.loc)?,
                JsonConstructor::Serialize => self.json_input(value, JSON, arg.value.loc)?,
                _ => value,
            });
        }
        let usual = match what {
            JsonConstructor::Serialize => TEXT,
            JsonConstructor::Object | JsonConstructor::Array => usual_json(args.iter()),
            _ => JSON,
        };
        let (returning, format) = self.json_returning(returning, TypeRef::of(usual))?;
        if what == JsonConstructor::Serialize {
            let to = returning.base().oid;
            if category(to) != 'S' && to != BYTEA {
                let text = format!(
                    "cannot use type {} in RETURNING clause of JSON_SERIALIZE()",
                    self.type_name_of(returning.oid)
                );
                let e = SqlError::new(SqlState::DATATYPE_MISMATCH, text)
                    .hint("Try returning a string type or bytea.");
                return self.at(loc, e.into());
            }
        } else {
            self.json_fits(returning, loc)?;
        }
        let formats = list.iter().map(|a| a.format).collect();
        let make = JsonMake { what, absent, unique, formats, returning, format };
        Ok(json(JsonExprKind::Make(make), args, returning))
    }

    /// Fails for types that json is not made into.
    fn json_fits(&mut self, returning: TypeRef, loc: Loc) -> Result<()> {
        let to = returning.base().oid;
        if matches!(to, JSON | JSONB | BYTEA) || category(to) == 'S' {
            return Ok(());
        }
        let e =
            err!(CANNOT_COERCE, "cannot cast type json to {}", self.type_name_of(returning.oid));
        self.at(loc, e)
    }

    /// What JSON() takes.
    fn json_parsed(&mut self, value: Expr, loc: Loc) -> Result<Expr> {
        self.json_input(value, JSON, loc)
    }

    /// A value that is json already, or text that is read as json.
    pub(super) fn json_input(&mut self, value: Expr, to: Oid, loc: Loc) -> Result<Expr> {
        let from = value.ty().oid;
        if from == to || from == JSONB && to == JSON {
            return Ok(value);
        }
        if from == JSON {
            return self.coerce(value, TypeRef::of(to), CastContext::Explicit, false, loc);
        }
        if from == BYTEA || category(from) == 'S' {
            return self.json_text(value, to, loc);
        }
        self.at(
            loc,
            err!(
                CANNOT_COERCE,
                "cannot cast type {} to {}",
                self.type_name_of(from),
                self.type_name_of(to)
            ),
        )
    }

    /// `JSON_ARRAY(SELECT …)`: the aggregate over the sub-select.
    fn json_array_select(
        &mut self,
        query: &ast::Select,
        format: bool,
        returning: Option<&JsonReturning>,
        loc: Loc,
    ) -> Result<Expr> {
        if !is_one_column(query) {
            self.must_be_one_column(query, loc)?;
        }
        let at = |kind| ast::Expr { kind, loc };
        let value = at(ExprKind::Column(vec!["q".into(), "a".into()]));
        let aggregate = JsonCall::Aggregate {
            what: JsonConstructor::ArrayAgg,
            args: vec![JsonArg { value, format }],
            absent: true,
            unique: false,
            returning: returning.cloned(),
            order_by: Vec::new(),
            filter: None,
            over: None,
        };
        let target = Target { alias: None, expr: at(ExprKind::Json(Box::new(aggregate))) };
        let alias = ast::Alias { name: "q".into(), columns: vec!["a".into()] };
        let table = TableRef::Subquery {
            query: Box::new(query.clone()),
            lateral: false,
            alias: Some(alias),
            loc,
        };
        let core = ast::SelectCore {
            distinct: ast::DistinctClause::No,
            targets: vec![target],
            into: None,
            from: vec![table],
            filter: None,
            group_by: Vec::new(),
            group_distinct: false,
            having: None,
            windows: Vec::new(),
        };
        let whole = ast::Select {
            with: None,
            body: SelectBody::Core(Box::new(core)),
            order_by: Vec::new(),
            limit: None,
            offset: None,
            with_ties: false,
            locking: Vec::new(),
            loc,
        };
        self.scalar(&whole, loc)
    }

    /// JSON_OBJECTAGG() and JSON_ARRAYAGG(): the function that does it, and what is made of its json.
    fn json_aggregate(&mut self, call: &JsonCall, loc: Loc) -> Result<Expr> {
        let JsonCall::Aggregate {
            what,
            args: list,
            absent,
            unique,
            returning,
            order_by,
            filter,
            over,
        } = call
        else {
            return self.at(loc, err!(INTERNAL_ERROR, "not an aggregate of SQL/JSON"));
        };
        let told = match returning {
            Some(r) => {
                let told = (self.type_ref(&r.ty)?, r.format);
                self.json_fits(told.0, loc)?;
                Some(told)
            }
            None => None,
        };
        for arg in list.iter().filter(|a| a.format) {
            self.json_arg(arg)?;
        }
        let prefix = if told.is_some_and(|(ty, _)| ty.oid == JSONB) { "jsonb" } else { "json" };
        let object = *what == JsonConstructor::ObjectAgg;
        let function = format!(
            "{prefix}{}_agg{}{}",
            if object { "_object" } else { "" },
            if *unique { "_unique" } else { "" },
            if *absent { "_strict" } else { "" },
        );
        let args = list.iter().map(|a| FuncArg { name: None, value: formatted(a) });
        let call = FuncCall {
            name: vec!["pg_catalog".into(), function],
            args: args.collect(),
            star: false,
            distinct: false,
            variadic: false,
            order_by: order_by.clone(),
            within_group: false,
            filter: filter.clone(),
            over: over.clone(),
            // What nobody has told the type of makes jsonb of jsonb.
            sql_syntax: told.is_none(),
        };
        let aggregate = self.call(&call, loc)?;
        let (returning, format) = told.unwrap_or_else(|| (TypeRef::of(aggregate.ty().oid), false));
        let formats = list.iter().map(|a| a.format).collect();
        let make =
            JsonMake { what: *what, absent: *absent, unique: *unique, formats, returning, format };
        Ok(json(JsonExprKind::Make(make), vec![aggregate], returning))
    }

    fn json_find(&mut self, call: &JsonCall, loc: Loc) -> Result<Expr> {
        let JsonCall::Find {
            what,
            value,
            path,
            passing,
            returning,
            wrapper,
            omit_quotes,
            on_empty,
            on_error,
        } = call
        else {
            return self.at(loc, err!(INTERNAL_ERROR, "not a function of SQL/JSON"));
        };
        let usual = match what {
            JsonFinder::Exists => BOOL,
            JsonFinder::Query => JSONB,
            JsonFinder::Value => TEXT,
        };
        if let Some(r) = returning
            && r.format
            && *what == JsonFinder::Value
        {
            let e = err!(
                SYNTAX_ERROR,
                "cannot specify FORMAT JSON in RETURNING clause of JSON_VALUE()"
            );
            return self.at(r.ty.loc, e);
        }
        if *wrapper != JsonWrapper::Without && *omit_quotes == Some(true) {
            let e = err!(
                SYNTAX_ERROR,
                "SQL/JSON QUOTES behavior must not be specified when WITH WRAPPER is used"
            );
            return self.at(loc, e);
        }
        let (returning, format) = self.json_returning(returning.as_ref(), TypeRef::of(usual))?;
        let base = returning.base();
        if format {
            self.json_format_fits(base.oid, loc)?;
        }
        if base.oid == RECORD || is_composite(base.oid) {
            return self.at(loc, base::Error::unsupported("RETURNING a composite type"));
        }
        let input = self.known_expr(&value.value)?;
        let mut args = vec![self.json_input(input, JSONB, value.value.loc)?];
        args.push(self.json_path(path)?);
        let names = self.json_passing(passing, &mut args)?;
        let on_empty = self.json_answer(*what, on_empty.as_ref(), "EMPTY", returning, &mut args)?;
        let on_error = self.json_answer(*what, on_error.as_ref(), "ERROR", returning, &mut args)?;
        let find = JsonFind {
            what: *what,
            format: value.format,
            returning,
            names,
            wrapper: *wrapper,
            omit_quotes: *omit_quotes == Some(true),
            on_empty,
            on_error,
            column: None,
        };
        Ok(json(JsonExprKind::Find(find), args, returning))
    }

    /// Fails for types that are no json, nor text of it.
    pub(super) fn json_format_fits(&self, to: Oid, loc: Loc) -> Result<()> {
        if matches!(to, JSON | JSONB | BYTEA) || category(to) == 'S' {
            return Ok(());
        }
        let text = "cannot use JSON format with non-string output types";
        self.at(loc, err!(FEATURE_NOT_SUPPORTED, "{text}"))
    }

    /// What is PASSING: their names; their values become arguments.
    pub(super) fn json_passing(
        &mut self,
        passing: &[(JsonArg, String)],
        args: &mut Vec<Expr>,
    ) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for (arg, name) in passing {
            let value = self.json_arg(arg)?;
            let ty = value.ty().oid;
            let value = if types::json::path::is_valid_value(ty) {
                value
            } else if category(ty) == 'S' {
                self.coerce_implicit(value, TEXT, arg.value.loc)?
            } else {
                let (form, at) = (expr::tree::CallForm::ImplicitCast, arg.value.loc);
                self.call_named("to_jsonb", vec![(value, at)], form, at)?
            };
            args.push(value);
            names.push(name.clone());
        }
        Ok(names)
    }

    pub(super) fn json_path(&mut self, path: &ast::Expr) -> Result<Expr> {
        let e = self.expr(path)?;
        let ty = e.ty().oid;
        if ty != UNKNOWN && ty != JSONPATH {
            let e = err!(
                DATATYPE_MISMATCH,
                "JSON path expression must be of type jsonpath, not of type {}",
                self.type_name_of(ty)
            );
            return self.at(path.loc, e);
        }
        self.coerce_implicit(e, JSONPATH, path.loc)
    }

    /// What ON EMPTY or ON ERROR says; the value of a DEFAULT becomes another argument.
    pub(super) fn json_answer(
        &mut self,
        what: JsonFinder,
        answer: Option<&JsonAnswer>,
        of: &str,
        returning: TypeRef,
        args: &mut Vec<Expr>,
    ) -> Result<Option<JsonBehaviour>> {
        use JsonBehaviour as B;
        let Some(answer) = answer else { return Ok(None) };
        let (behaviour, loc) = match answer {
            JsonAnswer::Default(e) if what != JsonFinder::Exists => {
                let value = self.expr(e)?;
                let refused = match () {
                    () if !may_be_default(&value) => {
                        "can only specify a constant, non-aggregate function, or operator expression for DEFAULT"
                    }
                    () if value.any(&mut |e| matches!(e, Expr::Var { .. })) => {
                        "DEFAULT expression must not contain column references"
                    }
                    () if value.any(&mut |e| super::calls::returns_set(e)) => {
                        "DEFAULT expression must not return a set"
                    }
                    () => "",
                };
                if !refused.is_empty() {
                    return self.at(e.loc, err!(DATATYPE_MISMATCH, "{refused}"));
                }
                let value = self.json_default(value, returning, e.loc)?;
                args.push(value.plain());
                return Ok(Some(B::Default(args.len() - 1)));
            }
            JsonAnswer::Default(e) => (B::Default(0), e.loc),
            JsonAnswer::Plain(b, loc) => (*b, *loc),
        };
        let (allowed, words): (bool, &str) = match what {
            JsonFinder::Exists => (
                matches!(behaviour, B::Error | B::True | B::False | B::Unknown),
                "Only ERROR, TRUE, FALSE, or UNKNOWN is allowed in",
            ),
            JsonFinder::Query => (
                matches!(behaviour, B::Error | B::Null | B::EmptyArray | B::EmptyObject),
                "Only ERROR, NULL, EMPTY ARRAY, EMPTY OBJECT, or DEFAULT expression is allowed in",
            ),
            JsonFinder::Value => (
                matches!(behaviour, B::Error | B::Null),
                "Only ERROR, NULL, or DEFAULT expression is allowed in",
            ),
        };
        if allowed && !(what == JsonFinder::Exists && of == "EMPTY") {
            return Ok(Some(behaviour));
        }
        let function = finder_name(what).to_ascii_uppercase();
        let e = SqlError::new(SqlState::SYNTAX_ERROR, format!("invalid ON {of} behavior"))
            .detail(format!("{words} ON {of} for {function}()."));
        self.at(loc, e.into())
    }

    /// The value of a DEFAULT, as the type that is returned: text and numbers as in assignments, truth as in casts.
    fn json_default(&mut self, value: Expr, returning: TypeRef, loc: Loc) -> Result<Expr> {
        let from = value.ty().oid;
        let context = match from {
            BOOL => CastContext::Explicit,
            _ => CastContext::Assignment,
        };
        let to = returning.base().oid;
        if from != UNKNOWN && category(from) == 'S' && category(to) != 'S' {
            let read =
                Expr::CoerceViaIo { arg: Box::new(value), ty: returning.base(), explicit: true };
            return self.coerce(read, returning, CastContext::Assignment, false, loc);
        }
        if from != UNKNOWN && !super::coerce::can_coerce(from, to, context) {
            let text = format!(
                "cannot cast behavior expression of type {} to {}",
                self.type_name_of(from),
                self.type_name_of(to)
            );
            let hint = format!(
                "You will need to explicitly cast the expression to type {}.",
                self.type_name_of(to)
            );
            let e = SqlError::new(SqlState::CANNOT_COERCE, text).hint(hint);
            return self.at(loc, e.into());
        }
        self.coerce(value, returning, context, false, loc)
    }

    /// A call of a function that fills rows, told the columns of its first argument's type.
    pub(super) fn with_template(&mut self, call: Expr) -> Result<Expr> {
        let Expr::Call { function, args, .. } = &call else { return Ok(call) };
        let fills = types::facts::proc(Oid(*function)).is_some_and(|p| {
            types::json::makes_rows(p.name) && p.args.first() == Some(&ANYELEMENT)
        });
        let Some(ty) = args.first().map(|a| a.ty().oid).filter(|t| fills && is_composite(*t))
        else {
            return Ok(call);
        };
        match self.row_type_columns(ty)? {
            Some(columns) => self.with_columns(call, ty, &columns),
            None => Ok(call),
        }
    }

    /// The columns of a table's row type, as they are declared.
    pub(super) fn row_type_columns(&mut self, ty: Oid) -> Result<Option<Vec<(String, TypeRef)>>> {
        let Some(table) = self.catalog.table_of_row_type(ty)? else { return Ok(None) };
        let live = table.columns.iter().filter(|c| !c.dropped);
        Ok(Some(live.map(|c| (c.name.clone(), c.declared())).collect()))
    }

    /// A call of a function that fills rows, told what columns those have.
    pub(super) fn with_columns(
        &mut self,
        call: Expr,
        row_type: Oid,
        columns: &[(String, TypeRef)],
    ) -> Result<Expr> {
        let Expr::Call { function, mut args, mut arg_types, ty, operator, form } = call else {
            return Ok(call);
        };
        args.push(self.template(row_type, columns)?);
        arg_types.push(TypeRef::of(row_type));
        Ok(Expr::Call { function, args, arg_types, ty, operator, form })
    }

    /// A row of NULLs.
    fn template(&mut self, row_type: Oid, columns: &[(String, TypeRef)]) -> Result<Expr> {
        let mut fields = Vec::with_capacity(columns.len());
        for (_, ty) in columns {
            let element = super::coerce::element_type(ty.oid);
            let row = element.unwrap_or(ty.oid);
            let inner = if is_composite(row) { self.row_type_columns(row)? } else { None };
            let Some(columns) = inner else {
                fields.push(Expr::Const(Constant { ty: *ty, value: Datum::Null }));
                continue;
            };
            let inner = self.template(row, &columns)?;
            fields.push(match element {
                None => inner,
                // Of an array, what its elements are like.
                Some(_) => Expr::Array {
                    elements: vec![inner],
                    element_type: TypeRef::of(row),
                    multidim: false,
                    ty: TypeRef::of(ty.oid),
                },
            });
        }
        let names = columns.iter().map(|(name, _)| name.clone()).collect();
        Ok(Expr::Row { fields, names, ty: TypeRef::of(row_type) })
    }
}

/// True for what DEFAULT may say: a constant, a call, and casts of those.
fn may_be_default(e: &Expr) -> bool {
    match e {
        Expr::Const(_) | Expr::Call { .. } => true,
        Expr::CoerceViaIo { arg, .. }
        | Expr::Relabel { arg, .. }
        | Expr::CoerceToDomain { arg, .. }
        | Expr::ArrayCoerce { arg, .. }
        | Expr::Collate { arg, .. } => may_be_default(arg),
        _ => false,
    }
}

/// The function that a call names: JSON_ARRAYAGG() and JSON_OBJECTAGG() make jsonb if one of their arguments is.
pub(super) fn function_name<'c>(call: &'c FuncCall, args: &[Oid]) -> Cow<'c, [String]> {
    match &call.name[..] {
        [schema, name] if call.sql_syntax && name.starts_with("json_") && args.contains(&JSONB) => {
            vec![schema.clone(), name.replacen("json_", "jsonb_", 1)].into()
        }
        name => name.into(),
    }
}

/// What is made of these if nobody says: jsonb if one of them is.
fn usual_json<'e>(mut args: impl Iterator<Item = &'e Expr>) -> Oid {
    if args.any(|a| a.ty().oid == JSONB) { JSONB } else { JSON }
}

/// True for a sub-select that has one column by the looks of it. (To analyse each twice takes long where many are nested.)
fn is_one_column(query: &ast::Select) -> bool {
    match &query.body {
        SelectBody::Core(core) => match &core.targets[..] {
            [only] => !matches!(only.expr.kind, ExprKind::Star(_) | ExprKind::FieldStar(_)),
            _ => false,
        },
        _ => false,
    }
}

/// An aggregate's argument: with FORMAT JSON a cast to json.
fn formatted(arg: &JsonArg) -> ast::Expr {
    if !arg.format {
        return arg.value.clone();
    }
    let loc = arg.value.loc;
    let ty = ast::TypeName {
        names: vec!["pg_catalog".into(), "json".into()],
        modifiers: Vec::new(),
        fixed_typmod: None,
        array_dims: 0,
        setof: false,
        percent_type: false,
        loc,
    };
    let kind = ExprKind::Cast { arg: Box::new(arg.value.clone()), ty: Box::new(ty) };
    ast::Expr { kind, loc }
}

/// True for a function that fills rows from json and gives records of no declared type.
pub(super) fn fills_records(call: &Expr) -> bool {
    match call {
        Expr::Call { function, ty, .. } if ty.oid == RECORD => {
            types::facts::proc(Oid(*function)).is_some_and(|p| types::json::makes_rows(p.name))
        }
        _ => false,
    }
}

/// The columns of the rows that a call fills, if it has been told them.
pub(crate) fn template_columns(call: &Expr) -> Option<Vec<(String, TypeRef)>> {
    let Expr::Call { function, args, .. } = call else { return None };
    let fact = types::facts::proc(Oid(*function))?;
    if args.len() <= fact.args.len() || fact.result == BOOL || !types::json::makes_rows(fact.name) {
        return None;
    }
    match args.last()? {
        Expr::Row { fields, names, .. } => {
            Some(names.iter().cloned().zip(fields.iter().map(Expr::ty)).collect())
        }
        Expr::Const(Constant { value: Datum::Record(r), .. }) => {
            let of = |c: &types::RecordColumn| {
                (c.name.to_string(), TypeRef { oid: c.type_oid, typmod: c.typmod })
            };
            Some(r.columns.iter().map(of).collect())
        }
        _ => None,
    }
}
