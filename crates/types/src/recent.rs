//! What was last made of a text, such as a template that every row names: made once, not for each row.

use base::Result;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Enough for the templates of one statement.
const KEPT: usize = 8;

/// The last few texts of a thread, and what was made of them.
pub(crate) struct Recent<T>(RefCell<VecDeque<(Box<str>, Rc<T>)>>);

impl<T> Recent<T> {
    pub(crate) const fn new() -> Recent<T> {
        Recent(RefCell::new(VecDeque::new()))
    }

    /// What `make` makes of the text, or made of it before.
    ///
    /// # Errors
    /// What `make` says; nothing is kept then.
    pub(crate) fn get(&self, text: &str, make: impl FnOnce(&str) -> Result<T>) -> Result<Rc<T>> {
        if let Some((_, made)) = self.0.borrow().iter().find(|(t, _)| **t == *text) {
            return Ok(Rc::clone(made));
        }
        let made = Rc::new(make(text)?);
        let mut kept = self.0.borrow_mut();
        kept.push_front((text.into(), Rc::clone(&made)));
        kept.truncate(KEPT);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_asked_for_once_while_few_others_come() {
        let recent = Recent::new();
        let mut made = 0;
        for round in 0..3 {
            for n in 0..KEPT {
                let text = n.to_string();
                let length = recent.get(&text, |t| {
                    made += 1;
                    Ok(t.to_owned())
                });
                assert_eq!(**length.unwrap(), *text, "round {round}");
            }
        }
        assert_eq!(made, KEPT);
        assert!(recent.get("bad", |_| base::bail!(INTERNAL_ERROR, "no")).is_err());
        assert_eq!(*recent.get("bad", |_| Ok("good".to_owned())).unwrap(), "good");
        // The oldest has gone.
        assert_eq!(*recent.get("0", |_| Ok("again".to_owned())).unwrap(), "again");
    }
}
