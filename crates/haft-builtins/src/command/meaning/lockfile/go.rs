//! `go.sum`: a module, a version and a hash on each line.

use super::lock::Lockfile;
use super::package::Package;

/// What stands before the hash of a module's `go.mod`.
const SETTINGS: &str = "go.mod ";

/// Returns whether it is the hash of a module's `go.mod` alone.
pub(super) fn is_of_settings(hash: &str) -> bool {
    hash.starts_with(SETTINGS)
}

/// Reads the modules; `None` if a line is none that go writes.
pub(super) fn parse(text: &str) -> Option<Lockfile<'_>> {
    let mut found = Lockfile::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let is_marker = ["<<<<<<<", "=======", ">>>>>>>", "|||||||"];
        if is_marker.iter().any(|mark| line.starts_with(mark)) {
            continue;
        }
        let mut words = line.split_whitespace();
        let (name, version, hash) = (words.next()?, words.next()?, words.next()?);
        // The module's own `go.mod` has a hash, too.
        let plain = version.strip_suffix("/go.mod");
        let hash = match plain {
            Some(_) => format!("{SETTINGS}{hash}"),
            None => hash.to_owned(),
        };
        let package = Package {
            hashes: [hash].into_iter().collect(),
            ..Package::default()
        };
        let version = plain.unwrap_or(version).to_owned();
        found.add((name.to_owned(), version), package)?;
    }
    Some(found)
}
