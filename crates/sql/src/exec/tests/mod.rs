//! Statements over real tables, with the answers PostgreSQL gives.

mod bench;
mod db;
mod queries;
mod writes;
