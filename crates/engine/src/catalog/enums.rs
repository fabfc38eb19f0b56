//! Enum types in the catalogs: `pg_type` and `pg_enum`.

use super::load::RowSource;
use super::rows::Row;
use super::store::Catalogs;
use base::{Oid, Result};
use types::enums::key_of;
use types::{Datum, Text};

/// The labels of an enum type, in order.
#[derive(Clone, Debug, Default)]
pub struct EnumLabels {
    /// (key, label), by key.
    labels: Vec<(u32, Text)>,
}

impl EnumLabels {
    /// The labels that `pg_enum` has of the type.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn load(source: &dyn RowSource, type_oid: Oid) -> Result<EnumLabels> {
        let rows = source.find("pg_enum", &[("enumtypid", Datum::Oid(type_oid))])?;
        let label = |r: &Row| (key_of(r.f32("enumsortorder")), Text::from(r.text("enumlabel")));
        let mut labels: Vec<(u32, Text)> = rows.iter().map(label).collect();
        labels.sort_unstable_by_key(|l| l.0);
        Ok(EnumLabels { labels })
    }

    /// The label with this key.
    pub fn label(&self, key: u32) -> Option<&Text> {
        let at = self.labels.binary_search_by_key(&key, |l| l.0).ok()?;
        Some(&self.labels[at].1)
    }

    /// The key of this label.
    pub fn key(&self, label: &str) -> Option<u32> {
        self.labels.iter().find(|l| l.1 == label).map(|l| l.0)
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = u32> {
        self.labels.iter().map(|l| l.0)
    }
}

/// Learns the names of a database's enum types, for messages.
///
/// # Errors
/// I/O, corruption.
pub fn learn_names(catalogs: &Catalogs<'_>) -> Result<()> {
    catalogs.scan_columns("pg_type", &["oid", "typname"], &mut |row| {
        if let [Datum::Oid(oid), Datum::Text(name)] = row
            && types::enums::OIDS.contains(&oid.0)
        {
            types::enums::name(*oid, name);
        }
        Ok(true)
    })
}
