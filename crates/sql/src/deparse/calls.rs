//! Calls: functions in SQL's own syntax too, aggregates, windows, sort keys.

use super::Printer;
use super::exprs::{
    IntoOwnedString, arithmetic, function_name, operator_name, operator_of, within_group,
};
use crate::query::{FrameBound, FrameExclude, FrameMode, WindowDefinition};
use base::{Oid, Result};
use expr::tree::{CallForm, SortKey};
use expr::{Constant, Expr, TypeRef};
use types::{Datum, quote_ident};

/// What stands below casts that nobody wrote.
pub(super) fn uncast(e: &Expr) -> &Expr {
    match e {
        Expr::Relabel { arg, explicit: false, .. }
        | Expr::CoerceViaIo { arg, explicit: false, .. }
        | Expr::CoerceToDomain { arg, explicit: false, .. } => uncast(arg),
        Expr::Call { form: CallForm::ImplicitCast, args, .. } => args.first().map_or(e, uncast),
        _ => e,
    }
}

/// The arguments without those at the end that are what they are if nobody writes them.
fn written(function: u32, args: &[Expr]) -> &[Expr] {
    let Some(info) = types::registry::function(Oid(function)) else { return args };
    let mut left = args.len();
    if left != info.args.len() {
        return args;
    }
    for usual in info.default_values.iter().rev() {
        match args.get(left - 1) {
            Some(Expr::Const(c)) if expr::ops::identical(&c.value, usual) => left -= 1,
            _ => break,
        }
    }
    &args[..left]
}

impl Printer<'_> {
    pub(super) fn call(
        &mut self,
        function: u32,
        args: &[Expr],
        arg_types: &[TypeRef],
        ty: TypeRef,
        operator: u32,
        form: CallForm,
    ) -> Result<()> {
        // What rows look like that are filled is no argument.
        if let Some(fact) = types::facts::proc(Oid(function))
            && args.len() > fact.args.len()
            && types::json::makes_rows(fact.name)
        {
            let own = fact.args.len();
            return self.call(function, &args[..own], &arg_types[..own], ty, operator, form);
        }
        let (mut args, mut arg_types) = (args, arg_types);
        if arg_types.len() == args.len() {
            args = written(function, args);
            arg_types = &arg_types[..args.len()];
        }
        match (form, args) {
            (CallForm::ImplicitCast | CallForm::ExplicitCast, [arg, rest @ ..]) => {
                let typmod = match rest.first() {
                    Some(Expr::Const(Constant { value: Datum::Int4(n), .. })) => *n,
                    _ => ty.typmod,
                };
                // The length cast round a type cast is one cast.
                let inner = match arg {
                    Expr::Call {
                        form: CallForm::ExplicitCast | CallForm::ImplicitCast,
                        args,
                        ty: t,
                        ..
                    } if t.oid == ty.oid && args.len() == 1 => &args[0],
                    Expr::Relabel { arg, ty: t, .. } | Expr::CoerceViaIo { arg, ty: t, .. }
                        if t.oid == ty.oid =>
                    {
                        arg
                    }
                    other => other,
                };
                self.cast(inner, TypeRef { oid: ty.oid, typmod })
            }
            (CallForm::Operator, [left, right]) => {
                let name = operator_name(operator);
                let own = arithmetic(name);
                self.open();
                let loose = |e: &Expr, right: bool| {
                    let inner = operator_of(e).map_or(0, arithmetic);
                    own > 0 && inner > 0 && (inner > own || (inner == own && !right))
                };
                if self.pretty && loose(left, false) {
                    self.expr(left)?;
                } else {
                    self.operand(left)?;
                }
                self.text(" ");
                self.text(name);
                self.text(" ");
                if self.pretty && loose(right, true) {
                    self.expr(right)?;
                } else {
                    self.operand(right)?;
                }
                self.close();
                Ok(())
            }
            (CallForm::Operator, [arg]) => {
                self.open();
                self.text(operator_name(operator));
                self.text(" ");
                self.operand(arg)?;
                self.close();
                Ok(())
            }
            (CallForm::SqlSyntax, _) => self.sql_syntax(function, args),
            _ => {
                let name = function_name(function);
                self.text(&quote_ident(&name).into_owned_string());
                self.text("(");
                let gathered = types::facts::proc(Oid(function))
                    .is_some_and(|p| p.variadic.is_valid() && p.variadic != types::oids::ANY);
                match args {
                    [fixed @ .., last] if gathered || arg_types.len() > args.len() => {
                        self.list(fixed)?;
                        self.text(if fixed.is_empty() { "VARIADIC " } else { ", VARIADIC " });
                        self.expr(last)?;
                    }
                    _ => self.list(args)?,
                }
                self.text(")");
                Ok(())
            }
        }
    }

    fn sql_syntax(&mut self, function: u32, args: &[Expr]) -> Result<()> {
        let name = function_name(function);
        match (name.as_str(), args) {
            ("timezone", [zone, value]) => {
                self.text("(");
                self.quiet_operand(value)?;
                self.text(" AT TIME ZONE ");
                self.quiet_operand(zone)?;
                self.text(")");
                Ok(())
            }
            ("extract", [Expr::Const(Constant { value: Datum::Text(f), .. }), value]) => {
                self.text("EXTRACT(");
                self.text(f.as_str());
                self.text(" FROM ");
                self.quiet(value)?;
                self.text(")");
                Ok(())
            }
            ("position", [hay, needle]) => {
                self.text("POSITION((");
                self.quiet(needle)?;
                self.text(") IN (");
                self.quiet(hay)?;
                self.text("))");
                Ok(())
            }
            ("substring", [value, pattern, escape]) if pattern.ty().oid == types::oids::TEXT => {
                self.words("SUBSTRING(", value, &[" SIMILAR "], std::slice::from_ref(pattern))?;
                self.out.pop();
                self.words(" ESCAPE ", escape, &[], &[])
            }
            // A regular expression, which has no words of its own.
            ("substring", [_, pattern]) if pattern.ty().oid == types::oids::TEXT => {
                self.function_like(&quote_ident(&name), args)
            }
            ("substring", [value, rest @ ..]) => {
                self.words("SUBSTRING(", value, &[" FROM ", " FOR "], rest)
            }
            ("overlay", [value, rest @ ..]) => {
                self.words("OVERLAY(", value, &[" PLACING ", " FROM ", " FOR "], rest)
            }
            ("btrim" | "ltrim" | "rtrim", [value, rest @ ..]) => {
                self.text(match name.as_str() {
                    "btrim" => "TRIM(BOTH",
                    "ltrim" => "TRIM(LEADING",
                    _ => "TRIM(TRAILING",
                });
                if let Some(what) = rest.first() {
                    self.text(" ");
                    self.quiet(what)?;
                }
                self.text(" FROM ");
                self.quiet(value)?;
                self.text(")");
                Ok(())
            }
            ("overlaps", [a, b, c, d]) => {
                self.text("((");
                self.quiet_list(&[a, b])?;
                self.text(") OVERLAPS (");
                self.quiet_list(&[c, d])?;
                self.text("))");
                Ok(())
            }
            ("timezone", [value]) => {
                self.text("(");
                self.quiet_operand(value)?;
                self.text(" AT LOCAL)");
                Ok(())
            }
            ("pg_collation_for", [value]) => {
                self.text("COLLATION FOR (");
                self.quiet(value)?;
                self.text(")");
                Ok(())
            }
            ("is_normalized", [value, form @ ..]) => {
                self.text("(");
                self.quiet_operand(value)?;
                self.text(" IS");
                if let [Expr::Const(Constant { value: Datum::Text(form), .. })] = form
                    && form.as_str() != "NFC"
                {
                    self.text(&format!(" {}", form.as_str()));
                }
                self.text(" NORMALIZED)");
                Ok(())
            }
            ("normalize", [value, Expr::Const(Constant { value: Datum::Text(form), .. })]) => {
                self.text("NORMALIZE(");
                self.quiet(value)?;
                self.text(&format!(", {})", form.as_str()));
                Ok(())
            }
            ("normalize", [value, ..]) => {
                self.text("NORMALIZE(");
                self.quiet(value)?;
                self.text(")");
                Ok(())
            }
            ("system_user", []) => {
                self.text("SYSTEM_USER");
                Ok(())
            }
            _ => self.function_like(&name, args),
        }
    }

    /// An operand of SQL's own syntax, which brings casts with it.
    fn quiet_operand(&mut self, e: &Expr) -> Result<()> {
        self.operand(uncast(e))
    }

    fn quiet_list(&mut self, list: &[&Expr]) -> Result<()> {
        for (i, e) in list.iter().enumerate() {
            self.text(if i > 0 { ", " } else { "" });
            self.quiet(e)?;
        }
        Ok(())
    }

    fn words(&mut self, head: &str, first: &Expr, words: &[&str], rest: &[Expr]) -> Result<()> {
        self.text(head);
        self.quiet(first)?;
        for (w, e) in words.iter().zip(rest) {
            self.text(w);
            self.quiet(e)?;
        }
        self.text(")");
        Ok(())
    }

    pub fn sort_keys(&mut self, keys: &[SortKey]) -> Result<()> {
        for (i, k) in keys.iter().enumerate() {
            if i > 0 {
                self.text(", ");
            }
            self.sort_expr(&k.expr)?;
            self.direction(k.descending, k.nulls_first);
        }
        Ok(())
    }

    pub fn direction(&mut self, descending: bool, nulls_first: bool) {
        if descending {
            self.text(" DESC");
        }
        if nulls_first != descending {
            self.text(if nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
    }

    pub(super) fn aggregate(&mut self, a: &expr::tree::AggregateCall) -> Result<()> {
        self.text(&function_name(a.function));
        self.text("(");
        if a.distinct {
            self.text("DISTINCT ");
        }
        if a.star {
            self.text("*");
        }
        if a.direct_args > 0 || (a.args.len() > a.direct_args && within_group(a.function)) {
            self.list(&a.args[..a.direct_args])?;
            self.text(") WITHIN GROUP (ORDER BY ");
            self.sort_keys(&a.order_by)?;
        } else {
            self.list(&a.args)?;
            if !a.order_by.is_empty() {
                self.text(" ORDER BY ");
                self.sort_keys(&a.order_by)?;
            }
        }
        self.text(")");
        self.filter(a.filter.as_deref())
    }

    pub(super) fn filter(&mut self, f: Option<&Expr>) -> Result<()> {
        if let Some(f) = f {
            self.text(" FILTER (WHERE ");
            self.expr(f)?;
            self.text(")");
        }
        Ok(())
    }

    pub(super) fn window_call(&mut self, w: &expr::tree::WindowCall) -> Result<()> {
        self.text(&function_name(w.function));
        self.text("(");
        if w.star {
            self.text("*");
        }
        self.list(&w.args)?;
        self.text(")");
        self.filter(w.filter.as_deref())?;
        self.over(w.window)
    }

    /// The window of a call, by its number.
    pub(super) fn over(&mut self, window: usize) -> Result<()> {
        self.text(" OVER ");
        if let Some(d) = self.levels.last().and_then(|l| l.query.windows.get(window)) {
            match &d.name {
                Some(n) => self.text(&quote_ident(n).into_owned_string()),
                None => self.window(d)?,
            }
        }
        Ok(())
    }

    pub fn window(&mut self, d: &WindowDefinition) -> Result<()> {
        self.text("(");
        let mut space = "";
        if let Some(base) = &d.base {
            self.text(&quote_ident(base).into_owned_string());
            space = " ";
        }
        if !d.partition_by.is_empty() && d.base.is_none() {
            self.text("PARTITION BY ");
            for (i, e) in d.partition_by.iter().enumerate() {
                self.text(if i > 0 { ", " } else { "" });
                self.sort_expr(e)?;
            }
            space = " ";
        }
        if !d.order_by.is_empty() && !d.ordered_as_base {
            self.text(space);
            self.text("ORDER BY ");
            self.sort_keys(&d.order_by)?;
            space = " ";
        }
        if d.frame.explicit {
            self.text(space);
            self.text(match d.frame.mode {
                FrameMode::Rows => "ROWS ",
                FrameMode::Range => "RANGE ",
                FrameMode::Groups => "GROUPS ",
            });
            self.text(if d.frame.open { "" } else { "BETWEEN " });
            self.bound(&d.frame.start)?;
            if !d.frame.open {
                self.text(" AND ");
                self.bound(&d.frame.end)?;
            }
            self.text(match d.frame.exclude {
                FrameExclude::NoOthers => "",
                FrameExclude::CurrentRow => " EXCLUDE CURRENT ROW",
                FrameExclude::Group => " EXCLUDE GROUP",
                FrameExclude::Ties => " EXCLUDE TIES",
            });
        }
        self.text(")");
        Ok(())
    }

    fn bound(&mut self, b: &FrameBound) -> Result<()> {
        match b {
            FrameBound::UnboundedPreceding => self.text("UNBOUNDED PRECEDING"),
            FrameBound::UnboundedFollowing => self.text("UNBOUNDED FOLLOWING"),
            FrameBound::CurrentRow => self.text("CURRENT ROW"),
            FrameBound::Preceding(e) => {
                self.quiet(e)?;
                self.text(" PRECEDING");
            }
            FrameBound::Following(e) => {
                self.quiet(e)?;
                self.text(" FOLLOWING");
            }
        }
        Ok(())
    }
}
