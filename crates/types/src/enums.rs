//! Enum types: what everybody who stores or compares their values has to know of them.
//!
//! # Purpose
//! A value is stored as 4 bytes, its *key*, that compare as unsigned numbers in the order of the labels: they are the bits of
//! `pg_enum.enumsortorder` turned so that floats order as integers do. So B-trees, VACUUM, `ebb check` and recovery need no
//! catalog to compare values; only labels, which text and binary forms show, are looked up ([`crate::Env::enum_label`]).
//!
//! # Invariants
//! A label's sort order never changes once it is given, and no label is ever taken out of a type: a key means the same label
//! as long as the type lives. A new label between two others gets a number between theirs; when there is none left it
//! is refused ([`between`]).
//!
//! Whether a type is an enum its OID says by itself ([`OIDS`]), so that whoever decodes a page knows it. What a process learns besides, and
//! need not know, are names, for messages ([`name`]): when a database is opened and when a type is made or renamed. Databases may have
//! the same OIDs, so a thread says which one it works for ([`enter`]).
//! What is kept of a type is kept for good, a few hundred bytes.

use crate::facts::TypeInfo;
use base::{Oid, err};
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{OnceLock, PoisonError, RwLock};

/// The OIDs of enum types (even) and their array types (the one after); nothing else has one of these.
pub const OIDS: Range<u32> = 1 << 30..1 << 31;

/// True if the type is an enum.
#[inline]
pub fn is_enum(oid: Oid) -> bool {
    OIDS.contains(&oid.0) && oid.0.is_multiple_of(2)
}

/// True if the type is an array of an enum.
#[inline]
pub fn is_enum_array(oid: Oid) -> bool {
    OIDS.contains(&oid.0) && !oid.0.is_multiple_of(2)
}

/// The OIDs that an enum type and its array type get for a new OID of the cluster.
pub fn type_oids(new: Oid) -> (Oid, Oid) {
    let pairs = (OIDS.end - OIDS.start) / 2;
    let first = OIDS.start + 2 * (new.0.wrapping_sub(Oid::FIRST_NORMAL.0) % pairs);
    (Oid(first), Oid(first + 1))
}

type Known = RwLock<HashMap<(u64, Oid), &'static TypeInfo>>;

thread_local! {
    static SCOPE: Cell<u64> = const { Cell::new(0) };
}

/// The types that this thread names from now on are those of a database: any number that no other database of the process has. Returns the
/// one before.
pub fn enter(scope: u64) -> u64 {
    SCOPE.replace(scope)
}

/// The database that this thread works for.
pub(crate) fn scope() -> u64 {
    SCOPE.get()
}

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(Known::default)
}

fn look_up(oid: Oid) -> Option<&'static TypeInfo> {
    let known = known().read().unwrap_or_else(PoisonError::into_inner);
    known.get(&(SCOPE.get(), oid)).copied()
}

/// The enum type, or array of an enum type, with this OID.
pub(crate) fn info(oid: Oid) -> Option<&'static TypeInfo> {
    if !OIDS.contains(&oid.0) {
        return None;
    }
    look_up(oid).or_else(|| {
        name(oid, "???");
        look_up(oid)
    })
}

/// What a type is called, for messages; the last to say so is believed.
pub fn name(oid: Oid, name: &str) {
    if look_up(oid).is_some_and(|t| t.name == name) {
        return;
    }
    let info = if is_enum(oid) { element_info(oid, name) } else { array_info(oid, name) };
    let mut known = known().write().unwrap_or_else(PoisonError::into_inner);
    known.insert((SCOPE.get(), oid), Box::leak(Box::new(info)));
}

fn element_info(oid: Oid, name: &str) -> TypeInfo {
    TypeInfo {
        oid,
        name: String::leak(name.to_owned()),
        len: 4,
        by_value: true,
        kind: 'e',
        category: 'E',
        preferred: false,
        delimiter: ',',
        element: Oid(0),
        array: Oid(oid.0 + 1),
        input: "enum_in",
        output: "enum_out",
        receive: "enum_recv",
        send: "enum_send",
        typmod_in: "-",
        typmod_out: "-",
        align: 'i',
        storage: 'p',
        base_type: Oid(0),
        base_typmod: -1,
        collation: Oid(0),
        subscript: "-",
    }
}

fn array_info(oid: Oid, name: &str) -> TypeInfo {
    TypeInfo {
        oid,
        name: String::leak(name.to_owned()),
        len: -1,
        by_value: false,
        kind: 'b',
        category: 'A',
        element: Oid(oid.0 - 1),
        array: Oid(0),
        input: "array_in",
        output: "array_out",
        receive: "array_recv",
        send: "array_send",
        storage: 'x',
        subscript: "array_subscript_handler",
        ..element_info(oid, "")
    }
}

/// The key of the label at this place of the order.
pub fn key_of(sort_order: f32) -> u32 {
    let bits = (sort_order + 0.0).to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// The place in the order of the label with this key; the inverse of [`key_of`].
pub fn sort_order_of(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
}

/// A place between two neighbouring labels, if there is one left; beyond the first or last by one where there is no neighbour.
pub fn between(before: Option<f32>, after: Option<f32>) -> Option<f32> {
    let place = match (before, after) {
        (None, None) => 1.0,
        (Some(b), None) => b + 1.0,
        (None, Some(a)) => a - 1.0,
        (Some(b), Some(a)) => b.midpoint(a),
    };
    let fits = before.is_none_or(|b| b < place) && after.is_none_or(|a| place < a);
    fits.then_some(place)
}

/// What is said of text that is no label of the type called `name`.
pub fn invalid_label(name: &str, label: &str) -> base::Error {
    err!(INVALID_TEXT_REPRESENTATION, "invalid input value for enum {name}: \"{label}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_the_sort_orders_do_and_lead_back_to_them() {
        let orders =
            [-3.5e30, -2.0, -1.0, -0.5, 0.0, 1e-20, 0.5, 1.0, 1.5, 1.75, 2.0, 16_777_216.0];
        for pair in orders.windows(2) {
            assert!(key_of(pair[0]) < key_of(pair[1]), "{pair:?}");
        }
        for order in orders {
            assert_eq!(sort_order_of(key_of(order)).to_bits(), order.to_bits());
        }
        assert_eq!(key_of(-0.0), key_of(0.0));
    }

    #[test]
    fn an_oid_says_that_it_is_an_enums() {
        let (first, second) = (type_oids(Oid(16_384)), type_oids(Oid(16_385)));
        assert_eq!(first, (Oid(1 << 30), Oid((1 << 30) + 1)));
        assert_eq!(second.0, Oid((1 << 30) + 2));
        assert!(OIDS.contains(&type_oids(Oid(u32::MAX)).1.0));
        for (element, array) in [first, second] {
            assert!(is_enum(element) && !is_enum_array(element));
            assert!(is_enum_array(array) && !is_enum(array));
            let info = info(array).unwrap();
            assert!(info.is_array() && info.element == element);
            assert_eq!(crate::type_info(element).unwrap().array, array);
        }
        assert!(!is_enum(Oid(16_384)) && crate::type_info(Oid(16_384)).is_none());
    }

    #[test]
    fn a_new_label_is_strictly_between_or_refused() {
        let (low, mut high) = (1.0, 2.0);
        let mut made = 0;
        while let Some(place) = between(Some(low), Some(high)) {
            assert!(low < place && place < high);
            high = place;
            made += 1;
        }
        assert_eq!(made, 23);
        assert_eq!(between(None, Some(1.0)), Some(0.0));
        assert_eq!(between(Some(4.0), None), Some(5.0));
        assert_eq!(between(Some(16_777_216.0), None), None);
    }
}
