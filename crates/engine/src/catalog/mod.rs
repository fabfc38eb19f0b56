//! The catalogs.

pub mod model;
