//! Tests of the heap through its public interface.

mod bank;
mod basics;
mod between_pages;
mod checking;
mod cleaning;
mod common;
mod conflicts;
mod crash;
mod hints;
mod keeping;
mod model;
mod old_ids;
mod relocate;
mod replay;
mod toast;
mod tumult;
mod unpinned;
mod vacuum;
