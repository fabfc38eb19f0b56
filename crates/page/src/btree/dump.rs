//! Checking and printing a B-tree page.

use super::*;
use std::fmt::Write;

/// Checks what can be checked of one page alone.
///
/// # Errors
/// What is wrong.
pub fn verify(bytes: &Bytes) -> Result<(), String> {
    let p = PageRef(bytes);
    if p.is_new() {
        return Ok(());
    }
    if !p.is_sane() {
        return Err("header of B-tree page is damaged".into());
    }
    if p.has(META) {
        let m = p.meta();
        if !m.is_known() {
            return Err(format!("meta page has magic {:#x}, version {}", m.magic, m.version));
        }
        return Ok(());
    }
    if p.has(DELETED) {
        return Ok(());
    }
    if p.is_leaf() != (p.level() == 0) {
        return Err(format!("leaf flag {} on level {}", p.is_leaf(), p.level()));
    }
    let mut taken: Vec<(usize, usize)> = Vec::new();
    for offset in 1..=p.count() {
        let lp = p.line_pointer(offset);
        let (start, len) = ((lp & 0x7FFF) as usize, (lp >> 17) as usize);
        let upper = usize::from(u16_at(bytes, 28));
        if len < 8 || start < upper || start + len > SPECIAL {
            return Err(format!("line pointer {offset} points to {start}+{len}"));
        }
        if !matches!((lp >> 15) & 3, LP_NORMAL | LP_DEAD) {
            return Err(format!("line pointer {offset} has flags {}", (lp >> 15) & 3));
        }
        taken.push((start, len));
        let item = p.item(offset);
        let pivot = !p.is_leaf() || offset < p.first_data();
        if item.is_pivot() != pivot {
            return Err(format!("entry {offset} pivot: {}, expected {pivot}", item.is_pivot()));
        }
        if !item.is_sound() {
            return Err(format!("the packed key of entry {offset} is damaged"));
        }
        if item.is_posting() {
            if item.tid_count() < 2 || item.tid_count() * 6 + 8 > len {
                return Err(format!("posting list {offset} has {} addresses", item.tid_count()));
            }
            let tids: Vec<_> = item.tids().collect();
            if !tids.windows(2).all(|w| w[0] < w[1]) || tids[0] != item.tid() {
                return Err(format!("posting list {offset} is not in order"));
            }
        }
    }
    taken.sort_unstable();
    if let Some(w) = taken.windows(2).find(|w| w[0].0 + w[0].1 > w[1].0) {
        return Err(format!("entries at {} and {} overlap", w[0].0, w[1].0));
    }
    if !p.is_rightmost() && p.count() == 0 && !p.has(HALF_DEAD) {
        return Err("no high key".into());
    }
    Ok(())
}

fn flag_names(flags: u16) -> String {
    let names = [
        (LEAF, "leaf"),
        (ROOT, "root"),
        (DELETED, "deleted"),
        (META, "meta"),
        (HALF_DEAD, "half-dead"),
        (SPLIT_END, "split-end"),
        (INCOMPLETE_SPLIT, "incomplete-split"),
    ];
    let set = names.iter().filter(|(f, _)| flags & f != 0).map(|(_, n)| (*n).to_owned());
    let generation = (flags & GENERATION != 0).then(|| format!("generation-{}", flags >> 8));
    set.chain(generation).collect::<Vec<_>>().join(" ")
}

/// The page as text.
pub fn dump(bytes: &Bytes) -> String {
    let p = PageRef(bytes);
    let mut out = String::new();
    if p.is_new() {
        return "new page\n".into();
    }
    if p.has(META) {
        let m = p.meta();
        let _ = writeln!(
            out,
            "meta root {} level {} fast-root {} fast-level {} deleted {} equal-image {}{}",
            m.root,
            m.level,
            m.fast_root,
            m.fast_level,
            m.last_cleanup_deleted_pages,
            m.all_equal_image,
            match m.version {
                Meta::REBUILT =>
                    format!(" generation {} retired {}", m.generation.0, m.retired_xid),
                _ => String::new(),
            }
        );
        return out;
    }
    let _ = writeln!(
        out,
        "level {} left {} right {} flags [{}] cycle {} entries {} free {}",
        p.level(),
        p.prev(),
        p.next(),
        flag_names(p.flags()),
        p.cycle_id(),
        p.count(),
        p.free_space()
    );
    if p.has(DELETED) {
        let _ = writeln!(out, "  reusable from xid {}", p.deleted_xid());
        return out;
    }
    for offset in 1..=p.count() {
        let item = p.item(offset);
        let _ = write!(out, "  {offset}:");
        if offset < p.first_data() {
            out.push_str(" high");
        }
        if p.is_dead(offset) {
            out.push_str(" dead");
        }
        if item.is_pivot() {
            if !p.is_leaf() && offset >= p.first_data() || p.has(HALF_DEAD) {
                let _ = write!(out, " -> {}", item.downlink());
            }
            let _ = write!(out, " ({} columns", item.pivot_attributes());
            if let Some(tid) = item.pivot_tid() {
                let _ = write!(out, ", {tid}");
            }
            out.push(')');
        } else if item.is_posting() {
            let _ = write!(out, " {}..{} x{}", item.tid(), item.max_tid(), item.tid_count());
        } else {
            let _ = write!(out, " {}", item.tid());
        }
        if item.is_packed() {
            out.push_str(" packed");
        }
        out.push(' ');
        for b in item.plain().item().key_bytes().iter().take(40) {
            if b.is_ascii_graphic() {
                out.push(char::from(*b));
            } else {
                let _ = write!(out, "\\{b:02x}");
            }
        }
        out.push('\n');
    }
    out
}
