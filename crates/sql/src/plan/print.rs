//! Expressions of a plan as text.

use super::Plan;
use expr::tree::{CallForm, SubLinkKind};
use expr::{BoolTestKind, Constant, Expr};
use types::{Datum, Env, oids};

/// A parameter of a plan's execution, and of what it is the value, over no row.
pub(crate) type Given = (usize, Expr);

/// With which columns the relation is named.
#[derive(Clone, Copy)]
pub(crate) enum Qualified<'a> {
    /// With all, if the statement reads several.
    OfSeveral,
    Always,
    /// As [`Qualified::OfSeveral`], but not with columns of the relation of this name.
    Others(&'a str),
}

/// Prints expressions over a node's columns.
pub(crate) struct Printer<'a> {
    plan: &'a Plan,
    /// As those of the plan.
    names: &'a [(String, Vec<String>)],
    columns: &'a [Expr],
    env: &'a dyn Env,
    qualified: Qualified<'a>,
    params: &'a [Given],
    out: String,
    complex: bool,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(plan: &'a Plan, columns: &'a [Expr], env: &'a dyn Env) -> Printer<'a> {
        let qualified = Qualified::OfSeveral;
        let (names, out) = (&plan.names[..], String::new());
        Printer { plan, names, columns, env, qualified, params: &[], out, complex: false }
    }

    /// Relations go by these names rather than by the plan's.
    pub(crate) fn named(self, names: &'a [(String, Vec<String>)]) -> Printer<'a> {
        Printer { names, ..self }
    }

    /// Parameters stand as what they are given.
    pub(crate) fn with(self, params: &'a [Given]) -> Printer<'a> {
        Printer { params, ..self }
    }

    pub(crate) fn qualified(self, qualified: Qualified<'a>) -> Printer<'a> {
        Printer { qualified, ..self }
    }

    /// Is the relation of this name in the query named with its columns?
    fn is_named(&self, alias: &str) -> bool {
        // Views that are written through stand among them without a name.
        let shown = |n: &&(String, Vec<String>)| !n.0.is_empty() || !n.1.is_empty();
        let several = || self.names.iter().filter(shown).nth(1).is_some();
        !alias.is_empty()
            && match self.qualified {
                Qualified::OfSeveral => several(),
                Qualified::Always => true,
                Qualified::Others(own) => own != alias && several(),
            }
    }

    /// An identifier, quoted where it must be.
    pub(crate) fn quoted(name: &str) -> String {
        let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
        if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
    }

    /// As a condition.
    pub(crate) fn finish_top(self) -> String {
        self.out
    }
    /// As an element of a list.
    pub(crate) fn finish_column(self) -> String {
        let outer = self.complex && !self.out.starts_with('(');
        if outer { format!("({})", self.out) } else { self.out }
    }

    fn push(&mut self, s: &str) {
        self.out.push_str(s);
    }

    fn list(&mut self, list: &[Expr], between: &str) {
        for (i, e) in list.iter().enumerate() {
            if i > 0 {
                self.push(between);
            }
            self.expr(e);
        }
    }

    fn constant(&mut self, c: &Constant) {
        if c.value.is_null() {
            self.push("NULL::");
            self.push(&types::type_text(c.ty.oid, c.ty.typmod, self.env));
            return;
        }
        let text = types::io::to_text(c.ty.oid, &c.value, self.env).unwrap_or_default();
        match (c.ty.oid, &c.value) {
            (oids::INT4, _) if !text.starts_with('-') => self.push(&text),
            (oids::BOOL, Datum::Bool(b)) => self.push(if *b { "true" } else { "false" }),
            (oids::NUMERIC, _) if !text.starts_with('-') => self.push(&text),
            _ => {
                self.push("'");
                self.push(&text.replace('\'', "''"));
                self.push("'::");
                self.push(&types::type_text(c.ty.oid, c.ty.typmod, self.env));
            }
        }
    }

    fn operator(operator: u32) -> &'static str {
        types::registry::operator(base::Oid(operator)).map_or("=", |o| o.name)
    }

    pub(crate) fn expr(&mut self, e: &Expr) {
        match e {
            Expr::Const(c) => self.constant(c),
            Expr::Var { rte, column, .. } => {
                let (alias, names) = match self.names.get(*rte) {
                    Some((a, n)) => (a.as_str(), n.as_slice()),
                    None => ("", &[][..]),
                };
                let name = match *column {
                    -1 => "ctid".to_owned(),
                    -2 => "xmin".to_owned(),
                    -3 => "cmin".to_owned(),
                    -4 => "xmax".to_owned(),
                    -5 => "cmax".to_owned(),
                    -6 => "tableoid".to_owned(),
                    c => usize::try_from(c - 1)
                        .ok()
                        .and_then(|c| names.get(c))
                        .map_or_else(|| format!("column{c}"), |n| Printer::quoted(n)),
                };
                if alias.is_empty() && names == ["MERGE_ACTION()"] {
                    return self.push(&names[0]);
                }
                if self.is_named(alias) {
                    self.push(&Printer::quoted(alias));
                    self.push(".");
                }
                self.push(&name);
            }
            Expr::Slot { index, .. } => match self.columns.get(*index) {
                Some(c) => {
                    let c = c.clone();
                    let columns = std::mem::take(&mut self.columns);
                    self.expr(&c);
                    self.columns = columns;
                }
                None => self.push(&format!("${index}")),
            },
            Expr::CurrentOf { parameter: number @ 1.., .. } => {
                self.push(&format!("CURRENT OF ${number}"));
            }
            Expr::CurrentOf { cursor, .. } => {
                self.push(&format!("CURRENT OF {}", Printer::quoted(cursor)));
            }
            Expr::Param { number, .. } => self.push(&format!("${number}")),
            Expr::ExecParam { index, .. } => match self.params.iter().find(|p| p.0 == *index) {
                Some((_, given)) => {
                    let qualified = std::mem::replace(&mut self.qualified, Qualified::Always);
                    self.expr(given);
                    self.qualified = qualified;
                }
                None => self.push(&format!("${index}")),
            },
            Expr::Call { function, args, operator, form, ty, .. } => {
                match (operator, &args[..], form) {
                    (_, [_, current @ Expr::CurrentOf { .. }], _) => self.expr(current),
                    (0, [a], CallForm::ImplicitCast) => self.expr(a),
                    (0, [a, ..], CallForm::ExplicitCast) => {
                        self.push("(");
                        self.expr(a);
                        self.push(")::");
                        self.push(&types::type_text(ty.oid, ty.typmod, self.env));
                    }
                    (o, [a, b], _) if *o != 0 => {
                        self.push("(");
                        self.expr(a);
                        self.push(" ");
                        self.push(Printer::operator(*o));
                        self.push(" ");
                        self.expr(b);
                        self.push(")");
                    }
                    (o, [a], _) if *o != 0 => {
                        self.push("(");
                        self.push(Printer::operator(*o));
                        self.push(" ");
                        self.expr(a);
                        self.push(")");
                    }
                    _ => {
                        let name = types::facts::proc(base::Oid(*function)).map_or("?", |f| f.name);
                        self.push(&Printer::quoted(name));
                        self.push("(");
                        self.list(args, ", ");
                        self.push(")");
                    }
                }
            }
            Expr::ScalarArrayOp { operator, any, left, array, .. } => {
                self.push("(");
                self.expr(left);
                self.push(&format!(
                    " {} {} (",
                    Printer::operator(*operator),
                    if *any { "ANY" } else { "ALL" }
                ));
                self.expr(array);
                self.push("))");
            }
            Expr::And(args) | Expr::Or(args) => {
                self.push("(");
                self.list(args, if matches!(e, Expr::And(_)) { " AND " } else { " OR " });
                self.push(")");
            }
            Expr::Not(a) => {
                self.push("(NOT ");
                self.expr(a);
                self.push(")");
            }
            Expr::IsNull { arg, negated } => {
                self.push("(");
                self.expr(arg);
                self.push(if *negated { " IS NOT NULL)" } else { " IS NULL)" });
            }
            Expr::BoolTest { arg, kind } => {
                self.push("(");
                self.expr(arg);
                self.push(match kind {
                    BoolTestKind::IsTrue => " IS TRUE)",
                    BoolTestKind::IsNotTrue => " IS NOT TRUE)",
                    BoolTestKind::IsFalse => " IS FALSE)",
                    BoolTestKind::IsNotFalse => " IS NOT FALSE)",
                    BoolTestKind::IsUnknown => " IS UNKNOWN)",
                    BoolTestKind::IsNotUnknown => " IS NOT UNKNOWN)",
                });
            }
            Expr::Distinct { left, right, negated, .. } => {
                self.push("(");
                self.expr(left);
                self.push(if *negated { " IS NOT DISTINCT FROM " } else { " IS DISTINCT FROM " });
                self.expr(right);
                self.push(")");
            }
            Expr::NullIf { left, right, .. } => {
                self.push("NULLIF(");
                self.expr(left);
                self.push(", ");
                self.expr(right);
                self.push(")");
            }
            Expr::Case { operand, arms, otherwise, .. } => {
                self.complex = true;
                self.push("CASE");
                if let Some(o) = operand {
                    self.push(" ");
                    self.expr(o);
                }
                for a in arms {
                    self.push(" WHEN ");
                    self.expr(&a.when);
                    self.push(" THEN ");
                    self.expr(&a.then);
                }
                if let Some(o) = otherwise {
                    self.push(" ELSE ");
                    self.expr(o);
                }
                self.push(" END");
            }
            Expr::CaseTestValue(_) => self.push("CASE_TEST_EXPR"),
            Expr::Coalesce { args, .. } => {
                self.push("COALESCE(");
                self.list(args, ", ");
                self.push(")");
            }
            Expr::MinMax { greatest, args, .. } => {
                self.push(if *greatest { "GREATEST(" } else { "LEAST(" });
                self.list(args, ", ");
                self.push(")");
            }
            Expr::Array { elements, .. } => {
                self.push("ARRAY[");
                self.list(elements, ", ");
                self.push("]");
            }
            Expr::Row { fields, .. } => {
                self.push("ROW(");
                self.list(fields, ", ");
                self.push(")");
            }
            Expr::RowCompare { op, left, right, .. } => {
                use expr::tree::RowCompareOp as R;
                self.push("(ROW(");
                self.list(left, ", ");
                self.push(match op {
                    R::Lt => ") < ROW(",
                    R::Le => ") <= ROW(",
                    R::Gt => ") > ROW(",
                    R::Ge => ") >= ROW(",
                });
                self.list(right, ", ");
                self.push("))");
            }
            Expr::Field { arg, name, .. } => {
                self.push("(");
                self.expr(arg);
                self.push(").");
                self.push(&Printer::quoted(name));
            }
            Expr::FieldStore { arg, .. } => self.expr(arg),
            Expr::Subscript { arg, indexes, slice, .. } => {
                self.expr(arg);
                for (a, b) in indexes {
                    self.push("[");
                    if let Some(a) = a {
                        self.expr(a);
                    }
                    if *slice {
                        self.push(":");
                    }
                    if let Some(b) = b {
                        self.expr(b);
                    }
                    self.push("]");
                }
            }
            Expr::CoerceViaIo { arg, ty, explicit } | Expr::Relabel { arg, ty, explicit } => {
                let _ = explicit;
                self.push("(");
                self.expr(arg);
                self.push(")::");
                self.push(&types::type_text(ty.oid, ty.typmod, self.env));
            }
            Expr::CoerceToDomain { arg, domain, .. } => {
                self.push("(");
                self.expr(arg);
                self.push(")::");
                self.push(&types::type_text(base::Oid(*domain), -1, self.env));
            }
            Expr::ArrayCoerce { arg, ty, .. } => {
                self.push("(");
                self.expr(arg);
                self.push(")::");
                self.push(&types::type_text(ty.oid, ty.typmod, self.env));
            }
            Expr::Collate { arg, .. } => self.expr(arg),
            Expr::Json(json) => {
                use expr::json::JsonExprKind;
                match &json.kind {
                    JsonExprKind::Is { .. } => {
                        self.push("(");
                        self.expr(&json.args[0]);
                        self.push(" IS JSON)");
                    }
                    JsonExprKind::Make(make) => {
                        let name = crate::analyse::constructor_name(make.what);
                        self.push(&format!("{}(", name.to_ascii_uppercase()));
                        self.list(&json.args, ", ");
                        self.push(")");
                    }
                    JsonExprKind::Table(_) => self.push("JSON_TABLE(...)"),
                    JsonExprKind::Find(find) => {
                        let name = crate::analyse::finder_name(find.what);
                        self.push(&format!("{}(", name.to_ascii_uppercase()));
                        self.list(&json.args, ", ");
                        self.push(")");
                    }
                }
            }
            Expr::SqlValue { kind, .. } => {
                let name = format!("{kind:?}");
                let mut s = String::new();
                for (i, c) in name.chars().enumerate() {
                    if i > 0 && c.is_uppercase() && !name.starts_with("Local") {
                        s.push('_');
                    }
                    s.push(c.to_ascii_uppercase());
                }
                self.push(&s);
            }
            Expr::Aggregate(a) => {
                let name = types::facts::proc(base::Oid(a.function)).map_or("?", |f| f.name);
                self.push(name);
                self.push("(");
                if a.distinct {
                    self.push("DISTINCT ");
                }
                if a.star {
                    self.push("*");
                }
                let args = a.args.clone();
                self.list(&args, ", ");
                self.push(")");
            }
            Expr::Window(w) => {
                let name = types::facts::proc(base::Oid(w.function)).map_or("?", |f| f.name);
                self.push(name);
                self.push("(");
                if w.star {
                    self.push("*");
                }
                let args = w.args.clone();
                self.list(&args, ", ");
                self.push(&format!(") OVER w{}", w.window + 1));
            }
            Expr::Grouping(_) => self.push("GROUPING(...)"),
            Expr::SubLink { .. } => self.push("(SubLink)"),
            Expr::SubLinkColumn { index, .. } => self.push(&format!("col{}", index + 1)),
            Expr::SubPlan { kind, plan, args, test, .. } => {
                let initial = args.is_empty() && self.plan.sub_plans[*plan].hash.is_none();
                let word = if initial { "InitPlan" } else { "SubPlan" };
                let number = plan + 1;
                match kind {
                    SubLinkKind::Exists => self.push(&format!("EXISTS({word} {number})")),
                    SubLinkKind::Any | SubLinkKind::All => {
                        let word2 = if *kind == SubLinkKind::Any { "ANY" } else { "ALL" };
                        let hashed = self.plan.sub_plans[*plan].hash.is_some();
                        self.push(&format!("({word2} "));
                        if let Some(t) = test {
                            self.expr(t);
                        }
                        self.push(&format!(
                            "{}SubPlan {number})",
                            if hashed { " hashed " } else { " " }
                        ));
                    }
                    _ => self.push(&format!("({word} {number}).col1")),
                }
            }
            Expr::Default(_) => self.push("DEFAULT"),
            Expr::NextValue { sequence, .. } => {
                self.push(&format!("nextval('{sequence}'::regclass)"))
            }
        }
    }
}
