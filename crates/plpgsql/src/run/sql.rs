//! SQL statements, EXECUTE, PERFORM, RETURN QUERY.

use super::Run;
use crate::ast::{Into, Kind, Query};
use crate::host::{Columns, Outcome, Site, Source, Value, Want};
use base::{Result, SqlError, SqlState, bail};
use std::sync::Arc;
use types::{Datum, RecordColumn, Text};

const TOO_FEW: SqlState = SqlState(*b"P0002");
const TOO_MANY: SqlState = SqlState(*b"P0003");

/// The values of a statement, as a message lists them.
enum Used<'a> {
    Site(&'a Site),
    Values(&'a [Value]),
}

impl Run<'_> {
    pub(super) fn sql(&mut self, site: &Site, into: Option<&Into>, strict: bool) -> Result<()> {
        // A statement that writes is run to its end, and may say that it has more than a row.
        let want = match into {
            None => Want::Count,
            Some(_) => Want::UpTo(2),
        };
        let outcome = self.host.run(Source::Site(site), self.frame, want)?;
        if outcome.command.sets_found() {
            self.frame.set_found(outcome.processed > 0);
        }
        // Of a query no more is run than is asked for, of which one row counts.
        let query = outcome.command == crate::host::Command::Select;
        let writes = !query && outcome.command.sets_found();
        self.processed = match into {
            Some(_) if query && !strict => outcome.processed.min(1),
            _ => outcome.processed,
        };
        match into {
            Some(into) => self.take_row(into, outcome, strict, strict || writes, Used::Site(site)),
            None if outcome.columns.is_some() => {
                let error = SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "query has no destination for result data",
                );
                let hint = "If you want to discard the results of a SELECT, use PERFORM instead.";
                Err(if query { error.hint(hint) } else { error }.into())
            }
            None => Ok(()),
        }
    }

    /// INTO
    fn take_row(
        &mut self,
        into: &Into,
        outcome: Outcome,
        strict: bool,
        only_one: bool,
        used: Used<'_>,
    ) -> Result<()> {
        let Some(columns) = outcome.columns else {
            bail!(SYNTAX_ERROR, "INTO used with a command that cannot return data");
        };
        let count = outcome.rows.len();
        if count == 0 && strict {
            let error = SqlError::new(TOO_FEW, "query returned no rows");
            return Err(self.with_parameters(error, used)?.into());
        }
        if count > 1 && only_one {
            let mut error = SqlError::new(TOO_MANY, "query returned more than one row");
            if let Used::Site(_) = used {
                error = error.hint("Make sure the query returns a single row, or use LIMIT 1.");
            }
            return Err(self.with_parameters(error, used)?.into());
        }
        self.row_into(into, &columns, outcome.rows.into_iter().next())
    }

    /// `#print_strict_params`
    fn with_parameters(&mut self, error: SqlError, used: Used<'_>) -> Result<SqlError> {
        if !self.frame.routine().print_strict_params {
            return Ok(error);
        }
        let mut all: Vec<(String, Value)> = Vec::new();
        match used {
            Used::Site(site) => {
                let mut references = self.host.parameters(site);
                references.sort_by_key(|r| r.variable());
                for reference in references {
                    let name = match &reference {
                        crate::names::Reference::Whole(id) => &self.frame.variable(*id).name,
                        crate::names::Reference::Field(_, name) => name,
                    };
                    let name = name.to_string();
                    let value = self.frame.value(&reference)?;
                    all.push((name, Value { value, ty: self.frame.type_of(&reference)? }));
                }
            }
            Used::Values(values) => {
                let numbered = values.iter().enumerate();
                all.extend(numbered.map(|(at, v)| (format!("${}", at + 1), v.clone())));
            }
        }
        let mut list = Vec::with_capacity(all.len());
        for (name, value) in all {
            list.push(match self.text_of(&value)? {
                Some(text) => format!("{name} = '{}'", text.replace('\'', "''")),
                None => format!("{name} = NULL"),
            });
        }
        Ok(if list.is_empty() {
            error
        } else {
            error.detail(format!("parameters: {}", list.join(", ")))
        })
    }

    pub(super) fn perform(&mut self, site: &Site) -> Result<()> {
        let outcome = self.host.run(Source::Site(site), self.frame, Want::Count)?;
        self.processed = outcome.processed;
        self.frame.set_found(outcome.processed > 0);
        Ok(())
    }

    pub(super) fn call(&mut self, site: &Site) -> Result<()> {
        let outcome = self.host.run(Source::Site(site), self.frame, Want::UpTo(2))?;
        if !outcome.rows.is_empty() {
            return Err(base::Error::unsupported("CALL of a procedure with output parameters"));
        }
        Ok(())
    }

    /// The text of an EXECUTE.
    pub(super) fn dynamic_text(&mut self, site: &Site) -> Result<String> {
        let value = self.evaluate(site)?;
        match self.text_of(&value)? {
            Some(text) => Ok(text),
            None => bail!(NULL_VALUE_NOT_ALLOWED, "query string argument of EXECUTE is null"),
        }
    }

    pub(super) fn values(&mut self, sites: &[Arc<Site>]) -> Result<Vec<Value>> {
        sites.iter().map(|site| self.evaluate(site)).collect()
    }

    pub(super) fn execute(&mut self, kind: &Kind) -> Result<()> {
        let Kind::Execute { text, into, strict, using } = kind else { return Ok(()) };
        let text = self.dynamic_text(text)?;
        let using = self.values(using)?;
        // All rows are counted, for ROW_COUNT, though no more than two matter.
        let want = if into.is_some() { Want::All } else { Want::Count };
        let outcome =
            self.host.run(Source::Text { text: &text, using: &using }, self.frame, want)?;
        self.processed = outcome.processed;
        match into {
            Some(into) => self.take_row(into, outcome, *strict, *strict, Used::Values(&using)),
            None => Ok(()),
        }
    }

    pub(super) fn return_next(&mut self, site: Option<&Site>) -> Result<()> {
        let Some(site) = site else {
            bail!(SYNTAX_ERROR, "RETURN NEXT must have a parameter");
        };
        let Value { value, ty } = self.evaluate(site)?;
        let (columns, fields): (Columns, Vec<Datum>) = match value {
            Datum::Record(row) => (Arc::clone(&row.columns), row.fields.clone()),
            value => {
                let column =
                    RecordColumn { name: Text::from(""), type_oid: ty.oid, typmod: ty.typmod };
                (Arc::new([column]), vec![value])
            }
        };
        self.host.return_rows(&columns, vec![fields])
    }

    pub(super) fn return_query(&mut self, query: &Query) -> Result<()> {
        let outcome = match query {
            Query::Site(site) => self.host.run(Source::Site(site), self.frame, Want::All)?,
            Query::Dynamic { text, using } => {
                let text = self.dynamic_text(text)?;
                let using = self.values(using)?;
                let source = Source::Text { text: &text, using: &using };
                self.host.run(source, self.frame, Want::All)?
            }
        };
        let Some(columns) = outcome.columns else {
            bail!(SYNTAX_ERROR, "query is not a SELECT");
        };
        self.processed = outcome.rows.len() as u64;
        self.frame.set_found(self.processed > 0);
        self.host.return_rows(&columns, outcome.rows)
    }
}
