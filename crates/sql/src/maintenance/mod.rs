//! VACUUM and ANALYZE.

use crate::client::Client;
use crate::parse::utility::Vacuum;
use crate::session::Session;
use base::Result;
use std::sync::Arc;

impl Session {
    /// VACUUM and ANALYZE; returns the tag.
    ///
    /// # Errors
    /// The statement's.
    pub(crate) fn vacuum_statement(
        &mut self,
        _vacuum: &Vacuum,
        _source: &Arc<str>,
        _client: &mut dyn Client,
    ) -> Result<String> {
        Err(base::Error::unsupported("VACUUM"))
    }
}
