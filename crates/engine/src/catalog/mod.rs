//! The catalogs: ordinary heap tables that describe everything else.
//!
//! # Layout
//! [`defs`] says what the catalogs look like, [`rows`] names their columns, [`load`] makes
//! [`model::Table`]s of their rows.

pub mod bootstrap;
pub mod cache;
mod changes;
pub mod class_writes;
pub mod defs;
mod descriptions;
pub mod domains;
pub mod enums;
pub mod extended;
pub mod load;
pub mod model;
pub mod options;
mod relocation;
mod row_shapes;
pub mod rows;
pub mod store;
pub mod stored;
pub mod visit;
