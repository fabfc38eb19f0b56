//! Tests of the engine.

mod catalogs;
mod failures;
mod in_place;
mod lifecycle;
mod tables;
