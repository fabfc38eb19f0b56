//! Functions and views that read the catalogs.

pub mod names;

/// Registers the functions.
pub fn register() {}

/// The SQL that `init` runs to make the system views.
pub fn script() -> &'static str {
    ""
}
