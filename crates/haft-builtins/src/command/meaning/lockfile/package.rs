//! `Packages`: the packages of a lockfile, held in little memory, since a lockfile can list a hundred thousand.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sha2::{Digest as _, Sha256};

use super::source::Source;

/// What stands before the hash of a module's `go.mod`.
pub(super) const GO_SETTINGS: &str = "go.mod ";
/// Maximum number of packages of a lockfile, each at one version.
const MAX_PACKAGES: usize = 200_000;
/// Number of hashes up to which a list of them is searched as it is.
const FEW: usize = 8;

/// A package at one version.
#[derive(Debug, Default)]
pub(super) struct Package {
    pub(super) source: Source,
    /// The hashes of its files.
    pub(super) hashes: Hashes,
    /// Whether it runs a script when it is installed.
    pub(super) has_script: bool,
}

/// Hashes as a lockfile writes them. They are only compared, so that a digest of each is enough.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    digests: Vec<[u8; 16]>,
    /// Whether one of them is of more than a module's `go.mod`.
    has_files: bool,
}

impl Hashes {
    /// Adds a hash.
    pub(super) fn insert(&mut self, hash: &str) {
        self.has_files |= !hash.starts_with(GO_SETTINGS);
        let mut digest = [0; 16];
        digest.copy_from_slice(&Sha256::digest(hash.as_bytes())[..16]);
        if self.digests.is_empty() {
            // Most packages have one.
            self.digests.reserve_exact(1);
        }
        self.digests.push(digest);
    }

    fn extend(&mut self, others: Self) {
        self.has_files |= others.has_files;
        self.digests.extend(others.digests);
    }

    /// Returns true if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Returns true if they are all among the others.
    pub(super) fn is_subset(&self, others: &Self) -> bool {
        if others.digests.len() <= FEW {
            let known = |digest| others.digests.contains(digest);
            return self.digests.iter().all(known);
        }
        let known: HashSet<&[u8; 16]> = others.digests.iter().collect();
        self.digests.iter().all(|digest| known.contains(digest))
    }

    /// Returns true if none of them is of more than a module's `go.mod`.
    pub(super) fn are_of_settings(&self) -> bool {
        !self.has_files
    }
}

/// The packages of a lockfile by name and version.
#[derive(Debug, Default)]
pub(super) struct Packages(BTreeMap<(String, String), Package>);

impl Packages {
    /// Adds a package; `None` if there are too many.
    pub(super) fn add(
        &mut self,
        mut name: String,
        mut version: String,
        package: Package,
    ) -> Option<()> {
        if self.0.len() >= MAX_PACKAGES {
            return None;
        }
        name.shrink_to_fit();
        version.shrink_to_fit();
        let known = self.0.entry((name, version)).or_default();
        known.hashes.extend(package.hashes);
        known.has_script |= package.has_script;
        if known.source == Source::Unknown {
            known.source = package.source;
        }
        Some(())
    }

    /// Returns a package at a version.
    pub(super) fn get(&self, name: &str, version: &str) -> Option<&Package> {
        self.0.get(&(name.to_owned(), version.to_owned()))
    }

    /// Returns the versions of a package, sorted.
    pub(super) fn versions(&self, name: &str) -> Vec<(&str, &Package)> {
        let from = (name.to_owned(), String::new());
        let all = self.0.range(from..);
        let own = all.take_while(|((of, _), _)| of == name);
        own.map(|((_, version), package)| (version.as_str(), package))
            .collect()
    }

    /// Returns the names of the packages of both lockfiles.
    pub(super) fn names_with<'p>(&'p self, other: &'p Self) -> BTreeSet<&'p str> {
        let all = self.0.keys().chain(other.0.keys());
        all.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns where the packages come from.
    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.0.values().map(|package| &package.source)
    }
}
