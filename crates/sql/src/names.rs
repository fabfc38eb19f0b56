//! Identifiers in text: splitting lists of them, quoting them. Those that are too long for a name are cut.

use crate::parse::truncate_identifier;
use base::{Oid, Result, bail};
use engine::catalog::model::CatalogView;

/// Splits `a, "B c", d` as `search_path` is split: bare names in lower case, quoted ones as they are.
pub fn split_identifier_list(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.peek().is_some_and(|c| c.is_whitespace() || *c == ',') {
            chars.next();
        }
        let Some(&first) = chars.peek() else { return names };
        let mut name = String::new();
        if first == '"' {
            chars.next();
            while let Some(c) = chars.next() {
                if c == '"' {
                    if chars.peek() == Some(&'"') {
                        chars.next();
                    } else {
                        break;
                    }
                }
                name.push(c);
            }
        } else {
            while let Some(&c) = chars.peek() {
                if c == ',' || c.is_whitespace() {
                    break;
                }
                name.extend(c.to_lowercase());
                chars.next();
            }
        }
        if !name.is_empty() {
            names.push(truncate_identifier(&name).to_owned());
        }
    }
}

/// Is there a type with this OID?
///
/// # Errors
/// I/O.
pub fn is_type(catalog: &dyn CatalogView, oid: Oid) -> Result<bool> {
    let oid = types::row_types::row_of(oid).unwrap_or(oid);
    Ok(types::type_info(oid).is_some() || catalog.table_of_row_type(oid)?.is_some())
}

/// Splits a list of names as [`split_identifier_list`] does; none if it is not laid out as one: a name is missing or has no end, or two
/// stand together.
pub fn split_list(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => until_quote(quoted).ok()?,
            None => {
                let end = rest.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(rest.len());
                let (bare, after) = rest.split_at(end);
                (bare.to_lowercase(), after)
            }
        };
        let quoted = rest.starts_with('"');
        if name.is_empty() && !quoted {
            return None;
        }
        names.push(truncate_identifier(&name).to_owned());
        rest = after.trim_start();
        if rest.is_empty() {
            return Some(names);
        }
        rest = rest.strip_prefix(',')?.trim_start();
    }
}

/// Splits `schema.name` at dots outside quotes, names folded as above. Spaces may stand around names, not in them unquoted.
///
/// # Errors
/// `42602`: a bare name is empty or two stand together; a quote is left open.
pub fn split_qualified(text: &str) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let name = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, after) = until_quote(quoted)?;
                rest = after;
                name
            }
            None => {
                let end = rest.find(|c: char| c == '.' || c.is_whitespace()).unwrap_or(rest.len());
                let (bare, after) = rest.split_at(end);
                if bare.is_empty() {
                    bail!(INVALID_NAME, "invalid name syntax");
                }
                rest = after;
                bare.to_lowercase()
            }
        };
        parts.push(truncate_identifier(&name).to_owned());
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None if rest.is_empty() => return Ok(parts),
            None => bail!(INVALID_NAME, "invalid name syntax"),
        }
    }
}

/// Splits the name of a type, which may go on behind its last word: `pg_catalog.timestamp(3) with time zone`, `s.t []`.
pub fn split_type_name(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                parts.last_mut().expect("never empty").push('"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c if quoted => parts.last_mut().expect("never empty").push(c),
            c => parts.last_mut().expect("never empty").extend(c.to_lowercase()),
        }
    }
    parts.iter().map(|part| truncate_identifier(part).to_owned()).collect()
}

/// A quoted name, whose first quote has been read, and what stands behind it.
fn until_quote(text: &str) -> Result<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let Some((before, after)) = rest.split_once('"') else {
            bail!(INVALID_NAME, "invalid name syntax")
        };
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(next) => {
                name.push('"');
                rest = next;
            }
            None => return Ok((name, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_qualified_names_split() {
        assert_eq!(split_identifier_list("\"$user\", Public, \"A b\""), ["$user", "public", "A b"]);
        assert_eq!(split_identifier_list(""), Vec::<String>::new());
        let split = |text: &str| split_qualified(text).map_err(|e| e.state());
        assert_eq!(split("Pg_Catalog.\"X.y\"").unwrap(), ["pg_catalog", "X.y"]);
        assert_eq!(split(" A . \"b \"\" C\" ").unwrap(), ["a", "b \" C"]);
        for wrong in ["", " ", "S 2", "\"a\"b", "a.", ".a", "a..b", "\"a", "a b.c"] {
            assert_eq!(split(wrong), Err(base::SqlState::INVALID_NAME), "{wrong}");
        }
        let long = format!("s.{}é", "x".repeat(62));
        assert_eq!(split(&long).unwrap(), ["s", &long[2..64]]);
    }
}
