//! DEFERRABLE, NOT VALID and their kin, behind a constraint.
//!
//! # Invariants
//! What is said does not contradict itself, and suits the kind of constraint it is said of. A column's constraints each take their attributes
//! from the words that follow, a table's from one list; PostgreSQL refuses the same things of both in different words, and so it is here.

use super::ast::Loc;
use super::error_at;
use super::parser::Parser;
use super::utility::{ConstraintTiming, TableConstraintKind as K};
use base::{Result, SqlError, SqlState};

/// What ALTER CONSTRAINT says.
pub(super) struct Altered {
    /// When it is checked, if anything was said of that.
    pub timing: Option<ConstraintTiming>,
    /// INHERIT or NO INHERIT.
    pub inherit: Option<bool>,
    /// ENFORCED or NOT ENFORCED.
    pub enforced: Option<bool>,
}

/// The attributes in one list.
#[derive(Clone, Copy, Default)]
struct Said {
    deferrable: Option<bool>,
    deferred: Option<bool>,
    enforced: Option<bool>,
    not_valid: bool,
    no_inherit: bool,
    at: Loc,
}

fn put(slot: &mut Option<bool>, value: bool) -> bool {
    slot.replace(value).is_none_or(|before| before == value)
}

impl Parser<'_> {
    fn refuse<T>(&self, state: SqlState, text: &str, at: Loc) -> Result<T> {
        Err(error_at(self.source, SqlError::new(state, text).into(), at))
    }

    /// A table constraint's list.
    fn attributes(&mut self) -> Result<Said> {
        let mut said = Said { at: self.loc(), ..Said::default() };
        loop {
            let at = self.loc();
            let agrees = if self.accept_all(&["not", "deferrable"]) {
                put(&mut said.deferrable, false)
            } else if self.accept("deferrable") {
                put(&mut said.deferrable, true)
            } else if self.accept_all(&["initially", "deferred"]) {
                put(&mut said.deferred, true)
            } else if self.accept_all(&["initially", "immediate"]) {
                put(&mut said.deferred, false)
            } else if self.accept_all(&["not", "valid"]) {
                said.not_valid = true;
                true
            } else if self.accept_all(&["no", "inherit"]) {
                said.no_inherit = true;
                true
            } else if self.accept_all(&["not", "enforced"]) {
                put(&mut said.enforced, false)
            } else if self.accept("enforced") {
                put(&mut said.enforced, true)
            } else {
                return Ok(said);
            };
            if said.deferrable == Some(false) && said.deferred == Some(true) {
                let text = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
                return self.refuse(SqlState::SYNTAX_ERROR, text, at);
            }
            if !agrees {
                return self.refuse(
                    SqlState::SYNTAX_ERROR,
                    "conflicting constraint properties",
                    at,
                );
            }
        }
    }

    /// Is what was said for constraints of this kind?
    fn suits(
        &self,
        said: Said,
        kind: &str,
        deferrable: bool,
        valid: bool,
        alone: bool,
    ) -> Result<()> {
        let refuse = |what: &str| {
            let text = format!("{kind} constraints cannot be marked {what}");
            self.refuse(SqlState::FEATURE_NOT_SUPPORTED, &text, said.at)
        };
        if !deferrable && (said.deferrable == Some(true) || said.deferred == Some(true)) {
            return refuse("DEFERRABLE");
        }
        if !valid && said.not_valid {
            return refuse("NOT VALID");
        }
        if !alone && said.no_inherit {
            return refuse("NO INHERIT");
        }
        match said.enforced {
            Some(true) if !matches!(kind, "CHECK" | "FOREIGN KEY") => refuse("ENFORCED"),
            Some(false) if !matches!(kind, "CHECK" | "FOREIGN KEY") => refuse("NOT ENFORCED"),
            _ => Ok(()),
        }
    }

    /// Behind a table constraint.
    pub(super) fn table_timing(&mut self, kind: &K) -> Result<ConstraintTiming> {
        let said = self.attributes()?;
        match kind {
            K::Check(_) => self.suits(said, "CHECK", false, true, true)?,
            K::NotNull(_) => self.suits(said, "NOT NULL", false, true, true)?,
            K::Unique { .. } | K::UsingIndex { primary: false, .. } => {
                self.suits(said, "UNIQUE", true, false, false)?;
            }
            K::PrimaryKey { .. } | K::UsingIndex { primary: true, .. } => {
                self.suits(said, "PRIMARY KEY", true, false, false)?;
            }
            K::ForeignKey { .. } => self.suits(said, "FOREIGN KEY", true, true, false)?,
        }
        Ok(said.timing())
    }

    /// Behind ALTER CONSTRAINT.
    pub(super) fn altered_timing(&mut self) -> Result<Altered> {
        if self.accept("inherit") {
            return Ok(Altered { timing: None, inherit: Some(true), enforced: None });
        }
        let said = self.attributes()?;
        if said.not_valid {
            let text = "constraints cannot be altered to be NOT VALID";
            return self.refuse(SqlState::FEATURE_NOT_SUPPORTED, text, said.at);
        }
        let timed = said.deferrable.is_some() || said.deferred.is_some();
        Ok(Altered {
            timing: timed.then(|| said.timing()),
            inherit: said.no_inherit.then_some(false),
            enforced: said.enforced,
        })
    }

    /// Behind a column's constraint, or before any. `deferrable`, `enforceable`: it is of a kind that may be, or not.
    pub(super) fn column_timing(
        &mut self,
        deferrable: bool,
        no_inherit: bool,
        enforceable: bool,
    ) -> Result<ConstraintTiming> {
        let mut said = Said::default();
        if no_inherit && self.accept_all(&["no", "inherit"]) {
            said.no_inherit = true;
        }
        loop {
            let at = self.loc();
            let (words, first, deferral) = if self.accept_all(&["not", "deferrable"]) {
                ("NOT DEFERRABLE", said.deferrable.replace(false).is_none(), true)
            } else if self.accept("deferrable") {
                ("DEFERRABLE", said.deferrable.replace(true).is_none(), true)
            } else if self.accept_all(&["initially", "deferred"]) {
                ("INITIALLY DEFERRED", said.deferred.replace(true).is_none(), false)
            } else if self.accept_all(&["initially", "immediate"]) {
                ("INITIALLY IMMEDIATE", said.deferred.replace(false).is_none(), false)
            } else if self.is_any(&["not", "enforced"])
                && (self.is("enforced") || self.is_at(1, "enforced"))
            {
                let not = self.accept("not");
                self.expect("enforced")?;
                let wrong = if !enforceable {
                    let word = if not { "NOT ENFORCED" } else { "ENFORCED" };
                    format!("misplaced {word} clause")
                } else if said.enforced.replace(!not).is_some() {
                    "multiple ENFORCED/NOT ENFORCED clauses not allowed".to_owned()
                } else {
                    continue;
                };
                return self.refuse(SqlState::SYNTAX_ERROR, &wrong, at);
            } else {
                return Ok(said.timing());
            };
            let wrong = if !deferrable {
                format!("misplaced {words} clause")
            } else if !first && deferral {
                "multiple DEFERRABLE/NOT DEFERRABLE clauses not allowed".to_owned()
            } else if !first {
                "multiple INITIALLY IMMEDIATE/DEFERRED clauses not allowed".to_owned()
            } else if said.deferrable == Some(false) && said.deferred == Some(true) {
                "constraint declared INITIALLY DEFERRED must be DEFERRABLE".to_owned()
            } else {
                continue;
            };
            return self.refuse(SqlState::SYNTAX_ERROR, &wrong, at);
        }
    }
}

impl Said {
    fn timing(self) -> ConstraintTiming {
        let initially_deferred = self.deferred == Some(true);
        ConstraintTiming {
            deferrable: self.deferrable == Some(true) || initially_deferred,
            initially_deferred,
            // As in PostgreSQL, nobody has looked at what is not enforced.
            not_valid: self.not_valid || self.enforced == Some(false),
            no_inherit: self.no_inherit,
            not_enforced: self.enforced == Some(false),
        }
    }
}
