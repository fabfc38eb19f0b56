//! Random statements on Ebb and on PostgreSQL, and on Ebb in several ways.
//!
//! # Purpose
//! A wrong answer is the worst that a database can do. Generators make statements of everything that the registry of functions knows
//! ([`exprs`]) and the grammar has ([`queries`], [`from`], [`levels`], [`calls`], [`probes`], [`writes`], [`chains`], [`keys`]); each runs on every server, and the
//! answers must agree: rows, types of columns, row counts, SQLSTATEs.
//! A query runs on Ebb again with ways of planning turned off or priced otherwise, through the extended protocol with its constants as
//! parameters and its rows in binary, prepared under a generic plan, as a view and as what that is printed as, and after the same text with other constants. Half of the queries are
//! over tables of a few values, in which each condition is met by some rows and not by others; the last table makes sorts and hashes spill.
//!
//! # Invariants
//! A seed decides everything. A statement's rows do not depend on an order that it does not name: what LIMIT, windows and
//! ordered aggregates see is ordered by all that can be told apart. A difference counts when Ebb's answer is that of none of the peers.
//!
//! # Differences that stay
//! `time` plus an interval near the end of 64 bits (PostgreSQL's sum overflows); how many zeroes a numeric power to a fraction has; whether an error in one
//! of several constant arguments is met while planning; `\377` of `"char"` as `char(n)`; time zones of more than 2³¹ seconds;
//! `unnest('{}')` and the like, of which PostgreSQL has more candidates.

pub mod answers;
pub mod calls;
pub mod chains;
pub mod choices;
pub mod exprs;
pub mod from;
pub mod keys;
pub mod levels;
pub mod probes;
pub mod queries;
pub mod schema;
pub mod values;
pub mod writes;

use answers::{Answer, Verdict, compare};
use choices::{Choices, reduce};
use exprs::{Catalog, Gen};
use lab::client::{Batch, Client, Target};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use values::Statement;

/// What is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Expressions alone.
    Scalar,
    /// Queries.
    Query,
    /// Writes.
    Write,
}

/// What a run is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decides everything.
    pub seed: u64,
    /// How long.
    pub time: Duration,
    /// Of these kinds.
    pub kinds: Vec<Kind>,
    /// Stop after so many different differences.
    pub most: usize,
    /// How many statements may be tried to reduce one.
    pub tries: usize,
    /// Messages are compared too.
    pub messages: bool,
}

/// A connection that is made again when it is lost.
struct Side {
    name: String,
    target: Target,
    client: Option<Client>,
    setup: String,
}

impl Side {
    fn new(name: &str, target: &Target, setup: &str) -> Side {
        Side { name: name.into(), target: target.clone(), client: None, setup: setup.into() }
    }

    fn with(&mut self, run: impl Fn(&mut Client) -> lab::Result<lab::client::Outcome>) -> Answer {
        if self.client.is_none() {
            match Client::connect(&self.target) {
                Ok(mut client) => {
                    let _ = client.simple(&self.setup);
                    self.client = Some(client);
                }
                Err(e) => return Answer::lost(&e.to_string()),
            }
        }
        let Some(client) = &mut self.client else { return Answer::lost("no connection") };
        match run(client) {
            Ok(outcome) => Answer::of(outcome),
            Err(e) => {
                self.client = None;
                Answer::lost(&e.to_string())
            }
        }
    }

    fn simple(&mut self, sql: &str) -> Answer {
        self.with(|c| c.simple(sql))
    }

    fn failed(&self) -> bool {
        self.client.as_ref().is_some_and(|c| c.status == b'E')
    }

    fn parameters(&mut self, sql: &str, values: &[Option<String>], binary: bool) -> Answer {
        self.with(|client| {
            let values: Vec<Option<&[u8]>> =
                values.iter().map(|v| v.as_ref().map(String::as_bytes)).collect();
            let formats: &[u8] = if binary { &[1] } else { &[] };
            let mut batch = Batch::default();
            batch
                .parse("", sql, &[])
                .bind("", "", &[], &values, formats)
                .describe_portal("")
                .execute("", 0)
                .sync();
            client.send(&batch)?;
            client.finish()
        })
    }
}

/// Settings that turn ways of planning off.
const SWITCHES: &[&str] = &[
    "enable_hashjoin",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_indexscan",
    "enable_indexonlyscan",
    "enable_bitmapscan",
    "enable_seqscan",
    "enable_sort",
    "enable_hashagg",
    "enable_material",
    "enable_memoize",
    "enable_incremental_sort",
];

/// Prices that make other ways cheap.
const PRICES: &[&str] = &[
    "random_page_cost = 0.01",
    "cpu_tuple_cost = 1",
    "cpu_operator_cost = 0.5",
    "seq_page_cost = 50",
    "cpu_index_tuple_cost = 0",
    "random_page_cost = 200",
];

/// Each way of reading a table alone.
const SCANS: &[&str] = &[
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off",
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off",
    "SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off",
];

/// A run.
pub struct Differ {
    options: Options,
    catalog: Catalog,
    ebb: Side,
    plans: Side,
    peers: Vec<Side>,
    tables: Vec<schema::Table>,
    found: BTreeSet<String>,
    /// Statements of each kind run, and what else is counted.
    pub counts: BTreeMap<String, u64>,
}

/// Where a difference showed.
#[derive(Clone, Debug)]
struct Difference {
    verdict: Verdict,
    /// The statement.
    sql: String,
    /// Between whom.
    between: String,
    left: String,
    right: String,
    /// SQLSTATEs and message without names.
    sign: String,
}

fn sign(verdict: Verdict, ebb: &Answer, peer: &Answer) -> String {
    let mut message = String::new();
    let mut quoted = false;
    for c in ebb.message.chars().chain(" / ".chars()).chain(peer.message.chars()) {
        if c == '"' {
            quoted = !quoted;
        } else if !quoted && !c.is_ascii_digit() {
            message.push(c);
        }
    }
    format!("{verdict:?} {} {} {message}", ebb.state, peer.state)
}

impl Differ {
    /// Connects to one Ebb and to peers.
    pub fn new(options: Options, ebb: &Target, peers: &[(String, Target)]) -> Differ {
        let setup = "SET timezone = 'Europe/Berlin'; SET extra_float_digits = 1; SET client_min_messages = error; SET work_mem = '1MB'; SET statement_timeout = '2s'";
        Differ {
            options,
            catalog: Catalog::new(),
            ebb: Side::new("Ebb", ebb, setup),
            plans: Side::new("Ebb, other plan", ebb, setup),
            peers: peers.iter().map(|(n, t)| Side::new(n, t, setup)).collect(),
            tables: Vec::new(),
            found: BTreeSet::new(),
            counts: BTreeMap::new(),
        }
    }

    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    fn generator(&self, c: Choices, tables: bool) -> Gen<'_> {
        Gen::new(c, &self.catalog, if tables { &self.tables } else { &[] })
    }

    /// Ebb's answer against those of the peers: the difference to the first, if it is no peer's.
    fn judge(
        &mut self,
        ebb: &Answer,
        sql: &str,
        ordered: bool,
        strict: bool,
        run: impl Fn(&mut Side) -> Answer,
    ) -> Option<Difference> {
        let mut first: Option<(Verdict, Answer, String)> = None;
        // All of them, whatever the first one says: they must have done the same writes.
        let answers: Vec<Answer> = self.peers.iter_mut().map(run).collect();
        for (at, peer) in answers.into_iter().enumerate() {
            let newer = peer.state == "42883" && at + 1 < self.peers.len();
            // It has no way to run such a join.
            let unable = peer.message.starts_with("FULL JOIN is only supported");
            if peer.state == "XX000" || newer || unable {
                continue;
            }
            let mut verdict = compare(ebb, &peer, ordered, strict);
            if verdict == Verdict::Equal && self.options.messages && ebb.message != peer.message {
                verdict = Verdict::State;
            }
            match verdict {
                Verdict::Equal => return None,
                Verdict::Soft => {
                    self.count("soft");
                    return None;
                }
                Verdict::Unsupported => {
                    let message = ebb.message.clone();
                    self.count(&format!("unsupported: {message}"));
                    return None;
                }
                _ => {}
            }
            if first.is_none() {
                first = Some((verdict, peer, self.peers[at].name.clone()));
            }
        }
        let (verdict, peer, name) = first?;
        let sign = sign(verdict, ebb, &peer);
        Some(Difference {
            verdict,
            sql: sql.into(),
            between: format!("Ebb / {name}"),
            left: ebb.show(),
            right: peer.show(),
            sign,
        })
    }

    fn within(
        &self,
        what: &str,
        sql: &str,
        base: &Answer,
        other: &Answer,
        ordered: bool,
        strict: bool,
    ) -> Option<Difference> {
        // `other` stands for Ebb: a fault of that way shows as its own.
        match compare(other, base, ordered, strict) {
            Verdict::Equal | Verdict::Soft => None,
            verdict => Some(Difference {
                verdict,
                sql: sql.into(),
                between: format!("Ebb, {what} / Ebb"),
                left: other.show(),
                right: base.show(),
                sign: sign(verdict, other, base) + what,
            }),
        }
    }

    fn query_case(
        &mut self,
        statement: &Statement,
        strict: bool,
        way: usize,
        switches: &str,
    ) -> Option<Difference> {
        let sql = statement.sql();
        let base = self.ebb.simple(&sql);
        if let Some(d) = self.judge(&base, &sql, statement.ordered, strict, |p| p.simple(&sql)) {
            return Some(d);
        }
        if matches!(base.state.as_str(), "57014" | "0A000") || base.state.starts_with("42") {
            return None;
        }
        match way {
            1 | 2 | 7 | 8 if !strict => {
                self.plans.simple(switches);
                let other = self.plans.simple(&sql);
                self.plans.simple("RESET ALL");
                let setup = self.plans.setup.clone();
                self.plans.simple(&setup);
                self.within(switches, &sql, &base, &other, statement.ordered, strict)
            }
            3 | 5 => {
                let (text, values) = statement.with_parameters();
                let other = self.ebb.parameters(&text, &values, false);
                // What a constant bare of type came to is not what a parameter of that type comes to.
                let typed = |l: &values::Literal| !l.bare || !strict && l.typed();
                if !statement.literals.iter().all(typed) {
                    return None;
                }
                let shown = format!("{text} -- {values:?}");
                self.within("parameters", &shown, &base, &other, statement.ordered, strict)
            }
            4 => {
                let (text, values) = statement.with_parameters();
                let other = self.ebb.parameters(&text, &values, true);
                let shown = format!("(binary) {text} -- {values:?}");
                self.judge(&other, &shown, false, false, |p| p.parameters(&text, &values, true))
            }
            11 if !strict => self.view_case(statement, &base),
            9 | 10 if !strict => {
                let custom = way == 10;
                let d = self.prepared_case(statement, custom, &base);
                self.ebb.simple("RESET plan_cache_mode; DEALLOCATE ALL");
                d
            }
            6 => {
                for _ in 0..2 {
                    self.ebb.simple(&statement.varied());
                }
                let other = self.ebb.simple(&sql);
                self.within("after other constants", &sql, &base, &other, statement.ordered, strict)
            }
            _ => None,
        }
    }

    /// The query as a view, and as what the view is printed as.
    fn view_case(&mut self, statement: &Statement, base: &Answer) -> Option<Difference> {
        if !base.state.is_empty() || base.types.is_empty() {
            return None;
        }
        let names: Vec<String> = (0..base.types.len()).map(|n| format!("o{n}")).collect();
        let sql = format!("SELECT * FROM ({}) d({})", statement.sql(), names.join(", "));
        let begin = format!("BEGIN; CREATE VIEW round AS {sql}");
        let show = "SELECT pg_get_viewdef('round'), pg_get_viewdef('round', true)";
        let made = self.ebb.simple(&begin);
        let mut found = None;
        if made.state.is_empty() {
            let texts = self.ebb.simple(show);
            found = self.judge_texts(&begin, show, &texts);
            let read = self.ebb.simple("SELECT * FROM round");
            found = found.or_else(|| self.within("view", &begin, base, &read, false, false));
            for text in texts.rows.iter().flatten().flatten() {
                let text = String::from_utf8_lossy(text).into_owned();
                let again = self.ebb.simple(&text);
                let shown = format!("{begin}; {text}");
                let printed = self.within("printed", &shown, base, &again, false, false);
                found = found.or(printed);
            }
        } else if made.state != "42P16" {
            // There are no views with columns of some types.
            found = self.within("view", &begin, base, &made, false, false);
        }
        self.ebb.simple("ROLLBACK");
        found
    }

    /// What a view is printed as, there and here.
    fn judge_texts(&mut self, begin: &str, show: &str, texts: &Answer) -> Option<Difference> {
        if !self.options.messages {
            return None;
        }
        let shown = format!("{begin}; {show}");
        self.judge(texts, &shown, true, true, |peer| {
            let made = peer.simple(begin);
            let texts = if made.state.is_empty() { peer.simple(show) } else { made };
            peer.simple("ROLLBACK");
            texts
        })
    }

    /// The statement prepared, and run for other values and for its own.
    fn prepared_case(
        &mut self,
        statement: &Statement,
        custom: bool,
        base: &Answer,
    ) -> Option<Difference> {
        let (text, values) = statement.with_parameters();
        if values.is_empty() || statement.literals.iter().any(|l| l.bare && !l.typed()) {
            return None;
        }
        let mode = if custom { "force_custom_plan" } else { "force_generic_plan" };
        let execute = |literals: &[values::Literal]| {
            let list: Vec<String> = literals
                .iter()
                .map(|l| values::Literal { bare: false, ..l.clone() }.sql())
                .collect();
            format!("EXECUTE p({})", list.join(", "))
        };
        let used = statement.used();
        self.ebb.simple(&format!("SET plan_cache_mode = {mode}"));
        let made = self.ebb.simple(&format!("PREPARE p AS {text}"));
        let shown = format!("({mode}) PREPARE p AS {text}; {}", execute(&used));
        if !made.state.is_empty() {
            return self.within("prepared", &shown, base, &made, false, false);
        }
        let others = statement.other().used();
        let direct = self.ebb.simple(&statement.varied());
        let other = self.ebb.simple(&execute(&others));
        let ordered = statement.ordered;
        let varied = format!("({mode}) PREPARE p AS {text}; {}", execute(&others));
        let d = self.within("prepared", &varied, &direct, &other, ordered, false);
        if d.is_some() {
            return d;
        }
        let own = self.ebb.simple(&execute(&used));
        self.within("prepared", &shown, base, &own, ordered, false)
    }

    fn script_case(&mut self, script: &[Statement]) -> Option<Difference> {
        let mut shown: Vec<String> = Vec::new();
        let mut difference = None;
        for statement in script {
            let mut sql = statement.sql();
            if let Some(name) = sql.strip_prefix("ROLLBACK_IF_FAILED ").map(str::to_owned) {
                for side in std::iter::once(&mut self.ebb).chain(&mut self.peers) {
                    let word = if side.failed() { "ROLLBACK TO" } else { "RELEASE" };
                    side.simple(&format!("{word} {name}"));
                }
                sql = format!("-- then: {name}");
                shown.push(sql);
                continue;
            }
            if let Some(query) = sql.strip_prefix("EACH_PLAN ").map(str::to_owned) {
                let plain = self.ebb.simple(&query);
                let scans = if plain.state.is_empty() { SCANS } else { &[] };
                let found = scans.iter().find_map(|scan| {
                    self.ebb.simple(scan);
                    let other = self.ebb.simple(&query);
                    self.ebb.simple("SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_indexscan TO DEFAULT; SET LOCAL enable_bitmapscan TO DEFAULT");
                    self.within(scan, &query, &plain, &other, statement.ordered, false)
                });
                if let Some(mut d) = found {
                    shown.push(query);
                    d.sql = shown.join(";\n");
                    difference = Some(d);
                    break;
                }
                sql = query;
            }
            let answer = self.ebb.simple(&sql);
            shown.push(sql.clone());
            let Some(mut d) =
                self.judge(&answer, &sql, statement.ordered, false, |p| p.simple(&sql))
            else {
                // A soft difference: the rest would differ for it.
                let alike = self.peers.iter().all(|p| p.failed() == self.ebb.failed());
                if !alike || answer.state == "0A000" {
                    break;
                }
                continue;
            };
            d.sql = shown.join(";\n");
            difference = Some(d);
            break;
        }
        for side in std::iter::once(&mut self.ebb).chain(&mut self.peers) {
            // On a busy machine the time for a statement may end in the middle of this one, too: the next script's BEGIN would find the block.
            let mut answer = side.simple("ROLLBACK");
            for _ in 0..10 {
                if answer.state.is_empty() {
                    break;
                }
                let what =
                    format!("ROLLBACK of {}: {} {}", side.name, answer.state, answer.message);
                *self.counts.entry(what).or_default() += 1;
                answer = side.simple("ROLLBACK");
            }
        }
        difference
    }

    fn case(&mut self, kind: Kind, choices: Choices) -> (Option<Difference>, Vec<u32>) {
        match kind {
            Kind::Scalar | Kind::Query => {
                let mut g = self.generator(choices, kind == Kind::Query);
                let way = g.c.below(12);
                let mut off = Vec::new();
                for s in SWITCHES {
                    if g.c.percent(35) {
                        off.push(format!("SET {s} = off"));
                    }
                }
                if g.c.percent(30) {
                    off.push("SET work_mem = '64kB'".into());
                }
                if g.c.percent(25) {
                    off.push(format!("SET {}", g.c.pick(PRICES)));
                }
                let strict = kind == Kind::Scalar;
                let (statement, taken) = if strict { g.scalar() } else { g.whole() };
                (self.query_case(&statement, strict, way, &off.join("; ")), taken)
            }
            Kind::Write => {
                let (script, taken) = self.generator(choices, true).script();
                (self.script_case(&script), taken)
            }
        }
    }

    fn set_up(&mut self, seed: u64) -> bool {
        let made = schema::make(&mut Choices::new(seed));
        for sql in &made.statements {
            let answer = self.ebb.simple(sql);
            for at in 0..self.peers.len() {
                let peer = self.peers[at].simple(sql);
                let verdict = compare(&answer, &peer, true, true);
                if verdict == Verdict::Soft {
                    // Another one took its time.
                    self.count("set-ups left off");
                    return false;
                }
                if !matches!(verdict, Verdict::Equal | Verdict::Unsupported) {
                    self.found.insert(format!("set-up {seed}"));
                    println!(
                        "--- set-up ({verdict:?}): {sql}\nEbb:  {}\n{}: {}",
                        answer.show(),
                        self.peers[at].name,
                        peer.show()
                    );
                    return false;
                }
            }
        }
        self.tables = made.tables;
        true
    }

    /// Runs until the time is over; says how many different differences there were.
    pub fn run(&mut self) -> usize {
        println!(
            "seed {}; {} functions and operators by result type",
            self.options.seed,
            self.catalog.len()
        );
        let end = Instant::now() + self.options.time;
        let mut rng = SmallRng::seed_from_u64(self.options.seed);
        while Instant::now() < end && self.found.len() < self.options.most {
            let schema: u64 = rng.random();
            if self.options.kinds != [Kind::Scalar] && !self.set_up(schema) {
                continue;
            }
            for _ in 0..500 {
                let seed: u64 = rng.random();
                let kind = self.options.kinds[rng.random_range(0..self.options.kinds.len())];
                if Instant::now() >= end || self.found.len() >= self.options.most {
                    break;
                }
                let (difference, taken) = self.case(kind, Choices::new(seed));
                self.count(&format!("{kind:?}"));
                if let Some(difference) = difference {
                    self.report(kind, schema, &difference, taken);
                }
            }
        }
        self.found.len()
    }

    fn report(&mut self, kind: Kind, schema: u64, first: &Difference, taken: Vec<u32>) {
        // Errors are told apart by what they say; rows only once they are reduced.
        let by_rows = matches!(first.verdict, Verdict::Rows) || first.sign.len() < 16;
        if !by_rows && self.found.contains(&first.sign) {
            self.count("again");
            return;
        }
        let mut best = first.clone();
        let tries = self.options.tries;
        reduce(taken, tries, |list| match self.case(kind, Choices::replay(list)).0 {
            Some(d) if d.verdict == first.verdict && (by_rows || d.sign == first.sign) => {
                best = d;
                true
            }
            _ => false,
        });
        if !self.found.insert(if by_rows { shape(&best.sql) } else { best.sign.clone() }) {
            self.count("again");
            return;
        }
        println!(
            "--- {:?}, {kind:?}, tables {schema}, {}\n{}\n  {}\n  {}",
            best.verdict, best.between, best.sql, best.left, best.right
        );
    }
}

/// A statement without its constants.
fn shape(sql: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for c in sql.chars() {
        if c == '\'' {
            quoted = !quoted;
        }
        if !quoted && !c.is_ascii_digit() {
            out.push(c);
        }
    }
    out
}

/// The statements that make the tables of a seed.
pub fn tables(seed: u64) -> Vec<String> {
    schema::make(&mut Choices::new(seed)).statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_generated_parses_and_can_be_played_again() {
        let catalog = Catalog::new();
        assert!(catalog.len() > 1000);
        let schema = schema::make(&mut Choices::new(5));
        for sql in &schema.statements {
            sql::parse::parse(sql).unwrap_or_else(|e| panic!("{e:?}: {sql}"));
        }
        let make = |c: Choices, tables: bool| {
            Gen::new(c, &catalog, if tables { &schema.tables } else { &[] })
        };
        for seed in 0..300 {
            let (query, taken) = make(Choices::new(seed), true).whole();
            for sql in [query.sql(), query.varied(), query.with_parameters().0] {
                assert!(!sql.contains(['\u{1}', '\u{2}']), "{sql}");
                sql::parse::parse(&sql).unwrap_or_else(|e| panic!("seed {seed}: {e:?}: {sql}"));
            }
            assert_eq!(make(Choices::replay(&taken), true).whole().0, query);
            let (scalar, _) = make(Choices::new(seed), false).scalar();
            let sql = scalar.sql();
            sql::parse::parse(&sql).unwrap_or_else(|e| panic!("seed {seed}: {e:?}: {sql}"));
            let (script, taken) = make(Choices::new(seed), true).script();
            assert_eq!(make(Choices::replay(&taken), true).script().0, script);
        }
    }

    #[test]
    fn answers_differ_by_rows_types_and_states() {
        let text = |v: &str| Some(v.as_bytes().to_vec());
        let answer = |rows: Vec<Vec<Option<Vec<u8>>>>, ty: u32| Answer {
            types: vec![ty],
            rows,
            tags: vec!["SELECT".into()],
            ..Answer::default()
        };
        let (a, b) = (vec![text("1")], vec![text("2")]);
        let left = answer(vec![a.clone(), b.clone()], 23);
        let turned = answer(vec![b.clone(), a.clone()], 23);
        assert_eq!(compare(&left, &turned, false, true), Verdict::Equal);
        assert_eq!(compare(&left, &turned, true, true), Verdict::Rows);
        assert_eq!(compare(&left, &answer(vec![a.clone(), a], 23), false, true), Verdict::Rows);
        assert_eq!(compare(&left, &answer(vec![b], 20), true, true), Verdict::Types);
        let zeroes = |v: &str| answer(vec![vec![text(v)]], 1700);
        assert_eq!(compare(&zeroes("1.50"), &zeroes("1.5"), true, false), Verdict::Equal);
        assert_eq!(compare(&zeroes("1.50"), &zeroes("1.5"), true, true), Verdict::Rows);
        let error = |state: &str| Answer { state: state.into(), ..Answer::default() };
        assert_eq!(compare(&error("22012"), &left, true, false), Verdict::Soft);
        assert_eq!(compare(&error("22012"), &left, true, true), Verdict::State);
        assert_eq!(compare(&error("42703"), &left, true, false), Verdict::State);
        assert_eq!(compare(&error("XX000"), &left, true, false), Verdict::Broken);
        assert_eq!(compare(&Answer::lost("gone"), &left, true, false), Verdict::Broken);
        assert_eq!(compare(&error("0A000"), &left, true, false), Verdict::Unsupported);
    }
}
