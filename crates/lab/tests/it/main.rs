//! Tests of the laboratory's reports, over a made-up run.

mod fixture;
mod report;
