//! Values of a table's rows that are not read before somebody asks for them: out of line, or compressed.
//!
//! # Invariants
//! The snapshot that saw the row is held by the statement as long as its rows are, so that the row's chunks are there. A version younger than that, to
//! which READ COMMITTED follows a row, is locked against updates until the transaction ends; the one for which that is not so (FOR KEY SHARE) is
//! read at once, under a snapshot that sees it (`sql/src/exec/lock_rows.rs`).

use base::{Oid, Result};
use heap::Heap;
use heap::toast::{ToastStore, detoast, detoast_slice};
use page::tuple::{AttrValue, COMPRESSED_HEADER, EXTERNAL_SIZE, ToastPointer};
use std::any::Any;
use std::sync::{Arc, OnceLock};
use types::{Datum, LateValue};

/// Where the value is.
enum Place {
    OutOfLine(ToastPointer),
    Compressed { raw_size: u32, data: Box<[u8]> },
}

/// A value as a row keeps it.
pub struct KeptValue {
    ty: Oid,
    place: Place,
    store: Option<Arc<dyn ToastStore>>,
    value: OnceLock<Datum>,
}

impl std::fmt::Debug for KeptValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptValue({:?})", self.attr())
    }
}

impl KeptValue {
    /// The value of an attribute of a row of `heap`; None if it is NULL, or in the row as it is.
    pub fn of(heap: &Heap, attr: &AttrValue<'_>, ty: Oid) -> Option<Datum> {
        let place = match attr {
            AttrValue::Null | AttrValue::Inline(_) => return None,
            AttrValue::Compressed { raw_size, data } => {
                Place::Compressed { raw_size: *raw_size, data: (*data).into() }
            }
            AttrValue::External(pointer) => Place::OutOfLine(*pointer),
        };
        let store = heap.options().toast.clone();
        Some(Datum::Late(Arc::new(KeptValue { ty, place, store, value: OnceLock::new() })))
    }

    /// As a tuple has it.
    pub fn attr(&self) -> AttrValue<'_> {
        match &self.place {
            Place::OutOfLine(pointer) => AttrValue::External(*pointer),
            Place::Compressed { raw_size, data } => {
                AttrValue::Compressed { raw_size: *raw_size, data }
            }
        }
    }

    fn store(&self) -> Option<&dyn ToastStore> {
        self.store.as_deref()
    }
}

impl LateValue for KeptValue {
    fn get(&self) -> Result<&Datum> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let read = self.read()?;
        Ok(self.value.get_or_init(|| read))
    }
    fn read(&self) -> Result<Datum> {
        match self.value.get() {
            Some(value) => Ok(value.clone()),
            None => types::decode(self.ty, &detoast(&self.attr(), self.store())?),
        }
    }
    fn is_read(&self) -> bool {
        self.value.get().is_some()
    }
    fn len(&self) -> usize {
        match &self.place {
            Place::OutOfLine(p) => p.raw_size as usize,
            Place::Compressed { raw_size, .. } => *raw_size as usize,
        }
    }
    fn kept_len(&self) -> usize {
        match &self.place {
            Place::OutOfLine(p) => p.stored_size as usize,
            Place::Compressed { data, .. } => data.len() + COMPRESSED_HEADER,
        }
    }
    fn is_compressed(&self) -> bool {
        match &self.place {
            Place::OutOfLine(p) => p.compressed,
            Place::Compressed { .. } => true,
        }
    }
    fn len_in_row(&self) -> usize {
        match &self.place {
            Place::OutOfLine(_) => EXTERNAL_SIZE,
            Place::Compressed { data, .. } => data.len() + COMPRESSED_HEADER,
        }
    }
    fn slice(&self, start: usize, len: usize) -> Result<Vec<u8>> {
        Ok(detoast_slice(&self.attr(), self.store(), start, len)?.into_owned())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Values of these types may be read later: what is stored is never a row's own fields.
pub fn may_be_late(ty: Oid) -> bool {
    types::type_info(ty).is_some_and(|t| t.len == -1) && ty != types::oids::RECORD
}

/// The attribute that stands for both the value before and the one after, if they are one that a row keeps.
pub(crate) fn unchanged<'v>(before: &Datum, after: &'v Datum) -> Option<AttrValue<'v>> {
    let (Datum::Late(a), Datum::Late(b)) = (before, after) else { return None };
    let kept = b.as_any().downcast_ref::<KeptValue>()?;
    Arc::ptr_eq(a, b).then(|| kept.attr())
}
