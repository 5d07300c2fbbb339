//! Lockfiles: which packages are added, removed and changed, and where they come from.

mod cargo;
mod go;
mod npm;
mod package;
mod pnpm;
mod source;
mod yarn;

#[cfg(test)]
mod tests;

use haft::approval::meaning::{Meaning, MeaningKind};

use self::package::{Package, Packages};
use super::words::{count, one_line, size};

/// Maximum size of a lockfile that is read, in bytes.
const MAX_LOCKFILE: usize = 20 << 20;
/// Maximum number of lines, and of warnings.
const MAX_LINES: usize = 200;
const MAX_WARNINGS: usize = 20;
/// Maximum number of characters of a name, a version or a source.
const MAX_WORD: usize = 120;

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
    let (mut lines, mut warnings) = (Clipped::new(MAX_LINES), Clipped::new(MAX_WARNINGS));
    let (mut added, mut removed, mut changed) = (0, 0, 0);
    let usual = source::usual(after.sources());
    for name in before.names_with(after) {
        let (was, is) = (before.versions(name), after.versions(name));
        for (version, package) in &is {
            let title = format!("{} {}", word(name), word(version));
            let known = before.get(name, version);
            let oddities = oddities(package, known, usual.as_deref()).into_iter();
            oddities.for_each(|what| warnings.push(format!("{title} {what}")));
        }
        let numbers = |(version, _): &(&str, &Package)| word(version);
        if was.iter().map(|one| one.0).eq(is.iter().map(|one| one.0)) {
            continue;
        }
        let versions =
            |all: &[(&str, &Package)]| all.iter().map(numbers).collect::<Vec<_>>().join(", ");
        let from = is.first().and_then(|(_, package)| package.source.words());
        let from = from.map_or_else(String::new, |from| format!(" ({})", word(&from)));
        let name = word(name);
        lines.push(if was.is_empty() {
            added += 1;
            format!("added {name} {}{from}", versions(&is))
        } else if is.is_empty() {
            removed += 1;
            format!("removed {name} {}", versions(&was))
        } else {
            changed += 1;
            format!(
                "changed {name} {} → {}{from}",
                versions(&was),
                versions(&is)
            )
        });
    }
    let title = match (added, removed, changed) {
        (0, 0, 0) => format!("packages in {path}: the same as before"),
        _ => format!("packages in {path}: {added} added, {removed} removed, {changed} changed"),
    };
    let mut meaning = Meaning::new(MeaningKind::Lockfile, title);
    meaning.lines = lines.with_count("more package");
    meaning.warnings = warnings.with_count("more warning");
    meaning
}

/// The first lines of a list, and how many there are.
struct Clipped {
    lines: Vec<String>,
    most: usize,
    more: usize,
}

impl Clipped {
    fn new(most: usize) -> Self {
        Self {
            lines: Vec::new(),
            most,
            more: 0,
        }
    }

    fn push(&mut self, line: String) {
        if self.lines.len() < self.most {
            self.lines.push(line);
        } else {
            self.more += 1;
        }
    }

    /// Returns the lines, with how many more there are.
    fn with_count(mut self, noun: &str) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("and {}", count(self.more, noun)));
        }
        self.lines
    }
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
        let is_unused = package.hashes.are_of_settings();
        if !package.hashes.is_subset(&known.hashes) {
            found.push("has another hash at the same version".to_owned());
        } else if !is_unused {
            found.push("has lost one of its hashes".to_owned());
        }
    }
    found
}
