//! A statement's text with its constants taken out: `WHERE a = 5` as `WHERE a = $1`.
//!
//! # Purpose
//! What `pg_stat_statements` shows of all statements that differ in their constants alone, and what utility statements are told apart by.
//! Queries are told apart by what they mean: [`super::jumble`].
//!
//! # Invariants
//! Constants are numbered in the order of the text, from the one after the statement's own highest parameter. A list of constants is its
//! first one and a remark; then parameters are numbered anew with the constants, as those in lists have gone.
//!
//! # Differs from PostgreSQL
//! Constants of an expression that is grouped by are taken out in GROUP BY too, not only where it stands first.

use super::constants::{Place, places};
use super::hash::Hash;
use crate::parse::tokens::{Kind, Token, tokens};
use crate::parse::utility::{SettingChange, TransactionStatement, UtilityStatement as U};
use crate::parse::{Dialect, Parsed, Statement};

/// A piece of the text that something stands for.
struct Piece {
    start: usize,
    end: usize,
    list: bool,
    /// A parameter that the text has itself.
    param: bool,
}

/// The statement's text without constants.
pub fn normalised(parsed: &Parsed, dialect: Dialect) -> String {
    // PREPARE's text is kept to the end of what came with it.
    let text = parsed.text().trim_end().trim_end_matches(';').trim_end();
    let Some(lexed) = Lexed::of(parsed, dialect) else { return text.to_owned() };
    let pieces = lexed.pieces(parsed);
    let mut out = String::with_capacity(text.len() + 16);
    let (mut copied, end) = (parsed.start, parsed.start + text.len());
    let mut number = if pieces.iter().any(|p| p.list) { 0 } else { lexed.highest_param() };
    for piece in &pieces {
        // Of what stands within another the outer one counts.
        if piece.start < copied || piece.end > end {
            continue;
        }
        number += 1;
        out.push_str(parsed.source.get(copied..piece.start).unwrap_or(""));
        out.push_str(&format!("${number}"));
        if piece.list {
            out.push_str(" /*, ... */");
        }
        copied = piece.end;
    }
    out.push_str(parsed.source.get(copied..end).unwrap_or(""));
    out
}

/// What a utility statement is known by: its words, and its constants where they are not taken out.
pub fn utility_id(parsed: &Parsed, statement: &U, dialect: Dialect) -> i64 {
    let mut hash = Hash::new();
    hash.text("utility");
    match statement {
        // All values of a setting are one.
        U::Set(set) => {
            if let SettingChange::Set { name, .. } = &set.setting
                && Lexed::of(parsed, dialect).is_some_and(|lexed| lexed.value().is_some())
            {
                hash.text("set");
                hash.number(u64::from(set.local));
                hash.text(name);
                return hash.id();
            }
        }
        // Written in many ways.
        U::Transaction(transaction) => {
            let nameless = match transaction {
                TransactionStatement::Savepoint(_) => {
                    TransactionStatement::Savepoint(String::new())
                }
                TransactionStatement::Release(_) => TransactionStatement::Release(String::new()),
                TransactionStatement::RollbackTo(_) => {
                    TransactionStatement::RollbackTo(String::new())
                }
                other => other.clone(),
            };
            hash.text(&format!("{nameless:?}"));
            return hash.id();
        }
        _ => {}
    }
    match Lexed::of(parsed, dialect) {
        Some(lexed) => lexed.hash(parsed, &mut hash),
        None => hash.text(parsed.text()),
    }
    hash.id()
}

/// The tokens of a statement.
struct Lexed<'a>(Vec<Token<'a>>);

impl<'a> Lexed<'a> {
    fn of(parsed: &'a Parsed, dialect: Dialect) -> Option<Lexed<'a>> {
        let mut list = tokens(&parsed.source, dialect).ok()?;
        let within = |t: &Token<'_>| {
            t.start as usize >= parsed.start && t.end as usize <= parsed.end && t.kind != Kind::End
        };
        list.retain(within);
        Some(Lexed(list))
    }

    fn highest_param(&self) -> usize {
        let params = self.0.iter().filter(|t| t.kind == Kind::Param);
        params.filter_map(|t| t.text.parse().ok()).max().unwrap_or(0)
    }

    /// Which token begins at byte `loc`.
    fn at(&self, loc: u32) -> Option<usize> {
        self.0.binary_search_by_key(&loc, |t| t.start).ok()
    }

    fn is(&self, at: usize, op: &str) -> bool {
        self.0.get(at).is_some_and(|t| t.kind == Kind::Op && t.text == op)
    }

    fn piece(&self, from: usize, to: usize) -> Piece {
        let (start, end) = (self.0[from].start as usize, self.0[to].end as usize);
        Piece { start, end, list: false, param: false }
    }

    /// A constant that begins at `loc`.
    fn constant(&self, loc: u32) -> Option<Piece> {
        let at = self.at(loc)?;
        let token = self.0.get(at)?;
        let next = |text: &str| self.0.get(at + 1).is_some_and(|t| t.text == text);
        // What the grammar has put there itself is nowhere in the text, or behind a word.
        match &*token.text {
            "substring" | "overlay" if token.kind == Kind::Word => return None,
            "limit" if next("all") => return Some(self.piece(at + 1, at + 1)),
            "fetch" if next("first") || next("next") => {
                let number = self.0.get(at + 2).is_some_and(|t| t.kind == Kind::Number);
                return number.then(|| self.piece(at + 2, at + 2));
            }
            _ => {}
        }
        let last = match token.kind {
            Kind::String | Kind::Bits | Kind::Hex | Kind::Number | Kind::Word => at,
            Kind::Op if token.text == "-" && self.0.get(at + 1)?.kind == Kind::Number => at + 1,
            _ => return None,
        };
        Some(self.piece(at, last))
    }

    /// What the parentheses or brackets hold that open next after `loc`.
    fn list(&self, loc: u32) -> Option<Piece> {
        let from = self.at(loc)?;
        let open = (from..self.0.len()).find(|i| self.is(*i, "(") || self.is(*i, "["))?;
        let mut depth = 0;
        for at in open..self.0.len() {
            if self.is(at, "(") || self.is(at, "[") {
                depth += 1;
            } else if self.is(at, ")") || self.is(at, "]") {
                depth -= 1;
                if depth == 0 {
                    let (start, end) = (self.0[open].end as usize, self.0[at].start as usize);
                    return Some(Piece { start, end, list: true, param: false });
                }
            }
        }
        None
    }

    /// What of the text something stands for, in its order.
    fn pieces(&self, parsed: &Parsed) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = places(&parsed.statement)
            .into_iter()
            .filter_map(|place| match place {
                Place::Constant(loc) => self.constant(loc),
                Place::List(loc) => self.list(loc),
                Place::Param(loc) => {
                    let at = self.at(loc)?;
                    let own = self.0.get(at)?.kind == Kind::Param;
                    if own {
                        Some(Piece { param: true, ..self.piece(at, at) })
                    } else {
                        self.constant(loc)
                    }
                }
            })
            .collect();
        if let Statement::Utility(utility) = &parsed.statement {
            pieces.extend(self.of_utility(utility));
        }
        if !pieces.iter().any(|p| p.list) {
            pieces.retain(|p| !p.param);
        }
        pieces.sort_by_key(|p| (p.start, usize::MAX - p.end));
        pieces
    }

    /// What is taken out of a utility statement beside a query's constants.
    fn of_utility(&self, utility: &U) -> Option<Piece> {
        let last = self.0.len().checked_sub(1)?;
        match utility {
            U::Set(set) => match &set.setting {
                SettingChange::Set { .. } => self.value(),
                _ => None,
            },
            U::AlterRoleSet { .. } | U::AlterDatabaseSet { .. } => self.value(),
            U::Deallocate(Some(_)) => Some(self.piece(last, last)),
            U::Transaction(
                TransactionStatement::Savepoint(_)
                | TransactionStatement::Release(_)
                | TransactionStatement::RollbackTo(_),
            ) => Some(self.piece(last, last)),
            _ => None,
        }
    }

    /// The first value behind `=` or TO, or of SET ROLE.
    fn value(&self) -> Option<Piece> {
        let word = |at: usize, word: &str| {
            self.0.get(at).is_some_and(|t| t.kind == Kind::Word && t.text == word)
        };
        let found = (0..self.0.len()).find(|at| self.is(*at, "=") || word(*at, "to"));
        let at = match found {
            Some(at) => at + 1,
            None => (0..self.0.len()).find(|at| word(*at, "role")).filter(|at| *at < 3)? + 1,
        };
        let token = self.0.get(at)?;
        if token.kind == Kind::Word && token.text == "default" {
            return None;
        }
        let sign = self.is(at, "-") || self.is(at, "+");
        let end = if sign && at + 1 < self.0.len() { at + 1 } else { at };
        Some(self.piece(at, end))
    }

    fn hash(&self, parsed: &Parsed, hash: &mut Hash) {
        let pieces = self.pieces(parsed);
        let mut pieces = pieces.iter().peekable();
        let mut last = None;
        for token in &self.0 {
            let (start, end) = (token.start as usize, token.end as usize);
            while pieces.next_if(|p| p.end <= start).is_some() {}
            if let Some(piece) = pieces.peek()
                && piece.start <= start
                && end <= piece.end
            {
                // Of a list, however long, once.
                if last != Some(piece.start) {
                    last = Some(piece.start);
                    hash.number(u64::from(piece.list));
                }
                continue;
            }
            hash.number(token.kind as u64);
            hash.text(&token.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn check(pairs: &[(&str, &str)]) {
        for (text, wanted) in pairs {
            let parsed = parse(text).unwrap().pop().unwrap();
            assert_eq!(normalised(&parsed, Dialect::STANDARD), *wanted, "{text}");
        }
    }

    /// As PostgreSQL 18.6 shows them.
    #[test]
    fn constants_become_parameters() {
        check(&[
            ("select 1 ", "select $1"),
            (
                "select true, false, null::int, int '5', -5, 3 - 2",
                "select $1, $2, $3::int, int $4, $5, $6 - $7",
            ),
            ("select * from t where a = $1 and b = 'x'", "select * from t where a = $1 and b = $2"),
            (
                "select a, count(*) from t group by 1 order by 2 limit 3",
                "select a, count(*) from t group by 1 order by 2 limit $1",
            ),
            (
                "select b::varchar(10), 'a' || $$b$$ from t",
                "select b::varchar(10), $1 || $2 from t",
            ),
            (
                "select interval '1' day, extract(year from d)",
                "select interval $1 day, extract($2 from d)",
            ),
            (
                "select substring(b for 2) from t where b is not null and (a > 1) is true",
                "select substring(b for $1) from t where b is not null and (a > $2) is true",
            ),
            (
                "insert into t values (1, default), (2, 'b') returning 5",
                "insert into t values ($1, default), ($2, $3) returning $4",
            ),
            ("select a from t limit all", "select a from t limit $1"),
            ("select a from t fetch first 5 rows only", "select a from t fetch first $1 rows only"),
            ("select a from t fetch next row only", "select a from t fetch next row only"),
            ("update t set b = 'c' where a = 1", "update t set b = $1 where a = $2"),
        ]);
    }

    #[test]
    fn lists_are_made_short() {
        check(&[
            ("select * from t where a in (1, 2, 3)", "select * from t where a in ($1 /*, ... */)"),
            (
                "select * from t where a not in ( 1 , '2'::int )",
                "select * from t where a not in ($1 /*, ... */)",
            ),
            ("select * from t where a in (1)", "select * from t where a in ($1)"),
            ("select * from t where a in (1, a, 3)", "select * from t where a in ($1, a, $2)"),
            (
                "select array[1,2], array[1], array[[1,2],[3,4]]",
                "select array[$1 /*, ... */], array[$2], array[[$3 /*, ... */],[$4 /*, ... */]]",
            ),
            (
                "select $1 from t where a = $2 and b in ($3, $4) and c = 5",
                "select $1 from t where a = $2 and b in ($3 /*, ... */) and c = $4",
            ),
        ]);
    }

    #[test]
    fn utility_statements_keep_what_postgresql_keeps() {
        check(&[
            ("set work_mem = '5MB'", "set work_mem = $1"),
            ("set search_path to public, s1", "set search_path to $1, s1"),
            ("set work_mem = default", "set work_mem = default"),
            ("set time zone 'UTC'", "set time zone 'UTC'"),
            ("set role r", "set role $1"),
            ("savepoint s", "savepoint $1"),
            ("rollback to s", "rollback to $1"),
            ("deallocate p", "deallocate $1"),
            ("deallocate all", "deallocate all"),
            ("explain select 1", "explain select $1"),
            ("declare c cursor for select 2", "declare c cursor for select $1"),
            ("create table t as select 1", "create table t as select $1"),
            ("prepare p as select $1, 5", "prepare p as select $1, $2"),
            ("create table t (a int default 5)", "create table t (a int default 5)"),
        ]);
    }

    fn id(text: &str) -> i64 {
        let parsed = parse(text).unwrap().pop().unwrap();
        let Statement::Utility(utility) = &parsed.statement else { panic!("{text}") };
        utility_id(&parsed, utility, Dialect::STANDARD)
    }

    #[test]
    fn utility_statements_are_told_apart() {
        for (a, b) in [
            ("SET work_mem = '5MB'", "set  work_mem to 4096 -- more"),
            ("begin", "BEGIN TRANSACTION"),
            ("savepoint a", "savepoint b"),
            ("explain select 1", "EXPLAIN SELECT 2"),
            ("explain select 1 where 1 in (1,2)", "explain select 1 where 1 in (3,4,5)"),
        ] {
            assert_eq!(id(a), id(b), "{a}, {b}");
        }
        for (a, b) in [
            ("set work_mem = 1", "set local work_mem = 1"),
            ("begin", "start transaction"),
            ("drop table a", "drop table b"),
            ("create table t (a int default 1)", "create table t (a int default 2)"),
            ("explain select a from t where b = 1", "explain select a from t where c = 1"),
        ] {
            assert_ne!(id(a), id(b), "{a}, {b}");
        }
    }
}
