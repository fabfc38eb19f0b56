//! The server's log: lines on standard error in PostgreSQL's form.
//!
//! # Layout
//! `2026-11-21 21:40:00.123 UTC [4711] LOG:  message`, and for errors `DETAIL:`, `HINT:` and `STATEMENT:`
//! lines of the same form. What comes before the word is [`prefix`]'s. The number is the session's (or the background thread's) own,
//! as told to [`set_thread_pid`].

pub mod prefix;

use crate::{SqlError, SqlState};
use prefix::prefix;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Severity of a log line, in the order of `log_min_messages`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "named after the words in the log")]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Log,
    Fatal,
    Panic,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Notice => "NOTICE",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
            Level::Log => "LOG",
            Level::Fatal => "FATAL",
            Level::Panic => "PANIC",
        }
    }
    /// From `log_min_messages`' words.
    pub fn from_setting(word: &str) -> Level {
        match word {
            "info" => Level::Info,
            "notice" => Level::Notice,
            "warning" => Level::Warning,
            "error" => Level::Error,
            "log" => Level::Log,
            "fatal" => Level::Fatal,
            "panic" => Level::Panic,
            _ => Level::Debug,
        }
    }
}

static MIN_LEVEL: AtomicU8 = AtomicU8::new(Level::Warning as u8);
thread_local!(static PID: Cell<i32> = const { Cell::new(0) });
thread_local!(static CONTEXT: RefCell<Option<String>> = const { RefCell::new(None) });
thread_local!(static STATEMENT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) });

/// Lines below `level` are left out from now on.
pub fn set_min_level(level: Level) {
    MIN_LEVEL.store(level as u8, Ordering::Relaxed);
}

/// The number that this thread's lines carry.
pub fn set_thread_pid(pid: i32) {
    PID.set(pid);
}

/// The number that this thread's lines carry.
pub fn thread_pid() -> i32 {
    PID.get()
}

/// Writes a line.
pub fn write(level: Level, message: &str) {
    if (level as u8) < MIN_LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let state = match level {
        Level::Warning => SqlState::WARNING,
        Level::Error | Level::Fatal | Level::Panic => SqlState::INTERNAL_ERROR,
        _ => SqlState::SUCCESSFUL_COMPLETION,
    };
    let mut line = String::new();
    add(&mut line, state, level.word(), Some(message));
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// What this thread runs for its client, for lines that say it.
pub fn set_thread_statement(text: Option<&Arc<str>>) {
    STATEMENT.with_borrow_mut(|statement| statement.clone_from(&text.cloned()));
}

/// While it is there, [`write_amid`]'s lines say what this thread is at.
pub struct Amid(Option<String>);

/// This thread is at `what`, within what it was at before.
pub fn amid(what: String) -> Amid {
    Amid(CONTEXT.replace(Some(what)))
}

impl Drop for Amid {
    fn drop(&mut self) {
        let _ = CONTEXT.try_with(|context| context.replace(self.0.take()));
    }
}

/// A LOG line of what happened in the middle of this thread's statement, with that statement.
pub fn write_amid(message: &str, detail: Option<&str>) {
    if (Level::Log as u8) < MIN_LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let mut text = String::new();
    add(&mut text, SqlState::SUCCESSFUL_COMPLETION, "LOG", Some(message));
    add(&mut text, SqlState::SUCCESSFUL_COMPLETION, "DETAIL", detail);
    // A thread that is ending has none any more.
    let _ = CONTEXT.try_with(|context| {
        let context = context.borrow();
        add(&mut text, SqlState::SUCCESSFUL_COMPLETION, "CONTEXT", context.as_deref());
    });
    let _ = STATEMENT.try_with(|statement| {
        let statement = statement.borrow();
        add(&mut text, SqlState::SUCCESSFUL_COMPLETION, "STATEMENT", statement.as_deref());
    });
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A LOG line of a statement, which says its text itself, or of what became of it.
pub fn write_detailed(message: &str, detail: Option<&str>) {
    if (Level::Log as u8) < MIN_LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let mut text = String::new();
    add(&mut text, SqlState::SUCCESSFUL_COMPLETION, "LOG", Some(message));
    add(&mut text, SqlState::SUCCESSFUL_COMPLETION, "DETAIL", detail);
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

fn add(text: &mut String, state: SqlState, word: &str, body: Option<&str>) {
    if let Some(body) = body {
        let prefix = prefix(state.as_str());
        text.push_str(&format!("{prefix}{word}:  {}\n", body.replace('\n', "\n\t")));
    }
}

/// A LOG line.
#[macro_export]
macro_rules! log {
    ($($arg:tt)*) => { $crate::log::write($crate::log::Level::Log, &format!($($arg)*)) };
}

/// Writes an error with its detail, hint and statement.
pub fn write_error(level: Level, error: &SqlError, statement: Option<&str>) {
    if (level as u8) < MIN_LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let mut text = format!("{}{}:  {}", prefix(error.state.as_str()), level.word(), error.message);
    if let Some(position) = error.position {
        text.push_str(&format!(" at character {position}"));
    }
    text.push('\n');
    let mut more = |word: &str, body: Option<&str>| add(&mut text, error.state, word, body);
    more("DETAIL", error.detail_log.as_deref().or(error.detail.as_deref()));
    more("HINT", error.hint.as_deref());
    more("CONTEXT", error.context.as_deref());
    more("STATEMENT", statement);
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// From 1970 to 2000.
const SINCE_1970_US: i64 = 946_684_800_000_000;

/// A time (microseconds since 2000) as log lines show it: `2026-11-21 21:40:00 UTC`.
pub fn timestamp(us: i64) -> String {
    let micros = us.saturating_add(SINCE_1970_US);
    let (days, in_day) = (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000));
    let (year, month, day) = civil(days);
    let seconds = in_day / 1_000_000;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
    )
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar: counts from
/// 0000-03-01 in eras of 400 years, so that the leap day ends a year.
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn days_become_dates() {
        assert_eq!(super::civil(0), (1970, 1, 1));
        assert_eq!(super::civil(10_957), (2000, 1, 1));
        assert_eq!(super::civil(11_016), (2000, 2, 29));
        assert_eq!(super::civil(20_778), (2026, 11, 21));
    }
}
