//! A path's text to its tree.

use super::lexer::{Token, tokens};
use super::{Comparison, DEEPEST, Flags, Method, Node, Operator, Path, Start, Step};
use crate::Numeric;
use base::{Result, SqlError, SqlState, bail, err};

/// The deepest that parts of a path are nested. `a + b + c` is `(a + b) + c`, and shown so: each of its operators counts.
const DEPTH_MAX: usize = 250;

/// Reads a path.
///
/// # Errors
/// `42601`, `22P02`, `54001`
pub(super) fn path(text: &str) -> Result<Path> {
    let tokens = tokens(text)?;
    if tokens.len() == 1 {
        return Err(crate::io::invalid("jsonpath", text));
    }
    let mut p = Parser { tokens, at: 0, depth: 0, height: 0, filters: 0, subscripts: 0 };
    let lax = !p.accept_word("strict");
    if lax {
        p.accept_word("lax");
    }
    let root = p.either()?;
    match p.peek() {
        Token::End => Ok(Path { lax, root }),
        _ => Err(p.unexpected()),
    }
}

struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    at: usize,
    /// How many parts are open around this one.
    depth: usize,
    /// How deep the part is nested that was read last.
    height: usize,
    /// How many filters are open: `@` is of the innermost.
    filters: usize,
    /// How many subscripts are open: `last` is of the innermost.
    subscripts: usize,
}

fn chain(start: Start) -> Node {
    Node::Chain(Box::new(start), Vec::new())
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |t| &t.0)
    }

    fn peek_at(&self, n: usize) -> &Token {
        self.tokens.get(self.at + n).map_or(&Token::End, |t| &t.0)
    }

    fn unexpected(&self) -> base::Error {
        // A word is known when what follows has been seen.
        let last = self.at + 2 >= self.tokens.len();
        match self.tokens.get(self.at) {
            Some((Token::Word(_), _)) if last => {
                err!(SYNTAX_ERROR, "syntax error at end of jsonpath input")
            }
            Some((t, text)) if *t != Token::End => {
                err!(SYNTAX_ERROR, "syntax error at or near \"{text}\" of jsonpath input")
            }
            _ => err!(SYNTAX_ERROR, "syntax error at end of jsonpath input"),
        }
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(s) if *s == sign)
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.accept(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w.eq_ignore_ascii_case(word))
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.accept_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_MAX {
            return Err(crate::json::too_deep());
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// The part that was read last becomes part of another, beside one of that height.
    fn nest(&mut self, beside: usize) -> Result<()> {
        self.height = self.height.max(beside) + 1;
        if self.height > DEPTH_MAX {
            return Err(crate::json::too_deep());
        }
        Ok(())
    }

    /// A value or a predicate.
    fn either(&mut self) -> Result<Node> {
        self.deeper(|p| {
            let mut left = p.conjunction()?;
            while p.is("||") {
                p.must_be_predicate(&left)?;
                let height = p.height;
                p.at += 1;
                let right = p.conjunction()?;
                p.must_be_predicate(&right)?;
                p.nest(height)?;
                left = Node::Or(Box::new(ungrouped(left)), Box::new(ungrouped(right)));
            }
            Ok(left)
        })
    }

    fn predicate(&mut self) -> Result<Node> {
        let node = self.either()?;
        self.must_be_predicate(&node)?;
        Ok(ungrouped(node))
    }

    fn must_be_predicate(&self, node: &Node) -> Result<()> {
        if node.is_predicate() { Ok(()) } else { Err(self.unexpected()) }
    }

    fn must_be_value(&self, node: &Node) -> Result<()> {
        if node.is_predicate() { Err(self.unexpected()) } else { Ok(()) }
    }

    fn conjunction(&mut self) -> Result<Node> {
        let mut left = self.comparison()?;
        while self.is("&&") {
            self.must_be_predicate(&left)?;
            let height = self.height;
            self.at += 1;
            let right = self.comparison()?;
            self.must_be_predicate(&right)?;
            self.nest(height)?;
            left = Node::And(Box::new(ungrouped(left)), Box::new(ungrouped(right)));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Node> {
        if self.accept("!") {
            if !self.is("(") && !self.is_word("exists") {
                return Err(self.unexpected());
            }
            let inner = self.unary()?;
            if !inner.is_predicate() {
                return Err(self.unexpected());
            }
            self.nest(0)?;
            return Ok(Node::Not(Box::new(ungrouped(inner))));
        }
        let left = self.sum()?;
        if left.is_predicate() {
            if self.is_word("is") {
                if !matches!(left, Node::Chain(..)) {
                    return Err(self.unexpected());
                }
                self.at += 1;
                self.expect_word("unknown")?;
                self.nest(0)?;
                return Ok(Node::IsUnknown(Box::new(ungrouped(left))));
            }
            return Ok(left);
        }
        let comparison = match self.peek() {
            Token::Sign("==") => Comparison::Equal,
            Token::Sign("!=" | "<>") => Comparison::NotEqual,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessOrEqual,
            Token::Sign(">") => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterOrEqual,
            Token::Word(w) if w.eq_ignore_ascii_case("starts") => return self.starts_with(left),
            Token::Word(w) if w.eq_ignore_ascii_case("like_regex") => return self.like_regex(left),
            _ => return Ok(left),
        };
        let height = self.height;
        self.at += 1;
        let right = self.sum()?;
        self.must_be_value(&right)?;
        self.nest(height)?;
        Ok(Node::Compare(comparison, Box::new(left), Box::new(right)))
    }

    fn starts_with(&mut self, left: Node) -> Result<Node> {
        self.at += 1;
        self.expect_word("with")?;
        let initial = match self.peek().clone() {
            Token::String(s) => chain(Start::String(s)),
            Token::Variable(name) => chain(Start::Variable(name)),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        self.nest(0)?;
        Ok(Node::StartsWith(Box::new(left), Box::new(initial)))
    }

    fn like_regex(&mut self, left: Node) -> Result<Node> {
        self.at += 1;
        let pattern = self.string()?;
        let flags =
            if self.accept_word("flag") { flags(&self.string()?)? } else { Flags::default() };
        if flags.expanded && !flags.quote {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "XQuery \"x\" flag (expanded regular expressions) is not implemented"
            );
        }
        // A pattern that is none is told when the path is read.
        super::functions::pattern_matches(&crate::env::PlainEnv, &pattern, flags, "")?;
        self.nest(0)?;
        Ok(Node::LikeRegex { of: Box::new(left), pattern, flags })
    }

    fn string(&mut self) -> Result<String> {
        match self.peek().clone() {
            Token::String(s) => {
                self.at += 1;
                Ok(s)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn arithmetic(
        &mut self,
        signs: &[(&str, Operator)],
        operand: fn(&mut Self) -> Result<Node>,
    ) -> Result<Node> {
        let mut left = operand(self)?;
        while let Some((_, operator)) = signs.iter().find(|(sign, _)| self.is(sign)) {
            self.must_be_value(&left)?;
            let height = self.height;
            self.at += 1;
            let right = operand(self)?;
            self.must_be_value(&right)?;
            self.nest(height)?;
            left = Node::Arithmetic(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Node> {
        self.arithmetic(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<Node> {
        const SIGNS: [(&str, Operator); 3] =
            [("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)];
        self.arithmetic(&SIGNS, Self::unary)
    }

    fn unary(&mut self) -> Result<Node> {
        let minus = self.is("-");
        if !minus && !self.is("+") {
            return self.accessors();
        }
        self.at += 1;
        let of = self.deeper(Self::unary)?;
        self.must_be_value(&of)?;
        // A number's sign is the number's.
        if let Node::Chain(start, steps) = &of
            && steps.is_empty()
            && let Start::Number(n) = &**start
        {
            return Ok(chain(Start::Number(if minus { n.neg() } else { n.clone() })));
        }
        self.nest(0)?;
        Ok(Node::Sign { minus, of: Box::new(of) })
    }

    /// What a chain begins with, and its steps.
    fn accessors(&mut self) -> Result<Node> {
        if self.is_word("exists") && matches!(self.peek_at(1), Token::Sign("(")) {
            self.at += 2;
            let inner = self.either()?;
            self.must_be_value(&inner)?;
            self.expect(")")?;
            self.nest(0)?;
            return Ok(Node::Exists(Box::new(inner)));
        }
        self.height = 0;
        let start = self.start()?;
        let mut steps = Vec::new();
        let mut height = self.height;
        while let Some(step) = self.step()? {
            steps.push(step);
            height = height.max(self.height);
        }
        self.height = height;
        // Parentheses alone do not stay.
        if !is_group(&start) || !steps.is_empty() {
            self.nest(0)?;
        }
        Ok(match start {
            // Parentheses that only group are not kept, but where they delimit a predicate.
            Start::Group(inner) if steps.is_empty() && !inner.is_predicate() => inner,
            // A chain in parentheses goes on behind them.
            Start::Group(Node::Chain(inner, mut own)) if !is_group(&inner) => {
                own.extend(steps);
                Node::Chain(inner, own)
            }
            start => Node::Chain(Box::new(start), steps),
        })
    }

    fn start(&mut self) -> Result<Start> {
        if self.accept("(") {
            let inner = self.either()?;
            self.expect(")")?;
            return Ok(Start::Group(inner));
        }
        let start = match self.peek().clone() {
            Token::Sign("$") => Start::Root,
            Token::Sign("@") if self.filters == 0 => {
                bail!(SYNTAX_ERROR, "@ is not allowed in root expressions")
            }
            Token::Sign("@") => Start::Current,
            Token::Variable(name) => Start::Variable(name),
            Token::String(s) => Start::String(s),
            Token::Number(n, _) => Start::Number(n),
            Token::Word(w) => match &*w {
                "true" => Start::Bool(true),
                "false" => Start::Bool(false),
                "null" => Start::Null,
                w if w.eq_ignore_ascii_case("last") => {
                    if self.subscripts == 0 {
                        bail!(SYNTAX_ERROR, "LAST is allowed only in array subscripts");
                    }
                    Start::Last
                }
                _ => return Err(self.unexpected()),
            },
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(start)
    }

    fn step(&mut self) -> Result<Option<Step>> {
        self.height = 0;
        if self.accept("[") {
            return self.subscript().map(Some);
        }
        if self.accept("?") {
            self.expect("(")?;
            self.filters += 1;
            let condition = self.predicate()?;
            self.filters -= 1;
            self.expect(")")?;
            return Ok(Some(Step::Filter(condition)));
        }
        if !self.accept(".") {
            return Ok(None);
        }
        if self.accept("**") {
            return self.depths().map(Some);
        }
        if self.accept("*") {
            return Ok(Some(Step::AnyKey));
        }
        let name = match self.peek().clone() {
            Token::Word(name) => name,
            Token::String(name) => {
                self.at += 1;
                return Ok(Some(Step::Key(name)));
            }
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        if !self.is("(") {
            return Ok(Some(Step::Key(name)));
        }
        let method = Method::ALL.iter().find(|m| m.name().eq_ignore_ascii_case(&name));
        let Some(method) = method else { return Err(self.unexpected()) };
        self.at += 1;
        self.method(*method).map(Some)
    }

    /// The rest of a method behind its opening parenthesis.
    fn method(&mut self, method: Method) -> Result<Step> {
        if let (Method::Datetime, Token::String(template)) = (method, self.peek().clone()) {
            self.at += 1;
            self.expect(")")?;
            return Ok(Step::Template(template));
        }
        let most = match method {
            Method::Decimal => 2,
            Method::Time | Method::TimeTz | Method::Timestamp | Method::TimestampTz => 1,
            _ => 0,
        };
        let mut arguments = Vec::new();
        while arguments.len() < most && !self.is(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.argument(method == Method::Decimal)?);
        }
        if method == Method::Decimal && self.is(",") {
            let text = "invalid input syntax for type jsonpath";
            let detail = ".decimal() can only have an optional precision[,scale].";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, text).detail(detail).into());
        }
        self.expect(")")?;
        Ok(Step::Method(method, arguments))
    }

    fn argument(&mut self, signed: bool) -> Result<Numeric> {
        let minus = signed && self.accept("-");
        if signed && !minus {
            self.accept("+");
        }
        match self.peek().clone() {
            Token::Number(n, true) => {
                self.at += 1;
                Ok(if minus { n.neg() } else { n })
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The rest of `**`.
    fn depths(&mut self) -> Result<Step> {
        if !self.accept("{") {
            return Ok(Step::AnyDepth(0, DEEPEST));
        }
        let from = self.depth()?;
        let to = if self.accept_word("to") { self.depth()? } else { from };
        self.expect("}")?;
        Ok(Step::AnyDepth(from, to))
    }

    fn depth(&mut self) -> Result<u32> {
        if self.accept_word("last") {
            return Ok(DEEPEST);
        }
        match self.peek().clone() {
            Token::Number(n, true) => {
                self.at += 1;
                match n.to_i64().and_then(|n| i32::try_from(n).ok()) {
                    Some(n) => Ok(n.unsigned_abs()),
                    None => bail!(
                        NUMERIC_VALUE_OUT_OF_RANGE,
                        "value \"{n}\" is out of range for type integer"
                    ),
                }
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The rest of `[…]`.
    fn subscript(&mut self) -> Result<Step> {
        if self.accept("*") {
            self.expect("]")?;
            return Ok(Step::AnyElement);
        }
        let (mut list, mut height) = (Vec::new(), 0);
        self.subscripts += 1;
        loop {
            let from = self.value()?;
            height = height.max(self.height);
            let to = if self.accept_word("to") { Some(self.value()?) } else { None };
            height = height.max(self.height);
            list.push((from, to));
            if !self.accept(",") {
                break;
            }
        }
        self.height = height;
        self.subscripts -= 1;
        self.expect("]")?;
        Ok(Step::Elements(list))
    }

    fn value(&mut self) -> Result<Node> {
        let node = self.either()?;
        self.must_be_value(&node)?;
        Ok(node)
    }
}

fn is_group(start: &Start) -> bool {
    matches!(start, Start::Group(_))
}

/// A predicate without the parentheses that delimit it.
fn ungrouped(node: Node) -> Node {
    match node {
        Node::Chain(start, steps) if steps.is_empty() => match *start {
            Start::Group(inner) => inner,
            start => Node::Chain(Box::new(start), steps),
        },
        node => node,
    }
}

fn flags(text: &str) -> Result<Flags> {
    let mut flags = Flags::default();
    for (i, c) in text.char_indices() {
        match c {
            'i' => flags.ignore_case = true,
            's' => flags.dot_all = true,
            'm' => flags.multiline = true,
            'q' => flags.quote = true,
            'x' => flags.expanded = true,
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "invalid input syntax for type jsonpath",
                )
                .detail(format!(
                    "Unrecognized flag character \"{}\" in LIKE_REGEX predicate.",
                    &text[i..i + c.len_utf8()]
                ))
                .into());
            }
        }
    }
    Ok(flags)
}
