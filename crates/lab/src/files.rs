//! Folders of servers: copied, written out, and put out of the page cache.

use crate::Result;
use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

/// Files of less than this are not worth a sync of their own before a measurement.
const SMALL_BYTES: u64 = 1 << 20;

/// Copies a folder with its owners and modes; large files are written out to disk.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let told = |e: std::io::Error| format!("copying {}: {e}", from.display());
    let about = fs::symlink_metadata(from).map_err(told)?;
    if about.is_dir() {
        fs::create_dir(to).map_err(told)?;
        fs::set_permissions(to, about.permissions()).map_err(told)?;
        for entry in fs::read_dir(from).map_err(told)? {
            let entry = entry.map_err(told)?;
            copy_tree(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if about.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from).map_err(told)?, to).map_err(told)?;
        return Ok(());
    } else if about.is_file() {
        fs::copy(from, to).map_err(told)?;
        if about.len() >= SMALL_BYTES {
            File::open(to).and_then(|f| f.sync_all()).map_err(told)?;
        }
    } else {
        return Ok(());
    }
    let copy = fs::symlink_metadata(to).map_err(told)?;
    if (copy.uid(), copy.gid()) != (about.uid(), about.gid()) {
        chown(to, Some(about.uid()), Some(about.gid())).map_err(told)?;
    }
    Ok(())
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
