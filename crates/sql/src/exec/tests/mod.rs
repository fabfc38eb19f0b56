//! Statements over real tables, with the answers PostgreSQL gives.

mod calculated;
mod db;
mod first_rows;
mod queries;
mod writes;
