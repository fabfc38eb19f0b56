//! EXPLAIN.

use super::Session;
use crate::parse::utility::Explain;
use base::Result;
use std::sync::Arc;

/// The lines that EXPLAIN returns.
pub(super) fn explain(
    _session: &mut Session,
    _explain: &Explain,
    _source: &Arc<str>,
) -> Result<Vec<String>> {
    Err(base::Error::unsupported("EXPLAIN"))
}
