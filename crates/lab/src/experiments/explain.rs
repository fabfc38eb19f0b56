//! EXPLAIN VACUUM: what it foretells beside what becomes of it.
//!
//! On the tables of experiments 1, 3 and 4. Which servers can is asked of them: one that can't parse the statement
//! sits out.

use crate::Result;
use crate::measure::count;
use crate::plan::{Plan, Progress};
use crate::results::{Bound, Experiment, Figure, Results};
use crate::subject::{self, Fresh, Subject};
use serde_json::Value;
use std::time::Instant;

const TIME: Figure = Figure { name: "EXPLAIN VACUUM", unit: "ms" };
const SAMPLED: Figure = Figure { name: "pages that EXPLAIN VACUUM read", unit: "%" };
/// The name in the plan, what it is called here, its figures, and the deviation wanted.
const FORETOLD: [(&str, [Figure; 3], f64); 3] = [
    (
        "Pages Scanned",
        [
            Figure { name: "pages expected", unit: "pages" },
            Figure { name: "pages actual", unit: "pages" },
            Figure { name: "pages, deviation", unit: "%" },
        ],
        5.0,
    ),
    (
        "WAL Bytes",
        [
            Figure { name: "WAL expected", unit: "bytes" },
            Figure { name: "WAL actual", unit: "bytes" },
            Figure { name: "WAL, deviation", unit: "%" },
        ],
        25.0,
    ),
    (
        "Vacuum Time",
        [
            Figure { name: "time expected", unit: "ms" },
            Figure { name: "time actual", unit: "ms" },
            Figure { name: "time, deviation", unit: "%" },
        ],
        50.0,
    ),
];

/// Runs it.
pub fn run(
    plan: &Plan,
    progress: &dyn Progress,
    results: &mut Results,
    e: &mut Experiment,
) -> Result<()> {
    let (scale, rows) = super::pgbench_rows(plan, 500_000);
    e.workload = format!(
        "EXPLAIN VACUUM, then EXPLAIN (ANALYZE) VACUUM, of pgbench_accounts ({rows} rows, n % updated) and of \
         experiment 1's table"
    );
    e.steps = vec![
        "EXPLAIN (FORMAT JSON) VACUUM t".into(),
        "EXPLAIN (ANALYZE, FORMAT JSON) VACUUM t".into(),
    ];
    let pool = super::pool(rows);
    let settings = [("shared_buffers", pool.as_str()), ("autovacuum", "off")];
    let mut subjects = subject::open(plan, &settings, results, e)?;
    let cases: Vec<(String, String, &str)> = [1, 5, 21, 33, 55]
        .into_iter()
        .map(|n| {
            let last = rows * n / 100;
            let sql = format!("UPDATE pgbench_accounts SET aid = aid WHERE aid <= {last}");
            (format!("{n} %"), sql, "pgbench_accounts")
        })
        .chain([("experiment 1".to_owned(), String::new(), "table1")])
        .collect();
    progress.begin("explain", (subjects.len() * (plan.rounds * cases.len() + 4)) as u64);
    let ring = super::ring::statements(rows * 4 / 5);
    let build = |subject: &Subject| -> Result<()> {
        super::fill_accounts(subject, scale, rows)?;
        subject.sql(&ring.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for subject in &mut subjects {
        let label = subject.label.clone();
        subject.sql(&["CREATE TABLE IF NOT EXISTS explained (a int)"])?;
        if subject.sql(&["EXPLAIN (FORMAT JSON) VACUUM explained"]).is_err() {
            e.note(format!("{label} has no EXPLAIN VACUUM."));
            continue;
        }
        progress.step(&format!("{label}: the tables"), 4);
        build(subject)?;
        subject.save()?;
        for _ in 0..plan.rounds {
            for (x, update, table) in &cases {
                progress.step(&format!("{label}: {x}"), 1);
                subject.fresh(Fresh::default(), e, &build)?;
                one(subject, x, update, table, e)?;
            }
        }
        let label = label.as_str();
        for (x, _, _) in &cases {
            let value = |figure: Figure| e.median(label, x, figure.name);
            let (time, sampled) = (value(TIME), value(SAMPLED));
            let deviations: Vec<_> =
                FORETOLD.iter().map(|f| (f.1[2], f.2, value(f.1[2]))).collect();
            e.want(format!("EXPLAIN VACUUM at {x}, ms"), Bound::AtMost(50.0), time);
            e.want(format!("pages that it read at {x}, %"), Bound::AtMost(1.0), sampled);
            for (figure, bound, measured) in deviations {
                e.want(format!("{} at {x}, %", figure.name), Bound::AtMost(bound), measured);
            }
        }
    }
    Ok(())
}

fn one(subject: &Subject, x: &str, update: &str, table: &str, e: &mut Experiment) -> Result<()> {
    let label = subject.label.as_str();
    let mut client = subject.connect()?;
    if !update.is_empty() {
        client.run(update)?;
    }
    let begun = Instant::now();
    let plan = client.value(&format!("EXPLAIN (FORMAT JSON) VACUUM {table}"))?;
    e.record(label, x, TIME, begun.elapsed().as_secs_f64() * 1000.0);
    let both = client.value(&format!("EXPLAIN (ANALYZE, FORMAT JSON) VACUUM {table}"))?;
    let expected = of_table(&plan)?;
    let both_of = of_table(&both)?;
    let number = |v: &Value| v.as_f64();
    if let (Some(sampled), Some(pages)) =
        (number(&expected["Pages Sampled"]), number(&expected["Pages"]))
    {
        e.record(label, x, SAMPLED, 100.0 * sampled / pages.max(1.0));
    }
    for (name, [foretold, became, deviation], _) in FORETOLD {
        let actual = number(&both_of[name]["Actual"]).or_else(|| number(&both_of[name]));
        let (Some(guess), Some(actual)) = (number(&expected[name]), actual) else {
            e.note(format!("{label}: the plan has no {name}"));
            continue;
        };
        e.record(label, x, foretold, guess);
        e.record(label, x, became, actual);
        let off = if actual == guess {
            0.0
        } else {
            100.0 * (guess - actual).abs() / actual.max(count(1))
        };
        e.record(label, x, deviation, off);
    }
    e.report(label, x, &format!("EXPLAIN (ANALYZE, FORMAT JSON) VACUUM {table}"), &both);
    Ok(())
}

/// The plan's first relation: the table itself, its TOAST table comes after.
fn of_table(text: &str) -> Result<Value> {
    let all: Value =
        serde_json::from_str(text).map_err(|e| format!("EXPLAIN VACUUM's JSON: {e}"))?;
    Ok(all[0]["Vacuum"].clone())
}
