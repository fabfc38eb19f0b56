//! # Purpose
//! What an index's columns are: how they are laid out and ordered. Forming entries, comparing a [`Bound`]
//! with an entry, and cutting a pivot down to the attributes that separate two leaves.
//!
//! # Invariants
//! The order is total: key columns in turn, then the heap address. Included columns don't take part.
//! A pivot's missing attributes are minus infinity.

use base::{BlockNumber, Result, Tid, bail};
use page::btree::{self as layout, Item};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Compares two values of a column as they are on the page.
pub type Comparator = fn(&[u8], &[u8]) -> Ordering;

/// A value of an index column; `None` is null.
pub type Value<'a> = Option<&'a [u8]>;

/// A comparison known to this crate, faster than through a pointer, and giving abbreviated sort keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FastCompare {
    /// Only through the comparator.
    #[default]
    None,
    /// Signed, 2 bytes.
    Int2,
    /// Signed, 4 bytes.
    Int4,
    /// Signed, 8 bytes.
    Int8,
    /// Unsigned, 4 bytes (oid).
    Uint4,
    /// As strings of bytes (text in the C collation, bytea, uuid).
    Bytes,
}

/// A column of the key.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn {
    /// The order, before `descending`.
    pub compare: Comparator,
    /// If `compare` is one of these.
    pub fast: FastCompare,
    /// Bytes of a value; negative: variable.
    pub width: i16,
    /// PostgreSQL's alignment of the type, for the size that error messages give.
    pub align: u8,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
    /// Equal values have equal bytes (not so for numeric, floats): allows deduplication.
    pub equal_image: bool,
}

/// A column that is only carried along.
#[derive(Clone, Copy, Debug)]
pub struct IncludedColumn {
    /// Bytes of a value; negative: variable.
    pub width: i16,
    /// PostgreSQL's alignment of the type.
    pub align: u8,
}

/// The columns and properties of an index.
#[derive(Clone, Debug)]
pub struct KeySchema {
    /// For messages.
    pub index_name: String,
    /// The table's name, for messages.
    pub table_name: String,
    /// The key.
    pub columns: Vec<KeyColumn>,
    /// INCLUDE.
    pub included: Vec<IncludedColumn>,
    /// Unique?
    pub unique: bool,
    /// Two nulls conflict.
    pub nulls_not_distinct: bool,
    /// Per cent of a leaf that builds and growth at the right end fill; PostgreSQL's default is 90.
    pub fillfactor: u8,
    /// The storage parameter `deduplicate_items`.
    pub deduplicate: bool,
    widths: Vec<i16>,
    fast_key: FastCompare,
    /// The first column's values are compared by [`Item::prefix`] first; do they vary in length?
    prefixed: Option<bool>,
}

impl KeySchema {
    /// The schema of an index on these columns: not unique, fillfactor 90, deduplicating.
    pub fn new(
        index_name: impl Into<String>,
        table_name: impl Into<String>,
        columns: Vec<KeyColumn>,
        included: Vec<IncludedColumn>,
    ) -> KeySchema {
        let widths = columns.iter().map(|c| c.width).chain(included.iter().map(|c| c.width));
        let widths = widths.collect();
        let fast_key = match columns.as_slice() {
            [one] if !one.descending && one.fast != FastCompare::Bytes => one.fast,
            _ => FastCompare::None,
        };
        let prefixed = match columns.first() {
            Some(c) if !c.descending && c.fast == FastCompare::Bytes => {
                (c.width < 0 || c.width >= 8).then_some(c.width < 0)
            }
            _ => None,
        };
        KeySchema {
            index_name: index_name.into(),
            table_name: table_name.into(),
            columns,
            included,
            unique: false,
            nulls_not_distinct: false,
            fillfactor: 90,
            deduplicate: true,
            widths,
            fast_key,
            prefixed,
        }
    }
    /// The widths of all columns.
    pub fn widths(&self) -> &[i16] {
        &self.widths
    }
    /// The number of key columns.
    pub fn key_count(&self) -> usize {
        self.columns.len()
    }
    /// True if equal keys have equal bytes, included columns there being none.
    pub fn all_equal_image(&self) -> bool {
        self.included.is_empty() && self.columns.iter().all(|c| c.equal_image)
    }
    /// True if entries are merged into posting lists.
    pub fn deduplicates(&self) -> bool {
        self.deduplicate && self.all_equal_image()
    }

    /// The size PostgreSQL's entry would have.
    fn postgres_size(&self, values: &[Value<'_>]) -> usize {
        let align_up = |n: usize, a: usize| n.next_multiple_of(a.max(1));
        let mut size = if values.iter().any(Option::is_none) { 16 } else { 8 };
        let aligns = self.columns.iter().map(|c| c.align);
        let aligns = aligns.chain(self.included.iter().map(|c| c.align));
        for ((value, width), align) in values.iter().zip(&self.widths).zip(aligns) {
            let Some(value) = value else { continue };
            if *width >= 0 {
                size = align_up(size, usize::from(align)) + value.len();
            } else if value.len() <= 126 {
                size += 1 + value.len();
            } else {
                size = align_up(size, usize::from(align).max(4)) + 4 + value.len();
            }
        }
        align_up(size, 8)
    }

    /// Appends the entry for `values` and `tid` to `out`.
    ///
    /// # Errors
    /// 54000 if it is too large.
    pub fn form(&self, out: &mut Vec<u8>, values: &[Value<'_>], tid: Tid) -> Result<()> {
        if values.len() != self.widths.len() {
            bail!(
                INTERNAL_ERROR,
                "index \"{}\" has {} columns, entry has {}",
                self.index_name,
                self.widths.len(),
                values.len()
            );
        }
        let mut bytes = 0;
        for (value, width) in values.iter().zip(&self.widths) {
            let Some(value) = value else { continue };
            bytes += value.len();
            // The entry does not say how long a fixed-width value is.
            if *width >= 0 && value.len() != usize::from(width.unsigned_abs()) {
                bail!(
                    INTERNAL_ERROR,
                    "index \"{}\": value of {} bytes for a column of {width}",
                    self.index_name,
                    value.len()
                );
            }
        }
        if bytes > 2048 {
            let size = self.postgres_size(values);
            if size > layout::MAX_ITEM_SIZE {
                return self.form_packed(out, values, tid, size);
            }
        }
        layout::form(out, &self.widths, values, tid);
        Ok(())
    }

    /// [`KeySchema::form`] of what takes too many bytes, `plain_size` as PostgreSQL counts, as it is.
    #[cold]
    fn form_packed(
        &self,
        out: &mut Vec<u8>,
        values: &[Value<'_>],
        tid: Tid,
        plain_size: usize,
    ) -> Result<()> {
        let mut plain = Vec::new();
        layout::form(&mut plain, &self.widths, values, tid);
        match layout::pack(Item(&plain)) {
            Ok(packed) => {
                out.extend_from_slice(&packed);
                Ok(())
            }
            Err(size) => Err(self.too_large(tid, size.next_multiple_of(8).min(plain_size))),
        }
    }

    fn too_large(&self, tid: Tid, size: usize) -> base::Error {
        let mut error = base::SqlError::new(
            base::SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "index row size {size} exceeds btree version 4 maximum {} for index \"{}\"",
                layout::MAX_ITEM_SIZE,
                self.index_name
            ),
        );
        error.detail = Some(format!(
            "Index row references tuple ({},{}) in relation \"{}\".",
            tid.block, tid.offset, self.table_name
        ));
        error.hint = Some(
            "Values larger than 1/3 of a buffer page cannot be indexed.\nConsider a function index of an MD5 hash of the value, or use full text indexing."
                .into(),
        );
        error.into()
    }

    #[inline]
    fn compare_values(column: &KeyColumn, a: &[u8], b: &[u8]) -> Ordering {
        fn int<const N: usize>(v: &[u8]) -> Option<[u8; N]> {
            v.first_chunk::<N>().copied()
        }
        let ordering = match column.fast {
            FastCompare::None => (column.compare)(a, b),
            FastCompare::Bytes => a.cmp(b),
            FastCompare::Int4 => {
                int(a).map(i32::from_le_bytes).cmp(&int(b).map(i32::from_le_bytes))
            }
            FastCompare::Int8 => {
                int(a).map(i64::from_le_bytes).cmp(&int(b).map(i64::from_le_bytes))
            }
            FastCompare::Int2 => {
                int(a).map(i16::from_le_bytes).cmp(&int(b).map(i16::from_le_bytes))
            }
            FastCompare::Uint4 => {
                int(a).map(u32::from_le_bytes).cmp(&int(b).map(u32::from_le_bytes))
            }
        };
        if column.descending { ordering.reverse() } else { ordering }
    }
    /// Compares two values of a column, nulls and direction included.
    #[inline]
    pub fn compare_column(column: &KeyColumn, a: Value<'_>, b: Value<'_>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => Self::compare_values(column, a, b),
            (None, None) => Ordering::Equal,
            (None, Some(_)) if column.nulls_first => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) if column.nulls_first => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
        }
    }
    /// Compares the keys of two entries: columns, then heap address.
    pub fn compare_items(&self, a: Item<'_>, b: Item<'_>) -> Ordering {
        self.compare_keys(a, b).then_with(|| a.tid().cmp(&b.tid()))
    }
    /// Compares the key columns of two entries that have them all.
    pub fn compare_keys(&self, a: Item<'_>, b: Item<'_>) -> Ordering {
        if a.is_packed() || b.is_packed() {
            return self.compare_unpacked_keys(a, b);
        }
        let (a, b) = (a.attributes(&self.widths), b.attributes(&self.widths));
        for ((column, a), b) in self.columns.iter().zip(a).zip(b) {
            let ordering = Self::compare_column(column, a, b);
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        Ordering::Equal
    }
    #[cold]
    fn compare_unpacked_keys(&self, a: Item<'_>, b: Item<'_>) -> Ordering {
        self.compare_keys(a.plain().item(), b.plain().item())
    }
    /// How many leading attributes are needed to tell `left` from `right`, which is not smaller: up to
    /// the number of key columns, or one more if only the heap address does.
    pub fn attributes_to_separate(&self, left: Item<'_>, right: Item<'_>) -> usize {
        let (a, b) = (left.plain(), right.plain());
        let (a, b) = (a.item().attributes(&self.widths), b.item().attributes(&self.widths));
        for (i, ((column, a), b)) in self.columns.iter().zip(a).zip(b).enumerate() {
            if Self::compare_column(column, a, b) != Ordering::Equal {
                return i + 1;
            }
        }
        self.key_count() + 1
    }
    /// The pivot between two neighbouring leaf entries: not below `left`, below all of `right`.
    pub fn truncate(&self, left: Item<'_>, right: Item<'_>, child: BlockNumber) -> Vec<u8> {
        let keep = self.attributes_to_separate(left, right);
        let n = keep.min(self.key_count());
        let key = right.plain();
        let values: SmallVec<[Value<'_>; 8]> =
            key.item().attributes(&self.widths).take(n).collect();
        let tid = (keep > self.key_count()).then(|| left.max_tid());
        let pivot = layout::form_pivot(&self.widths, &values, tid, child);
        // Who divided the page has reckoned with the key as `right` has it.
        if right.is_packed() && pivot.len() > right.key_bytes().len() {
            return layout::packed_pivot(right, n, tid, child);
        }
        pivot
    }
    /// The pivot that leads to `child`, with the key of `pivot`.
    pub fn pivot_to(pivot: Item<'_>, child: BlockNumber) -> Vec<u8> {
        layout::with_tid(pivot.0, Tid::new(child, base::OffsetNumber(0)))
    }

    /// Compares a bound with an entry, of which a posting list is Equal to any address within its range.
    #[inline]
    pub fn compare(&self, bound: &Bound<'_>, item: Item<'_>) -> Ordering {
        if let Some(key) = bound.fast
            && item.is_simple()
            && let Some(other) = fast_value(self.fast_key, item.0.get(8..).unwrap_or_default())
        {
            return key.cmp(&other).then_with(|| bound.compare_edge(item, 1));
        }
        if let (Some(key), Some(variable)) = (bound.prefix, self.prefixed)
            && let Some(other) = item.prefix(variable)
            && key != other
        {
            return key.cmp(&other);
        }
        if item.is_packed() {
            return self.compare_unpacked(bound, item);
        }
        let mut attributes = item.attributes(&self.widths);
        for (value, column) in bound.values.iter().zip(&self.columns) {
            let Some(other) = attributes.next() else { return Ordering::Greater };
            let ordering = Self::compare_column(column, *value, other);
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        bound.compare_edge(item, bound.values.len())
    }

    #[cold]
    fn compare_unpacked(&self, bound: &Bound<'_>, item: Item<'_>) -> Ordering {
        self.compare(bound, item.plain().item())
    }

    /// The bound's key, if it and every entry's is a single signed integer of this many bytes (4 or 8).
    #[inline]
    pub(crate) fn int_key(&self, bound: &Bound<'_>) -> Option<(i64, usize)> {
        match (bound.fast, self.fast_key) {
            (Some(key), FastCompare::Int4) => Some((key, 4)),
            (Some(key), FastCompare::Int8) => Some((key, 8)),
            _ => None,
        }
    }

    /// A place in the order: before, after or, within one key, at an address, for these first columns.
    pub fn bound<'a>(&self, values: &'a [Value<'a>], edge: Edge) -> Bound<'a> {
        let values = &values[..values.len().min(self.key_count())];
        let fast = match values {
            [Some(one)] => fast_value(self.fast_key, one),
            _ => None,
        };
        let prefix = match values {
            [Some(first), ..] if self.prefixed.is_some() => Some(layout::byte_prefix(first)),
            _ => None,
        };
        Bound { values, edge, fast, prefix }
    }
    /// A sort key of 8 bytes: if two differ, the entries compare as they do. `None`: no use here.
    pub fn abbreviate(&self, item: Item<'_>) -> u64 {
        let Some(column) = self.columns.first() else { return 0 };
        if item.is_packed() {
            return self.abbreviate(item.plain().item());
        }
        let Some(value) = item.attributes(&self.widths).next().flatten() else {
            return if column.nulls_first { 0 } else { u64::MAX };
        };
        let key = match column.fast {
            FastCompare::None => return 1,
            FastCompare::Bytes => {
                let mut word = [0; 8];
                let n = value.len().min(8);
                word[..n].copy_from_slice(&value[..n]);
                u64::from_be_bytes(word)
            }
            ints => (fast_value(ints, value).unwrap_or(0) as u64) ^ (1 << 63),
        };
        let key = if column.descending { !key } else { key };
        // 0 and the maximum are for nulls; those next to them share a key with the value there.
        key.clamp(1, u64::MAX - 1)
    }
    /// The sort key of a value of which it says everything: the only key column's, an integer and not null.
    #[inline]
    pub(crate) fn whole_key(&self, values: &[Value<'_>]) -> Option<u64> {
        let ([column], [Some(value)]) = (self.columns.as_slice(), values) else { return None };
        let key = (fast_value(column.fast, value)? as u64) ^ (1 << 63);
        let key = if column.descending { !key } else { key };
        (2..u64::MAX - 1).contains(&key).then_some(key)
    }
    /// The inverse of [`KeySchema::whole_key`]: the value's bytes, as many as its width says.
    #[inline]
    pub(crate) fn from_whole_key(&self, key: u64) -> [u8; 8] {
        let descending = self.columns.first().is_some_and(|c| c.descending);
        let key = if descending { !key } else { key };
        (key ^ (1 << 63)).to_le_bytes()
    }
}

#[inline]
fn fast_value(kind: FastCompare, bytes: &[u8]) -> Option<i64> {
    Some(match kind {
        FastCompare::Int4 => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
        FastCompare::Int8 => i64::from_le_bytes(*bytes.first_chunk()?),
        FastCompare::Int2 => i64::from(i16::from_le_bytes(*bytes.first_chunk()?)),
        FastCompare::Uint4 => i64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
        FastCompare::None | FastCompare::Bytes => return None,
    })
}

/// Which side of the entries that begin with a bound's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// Before them all.
    Before,
    /// After them all.
    After,
    /// At this heap address among them; the values must be all key columns.
    At(Tid),
    /// Right on the pivot that is cut off after these values: before the entries that begin with them, yet
    /// not past that pivot.
    Pivot,
}

/// A place in the order of entries.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    pub(crate) values: &'a [Value<'a>],
    pub(crate) edge: Edge,
    fast: Option<i64>,
    /// The first value's, if entries are compared by it first.
    prefix: Option<u64>,
}

impl Bound<'_> {
    /// The same values with another edge.
    pub fn with_edge(self, edge: Edge) -> Self {
        Bound { edge, ..self }
    }
    /// The values being equal.
    #[inline]
    fn compare_edge(&self, item: Item<'_>, columns: usize) -> Ordering {
        match self.edge {
            Edge::After => Ordering::Greater,
            Edge::Before | Edge::Pivot => {
                // A pivot cut off right here is minus infinity from here on: not after us.
                if item.is_pivot()
                    && item.pivot_attributes() <= columns
                    && item.pivot_tid().is_none()
                {
                    if self.edge == Edge::Pivot { Ordering::Equal } else { Ordering::Greater }
                } else {
                    Ordering::Less
                }
            }
            Edge::At(tid) => {
                if item.is_pivot() {
                    return match item.pivot_tid() {
                        Some(other) => tid.cmp(&other),
                        None => Ordering::Greater,
                    };
                }
                if tid < item.tid() {
                    Ordering::Less
                } else if item.is_posting() {
                    if tid > item.max_tid() { Ordering::Greater } else { Ordering::Equal }
                } else {
                    tid.cmp(&item.tid())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_size_that_is_told_is_postgresqls() {
        let text = KeyColumn {
            compare: |a, b| a.cmp(b),
            fast: FastCompare::Bytes,
            width: -1,
            align: 4,
            descending: false,
            nulls_first: false,
            equal_image: true,
        };
        let schema = KeySchema::new("i", "t", vec![text], vec![]);
        // Does not repeat itself.
        let long: Vec<u8> =
            (0..3000u32).map(|i| (i.wrapping_mul(i).wrapping_mul(40_503) >> 13) as u8).collect();
        let error = schema.form(&mut Vec::new(), &[Some(&long)], Tid::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "index row size 3016 exceeds btree version 4 maximum 2704 for index \"i\""
        );
        let long = vec![b'x'; 2692];
        let mut out = Vec::new();
        schema.form(&mut out, &[Some(&long)], Tid::default()).unwrap();
        assert!(out.len() <= layout::MAX_ITEM_SIZE);
    }

    #[test]
    fn prefixes_order_as_the_values_do() {
        let column = |width: i16, nulls_first| KeyColumn {
            compare: |a, b| a.cmp(b),
            fast: FastCompare::Bytes,
            width,
            align: 1,
            descending: false,
            nulls_first,
            equal_image: true,
        };
        let long = [7; 300];
        let texts: Vec<Value<'_>> = [
            &b""[..],
            b"\0",
            b"\0\0",
            b"a",
            b"a\0",
            b"ab",
            b"abcdefg",
            b"abcdefg\0",
            b"abcdefgh",
            b"abcdefgh\0",
            b"abcdefghi",
            b"abcdefgi",
            b"\xff",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            &long,
        ]
        .into_iter()
        .map(Some)
        .chain([None])
        .collect();
        let uuid =
            |n: u8, at: usize| -> [u8; 16] { std::array::from_fn(|i| n * u8::from(i >= at)) };
        let uuids = [uuid(0, 0), uuid(1, 0), uuid(1, 7), uuid(1, 8), uuid(9, 8), uuid(255, 15)];
        let uuids: Vec<Value<'_>> = uuids.iter().map(|u| Some(&u[..])).chain([None]).collect();
        let t = |n: u32| Tid::new(BlockNumber(n), base::OffsetNumber(1));
        for (width, values) in [(-1, &texts), (16, &uuids)] {
            for nulls_first in [false, true] {
                let two = vec![column(width, nulls_first), column(-1, false)];
                for columns in [two[..1].to_vec(), two] {
                    let schema = KeySchema::new("i", "t", columns.clone(), vec![]);
                    assert_eq!(schema.prefixed, Some(width < 0));
                    let mut plain = schema.clone();
                    plain.prefixed = None;
                    let second: Value<'_> = Some(b"second");
                    for a in values {
                        let key = [*a, second];
                        let key = &key[..columns.len()];
                        for b in values {
                            let other = [*b, second];
                            let other = &other[..columns.len()];
                            let mut entry = Vec::new();
                            schema.form(&mut entry, other, t(2)).unwrap();
                            let posting = layout::form_posting(Item(&entry), &[t(2), t(4)]);
                            let mut items = vec![entry.clone(), posting];
                            let widths = schema.widths();
                            for (keep, tid) in [(0, None), (1, None), (columns.len(), Some(t(2)))] {
                                let child = BlockNumber(3);
                                let pivot = layout::form_pivot(widths, &other[..keep], tid, child);
                                items.push(pivot);
                            }
                            for edge in [
                                Edge::Before,
                                Edge::After,
                                Edge::Pivot,
                                Edge::At(t(1)),
                                Edge::At(t(2)),
                                Edge::At(t(9)),
                            ] {
                                for item in &items {
                                    let with = schema.compare(&schema.bound(key, edge), Item(item));
                                    let without =
                                        plain.compare(&plain.bound(key, edge), Item(item));
                                    assert_eq!(with, without, "{a:?} {edge:?} {b:?} {item:?}");
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
