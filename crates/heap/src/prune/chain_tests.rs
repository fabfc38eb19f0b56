//! Plans for chains that lead from root to root, on pages drawn as in `tests`.

use super::tests::{OPTIONS, page_of};
use super::*;
use crate::apply::{Rebase, RebaseTo};
use page::ItemState;
use page::tuple::{CHAIN_SHORTENED, XMIN_COMMITTED, XMIN_INVALID};

struct Drawn<'a> {
    verdicts: Vec<Option<Verdict>>,
    /// Roots to which nothing leads any more from elsewhere.
    aimed: &'a [u16],
    /// A snapshot sees a version before any.
    sees_before: bool,
}

impl Judge for Drawn<'_> {
    fn judge(&mut self, offset: OffsetNumber, _: TupleView<'_>) -> Result<Verdict> {
        Ok(self.verdicts[usize::from(offset.0)].unwrap())
    }
    fn sees_before(&mut self, _: TupleView<'_>) -> Result<bool> {
        Ok(self.sees_before)
    }
    fn is_aimed(&self, root: OffsetNumber) -> bool {
        self.aimed.contains(&root.0)
    }
}

fn planned(text: &str, aimed: &[u16], sees_before: bool) -> (Box<Page>, PrunePlan, PageFindings) {
    let (page, verdicts) = page_of(text);
    let mut judge = Drawn { verdicts, aimed, sees_before };
    let (plan, found) = plan_prune(&page, BlockNumber(0), &mut judge, &OPTIONS).unwrap();
    (page, plan, found)
}

fn link(to: Tid) -> String {
    let block = if to.block.0 == 0 { String::new() } else { format!("{}.", to.block) };
    format!("{block}{}", to.offset)
}

/// What the page becomes: `t` with `>` or `~` and what it leads to, if that was changed, with `^` and the xmin that is to be there, and `!` if a
/// newer version of its HOT chain has gone. Behind a bar the roots that wait, with what they lead to.
fn drawn(text: &str, aimed: &[u16], sees_before: bool) -> String {
    let (mut page, plan, found) = planned(text, aimed, sees_before);
    let bytes = crate::record::encode_plan(&plan);
    let replayed = crate::record::decode_plan(&bytes, BlockNumber(0)).unwrap();
    assert_eq!(replayed, PrunePlan { kept: Vec::new(), ..plan.clone() }, "{text}");
    let waits = |w: &Waiting| {
        assert_eq!(w.xmin, page.tuple(w.root).raw_xmin(), "{text}");
        let next = w.next.map(|(to, xmin)| format!("~{}^{xmin}", link(to)));
        format!(" | {}{}", w.root, next.unwrap_or_default())
    };
    let waiting: String = found.waiting.iter().map(waits).collect();
    apply_prune(&mut page, &plan);
    page.verify().unwrap();
    let draw = |o: OffsetNumber| match page.item_id(o).state() {
        ItemState::Unused => "-".to_owned(),
        ItemState::Dead => "x".to_owned(),
        ItemState::Redirect => format!("={}", page.item_id(o).redirect_target()),
        ItemState::Normal if page.tuple(o).infomask2() & CHAIN_SHORTENED == 0 => "t".to_owned(),
        ItemState::Normal => {
            let tuple = page.tuple(o);
            let kind = if tuple.is_hot_updated() { '>' } else { '~' };
            let older = if kind == '~' && !tuple.is_newest() { "!" } else { "" };
            format!("t{kind}{}^{}{older}", link(tuple.ctid()), tuple.next_xmin_offset())
        }
    };
    page.offsets().map(draw).collect::<Vec<_>>().join(" ") + &waiting
}

#[test]
fn within_a_hot_chain_what_stays_names_the_version_it_leads_to() {
    for (before, after) in [
        ("R>2 Mh>3 Lh", "t>3^103 - t"),
        ("R>2 Mh>3 Rh>4 Mh>5 Lh", "t>3^103 - t>5^105 - t"),
        // The row has ended, or what came of it has been rolled back.
        ("R>2 Mh>3 Mh", "t~1^0! - -"),
        ("R>2 -", "t~1^0! -"),
        // Only the end of the chain leaves it.
        ("R>2 Mh~7.1", "t~7.1^101! -"),
    ] {
        assert_eq!(drawn(before, &[], true), after, "{before}");
    }
}

/// However often it is aimed further: what an index, made when there was a newer one, has of the row is not known by it.
#[test]
fn that_a_newer_version_has_gone_is_not_forgotten() {
    let (mut page, ..) = planned("R>2 Mh~7.1", &[], true);
    let first = OffsetNumber(1);
    let to =
        |n, hot| Link { from: first, to: Tid::new(BlockNumber(9), OffsetNumber(n)), xmin: 0, hot };
    let mut aimed = |links: Vec<Link>| {
        apply_prune(&mut page, &PrunePlan { links, ..PrunePlan::default() });
        page.tuple(first).is_newest()
    };
    assert!(!aimed(vec![to(1, false)]));
    assert!(!aimed(vec![to(2, false)]));
    let (mut page, ..) = planned("M~7.1 L", &[], true);
    let mut aimed = |links: Vec<Link>| {
        apply_prune(&mut page, &PrunePlan { links, ..PrunePlan::default() });
        page.tuple(first).is_newest()
    };
    assert!(aimed(vec![to(1, false)]) && aimed(vec![to(2, false)]));
    assert!(!aimed(vec![to(1, true)]) && !aimed(vec![to(1, false)]));
}

#[test]
fn what_is_aimed_further_names_no_command_any_more() {
    let (mut page, plan, _) = planned("R>2 Mh>3 Lh", &[], true);
    let first = OffsetNumber(1);
    let mask = page.tuple(first).infomask();
    page.tuple_mut(first).set_infomask(mask | COMBO_CID);
    apply_prune(&mut page, &plan);
    assert_eq!(page.tuple(first).infomask() & COMBO_CID, 0);
}

#[test]
fn what_is_aimed_further_still_names_its_next_version_when_the_base_moves() {
    let (mut page, plan, _) = planned("R>2 Mh>3 Lh L", &[], true);
    apply_prune(&mut page, &plan);
    page.set_prune_xid(Xid(20));
    let rebase = |n, xmin, xmax| Rebase { offset: OffsetNumber(n), xmin, xmax };
    let (keep, frozen, aborted) = (RebaseTo::Keep, RebaseTo::Frozen, RebaseTo::Aborted);
    let list = [rebase(3, keep, aborted), rebase(4, frozen, aborted)];
    assert!(crate::apply::shift_base(&mut page, Xid(50), &list));
    let tuple = |n| page.tuple(OffsetNumber(n));
    assert_eq!((page.xid_base(), page.prune_xid()), (Xid(50), Xid::BOOTSTRAP));
    assert_eq!((tuple(1).raw_xmin(), tuple(1).next_xmin()), (Xid(101), Xid(103)));
    assert_eq!((tuple(3).raw_xmin(), tuple(4).xmin()), (Xid(103), Xid::FROZEN));
    // Of the deleter and the maker that do not fit it is told what became of them.
    let list = [rebase(1, aborted, frozen), rebase(3, keep, aborted), rebase(4, frozen, aborted)];
    page.tuple_mut(OffsetNumber(1)).set_infomask(XMAX_INVALID | XMIN_COMMITTED);
    assert!(crate::apply::shift_base(&mut page, Xid(100), &list));
    let mask = page.tuple(OffsetNumber(1)).infomask();
    assert_eq!(mask, XMIN_INVALID | XMAX_COMMITTED);
}

/// What leads to it may have changed when its index entries are gone.
#[test]
fn what_is_in_the_middle_is_not_cleaned_in_one_visit() {
    for (text, can) in
        [("D L", true), ("M~7.1", false), ("=2 Mh", false), ("D R>2 Mh", false), ("D R>2 -", false)]
    {
        let (page, plan, found) = planned(text, &[], true);
        let cleaned = crate::cleaning::Planned::in_one_visit(&plan, &found, &page, None);
        assert_eq!(cleaned.is_some(), can, "{text}");
    }
}

#[test]
fn a_root_in_the_middle_waits_for_what_leads_to_it() {
    for (before, after) in [
        ("Mu~7.1", "t | 1~7.1^101"),
        ("Mu", "t | 1"),
        ("Mu>2 Mh~7.1", "t~7.1^101! - | 1~7.1^101"),
        // It does not go, and nothing has to wait, if its chain stays.
        ("Mu>2 Mh>3 Lh", "t>3^103 - t"),
        // What an insert made nothing leads to.
        ("M~7.1", "x"),
        ("M>2 Mh", "x -"),
    ] {
        assert_eq!(drawn(before, &[], true), after, "{before}");
    }
    assert_eq!(drawn("Mu~7.1 Mu~7.2", &[2], true), "t x | 1~7.1^101");
    assert_eq!(drawn("Mu>2 Mh~7.1", &[1], true), "x -");
}

#[test]
fn what_leads_to_a_root_is_aimed_past_it_if_all_is_on_the_page() {
    for (before, sees_before, after) in [
        ("R~2 Mu~3 Lu", true, "t~3^103 x t"),
        ("R~2 Mu~3 Mu~4 Lu", true, "t~4^104 x x t"),
        ("R~2 Mu~3 Mu~7.9", true, "t~7.9^109 x x"),
        ("R~2 Mu>3 Mh~4 Mu", true, "t~1^0 x - x"),
        // From a redirect's chain: what was before that nobody sees.
        ("=2 Rh~3 Mu~7.1", true, "=2 t~7.1^101 x"),
        // Somebody sees a version before the first on this page; that leads to it from elsewhere, but not past it.
        ("Ru~2 Mu~3 Lu", false, "t~3^103 x t"),
        ("Ru~2 Mu~3 Lu", true, "t t t | 2~3^103"),
        ("Mu~2 Mu~3 Lu", true, "t t t | 1~2^102 | 2~3^103"),
        // Nobody sees what was before a version that is dead to all, even if it is at a root to which something led.
        ("Du>2 Rh~3 Mu~7.1", true, "=2 t~7.1^101 x"),
        // To the same line pointer of another page, by the same transaction.
        ("R~7.2 Mu~3 Lu", true, "t t t | 2~3^103"),
        // The line pointer was reused, for another row or another row's redirect.
        ("R~2 Mu~7.1^900", false, "t t | 2~7.1^101"),
        ("R~2 =3 Mh>4 Lh", true, "t =4 - t"),
        // By a link that does not say by whom its version is made: a redirect is none, nor does a row that lives lead anywhere.
        ("R~2/0 =3 Mh~7.1", true, "t x -"),
        ("L~2/0 Mu~7.1", true, "t t | 2~7.1^101"),
    ] {
        assert_eq!(drawn(before, &[], sees_before), after, "{before}");
    }
}

#[test]
fn versions_that_lead_elsewhere_are_told_of() {
    for (text, leads_on) in [
        ("L", false),
        ("R", false),
        ("R~7.1", true),
        ("R~7.1 L D", true),
        ("R~2 Lu", true),
        ("R>2 Mh~7.1", true),
        ("R>2 Lh", false),
        ("d~7.1 i", false),
        ("D~7.1", false),
        // It waits itself, and what leads to it is elsewhere.
        ("Mu~7.1", false),
    ] {
        assert_eq!(planned(text, &[], true).2.leads_on, leads_on, "{text}");
    }
}
