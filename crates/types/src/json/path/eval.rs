//! Walks a path over a value.
//!
//! # What lax means
//! Arrays are taken apart where a step wants what an array is not, what is no array counts as one of one element, and what is not there
//! is not found instead of being an error. What is an error in a predicate makes it unknown, in both modes.
//!
//! # Layout
//! Here is what a chain of steps finds; predicates are in `truth`, arithmetic is in `operators`, methods are in `methods`.

use super::value::Value;
use super::{DEEPEST, Node, Path, Start, Step, functions, moments};
use crate::json::stored::{Object, View};
use crate::{Datum, Env, Numeric};
use base::{Error, err};
use std::borrow::Cow;

/// Why a walk ends.
#[derive(Debug)]
pub(super) enum Fault {
    /// An error of the path over this value: none where it is to be silent.
    Soft(Error),
    /// Any other.
    Hard(Error),
}

impl From<Error> for Fault {
    fn from(e: Error) -> Fault {
        Fault::Hard(e)
    }
}

/// A soft error.
macro_rules! soft {
    ($state:ident, $($arg:tt)*) => {
        return Err($crate::json::path::eval::Fault::Soft(base::err!($state, $($arg)*)))
    };
}
pub(super) use soft;

pub(super) type Outcome<T> = Result<T, Fault>;

/// Where what is found goes; nowhere, if only whether there is any is asked.
pub(super) type Sink<'s, 'a> = Option<&'s mut Vec<Value<'a>>>;

/// What a path's variables are.
pub(super) enum Variables<'a> {
    /// Members of an object.
    Object(Object<'a>),
    Named(&'a [(String, Datum)]),
    None,
}

/// How deep a walk goes.
const DEPTH_MAX: usize = 1500;

/// A walk.
pub(super) struct Walk<'a> {
    pub(super) env: &'a dyn Env,
    pub(super) zones: bool,
    pub(super) lax: bool,
    /// What is not there is not found, in strict mode too.
    forgiving: bool,
    /// Nobody is told of errors.
    pub(super) silent: bool,
    root: Value<'a>,
    current: Value<'a>,
    variables: Variables<'a>,
    /// The length of the innermost array that is being subscripted.
    length: Option<usize>,
    depth: usize,
}

pub(super) fn push<'a>(value: Value<'a>, sink: Sink<'_, 'a>) {
    if let Some(list) = sink {
        list.push(value);
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        path: &Path,
        root: &'a [u8],
        variables: Variables<'a>,
        zones: bool,
        env: &'a dyn Env,
    ) -> Walk<'a> {
        let root = Value::Json(Cow::Borrowed(root));
        Walk {
            env,
            zones,
            lax: path.lax,
            forgiving: path.lax,
            silent: false,
            current: root.clone(),
            root,
            variables,
            length: None,
            depth: 0,
        }
    }

    pub(super) fn is_lax(&self) -> bool {
        self.lax
    }

    pub(super) fn is_forgiving(&self) -> bool {
        self.forgiving
    }

    /// Where in the value a part of it is: a number that tells it from others.
    pub(super) fn place(&self, part: &[u8]) -> i64 {
        match &self.root {
            Value::Json(root) => {
                let range = root.as_ptr_range();
                let at = part.as_ptr();
                if range.contains(&at) { (at as usize - range.start as usize) as i64 } else { 0 }
            }
            Value::Moment(_) => 0,
        }
    }

    /// All that the path finds.
    pub(super) fn all(&mut self, path: &Path) -> Outcome<Vec<Value<'a>>> {
        let mut found = Vec::new();
        self.all_into(path, &mut found)?;
        Ok(found)
    }

    /// Adds all that the path finds, up to an error.
    pub(super) fn all_into(&mut self, path: &Path, found: &mut Vec<Value<'a>>) -> Outcome<()> {
        self.node(&path.root, Some(found)).map(|_| ())
    }

    /// Whether the path finds anything: in strict mode all must be gone through for errors.
    pub(super) fn any(&mut self, path: &Path) -> Outcome<bool> {
        if self.lax { self.node(&path.root, None) } else { Ok(!self.all(path)?.is_empty()) }
    }

    pub(super) fn deeper<T>(&mut self, go: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth == DEPTH_MAX {
            return Err(Fault::Hard(crate::json::too_deep()));
        }
        self.depth += 1;
        let outcome = go(self);
        self.depth -= 1;
        outcome
    }

    /// The values of a part; true if there are any.
    pub(super) fn node(&mut self, node: &Node, mut sink: Sink<'_, 'a>) -> Outcome<bool> {
        self.deeper(|this| match node {
            Node::Chain(start, steps) => {
                if let Start::Group(inner) = &**start {
                    let mut within = Vec::new();
                    this.node(inner, Some(&mut within))?;
                    let mut any = false;
                    for value in within {
                        any |= this.steps(value, steps, this.lax, sink.as_deref_mut())?;
                        if any && sink.is_none() {
                            break;
                        }
                    }
                    return Ok(any);
                }
                let value = this.start(start)?;
                this.steps(value, steps, this.lax, sink)
            }
            Node::Arithmetic(operator, l, r) => {
                let value = this.arithmetic(*operator, l, r)?;
                push(value, sink);
                Ok(true)
            }
            Node::Sign { minus, of } => this.signed(*minus, of, sink),
            predicate => {
                push(this.truth(predicate)?.value(), sink);
                Ok(true)
            }
        })
    }

    fn start(&mut self, start: &Start) -> Outcome<Value<'a>> {
        Ok(match start {
            Start::Root => self.root.clone(),
            Start::Current => self.current.clone(),
            Start::Null => Value::null(),
            Start::Bool(b) => Value::boolean(*b),
            Start::String(s) => Value::string(s),
            Start::Number(n) => Value::number(n),
            Start::Variable(name) => return self.variable(name),
            Start::Last => match self.length {
                Some(n) => Value::number(&Numeric::from_i128(n as i128 - 1)),
                None => {
                    let e =
                        err!(INTERNAL_ERROR, "evaluating jsonpath LAST outside of array subscript");
                    return Err(Fault::Hard(e));
                }
            },
            Start::Group(_) => Value::null(),
        })
    }

    fn variable(&self, name: &str) -> Outcome<Value<'a>> {
        let found = match &self.variables {
            Variables::Object(members) => {
                members.get(name).map(|bytes| Ok(Value::Json(Cow::Borrowed(bytes))))
            }
            Variables::Named(list) => list
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, value)| functions::value_of(value, self.env)),
            Variables::None => None,
        };
        match found {
            Some(value) => Ok(value?),
            None => {
                let e = err!(UNDEFINED_OBJECT, "could not find jsonpath variable \"{name}\"");
                Err(Fault::Hard(e))
            }
        }
    }

    /// What the steps make of a value. With `unwrap` an array is taken apart by a first step that wants none.
    pub(super) fn steps(
        &mut self,
        value: Value<'a>,
        steps: &[Step],
        unwrap: bool,
        sink: Sink<'_, 'a>,
    ) -> Outcome<bool> {
        // A path that finds much takes long: in each step it can be told to end.
        self.env.check_cancel()?;
        let Some((step, rest)) = steps.split_first() else {
            push(value, sink);
            return Ok(true);
        };
        self.deeper(|this| {
            let apart = !matches!(
                step,
                Step::AnyElement
                    | Step::Elements(_)
                    | Step::AnyDepth(..)
                    | Step::Method(super::Method::Type | super::Method::Size, _)
            );
            if apart && unwrap && value.is_array() {
                return this.each(value.children(), steps, false, sink);
            }
            match step {
                Step::Key(key) => this.key(&value, key, rest, sink),
                Step::AnyKey => match value.view() {
                    Some(View::Object(_)) => this.each(value.children(), rest, this.lax, sink),
                    _ if this.forgiving => Ok(false),
                    _ => soft!(
                        SQL_JSON_OBJECT_NOT_FOUND,
                        "jsonpath wildcard member accessor can only be applied to an object"
                    ),
                },
                Step::AnyElement => match value.is_array() {
                    true => this.each(value.children(), rest, this.lax, sink),
                    false if this.lax => this.steps(value, rest, this.lax, sink),
                    false if this.forgiving => Ok(false),
                    false => soft!(
                        SQL_JSON_ARRAY_NOT_FOUND,
                        "jsonpath wildcard array accessor can only be applied to an array"
                    ),
                },
                Step::Elements(list) => this.elements(&value, list, rest, sink),
                Step::AnyDepth(from, to) => this.any_depth(value, *from, *to, rest, sink),
                Step::Filter(condition) => {
                    let outer = std::mem::replace(&mut this.current, value.clone());
                    let truth = this.truth(condition);
                    this.current = outer;
                    if truth?.holds() {
                        return this.steps(value, rest, this.lax, sink);
                    }
                    Ok(false)
                }
                Step::Method(method, arguments) => {
                    this.method(value, *method, arguments, rest, sink)
                }
                Step::Template(template) => {
                    let made = moments::by_template(&value, template, this.env)?;
                    this.steps(Value::Moment(made), rest, this.lax, sink)
                }
            }
        })
    }

    /// What the steps make of each of these.
    pub(super) fn each(
        &mut self,
        values: Vec<Value<'a>>,
        steps: &[Step],
        unwrap: bool,
        mut sink: Sink<'_, 'a>,
    ) -> Outcome<bool> {
        let mut any = false;
        for value in values {
            any |= self.steps(value, steps, unwrap, sink.as_deref_mut())?;
            if any && sink.is_none() {
                break;
            }
        }
        Ok(any)
    }

    fn key(
        &mut self,
        value: &Value<'a>,
        key: &str,
        rest: &[Step],
        sink: Sink<'_, 'a>,
    ) -> Outcome<bool> {
        if let Some(member) = value.member(key) {
            return self.steps(member, rest, self.lax, sink);
        }
        if self.forgiving {
            return Ok(false);
        }
        match value.view() {
            Some(View::Object(_)) => {
                soft!(SQL_JSON_MEMBER_NOT_FOUND, "JSON object does not contain key \"{key}\"")
            }
            _ => soft!(
                SQL_JSON_MEMBER_NOT_FOUND,
                "jsonpath member accessor can only be applied to an object"
            ),
        }
    }

    fn elements(
        &mut self,
        value: &Value<'a>,
        list: &[(Node, Option<Node>)],
        rest: &[Step],
        mut sink: Sink<'_, 'a>,
    ) -> Outcome<bool> {
        let array = value.length();
        if array.is_none() && !self.lax {
            if self.forgiving {
                return Ok(false);
            }
            soft!(
                SQL_JSON_ARRAY_NOT_FOUND,
                "jsonpath array accessor can only be applied to an array"
            );
        }
        let size = array.unwrap_or(1) as i64;
        let mut any = false;
        for (from, to) in list {
            let outer = self.length.replace(size as usize);
            let bounds = self.bounds(from, to.as_ref());
            self.length = outer;
            let (from, to) = bounds?;
            if !self.forgiving && (from < 0 || from > to || to >= size) {
                soft!(INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of bounds");
            }
            for i in from.max(0)..=to.min(size - 1) {
                let element = match array {
                    Some(_) => value.element(i as usize),
                    None => Some(value.clone()),
                };
                let Some(element) = element else { continue };
                any |= self.steps(element, rest, self.lax, sink.as_deref_mut())?;
                if any && sink.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    fn bounds(&mut self, from: &Node, to: Option<&Node>) -> Outcome<(i64, i64)> {
        let from = self.subscript(from)?;
        let to = match to {
            Some(to) => self.subscript(to)?,
            None => from,
        };
        Ok((from, to))
    }

    fn subscript(&mut self, node: &Node) -> Outcome<i64> {
        let mut found = Vec::new();
        self.node(node, Some(&mut found))?;
        let [one] = &found[..] else {
            soft!(
                INVALID_SQL_JSON_SUBSCRIPT,
                "jsonpath array subscript is not a single numeric value"
            );
        };
        let Some(n) = one.as_number() else {
            soft!(
                INVALID_SQL_JSON_SUBSCRIPT,
                "jsonpath array subscript is not a single numeric value"
            );
        };
        match n.trunc(0).to_i64().filter(|n| i32::try_from(*n).is_ok()) {
            Some(n) => Ok(n),
            None => soft!(
                INVALID_SQL_JSON_SUBSCRIPT,
                "jsonpath array subscript is out of integer range"
            ),
        }
    }

    fn any_depth(
        &mut self,
        value: Value<'a>,
        from: u32,
        to: u32,
        rest: &[Step],
        mut sink: Sink<'_, 'a>,
    ) -> Outcome<bool> {
        let mut any = false;
        if from == 0 {
            let itself = self
                .forgivingly(|this| this.steps(value.clone(), rest, this.lax, sink.as_deref_mut()));
            any = match itself {
                // What is an error for the whole, and not told, may be none for its parts.
                Err(Fault::Soft(_)) if self.silent && !value.is_leaf() => false,
                itself => itself?,
            };
            if any && sink.is_none() {
                return Ok(true);
            }
        }
        Ok(self.descend(&value, 1, (from, to), rest, sink)? | any)
    }

    fn forgivingly<T>(&mut self, go: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        let before = std::mem::replace(&mut self.forgiving, true);
        let outcome = go(self);
        self.forgiving = before;
        outcome
    }

    fn descend(
        &mut self,
        value: &Value<'a>,
        level: u32,
        range: (u32, u32),
        rest: &[Step],
        mut sink: Sink<'_, 'a>,
    ) -> Outcome<bool> {
        let (from, to) = range;
        if level > to {
            return Ok(false);
        }
        let mut any = false;
        for child in value.children() {
            self.env.check_cancel()?;
            let leaf = child.is_leaf();
            if level >= from || from == DEEPEST && to == DEEPEST && leaf {
                any |= self.forgivingly(|this| {
                    this.steps(child.clone(), rest, this.lax, sink.as_deref_mut())
                })?;
            }
            if !(any && sink.is_none()) && level < to && !leaf {
                any |= self.deeper(|this| {
                    this.descend(&child, level + 1, range, rest, sink.as_deref_mut())
                })?;
            }
            if any && sink.is_none() {
                return Ok(true);
            }
        }
        Ok(any)
    }
}
