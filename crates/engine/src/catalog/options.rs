//! `reloptions`, `attoptions` and `setconfig`: parameters by name, in the order in which they were given.
//!
//! # Invariants
//! A name is there once. One that gets another value goes to the end, as in PostgreSQL; in `setconfig` it stays where it is.

/// Parameters and their values, as texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelationOptions(Vec<(String, String)>);

impl RelationOptions {
    /// None.
    pub fn new() -> RelationOptions {
        RelationOptions::default()
    }
    /// A parameter's value.
    pub fn get(&self, name: &str) -> Option<&String> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }
    /// A number's value.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.trim().parse().ok()
    }
    /// A whole number's value: 70.5 was one when it was checked, as in PostgreSQL, and is rounded.
    pub fn whole(&self, name: &str) -> Option<i64> {
        #[expect(clippy::cast_possible_truncation, reason = "it was checked against its bounds")]
        self.number(name).map(|n| n.round_ties_even() as i64)
    }
    /// Is it given?
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
    /// Is none given?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().map(|(name, value)| (name, value))
    }
    /// Puts a parameter at the end; its value until then.
    pub fn insert(&mut self, name: String, value: String) -> Option<String> {
        let at = self.0.iter().position(|(n, _)| *n == name);
        let old = at.map(|at| self.0.remove(at).1);
        self.0.push((name, value));
        old
    }
    /// Gives a parameter a value where it is; at the end if it is not there.
    pub fn put(&mut self, name: String, value: String) {
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some(old) => old.1 = value,
            None => self.0.push((name, value)),
        }
    }
    /// Keeps those of these names.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }
}

impl Extend<(String, String)> for RelationOptions {
    fn extend<I: IntoIterator<Item = (String, String)>>(&mut self, more: I) {
        for (name, value) in more {
            self.insert(name, value);
        }
    }
}

impl FromIterator<(String, String)> for RelationOptions {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(list: I) -> RelationOptions {
        let mut options = RelationOptions::new();
        options.extend(list);
        options
    }
}

impl IntoIterator for RelationOptions {
    type Item = (String, String);
    type IntoIter = std::vec::IntoIter<(String, String)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
