//! `go.sum`: a module, a version and a hash on each line.

use super::package::{GO_SETTINGS, Package, Packages};

/// Reads the modules; `None` if a line is none that go writes.
pub(super) fn parse(text: &str) -> Option<Packages> {
    let mut found = Packages::default();
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
            Some(_) => format!("{GO_SETTINGS}{hash}"),
            None => hash.to_owned(),
        };
        let mut package = Package::default();
        package.hashes.insert(&hash);
        found.add(
            name.to_owned(),
            plain.unwrap_or(version).to_owned(),
            package,
        )?;
    }
    Some(found)
}
