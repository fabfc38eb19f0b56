//! Identity of values.

use types::Datum;

/// True if both are the same value of the same representation: what makes two constants the
/// same constant. (NaN is itself, 1.0 is not 1.00.)
pub fn identical(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Bool(a), Datum::Bool(b)) => a == b,
        (Datum::Int2(a), Datum::Int2(b)) => a == b,
        (Datum::Int4(a), Datum::Int4(b)) => a == b,
        (Datum::Int8(a), Datum::Int8(b)) => a == b,
        (Datum::Float8(a), Datum::Float8(b)) => a.to_bits() == b.to_bits(),
        (Datum::Text(a), Datum::Text(b)) => a == b,
        (Datum::Oid(a), Datum::Oid(b)) => a == b,
        _ => {
            std::mem::discriminant(a) == std::mem::discriminant(b)
                && format!("{a:?}") == format!("{b:?}")
        }
    }
}
