//! The server as its users meet it: the built binary, over the wire.

#![forbid(unsafe_code)]

mod compare;
mod counts;
mod domains;
mod durability;
mod experiments;
mod fuzz;
mod isolation;
mod lab;
mod log_lines;
mod merge;
mod notify;
mod opening;
mod pgbench;
mod portals;
mod queue;
mod settings;
mod startup;
mod support;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tls;
mod vacuumdb;
mod wire;
