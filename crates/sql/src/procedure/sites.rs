//! Embedded texts, and what was made of them.
//!
//! # Invariants
//! What is kept of a text is made anew when its variables have other types than they had ([`super::names`]), or when the catalogs or
//! settings that it was made under are others ([`super::good`], and a statement's own [`Prepared`]).

use super::errors::{self, SELECT};
use super::expression::Simple;
use super::good::Good;
use super::names::SiteNames;
use crate::analyse::{self, OuterNames, ParamTypes};
use crate::parse::{self, Dialect, Parsed};
use crate::session::{Prepared, Session};
use base::{Result, bail};
use plpgsql::{Columns, Frame, Mode, Reference, Site, Source, VarId};
use std::rc::Rc;
use types::Datum;

/// What a text came to.
pub(super) enum Made {
    /// An expression that needs no executor.
    Simple(Simple),
    /// A statement.
    Statement(Rc<Prepared>),
}

/// What a text is made for: a site serves one purpose only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Its value.
    Value,
    /// Its rows, or what it does.
    Statement,
}

/// What is kept of a text.
pub(super) struct Kept {
    names: Rc<SiteNames>,
    /// Of an expression whose parameters are all scalar variables: these.
    scalars: Option<Box<[VarId]>>,
    pub made: Made,
    /// The values of its parameters, as last asked for.
    pub params: Vec<Datum>,
    /// Its columns, as they were last described: so long as a statement describes them alike, they are the same.
    pub columns: super::run::Described,
}

impl Kept {
    /// The statement that it is.
    pub fn statement(&self) -> Result<Rc<Prepared>> {
        match &self.made {
            Made::Statement(prepared) => Ok(Rc::clone(prepared)),
            Made::Simple(_) => bail!(INTERNAL_ERROR, "an expression is no statement"),
        }
    }
}

/// What is kept of the texts of a block.
#[derive(Default)]
pub(super) struct Sites {
    kept: Vec<Option<Box<Kept>>>,
}

impl Sites {
    /// What is kept of a site, with the values of its parameters; None if it must be made (anew).
    #[inline]
    pub fn ready(&mut self, site: &Site, frame: &Frame) -> Result<Option<&mut Kept>> {
        let Some(Some(kept)) = self.kept.get_mut(site.id.0 as usize) else { return Ok(None) };
        let Kept { names, params, scalars, .. } = kept.as_mut();
        if let Some(scalars) = scalars {
            for (param, id) in params.iter_mut().zip(scalars.iter()) {
                copy(param, frame.scalar(*id));
            }
            return Ok(Some(kept));
        }
        if !names.values(frame, params)? {
            return Ok(None);
        }
        Ok(Some(kept))
    }

    /// The variables that are a site's parameters.
    pub fn references(&self, site: &Site) -> Vec<Reference> {
        let kept = self.kept.get(site.id.0 as usize).and_then(Option::as_ref);
        kept.map_or_else(Vec::new, |kept| kept.names.references())
    }

    /// Takes what is kept of a site out, to run it.
    pub fn take(&mut self, site: &Site) -> Option<Box<Kept>> {
        self.kept.get_mut(site.id.0 as usize)?.take()
    }

    /// Keeps it.
    pub fn put(&mut self, site: &Site, kept: Box<Kept>) {
        let at = site.id.0 as usize;
        if self.kept.len() <= at {
            self.kept.resize_with(at + 1, || None);
        }
        self.kept[at] = Some(kept);
    }
}

/// Copies a value; the short ones without ado.
#[inline]
fn copy(to: &mut Datum, from: Option<&Datum>) {
    match (&mut *to, from) {
        (Datum::Int4(to), Some(Datum::Int4(from))) => *to = *from,
        (Datum::Int8(to), Some(Datum::Int8(from))) => *to = *from,
        (Datum::Bool(to), Some(Datum::Bool(from))) => *to = *from,
        (_, Some(from)) => to.clone_from(from),
        (_, None) => *to = Datum::Null,
    }
}

/// A site's text as it is parsed.
fn parsed(site: &Site, dialect: Dialect) -> Result<Parsed> {
    let text = match site.mode {
        Mode::Statement => site.text.to_string(),
        Mode::Expression | Mode::Assignment { .. } => format!("{SELECT}{}", site.sql()),
    };
    let mut statements = parse::parse_noting(&text, dialect, &mut Vec::new())?;
    match (statements.pop(), statements.is_empty()) {
        (Some(parsed), true) => Ok(parsed),
        (None, _) => bail!(SYNTAX_ERROR, "syntax error at end of input"),
        (Some(_), false) => bail!(SYNTAX_ERROR, "syntax error: more than one statement"),
    }
}

/// Fails unless a site's text is good syntax, with a position in its text.
pub(super) fn check_syntax(session: &Session, site: &Site) -> Result<()> {
    match parsed(site, session.env().dialect) {
        Ok(_) => Ok(()),
        Err(base::Error::Sql(mut e)) => {
            e.position = e.position.map(|at| errors::in_text(site, at));
            Err(base::Error::Sql(e))
        }
        Err(error) => Err(error),
    }
}

/// Makes of a site what is to be run, with the values of its parameters.
///
/// # Errors
/// What analysis finds, which says in which text.
pub(super) fn make(
    session: &mut Session,
    site: &Site,
    frame: &Frame,
    purpose: Purpose,
) -> Result<Box<Kept>> {
    session.catch_up();
    let names = Rc::new(SiteNames::new(frame.names(site)));
    let made = make_of(session, site, &names, purpose);
    let made = made.map_err(|e| errors::within(Source::Site(site), e))?;
    let mut params = Vec::new();
    if !names.values(frame, &mut params)? {
        bail!(INTERNAL_ERROR, "a variable's type changed while its name was looked for");
    }
    // A statement may be analysed again, and have more names then.
    let scalars = match &made {
        Made::Simple(_) => names.scalars(),
        Made::Statement(_) => None,
    };
    Ok(Box::new(Kept { names, scalars, made, params, columns: Default::default() }))
}

fn make_of(
    session: &mut Session,
    site: &Site,
    names: &Rc<SiteNames>,
    purpose: Purpose,
) -> Result<Made> {
    let parsed = parsed(site, session.env().dialect)?;
    let outer: Rc<dyn OuterNames> = Rc::clone(names) as Rc<dyn OuterNames>;
    let params = || ParamTypes::fixed(Vec::new()).within(Some(Rc::clone(&outer)));
    if purpose == Purpose::Value {
        let good = Good::now(session);
        let (state, env) = (Rc::clone(session.state()), Rc::clone(session.env()));
        let analyse = || {
            let mut params = params();
            analyse::analyse(&parsed, state.as_ref(), &mut params, env.as_ref())
        };
        let query = crate::relations::analysed(&state, analyse).0?;
        if let Some(simple) = Simple::of(&query, good, env.as_ref())? {
            return Ok(Made::Simple(simple));
        }
    }
    Ok(Made::Statement(session.prepare_inner(parsed, params())?))
}

/// A statement's columns as the language knows them.
pub(super) fn columns_of(columns: &[crate::client::OutputColumn]) -> Columns {
    columns.iter().map(|c| super::type_names::column(&c.name, c.ty)).collect()
}
