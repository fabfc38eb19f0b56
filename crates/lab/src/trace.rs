//! What `strace` saw a server do, by kind of file.
//!
//! The server runs under `strace -f -y --seccomp-bpf -ttt`, so that each line has the time, the call and the
//! path of its file, and calls that are not asked for cost nothing. Lines are judged afterwards, by the
//! window of time in which they began. A call that another one's line interrupts counts where it begins;
//! its bytes come with the line that resumes it.

use crate::{Error, Result};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// The calls that write or sync, by every route: plain, vectored, io_uring, mapped.
const CALLS: &str = "trace=pwrite64,pwritev,pwritev2,write,writev,fdatasync,fsync,sync_file_range,\
                     io_uring_enter,msync,copy_file_range,fallocate";

/// The words to run a server under.
pub fn wrapper(output: &Path) -> Vec<String> {
    let output = output.to_string_lossy().into_owned();
    let words = ["strace", "-f", "-y", "--seccomp-bpf", "-ttt", "-s", "0", "-e", "signal=none"];
    let mut words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    words.extend(["-e".into(), CALLS.into(), "-o".into(), output]);
    words
}

/// Whether `strace` is here and may trace.
pub fn available() -> Result<()> {
    let mut command = Command::new("strace");
    command.args(["-f", "--seccomp-bpf", "-o", "/dev/null", "true"]);
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("strace: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("strace can't trace here: {}", text.lines().next().unwrap_or("?")).into())
}

/// What was done to one kind of file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// `write`, `pwrite64`, `writev`, `pwritev`, `pwritev2`, `copy_file_range`.
    pub writes: u64,
    /// Bytes that those wrote.
    pub bytes: u64,
    /// `fsync`, `fdatasync`.
    pub syncs: u64,
    /// `sync_file_range`, which only asks for writing to begin.
    pub hints: u64,
}

/// What a server did in a window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// To files of relations.
    pub data: Calls,
    /// To files of the write-ahead log.
    pub wal: Calls,
    /// To anything else: logs, control file, commit log, sockets.
    pub other: Calls,
    /// Requests handed to io_uring, whose files no line names.
    pub uring: u64,
    /// `msync`, whose files no line names.
    pub msyncs: u64,
}

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Wal,
    Other,
}

/// Tells by a path within a server's data folder: relations' files have a number for a name.
fn kind_of(path: &str) -> Kind {
    if path.contains("/pg_wal/") || path.contains("/wal/") {
        return Kind::Wal;
    }
    let name = path.rsplit('/').next().unwrap_or("");
    let relation =
        path.contains("/base/") || path.contains("/global/") || path.contains("/pg_tblspc/");
    if relation && name.starts_with(|c: char| c.is_ascii_digit() || c == 't') {
        return Kind::Data;
    }
    Kind::Other
}

/// Now, as strace's lines have it.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// Counts the calls of a trace that began between two times.
pub fn count(file: &Path, from: f64, to: f64) -> Result<Traced> {
    let file = std::fs::File::open(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut traced = Traced::default();
    let mut pending: HashMap<String, Kind> = HashMap::new();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(Error::from)? > 0 {
        traced.line(&String::from_utf8_lossy(&line), (from, to), &mut pending);
        line.clear();
    }
    Ok(traced)
}

impl Traced {
    fn of(&mut self, kind: Kind) -> &mut Calls {
        match kind {
            Kind::Data => &mut self.data,
            Kind::Wal => &mut self.wal,
            Kind::Other => &mut self.other,
        }
    }

    fn line(&mut self, line: &str, window: (f64, f64), pending: &mut HashMap<String, Kind>) {
        let line = line.trim_end();
        // `PID TIME CALL(FD<PATH>, …) = RESULT`; the PID may be padded.
        let Some((pid, rest)) = line.trim_start().split_once(' ') else { return };
        let Some((time, call)) = rest.trim_start().split_once(' ') else { return };
        let Ok(time) = time.parse::<f64>() else { return };
        let result = || -> u64 {
            let after = call.rsplit(" = ").next().unwrap_or("");
            after.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
        };
        if call.starts_with("<... ") {
            if let Some(kind) = pending.remove(pid) {
                self.of(kind).bytes += result();
            }
            return;
        }
        if time < window.0 || time > window.1 {
            return;
        }
        let Some((name, arguments)) = call.split_once('(') else { return };
        let unfinished = call.ends_with("<unfinished ...>");
        match name {
            "io_uring_enter" => {
                let submitted = arguments.split(", ").nth(1).and_then(|n| n.parse::<u64>().ok());
                self.uring += submitted.unwrap_or(0);
                return;
            }
            "msync" => {
                self.msyncs += 1;
                return;
            }
            _ => {}
        }
        // copy_file_range's target is its third argument.
        let target = match name {
            "copy_file_range" => arguments.split(", ").nth(2).unwrap_or(""),
            _ => arguments,
        };
        let path = target.split_once('<').map_or("", |(_, p)| p.split('>').next().unwrap_or(""));
        let kind = kind_of(path);
        let calls = self.of(kind);
        match name {
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "copy_file_range" => {
                calls.writes += 1;
                if unfinished {
                    pending.insert(pid.to_owned(), kind);
                } else {
                    calls.bytes += result();
                }
            }
            "fsync" | "fdatasync" => calls.syncs += 1,
            "sync_file_range" => calls.hints += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_kind_and_window() {
        let lines = [
            r#"12 5.0 pwrite64(7</d/base/5/16384>, ""..., 8192, 0) = 8192"#,
            r#"12 11.5 pwrite64(7</d/base/5/16384>, ""..., 8192, 0) = 8192"#,
            r#"  13 12.0 pwritev(8</d/base/5/16384.1>, [{iov_base=""..., iov_len=8192}, {iov_base=""..., iov_len=8192}], 2, 0 <unfinished ...>"#,
            r#"12 12.1 fdatasync(9</d/pg_wal/000000010000000000000001>) = 0"#,
            r#"13 12.2 <... pwritev resumed>) = 16384"#,
            r#"14 12.3 pwrite64(3</d/wal/000001>, ""..., 512, 0) = 512"#,
            r#"14 12.4 write(2</tmp/log>, ""..., 80) = 80"#,
            r#"14 12.4 write(5</d/global/pg_control>, ""..., 80) = 80"#,
            r#"14 12.5 sync_file_range(7</d/base/5/16384>, 0, 8192, SYNC_FILE_RANGE_WRITE) = 0"#,
            r#"14 12.6 io_uring_enter(4<anon_inode:[io_uring]>, 3, 0, 0, NULL, 8) = 3"#,
            r#"14 12.7 +++ exited with 0 +++"#,
            r#"14 20.5 fsync(7</d/base/5/16384>) = 0"#,
        ];
        let mut traced = Traced::default();
        let mut pending = HashMap::new();
        for line in lines {
            traced.line(line, (10.0, 20.0), &mut pending);
        }
        let expected = Traced {
            data: Calls { writes: 2, bytes: 24_576, syncs: 0, hints: 1 },
            wal: Calls { writes: 1, bytes: 512, syncs: 1, hints: 0 },
            other: Calls { writes: 2, bytes: 160, syncs: 0, hints: 0 },
            uring: 3,
            msyncs: 0,
        };
        assert_eq!(traced, expected);
    }
}
