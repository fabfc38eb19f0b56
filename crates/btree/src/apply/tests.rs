use super::*;

struct Random(u64);
impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % n
    }
}

/// A leaf with a high key and 60 entries, of which each third is a list of two.
fn leaf() -> Bytes {
    let mut bytes: Bytes = [0; layout::SIZE];
    let mut page = PageMut(&mut bytes);
    page.init(0, layout::LEAF);
    page.set_next(BlockNumber(3));
    page.set_cycle_id(7);
    assert!(page.push(&layout::form_pivot(&[4], &[Some(&[99; 4])], None, BlockNumber(0))));
    for n in 0..60u32 {
        let mut item = Vec::new();
        let tids = [1, 2].map(|o| Tid::new(BlockNumber(n), base::OffsetNumber(o)));
        layout::form(&mut item, &[4], &[Some(&n.to_le_bytes())], tids[0]);
        let tids = if n % 3 == 0 { &tids[..] } else { &tids[..1] };
        assert!(page.push(&layout::form_posting(Item(&item), tids)));
    }
    bytes
}
fn entries(bytes: &Bytes) -> Vec<Vec<u8>> {
    layout::verify(bytes).unwrap();
    let view = PageRef(bytes);
    (1..=view.count()).map(|o| view.item(o).0.to_vec()).collect()
}

/// Both ways to say what goes do the same, whatever goes.
#[test]
fn marks_say_what_offsets_say() {
    let mut random = Random(3);
    for round in 0..2000 {
        let one_of = [1, 2, 5, 30][round % 4];
        let (mut told, mut marks) = (leaf(), leaf());
        let (mut deleted, mut updated, mut updates) = (Vec::new(), Vec::new(), 0);
        let (mut gone, mut number, mut kept) = (Gone::default(), 0, Vec::new());
        let view = PageRef(&told);
        for offset in 2..=view.count() {
            let tids: Vec<Tid> = view.item(offset).tids().collect();
            let lost: Vec<u16> =
                (0..tids.len() as u16).filter(|_| random.below(one_of) == 0).collect();
            for index in &lost {
                let at = number + usize::from(*index);
                gone.add(at..at + 1).unwrap();
            }
            number += tids.len();
            if lost.len() == tids.len() {
                deleted.push(offset);
                continue;
            } else if !lost.is_empty() {
                updates += 1;
                updated.extend([offset, lost.len() as u16]);
                updated.extend(&lost);
            }
            let stay = |(i, t): (u16, &Tid)| (!lost.contains(&i)).then_some(*t);
            let stay: Vec<Tid> = (0..).zip(&tids).filter_map(stay).collect();
            kept.push(layout::form_posting(view.item(offset), &stay));
        }
        let (mut offsets, mut bits) = (Data::new(), Data::new());
        delete(&mut offsets, &deleted, (updates, &updated), true);
        let all = one_of == 1;
        delete_marked(&mut bits, (!all).then_some(&gone), true);
        apply(&mut told, &offsets).unwrap();
        apply(&mut marks, &bits).unwrap();
        assert_eq!(entries(&told)[1..], kept);
        assert_eq!(entries(&marks), entries(&told));
        assert_eq!((PageRef(&told).cycle_id(), PageRef(&marks).cycle_id()), (0, 0));
    }
}

#[test]
fn what_does_not_fit_the_leaf_is_an_error() {
    let words = |words: &[u16]| -> Data { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let told = |rest: &[u16]| [&[DELETE, 0][..], &words(rest)].concat();
    let few = [5; 9];
    let records = [
        // Cut off.
        vec![DELETE_MARKED],
        vec![DELETE_MARKED, 0],
        // The 81st of 80 addresses; the 1,409th of any leaf; beyond any leaf.
        vec![DELETE_MARKED, 0, 10, 1],
        vec![DELETE_MARKED, 0, 175, 1, 1],
        vec![DELETE_MARKED, 0, 255, 1],
        [&[DELETE_MARKED, 0, 0][..], &[0xFF; 177]].concat(),
        // Fewer than told, none, one twice, beyond the page, not in order.
        told(&[2, 0, 5]),
        told(&[1, 0, 0]),
        told(&[2, 0, 5, 5]),
        told(&[1, 0, 62]),
        told(&[&[9, 0], &few[..]].concat()),
        told(&[9, 0, 10, 9, 8, 7, 6, 5, 4, 3, 2]),
        // The high key.
        told(&[9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        // Of a list all, more than it has, none of it, not in order; of an entry that is no list; cut off; of none.
        told(&[0, 1, 2, 2, 0, 1]),
        told(&[0, 1, 2, 1, 2]),
        told(&[0, 1, 2, 3, 0, 1, 2]),
        told(&[0, 1, 2, 2, 1, 0]),
        told(&[0, 1, 3, 1, 0]),
        told(&[0, 1, 2, 2, 0]),
        told(&[0, 1, 70, 1, 0]),
        told(&[0, 2, 5, 1, 0, 2, 1, 0]),
    ];
    for record in records {
        let mut bytes = leaf();
        assert!(apply(&mut bytes, &record).is_err(), "{record:?}");
    }
}

/// Bad bytes, on the page or in the record, are errors or nonsense, never a panic.
#[test]
fn damage_does_not_panic() {
    let mut random = Random(7);
    for round in 0..30_000u32 {
        let mut bytes: Bytes = [0; layout::SIZE];
        let mut page = PageMut(&mut bytes);
        page.init(0, layout::LEAF);
        page.set_next(BlockNumber(3));
        let high = layout::form_pivot(&[4], &[Some(&[9, 9, 9, 9])], None, BlockNumber(0));
        assert!(page.push(&high));
        let mut item = Vec::new();
        for n in 0..20u32 {
            item.clear();
            let tid = Tid::new(BlockNumber(n * 2), base::OffsetNumber(1));
            layout::form(&mut item, &[4], &[Some(&n.to_le_bytes())], tid);
            if n % 3 == 0 {
                let tids = [tid, Tid::new(BlockNumber(n * 2 + 1), base::OffsetNumber(4))];
                item = layout::form_posting(Item(&item.clone()), &tids);
            }
            assert!(page.push(&item));
        }
        let operations = [
            insert(3, &item),
            insert_posting(2, &item[..12.min(item.len())]),
            {
                let mut data = Data::new();
                delete(&mut data, &[2, 5, 7], (1, &[8, 1, 0]), true);
                data
            },
            {
                let (mut data, mut gone) = (Data::new(), Gone::default());
                gone.add(1..2 + random.below(24)).unwrap();
                delete_marked(&mut data, (round % 3 != 0).then_some(&gone), false);
                data
            },
            deduplicate(&[(3, 2), (9, 4)]),
            half_dead(BlockNumber(4)),
            unlink_child(5),
            set_deleted(5),
            set_top_parent(BlockNumber(1)),
            contents(0, BlockNumber(0), BlockNumber(1), 1, 0, std::iter::once(&item[..])),
            SplitLeft {
                first_right: 9,
                new_offset: 5,
                into_posting: round % 2 == 0,
                right: BlockNumber(7),
                cycle_id: 0,
                high_key: &high,
                new_item: &item,
            }
            .encode(),
        ];
        let mut data = operations[random.below(operations.len())].clone();
        for _ in 0..random.below(4) {
            // Mostly line pointers and headers, where it hurts.
            let at = match random.below(3) {
                0 => 24 + random.below(100),
                1 => 7800 + random.below(392),
                _ => random.below(layout::SIZE),
            };
            bytes[at] ^= 1 << random.below(8);
        }
        if random.below(2) == 0 {
            let at = random.below(data.len());
            data[at] ^= 1 << random.below(8);
        }
        let _ = apply(&mut bytes, &data);
        let _ = layout::verify(&bytes);
        let _ = layout::dump(&bytes);
    }
}
