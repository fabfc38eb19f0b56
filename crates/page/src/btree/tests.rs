use super::*;
use base::{OffsetNumber, Tid};

fn tid(n: u32) -> Tid {
    Tid::new(BlockNumber(n / 100), OffsetNumber((n % 100) as u16 + 1))
}

#[test]
fn entries_keep_their_values() {
    let widths = [4, -1, -1];
    let long = vec![b'x'; 300];
    let values = [Some(&[1u8, 0, 0, 0][..]), None, Some(&long[..])];
    let mut out = Vec::new();
    form(&mut out, &widths, &values, tid(7));
    let item = Item(&out);
    assert_eq!(item.attributes(&widths).collect::<Vec<_>>(), values);
    assert_eq!((item.tid(), item.tid_count(), item.is_pivot()), (tid(7), 1, false));
    let posting = form_posting(item, &[tid(7), tid(9), tid(300)]);
    let posting = Item(&posting);
    assert_eq!(posting.attributes(&widths).collect::<Vec<_>>(), values);
    assert_eq!(posting.tids().collect::<Vec<_>>(), [tid(7), tid(9), tid(300)]);
    assert_eq!(posting.key_bytes(), item.key_bytes());
    let pivot = form_pivot(&widths, &values[..2], Some(tid(9)), BlockNumber(3));
    let pivot = Item(&pivot);
    assert_eq!(pivot.attributes(&widths).collect::<Vec<_>>(), values[..2]);
    assert_eq!((pivot.pivot_tid(), pivot.downlink()), (Some(tid(9)), BlockNumber(3)));
}

#[test]
fn packed_entries_keep_their_values_and_addresses() {
    let widths = [4, -1, -1];
    let long = vec![b'x'; 40_000];
    let values = [Some(&[1u8, 0, 0, 0][..]), None, Some(&long[..])];
    let mut out = Vec::new();
    form(&mut out, &widths, &values, tid(7));
    let packed = pack(Item(&out)).unwrap();
    let item = Item(&packed);
    assert!(item.is_packed() && item.is_sound() && packed.len() < 300);
    assert_eq!((item.tid(), item.tid_count(), item.has_nulls()), (tid(7), 1, true));
    assert_eq!(item.prefix(false), None);
    let of = |item: Item<'_>| {
        let plain = item.plain();
        assert!(!plain.item().is_packed());
        let values = plain.item().attributes(&widths);
        values.map(|v| v.map(<[u8]>::to_vec)).collect::<Vec<_>>()
    };
    let want: Vec<_> = values.iter().map(|v| v.map(<[u8]>::to_vec)).collect();
    assert_eq!(of(item), want);
    // Others may follow it where keys are gathered.
    let followed = [&packed[..], &out[..]].concat();
    assert_eq!(of(Item(&followed)), want);
    let posting = form_posting(item, &[tid(7), tid(9), tid(300)]);
    let posting = Item(&posting);
    assert!(posting.is_packed() && posting.has_key_of(item) && !posting.has_key_of(Item(&out)));
    assert_eq!((of(posting), posting.tid_count(), posting.max_tid()), (want.clone(), 3, tid(300)));
    assert_eq!(of(Item(&form_posting(posting, &[tid(9)]))), want);
    let pivot = packed_pivot(posting, 2, Some(tid(9)), BlockNumber(3));
    let pivot = Item(&pivot);
    assert_eq!((of(pivot), pivot.pivot_attributes()), (want[..2].to_vec(), 2));
    assert_eq!((pivot.pivot_tid(), pivot.downlink()), (Some(tid(9)), BlockNumber(3)));
    assert_eq!(pivot.plain().item().pivot_tid(), Some(tid(9)));
}

#[test]
fn damaged_packed_keys_are_noticed() {
    let widths = [-1];
    let mut out = Vec::new();
    form(&mut out, &widths, &[Some(&vec![b'x'; 40_000])], tid(7));
    let packed = pack(Item(&out)).unwrap();
    for at in 8..packed.len() {
        for bit in 0..8 {
            let mut damaged = packed.clone();
            damaged[at] ^= 1 << bit;
            // Whatever comes of it, nothing is read that is not there.
            let _ = Item(&damaged).plain().item().attributes(&widths).count();
        }
    }
    for short in [&packed[..20], &packed[..10], &packed[..packed.len() - 1]] {
        assert!(!Item(short).is_sound());
        assert_eq!(Item(short).plain().item().key_bytes(), b"");
    }
    let mut bytes = [0u8; SIZE];
    let mut p = PageMut(&mut bytes);
    p.init(0, LEAF | ROOT);
    assert!(p.push(&packed));
    verify(&bytes).unwrap();
    let at = bytes.windows(8).position(|w| w == &packed[6..14]).unwrap();
    bytes[at + 4] ^= 1;
    assert_eq!(verify(&bytes).unwrap_err(), "the packed key of entry 1 is damaged");
}

fn number(n: u16) -> std::ops::Range<usize> {
    usize::from(n)..usize::from(n) + 1
}

#[test]
fn page_insert_replace_remove() {
    let mut bytes = [0u8; SIZE];
    let mut p = PageMut(&mut bytes);
    p.init(0, LEAF | ROOT);
    let mut model: Vec<Vec<u8>> = Vec::new();
    let mut x = 12345u64;
    for round in 0..3000u32 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let r = (x >> 33) as usize;
        let mut item = Vec::new();
        form(&mut item, &[-1], &[Some(&vec![b'a'; r % 200])], tid(round));
        match r % 5 {
            0..=2 => {
                let at = r % (model.len() + 1);
                if p.insert(at as u16 + 1, &item) {
                    model.insert(at, item);
                }
            }
            3 if !model.is_empty() => {
                let at = r % model.len();
                if p.replace(at as u16 + 1, &item) {
                    model[at] = item;
                }
            }
            _ if !model.is_empty() => {
                let gone: Vec<u16> = (0..model.len())
                    .filter(|i| (r >> (i % 7)) & 3 == 0)
                    .map(|i| i as u16 + 1)
                    .collect();
                if gone.is_empty() {
                    continue;
                }
                if gone.len() <= FEW && r.is_multiple_of(2) {
                    assert!(p.remove_few(&gone));
                } else {
                    let mut all = Gone::default();
                    let first = p.as_ref().first_data();
                    gone.iter().for_each(|g| all.add(number(*g - first)).unwrap());
                    assert!(p.remove_addresses(&all));
                }
                for g in gone.iter().rev() {
                    model.remove(usize::from(*g) - 1);
                }
            }
            _ => {}
        }
        let got: Vec<Vec<u8>> =
            (1..=p.as_ref().count()).map(|o| p.as_ref().item(o).0.to_vec()).collect();
        assert_eq!(got, model);
        verify(p.0).unwrap();
    }
}

#[test]
fn damaged_pages_are_named() {
    let mut bytes = [0xFFu8; SIZE];
    assert!(verify(&bytes).is_err());
    PageMut(&mut bytes).init(0, LEAF | ROOT);
    verify(&bytes).unwrap();
    assert!(PageMut(&mut bytes).push(&[0; 12]));
    bytes[HEADER] ^= 0x55;
    assert!(verify(&bytes).is_err());
}

#[test]
fn addresses_that_are_not_there_and_entries_that_overlap_are_told() {
    let mut bytes = [0u8; SIZE];
    let mut p = PageMut(&mut bytes);
    p.init(0, LEAF);
    let mut item = Vec::new();
    form(&mut item, &[4], &[Some(&[1, 0, 0, 0])], tid(1));
    (0..40).for_each(|_| assert!(p.push(&item)));
    let page = bytes;
    for few in [0, 30] {
        let mut gone = Gone::default();
        gone.add(0..few).unwrap();
        gone.add(number(40)).unwrap();
        assert!(!PageMut(&mut bytes).remove_addresses(&gone));
        bytes = page;
    }
    let mut gone = Gone::default();
    assert_eq!(gone.add(ADDRESSES - 1..ADDRESSES + 1), None);
    assert!(!PageMut(&mut bytes).remove_addresses(&gone), "beyond the page");
    assert_eq!(Gone::from_bytes(200, &[1; 8]), None);
    bytes = page;
    // All line pointers lead to the largest entry.
    let mut gone = Gone::default();
    gone.add(0..10).unwrap();
    let lp = line_pointer(SPECIAL - 36, 36).to_le_bytes();
    bytes[HEADER..HEADER + 160].as_chunks_mut::<4>().0.fill(lp);
    assert!(!PageMut(&mut bytes).remove_addresses(&gone));
}

/// Numbers below what is asked for, always the same from a seed on.
fn random_from(mut x: u64) -> impl FnMut(usize) -> usize {
    move |n| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) as usize % n
    }
}

/// Lists lose some, all or all but one of their addresses, and plain entries go with them.
#[test]
fn posting_lists_lose_addresses() {
    let mut random = random_from(99);
    for _ in 0..2000 {
        let mut bytes = [0u8; SIZE];
        let mut p = PageMut(&mut bytes);
        p.init(0, LEAF);
        let mut model: Vec<(Vec<u8>, Vec<Tid>)> = Vec::new();
        for n in 0..random(80) as u32 {
            let key = vec![b'k'; 1 + random(40)];
            let mut item = Vec::new();
            form(&mut item, &[-1], &[Some(&key)], tid(n * 100));
            let tids: Vec<Tid> = (0..1 + random(6) as u32).map(|i| tid(n * 100 + i)).collect();
            let at = random(model.len() + 1);
            if p.insert(at as u16 + 1, &form_posting(Item(&item), &tids)) {
                model.insert(at, (key, tids));
            }
        }
        // One of so many goes; of one all do.
        let one_of = [1, 2, 3, 40][random(4)];
        let (mut all, mut n) = (Gone::default(), 0);
        for (_, tids) in &mut model {
            tids.retain(|_| {
                let goes = random(one_of) == 0;
                if goes {
                    all.add(number(n)).unwrap();
                }
                n += 1;
                !goes
            });
        }
        let mut bytes = Vec::new();
        let skip = all.to_bytes(&mut bytes);
        assert_eq!(Gone::from_bytes(skip, &bytes), Some(all));
        assert_eq!(all.numbers().count(), all.count());
        assert!(p.remove_addresses(&all));
        model.retain(|(_, tids)| !tids.is_empty());
        let got: Vec<(Vec<u8>, Vec<Tid>)> = (1..=p.as_ref().count())
            .map(|o| p.as_ref().item(o))
            .map(|i| (i.attributes(&[-1]).next().unwrap().unwrap().to_vec(), i.tids().collect()))
            .collect();
        assert_eq!(got, model);
        verify(p.0).unwrap();
    }
}

/// Integers' entries, in any order on the page and beside a high key, whose line pointers say dead or not.
#[test]
fn entries_of_one_length_go() {
    let mut random = random_from(7);
    for turn in 0..2000 {
        let mut bytes = [0u8; SIZE];
        let mut p = PageMut(&mut bytes);
        p.init(0, LEAF);
        let first = 1 + (turn % 2) as u16;
        if first == 2 {
            p.set_next(BlockNumber(9));
            let widths = [4, -1];
            let values = [Some(&[9; 4][..]), Some(&[b'h'; 30][..])];
            let values = &values[..1 + random(2)];
            assert!(p.push(&form_pivot(&widths, values, None, BlockNumber(0))));
        }
        let high = p.as_ref().high_key().map(|key| key.0.to_vec());
        let mut model: Vec<(u64, bool)> = Vec::new();
        let width = [4, 8][random(2)];
        for n in 0..random(420) as u64 {
            let mut item = Vec::new();
            form(&mut item, &[width as i16], &[Some(&n.to_le_bytes()[..width])], tid(n as u32));
            let at = random(model.len() + 1);
            if p.insert(first + at as u16, &item) {
                model.insert(at, (n, false));
            }
        }
        for (at, (_, killed)) in (first..).zip(&mut model) {
            *killed = random(5) == 0;
            if *killed {
                let place = HEADER + (usize::from(at) - 1) * 4;
                p.put_u32(place, u32_at(p.0, place) | LP_DEAD << 15);
            }
        }
        let one_of = [1, 2, 3, 40][random(4)];
        let mut gone = Gone::default();
        let mut numbers = 0..;
        model.retain(|_| {
            let n = numbers.next().unwrap();
            let goes = random(one_of) == 0;
            goes.then(|| gone.add(number(n)).unwrap());
            !goes
        });
        assert!(p.remove_addresses(&gone));
        let view = p.as_ref();
        let left: Vec<_> = (first..=view.count())
            .map(|at| {
                let mut key = [0; 8];
                let item = view.item(at);
                let value = item.attributes(&[width as i16]).next().unwrap();
                key[..width].copy_from_slice(value.unwrap());
                (u64::from_le_bytes(key), view.is_dead(at))
            })
            .collect();
        assert_eq!(left, model);
        assert_eq!(view.high_key().map(|key| key.0.to_vec()), high);
        verify(p.0).unwrap();
    }
}

/// An entry that was known dead and takes in a row is so no more, whether its length changes or not.
#[test]
fn a_replaced_entry_is_not_dead() {
    for len in [16, 12, 20] {
        let mut bytes: Bytes = [0; SIZE];
        let mut page = PageMut(&mut bytes);
        page.init(0, LEAF);
        assert!(page.push(&[1; 16]) && page.push(&[2; 16]));
        let lp = page.as_ref().line_pointer(1) | LP_DEAD << 15;
        page.0[HEADER..HEADER + 4].copy_from_slice(&lp.to_le_bytes());
        assert!(page.as_ref().is_dead(1));
        assert!(page.replace(1, &vec![3; len]));
        assert!(!page.as_ref().is_dead(1), "{len} bytes");
        assert_eq!(
            (page.as_ref().item(1).0, page.as_ref().item(2).0),
            (&vec![3; len][..], &[2; 16][..])
        );
    }
}
