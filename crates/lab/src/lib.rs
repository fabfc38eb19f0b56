//! The laboratory: the same SQL on Ebb and on any PostgreSQL, in one run, turn about.
//!
//! [`client`] speaks the wire protocol, [`servers`] starts, kills and restarts either server in a
//! temporary folder, [`script`] runs SQL files and prints what came back in a form that can be
//! compared, [`compare`] compares two servers so, and [`experiments`] and [`figures`] measure.
//! The tests of `ebb` use the first three.

#![forbid(unsafe_code)]

pub mod advise;
pub mod at_work;
pub mod cleanup;
pub mod cli;
pub mod client;
pub mod compare;
pub mod counters;
pub mod experiments;
pub mod figures;
pub mod files;
pub mod host;
pub mod isolation;
pub mod load;
pub mod machine;
pub mod measure;
pub mod older;
pub mod plan;
pub mod plots;
pub mod progress;
pub mod published;
pub mod report;
pub mod results;
pub mod script;
pub mod servers;
pub mod sizes;
pub mod subject;
pub mod tls;
pub mod trace;
pub mod vacuum_report;

/// Whatever went wrong; the laboratory reports it to a person and stops.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A result of the laboratory's.
pub type Result<T, E = Error> = std::result::Result<T, E>;
