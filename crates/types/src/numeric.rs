//! numeric: exact decimals.

/// An exact decimal with PostgreSQL's display scale, NaN and infinities.
#[derive(Clone, Debug)]
pub struct Numeric {
    _private: (),
}
