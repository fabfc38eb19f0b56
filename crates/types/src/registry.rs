//! The tables of functions, operators, casts and aggregates.

use crate::{Datum, Env};
use base::{Oid, Result};

/// A scalar function's body. Strict functions are never called with a NULL among `args`.
pub type ScalarFn = fn(&dyn Env, &[Datum]) -> Result<Datum>;
/// Rows of a set-returning function, one `Vec` per row (one column unless it returns a record).
pub type RowIter = Box<dyn Iterator<Item = Result<Vec<Datum>>>>;
/// A set-returning function's body.
pub type SetFn = fn(&dyn Env, &[Datum]) -> Result<RowIter>;

/// How often a function's result may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Volatility {
    /// Never: may be folded at plan time.
    Immutable,
    /// Not within a statement.
    Stable,
    /// At any call.
    Volatile,
}

/// What kind of function it is (`pg_proc.prokind`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionKind {
    /// f
    Scalar,
    /// a
    Aggregate,
    /// w
    Window,
}

/// How a function is carried out.
#[derive(Clone, Copy)]
pub enum FunctionBody {
    /// One value a call.
    Scalar(ScalarFn),
    /// One value a call, with the argument types and result type known (polymorphic functions).
    ScalarTyped(fn(&dyn Env, &[Datum], &[Oid], Oid) -> Result<Datum>),
    /// Many rows a call.
    Set(SetFn),
    /// An aggregate: makes a fresh state.
    Aggregate(fn(arg_types: &[Oid], result: Oid) -> Box<dyn AggregateState>),
    /// A window function, carried out by the executor by name.
    Window,
}

/// An aggregate's running state.
pub trait AggregateState: Send {
    /// Takes one row's arguments (NULLs included: each aggregate decides).
    ///
    /// # Errors
    /// Overflow and the like.
    fn add(&mut self, env: &dyn Env, args: &[Datum]) -> Result<()>;
    /// The result so far; the state stays usable (window frames ask often).
    ///
    /// # Errors
    /// Overflow and the like.
    fn finish(&self, env: &dyn Env) -> Result<Datum>;
    /// Bytes it holds, about.
    fn memory_bytes(&self) -> usize {
        64
    }
}

/// Shorthand for an aggregate's maker.
pub type Aggregate = fn(&[Oid], Oid) -> Box<dyn AggregateState>;

/// One row of `pg_proc` that Ebb can carry out.
pub struct FunctionInfo {
    /// `pg_proc.oid`, PostgreSQL's.
    pub oid: Oid,
    /// `proname`
    pub name: &'static str,
    /// `proargtypes`
    pub args: &'static [Oid],
    /// Trailing arguments that may be left out.
    pub defaults: u16,
    /// Element type of a VARIADIC last argument, or 0.
    pub variadic: Oid,
    /// `prorettype`
    pub result: Oid,
    /// Output columns (name, type) of a function that returns records; else empty.
    pub columns: &'static [(&'static str, Oid)],
    /// `proisstrict`
    pub strict: bool,
    /// `provolatile`
    pub volatility: Volatility,
    /// `prokind`
    pub kind: FunctionKind,
    /// What runs.
    pub body: FunctionBody,
}

impl FunctionInfo {
    /// `proretset`
    pub fn returns_set(&self) -> bool {
        matches!(self.body, FunctionBody::Set(_))
    }
}
