use crate::support::World;
use vacuum::{IndexCleanup, VacuumMode, VacuumOptions, VacuumReport};

/// As PostgreSQL 18 prints it for the same statements, the figures of time and I/O taken out.
#[test]
fn verbose_word_for_word() {
    let mut w = World::with(1, 4096);
    w.settings.track_io_timing = true;
    w.load(2000, b"1234567890");
    w.change(|k| k % 3 == 0, None);
    let r = w.vacuum(&VacuumOptions { freeze: true, ..VacuumOptions::default() });
    let facts = w.facts.lock().unwrap().clone();
    assert_eq!(
        VacuumReport::begin_line(&facts, VacuumMode::Aggressive),
        "aggressively vacuuming \"postgres.public.t\""
    );
    let text = r.text();
    let lines: Vec<&str> = text.lines().collect();
    let n = r.pages_after;
    let expected = [
        "finished vacuuming \"postgres.public.t\": index scans: 1".to_owned(),
        format!("pages: 0 removed, {n} remain, {n} scanned (100.00% of total), 0 eagerly scanned"),
        "tuples: 667 removed, 1333 remain, 0 are dead but not yet removable".to_owned(),
        "removable cutoff: 1005, which was 0 XIDs old when operation ended".to_owned(),
        "new relfrozenxid: 1005, which is 2 XIDs ahead of previous value".to_owned(),
        format!("frozen: {n} pages from table (100.00% of total) had 1333 tuples frozen"),
        format!(
            "visibility map: {n} pages set all-visible, {n} pages set all-frozen (0 were all-visible)"
        ),
        format!(
            "index scan needed: {n} pages from table (100.00% of total) had 667 dead item identifiers removed"
        ),
    ];
    assert_eq!(lines[..8], expected);
    let index = &r.indexes[0];
    assert_eq!(
        lines[8],
        format!(
            "index \"t_key\": pages: {} in total, 0 newly deleted, 0 currently deleted, 0 reusable",
            index.stats.pages
        )
    );
    for (line, begin) in lines[9..].iter().zip([
        "I/O timings: read: ",
        "avg read rate: ",
        "buffer usage: ",
        "WAL usage: ",
        "system usage: CPU: user: ",
        // Ours, after PostgreSQL's lines.
        "index \"t_key\" method: retail, 667 entries removed",
    ]) {
        assert!(line.starts_with(begin), "{line}");
    }
    assert_eq!(lines.len(), 15);
}

#[test]
fn an_empty_table() {
    let w = World::new();
    let r = w.vacuum(&VacuumOptions::default());
    let text = r.text();
    assert!(text.contains("pages: 0 removed, 0 remain, 0 scanned (100.00% of total)"), "{text}");
    assert!(
        text.contains("index scan not needed: 0 pages from table (100.00% of total) had 0 dead")
    );
}

/// What remains is what is there: the dead that somebody still sees too.
#[test]
fn dead_rows_that_cannot_go_yet_remain() {
    let w = World::new();
    w.load(1000, b"x");
    let reader = w.begin();
    let _seen = reader.take_snapshot();
    w.change(|k| k % 10 < 3, None);
    let r = w.vacuum_unchecked(&VacuumOptions::default()).unwrap();
    let text = r.text();
    let line = "tuples: 0 removed, 1000 remain, 300 are dead but not yet removable";
    assert!(text.contains(line), "{text}");
    // The catalog is told of the live ones.
    assert_eq!(r.new_reltuples as i64, 700);
}

/// Where there is no index to be left out, or was to be left out anyway, the line names the failsafe all the same.
#[test]
fn the_failsafe_is_named_without_indexes_too() {
    for (indexes, index_cleanup) in [(0, IndexCleanup::Auto), (1, IndexCleanup::Off)] {
        let mut w = World::with(indexes, 4096);
        w.settings.freeze.failsafe_age = 10_000;
        w.settings.freeze.max_age = 5000;
        w.load(100, b"x");
        w.ctx.txns.burn_xids(20_000).unwrap();
        let options = VacuumOptions { index_cleanup, ..VacuumOptions::default() };
        let text = w.vacuum(&options).text();
        let line = "index scan bypassed by failsafe: 0 pages from table (0.00% of total) have 0 dead item identifiers\n";
        assert!(text.contains(line), "{text}");
    }
}

/// Where all is all-visible there are no dead rows whose entries could be looked for: of an index only its meta page is read, which says whether
/// it wants cleaning up.
#[test]
fn a_vacuum_without_work_does_not_look_at_the_indexes() {
    let touched = |indexes: usize| {
        let w = World::with(indexes, 4096);
        w.load(2000, b"1234567890");
        w.change(|k| k % 3 == 0, None);
        w.vacuum(&VacuumOptions::default());
        // Whatever is left for a second one.
        w.vacuum(&VacuumOptions::default());
        let used = w.vacuum(&VacuumOptions::default()).usage.buffers;
        assert_eq!(used.dirtied, 0);
        used.hits + used.reads
    };
    assert_eq!(touched(2), touched(0) + 2);
}
