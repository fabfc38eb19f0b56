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
                p.remove_many(&gone);
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
