//! `sql`: parse, analyse, plan, execute.

#![forbid(unsafe_code)]

pub mod parse;
pub mod query;
