use super::*;
use crate::advise::Index;

/// An ordinary table of PostgreSQL 18: 10 M rows, 1.3 GB, one index, everything at its default.
fn ordinary() -> Facts {
    Facts {
        table: "public.t".into(),
        version: "PostgreSQL 18.6".into(),
        version_num: 180_006,
        heap_bytes: 1281 << 20,
        indexes: vec![Index { name: "t_pkey".into(), bytes: 216 << 20, scans: 1000 }],
        live: 1e7,
        dead: 1e5,
        updates: 200.0,
        hot_share: 0.9,
        watched_seconds: 86_400.0,
        age: 1e6,
        freeze_max_age: 2e8,
        failsafe_age: Some(1.6e9),
        shared_buffers: 8 << 30,
        ring: 2 << 20,
        autovacuum: true,
        threshold: 50.0,
        scale_factor: 0.2,
        max_threshold: Some(1e8),
        insert_threshold: 1000.0,
        insert_scale_factor: 0.2,
        cost_delay: 2.0,
        cost_limit: 200.0,
        freeze_min_age: 5e7,
        fillfactor: 100.0,
        ..Facts::default()
    }
}

fn text(advice: &Advice) -> String {
    advice.statements.join("\n")
}

#[test]
fn a_large_updated_table_is_vacuumed_sooner_and_by_hand_with_a_large_ring() {
    let said = text(&advise(&ordinary()));
    assert!(said.contains("SET (autovacuum_vacuum_scale_factor = 0.02)"), "{said}");
    assert!(said.contains("VACUUM (BUFFER_USAGE_LIMIT '1024 MB') public.t"), "{said}");
    assert!(
        !said.contains("freeze") && !said.contains("INDEX_CLEANUP") && !said.contains("fillfactor"),
        "{said}"
    );
}

#[test]
fn limits_are_at_most_an_eighth_of_shared_buffers() {
    let said = text(&advise(&Facts { shared_buffers: 128 << 20, ..ordinary() }));
    assert!(said.contains("BUFFER_USAGE_LIMIT '16 MB'"), "{said}");
    let old = advise(&Facts { version_num: 150_004, ring: 256 << 10, ..ordinary() });
    assert!(!text(&old).contains("BUFFER_USAGE_LIMIT"));
    assert!(old.items.iter().any(|i| i.what == "BUFFER_USAGE_LIMIT is not to be had"));
}

#[test]
fn a_small_quiet_table_is_left_alone() {
    let facts = Facts {
        heap_bytes: 1 << 20,
        indexes: Vec::new(),
        live: 5000.0,
        dead: 10.0,
        updates: 0.1,
        ..ordinary()
    };
    assert_eq!(advise(&facts), Advice::default());
}

#[test]
fn a_queue_goes_by_a_number_of_rows() {
    let facts = Facts {
        heap_bytes: 200 << 20,
        live: 200.0,
        dead: 50_000.0,
        updates: 0.0,
        inserts: 500.0,
        deletes: 500.0,
        ..ordinary()
    };
    let said = text(&advise(&facts));
    assert!(
        said.contains("autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 30000"),
        "{said}"
    );
}

#[test]
fn rows_that_only_come_are_frozen_early() {
    let facts = Facts {
        live: 1e8,
        heap_bytes: 12 << 30,
        inserts: 900.0,
        updates: 0.0,
        dead: 0.0,
        ..ordinary()
    };
    let said = text(&advise(&facts));
    assert!(said.contains("autovacuum_vacuum_insert_scale_factor = 0.1"), "{said}");
    assert!(said.contains("autovacuum_freeze_min_age = 0"), "{said}");
    // Ebb freezes such rows with the record that makes their page visible.
    let ebb = advise(&Facts { ebb: true, ..facts.clone() });
    assert!(!text(&ebb).contains("freeze_min_age"), "{ebb:?}");
    // Rows that are changed are not worth freezing at once.
    let changed = advise(&Facts { updates: 50.0, ..facts });
    assert!(!text(&changed).contains("freeze_min_age"), "{changed:?}");
}

#[test]
fn age_is_answered_before_it_hurts() {
    let near = Facts { age: 1.7e8, xids_per_second: Some(100.0), ..ordinary() };
    let advice = advise(&near);
    assert!(advice.statements[0].starts_with("VACUUM (FREEZE) public.t;"), "{advice:?}");
    assert!(
        advice.items.iter().any(|i| i.why.contains("85 %") && i.why.contains("in 3 days")),
        "{advice:?}"
    );
    let late = advise(&Facts { age: 1.4e9, ..ordinary() });
    assert!(
        late.statements[0].starts_with("VACUUM (FREEZE, INDEX_CLEANUP off, TRUNCATE off)"),
        "{late:?}"
    );
    assert!(late.statements[1].starts_with("VACUUM (INDEX_CLEANUP on)"), "{late:?}");
}

#[test]
fn what_was_turned_off_comes_back() {
    let mut facts = ordinary();
    facts.options.insert("autovacuum_enabled".into(), "off".into());
    facts.options.insert("vacuum_index_cleanup".into(), "false".into());
    let said = text(&advise(&facts));
    assert!(said.contains("RESET (autovacuum_enabled, vacuum_index_cleanup)"), "{said}");
    assert!(said.contains("VACUUM (INDEX_CLEANUP on)"), "{said}");
}

#[test]
fn no_setting_helps_against_an_old_snapshot() {
    let facts = Facts {
        dead: 9e6,
        oldest_snapshot: Some((5e6, "session 42 (idle in transaction)".into())),
        ..ordinary()
    };
    let advice = advise(&facts);
    assert!(advice.items[0].why.contains("session 42"), "{advice:?}");
    assert!(
        !text(&advice).contains("cost_limit"),
        "the throttle is not what holds it up: {advice:?}"
    );
    // Without it, the same dead rows mean that autovacuum is too slow.
    let slow = advise(&Facts { oldest_snapshot: None, ..facts });
    assert!(text(&slow).contains("autovacuum_vacuum_cost_limit = 1000"), "{slow:?}");
}

#[test]
fn ebb_needs_no_large_ring_and_no_large_batches() {
    let facts = Facts { ebb: true, updates: 100.0, hot_share: 0.0, fillfactor: 90.0, ..ordinary() };
    let said = text(&advise(&facts));
    assert!(!said.contains("BUFFER_USAGE_LIMIT"), "{said}");
    // 30,000 dead rows in five minutes; PostgreSQL would not be sent over its indexes for less than 2 %.
    assert!(said.contains("autovacuum_vacuum_scale_factor = 0.002"), "{said}");
}

#[test]
fn what_hot_pruning_takes_is_not_counted() {
    let quiet = Facts { updates: 1000.0, hot_share: 1.0, scale_factor: 0.05, ..ordinary() };
    assert!(!text(&advise(&quiet)).contains("scale_factor"));
}

#[test]
fn most_updates_off_their_page_want_room() {
    let said = text(&advise(&Facts { hot_share: 0.2, ..ordinary() }));
    assert!(said.contains("fillfactor = 90"), "{said}");
}
