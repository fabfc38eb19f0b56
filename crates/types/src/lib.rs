//! `types`: PostgreSQL's types.
//!
//! # Purpose
//! Values ([`Datum`]), their text, binary and on-page forms, comparison and hashing, and the tables of
//! functions, operators, casts and aggregates that the analyser resolves names against.
//!
//! # Layout
//! `data/` holds PostgreSQL's own catalog rows as tab-separated facts, [`facts`] parses them, [`registry`] joins
//! `pg_proc` to the Rust bodies listed in `functions/`, `datetime/` and `json/`: a function exists in Ebb when it has a body.
//! [`io`] has the text and binary forms, [`store`] the on-page form, [`compare`] order, equality and hashes, [`typename`]
//! types by name and OID, [`enums`], [`domains`] and [`row_types`] the types that users made, [`late`] values that are not read yet.

#![forbid(unsafe_code)]

pub mod args;
pub mod array;
pub mod compare;
pub mod ctype;
pub mod datetime;
pub mod datum;
pub mod domains;
pub mod enums;
pub mod env;
pub mod facts;
mod functions;
pub mod io;
pub mod json;
pub mod late;
pub mod left_out;
mod macros;
pub mod numeric;
pub mod oids;
mod recent;
pub mod registry;
pub mod row_types;
pub mod store;
pub mod text;
pub mod typename;

pub use compare::{RawComparator, abbreviated_key, compare_encoded, equal, hash, raw_comparator};
pub use ctype::Ctype;
pub use datum::{ArrayValue, Datum, EnumValue, Interval, RecordColumn, RecordValue, Text};
pub use env::{Env, Style};
pub use facts::{CastContext, CastInfo, CastMethod, OperatorInfo, TypeInfo};
pub use functions::float;
pub use functions::hash::{hash_float8, hash_words};
pub use functions::like::{LikePattern, like};
pub use functions::misc::size_pretty;
pub use functions::quote::{keyword, keywords, quote_ident, quote_literal};
pub use io::{binary_input, binary_output, text_input, text_output, utf8};
pub use late::LateValue;
pub use numeric::Numeric;
pub use registry::{
    Aggregate, AggregateState, FunctionBody, FunctionInfo, FunctionKind, Volatility,
};
pub use store::{decode, encode};
pub use typename::{
    array_type, element_type, format_type, type_by_name, type_info, type_text, typmod_in,
};
