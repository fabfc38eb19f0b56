//! Plans for pages drawn as text.
//!
//! A page is a list of line pointers: `n:VERDICT`, with `h` for heap-only, `u` for one that an update made, `>m` for the next version
//! of the HOT chain, `~m` or `~block.m` for one that is a root, `=m` for a redirect, `-` unused, `x` dead. xmin of line pointer n is
//! 100 + n, or what `^` says; a tuple's xmax is its successor's xmin, or what `/` says.

use super::*;
use base::{CommandId, Tid};
use page::ItemState;
use page::tuple::{
    AttrValue, HEAP_ONLY, HOT_UPDATED, KeySource, PhysicalAttr, StubDesc, StubSize, TupleDesc,
    UPDATED, Wanted, form_tuple,
};
use page::{HEADER_SIZE, ItemId};
use std::sync::Arc;

pub(super) fn page_of(text: &str) -> (Box<Page>, Vec<Option<Verdict>>) {
    let desc = TupleDesc::new(vec![PhysicalAttr::new(8, 8)]);
    let mut page = Page::new_zeroed();
    page.init(0);
    let mut verdicts = vec![None];
    for (i, word) in text.split_whitespace().enumerate() {
        let offset = OffsetNumber(i as u16 + 1);
        if let Some(to) = word.strip_prefix('=') {
            page.set_lower(HEADER_SIZE + 4 * (i + 1));
            page.set_item_id(offset, ItemId::redirect(OffsetNumber(to.parse().unwrap())));
            verdicts.push(None);
            continue;
        }
        if word == "-" || word == "x" {
            page.set_lower(HEADER_SIZE + 4 * (i + 1));
            page.set_item_id(offset, if word == "x" { ItemId::DEAD } else { ItemId::UNUSED });
            verdicts.push(None);
            continue;
        }
        let (word, xmin) = word.split_once('^').unwrap_or((word, ""));
        let (word, xmax) = word.split_once('/').unwrap_or((word, ""));
        let at = word.find(['>', '~']).unwrap_or(word.len());
        let (flags, link) = word.split_at(at);
        let tuple = form_tuple(&desc, &[Some(&[1; 8])]);
        assert!(page.put_item(offset, &tuple));
        let mut t = page.tuple_mut(offset);
        t.set_xmin_offset(xmin.parse().unwrap_or(100 + u32::from(offset.0)));
        t.set_command_id(CommandId(0));
        let mut mask2 = t.infomask2();
        if flags.contains('h') {
            mask2 |= HEAP_ONLY;
        }
        if flags.contains('u') {
            let mask = t.infomask();
            t.set_infomask(mask | UPDATED);
        }
        if let Some(next) = link.get(1..) {
            if link.starts_with('>') {
                mask2 |= HOT_UPDATED;
            }
            let (block, next) = next.split_once('.').unwrap_or(("0", next));
            let next: u16 = next.parse().unwrap();
            t.set_xmax_offset(100 + u32::from(next));
            t.set_ctid(Tid::new(base::BlockNumber(block.parse().unwrap()), OffsetNumber(next)));
        } else {
            t.set_ctid(Tid::new(base::BlockNumber(0), offset));
            if matches!(&flags[..1], "D" | "M" | "R" | "d") {
                t.set_xmax_offset(999);
            }
        }
        if let Ok(xmax) = xmax.parse() {
            t.set_xmax_offset(xmax);
        }
        let in_use = t.xmax_offset() != 0;
        let mask = t.infomask();
        t.set_infomask(if in_use { mask } else { mask | XMAX_INVALID });
        t.set_infomask2(mask2);
        verdicts.push(Some(match &flags[..1] {
            "D" => Verdict::Dead,
            "M" => Verdict::Middle,
            "R" => Verdict::RecentlyDead,
            "L" => Verdict::Live,
            "i" => Verdict::InsertInProgress,
            "d" => Verdict::DeleteInProgress,
            other => panic!("verdict {other}"),
        }));
    }
    (page, verdicts)
}

fn plan_with(text: &str, options: PruneOptions) -> (Box<Page>, PrunePlan, PageFindings) {
    let (page, verdicts) = page_of(text);
    let mut judge = |o: OffsetNumber, _: TupleView<'_>| Ok(verdicts[usize::from(o.0)].unwrap());
    let (plan, found) = plan_prune(&page, base::BlockNumber(0), &mut judge, &options).unwrap();
    (page, plan, found)
}

const NO_FREEZE: FreezePolicy = FreezePolicy {
    freeze_limit: Xid(0),
    oldest_xmin: Xid(500),
    early: FreezeEarly::Never,
    still_changing_from: Xid::MAX,
    at_will: false,
};
pub(super) const OPTIONS: PruneOptions = PruneOptions {
    prune: true,
    no_indexes: false,
    freeze: NO_FREEZE,
    map_bits: Some(0),
    kept_attributes: ALL_KEPT,
};

/// What a page becomes, in the words it was drawn with.
fn pruned(text: &str) -> String {
    let (mut page, plan, _) = plan_with(text, OPTIONS);
    apply_prune(&mut page, &plan);
    page.verify().unwrap();
    let draw = |o: OffsetNumber| match page.item_id(o).state() {
        ItemState::Unused => "-".to_owned(),
        ItemState::Dead => "x".to_owned(),
        ItemState::Redirect => format!("={}", page.item_id(o).redirect_target()),
        ItemState::Normal => "t".to_owned(),
    };
    page.offsets().map(draw).collect::<Vec<_>>().join(" ")
}

#[test]
fn chains() {
    for (before, after) in [
        ("L", "t"),
        ("D", "x"),
        ("R", "t"),
        ("i d L", "t t t"),
        // A chain with a dead beginning becomes a redirect to its first survivor.
        ("D>2 Lh", "=2 t"),
        ("D>2 Dh>3 Lh", "=3 - t"),
        ("=2 Dh>3 Lh", "=3 - t"),
        ("=2 Lh", "=2 t"),
        // All dead: the root stays for its index entries.
        ("D>2 Dh>3 Dh", "x - -"),
        ("=2 Dh", "x -"),
        // From the middle of a chain too.
        ("R>2 Dh>3 Rh>4 Lh", "t - t t"),
        ("R>2 Mh>3 Mh>4 Lh", "t - - t"),
        ("R>2 Mh>3 Rh>4 Mh>5 Lh", "t - t - t"),
        ("=2 Mh>3 Mh>4 Lh", "=4 - - t"),
        ("M>2 Mh>3 Lh", "=3 - t"),
        ("M>2 Mh", "x -"),
        ("R>2 Mh>3 Mh", "t - -"),
        ("R>2 Lh", "t t"),
        // Heap-only versions of aborted updates belong to no chain.
        ("L Dh", "t -"),
        ("L>2 Dh", "t -"),
        ("- x L", "- x t"),
        ("D>3 L Lh", "=3 t t"),
        // The successor's line pointer was reused, for another row or another row's version: the chain ends before it.
        ("D>2 L R", "x t t"),
        ("D>3/950 R>3 Lh", "x t t"),
        // Damage: two chains lead to one version.
        ("D>3 D>3 Lh", "=3 x t"),
        // Another row went to this line pointer of another page, by the same transaction.
        ("R~7.3/103 R>3 Lh", "t t t"),
        ("D~7.3/103 R>3 Lh", "x t t"),
        // A redirect to nothing goes, alone on its page or not.
        ("=2 -", "x -"),
        ("=2 - L", "x - t"),
        ("=2 - R>4 Lh", "x - t t"),
    ] {
        assert_eq!(pruned(before), after, "{before}");
    }
}

#[test]
fn dead_line_pointers_keep_the_last_versions_key() {
    let desc = TupleDesc::new(vec![PhysicalAttr::new(8, 8)]);
    for (text, from) in [("D L", 1), ("D>2 Dh>3 Dh L", 3), ("=2 Dh", 2)] {
        let (mut page, mut plan, _) = plan_with(text, OPTIONS);
        plan.keep_keys(&page, &Arc::new(desc.clone().into()), ALL_KEPT);
        page.item_mut(OffsetNumber(from))[24..].copy_from_slice(&[7; 8]);
        apply_prune(&mut page, &plan);
        page.verify().unwrap();
        assert_eq!(crate::check::check_page(&page, base::BlockNumber(0)), []);
        let dead = OffsetNumber(1);
        assert!(page.item_id(dead).is_dead());
        let mut out = [None];
        page::tuple::deform_stub(page.item(dead), &desc, &mut out).unwrap();
        assert_eq!(out, [Some(AttrValue::Inline(&[7; 8]))]);
        assert_eq!(page.wasted_space(), 0);
        // The reap wins the bytes if it may move what is there, else the next pruning does.
        for sole_pin in [true, false] {
            let mut page = page.clone();
            let plan = plan_reap(&page, &[dead], sole_pin);
            apply_prune(&mut page, &plan);
            page.verify().unwrap();
            assert!(page.item_id(dead).is_unused());
            assert_eq!(page.wasted_space(), if sole_pin { 0 } else { 16 });
            if !sole_pin {
                assert_eq!(page.prune_xid(), Xid::BOOTSTRAP);
                let mut judge = |_: OffsetNumber, _: TupleView<'_>| Ok(Verdict::Live);
                let (plan, _) =
                    plan_prune(&page, base::BlockNumber(0), &mut judge, &OPTIONS).unwrap();
                assert!(plan.compact && plan.needs_cleanup_lock() && !plan.removes());
                apply_prune(&mut page, &plan);
                assert_eq!(page.wasted_space(), 0);
            }
        }
    }
}

#[test]
fn without_indexes_dead_roots_are_free_at_once() {
    let options = PruneOptions { no_indexes: true, ..OPTIONS };
    let (_, plan, found) = plan_with("D L D>4 Dh", options);
    assert_eq!(plan.dead, []);
    assert_eq!(plan.unused, [OffsetNumber(1), OffsetNumber(3), OffsetNumber(4)]);
    assert_eq!((found.removed_tuples, found.live_tuples), (3, 1));
    assert!(found.all_visible);
    // So are their places in the list of line pointers.
    for text in ["L D", "L D>3 Dh", "L x"] {
        let (mut page, plan, _) = plan_with(text, options);
        apply_prune(&mut page, &plan);
        assert_eq!(page.item_count(), 1, "{text}");
    }
}

/// Nobody else ever would: the last index was dropped while they were there.
#[test]
fn without_indexes_dead_line_pointers_of_before_are_free() {
    let options = PruneOptions { no_indexes: true, ..OPTIONS };
    let (mut page, plan, found) = plan_with("x L D x", options);
    assert_eq!(plan.dead, []);
    assert_eq!(plan.unused, [OffsetNumber(1), OffsetNumber(3), OffsetNumber(4)]);
    assert_eq!((found.removed_tuples, found.live_tuples), (1, 1));
    assert!(found.dead_items.is_empty() && found.all_visible);
    apply_prune(&mut page, &plan);
    assert_eq!((page.item_count(), page.wasted_space()), (2, 0));
    // A page in use is only looked at.
    let (_, plan, found) = plan_with("x L", PruneOptions { prune: false, ..options });
    assert!(plan.is_empty() && found.dead_items == [OffsetNumber(1)]);
}

#[test]
fn without_the_cleanup_lock_nothing_goes() {
    let options = PruneOptions { prune: false, ..OPTIONS };
    let (_, plan, found) = plan_with("D L x", options);
    assert!(!plan.removes());
    assert_eq!(
        (found.recently_dead_tuples, found.dead_items.as_slice()),
        (1, &[OffsetNumber(3)][..])
    );
    assert!(!found.all_visible_but_dead_items);
    // A dead row may never have been: frozen it would come to life.
    let freeze = FreezePolicy { freeze_limit: Xid(300), ..NO_FREEZE };
    let (_, plan, found) = plan_with("D L", PruneOptions { freeze, ..options });
    assert_eq!(plan.freeze.iter().map(|f| f.offset.0).collect::<Vec<_>>(), [2]);
    assert_eq!(found.oldest_unfrozen, Xid(101));
    // What leads to nothing leads there still: the page cannot be cut off.
    let (_, _, found) = plan_with("=2 -", options);
    assert!(found.in_use && found.has_tuples);
}

#[test]
fn a_page_is_all_visible_if_all_of_it_was_there_before_every_snapshot() {
    let seen = |oldest_xmin, text| {
        let freeze = FreezePolicy {
            oldest_xmin: Xid(oldest_xmin),
            freeze_limit: Xid(oldest_xmin),
            ..NO_FREEZE
        };
        let (_, plan, found) = plan_with(text, PruneOptions { freeze, ..OPTIONS });
        assert_eq!(plan.visibility & visibility::ALL_VISIBLE != 0, found.all_visible);
        (found.all_visible, plan.freeze.len())
    };
    assert_eq!(seen(103, "L L"), (true, 2));
    // The horizon's own transaction may be running, or have been when the oldest snapshot was taken.
    assert_eq!(seen(102, "L L"), (false, 1));
    for text in ["L d", "L i", "L R"] {
        assert!(!seen(500, text).0, "{text}");
    }
}

#[test]
fn what_is_missing_of_the_bits_is_set() {
    let both = visibility::ALL_VISIBLE | visibility::ALL_FROZEN;
    let early = FreezePolicy { early: FreezeEarly::Always, ..NO_FREEZE };
    let (mut page, plan, _) = plan_with("L", PruneOptions { freeze: early, ..OPTIONS });
    apply_prune(&mut page, &plan);
    let bits = |page: &Page, freeze, now| {
        let options = PruneOptions { freeze, map_bits: Some(now), ..OPTIONS };
        let mut live = |_: OffsetNumber, _: TupleView<'_>| Ok(Verdict::Live);
        plan_prune(page, base::BlockNumber(0), &mut live, &options).unwrap().0.visibility
    };
    assert_eq!(bits(&page, NO_FREEZE, both), 0);
    assert_eq!(bits(&page, NO_FREEZE, 1), both);
    // The page's own flag, whatever the map says; of that nothing is taken back.
    page.set_all_visible(false);
    assert_eq!(bits(&page, NO_FREEZE, both), both);
    let changing = FreezePolicy { still_changing_from: Xid(0), at_will: true, ..NO_FREEZE };
    assert_eq!((bits(&page, changing, 0), bits(&page, changing, both)), (1, both));
}

#[test]
fn a_deleter_that_rolled_back_goes_with_his_traces() {
    let freeze = |limit, text| {
        let freeze = FreezePolicy { freeze_limit: Xid(limit), ..NO_FREEZE };
        plan_with(text, PruneOptions { freeze, ..OPTIONS })
    };
    // By its own age.
    assert_eq!(freeze(50, "L/50").1.freeze.len(), 0);
    assert_eq!(freeze(51, "L/50").1.freeze.len(), 1);
    // He had updated the row; the next line pointer is another's by now.
    let (mut page, plan, _) = freeze(300, "L>2/50 L");
    let first = OffsetNumber(1);
    let mask2 = page.tuple(first).infomask2() | page::tuple::KEYS_UPDATED;
    page.tuple_mut(first).set_infomask2(mask2);
    apply_prune(&mut page, &plan);
    let tuple = page.tuple(first);
    assert_eq!((tuple.xmin(), tuple.xmax()), (Xid::FROZEN, Xid::INVALID));
    assert_eq!(tuple.infomask2() & (HOT_UPDATED | page::tuple::KEYS_UPDATED), 0);
    assert_ne!(tuple.infomask() & XMAX_INVALID, 0);
}

#[test]
fn the_reap_frees_nothing_but_dead_line_pointers() {
    let (mut page, _) = page_of("L x =1 - x");
    let plan = plan_reap(&page, &[1, 2, 3, 4].map(OffsetNumber), true);
    assert_eq!(plan.unused, [OffsetNumber(2)]);
    apply_prune(&mut page, &plan);
    assert!(page.item_id(OffsetNumber(1)).is_normal());
}

#[test]
fn a_hint_that_does_not_fit_the_page_asks_for_a_look() {
    let (mut page, _) = page_of("R");
    let plan = PrunePlan { prune_xid: Xid(1 << 40), ..PrunePlan::default() };
    apply_prune(&mut page, &plan);
    assert_eq!(page.prune_xid(), Xid::BOOTSTRAP);
}

#[test]
fn freezing_goes_by_its_limit() {
    let freeze = |limit: u64, all: bool, text| {
        let early = if all { FreezeEarly::Always } else { FreezeEarly::Never };
        let freeze = FreezePolicy { freeze_limit: Xid(limit), early, ..NO_FREEZE };
        plan_with(text, PruneOptions { freeze, ..OPTIONS })
    };
    // Nothing old enough.
    let (_, plan, found) = freeze(101, false, "L L");
    assert!(plan.freeze.is_empty());
    assert_eq!(found.oldest_unfrozen, Xid(101));
    assert_eq!((found.all_visible, found.all_frozen), (true, false));
    assert_eq!(plan.visibility, visibility::ALL_VISIBLE);
    // One old enough freezes the page.
    let (mut page, plan, found) = freeze(102, false, "L L");
    assert_eq!(plan.freeze.len(), 2);
    assert_eq!((found.all_frozen, found.oldest_unfrozen), (true, Xid::INVALID));
    apply_prune(&mut page, &plan);
    assert!(page.is_all_visible());
    assert_eq!(page.tuple(OffsetNumber(2)).xmin(), Xid::FROZEN);
    // All or nothing, where that is asked for.
    assert_eq!(freeze(0, true, "L L").1.freeze.len(), 2);
    assert_eq!(freeze(0, true, "L R").1.freeze.len(), 0);
    // What stays unfrozen holds the limit back.
    let (_, plan, found) = freeze(150, false, "L R d i");
    assert_eq!(plan.freeze.len(), 3);
    assert_eq!(found.oldest_unfrozen, Xid(104));
    assert_eq!(plan.visibility, 0);
    // So does who deleted it, were it by an older transaction, or the only one that is left.
    assert_eq!(freeze(150, false, "L R").2.oldest_unfrozen, Xid(999));
    assert_eq!(freeze(0, false, "L R/50").2.oldest_unfrozen, Xid(50));
    assert_eq!(freeze(0, false, "L R/0 d/40 L").2.oldest_unfrozen, Xid(40));
    // Dead line pointers keep the bits off, but the reap will know.
    let (_, plan, found) = freeze(150, false, "L x");
    assert_eq!(plan.visibility, 0);
    assert!(found.all_frozen_but_dead_items && !found.all_frozen);
}

#[test]
fn a_page_is_frozen_early_when_its_record_is_written_anyway() {
    let freeze = |map_bits, still_changing_from: u64, text| {
        let early = FreezeEarly::WhenLogged;
        let still_changing_from = Xid(still_changing_from);
        let freeze = FreezePolicy { early, still_changing_from, ..NO_FREEZE };
        let (_, plan, found) = plan_with(text, PruneOptions { freeze, map_bits, ..OPTIONS });
        assert_eq!(plan.visibility & visibility::ALL_FROZEN != 0, found.all_frozen);
        plan.freeze.len()
    };
    // It becomes all-visible, or something goes.
    assert_eq!(freeze(Some(0), u64::MAX, "L L"), 2);
    assert_eq!(freeze(Some(visibility::ALL_VISIBLE), u64::MAX, "L D L"), 2);
    // No record otherwise; not all-frozen afterwards; changed of late.
    assert_eq!(freeze(Some(visibility::ALL_VISIBLE), u64::MAX, "L L"), 0);
    assert_eq!(freeze(Some(0), u64::MAX, "L R"), 0);
    assert_eq!((freeze(Some(0), 103, "L L"), freeze(Some(0), 102, "L L")), (2, 0));
}

#[test]
fn on_a_page_that_goes_on_changing_only_what_is_too_old_is_frozen() {
    let still_changing_from = Xid(103);
    let freeze = FreezePolicy { freeze_limit: Xid(102), still_changing_from, ..NO_FREEZE };
    let (_, plan, found) = plan_with("L L L", PruneOptions { freeze, ..OPTIONS });
    assert_eq!(plan.freeze.iter().map(|f| f.offset.0).collect::<Vec<_>>(), [1]);
    assert_eq!((found.all_frozen, found.oldest_unfrozen), (false, Xid(102)));
    assert_eq!(plan.visibility, visibility::ALL_VISIBLE);
    let (_, plan, found) = plan_with("L L R/50", PruneOptions { freeze, ..OPTIONS });
    assert_eq!((plan.freeze.len(), found.oldest_unfrozen), (1, Xid(50)));
    // All of it is too old: the page is frozen whole.
    let freeze = FreezePolicy { freeze_limit: Xid(104), ..freeze };
    let (_, plan, found) = plan_with("L L L", PruneOptions { freeze, ..OPTIONS });
    assert_eq!((plan.freeze.len(), found.all_frozen), (3, true));
}

#[test]
fn a_page_that_goes_on_changing_need_not_be_frozen_before_its_time() {
    let freeze = |limit, map_bits, text| {
        let still_changing_from = Xid(103);
        let freeze = FreezePolicy {
            freeze_limit: Xid(limit),
            still_changing_from,
            at_will: true,
            ..NO_FREEZE
        };
        let (_, plan, found) =
            plan_with(text, PruneOptions { freeze, map_bits: Some(map_bits), ..OPTIONS });
        (plan.freeze.len(), found.all_frozen)
    };
    let visible = visibility::ALL_VISIBLE;
    // By the row, in a record that is written anyway.
    assert_eq!(freeze(102, 0, "L L L"), (1, false));
    assert_eq!(freeze(102, visible, "L L L"), (0, false));
    assert_eq!(freeze(102, visible, "L L L D"), (1, false));
    // As a whole only if it has been left alone.
    assert_eq!(freeze(104, 0, "L L L"), (0, false));
    assert_eq!(freeze(102, visible, "L"), (1, true));
}

#[test]
fn a_page_that_goes_on_changing_is_not_called_all_frozen_for_having_its_rows_frozen() {
    let always = FreezePolicy { early: FreezeEarly::Always, ..NO_FREEZE };
    let (mut page, plan, _) = plan_with("L L", PruneOptions { freeze: always, ..OPTIONS });
    apply_prune(&mut page, &plan);
    for (at_will, still_changing_from) in [(true, 0), (true, 900), (false, 0)] {
        let still_changing_from = Xid(still_changing_from);
        let freeze = FreezePolicy { still_changing_from, at_will, ..NO_FREEZE };
        let options = PruneOptions { freeze, ..OPTIONS };
        let mut live = |_: OffsetNumber, _: TupleView<'_>| Ok(Verdict::Live);
        let (plan, found) = plan_prune(&page, base::BlockNumber(0), &mut live, &options).unwrap();
        let left_alone = still_changing_from == Xid(900);
        assert_eq!((found.all_visible, found.all_frozen), (true, left_alone || !at_will));
        assert_eq!((plan.freeze.len(), found.oldest_unfrozen), (0, Xid::INVALID));
    }
}

#[test]
fn what_goes_tells_of_a_change_too() {
    let freeze = |still_changing_from: u64| {
        let early = FreezeEarly::WhenLogged;
        let still_changing_from = Xid(still_changing_from);
        let freeze = FreezePolicy { early, still_changing_from, ..NO_FREEZE };
        let options = PruneOptions { freeze, no_indexes: true, ..OPTIONS };
        plan_with("L D", options).1.freeze.len()
    };
    assert_eq!((freeze(999), freeze(1000)), (0, 1));
}

#[test]
fn neighbours_frozen_alike_take_one_run() {
    let freeze = FreezePolicy { freeze_limit: Xid(300), ..NO_FREEZE };
    let text = "L ".repeat(100);
    let (_, plan, _) = plan_with(&text, PruneOptions { freeze, ..OPTIONS });
    assert_eq!(plan.freeze.len(), 100);
    let bytes = crate::record::encode_plan(&plan);
    assert!(bytes.len() < 40, "{}", bytes.len());
    assert_eq!(crate::record::decode_plan(&bytes, base::BlockNumber(0)).unwrap(), plan);
}

/// All rows have one key of fixed length.
fn one_number() -> Arc<StubDesc> {
    Arc::new(TupleDesc::new(vec![PhysicalAttr::new(8, 8)]).into())
}

#[test]
fn a_plan_survives_its_record() {
    let freeze = FreezePolicy { freeze_limit: Xid(300), ..NO_FREEZE };
    let runs = "D D D D D D D L D D D D>13 Dh>14 Dh>15 Dh>16 Lh";
    for text in ["D>2 Dh>3 Lh D L", "L", "R>2 Dh>3 Rh>4 Lh x", runs] {
        let (_, plan, _) = plan_with(text, PruneOptions { freeze, ..OPTIONS });
        let bytes = crate::record::encode_plan(&plan);
        // What keeps nothing need not say of what.
        let without = PrunePlan { kept: Vec::new(), ..plan.clone() };
        assert_eq!(crate::record::decode_plan(&bytes, base::BlockNumber(0)).unwrap(), without);
        let mut plan = plan;
        let (page, _) = page_of(text);
        plan.keep_keys(&page, &one_number(), ALL_KEPT);
        let bytes = crate::record::encode_plan(&plan);
        assert_eq!(crate::record::decode_plan(&bytes, base::BlockNumber(0)).unwrap(), plan);
        assert!(text != runs || bytes.len() < 60, "{}", bytes.len());
        for cut in 0..bytes.len() {
            assert!(crate::record::decode_plan(&bytes[..cut], base::BlockNumber(0)).is_err());
        }
    }
}

/// Logs of before have heads of fixed length.
#[test]
fn a_record_of_before_is_read() {
    for text in ["D>2 Dh>3 Lh D L", "L", "R>2 Dh>3 Rh>4 Lh x"] {
        let (_, mut plan, _) = plan_with(text, OPTIONS);
        plan.kept.clear();
        plan.conflict_horizon = Xid(1 << 40);
        let bytes = crate::record::encode_plan(&plan);
        let mut fixed = bytes[..2].to_vec();
        fixed.extend_from_slice(&plan.conflict_horizon.0.to_le_bytes());
        fixed.extend_from_slice(&plan.prune_xid.0.to_le_bytes());
        let mut rest = crate::record::Decoder(&bytes[2..]);
        let head = [rest.number().unwrap(), rest.number().unwrap()];
        assert_eq!(head, [plan.conflict_horizon.0, plan.prune_xid.0]);
        for _ in 0..4 {
            fixed.extend_from_slice(&(rest.number().unwrap() as u16).to_le_bytes());
        }
        fixed.extend_from_slice(rest.0);
        let record = |info, data: &[u8]| wal::Record {
            lsn: base::Lsn(8),
            end_lsn: base::Lsn(16),
            xid: Xid::INVALID,
            rmgr: wal::ResourceManager::Heap,
            info,
            data: data.to_vec(),
            blocks: Vec::new(),
        };
        for (info, data) in [(crate::record::PRUNE, &bytes), (crate::record::PRUNE_FIXED, &fixed)] {
            let record = record(info, data);
            assert_eq!(crate::record::plan_of(&record, base::BlockNumber(0)).unwrap(), plan);
            assert!(crate::record::describe(&record).starts_with("PRUNE"));
        }
    }
}

#[test]
fn the_record_says_how_much_each_keeps() {
    let (_, mut plan, _) = plan_with("D D D L", OPTIONS);
    for (kept, len) in plan.kept.iter_mut().zip([8, 3, 8]) {
        kept.size = StubSize { natts: 1, len };
    }
    let bytes = crate::record::encode_plan(&plan);
    assert_eq!(crate::record::decode_plan(&bytes, base::BlockNumber(0)).unwrap(), plan);
}

/// Rows of a number, a payload and another number, of which the two numbers are keys.
#[test]
fn keys_with_a_payload_between_them_are_kept_and_logged() {
    let attrs = [(8, 8), (-1, 4), (4, 4)].map(|(l, a)| PhysicalAttr::new(l, a));
    let desc = TupleDesc::new(attrs.to_vec());
    let stubs = StubDesc::new(desc.clone(), |i| if i == 1 { Wanted::No } else { Wanted::Key });
    let mut page = Page::new_zeroed();
    page.init(0);
    let number = |n: u8| ([n; 8], [n; 4]);
    for (n, len) in [(1, 600), (2, 1), (3, 700), (4, 500)] {
        let ((first, last), payload) = (number(n), vec![n; len]);
        let row = form_tuple(&desc, &[Some(&first), Some(&payload), Some(&last)]);
        let at = page.add_item(&row).unwrap();
        let mut t = page.tuple_mut(at);
        t.set_xmin_offset(1);
        t.set_ctid(Tid::new(base::BlockNumber(0), at));
    }
    let mut judge = |o: OffsetNumber, _: TupleView<'_>| {
        Ok(if o.0 == 4 { Verdict::Live } else { Verdict::Dead })
    };
    let (mut plan, _) = plan_prune(&page, base::BlockNumber(0), &mut judge, &OPTIONS).unwrap();
    plan.keep_keys(&page, &Arc::new(stubs), ALL_KEPT);
    let alone: Vec<bool> = plan.kept.iter().map(|k| k.formed.is_some()).collect();
    assert_eq!(alone, [true, false, true]);
    let bytes = crate::record::encode_plan(&plan);
    let mut replayed = crate::record::decode_plan(&bytes, base::BlockNumber(0)).unwrap();
    replayed.keep_again(&page);
    assert_eq!(replayed, plan);
    for cut in 0..bytes.len() {
        assert!(crate::record::decode_plan(&bytes[..cut], base::BlockNumber(0)).is_err());
    }
    let look = |source: Option<KeySource<'_>>| {
        let mut out = [None; 3];
        source.unwrap().deform(&desc, &mut out).unwrap();
        let AttrValue::Inline(first) = out[0].unwrap() else { panic!() };
        let AttrValue::Inline(last) = out[2].unwrap() else { panic!() };
        (first.to_vec(), last.to_vec())
    };
    let wanted = |n| (number(n).0.to_vec(), number(n).1.to_vec());
    for (kept, n) in plan.kept.iter().zip(1..) {
        assert_eq!(look(kept.source(&page, &plan.stubs)), wanted(n));
    }
    apply_prune(&mut page, &plan);
    page.verify().unwrap();
    assert_eq!(crate::check::check_page(&page, base::BlockNumber(0)), []);
    for n in 1..=3 {
        let item = page.item(OffsetNumber(n.into()));
        assert_eq!(look(KeySource::of_stub(item)), wanted(n));
    }
}

/// An aborted update leads to a line pointer that another row's version has now.
#[test]
fn a_version_belongs_to_the_root_whose_chain_leads_to_it() {
    let (page, _) = page_of("L>3/950 R>3 Lh");
    assert_eq!(crate::Heap::root_of(&page, OffsetNumber(3)), Some(OffsetNumber(2)));
    assert_eq!(crate::Heap::root_of(&page, OffsetNumber(1)), Some(OffsetNumber(1)));
    // So an index that is built then leads there.
    for (text, root) in [("L>3/950 R>3 Lh", 2), ("R>3 L>3/950 Lh", 1)] {
        let roots = crate::build::roots_of(&page_of(text).0);
        assert_eq!(roots[1..], [1, 2, root].map(OffsetNumber), "{text}");
    }
}

/// A judge that may be asked once for neighbours that are alike.
struct OncePerClass(u32);

impl Judge for OncePerClass {
    fn judge(&mut self, _: OffsetNumber, tuple: TupleView<'_>) -> Result<Verdict> {
        self.0 += 1;
        let gone = tuple.xmax().is_valid() && tuple.infomask() & XMAX_INVALID == 0;
        Ok(if gone { Verdict::Dead } else { Verdict::Live })
    }
    fn holds_for_alike(&self) -> Option<u16> {
        Some(page::tuple::XMIN_COMMITTED)
    }
}

#[test]
fn neighbours_alike_are_judged_once() {
    let (mut page, _) = page_of("D D D L L x L L D D - L");
    for offset in page.offsets() {
        if page.item_id(offset).is_normal() {
            page.tuple_mut(offset).set_xmin_offset(100);
        }
    }
    let freeze = FreezePolicy { freeze_limit: Xid(300), ..NO_FREEZE };
    let options = PruneOptions { freeze, ..OPTIONS };
    let plan =
        |judge: &mut dyn Judge| plan_prune(&page, base::BlockNumber(0), judge, &options).unwrap();
    let mut alone = OncePerClass(0);
    let one_by_one = plan(&mut |o: OffsetNumber, t: TupleView<'_>| alone.judge(o, t));
    assert_eq!(alone.0, 10);
    let mut alike = OncePerClass(0);
    assert_eq!(plan(&mut alike), one_by_one);
    assert_eq!(alike.0, 4);
    assert_eq!(one_by_one.0.dead.len(), 5);
    assert_eq!(one_by_one.0.freeze.len(), 5);
    // The hints stand on all but the first of each class, which its judge sets.
    let hinted = |n| page.tuple(OffsetNumber(n)).infomask() & page::tuple::XMIN_COMMITTED != 0;
    assert!(hinted(2) && hinted(5) && hinted(8) && hinted(10) && !hinted(4));
}

/// The verdicts as drawn, and `alike`: asked once for neighbours with the same words.
struct AsDrawn {
    verdicts: Vec<Option<Verdict>>,
    alike: bool,
    look_again: Option<Xid>,
}

impl Judge for AsDrawn {
    fn judge(&mut self, offset: OffsetNumber, _: TupleView<'_>) -> Result<Verdict> {
        Ok(self.verdicts[usize::from(offset.0)].unwrap())
    }
    fn holds_for_alike(&self) -> Option<u16> {
        self.alike.then_some(0)
    }
    fn look_again(&self) -> Option<Xid> {
        self.look_again
    }
}

#[test]
fn neighbours_alike_come_to_the_same_as_one_by_one() {
    let changing = Xid(0);
    let policies = [
        NO_FREEZE,
        FreezePolicy { freeze_limit: Xid(300), ..NO_FREEZE },
        // Row by row: some are too old, others are not.
        FreezePolicy { freeze_limit: Xid(51), still_changing_from: changing, ..NO_FREEZE },
        // xmin cannot be frozen, an aborted deleter's xmax can.
        FreezePolicy { freeze_limit: Xid(60), oldest_xmin: Xid(60), ..NO_FREEZE },
    ];
    for text in [
        "L^100 L^100 L^100",
        "L/50^100 L/50^100 L/50^100 L^200",
        "R/300^100 R/300^100 R/300^100 L^100",
        "L^50 L^50 L^50 L^100 L^100",
        "d/300^100 d/300^100 i^400 i^400 i^400",
    ] {
        for freeze in policies {
            let plan = |alike| {
                let (page, verdicts) = page_of(text);
                let mut judge = AsDrawn { verdicts, alike, look_again: None };
                let options = PruneOptions { freeze, ..OPTIONS };
                plan_prune(&page, base::BlockNumber(0), &mut judge, &options).unwrap()
            };
            assert_eq!(plan(true), plan(false), "{text} {freeze:?}");
        }
    }
}

#[test]
fn what_is_kept_for_a_snapshot_is_not_worth_a_look_for_a_while() {
    for (text, hint) in [
        ("R/300", 5000),
        ("R/300 R/6000", 5000),
        ("R/6000", 6000),
        // Whoever runs ends sooner.
        ("d/300 R/200", 300),
        ("i R/200", 101),
    ] {
        let (page, verdicts) = page_of(text);
        let mut judge = AsDrawn { verdicts, alike: false, look_again: Some(Xid(5000)) };
        let plan = plan_prune(&page, base::BlockNumber(0), &mut judge, &OPTIONS).unwrap().0;
        assert_eq!(plan.prune_xid, Xid(hint), "{text}");
    }
}

#[test]
fn the_page_tells_who_has_to_end_before_it_is_worth_a_look() {
    for (text, hint) in [
        ("L", Xid::INVALID),
        ("L R", Xid(999)),
        ("L R/300 R/200 R/400", Xid(200)),
        ("L d/300", Xid(300)),
        // His rows will be dead if he rolls back.
        ("L i", Xid(102)),
        ("L i R/300", Xid(102)),
        // What goes now says nothing.
        ("L D/200 R/300", Xid(300)),
    ] {
        assert_eq!(plan_with(text, OPTIONS).1.prune_xid, hint, "{text}");
    }
}

#[test]
fn damaged_pages_do_not_panic() {
    let mut state = 12345u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..3000 {
        let (mut page, _) = page_of("D>2 Dh>3 Lh D L =3 x R>9 Lh");
        for _ in 0..1 + round % 12 {
            let at = if next() % 3 == 0 { next() % 8192 } else { next() % 96 } as usize;
            page.bytes_mut()[at] = next() as u8;
        }
        let _ = (page.verify(), page.dump());
        let _ = crate::check::check_page(&page, base::BlockNumber(0));
        let pick = next();
        let mut judge = |o: OffsetNumber, _: TupleView<'_>| {
            Ok([Verdict::Dead, Verdict::Live, Verdict::RecentlyDead]
                [(pick >> (o.0 % 32)) as usize % 3])
        };
        let freeze = FreezePolicy { freeze_limit: Xid(1 << 40), ..NO_FREEZE };
        let options = PruneOptions { freeze, ..OPTIONS };
        if let Ok((mut plan, _)) = plan_prune(&page, base::BlockNumber(0), &mut judge, &options) {
            plan.keep_keys(&page, &one_number(), ALL_KEPT);
            apply_prune(&mut page, &plan);
        }
        for offset in page.offsets() {
            let _ = crate::Heap::root_of(&page, offset);
        }
    }
}
