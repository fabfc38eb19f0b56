//! Expressions: of everything that the registry of functions and operators has (wild), or such as raise no error on the tables' values (tame).

use super::choices::Choices;
use super::values::{self, Literal, Statement, TYPES, Ty, ty};
use base::Oid;
use types::registry::{FunctionBody, FunctionKind, Volatility};
use types::{facts, oids, registry};

/// A function or an operator.
pub struct Callable {
    name: &'static str,
    /// None for a function; true for a prefix operator.
    prefix: Option<bool>,
    args: &'static [Oid],
    variadic: Oid,
    result: Oid,
}

/// What may be called, by result type.
pub struct Catalog {
    by_result: Vec<Vec<Callable>>,
    /// Aggregates whose arguments are of [`TYPES`], or polymorphic.
    aggregates: Vec<Callable>,
}

/// Functions whose answers depend on the session, the clock or the server, or that may take very long.
fn depends(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "privilege",
        "description",
        "_to_xml",
        "database",
        "binary_upgrade",
        "txid",
        "current",
        "schema",
    ];
    const NAMES: &[&str] = &[
        "now",
        "age",
        "version",
        "statement_timestamp",
        "transaction_timestamp",
        "to_regclass",
        "getpgusername",
        "like_regex_support",
        "suppress_redundant_updates_trigger",
        "factorial",
        "format_type",
        "set_config",
        "row_security_active",
        "hashtextextended",
    ];
    // What a comparison's sign is, nobody promises; nor what a hash is.
    name.ends_with("cmp")
        || name.starts_with("hash")
        || name.starts_with("pg_")
        || name.starts_with("to_reg")
        || name.starts_with("inet")
        || NAMES.contains(&name)
        || PARTS.iter().any(|p| name.contains(p))
}

fn known(oid: Oid) -> bool {
    values::of_oid(oid).is_some() || polymorphic(oid) || oid == oids::ANY
}

fn polymorphic(oid: Oid) -> bool {
    element_like(oid) || array_like(oid)
}

fn element_like(oid: Oid) -> bool {
    [oids::ANYELEMENT, oids::ANYNONARRAY, oids::ANYCOMPATIBLE, oids::ANYCOMPATIBLENONARRAY]
        .contains(&oid)
}

fn array_like(oid: Oid) -> bool {
    [oids::ANYARRAY, oids::ANYCOMPATIBLEARRAY].contains(&oid)
}

/// The array type of a type in [`TYPES`], if it is there too.
fn array_of(element: Ty) -> Option<Ty> {
    let info = registry::type_info(TYPES[element].oid)?;
    values::of_oid(info.array)
}

fn element_of(array: Ty) -> Option<Ty> {
    let info = registry::type_info(TYPES[array].oid)?;
    if info.is_array() { values::of_oid(info.element) } else { None }
}

impl Catalog {
    /// Everything whose arguments and result are of [`TYPES`].
    pub fn new() -> Catalog {
        let mut by_result: Vec<Vec<Callable>> = TYPES.iter().map(|_| Vec::new()).collect();
        let mut all = Vec::new();
        for o in facts::operators() {
            if registry::function(o.function).is_some() {
                let args: &'static [Oid] = if o.kind == 'l' {
                    std::slice::from_ref(&o.right)
                } else {
                    Box::leak(Box::new([o.left, o.right]))
                };
                all.push((
                    o.oid,
                    Callable {
                        name: o.name,
                        prefix: Some(o.kind == 'l'),
                        args,
                        variadic: Oid(0),
                        result: o.result,
                    },
                ));
            }
        }
        for f in registry::functions() {
            let scalar = matches!(f.body, FunctionBody::Scalar(_) | FunctionBody::ScalarTyped(_));
            if scalar
                && f.kind == FunctionKind::Scalar
                && f.volatility != Volatility::Volatile
                && !depends(f.name)
            {
                all.push((
                    f.oid,
                    Callable {
                        name: f.name,
                        prefix: None,
                        args: f.args,
                        variadic: f.variadic,
                        result: f.result,
                    },
                ));
            }
        }
        all.sort_by_key(|(oid, _)| *oid);
        for (_, c) in all {
            if !c.args.iter().all(|a| known(*a)) {
                continue;
            }
            if let Some(t) = values::of_oid(c.result) {
                by_result[t].push(c);
            } else if polymorphic(c.result) {
                for (t, list) in by_result.iter_mut().enumerate() {
                    if element_like(c.result) || element_of(t).is_some() {
                        list.push(Callable { ..c });
                    }
                }
            }
        }
        let mut aggregates = Vec::new();
        for f in registry::functions() {
            let plain = facts::aggregates().iter().any(|a| a.function == f.oid && a.kind == 'n');
            if plain && f.args.iter().all(|a| known(*a)) && f.variadic == Oid(0) {
                let call = Callable {
                    name: f.name,
                    prefix: None,
                    args: f.args,
                    variadic: f.variadic,
                    result: f.result,
                };
                aggregates.push((f.oid, call));
            }
        }
        aggregates.sort_by_key(|(oid, _)| *oid);
        Catalog { by_result, aggregates: aggregates.into_iter().map(|(_, c)| c).collect() }
    }

    /// How many functions and operators there are.
    pub fn len(&self) -> usize {
        self.by_result.iter().map(Vec::len).sum()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Catalog {
    fn default() -> Catalog {
        Catalog::new()
    }
}

/// A column, or whatever an expression may name.
#[derive(Clone, Debug)]
pub struct Col {
    /// As written.
    pub sql: String,
    /// Its type.
    pub ty: Ty,
    /// Not to be used inside of a subquery.
    pub aggregate: bool,
}

/// What writes one statement.
pub struct Gen<'a> {
    /// Its decisions.
    pub c: Choices,
    /// Functions and operators.
    pub catalog: &'a Catalog,
    /// The tables.
    pub tables: &'a [super::schema::Table],
    /// What was written so far as constants.
    pub literals: Vec<Literal>,
    /// Columns in sight, innermost last.
    pub scopes: Vec<Vec<Col>>,
    /// CTEs in sight.
    pub ctes: Vec<(String, Vec<(String, Ty)>)>,
    /// Names given.
    pub names: usize,
    /// Expressions may raise errors.
    pub wild: bool,
    /// Of the tables of few values alone, and of their columns with few functions: joins are what it is about.
    pub dense: bool,
    /// Subqueries within subqueries.
    pub depth: usize,
}

impl<'a> Gen<'a> {
    /// Of statements over `tables`, or over none.
    pub fn new(c: Choices, catalog: &'a Catalog, tables: &'a [super::schema::Table]) -> Gen<'a> {
        Gen {
            c,
            catalog,
            tables,
            literals: Vec::new(),
            scopes: Vec::new(),
            ctes: Vec::new(),
            names: 0,
            wild: false,
            dense: false,
            depth: 0,
        }
    }
}

/// Expressions that raise no error on the tables' values, by result.
const TAME: &[(&str, &str)] = &[
    ("int4", "({int4} + {int4})"),
    ("int4", "({int4} - {int4})"),
    ("int4", "(-{int4})"),
    ("int4", "abs({int4})"),
    ("int4", "({int4} % 7)"),
    ("int4", "length({text})"),
    ("int4", "({int4} / 3)"),
    ("int4", "cardinality({int4[]})"),
    ("int4", "extract(year FROM {date})::int"),
    ("int4", "strpos({text}, {text})"),
    ("int4", "({int4} & {int4})"),
    ("int4", "ascii({text})"),
    ("int4", "({date} - {date})"),
    ("int4", "{int2}::int4"),
    ("int4", "{bool}::int"),
    ("int4", "array_length({text[]}, 1)"),
    ("int4", "({int4[]})[1]"),
    ("text", "({text} || {text})"),
    ("text", "upper({text})"),
    ("text", "lower({text})"),
    ("text", "substr({text}, 2)"),
    ("text", "{int4}::text"),
    ("text", "({text} || {int4})"),
    ("text", "left({text}, 2)"),
    ("text", "replace({text}, 'a', 'zz')"),
    ("text", "concat({text}, {int4}, {bool})"),
    ("text", "md5({text})"),
    ("text", "{date}::text"),
    ("text", "{varchar}::text"),
    ("text", "to_char({date}, 'YYYY-MM-DD')"),
    ("text", "({jsonb} ->> 'a')"),
    ("text", "array_to_string({text[]}, ',')"),
    ("text", "trim({text})"),
    ("text", "{bool}::text"),
    ("text", "({text[]})[1]"),
    ("text", "split_part({text}, 'b', 1)"),
    ("int8", "({int8} + {int4})"),
    ("int8", "{int4}::int8"),
    ("int8", "({int8} - {int8})"),
    ("int8", "bit_length({text})::int8"),
    ("numeric", "({numeric} + {numeric})"),
    ("numeric", "({numeric} * {int4})"),
    ("numeric", "round({numeric}, 1)"),
    ("numeric", "{int4}::numeric"),
    ("numeric", "abs({numeric})"),
    ("numeric", "({int8} * 1.5)"),
    ("numeric", "floor({numeric})"),
    ("bool", "({bool} AND {bool})"),
    ("bool", "({bool} OR {bool})"),
    ("bool", "(NOT {bool})"),
    ("bool", "({text} LIKE 'a%')"),
    ("bool", "({text} ~ '[ab]')"),
    ("bool", "({jsonb} @> '{}')"),
    ("bool", "({jsonb} ? 'a')"),
    ("bool", "({int4[]} @> ARRAY[2])"),
    ("bool", "({int4[]} && {int4[]})"),
    ("bool", "({bool} IS TRUE)"),
    ("bool", "({bool} IS NOT FALSE)"),
    ("bool", "({bool} IS UNKNOWN)"),
    ("bool", "({text} ILIKE '%B%')"),
    ("bool", "({text} ^@ 'a')"),
    ("bool", "starts_with({text}, 'x')"),
    ("bool", "({int4} > 2)"),
    ("bool", "({text} NOT LIKE '_b%')"),
    ("float8", "({float8} + {float8})"),
    ("float8", "({float8} * 2)"),
    ("float8", "{int4}::float8"),
    ("float8", "abs({float8})"),
    ("float8", "{float4}::float8"),
    ("date", "({date} + {int4})"),
    ("date", "{timestamp}::date"),
    ("date", "date_trunc('month', {date})::date"),
    ("timestamp", "({date} + {interval})"),
    ("timestamp", "date_trunc('day', {timestamp})"),
    ("timestamp", "({timestamp} - interval '1 day')"),
    ("timestamp", "{date}::timestamp"),
    ("timestamp", "({date} + {time})"),
    ("timestamptz", "({timestamptz} + interval '1 hour')"),
    ("timestamptz", "date_trunc('day', {timestamptz}, 'UTC')"),
    ("interval", "({time} - {time})"),
    ("jsonb", "({jsonb} -> 'a')"),
    ("jsonb", "to_jsonb({int4})"),
    ("jsonb", "to_jsonb({text})"),
    ("jsonb", "jsonb_build_array({int4}, {text})"),
    ("jsonb", "jsonb_build_object('k', {int4})"),
    ("jsonb", "({jsonb} || '[9]')"),
    ("varchar", "{text}::varchar"),
    ("varchar", "{text}::varchar(2)"),
    ("int4[]", "ARRAY[{int4}, {int4}]"),
    ("int4[]", "({int4[]} || {int4})"),
    ("int4[]", "array_remove({int4[]}, 2)"),
    ("int4[]", "({int4[]})[1:2]"),
    ("text[]", "ARRAY[{text}]"),
    ("text[]", "string_to_array({text}, 'b')"),
    ("text[]", "array_append({text[]}, {text})"),
    ("bytea", "({bytea} || {bytea})"),
    ("bytea", "convert_to({text}, 'UTF8')"),
    ("time", "{timestamp}::time"),
    ("int2", "(-{int2})"),
    ("float4", "(-{float4})"),
];

/// Types whose values are compared with each other as they are.
const MIXED: &[&[&str]] = &[
    &["int4", "int8", "int2"],
    &["date", "timestamp", "timestamptz"],
    &["float8", "float4"],
    &["text", "varchar"],
    &["numeric", "int4", "int8"],
    &["float8", "int4", "numeric"],
];

impl Gen<'_> {
    /// A type whose values can be compared with those of this one.
    pub fn partner(&mut self, t: Ty) -> Ty {
        let of: Vec<&&[&str]> = MIXED.iter().filter(|m| m.contains(&TYPES[t].name)).collect();
        if of.is_empty() {
            return t;
        }
        let family = **self.c.pick(&of);
        ty(self.c.pick::<&str>(family))
    }

    /// A constant.
    pub fn literal(&mut self, t: Ty) -> String {
        let all = &TYPES[t];
        if self.dense && t == 0 {
            let text = (!self.c.percent(6)).then(|| self.c.below(4).to_string());
            self.literals.push(Literal { ty: t, bare: text.is_some(), text });
            return format!("\u{1}{}\u{2}", self.literals.len() - 1);
        }
        let text = if self.c.percent(6) {
            None
        } else if self.wild && !all.odd.is_empty() && self.c.percent(45) {
            Some((*self.c.pick(all.odd)).to_owned())
        } else {
            Some((*self.c.pick(all.plain)).to_owned())
        };
        let bare = self.c.percent(if self.wild { 12 } else { 0 })
            || matches!(all.name, "int4" | "bool")
                && text.as_ref().is_some_and(|t| !t.starts_with('-'));
        self.literals.push(Literal { ty: t, text, bare });
        format!("\u{1}{}\u{2}", self.literals.len() - 1)
    }

    fn columns(&self, t: Ty) -> Vec<String> {
        let here = self.scopes.len().saturating_sub(1);
        let of = |(at, scope): (usize, &Vec<Col>)| {
            let inner = at == here;
            scope
                .iter()
                .filter(move |c| c.ty == t && (inner || !c.aggregate))
                .map(|c| c.sql.clone())
                .collect::<Vec<_>>()
        };
        // The innermost first, several times, so that outer ones are rarer.
        let mut list: Vec<String> =
            self.scopes.iter().enumerate().rev().take(1).flat_map(of).collect();
        list.extend(list.clone());
        list.extend(self.scopes.iter().enumerate().rev().skip(1).flat_map(of));
        list
    }

    /// A column of the type, or a constant.
    pub fn leaf(&mut self, t: Ty) -> String {
        let columns = self.columns(t);
        if columns.is_empty() || self.c.percent(if self.dense { 8 } else { 25 }) {
            self.literal(t)
        } else {
            self.c.pick(&columns).clone()
        }
    }

    /// Any expression of a type.
    pub fn expr(&mut self, t: Ty, depth: usize) -> String {
        if depth == 0 || self.c.percent(if self.dense { 70 } else { 30 }) {
            return self.leaf(t);
        }
        let name = TYPES[t].name;
        let how = self.c.below(20);
        match how {
            0 | 1 => self.leaf(t),
            2 => {
                let (when, a, b) = (
                    self.expr(ty("bool"), depth - 1),
                    self.expr(t, depth - 1),
                    self.expr(t, depth - 1),
                );
                format!("CASE WHEN {when} THEN {a} ELSE {b} END")
            }
            3 => {
                let key = ty(self.c.pick::<&str>(&["int4", "text"]));
                let (k, v, w, a, b) = (
                    self.expr(key, depth - 1),
                    self.leaf(key),
                    self.leaf(key),
                    self.expr(t, depth - 1),
                    self.expr(t, depth - 1),
                );
                format!("CASE {k} WHEN {v} THEN {a} WHEN {w} THEN {b} END")
            }
            4 => format!("COALESCE({}, {})", self.expr(t, depth - 1), self.expr(t, depth - 1)),
            5 if TYPES[t].sorts => {
                format!("NULLIF({}, {})", self.expr(t, depth - 1), self.expr(t, depth - 1))
            }
            6 if TYPES[t].sorts => {
                let f = *self.c.pick(&["GREATEST", "LEAST"]);
                format!("{f}({}, {})", self.expr(t, depth - 1), self.expr(t, depth - 1))
            }
            7 | 8 if !self.tables.is_empty() && self.depth < 2 => self.scalar_subquery(t),
            _ if name == "bool" && self.c.percent(70) => self.condition(depth),
            9 | 10 if self.wild => {
                let from = self.c.below(TYPES.len());
                let arg = self.expr(from, depth - 1);
                let target = match (name, self.c.below(4)) {
                    ("varchar", 1) => "varchar(2)",
                    ("bpchar", 1) => "char(3)",
                    ("numeric", 1) => "numeric(5,2)",
                    ("numeric", 2) => "numeric(3,-1)",
                    ("timestamp", 1) => "timestamp(0)",
                    ("timestamptz", 1) => "timestamptz(1)",
                    ("time", 1) => "time(2)",
                    ("interval", 1) => "interval(0)",
                    ("interval", 2) => "interval day to second",
                    ("interval", 3) => "interval year to month",
                    ("float8", 1) => "float(30)",
                    _ => name,
                };
                format!("({arg})::{target}")
            }
            _ if self.wild => self.call(t, depth),
            _ => {
                let of: Vec<&str> =
                    TAME.iter().filter(|(r, _)| *r == name).map(|(_, e)| *e).collect();
                if of.is_empty() {
                    return self.leaf(t);
                }
                let template = *self.c.pick(&of);
                self.fill(template, depth - 1)
            }
        }
    }

    fn fill(&mut self, template: &str, depth: usize) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let (name, after) = after.split_once('}').unwrap_or(("", after));
            if name.is_empty() {
                out.push_str("{}");
            } else {
                out.push_str(&self.expr(ty(name), depth));
            }
            rest = after;
        }
        out + rest
    }

    fn call(&mut self, t: Ty, depth: usize) -> String {
        let catalog = self.catalog;
        let list = &catalog.by_result[t];
        if list.is_empty() {
            return self.leaf(t);
        }
        let f = self.c.pick(list);
        let element = if element_like(f.result) {
            t
        } else if array_like(f.result) {
            element_of(t).unwrap_or(0)
        } else {
            ty(self.c.pick::<&str>(&["int4", "text", "numeric", "jsonb", "date"]))
        };
        let mut args = Vec::new();
        let fixed = if f.variadic == Oid(0) { f.args.len() } else { f.args.len() - 1 };
        for arg in &f.args[..fixed] {
            let t = if element_like(*arg) {
                element
            } else if array_like(*arg) {
                array_of(element).unwrap_or(0)
            } else if *arg == oids::ANY {
                self.c.below(TYPES.len())
            } else {
                values::of_oid(*arg).unwrap_or(0)
            };
            args.push(self.expr(t, depth - 1));
        }
        if f.variadic != Oid(0) {
            for _ in 0..self.c.below(4) {
                let t = if f.variadic == oids::ANY {
                    self.c.below(10)
                } else {
                    values::of_oid(f.variadic).unwrap_or(element)
                };
                args.push(self.expr(t, depth - 1));
            }
        }
        match (f.prefix, &args[..]) {
            (Some(true), [a]) => format!("({} {a})", f.name),
            (Some(false), [a, b]) => format!("({a} {} {b})", f.name),
            _ => format!("pg_catalog.\"{}\"({})", f.name, args.join(", ")),
        }
    }

    /// A type that can be compared, mostly one of a column in sight.
    pub fn sortable(&mut self) -> Ty {
        if self.dense {
            return 0;
        }
        let mut seen: Vec<Ty> =
            self.scopes.last().map_or_else(Vec::new, |s| s.iter().map(|c| c.ty).collect());
        seen.extend([0, 1]);
        let t = if self.wild && self.c.percent(50) {
            self.c.below(TYPES.len())
        } else {
            *self.c.pick(&seen)
        };
        if TYPES[t].sorts { t } else { 0 }
    }

    /// Something true, false or unknown.
    pub fn condition(&mut self, depth: usize) -> String {
        let d = depth.saturating_sub(1);
        if self.dense && self.c.percent(40) {
            let op = *self.c.pick(&["=", "=", "=", "<", "<>", ">="]);
            return format!("({} {op} {})", self.leaf(0), self.leaf(0));
        }
        let sub = !self.tables.is_empty() && self.depth < 2;
        match self.c.below(25) {
            20..=24 => self.row_condition(sub, d),
            0..=3 => {
                let t = self.sortable();
                let op = *self.c.pick(&["=", "<>", "<", "<=", ">", ">="]);
                format!("({} {op} {})", self.expr(t, d), self.expr(t, d))
            }
            4 => {
                let t = self.sortable();
                let not = *self.c.pick(&["", "NOT "]);
                format!("({} IS {not}DISTINCT FROM {})", self.expr(t, d), self.expr(t, d))
            }
            5 | 6 => {
                let t = self.sortable();
                let not = *self.c.pick(&["", "NOT "]);
                let arg = self.expr(t, d);
                let list: Vec<String> = (0..=self.c.below(12)).map(|_| self.literal(t)).collect();
                format!("({arg} {not}IN ({}))", list.join(", "))
            }
            7 => {
                let t = self.sortable();
                let not = *self.c.pick(&["", "NOT ", "SYMMETRIC "]);
                let (not, sym) = if not == "SYMMETRIC " { ("", not) } else { (not, "") };
                format!(
                    "({} {not}BETWEEN {sym}{} AND {})",
                    self.expr(t, d),
                    self.expr(t, d),
                    self.expr(t, d)
                )
            }
            8 => {
                let t = self.sortable();
                let not = *self.c.pick(&["", "NOT "]);
                format!("({} IS {not}NULL)", self.expr(t, d))
            }
            9 => {
                let op = *self.c.pick(&["AND", "OR"]);
                format!("({} {op} {})", self.condition(d), self.condition(d))
            }
            10 => format!("(NOT {})", self.condition(d)),
            11 => {
                let (a, b) = (self.sortable(), self.sortable());
                let op = *self.c.pick(&["=", "<>", "<", "<=", ">", ">="]);
                let mixed = self.c.percent(30);
                let (x, y) = if mixed { (self.partner(a), self.partner(b)) } else { (a, b) };
                format!(
                    "(({}, {}) {op} ({}, {}))",
                    self.leaf(a),
                    self.leaf(b),
                    self.leaf(x),
                    self.leaf(y)
                )
            }
            12 => {
                let array = ty(self.c.pick::<&str>(&["int4[]", "text[]"]));
                let op = *self.c.pick(&["=", "<>", "<", ">="]);
                let which = *self.c.pick(&["ANY", "ALL"]);
                format!(
                    "({} {op} {which} ({}))",
                    self.expr(element_of(array).unwrap_or(0), d),
                    self.expr(array, d)
                )
            }
            13 | 14 if sub => {
                let t = self.sortable();
                let not = *self.c.pick(&["", "NOT "]);
                let arg = self.expr(t, d);
                let query = self.nested(&[t]);
                if self.c.percent(20) {
                    let op = *self.c.pick(&["=", "<>", "<", ">="]);
                    let which = *self.c.pick(&["ANY", "ALL"]);
                    return format!("({arg} {op} {which} ({query}))");
                }
                format!("({arg} {not}IN ({query}))")
            }
            15 if sub => {
                let not = *self.c.pick(&["", "NOT "]);
                let query = self.nested(&[0]);
                format!("({not}EXISTS ({query}))")
            }
            16 if sub => {
                let (a, b) = (self.sortable(), self.sortable());
                let not = *self.c.pick(&["", "NOT "]);
                let args = (self.leaf(a), self.leaf(b));
                let query = self.nested(&[a, b]);
                format!("(({}, {}) {not}IN ({query}))", args.0, args.1)
            }
            17 | 18 => {
                let family = *self.c.pick(MIXED);
                let a = ty(self.c.pick::<&str>(family));
                let b = ty(self.c.pick::<&str>(family));
                let op = *self.c.pick(&["=", "<>", "<", "<=", ">", ">="]);
                format!("({} {op} {})", self.expr(a, d), self.expr(b, d))
            }
            19 if sub => {
                let family = *self.c.pick(MIXED);
                let a = ty(self.c.pick::<&str>(family));
                let b = ty(self.c.pick::<&str>(family));
                let not = *self.c.pick(&["", "NOT "]);
                let arg = self.leaf(a);
                format!("({arg} {not}IN ({}))", self.nested(&[b]))
            }
            _ => self.leaf(ty("bool")),
        }
    }

    /// Rows of constants, each with its number.
    fn rows(&mut self, types: &[Ty], most: usize) -> String {
        let mut rows = Vec::new();
        for n in 0..=self.c.below(most) {
            let values: Vec<String> = types.iter().map(|t| self.literal(*t)).collect();
            rows.push(format!("({n}, {})", values.join(", ")));
        }
        self.literals.iter_mut().for_each(|l| l.bare = false);
        rows.join(", ")
    }

    /// An aggregate of odd values, or a frame's.
    fn aggregates(mut self) -> (Statement, Vec<u32>) {
        let catalog = self.catalog;
        let f = self.c.pick(&catalog.aggregates);
        let element = ty(self.c.pick::<&str>(&["int4", "text", "numeric", "jsonb", "date"]));
        let mut types: Vec<Ty> = Vec::new();
        for arg in f.args {
            types.push(if element_like(*arg) {
                element
            } else if array_like(*arg) {
                array_of(element).unwrap_or(0)
            } else {
                values::of_oid(*arg).unwrap_or(element)
            });
        }
        let rows = self.rows(if types.is_empty() { &[0] } else { &types }, 5);
        let names: Vec<String> = (0..types.len().max(1)).map(|i| format!("c{i}")).collect();
        let args = if types.is_empty() { "*".to_owned() } else { names.join(", ") };
        let from = format!("(VALUES {rows}) v(k, {})", names.join(", "));
        let text = match self.c.below(5) {
            1 if types.len() == 1 && TYPES[types[0]].sorts => {
                format!("SELECT {}(DISTINCT {args}) FROM {from}", f.name)
            }
            2 => {
                let frame = *self.c.pick(&["1 PRECEDING", "CURRENT ROW", "UNBOUNDED PRECEDING"]);
                let window = format!("ORDER BY k ROWS BETWEEN {frame} AND 1 FOLLOWING");
                format!("SELECT {}({args}) OVER ({window}) FROM {from} ORDER BY k", f.name)
            }
            3 => format!("SELECT {}({args}) FILTER (WHERE k <> 1) FROM {from} WHERE k < 4", f.name),
            4 if args == "*" => format!("SELECT {}(*) FROM {from} GROUP BY c0 ORDER BY 1", f.name),
            _ => {
                let order = if args == "*" { "" } else { " ORDER BY k" };
                format!("SELECT {}({args}{order}) FROM {from}", f.name)
            }
        };
        (Statement { text, literals: self.literals, ordered: true }, self.c.taken)
    }

    /// How odd values of a type compare: sorted, joined, grouped.
    fn order(mut self, t: Ty) -> (Statement, Vec<u32>) {
        let t = if TYPES[t].sorts { t } else { 0 };
        let (a, b) = (self.rows(&[t], 6), self.rows(&[t], 6));
        let op = *self.c.pick(&["=", "<", ">=", "<>", "IS NOT DISTINCT FROM"]);
        let direction = *self.c.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        let text = match self.c.below(6) {
            0 => format!("SELECT k, x FROM (VALUES {a}) v(k, x) ORDER BY x{direction}, k"),
            1 => format!(
                "SELECT v.k, w.k FROM (VALUES {a}) v(k, x) JOIN (VALUES {b}) w(k, x) ON v.x {op} w.x ORDER BY 1, 2"
            ),
            2 => format!("SELECT min(k), count(*) FROM (VALUES {a}) v(k, x) GROUP BY x ORDER BY 1"),
            3 => format!(
                "SELECT k FROM (VALUES {a}) v(k, x) WHERE x IN (SELECT x FROM (VALUES {b}) w(k, x)) ORDER BY 1"
            ),
            4 => format!(
                "SELECT k, rank() OVER (ORDER BY x{direction}) FROM (VALUES {a}) v(k, x) ORDER BY k"
            ),
            _ => format!(
                "SELECT v.k, w.k FROM (VALUES {a}) v(k, x) FULL JOIN (VALUES {b}) w(k, x) ON v.x = w.x ORDER BY 1, 2"
            ),
        };
        (Statement { text, literals: self.literals, ordered: true }, self.c.taken)
    }

    /// A statement of nothing but an expression, or of one over a row of constants.
    pub fn scalar(mut self) -> (Statement, Vec<u32>) {
        self.wild = true;
        let t = self.c.below(TYPES.len());
        let depth = 1 + self.c.below(2);
        match self.c.below(10) {
            8 => return self.aggregates(),
            9 => return self.order(t),
            _ => {}
        }
        let text = if self.c.percent(30) {
            // Over columns, so that nothing is computed while planning.
            let types: Vec<Ty> = (0..3).map(|_| self.c.below(TYPES.len())).collect();
            let values: Vec<String> = types.iter().map(|t| self.literal(*t)).collect();
            for literal in &mut self.literals {
                literal.bare = false;
            }
            self.scopes.push(
                types
                    .iter()
                    .enumerate()
                    .map(|(i, t)| Col { sql: format!("c{i}"), ty: *t, aggregate: false })
                    .collect(),
            );
            let e = self.expr(t, depth);
            format!("SELECT {e} FROM (VALUES ({})) v(c0, c1, c2)", values.join(", "))
        } else {
            let e = self.expr(t, depth);
            format!("SELECT {e}")
        };
        (Statement { text, literals: self.literals, ordered: true }, self.c.taken)
    }
}
