//! Heap tuples: header, varlena values, forming and deforming.
//!
//! # Layout
//! ```text
//!  0 xmin u32       inserting transaction, offset from the page's xid_base
//!  4 xmax u32       deleting or updating transaction, or 0
//!  8 cid u32        command id (inserting or deleting, or a combo id)
//! 12 ctid 6 bytes   this tuple, or the next version of the row
//! 18 infomask2 u16  number of attributes (11 bits) and flags
//! 20 infomask u16   flags
//! 22 hoff u8        where the data starts: a multiple of 8
//! 23 null bitmap    one bit an attribute, 1 = not null; only with HAS_NULL
//! ```
//! A transaction id on a page is 0 (none), 1 (bootstrap), 2 (frozen), or `n >= 3` for `xid_base + n`.
//!
//! # Differs from PostgreSQL
//! Row locks never reach the tuple, so xmax is a deleter or an updater and nothing else; there are no
//! MultiXacts and no pre-9.0 move flags.

mod form;
mod header;
mod key_stub;
mod split;
mod stub_bytes;
mod varlena;
mod walk;

pub use form::{
    AttrValue, PhysicalAttr, TupleDesc, deform, form_tuple, form_values, form_values_into,
};
pub use header::*;
pub use key_stub::{
    KeySource, MAX_STUB_DATA, StubDesc, StubSize, Wanted, deform_stub, verify_stub,
};
pub use split::{StoredAttr, split_data};
pub use varlena::{
    COMPRESSED_HEADER, EXTERNAL_SIZE, MAX_SHORT, MAX_VALUE_SIZE, ToastPointer, VARLENA_HEADER,
    plain_varlena_size,
};
pub use walk::TupleWalk;
