//! What texts settings take, where the settings themselves (`base::settings`) do not know it.
//!
//! # Differs from PostgreSQL
//! Messages, numbers and dates are written in one way only: a locale's name has to be one, the locale is not looked for.

use crate::names::split_list;
use crate::parse::truncate_identifier;
use base::settings::{Context, Definition, Value, checked, find};
use base::{Result, SqlError, SqlState, bail};
use std::borrow::Cow;
use types::datetime::zone::TimeZone;

/// The longest name that a catalog holds.
const LONGEST_NAME: usize = 63;

/// A setting's value as it is kept.
///
/// # Errors
/// `22023`, `0A000`
pub(super) fn spelled<'v>(name: &str, value: &'v str) -> Result<Cow<'v, str>> {
    let Some((_, def)) = find(name) else { return Ok(Cow::Borrowed(value)) };
    let wrong = |why: String| {
        let what = format!("invalid value for parameter \"{}\": \"{value}\"", def.name);
        let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what);
        if why.is_empty() { error } else { error.detail(why) }
    };
    let checked = match def.name {
        "TimeZone" | "log_timezone" => {
            let Some(zone) = TimeZone::by_name(value) else {
                return Err(wrong(String::new()).into());
            };
            return Ok(zone.name().to_owned().into());
        }
        "application_name" | "cluster_name" => return Ok(plain_name(value)),
        "search_path" | "temp_tablespaces" | "DateStyle" => words(value, |_| true),
        "createrole_self_grant" => words(value, |w| ["set", "inherit"].contains(&w)),
        "restrict_nonsystem_relation_kind" => {
            words(value, |w| ["view", "foreign-table"].contains(&w))
        }
        "log_destination" => {
            words(value, |w| ["stderr", "csvlog", "jsonlog", "syslog"].contains(&w))
        }
        "log_connections" => log_connections(value),
        "lc_messages" | "lc_monetary" | "lc_numeric" | "lc_time" => {
            if is_locale(value) {
                Ok(())
            } else {
                Err(String::new())
            }
        }
        "default_table_access_method" => table_access_method(value),
        _ => Ok(()),
    };
    checked.map_err(wrong)?;
    // Dumps of old servers say so.
    if def.name == "default_with_oids" && def.parse(value)?.as_bool() {
        bail!(FEATURE_NOT_SUPPORTED, "tables declared WITH OIDS are not supported");
    }
    Ok(Cow::Borrowed(value))
}

/// [`spelled`] for a session, which looks for what the value names. Of tablespaces and table access methods there are no others.
///
/// # Errors
/// `22023`, `0A000`
pub(super) fn in_session<'v>(name: &str, value: &'v str, starting: bool) -> Result<Cow<'v, str>> {
    use Context::{Backend, Internal, Postmaster, Sighup, SuperuserBackend};
    // That it can't be set is said first.
    let refused = |context| match context {
        Internal | Postmaster | Sighup => true,
        Backend | SuperuserBackend => !starting,
        _ => false,
    };
    if find(name).is_some_and(|(_, def)| refused(def.context)) {
        return Ok(Cow::Borrowed(value));
    }
    let (what, known): (_, &[&str]) = match name.to_ascii_lowercase().as_str() {
        "default_tablespace" => ("Tablespace", &["", "pg_default", "pg_global"]),
        "default_table_access_method" => ("Table access method", &["", "heap"]),
        _ => return spelled(name, value),
    };
    let value = spelled(name, value)?;
    if !known.contains(&&*value) {
        let text = format!("invalid value for parameter \"{name}\": \"{value}\"");
        let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text);
        return Err(error.detail(format!("{what} \"{value}\" does not exist.")).into());
    }
    Ok(value)
}

/// What a configuration file or the command line gives, as it is kept.
///
/// # Errors
/// `22023`, `0A000`
pub fn kept(def: &Definition, value: Value) -> Result<Value> {
    let Value::Text(text) = &value else { return Ok(value) };
    let spelled = spelled(def.name, text)?;
    Ok(if *spelled == **text { value } else { Value::Text(spelled.into_owned()) })
}

/// May a setting be kept for later as `value`?
///
/// # Errors
/// `22023`
pub(crate) fn check_setting(def: &Definition, value: &str) -> Result<()> {
    kept(def, checked(def, value)?).map(|_| ())
}

/// A list of words that `known` knows in lower case; an error is its detail.
fn words(text: &str, known: impl Fn(&str) -> bool) -> Result<(), String> {
    let Some(words) = split_list(text) else { return Err("List syntax is invalid.".into()) };
    match words.iter().find(|word| !known(&word.to_ascii_lowercase())) {
        Some(word) => Err(format!("Unrecognized key word: \"{word}\".")),
        None => Ok(()),
    }
}

/// A name that every encoding has, no longer than names are.
fn plain_name(text: &str) -> Cow<'_, str> {
    let text = truncate_identifier(text);
    if text.bytes().all(|b| (32..127).contains(&b)) {
        return Cow::Borrowed(text);
    }
    let shown = |b: u8| match b {
        32..127 => char::from(b).to_string(),
        _ => format!("\\x{b:02x}"),
    };
    text.bytes().map(shown).collect::<String>().into()
}

fn log_connections(text: &str) -> Result<(), String> {
    const ALONE: [&str; 8] = ["off", "false", "no", "0", "on", "true", "yes", "1"];
    const TOGETHER: [&str; 5] =
        ["receipt", "authentication", "authorization", "setup_durations", "all"];
    let Some(words) = split_list(text) else {
        return Err("Invalid list syntax in parameter \"log_connections\".".into());
    };
    let of = |list: &[&str], word: &str| list.iter().any(|w| w.eq_ignore_ascii_case(word));
    if let Some(first) = words.first().filter(|first| of(&ALONE, first)) {
        if words.len() == 1 {
            return Ok(());
        }
        return Err(format!(
            "Cannot specify log_connections option \"{first}\" in a list with other options."
        ));
    }
    match words.iter().find(|word| !of(&TOGETHER, word)) {
        Some(word) => Err(format!("Invalid option \"{word}\".")),
        None => Ok(()),
    }
}

fn table_access_method(text: &str) -> Result<(), String> {
    let name = "default_table_access_method";
    if text.is_empty() {
        return Err(format!("\"{name}\" cannot be empty."));
    }
    if text.len() > LONGEST_NAME {
        return Err(format!("\"{name}\" is too long (maximum {LONGEST_NAME} characters)."));
    }
    Ok(())
}

/// Is it the name of a locale: `C`, `POSIX`, or language, territory, code set and modifier?
fn is_locale(text: &str) -> bool {
    let (text, modifier) = text.split_once('@').unwrap_or((text, "x"));
    let (text, codes) = text.split_once('.').unwrap_or((text, "x"));
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    if !word(modifier) || !word(codes) {
        return false;
    }
    if ["", "C", "POSIX"].contains(&text) {
        return !(text.is_empty() && (modifier, codes) != ("x", "x"));
    }
    let (language, territory) = text.split_once('_').unwrap_or((text, "XX"));
    (2..=3).contains(&language.len())
        && language.bytes().all(|b| b.is_ascii_lowercase())
        && territory.len() == 2
        && territory.bytes().all(|b| b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::{in_session, kept, spelled};
    use base::settings::{Value, find};

    fn told(name: &str, text: &str) -> String {
        match spelled(name, text) {
            Ok(_) => String::new(),
            Err(error) => {
                let error = error.to_sql_error();
                error.detail.unwrap_or(error.message)
            }
        }
    }

    #[test]
    fn texts_are_looked_at() {
        let syntax = "List syntax is invalid.";
        for (name, text, wanted) in [
            ("TimeZone", "europe/berlin", ""),
            ("timezone", "nowhere", "invalid value for parameter \"TimeZone\": \"nowhere\""),
            ("log_timezone", "x", "invalid value for parameter \"log_timezone\": \"x\""),
            ("search_path", "", ""),
            ("search_path", "\"$user\", Public,\"a,b\" , c", ""),
            ("search_path", "a,,b", syntax),
            ("search_path", "a,", syntax),
            ("search_path", "a b", syntax),
            ("search_path", "\"a", syntax),
            ("temp_tablespaces", ",", syntax),
            ("DateStyle", "iso,,mdy", syntax),
            ("createrole_self_grant", "Set, inherit", ""),
            ("createrole_self_grant", "set, admin", "Unrecognized key word: \"admin\"."),
            ("log_destination", "stderr", ""),
            ("log_destination", "paper", "Unrecognized key word: \"paper\"."),
            ("restrict_nonsystem_relation_kind", "view, foreign-table", ""),
            ("log_connections", "", ""),
            ("log_connections", "On", ""),
            ("log_connections", "receipt, All", ""),
            (
                "log_connections",
                "on, receipt",
                "Cannot specify log_connections option \"on\" in a list with other options.",
            ),
            ("log_connections", "receipt,on", "Invalid option \"on\"."),
            ("log_connections", "a,,b", "Invalid list syntax in parameter \"log_connections\"."),
            ("lc_messages", "C", ""),
            ("lc_time", "", ""),
            ("lc_numeric", "C.UTF-8", ""),
            ("lc_monetary", "de_DE.utf8@euro", ""),
            ("lc_monetary", "xx yy", "invalid value for parameter \"lc_monetary\": \"xx yy\""),
            ("lc_time", ".", "invalid value for parameter \"lc_time\": \".\""),
            ("default_table_access_method", "", "\"default_table_access_method\" cannot be empty."),
            ("work_mem", "nobody looks here", ""),
            ("no.such", "x", ""),
        ] {
            assert_eq!(told(name, text), wanted, "{name} = {text}");
        }
    }

    #[test]
    fn a_zone_is_kept_under_its_own_name() {
        let (_, def) = find("log_timezone").unwrap();
        let value = |text: &str| Value::Text(text.into());
        assert_eq!(kept(def, value("europe/berlin")).unwrap(), value("Europe/Berlin"));
        assert!(kept(def, value("nowhere")).is_err());
        // A file may name a tablespace that is not there.
        assert!(spelled("default_tablespace", "t").is_ok());
        assert!(in_session("default_tablespace", "t", false).is_err());
        assert!(in_session("default_tablespace", "pg_default", false).is_ok());
        // It can't be set at all: others say so.
        assert!(in_session("log_destination", "paper", true).is_ok());
        assert!(in_session("log_connections", "x", false).is_ok());
        assert!(in_session("log_connections", "x", true).is_err());
        assert_eq!(
            in_session("application_name", "a\u{f1}\tb", false).unwrap(),
            "a\\xc3\\xb1\\x09b"
        );
        assert_eq!(in_session("application_name", &"x".repeat(99), false).unwrap().len(), 63);
    }
}
