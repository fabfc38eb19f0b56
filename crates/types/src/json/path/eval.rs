//! Walks a path over a value.
//!
//! # What lax means
//! Arrays are taken apart where a step wants what an array is not, what is no array counts as one of one element, and what is not there
//! is not found instead of being an error. What is an error in a predicate makes it unknown, in both modes.

use super::moments::Moment;
use super::{Comparison, DEEPEST, Node, Operator, Path, Start, Step, functions};
use crate::json::stored::{self, Object, View, view};
use crate::{Datum, Env, Numeric};
use base::{Error, err};
use std::borrow::Cow;
use std::cmp::Ordering;

/// What a path meets: json, or a moment that a method has made of a string.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Json(Cow<'a, [u8]>),
    Moment(Moment),
}

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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Truth {
    True,
    False,
    Unknown,
}

/// Variables of a path.
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
    lax: bool,
    /// What is not there is not found, in strict mode too.
    forgiving: bool,
    root: Value<'a>,
    current: Value<'a>,
    variables: Variables<'a>,
    /// The length of the innermost array that is being subscripted.
    length: Option<usize>,
    depth: usize,
}

impl<'a> Value<'a> {
    pub(super) fn view(&self) -> Option<View<'_>> {
        match self {
            Value::Json(bytes) => Some(view(bytes)),
            Value::Moment(_) => None,
        }
    }

    pub(super) fn number(n: &Numeric) -> Value<'a> {
        let mut out = Vec::new();
        stored::put_numeric(n, &mut out);
        Value::Json(Cow::Owned(out))
    }

    pub(super) fn string(s: &str) -> Value<'a> {
        let mut out = Vec::new();
        stored::put_string(s, &mut out);
        Value::Json(Cow::Owned(out))
    }

    pub(super) fn boolean(b: bool) -> Value<'a> {
        let mut out = Vec::new();
        stored::put_bool(b, &mut out);
        Value::Json(Cow::Owned(out))
    }

    fn null() -> Value<'a> {
        let mut out = Vec::new();
        stored::put_null(&mut out);
        Value::Json(Cow::Owned(out))
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.view(), Some(View::Array(_)))
    }

    fn as_number(&self) -> Option<Numeric> {
        self.view().and_then(|v| v.number())
    }

    /// The parts of an array or object that `pick` picks, lent where the whole is.
    fn parts<T>(&self, pick: impl for<'v> Fn(View<'v>) -> T) -> Option<T> {
        self.view().map(pick)
    }

    /// The elements of an array, the values of an object.
    fn children(&self) -> Vec<Value<'a>> {
        fn of(bytes: &[u8]) -> Vec<&[u8]> {
            match view(bytes) {
                View::Array(items) => items.iter().collect(),
                View::Object(members) => members.iter().map(|(_, v)| v).collect(),
                _ => Vec::new(),
            }
        }
        match self {
            Value::Json(Cow::Borrowed(b)) => {
                of(b).into_iter().map(|v| Value::Json(Cow::Borrowed(v))).collect()
            }
            Value::Json(Cow::Owned(b)) => {
                of(b).into_iter().map(|v| Value::Json(Cow::Owned(v.to_vec()))).collect()
            }
            Value::Moment(_) => Vec::new(),
        }
    }

    fn member(&self, key: &str) -> Option<Value<'a>> {
        fn of<'b>(bytes: &'b [u8], key: &str) -> Option<&'b [u8]> {
            match view(bytes) {
                View::Object(members) => members.get(key),
                _ => None,
            }
        }
        match self {
            Value::Json(Cow::Borrowed(b)) => of(b, key).map(|v| Value::Json(Cow::Borrowed(v))),
            Value::Json(Cow::Owned(b)) => of(b, key).map(|v| Value::Json(Cow::Owned(v.to_vec()))),
            Value::Moment(_) => None,
        }
    }

    fn element(&self, i: usize) -> Option<Value<'a>> {
        fn of(bytes: &[u8], i: usize) -> Option<&[u8]> {
            match view(bytes) {
                View::Array(items) => items.get(i as i64),
                _ => None,
            }
        }
        match self {
            Value::Json(Cow::Borrowed(b)) => of(b, i).map(|v| Value::Json(Cow::Borrowed(v))),
            Value::Json(Cow::Owned(b)) => of(b, i).map(|v| Value::Json(Cow::Owned(v.to_vec()))),
            Value::Moment(_) => None,
        }
    }
}

fn push<'a>(value: Value<'a>, sink: Sink<'_, 'a>) {
    if let Some(list) = sink {
        list.push(value);
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

/// What came out, None for a soft error.
fn quiet<T>(outcome: Outcome<T>) -> Outcome<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Soft(_)) => Ok(None),
        Err(hard) => Err(hard),
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

    fn deeper<T>(&mut self, go: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth == DEPTH_MAX {
            return Err(Fault::Hard(crate::json::too_deep()));
        }
        self.depth += 1;
        let outcome = go(self);
        self.depth -= 1;
        outcome
    }

    /// The values of a part; true if there are any.
    fn node(&mut self, node: &Node, mut sink: Sink<'_, 'a>) -> Outcome<bool> {
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
                let value = match this.truth(predicate)? {
                    Truth::Unknown => Value::null(),
                    t => Value::boolean(t == Truth::True),
                };
                push(value, sink);
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
                    let holds = this.truth(condition);
                    this.current = outer;
                    if holds? == Truth::True {
                        return this.steps(value, rest, this.lax, sink);
                    }
                    Ok(false)
                }
                Step::Method(method, arguments) => {
                    this.method(value, *method, arguments, rest, sink)
                }
                Step::Template(_) => {
                    let e = Error::unsupported("a template for jsonpath's datetime()");
                    Err(Fault::Hard(e))
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
            self.env.check_cancel()?;
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
        let array = value.parts(|v| match v {
            View::Array(items) => Some(items.len()),
            _ => None,
        });
        let array = array.flatten();
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
            any = self.forgivingly(|this| {
                this.steps(value.clone(), rest, this.lax, sink.as_deref_mut())
            })?;
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
            let leaf = child.view().is_none_or(|v| v.is_scalar());
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

    /// The values of an operand, the elements of arrays in lax mode.
    fn operand(&mut self, node: &Node) -> Outcome<Vec<Value<'a>>> {
        let mut found = Vec::new();
        self.node(node, Some(&mut found))?;
        if self.lax && found.iter().any(Value::is_array) {
            found = found
                .into_iter()
                .flat_map(|v| if v.is_array() { v.children() } else { vec![v] })
                .collect();
        }
        Ok(found)
    }

    fn single_number(&mut self, node: &Node, side: &str, symbol: &str) -> Outcome<Numeric> {
        let found = self.operand(node)?;
        match &found[..] {
            [one] => match one.as_number() {
                Some(n) => Ok(n),
                None => soft!(
                    SINGLETON_SQL_JSON_ITEM_REQUIRED,
                    "{side} operand of jsonpath operator {symbol} is not a single numeric value"
                ),
            },
            _ => soft!(
                SINGLETON_SQL_JSON_ITEM_REQUIRED,
                "{side} operand of jsonpath operator {symbol} is not a single numeric value"
            ),
        }
    }

    fn arithmetic(&mut self, operator: Operator, l: &Node, r: &Node) -> Outcome<Value<'a>> {
        let symbol = operator.symbol();
        let l = self.single_number(l, "left", symbol)?;
        let r = self.single_number(r, "right", symbol)?;
        let result = match operator {
            Operator::Add => l.add(&r),
            Operator::Subtract => l.sub(&r),
            Operator::Multiply => l.mul(&r),
            Operator::Divide => l.div(&r),
            Operator::Remainder => l.rem(&r),
        };
        Ok(Value::number(&result.map_err(Fault::Soft)?))
    }

    fn signed(&mut self, minus: bool, of: &Node, mut sink: Sink<'_, 'a>) -> Outcome<bool> {
        let mut any = false;
        for value in self.operand(of)? {
            match value.as_number() {
                Some(n) => {
                    any = true;
                    let n = if minus { n.neg() } else { n };
                    push(Value::number(&n), sink.as_deref_mut());
                }
                None if sink.is_none() => {}
                None => soft!(
                    SQL_JSON_NUMBER_NOT_FOUND,
                    "operand of unary jsonpath operator {} is not a numeric value",
                    if minus { '-' } else { '+' }
                ),
            }
        }
        Ok(any)
    }

    fn truth(&mut self, node: &Node) -> Outcome<Truth> {
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
                let Some(right) = quiet(self.operand(r))? else { return Ok(Truth::Unknown) };
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
                if quiet(self.node(initial, Some(&mut found)))?.is_none() {
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
                    quiet(self.node(of, None))?
                } else {
                    let mut found = Vec::new();
                    quiet(self.node(of, Some(&mut found)))?.map(|_| !found.is_empty())
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
        let Some(values) = quiet(self.operand(of))? else { return Ok(Truth::Unknown) };
        let (mut held, mut unknown) = (false, false);
        for value in &values {
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
