//! Domains: what everybody who reads, checks or names their values has to know of them.
//!
//! # Purpose
//! A value of a domain is one of its base type, on pages, in rows and in expressions: nothing that stores, compares or computes with
//! values ever meets a domain's OID. What does is whoever declares things (columns, casts, parameters) and says what they are
//! called; it finds the base here, and asks the session to check values ([`crate::Env::check_domain`]).
//!
//! # Invariants
//! Whether a type is a domain, or an array of one, its OID says by itself ([`OIDS`]). The base of a domain never changes. It is noted
//! here ([`learn`]) when a database is opened and before the row of a new domain can be seen; as with the names of enum types,
//! what is noted belongs to a database ([`crate::enums::enter`]) and is kept for good.

use crate::facts::{CastMethod, TypeInfo};
use crate::registry::{self, FunctionBody};
use crate::{ArrayValue, Datum, Env, type_info};
use base::{Error, Oid, Result};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The OIDs of domains (even) and their array types (the one after); nothing else has one of these.
pub const OIDS: Range<u32> = 1 << 29..1 << 30;

/// True if the type is a domain.
#[inline]
pub fn is_domain(oid: Oid) -> bool {
    OIDS.contains(&oid.0) && oid.0.is_multiple_of(2)
}

/// True if the type is an array of a domain.
#[inline]
pub fn is_domain_array(oid: Oid) -> bool {
    OIDS.contains(&oid.0) && !oid.0.is_multiple_of(2)
}

/// The OIDs that a domain and its array type get for a new OID of the cluster.
pub fn type_oids(new: Oid) -> (Oid, Oid) {
    let pairs = (OIDS.end - OIDS.start) / 2;
    let first = OIDS.start + 2 * (new.0.wrapping_sub(Oid::FIRST_NORMAL.0) % pairs);
    (Oid(first), Oid(first + 1))
}

/// A domain, or array of a domain, as it is known.
#[derive(Clone, Copy)]
struct Known {
    info: &'static TypeInfo,
    /// The type of its values, which is no domain, and the modifier they have.
    base: Oid,
    typmod: i32,
}

type Domains = RwLock<HashMap<(u64, Oid), Known>>;

fn known() -> &'static Domains {
    static KNOWN: OnceLock<Domains> = OnceLock::new();
    KNOWN.get_or_init(Domains::default)
}

fn look_up(oid: Oid) -> Option<Known> {
    let known = known().read().unwrap_or_else(PoisonError::into_inner);
    known.get(&(crate::enums::scope(), oid)).copied()
}

/// The domain, or array of a domain, with this OID.
pub(crate) fn info(oid: Oid) -> Option<&'static TypeInfo> {
    OIDS.contains(&oid.0).then(|| look_up(oid)).flatten().map(|k| k.info)
}

/// The type and modifier that values of a domain, or array of a domain, have; None for any other type.
#[inline]
pub fn base(oid: Oid) -> Option<(Oid, i32)> {
    if !OIDS.contains(&oid.0) {
        return None;
    }
    look_up(oid).map(|k| (k.base, k.typmod))
}

/// The type that values of a type have: a domain's base, or the type itself.
#[inline]
pub fn base_type(oid: Oid) -> Oid {
    base(oid).map_or(oid, |b| b.0)
}

/// Notes a domain and its array type: what they are called, and the type below, which may be a domain itself. The last to say so is
/// believed.
pub fn learn(oid: Oid, name: &str, array_name: &str, below: Oid, typmod: i32) {
    let (base, typmod) = self::base(below).unwrap_or((below, typmod));
    let Some(of) = type_info(base) else { return };
    if look_up(oid).is_some_and(|k| k.info.name == name && k.base == base && k.typmod == typmod) {
        return;
    }
    let has_array = of.array.is_valid() && !of.is_array();
    let domain = TypeInfo {
        oid,
        name: String::leak(name.to_owned()),
        kind: 'd',
        preferred: false,
        element: Oid(0),
        array: if has_array { Oid(oid.0 + 1) } else { Oid(0) },
        input: "domain_in",
        receive: "domain_recv",
        typmod_in: "-",
        typmod_out: "-",
        base_type: below,
        base_typmod: typmod,
        subscript: "-",
        ..*of
    };
    let mut known = known().write().unwrap_or_else(PoisonError::into_inner);
    let scope = crate::enums::scope();
    let info = Box::leak(Box::new(domain));
    known.insert((scope, oid), Known { info, base, typmod });
    if let Some(of) = type_info(of.array).filter(|_| has_array) {
        let array = Oid(oid.0 + 1);
        let info = TypeInfo {
            oid: array,
            name: String::leak(array_name.to_owned()),
            element: oid,
            array: Oid(0),
            ..*of
        };
        let info = Box::leak(Box::new(info));
        known.insert((scope, array), Known { info, base: of.oid, typmod });
    }
}

/// Fails if a value of the base type is none of the domain's, or of the array's elements one is not. Any value is one of a type
/// that has no domain in it.
///
/// # Errors
/// `23514`, `23502`.
pub fn check(oid: Oid, value: &Datum, env: &dyn Env) -> Result<()> {
    if is_domain(oid) {
        return env.check_domain(oid, value);
    }
    if is_domain_array(oid)
        && let Datum::Array(array) = value
    {
        return array.elements.iter().try_for_each(|e| env.check_domain(Oid(oid.0 - 1), e));
    }
    Ok(())
}

/// A value of a type without domains, made to fit a modifier as an assignment does.
fn fit(ty: Oid, typmod: i32, value: Datum, env: &dyn Env) -> Result<Datum> {
    if typmod < 0 {
        return Ok(value);
    }
    if let Datum::Array(array) = &value {
        let element = array.element_type;
        let fitted = array.elements.iter().map(|e| fit(element, typmod, e.clone(), env));
        let elements = fitted.collect::<Result<_>>()?;
        let array = ArrayValue { element_type: element, dims: array.dims.clone(), elements };
        return Ok(Datum::Array(Arc::new(array)));
    }
    let Some(CastMethod::Function(f)) = registry::cast(ty, ty).map(|c| c.method) else {
        return Ok(value);
    };
    if value.is_null() {
        return Ok(value);
    }
    let Some(function) = registry::function(f) else { return Ok(value) };
    let args = [value, Datum::Int4(typmod), Datum::Bool(false)];
    let args = &args[..function.args.len().min(3)];
    match function.body {
        FunctionBody::Scalar(body) => body(env, args),
        FunctionBody::ScalarTyped(body) => body(env, args, function.args, ty),
        _ => Err(Error::unsupported("a length conversion that is no plain function")),
    }
}

/// What reads a value of a type without domains, given that and the modifier.
type Reader<'a> = &'a dyn Fn(Oid, i32) -> Result<Datum>;

/// A value of a domain, or array of a domain, that `read` reads as one of the base; it fits and is checked.
///
/// # Errors
/// `read`'s, `22001` and the like, `23514`, `23502`.
pub fn read_with(oid: Oid, env: &dyn Env, read: Reader<'_>) -> Result<Datum> {
    let Some((base, typmod)) = base(oid) else {
        return Err(Error::unsupported(format!("type {}", oid.0)));
    };
    let value = fit(base, typmod, read(base, typmod)?, env)?;
    check(oid, &value, env)?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oids::*;

    #[test]
    fn a_domain_is_known_by_its_oid_and_has_its_bases_layout() {
        crate::enums::enter(77);
        let (domain, array) = type_oids(Oid(16_384));
        assert!(is_domain(domain) && is_domain_array(array));
        assert!(!is_domain(array) && !is_domain(TEXT) && !crate::enums::is_enum(domain));
        assert_eq!(base(domain), None);
        learn(domain, "short", "_short", VARCHAR, 9);
        assert_eq!(base(domain), Some((VARCHAR, 9)));
        assert_eq!(base(array), Some((VARCHAR_ARRAY, 9)));
        let info = type_info(domain).unwrap();
        assert_eq!((info.kind, info.len, info.category), ('d', -1, 'S'));
        assert_eq!(crate::format_type(array, -1), "short[]");
        // A domain over it has the same values.
        let (over, _) = type_oids(Oid(16_385));
        learn(over, "over", "_over", domain, -1);
        assert_eq!(base(over), Some((VARCHAR, 9)));
        // Of another database nothing is known.
        crate::enums::enter(78);
        assert_eq!(base(domain), None);
    }

    #[test]
    fn a_value_read_fits_the_modifier() {
        crate::enums::enter(79);
        let (domain, _) = type_oids(Oid(16_384));
        learn(domain, "short", "_short", VARCHAR, 4 + 3);
        struct Any;
        impl Env for Any {
            fn setting(&self, _name: &str) -> Option<String> {
                None
            }
            fn transaction_timestamp(&self) -> i64 {
                0
            }
            fn statement_timestamp(&self) -> i64 {
                0
            }
            fn check_cancel(&self) -> Result<()> {
                Ok(())
            }
            fn as_any(&self) -> &dyn std::any::Any {
                self
            }
            fn check_domain(&self, _domain: Oid, _value: &Datum) -> Result<()> {
                Ok(())
            }
        }
        let value = crate::text_input(domain, -1, "abc", &Any).unwrap();
        assert_eq!(format!("{value:?}"), format!("{:?}", Datum::text("abc")));
        let long = crate::text_input(domain, -1, "abcd", &Any).unwrap_err();
        assert_eq!(long.to_string(), "value too long for type character varying(3)");
        // Outside a session nobody knows what may be a value.
        assert!(crate::text_input(domain, -1, "abc", &crate::env::PlainEnv).is_err());
    }
}
