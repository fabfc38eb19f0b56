//! What rows of tables that columns hold are like, from `pg_type` and `pg_attribute`.

use super::load::RowSource;
use super::model::Column;
use base::{Oid, Result};
use std::sync::Arc;
use types::datum::RecordColumn;
use types::row_types::RowShape;
use types::{Datum, Text};

/// Notes what a column's rows are like, if it holds a table's, or arrays of them.
///
/// # Errors
/// I/O, corruption.
pub(super) fn resolve(source: &dyn RowSource, column: &mut Column) -> Result<()> {
    column.rows = of_type(source, column.ty.oid)?;
    Ok(())
}

fn of_type(source: &dyn RowSource, ty: Oid) -> Result<Option<Arc<RowShape>>> {
    let row_type = types::element_type(ty).unwrap_or(ty);
    // The columns of catalogs stay what they are.
    if row_type < Oid::FIRST_NORMAL || types::type_info(row_type).is_some() {
        return Ok(None);
    }
    let found = source.find("pg_type", &[("oid", Datum::Oid(row_type))])?;
    let Some(own) = found.first().filter(|row| row.char("typtype") == b'c') else {
        return Ok(None);
    };
    let mut rows = source.find("pg_attribute", &[("attrelid", Datum::Oid(own.oid("typrelid")))])?;
    rows.retain(|r| r.int("attnum") > 0 && !r.bool("attisdropped"));
    rows.sort_by_key(|r| r.int("attnum"));
    let mut columns = Vec::with_capacity(rows.len());
    let mut within = Vec::with_capacity(rows.len());
    for row in &rows {
        // A row has the values of a domain as those of its base.
        let ty = super::domains::plain(source, row.oid("atttypid"), row.i32("atttypmod"))?;
        let name = Text::from(row.text("attname"));
        columns.push(RecordColumn { name, type_oid: ty.oid, typmod: ty.typmod });
        within.push(of_type(source, ty.oid)?);
    }
    Ok(Some(Arc::new(RowShape::new(row_type, columns.into(), within))))
}
