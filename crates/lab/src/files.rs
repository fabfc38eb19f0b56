//! Folders of servers: copied, put back, written out, and put out of the page cache.
//!
//! A folder is put back many times in a run, and mostly little of it was touched in between: files that nobody
//! touched since stay, and of the others only what differs is written. What is on disk then is the copy, byte for
//! byte, as if it had been copied whole.

use crate::Result;
use rustix::fs::{Advice, fadvise};
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, chown};
use std::path::{Path, PathBuf};

/// Files of less than this are not worth a sync of their own before a measurement, nor a comparison.
const SMALL_BYTES: u64 = 1 << 20;

/// How much is compared at once, and in what pieces it is written.
const CHUNK: usize = 1 << 20;
const PIECE: usize = 64 << 10;

/// Files of a folder as they were when they had been put back.
#[derive(Debug, Default)]
pub struct Copied(HashMap<PathBuf, Stamp>);

/// Tells a file that nobody touched: any write, cut, chmod or rename gives it another time of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(about: &Metadata) -> Stamp {
        Stamp {
            inode: about.ino(),
            bytes: about.len(),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

/// Makes `to` what `from` is, with owners and modes; large files are written out to disk. `copied` says what is
/// there still from the time before, and is told what is there now.
pub fn restore_tree(from: &Path, to: &Path, copied: &mut Copied) -> Result<()> {
    put_back(from, to, copied).map_err(|e| format!("copying {}: {e}", from.display()).into())
}

fn put_back(from: &Path, to: &Path, copied: &mut Copied) -> io::Result<()> {
    let about = fs::symlink_metadata(from)?;
    let there = fs::symlink_metadata(to).ok();
    let same_kind = there.as_ref().is_some_and(|t| t.file_type() == about.file_type());
    if there.is_some() && (!same_kind || about.is_symlink()) {
        remove(to)?;
    }
    if about.is_dir() {
        if !same_kind {
            fs::create_dir(to)?;
            fs::set_permissions(to, about.permissions())?;
        }
        for entry in fs::read_dir(to)? {
            let entry = entry?;
            if fs::symlink_metadata(from.join(entry.file_name())).is_err() {
                remove(&entry.path())?;
            }
        }
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            put_back(&from.join(&name), &to.join(&name), copied)?;
        }
    } else if about.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    } else if about.is_file() {
        let stamp = there.as_ref().filter(|_| same_kind).map(Stamp::of);
        if stamp.is_some() && stamp == copied.0.get(to).copied() {
            return Ok(());
        }
        if same_kind && about.len() >= SMALL_BYTES {
            patch(from, to)?;
        } else {
            fs::copy(from, to)?;
        }
        if about.len() >= SMALL_BYTES {
            File::open(to)?.sync_all()?;
        }
    } else {
        return Ok(());
    }
    let copy = fs::symlink_metadata(to)?;
    if (copy.uid(), copy.gid()) != (about.uid(), about.gid()) {
        chown(to, Some(about.uid()), Some(about.gid()))?;
    }
    if about.is_file() {
        copied.0.insert(to.to_owned(), Stamp::of(&fs::symlink_metadata(to)?));
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Writes into `to` what differs from `from`. Where most of a chunk did, the next few are not compared: reading them
/// twice would be the dearer part.
fn patch(from: &Path, to: &Path) -> io::Result<()> {
    let source = File::open(from)?;
    let target = File::options().read(true).write(true).open(to)?;
    target.set_len(source.metadata()?.len())?;
    let (mut wanted, mut found) = (vec![0; CHUNK], vec![0; CHUNK]);
    let (mut at, mut unread) = (0, 0);
    loop {
        let bytes = read_at(&source, &mut wanted, at)?;
        if bytes == 0 {
            return Ok(());
        }
        if unread > 0 {
            unread -= 1;
            target.write_all_at(&wanted[..bytes], at)?;
        } else {
            let there = read_at(&target, &mut found, at)?;
            let mut differing = 0;
            for start in (0..bytes).step_by(PIECE) {
                let end = bytes.min(start + PIECE);
                if there < end || wanted[start..end] != found[start..end] {
                    target.write_all_at(&wanted[start..end], at + start as u64)?;
                    differing += end - start;
                }
            }
            unread = if differing > bytes / 2 { 4 } else { 0 };
        }
        at += bytes as u64;
    }
}

/// Reads up to the buffer's length or the file's end.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], at + done as u64) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Puts a stopped server's files out of the page cache; says how.
///
/// Root drops the whole machine's clean page cache (not with EBB_LAB_GENTLE set, on a machine that others
/// use too); who is not root tells the kernel that these files will not be needed.
pub fn make_cold(folder: &Path) -> Result<&'static str> {
    forget(folder)?;
    let gentle = std::env::var_os("EBB_LAB_GENTLE").is_some();
    if !gentle && fs::write("/proc/sys/vm/drop_caches", "1").is_ok() {
        return Ok("cold: page cache dropped (/proc/sys/vm/drop_caches)");
    }
    Ok("cold: the server's files put out of the page cache (posix_fadvise), not the whole cache")
}

fn forget(path: &Path) -> Result<()> {
    let about = fs::symlink_metadata(path)?;
    if about.is_dir() {
        for entry in fs::read_dir(path)? {
            forget(&entry?.path())?;
        }
    } else if about.is_file() && about.len() > 0 {
        let file = File::open(path)?;
        // Only clean pages can be put out.
        file.sync_data()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_put_back_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let bytes = |length: usize, step: usize| -> Vec<u8> {
            (0..length).map(|at| u8::try_from(at / step % 251).expect("a byte")).collect()
        };
        let large = bytes(9 * CHUNK + 12_345, 1000);
        fs::create_dir_all(from.join("base")).expect("made");
        fs::write(from.join("base/1"), &large).expect("written");
        fs::write(from.join("base/2"), &large).expect("written");
        fs::write(from.join("base/3"), &large).expect("written");
        fs::write(from.join("base/4"), &large).expect("written");
        fs::write(from.join("small"), "as it was").expect("written");
        let mut copied = Copied::default();
        let mut inodes = Vec::new();
        for round in 0..3 {
            restore_tree(&from, &to, &mut copied).expect("put back");
            for name in ["base/1", "base/2", "base/3", "base/4"] {
                assert!(fs::read(to.join(name)).expect("read") == large, "{name} in {round}");
            }
            assert_eq!(fs::read_to_string(to.join("small")).expect("read"), "as it was");
            let names = |of: &Path| fs::read_dir(of).expect("listed").count();
            assert_eq!((names(&to), names(&to.join("base"))), (2, 4));
            inodes.push(fs::metadata(to.join("base/4")).expect("there").ctime_nsec());

            // Changed here and there, grown, cut, replaced by another of the same length, and new.
            let file = File::options().write(true).open(to.join("base/1")).expect("opened");
            for at in [0, 3 * CHUNK + 17, large.len() - 1] {
                file.write_all_at(b"\xff", at as u64).expect("written");
            }
            fs::write(to.join("base/2"), bytes(11 * CHUNK, 7)).expect("written");
            File::options()
                .write(true)
                .open(to.join("base/3"))
                .expect("opened")
                .set_len(100)
                .expect("cut");
            fs::write(to.join("small"), "otherwise").expect("written");
            fs::create_dir(to.join("new")).expect("made");
            fs::write(to.join("base/5"), "new").expect("written");
        }
        assert_eq!(inodes[0], inodes[2], "what nobody touched was written again");
        // A file in the place of another is seen by its number, if by nothing else.
        fs::remove_file(to.join("base/4")).expect("removed");
        fs::write(to.join("base/4"), bytes(large.len(), 3)).expect("written");
        restore_tree(&from, &to, &mut copied).expect("put back");
        assert!(fs::read(to.join("base/4")).expect("read") == large);
    }
}
