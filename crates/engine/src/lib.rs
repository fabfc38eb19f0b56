//! `engine`: the database as a library.
//!
//! # Where to look
//! | what | where |
//! |---|---|
//! | init, open, shutdown, background threads | [`database`] |
//! | whose folder it is, where recovery starts | [`control`] |
//! | redo | [`recovery`] |
//! | checkpoints and their log lines | [`checkpoint`] |
//! | relation files, file numbers, OIDs | [`storage`] |
//! | space of removed files | [`removal`] |
//! | heaps and B-trees of tables and indexes | [`relation`] |
//! | long values of rows, read when asked for | [`kept`] |
//! | the catalogs | [`catalog`] |

#![forbid(unsafe_code)]

pub mod catalog;
pub mod checkpoint;
pub mod control;
pub mod database;
pub mod kept;
pub mod recovery;
mod redo_crew;
pub mod relation;
pub mod removal;
pub mod storage;
pub mod toast;

pub use checkpoint::{CheckpointFlags, CheckpointRecord};
pub use database::{Engine, EngineOptions};
pub use storage::RelationFiles;
