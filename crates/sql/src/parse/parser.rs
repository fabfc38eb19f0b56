//! The parser's hands: tokens, names, lists, types.

use super::ast::{Expr, Loc, NO_LOC, ObjectName, TypeName};
use super::keywords::{Category, bare_label};
use super::lexer::{Kind, Remark, Token, tokens};
use super::{Dialect, error_at};
use base::{Error, Result, err};
use std::collections::HashMap;

/// How deep a statement may nest.
const MAX_DEPTH: u32 = 200;

/// How many operators high a tree of expressions, joins and set operations may be: what goes through one, and lets go of it, is as deep on
/// the stack.
const MAX_HEIGHT: u32 = 2500;

/// A join or a set operation is planned and run, which takes as much stack as so many operators.
pub(super) const OF_A_NODE: u32 = 5;

/// The state of parsing one source string.
pub(super) struct Parser<'a> {
    pub source: &'a str,
    pub tokens: Vec<Token<'a>>,
    pub at: usize,
    pub depth: u32,
    /// Of the tree in hand, and those that will be parts of it.
    pub height: u32,
    pub max_param: u32,
    /// Parsing a restricted expression (`b_expr`): no AND, OR, NOT, IN, LIKE, IS NULL, COLLATE.
    pub restricted: bool,
    /// Parentheses known to hold a sub-select, or not to (bounds backtracking).
    pub selects: HashMap<usize, bool>,
}

impl<'a> Parser<'a> {
    /// What is to be said of tokens goes to `remarks`.
    pub fn new(
        source: &'a str,
        dialect: Dialect,
        remarks: &'a mut Vec<Remark>,
    ) -> Result<Parser<'a>> {
        Ok(Parser {
            source,
            tokens: tokens(source, dialect, remarks)?,
            at: 0,
            depth: 0,
            height: 0,
            max_param: 0,
            restricted: false,
            selects: HashMap::new(),
        })
    }

    pub fn peek(&self) -> &Token<'a> {
        self.peek_at(0)
    }
    pub fn peek_at(&self, ahead: usize) -> &Token<'a> {
        let i = (self.at + ahead).min(self.tokens.len() - 1);
        &self.tokens[i]
    }
    pub fn next(&mut self) -> Token<'a> {
        let t = self.peek().clone();
        self.skip(1);
        t
    }
    pub fn skip(&mut self, n: usize) {
        self.at = (self.at + n).min(self.tokens.len() - 1);
    }
    pub fn loc(&self) -> Loc {
        self.peek().start
    }
    /// The end of the token before this one.
    pub fn last_end(&self) -> Loc {
        if self.at == 0 { 0 } else { self.tokens[self.at - 1].end }
    }

    /// Is the next token this keyword (in lower case)?
    pub fn is(&self, word: &str) -> bool {
        self.is_at(0, word)
    }
    pub fn is_at(&self, ahead: usize, word: &str) -> bool {
        let t = self.peek_at(ahead);
        t.kind == Kind::Word && t.text == word
    }
    pub fn is_op(&self, op: &str) -> bool {
        self.is_op_at(0, op)
    }
    pub fn is_op_at(&self, ahead: usize, op: &str) -> bool {
        let t = self.peek_at(ahead);
        t.kind == Kind::Op && t.text == op
    }
    pub fn is_any(&self, words: &[&str]) -> bool {
        let t = self.peek();
        t.kind == Kind::Word && words.contains(&&*t.text)
    }
    pub fn at_end(&self) -> bool {
        self.peek().kind == Kind::End || self.is_op(";")
    }
    pub fn accept(&mut self, word: &str) -> bool {
        let yes = self.is(word);
        if yes {
            self.skip(1);
        }
        yes
    }
    /// Accepts all the words in a row, or none.
    pub fn accept_all(&mut self, words: &[&str]) -> bool {
        let yes = words.iter().enumerate().all(|(i, w)| self.is_at(i, w));
        if yes {
            self.skip(words.len());
        }
        yes
    }
    pub fn accept_op(&mut self, op: &str) -> bool {
        let yes = self.is_op(op);
        if yes {
            self.skip(1);
        }
        yes
    }
    pub fn expect(&mut self, word: &str) -> Result<()> {
        if self.accept(word) { Ok(()) } else { Err(self.unexpected()) }
    }
    pub fn expect_all(&mut self, words: &[&str]) -> Result<()> {
        words.iter().try_for_each(|w| self.expect(w))
    }
    pub fn expect_op(&mut self, op: &str) -> Result<()> {
        if self.accept_op(op) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// PostgreSQL's syntax error at the next token.
    pub fn unexpected(&self) -> Error {
        self.improper("syntax error")
    }
    /// Says what is wrong with what ends before the next token, which PostgreSQL has read by then.
    pub fn improper(&self, what: &str) -> Error {
        let t = self.peek();
        let e = if t.kind == Kind::End {
            err!(SYNTAX_ERROR, "{what} at end of input")
        } else {
            let near = self.source.get(t.start as usize..t.end as usize).unwrap_or("");
            err!(SYNTAX_ERROR, "{what} at or near \"{near}\"")
        };
        error_at(self.source, e, t.start)
    }
    pub fn error_here<T>(&self, e: Error, loc: Loc) -> Result<T> {
        Err(error_at(self.source, e, loc))
    }

    /// Makes a tree whose height counts in that of the one around it.
    pub fn within<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let around = std::mem::take(&mut self.height);
        let made = f(self);
        self.height = around.max(self.height + 1);
        made
    }

    /// The tree in hand has become part of another.
    pub fn grow(&mut self) -> Result<()> {
        self.grow_by(1)
    }

    /// As [`Self::grow`], of what takes as much stack as so many operators.
    pub fn grow_by(&mut self, operators: u32) -> Result<()> {
        self.height += operators;
        if self.height > MAX_HEIGHT {
            return Err(err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        Ok(())
    }

    /// Runs `f` one level deeper.
    pub fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            let e = base::SqlError::new(
                base::SqlState::STATEMENT_TOO_COMPLEX,
                "stack depth limit exceeded",
            )
            .hint(
                "Increase the configuration parameter \"max_stack_depth\" (currently 2048kB), after \
                 ensuring the platform's stack depth limit is adequate.",
            );
            return Err(e.into());
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// One or more of `f`, parted by commas.
    pub fn list<T>(&mut self, mut f: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut out = vec![f(self)?];
        while self.accept_op(",") {
            out.push(f(self)?);
        }
        Ok(out)
    }
    /// `( list )`
    pub fn paren_list<T>(&mut self, f: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_op("(")?;
        let out = self.list(f)?;
        self.expect_op(")")?;
        Ok(out)
    }

    fn name_where(&mut self, ok: impl Fn(Category) -> bool) -> Result<String> {
        let t = self.peek();
        let fine = match t.kind {
            Kind::Quoted => true,
            Kind::Word => ok(t.category),
            _ => false,
        };
        if !fine {
            return Err(self.unexpected());
        }
        Ok(self.next().text.into_owned())
    }
    /// A column's, table's or schema's name.
    pub fn name(&mut self) -> Result<String> {
        self.name_where(|c| matches!(c, Category::None | Category::ColumnName))
    }
    /// Any word, keywords included (after AS, after a dot).
    pub fn label(&mut self) -> Result<String> {
        self.name_where(|_| true)
    }
    /// A word that is not reserved (types, functions, settings).
    pub fn type_or_function_name(&mut self) -> Result<String> {
        self.name_where(|c| matches!(c, Category::None | Category::TypeOrFunction))
    }
    pub fn non_reserved(&mut self) -> Result<String> {
        self.name_where(|c| c != Category::Reserved)
    }
    pub fn is_name(&self) -> bool {
        self.is_name_at(0)
    }
    pub fn is_name_at(&self, ahead: usize) -> bool {
        let t = self.peek_at(ahead);
        match t.kind {
            Kind::Quoted => true,
            Kind::Word => matches!(t.category, Category::None | Category::ColumnName),
            _ => false,
        }
    }
    /// May the next token be a column label without AS?
    pub fn is_bare_label(&self) -> bool {
        let t = self.peek();
        match t.kind {
            Kind::Quoted => true,
            // FORMAT JSON goes with the value, as in JSON_ARRAY(SELECT … FORMAT JSON).
            Kind::Word if self.is("format") && self.is_at(1, "json") => false,
            Kind::Word => bare_label(&t.text),
            _ => false,
        }
    }
    /// `a.b.c` as a list.
    pub fn dotted(&mut self) -> Result<Vec<String>> {
        let mut out = vec![self.non_reserved()?];
        while self.accept_op(".") {
            out.push(self.label()?);
        }
        Ok(out)
    }
    /// `[catalog.][schema.]name` of a relation.
    pub fn object_name(&mut self) -> Result<ObjectName> {
        let loc = self.loc();
        let mut parts = vec![self.name()?];
        while self.accept_op(".") {
            parts.push(self.label()?);
        }
        self.object_name_of(parts, loc)
    }
    pub fn object_name_of(&self, mut parts: Vec<String>, loc: Loc) -> Result<ObjectName> {
        if parts.len() > 3 {
            let e = err!(
                SYNTAX_ERROR,
                "improper qualified name (too many dotted names): {}",
                parts.join(".")
            );
            return self.error_here(e, loc);
        }
        let name = parts.pop().unwrap_or_default();
        let schema = parts.pop();
        let catalog = parts.pop();
        Ok(ObjectName { catalog, schema, name, loc })
    }
    /// A name of anything, where functions and types may stand too.
    pub fn any_object_name(&mut self) -> Result<ObjectName> {
        let loc = self.loc();
        let parts = self.dotted()?;
        self.object_name_of(parts, loc)
    }
    pub fn string(&mut self) -> Result<String> {
        if self.peek().kind != Kind::String {
            return Err(self.unexpected());
        }
        Ok(self.next().text.into_owned())
    }
    pub fn is_string(&self) -> bool {
        self.peek().kind == Kind::String
    }
    /// An integer constant that fits 32 bits.
    pub fn integer(&mut self) -> Result<i32> {
        let n = self.peek().text.parse::<i32>();
        match (self.peek().kind, n) {
            (Kind::Number, Ok(n)) => {
                self.skip(1);
                Ok(n)
            }
            _ => Err(self.unexpected()),
        }
    }
    /// A whole number with sign.
    pub fn signed_integer(&mut self) -> Result<i64> {
        let negative = if self.accept_op("-") {
            true
        } else {
            self.accept_op("+");
            false
        };
        let t = self.peek();
        if t.kind != Kind::Number {
            return Err(self.unexpected());
        }
        let text = if negative { format!("-{}", t.text) } else { t.text.to_string() };
        match text.parse() {
            Ok(n) => {
                self.skip(1);
                Ok(n)
            }
            Err(_) if text.contains(['.', 'e', 'E']) => Err(self.unexpected()),
            Err(_) => self.error_here(
                err!(
                    NUMERIC_VALUE_OUT_OF_RANGE,
                    "value \"{text}\" is out of range for type bigint"
                ),
                self.loc(),
            ),
        }
    }

    /// A type.
    pub fn type_name(&mut self) -> Result<TypeName> {
        let loc = self.loc();
        let setof = self.accept("setof");
        let mut ty = self.simple_type()?;
        ty.setof = setof;
        ty.loc = loc;
        if self.accept("array") {
            ty.array_dims = 1;
            if self.accept_op("[") {
                self.integer()?;
                self.expect_op("]")?;
            }
            return Ok(ty);
        }
        while self.is_op("[") {
            self.skip(1);
            if self.peek().kind == Kind::Number {
                self.integer()?;
            }
            self.expect_op("]")?;
            ty.array_dims += 1;
        }
        Ok(ty)
    }

    fn builtin(&self, name: &str, modifiers: Vec<Expr>) -> TypeName {
        TypeName {
            names: vec!["pg_catalog".into(), name.into()],
            modifiers,
            fixed_typmod: None,
            array_dims: 0,
            setof: false,
            percent_type: false,
            loc: NO_LOC,
        }
    }

    fn modifiers(&mut self) -> Result<Vec<Expr>> {
        if self.is_op("(") { self.paren_list(Self::expr) } else { Ok(Vec::new()) }
    }

    /// A type without SETOF and array bounds.
    pub fn simple_type(&mut self) -> Result<TypeName> {
        let t = self.peek();
        if t.kind == Kind::Word {
            let word = t.text.clone();
            if let Some(ty) = self.sql_type(&word)? {
                return Ok(ty);
            }
        }
        let loc = self.loc();
        let mut names = vec![self.type_or_function_name()?];
        while self.accept_op(".") {
            names.push(self.label()?);
        }
        let percent_type = self.is_op("%") && self.is_at(1, "type");
        if percent_type {
            self.skip(2);
        }
        let modifiers = self.modifiers()?;
        Ok(TypeName {
            names,
            modifiers,
            fixed_typmod: None,
            array_dims: 0,
            setof: false,
            percent_type,
            loc,
        })
    }

    /// Types that SQL spells in its own ways.
    fn sql_type(&mut self, word: &str) -> Result<Option<TypeName>> {
        let plain = match word {
            "int" | "integer" => "int4",
            "smallint" => "int2",
            "bigint" => "int8",
            "real" => "float4",
            "boolean" => "bool",
            "json" if !self.is_op_at(1, ".") => "json",
            "double" if self.is_at(1, "precision") => {
                self.skip(1);
                "float8"
            }
            "float" => {
                self.skip(1);
                let loc = self.loc();
                let mut name = "float8";
                if self.accept_op("(") {
                    let n = self.integer()?;
                    self.expect_op(")")?;
                    if n < 1 {
                        let e = err!(
                            INVALID_PARAMETER_VALUE,
                            "precision for type float must be at least 1 bit"
                        );
                        return self.error_here(e, loc);
                    }
                    if n > 53 {
                        let e = err!(
                            INVALID_PARAMETER_VALUE,
                            "precision for type float must be less than 54 bits"
                        );
                        return self.error_here(e, loc);
                    }
                    name = if n <= 24 { "float4" } else { "float8" };
                }
                return Ok(Some(self.builtin(name, Vec::new())));
            }
            "decimal" | "dec" | "numeric" => {
                self.skip(1);
                let m = self.modifiers()?;
                return Ok(Some(self.builtin("numeric", m)));
            }
            "bit" => {
                self.skip(1);
                let name = if self.accept("varying") { "varbit" } else { "bit" };
                let m = self.modifiers()?;
                let mut ty = self.builtin(name, m);
                // bit without a length is bit(1)
                if name == "bit" && ty.modifiers.is_empty() {
                    ty.fixed_typmod = Some(1);
                }
                return Ok(Some(ty));
            }
            "character" | "char" | "nchar" | "national" | "varchar" => {
                self.skip(1);
                if word == "national" && !self.accept("character") {
                    self.expect("char")?;
                }
                let varying = word == "varchar" || self.accept("varying");
                let m = self.modifiers()?;
                let mut ty = self.builtin(if varying { "varchar" } else { "bpchar" }, m);
                // char without a length is char(1)
                if !varying && ty.modifiers.is_empty() {
                    ty.fixed_typmod = Some(5);
                }
                return Ok(Some(ty));
            }
            "time" | "timestamp" => {
                self.skip(1);
                let m = self.modifiers()?;
                let mut name = word.to_owned();
                if self.accept_all(&["with", "time", "zone"]) {
                    name.push_str("tz");
                } else {
                    self.accept_all(&["without", "time", "zone"]);
                }
                return Ok(Some(self.builtin(&name, m)));
            }
            "interval" => {
                self.skip(1);
                let mut m = self.modifiers()?;
                let mut ty = self.builtin("interval", Vec::new());
                if let Some(fields) = self.interval_fields()? {
                    if m.is_empty() && fields & (1 << 12) != 0 && self.is_op("(") {
                        m = self.modifiers()?;
                    }
                    let precision = match m.first().map(|e| &e.kind) {
                        Some(super::ast::ExprKind::Number(n)) => n.parse().unwrap_or(6),
                        _ => 0xffff,
                    };
                    ty.fixed_typmod = Some((fields << 16) | precision);
                } else {
                    ty.modifiers = m;
                }
                return Ok(Some(ty));
            }
            _ => return Ok(None),
        };
        self.skip(1);
        Ok(Some(self.builtin(plain, Vec::new())))
    }

    /// `DAY TO SECOND` and the like, as PostgreSQL's mask.
    pub fn interval_fields(&mut self) -> Result<Option<i32>> {
        const FIELDS: [(&str, i32); 6] =
            [("year", 2), ("month", 1), ("day", 3), ("hour", 10), ("minute", 11), ("second", 12)];
        let find = |p: &Self| {
            let t = p.peek();
            if t.kind != Kind::Word {
                return None;
            }
            FIELDS.iter().position(|(n, _)| *n == t.text)
        };
        let Some(from) = find(self) else { return Ok(None) };
        self.skip(1);
        let mut to = from;
        if self.is("to") {
            self.skip(1);
            to = match find(self) {
                Some(t) if t > from && (from != 0 || t == 1) && (from == 0 || from >= 2) => t,
                _ => return Err(self.unexpected()),
            };
            self.skip(1);
        }
        Ok(Some(FIELDS[from..=to].iter().map(|(_, bit)| 1 << bit).sum()))
    }
}
