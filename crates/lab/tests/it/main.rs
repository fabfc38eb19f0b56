//! Tests of the laboratory's reports, over a made-up run.

mod browser;
mod fixture;
mod report;
