//! `engine`: the database as a library.

#![forbid(unsafe_code)]

pub mod catalog;
pub mod relation;
pub mod toast;
