//! The language upon a host that is a few hundred lines: what it evaluates is no SQL, but enough to see what the language does.

mod bad;
mod control;
mod errors;
mod expressions;
mod fuzz;
mod mock;
mod rows;
