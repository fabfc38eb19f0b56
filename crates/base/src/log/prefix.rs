//! `log_line_prefix`: what each line of the log begins with.
//!
//! # Differs from PostgreSQL
//! A connection has the server's number (`%p`, `%c`) until it is a session. A thread that helps a session is none itself. An error is told when its transaction is over: `%x` is 0 then.

use super::{civil, thread_pid};
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, RwLock, Weak};

/// What a thread writes lines for, when it is for a client.
#[derive(Clone, Default, Debug)]
pub struct Peer {
    /// Its role; empty until it has said one.
    pub user: String,
    /// Its database.
    pub database: String,
    /// Its address.
    pub host: String,
    /// Its port.
    pub port: String,
    /// The address it has come to.
    pub local: String,
}

/// The transaction of a thread, told as it is now. It is asked in the middle of anything, and must take no locks.
pub trait Transaction: Send + Sync {
    /// `%v`
    fn virtual_xid(&self) -> (u32, u32);
    /// `%x`; 0: none.
    fn xid(&self) -> u64;
}

/// Local time of a time (both microseconds since 2000), and its zone's abbreviation.
pub type Clock = Box<dyn Fn(i64) -> (i64, String) + Send + Sync>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Escape {
    Application,
    User,
    Database,
    HostAndPort,
    Host,
    Local,
    BackendType,
    Pid,
    Leader,
    Seconds,
    Milliseconds,
    Epoch,
    Command,
    State,
    Session,
    Line,
    Started,
    VirtualXid,
    Xid,
    Query,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    /// With its width; below 0: to the left.
    Told(Escape, i32),
    /// What follows is for clients' threads.
    ClientsOnly,
}

/// A setting's value, read.
struct Prefix(Vec<Part>);

impl Prefix {
    /// What is no escape is left out, as in PostgreSQL.
    fn read(setting: &str) -> Prefix {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = setting.chars().peekable();
        while let Some(c) = rest.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            if rest.next_if_eq(&'%').is_some() {
                text.push('%');
                continue;
            }
            let left = rest.next_if_eq(&'-').is_some();
            let mut width = 0i32;
            while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
                // A line needs no more, and a slip must not fill the disk.
                width = (width * 10 + i32::try_from(digit).unwrap_or(0)).min(10_000);
                rest.next();
            }
            let part = match rest.next().map(escape) {
                Some(Found::Escape(e)) => Part::Told(e, if left { -width } else { width }),
                Some(Found::ClientsOnly) => Part::ClientsOnly,
                Some(Found::Nothing) | None => continue,
            };
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(part);
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Prefix(parts)
    }
}

enum Found {
    Escape(Escape),
    ClientsOnly,
    Nothing,
}

fn escape(c: char) -> Found {
    Found::Escape(match c {
        'a' => Escape::Application,
        'u' => Escape::User,
        'd' => Escape::Database,
        'r' => Escape::HostAndPort,
        'h' => Escape::Host,
        'L' => Escape::Local,
        'b' => Escape::BackendType,
        'p' => Escape::Pid,
        'P' => Escape::Leader,
        't' => Escape::Seconds,
        'm' => Escape::Milliseconds,
        'n' => Escape::Epoch,
        'i' => Escape::Command,
        'e' => Escape::State,
        'c' => Escape::Session,
        'l' => Escape::Line,
        's' => Escape::Started,
        'v' => Escape::VirtualXid,
        'x' => Escape::Xid,
        'Q' => Escape::Query,
        'q' => return Found::ClientsOnly,
        _ => return Found::Nothing,
    })
}

static PREFIX: RwLock<Option<Arc<Prefix>>> = RwLock::new(None);
static CLOCK: RwLock<Option<Arc<Clock>>> = RwLock::new(None);
static WANTS_COMMAND: AtomicBool = AtomicBool::new(false);
static SERVER_STARTED: OnceLock<i64> = OnceLock::new();

thread_local! {
    static PEER: RefCell<Option<Peer>> = const { RefCell::new(None) };
    static APPLICATION: RefCell<String> = const { RefCell::new(String::new()) };
    static COMMAND: RefCell<String> = const { RefCell::new(String::new()) };
    static TRANSACTION: RefCell<Option<Weak<dyn Transaction>>> = const { RefCell::new(None) };
    static STARTED: Cell<i64> = const { Cell::new(0) };
    static LINE: Cell<u64> = const { Cell::new(0) };
    static QUERY: Cell<i64> = const { Cell::new(0) };
}

/// Lines begin like this from now on: `log_line_prefix`, and its times by `clock` (`log_timezone`).
pub fn set_prefix(setting: &str, clock: Clock) {
    SERVER_STARTED.get_or_init(crate::sync::now_timestamp_us);
    let prefix = Prefix::read(setting);
    let command = prefix.0.iter().any(|p| matches!(p, Part::Told(Escape::Command, _)));
    WANTS_COMMAND.store(command, Ordering::Relaxed);
    if let Ok(mut now) = PREFIX.write() {
        *now = Some(Arc::new(prefix));
    }
    if let Ok(mut now) = CLOCK.write() {
        *now = Some(Arc::new(clock));
    }
}

/// This thread is a client's, which has just come.
pub fn begin_peer(peer: Peer) {
    STARTED.set(crate::sync::now_timestamp_us());
    LINE.set(0);
    PEER.set(Some(peer));
}

/// The client has said who it is.
pub fn set_peer(user: &str, database: &str) {
    PEER.with_borrow_mut(|peer| {
        if let Some(peer) = peer {
            user.clone_into(&mut peer.user);
            database.clone_into(&mut peer.database);
        }
    });
}

/// The transactions that this thread runs. Kept weakly: what ends with a thread ends in its own time.
pub fn set_transaction(told: Weak<dyn Transaction>) {
    TRANSACTION.set(Some(told));
}

/// `application_name`, where it differs from what was said before.
pub fn set_application(name: &str) {
    APPLICATION.with_borrow_mut(|kept| {
        if kept != name {
            name.clone_into(kept);
        }
    });
}

/// The identifier of the query that this thread runs; 0: none.
pub fn set_query(id: i64) {
    QUERY.set(id);
}

/// Do lines tell the command that is run?
pub fn wants_command() -> bool {
    WANTS_COMMAND.load(Ordering::Relaxed)
}

/// The tag of the command that this thread runs, or `idle` and the like.
pub fn set_command(tag: &str) {
    COMMAND.with_borrow_mut(|kept| tag.clone_into(kept));
}

/// What a line begins with that tells of `state`.
pub(super) fn prefix(state: &str) -> String {
    let prefix = PREFIX.read().ok().and_then(|p| p.clone());
    let mut text = String::new();
    LINE.set(LINE.get() + 1);
    let now = crate::sync::now_timestamp_us();
    let Some(prefix) = prefix else {
        let _ = write!(text, "{} [{}] ", time(now, true), pid());
        return text;
    };
    // A thread that is ending has none of its own any more.
    let peer = PEER.try_with(|peer| peer.borrow().clone()).ok().flatten();
    for part in &prefix.0 {
        match part {
            Part::Text(part) => text.push_str(part),
            Part::ClientsOnly if peer.is_none() => break,
            Part::ClientsOnly => {}
            Part::Told(escape, width) => {
                pad(&mut text, &value(*escape, state, now, peer.as_ref()), *width);
            }
        }
    }
    text
}

fn pad(text: &mut String, value: &str, width: i32) {
    let missing = usize::try_from(width.unsigned_abs()).unwrap_or(0).saturating_sub(value.len());
    let spaces = std::iter::repeat_n(' ', missing);
    if width < 0 {
        text.push_str(value);
        text.extend(spaces);
    } else {
        text.extend(spaces);
        text.push_str(value);
    }
}

fn pid() -> i32 {
    match thread_pid() {
        0 => i32::try_from(std::process::id()).unwrap_or(0),
        pid => pid,
    }
}

fn started() -> i64 {
    match STARTED.get() {
        0 => *SERVER_STARTED.get_or_init(crate::sync::now_timestamp_us),
        at => at,
    }
}

fn value(escape: Escape, state: &str, now: i64, peer: Option<&Peer>) -> String {
    let known = |text: &str| if text.is_empty() { "[unknown]".to_owned() } else { text.to_owned() };
    let of_peer = |get: fn(&Peer) -> &str| peer.map(|p| known(get(p))).unwrap_or_default();
    match escape {
        Escape::Application => match peer {
            Some(_) => known(&APPLICATION.try_with(|a| a.borrow().clone()).unwrap_or_default()),
            None => String::new(),
        },
        Escape::User => of_peer(|p| &p.user),
        Escape::Database => of_peer(|p| &p.database),
        Escape::HostAndPort => match peer {
            Some(p) if !p.port.is_empty() => format!("{}({})", p.host, p.port),
            Some(p) => p.host.clone(),
            None => String::new(),
        },
        Escape::Host => peer.map(|p| p.host.clone()).unwrap_or_default(),
        Escape::Local => peer.map_or_else(|| "[none]".to_owned(), |p| p.local.clone()),
        Escape::BackendType => match (crate::backend::my_type(), peer) {
            (crate::backend::BackendType::ClientBackend, None) => "postmaster",
            (crate::backend::BackendType::ClientBackend, Some(p)) if p.user.is_empty() => {
                "not initialized"
            }
            (kind, _) => kind.name(),
        }
        .to_owned(),
        Escape::Pid => pid().to_string(),
        // A statement runs in its session's own thread.
        Escape::Leader => String::new(),
        Escape::Seconds => time(now, false),
        Escape::Milliseconds => time(now, true),
        Escape::Epoch => {
            let since_1970 = now.saturating_add(super::SINCE_1970_US);
            let millis = since_1970.rem_euclid(1_000_000) / 1000;
            format!("{}.{millis:03}", since_1970.div_euclid(1_000_000))
        }
        Escape::Command => match peer {
            Some(_) => COMMAND.try_with(|c| c.borrow().clone()).unwrap_or_default(),
            None => String::new(),
        },
        Escape::State => state.to_owned(),
        Escape::Session => {
            let seconds = started().saturating_add(super::SINCE_1970_US).div_euclid(1_000_000);
            format!("{seconds:x}.{:x}", pid())
        }
        Escape::Line => LINE.get().to_string(),
        Escape::Started => time(started(), false),
        Escape::VirtualXid => transaction()
            .map(|t| t.virtual_xid())
            .map_or(String::new(), |(slot, n)| format!("{slot}/{n}")),
        // Its lower half is what SQL shows of it.
        Escape::Xid => transaction().map_or(0, |t| t.xid() & 0xffff_ffff).to_string(),
        Escape::Query => QUERY.try_with(Cell::get).unwrap_or(0).to_string(),
    }
}

fn transaction() -> Option<Arc<dyn Transaction>> {
    TRANSACTION.try_with(|t| t.borrow().as_ref().and_then(Weak::upgrade)).ok().flatten()
}

/// `2026-11-21 21:40:00.123 UTC`
fn time(us: i64, millis: bool) -> String {
    let clock = CLOCK.read().ok().and_then(|c| c.clone());
    let (local, zone) = clock.map_or_else(|| (us, "UTC".to_owned()), |clock| clock(us));
    let micros = local.saturating_add(super::SINCE_1970_US);
    let (year, month, day) = civil(micros.div_euclid(86_400_000_000));
    let in_day = micros.rem_euclid(86_400_000_000);
    let seconds = in_day / 1_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    if millis {
        let _ = write!(text, ".{:03}", in_day % 1_000_000 / 1000);
    }
    text.push(' ');
    text.push_str(&zone);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(setting: &str) -> Vec<Part> {
        Prefix::read(setting).0
    }

    #[test]
    fn escapes_widths_and_what_is_none() {
        let text = |s: &str| Part::Text(s.to_owned());
        assert_eq!(
            parts("%m [%p] "),
            [
                Part::Told(Escape::Milliseconds, 0),
                text(" ["),
                Part::Told(Escape::Pid, 0),
                text("] ")
            ]
        );
        assert_eq!(
            parts("100%% %-10u%5l%q%z%-z%"),
            [
                text("100% "),
                Part::Told(Escape::User, -10),
                Part::Told(Escape::Line, 5),
                Part::ClientsOnly
            ]
        );
        assert_eq!(parts("%5%|"), [text("|")]);
        assert_eq!(parts(""), []);
    }

    #[test]
    fn a_width_puts_spaces_on_one_side() {
        let padded = |value, width| {
            let mut text = String::new();
            pad(&mut text, value, width);
            text
        };
        assert_eq!(padded("ab", 4), "  ab");
        assert_eq!(padded("ab", -4), "ab  ");
        assert_eq!(padded("abcde", 4), "abcde");
        assert_eq!(padded("", -2), "  ");
    }

    #[test]
    fn a_client_is_known_bit_by_bit() {
        let of = |escape| {
            let peer = PEER.with_borrow(Clone::clone);
            value(escape, "22012", 0, peer.as_ref())
        };
        assert_eq!(of(Escape::Local), "[none]");
        assert_eq!(of(Escape::User), "");
        assert_eq!(of(Escape::BackendType), "postmaster");
        let (host, port, local) = ("::1".to_owned(), "5".to_owned(), "::1".to_owned());
        begin_peer(Peer { host, port, local, ..Peer::default() });
        assert_eq!(of(Escape::User), "[unknown]");
        assert_eq!(of(Escape::HostAndPort), "::1(5)");
        assert_eq!(of(Escape::BackendType), "not initialized");
        set_peer("me", "here");
        set_application("tests");
        assert_eq!([of(Escape::User), of(Escape::Database)], ["me", "here"]);
        assert_eq!(of(Escape::Application), "tests");
        assert_eq!(of(Escape::BackendType), "client backend");
        assert_eq!(of(Escape::State), "22012");
        assert_eq!(of(Escape::Xid), "0");
        assert_eq!(of(Escape::Epoch), "946684800.000");
    }
}
