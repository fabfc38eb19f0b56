//! The tables of functions, operators, casts and aggregates.

use crate::facts::{self, CastInfo, OperatorInfo, ProcFact};
use crate::{Datum, Env};
use base::{FactMap, Oid, Result};
use std::sync::{Mutex, OnceLock, PoisonError};

pub use crate::typename::{format_type, type_by_name, type_info};

/// A scalar function's body. Strict functions are never called with a NULL among `args`.
pub type ScalarFn = fn(&dyn Env, &[Datum]) -> Result<Datum>;
/// A polymorphic function's body: it is told its argument types and result type.
pub type TypedFn = fn(&dyn Env, &[Datum], &[Oid], Oid) -> Result<Datum>;
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
    ScalarTyped(TypedFn),
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
    /// So many rows whose last argument is not NULL are to be added, in their order: told before the first.
    fn expect(&mut self, _values: u64) {}
    /// Takes arguments that were added out again, as a window's frame moves on. False: only starting over gives the same; the state is of no
    /// more use then.
    ///
    /// # Errors
    /// Overflow and the like.
    fn remove(&mut self, _env: &dyn Env, _args: &[Datum]) -> Result<bool> {
        Ok(false)
    }
    /// The result so far; the state stays usable (window frames ask often).
    ///
    /// # Errors
    /// Overflow and the like.
    fn finish(&self, env: &dyn Env) -> Result<Datum>;
    /// Bytes it holds, about, if those may become more and more.
    fn memory_bytes(&self) -> Option<usize> {
        None
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
    /// The arguments' names, for `name => value`; empty, or as many as `args`.
    pub arg_names: &'static [&'static str],
    /// Trailing arguments that may be left out.
    pub defaults: u16,
    /// What stands for them: as many as `defaults`, of the arguments' types.
    pub default_values: &'static [Datum],
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
    /// `proretset`
    pub returns_set: bool,
    /// What runs.
    pub body: FunctionBody,
}

impl FunctionInfo {
    /// What gives no set gives one row, though it may have several columns.
    pub fn returns_set(&self) -> bool {
        matches!(self.body, FunctionBody::Set(_)) && self.returns_set
    }
}

/// How the functions' Rust bodies are listed: by `prosrc` symbol (one body may serve several rows), or
/// by signature, e.g. `lpad(text,integer)` written with `pg_type.typname`s: `lpad(text,int4)`.
pub type BodyTable = &'static [(&'static str, FunctionBody)];

struct Registry {
    by_name: FactMap<&'static str, Vec<&'static FunctionInfo>>,
    by_oid: FactMap<Oid, &'static FunctionInfo>,
}

impl Registry {
    fn new(all: impl Iterator<Item = &'static FunctionInfo>) -> Registry {
        let mut by_oid: FactMap<Oid, &'static FunctionInfo> = FactMap::default();
        for f in all {
            by_oid.insert(f.oid, f);
        }
        let mut by_name: FactMap<&'static str, Vec<&'static FunctionInfo>> = FactMap::default();
        for f in by_oid.values() {
            by_name.entry(f.name).or_default().push(f);
        }
        for list in by_name.values_mut() {
            list.sort_by_key(|f| f.oid);
        }
        Registry { by_name, by_oid }
    }
}

static BASE: OnceLock<Registry> = OnceLock::new();
static WITH_EXTRA: OnceLock<Registry> = OnceLock::new();
static EXTRA: Mutex<()> = Mutex::new(());

fn signature(p: &ProcFact) -> String {
    let mut s = String::from(p.name);
    s.push('(');
    for (i, a) in p.args.iter().enumerate() {
        if i > 0 {
            s.push(',');
        }
        s.push_str(type_info(*a).map_or("?", |t| t.name));
    }
    s.push(')');
    s
}

fn default_values(p: &ProcFact) -> &'static [Datum] {
    if p.defaults == 0 {
        return &[];
    }
    let types = &p.args[p.args.len().saturating_sub(usize::from(p.defaults))..];
    let values: Vec<Datum> = p
        .default_text
        .split('|')
        .zip(types)
        .map(|(text, ty)| {
            let text = text.split("::").next().unwrap_or(text);
            if text == "NULL" {
                return Datum::Null;
            }
            let text = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).unwrap_or(text);
            crate::io::text_input(*ty, -1, text, &crate::env::PlainEnv).unwrap_or(Datum::Null)
        })
        .collect();
    Box::leak(values.into_boxed_slice())
}

fn info(p: &'static ProcFact, body: FunctionBody) -> FunctionInfo {
    let mut columns = Vec::new();
    let mut arg_names = Vec::new();
    for (i, name) in p.arg_names.iter().enumerate() {
        let mode = p.modes.get(i).copied().unwrap_or("i");
        let ty = p.all_args.get(i).or_else(|| p.args.get(i)).copied().unwrap_or(Oid(0));
        if matches!(mode, "o" | "b" | "t") {
            columns.push((*name, ty));
        }
        if matches!(mode, "i" | "b" | "v") {
            arg_names.push(*name);
        }
    }
    FunctionInfo {
        oid: p.oid,
        name: p.name,
        args: p.args,
        arg_names: Box::leak(arg_names.into_boxed_slice()),
        defaults: p.defaults,
        default_values: default_values(p),
        variadic: p.variadic,
        result: p.result,
        columns: Box::leak(columns.into_boxed_slice()),
        strict: p.strict,
        volatility: match p.volatility {
            'i' => Volatility::Immutable,
            's' => Volatility::Stable,
            _ => Volatility::Volatile,
        },
        kind: match p.kind {
            'a' => FunctionKind::Aggregate,
            'w' => FunctionKind::Window,
            _ => FunctionKind::Scalar,
        },
        returns_set: p.returns_set,
        body,
    }
}

/// Bodies of the types' own input, output and send functions.
fn form_body(p: &ProcFact) -> Option<FunctionBody> {
    static FORMS: OnceLock<FactMap<&'static str, char>> = OnceLock::new();
    let forms = FORMS.get_or_init(|| {
        let mut map = FactMap::default();
        for t in facts::types().iter().filter(|t| t.kind == 'b') {
            map.insert(t.input, 'i');
            map.insert(t.output, 'o');
            map.insert(t.send, 's');
        }
        map
    });
    Some(match forms.get(p.name)? {
        'i' => FunctionBody::ScalarTyped(|env, a, _, result| {
            let typmod = if a.len() > 2 { crate::args::int4(a, 2)? } else { -1 };
            crate::io::text_input(result, typmod, crate::args::text(a, 0)?, env)
        }),
        'o' => FunctionBody::ScalarTyped(|env, a, types, _| {
            let ty = types.first().copied().unwrap_or_default();
            Ok(Datum::text(crate::io::to_text(ty, &a[0], env)?))
        }),
        _ => FunctionBody::ScalarTyped(|env, a, types, _| {
            let ty = types.first().copied().unwrap_or_default();
            let mut out = Vec::new();
            crate::io::binary_output(ty, &a[0], env, &mut out)?;
            Ok(Datum::Bytea(out.into()))
        }),
    })
}

fn base() -> &'static Registry {
    BASE.get_or_init(|| {
        let mut bodies: FactMap<&'static str, FunctionBody> = FactMap::default();
        for table in crate::functions::tables() {
            for (key, body) in table {
                bodies.insert(key, *body);
            }
        }
        let mut list = Vec::new();
        for p in facts::procs() {
            let body = if p.kind == 'w' {
                Some(FunctionBody::Window)
            } else {
                bodies
                    .get(signature(p).as_str())
                    .or_else(|| if p.symbol.is_empty() { None } else { bodies.get(p.symbol) })
                    .copied()
                    .or_else(|| form_body(p))
            };
            if let Some(body) = body {
                list.push(info(p, body));
            }
        }
        let list: &'static [FunctionInfo] = Box::leak(list.into_boxed_slice());
        Registry::new(list.iter())
    })
}

fn registry() -> &'static Registry {
    WITH_EXTRA.get().unwrap_or_else(base)
}

/// Adds the functions that a crate above implements. Called once, at start-up; a second call does nothing.
pub fn register(extra: Vec<FunctionInfo>) {
    let _guard = EXTRA.lock().unwrap_or_else(PoisonError::into_inner);
    if WITH_EXTRA.get().is_some() {
        return;
    }
    let extra: &'static [FunctionInfo] = Box::leak(extra.into_boxed_slice());
    let merged = Registry::new(base().by_oid.values().copied().chain(extra.iter()));
    let _ = WITH_EXTRA.set(merged);
}

/// PostgreSQL's function `name(args)` with a body of ours: its OID, result and flags are looked up.
///
/// # Panics
/// When PostgreSQL has no such function: that is a slip in our own tables.
pub fn declare(name: &str, args: &[Oid], body: FunctionBody) -> FunctionInfo {
    match facts::procs_by_name(name).iter().find(|p| p.args == args) {
        Some(p) => info(p, body),
        None => panic!("PostgreSQL has no function {name}({args:?})"),
    }
}

/// Every PostgreSQL function of this name with one body of ours (for the many whose body does not
/// depend on the argument types).
pub fn declare_all(name: &str, body: FunctionBody) -> Vec<FunctionInfo> {
    facts::procs_by_name(name).iter().map(|p| info(p, body)).collect()
}

/// The functions of this name, by OID.
pub fn functions_by_name(name: &str) -> &'static [&'static FunctionInfo] {
    registry().by_name.get(name).map_or(&[], Vec::as_slice)
}

/// The function with this OID.
pub fn function(oid: Oid) -> Option<&'static FunctionInfo> {
    registry().by_oid.get(&oid).copied()
}

/// Every function, in no particular order.
pub fn functions() -> impl Iterator<Item = &'static FunctionInfo> {
    registry().by_oid.values().copied()
}

/// The function whose name and argument types are exactly these.
pub fn function_exact(name: &str, args: &[Oid]) -> Option<&'static FunctionInfo> {
    functions_by_name(name).iter().find(|f| f.args == args).copied()
}

/// The operators of this name.
pub fn operators_by_name(name: &str) -> &'static [&'static OperatorInfo] {
    static MAP: OnceLock<FactMap<&'static str, Vec<&'static OperatorInfo>>> = OnceLock::new();
    MAP.get_or_init(|| {
        let mut map: FactMap<&'static str, Vec<&'static OperatorInfo>> = FactMap::default();
        for o in facts::operators() {
            map.entry(o.name).or_default().push(o);
        }
        map
    })
    .get(name)
    .map_or(&[], Vec::as_slice)
}

/// The operator with this OID.
pub fn operator(oid: Oid) -> Option<&'static OperatorInfo> {
    let all = facts::operators();
    all.binary_search_by_key(&oid, |o| o.oid).ok().map(|i| &all[i])
}

/// The cast that `pg_cast` lists from one type to another (arrays, domains, records and the text
/// forms' own casts are the analyser's).
pub fn cast(from: Oid, to: Oid) -> Option<&'static CastInfo> {
    static MAP: OnceLock<FactMap<(Oid, Oid), &'static CastInfo>> = OnceLock::new();
    MAP.get_or_init(|| facts::casts().iter().map(|c| ((c.source, c.target), c)).collect())
        .get(&(from, to))
        .copied()
}

/// The btree operator class a column of this type gets, if any.
pub fn default_btree_class(type_oid: Oid) -> Option<&'static facts::OperatorClass> {
    static MAP: OnceLock<FactMap<Oid, &'static facts::OperatorClass>> = OnceLock::new();
    let map = MAP.get_or_init(|| {
        let of_btree = |c: &&facts::OperatorClass| c.method == Oid(403) && c.is_default;
        facts::operator_classes().iter().filter(of_btree).map(|c| (c.input_type, c)).collect()
    });
    let find = |t: Oid| map.get(&t).copied();
    use crate::oids;
    find(type_oid).or_else(|| match type_oid {
        oids::VARCHAR => find(oids::TEXT),
        oids::CIDR => find(oids::INET),
        t if crate::io::is_oid_like(t) => find(oids::OID),
        t if type_info(t).is_some_and(facts::TypeInfo::is_array) => find(oids::ANYARRAY),
        t if crate::enums::is_enum(t) => find(oids::ANYENUM),
        t if crate::row_types::is_row(t) => find(oids::RECORD),
        _ => None,
    })
}

/// The operator of a btree family with this strategy (1 <, 2 <=, 3 =, 4 >=, 5 >).
pub fn btree_operator(family: Oid, left: Oid, right: Oid, strategy: u16) -> Option<Oid> {
    type Key = (Oid, Oid, Oid, u16);
    static MAP: OnceLock<FactMap<Key, Oid>> = OnceLock::new();
    MAP.get_or_init(|| {
        let mut map = FactMap::default();
        for a in facts::family_operators() {
            map.entry((a.family, a.left, a.right, a.strategy)).or_insert(a.operator);
        }
        map
    })
    .get(&(family, left, right, strategy))
    .copied()
}
