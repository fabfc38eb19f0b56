//! The index keys of a dead row, made of what its line pointer kept or of the row itself.

use crate::index_pass::IndexTarget;
use base::{Result, Tid};
use btree::{RetailKeys, Value};
use heap::Heap;
use page::tuple::{AttrValue, KeySource, TupleDesc};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// How the keys of one index are made.
pub(crate) struct Recipe<'a> {
    pub target: &'a IndexTarget,
    columns: &'a [usize],
    /// Where the columns lie in data without nulls, if all widths up to there are fixed.
    fixed: Option<Vec<Range<usize>>>,
}

/// Makes the keys of all of a table's indexes.
pub(crate) struct KeyMaker<'a> {
    desc: Arc<TupleDesc>,
    pub recipes: Vec<Recipe<'a>>,
}

impl<'a> KeyMaker<'a> {
    /// `None` if there is an index whose keys can't be made of the columns that dead line pointers keep, or no index.
    pub fn new(heap: &Heap, indexes: &'a [IndexTarget]) -> Option<KeyMaker<'a>> {
        let desc = heap.options().dead_keys.clone()?;
        let recipe = |target: &'a IndexTarget| {
            let columns = &target.keys.as_ref()?.columns;
            if columns.iter().any(|c| *c >= desc.len()) {
                return None;
            }
            let fixed = columns.iter().map(|c| desc.fixed_range(*c)).collect();
            Some(Recipe { target, columns, fixed })
        };
        let recipes: Vec<_> = indexes.iter().map(recipe).collect::<Option<_>>()?;
        (!recipes.is_empty()).then_some(KeyMaker { desc, recipes })
    }

    /// Adds a row's keys to those of each index. False, and some of them may have been added, if one is not to be had.
    ///
    /// # Errors
    /// 54000 for too large a key.
    pub fn add(
        &self,
        keys: &mut [RetailKeys],
        source: Option<&KeySource<'_>>,
        tid: Tid,
    ) -> Result<bool> {
        let Some(source) = source else { return Ok(false) };
        let plain = source.plain(self.desc.len());
        let mut values: SmallVec<[Option<AttrValue<'_>>; 8]> = SmallVec::new();
        for (recipe, keys) in self.recipes.iter().zip(keys) {
            let index = &recipe.target.index;
            if let (Some(data), Some([one])) = (plain, recipe.fixed.as_deref())
                && let Some(value) = data.get(one.clone())
            {
                index.add_retail_key(keys, &[Some(value)], tid)?;
                continue;
            }
            let mut key: SmallVec<[Value<'_>; 4]> = SmallVec::new();
            if let (Some(data), Some(fixed)) = (plain, &recipe.fixed) {
                key.extend(fixed.iter().map_while(|r| data.get(r.clone())).map(Some));
                if key.len() == fixed.len() {
                    index.add_retail_key(keys, &key, tid)?;
                    continue;
                }
                key.clear();
            }
            if values.is_empty() {
                values.resize(self.desc.len(), None);
                if source.deform(&self.desc, &mut values).is_err() {
                    values.fill(None);
                }
            }
            for column in recipe.columns {
                match values[*column] {
                    Some(AttrValue::Null) => key.push(None),
                    Some(AttrValue::Inline(bytes)) => key.push(Some(bytes)),
                    _ => return Ok(false),
                }
            }
            index.add_retail_key(keys, &key, tid)?;
        }
        Ok(true)
    }
}
