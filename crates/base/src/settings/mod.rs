//! The settings registry (PostgreSQL's GUCs).
//!
//! # Purpose
//! [`definition`] finds what a setting is: kind, unit, range, boot value, when it may change.
//! [`ServerSettings`] holds the server's values, layered as PostgreSQL layers them: boot value, the
//! configuration file, `ALTER SYSTEM`'s file, the command line. [`SessionSettings`] holds a session's
//! own on top: database and role defaults, `SET`, and `SET LOCAL`, undone by transaction and savepoint.
//!
//! # Invariants
//! A value is kept parsed and in its setting's base unit; a text that does not parse or is out of
//! range never gets in. An `Internal` setting changes only through [`ServerSettings::set_internal`].

mod file;
mod fixed;
mod session;
mod table;
mod value;
mod void;

pub use file::{parse_file, quote_value};
pub use session::{
    SessionSettings, SetScope, check_custom_name, check_default, check_start, checked,
};
pub use table::DEFINITIONS;
pub use value::{Context, Definition, Kind, Source, Unit, Value, short};

use crate::{Error, FactMap, Result, bail};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The setting called `name` (case does not matter), with its index.
pub fn find(name: &str) -> Option<(usize, &'static Definition)> {
    static BY_NAME: OnceLock<FactMap<String, usize>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let lower = DEFINITIONS.iter().enumerate().map(|(i, d)| (d.name.to_ascii_lowercase(), i));
        // As the code has them.
        lower.chain(DEFINITIONS.iter().enumerate().map(|(i, d)| (d.name.to_owned(), i))).collect()
    });
    let index = match by_name.get(name) {
        Some(i) => *i,
        None => *by_name.get(&name.to_ascii_lowercase())?,
    };
    Some((index, &DEFINITIONS[index]))
}

/// The setting called `name`.
///
/// # Errors
/// `42704`, PostgreSQL's text.
pub fn definition(name: &str) -> Result<(usize, &'static Definition)> {
    match find(name) {
        Some(found) => Ok(found),
        None => bail!(UNDEFINED_OBJECT, "unrecognized configuration parameter \"{name}\""),
    }
}

/// A value and where it came from.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// Where it came from.
    pub source: Source,
    /// File and line, for values from files.
    pub location: Option<(String, u32)>,
    /// Changed in the file, but only a restart takes it.
    pub pending_restart: bool,
}

/// Looks at a value that is of the right kind and within its range: what it is kept as.
pub type Check = fn(&Definition, Value) -> Result<Value>;

/// The server's values.
pub struct ServerSettings {
    /// What is to be known above this crate of what may be set.
    check: Check,
    entries: RwLock<Vec<Entry>>,
    /// Settings that nobody has defined (`my.name`), as texts.
    custom: RwLock<BTreeMap<String, String>>,
    generation: AtomicU64,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self::new()
    }
}

/// One assignment from a file or the command line.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The setting.
    pub name: String,
    /// Its value as written.
    pub value: String,
    /// File and line.
    pub location: Option<(String, u32)>,
    /// Which layer it belongs to.
    pub source: Source,
}

impl ServerSettings {
    /// Boot values.
    pub fn new() -> ServerSettings {
        ServerSettings::checked_by(|_, value| Ok(value))
    }

    /// Boot values; what files and the command line give is looked at by `check`, too.
    pub fn checked_by(check: Check) -> ServerSettings {
        let entries = DEFINITIONS.iter().map(boot_entry).collect();
        let custom = RwLock::default();
        let entries = RwLock::new(entries);
        ServerSettings { check, entries, custom, generation: AtomicU64::new(1) }
    }

    /// Takes the assignments of all layers in rising priority. At start (`starting`) every setting
    /// but internal ones may change; at a reload those that need a restart are only marked.
    ///
    /// At a reload a wrong value leaves its setting as it is: what was wrong is given back.
    ///
    /// # Errors
    /// The first bad name, or at start bad value; nothing has changed then.
    pub fn apply(&self, assignments: &[Assignment], starting: bool) -> Result<Vec<Error>> {
        let mut fresh: Vec<Entry> = DEFINITIONS.iter().map(boot_entry).collect();
        // Of several values the last counts, and no other is looked at.
        let mut given: BTreeMap<usize, &Assignment> = BTreeMap::new();
        let mut custom = BTreeMap::new();
        for a in assignments {
            let Some((index, def)) = find(&a.name) else {
                if !a.name.contains('.') {
                    return Err(unrecognized(a));
                }
                // An extension's, or nobody's: accepted, as PostgreSQL does.
                custom.insert(a.name.to_ascii_lowercase(), a.value.clone());
                continue;
            };
            if def.context == Context::Internal {
                bail!(CANT_CHANGE_RUNTIME_PARAM, "parameter \"{}\" cannot be changed", def.name);
            }
            given.insert(index, a);
        }
        let mut wrong = BTreeMap::new();
        for (index, a) in &given {
            match self.checked(&DEFINITIONS[*index], &a.value) {
                Ok(value) => {
                    fresh[*index] = Entry {
                        value,
                        source: a.source,
                        location: a.location.clone(),
                        pending_restart: false,
                    };
                }
                Err(error) if starting => return Err(located(error, a)),
                Err(error) => {
                    wrong.insert(*index, located(error, a));
                }
            }
        }
        let mut said = Vec::new();
        *self.custom.write() = custom;
        let mut entries = self.entries.write();
        for (index, def) in DEFINITIONS.iter().enumerate() {
            if def.context == Context::Internal || wrong.contains_key(&index) {
                continue;
            }
            let (now, before) = (&fresh[index], &mut entries[index]);
            let changed = !starting && before.value != now.value;
            // Where it is, the server knows by itself.
            if def.name == "data_directory" && !starting {
                continue;
            }
            if def.context == Context::Postmaster && !starting {
                before.pending_restart = changed;
                if changed {
                    said.push(format!(
                        "parameter \"{}\" cannot be changed without restarting the server",
                        def.name
                    ));
                }
                continue;
            }
            if changed {
                said.push(match given.get(&index) {
                    Some(a) => format!("parameter \"{}\" changed to \"{}\"", def.name, a.value),
                    None => format!(
                        "parameter \"{}\" removed from configuration file, reset to default",
                        def.name
                    ),
                });
            }
            *before = now.clone();
        }
        drop(entries);
        for line in said {
            crate::log!("{line}");
        }
        self.generation.fetch_add(1, Ordering::SeqCst);
        Ok(wrong.into_values().collect())
    }

    /// The value that `text` is, of a setting that a file or the command line gives.
    ///
    /// # Errors
    /// `22023`
    pub fn checked(&self, def: &Definition, text: &str) -> Result<Value> {
        (self.check)(def, checked(def, text)?)
    }

    /// Sets a value that only the server itself knows (`server_version`, `data_directory`, …).
    ///
    /// # Panics
    /// When there is no such setting: a bug.
    pub fn set_internal(&self, name: &str, value: Value) {
        let (index, _) = find(name).expect("an internal setting's name");
        self.entries.write()[index].value = value;
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// The settings that nobody has defined.
    pub fn custom(&self) -> BTreeMap<String, String> {
        self.custom.read().clone()
    }

    /// Rises with every change: sessions compare it to know when to look again.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The entry of the setting with that index.
    pub fn entry(&self, index: usize) -> Entry {
        self.entries.read()[index].clone()
    }

    /// Looks at all entries, which have their settings' indexes.
    pub fn with_entries<T>(&self, look: impl FnOnce(&[Entry]) -> T) -> T {
        look(&self.entries.read())
    }

    /// A setting's value.
    ///
    /// # Panics
    /// When there is no such setting: a bug.
    pub fn get(&self, name: &str) -> Value {
        let (index, _) = find(name).unwrap_or_else(|| panic!("no setting called {name}"));
        self.entries.read()[index].value.clone()
    }

    /// An integer setting's value in its base unit.
    pub fn int(&self, name: &str) -> i64 {
        self.get(name).as_int()
    }

    /// A boolean setting's value.
    pub fn bool(&self, name: &str) -> bool {
        self.get(name).as_bool()
    }

    /// A real setting's value.
    pub fn real(&self, name: &str) -> f64 {
        self.get(name).as_real()
    }

    /// A string or enum setting's value.
    pub fn string(&self, name: &str) -> String {
        self.get(name).as_str().to_owned()
    }
}

fn unrecognized(a: &Assignment) -> Error {
    let text = format!("unrecognized configuration parameter \"{}\"", a.name);
    located(crate::SqlError::new(crate::SqlState::UNDEFINED_OBJECT, text).into(), a)
}

/// The error, with the place in a file that it is of.
fn located(error: Error, a: &Assignment) -> Error {
    let Some((file, line)) = &a.location else { return error };
    let mut error = error.to_sql_error();
    error.message.push_str(&format!(" in file \"{file}\" line {line}"));
    error.into()
}

fn boot_entry(def: &Definition) -> Entry {
    let value = def.parse(def.boot).unwrap_or_else(|e| panic!("boot value of {}: {e}", def.name));
    Entry { value, source: Source::Default, location: None, pending_restart: false }
}

#[cfg(test)]
mod tests;
