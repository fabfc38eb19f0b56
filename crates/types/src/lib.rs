//! `types`: PostgreSQL's types.
//!
//! # Purpose
//! Values ([`Datum`]), their text, binary and on-page forms, comparison and hashing, and the tables of
//! functions, operators, casts and aggregates that the analyser resolves names against.

#![forbid(unsafe_code)]

pub mod datum;
pub mod env;
pub mod numeric;
pub mod oids;
pub mod registry;

pub use datum::{ArrayValue, Datum, Interval, Text};
pub use env::Env;
pub use registry::{
    Aggregate, AggregateState, FunctionBody, FunctionInfo, FunctionKind, Volatility,
};
