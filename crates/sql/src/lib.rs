//! `sql`: parse, analyse, plan, execute.

#![forbid(unsafe_code)]

pub mod acl;
pub mod activity;
pub mod analyse;
pub mod analyze_stats;
pub mod check;
pub mod client;
pub mod cluster;
pub mod config_files;
pub mod copy;
pub mod ddl;
pub mod deparse;
pub mod exec;
mod extended_stats;
mod index_check;
pub mod init;
mod kept_counts;
pub mod maintenance;
pub mod names;
pub mod notify;
pub mod parse;
pub mod plan;
mod procedure;
pub mod query;
pub mod relations;
pub mod scram;
pub mod sequence;
pub mod server_log;
pub mod session;
pub mod statements;
pub mod system;
pub mod timer;
pub(crate) mod updatable;
pub mod young_indexes;

/// A random secret from which a server derives its sessions' cancel keys.
pub fn cancel_secret() -> [u8; 32] {
    rand::random()
}
