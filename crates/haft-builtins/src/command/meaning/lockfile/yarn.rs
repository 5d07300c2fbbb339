//! `yarn.lock`, of yarn 1 and of later versions, read line by line.

use super::package::{Package, Packages};
use super::source::Source;

/// Reads the packages; `None` if it does not look as yarn writes it.
pub(super) fn parse(text: &str) -> Option<Packages> {
    let mut found = Packages::default();
    let mut current: Option<(String, String, Package)> = None;
    for line in text.lines() {
        let content = line.trim_start();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if line.len() == content.len() {
            if let Some((name, version, package)) = current.take() {
                found.add(name, version, package)?;
            }
            let is_marker = ["<<<<<<<", "=======", ">>>>>>>", "|||||||"];
            if is_marker.iter().any(|mark| content.starts_with(mark)) {
                continue;
            }
            let key = content.trim_end().strip_suffix(':')?.trim_matches('"');
            // `__metadata` has the version of the file.
            current = name_of(key).map(|name| (name, String::new(), Package::default()));
            continue;
        }
        let Some((_, version, package)) = &mut current else {
            continue;
        };
        let Some((key, value)) = content.split_once(' ') else {
            continue;
        };
        let value = value.trim().trim_matches('"');
        match key.trim_end_matches(':') {
            "version" => value.clone_into(version),
            "resolved" => package.source = Source::of(value.split('#').next().unwrap_or(value)),
            "resolution" => package.source = resolution(value),
            "integrity" | "checksum" => package.hashes.insert(value),
            _ => {}
        }
    }
    if let Some((name, version, package)) = current {
        found.add(name, version, package)?;
    }
    Some(found)
}

/// Returns the name in `name@^1.0.0, name@^1.1.0`; `None` if there is none.
fn name_of(key: &str) -> Option<String> {
    let first = key.split(',').next()?.trim().trim_matches('"');
    let from = usize::from(first.starts_with('@'));
    let at = first.get(from..)?.find('@')? + from;
    Some(first.get(..at)?.to_owned())
}

/// Reads `name@npm:1.2.3`, `name@workspace:.` or `name@https://…`.
fn resolution(text: &str) -> Source {
    let from = usize::from(text.starts_with('@'));
    let Some(at) = text.get(from..).and_then(|rest| rest.find('@')) else {
        return Source::Unknown;
    };
    let source = text.get(from + at + 1..).unwrap_or_default();
    match source.split_once(':') {
        Some(("npm" | "patch", _)) => Source::Unknown,
        Some(("workspace", _)) => Source::Own,
        _ => Source::of(source),
    }
}
