use super::*;
use crate::prune::{ALL_KEPT, FreezePolicy, PruneOptions, Verdict, apply_prune, plan_prune};
use crate::record::{decode_plan, encode_plan};
use base::{BlockNumber, Tid, Xid};
use page::tuple::{AttrValue, PhysicalAttr, TupleDesc, TupleView, Wanted, form_values};

const BLOCK: BlockNumber = BlockNumber(0);

/// A number, a payload, a text and what a predicate reads.
fn desc(payload: Wanted) -> Arc<StubDesc> {
    let attrs = [(8, 8), (-1, 4), (-1, 4), (1, 1)].map(|(l, a)| PhysicalAttr::new(l, a));
    let wanted = [Wanted::Key, payload, Wanted::Key, Wanted::Read];
    Arc::new(StubDesc::new(TupleDesc::new(attrs.to_vec()), |i| wanted[i]))
}

/// Rows whose payloads and texts are so long; a text of no length is null.
fn page_of(desc: &StubDesc, rows: &[(usize, usize)]) -> Box<Page> {
    let mut page = Page::new_zeroed();
    page.init(0);
    for (n, &(payload, text)) in (1u8..).zip(rows) {
        let number = [n; 8];
        let (payload, text) = (vec![n; payload], vec![n; text]);
        let text = if text.is_empty() { AttrValue::Null } else { AttrValue::Inline(&text) };
        let flag = AttrValue::Inline(&[1]);
        let row = [AttrValue::Inline(&number), AttrValue::Inline(&payload), text, flag];
        let at = page.add_item(&form_values(desc.desc(), &row)).unwrap();
        let mut tuple = page.tuple_mut(at);
        tuple.set_xmin_offset(1);
        tuple.set_ctid(Tid::new(BLOCK, at));
    }
    page
}

fn plan_of(
    page: &Page,
    desc: &Arc<StubDesc>,
    attributes: usize,
    goes: impl Fn(u16) -> bool,
) -> PrunePlan {
    let options = PruneOptions {
        prune: true,
        no_indexes: false,
        freeze: FreezePolicy::never(Xid(1000)),
        map_bits: None,
        kept_attributes: attributes,
    };
    let mut judge = |o: OffsetNumber, _: TupleView<'_>| {
        Ok(if goes(o.0) { Verdict::Dead } else { Verdict::Live })
    };
    let (mut plan, _) = plan_prune(page, BLOCK, &mut judge, &options).unwrap();
    plan.keep_keys(page, desc, attributes);
    plan
}

/// How long the record is; what replay makes of it is what the plan makes.
fn replayed(page: &Page, plan: &PrunePlan) -> usize {
    let bytes = encode_plan(plan);
    let mut again = decode_plan(&bytes, BLOCK).unwrap();
    again.keep_again(page);
    // What keeps nothing need not be told; what one visit has freed keeps nothing, yet its bytes are in the plan.
    if plan.keeps_any() && !plan.frees_roots {
        assert_eq!((&again.kept, &again.stubs), (&plan.kept, &plan.stubs));
    }
    let pages = [plan, &again].map(|plan| {
        let mut page = Page::from_bytes(page.bytes());
        apply_prune(&mut page, plan);
        page.verify().unwrap();
        assert_eq!(crate::check::check_page(&page, BLOCK), []);
        page
    });
    assert!(pages[0].bytes() == pages[1].bytes());
    for cut in 0..bytes.len() {
        assert!(decode_plan(&bytes[..cut], BLOCK).is_err());
    }
    bytes.len()
}

#[test]
fn the_description_is_logged_where_that_is_shorter() {
    let desc = desc(Wanted::No);
    let rows: Vec<_> = (0..40).map(|n| (100, 20 + n % 3)).collect();
    let page = page_of(&desc, &rows);
    let len = |goes: &dyn Fn(u16) -> bool| replayed(&page, &plan_of(&page, &desc, ALL_KEPT, goes));
    // One: its bytes, or a head, the attributes and how many other tuples' there are.
    let without = encode_plan(&PrunePlan { dead: vec![OffsetNumber(1)], ..Default::default() });
    assert_eq!(len(&|n| n == 1), without.len() + 2 + 2 + 4 + 2);
    // In one run: as long, were it not for that.
    assert_eq!(len(&|_| true), len(&|n| n == 1) + 2);
    // A short key that stands first takes fewer bytes.
    let key = Arc::new(StubDesc::new(desc.desc().clone(), |i| match i {
        0 => Wanted::Key,
        3 => Wanted::Read,
        _ => Wanted::No,
    }));
    let plan = plan_of(&page, &key, ALL_KEPT, |n| n == 1);
    assert!(plan.kept[0].formed.is_some() && plan.keeping.is_some());
    assert!(matches!(encode(&plan), Told::Again(_)));
    let plan = plan_of(&page, &desc, 1, |n| n == 1);
    assert!(plan.kept[0].formed.is_none());
}

#[test]
fn texts_of_any_length_need_no_words() {
    // Nothing between the keys: what is kept stands in the tuple, each of another length.
    let desc = desc(Wanted::Key);
    let rows: Vec<_> = (0..40).map(|n| (n, n * 7 % 30)).collect();
    let page = page_of(&desc, &rows);
    let plan = plan_of(&page, &desc, ALL_KEPT, |_| true);
    assert!(plan.kept.iter().all(|k| k.formed.is_none()));
    assert!(replayed(&page, &plan) < 50);
    // All alike: how much it is says less.
    let page = page_of(&desc, &[(9, 9); 5]);
    let plan = plan_of(&page, &desc, ALL_KEPT, |_| true);
    assert!(matches!(encode(&plan), Told::Each(bytes) if bytes.len() == 6));
    replayed(&page, &plan);
}

#[test]
fn replay_decides_as_before_whatever_there_is() {
    let mut state = 99u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let mut chains = 0;
    for round in 0..500 {
        let desc = desc([Wanted::No, Wanted::Read, Wanted::Key][round % 3]);
        let rows: Vec<_> = (0..1 + random(12))
            .map(|_| (random(2) * random(400), random(2) * random(280)))
            .collect();
        let mut page = page_of(&desc, &rows);
        // Some are HOT chains of two, whose last version's key is kept.
        for n in (1..rows.len() as u16).step_by(2).filter(|_| random(3) == 0) {
            let mask = page.tuple(OffsetNumber(n)).infomask2();
            let mut first = page.tuple_mut(OffsetNumber(n));
            first.set_infomask2(mask | page::tuple::HOT_UPDATED);
            first.set_xmax_offset(1);
            first.set_ctid(Tid::new(BLOCK, OffsetNumber(n + 1)));
            let mask = page.tuple(OffsetNumber(n + 1)).infomask2();
            let mut last = page.tuple_mut(OffsetNumber(n + 1));
            last.set_infomask2(mask | page::tuple::HEAP_ONLY);
        }
        let attributes = [1, 2, 3, 4, 9, ALL_KEPT][random(6)];
        let live = random(2 + rows.len()) as u16;
        let mut plan = plan_of(&page, &desc, attributes, |n| n != live);
        replayed(&page, &plan);
        chains += plan.kept.iter().zip(&plan.dead).filter(|(k, o)| k.from != **o).count();
        // Of some the entries have gone, in one visit.
        if plan.unused.is_empty() && plan.dead.len() > 1 {
            let freed = plan.dead.remove(0);
            plan.kept.remove(0);
            plan.unused.push(freed);
            plan.frees_roots = true;
            replayed(&page, &plan);
        }
    }
    assert!(chains > 50, "{chains}");
}

#[test]
fn no_record_makes_replay_fail_otherwise_than_by_an_error() {
    let desc = desc(Wanted::No);
    let rows: Vec<_> = (0..20).map(|n| (100, n % 3 * 20)).collect();
    let page = page_of(&desc, &rows);
    let plan = plan_of(&page, &desc, ALL_KEPT, |n| n % 2 == 0);
    assert!(matches!(encode(&plan), Told::Again(_)));
    let good = encode_plan(&plan);
    for at in 0..good.len() {
        for value in [0, 1, 0x7F, 0xFF] {
            let mut bytes = good.clone();
            bytes[at] = value;
            let Ok(mut plan) = decode_plan(&bytes, BLOCK) else { continue };
            plan.keep_again(&page);
            for kept in &plan.kept {
                assert!(usize::from(kept.size.len) <= 1 + page::PAGE_SIZE);
            }
        }
    }
}
