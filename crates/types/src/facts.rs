//! PostgreSQL's built-in types, functions, operators, casts and operator classes, as data.
//!
//! # Purpose
//! The rows under `data/` (extracted from PostgreSQL 18 by `data/extract.sh`), parsed once. The catalogs
//! are filled from them, and [`crate::registry`] joins them to the functions' Rust bodies.

use base::{FactMap, Oid};
use std::sync::OnceLock;

fn leak<T>(v: Vec<T>) -> &'static [T] {
    Box::leak(v.into_boxed_slice())
}

/// The fields of one line.
struct Fields(std::str::Split<'static, char>);

impl Fields {
    fn text(&mut self) -> &'static str {
        self.0.next().unwrap_or("")
    }
    fn nullable(&mut self) -> &'static str {
        match self.text() {
            "\\N" => "",
            s => s,
        }
    }
    fn number<T: std::str::FromStr + Default>(&mut self) -> T {
        self.text().parse().unwrap_or_default()
    }
    fn oid(&mut self) -> Oid {
        Oid(self.number())
    }
    fn flag(&mut self) -> bool {
        self.text() == "t"
    }
    fn char(&mut self) -> char {
        self.text().chars().next().unwrap_or('\0')
    }
    /// `a b c` or `{a,b,c}`.
    fn list(&mut self) -> Vec<&'static str> {
        let s = self.nullable();
        let s = s.strip_prefix('{').and_then(|s| s.strip_suffix('}')).unwrap_or(s);
        if s.is_empty() {
            return Vec::new();
        }
        s.split([' ', ','])
            .map(|item| item.strip_prefix('"').and_then(|i| i.strip_suffix('"')).unwrap_or(item))
            .collect()
    }
    fn oids(&mut self) -> Vec<Oid> {
        self.list().iter().filter_map(|s| s.parse().ok().map(Oid)).collect()
    }
}

fn rows<T>(data: &'static str, make: impl Fn(&mut Fields) -> T) -> &'static [T] {
    leak(data.lines().map(|line| make(&mut Fields(line.split('\t')))).collect())
}

/// A row of `pg_type`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_type's columns")]
pub struct TypeInfo {
    pub oid: Oid,
    pub name: &'static str,
    /// `typlen`: bytes, or -1 for varlena, -2 for cstring.
    pub len: i16,
    pub by_value: bool,
    /// `typtype`: b, p, r, m.
    pub kind: char,
    pub category: char,
    pub preferred: bool,
    pub delimiter: char,
    pub element: Oid,
    pub array: Oid,
    pub input: &'static str,
    pub output: &'static str,
    pub receive: &'static str,
    pub send: &'static str,
    pub typmod_in: &'static str,
    pub typmod_out: &'static str,
    /// `typalign`: c, s, i, d.
    pub align: char,
    pub storage: char,
    pub base_type: Oid,
    pub base_typmod: i32,
    pub collation: Oid,
    pub subscript: &'static str,
}

impl TypeInfo {
    /// The alignment in bytes.
    pub fn align_bytes(&self) -> usize {
        match self.align {
            'c' => 1,
            's' => 2,
            'i' => 4,
            _ => 8,
        }
    }
    /// True for the arrays that `typarray` of their element names.
    pub fn is_array(&self) -> bool {
        self.subscript == "array_subscript_handler"
    }
}

/// A row of `pg_proc`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_proc's columns")]
pub struct ProcFact {
    pub oid: Oid,
    pub name: &'static str,
    pub kind: char,
    pub strict: bool,
    pub returns_set: bool,
    pub volatility: char,
    pub args: &'static [Oid],
    pub variadic: Oid,
    pub result: Oid,
    pub all_args: &'static [Oid],
    pub modes: &'static [&'static str],
    pub arg_names: &'static [&'static str],
    pub defaults: u16,
    /// `prosrc` where it is a symbol, else empty.
    pub symbol: &'static str,
    pub parallel: char,
    pub leakproof: bool,
    pub cost: f32,
    pub rows: f32,
    /// The default expressions, separated by `|`.
    pub default_text: &'static str,
    pub support: Oid,
    pub language: &'static str,
}

/// A row of `pg_operator`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_operator's columns")]
pub struct OperatorInfo {
    pub oid: Oid,
    pub name: &'static str,
    /// `oprkind`: b (infix) or l (prefix).
    pub kind: char,
    pub can_merge: bool,
    pub can_hash: bool,
    /// 0 for a prefix operator.
    pub left: Oid,
    pub right: Oid,
    pub result: Oid,
    pub commutator: Oid,
    pub negator: Oid,
    pub function: Oid,
    /// `oprrest`, or empty.
    pub restrict_estimator: &'static str,
    /// `oprjoin`, or empty.
    pub join_estimator: &'static str,
}

/// Where a cast may happen (`pg_cast.castcontext`). Ordered: implicit < assignment < explicit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// i: anywhere.
    Implicit,
    /// a: on assignment to a column, and explicitly.
    Assignment,
    /// e: only when written out.
    Explicit,
}

/// How a cast is done (`pg_cast.castmethod`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastMethod {
    /// f: by this function; it takes (value), (value, typmod) or (value, typmod, explicit).
    Function(Oid),
    /// b: the same bytes.
    Binary,
    /// i: through the text forms.
    InOut,
}

/// A row of `pg_cast`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_cast's columns")]
pub struct CastInfo {
    pub oid: Oid,
    pub source: Oid,
    pub target: Oid,
    pub context: CastContext,
    pub method: CastMethod,
}

/// A row of `pg_aggregate`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_aggregate's columns")]
pub struct AggregateFact {
    pub function: Oid,
    /// n normal, o ordered-set, h hypothetical-set
    pub kind: char,
    pub direct_args: u16,
    pub transition: Oid,
    pub final_function: Oid,
    pub combine: Oid,
    pub serial: Oid,
    pub deserial: Oid,
    pub moving_transition: Oid,
    pub moving_inverse: Oid,
    pub moving_final: Oid,
    pub final_extra: bool,
    pub moving_final_extra: bool,
    pub final_modify: char,
    pub moving_final_modify: char,
    /// The operator of which the result is the first value (`min` and `max`), or 0.
    pub sort_operator: Oid,
    pub transition_type: Oid,
    pub transition_space: i32,
    pub moving_transition_type: Oid,
    pub moving_transition_space: i32,
    pub initial: &'static str,
    pub moving_initial: &'static str,
}

/// A row of `pg_opclass` (btree and hash).
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_opclass's columns")]
pub struct OperatorClass {
    pub oid: Oid,
    pub method: Oid,
    pub name: &'static str,
    pub family: Oid,
    pub input_type: Oid,
    pub is_default: bool,
    pub key_type: Oid,
}

/// A row of `pg_opfamily`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_opfamily's columns")]
pub struct OperatorFamily {
    pub oid: Oid,
    pub method: Oid,
    pub name: &'static str,
}

/// A row of `pg_amop`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_amop's columns")]
pub struct FamilyOperator {
    pub oid: Oid,
    pub family: Oid,
    pub left: Oid,
    pub right: Oid,
    /// btree: 1 <, 2 <=, 3 =, 4 >=, 5 >; hash: 1 =
    pub strategy: u16,
    pub purpose: char,
    pub operator: Oid,
    pub method: Oid,
    pub sort_family: Oid,
}

/// A row of `pg_amproc`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_amproc's columns")]
pub struct FamilyFunction {
    pub oid: Oid,
    pub family: Oid,
    pub left: Oid,
    pub right: Oid,
    pub number: u16,
    pub function: Oid,
}

/// A row of `pg_am`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_am's columns")]
pub struct AccessMethod {
    pub oid: Oid,
    pub name: &'static str,
    pub handler: &'static str,
    pub kind: char,
}

/// A row of `pg_collation`.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named after pg_collation's columns")]
pub struct Collation {
    pub oid: Oid,
    pub name: &'static str,
    pub provider: char,
    pub deterministic: bool,
    pub encoding: i32,
    pub collate: &'static str,
    pub ctype: &'static str,
}

macro_rules! table {
    ($(#[$meta:meta])* $name:ident: $row:ident, $file:literal, |$f:ident| $make:expr) => {
        $(#[$meta])*
        pub fn $name() -> &'static [$row] {
            static ROWS: OnceLock<&'static [$row]> = OnceLock::new();
            ROWS.get_or_init(|| rows(include_str!(concat!("../data/", $file)), |$f| $make))
        }
    };
}

table!(
    /// `pg_type`, by OID.
    types: TypeInfo, "pg_type.tsv", |f| TypeInfo {
        oid: f.oid(),
        name: f.text(),
        len: f.number(),
        by_value: f.flag(),
        kind: f.char(),
        category: f.char(),
        preferred: f.flag(),
        delimiter: f.char(),
        element: f.oid(),
        array: f.oid(),
        input: f.text(),
        output: f.text(),
        receive: f.text(),
        send: f.text(),
        typmod_in: f.text(),
        typmod_out: f.text(),
        align: f.char(),
        storage: f.char(),
        base_type: f.oid(),
        base_typmod: f.number(),
        collation: f.oid(),
        subscript: f.text(),
    }
);

table!(
    /// `pg_proc`, by OID.
    procs: ProcFact, "pg_proc.tsv", |f| ProcFact {
        oid: f.oid(),
        name: f.text(),
        kind: f.char(),
        strict: f.flag(),
        returns_set: f.flag(),
        volatility: f.char(),
        args: leak(f.oids()),
        variadic: f.oid(),
        result: f.oid(),
        all_args: leak(f.oids()),
        modes: leak(f.list()),
        arg_names: leak(f.list()),
        defaults: f.number(),
        symbol: f.text(),
        parallel: f.char(),
        leakproof: f.flag(),
        cost: f.number(),
        rows: f.number(),
        default_text: f.nullable(),
        support: f.oid(),
        language: f.text(),
    }
);

table!(
    /// `pg_operator`, by OID.
    operators: OperatorInfo, "pg_operator.tsv", |f| OperatorInfo {
        oid: f.oid(),
        name: f.text(),
        kind: f.char(),
        can_merge: f.flag(),
        can_hash: f.flag(),
        left: f.oid(),
        right: f.oid(),
        result: f.oid(),
        commutator: f.oid(),
        negator: f.oid(),
        function: f.oid(),
        restrict_estimator: f.text(),
        join_estimator: f.text(),
    }
);

table!(
    /// `pg_cast`, by OID.
    casts: CastInfo, "pg_cast.tsv", |f| {
        let (oid, source, target, function) = (f.oid(), f.oid(), f.oid(), f.oid());
        CastInfo {
            oid,
            source,
            target,
            context: match f.char() {
                'i' => CastContext::Implicit,
                'a' => CastContext::Assignment,
                _ => CastContext::Explicit,
            },
            method: match f.char() {
                'b' => CastMethod::Binary,
                'i' => CastMethod::InOut,
                _ => CastMethod::Function(function),
            },
        }
    }
);

table!(
    /// `pg_aggregate`, by function.
    aggregates: AggregateFact, "pg_aggregate.tsv", |f| AggregateFact {
        function: f.oid(),
        kind: f.char(),
        direct_args: f.number(),
        transition: f.oid(),
        final_function: f.oid(),
        combine: f.oid(),
        serial: f.oid(),
        deserial: f.oid(),
        moving_transition: f.oid(),
        moving_inverse: f.oid(),
        moving_final: f.oid(),
        final_extra: f.flag(),
        moving_final_extra: f.flag(),
        final_modify: f.char(),
        moving_final_modify: f.char(),
        sort_operator: f.oid(),
        transition_type: f.oid(),
        transition_space: f.number(),
        moving_transition_type: f.oid(),
        moving_transition_space: f.number(),
        initial: f.nullable(),
        moving_initial: f.nullable(),
    }
);

table!(
    /// `pg_opclass` (btree and hash), by OID.
    operator_classes: OperatorClass, "pg_opclass.tsv", |f| OperatorClass {
        oid: f.oid(),
        method: f.oid(),
        name: f.text(),
        family: f.oid(),
        input_type: f.oid(),
        is_default: f.flag(),
        key_type: f.oid(),
    }
);

table!(
    /// `pg_opfamily` (btree and hash), by OID.
    operator_families: OperatorFamily, "pg_opfamily.tsv", |f| OperatorFamily {
        oid: f.oid(),
        method: f.oid(),
        name: f.text(),
    }
);

table!(
    /// `pg_amop` (btree and hash), by OID.
    family_operators: FamilyOperator, "pg_amop.tsv", |f| FamilyOperator {
        oid: f.oid(),
        family: f.oid(),
        left: f.oid(),
        right: f.oid(),
        strategy: f.number(),
        purpose: f.char(),
        operator: f.oid(),
        method: f.oid(),
        sort_family: f.oid(),
    }
);

table!(
    /// `pg_amproc` (btree and hash), by OID.
    family_functions: FamilyFunction, "pg_amproc.tsv", |f| FamilyFunction {
        oid: f.oid(),
        family: f.oid(),
        left: f.oid(),
        right: f.oid(),
        number: f.number(),
        function: f.oid(),
    }
);

table!(
    /// `pg_am`.
    access_methods: AccessMethod, "pg_am.tsv", |f| AccessMethod {
        oid: f.oid(),
        name: f.text(),
        handler: f.text(),
        kind: f.char(),
    }
);

table!(
    /// `pg_collation`.
    collations: Collation, "pg_collation.tsv", |f| Collation {
        oid: f.oid(),
        name: f.text(),
        provider: f.char(),
        deterministic: f.flag(),
        encoding: f.number(),
        collate: f.text(),
        ctype: f.text(),
    }
);

/// The `pg_proc` row with this OID, whether or not Ebb can carry it out.
pub fn proc(oid: Oid) -> Option<&'static ProcFact> {
    static MAP: OnceLock<FactMap<Oid, &'static ProcFact>> = OnceLock::new();
    MAP.get_or_init(|| procs().iter().map(|p| (p.oid, p)).collect()).get(&oid).copied()
}

/// The `pg_proc` rows with this name, whether or not Ebb can carry them out.
pub fn procs_by_name(name: &str) -> &'static [&'static ProcFact] {
    static MAP: OnceLock<FactMap<&'static str, Vec<&'static ProcFact>>> = OnceLock::new();
    MAP.get_or_init(|| {
        let mut map: FactMap<&'static str, Vec<&'static ProcFact>> = FactMap::default();
        for p in procs() {
            map.entry(p.name).or_default().push(p);
        }
        map
    })
    .get(name)
    .map_or(&[], Vec::as_slice)
}

/// The `pg_aggregate` row of this function.
pub fn aggregate(function: Oid) -> Option<&'static AggregateFact> {
    let all = aggregates();
    all.binary_search_by_key(&function, |a| a.function).ok().map(|i| &all[i])
}
