//! Statements of a block, and expressions that need the executor.

use super::errors;
use super::host::BlockHost;
use super::sites::{self, Kept, Made, Purpose};
use crate::analyse::ParamTypes;
use crate::client::OutputColumn;
use crate::parse::ast::QueryStatement;
use crate::parse::utility::{CopyTarget, UtilityStatement as U};
use crate::parse::{self, Parsed, Statement};
use crate::session::within::Outcome as Ran;
use crate::session::{Prepared, SessionEnv};
use base::{Error, Oid, Result, SqlError, SqlState, bail};
use plpgsql::{Columns, Command, Frame, Mode, Outcome, Site, Source, Value, Want};
use std::rc::Rc;
use types::Datum;

/// Columns as they were last described, and what the language was told of them.
#[derive(Default)]
pub(super) struct Described(Option<(Rc<Vec<OutputColumn>>, Columns)>);

impl Described {
    /// The columns, as before if they are what they were.
    pub fn columns(&mut self, columns: Option<&Rc<Vec<OutputColumn>>>) -> Option<Columns> {
        let columns = columns?;
        match &self.0 {
            Some((before, told)) if Rc::ptr_eq(before, columns) => Some(told.clone()),
            _ => {
                let told = sites::columns_of(columns);
                self.0 = Some((Rc::clone(columns), told.clone()));
                Some(told)
            }
        }
    }
}

/// So many texts are known by what was made of them.
const MOST_TEXTS: usize = 16;

/// Texts of EXECUTE that have come before: those that a loop runs again and again.
#[derive(Default)]
pub(super) struct Texts {
    known: Vec<(Box<str>, Vec<Oid>, Rc<Prepared>)>,
    /// The settings that they were read under.
    env: Option<Rc<SessionEnv>>,
}

impl Texts {
    /// Forgets them if settings are others now: constants may read otherwise.
    fn read_under(&mut self, env: &Rc<SessionEnv>) {
        if !self.env.as_ref().is_some_and(|before| Rc::ptr_eq(before, env)) {
            self.known.clear();
            self.env = Some(Rc::clone(env));
        }
    }

    fn find(&self, text: &str, using: &[Value]) -> Option<Rc<Prepared>> {
        let same = |types: &[Oid]| {
            types.len() == using.len() && types.iter().zip(using).all(|(t, v)| *t == v.ty.oid)
        };
        let found = self.known.iter().find(|(known, types, _)| **known == *text && same(types))?;
        Some(Rc::clone(&found.2))
    }

    fn keep(&mut self, text: &str, using: &[Value], prepared: &Rc<Prepared>) {
        if self.known.len() >= MOST_TEXTS {
            self.known.clear();
        }
        let types = using.iter().map(|v| v.ty.oid).collect();
        self.known.push((text.into(), types, Rc::clone(prepared)));
    }

    fn forget(&mut self, text: &str) {
        self.known.retain(|(known, ..)| **known != *text);
    }
}

/// So often a statement is made anew because others changed what it is of, before that is an error.
const TRIES: u32 = 10;

/// Was a statement refused because it is not what it was when it was prepared?
fn is_stale(error: &Error) -> bool {
    error.state() == SqlState::FEATURE_NOT_SUPPORTED
        && matches!(error, Error::Sql(e) if e.message.starts_with("cached plan must not change"))
}

/// How many rows are handed to the language.
fn limit(want: Want) -> usize {
    match want {
        Want::UpTo(rows) => usize::try_from(rows).unwrap_or(usize::MAX),
        Want::All | Want::Count => 0,
    }
}

impl BlockHost<'_> {
    /// The value of an expression that was not at hand.
    pub(super) fn evaluate_anew(&mut self, site: &Site, frame: &Frame) -> Result<Value> {
        for _ in 0..TRIES {
            let kept = match self.kept(site, frame, Purpose::Value)? {
                kept if self.is_good(&kept) => kept,
                _ => sites::make(self.session, site, frame, Purpose::Value)?,
            };
            if let Made::Simple(simple) = &kept.made {
                let value = simple.value(self.session, &kept.params);
                let ty = simple.ty;
                self.sites.put(site, kept);
                return Ok(Value { value: value?, ty });
            }
            let done = self.evaluate_query(site, frame, &kept);
            match done {
                Err(error) if is_stale(&error) => continue,
                done => {
                    self.sites.put(site, kept);
                    return done;
                }
            }
        }
        bail!(INTERNAL_ERROR, "an expression changes its meaning all the time")
    }

    fn is_good(&self, kept: &Kept) -> bool {
        match &kept.made {
            Made::Simple(simple) => simple.holds(self.session),
            Made::Statement(_) => true,
        }
    }

    /// What is kept of a site, made if need be; with the values of its parameters.
    pub(super) fn kept(
        &mut self,
        site: &Site,
        frame: &Frame,
        purpose: Purpose,
    ) -> Result<Box<Kept>> {
        if self.sites.ready(site, frame)?.is_some()
            && let Some(kept) = self.sites.take(site)
        {
            return Ok(kept);
        }
        sites::make(self.session, site, frame, purpose)
    }

    fn evaluate_query(&mut self, site: &Site, frame: &Frame, kept: &Kept) -> Result<Value> {
        let prepared = &kept.statement()?;
        let source = Source::Site(site);
        let wrong_in = |state, text: String, line: String| {
            let mut e = SqlError::new(state, text);
            e.context = Some(line);
            Err(Error::from(e))
        };
        let wrong = |state, text: String| wrong_in(state, text, format!("query: {}", site.text));
        let Some(columns) = prepared.columns.as_deref().filter(|_| prepared.is_query()) else {
            return wrong(SqlState::WRONG_OBJECT_TYPE, "query did not return data".to_owned());
        };
        if columns.len() != 1 {
            let (n, s) = (columns.len(), if columns.len() == 1 { "" } else { "s" });
            if let Mode::Assignment { .. } = site.mode {
                let text = format!("assignment source returned {n} column{s}");
                return wrong_in(SqlState::SYNTAX_ERROR, text, site.context());
            }
            return wrong(SqlState::SYNTAX_ERROR, format!("query returned {n} column{s}"));
        }
        let ty = columns[0].ty;
        let mut values = Vec::new();
        let ran = self.run_prepared(source, frame, prepared, &kept.params, 2, &mut values);
        ran.map_err(|e| if is_stale(&e) { e } else { errors::within(source, e) })?;
        if values.len() > 1 {
            let text = "query returned more than one row".to_owned();
            return wrong(SqlState::CARDINALITY_VIOLATION, text);
        }
        let value = values.pop().and_then(|mut row: Vec<Datum>| row.pop()).unwrap_or_default();
        Ok(Value { value, ty })
    }

    fn run_prepared(
        &mut self,
        source: Source<'_>,
        frame: &Frame,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        limit: usize,
        rows: &mut Vec<Vec<Datum>>,
    ) -> Result<Ran> {
        let (session, mut client) = self.parts(source, frame);
        session.run_inner(prepared, params, limit, &mut client, &mut |_, row| {
            rows.push(row.to_vec());
            Ok(())
        })
    }

    /// Runs a statement of the block.
    pub(super) fn run_site(&mut self, site: &Site, frame: &Frame, want: Want) -> Result<Outcome> {
        let source = Source::Site(site);
        for _ in 0..TRIES {
            let mut kept = self.kept(site, frame, Purpose::Statement)?;
            let prepared = kept.statement()?;
            let command = command_of(&prepared, false)?;
            let done = self.run_wanted(source, frame, &prepared, &kept.params, want);
            match done {
                Err(error) if is_stale(&error) => continue,
                Err(error) => {
                    self.sites.put(site, kept);
                    return Err(errors::within(source, error));
                }
                Ok((ran, rows)) => {
                    let columns = kept.columns.columns(ran.columns.as_ref());
                    self.sites.put(site, kept);
                    return Ok(Outcome { command, processed: ran.rows, columns, rows });
                }
            }
        }
        bail!(INTERNAL_ERROR, "a statement changes its meaning all the time")
    }

    fn run_wanted(
        &mut self,
        source: Source<'_>,
        frame: &Frame,
        prepared: &Rc<Prepared>,
        params: &[Datum],
        want: Want,
    ) -> Result<(Ran, Vec<Vec<Datum>>)> {
        if want == Want::Count {
            let (session, mut client) = self.parts(source, frame);
            let ran = session.run_inner(prepared, params, 0, &mut client, &mut |_, _| Ok(()))?;
            return Ok((ran, Vec::new()));
        }
        let mut rows = Vec::new();
        let ran = self.run_prepared(source, frame, prepared, params, limit(want), &mut rows)?;
        Ok((ran, rows))
    }

    /// EXECUTE: the statements of a text, one after another; what the last one came to.
    pub(super) fn run_text(
        &mut self,
        (text, using): (&str, &[Value]),
        frame: &Frame,
        want: Want,
    ) -> Result<Outcome> {
        let source = Source::Text { text, using };
        let located = |e| errors::within(source, e);
        if let Some(outcome) = self.run_known_text((text, using), frame, want) {
            return outcome;
        }
        let (statements, quiet) = self.parse_text(source, frame, text).map_err(located)?;
        let mut outcome =
            Outcome { command: Command::Utility, processed: 0, columns: None, rows: Vec::new() };
        let params: Vec<Datum> = using.iter().map(|v| v.value.clone()).collect();
        // What is to be said of a text is said each time.
        let alone = quiet && statements.len() == 1;
        for parsed in statements {
            let mut tries = 0;
            let (command, (ran, rows)) = loop {
                let (prepared, lasts) =
                    self.prepare_lasting(parsed.clone(), using).map_err(located)?;
                if alone && lasts {
                    self.texts.keep(text, using, &prepared);
                }
                let command = command_of(&prepared, true)?;
                match self.run_wanted(source, frame, &prepared, &params, want) {
                    Err(error) if is_stale(&error) && tries < TRIES => tries += 1,
                    done => break (command, done.map_err(located)?),
                }
            };
            let columns = ran.columns.as_ref().map(|c| sites::columns_of(c));
            outcome = Outcome { command, processed: ran.rows, columns, rows };
        }
        Ok(outcome)
    }

    /// Runs a text that has come before, of one query; None if there is none, or if it is not any more what it was.
    fn run_known_text(
        &mut self,
        (text, using): (&str, &[Value]),
        frame: &Frame,
        want: Want,
    ) -> Option<Result<Outcome>> {
        self.session.catch_up();
        self.texts.read_under(self.session.env());
        let prepared = self.texts.find(text, using)?;
        let source = Source::Text { text, using };
        let params: Vec<Datum> = using.iter().map(|v| v.value.clone()).collect();
        let done = command_of(&prepared, true).and_then(|command| {
            let (ran, rows) = self.run_wanted(source, frame, &prepared, &params, want)?;
            let columns = ran.columns.as_ref().map(|c| sites::columns_of(c));
            Ok(Outcome { command, processed: ran.rows, columns, rows })
        });
        match done {
            Err(error) if is_stale(&error) => {
                self.texts.forget(text);
                None
            }
            done => Some(done.map_err(|e| errors::within(source, e))),
        }
    }

    /// The statements of a text that was made at run time, and whether nothing was said of them.
    pub(super) fn parse_text(
        &mut self,
        source: Source<'_>,
        frame: &Frame,
        text: &str,
    ) -> Result<(Vec<Parsed>, bool)> {
        use crate::client::Client;
        let mut notices = Vec::new();
        let statements = parse::parse_noting(text, self.session.env().dialect, &mut notices);
        let (_, mut client) = self.parts(source, frame);
        notices.iter().try_for_each(|notice| client.notice(notice))?;
        Ok((statements?, notices.is_empty()))
    }

    /// Analyses one of them.
    pub(super) fn prepare_text(&mut self, parsed: Parsed, using: &[Value]) -> Result<Rc<Prepared>> {
        self.prepare_lasting(parsed, using).map(|(prepared, _)| prepared)
    }

    /// The same; whether it means the same the next time that it comes.
    fn prepare_lasting(&mut self, parsed: Parsed, using: &[Value]) -> Result<(Rc<Prepared>, bool)> {
        let types = ParamTypes::fixed(using.iter().map(|v| v.ty.oid).collect());
        // A constant such as 'now' is another one each time.
        let (prepared, timeless) =
            self.session.is_timeless(|session| session.prepare_inner(parsed, types));
        let prepared = prepared?;
        let lasts = timeless && prepared.is_query();
        Ok((prepared, lasts))
    }
}

/// What kind of statement it is; what a block can't run is an error.
pub(super) fn command_of(prepared: &Prepared, of_text: bool) -> Result<Command> {
    let Some(parsed) = prepared.parsed.as_deref() else { return Ok(Command::Utility) };
    let utility = match &parsed.statement {
        Statement::Query(query) => {
            return Ok(match query {
                QueryStatement::Select(_) => Command::Select,
                QueryStatement::Insert(_) => Command::Insert,
                QueryStatement::Update(_) => Command::Update,
                QueryStatement::Delete(_) => Command::Delete,
                QueryStatement::Merge(_) => Command::Merge,
            });
        }
        Statement::Utility(utility) => utility.as_ref(),
    };
    match utility {
        U::Copy(copy) if matches!(copy.target, CopyTarget::Stdin | CopyTarget::Stdout) => {
            bail!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL")
        }
        U::Transaction(_) if of_text => {
            bail!(FEATURE_NOT_SUPPORTED, "EXECUTE of transaction commands is not implemented")
        }
        U::Transaction(_) => {
            bail!(FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL")
        }
        U::CreateTableAs(_) if !begins_with_create(parsed.text()) => {
            if !of_text {
                return Ok(Command::SelectInto);
            }
            let text = "EXECUTE of SELECT ... INTO is not implemented";
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
                .hint(
                    "You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.",
                )
                .into())
        }
        _ => Ok(Command::Utility),
    }
}

/// CREATE TABLE AS rather than SELECT INTO: comments stand before no statement.
fn begins_with_create(text: &str) -> bool {
    text.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("create"))
}
