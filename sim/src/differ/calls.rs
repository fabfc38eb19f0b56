//! Calls of aggregates and of window functions.

use super::exprs::Gen;
use super::queries::OUTPUTS;
use super::values::{Ty, ty};

/// Keys of frames, and offsets from them.
const OFFSETS: &[(&str, &[&str])] = &[
    ("int4", &["1", "2", "0"]),
    ("int8", &["1", "3"]),
    ("numeric", &["0.5", "2"]),
    ("float8", &["0.5", "2"]),
    ("date", &["'1 day'", "'2 months'", "'0'"]),
    ("timestamp", &["'1 month'", "'12 hours'", "'1 year 2 days'"]),
    ("timestamptz", &["'1 day'", "'1 month'", "'2 hours'"]),
    ("interval", &["'1 day'", "'3 hours'"]),
    ("time", &["'1 hour'", "'23 hours'"]),
];

impl Gen<'_> {
    /// An aggregate, and its type.
    pub fn aggregate(&mut self) -> (String, Ty) {
        let deep = self.depth;
        if !self.c.percent(15) {
            self.depth = 2;
        }
        let e = |g: &mut Self, t: &str| g.expr(ty(t), 1);
        let (text, t) = match self.c.below(30) {
            0 => ("count(*)".into(), "int8"),
            1 => {
                let t = ty(self.c.pick::<&str>(OUTPUTS));
                let distinct = *self.c.pick(&["", "DISTINCT "]);
                (format!("count({distinct}{})", self.expr(t, 1)), "int8")
            }
            2 => (format!("sum({})", e(self, "int4")), "int8"),
            3 => (format!("sum(DISTINCT {})", e(self, "int4")), "int8"),
            4 => (format!("sum({})", e(self, "numeric")), "numeric"),
            5 => (format!("avg({})", e(self, "int4")), "numeric"),
            6 => (format!("min({})", e(self, "text")), "text"),
            7 => (format!("max({})", e(self, "timestamp")), "timestamp"),
            8 => (format!("max({})", e(self, "int4")), "int4"),
            9 => (format!("bool_and({})", e(self, "bool")), "bool"),
            10 => (format!("bool_or({})", e(self, "bool")), "bool"),
            11 => {
                let (x, d) = (e(self, "text"), *self.c.pick(&["", " DESC"]));
                (format!("string_agg({x}, ',' ORDER BY {x}{d})"), "text")
            }
            12 => {
                let x = e(self, "text");
                (format!("string_agg(DISTINCT {x}, '-')"), "text")
            }
            13 => {
                let (x, d) =
                    (e(self, "int4"), *self.c.pick(&["", " DESC NULLS LAST", " NULLS FIRST"]));
                (format!("array_agg({x} ORDER BY {x}{d})"), "int4[]")
            }
            14 => (format!("array_agg(DISTINCT {})", e(self, "text")), "text[]"),
            15 => {
                let x = e(self, "int4");
                (format!("jsonb_agg({x} ORDER BY {x})"), "jsonb")
            }
            16 => (format!("bit_xor({})", e(self, "int4")), "int4"),
            17 => (
                format!("percentile_disc(0.4) WITHIN GROUP (ORDER BY {})", e(self, "int4")),
                "int4",
            ),
            18 => (
                format!("percentile_cont(0.25) WITHIN GROUP (ORDER BY {})", e(self, "float8")),
                "float8",
            ),
            19 => (format!("stddev_pop({})", e(self, "int4")), "numeric"),
            20 => (format!("min({})", e(self, "date")), "date"),
            22 => {
                let (x, order) = (e(self, "int4"), self.total_order());
                (format!("array_agg({x} ORDER BY {order})"), "int4[]")
            }
            23 => {
                let (x, order) = (e(self, "text"), self.total_order());
                (format!("string_agg({x}, '+' ORDER BY {order})"), "text")
            }
            25 => {
                let (x, y) = (self.literal(0), e(self, "int4"));
                (format!("rank({x}) WITHIN GROUP (ORDER BY {y} DESC)"), "int8")
            }
            26 => {
                let (x, y) = (self.literal(1), e(self, "text"));
                (format!("dense_rank({x}) WITHIN GROUP (ORDER BY {y} NULLS FIRST)"), "int8")
            }
            27 => {
                let (a, b) = (self.literal(0), self.literal(1));
                let (x, y) = (e(self, "int4"), e(self, "text"));
                (format!("cume_dist({a}, {b}) WITHIN GROUP (ORDER BY {x}, {y} DESC)"), "float8")
            }
            28 => (format!("mode() WITHIN GROUP (ORDER BY {})", e(self, "int4")), "int4"),
            24 => {
                // What is sorted by is to be the argument, constants are parameters of different numbers.
                let x = self.columns_of(0).unwrap_or_else(|| "1".into());
                (format!("array_agg(DISTINCT {x} ORDER BY {x} DESC)"), "int4[]")
            }
            _ => (format!("var_samp({})", e(self, "numeric")), "numeric"),
        };
        let text = if self.c.percent(20) {
            format!("{text} FILTER (WHERE {})", self.condition(1))
        } else {
            text
        };
        self.depth = deep;
        (text, ty(t))
    }

    /// A window function with its window, and its type.
    pub fn window(&mut self) -> (String, Ty) {
        let deep = std::mem::replace(&mut self.depth, 2);
        let (f, t) = match self.c.below(14) {
            0 => ("row_number()".to_owned(), ty("int8")),
            1 => ("rank()".to_owned(), ty("int8")),
            2 => ("dense_rank()".to_owned(), ty("int8")),
            3 => ("ntile(3)".to_owned(), ty("int4")),
            4 => (format!("lag({}, 2)", self.leaf(0)), 0),
            5 => (format!("lead({}, 1, -9)", self.leaf(0)), 0),
            6 => (format!("first_value({})", self.leaf(1)), 1),
            7 => (format!("last_value({})", self.leaf(0)), 0),
            8 => (format!("nth_value({}, 2)", self.leaf(1)), 1),
            9 => ("count(*)".to_owned(), ty("int8")),
            10 => (format!("sum({})", self.leaf(0)), ty("int8")),
            11 => (format!("max({})", self.leaf(1)), 1),
            12 => (format!("avg({})", self.leaf(0)), ty("numeric")),
            _ => ("cume_dist()".to_owned(), ty("float8")),
        };
        let grouping = |c: &&super::exprs::Col| c.sql.starts_with("GROUPING(");
        let grouped =
            self.scopes.last().and_then(|s| s.iter().find(grouping)).map(|c| c.sql.clone());
        let partition = match grouped {
            Some(of) if self.c.percent(40) => format!("PARTITION BY {of} "),
            _ if self.c.percent(60) => {
                let t = ty(self.c.pick::<&str>(&["int4", "text", "bool"]));
                format!("PARTITION BY {} ", self.leaf(t))
            }
            _ => String::new(),
        };
        let exclude =
            *self.c.pick(&["", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"]);
        let over = if self.c.percent(30) {
            // A RANGE over one key: peers are alike, whatever their order.
            let direction = *self.c.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            let (kind, offsets) = *self.c.pick(OFFSETS);
            let key = self.columns_of(ty(kind));
            match key {
                Some(key)
                    if matches!(
                        f.split('(').next(),
                        Some("count" | "sum" | "max" | "avg" | "rank" | "dense_rank" | "cume_dist")
                    ) =>
                {
                    let (a, b) = (*self.c.pick(offsets), *self.c.pick(offsets));
                    let frame = match self.c.below(12) {
                        0 => String::new(),
                        1 => format!(" RANGE BETWEEN {a} PRECEDING AND {b} FOLLOWING"),
                        2 => " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW".into(),
                        3 => format!(" RANGE BETWEEN UNBOUNDED PRECEDING AND {a} PRECEDING"),
                        4 => " GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING".into(),
                        5 => format!(" RANGE BETWEEN {a} PRECEDING AND {b} PRECEDING"),
                        6 => format!(" RANGE BETWEEN {a} FOLLOWING AND {b} FOLLOWING"),
                        7 => format!(" RANGE BETWEEN CURRENT ROW AND {a} FOLLOWING"),
                        9 => " GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING".into(),
                        10 => " GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING".into(),
                        11 => " GROUPS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING".into(),
                        _ => format!(" RANGE BETWEEN {a} FOLLOWING AND UNBOUNDED FOLLOWING"),
                    };
                    let exclude = if frame.is_empty() { "" } else { exclude };
                    format!("ORDER BY {key}{direction}{frame}{exclude}")
                }
                _ => format!("ORDER BY {}", self.total_order()),
            }
        } else {
            let frame = *self.c.pick(&[
                "",
                "",
                " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
                " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
                " ROWS 1 PRECEDING",
                " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            ]);
            let exclude = if frame.is_empty() { "" } else { exclude };
            format!("ORDER BY {}{frame}{exclude}", self.total_order())
        };
        let aggregate = matches!(f.split('(').next(), Some("count" | "sum" | "max" | "avg"));
        let filter = if aggregate && self.c.percent(20) {
            format!(" FILTER (WHERE {})", self.condition(1))
        } else {
            String::new()
        };
        self.depth = deep;
        (format!("{f}{filter} OVER ({partition}{over})"), t)
    }

    /// A column of this type of the innermost level.
    pub fn columns_of(&mut self, t: Ty) -> Option<String> {
        let of: Vec<String> =
            self.scopes.last()?.iter().filter(|c| c.ty == t).map(|c| c.sql.clone()).collect();
        if of.is_empty() { None } else { Some(self.c.pick(&of).clone()) }
    }
}
