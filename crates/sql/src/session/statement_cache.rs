//! Statements by their text: one that comes again has been parsed, analysed and planned already.
//!
//! # Purpose
//! Most clients send the same few texts again and again, be it as query strings, be it as Parse of the unnamed statement, or of one with a new
//! name each time. What a text meant the last time it means as long as nothing has changed that it stands on.
//!
//! # Invariants
//! A text is found under the catalogs, the search path and the given types of parameters that it was kept under, and under no others. Who
//! keeps texts forgets them when settings change that they were read or planned under, or the role does.

use super::prepared::Prepared;
use base::Oid;
use engine::catalog::cache::SessionCatalog;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::rc::Rc;

/// How many statements are kept.
const CACHED_STATEMENTS: usize = 256;
/// How long their texts are together, at most: a plan takes several times its text.
const CACHED_TEXT: usize = 1 << 20;
/// Longer texts are not kept: they hold data rather than questions.
const LONGEST_TEXT: usize = CACHED_TEXT / 16;
/// How many texts are remembered as having come once.
const SEEN_TEXTS: usize = 1024;

struct Kept {
    prepared: Rc<Prepared>,
    /// The catalogs' generation that it was analysed under, or was last found good in.
    good: u64,
    path: Rc<[String]>,
    /// The types that its parameters were given.
    given: Box<[Oid]>,
}

/// Statements by their text.
#[derive(Default)]
pub(super) struct StatementCache {
    statements: HashMap<Box<str>, Kept>,
    /// The lengths of all their texts since it was last empty; one whose plan was made again counts again.
    text: usize,
    /// Hashes of texts that came once, by their low bits: most texts never come again.
    seen: Vec<u64>,
    hasher: std::hash::RandomState,
}

impl StatementCache {
    /// What `text` was the last time, if it is that now.
    pub(super) fn get(
        &mut self,
        text: &str,
        given: &[Oid],
        catalog: &SessionCatalog,
        path: &[String],
    ) -> Option<Rc<Prepared>> {
        let kept = self.statements.get_mut(text)?;
        let same = *kept.given == *given
            && *kept.path == *path
            && catalog.still_good(&mut kept.good, &kept.prepared.footing);
        same.then(|| Rc::clone(&kept.prepared))
    }

    /// Keeps what `text` was prepared as, if it has come before.
    pub(super) fn put(
        &mut self,
        text: &str,
        given: &[Oid],
        prepared: &Rc<Prepared>,
        generation: u64,
        path: Rc<[String]>,
    ) {
        if text.len() > LONGEST_TEXT {
            return;
        }
        let hash = self.hasher.hash_one(text);
        self.seen.resize(SEEN_TEXTS, 0);
        let slot = usize::try_from(hash % SEEN_TEXTS as u64).unwrap_or(0);
        if std::mem::replace(&mut self.seen[slot], hash) != hash {
            return;
        }
        self.text += text.len();
        if self.statements.len() >= CACHED_STATEMENTS || self.text > CACHED_TEXT {
            self.clear();
            self.text = text.len();
        }
        let (prepared, given) = (Rc::clone(prepared), given.into());
        self.statements.insert(text.into(), Kept { prepared, good: generation, path, given });
    }

    /// Keeps nothing any more; that texts have come is remembered.
    pub(super) fn clear(&mut self) {
        self.statements.clear();
        self.text = 0;
    }

    /// How many statements are kept, and how long their texts are together.
    #[cfg(test)]
    fn kept(&self) -> (usize, usize) {
        (self.statements.len(), self.statements.keys().map(|text| text.len()).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn put_twice(cache: &mut StatementCache, text: &str) {
        let prepared = Rc::new(Prepared::empty(Arc::from(text)));
        for _ in 0..2 {
            cache.put(text, &[], &prepared, 0, Rc::from([]));
        }
    }

    #[test]
    fn texts_kept_have_a_bound_together_and_each() {
        let mut cache = StatementCache::default();
        put_twice(&mut cache, "SELECT 1");
        assert_eq!(cache.kept(), (1, 8));
        put_twice(&mut cache, &"x".repeat(LONGEST_TEXT + 1));
        assert_eq!(cache.kept(), (1, 8));
        for i in 0..CACHED_STATEMENTS / 2 {
            put_twice(&mut cache, &format!("{i:06}{}", "x".repeat(LONGEST_TEXT - 6)));
            let (number, bytes) = cache.kept();
            assert!(number > 0 && bytes <= CACHED_TEXT, "{number} of {bytes} bytes");
        }
    }
}
