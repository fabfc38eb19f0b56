//! # Purpose
//! What line pointers that become dead keep of their tuples ([`page::tuple::StubDesc`]), and how a record tells it.
//!
//! # WAL and replay
//! A record says of each how much of its tuple it keeps, or all that it keeps; or, where that is shorter, by which description this was decided:
//! then replay decides it again, with the same function, from the page as it was.
//!
//! # Invariants
//! What is decided depends on the description, the number of attributes and the logged bytes of the tuple alone: neither on hint bits nor on
//! what else the plan does. Of a given description it is the same for ever: logs of before are replayed by it.

use crate::prune::PrunePlan;
use crate::record::{Decoder, damaged};
use base::{OffsetNumber, Result};
use page::Page;
use page::tuple::{KeySource, StubDesc, StubSize};
use std::sync::Arc;

/// In the number of attributes that are kept: they are the keys alone, whose bytes come at the end of what is kept.
const FORMED: u16 = 1 << 15;

/// What a line pointer keeps that becomes dead.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct KeptKey {
    /// The tuple whose key it is: its own, or its chain's last.
    pub from: OffsetNumber,
    /// How much of it.
    pub size: StubSize,
    /// Its keys alone, and this is where they stand in [`PrunePlan::stubs`]: all of what is kept, `size.len` bytes.
    pub formed: Option<u16>,
}

impl KeptKey {
    /// What is kept, if it is the keys alone. `stubs` are the plan's.
    pub(crate) fn formed_in<'p>(&self, stubs: &'p [u8]) -> Option<&'p [u8]> {
        let at = usize::from(self.formed?);
        stubs.get(at..at + usize::from(self.size.len))
    }
    /// Where its keys are read. `page` is as it was when the plan was made.
    pub(crate) fn source<'p>(&self, page: &'p Page, stubs: &'p [u8]) -> Option<KeySource<'p>> {
        match self.formed_in(stubs) {
            Some(stub) => KeySource::of_stub(stub),
            None => KeySource::of_tuple(&page.tuple(self.from), self.size),
        }
    }
    /// As a record has it.
    fn attributes(&self) -> u16 {
        self.size.natts | if self.formed.is_some() { FORMED } else { 0 }
    }
}

/// By what it was decided what is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keeping {
    desc: Arc<StubDesc>,
    /// The first so many of its attributes.
    attributes: u16,
}

impl PrunePlan {
    /// Decides how much the line pointers that become dead keep: the first so many attributes of `desc`, or what indexes want of them.
    pub(crate) fn keep_keys(&mut self, page: &Page, desc: &Arc<StubDesc>, attributes: usize) {
        if attributes == 0 || self.kept.is_empty() {
            return;
        }
        let fixed = desc.keep_fixed(attributes);
        let mut differ = false;
        for kept in &mut self.kept {
            if page.item_id(kept.from).is_normal() {
                let tuple = page.tuple(kept.from);
                if let Some(size) = fixed.filter(|size| tuple.holds_plain(*size)) {
                    kept.size = size;
                    continue;
                }
                let at = self.stubs.len() as u16;
                let (size, formed) = desc.keep(&tuple, attributes, &mut self.stubs);
                (kept.size, kept.formed) = (size, formed.then_some(at));
                differ = true;
            }
        }
        if differ {
            let attributes = attributes.min(desc.desc().len()) as u16;
            self.keeping = Some(Keeping { desc: Arc::clone(desc), attributes });
        }
    }

    /// Decides it as when the plan was made, if its record said no more. `page` is as it was then.
    pub(crate) fn keep_again(&mut self, page: &Page) {
        if let Some(Keeping { desc, attributes }) = self.keeping.take() {
            self.keep_keys(page, &desc, usize::from(attributes));
        }
    }

    /// Does any of the dead keep something?
    pub(crate) fn keeps_any(&self) -> bool {
        self.kept.iter().any(|k| k.size.natts > 0)
    }
}

/// How a record tells what is kept.
pub(crate) enum Told {
    /// Nothing is.
    Nothing,
    /// How much, or what.
    Each(Vec<u8>),
    /// How it was decided.
    Again(Vec<u8>),
}

/// What is kept as record data, in the shorter way.
pub(crate) fn encode(plan: &PrunePlan) -> Told {
    if !plan.keeps_any() {
        return Told::Nothing;
    }
    let again = plan.keeping.as_ref().map(|keeping| encode_again(plan, keeping));
    let most = again.as_ref().map_or(usize::MAX, Vec::len);
    match (encode_each(plan, most), again) {
        (None, Some(again)) => Told::Again(again),
        (each, _) => Told::Each(each.unwrap_or_default()),
    }
}

/// `None`: that takes so many bytes as `most`, or more.
fn encode_each(plan: &PrunePlan, most: usize) -> Option<Vec<u8>> {
    let common = plan.kept.first().copied().unwrap_or_default();
    // Most keep as much as the first, of their own tuple.
    let as_usual = |i: usize, k: &KeptKey| {
        plan.dead[i] == k.from
            && (k.attributes(), k.size.len) == (common.attributes(), common.size.len)
    };
    let others = || plan.kept.iter().enumerate().filter(|(i, k)| !as_usual(*i, k));
    let formed = || plan.kept.iter().filter_map(|k| k.formed_in(&plan.stubs));
    let count = others().count();
    let len = 6 + 8 * count + formed().map(<[u8]>::len).sum::<usize>();
    if len >= most {
        return None;
    }
    let mut out = Vec::with_capacity(len);
    let mut put = |n: u16| out.extend_from_slice(&n.to_le_bytes());
    put(common.attributes());
    put(common.size.len);
    put(count as u16);
    for (i, kept) in others() {
        put(i as u16);
        put(kept.from.0);
        put(kept.attributes());
        put(kept.size.len);
    }
    formed().for_each(|stub| out.extend_from_slice(stub));
    Some(out)
}

fn encode_again(plan: &PrunePlan, keeping: &Keeping) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&keeping.attributes.to_le_bytes());
    keeping.desc.to_bytes(&mut out);
    let others = || (0u16..).zip(&plan.kept).filter(|(i, k)| plan.dead[usize::from(*i)] != k.from);
    let mut put = |n: u16| out.extend_from_slice(&n.to_le_bytes());
    put(others().count() as u16);
    for (i, kept) in others() {
        put(i);
        put(kept.from.0);
    }
    out
}

/// The inverse of [`Told::Each`]. The plan's dead are known.
pub(crate) fn decode_each(d: &mut Decoder<'_>, plan: &mut PrunePlan) -> Result<()> {
    let kept = |d: &mut Decoder<'_>, from| -> Result<KeptKey> {
        let (natts, len) = (d.u16()?, d.u16()?);
        let size = StubSize { natts: natts & !FORMED, len };
        Ok(KeptKey { from, size, formed: (natts & FORMED != 0).then_some(0) })
    };
    let common = kept(d, OffsetNumber(0))?;
    plan.kept = plan.dead.iter().map(|&from| KeptKey { from, ..common }).collect();
    for _ in 0..d.u16()? {
        let at = usize::from(d.u16()?);
        let from = d.offset()?;
        *plan.kept.get_mut(at).ok_or_else(damaged)? = kept(d, from)?;
    }
    for kept in plan.kept.iter_mut().filter(|k| k.formed.is_some()) {
        kept.formed = Some(u16::try_from(plan.stubs.len()).map_err(|_| damaged())?);
        plan.stubs.extend_from_slice(d.take(usize::from(kept.size.len))?);
    }
    Ok(())
}

/// The inverse of [`Told::Again`], up to [`PrunePlan::keep_again`]. The plan's dead are known.
pub(crate) fn decode_again(d: &mut Decoder<'_>, plan: &mut PrunePlan) -> Result<()> {
    let attributes = d.u16()?;
    let desc = Arc::new(StubDesc::from_bytes(&mut d.0).ok_or_else(damaged)?);
    plan.keeping = Some(Keeping { desc, attributes });
    plan.kept = plan.dead.iter().map(|&from| KeptKey { from, ..KeptKey::default() }).collect();
    for _ in 0..d.u16()? {
        let at = usize::from(d.u16()?);
        plan.kept.get_mut(at).ok_or_else(damaged)?.from = d.offset()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
