//! When autovacuum was at work, by a server's log, and which transactions that met.
//!
//! # Purpose
//! Two runs of a load, with autovacuum and without, are minutes apart, and what a machine or its disk does by itself in one of them can be more
//! than all that autovacuum does to the load. The transactions of one run that met a VACUUM or an ANALYZE, beside those of the same run that met none, were
//! at the mercy of the same machine.
//!
//! # Layout
//! The log's lines begin with seconds since 1970 (`log_line_prefix = '%n '`); a report is written when its work is done, and its last line says
//! how long that took, in hundredths of a second.

use crate::load::{Transaction, histogram};
use crate::{Error, Result};
use hdrhistogram::Histogram;

/// What the server's lines are to begin with.
pub const LOG_LINE_PREFIX: &str = "%n ";

/// The length is told in hundredths: it may have begun so much earlier.
const ROUNDED_S: f64 = 0.01;

/// From when to when, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Span {
    /// Its begin.
    pub from_s: f64,
    /// Its end.
    pub until_s: f64,
}

/// The automatic vacuums and analyzes of a log, in the order of their ends. Entries without a time are passed over.
pub fn spans(log: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut ended_s = None;
    for line in log.lines() {
        if line.contains("automatic ") && line.contains(" of table \"") {
            ended_s = line.split(' ').next().and_then(|word| word.parse::<f64>().ok());
        } else if let Some((_, elapsed)) = line.split_once("elapsed: ")
            && let Some(until_s) = ended_s.take()
            && let Some(length_s) =
                elapsed.split(' ').next().and_then(|word| word.parse::<f64>().ok())
        {
            spans.push(Span { from_s: until_s - length_s - ROUNDED_S, until_s });
        }
    }
    spans
}

/// Latencies in microseconds of the transactions that met one of `spans`, and of the others.
///
/// # Errors
/// None that is to be expected: a histogram that can't be made.
pub fn divide(
    transactions: &[Transaction],
    spans: &[Span],
) -> Result<(Histogram<u64>, Histogram<u64>), Error> {
    let (mut met, mut others) = (histogram()?, histogram()?);
    for t in transactions {
        let began_s = t.ended_s - t.latency_us as f64 / 1e6;
        let meets = |s: &Span| began_s < s.until_s && s.from_s < t.ended_s;
        let into = if spans.iter().any(meets) { &mut met } else { &mut others };
        into.saturating_record(t.latency_us.max(1));
    }
    Ok((met, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
1795634212.135 LOG:  automatic vacuum of table \"postgres.public.t\": index scans: 0
\tpages: 0 removed, 4919 remain, 4919 scanned (100.00% of total), 0 eagerly scanned
\tsystem usage: CPU: user: 0.04 s, system: 0.00 s, elapsed: 1.11 s
1795634213.000 LOG:  checkpoint complete: wrote 1 buffers (0.0%), elapsed: 7 s
1795634212.251 LOG:  automatic analyze of table \"postgres.public.t\"
\tsystem usage: CPU: user: 0.06 s, system: 0.00 s, elapsed: 0.11 s
2026-11-25 20:00:00.000 UTC [7] LOG:  automatic analyze of table \"postgres.public.u\"
\tsystem usage: CPU: user: 0.06 s, system: 0.00 s, elapsed: 0.11 s
";

    #[test]
    fn a_log_tells_when_autovacuum_was_at_work() {
        let found = spans(LOG);
        let whole_ms =
            |s: &Span| [s.from_s, s.until_s].map(|s| (s * 1000.0).round() - 1.795_634_21e12);
        assert_eq!(
            found.iter().map(whole_ms).collect::<Vec<_>>(),
            [[1015.0, 2135.0], [2131.0, 2251.0]]
        );
    }

    #[test]
    fn transactions_are_divided_by_what_they_met() {
        let spans = [Span { from_s: 10.0, until_s: 11.0 }, Span { from_s: 20.0, until_s: 20.5 }];
        let of = |ended_s, latency_us| Transaction { ended_s, latency_us };
        // Over before it; into its begin; within; past its end; long before and long after; after all.
        let all = [
            of(10.0, 900),
            of(10.1, 200_000),
            of(10.5, 3),
            of(11.1, 200_000),
            of(30.0, 15_000_000),
            of(31.0, 5),
        ];
        let (met, others) = divide(&all, &spans).unwrap();
        assert_eq!((met.len(), others.len()), (4, 2));
        assert_eq!((met.min(), others.max()), (3, 900));
    }
}
