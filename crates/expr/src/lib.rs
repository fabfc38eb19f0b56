//! `expr`: expressions and their evaluator.
//!
//! # Purpose
//! [`Expr`] is the one expression tree: the analyser builds it with [`Expr::Var`]s, the catalogs
//! store it (defaults, checks, index keys and predicates), the planner turns its variables into
//! [`Expr::Slot`]s, and the evaluator runs that.

#![forbid(unsafe_code)]

mod any_of;
pub mod array;
pub mod code;
pub mod eval;
mod float;
pub mod fold;
pub mod json;
pub mod ops;
mod part;
pub mod tree;
pub mod walk;

pub use tree::{BoolTestKind, CaseWhen, Constant, Expr, SqlValueFunction, SubLinkKind, TypeRef};
