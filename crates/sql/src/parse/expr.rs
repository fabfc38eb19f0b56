//! Expressions: precedence climbing over PostgreSQL's operator table.
//!
//! Binding strengths, weakest first: OR 1, AND 2, NOT 3, IS 4, comparison 5 (not associative),
//! BETWEEN IN LIKE 6, other operators 8, `+ -` 9, `* / %` 10, `^` 11, AT TIME ZONE 12, COLLATE 13,
//! unary minus 14, subscripts 15, `::` 16.

use super::ast::{Expr, ExprKind, IsTest, JsonKind, LikeKind, Loc, OpName, SubscriptIndex};
use super::lexer::Kind;
use super::parser::Parser;
use base::Result;

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARE: u8 = 5;
const LIKE: u8 = 6;
const OPERATOR: u8 = 8;
const COLLATE: u8 = 13;
const MINUS: u8 = 14;
const CAST: u8 = 16;

/// How long a chain of operators at one level may be.
const MAX_CHAIN: u32 = 2000;

pub(super) fn node(kind: ExprKind, loc: Loc) -> Expr {
    Expr { kind, loc }
}
pub(super) fn boxed(e: Expr) -> Box<Expr> {
    Box::new(e)
}
pub(super) fn op(name: &str) -> OpName {
    OpName { schema: None, name: name.to_owned() }
}

fn strength(op: &str) -> u8 {
    match op {
        "=" | "<" | ">" | "<=" | ">=" | "<>" => COMPARE,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        "^" => 11,
        _ => OPERATOR,
    }
}

/// The forms that text is normalized to.
const FORMS: [&str; 4] = ["NFC", "NFD", "NFKC", "NFKD"];

impl Parser<'_> {
    /// Any expression.
    pub fn expr(&mut self) -> Result<Expr> {
        let restricted = std::mem::replace(&mut self.restricted, false);
        let e = self.climb(0);
        self.restricted = restricted;
        e
    }
    /// A restricted expression, as after DEFAULT.
    pub fn restricted_expr(&mut self) -> Result<Expr> {
        let restricted = std::mem::replace(&mut self.restricted, true);
        let e = self.climb(0);
        self.restricted = restricted;
        e
    }

    /// An operand, with casts behind it.
    pub(super) fn with_casts(&mut self) -> Result<Expr> {
        self.climb(CAST)
    }

    fn climb(&mut self, min: u8) -> Result<Expr> {
        self.deeper(|p| {
            p.within(|p| {
                let left = p.prefix()?;
                p.infix(left, min)
            })
        })
    }

    fn prefix(&mut self) -> Result<Expr> {
        let t = self.peek();
        let loc = t.start;
        match t.kind {
            Kind::Word if t.text == "not" && !self.restricted => {
                self.skip(1);
                let arg = self.climb(NOT)?;
                Ok(node(ExprKind::Not(boxed(arg)), loc))
            }
            Kind::Word if t.text == "operator" && self.is_op_at(1, "(") => {
                let name = self.qualified_operator()?;
                let arg = self.climb(OPERATOR + 1)?;
                Ok(node(ExprKind::Unary { op: name, arg: boxed(arg) }, loc))
            }
            Kind::Op => match &*t.text {
                "(" | "[" | ")" | "]" | "," | ";" | ":" | "::" | ":=" | "." | ".." | "=>" | "="
                | "<" | ">" | "<=" | ">=" | "<>" | "*" | "/" | "^" => self.primary(),
                "-" | "+" => {
                    let minus = t.text == "-";
                    self.skip(1);
                    let arg = self.climb(MINUS)?;
                    // -5 is a constant, as PostgreSQL's doNegate makes it, and so is -(-5)
                    if minus && let ExprKind::Number(n) = &arg.kind {
                        let n = match n.strip_prefix('-') {
                            Some(positive) => positive.to_owned(),
                            None => format!("-{n}"),
                        };
                        return Ok(node(ExprKind::Number(n), loc));
                    }
                    let name = op(if minus { "-" } else { "+" });
                    Ok(node(ExprKind::Unary { op: name, arg: boxed(arg) }, loc))
                }
                other => {
                    let name = op(other);
                    self.skip(1);
                    let arg = self.climb(OPERATOR + 1)?;
                    Ok(node(ExprKind::Unary { op: name, arg: boxed(arg) }, loc))
                }
            },
            _ => self.primary(),
        }
    }

    /// `OPERATOR(schema.op)`
    fn qualified_operator(&mut self) -> Result<OpName> {
        self.expect("operator")?;
        self.expect_op("(")?;
        let mut schema = None;
        while self.is_name() {
            schema = Some(self.label()?);
            self.expect_op(".")?;
        }
        let name = self.operator_symbol()?;
        self.expect_op(")")?;
        Ok(OpName { schema, name })
    }
    /// Any operator's own characters.
    pub fn operator_symbol(&mut self) -> Result<String> {
        let t = self.peek();
        let fine = t.kind == Kind::Op
            && !matches!(
                &*t.text,
                "(" | ")" | "[" | "]" | "," | ";" | "." | ".." | ":" | "::" | ":=" | "=>"
            );
        if !fine {
            return Err(self.unexpected());
        }
        Ok(self.next().text.into_owned())
    }

    fn infix(&mut self, mut left: Expr, min: u8) -> Result<Expr> {
        let mut chain = 0;
        loop {
            let was_list = matches!(left.kind, ExprKind::And(_) | ExprKind::Or(_));
            let next = match self.peek().kind {
                Kind::Op => self.infix_symbol(left, min)?,
                Kind::Word => self.infix_word(left, min)?,
                _ => return Ok(left),
            };
            match next {
                (e, true) => left = e,
                (e, false) => return Ok(e),
            }
            // AND and OR are lists: any number of conditions nests no deeper.
            let is_list = matches!(left.kind, ExprKind::And(_) | ExprKind::Or(_));
            if !(was_list && is_list) {
                self.grow()?;
            }
            if !is_list {
                chain += 1;
            }
            if chain > MAX_CHAIN {
                return Err(base::err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
            }
        }
    }

    fn infix_symbol(&mut self, left: Expr, min: u8) -> Result<(Expr, bool)> {
        let t = self.peek();
        let loc = t.start;
        let bind = match &*t.text {
            "(" | ")" | "]" | "," | ";" | ":" | ":=" | "." | ".." | "=>" => {
                return Ok((left, false));
            }
            "[" => return Ok((left, false)),
            "::" => CAST,
            other => strength(other),
        };
        if bind < min {
            return Ok((left, false));
        }
        if bind == CAST {
            self.skip(1);
            let ty = Box::new(self.type_name()?);
            return Ok((node(ExprKind::Cast { arg: boxed(left), ty }, loc), true));
        }
        let name = op(&self.next().text);
        let e = self.binary(left, name, loc, bind)?;
        if bind == COMPARE
            && self.peek().kind == Kind::Op
            && strength(&self.peek().text) == COMPARE
            && matches!(&*self.peek().text, "=" | "<" | ">" | "<=" | ">=" | "<>")
        {
            return Err(self.unexpected());
        }
        Ok((e, true))
    }

    /// The right side of an operator, which may be ANY or ALL of something.
    fn binary(&mut self, left: Expr, name: OpName, loc: Loc, bind: u8) -> Result<Expr> {
        if self.is_any(&["any", "some", "all"]) && self.is_op_at(1, "(") {
            let any = !self.is("all");
            self.skip(1);
            if self.subselect_ahead() {
                self.expect_op("(")?;
                let query = Box::new(self.select()?);
                self.expect_op(")")?;
                let kind = ExprKind::AnySelect { left: boxed(left), op: name, any, query };
                return Ok(node(kind, loc));
            }
            self.expect_op("(")?;
            let right = self.expr()?;
            self.expect_op(")")?;
            let kind = ExprKind::AnyArray { left: boxed(left), op: name, any, right: boxed(right) };
            return Ok(node(kind, loc));
        }
        let right = self.climb(bind + 1)?;
        let kind = ExprKind::Binary { op: name, left: boxed(left), right: boxed(right) };
        Ok(node(kind, loc))
    }

    fn infix_word(&mut self, left: Expr, min: u8) -> Result<(Expr, bool)> {
        let t = self.peek();
        let loc = t.start;
        let restricted = self.restricted;
        let e = match &*t.text {
            "and" if min <= AND && !restricted => {
                self.skip(1);
                let right = self.climb(AND + 1)?;
                match left.kind {
                    ExprKind::And(mut list) => {
                        list.push(right);
                        node(ExprKind::And(list), left.loc)
                    }
                    kind => {
                        let left = node(kind, left.loc);
                        node(ExprKind::And(vec![left, right]), loc)
                    }
                }
            }
            "or" if min <= OR && !restricted => {
                self.skip(1);
                let right = self.climb(OR + 1)?;
                match left.kind {
                    ExprKind::Or(mut list) => {
                        list.push(right);
                        node(ExprKind::Or(list), left.loc)
                    }
                    kind => {
                        let left = node(kind, left.loc);
                        node(ExprKind::Or(vec![left, right]), loc)
                    }
                }
            }
            "is" if min <= IS => {
                if restricted && !(self.is_at(1, "distinct") || self.is_at(2, "distinct")) {
                    return Ok((left, false));
                }
                self.is_something(left)?
            }
            "isnull" | "notnull" if min <= IS && !restricted => {
                let negated = t.text == "notnull";
                self.skip(1);
                node(ExprKind::Is { arg: boxed(left), test: IsTest::Null, negated }, loc)
            }
            // SUBSTRING(a SIMILAR b ESCAPE c) is no condition
            "similar" if !self.is_at(1, "to") => return Ok((left, false)),
            "between" | "in" | "like" | "ilike" | "similar" if min <= LIKE && !restricted => {
                self.range(left, false)?
            }
            "not" if min <= LIKE && !restricted => {
                let t = self.peek_at(1);
                if t.kind != Kind::Word
                    || !matches!(&*t.text, "between" | "in" | "like" | "ilike" | "similar")
                {
                    return Ok((left, false));
                }
                self.skip(1);
                self.range(left, true)?
            }
            "overlaps" if min <= LIKE && !restricted => {
                self.skip(1);
                let right = self.climb(LIKE + 1)?;
                self.overlaps(left, right, loc)?
            }
            "collate" if min <= COLLATE && !restricted => {
                self.skip(1);
                let name = self.collation_name()?;
                node(ExprKind::Collate { arg: boxed(left), name }, loc)
            }
            "at" if min <= 12 && !restricted && self.is_at(1, "time") => {
                self.skip(1);
                self.expect_all(&["time", "zone"])?;
                let zone = self.climb(13)?;
                self.sql_call("timezone", vec![zone, left], loc)
            }
            "at" if min <= 12 && !restricted && self.is_at(1, "local") => {
                self.skip(2);
                self.sql_call("timezone", vec![left], loc)
            }
            "operator" if min <= OPERATOR && self.is_op_at(1, "(") => {
                let name = self.qualified_operator()?;
                self.binary(left, name, loc, OPERATOR)?
            }
            _ => return Ok((left, false)),
        };
        Ok((e, true))
    }

    /// A collation's name; `default` may stand in it though it is reserved.
    pub fn collation_name(&mut self) -> Result<Vec<String>> {
        let mut name = vec![self.label()?];
        while self.accept_op(".") {
            name.push(self.label()?);
        }
        Ok(name)
    }

    fn is_something(&mut self, left: Expr) -> Result<Expr> {
        let loc = self.loc();
        self.expect("is")?;
        let negated = self.accept("not");
        if self.accept("distinct") {
            self.expect("from")?;
            let right = self.climb(IS + 1)?;
            let kind = ExprKind::IsDistinct { left: boxed(left), right: boxed(right), negated };
            return Ok(node(kind, loc));
        }
        let word = if self.peek().kind == Kind::Word {
            self.next().text.into_owned()
        } else {
            return Err(self.unexpected());
        };
        let form = FORMS.into_iter().find(|f| f.eq_ignore_ascii_case(&word));
        let test = match word.as_str() {
            "null" => IsTest::Null,
            "true" => IsTest::True,
            "false" => IsTest::False,
            "unknown" => IsTest::Unknown,
            "document" => IsTest::Document,
            "normalized" => IsTest::Normalized(""),
            _ if form.is_some() && self.accept("normalized") => {
                IsTest::Normalized(form.unwrap_or_default())
            }
            "json" => {
                let kind = if self.accept("object") {
                    JsonKind::Object
                } else if self.accept("array") {
                    JsonKind::Array
                } else if self.accept("scalar") {
                    JsonKind::Scalar
                } else {
                    self.accept("value");
                    JsonKind::Value
                };
                let unique_keys = self.accept_all(&["with", "unique"]);
                if unique_keys || self.accept_all(&["without", "unique"]) {
                    self.accept("keys");
                }
                IsTest::Json { kind, unique_keys }
            }
            _ => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        };
        Ok(node(ExprKind::Is { arg: boxed(left), test, negated }, loc))
    }

    /// BETWEEN, IN, LIKE, ILIKE, SIMILAR TO.
    fn range(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        let loc = if negated { self.tokens[self.at - 1].start } else { self.loc() };
        let arg = boxed(left);
        match &*self.next().text {
            "between" => {
                let symmetric = self.accept("symmetric");
                if !symmetric {
                    self.accept("asymmetric");
                }
                let low = boxed(self.climb(LIKE + 1)?);
                self.expect("and")?;
                let high = boxed(self.climb(LIKE + 1)?);
                Ok(node(ExprKind::Between { arg, low, high, negated, symmetric }, loc))
            }
            "in" => {
                if self.subselect_ahead() {
                    self.expect_op("(")?;
                    let query = Box::new(self.select()?);
                    self.expect_op(")")?;
                    return Ok(node(ExprKind::InSelect { arg, query, negated }, loc));
                }
                let list = self.paren_list(Self::expr)?;
                Ok(node(ExprKind::In { arg, list, negated }, loc))
            }
            word => {
                let kind = match word {
                    "like" => LikeKind::Like,
                    "ilike" => LikeKind::ILike,
                    _ => {
                        self.expect("to")?;
                        LikeKind::Similar
                    }
                };
                if kind != LikeKind::Similar && self.is_any(&["any", "all", "some"]) {
                    let name = match (kind, negated) {
                        (LikeKind::Like, false) => "~~",
                        (LikeKind::Like, true) => "!~~",
                        (_, false) => "~~*",
                        (_, true) => "!~~*",
                    };
                    return self.binary(*arg, op(name), loc, LIKE);
                }
                let pattern = boxed(self.climb(LIKE + 1)?);
                let escape =
                    if self.accept("escape") { Some(boxed(self.climb(LIKE + 1)?)) } else { None };
                Ok(node(ExprKind::Like { kind, arg, pattern, escape, negated }, loc))
            }
        }
    }

    fn overlaps(&mut self, left: Expr, right: Expr, loc: Loc) -> Result<Expr> {
        let mut args = Vec::new();
        for (side, name) in [(left, "left"), (right, "right")] {
            match side.kind {
                ExprKind::Row { fields, .. } if fields.len() == 2 => args.extend(fields),
                _ => {
                    let e = base::err!(
                        SYNTAX_ERROR,
                        "wrong number of parameters on {name} side of OVERLAPS expression"
                    );
                    return self.error_here(e, loc);
                }
            }
        }
        Ok(self.sql_call("overlaps", args, loc))
    }

    /// Subscripts and fields after a primary.
    pub fn indirection(&mut self, mut e: Expr) -> Result<Expr> {
        loop {
            let loc = e.loc;
            if self.is_op("[") || self.is_op(".") {
                self.grow()?;
            }
            if self.is_op("[") {
                let mut indexes = Vec::new();
                while self.is_op("[") {
                    indexes.push(self.subscript()?);
                }
                e = node(ExprKind::Subscript { arg: boxed(e), indexes }, loc);
            } else if self.is_op(".") {
                self.skip(1);
                if self.accept_op("*") {
                    return Ok(node(ExprKind::FieldStar(boxed(e)), loc));
                }
                let name = self.label()?;
                e = node(ExprKind::Field { arg: boxed(e), name }, loc);
            } else {
                return Ok(e);
            }
        }
    }

    /// `[i]`, `[a:b]`
    pub fn subscript(&mut self) -> Result<SubscriptIndex> {
        self.expect_op("[")?;
        let lower = if self.is_op(":") { None } else { Some(self.expr()?) };
        if self.accept_op(":") {
            let upper = if self.is_op("]") { None } else { Some(self.expr()?) };
            self.expect_op("]")?;
            return Ok(SubscriptIndex { lower, upper, slice: true });
        }
        self.expect_op("]")?;
        Ok(SubscriptIndex { lower: None, upper: lower, slice: false })
    }
}
