//! Domains as the session sees them: whether a value is one of a domain's.

use super::state::{SessionEnv, SessionState};
use base::{Oid, Result, SqlError, SqlState};
use engine::catalog::load::RowSource;
use expr::eval::EvalContext;
use std::cell::RefCell;
use types::Datum;

/// Fails unless `value`, which is of the base type, is one of the domain's.
///
/// # Errors
/// `23514`, `23502`; what the conditions raise; I/O.
pub fn check(env: &SessionEnv, domain: Oid, value: &Datum) -> Result<()> {
    let state = &env.state;
    let constraints = state.catalog.domain(&*state.txn()?, domain)?;
    if constraints.not_null && value.is_null() {
        let name = state.domain_text(domain);
        let text = format!("domain {name} does not allow null values");
        return Err(state.domain_error(domain, SqlState::NOT_NULL_VIOLATION, text)?.into());
    }
    if constraints.checks.is_empty() {
        return Ok(());
    }
    let params = RefCell::new(Vec::new());
    let cx = EvalContext::new(env, &params);
    for check in &constraints.checks {
        if check.code.eval_bool(std::slice::from_ref(value), &cx)? != Some(false) {
            continue;
        }
        let text = format!(
            "value for domain {} violates check constraint \"{}\"",
            state.domain_text(domain),
            check.name
        );
        let mut error = state.domain_error(domain, SqlState::CHECK_VIOLATION, text)?;
        error.constraint = Some(check.name.clone());
        return Err(error.into());
    }
    Ok(())
}

impl SessionState {
    /// The domain as messages name it.
    pub fn domain_text(&self, domain: Oid) -> String {
        crate::system::names::type_name(self, domain, None)
            .unwrap_or_else(|| types::format_type(domain, -1))
    }

    /// An error about a domain, which says which one it is.
    ///
    /// # Errors
    /// I/O.
    pub fn domain_error(&self, domain: Oid, state: SqlState, text: String) -> Result<SqlError> {
        let mut error = SqlError::new(state, text);
        let txn = self.txn()?;
        let rows = self.catalog.rows(&txn);
        if let Some(row) = rows.find("pg_type", &[("oid", Datum::Oid(domain))])?.first() {
            let key = [("oid", Datum::Oid(row.oid("typnamespace")))];
            let schemas = rows.find("pg_namespace", &key)?;
            error.schema = schemas.first().map(|s| s.text("nspname").to_owned());
            error.data_type = Some(row.text("typname").to_owned());
        }
        Ok(error)
    }
}
