//! Compares the packages of two lockfiles.

use std::collections::{BTreeMap, BTreeSet};

use haft::approval::meaning::{Meaning, MeaningKind};

use super::go;
use super::lock::Lockfile;
use super::package::{Package, Packages, Versions};
use super::source::{PackageSource, usual};
use crate::command::meaning::words::{count, one_line};

/// Maximum number of lines, and of warnings.
const MAX_LINES: usize = 200;
const MAX_WARNINGS: usize = 20;
/// Maximum number of characters of a name, a version or a source.
const MAX_WORD: usize = 120;
/// Maximum number of packages that a warning names.
const MAX_NAMED: usize = 5;

fn word(text: &str) -> String {
    one_line(text, MAX_WORD)
}

/// Returns what the change from one lockfile to another means.
pub(super) fn compare(path: &str, before: &Lockfile<'_>, after: &Lockfile<'_>) -> Meaning {
    let mut of = Comparison::new(&before.packages, &after.packages);
    let (was, is) = (&before.packages, &after.packages);
    for name in &was.names() | &is.names() {
        of.package(name, &was.versions(name), &is.versions(name));
    }
    let mut warnings = of.sources();
    let new = after.steering.difference(&before.steering);
    warnings.extend(new.map(|what| word(what)));
    let gone = before.steering.difference(&after.steering);
    warnings.extend(gone.map(|what| format!("no longer: {}", word(what))));
    warnings.append(&mut of.warnings);
    let (added, removed, changed) = (of.added, of.removed, of.changed);
    let title = match (added, removed, changed) {
        (0, 0, 0) => format!("packages in {path}: the same as before"),
        _ => format!("packages in {path}: {added} added, {removed} removed, {changed} changed"),
    };
    let mut meaning = Meaning::new(MeaningKind::Lockfile, title);
    meaning.lines = clipped(of.lines, MAX_LINES, "more package");
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

/// The comparison so far.
struct Comparison {
    /// Where most packages come from: before, so that what changes cannot make itself usual.
    usual: Option<String>,
    /// The hosts of all files before.
    hosts: BTreeSet<String>,
    /// Packages by where they come from and, if that changes, where they came from before.
    places: BTreeMap<(String, Option<String>), Vec<String>>,
    lines: Vec<String>,
    warnings: Vec<String>,
    added: usize,
    removed: usize,
    changed: usize,
}

impl Comparison {
    fn new(before: &Packages, after: &Packages) -> Self {
        let usual_of = |all: &Packages| usual(all.all().map(|one| &one.source));
        let files = before.all().flat_map(|package| package.files.iter());
        Self {
            usual: usual_of(before).or_else(|| usual_of(after)),
            hosts: files.filter_map(host).collect(),
            places: BTreeMap::new(),
            lines: Vec::new(),
            warnings: Vec::new(),
            added: 0,
            removed: 0,
            changed: 0,
        }
    }

    /// Compares the versions of one package.
    fn package(&mut self, name: &str, was: &Versions<'_>, is: &Versions<'_>) {
        for &(version, package) in is {
            let title = format!("{} {}", word(name), word(version));
            let known = find(was, version);
            self.place(&title, package, was, known);
            let oddities = self.oddities(package, was, known);
            let oddities = oddities.into_iter();
            self.warnings
                .extend(oddities.map(|what| format!("{title} {what}")));
        }
        if was == is {
            return;
        }
        let versions = |all: &Versions<'_>| {
            let all: Vec<String> = all.iter().map(|(version, _)| word(version)).collect();
            all.join(", ")
        };
        let from: BTreeSet<String> = is
            .iter()
            .filter_map(|(_, one)| one.source.words())
            .collect();
        let from: Vec<String> = from.iter().map(|from| word(from)).collect();
        let from = match &from[..] {
            [] => String::new(),
            from => format!(" ({})", from.join(", ")),
        };
        let name = word(name);
        self.lines.push(if was.is_empty() {
            self.added += 1;
            format!("added {name} {}{from}", versions(is))
        } else if is.is_empty() {
            self.removed += 1;
            format!("removed {name} {}", versions(was))
        } else {
            self.changed += 1;
            let versions_is = versions(is);
            if was.iter().map(|one| one.0).eq(is.iter().map(|one| one.0)) {
                format!("changed {name} {versions_is}, at the same version{from}")
            } else {
                format!("changed {name} {} → {versions_is}{from}", versions(was))
            }
        });
    }

    /// Notes where a package comes from, if that is unusual or new.
    fn place(
        &mut self,
        title: &str,
        package: &Package,
        was: &Versions<'_>,
        known: Option<&Package>,
    ) {
        let old: BTreeSet<&PackageSource> = match known {
            Some(known) => [&known.source].into(),
            None => was.iter().map(|(_, one)| &one.source).collect(),
        };
        let source = &package.source;
        if old.contains(source) {
            return;
        }
        let nowhere = || "where the settings say".to_owned();
        let words = |source: &PackageSource| source.words().unwrap_or_else(nowhere);
        let oddity = source.oddity(self.usual.as_deref());
        let before: Vec<String> = old.into_iter().map(words).collect();
        let before = (!before.is_empty()).then(|| before.join(", "));
        if let Some(place) = oddity.or_else(|| before.as_ref().map(|_| words(source))) {
            let place = (place, before);
            let titles = self.places.entry(place).or_default();
            titles.push(title.to_owned());
        }
    }

    /// Returns a warning for each place that packages come from, with all of them.
    fn sources(&mut self) -> Vec<String> {
        let warning = |((from, before), mut titles): ((String, Option<String>), Vec<String>)| {
            let before = before.map_or_else(String::new, |before| {
                format!("; before from {}", word(&before))
            });
            let from = word(&from);
            if let [title] = &titles[..] {
                return format!("{title} comes from {from}{before}");
            }
            let number = titles.len();
            titles.truncate(MAX_NAMED);
            if number > MAX_NAMED {
                titles.push(format!("and {} more", number - MAX_NAMED));
            }
            let titles = titles.join(", ");
            format!("{number} packages come from {from}{before}: {titles}")
        };
        let places = std::mem::take(&mut self.places);
        places.into_iter().map(warning).collect()
    }

    /// Returns what a person should know about a package before it is installed. `known` is what was recorded of the same version.
    fn oddities(
        &self,
        package: &Package,
        was: &Versions<'_>,
        known: Option<&Package>,
    ) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(real) = &package.alias
            && !was.iter().any(|(_, one)| one.alias == package.alias)
        {
            found.push(format!("is the package {} under this name", word(real)));
        }
        let hosts: BTreeSet<String> = package.files.iter().filter_map(host).collect();
        let mut new = hosts.difference(&self.hosts);
        if let Some(host) = new.next().filter(|_| !self.hosts.is_empty()) {
            found.push(format!("has a file from {}, unlike before", word(host)));
        }
        let is_newly_run = known.is_none_or(|known| !known.has_script);
        if package.has_script && is_newly_run {
            found.push("runs a script when it is installed".to_owned());
        }
        let Some(known) = known else {
            let is_expected = self.usual.is_some() && package.source.has_hashes();
            if package.hashes.is_empty() && is_expected {
                found.push("has no hash".to_owned());
            }
            return found;
        };
        let is_moved = known.source == package.source && known.hashes == package.hashes;
        if is_moved && known.files != package.files {
            let new = package.files.difference(&known.files).next();
            let new = new.unwrap_or("none");
            let address = word(new);
            found.push(format!(
                "has another address at the same version: {address}"
            ));
        }
        found.extend(hashes(package, known));
        found
    }
}

/// Returns a package at a version.
fn find<'p>(all: &Versions<'p>, version: &str) -> Option<&'p Package> {
    let at = all.binary_search_by_key(&version, |(one, _)| one).ok()?;
    Some(all[at].1)
}

/// Returns what is odd about the hashes of a version that was known before.
fn hashes(package: &Package, known: &Package) -> Option<String> {
    if known.hashes.is_empty() || known.hashes == package.hashes {
        return None;
    }
    if package.hashes.is_empty() {
        return Some("has lost its hash".to_owned());
    }
    // Go keeps the hash of a module's `go.mod` when the module itself is not needed.
    let is_unused = |of: &Package| of.hashes.iter().all(go::is_of_settings);
    if known.hashes.is_subset(&package.hashes) {
        let more = count(package.hashes.len() - known.hashes.len(), "more file");
        return (!is_unused(known)).then(|| format!("has {more} at the same version"));
    }
    if !package.hashes.is_subset(&known.hashes) {
        return Some("has another hash at the same version".to_owned());
    }
    (!is_unused(package)).then(|| "has lost one of its hashes".to_owned())
}

/// Returns the host in an address.
fn host(address: &str) -> Option<String> {
    let rest = address.split_once("://")?.1;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.rsplit('@').next().unwrap_or(host);
    Some(host.to_ascii_lowercase())
}
