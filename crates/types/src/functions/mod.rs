//! The bodies of PostgreSQL's built-in functions, by subject.

pub mod bit;
mod boolean;
mod compare;
mod float;
pub(crate) mod int;

use crate::registry::BodyTable;

/// Every table of bodies; later ones win.
pub(crate) fn tables() -> Vec<BodyTable> {
    let mut all = compare::FAMILIES.to_vec();
    all.extend([
        boolean::BODIES,
        int::MIXED,
        int::BITS2,
        int::BITS4,
        int::BITS8,
        int::BODIES,
        float::MIXED,
        float::PLAIN,
        float::BODIES,
        crate::datetime::BODIES,
        crate::json::BODIES,
    ]);
    all
}
