//! The words everyone uses.
//!
//! # Purpose
//! Newtypes for every number with a meaning, the error type that every storage crate returns,
//! the settings registry, stop points for tests of races, and [`sync`]: the locks, threads and
//! clock that everything else uses, so that one place can rank, trace or drive them.

pub mod backend;
pub mod encoding;
pub mod error;
pub mod fact_map;
pub mod give_way;
pub mod ids;
pub mod latency;
pub mod log;
pub mod settings;
pub mod sort;
pub mod stop;
pub mod sync;
pub mod wait;

pub use error::{Corruption, Error, Result, SqlError, SqlState};
pub use fact_map::{FactMap, FactSet};
pub use give_way::{GiveWay, Manners};
pub use ids::*;
