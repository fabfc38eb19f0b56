//! The index keys of a dead row, made of what its line pointer kept or of the row itself.
//!
//! # Invariants
//! Of a row that a partial index has no entry of no key is made, and none is missed. That is certain only if all that the predicate reads was kept: a value
//! that is not there is never taken for null ([`KeyFunction`]), and if it is of the version that the index would have an entry of
//! ([`KeySource::is_newest`]). Otherwise the row's key is not to be had, in that index.

use crate::index_pass::{ComputedKey, IndexTarget, KeyFunction, RowKey};
use base::{Result, Tid};
use btree::{RetailKeys, Value};
use heap::Heap;
use page::tuple::{AttrValue, KeySource, StubDesc, TupleDesc};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// How the keys of one index are made.
#[derive(Clone)]
pub(crate) struct Recipe<'a> {
    pub target: &'a IndexTarget,
    pub columns: &'a [usize],
    function: Option<&'a dyn KeyFunction>,
    /// Where the columns lie in data without nulls, if all widths up to there are fixed.
    fixed: Option<Vec<Range<usize>>>,
}

impl<'a> Recipe<'a> {
    /// `None` if the keys can't be made of `desc`, the columns that dead line pointers keep.
    pub fn new(desc: &TupleDesc, target: &'a IndexTarget) -> Option<Recipe<'a>> {
        let keys = target.keys.as_ref()?;
        let (columns, function) = (&keys.columns, keys.function.as_deref());
        if columns.iter().any(|c| *c >= desc.len()) {
            return None;
        }
        let fixed = columns.iter().map(|c| desc.fixed_range(*c)).collect();
        let fixed = if function.is_some() { None } else { fixed };
        Some(Recipe { target, columns, function, fixed })
    }

    /// Adds a row's key, if it has an entry. False if the key is not to be had.
    ///
    /// # Errors
    /// 54000 for too large a key.
    #[inline]
    pub fn add(&self, keys: &mut RetailKeys, row: &mut Row<'_, '_>, tid: Tid) -> Result<bool> {
        let Some(source) = row.source else { return Ok(false) };
        let index = &self.target.index;
        if let (Some(data), Some(fixed)) = (source.plain(row.attributes), &self.fixed) {
            if let [one] = &fixed[..]
                && let Some(value) = data.get(one.clone())
            {
                index.add_retail_key(keys, &[Some(value)], tid)?;
                return Ok(true);
            }
            let values = fixed.iter().map_while(|r| data.get(r.clone())).map(Some);
            let key: SmallVec<[Value<'_>; 4]> = values.collect();
            if key.len() == fixed.len() {
                index.add_retail_key(keys, &key, tid)?;
                return Ok(true);
            }
        }
        if let Some(function) = self.function {
            let mut made = ComputedKey::default();
            let told = function.key(row.values(), &mut made);
            if told == RowKey::Made {
                let value = |at: &Option<Range<usize>>| at.clone().map(|at| &made.bytes[at]);
                let key: SmallVec<[Value<'_>; 4]> = made.columns.iter().map(value).collect();
                index.add_retail_key(keys, &key, tid)?;
            }
            return Ok(match told {
                RowKey::Made => true,
                RowKey::NoEntry => source.is_newest(),
                RowKey::Unknown => false,
            });
        }
        let values = row.values();
        let mut key: SmallVec<[Value<'_>; 4]> = SmallVec::new();
        for column in self.columns {
            match values[*column] {
                Some(AttrValue::Null) => key.push(None),
                Some(AttrValue::Inline(bytes)) => key.push(Some(bytes)),
                _ => return Ok(false),
            }
        }
        index.add_retail_key(keys, &key, tid)?;
        Ok(true)
    }
}

/// Makes the keys of all of a table's indexes.
pub(crate) struct KeyMaker<'a> {
    stubs: Arc<StubDesc>,
    pub recipes: Vec<Recipe<'a>>,
}

impl<'a> KeyMaker<'a> {
    /// `None` if there is an index whose keys can't be made of the columns that dead line pointers keep, or no index.
    pub fn new(heap: &Heap, indexes: &'a [IndexTarget]) -> Option<KeyMaker<'a>> {
        let stubs = heap.options().dead_keys.clone()?;
        let recipe = |target| Recipe::new(stubs.desc(), target);
        let recipes: Vec<_> = indexes.iter().map(recipe).collect::<Option<_>>()?;
        (!recipes.is_empty()).then_some(KeyMaker { stubs, recipes })
    }

    fn row<'r, 's>(&'s self, source: Option<&'s KeySource<'r>>) -> Row<'r, 's> {
        let desc = self.stubs.desc();
        Row::new(source, desc, desc.len())
    }

    /// Adds a row's keys to those of each index that has an entry of it. False, and some of them may have been added, if one is not to be had.
    ///
    /// # Errors
    /// 54000 for too large a key.
    pub fn add(
        &self,
        keys: &mut [RetailKeys],
        source: Option<&KeySource<'_>>,
        tid: Tid,
    ) -> Result<bool> {
        let mut row = self.row(source);
        for (recipe, keys) in self.recipes.iter().zip(keys) {
            if !recipe.add(keys, &mut row, tid)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds a row's key to those of the index number `i`, if that has an entry of it. False if the key is not to be had.
    ///
    /// # Errors
    /// 54000 for too large a key.
    pub fn add_to(
        &self,
        i: usize,
        keys: &mut RetailKeys,
        source: Option<&KeySource<'_>>,
        tid: Tid,
    ) -> Result<bool> {
        let mut row = self.row(source);
        self.recipes[i].add(keys, &mut row, tid)
    }
}

/// A row's values, taken apart when they are first asked for.
pub(crate) struct Row<'r, 's> {
    source: Option<&'s KeySource<'r>>,
    desc: &'s TupleDesc,
    /// How many of its attributes are asked for.
    attributes: usize,
    values: SmallVec<[Option<AttrValue<'r>>; 8]>,
}

impl<'r, 's> Row<'r, 's> {
    /// Of `source`, of which so many attributes are asked for.
    pub fn new(
        source: Option<&'s KeySource<'r>>,
        desc: &'s TupleDesc,
        attributes: usize,
    ) -> Row<'r, 's> {
        Row { source, desc, attributes, values: SmallVec::new() }
    }

    fn values(&mut self) -> &[Option<AttrValue<'r>>] {
        if self.values.is_empty() {
            self.values.resize(self.desc.len(), None);
            let whole = self.source.is_some_and(|s| s.deform(self.desc, &mut self.values).is_ok());
            if !whole {
                self.values.fill(None);
            }
        }
        &self.values
    }
}
