//! Identifiers in text: splitting lists of them, quoting them. Those that are too long for a name are cut.

use crate::parse::truncate_identifier;

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

/// Splits `schema.name` at dots outside quotes, names folded as above.
pub fn split_qualified(text: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_qualified_names_split() {
        assert_eq!(split_identifier_list("\"$user\", Public, \"A b\""), ["$user", "public", "A b"]);
        assert_eq!(split_identifier_list(""), Vec::<String>::new());
        assert_eq!(split_qualified("Pg_Catalog.\"X.y\""), ["pg_catalog", "X.y"]);
        let long = format!("s.{}é", "x".repeat(62));
        assert_eq!(split_qualified(&long), ["s", &long[2..64]]);
    }
}
