//! VACUUM of a heap with indexes, on a simulated disk.

mod autovacuum;
mod cancelled;
mod crash;
mod freeze;
mod in_use;
mod life;
mod middle;
mod one_visit;
mod partial;
mod passes;
mod plan;
mod put_off;
mod random;
mod report;
mod retail;
mod sample;
mod storm;
mod support;
mod throttle;
mod truncate;
mod workers;
