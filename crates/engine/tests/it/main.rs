//! Tests of the engine.

mod catalogs;
mod failures;
mod lifecycle;
mod tables;
