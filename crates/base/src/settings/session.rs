//! A session's own values over the server's.

use super::{Context, Definition, Entry, ServerSettings, Source, Value, definition, find};
use crate::{Result, bail};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How long a SET lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetScope {
    /// To the end of the session (undone if the transaction aborts).
    Session,
    /// To the end of the transaction (SET LOCAL).
    Local,
}

#[derive(Clone, Debug)]
struct Own {
    value: Value,
    source: Source,
}

/// What to put back at the end of a (sub)transaction.
#[derive(Debug)]
struct Undo {
    index: usize,
    before: Option<Own>,
    scope: SetScope,
    nest: u32,
}

/// A session's values. Reading costs one array step.
pub struct SessionSettings {
    server: Arc<ServerSettings>,
    seen_generation: u64,
    /// Values in force, by index.
    current: Vec<Value>,
    own: HashMap<usize, Own>,
    /// What RESET goes back to: set by database, role or the client at start.
    defaults: HashMap<usize, Own>,
    /// Extensions' settings (`my.name`): kept as text. One that was ever named stays, empty when nothing is left of its values.
    custom: BTreeMap<String, String>,
    /// What RESET goes back to, of these.
    custom_defaults: BTreeMap<String, String>,
    /// What the server's files last said of them.
    custom_of_server: BTreeMap<String, String>,
    custom_undo: Vec<(String, Option<String>, SetScope, u32)>,
    undo: Vec<Undo>,
    nest: u32,
    version: u64,
}

impl SessionSettings {
    /// The server's values, nothing of its own.
    pub fn new(server: Arc<ServerSettings>) -> SessionSettings {
        let mut s = SessionSettings {
            server,
            seen_generation: 0,
            current: Vec::new(),
            own: HashMap::new(),
            defaults: HashMap::new(),
            custom: BTreeMap::new(),
            custom_defaults: BTreeMap::new(),
            custom_of_server: BTreeMap::new(),
            custom_undo: Vec::new(),
            undo: Vec::new(),
            nest: 0,
            version: 0,
        };
        s.refresh();
        s
    }

    /// Rises with every change of a value: what is derived from values need be made anew only then.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The server's settings below these.
    pub fn server(&self) -> &Arc<ServerSettings> {
        &self.server
    }

    /// Takes in a reload of the server's values; called between statements.
    pub fn refresh(&mut self) {
        let generation = self.server.generation();
        if generation == self.seen_generation {
            return;
        }
        self.seen_generation = generation;
        self.version += 1;
        for (name, text) in self.server.custom() {
            let before = self.custom_of_server.insert(name.clone(), text.clone());
            // What is the session's own, or its role's, stays.
            if self.custom.get(&name).is_none_or(|now| Some(now) == before.as_ref()) {
                self.custom.insert(name.clone(), text.clone());
            }
            if self.custom_defaults.get(&name).is_none_or(|now| Some(now) == before.as_ref()) {
                self.custom_defaults.insert(name, text);
            }
        }
        self.current = super::DEFINITIONS
            .iter()
            .enumerate()
            .map(|(i, _)| match self.own.get(&i).or_else(|| self.defaults.get(&i)) {
                Some(own) => own.value.clone(),
                None => self.server.entry(i).value,
            })
            .collect();
    }

    /// The value of a setting known to exist.
    ///
    /// # Panics
    /// When there is no such setting: a bug.
    pub fn get(&self, name: &str) -> &Value {
        let (index, _) = find(name).unwrap_or_else(|| panic!("no setting called {name}"));
        &self.current[index]
    }
    /// The value by [`find`]'s index.
    #[inline]
    pub fn at(&self, index: usize) -> &Value {
        &self.current[index]
    }
    /// An integer, in its base unit.
    pub fn int(&self, name: &str) -> i64 {
        self.get(name).as_int()
    }
    /// A boolean.
    pub fn bool(&self, name: &str) -> bool {
        self.get(name).as_bool()
    }
    /// A real.
    pub fn real(&self, name: &str) -> f64 {
        self.get(name).as_real()
    }
    /// A text or enum.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).as_str()
    }
    /// Where the value in force came from.
    pub fn source(&self, index: usize) -> Source {
        self.source_over(&self.server.entry(index), index)
    }

    /// The same, where the server's entry is at hand.
    pub fn source_over(&self, entry: &Entry, index: usize) -> Source {
        match self.own.get(&index).or_else(|| self.defaults.get(&index)) {
            Some(own) => own.source,
            None => entry.source,
        }
    }

    /// What RESET would make of it.
    pub fn reset_value(&self, index: usize) -> Value {
        self.reset_value_over(&self.server.entry(index), index).clone()
    }

    /// The same, where the server's entry is at hand.
    pub fn reset_value_over<'a>(&'a self, entry: &'a Entry, index: usize) -> &'a Value {
        self.defaults.get(&index).map_or(&entry.value, |default| &default.value)
    }

    /// As SHOW prints it.
    ///
    /// # Errors
    /// `42704`
    pub fn show(&self, name: &str) -> Result<String> {
        if let Some(value) = self.custom.get(&name.to_ascii_lowercase()) {
            return Ok(value.clone());
        }
        let (index, def) = definition(name)?;
        Ok(def.show(&self.current[index]))
    }

    /// A value given at connection start by the client, the role or the database.
    ///
    /// # Errors
    /// `42704`, `22023`, `55P02`
    pub fn set_default(&mut self, name: &str, text: &str, source: Source) -> Result<()> {
        let Some((index, def)) = find(name) else {
            check_custom_name(name)?;
            self.custom.insert(name.to_ascii_lowercase(), text.to_owned());
            self.custom_defaults.insert(name.to_ascii_lowercase(), text.to_owned());
            return Ok(());
        };
        if matches!(def.context, Context::Internal | Context::Postmaster | Context::Sighup) {
            return Err(cannot_change(def));
        }
        let value = canonical(def, def.parse(text)?, self.current[index].as_str())?;
        self.version += 1;
        self.current[index] = value.clone();
        self.defaults.insert(index, Own { value, source });
        Ok(())
    }

    /// SET: the new value in force, printed as SHOW would.
    ///
    /// # Errors
    /// `42704`, `22023`, `55P02`, `42501`
    pub fn set(&mut self, name: &str, text: &str, scope: SetScope, superuser: bool) -> Result<()> {
        let Some((index, def)) = find(name) else {
            check_custom_name(name)?;
            self.set_custom(name.to_ascii_lowercase(), text.to_owned(), scope);
            return Ok(());
        };
        check_context(def, superuser)?;
        let value = canonical(def, def.parse(text)?, self.current[index].as_str())?;
        self.put(index, Some(Own { value, source: Source::Session }), scope);
        Ok(())
    }

    /// RESET, SET … TO DEFAULT.
    ///
    /// # Errors
    /// `42704`, `55P02`, `42501`
    pub fn reset(&mut self, name: &str, scope: SetScope, superuser: bool) -> Result<()> {
        let Some((index, def)) = find(name) else {
            let key = name.to_ascii_lowercase();
            if !self.custom.contains_key(&key) {
                check_custom_name(name)?;
            }
            self.reset_custom(key, scope);
            return Ok(());
        };
        check_context(def, superuser)?;
        self.put(index, None, scope);
        Ok(())
    }

    /// RESET ALL.
    pub fn reset_all(&mut self) {
        let mut indexes: Vec<usize> = self.own.keys().copied().collect();
        indexes.sort_unstable();
        for index in indexes {
            let keep = [
                "transaction_isolation",
                "transaction_read_only",
                "transaction_deferrable",
                "role",
                "session_authorization",
            ];
            if !keep.contains(&super::DEFINITIONS[index].name) {
                self.put(index, None, SetScope::Session);
            }
        }
        for name in self.custom.keys().cloned().collect::<Vec<_>>() {
            self.reset_custom(name, SetScope::Session);
        }
    }

    fn reset_custom(&mut self, name: String, scope: SetScope) {
        let text = self.custom_defaults.get(&name).cloned().unwrap_or_default();
        self.set_custom(name, text, scope);
    }

    fn set_custom(&mut self, name: String, text: String, scope: SetScope) {
        let before = self.custom.insert(name.clone(), text);
        self.custom_undo.push((name, before, scope, self.nest));
    }

    fn put(&mut self, index: usize, own: Option<Own>, scope: SetScope) {
        let before = self.own.get(&index).cloned();
        self.undo.push(Undo { index, before, scope, nest: self.nest });
        self.install(index, own);
    }

    fn install(&mut self, index: usize, own: Option<Own>) {
        self.version += 1;
        self.current[index] = match own.as_ref().or_else(|| self.defaults.get(&index)) {
            Some(own) => own.value.clone(),
            None => self.server.entry(index).value,
        };
        match own {
            Some(own) => self.own.insert(index, own),
            None => self.own.remove(&index),
        };
    }

    /// A savepoint begins.
    pub fn begin_nested(&mut self) {
        self.nest += 1;
    }

    /// A savepoint is released (`commit`) or rolled back.
    pub fn end_nested(&mut self, commit: bool) {
        if commit {
            for undo in &mut self.undo {
                undo.nest = undo.nest.min(self.nest.saturating_sub(1));
            }
            for undo in &mut self.custom_undo {
                undo.3 = undo.3.min(self.nest.saturating_sub(1));
            }
        } else {
            while self.undo.last().is_some_and(|u| u.nest >= self.nest) {
                let undo = self.undo.pop().expect("looked at above");
                self.install(undo.index, undo.before);
            }
            while self.custom_undo.last().is_some_and(|u| u.3 >= self.nest) {
                let (name, before, ..) = self.custom_undo.pop().expect("looked at above");
                self.custom.insert(name, before.unwrap_or_default());
            }
        }
        self.nest = self.nest.saturating_sub(1);
    }

    /// The transaction ends: an abort undoes every SET in it, a commit the local ones.
    pub fn end_transaction(&mut self, commit: bool) {
        self.nest = 0;
        // Newest first, so that the oldest state wins. After a commit, a value SET for the session
        // later than a SET LOCAL stays; an earlier one comes back when the local one is undone.
        let mut kept: Vec<usize> = Vec::new();
        while let Some(undo) = self.undo.pop() {
            let session = undo.scope == SetScope::Session;
            if commit && session {
                kept.push(undo.index);
            } else if !kept.contains(&undo.index) {
                self.install(undo.index, undo.before);
            }
        }
        let mut kept: Vec<String> = Vec::new();
        while let Some((name, before, scope, _)) = self.custom_undo.pop() {
            if commit && scope == SetScope::Session {
                kept.push(name);
            } else if !kept.contains(&name) {
                self.custom.insert(name, before.unwrap_or_default());
            }
        }
    }

    /// Names and values of extensions' settings.
    pub fn custom(&self) -> impl Iterator<Item = (&str, &str)> {
        self.custom.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }
}

/// May a setting that nobody has defined be called so? Two or more identifiers with dots between them.
///
/// # Errors
/// `42704` for a name without a dot, `42602`
pub fn check_custom_name(name: &str) -> Result<()> {
    if !name.contains('.') {
        definition(name)?;
    }
    let of_word = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_word = |word: &str| {
        word.starts_with(of_word)
            && word.chars().all(|c| of_word(c) || c.is_ascii_digit() || c == '$')
    };
    let why = if !name.split('.').all(is_word) {
        "Custom parameter names must be two or more simple identifiers separated by dots."
    } else if name.split('.').next().is_some_and(|first| first.eq_ignore_ascii_case("ebb")) {
        "\"ebb\" is a reserved prefix."
    } else {
        return Ok(());
    };
    let what = format!("invalid configuration parameter name \"{name}\"");
    Err(crate::SqlError::new(crate::SqlState::INVALID_NAME, what).detail(why).into())
}

fn cannot_change(def: &Definition) -> crate::Error {
    match def.context {
        Context::Internal => {
            crate::err!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{}\" cannot be changed", def.name)
        }
        Context::Postmaster => crate::err!(
            CANT_CHANGE_RUNTIME_PARAM,
            "parameter \"{}\" cannot be changed without restarting the server",
            def.name
        ),
        Context::Sighup => crate::err!(
            CANT_CHANGE_RUNTIME_PARAM,
            "parameter \"{}\" cannot be changed now",
            def.name
        ),
        _ => crate::err!(
            CANT_CHANGE_RUNTIME_PARAM,
            "parameter \"{}\" cannot be set after connection start",
            def.name
        ),
    }
}

/// May `ALTER ROLE … SET` and `ALTER DATABASE … SET` keep this setting for sessions to come?
///
/// # Errors
/// `55P02`, `42501`
pub fn check_default(def: &Definition, superuser: bool) -> Result<()> {
    match def.context {
        Context::User => Ok(()),
        Context::Superuser => check_context(def, superuser),
        _ => Err(cannot_change(def)),
    }
}

fn check_context(def: &Definition, superuser: bool) -> Result<()> {
    match def.context {
        Context::User => Ok(()),
        Context::Superuser if superuser => Ok(()),
        Context::Superuser => Err(denied(def)),
        _ => Err(cannot_change(def)),
    }
}

/// The value that `text` is, of a setting that is to have it later.
///
/// # Errors
/// `22023`
pub fn checked(def: &Definition, text: &str) -> Result<Value> {
    canonical(def, def.parse(text)?, "ISO, MDY")
}

/// May the client set this when it connects? Whether it can be set then is another question.
///
/// # Errors
/// `42501`
pub fn check_start(name: &str, superuser: bool) -> Result<()> {
    match find(name) {
        Some((_, def))
            if !superuser
                && matches!(def.context, Context::Superuser | Context::SuperuserBackend) =>
        {
            Err(denied(def))
        }
        _ => Ok(()),
    }
}

fn denied(def: &Definition) -> crate::Error {
    crate::err!(INSUFFICIENT_PRIVILEGE, "permission denied to set parameter \"{}\"", def.name)
}

/// Checks beyond the kind, and the spelling PostgreSQL shows.
fn canonical(def: &Definition, value: Value, current: &str) -> Result<Value> {
    let Value::Text(text) = &value else { return Ok(value) };
    let unquoted = text.trim().trim_matches('"');
    match def.name {
        "client_encoding" => {
            let Some(encoding) = crate::encoding::by_name(unquoted) else {
                bail!(
                    INVALID_PARAMETER_VALUE,
                    "invalid value for parameter \"client_encoding\": \"{text}\""
                )
            };
            Ok(Value::Text(encoding.name().into()))
        }
        "DateStyle" => date_style(text, current),
        _ => Ok(value),
    }
}

/// Half of `DateStyle` may be given; the other one stays as it is in `current`.
fn date_style(text: &str, current: &str) -> Result<Value> {
    let bad = |why: String| {
        let what = format!("invalid value for parameter \"DateStyle\": \"{text}\"");
        crate::SqlError::new(crate::SqlState::INVALID_PARAMETER_VALUE, what).detail(why)
    };
    let conflict = || bad("Conflicting \"DateStyle\" specifications.".into());
    let (mut style, mut order, mut usual) = (None, None, None);
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        let word = word.trim_matches('"');
        let (half, value) = match word.to_ascii_lowercase().as_str() {
            "iso" => (&mut style, "ISO"),
            "sql" => (&mut style, "SQL"),
            "german" => {
                usual = Some("DMY");
                (&mut style, "German")
            }
            w if w.starts_with("postgres") => (&mut style, "Postgres"),
            "ymd" => (&mut order, "YMD"),
            w if w == "dmy" || w.starts_with("euro") => (&mut order, "DMY"),
            w if w == "mdy" || w == "us" || w.starts_with("noneuro") => (&mut order, "MDY"),
            "default" => {
                style.get_or_insert("ISO");
                order.get_or_insert("MDY");
                continue;
            }
            _ => return Err(bad(format!("Unrecognized key word: \"{word}\".")).into()),
        };
        if half.is_some_and(|known| known != value) {
            return Err(conflict().into());
        }
        *half = Some(value);
    }
    let (old_style, old_order) = current.split_once(", ").unwrap_or(("ISO", "MDY"));
    let style = style.unwrap_or(old_style);
    let order = order.or(usual).unwrap_or(old_order);
    Ok(Value::Text(format!("{style}, {order}")))
}
