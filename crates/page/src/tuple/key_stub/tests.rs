use super::*;
use crate::tuple::ToastPointer;
use crate::tuple::form::{PhysicalAttr, form_values};
use crate::{ItemId, Page};

fn desc(n: usize) -> TupleDesc {
    let all = [(4, 4), (-1, 4), (8, 8), (-1, 4), (2, 2)];
    TupleDesc::new(all[..n].iter().map(|&(l, a)| PhysicalAttr::new(l, a)).collect())
}

fn size_of(tuple: &TupleView<'_>, desc: &TupleDesc, attributes: usize) -> StubSize {
    stub_size(tuple, desc, attributes, &mut Values::new())
}

#[test]
fn every_cut_gives_its_values_back() {
    let long = vec![3u8; 200];
    let values = [
        AttrValue::Inline(&[1, 2, 3, 4]),
        AttrValue::Inline(b"short"),
        AttrValue::Inline(&[9; 8]),
        AttrValue::Inline(&long),
        AttrValue::Inline(&[5, 6]),
    ];
    for mask in 0..32u32 {
        let v: Vec<_> =
            (0..5).map(|i| if mask >> i & 1 == 1 { AttrValue::Null } else { values[i] }).collect();
        let tuple = form_values(&desc(5), &v);
        for keep in 1..=5 {
            let mut page = Page::new_zeroed();
            page.init(0);
            let o = page.add_item(&tuple).unwrap();
            let size = size_of(&page.tuple(o), &desc(5), keep);
            assert_eq!(size, size_of(&page.tuple(o), &desc(keep), usize::MAX));
            assert_eq!(usize::from(size.natts), keep);
            let (at, len) = page.cut_to_key(o, size).unwrap();
            page.set_item_id(o, ItemId::dead(at, len));
            page.compact();
            page.verify().unwrap();
            assert!(page.item_id(o).is_dead() && verify_stub(page.item(o)));
            let mut out = [None; 5];
            deform_stub(page.item(o), &desc(5), &mut out).unwrap();
            for i in 0..5 {
                assert_eq!(out[i], (i < keep).then_some(v[i]));
            }
            for cut in 0..len {
                let _ = deform_stub(&page.item(o)[..cut], &desc(5), &mut out);
            }
        }
    }
}

#[test]
fn what_is_too_long_is_not_kept() {
    let d = TupleDesc::new(vec![PhysicalAttr::new(-1, 4), PhysicalAttr::new(4, 4)]);
    let long = vec![3u8; 300];
    let tuple = form_values(&d, &[AttrValue::Inline(&long), AttrValue::Inline(&[1; 4])]);
    let view = TupleView { bytes: &tuple, xid_base: base::Xid(0) };
    assert_eq!(size_of(&view, &d, 2), StubSize::default());
    assert_eq!(size_of(&view, &TupleDesc::default(), 2), StubSize::default());
}

/// A key, a payload, another key.
fn with_payload() -> StubDesc {
    let all = [(8, 8), (-1, 4), (4, 4), (-1, 4)];
    let desc = TupleDesc::new(all.map(|(l, a)| PhysicalAttr::new(l, a)).to_vec());
    StubDesc::new(desc, |i| if i == 0 || i == 2 { Wanted::Key } else { Wanted::No })
}

/// What is kept of a row with these values.
fn formed(values: &[AttrValue<'_>], attributes: usize) -> Option<Vec<u8>> {
    let d = with_payload();
    let tuple = form_values(d.desc(), values);
    let mut page = Page::new_zeroed();
    page.init(0);
    let o = page.add_item(&tuple).unwrap();
    let mut out = b"before".to_vec();
    let (size, alone) = d.keep(&page.tuple(o), attributes, &mut out);
    assert_eq!(out.len(), 6 + if alone { usize::from(size.len) } else { 0 });
    if !alone {
        return None;
    }
    let (at, len) = page.put_stub(o, &out[6..]).unwrap();
    page.set_item_id(o, ItemId::dead(at, len));
    page.compact();
    page.verify().unwrap();
    Some(page.item(o).to_vec())
}

#[test]
fn keys_with_something_long_between_them_are_kept_alone() {
    let (long, longer) = (vec![3u8; 100], vec![4u8; 1000]);
    let key = |n: u8| [AttrValue::Inline(&[9; 8]), AttrValue::Inline(&[7; 4])][usize::from(n)];
    let payloads = [
        AttrValue::Inline(&long[..]),
        AttrValue::Inline(&longer[..]),
        AttrValue::Compressed { raw_size: 4000, data: &longer },
        AttrValue::External(ToastPointer::sample()),
    ];
    for payload in payloads {
        let mut out = [None; 4];
        let stub = formed(&[key(0), payload, key(1), AttrValue::Null], 3).unwrap();
        assert_eq!(stub.len(), 2 + 1 + 1 + 8 + 4);
        deform_stub(&stub, with_payload().desc(), &mut out).unwrap();
        assert_eq!(out, [Some(key(0)), None, Some(key(1)), None]);
        // A key that is null is null; of fewer attributes the first keys are kept.
        let stub = formed(&[key(0), payload, AttrValue::Null, payload], 4).unwrap();
        deform_stub(&stub, with_payload().desc(), &mut out).unwrap();
        let null = Some(AttrValue::Null);
        assert_eq!(out, [Some(key(0)), None, null, None]);
        let stub = formed(&[key(0), payload, key(1), payload], 2).unwrap();
        deform_stub(&stub, with_payload().desc(), &mut out).unwrap();
        assert_eq!(out, [Some(key(0)), None, None, None]);
    }
    // What is short is kept as it stands.
    assert_eq!(formed(&[key(0), AttrValue::Inline(b"short"), key(1), payloads[1]], 3), None);
    assert_eq!(formed(&[key(0), payloads[1], key(1), payloads[1]], 1), None);
}

#[test]
fn a_key_out_of_line_is_not_kept() {
    let d = TupleDesc::new([(-1, 4); 2].map(|(l, a)| PhysicalAttr::new(l, a)).to_vec());
    let tuple = form_values(
        &d,
        &[AttrValue::Inline(&[1; 300]), AttrValue::External(ToastPointer::sample())],
    );
    let view = TupleView { bytes: &tuple, xid_base: base::Xid(0) };
    let d = StubDesc::new(d, |i| if i == 1 { Wanted::Key } else { Wanted::No });
    let mut out = Vec::new();
    assert_eq!(d.keep(&view, 2, &mut out), (StubSize::default(), false));
    assert!(out.is_empty());
}

/// What is kept of a row with these values, taken apart.
fn kept<'s>(
    d: &StubDesc,
    values: &[AttrValue<'_>],
    attributes: usize,
    stub: &'s mut Vec<u8>,
) -> Vec<Option<AttrValue<'s>>> {
    let tuple = form_values(d.desc(), values);
    let mut page = Page::new_zeroed();
    page.init(0);
    let o = page.add_item(&tuple).unwrap();
    let mut formed = Vec::new();
    let (size, alone) = d.keep(&page.tuple(o), attributes, &mut formed);
    assert_eq!(alone, !formed.is_empty());
    let cut = match alone {
        true => page.put_stub(o, &formed),
        false => page.cut_to_key(o, size),
    };
    let Some((at, len)) = cut else { return Vec::new() };
    page.set_item_id(o, ItemId::dead(at, len));
    page.compact();
    page.verify().unwrap();
    stub.clear();
    stub.extend_from_slice(page.item(o));
    let mut out = vec![None; d.desc().len()];
    deform_stub(stub, d.desc(), &mut out).unwrap();
    out
}

/// A key, something long, what a predicate reads, a key, what an expression reads.
#[test]
fn what_is_read_is_kept_if_there_is_room() {
    use Wanted::{Key, No, Read};
    let all = [(4, 4), (-1, 4), (1, 1), (4, 4), (-1, 4)];
    let desc = TupleDesc::new(all.map(|(l, a)| PhysicalAttr::new(l, a)).to_vec());
    let d = StubDesc::new(desc, |i| [Key, No, Read, Key, Read][i]);
    let (long, longer) = (vec![3u8; 100], vec![4u8; 300]);
    let [first, flag, last, null] = [
        AttrValue::Inline(&[9; 4]),
        AttrValue::Inline(&[1]),
        AttrValue::Inline(&[7; 4]),
        AttrValue::Null,
    ];
    let [long, longer] = [&long, &longer].map(|v| AttrValue::Inline(v));
    let compressed = AttrValue::Compressed { raw_size: 4000, data: b"some" };
    let out_of_line = AttrValue::External(ToastPointer::sample());
    let short = AttrValue::Inline(b"a@b");
    let mut stub = Vec::new();
    let some = Some;
    // Nothing long: as it stands, nulls are nulls.
    let row = [first, short, null, last, null];
    assert_eq!(kept(&d, &row, 9, &mut stub), row.map(some));
    // What nobody asks for is left out, and is not null.
    for payload in [long, longer, compressed, out_of_line, null] {
        let row = [first, payload, flag, last, long];
        // (Nothing is gained by leaving out a null.)
        let left_out = (payload == null).then_some(null);
        let want = [some(first), left_out, some(flag), some(last), some(long)];
        assert_eq!(kept(&d, &row, 9, &mut stub), want);
        // A null that is asked for is one.
        let row = [first, payload, null, null, long];
        let want = [some(first), left_out, some(null), some(null), some(long)];
        assert_eq!(kept(&d, &row, 9, &mut stub), want);
        // Of what is read the part that is in line is kept.
        for out_of_reach in [compressed, out_of_line] {
            let row = [first, payload, flag, last, out_of_reach];
            let got = kept(&d, &row, 9, &mut stub);
            // (A payload that takes hardly any room stays where it is.)
            assert_eq!([got[0], got[2], got[3]], [some(first), some(flag), some(last)]);
            assert!(got[4].is_none() || got[4] == some(compressed));
        }
        // Too long: the keys.
        let row = [first, payload, flag, last, longer];
        let want = match payload {
            AttrValue::Null | AttrValue::Compressed { .. } => {
                [some(first), some(payload), some(flag), some(last), None]
            }
            _ => [some(first), None, None, some(last), None],
        };
        assert_eq!(kept(&d, &row, 9, &mut stub), want, "{payload:?}");
    }
    // A key out of line: nothing.
    let all_read = StubDesc::new(d.desc().clone(), |i| if i == 1 { Key } else { Read });
    assert_eq!(kept(&all_read, &[first, out_of_line, flag, last, short], 9, &mut stub), []);
    // Only what is read, out of line: nothing.
    let d = StubDesc::new(d.desc().clone(), |i| if i == 1 { Read } else { No });
    assert_eq!(kept(&d, &[first, out_of_line, flag, last, short], 9, &mut stub), []);
}

/// Of a version after which there were newer ones, too, it is kept as it is or formed, that it is an older one is told.
#[test]
fn an_older_version_is_told_from_the_newest() {
    use crate::tuple::header::{CHAIN_END, CHAIN_SHORTENED, HOT_UPDATED};
    let d = with_payload();
    for payload in [&[1u8; 4][..], &[1; 200]] {
        let key = [AttrValue::Inline(&[9; 8]), AttrValue::Inline(&[7; 4])];
        let row = [key[0], AttrValue::Inline(payload), key[1], AttrValue::Null];
        let mut tuple = form_values(d.desc(), &row);
        for (mask, newest) in [
            (0, true),
            (CHAIN_SHORTENED | CHAIN_END, true),
            (CHAIN_SHORTENED, false),
            (HOT_UPDATED, false),
            (HOT_UPDATED | CHAIN_SHORTENED, false),
        ] {
            tuple[18..20].copy_from_slice(&(4 | mask).to_le_bytes());
            let mut page = Page::new_zeroed();
            page.init(0);
            let o = page.add_item(&tuple).unwrap();
            let mut formed = Vec::new();
            let (size, alone) = d.keep(&page.tuple(o), 3, &mut formed);
            assert_eq!(alone, payload.len() > 100);
            if !alone {
                let source = KeySource::of_tuple(&page.tuple(o), size).unwrap();
                assert_eq!(source.is_newest(), newest);
            }
            let (at, len) = match alone {
                true => page.put_stub(o, &formed).unwrap(),
                false => page.cut_to_key(o, size).unwrap(),
            };
            page.set_item_id(o, ItemId::dead(at, len));
            assert_eq!(KeySource::of_stub(page.item(o)).unwrap().is_newest(), newest);
        }
    }
    // One small key, without nulls; and a line pointer from before that was told.
    let one = TupleDesc::new(vec![PhysicalAttr::new(4, 4)]);
    let tuple = form_values(&one, &[AttrValue::Inline(&[5; 4])]);
    let mut page = Page::new_zeroed();
    page.init(0);
    let o = page.add_item(&tuple).unwrap();
    let (at, len) = page.cut_to_key(o, size_of(&page.tuple(o), &one, 1)).unwrap();
    page.set_item_id(o, ItemId::dead(at, len));
    assert!(KeySource::of_stub(page.item(o)).unwrap().is_newest());
    assert!(!KeySource::of_stub(&[1, 0, 5, 5, 5, 5]).unwrap().is_newest());
}

/// More attributes than a byte of the bitmaps is for.
#[test]
fn of_many_attributes_each_is_kept_for_itself() {
    let mut all = vec![PhysicalAttr::new(4, 4); 20];
    all[3] = PhysicalAttr::new(-1, 4);
    let wanted = |i| [Wanted::Read, Wanted::No, Wanted::No, Wanted::Key][(i + 1) % 4];
    let d = StubDesc::new(TupleDesc::new(all), |i| if i == 3 { Wanted::No } else { wanted(i) });
    let long = [3u8; 200];
    let mut row = [AttrValue::Null; 20];
    row[3] = AttrValue::Inline(&long);
    for some in [2, 7, 10, 19] {
        row[some] = AttrValue::Inline(&[8; 4]);
        let mut stub = Vec::new();
        let got = kept(&d, &row, 20, &mut stub);
        for (i, got) in got.into_iter().enumerate() {
            let want = i != 3 && wanted(i) != Wanted::No;
            assert_eq!(got, want.then_some(row[i]), "{i}");
        }
    }
}

/// Line pointers from before what is null was told from what is not kept.
#[test]
fn an_old_null_may_be_anything() {
    let d = desc(2);
    let mut stub = (2u16 | HAS_NULLS).to_le_bytes().to_vec();
    stub.extend_from_slice(&[1, 5, 0, 0, 0]);
    let mut out = [None; 2];
    deform_stub(&stub, &d, &mut out).unwrap();
    assert_eq!(out, [Some(AttrValue::Inline(&[5, 0, 0, 0])), None]);
    let mut stub = stub.clone();
    stub[1] |= (TRUE_NULLS >> 8) as u8;
    deform_stub(&stub, &d, &mut out).unwrap();
    assert_eq!(out, [Some(AttrValue::Inline(&[5, 0, 0, 0])), Some(AttrValue::Null)]);
}
