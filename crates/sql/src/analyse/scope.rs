//! Which names mean which columns.

use super::Analyser;
use crate::parse::ast::Loc;
use crate::plan::query_walk::shift_expr_levels;
use crate::query::{RangeTableEntry, RteKind};
use base::{Result, SqlError, SqlState, err};
use expr::{Expr, TypeRef};
use types::oids::{CID, OID, RECORD, TID, XID};

/// Something in FROM as names see it.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Its range-table entry.
    pub rte: usize,
    /// The name columns can be qualified with; empty: none.
    pub name: String,
    /// The schema it may be qualified with too (a relation without alias).
    pub schema: Option<String>,
    /// Found by `name.column`.
    pub by_name: bool,
    /// Found by bare column names.
    pub by_column: bool,
    /// Of a join: what its columns mean.
    pub columns: Option<Vec<(String, Expr)>>,
    /// Only seen with LATERAL.
    pub lateral_only: bool,
    /// How many of the last columns `*` does not stand for.
    pub unspread: usize,
    /// Seen, but an error (the target of an UPDATE from its own FROM, a RIGHT JOIN's left side).
    pub forbidden: bool,
    /// What an UPDATE or DELETE writes to.
    pub target: bool,
}

impl Item {
    /// Do both go by one name? Tables of two schemas without aliases do not.
    pub fn is_called_as(&self, other: &Item) -> bool {
        self.by_name
            && !self.name.is_empty()
            && self.name == other.name
            && (self.schema == other.schema || self.schema.is_none() || other.schema.is_none())
    }

    pub fn table(rte: usize, name: impl Into<String>) -> Item {
        Item {
            rte,
            name: name.into(),
            schema: None,
            by_name: true,
            by_column: true,
            columns: None,
            lateral_only: false,
            unspread: 0,
            forbidden: false,
            target: false,
        }
    }
}

const SYSTEM_COLUMNS: [(&str, i32, base::Oid); 6] = [
    ("ctid", -1, TID),
    ("xmin", -2, XID),
    ("cmin", -3, CID),
    ("xmax", -4, XID),
    ("cmax", -5, CID),
    ("tableoid", -6, OID),
];

/// Is it the name of a system column?
pub(crate) fn is_system_column(name: &str) -> bool {
    SYSTEM_COLUMNS.iter().any(|(n, ..)| *n == name)
}

/// The name of a system column.
pub(crate) fn system_column(number: i32) -> Option<&'static str> {
    SYSTEM_COLUMNS.iter().find(|(_, n, _)| *n == number).map(|(name, ..)| *name)
}

/// The number of a system column.
pub(crate) fn number_of_system_column(name: &str) -> Option<i32> {
    SYSTEM_COLUMNS.iter().find(|(n, ..)| *n == name).map(|(_, number, _)| *number)
}

/// The type of a system column.
pub(crate) fn type_of_system_column(number: i32) -> base::Oid {
    SYSTEM_COLUMNS.iter().find(|(_, n, _)| *n == number).map_or(base::Oid::INVALID, |(.., ty)| *ty)
}

/// Columns of catalogs that older clients ask for by the name they had before PostgreSQL 17: psql 15's `\l`
/// and `\dO`, pg_dump 15.
const RENAMED: [(u32, &str, &str); 2] =
    [(1262, "daticulocale", "datlocale"), (3456, "colliculocale", "colllocale")];

/// The edit distance of two names, at most `limit` + 1.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut last = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (row[j] + 1).min(row[j + 1] + 1).min(last + usize::from(x != y));
            last = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}

/// Column `index` (from 0) of an entry of the current level, said to be of a domain if that is its type.
pub(super) fn column_var(rte: usize, index: usize, ty: TypeRef) -> Expr {
    Expr::Var { levels_up: 0, rte, column: index as i32 + 1, ty: ty.base() }.declared(ty)
}

enum Found {
    No,
    One(Expr),
    Twice,
}

impl Analyser<'_> {
    /// The column `index` (from 0) of an entry of the current level, said to be of a domain if it is.
    pub fn var(&mut self, rte: usize, index: usize) -> Expr {
        let ty = self.level().rtes[rte].column_types[index];
        column_var(rte, index, ty)
    }

    fn column_of(rtes: &[RangeTableEntry], item: &Item, column: &str) -> Found {
        if let Some(columns) = &item.columns {
            let mut hits = columns.iter().filter(|(n, _)| n == column);
            return match (hits.next(), hits.next()) {
                (None, _) => Found::No,
                (Some((_, e)), None) => Found::One(e.clone()),
                _ => Found::Twice,
            };
        }
        let rte = &rtes[item.rte];
        let mut hits =
            rte.column_names.iter().enumerate().filter(|(_, n)| *n == column && !n.is_empty());
        match (hits.next(), hits.next()) {
            (Some(_), Some(_)) => return Found::Twice,
            (Some((i, _)), None) => {
                return Found::One(column_var(item.rte, i, rte.column_types[i]));
            }
            _ => {}
        }
        if let RteKind::Relation { oid, .. } = rte.kind {
            if let Some((_, _, new)) =
                RENAMED.iter().find(|(t, old, _)| (*t, *old) == (oid, column))
            {
                return Self::column_of(rtes, item, new);
            }
            if let Some((_, n, ty)) = SYSTEM_COLUMNS.iter().find(|(n, ..)| *n == column) {
                return Found::One(Expr::Var {
                    levels_up: 0,
                    rte: item.rte,
                    column: *n,
                    ty: TypeRef::of(*ty),
                });
            }
        }
        Found::No
    }

    /// Notes where a column was named, and moves it `up` levels.
    fn seen(&mut self, mut e: Expr, up: usize, loc: Loc) -> Expr {
        let at = self.levels.len() - 1 - up;
        self.reads(at, &e);
        if let Expr::Var { rte, column, .. } = e.as_plain()
            && !self.levels[at].in_aggregate
        {
            let seen = &mut self.levels[at].seen;
            if !seen.iter().any(|(r, c, _)| r == rte && c == column) {
                seen.push((*rte, *column, loc));
            }
        }
        if up > 0 {
            shift_expr_levels(&mut e, 0, up as i32);
        }
        e
    }

    /// Notes the columns of level `at` in an expression of it as read: whoever runs the statement must be allowed to.
    pub(super) fn reads(&mut self, at: usize, e: &Expr) {
        let rtes = &mut self.levels[at].rtes;
        e.any(&mut |e| {
            if let Expr::Var { levels_up: 0, rte, column, .. } = e
                && let Some(entry) = rtes.get_mut(*rte)
            {
                entry.reads([*column]);
            }
            false
        });
    }

    /// A bare name: a column, or None.
    pub fn bare_column(&mut self, column: &str, loc: Loc) -> Result<Option<Expr>> {
        for up in 0..self.levels.len() {
            let level = &self.levels[self.levels.len() - 1 - up];
            let mut found: Option<Expr> = None;
            let mut wrong: Option<&Item> = None;
            for item in level.items.iter().filter(|i| i.by_column) {
                if item.lateral_only && !level.lateral {
                    continue;
                }
                match Self::column_of(&level.rtes, item, column) {
                    Found::No => {}
                    Found::One(e) if found.is_none() => {
                        if item.forbidden {
                            wrong = Some(item);
                        }
                        found = Some(e);
                    }
                    _ => {
                        let e =
                            err!(AMBIGUOUS_COLUMN, "column reference \"{column}\" is ambiguous");
                        return self.at(loc, e);
                    }
                }
            }
            if let Some(item) = wrong {
                return self.invalid_reference(item, &item.name, loc);
            }
            if let Some(e) = found {
                return Ok(Some(self.seen(e, up, loc)));
            }
        }
        Ok(None)
    }

    /// An item that stands where it may not be referred to; `written`: what it was called.
    fn invalid_reference<T>(&self, item: &Item, written: &str, loc: Loc) -> Result<T> {
        let text = format!("invalid reference to FROM-clause entry for table \"{written}\"");
        let elsewhere = format!(
            "There is an entry for table \"{}\", but it cannot be referenced from this part \
             of the query.",
            item.name
        );
        // LATERAL would see it, were it not for the join, or for its being what is written to.
        if item.forbidden && item.lateral_only && self.levels.iter().any(|l| l.lateral) {
            let e = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, text);
            let e = if item.target {
                e.hint(elsewhere)
            } else {
                let which =
                    "The combining JOIN type must be INNER or LEFT for a LATERAL reference.";
                e.detail(which)
            };
            return self.at(loc, e.into());
        }
        let mut e = SqlError::new(SqlState::UNDEFINED_TABLE, text).detail(elsewhere);
        if item.lateral_only && !item.forbidden {
            let hint = "To reference that table, you must mark this subquery with LATERAL.";
            e = e.hint(hint);
        }
        self.at(loc, e.into())
    }

    /// The entry that `[schema.]name` qualifies: (levels up, index into that level's items).
    pub fn find_item(
        &self,
        schema: Option<&str>,
        name: &str,
        loc: Loc,
    ) -> Result<Option<(usize, usize)>> {
        for up in 0..self.levels.len() {
            let level = &self.levels[self.levels.len() - 1 - up];
            let mut hit = None;
            for (i, item) in level.items.iter().enumerate() {
                if !item.by_name || item.name != name {
                    continue;
                }
                if schema.is_some() && item.schema.as_deref() != schema {
                    continue;
                }
                if item.lateral_only && !level.lateral {
                    // Out of sight: a query around may have one of that name.
                    continue;
                }
                if hit.is_some() {
                    let e = err!(AMBIGUOUS_ALIAS, "table reference \"{name}\" is ambiguous");
                    return self.at(loc, e);
                }
                if item.forbidden {
                    return self.invalid_reference(item, &item.name, loc);
                }
                hit = Some(i);
            }
            if let Some(i) = hit {
                return Ok(Some((up, i)));
            }
        }
        Ok(None)
    }

    /// `table.column`
    pub fn qualified_column(
        &mut self,
        schema: Option<&str>,
        table: &str,
        column: &str,
        loc: Loc,
    ) -> Result<Option<Expr>> {
        let Some((up, i)) = self.find_item(schema, table, loc)? else {
            return Ok(None);
        };
        let level = &self.levels[self.levels.len() - 1 - up];
        match Self::column_of(&level.rtes, &level.items[i], column) {
            Found::One(e) => Ok(Some(self.seen(e, up, loc))),
            Found::Twice => {
                let e = err!(AMBIGUOUS_COLUMN, "column reference \"{column}\" is ambiguous");
                self.at(loc, e)
            }
            Found::No => {
                let text = format!("column {table}.{column} does not exist");
                let e = SqlError::new(SqlState::UNDEFINED_COLUMN, text);
                self.missing(e, Some(table), column, loc)
            }
        }
    }

    /// The whole row of an item.
    pub fn whole_row(&mut self, up: usize, item: usize, loc: Loc) -> Expr {
        let at = self.levels.len() - 1 - up;
        let it = &self.levels[at].items[item];
        if let Some(columns) = &it.columns {
            let e = Expr::Row {
                fields: columns.iter().map(|(_, e)| e.clone().plain()).collect(),
                names: columns.iter().map(|(n, _)| n.clone()).collect(),
                ty: TypeRef::of(RECORD),
            };
            return self.seen(e, up, loc);
        }
        let rte = it.rte;
        let entry = &self.levels[at].rtes[rte];
        // A function with one scalar column: its row is that value.
        if let RteKind::Function { calls, ordinality: false } = &entry.kind
            && let [call] = calls.as_slice()
            && call.columns == 1
            && !super::from::yields_record(&call.call)
        {
            let e = column_var(rte, 0, entry.column_types[0]);
            return self.seen(e, up, loc);
        }
        // `excluded`, and a view's OLD and NEW, are rows of what is written, which is entry 0.
        let of = match (&entry.kind, self.levels[at].rtes.first()) {
            (RteKind::Excluded, Some(target)) => target,
            _ => entry,
        };
        let mut ty = TypeRef::of(RECORD);
        if let RteKind::Function { calls, ordinality: false } = &entry.kind
            && let [call] = calls.as_slice()
            && super::coerce::is_composite(call.call.ty().oid)
        {
            ty = call.call.ty();
        }
        if let Some(oid) = of.described_by()
            && let Ok(Some(t)) = self.catalog.table_by_oid(base::Oid(oid))
            && t.row_type.is_valid()
        {
            ty = TypeRef::of(t.row_type);
        }
        let e = Expr::Var { levels_up: 0, rte, column: 0, ty };
        self.seen(e, up, loc)
    }

    /// The columns that `*` or `t.*` stands for.
    pub fn item_columns(&mut self, up: usize, item: usize, loc: Loc) -> Vec<(String, Expr)> {
        let at = self.levels.len() - 1 - up;
        let it = &self.levels[at].items[item];
        let list: Vec<(String, Expr)> = if let Some(columns) = &it.columns {
            columns.clone()
        } else {
            let rte = it.rte;
            let entry = &self.levels[at].rtes[rte];
            let spread = entry.column_names.len() - it.unspread;
            entry
                .column_names
                .iter()
                .enumerate()
                .take(spread)
                .filter(|(_, n)| !n.is_empty())
                .map(|(i, n)| (n.clone(), column_var(rte, i, entry.column_types[i])))
                .collect()
        };
        list.into_iter().map(|(n, e)| (n, self.seen(e, up, loc))).collect()
    }

    /// Names much like `column`.
    fn column_hint(&self, table: Option<&str>, column: &str) -> Option<String> {
        let mut best: Vec<String> = Vec::new();
        let mut least = 4;
        for level in self.levels.iter().rev() {
            for item in &level.items {
                if item.name.is_empty() || !item.by_name {
                    continue;
                }
                let extra = table.map_or(0, |t| distance(t, &item.name, 3));
                let names: Vec<&String> = match &item.columns {
                    Some(c) => c.iter().map(|(n, _)| n).collect(),
                    None => level.rtes[item.rte].column_names.iter().collect(),
                };
                for n in names.into_iter().filter(|n| !n.is_empty()) {
                    let d = distance(column, n, 3) + extra;
                    if d > 3 || d > column.chars().count() / 2 {
                        continue;
                    }
                    if d < least {
                        least = d;
                        best.clear();
                    }
                    if d == least {
                        best.push(format!("{}.{n}", item.name));
                    }
                }
            }
        }
        match best.as_slice() {
            [one] => Some(format!("Perhaps you meant to reference the column \"{one}\".")),
            [a, b] => Some(format!(
                "Perhaps you meant to reference the column \"{a}\" or the column \"{b}\"."
            )),
            _ => None,
        }
    }

    pub fn no_column<T>(&self, column: &str, loc: Loc) -> Result<T> {
        let text = format!("column \"{column}\" does not exist");
        self.missing(SqlError::new(SqlState::UNDEFINED_COLUMN, text), None, column, loc)
    }

    /// Says where else a column is that was not found: out of sight, or by a name that is much like it.
    fn missing<T>(
        &self,
        mut e: SqlError,
        table: Option<&str>,
        column: &str,
        loc: Loc,
    ) -> Result<T> {
        for level in self.levels.iter().rev() {
            for item in level.items.iter().filter(|i| table.is_none_or(|t| i.name == t)) {
                let unseen = item.lateral_only && !level.lateral;
                if !(item.forbidden || unseen)
                    || matches!(Self::column_of(&level.rtes, item, column), Found::No)
                {
                    continue;
                }
                e.detail = Some(format!(
                    "There is a column named \"{column}\" in table \"{}\", but it cannot be \
                     referenced from this part of the query.",
                    item.name
                ));
                if unseen && !item.forbidden && item.by_column {
                    let hint =
                        "To reference that column, you must mark this subquery with LATERAL.";
                    e.hint = Some(hint.to_owned());
                }
                return self.at(loc, e.into());
            }
        }
        e.hint = self.column_hint(table, column);
        self.at(loc, e.into())
    }

    pub fn no_table<T>(&self, name: &str, loc: Loc) -> Result<T> {
        for level in self.levels.iter().rev() {
            if let Some(item) = level.items.iter().find(|i| i.by_name && i.name == name) {
                return self.invalid_reference(item, &item.name, loc);
            }
            // What RETURNING does not see.
            if let Some(rte) = level.rtes.iter().position(|entry| {
                matches!(entry.kind, RteKind::Excluded) && entry.alias == "excluded"
            }) && name == "excluded"
            {
                return self.invalid_reference(&Item::table(rte, name), name, loc);
            }
            for item in &level.items {
                let rte = &level.rtes[item.rte];
                let RteKind::Relation { oid, .. } = rte.kind else { continue };
                let Ok(Some(t)) = self.catalog.table_by_oid(base::Oid(oid)) else { continue };
                if t.name == name && item.name != name {
                    if item.forbidden || item.lateral_only && !level.lateral {
                        return self.invalid_reference(item, name, loc);
                    }
                    let e = SqlError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("invalid reference to FROM-clause entry for table \"{name}\""),
                    )
                    .hint(format!(
                        "Perhaps you meant to reference the table alias \"{}\".",
                        item.name
                    ));
                    return self.at(loc, e.into());
                }
            }
        }
        let e = err!(UNDEFINED_TABLE, "missing FROM-clause entry for table \"{name}\"");
        self.at(loc, e)
    }
}
