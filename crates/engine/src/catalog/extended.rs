//! Extended statistics: what `pg_statistic_ext` and `pg_statistic_ext_data` say, read and written.
//!
//! # Layout
//! Columns are known by their numbers, expressions by -1, -2, … `stxdndistinct` and `stxddependencies` hold the text that
//! PostgreSQL prints of its own; `stxdmcv` and the elements of `stxdexpr` are JSON, as other trees are.
//!
//! # Invariants
//! Data that cannot be read is corruption, never no data.

use super::load::{RowSource, stored_expr};
use super::model::ColumnStatistics;
use super::rows::{NewRow, Row};
use base::{Error, Oid, Result};
use expr::{Constant, Expr, TypeRef};
use std::fmt::Write as _;
use std::sync::Arc;
use types::Datum;

/// A combination of values, NULLs too, that occurs often.
#[derive(Clone, Debug)]
pub struct CommonItem {
    /// One for each column, then for each expression.
    pub values: Vec<Constant>,
    /// How much of the rows have them.
    pub frequency: f64,
    /// How much would if they had nothing to do with each other.
    pub base_frequency: f64,
}

/// What ANALYZE found.
#[derive(Clone, Debug, Default)]
pub struct ExtendedData {
    /// Combinations and their numbers of different values.
    pub distinct: Option<Vec<(Vec<i32>, f64)>>,
    /// Columns, the last of which the others decide; and of how much of the rows that is true.
    pub dependencies: Option<Vec<(Vec<i32>, f64)>>,
    /// The most common combinations, the commonest first.
    pub common: Option<Vec<CommonItem>>,
    /// Of each expression; none when there is nothing to know.
    pub expressions: Option<Vec<Option<Arc<ColumnStatistics>>>>,
}

/// A statistics object.
#[derive(Clone, Debug)]
pub struct ExtendedStatistics {
    /// `pg_statistic_ext.oid`
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// Its schema.
    pub namespace: Oid,
    /// Its own target.
    pub target: Option<i32>,
    /// Columns, in order.
    pub columns: Vec<i32>,
    /// Expressions over the table, which is range-table entry 0.
    pub exprs: Vec<Arc<Expr>>,
    /// Of d, f, m and e, those that are wanted.
    pub kinds: Vec<u8>,
    /// What is known.
    pub data: ExtendedData,
}

impl ExtendedStatistics {
    /// The numbers of columns and expressions, in order.
    pub fn attributes(&self) -> Vec<i32> {
        self.columns
            .iter()
            .copied()
            .chain((1..).zip(&self.exprs).map(|(n, _): (i32, _)| -n))
            .collect()
    }

    /// Reads a row of `pg_statistic_ext`; nothing is known yet.
    ///
    /// # Errors
    /// Corruption.
    pub fn of(row: &Row) -> Result<ExtendedStatistics> {
        let exprs = match row.text_opt("stxexprs") {
            Some(text) => stored_exprs(text)?,
            None => Vec::new(),
        };
        let target = match row.get("stxstattarget") {
            Datum::Int2(t) if *t >= 0 => Some(i32::from(*t)),
            _ => None,
        };
        let kinds = row.array("stxkind").iter().filter_map(|d| match d {
            Datum::Char(c) => Some(*c),
            _ => None,
        });
        Ok(ExtendedStatistics {
            oid: row.oid("oid"),
            name: row.text("stxname").to_owned(),
            namespace: row.oid("stxnamespace"),
            target,
            columns: row.ints("stxkeys"),
            exprs,
            kinds: kinds.collect(),
            data: ExtendedData::default(),
        })
    }

    /// All of a table, with what is known, the oldest first.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn load(source: &dyn RowSource, table: Oid) -> Result<Vec<ExtendedStatistics>> {
        let rows = source.find("pg_statistic_ext", &[("stxrelid", Datum::Oid(table))])?;
        let mut all = rows.iter().map(ExtendedStatistics::of).collect::<Result<Vec<_>>>()?;
        all.sort_by_key(|s| s.oid);
        for one in &mut all {
            let key = [("stxoid", Datum::Oid(one.oid)), ("stxdinherit", Datum::Bool(false))];
            if let Some(row) = source.find("pg_statistic_ext_data", &key)?.first() {
                one.data = ExtendedData::of(row)?;
            }
        }
        Ok(all)
    }
}

fn corrupt(what: &str) -> Error {
    Error::corrupt_file(format!("stored {what} of extended statistics does not parse"))
}

/// Expressions as `stxexprs` holds them.
///
/// # Errors
/// Corruption.
pub fn stored_exprs(text: &str) -> Result<Vec<Arc<Expr>>> {
    let texts: Vec<String> = serde_json::from_str(text).map_err(|_| corrupt("expression"))?;
    texts.iter().map(|t| stored_expr(t)).collect()
}

/// The form in which [`stored_exprs`] reads them.
///
/// # Errors
/// `54001` for one that is nested too deep.
pub fn store_exprs<'e>(exprs: impl Iterator<Item = &'e Expr>) -> Result<String> {
    let texts = exprs.map(super::load::store_expr).collect::<Result<Vec<String>>>()?;
    super::stored::to_text(&texts)
}

/// `{"1, 2": 11, "1, 3": 5}`
pub fn distinct_text(list: &[(Vec<i32>, f64)]) -> String {
    joined(list.iter().map(|(columns, n)| format!("\"{}\": {n:.0}", numbers(columns))))
}

/// `{"1 => 2": 1.000000, "1, 2 => 3": 0.500000}`
pub fn dependencies_text(list: &[(Vec<i32>, f64)]) -> String {
    joined(list.iter().filter_map(|(columns, degree)| {
        let (last, from) = columns.split_last()?;
        Some(format!("\"{} => {last}\": {degree:.6}", numbers(from)))
    }))
}

fn numbers(columns: &[i32]) -> String {
    let mut out = String::new();
    for (n, c) in columns.iter().enumerate() {
        let comma = if n == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(out, "{comma}{c}");
    }
    out
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
}

/// Reads both texts.
fn parse_list(text: &str) -> Option<Vec<(Vec<i32>, f64)>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut list = Vec::new();
    let mut rest = inner;
    while let Some(after) = rest.strip_prefix('"') {
        let (key, value) = after.split_once("\": ")?;
        let (value, more) = value.split_once(", \"").unwrap_or((value, ""));
        let columns = key.split(", ").flat_map(|part| part.split(" => "));
        let columns = columns.map(|c| c.parse().ok()).collect::<Option<Vec<i32>>>()?;
        list.push((columns, value.parse().ok()?));
        rest = if more.is_empty() { more } else { &rest[rest.len() - more.len() - 1..] };
    }
    rest.is_empty().then_some(list)
}

type StoredColumn = (f32, i32, f32, Vec<(Constant, f32)>, Vec<Constant>, Option<f32>);

/// An element of `stxdexpr`.
pub fn store_column(statistics: &ColumnStatistics, ty: Oid) -> String {
    let constant = |value: &Datum| Constant { ty: TypeRef::of(ty), value: value.clone() };
    let stored: StoredColumn = (
        statistics.null_fraction,
        statistics.width_bytes,
        statistics.distinct,
        statistics.common.iter().map(|(v, f)| (constant(v), *f)).collect(),
        statistics.histogram.iter().map(constant).collect(),
        statistics.correlation,
    );
    serde_json::to_string(&stored).unwrap_or_default()
}

/// Reads what [`store_column`] wrote.
///
/// # Errors
/// Corruption.
pub fn stored_column(text: &str) -> Result<ColumnStatistics> {
    let stored: StoredColumn =
        serde_json::from_str(text).map_err(|_| corrupt("expression's statistics"))?;
    let (null_fraction, width_bytes, distinct, common, histogram, correlation) = stored;
    Ok(ColumnStatistics {
        null_fraction,
        width_bytes,
        distinct,
        common: common.into_iter().map(|(c, f)| (c.value, f)).collect(),
        histogram: histogram.into_iter().map(|c| c.value).collect(),
        correlation,
    })
}

/// Reads `stxdmcv`.
///
/// # Errors
/// Corruption.
pub fn stored_common(bytes: &[u8]) -> Result<Vec<CommonItem>> {
    let items: Vec<(Vec<Constant>, f64, f64)> =
        serde_json::from_slice(bytes).map_err(|_| corrupt("list of common values"))?;
    let item =
        |(values, frequency, base_frequency)| CommonItem { values, frequency, base_frequency };
    Ok(items.into_iter().map(item).collect())
}

fn store_common(items: &[CommonItem]) -> Vec<u8> {
    let items: Vec<_> = items.iter().map(|i| (&i.values, i.frequency, i.base_frequency)).collect();
    serde_json::to_vec(&items).unwrap_or_default()
}

impl ExtendedData {
    fn of(row: &Row) -> Result<ExtendedData> {
        let bytes = |name: &str| match row.get(name) {
            Datum::Bytea(b) => Some(b.to_vec()),
            _ => None,
        };
        let list = |name: &str| match row.get(name) {
            Datum::Text(text) => parse_list(text).map(Some).ok_or_else(|| corrupt(name)),
            _ => Ok(None),
        };
        let expressions = match row.get("stxdexpr") {
            Datum::Null => None,
            _ => {
                let one = |d: &Datum| match d {
                    Datum::Text(t) => stored_column(t).map(|s| Some(Arc::new(s))),
                    _ => Ok(None),
                };
                Some(row.array("stxdexpr").iter().map(one).collect::<Result<Vec<_>>>()?)
            }
        };
        Ok(ExtendedData {
            distinct: list("stxdndistinct")?,
            dependencies: list("stxddependencies")?,
            common: bytes("stxdmcv").map(|b| stored_common(&b)).transpose()?,
            expressions,
        })
    }

    /// The row of `pg_statistic_ext_data`; `types` are those of the expressions.
    pub fn row(&self, object: Oid, types: &[Oid]) -> NewRow {
        let bytes = |b: Vec<u8>| Datum::Bytea(b.into());
        let text = |t: Option<String>| t.map_or(Datum::Null, Datum::text);
        let list = self.expressions.as_ref().map(|list| {
            let one = |(s, ty): (&Option<Arc<ColumnStatistics>>, &Oid)| match s {
                Some(s) => Datum::text(store_column(s, *ty)),
                None => Datum::Null,
            };
            let elements = list.iter().zip(types).map(one).collect();
            Datum::Array(Arc::new(types::ArrayValue::one_dimension(types::oids::TEXT, elements)))
        });
        NewRow::of("pg_statistic_ext_data")
            .oid("stxoid", object)
            .bool("stxdinherit", false)
            .set("stxdndistinct", text(self.distinct.as_ref().map(|l| distinct_text(l))))
            .set("stxddependencies", text(self.dependencies.as_ref().map(|l| dependencies_text(l))))
            .set("stxdmcv", self.common.as_ref().map_or(Datum::Null, |l| bytes(store_common(l))))
            .set("stxdexpr", list.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_postgresqls_and_read_back() {
        let distinct = vec![(vec![1, 2], 11.0), (vec![1, -1], 5.0)];
        assert_eq!(distinct_text(&distinct), r#"{"1, 2": 11, "1, -1": 5}"#);
        assert_eq!(parse_list(&distinct_text(&distinct)), Some(distinct));
        let dependencies = vec![(vec![1, 2], 1.0), (vec![1, 2, 3], 0.5)];
        let text = dependencies_text(&dependencies);
        assert_eq!(text, r#"{"1 => 2": 1.000000, "1, 2 => 3": 0.500000}"#);
        assert_eq!(parse_list(&text), Some(dependencies));
        assert_eq!(parse_list("{}"), Some(Vec::new()));
        assert_eq!(parse_list("{\"1\""), None);
    }

    #[test]
    fn an_expressions_statistics_read_back() {
        let statistics = ColumnStatistics {
            null_fraction: 0.25,
            width_bytes: 4,
            distinct: -0.5,
            common: vec![(Datum::Int4(7), 0.1)],
            histogram: vec![Datum::Int4(1), Datum::Int4(9)],
            correlation: Some(1.0),
        };
        let back = stored_column(&store_column(&statistics, types::oids::INT4)).unwrap();
        assert_eq!(format!("{back:?}"), format!("{statistics:?}"));
        assert!(stored_column("{").is_err());
    }
}
