//! Expressions.

use super::Printer;
use base::{Oid, Result};
use expr::tree::{CallForm, RowCompareOp};
use expr::{BoolTestKind, Constant, Expr, SqlValueFunction as S, SubLinkKind, TypeRef};
use types::oids::*;
use types::{Datum, quote_ident, quote_literal, type_text};

/// An operator's symbol.
pub(crate) fn operator_name(oid: u32) -> &'static str {
    types::registry::operator(Oid(oid)).map_or("=", |o| o.name)
}

pub(crate) fn function_name(oid: u32) -> String {
    types::facts::proc(Oid(oid)).map_or_else(
        || types::registry::function(Oid(oid)).map_or("unknown", |f| f.name).to_owned(),
        |p| p.name.to_owned(),
    )
}

/// Does it bind tightly enough to need no parentheses anywhere?
fn is_simple(e: &Expr) -> bool {
    match e {
        Expr::Var { .. }
        | Expr::Const(_)
        | Expr::Param { .. }
        | Expr::SqlValue { .. }
        | Expr::Coalesce { .. }
        | Expr::MinMax { .. }
        | Expr::NullIf { .. }
        | Expr::Array { .. }
        | Expr::Row { .. }
        | Expr::Aggregate(_)
        | Expr::Window(_)
        | Expr::Grouping(_)
        | Expr::Subscript { .. }
        | Expr::Field { .. }
        | Expr::FieldStore { .. }
        | Expr::Case { .. }
        | Expr::NextValue { .. }
        | Expr::CaseTestValue(_)
        | Expr::SubLinkColumn { .. } => true,
        Expr::Call { form, function, .. } => match form {
            CallForm::Function => true,
            CallForm::SqlSyntax => function_name(*function) != "timezone",
            CallForm::ImplicitCast | CallForm::ExplicitCast => true,
            CallForm::Operator => false,
        },
        Expr::Json(json) => !matches!(json.kind, expr::json::JsonExprKind::Is { .. }),
        Expr::Relabel { .. }
        | Expr::CoerceViaIo { .. }
        | Expr::CoerceToDomain { .. }
        | Expr::ArrayCoerce { .. } => true,
        _ => false,
    }
}

/// Is it written `f(…)`? (Index keys need no parentheses round it then.)
pub(crate) fn looks_like_function(e: &Expr) -> bool {
    match e {
        Expr::Call { form, .. } => matches!(form, CallForm::Function | CallForm::SqlSyntax),
        Expr::Coalesce { .. } | Expr::MinMax { .. } | Expr::NullIf { .. } => true,
        Expr::SqlValue { .. } => true,
        Expr::Json(json) => !matches!(json.kind, expr::json::JsonExprKind::Is { .. }),
        _ => false,
    }
}

pub(super) fn arithmetic(op: &str) -> u8 {
    match op {
        "+" | "-" => 1,
        "*" | "/" | "%" => 2,
        _ => 0,
    }
}

pub(super) fn operator_of(e: &Expr) -> Option<&'static str> {
    match e {
        Expr::Call { form: CallForm::Operator, operator, args, .. } if args.len() == 2 => {
            Some(operator_name(*operator))
        }
        _ => None,
    }
}

impl Printer<'_> {
    pub fn text(&mut self, s: &str) {
        self.out.push_str(s);
    }

    /// A new line at the present depth, trailing blanks removed.
    pub fn line(&mut self, extra: usize) {
        let len = self.out.trim_end_matches(' ').len();
        self.out.truncate(len);
        self.out.push('\n');
        let n = self.indent + extra;
        self.out.extend(std::iter::repeat_n(' ', n));
    }

    pub fn list(&mut self, list: &[Expr]) -> Result<()> {
        for (i, e) in list.iter().enumerate() {
            if i > 0 {
                self.text(", ");
            }
            self.expr(e)?;
        }
        Ok(())
    }

    pub(super) fn open(&mut self) {
        if !self.pretty {
            self.text("(");
        }
    }
    pub(super) fn close(&mut self) {
        if !self.pretty {
            self.text(")");
        }
    }

    /// An operand: in parentheses where they are needed.
    pub(super) fn operand(&mut self, e: &Expr) -> Result<()> {
        if self.pretty && !is_simple(e) {
            self.text("(");
            self.expr(e)?;
            self.text(")");
            return Ok(());
        }
        self.expr(e)
    }

    /// An expression where PostgreSQL leaves out an outermost cast that nobody wrote.
    pub fn quiet(&mut self, e: &Expr) -> Result<()> {
        self.expr(super::calls::uncast(e))
    }

    pub fn expr(&mut self, e: &Expr) -> Result<()> {
        if let Some(text) = self.join_column(e) {
            self.text(&text);
            return Ok(());
        }
        if let Some((number, test)) = row_select(e) {
            return self.sub_link(SubLinkKind::Row, number, Some(test));
        }
        match e {
            Expr::Const(c) => self.constant(c, false),
            // A table's own row, which goes by the table's name, as its type does.
            Expr::Var { column: 0, ty, .. } if self.levels.is_empty() => {
                let name = type_text(ty.oid, -1, self.env);
                self.text(&format!("{name}.*"));
                Ok(())
            }
            Expr::Var { levels_up, rte, column, .. } => {
                self.variable(*levels_up as usize, *rte, *column);
                Ok(())
            }
            Expr::Call { function, args, arg_types, ty, operator, form } => {
                self.call(*function, args, arg_types, *ty, *operator, *form)
            }
            Expr::And(list) => self.logical(list, " AND "),
            Expr::Or(list) => self.logical(list, " OR "),
            Expr::Not(arg) => {
                self.open();
                self.text("NOT ");
                self.condition(arg)?;
                self.close();
                Ok(())
            }
            Expr::IsNull { arg, negated } => {
                self.suffixed(arg, if *negated { " IS NOT NULL" } else { " IS NULL" })
            }
            Expr::BoolTest { arg, kind } => self.suffixed(
                arg,
                match kind {
                    BoolTestKind::IsTrue => " IS TRUE",
                    BoolTestKind::IsNotTrue => " IS NOT TRUE",
                    BoolTestKind::IsFalse => " IS FALSE",
                    BoolTestKind::IsNotFalse => " IS NOT FALSE",
                    BoolTestKind::IsUnknown => " IS UNKNOWN",
                    BoolTestKind::IsNotUnknown => " IS NOT UNKNOWN",
                },
            ),
            Expr::Distinct { left, right, negated, .. } => {
                if *negated {
                    self.open();
                    self.text("NOT ");
                }
                self.open();
                self.operand(left)?;
                self.text(" IS DISTINCT FROM ");
                self.operand(right)?;
                self.close();
                if *negated {
                    self.close();
                }
                Ok(())
            }
            Expr::ScalarArrayOp { operator, any, left, array, .. } => {
                self.open();
                self.operand(left)?;
                self.text(" ");
                self.text(operator_name(*operator));
                self.text(if *any { " ANY (" } else { " ALL (" });
                self.expr(array)?;
                self.text(")");
                self.close();
                Ok(())
            }
            Expr::Case { .. } => self.case(e),
            Expr::CaseTestValue(_) => {
                self.text("CASE_TEST_EXPR");
                Ok(())
            }
            Expr::Coalesce { args, .. } => self.function_like("COALESCE", args),
            Expr::MinMax { greatest, args, .. } => {
                self.function_like(if *greatest { "GREATEST" } else { "LEAST" }, args)
            }
            Expr::NullIf { left, right, .. } => {
                self.text("NULLIF(");
                self.expr(left)?;
                self.text(", ");
                self.expr(right)?;
                self.text(")");
                Ok(())
            }
            Expr::Array { elements, ty, .. } => {
                self.text("ARRAY[");
                self.list(elements)?;
                self.text("]");
                if elements.is_empty() {
                    self.text("::");
                    self.text(&type_text(ty.oid, ty.typmod, self.env));
                }
                Ok(())
            }
            Expr::Row { fields, .. } => {
                self.text("ROW(");
                for (i, e) in fields.iter().enumerate() {
                    self.text(if i > 0 { ", " } else { "" });
                    self.alone(e)?;
                }
                self.text(")");
                Ok(())
            }
            Expr::RowCompare { op, left, right, .. } => {
                self.text("(ROW(");
                self.list(left)?;
                self.text(match op {
                    RowCompareOp::Lt => ") < ROW(",
                    RowCompareOp::Le => ") <= ROW(",
                    RowCompareOp::Gt => ") > ROW(",
                    RowCompareOp::Ge => ") >= ROW(",
                });
                self.list(right)?;
                self.text("))");
                Ok(())
            }
            _ => self.more(e),
        }
    }

    fn more(&mut self, e: &Expr) -> Result<()> {
        match e {
            // A row of a table is a record as it is.
            Expr::Relabel { arg, ty, explicit: false } if ty.oid == RECORD => self.expr(arg),
            Expr::Relabel { arg, ty, .. } | Expr::CoerceViaIo { arg, ty, .. } => {
                self.cast(arg, *ty)
            }
            Expr::ArrayCoerce { arg, ty, .. } => self.cast(arg, *ty),
            Expr::CoerceToDomain { arg, domain, .. } => {
                self.cast(arg, TypeRef::of(base::Oid(*domain)))
            }
            Expr::Collate { arg, collation } => {
                self.open();
                self.operand(arg)?;
                self.text(" COLLATE ");
                let name = types::facts::collations()
                    .iter()
                    .find(|c| c.oid.0 == *collation)
                    .map_or("default", |c| c.name);
                self.text(&quote_ident(name));
                self.close();
                Ok(())
            }
            Expr::SqlValue { kind, ty } => {
                self.text(match kind {
                    S::CurrentDate => "CURRENT_DATE",
                    S::CurrentTime => "CURRENT_TIME",
                    S::CurrentTimestamp => "CURRENT_TIMESTAMP",
                    S::LocalTime => "LOCALTIME",
                    S::LocalTimestamp => "LOCALTIMESTAMP",
                    S::CurrentUser => "CURRENT_USER",
                    S::SessionUser => "SESSION_USER",
                    S::CurrentRole => "CURRENT_ROLE",
                    S::CurrentCatalog => "CURRENT_CATALOG",
                    S::CurrentSchema => "CURRENT_SCHEMA",
                });
                if ty.typmod >= 0 {
                    self.text(&format!("({})", ty.typmod));
                }
                Ok(())
            }
            Expr::Field { arg, name, .. } => {
                self.text("(");
                self.expr(arg)?;
                self.text(").");
                self.text(&quote_ident(name));
                Ok(())
            }
            // No view has an assignment.
            Expr::FieldStore { arg, .. } => self.expr(arg),
            Expr::Subscript { arg, indexes, slice, .. } => self.subscript(arg, indexes, *slice),
            Expr::NextValue { sequence, .. } => {
                let name = self
                    .env
                    .object_name(REGCLASS, Oid(*sequence))
                    .unwrap_or_else(|| sequence.to_string());
                self.text("nextval(");
                self.text(&quote_literal(&name));
                self.text("::regclass)");
                Ok(())
            }
            Expr::Param { number, .. } => {
                self.text(&format!("${number}"));
                Ok(())
            }
            Expr::Json(json) => self.json(json),
            Expr::Aggregate(a) => {
                let before = self.owner_up;
                if a.levels_up > 0 {
                    self.owner_up = a.levels_up as usize;
                }
                let done = self.aggregate(a);
                self.owner_up = before;
                done
            }
            Expr::Window(w) => self.window_call(w),
            Expr::Grouping(indexes) => {
                self.text("GROUPING(");
                if let Some(q) = self.levels.last().map(|l| l.query) {
                    for (i, g) in indexes.iter().enumerate() {
                        if i > 0 {
                            self.text(", ");
                        }
                        if let Some(e) = q.group_exprs.get(*g) {
                            self.expr(e)?;
                        }
                    }
                }
                self.text(")");
                Ok(())
            }
            Expr::SubLink { kind, subquery, test, .. } => {
                self.sub_link(*kind, *subquery, test.as_deref().map(test_parts))
            }
            Expr::SubLinkColumn { index, .. } => {
                let name = self.sub_columns.get(*index).cloned().unwrap_or_default();
                self.text(&name);
                Ok(())
            }
            Expr::Default(_) => {
                self.text("DEFAULT");
                Ok(())
            }
            _ => Err(base::Error::unsupported("printing a planned expression")),
        }
    }

    pub(super) fn function_like(&mut self, name: &str, args: &[Expr]) -> Result<()> {
        self.text(name);
        self.text("(");
        self.list(args)?;
        self.text(")");
        Ok(())
    }

    fn suffixed(&mut self, arg: &Expr, suffix: &str) -> Result<()> {
        self.open();
        self.operand(arg)?;
        self.text(suffix);
        self.close();
        Ok(())
    }

    /// What NOT is said of.
    fn condition(&mut self, e: &Expr) -> Result<()> {
        let bare = match e {
            Expr::IsNull { .. }
            | Expr::BoolTest { .. }
            | Expr::SubLink { .. }
            | Expr::Distinct { negated: false, .. } => true,
            Expr::Json(json) => matches!(json.kind, expr::json::JsonExprKind::Is { .. }),
            Expr::Call { form, .. } => *form == CallForm::Operator,
            _ => false,
        };
        if bare { self.expr(e) } else { self.operand(e) }
    }

    fn logical(&mut self, list: &[Expr], word: &str) -> Result<()> {
        self.open();
        for (i, e) in list.iter().enumerate() {
            if i > 0 {
                self.text(word);
            }
            let nested = match e {
                Expr::Or(_) => word == " AND " && row_select(e).is_none(),
                Expr::RowCompare { .. } | Expr::ScalarArrayOp { .. } => true,
                _ => false,
            };
            if self.pretty && nested {
                self.text("(");
                self.quiet(e)?;
                self.text(")");
            } else {
                self.quiet(e)?;
            }
        }
        self.close();
        Ok(())
    }

    fn variable(&mut self, up: usize, rte: usize, column: i32) {
        const SYSTEM: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];
        if self.levels.is_empty() {
            // What a domain's condition is about.
            if column > 0 && self.columns.is_empty() {
                self.text("VALUE");
                return;
            }
            let name = match column {
                n if n > 0 => self.columns.get(n as usize - 1).map_or("?", String::as_str),
                0 => "*",
                n => SYSTEM.get((-n - 1) as usize).copied().unwrap_or("?"),
            };
            let quoted = quote_ident(name).into_owned_string();
            self.text(&quoted);
            return;
        }
        let level = self.levels.len().checked_sub(up + 1).and_then(|i| self.levels.get(i));
        let Some(level) = level else {
            self.text("?");
            return;
        };
        let q = level.query;
        if rte >= q.range_table.len() {
            self.text("?");
            return;
        }
        let qualify = self.levels.len() > 1 || q.range_table.len() > 1;
        let bare = level.names.get(rte).map_or("", String::as_str);
        let alias = quote_ident(bare).into_owned_string();
        let nameless = bare.is_empty();
        let name = match column {
            n if n > 0 => {
                let n = level.columns[rte].get(n as usize - 1).map_or("?", String::as_str);
                quote_ident(n).into_owned_string()
            }
            0 => "*".to_owned(),
            n => SYSTEM.get((-n - 1) as usize).copied().unwrap_or("?").to_owned(),
        };
        if (qualify || column == 0) && !nameless {
            self.text(&alias);
            self.text(".");
        }
        self.text(&name);
    }

    /// A constant with its type behind it.
    pub(super) fn labelled(&mut self, c: &Constant) -> Result<()> {
        let from = self.out.len();
        self.constant(c, false)?;
        let ty = type_text(c.ty.oid, c.ty.typmod, self.env);
        if !self.out[from..].ends_with(&format!("::{ty}")) {
            self.text(&format!("::{ty}"));
        }
        Ok(())
    }

    /// A constant; `bare`: a cast follows, so no type label.
    fn constant(&mut self, c: &Constant, bare: bool) -> Result<()> {
        let label = |p: &mut Self| {
            if !bare {
                p.text("::");
                let t = type_text(c.ty.oid, c.ty.typmod, p.env);
                p.text(&t);
            }
        };
        if c.value.is_null() {
            self.text("NULL");
            if c.ty.oid != UNKNOWN {
                label(self);
            }
            return Ok(());
        }
        let mut text = String::new();
        types::text_output(c.ty.oid, &c.value, self.env, &mut text)?;
        match (&c.value, c.ty.oid) {
            (Datum::Bool(b), _) => self.text(if *b { "true" } else { "false" }),
            (Datum::Int4(n), INT4) if *n >= 0 => self.text(&text),
            (_, NUMERIC) => {
                let digit = text.starts_with(|ch: char| ch.is_ascii_digit());
                if digit && text.contains(['.', 'e', 'E']) {
                    self.text(&text);
                    if c.ty.typmod >= 0 {
                        label(self);
                    }
                } else {
                    self.text(&quote_literal(&text));
                    label(self);
                }
            }
            (_, UNKNOWN) => self.text(&quote_literal(&text)),
            _ => {
                self.text(&quote_literal(&text));
                label(self);
            }
        }
        Ok(())
    }

    pub(super) fn cast(&mut self, arg: &Expr, ty: TypeRef) -> Result<()> {
        match arg {
            Expr::Const(c) if c.ty.oid == ty.oid && c.ty.typmod < 0 => {
                self.constant(c, true)?;
            }
            _ => {
                if matches!(arg, Expr::Row { .. }) {
                    self.expr(arg)?;
                } else if !self.pretty || !is_simple(arg) {
                    self.text("(");
                    self.quiet(arg)?;
                    self.text(")");
                } else {
                    self.quiet(arg)?;
                }
            }
        }
        self.text("::");
        self.text(&type_text(ty.oid, ty.typmod, self.env));
        Ok(())
    }

    fn subscript(
        &mut self,
        arg: &Expr,
        indexes: &[(Option<Expr>, Option<Expr>)],
        slice: bool,
    ) -> Result<()> {
        let plain = matches!(arg, Expr::Var { .. } | Expr::Param { .. });
        if plain {
            self.expr(arg)?;
        } else {
            self.text("(");
            self.expr(arg)?;
            self.text(")");
        }
        for (lower, upper) in indexes {
            self.text("[");
            if let Some(l) = lower {
                self.expr(l)?;
            }
            if slice {
                self.text(":");
            }
            if let Some(u) = upper {
                self.expr(u)?;
            }
            self.text("]");
        }
        Ok(())
    }

    /// How much further in than its query an expression's lines are.
    fn expression_indent(&self) -> usize {
        if self.levels.is_empty() || self.in_case { 0 } else { 8 }
    }

    fn case(&mut self, e: &Expr) -> Result<()> {
        let Expr::Case { operand, arms, otherwise, .. } = e else { return Ok(()) };
        let (indent, in_case) = (self.indent, self.in_case);
        self.indent += self.expression_indent();
        self.in_case = true;
        self.line(0);
        self.text("CASE");
        self.indent += 4;
        if let Some(o) = operand {
            self.text(" ");
            self.expr(o)?;
        }
        for arm in arms {
            self.line(0);
            self.text("WHEN ");
            // `operand = value` is printed as the value
            match (&arm.when, operand) {
                (Expr::Call { args, .. }, Some(_)) if args.len() == 2 => self.expr(&args[1])?,
                (when, _) => self.quiet(when)?,
            }
            self.text(" THEN ");
            self.expr(&arm.then)?;
        }
        self.line(0);
        self.text("ELSE ");
        match otherwise {
            Some(o) => self.expr(o)?,
            None => {
                let ty = e.ty();
                self.text("NULL::");
                self.text(&type_text(ty.oid, ty.typmod, self.env));
            }
        }
        self.indent -= 4;
        self.line(0);
        self.text("END");
        (self.indent, self.in_case) = (indent, in_case);
        Ok(())
    }

    /// A sub-select, behind what it is compared with and how.
    fn sub_link(
        &mut self,
        kind: SubLinkKind,
        subquery: usize,
        test: Option<(Vec<&Expr>, &'static str)>,
    ) -> Result<()> {
        let owner = self.levels.len().checked_sub(self.owner_up + 1);
        let Some(q) = owner.and_then(|o| self.levels[o].query.sub_selects.get(subquery)) else {
            return Err(base::Error::unsupported("printing a sub-select outside a query"));
        };
        self.text(match kind {
            SubLinkKind::Exists => "(EXISTS (",
            SubLinkKind::Array => "ARRAY(",
            _ => "(",
        });
        let compared = test.is_some();
        if let Some((lefts, name)) = test {
            if lefts.len() == 1 {
                self.expr(lefts[0])?;
            } else {
                self.text("(");
                for (i, l) in lefts.iter().enumerate() {
                    if i > 0 {
                        self.text(", ");
                    }
                    self.expr(l)?;
                }
                self.text(")");
            }
            self.text(&match kind {
                SubLinkKind::Any if name == "=" => " IN (".to_owned(),
                SubLinkKind::Any => format!(" {name} ANY ("),
                SubLinkKind::Row => format!(" {name} ("),
                _ => format!(" {name} ALL ("),
            });
        }
        let indent = self.indent;
        self.indent += self.expression_indent();
        self.nested(q, &[], false)?;
        self.indent = indent;
        self.text(if compared || kind == SubLinkKind::Exists { "))" } else { ")" });
        Ok(())
    }
}

/// The sub-select whose row something is compared with, what that is, and the operator.
fn row_select(e: &Expr) -> Option<(usize, (Vec<&Expr>, &'static str))> {
    let rights: Vec<&Expr> = match e {
        Expr::And(list) | Expr::Or(list) => {
            list.iter().map(right_of).collect::<Option<Vec<_>>>()?
        }
        Expr::Call { .. } => vec![right_of(e)?],
        Expr::RowCompare { right, .. } => right.iter().collect(),
        _ => return None,
    };
    let (number, _) = row_field(rights.first()?)?;
    let all = rights.iter().enumerate().all(|(n, r)| row_field(r) == Some((number, n)));
    all.then(|| (number, test_parts(e)))
}

fn right_of(e: &Expr) -> Option<&Expr> {
    operator_of(e)?;
    match e {
        Expr::Call { args, .. } => args.get(1),
        _ => None,
    }
}

/// A column of a sub-select's row, whatever it is made into: the sub-select, and which column.
fn row_field(e: &Expr) -> Option<(usize, usize)> {
    match e {
        Expr::Field { arg, index, .. } => match &**arg {
            Expr::SubLink { kind: SubLinkKind::Row, subquery, .. } => Some((*subquery, *index)),
            _ => None,
        },
        Expr::Relabel { arg, .. }
        | Expr::CoerceViaIo { arg, .. }
        | Expr::CoerceToDomain { arg, .. }
        | Expr::ArrayCoerce { arg, .. } => row_field(arg),
        Expr::Call { form: CallForm::ImplicitCast | CallForm::ExplicitCast, args, .. } => {
            row_field(args.first()?)
        }
        _ => None,
    }
}

/// The left sides and the operator of a quantified comparison.
fn test_parts(t: &Expr) -> (Vec<&Expr>, &'static str) {
    match t {
        Expr::And(list) | Expr::Or(list) => {
            let mut name = "=";
            let mut out = Vec::new();
            for e in list {
                let (l, n) = test_parts(e);
                out.extend(l);
                name = n;
            }
            (out, name)
        }
        Expr::Call { args, operator, .. } => {
            (args.first().into_iter().collect(), operator_name(*operator))
        }
        Expr::RowCompare { left, op, .. } => (
            left.iter().collect(),
            match op {
                RowCompareOp::Lt => "<",
                RowCompareOp::Le => "<=",
                RowCompareOp::Gt => ">",
                RowCompareOp::Ge => ">=",
            },
        ),
        other => (vec![other], "="),
    }
}

pub(super) fn within_group(function: u32) -> bool {
    types::facts::aggregate(Oid(function)).is_some_and(|a| a.kind != 'n')
}

/// `quote_ident` may give a borrowed or an owned string; this makes it owned.
pub(crate) trait IntoOwnedString {
    fn into_owned_string(self) -> String;
}
impl<T: AsRef<str>> IntoOwnedString for T {
    fn into_owned_string(self) -> String {
        self.as_ref().to_owned()
    }
}
