//! Trees as texts in catalogs: expressions, and the queries of views.
//!
//! # Invariants
//! What is written can be read: no tree is written that is nested deeper than there is stack for to read it, and none is refused for its
//! depth when it is read.

use base::{Result, err};
use serde::Serialize;
use serde::de::DeserializeOwned;
use types::json::brackets_open;

/// How deep brackets may stand within each other. An operator's operand is three deeper than the operator.
const DEEPEST: usize = 3000;

/// A tree as it is stored.
///
/// # Errors
/// `54001` for one that is nested too deep.
pub fn to_text<T: Serialize + ?Sized>(tree: &T) -> Result<String> {
    let text = serde_json::to_string(tree)
        .map_err(|e| err!(INTERNAL_ERROR, "a tree does not serialise: {e}"))?;
    if brackets_open(&text) > DEEPEST {
        return Err(err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
    }
    Ok(text)
}

/// A stored tree.
///
/// # Errors
/// The reader's, for what is not one.
pub fn from_text<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let tree = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert_eq!(brackets_open(r#"{"a]": ["[[\"[", [1], "\\"], "b": {"c": "}"}}"#), 3);
        assert_eq!(brackets_open("null"), 0);
    }

    #[test]
    fn what_is_written_is_read() {
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Within(Option<Box<Within>>, u8);
        let nested = |n: usize| (0..n).fold(Within(None, 1), |w, _| Within(Some(Box::new(w)), 2));
        let all = move || {
            for n in [0, 1, 200, DEEPEST - 1] {
                let text = to_text(&nested(n)).unwrap();
                assert_eq!(from_text::<Within>(&text).unwrap(), nested(n));
            }
            let e = to_text(&nested(DEEPEST)).unwrap_err();
            assert_eq!(e.state(), base::SqlState::STATEMENT_TOO_COMPLEX);
            assert!(from_text::<Within>("[null,1] 2").is_err());
        };
        // As a session has it.
        std::thread::Builder::new().stack_size(16 << 20).spawn(all).unwrap().join().unwrap();
    }
}
