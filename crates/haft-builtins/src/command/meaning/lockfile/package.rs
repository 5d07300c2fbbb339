//! `Packages`: the packages of a lockfile, held in little memory, since a lockfile can list a hundred thousand. Almost all have one
//! file and one hash, for which a tree of their own would be mostly empty.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use super::source::PackageSource;

/// Maximum number of packages of a lockfile, each at one version.
const MAX_PACKAGES: usize = 200_000;

/// A package at one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) source: PackageSource,
    /// The addresses of its files, as far as they are named.
    pub(super) files: TextSet,
    /// The hashes of its files.
    pub(super) hashes: TextSet,
    /// Whether it runs a script when it is installed.
    pub(super) has_script: bool,
    /// The package that it really is, if that has another name.
    pub(super) alias: Option<String>,
}

/// Different texts, sorted: the first one is held beside the others, so that one alone needs no tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TextSet {
    first: Option<Box<str>>,
    others: BTreeSet<Box<str>>,
}

impl TextSet {
    /// Adds a text.
    fn insert(&mut self, text: Box<str>) {
        match &mut self.first {
            None => self.first = Some(text),
            Some(first) if *first == text => {}
            Some(first) if *first < text => _ = self.others.insert(text),
            Some(first) => _ = self.others.insert(mem::replace(first, text)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.first.iter().chain(&self.others).map(|text| &**text)
    }

    fn into_texts(self) -> impl Iterator<Item = Box<str>> {
        self.first.into_iter().chain(self.others)
    }

    fn contains(&self, text: &str) -> bool {
        self.first.as_deref() == Some(text) || self.others.contains(text)
    }

    /// Returns true if all of them are among the others.
    pub(super) fn is_subset(&self, others: &Self) -> bool {
        self.iter().all(|text| others.contains(text))
    }

    /// Returns those that are not among the others.
    pub(super) fn difference(&self, others: &Self) -> impl Iterator<Item = &str> {
        self.iter().filter(|text| !others.contains(text))
    }
}

impl Extend<String> for TextSet {
    fn extend<I: IntoIterator<Item = String>>(&mut self, texts: I) {
        for text in texts {
            self.insert(text.into_boxed_str());
        }
    }
}

impl FromIterator<String> for TextSet {
    fn from_iter<I: IntoIterator<Item = String>>(texts: I) -> Self {
        let mut all = Self::default();
        all.extend(texts);
        all
    }
}

/// The versions of one package, sorted.
pub(super) type Versions<'p> = Vec<(&'p str, &'p Package)>;

/// The packages of a lockfile by name and version.
#[derive(Debug, Default)]
pub(super) struct Packages(BTreeMap<(Box<str>, Box<str>), Package>);

impl Packages {
    /// Adds what the lockfile says of a package in one place; `None` if there are too many.
    pub(super) fn add(&mut self, name: &str, version: &str, package: Package) -> Option<()> {
        if self.0.len() >= MAX_PACKAGES {
            return None;
        }
        let known = self.0.entry((name.into(), version.into())).or_default();
        for text in package.files.into_texts() {
            known.files.insert(text);
        }
        for text in package.hashes.into_texts() {
            known.hashes.insert(text);
        }
        known.has_script |= package.has_script;
        known.alias = known.alias.take().or(package.alias);
        if known.source == PackageSource::Unknown {
            known.source = package.source;
        }
        Some(())
    }

    /// Returns the names, sorted.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.0.keys().map(|(name, _)| &**name).collect()
    }

    pub(super) fn versions(&self, name: &str) -> Versions<'_> {
        let from: (Box<str>, Box<str>) = (name.into(), "".into());
        let all = self.0.range(from..);
        let own = all.take_while(|((of, _), _)| **of == *name);
        own.map(|((_, version), package)| (&**version, package))
            .collect()
    }

    pub(super) fn get(&self, name: &str, version: &str) -> Option<&Package> {
        self.0.get(&(name.into(), version.into()))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Package> {
        self.0.values()
    }
}
