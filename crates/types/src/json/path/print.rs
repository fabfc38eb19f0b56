//! A path's text, written as PostgreSQL writes it.

use super::{DEEPEST, Flags, Method, Node, Operator, Path, Start, Step};
use crate::json::build::push_string;
use std::fmt::Write;

/// The text of a path.
pub(super) fn path(path: &Path) -> String {
    let mut out = String::from(if path.lax { "" } else { "strict " });
    node(&path.root, true, &mut out);
    out
}

/// How tightly a part holds together.
fn priority(node: &Node) -> u8 {
    match node {
        Node::Chain(start, steps) => match &**start {
            Start::Group(inner) if steps.is_empty() => priority(inner),
            _ => 6,
        },
        Node::Or(..) => 0,
        Node::And(..) => 1,
        Node::Compare(..) | Node::StartsWith(..) => 2,
        Node::Arithmetic(Operator::Add | Operator::Subtract, ..) => 3,
        Node::Arithmetic(..) => 4,
        Node::Sign { .. } => 5,
        _ => 6,
    }
}

/// Writes an operand: in parentheses if it holds together no better than what it is part of.
fn operand(part: &Node, whole: &Node, out: &mut String) {
    node(part, priority(part) <= priority(whole), out);
}

fn binary(whole: &Node, left: &Node, symbol: &str, right: &Node, out: &mut String) {
    operand(left, whole, out);
    _ = write!(out, " {symbol} ");
    operand(right, whole, out);
}

fn node(this: &Node, brackets: bool, out: &mut String) {
    match this {
        Node::Chain(first, steps) => return chain(first, steps, brackets, out),
        Node::Not(of) => {
            out.push_str("!(");
            node(of, false, out);
            return out.push(')');
        }
        Node::IsUnknown(of) => {
            out.push('(');
            node(of, false, out);
            return out.push_str(") is unknown");
        }
        Node::Exists(of) => {
            out.push_str("exists (");
            node(of, false, out);
            return out.push(')');
        }
        _ => {}
    }
    if brackets {
        out.push('(');
    }
    match this {
        Node::And(l, r) => binary(this, l, "&&", r, out),
        Node::Or(l, r) => binary(this, l, "||", r, out),
        Node::Compare(c, l, r) => binary(this, l, c.symbol(), r, out),
        Node::StartsWith(l, r) => binary(this, l, "starts with", r, out),
        Node::Arithmetic(o, l, r) => binary(this, l, o.symbol(), r, out),
        Node::Sign { minus, of } => {
            out.push(if *minus { '-' } else { '+' });
            operand(of, this, out);
        }
        Node::LikeRegex { of, pattern, flags } => {
            operand(of, this, out);
            out.push_str(" like_regex ");
            push_string(pattern, out);
            push_flags(*flags, out);
        }
        _ => {}
    }
    if brackets {
        out.push(')');
    }
}

fn push_flags(flags: Flags, out: &mut String) {
    let all = [
        (flags.ignore_case, 'i'),
        (flags.dot_all, 's'),
        (flags.multiline, 'm'),
        (flags.expanded, 'x'),
        (flags.quote, 'q'),
    ];
    let set: String = all.iter().filter(|(set, _)| *set).map(|(_, c)| *c).collect();
    if !set.is_empty() {
        _ = write!(out, " flag \"{set}\"");
    }
}

fn chain(start: &Start, steps: &[Step], brackets: bool, out: &mut String) {
    match start {
        Start::Root => out.push('$'),
        Start::Current => out.push('@'),
        Start::Last => out.push_str("last"),
        Start::Variable(name) => {
            out.push('$');
            push_string(name, out);
        }
        Start::Null => out.push_str("null"),
        Start::Bool(b) => _ = write!(out, "{b}"),
        Start::String(s) => push_string(s, out),
        Start::Number(n) if steps.is_empty() => _ = write!(out, "{n}"),
        Start::Number(n) => _ = write!(out, "({n})"),
        // A value that has steps is held together by its parentheses, a predicate by those it needs anyway.
        Start::Group(inner) => node(inner, brackets || !steps.is_empty(), out),
    }
    for s in steps {
        step(s, out);
    }
}

fn step(step: &Step, out: &mut String) {
    match step {
        Step::Key(name) => {
            out.push('.');
            push_string(name, out);
        }
        Step::AnyKey => out.push_str(".*"),
        Step::AnyElement => out.push_str("[*]"),
        Step::Elements(list) => {
            out.push('[');
            for (i, (from, to)) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                node(from, false, out);
                if let Some(to) = to {
                    out.push_str(" to ");
                    node(to, false, out);
                }
            }
            out.push(']');
        }
        Step::AnyDepth(0, DEEPEST) => out.push_str(".**"),
        Step::AnyDepth(from, to) if from == to => _ = write!(out, ".**{{{}}}", depth(*from)),
        Step::AnyDepth(from, to) => _ = write!(out, ".**{{{} to {}}}", depth(*from), depth(*to)),
        Step::Filter(condition) => {
            out.push_str("?(");
            node(condition, false, out);
            out.push(')');
        }
        Step::Method(method, arguments) => {
            _ = write!(out, ".{}(", method.name());
            for (i, n) in arguments.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                _ = write!(out, "{comma}{n}");
            }
            out.push(')');
        }
        Step::Template(template) => {
            _ = write!(out, ".{}(", Method::Datetime.name());
            push_string(template, out);
            out.push(')');
        }
    }
}

fn depth(n: u32) -> String {
    if n == DEEPEST { "last".to_owned() } else { n.to_string() }
}
