//! Tests of the write-ahead log.

mod basic;
mod crash;
mod damage;
mod failure;
mod give_way;
