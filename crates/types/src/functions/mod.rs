//! The bodies of PostgreSQL's built-in functions, by subject.

mod aggregate;
mod array;
pub mod bit;
mod boolean;
mod bytea;
pub(crate) mod cidr;
mod compare;
mod enums;
pub mod float;
pub(crate) mod hash;
pub(crate) mod inet;
pub(crate) mod int;
pub mod like;
pub mod misc;
pub(crate) mod numeric;
pub mod quote;
pub(crate) mod random;
mod regex;
mod series;
mod template;
pub(crate) mod text;
mod unicode;

pub(crate) use regex::matches as regex_matches;

use crate::registry::BodyTable;

/// Every table of bodies; later ones win.
pub(crate) fn tables() -> Vec<BodyTable> {
    let mut all = compare::FAMILIES.to_vec();
    all.extend([
        bit::BODIES,
        boolean::BODIES,
        int::MIXED,
        int::BITS2,
        int::BITS4,
        int::BITS8,
        int::BODIES,
        float::MIXED,
        float::PLAIN,
        float::BODIES,
        numeric::BODIES,
        text::BODIES,
        unicode::BODIES,
        like::BODIES,
        quote::BODIES,
        regex::BODIES,
        series::BODIES,
        template::BODIES,
        array::BODIES,
        bytea::BODIES,
        enums::BODIES,
        hash::BODIES,
        inet::COMPARISONS,
        inet::BODIES,
        cidr::BODIES,
        misc::BODIES,
        random::BODIES,
    ]);
    all.extend_from_slice(crate::datetime::TABLES);
    all.extend_from_slice(crate::json::TABLES);
    all.extend_from_slice(aggregate::TABLES);
    all
}
