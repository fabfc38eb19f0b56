//! bool.

use crate::Datum;
use crate::args::*;
use crate::registry::{BodyTable, FunctionBody::Scalar as S};

pub(super) const BODIES: BodyTable = &[
    ("int4_bool", S(|_, a| Ok(Datum::Bool(int4(a, 0)? != 0)))),
    ("bool_int4", S(|_, a| Ok(Datum::Int4(i32::from(boolean(a, 0)?))))),
    ("booltext", S(|_, a| Ok(Datum::text(if boolean(a, 0)? { "true" } else { "false" })))),
    ("booland_statefunc", S(|_, a| Ok(Datum::Bool(boolean(a, 0)? && boolean(a, 1)?)))),
    ("boolor_statefunc", S(|_, a| Ok(Datum::Bool(boolean(a, 0)? || boolean(a, 1)?)))),
];
