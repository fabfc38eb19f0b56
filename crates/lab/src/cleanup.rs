//! Nothing stays behind, however a run ends.
//!
//! A watcher (a `sh` of its own process group) holds the read end of a pipe whose write end this
//! process holds. It is told of every server and folder as they come and go; when the pipe closes,
//! because the run ended, was interrupted or was killed, it stops the servers that are left
//! (an immediate shutdown first, so that shared memory goes too) and removes their folders.
//!
//! # Invariants
//! A folder is told before it is made. A program is started and told under one lock, and taken back
//! only when it was waited for; one that was started and not yet told when the run was killed is
//! known by its environment ([`MARK`]). The pipe does not close before the program begins, which holds the write end until then; its
//! environment follows an instant later, and is waited for. Once cleaning has begun nothing more is started: whoever tries waits
//! for the end of the process.

use crate::Result;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The variable that names its watcher's process to a program.
const MARK: &str = "EBB_LAB_WATCHER";

/// Reads `folder PATH`, `server PID` and `ended PID`, a line each, then cleans up.
/// Only what is a lab's by its name is ever removed.
const WATCHER: &str = r#"
trap '' HUP INT QUIT TERM
folders=
servers=' '
while IFS=' ' read -r what value; do
  case $what in
    folder) folders="$folders$value
" ;;
    server) servers="$servers$value " ;;
    ended) servers=$(printf '%s' "$servers" | sed "s/ $value / /") ;;
  esac
done
family() {
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do echo "$child"; family "$child"; done
}
alive() { grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"; }
# Is there a program that has just begun, and has no environment yet?
beginning() {
  for process in /proc/[0-9]*; do
    [ "${process#/proc/}" -gt $$ ] && [ -e "$process/exe" ] && ! grep -qs . "$process/environ" &&
      alive "${process#/proc/}" && return 0
  done
  return 1
}
for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do beginning || break; sleep 0.1; done
marked=$(grep -lszx "EBB_LAB_WATCHER=$$" /proc/[0-9]*/environ)
for file in $marked; do file=${file#/proc/}; servers="$servers${file%/environ} "; done
for server in $servers; do
  all="$server $(family "$server")"
  kill -QUIT $all 2>/dev/null
  for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
    left=; for one in $all; do alive "$one" && left="$left $one"; done
    [ -z "$left" ] && break
    sleep 0.2
  done
  [ -n "$left" ] && kill -KILL $left 2>/dev/null
done
printf '%s' "$folders" | while IFS= read -r folder; do
  case ${folder##*/} in ebb-lab-*) ;; *) continue ;; esac
  # A run that was interrupted may still be writing there, until it sees that its server is gone.
  for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    rm -rf -- "$folder"
    [ -e "$folder" ] || break
    sleep 0.1
  done
done
"#;

/// What there is of the watcher.
enum Watcher {
    None,
    Here(Child),
    /// It was told to clean up.
    Working,
}

static WATCHER_PROCESS: Mutex<Watcher> = Mutex::new(Watcher::None);

/// Starts the watcher; without it, only what is dropped in order is cleaned up.
pub fn watch() -> Result<()> {
    let mut watcher = lock();
    if matches!(*watcher, Watcher::None) {
        *watcher = Watcher::Here(started().map_err(|e| format!("/bin/sh: {e}"))?);
    }
    Ok(())
}

fn started() -> std::io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", WATCHER, "ebb-lab-watcher"]).process_group(0).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Makes a temporary folder that will not outlive the run.
pub fn folder() -> Result<tempfile::TempDir> {
    let mut watcher = lock();
    let parent = std::path::absolute(std::env::temp_dir());
    let parent = parent.map_err(|e| format!("the folder of temporary files: {e}"))?;
    let name = format!("ebb-lab-{:016x}", RandomState::new().hash_one(std::process::id()));
    say(&mut watcher, &format!("folder {}", parent.join(&name).display()));
    let folder = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(&parent);
    let folder = folder.map_err(|e| format!("a temporary folder in {}: {e}", parent.display()))?;
    Ok(folder)
}

/// Starts a program that will not outlive the run.
pub fn spawn(command: &mut Command) -> Result<Child> {
    let mut watcher = lock();
    if let Watcher::Here(watcher) = &*watcher {
        command.env(MARK, watcher.id().to_string());
    }
    let child = command.spawn().map_err(|e| {
        let program = command.get_program().to_string_lossy().into_owned();
        format!("{program}: {e}")
    })?;
    say(&mut watcher, &format!("server {}", child.id()));
    Ok(child)
}

/// A program has ended and was waited for.
pub fn ended(pid: u32) {
    say(&mut lock(), &format!("ended {pid}"));
}

/// Lets the watcher do its work now, and waits until nothing is left.
pub fn finish() {
    let watcher = std::mem::replace(&mut *lock_now(), Watcher::Working);
    if let Watcher::Here(mut child) = watcher {
        drop(child.stdin.take());
        let _ = child.wait();
    }
}

/// Goes on unless the run was interrupted: then whoever asks waits for the end of the process, and
/// reports nothing of what failed only because its server was taken away.
pub fn go_on() {
    drop(lock());
}

/// The lock; never while or after the watcher works, since the process is about to end.
fn lock() -> MutexGuard<'static, Watcher> {
    loop {
        let watcher = lock_now();
        if !matches!(*watcher, Watcher::Working) {
            return watcher;
        }
        drop(watcher);
        std::thread::park();
    }
}

fn lock_now() -> MutexGuard<'static, Watcher> {
    WATCHER_PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say(watcher: &mut Watcher, line: &str) {
    // A name with a newline would be two lines to the watcher; such a folder is not told.
    if let Watcher::Here(child) = watcher
        && let Some(pipe) = &mut child.stdin
        && !line.contains('\n')
    {
        let _ = writeln!(pipe, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_not_yet_told_is_ended_and_a_folder_not_yet_made_is_no_matter() {
        let parent = tempfile::tempdir().expect("a folder");
        let (made, unmade) = (parent.path().join("ebb-lab-1"), parent.path().join("ebb-lab-2"));
        std::fs::create_dir(&made).expect("a folder in it");
        let mut watcher = Watcher::Here(started().expect("sh"));
        say(&mut watcher, &format!("folder {}", unmade.display()));
        say(&mut watcher, &format!("folder {}", made.display()));
        let Watcher::Here(mut watcher) = watcher else { unreachable!() };
        let mut command = Command::new("sleep");
        let mut program =
            command.arg("3600").env(MARK, watcher.id().to_string()).spawn().expect("it");
        drop(watcher.stdin.take());
        assert!(watcher.wait().expect("its end").success());
        assert!(program.try_wait().expect("its state").is_some());
        assert_eq!(std::fs::read_dir(parent.path()).expect("the folder").count(), 0);
    }
}
