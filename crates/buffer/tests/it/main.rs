//! The pool from outside, over the simulated disk and a WAL that checks what it is asked.

mod basics;
mod common;
