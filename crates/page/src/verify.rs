//! Checking and printing a page's general structure.

use crate::page::{HEADER_SIZE, LAYOUT_VERSION, PAGE_SIZE, Page};
use crate::{ItemState, align8};
use std::fmt::Write;

impl Page {
    /// Checks the header of a page that has been laid out: what those who read the page rely on.
    pub fn verify_header(&self) -> Result<(), String> {
        let (lower, upper, special) = (self.lower(), self.upper(), self.special());
        if !(1..=LAYOUT_VERSION).contains(&self.layout_version()) {
            return Err(format!("unknown page layout version {}", self.layout_version()));
        }
        if lower < HEADER_SIZE || lower > upper || upper > special || special > PAGE_SIZE {
            return Err(format!(
                "bad page header: lower {lower}, upper {upper}, special {special}"
            ));
        }
        if special % 8 != 0 {
            return Err(format!("special space at {special} is not aligned"));
        }
        if !(lower - HEADER_SIZE).is_multiple_of(4) {
            return Err(format!("line pointers end at {lower}, in the middle of one"));
        }
        Ok(())
    }

    /// Checks a page that has not been laid out: there is nothing on it.
    pub fn verify_new(&self) -> Result<(), String> {
        if self.is_blank() {
            return Ok(());
        }
        Err("not initialised, yet not all zeros".into())
    }

    /// Checks the header and the line pointers (not the items' insides). A page of zeros is right.
    pub fn verify(&self) -> Result<(), String> {
        if self.is_new() {
            return self.verify_new();
        }
        self.verify_header()?;
        let (upper, special) = (self.upper(), self.special());
        let mut spans = Vec::with_capacity(self.item_count());
        for offset in self.offsets() {
            let id = self.item_id(offset);
            match id.state() {
                ItemState::Unused if id.raw() != 0 => {
                    return Err(format!("unused line pointer {offset} is not zero"));
                }
                ItemState::Redirect
                    if (!id.is_empty()
                        || usize::from(id.redirect_target().0) > self.item_count()) =>
                {
                    return Err(format!("redirecting line pointer {offset} leads nowhere"));
                }
                ItemState::Normal | ItemState::Dead if !id.is_empty() => {
                    let (at, len) = (id.offset(), id.len());
                    if at % 8 != 0 || at < upper || at + len > special {
                        return Err(format!(
                            "line pointer {offset} points to bytes {at}..{} outside of the items",
                            at + len
                        ));
                    }
                    spans.push((at, at + align8(len), offset));
                }
                ItemState::Normal => return Err(format!("line pointer {offset} has no storage")),
                _ => {}
            }
        }
        spans.sort_unstable();
        if let Some(w) = spans.windows(2).find(|w| w[0].1 > w[1].0) {
            return Err(format!("items {} and {} overlap", w[0].2, w[1].2));
        }
        Ok(())
    }

    /// The header and line pointers as text, one line each.
    pub fn dump(&self) -> String {
        let mut out = String::new();
        if self.is_new() {
            return "new page\n".into();
        }
        let _ = writeln!(
            out,
            "page lsn {} flags {:#04x} lower {} upper {} special {} xid_base {} prune_xid {}",
            self.lsn(),
            self.flags(),
            self.lower(),
            self.upper(),
            self.special(),
            self.xid_base(),
            self.prune_xid()
        );
        for offset in self.offsets() {
            let id = self.item_id(offset);
            let _ = match id.state() {
                ItemState::Unused => writeln!(out, "{offset}: unused"),
                ItemState::Normal => writeln!(out, "{offset}: at {} len {}", id.offset(), id.len()),
                ItemState::Redirect => writeln!(out, "{offset}: redirect {}", id.redirect_target()),
                ItemState::Dead => writeln!(out, "{offset}: dead len {}", id.len()),
            };
        }
        out
    }

    /// A heap page as text: header, line pointers, tuple headers.
    pub fn dump_heap(&self) -> String {
        let mut out = self.dump();
        for offset in self.offsets() {
            if self.item_id(offset).is_normal() {
                let t = self.tuple(offset);
                let _ = writeln!(
                    out,
                    "  {offset}: xmin {} xmax {} cid {} ctid {} mask {:#06x} {:#06x} len {}",
                    t.raw_xmin(),
                    t.xmax(),
                    t.command_id().0,
                    t.ctid(),
                    t.infomask(),
                    t.infomask2(),
                    t.bytes.len()
                );
            }
        }
        out
    }
}
