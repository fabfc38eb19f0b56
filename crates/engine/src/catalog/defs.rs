//! What the system catalogs look like: names, OIDs and columns are PostgreSQL 18's.
//!
//! # Layout
//! `data/catalogs.tsv`, `catalog_columns.tsv` and `catalog_indexes.tsv` are facts read out of a
//! PostgreSQL 18. The catalogs are ordinary heap tables with B-tree indexes; a catalog's file number is
//! its OID and never changes.
//!
//! # Differs from PostgreSQL
//! TOAST tables of catalogs have OIDs of our own (from 15000); node trees are kept as text, and so are `pg_ndistinct`
//! and `pg_dependencies`; `pg_mcv_list` is stored as bytea.

use base::{FactMap, Oid};
use std::sync::OnceLock;

/// A catalog's column.
#[derive(Debug)]
pub struct CatalogColumn {
    /// `attname`
    pub name: &'static str,
    /// `atttypid`
    pub ty: Oid,
    /// `attlen`
    pub len: i16,
    /// `attalign`, in bytes
    pub align: u8,
    /// `attnotnull`
    pub not_null: bool,
    /// `attstorage`
    pub storage: u8,
    /// `attcollation`
    pub collation: Oid,
}

impl CatalogColumn {
    /// `attalign`: what its rows are written by, which need not be what its type says.
    pub fn align_letter(&self) -> u8 {
        match self.align {
            8 => b'd',
            4 => b'i',
            2 => b's',
            _ => b'c',
        }
    }
}

/// A catalog's index.
#[derive(Debug)]
pub struct CatalogIndex {
    /// `pg_class.oid` and file number
    pub oid: Oid,
    /// Its name.
    pub name: &'static str,
    /// UNIQUE
    pub unique: bool,
    /// PRIMARY KEY
    pub primary: bool,
    /// Key columns (from 1).
    pub columns: Vec<i32>,
    /// `pg_opclass.oid` of each.
    pub opclasses: Vec<Oid>,
}

/// A catalog.
#[derive(Debug)]
pub struct CatalogDef {
    /// `pg_class.oid` and file number
    pub oid: Oid,
    /// Its name.
    pub name: &'static str,
    /// One for all databases, in `global/`.
    pub shared: bool,
    /// Where its long values go: the TOAST table's OID and file number; its index's is one more.
    pub toast: Option<Oid>,
    /// `reltype`
    pub row_type: Oid,
    /// Columns; number = index + 1.
    pub columns: Vec<CatalogColumn>,
    /// Indexes.
    pub indexes: Vec<CatalogIndex>,
}

/// A catalog's column that has been looked up: for who asks many rows for it.
#[derive(Clone, Copy, Debug)]
pub struct Place(pub(super) usize);

/// What says which column of a catalog is meant.
pub trait ColumnOf: Copy {
    /// The index into `columns`.
    ///
    /// # Panics
    /// When there is none: a bug.
    fn within(self, def: &CatalogDef) -> usize;
}

impl ColumnOf for &str {
    fn within(self, def: &CatalogDef) -> usize {
        def.position(self)
    }
}

impl ColumnOf for Place {
    fn within(self, _: &CatalogDef) -> usize {
        self.0
    }
}

impl CatalogDef {
    /// Looks these columns up.
    ///
    /// # Panics
    /// When one is not there: a bug.
    pub fn places<const N: usize>(&self, names: [&str; N]) -> [Place; N] {
        names.map(|name| Place(self.position(name)))
    }

    /// The index into `columns` of the column called `name`.
    ///
    /// # Panics
    /// When there is none: a bug.
    pub fn position(&self, name: &str) -> usize {
        self.columns
            .iter()
            .position(|c| c.name == name)
            .unwrap_or_else(|| panic!("{} has no column {name}", self.name))
    }
}

struct Catalogs {
    all: Vec<CatalogDef>,
    by_name: FactMap<&'static str, usize>,
    by_oid: FactMap<Oid, usize>,
}

fn catalogs() -> &'static Catalogs {
    static CATALOGS: OnceLock<Catalogs> = OnceLock::new();
    CATALOGS.get_or_init(load)
}

/// Every catalog, in OID order.
pub fn all() -> &'static [CatalogDef] {
    &catalogs().all
}

/// Stands for what the catalogs look like, and for the types that their rows hold: servers of one version read each other's.
pub fn version() -> u32 {
    // `pg_ndistinct` and `pg_dependencies` are stored as the bytea that folders of before have there.
    let as_stored = |text: String| {
        text.replace("ty: Oid(3361)", "ty: Oid(17)").replace("ty: Oid(3402)", "ty: Oid(17)")
    };
    let text = all().iter().map(|def| as_stored(format!("{def:?}")));
    let types = types::facts::types()
        .iter()
        .map(|t| format!("{} {} {} {:?}", t.oid, t.name, t.len, t.align));
    text.chain(types).fold(0, |crc, line| crc32c::crc32c_append(crc, line.as_bytes()))
}

/// The catalog called `name`.
///
/// # Panics
/// When there is none: a bug.
pub fn by_name(name: &str) -> &'static CatalogDef {
    let c = catalogs();
    &c.all[*c.by_name.get(name).unwrap_or_else(|| panic!("no catalog called {name}"))]
}

/// The catalog with that OID.
pub fn by_oid(oid: Oid) -> Option<&'static CatalogDef> {
    let c = catalogs();
    c.by_oid.get(&oid).map(|i| &c.all[*i])
}

/// Is this a catalog that all databases share, one of its indexes, or its TOAST table or that one's index?
pub fn is_shared(oid: Oid) -> bool {
    oid < Oid::FIRST_NORMAL
        && all().iter().filter(|d| d.shared).any(|d| {
            let toast = d.toast.is_some_and(|t| oid == t || oid.0 == t.0 + 1);
            d.oid == oid || toast || d.indexes.iter().any(|i| i.oid == oid)
        })
}

/// Alignment letters as bytes.
pub fn align_bytes(letter: &str) -> u8 {
    match letter {
        "d" => 8,
        "i" => 4,
        "s" => 2,
        _ => 1,
    }
}

/// Splits a TSV line of facts. The data is compiled in, so bad data is a bug.
pub(crate) fn fields(line: &'static str) -> impl Iterator<Item = &'static str> {
    line.split('\t')
}

fn number<T: std::str::FromStr>(text: Option<&str>) -> T {
    text.and_then(|t| t.parse().ok()).expect("compiled-in catalog facts")
}

fn load() -> Catalogs {
    let mut all: Vec<CatalogDef> = include_str!("../../data/catalogs.tsv")
        .lines()
        .zip((15_000..).step_by(2))
        .map(|(line, toast)| {
            let mut f = fields(line);
            CatalogDef {
                oid: Oid(number(f.next())),
                name: f.next().expect("name"),
                shared: f.next() == Some("t"),
                toast: (f.next() == Some("t")).then_some(Oid(toast)),
                row_type: Oid(number(f.next())),
                columns: Vec::new(),
                indexes: Vec::new(),
            }
        })
        .collect();
    let by_oid: FactMap<Oid, usize> = all.iter().enumerate().map(|(i, c)| (c.oid, i)).collect();
    let by_name = all.iter().enumerate().map(|(i, c)| (c.name, i)).collect();
    for line in include_str!("../../data/catalog_columns.tsv").lines() {
        let mut f = fields(line);
        let catalog = &mut all[by_oid[&Oid(number(f.next()))]];
        let _number = f.next();
        catalog.columns.push(CatalogColumn {
            name: f.next().expect("name"),
            ty: match number::<u32>(f.next()) {
                5017 => types::oids::BYTEA,
                10028 => types::oids::TEXT_ARRAY, // pg_statistic's row type, in extended statistics
                oid => Oid(oid),
            },
            len: number(f.next()),
            align: align_bytes(f.next().expect("alignment")),
            not_null: f.next() == Some("t"),
            storage: f.next().expect("storage").as_bytes()[0],
            collation: Oid(number(f.next())),
        });
    }
    for line in include_str!("../../data/catalog_indexes.tsv").lines() {
        let mut f = fields(line);
        let (oid, name) = (Oid(number(f.next())), f.next().expect("name"));
        let catalog = &mut all[by_oid[&Oid(number(f.next()))]];
        let (unique, primary) = (f.next() == Some("t"), f.next() == Some("t"));
        let list = |text: Option<&'static str>| text.expect("list").split(' ');
        catalog.indexes.push(CatalogIndex {
            oid,
            name,
            unique,
            primary,
            columns: list(f.next()).map(|c| number(Some(c))).collect(),
            opclasses: list(f.next()).map(|c| Oid(number(Some(c)))).collect(),
        });
    }
    Catalogs { all, by_name, by_oid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_have_their_columns_in_order() {
        let class = by_name("pg_class");
        assert_eq!(class.oid, Oid(1259));
        assert_eq!(class.position("relname"), 1);
        assert_eq!(class.columns.len(), 35);
        assert!(by_name("pg_database").shared);
        assert!([1262, 2671, 1260, 1213].iter().all(|oid| is_shared(Oid(*oid))));
        assert!([1259, 2662, 1247, 0].iter().all(|oid| !is_shared(Oid(*oid))));
        let by_oid_index = class.indexes.iter().find(|i| i.name == "pg_class_oid_index").unwrap();
        assert!(by_oid_index.unique && by_oid_index.primary);
        assert_eq!(by_oid_index.columns, [1]);
    }
}
