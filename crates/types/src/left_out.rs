//! Types of PostgreSQL that have a name here, as catalogs name them, but no values.
//!
//! # Purpose
//! Who asks for one of them is told its name, when the column is made, not when its first value is written; who calls one of their functions is
//! told what is missing, not that there is no such function.

use crate::{element_type, type_info};
use base::Oid;

/// The values of these types are neither read nor written: ranges, geometry, full text search and a few beside.
const NAMES: &[&str] = &[
    "box",
    "circle",
    "gtsvector",
    "line",
    "lseg",
    "macaddr",
    "macaddr8",
    "money",
    "path",
    "point",
    "polygon",
    "tsquery",
    "tsvector",
];

/// Functions that make values of such types of others, and what they belong to. What takes such a value needs no mention: there is none.
const FUNCTIONS: &[(&str, &[&str])] = &[
    (
        "full text search",
        &[
            "array_to_tsvector",
            "json_to_tsvector",
            "jsonb_to_tsvector",
            "phraseto_tsquery",
            "plainto_tsquery",
            "to_tsquery",
            "to_tsvector",
            "ts_debug",
            "ts_headline",
            "websearch_to_tsquery",
        ],
    ),
    (
        "ranges",
        &[
            "datemultirange",
            "daterange",
            "int4multirange",
            "int4range",
            "int8multirange",
            "int8range",
            "nummultirange",
            "numrange",
            "range_agg",
            "tsmultirange",
            "tsrange",
            "tstzmultirange",
            "tstzrange",
        ],
    ),
    ("geometric types", &["box", "circle", "line", "lseg", "path", "point", "polygon"]),
];

/// True for a type without values, and for arrays of such a type.
pub fn is_left_out(ty: Oid) -> bool {
    let ty = element_type(ty).unwrap_or(ty);
    type_info(ty).is_some_and(|t| {
        ty < Oid::FIRST_NORMAL && (matches!(t.kind, 'r' | 'm') || NAMES.contains(&t.name))
    })
}

/// What a function that there is not belongs to, if PostgreSQL has it.
pub fn feature_of(function: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|f| f.1.contains(&function)).map(|f| f.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_without_values() {
        let of = |name: &str| crate::facts::types().iter().find(|t| t.name == name).map(|t| t.oid);
        assert!(of("point").is_some_and(is_left_out) && of("_point").is_some_and(is_left_out));
        assert!(of("int4range").is_some_and(is_left_out));
        assert!(!is_left_out(crate::oids::TEXT) && !is_left_out(crate::oids::TEXT_ARRAY));
        for name in NAMES {
            assert!(of(name).is_some(), "{name} is no type");
        }
        assert_eq!(feature_of("to_tsvector"), Some("full text search"));
        assert_eq!(feature_of("lower"), None);
    }
}
