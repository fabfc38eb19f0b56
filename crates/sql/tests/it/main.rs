//! Statements through whole sessions, over an engine in a temporary folder.

mod amcheck;
mod cluster;
mod copy_out;
mod counts;
mod enums;
mod extensions;
mod foreign_keys;
mod full_catalog;
mod like;
mod meanwhile;
mod notify;
mod on_conflict;
mod plans;
mod rechecked;
mod reindex;
mod rewritten;
mod rights;
mod savepoints;
mod sequences;
mod sessions;
mod statements;
mod statistics;
mod support;
mod telling;
mod tiny_pool;
mod vacuum_statements;
