//! Parts of random values, against the whole.

use super::*;
use crate::tree::{CallForm, Constant, Expr, TypeRef};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use types::{env::PlainEnv, oids};

/// Bytes whose reading is counted.
#[derive(Debug)]
struct Kept {
    value: Datum,
    bytes: Vec<u8>,
    read: AtomicUsize,
}

impl Kept {
    fn new(value: Datum, ty: base::Oid) -> Arc<Kept> {
        let mut bytes = Vec::new();
        types::encode(ty, &value, &mut bytes).unwrap();
        Arc::new(Kept { value, bytes, read: AtomicUsize::new(0) })
    }
    fn take_read(&self) -> usize {
        self.read.swap(0, Ordering::Relaxed)
    }
}

impl LateValue for Kept {
    fn get(&self) -> Result<&Datum> {
        self.read.fetch_add(self.bytes.len(), Ordering::Relaxed);
        Ok(&self.value)
    }
    fn read(&self) -> Result<Datum> {
        self.get().cloned()
    }
    fn is_read(&self) -> bool {
        false
    }
    fn len(&self) -> usize {
        self.bytes.len()
    }
    fn kept_len(&self) -> usize {
        77
    }
    fn is_compressed(&self) -> bool {
        true
    }
    fn len_in_row(&self) -> usize {
        18
    }
    fn slice(&self, start: usize, len: usize) -> Result<Vec<u8>> {
        let end = start.saturating_add(len).min(self.bytes.len());
        self.read.fetch_add(end - start.min(end), Ordering::Relaxed);
        Ok(self.bytes[start.min(end)..end].to_vec())
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
    /// Letters of one byte to four, in runs.
    fn text(&mut self, letters: usize) -> String {
        let mut out = String::new();
        while out.chars().count() < letters {
            let c = ['a', 'ß', '€', '😀'][self.below(4)];
            let n = 1 + self.below(40);
            out.extend(std::iter::repeat_n(c, n));
        }
        out
    }
}

/// The function's code over one column and constants.
fn code(name: &str, column: base::Oid, args: &[Datum]) -> Code {
    let ty = |d: &Datum| types::io::natural_type(d);
    let arg_types: Vec<base::Oid> = [column].into_iter().chain(args.iter().map(ty)).collect();
    let found = types::facts::procs_by_name(name).iter().find(|f| f.args == arg_types);
    let fact = found.unwrap_or_else(|| panic!("no {name}"));
    let slot = Expr::Slot { index: 0, ty: TypeRef::of(column) };
    let constant = |d: &Datum| Expr::Const(Constant { value: d.clone(), ty: TypeRef::of(ty(d)) });
    let call = Expr::Call {
        function: fact.oid.0,
        args: [slot].into_iter().chain(args.iter().map(constant)).collect(),
        arg_types: arg_types.iter().map(|t| TypeRef::of(*t)).collect(),
        ty: TypeRef::of(fact.result),
        operator: 0,
        form: CallForm::Function,
    };
    crate::code::compile(&call).unwrap()
}

fn said(code: &Code, value: Datum) -> String {
    let params = RefCell::new(Vec::new());
    let cx = EvalContext::new(&PlainEnv, &params);
    format!("{:?}", code.eval(&[value], &cx).map_err(|e| e.to_string()))
}

/// What is read of `kept`, `code` saying of it what it says of the value.
fn read_by(code: &Code, kept: &Arc<Kept>, context: &str) -> usize {
    kept.take_read();
    let late = said(code, Datum::Late(kept.clone()));
    let read = kept.take_read();
    assert_eq!(late, said(code, kept.value.clone()), "{context}");
    read
}

#[test]
fn a_part_says_what_the_whole_says() {
    let int = |n: i64| Datum::Int4(i32::try_from(n).unwrap());
    for seed in 1..60 {
        let mut dice = Dice(seed * 7919);
        let letters = [0, 1, 3, 40, 300][seed as usize % 5];
        let text = dice.text(letters);
        let (bytes, letters) = (text.len(), text.chars().count());
        let kept = Kept::new(Datum::text(&text), oids::TEXT);
        let raw = Kept::new(Datum::Bytea(Arc::from(text.as_bytes())), oids::BYTEA);
        assert_eq!(read_by(&code("octet_length", oids::TEXT, &[]), &kept, &text), 0);
        assert_eq!(read_by(&code("octet_length", oids::BYTEA, &[]), &raw, &text), 0);
        assert_eq!(read_by(&code("length", oids::BYTEA, &[]), &raw, &text), 0);
        for _ in 0..150 {
            let from = dice.below(bytes + 12) as i64 - 6;
            let n = dice.below(bytes + 6) as i64 - 3;
            let context = format!("seed {seed}: {from}, {n} of {letters} letters");
            let end = (from + n - 1).max(0) as usize;
            // Those letters, each of four bytes at most, and the rest of a letter.
            let most = |letters: usize| letters * 4 + 6;
            let substr = code("substr", oids::TEXT, &[int(from), int(n)]);
            let read = read_by(&substr, &kept, &context);
            assert!(read <= most(end) || n < 0, "{context}: {read}");
            let substr = code("substr", oids::BYTEA, &[int(from), int(n)]);
            let read = read_by(&substr, &raw, &context);
            assert!(read <= n.max(0) as usize || n < 0, "{context}: {read}");
            let left = code("left", oids::TEXT, &[int(n)]);
            let read = read_by(&left, &kept, &context);
            assert!(n < 0 || read <= most(n as usize), "{context}: {read}");
            read_by(&code("get_byte", oids::BYTEA, &[int(from)]), &raw, &context);
            let start = text.chars().take(end).chain(Some('x').filter(|_| n % 2 == 0));
            let start = Datum::text(start.collect::<String>());
            read_by(&code("starts_with", oids::TEXT, &[start]), &kept, &context);
        }
    }
}

#[test]
fn the_ends_of_numbers() {
    let text = Datum::text("wörter".repeat(50));
    let kept = Kept::new(text.clone(), oids::TEXT);
    let raw = Kept::new(Datum::Bytea(Arc::from([1u8, 2, 3].as_slice())), oids::BYTEA);
    for from in [i32::MIN, -1, 0, 1, 2, 7, i32::MAX] {
        for n in [i32::MIN, -1, 0, 1, 3, 299, 300, 301, i32::MAX] {
            let args = [Datum::Int4(from), Datum::Int4(n)];
            let context = format!("{from}, {n}");
            read_by(&code("substr", oids::TEXT, &args), &kept, &context);
            read_by(&code("substr", oids::BYTEA, &args), &raw, &context);
            read_by(&code("left", oids::TEXT, &args[1..]), &kept, &context);
        }
    }
    // Ten letters of one byte are read as ten bytes.
    let plain = Kept::new(Datum::text("a".repeat(9000)), oids::TEXT);
    let left = code("left", oids::TEXT, &[Datum::Int4(10)]);
    assert_eq!(read_by(&left, &plain, ""), 10);
    let substr = code("substr", oids::TEXT, &[Datum::Int4(5000), Datum::Int4(10)]);
    assert_eq!(read_by(&substr, &plain, ""), 5009);
}

#[test]
fn null_is_not_read_for() {
    let kept = Kept::new(Datum::text("abc"), oids::TEXT);
    let params = RefCell::new(Vec::new());
    let cx = EvalContext::new(&PlainEnv, &params);
    let row = [Datum::Late(kept.clone())];
    let slot = || Expr::Slot { index: 0, ty: TypeRef::of(oids::TEXT) };
    let test = Expr::IsNull { arg: Box::new(slot()), negated: true };
    let test = crate::code::compile(&test).unwrap();
    assert_eq!(test.eval_bool(&row, &cx).unwrap(), Some(true));
    assert!(!crate::code::compile(&slot()).unwrap().is_null(&row, &cx).unwrap());
    assert_eq!(kept.take_read(), 0);
}
