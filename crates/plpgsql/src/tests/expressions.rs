//! The mock's expressions: numbers, strings, names, `+ - * / % || = <> < > <= >=`, AND, OR, NOT, IN, IS NULL, ARRAY[…], parentheses.

use crate::lex::{Tok, Token, tokens};
use base::{Error, Result, SqlState, bail, err};
use std::sync::Arc;
use types::{ArrayValue, Datum, oids};

/// What names are asked of.
pub(super) type Lookup<'a> = &'a dyn Fn(&[String]) -> Result<Option<Datum>>;

pub(super) struct Reader<'a> {
    tokens: Vec<Token>,
    at: usize,
    lookup: Lookup<'a>,
    /// Only read, not evaluated.
    dry: bool,
    pub depth: u32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &str, lookup: Lookup<'a>, dry: bool) -> Reader<'a> {
        Reader { tokens: tokens(text), at: 0, lookup, dry, depth: 0 }
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn accept(&mut self, what: &str) -> bool {
        let there = self.peek().is(what) || self.peek().is_word(what);
        self.at += usize::from(there);
        there
    }

    pub(super) fn syntax(&self) -> Error {
        let token = self.peek();
        let mut e = base::SqlError::new(SqlState::SYNTAX_ERROR, "syntax error");
        e.message = match token.kind {
            Tok::End => "syntax error at end of input".to_owned(),
            _ => format!("syntax error at or near \"{}\"", token.text),
        };
        e.at(token.start as u32 + 1).into()
    }

    fn expect(&mut self, what: &str) -> Result<()> {
        if self.accept(what) { Ok(()) } else { Err(self.syntax()) }
    }

    /// All of the text: values with commas between.
    pub(super) fn all(&mut self) -> Result<Vec<Datum>> {
        let mut all = vec![self.expression(0)?];
        while self.accept(",") {
            all.push(self.expression(0)?);
        }
        if self.peek().kind == Tok::End { Ok(all) } else { Err(self.syntax()) }
    }

    fn expression(&mut self, level: u8) -> Result<Datum> {
        self.depth += 1;
        if self.depth > 300 {
            bail!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded");
        }
        let mut left = self.operand()?;
        loop {
            let sign = self.peek().text.clone();
            let strength = match sign.as_str() {
                "or" => 1,
                "and" => 2,
                "=" | "<>" | "<" | ">" | "<=" | ">=" | "in" | "is" => 3,
                "||" => 4,
                "+" | "-" => 5,
                "*" | "/" | "%" => 6,
                _ => 0,
            };
            if strength <= level || matches!(self.peek().kind, Tok::Str | Tok::Quoted) {
                self.depth -= 1;
                return Ok(left);
            }
            self.at += 1;
            left = match sign.as_str() {
                "in" => {
                    self.expect("(")?;
                    let mut found = false;
                    loop {
                        let one = self.expression(0)?;
                        found |= self.binary("=", left.clone(), one)? == Some(true);
                        if !self.accept(",") {
                            break;
                        }
                    }
                    self.expect(")")?;
                    Datum::Bool(found)
                }
                "is" => {
                    let not = self.accept("not");
                    self.expect("null")?;
                    Datum::Bool(left.is_null() != not)
                }
                _ => {
                    let right = self.expression(strength)?;
                    self.apply(&sign, left, right)?
                }
            };
        }
    }

    fn binary(&self, sign: &str, left: Datum, right: Datum) -> Result<Option<bool>> {
        match self.apply(sign, left, right)? {
            Datum::Bool(b) => Ok(Some(b)),
            _ => Ok(None),
        }
    }

    fn apply(&self, sign: &str, left: Datum, right: Datum) -> Result<Datum> {
        if self.dry || left.is_null() || right.is_null() {
            return Ok(Datum::Null);
        }
        Ok(match (left, right, sign) {
            (Datum::Int4(_), Datum::Int4(0), "/" | "%") => {
                bail!(DIVISION_BY_ZERO, "division by zero")
            }
            (Datum::Int4(a), Datum::Int4(b), _) => match sign {
                "+" => Datum::Int4(a.wrapping_add(b)),
                "-" => Datum::Int4(a.wrapping_sub(b)),
                "*" => Datum::Int4(a.wrapping_mul(b)),
                "/" => Datum::Int4(a.wrapping_div(b)),
                "%" => Datum::Int4(a.wrapping_rem(b)),
                "=" => Datum::Bool(a == b),
                "<>" => Datum::Bool(a != b),
                "<" => Datum::Bool(a < b),
                ">" => Datum::Bool(a > b),
                "<=" => Datum::Bool(a <= b),
                ">=" => Datum::Bool(a >= b),
                "||" => Datum::text(format!("{a}{b}")),
                _ => bail!(UNDEFINED_FUNCTION, "no such operator"),
            },
            (Datum::Bool(a), Datum::Bool(b), "and") => Datum::Bool(a && b),
            (Datum::Bool(a), Datum::Bool(b), "or") => Datum::Bool(a || b),
            (a, b, "||") => Datum::text(format!("{}{}", shown(&a), shown(&b))),
            (a, b, "=") => Datum::Bool(shown(&a) == shown(&b)),
            (a, b, "<>") => Datum::Bool(shown(&a) != shown(&b)),
            _ => bail!(UNDEFINED_FUNCTION, "operator does not exist"),
        })
    }

    fn operand(&mut self) -> Result<Datum> {
        let token = self.peek().clone();
        match token.kind {
            Tok::Int => {
                self.at += 1;
                token
                    .text
                    .parse()
                    .map(Datum::Int4)
                    .map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))
            }
            Tok::Num => {
                self.at += 1;
                Ok(Datum::text(&token.text))
            }
            Tok::Str => {
                self.at += 1;
                Ok(Datum::text(&token.text))
            }
            Tok::Op if token.text == "(" => {
                self.at += 1;
                let value = self.expression(0)?;
                self.expect(")")?;
                Ok(value)
            }
            Tok::Op if token.text == "-" => {
                self.at += 1;
                match self.expression(6)? {
                    Datum::Int4(n) => Ok(Datum::Int4(n.wrapping_neg())),
                    _ => Ok(Datum::Null),
                }
            }
            Tok::Word if token.text == "not" => {
                self.at += 1;
                match self.expression(2)? {
                    Datum::Bool(b) => Ok(Datum::Bool(!b)),
                    _ => Ok(Datum::Null),
                }
            }
            Tok::Word | Tok::Quoted => self.name(),
            _ => Err(self.syntax()),
        }
    }

    fn name(&mut self) -> Result<Datum> {
        let token = self.peek().clone();
        self.at += 1;
        if token.kind == Tok::Word {
            match token.text.as_str() {
                "true" => return Ok(Datum::Bool(true)),
                "false" => return Ok(Datum::Bool(false)),
                "null" => return Ok(Datum::Null),
                "array" => return self.array(),
                "from" | "where" | "then" | "loop" | "end" | "select" => {
                    self.at -= 1;
                    return Err(self.syntax());
                }
                _ => {}
            }
        }
        let mut names = vec![token.text];
        while self.peek().is(".") {
            self.at += 1;
            names.push(self.peek().text.clone());
            self.at += 1;
        }
        let mut value = if self.dry {
            Datum::Null
        } else {
            match (self.lookup)(&names)? {
                Some(value) => value,
                None => bail!(UNDEFINED_COLUMN, "column \"{}\" does not exist", names.join(".")),
            }
        };
        while self.accept("[") {
            let at = self.expression(0)?;
            self.expect("]")?;
            value = match (value, at) {
                (Datum::Array(a), Datum::Int4(n)) => types::array::subscript(&a, &[n]),
                _ => Datum::Null,
            };
        }
        Ok(value)
    }

    fn array(&mut self) -> Result<Datum> {
        self.expect("[")?;
        let mut elements = Vec::new();
        while !self.accept("]") {
            elements.push(self.expression(0)?);
            if !self.accept(",") {
                self.expect("]")?;
                break;
            }
        }
        if let Some(Datum::Array(_)) = elements.first() {
            return types::array::construct_nested(oids::INT4, &elements);
        }
        Ok(Datum::Array(Arc::new(ArrayValue::one_dimension(oids::INT4, elements))))
    }
}

/// A value as text.
pub(super) fn shown(value: &Datum) -> String {
    match value {
        Datum::Null => String::new(),
        Datum::Int4(n) => n.to_string(),
        Datum::Int8(n) => n.to_string(),
        Datum::Oid(n) => n.0.to_string(),
        Datum::Bool(b) => if *b { "t" } else { "f" }.to_owned(),
        Datum::Text(t) => t.to_string(),
        Datum::Array(a) => {
            let all: Vec<String> = a.elements.iter().map(shown).collect();
            format!("{{{}}}", all.join(","))
        }
        Datum::Record(r) => {
            let all: Vec<String> = r.fields.iter().map(shown).collect();
            format!("({})", all.join(","))
        }
        _ => "?".to_owned(),
    }
}
