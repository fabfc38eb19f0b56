//! Tests of the write-ahead log.

mod basic;
