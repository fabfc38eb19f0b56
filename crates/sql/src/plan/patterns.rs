//! How many rows a condition on a text's pattern lets through: LIKE, ILIKE, regular expressions, `starts_with`.
//!
//! # Invariants
//! As PostgreSQL's `patternsel`: common values are asked one by one, and the histogram's bounds are a sample of the others, which is believed
//! the more the more of them there are. What the pattern itself makes likely fills in.

use super::index::{after_prefix, like_prefix};
use super::rels::JoinSpace;
use super::selectivity::{DEFAULT_EQ, clamp};
use base::Oid;
use engine::catalog::model::ColumnStatistics;
use expr::eval::EvalContext;
use expr::tree::{CallForm, Constant};
use expr::{Expr, TypeRef};
use std::cell::RefCell;
use types::{Datum, oids};

/// Fewer bounds are no sample.
const FEW_BOUNDS: usize = 10;
/// So many are sample enough.
const MANY_BOUNDS: usize = 100;
/// What the pattern's parts let through: a given character, any, one of some, and what may be of any length.
const GIVEN: f64 = 0.2;
const ANY: f64 = 0.9;
const ONE_OF: f64 = 0.25;
const ANY_NUMBER: f64 = 2.0;
const ANYTHING: f64 = 5.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Like,
    /// In any case of letters.
    AnyCase,
    Regex,
    Prefix,
}

/// What pattern a function asks for, and whether for those that have it not.
fn kind_of(function: u32) -> Option<(Kind, bool)> {
    let symbol = types::facts::proc(Oid(function))?.symbol;
    Some(match symbol {
        "text_starts_with" => (Kind::Prefix, false),
        "textlike" | "namelike" => (Kind::Like, false),
        "textnlike" | "namenlike" => (Kind::Like, true),
        "texticlike" | "nameiclike" => (Kind::AnyCase, false),
        "texticnlike" | "nameicnlike" => (Kind::AnyCase, true),
        "textregexeq" | "nameregexeq" | "texticregexeq" | "nameicregexeq" => (Kind::Regex, false),
        "textregexne" | "nameregexne" | "texticregexne" | "nameicregexne" => (Kind::Regex, true),
        _ => return None,
    })
}

/// What the part of a LIKE pattern behind its fixed beginning makes likely.
fn of_like(rest: &str) -> f64 {
    let mut chars = rest.chars().skip_while(|c| matches!(c, '%' | '_'));
    let mut sel = 1.0;
    while let Some(c) = chars.next() {
        sel *= match c {
            '%' => ANYTHING,
            '_' => ANY,
            '\\' => chars.next().map_or(1.0, |_| GIVEN),
            _ => GIVEN,
        };
    }
    f64::min(sel, 1.0)
}

/// What a regular expression makes likely, roughly: the sum of its alternatives.
fn of_regex(pattern: &str) -> f64 {
    let alternative = |part: &str| {
        let mut sel: f64 = 1.0;
        let mut chars = part.chars();
        while let Some(c) = chars.next() {
            sel *= match c {
                '^' | '$' | '(' | ')' | '?' => 1.0,
                '.' => ANY,
                '*' | '+' => ANY_NUMBER,
                '{' => {
                    chars.by_ref().find(|c| *c == '}');
                    ANY_NUMBER
                }
                '[' => {
                    chars.by_ref().skip(1).find(|c| *c == ']');
                    ONE_OF
                }
                '\\' => chars.next().map_or(1.0, |c| if c.is_alphabetic() { ANY } else { GIVEN }),
                _ => GIVEN,
            };
        }
        let open = !part.ends_with('$');
        (if open { sel * ANYTHING } else { sel }).min(1.0)
    };
    pattern.split('|').map(alternative).sum::<f64>().min(1.0)
}

impl JoinSpace<'_, '_> {
    /// Selectivity of a call that asks for a pattern; None: it is another one.
    pub(super) fn pattern(&self, function: u32, args: &[Expr]) -> Option<f64> {
        let (kind, negated) = kind_of(function)?;
        let [value, pattern] = args else { return None };
        let text = self.value_now(pattern);
        let (sel, null) = match text.as_deref() {
            Some(Datum::Null) => return Some(0.0),
            Some(known @ Datum::Text(text)) => {
                let stats = self.facts(value).and_then(|f| f.stats);
                let null = stats.as_ref().map_or(0.0, |s| f64::from(s.null_fraction));
                (self.matching(function, value, (known, text), kind, stats.as_deref()), null)
            }
            _ => (DEFAULT_EQ, 0.0),
        };
        Some(clamp(if negated { 1.0 - sel - null } else { sel }))
    }

    /// How many rows have the pattern.
    fn matching(
        &self,
        function: u32,
        value: &Expr,
        (pattern, text): (&Datum, &str),
        kind: Kind,
        stats: Option<&ColumnStatistics>,
    ) -> f64 {
        let (prefix, whole) = match kind {
            Kind::Like => like_prefix(text),
            Kind::Prefix => (text.to_owned(), false),
            Kind::AnyCase | Kind::Regex => (String::new(), false),
        };
        if whole {
            return self.equal_value(value, Some(&Datum::text(prefix)));
        }
        let Some(stats) = stats else { return self.by_pattern(kind, value, &prefix, text) };
        let (ty, of) = (value.ty(), TypeRef::of(oids::TEXT));
        let call = Expr::Call {
            function,
            args: vec![
                Expr::Slot { index: 0, ty },
                Expr::Const(Constant { ty: of, value: pattern.clone() }),
            ],
            arg_types: vec![ty, of],
            ty: TypeRef::of(oids::BOOL),
            operator: 0,
            form: CallForm::Function,
        };
        let Ok(code) = expr::code::compile(&call) else { return DEFAULT_EQ };
        let negated = kind_of(function).is_some_and(|k| k.1);
        let none = RefCell::new(Vec::new());
        let cx = EvalContext::new(self.g.env, &none);
        let fits = |v: &Datum| {
            code.is_true(std::slice::from_ref(v), &cx).is_ok_and(|holds| holds != negated)
        };
        let inner = stats.histogram.get(1..stats.histogram.len().saturating_sub(1)).unwrap_or(&[]);
        let mut others = match stats.histogram.len() {
            n if n < FEW_BOUNDS => self.by_pattern(kind, value, &prefix, text),
            n => {
                let sample = inner.iter().filter(|v| fits(v)).count() as f64 / inner.len() as f64;
                let weight = n.min(MANY_BOUNDS) as f64 / MANY_BOUNDS as f64;
                let guess = match n {
                    MANY_BOUNDS.. => 0.0,
                    _ => self.by_pattern(kind, value, &prefix, text),
                };
                sample * weight + guess * (1.0 - weight)
            }
        };
        // Never quite nothing, never quite everything.
        others = others.clamp(0.0001, 0.9999);
        let (mut common, mut met) = (0.0, 0.0);
        for (v, frequency) in &stats.common {
            common += f64::from(*frequency);
            met += if fits(v) { f64::from(*frequency) } else { 0.0 };
        }
        clamp(others * clamp(1.0 - common - f64::from(stats.null_fraction)) + met)
    }

    /// By the pattern alone, and where what begins with its fixed part lies in the histogram.
    fn by_pattern(&self, kind: Kind, value: &Expr, prefix: &str, text: &str) -> f64 {
        let rest = match kind {
            Kind::Prefix => 1.0,
            Kind::Regex => of_regex(text),
            Kind::Like | Kind::AnyCase => of_like(text.get(prefix.len()..).unwrap_or(text)),
        };
        if prefix.is_empty() {
            return rest;
        }
        let known = self.facts(value).and_then(|f| f.stats);
        if known.as_ref().is_none_or(|s| s.histogram.len() < 2) {
            return DEFAULT_EQ * rest;
        }
        let first = Datum::text(prefix);
        let from = self.inequality(value, Some(&first), false, true);
        let to = after_prefix(prefix)
            .map_or(1.0, |end| self.inequality(value, Some(&Datum::text(end)), true, false));
        let null = known.map_or(0.0, |s| f64::from(s.null_fraction));
        (from + to - 1.0 + null).max(self.equal_value(value, Some(&first))) * rest
    }
}
