//! The tables that names are resolved against.

use types::oids::*;
use types::registry::*;
use types::{CastContext, CastMethod, format_type, type_by_name, typmod_in};

#[test]
fn types_have_their_names() {
    assert_eq!(format_type(VARCHAR, 14), "character varying(10)");
    assert_eq!(format_type(NUMERIC, typmod_in(NUMERIC, &[10, 2]).unwrap()), "numeric(10,2)");
    assert_eq!(format_type(NUMERIC, typmod_in(NUMERIC, &[3, -2]).unwrap()), "numeric(3,-2)");
    assert_eq!(format_type(TIMESTAMPTZ, 3), "timestamp(3) with time zone");
    assert_eq!(format_type(INT4_ARRAY, -1), "integer[]");
    assert_eq!(format_type(BPCHAR, 5), "character(1)");
    assert_eq!(format_type(CHAR, -1), "\"char\"");
    for (name, oid) in [
        ("int", INT4),
        ("timestamp with time zone", TIMESTAMPTZ),
        ("float", FLOAT8),
        ("_int4", INT4_ARRAY),
        ("text[]", TEXT_ARRAY),
    ] {
        assert_eq!(type_by_name(name).map(|t| t.oid), Some(oid), "{name}");
    }
}

#[test]
fn casts_and_operators_are_postgresql_s() {
    let c = cast(INT4, INT8).unwrap();
    assert_eq!(
        (c.context, c.method),
        (CastContext::Implicit, CastMethod::Function(base::Oid(481)))
    );
    assert_eq!(cast(VARCHAR, TEXT).unwrap().method, CastMethod::Binary);
    assert!(cast(INT4, TEXT).is_none());
    let plus = operators_by_name("+").iter().find(|o| o.left == INT4 && o.right == INT4).unwrap();
    assert_eq!(function(plus.function).unwrap().name, "int4pl");
    let class = default_btree_class(VARCHAR).unwrap();
    assert_eq!(class.name, "text_ops");
    assert_eq!(btree_operator(class.family, TEXT, TEXT, 3), Some(base::Oid(98)));
}

#[test]
fn a_value_is_24_bytes() {
    assert_eq!(size_of::<types::Datum>(), 24);
}

#[test]
fn equal_images_are_what_indexes_may_merge() {
    for (ty, expected) in [
        (INT4, true),
        (TEXT, true),
        (VARCHAR, true),
        (NUMERIC, false),
        (FLOAT8, false),
        (JSONB, false),
        (INT4_ARRAY, false),
        (REGCLASS, true),
    ] {
        assert_eq!(types::compare::equal_image(ty), expected, "{}", format_type(ty, -1));
    }
}
