//! `yarn.lock`, of yarn 1 and, as YAML, of later versions.

use std::collections::BTreeSet;

use super::lock::Lockfile;
use super::package::Package;
use super::source::{PackageSource, tarball};
use super::yaml::{self, YamlValue};

/// Reads the packages; `None` if it does not look as yarn writes it.
pub(super) fn parse(text: &str) -> Option<Lockfile<'_>> {
    let is_later = text
        .lines()
        .any(|line| line.trim_matches('"').starts_with("__metadata"));
    let mut found = Lockfile::default();
    for section in yaml::sections(text) {
        let says = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
        let marks = ["<<<<<<<", "=======", ">>>>>>>", "|||||||"];
        if marks.iter().any(|mark| section.starts_with(mark)) {
            found.add_text("conflict".to_owned(), None, section);
            continue;
        }
        if !section.lines().any(says) {
            continue;
        }
        if is_later {
            let node = yaml::parse(section)?;
            for (key, value) in node.members() {
                entry(&mut found, section, key, value)?;
            }
        } else {
            let (keys, package) = old_entry(section)?;
            let version = package.text("version").unwrap_or_default().to_owned();
            let names: BTreeSet<String> =
                keys.iter().map(|key| name_of(key)).collect::<Option<_>>()?;
            let first = names.first()?.clone();
            found.add_text(keys.join(", "), Some((first, version.clone())), section);
            for name in names {
                let package = old_package(&name, &package);
                found.add((name, version.clone()), package)?;
            }
        }
    }
    Some(found)
}

/// Reads an entry of a later version.
fn entry<'t>(
    found: &mut Lockfile<'t>,
    section: &'t str,
    key: &str,
    node: &YamlValue,
) -> Option<()> {
    if key == "__metadata" {
        found.add_text(key.to_owned(), None, section);
        return Some(());
    }
    let version = node.text("version").unwrap_or_default().to_owned();
    let resolution = node.text("resolution").unwrap_or_default();
    let real = name_of(resolution);
    let names = key.split(", ").map(name_of);
    let names: BTreeSet<String> = names.collect::<Option<_>>()?;
    let first = names.first()?.clone();
    found.add_text(key.to_owned(), Some((first, version.clone())), section);
    for name in names {
        let package = Package {
            source: source_of(resolution),
            hashes: node
                .text("checksum")
                .map(str::to_owned)
                .into_iter()
                .collect(),
            alias: real.clone().filter(|real| *real != name),
            ..Package::default()
        };
        found.add((name, version.clone()), package)?;
    }
    Some(())
}

/// Reads `name@npm:1.2.3`, `name@workspace:.`, `name@patch:…` or `name@https://…`.
fn source_of(text: &str) -> PackageSource {
    const ARCHIVE: &str = "__archiveUrl=";
    if let Some((_, address)) = text.split_once(ARCHIVE) {
        let address = address.replace("%3A", ":").replace("%2F", "/");
        return PackageSource::of(&address);
    }
    let from = usize::from(text.starts_with('@'));
    let Some(at) = text.get(from..).and_then(|rest| rest.find('@')) else {
        return PackageSource::Unknown;
    };
    let source = text.get(from + at + 1..).unwrap_or_default();
    match source.split_once(':') {
        Some(("npm", _)) => PackageSource::Unknown,
        // Yarn's own repairs of some packages.
        Some(("patch", rest)) if rest.contains("builtin<") => PackageSource::Unknown,
        Some(("workspace", _)) => PackageSource::Own,
        _ => PackageSource::of(source),
    }
}

/// Reads an entry of yarn 1: its keys, and the members that are not nested.
fn old_entry(section: &str) -> Option<(Vec<String>, YamlValue)> {
    let mut lines = section.lines();
    let mut keys = Vec::new();
    let mut rest = lines.next()?.trim_end();
    while !rest.is_empty() {
        let (key, more) = token(rest, &[',', ':'])?;
        keys.push(key);
        rest = more.strip_prefix([',', ':'])?.trim_start();
    }
    let mut members = Vec::new();
    for line in lines {
        let Some(content) = line.strip_prefix("  ") else {
            continue;
        };
        if content.starts_with([' ', '#']) || content.trim().is_empty() {
            continue;
        }
        let (key, rest) = token(content.trim_end(), &[' ', ':'])?;
        let value = rest.trim_start_matches([':', ' ']);
        let value = if value.is_empty() {
            String::new()
        } else {
            token(value, &[])?.0
        };
        members.push((key, YamlValue::Text(value)));
    }
    Some((keys, YamlValue::Map(members)))
}

/// Reads a word, which may be in quotes, up to one of these characters. A key such as `a@npm:b@1` has colons inside, but none at its end.
fn token<'t>(text: &'t str, ends: &[char]) -> Option<(String, &'t str)> {
    if text.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let word = values.next()?.ok()?;
        return Some((word, &text[values.byte_offset()..]));
    }
    let is_end = |(at, one): &(usize, char)| {
        ends.contains(one) && (*one != ':' || text[at + 1..].trim().is_empty())
    };
    let end = text.char_indices().find(is_end);
    let end = end.map_or(text.len(), |(at, _)| at);
    Some((text[..end].to_owned(), &text[end..]))
}

fn old_package(name: &str, node: &YamlValue) -> Package {
    let mut package = Package {
        hashes: node
            .text("integrity")
            .map(str::to_owned)
            .into_iter()
            .collect(),
        ..Package::default()
    };
    if let Some(resolved) = node.text("resolved") {
        let address = resolved.split('#').next().unwrap_or(resolved);
        (package.source, package.alias) = tarball(name, address);
        package.files.extend([resolved.to_owned()]);
    }
    package
}

/// Returns the name in `name@^1.0.0`; `None` if there is none.
fn name_of(key: &str) -> Option<String> {
    let from = usize::from(key.starts_with('@'));
    let at = key.get(from..)?.find('@')? + from;
    Some(key.get(..at)?.to_owned())
}
