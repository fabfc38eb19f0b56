//! Tests of the laboratory: its reports, over a made-up run, and how it ends.

mod browser;
mod fixture;
mod killed;
mod report;
