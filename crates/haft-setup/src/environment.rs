//! `Environment`: the process's variables, read once in `main` and passed down.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The variables whose names and values are UTF-8.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Reads the variables of this process.
    pub fn read() -> Self {
        let text = |s: std::ffi::OsString| s.into_string().ok();
        let pairs =
            std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        Self(pairs.collect())
    }

    /// Returns a variable; an empty one counts as set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns an absolute path from a variable: the XDG specification says to ignore relative ones.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from(self.get(name)?);
        path.is_absolute().then_some(path)
    }

    /// Iterates over all variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl From<&[(&str, &str)]> for Environment {
    fn from(pairs: &[(&str, &str)]) -> Self {
        let owned = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self(owned.collect())
    }
}
