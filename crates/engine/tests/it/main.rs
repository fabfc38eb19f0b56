//! Tests of the engine.

mod catalogs;
mod lifecycle;
mod tables;
