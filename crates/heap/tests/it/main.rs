//! Tests of the heap through its public interface.

mod basics;
mod cleaning;
mod common;
mod conflicts;
mod crash;

mod model;
mod toast;
mod vacuum;
