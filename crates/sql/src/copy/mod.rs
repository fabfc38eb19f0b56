//! COPY.

use crate::client::Client;
use crate::parse::utility::Copy;
use crate::session::Session;
use base::Result;
use std::sync::Arc;

impl Session {
    /// COPY; returns its tag.
    ///
    /// # Errors
    /// The statement's.
    pub(crate) fn copy(
        &mut self,
        _copy: &Copy,
        _source: &Arc<str>,
        _client: &mut dyn Client,
    ) -> Result<String> {
        Err(base::Error::unsupported("COPY"))
    }
}
