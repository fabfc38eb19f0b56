//! Shorthands for the tables of bodies.

/// Six comparison bodies: `compare!(TAKE, "int4": eq ne lt le gt ge)` gives entries `int4eq` …
macro_rules! comparisons {
    ($take_a:expr, $take_b:expr, $cmp:expr; $eq:literal, $ne:literal, $lt:literal, $le:literal, $gt:literal, $ge:literal) => {
        &[
            (
                $eq,
                $crate::FunctionBody::Scalar(|_, a| {
                    Ok($crate::Datum::Bool(
                        $cmp($take_a(a, 0)?, $take_b(a, 1)?) == std::cmp::Ordering::Equal,
                    ))
                }),
            ),
            (
                $ne,
                $crate::FunctionBody::Scalar(|_, a| {
                    Ok($crate::Datum::Bool(
                        $cmp($take_a(a, 0)?, $take_b(a, 1)?) != std::cmp::Ordering::Equal,
                    ))
                }),
            ),
            (
                $lt,
                $crate::FunctionBody::Scalar(|_, a| {
                    Ok($crate::Datum::Bool(
                        $cmp($take_a(a, 0)?, $take_b(a, 1)?) == std::cmp::Ordering::Less,
                    ))
                }),
            ),
            (
                $le,
                $crate::FunctionBody::Scalar(|_, a| {
                    Ok($crate::Datum::Bool(
                        $cmp($take_a(a, 0)?, $take_b(a, 1)?) != std::cmp::Ordering::Greater,
                    ))
                }),
            ),
            (
                $gt,
                $crate::FunctionBody::Scalar(|_, a| {
                    Ok($crate::Datum::Bool(
                        $cmp($take_a(a, 0)?, $take_b(a, 1)?) == std::cmp::Ordering::Greater,
                    ))
                }),
            ),
            (
                $ge,
                $crate::FunctionBody::Scalar(|_, a| {
                    Ok($crate::Datum::Bool(
                        $cmp($take_a(a, 0)?, $take_b(a, 1)?) != std::cmp::Ordering::Less,
                    ))
                }),
            ),
        ]
    };
}

/// A bt…cmp body.
macro_rules! order_body {
    ($take_a:expr, $take_b:expr, $cmp:expr) => {
        $crate::FunctionBody::Scalar(|_, a| {
            Ok($crate::Datum::Int4($cmp($take_a(a, 0)?, $take_b(a, 1)?) as i32))
        })
    };
}

pub(crate) use {comparisons, order_body};
