//! Isolation scripts: several sessions, their steps in a given order, and who waits for whom.
//!
//! A script (`tests/isolation/*.spec`) is read by lines:
//!
//! ```text
//! # a comment
//! setup      SQL to run before each permutation
//! teardown   SQL to run after it
//! session s1
//! step a     SQL of step `a` of that session
//! permutation a b c!
//! ```
//!
//! SQL may go on in indented lines. A step that blocks prints `<waiting>`, and its answer when it
//! comes; not one with a `!`, which ends by itself (a deadlock, a timeout) and is waited for,
//! however long it blocks before. Whether a session blocks is asked of the server (`pg_blocking_pids`), not guessed from
//! the time it takes. Expected output is what PostgreSQL printed.

use crate::client::{Client, Event, Outcome, Target};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A script.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    setup: Vec<String>,
    teardown: Vec<String>,
    sessions: Vec<String>,
    /// Step name → (index of its session, SQL).
    steps: BTreeMap<String, (usize, String)>,
    permutations: Vec<Vec<String>>,
}

impl Spec {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Spec> {
        let mut spec = Spec::default();
        let mut statements: Vec<String> = Vec::new();
        for line in text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')) {
            match statements.last_mut() {
                Some(last) if line.starts_with(' ') => {
                    last.push('\n');
                    last.push_str(line.trim());
                }
                _ => statements.push(line.trim().to_owned()),
            }
        }
        for statement in statements {
            let (word, rest) =
                statement.split_once(char::is_whitespace).unwrap_or((&statement, ""));
            let rest = rest.trim();
            match word {
                "setup" => spec.setup.push(rest.into()),
                "teardown" => spec.teardown.push(rest.into()),
                "session" => spec.sessions.push(rest.into()),
                "step" => {
                    let (name, sql) =
                        rest.split_once(char::is_whitespace).ok_or("an empty step")?;
                    let session = spec.sessions.len().checked_sub(1).ok_or("a step first")?;
                    spec.steps.insert(name.into(), (session, sql.trim().into()));
                }
                "permutation" => {
                    spec.permutations.push(rest.split_whitespace().map(str::to_owned).collect());
                }
                other => return Err(format!("no such word: {other}").into()),
            }
        }
        Ok(spec)
    }

    /// Runs all permutations and gives what happened.
    pub fn run(&self, target: &Target) -> Result<String> {
        let mut control = Client::connect(target)?;
        let mut text = String::new();
        for permutation in &self.permutations {
            let _ = writeln!(text, "== {}", permutation.join(" ").replace('!', ""));
            for sql in &self.setup {
                control.run(sql)?;
            }
            self.permutation(permutation, target, &mut control, &mut text)?;
            for sql in &self.teardown {
                control.run(sql)?;
            }
        }
        Ok(text)
    }

    fn permutation(
        &self,
        names: &[String],
        target: &Target,
        control: &mut Client,
        text: &mut String,
    ) -> Result<()> {
        let connect = |_| Client::connect(target);
        let mut clients: Vec<Client> = self.sessions.iter().map(connect).collect::<Result<_>>()?;
        let mut waiting: Vec<Option<&str>> = vec![None; clients.len()];
        for name in names {
            let (name, ends) = name.strip_suffix('!').map_or((name.as_str(), false), |n| (n, true));
            let (session, sql) =
                self.steps.get(name).ok_or_else(|| Error::from(format!("no step {name}")))?;
            if let Some(step) = waiting[*session].take() {
                let Some(outcome) = clients[*session].finish_within(PATIENCE)? else {
                    let _ = writeln!(text, "{name} comes while {step} still waits");
                    return Ok(());
                };
                let _ = write!(text, "{step}: <done>\n{}", print(&outcome));
            }
            clients[*session].send_simple(sql)?;
            let client = &mut clients[*session];
            let outcome = if ends {
                Some(
                    client
                        .finish_within(PATIENCE)?
                        .ok_or_else(|| format!("{name} does not end"))?,
                )
            } else {
                await_or_block(client, control)?
            };
            match outcome {
                Some(outcome) => {
                    let _ = write!(text, "{name}: {sql}\n{}", print(&outcome));
                }
                None => {
                    let _ = writeln!(text, "{name}: {sql} <waiting>");
                    waiting[*session] = Some(name);
                }
            }
            // A step may set several free, and one that is set free may free or fail others.
            for session in 0..clients.len() {
                if let Some(step) = waiting[session]
                    && let Some(outcome) = await_or_block(&mut clients[session], control)?
                {
                    let _ = write!(text, "{step}: <done>\n{}", print(&outcome));
                    waiting[session] = None;
                }
            }
        }
        for (session, client) in clients.into_iter().enumerate() {
            if let Some(step) = waiting[session] {
                let _ = writeln!(text, "{step}: still waiting");
                client.cancel()?;
            }
            client.close();
        }
        Ok(())
    }
}

/// The answer, or None once the server says that the session is blocked.
fn await_or_block(client: &mut Client, control: &mut Client) -> Result<Option<Outcome>> {
    let sql = format!("SELECT cardinality(pg_blocking_pids({}))", client.pid);
    let end = Instant::now() + PATIENCE;
    let mut seen = 0;
    while Instant::now() < end {
        if let Some(outcome) = client.finish_within(Duration::from_millis(10))? {
            return Ok(Some(outcome));
        }
        let blocked = control.value(&sql)? != "0";
        seen = if blocked { seen + 1 } else { 0 };
        if seen == 3 {
            return Ok(None);
        }
    }
    Err("a step neither ends nor waits for a lock".into())
}

/// What a step said, a line for each event.
pub fn print(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (at, event) in outcome.events.iter().enumerate() {
        match event {
            Event::Columns(_) if matches!(outcome.events.get(at + 1), Some(Event::Error(_))) => {}
            Event::Columns(columns) => {
                let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
                let _ = writeln!(text, "  {}", names.join("|"));
            }
            Event::Row(values) => {
                let value = |v: &Option<Vec<u8>>| match v {
                    Some(v) => String::from_utf8_lossy(v).into_owned(),
                    None => "∅".into(),
                };
                let values: Vec<String> = values.iter().map(value).collect();
                let _ = writeln!(text, "  {}", values.join("|"));
            }
            Event::Tag(tag) => {
                let _ = writeln!(text, "  = {tag}");
            }
            // Details name processes and transactions, which differ from run to run.
            Event::Error(r) | Event::Notice(r) => {
                let _ = writeln!(text, "  {}: {}: {}", r.severity(), r.sqlstate(), r.message());
            }
            _ => {}
        }
    }
    text
}
