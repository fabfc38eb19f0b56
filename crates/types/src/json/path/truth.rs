//! Whether a path's predicates hold.

use super::eval::{Fault, Outcome, Walk};
use super::value::Value;
use super::{Comparison, Node, Start, functions};
use crate::json::stored::View;
use std::cmp::Ordering;

/// What a predicate is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub(super) fn holds(self) -> bool {
        self == Truth::True
    }

    /// As json: what is unknown is null.
    pub(super) fn value<'a>(self) -> Value<'a> {
        match self {
            Truth::Unknown => Value::null(),
            truth => Value::boolean(truth.holds()),
        }
    }
}

fn not(truth: Truth) -> Truth {
    match truth {
        Truth::True => Truth::False,
        Truth::False => Truth::True,
        Truth::Unknown => Truth::Unknown,
    }
}

fn truth(b: bool) -> Truth {
    if b { Truth::True } else { Truth::False }
}

impl<'a> Walk<'a> {
    /// What comes out, None for a soft error.
    fn quietly<T>(&mut self, go: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<Option<T>> {
        let before = std::mem::replace(&mut self.silent, true);
        let outcome = go(self);
        self.silent = before;
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Fault::Soft(_)) => Ok(None),
            Err(hard) => Err(hard),
        }
    }

    pub(super) fn truth(&mut self, node: &Node) -> Outcome<Truth> {
        self.deeper(|this| this.truth_within(node))
    }

    fn truth_within(&mut self, node: &Node) -> Outcome<Truth> {
        Ok(match node {
            Node::And(l, r) => match self.truth(l)? {
                Truth::False => Truth::False,
                left => match self.truth(r)? {
                    right if left == Truth::True => right,
                    Truth::False => Truth::False,
                    _ => left,
                },
            },
            Node::Or(l, r) => match self.truth(l)? {
                Truth::True => Truth::True,
                left => match self.truth(r)? {
                    right if left == Truth::False => right,
                    Truth::True => Truth::True,
                    _ => left,
                },
            },
            Node::Not(of) => not(self.truth(of)?),
            Node::IsUnknown(of) => truth(self.truth(of)? == Truth::Unknown),
            Node::Compare(comparison, l, r) => {
                let right = self.quietly(|this| this.operand(r))?;
                let Some(right) = right else { return Ok(Truth::Unknown) };
                self.holds(l, |this, value| {
                    let mut unknown = false;
                    let mut held = false;
                    for other in &right {
                        match this.compare(*comparison, value, other)? {
                            Truth::True if this.lax => return Ok(Truth::True),
                            Truth::True => held = true,
                            Truth::Unknown if !this.lax => return Ok(Truth::Unknown),
                            Truth::Unknown => unknown = true,
                            Truth::False => {}
                        }
                    }
                    Ok(if held {
                        Truth::True
                    } else if unknown {
                        Truth::Unknown
                    } else {
                        Truth::False
                    })
                })?
            }
            Node::StartsWith(l, initial) => {
                let mut found = Vec::new();
                if self.quietly(|this| this.node(initial, Some(&mut found)))?.is_none() {
                    return Ok(Truth::Unknown);
                }
                let initial = found.first().and_then(|v| match v.view() {
                    Some(View::String(s)) => Some(s.to_owned()),
                    _ => None,
                });
                self.holds(l, |_, value| {
                    Ok(match (value.view(), &initial) {
                        (Some(View::String(s)), Some(initial)) => truth(s.starts_with(&**initial)),
                        _ => Truth::Unknown,
                    })
                })?
            }
            Node::LikeRegex { of, pattern, flags } => self.holds(of, |this, value| {
                Ok(match value.view() {
                    Some(View::String(s)) => {
                        truth(functions::pattern_matches(this.env, pattern, *flags, s)?)
                    }
                    _ => Truth::Unknown,
                })
            })?,
            Node::Exists(of) => {
                let found = if self.lax {
                    self.quietly(|this| this.node(of, None))?
                } else {
                    let mut found = Vec::new();
                    let any = self.quietly(|this| this.node(of, Some(&mut found)))?;
                    any.map(|_| !found.is_empty())
                };
                found.map_or(Truth::Unknown, truth)
            }
            Node::Chain(start, steps) if steps.is_empty() => match &**start {
                Start::Group(inner) => self.truth(inner)?,
                _ => Truth::Unknown,
            },
            _ => Truth::Unknown,
        })
    }

    /// Whether `test` holds for one of the values of a part.
    fn holds(
        &mut self,
        of: &Node,
        test: impl Fn(&Self, &Value<'a>) -> Outcome<Truth>,
    ) -> Outcome<Truth> {
        let values = self.quietly(|this| this.operand(of))?;
        let Some(values) = values else { return Ok(Truth::Unknown) };
        let (mut held, mut unknown) = (false, false);
        for value in &values {
            self.env.check_cancel()?;
            match test(self, value)? {
                Truth::True if self.lax => return Ok(Truth::True),
                Truth::True => held = true,
                Truth::Unknown if !self.lax => return Ok(Truth::Unknown),
                Truth::Unknown => unknown = true,
                Truth::False => {}
            }
        }
        Ok(match (held, unknown) {
            (true, _) => Truth::True,
            (_, true) => Truth::Unknown,
            _ => Truth::False,
        })
    }

    fn compare(&self, comparison: Comparison, a: &Value, b: &Value) -> Outcome<Truth> {
        let order = match (a.view(), b.view()) {
            (Some(View::Null), Some(View::Null)) => Ordering::Equal,
            (Some(View::Null), _) | (_, Some(View::Null)) => {
                return Ok(truth(comparison == Comparison::NotEqual));
            }
            (Some(View::Bool(x)), Some(View::Bool(y))) => x.cmp(&y),
            (Some(View::String(x)), Some(View::String(y))) => x.as_bytes().cmp(y.as_bytes()),
            (Some(x), Some(y)) => match (x.number(), y.number()) {
                (Some(x), Some(y)) => x.cmp(&y),
                _ => return Ok(Truth::Unknown),
            },
            (None, None) => match (a, b) {
                (Value::Moment(x), Value::Moment(y)) => match x.compare(y, self.zones, self.env)? {
                    Some(order) => order,
                    None => return Ok(Truth::Unknown),
                },
                _ => return Ok(Truth::Unknown),
            },
            _ => return Ok(Truth::Unknown),
        };
        Ok(truth(match comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }))
    }
}
