//! Lockfiles: which packages are added, removed and changed, and where they come from.

mod cargo;
mod go;
mod npm;
mod pnpm;
mod source;
mod yarn;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use haft::approval::meaning::{Meaning, MeaningKind};

use self::source::Source;
use super::words::{count, one_line, size};

/// Maximum size of a lockfile that is read, in bytes.
const MAX_LOCKFILE: usize = 20 << 20;
/// Maximum number of packages of a lockfile.
const MAX_PACKAGES: usize = 200_000;
/// Maximum number of lines, and of warnings.
const MAX_LINES: usize = 200;
const MAX_WARNINGS: usize = 20;
/// Maximum number of characters of a name, a version or a source.
const MAX_WORD: usize = 120;

/// A package at one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Package {
    source: Source,
    /// The hashes of its files.
    hashes: BTreeSet<String>,
    /// Whether it runs a script when it is installed.
    has_script: bool,
}

/// The packages of a lockfile by name and version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Packages(BTreeMap<String, BTreeMap<String, Package>>);

impl Packages {
    /// Adds a package; `None` if there are too many.
    fn add(&mut self, name: String, version: String, package: Package) -> Option<()> {
        if self.0.len() >= MAX_PACKAGES {
            return None;
        }
        let known = self.0.entry(name).or_default().entry(version).or_default();
        known.hashes.extend(package.hashes);
        known.has_script |= package.has_script;
        if known.source == Source::Unknown {
            known.source = package.source;
        }
        Some(())
    }

    fn get(&self, name: &str, version: &str) -> Option<&Package> {
        self.0.get(name)?.get(version)
    }
}

/// Reads the text of a lockfile; `None` if it is not understood.
type Parse = fn(&str) -> Option<Packages>;

/// Returns how to read a file of this name.
fn parser(path: &str) -> Option<Parse> {
    let name = path.rsplit('/').next().unwrap_or(path);
    Some(match name {
        "package-lock.json" | "npm-shrinkwrap.json" => npm::parse,
        "pnpm-lock.yaml" => pnpm::parse,
        "yarn.lock" => yarn::parse,
        "Cargo.lock" | "uv.lock" | "poetry.lock" => cargo::parse,
        "go.sum" => go::parse,
        _ => return None,
    })
}

/// Returns true if the path names a lockfile.
pub(super) fn is_named(path: &str) -> bool {
    parser(path).is_some()
}

/// Returns what the change of a lockfile means; `None` if the path names no lockfile.
pub(super) fn meaning(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<Meaning> {
    let parse = parser(path)?;
    let shown = one_line(path, 200);
    let longest = before
        .map_or(0, <[u8]>::len)
        .max(after.map_or(0, <[u8]>::len));
    if longest > MAX_LOCKFILE {
        let title = format!(
            "packages in {shown} are not read: it has {}",
            size(longest as u64)
        );
        return Some(Meaning::new(MeaningKind::Lockfile, title));
    }
    let read = |side: Option<&[u8]>| match side {
        None => Some(Packages::default()),
        Some(bytes) => parse(
            std::str::from_utf8(bytes)
                .ok()?
                .trim_start_matches('\u{feff}'),
        ),
    };
    let conflict = after.is_some_and(has_conflict);
    let mut meaning = if let (Some(before), Some(after)) = (read(before), read(after)) {
        compare(&shown, &before, &after)
    } else {
        let title = format!("packages in {shown} are not understood");
        Meaning::new(MeaningKind::Lockfile, title)
    };
    if conflict {
        let why = format!("{shown} has conflict markers: a merge was left unfinished in it");
        meaning.warnings.insert(0, why);
    }
    Some(meaning)
}

fn has_conflict(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|line| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> "))
}

fn word(text: &str) -> String {
    one_line(text, MAX_WORD)
}

fn compare(path: &str, before: &Packages, after: &Packages) -> Meaning {
    let (mut lines, mut warnings) = (Vec::new(), Vec::new());
    let (mut added, mut removed, mut changed) = (0, 0, 0);
    let usual = source::usual(
        after
            .0
            .values()
            .flat_map(BTreeMap::values)
            .map(|one| &one.source),
    );
    let empty = BTreeMap::new();
    let names: BTreeSet<&String> = before.0.keys().chain(after.0.keys()).collect();
    for name in names {
        let was = before.0.get(name).unwrap_or(&empty);
        let is = after.0.get(name).unwrap_or(&empty);
        for (version, package) in is {
            let title = format!("{} {}", word(name), word(version));
            let known = before.get(name, version);
            let oddities = oddities(package, known, usual.as_deref()).into_iter();
            warnings.extend(oddities.map(|what| format!("{title} {what}")));
        }
        if was.keys().eq(is.keys()) {
            continue;
        }
        let versions = |all: &BTreeMap<String, Package>| {
            let all: Vec<String> = all.keys().map(|version| word(version)).collect();
            all.join(", ")
        };
        let from = is
            .values()
            .next()
            .and_then(|package| package.source.words());
        let from = from.map_or_else(String::new, |from| format!(" ({})", word(&from)));
        let name = word(name);
        lines.push(if was.is_empty() {
            added += 1;
            format!("added {name} {}{from}", versions(is))
        } else if is.is_empty() {
            removed += 1;
            format!("removed {name} {}", versions(was))
        } else {
            changed += 1;
            format!("changed {name} {} → {}{from}", versions(was), versions(is))
        });
    }
    let title = match (added, removed, changed) {
        (0, 0, 0) => format!("packages in {path}: the same as before"),
        _ => format!("packages in {path}: {added} added, {removed} removed, {changed} changed"),
    };
    let mut meaning = Meaning::new(MeaningKind::Lockfile, title);
    meaning.lines = clipped(lines, MAX_LINES, "more package");
    meaning.warnings = clipped(warnings, MAX_WARNINGS, "more warning");
    meaning
}

fn clipped(mut lines: Vec<String>, most: usize, noun: &str) -> Vec<String> {
    if lines.len() > most {
        let more = format!("and {}", count(lines.len() - most, noun));
        lines.truncate(most);
        lines.push(more);
    }
    lines
}

/// Returns what a person should know about a package before it is installed. `known` is what was recorded of the same version.
fn oddities(package: &Package, known: Option<&Package>, usual: Option<&str>) -> Vec<String> {
    let mut found = Vec::new();
    if known.is_none_or(|known| known.source != package.source)
        && let Some(why) = package.source.oddity(usual)
    {
        found.push(format!("comes from {}", word(&why)));
    }
    let Some(known) = known else {
        if package.has_script {
            found.push("runs a script when it is installed".to_owned());
        }
        if package.hashes.is_empty() && usual.is_some() && package.source.has_hashes() {
            found.push("has no hash".to_owned());
        }
        return found;
    };
    if known.hashes.is_empty() {
        return found;
    }
    if package.hashes.is_empty() {
        found.push("has lost its hash".to_owned());
    } else if !known.hashes.is_subset(&package.hashes) {
        // Go keeps the hash of a module's `go.mod` when the module itself is no longer needed.
        let is_unused = package.hashes.iter().all(|hash| go::is_of_settings(hash));
        if !package.hashes.is_subset(&known.hashes) {
            found.push("has another hash at the same version".to_owned());
        } else if !is_unused {
            found.push("has lost one of its hashes".to_owned());
        }
    }
    found
}
