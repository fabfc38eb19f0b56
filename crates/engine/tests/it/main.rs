//! Tests of the engine.

mod lifecycle;
