//! From a description in the catalogs to something that can be read and written.
//!
//! # Purpose
//! Opens the [`Heap`] of a table and the [`Btree`] of an index, with the layouts and comparisons that the
//! column types ask for; and turns rows of [`Datum`]s into tuples and back.

use crate::catalog::model::{Column, Index, RelationPersistence, Table};
use base::{Error, Oid, RelationId, Result};
use btree::{Btree, FastCompare, IncludedColumn, KeyColumn, KeySchema};
use buffer::{Persistence, RelationHandle};
use heap::{Heap, HeapContext};
use page::tuple::{AttrValue, PhysicalAttr, StubDesc, TupleDesc, Wanted};
use std::sync::Arc;
use types::{Datum, oids};

/// What relations are opened with.
#[derive(Clone)]
pub struct Storage {
    /// Pool, log and transactions, as heaps want them.
    pub heap: Arc<HeapContext>,
    /// The same for B-trees.
    pub btree: Arc<btree::Context>,
    /// What makes and removes their files.
    pub files: Arc<crate::RelationFiles>,
    /// How often each database's `pg_class` was written to.
    pub class_writes: Arc<crate::catalog::class_writes::ClassWrites>,
    /// Catalogs are looked up without their indexes: these may be damaged.
    pub ignores_system_indexes: bool,
}

struct TxnHorizons(Arc<txn::TransactionManager>);

impl btree::Horizons for TxnHorizons {
    fn next_xid(&self) -> base::Xid {
        self.0.next_xid()
    }
    fn oldest_scan(&self, database: Oid) -> base::Xid {
        self.0.oldest_scan(database)
    }
}

impl Storage {
    /// The storage of `engine`. Everything that opens its relations shares one.
    pub fn of(engine: &crate::Engine) -> Storage {
        let (pool, wal) = (&engine.pool, &engine.wal);
        let horizons = Arc::new(TxnHorizons(Arc::clone(&engine.txns)));
        let btree = Arc::new(btree::Context::new(Arc::clone(pool), Arc::clone(wal), horizons));
        let watching = Arc::downgrade(&btree);
        engine.files.on_removal(move |removed| match watching.upgrade() {
            Some(btree) if removed.file_number == 0 => btree.forget_database(removed.database),
            Some(btree) => btree.forget(removed),
            None => {}
        });
        Storage {
            heap: Arc::new(HeapContext {
                pool: Arc::clone(pool),
                wal: Arc::clone(wal),
                txns: Arc::clone(&engine.txns),
            }),
            btree,
            files: Arc::clone(&engine.files),
            class_writes: Arc::default(),
            ignores_system_indexes: engine.settings.bool("ignore_system_indexes"),
        }
    }
}

/// The pool's word for a relation's persistence.
pub fn pool_persistence(persistence: RelationPersistence) -> Persistence {
    match persistence {
        RelationPersistence::Permanent => Persistence::Permanent,
        RelationPersistence::Unlogged => Persistence::Unlogged,
        RelationPersistence::Temporary => Persistence::Temp,
    }
}

impl Storage {
    /// The pages of the relation stored at `id`.
    pub fn open(&self, id: RelationId, persistence: RelationPersistence) -> RelationHandle {
        self.heap.pool.open(id, pool_persistence(persistence))
    }

    /// The index `index` of the table called `table_name`.
    ///
    /// # Errors
    /// `0A000` for a key type that has no order.
    pub fn btree(&self, table_name: &str, index: &Index) -> Result<Arc<Btree>> {
        let schema = key_schema(table_name, index)?;
        let rel = self.open(index.storage, index.persistence);
        Ok(Arc::new(Btree::new(rel, Arc::clone(&self.btree), Arc::new(schema))))
    }
}

/// How the columns of a table lie in its tuples.
pub fn tuple_desc(columns: &[Column]) -> TupleDesc {
    TupleDesc::new(columns.iter().map(|c| PhysicalAttr::new(c.len, c.align)).collect())
}

/// What dead line pointers of `table` keep: its first columns, up to the last one that index entries are made by, or those of them that they
/// are made by: keys of plain indexes ([`is_plain`]), and what the others' predicates and expressions read. None: nothing.
pub fn dead_keys(table: &Table) -> Option<Arc<StubDesc>> {
    let mut wanted = vec![Wanted::No; table.columns.len()];
    for index in &table.indexes {
        let want = if is_plain(index) { Wanted::Key } else { Wanted::Read };
        for column in index_columns(index) {
            let at = usize::try_from(column).ok().and_then(|n| n.checked_sub(1));
            if let Some(most) = at.and_then(|at| wanted.get_mut(at)) {
                *most = want.max(*most);
            }
        }
    }
    let last = wanted.iter().rposition(|w| *w != Wanted::No)?;
    let desc = tuple_desc(&table.columns[..=last]);
    Some(Arc::new(StubDesc::new(desc, |i| wanted[i])))
}

/// The columns of its table by which it is known whether a row has an entry in the index, and with what key; each once.
pub fn index_columns(index: &Index) -> Vec<i32> {
    let keys = &index.columns[..index.key_columns];
    let mut columns: Vec<i32> =
        keys.iter().filter(|c| c.expr.is_none()).map(|c| c.column).collect();
    for e in keys.iter().filter_map(|c| c.expr.as_ref()).chain(&index.predicate) {
        e.walk(&mut |e| {
            if let expr::Expr::Var { column, .. } = e {
                columns.push(*column);
            }
        });
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// True if every row has an entry in the index, whose keys are columns of the row as they are.
pub fn is_plain(index: &Index) -> bool {
    index.predicate.is_none() && index.columns.iter().all(|c| c.column > 0 && c.expr.is_none())
}

/// The order and layout of an index's keys.
///
/// # Errors
/// `0A000` for a key type that has no order.
pub fn key_schema(table_name: &str, index: &Index) -> Result<KeySchema> {
    let mut keys = Vec::new();
    for column in &index.columns[..index.key_columns] {
        keys.push(key_column(column.ty.oid, column.descending, column.nulls_first)?);
    }
    let included = index.columns[index.key_columns..]
        .iter()
        .map(|c| {
            let (width, align) = layout(c.ty.oid);
            IncludedColumn { width, align }
        })
        .collect();
    let mut schema = KeySchema::new(index.name.clone(), table_name, keys, included);
    schema.unique = index.unique;
    schema.nulls_not_distinct = index.nulls_not_distinct;
    if let Some(fillfactor) = index.options.whole("fillfactor").and_then(|f| f.try_into().ok()) {
        schema.fillfactor = fillfactor;
    }
    if let Some(deduplicate) = index.options.get("deduplicate_items") {
        schema.deduplicate = types::io::parse_bool(deduplicate) != Some(false);
    }
    Ok(schema)
}

/// (attlen, alignment in bytes) of a type.
pub fn layout(ty: Oid) -> (i16, u8) {
    match types::type_info(ty) {
        #[expect(clippy::cast_possible_truncation, reason = "alignments are at most 8")]
        Some(info) => (info.len, info.align_bytes() as u8),
        None => (-1, 8),
    }
}

/// Vectors in catalogs' keys need only be told apart: the order of their bytes, which is not the type's, will do. An index of a
/// user's would answer ranges by it.
pub fn is_only_told_apart(ty: Oid) -> bool {
    matches!(ty, oids::OIDVECTOR | oids::OID_ARRAY | oids::INT2VECTOR)
}

/// A key column of type `ty`.
///
/// # Errors
/// `0A000` for a type that has no order.
pub fn key_column(ty: Oid, descending: bool, nulls_first: bool) -> Result<KeyColumn> {
    let ty = if is_only_told_apart(ty) { oids::BYTEA } else { ty };
    let Some(compare) = types::raw_comparator(ty) else {
        return Err(Error::unsupported(format!("an index on type {}", types::format_type(ty, -1))));
    };
    let (width, align) = layout(ty);
    let fast = match ty {
        oids::INT2 => FastCompare::Int2,
        oids::INT4 | oids::DATE => FastCompare::Int4,
        oids::INT8 | oids::TIMESTAMP | oids::TIMESTAMPTZ | oids::TIME => FastCompare::Int8,
        oids::OID | oids::REGPROC | oids::REGCLASS | oids::REGTYPE => FastCompare::Uint4,
        oids::TEXT | oids::VARCHAR | oids::BYTEA | oids::UUID | oids::NAME => FastCompare::Bytes,
        ty if types::enums::is_enum(ty) => FastCompare::Uint4,
        _ => FastCompare::None,
    };
    let equal_image =
        fast != FastCompare::None || matches!(ty, oids::BOOL | oids::CHAR | oids::TID);
    Ok(KeyColumn { compare, fast, width, align, descending, nulls_first, equal_image })
}

/// Encodes rows of one relation; its buffers are reused from row to row.
pub struct RowEncoder {
    types: Vec<Oid>,
    desc: TupleDesc,
    bytes: Vec<u8>,
    spans: Vec<Option<(usize, usize)>>,
}

impl RowEncoder {
    /// For the columns of `table` (dropped ones are written as NULL).
    pub fn for_table(table: &Table) -> RowEncoder {
        let types = table.columns.iter().map(|c| c.ty.oid).collect();
        RowEncoder::new(types, tuple_desc(&table.columns))
    }

    /// For columns of these types, laid out so.
    pub fn new(types: Vec<Oid>, desc: TupleDesc) -> RowEncoder {
        RowEncoder { types, desc, bytes: Vec::new(), spans: Vec::new() }
    }

    /// The tuples' layout.
    pub fn desc(&self) -> &TupleDesc {
        &self.desc
    }

    /// The tuple for `values` into `out`, whose contents are replaced.
    ///
    /// # Errors
    /// A value that has no stored form.
    pub fn encode(&mut self, values: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        self.encode_over(&[], values, out)
    }

    /// As [`RowEncoder::encode`], for a row that takes the place of that of the values `old`: one that it keeps stays as that has it, unread.
    ///
    /// # Errors
    /// As [`RowEncoder::encode`].
    pub fn encode_over(
        &mut self,
        old: &[Datum],
        values: &[Datum],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let kept = |i: usize| old.get(i).and_then(|old| crate::kept::unchanged(old, &values[i]));
        self.bytes.clear();
        self.spans.clear();
        for (i, (value, ty)) in values.iter().zip(&self.types).enumerate() {
            if value.is_null() || kept(i).is_some() {
                self.spans.push(None);
                continue;
            }
            let start = self.bytes.len();
            types::encode(*ty, value, &mut self.bytes)?;
            self.spans.push(Some((start, self.bytes.len())));
        }
        let attrs: Vec<AttrValue<'_>> = self
            .spans
            .iter()
            .enumerate()
            .map(|(i, span)| match span {
                None => kept(i).unwrap_or(AttrValue::Null),
                Some((a, b)) => AttrValue::Inline(&self.bytes[*a..*b]),
            })
            .collect();
        page::tuple::form_values_into(&self.desc, &attrs, out);
        Ok(())
    }
}

/// Decodes all columns of a tuple of `heap`, values stored out of line included.
///
/// # Errors
/// Corruption.
pub fn decode_tuple(
    heap: &Heap,
    tuple: &[u8],
    desc: &TupleDesc,
    types: &[Oid],
) -> Result<Vec<Datum>> {
    let mut attrs = vec![AttrValue::Null; types.len()];
    page::tuple::deform(tuple, desc, &mut attrs).map_err(Error::corrupt_file)?;
    // Collecting into a `Result` would not know how many they are, and grow again and again.
    let mut values = Vec::with_capacity(types.len());
    for (attr, ty) in attrs.iter().zip(types) {
        values.push(decode_attr(heap, attr, *ty)?);
    }
    Ok(values)
}

/// Decodes one column of a tuple of `heap`.
///
/// # Errors
/// Corruption.
pub fn decode_attr(heap: &Heap, attr: &AttrValue<'_>, ty: Oid) -> Result<Datum> {
    match attr {
        AttrValue::Null => Ok(Datum::Null),
        AttrValue::Inline(bytes) => types::decode(ty, bytes),
        stored => types::decode(ty, &heap.detoast(stored)?),
    }
}
