//! Pages as pure bytes.
//!
//! # Purpose
//! Every byte of every page is laid out here and in `docs/FORMAT.md`: the page header, line
//! pointers, heap tuples, B-tree pages, the visibility map and the free-space map. No I/O, no locks,
//! no knowledge of transactions. What reads a page here never panics on damaged bytes.
//!
//! # Layout
//! [`Page`] (header and items), [`ItemId`], [`tuple`] (heap tuples, their forming and deforming),
//! [`visibility`] and [`free_space`] (the two maps), `btree`.
//!
//! # Invariants
//! `HEADER_SIZE <= lower <= upper <= special <= PAGE_SIZE` on every initialised page; items lie
//! between `upper` and `special`, on 8-byte boundaries.
//!
//! # Differs from PostgreSQL
//! A header of 32 bytes instead of 24: a CRC-32C instead of a 16-bit checksum, and a 64-bit
//! base for the 32-bit transaction ids on the page.

#![expect(unsafe_code, reason = "hint bits are set by readers; each block says why it is sound")]

pub mod btree;
pub mod free_space;
mod item;
mod page;
pub mod tuple;
mod verify;
pub mod visibility;

pub use item::{ItemId, ItemState};
pub use page::{HEADER_SIZE, LAYOUT_VERSION, PAGE_SIZE, Page, flags};

/// Rounds `n` up to a multiple of 8, the alignment of items.
pub const fn align8(n: usize) -> usize {
    (n + 7) & !7
}
