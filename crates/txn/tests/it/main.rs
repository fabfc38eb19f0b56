//! The transaction manager from outside.

mod checkpoints;
mod cutting;
mod deadlocks;
mod locks;
mod model;
mod panics;
mod recovery;
mod rows;
mod savepoints;
mod scopes;
mod snapshots;
mod support;
mod window;
