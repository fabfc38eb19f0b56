//! `sql`: parse, analyse, plan, execute.

#![forbid(unsafe_code)]

pub mod query;
