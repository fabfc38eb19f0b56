//! Arrays of tables' row types: what everybody who stores, reads or names them has to know.
//!
//! # Purpose
//! A row type is known by the catalogs alone: there is one for every table and view. Its array type has an OID that follows from the
//! row type's, so that whoever decodes a page, or is asked for an element's type, needs no catalog for it, and nothing is kept of it.
//!
//! # Invariants
//! Row types have OIDs below [`ROWS_END`], and the OIDs of [`ARRAYS`] are given to nothing but their array types. All those have the
//! same layout, which says `record` where a true array type names its element: ask [`crate::element_type`].

use crate::Datum;
use crate::datum::{ArrayValue, RecordColumn, RecordValue};
use crate::facts::{TypeInfo, types};
use crate::oids::RECORD_ARRAY;
use base::Oid;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Where the OIDs of row types end.
pub const ROWS_END: u32 = 1 << 29;

/// The OIDs of arrays of row types: [`FIRST_ARRAY`] more than the row type's.
pub const ARRAYS: Range<u32> = FIRST_ARRAY..FIRST_ARRAY + ROWS_END;

const FIRST_ARRAY: u32 = 1 << 31;

/// The OID that a row type gets for a new OID of the cluster, which may be taken.
pub fn type_oid(new: Oid) -> Oid {
    if new.0 < ROWS_END {
        return new;
    }
    let first = Oid::FIRST_NORMAL.0;
    Oid(first + (new.0 - first) % (ROWS_END - first))
}

/// The array type over a row type; None: it has none.
#[inline]
pub fn array_of(row: Oid) -> Option<Oid> {
    (row.0 < ROWS_END).then_some(Oid(FIRST_ARRAY + row.0))
}

/// The row type that an array type is over; None: it is no array of a row type.
#[inline]
pub fn row_of(array: Oid) -> Option<Oid> {
    ARRAYS.contains(&array.0).then(|| Oid(array.0 - FIRST_ARRAY))
}

/// Is it a row type of a relation?
pub fn is_row(ty: Oid) -> bool {
    match crate::type_info(ty) {
        Some(info) => info.kind == 'c',
        None => ty >= Oid::FIRST_NORMAL && ty.0 < ROWS_END,
    }
}

/// What all arrays of row types are like.
pub(crate) fn info(oid: Oid) -> Option<&'static TypeInfo> {
    static INFO: OnceLock<Option<TypeInfo>> = OnceLock::new();
    row_of(oid)?;
    let like = || {
        let records = *types().iter().find(|t| t.oid == RECORD_ARRAY)?;
        Some(TypeInfo { kind: 'b', category: 'A', ..records })
    };
    INFO.get_or_init(like).as_ref()
}

/// What the rows of a table are like by now. Those that columns of other tables hold may be from before it had all its columns, or from
/// before these had their names; they are as they were written until somebody reads them.
#[derive(Clone, Debug)]
pub struct RowShape {
    row_type: Oid,
    columns: Arc<[RecordColumn]>,
    /// What the columns' values are like, or their elements, where those are rows.
    within: Vec<Option<Arc<RowShape>>>,
}

impl RowShape {
    /// Of rows of that type with such columns.
    pub fn new(
        row_type: Oid,
        columns: Arc<[RecordColumn]>,
        within: Vec<Option<Arc<RowShape>>>,
    ) -> RowShape {
        RowShape { row_type, columns, within }
    }

    /// A value as [`Self::fit`] has made it, without some columns of the rows of some types: those are given by their types, and the columns
    /// by their places, the last first.
    pub fn without(&self, value: Datum, gone: &[(Oid, Vec<usize>)]) -> Datum {
        match value {
            Datum::Record(row) => {
                let mut fields = row.fields.clone();
                let mut columns = self.columns.to_vec();
                for (field, shape) in fields.iter_mut().zip(&self.within) {
                    if let Some(shape) = shape {
                        *field = shape.without(std::mem::take(field), gone);
                    }
                }
                let here = gone.iter().find(|(ty, _)| *ty == self.row_type);
                for at in here.into_iter().flat_map(|(_, places)| places) {
                    if *at < fields.len().min(columns.len()) {
                        fields.remove(*at);
                        columns.remove(*at);
                    }
                }
                let (type_oid, columns) = (row.type_oid, columns.into());
                Datum::Record(Arc::new(RecordValue { type_oid, columns, fields }))
            }
            Datum::Array(a) => {
                let elements = a.elements.iter().map(|e| self.without(e.clone(), gone)).collect();
                let (element_type, dims) = (a.element_type, a.dims.clone());
                Datum::Array(Arc::new(ArrayValue { element_type, dims, elements }))
            }
            other => other,
        }
    }

    /// A row, or an array of rows, as they are by now: what a row does not have is NULL.
    pub fn fit(&self, value: Datum) -> Datum {
        if self.fits(&value) {
            return value;
        }
        match value {
            Datum::Record(row) => {
                let mut fields = row.fields.clone();
                fields.resize(self.columns.len(), Datum::Null);
                for (field, shape) in fields.iter_mut().zip(&self.within) {
                    if let Some(shape) = shape {
                        *field = shape.fit(std::mem::take(field));
                    }
                }
                let (type_oid, columns) = (self.row_type, self.columns.clone());
                Datum::Record(Arc::new(RecordValue { type_oid, columns, fields }))
            }
            Datum::Array(a) => {
                let elements = a.elements.iter().map(|e| self.fit(e.clone())).collect();
                let (element_type, dims) = (a.element_type, a.dims.clone());
                Datum::Array(Arc::new(ArrayValue { element_type, dims, elements }))
            }
            other => other,
        }
    }

    fn fits(&self, value: &Datum) -> bool {
        match value {
            Datum::Record(row) => {
                let mut named = row.columns.iter().zip(self.columns.iter());
                let mut within = row.fields.iter().zip(&self.within);
                row.type_oid == self.row_type
                    && row.fields.len() >= self.columns.len()
                    && named.all(|(then, now)| then.name == now.name)
                    && within.all(|(field, shape)| shape.as_ref().is_none_or(|s| s.fits(field)))
            }
            Datum::Array(a) => a.elements.iter().all(|e| self.fits(e)),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{array_type, element_type, type_info};

    #[test]
    fn an_array_of_rows_is_known_by_its_oid() {
        let row = Oid(16_384);
        let array = array_of(row).unwrap();
        assert_eq!((row_of(array), row_of(row)), (Some(row), None));
        assert_eq!((element_type(array), element_type(row)), (Some(row), None));
        assert_eq!((array_type(row), array_type(array)), (Some(array), None));
        let info = type_info(array).unwrap();
        assert!(info.is_array() && info.len == -1 && info.align == 'd' && info.kind == 'b');
        assert!(type_info(row).is_none());
        assert_eq!(array_of(Oid(ROWS_END)), None);
        // Nor is an array of an enum or of a domain one.
        for other in [crate::enums::OIDS, crate::domains::OIDS] {
            assert!(row_of(Oid(other.start)).is_none() && row_of(Oid(other.end - 1)).is_none());
        }
    }

    #[test]
    fn a_row_types_oid_leaves_room_for_its_array() {
        assert_eq!(type_oid(Oid(16_400)), Oid(16_400));
        for high in [ROWS_END, ARRAYS.end, u32::MAX] {
            let oid = type_oid(Oid(high));
            assert!(oid >= Oid::FIRST_NORMAL && oid.0 < ROWS_END);
        }
    }

    #[test]
    fn a_kept_array_of_rows_is_read_as_one() {
        use crate::datum::{RecordColumn, RecordValue};
        use crate::oids::INT4;
        use crate::{ArrayValue, Datum, store};
        use std::sync::Arc;
        let row = Oid(16_384);
        let columns: Arc<[_]> =
            [RecordColumn { name: "a".into(), type_oid: INT4, typmod: -1 }].into();
        let fields = vec![Datum::Int4(7)];
        let value = Datum::Record(Arc::new(RecordValue { type_oid: row, columns, fields }));
        let array = ArrayValue::one_dimension(row, vec![value, Datum::Null]);
        let (mut bytes, oid) = (Vec::new(), array_of(row).unwrap());
        store::encode(oid, &Datum::Array(Arc::new(array)), &mut bytes).unwrap();
        let read = store::decode(oid, &bytes).unwrap();
        assert_eq!(crate::io::to_text(oid, &read, &crate::env::PlainEnv).unwrap(), "{(7),NULL}");
        assert_eq!(crate::io::natural_type(&read), oid);
    }
}
