//! The catalogs as the analyser and planner see them through a session.

use super::state::SessionState;
use base::{Oid, Result};
use engine::catalog::bootstrap::PG_CATALOG;
use engine::catalog::extended::ExtendedStatistics;
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, ColumnStatistics, Index, Table};
use std::sync::Arc;
use types::Datum;

impl SessionState {
    /// The schemas of `search_path`, in the order they are searched: temporary tables, `pg_catalog`
    /// unless it is named, then those that exist and that the current user may look into.
    ///
    /// # Errors
    /// I/O.
    pub fn search_schemas(&self) -> Result<Vec<(String, Oid)>> {
        let mut schemas = Vec::new();
        self.find_in_schemas(|name, oid| {
            schemas.push((name.to_owned(), oid));
            Ok(None::<()>)
        })?;
        Ok(schemas)
    }

    /// The first thing that `look` finds in the schemas of `search_path`.
    fn find_in_schemas<T>(
        &self,
        mut look: impl FnMut(&str, Oid) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let txn = self.txn()?;
        let named = self.search_path_names();
        let temp = self.temp_schema.get();
        let first = [("pg_temp", temp), ("pg_catalog", PG_CATALOG)].into_iter();
        for (name, oid) in first.filter(|(_, oid)| oid.is_valid()) {
            if !named.iter().any(|n| n == name)
                && let Some(found) = look(name, oid)?
            {
                return Ok(Some(found));
            }
        }
        for name in named.iter() {
            let oid = match name.as_str() {
                "pg_temp" => Some(temp).filter(|t| t.is_valid()),
                name => self.catalog.schema_oid(&txn, name)?,
            };
            if let Some(oid) = oid
                && crate::acl::may_use_schema(self, oid)?
                && let Some(found) = look(name, oid)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// `search_path` split into names, `$user` replaced.
    pub fn search_path_names(&self) -> std::rc::Rc<[String]> {
        std::rc::Rc::clone(&self.derived().search_path)
    }

    /// The schema in which CREATE puts what has no schema of its own.
    ///
    /// # Errors
    /// `3F000` "no schema has been selected to create in".
    pub fn creation_schema(&self) -> Result<(String, Oid)> {
        let txn = self.txn()?;
        for name in self.search_path_names().iter() {
            if let Some(oid) = self.catalog.schema_oid(&txn, name)?
                && crate::acl::may_use_schema(self, oid)?
            {
                return Ok((name.clone(), oid));
            }
        }
        base::bail!(INVALID_SCHEMA_NAME, "no schema has been selected to create in")
    }

    /// Are relations without a schema's name temporary ones: does `search_path` begin with their schema, be it there yet or not?
    ///
    /// # Errors
    /// I/O.
    pub fn creates_temporary(&self) -> Result<bool> {
        let txn = self.txn()?;
        for name in self.search_path_names().iter() {
            if name == "pg_temp" {
                return Ok(true);
            }
            if let Some(oid) = self.catalog.schema_oid(&txn, name)?
                && crate::acl::may_use_schema(self, oid)?
            {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Fails if there is no schema of the name that a relation was written with.
    ///
    /// # Errors
    /// `3F000`
    pub fn check_schema_exists(&self, schema: Option<&str>) -> Result<()> {
        if let Some(schema) = schema
            && self.schema_by_name(schema)?.is_none()
        {
            base::bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist");
        }
        Ok(())
    }

    fn in_schema(&self, schema: Oid, name: &str) -> Result<Option<Arc<Table>>> {
        let txn = self.txn()?;
        match self.catalog.relation_oid(&txn, schema, name)? {
            Some(oid) => self.catalog.table(&txn, oid),
            None => Ok(None),
        }
    }
}

impl CatalogView for SessionState {
    fn table_by_name(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>> {
        if let Some(schema) = schema {
            return match self.schema_by_name(schema)? {
                Some(oid) => {
                    crate::acl::check_schema_usage(self, oid, schema)?;
                    self.in_schema(oid, name)
                }
                None => Ok(None),
            };
        }
        self.find_in_schemas(|_, oid| self.in_schema(oid, name))
    }

    fn table_by_oid(&self, oid: Oid) -> Result<Option<Arc<Table>>> {
        let txn = self.txn()?;
        self.catalog.table(&txn, oid)
    }

    fn may_use(&self, index: &Index) -> bool {
        self.cluster.young_indexes.may_use(index.oid, &self.backend)
    }

    fn may_see_older_rows(&self) -> bool {
        self.txn().map_or(true, |txn| txn.isolation() != txn::IsolationLevel::ReadCommitted)
    }

    fn schema_by_name(&self, name: &str) -> Result<Option<Oid>> {
        if name == "pg_temp" {
            return Ok(Some(self.temp_schema.get()).filter(|t| t.is_valid()));
        }
        let txn = self.txn()?;
        self.catalog.schema_oid(&txn, name)
    }

    fn table_of_row_type(&self, ty: Oid) -> Result<Option<Arc<Table>>> {
        let txn = self.txn()?;
        let rows = self.catalog.rows(&txn).find("pg_type", &[("oid", Datum::Oid(ty))])?;
        match rows.first().map(|r| r.oid("typrelid")).filter(|oid| oid.is_valid()) {
            Some(oid) => self.table_by_oid(oid),
            None => Ok(None),
        }
    }

    fn type_by_name(&self, schema: Option<&str>, name: &str) -> Result<Option<Oid>> {
        let txn = self.txn()?;
        if let Some(schema) = schema {
            return match self.schema_by_name(schema)? {
                Some(oid) => {
                    crate::acl::check_schema_usage(self, oid, schema)?;
                    self.catalog.type_oid(&txn, oid, name)
                }
                None => Ok(None),
            };
        }
        self.find_in_schemas(|_, oid| self.catalog.type_oid(&txn, oid, name))
    }

    fn role_by_name(&self, name: &str) -> Result<Option<Oid>> {
        let txn = self.txn()?;
        let rows = self.catalog.rows(&txn).find("pg_authid", &[("rolname", Datum::text(name))])?;
        Ok(rows.first().map(|r| r.oid("oid")))
    }

    fn role_name(&self, oid: Oid) -> Result<Option<String>> {
        let txn = self.txn()?;
        let found = self.catalog.rows(&txn).columns_of("pg_authid", oid, &["rolname"])?;
        Ok(match found.as_deref() {
            Some([Datum::Text(name)]) => Some(name.as_str().to_owned()),
            _ => None,
        })
    }

    fn function_is_visible(&self, function: Oid) -> Result<bool> {
        crate::ddl::extension::is_visible(self, function)
    }

    fn database_name(&self) -> String {
        self.database.name.clone()
    }

    fn search_path(&self) -> Vec<String> {
        self.search_schemas().map(|s| s.into_iter().map(|(n, _)| n).collect()).unwrap_or_default()
    }

    fn column_statistics(&self, table: Oid, column: i32) -> Result<Option<Arc<ColumnStatistics>>> {
        let txn = self.txn()?;
        self.catalog.statistics(&txn, table, column)
    }

    fn extended_statistics(&self, table: Oid) -> Result<Arc<[ExtendedStatistics]>> {
        let txn = self.txn()?;
        self.catalog.extended_statistics(&txn, table)
    }

    fn relation_pages(&self, table: &Table) -> Result<u32> {
        let Some(id) = table.storage else { return Ok(0) };
        let rel = self.catalog.store().storage().open(id, table.persistence);
        Ok(rel.len_blocks(base::Fork::Main)?.0)
    }
}
