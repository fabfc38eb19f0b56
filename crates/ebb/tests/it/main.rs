//! The server as its users meet it: the built binary, over the wire.

#![forbid(unsafe_code)]

mod compare;
mod durability;
mod fuzz;
mod isolation;
mod pgbench;
mod queue;
mod settings;
mod startup;
mod support;
mod wire;
