//! Statements over real tables, with the answers PostgreSQL gives.

mod db;
mod queries;
mod writes;
