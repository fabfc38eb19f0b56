//! pageinspect: tuples taken apart into their attributes, as the table's present columns say. With do_detoast a value of varying length comes back
//! without its header, whole.

use super::pageinspect::{item_rows, item_with, page_argument, superuser};
use super::{heap_of, relation};
use crate::session::SessionState;
use crate::system::{Own, rows, state};
use base::{Oid, Result, SqlError, SqlState};
use heap::Heap;
use page::tuple::{TupleDesc, split_data};
use std::sync::Arc;
use types::FunctionBody::{Scalar, Set};
use types::args::int4;
use types::registry::RowIter;
use types::{ArrayValue, Datum, Env, oids};

/// Arguments: relation, data, infomask, infomask2, null bits.
const SPLIT_ARGS: [Oid; 6] =
    [oids::OID, oids::BYTEA, oids::INT4, oids::INT4, oids::TEXT, oids::BOOL];

pub(super) const SPLIT: Own = Own {
    oid: 9987,
    name: "tuple_data_split",
    args: SPLIT_ARGS.split_at(5).0,
    result: oids::BYTEA_ARRAY,
    columns: &[],
    body: Scalar(split),
};
pub(super) const SPLIT_DETOAST: Own = Own { oid: 9988, args: &SPLIT_ARGS, ..SPLIT };

const ITEM_ATTRS_COLUMNS: &[(&str, Oid)] = &item_with(("t_attrs", oids::BYTEA_ARRAY));

pub(super) const ITEM_ATTRS: Own = Own {
    oid: 9989,
    name: "heap_page_item_attrs",
    args: &[oids::BYTEA, oids::REGCLASS],
    result: oids::RECORD,
    columns: ITEM_ATTRS_COLUMNS,
    body: Set(item_attrs),
};
pub(super) const ITEM_ATTRS_DETOAST: Own =
    Own { oid: 9995, args: &[oids::BYTEA, oids::REGCLASS, oids::BOOL], ..ITEM_ATTRS };

const HAS_NULL: i32 = 1;
const NATTS: i32 = 0x07FF;

fn corrupted(message: impl Into<String>) -> base::Error {
    SqlError::new(SqlState::DATA_CORRUPTED, message).into()
}

/// The table whose columns say how its tuples are to be taken apart.
struct Splitter {
    heap: Arc<Heap>,
    desc: TupleDesc,
    detoast: bool,
}

impl Splitter {
    fn new(state: &SessionState, oid: Oid, detoast: bool) -> Result<Splitter> {
        superuser(state)?;
        let table = relation(state, oid)?;
        let heap = heap_of(state, &table)?;
        Ok(Splitter { heap, desc: engine::relation::tuple_desc(&table.columns), detoast })
    }

    /// `infomask` and `infomask2`; the null bits as `heap_page_items` shows them.
    fn split(&self, data: &[u8], masks: (i32, i32), null_bits: Option<&str>) -> Result<Datum> {
        let stored = (masks.1 & NATTS) as usize;
        if stored > self.desc.len() {
            return Err(corrupted(
                "number of attributes in tuple header is greater than number of attributes in tuple descriptor",
            ));
        }
        let nulls = match (masks.0 & HAS_NULL != 0, null_bits) {
            (true, Some(bits)) => Some(null_bitmap(bits, stored)?),
            (true, None) => return Err(corrupted("t_bits string must not be NULL")),
            (false, Some(bits)) => {
                return Err(corrupted(format!(
                    "t_bits string is expected to be NULL, but instead it is {} bytes long",
                    bits.len()
                )));
            }
            (false, None) => None,
        };
        let (attrs, end) = split_data(data, nulls.as_deref(), stored, &self.desc)
            .map_err(|_| corrupted("unexpected end of tuple data"))?;
        if end != data.len() {
            return Err(corrupted("end of tuple reached without looking at all its data"));
        }
        let mut elements = Vec::with_capacity(self.desc.len());
        for attr in attrs {
            elements.push(match attr {
                None => Datum::Null,
                Some(a) if self.detoast => {
                    Datum::Bytea(self.heap.detoast(&a.value)?.into_owned().into())
                }
                Some(a) => Datum::Bytea(a.bytes.into()),
            });
        }
        // Columns that are younger than the tuple.
        elements.resize(self.desc.len(), Datum::Null);
        Ok(Datum::Array(Arc::new(ArrayValue::one_dimension(oids::BYTEA, elements))))
    }
}

/// The bitmap of `1011…`, of which each eight characters are a byte, lowest bit first.
fn null_bitmap(bits: &str, natts: usize) -> Result<Vec<u8>> {
    let expected = natts.div_ceil(8) * 8;
    if bits.len() != expected {
        return Err(corrupted(format!(
            "unexpected length of t_bits string: {}, expected {expected}",
            bits.len()
        )));
    }
    let mut bitmap = vec![0; expected / 8];
    for (i, c) in bits.bytes().enumerate() {
        match c {
            b'1' => bitmap[i / 8] |= 1 << (i % 8),
            b'0' => {}
            _ => {
                let c = bits[i..].chars().next().unwrap_or_default();
                return Err(corrupted(format!("invalid character \"{c}\" in t_bits string")));
            }
        }
    }
    Ok(bitmap)
}

fn detoast_argument(a: &[Datum], i: usize) -> bool {
    matches!(a.get(i), Some(Datum::Bool(true)))
}

/// `tuple_data_split`.
fn split(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    let Some(Datum::Oid(oid)) = a.first() else { return Ok(Datum::Null) };
    let splitter = Splitter::new(state, *oid, detoast_argument(a, 5))?;
    let Some(Datum::Bytea(data)) = a.get(1) else { return Ok(Datum::Null) };
    let null_bits = match a.get(4) {
        Some(Datum::Text(bits)) => Some(&**bits),
        _ => None,
    };
    if a[2].is_null() || a[3].is_null() {
        return Ok(Datum::Null);
    }
    splitter.split(data, (int4(a, 2)?, int4(a, 3)?), null_bits)
}

/// `heap_page_item_attrs`: `heap_page_items`, its last column taken apart.
fn item_attrs(env: &dyn Env, a: &[Datum]) -> Result<RowIter> {
    let state = state(env)?;
    superuser(state)?;
    let Some(Datum::Oid(oid)) = a.get(1) else { return Ok(rows(Vec::new())) };
    let splitter = Splitter::new(state, *oid, detoast_argument(a, 2))?;
    let Some(page) = page_argument(a)? else { return Ok(rows(Vec::new())) };
    let mut items = item_rows(&page);
    for row in &mut items {
        // Its columns are those of `ITEM_ATTRS_COLUMNS` but for the last.
        let (masks, bits) = ((&row[9], &row[8]), &row[11]);
        if let (Datum::Int4(infomask), Datum::Int4(infomask2)) = masks
            && let Datum::Bytea(data) = &row[13]
        {
            let bits = if let Datum::Text(bits) = bits { Some(&**bits) } else { None };
            row[13] = splitter.split(data, (*infomask, *infomask2), bits)?;
        }
    }
    Ok(rows(items))
}
