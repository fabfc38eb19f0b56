//! `sql`: parse, analyse, plan, execute.

#![forbid(unsafe_code)]

pub mod analyse;
pub mod analyze_stats;
pub mod client;
pub mod deparse;
pub mod exec;
pub mod parse;
pub mod plan;
pub mod query;
pub mod scram;
