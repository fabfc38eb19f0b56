//! The server's log: lines on standard error in PostgreSQL's form.
//!
//! # Layout
//! `2026-11-21 21:40:00.123 UTC [4711] LOG:  message`, and after it `DETAIL:`, `HINT:`, `CONTEXT:` and `STATEMENT:`
//! lines of the same form. What comes before the word is [`prefix`]'s. The number is the session's (or the background thread's) own,
//! as told to [`set_thread_pid`]. A session's thread follows that session's own settings ([`Manner`]); all others the server's.
//!
//! # Differs from PostgreSQL
//! `log_error_verbosity = verbose` adds the SQLSTATE, but no `LOCATION:`: a place in PostgreSQL's source would be made up.

pub mod prefix;

use crate::{SqlError, SqlState};
use prefix::prefix;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, RwLock};

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

/// What is written of a message: `log_min_messages`, `log_min_error_statement`, `log_error_verbosity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manner {
    /// Lines below it are left out.
    pub least: Level,
    /// Messages from it on come with the statement under way, if there is one.
    pub with_statement: Level,
    /// How much of one is written.
    pub verbosity: Verbosity,
}

/// `log_error_verbosity`
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verbosity {
    /// No detail, hint or context.
    Terse,
    /// All that is said to people.
    Default,
    /// The SQLSTATE too.
    Verbose,
}

impl Manner {
    const DEFAULT: Manner = Manner {
        least: Level::Warning,
        with_statement: Level::Error,
        verbosity: Verbosity::Default,
    };

    /// From the three settings' words.
    pub fn from_settings(least: &str, with_statement: &str, verbosity: &str) -> Manner {
        Manner {
            least: Level::from_setting(least),
            with_statement: Level::from_setting(with_statement),
            verbosity: match verbosity {
                "terse" => Verbosity::Terse,
                "verbose" => Verbosity::Verbose,
                _ => Verbosity::Default,
            },
        }
    }
}

static FLOOR: AtomicU8 = AtomicU8::new(Level::Debug as u8);
static SERVERS_MANNER: RwLock<Manner> = RwLock::new(Manner::DEFAULT);
thread_local!(static MANNER: Cell<Option<Manner>> = const { Cell::new(None) });
thread_local!(static PID: Cell<i32> = const { Cell::new(0) });
thread_local!(static CONTEXT: RefCell<Option<String>> = const { RefCell::new(None) });
thread_local!(static STATEMENT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) });

/// Lines below `level` are left out from now on, whatever settings say: for those who run a server inside of something else.
pub fn set_min_level(level: Level) {
    FLOOR.store(level as u8, Ordering::Relaxed);
}

/// What is written by threads that have no manner of their own, from now on.
pub fn set_manner(manner: Manner) {
    if let Ok(mut servers) = SERVERS_MANNER.write() {
        *servers = manner;
    }
}

/// What this thread writes from now on: its session's settings.
pub fn set_thread_manner(manner: Manner) {
    MANNER.set(Some(manner));
}

/// This thread's session is over.
pub fn forget_session() {
    MANNER.set(None);
    set_thread_statement(None);
}

fn manner() -> Manner {
    // A thread that is ending has none any more.
    let own = MANNER.try_with(Cell::get).ok().flatten();
    own.or_else(|| SERVERS_MANNER.read().ok().map(|m| *m)).unwrap_or(Manner::DEFAULT)
}

/// The number that this thread's lines carry.
pub fn set_thread_pid(pid: i32) {
    PID.set(pid);
}

/// The number that this thread's lines carry.
pub fn thread_pid() -> i32 {
    PID.get()
}

/// Writes a line, with the statement in the middle of which it happened, if there is one.
pub fn write(level: Level, message: &str) {
    let state = match level {
        Level::Warning => SqlState::WARNING,
        Level::Error | Level::Fatal | Level::Panic => SqlState::INTERNAL_ERROR,
        _ => SqlState::SUCCESSFUL_COMPLETION,
    };
    put(level, &Said { state, message, ..Said::default() });
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

/// A LOG line of what happened in the middle of this thread's statement, with what it is at.
pub fn write_amid(message: &str, detail: Option<&str>) {
    // A thread that is ending is at nothing any more.
    let context = CONTEXT.try_with(|context| context.borrow().clone()).ok().flatten();
    put(Level::Log, &Said { message, detail, context: context.as_deref(), ..Said::default() });
}

/// A LOG line of a statement, which says its text itself, or of what became of it.
pub fn write_detailed(message: &str, detail: Option<&str>) {
    put(Level::Log, &Said { message, detail, says_statement: true, ..Said::default() });
}

/// What a message says, with what it is said.
struct Said<'a> {
    state: SqlState,
    message: &'a str,
    position: Option<u32>,
    detail: Option<&'a str>,
    hint: Option<&'a str>,
    context: Option<&'a str>,
    /// It has the statement in it.
    says_statement: bool,
}

impl Default for Said<'_> {
    fn default() -> Self {
        Said {
            state: SqlState::SUCCESSFUL_COMPLETION,
            message: "",
            position: None,
            detail: None,
            hint: None,
            context: None,
            says_statement: false,
        }
    }
}

/// Writes a message as this thread's manner is.
fn put(level: Level, said: &Said<'_>) {
    let manner = manner();
    if level >= manner.least && level as u8 >= FLOOR.load(Ordering::Relaxed) {
        let text = lines(level, said, manner);
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

fn lines(level: Level, said: &Said<'_>, manner: Manner) -> String {
    let mut message = String::new();
    if manner.verbosity == Verbosity::Verbose {
        message.push_str(&format!("{}: ", said.state));
    }
    message.push_str(said.message);
    if let Some(position) = said.position {
        message.push_str(&format!(" at character {position}"));
    }
    let mut text = String::new();
    let mut add = |word: &str, body: Option<&str>| {
        if let Some(body) = body {
            let prefix = prefix(said.state.as_str());
            text.push_str(&format!("{prefix}{word}:  {}\n", body.replace('\n', "\n\t")));
        }
    };
    add(level.word(), Some(&message));
    if manner.verbosity > Verbosity::Terse {
        add("DETAIL", said.detail);
        add("HINT", said.hint);
        add("CONTEXT", said.context);
    }
    if !said.says_statement && level >= manner.with_statement {
        let _ = STATEMENT.try_with(|statement| add("STATEMENT", statement.borrow().as_deref()));
    }
    text
}

/// A LOG line.
#[macro_export]
macro_rules! log {
    ($($arg:tt)*) => { $crate::log::write($crate::log::Level::Log, &format!($($arg)*)) };
}

/// Writes an error, or another message, with all that it says and the statement it is of.
pub fn write_error(level: Level, error: &SqlError) {
    let said = Said {
        state: error.state,
        message: &error.message,
        position: error.position,
        detail: error.detail_log.as_deref().or(error.detail.as_deref()),
        hint: error.hint.as_deref(),
        context: error.context.as_deref(),
        says_statement: false,
    };
    put(level, &said);
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
    use super::*;

    fn told(level: Level, error: &SqlError, manner: Manner) -> Vec<String> {
        let said = Said {
            state: error.state,
            message: &error.message,
            position: error.position,
            detail: error.detail.as_deref(),
            ..Said::default()
        };
        let text = lines(level, &said, manner);
        text.lines().map(|l| l.split_once("] ").map_or(l, |(_, said)| said).to_owned()).collect()
    }

    #[test]
    fn a_message_is_as_long_as_the_settings_say() {
        set_thread_statement(Some(&Arc::from("SELECT\n x")));
        let error = SqlError::new(SqlState::UNDEFINED_COLUMN, "no x\nat all").at(9).detail("none");
        let of = |statement, verbosity| Manner::from_settings("log", statement, verbosity);
        let lines = told(Level::Error, &error, of("error", "default"));
        let all = [
            "ERROR:  no x",
            "\tat all at character 9",
            "DETAIL:  none",
            "STATEMENT:  SELECT",
            "\t x",
        ];
        assert_eq!(lines, all);
        let lines = told(Level::Error, &error, of("log", "terse"));
        assert_eq!(lines, all[..2]);
        let lines = told(Level::Fatal, &error, of("log", "terse"));
        assert_eq!(lines, ["FATAL:  no x", all[1], all[3], all[4]]);
        let lines = told(Level::Warning, &error, of("error", "verbose"));
        assert_eq!(lines, ["WARNING:  42703: no x", all[1], all[2]]);
        let lines = told(Level::Log, &error, of("error", "default"));
        assert_eq!(lines[3], all[3], "a LOG line is above an error's");
        set_thread_statement(None);
        assert_eq!(told(Level::Error, &error, of("error", "default")), all[..3]);
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(super::civil(0), (1970, 1, 1));
        assert_eq!(super::civil(10_957), (2000, 1, 1));
        assert_eq!(super::civil(11_016), (2000, 2, 29));
        assert_eq!(super::civil(20_778), (2026, 11, 21));
    }
}
