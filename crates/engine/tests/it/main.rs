//! Tests of the engine.

mod bounds;
mod catalogs;
mod failures;
mod in_place;
mod lifecycle;
mod tables;
