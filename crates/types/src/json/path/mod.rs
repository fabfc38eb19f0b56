//! SQL/JSON paths: the type jsonpath, and what its functions find with one.
//!
//! # Layout
//! A path's value is its text, written anew from the tree that `parse` makes by `print`; `eval` walks the tree over a jsonb, with `truth`,
//! `operators` and `methods` beside it. What was last made of a text is kept, so that a path is parsed once and not for each row.
//!
//! # Differs from PostgreSQL
//! The `id`s of `keyvalue()` tell objects apart, but are other numbers.

mod eval;
mod functions;
mod lexer;
mod methods;
mod moments;
mod operators;
mod parse;
mod print;
#[cfg(test)]
mod tests;
mod truth;
mod value;

pub(super) use functions::BODIES;
pub use functions::{Found, Item, PathCall, array_of, find, find_items, finds_any, is_valid_value};

use crate::recent::Recent;
use crate::{Datum, Numeric, Text};
use base::Result;
use std::rc::Rc;

/// A path, read.
#[derive(Debug)]
pub(super) struct Path {
    /// Errors of structure are none: what is not there is not found.
    lax: bool,
    root: Node,
}

/// A part of a path that has a value, or is true or false.
#[derive(Debug)]
enum Node {
    /// A beginning, and what is done with it one after the other.
    Chain(Box<Start>, Vec<Step>),
    /// `+ - * / %`
    Arithmetic(Operator, Box<Node>, Box<Node>),
    /// `-x` and `+x`
    Sign {
        minus: bool,
        of: Box<Node>,
    },
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    IsUnknown(Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    StartsWith(Box<Node>, Box<Node>),
    LikeRegex {
        of: Box<Node>,
        pattern: String,
        flags: Flags,
    },
    Exists(Box<Node>),
}

/// What a chain begins with.
#[derive(Debug)]
enum Start {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `$name`
    Variable(String),
    Null,
    Bool(bool),
    String(String),
    Number(Numeric),
    /// `(…)`
    Group(Node),
}

/// One thing done with what was found so far.
#[derive(Debug)]
enum Step {
    /// `.key`
    Key(String),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyElement,
    /// `[1, 3 to last]`
    Elements(Vec<(Node, Option<Node>)>),
    /// `**`, `**{1 to 3}`: from and to which depth.
    AnyDepth(u32, u32),
    /// `?(…)`
    Filter(Node),
    /// `.size()`
    Method(Method, Vec<Numeric>),
    /// `.datetime("template")`
    Template(String),
}

/// The depth that is said as `last`.
const DEEPEST: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The flags of `like_regex`.
#[derive(Clone, Copy, Default, Debug)]
struct Flags {
    ignore_case: bool,
    dot_all: bool,
    multiline: bool,
    /// Says nothing where the pattern is taken as it is, and is an error elsewhere.
    expanded: bool,
    quote: bool,
}

macro_rules! methods {
    ($($name:ident $text:literal),* $(,)?) => {
        /// A method without a structure of its own.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        enum Method { $($name),* }

        impl Method {
            const ALL: &'static [Method] = &[$(Method::$name),*];

            /// What it is called.
            fn name(self) -> &'static str {
                match self { $(Method::$name => $text),* }
            }
        }
    };
}

methods! {
    Abs "abs", BigInt "bigint", Boolean "boolean", Ceiling "ceiling", Date "date", Datetime "datetime", Decimal "decimal",
    Double "double", Floor "floor", Integer "integer", KeyValue "keyvalue", Number "number", Size "size", String "string",
    Time "time", TimeTz "time_tz", Timestamp "timestamp", TimestampTz "timestamp_tz", Type "type",
}

impl Operator {
    fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
        }
    }
}

impl Comparison {
    fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl Node {
    /// True for what is true, false or unknown rather than a value.
    fn is_predicate(&self) -> bool {
        match self {
            Node::Chain(start, steps) => {
                matches!(&**start, Start::Group(inner) if steps.is_empty() && inner.is_predicate())
            }
            Node::Arithmetic(..) | Node::Sign { .. } => false,
            _ => true,
        }
    }
}

thread_local!(static PATHS: Recent<Path> = const { Recent::new() });

/// The path that a text of type jsonpath says.
fn read(text: &str) -> Result<Rc<Path>> {
    PATHS.with(|paths| paths.get(text, parse::path))
}

/// Reads a jsonpath.
///
/// # Errors
/// `42601`, `22P02`
pub fn jsonpath_input(text: &str) -> Result<Datum> {
    let path = parse::path(text)?;
    Ok(Datum::Text(Text::from(print::path(&path))))
}
