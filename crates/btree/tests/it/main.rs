//! Tests of the B-tree.

mod build;
mod cleanup;
mod concurrency;
mod early;
mod extent;
mod faults;
mod golden;
mod gone;
mod hints;
mod model;
mod packed;
mod power;
mod rebuild;
mod replay;
mod support;
mod tidy;
mod tumult;
mod unique;
mod vacuum;
