//! The pool from outside, over the simulated disk and a WAL that checks what it is asked.

mod checked;
mod common;

mod basics;
mod cuts;
mod disks;
mod durable;
mod races;
mod redo;
mod staging;
