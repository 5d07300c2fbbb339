//! `pnpm-lock.yaml`: the section `packages`, read line by line as pnpm writes it.

use super::package::{Package, Packages};
use super::source::Source;

/// Reads the packages; `None` if it does not look as pnpm writes it.
pub(super) fn parse(text: &str) -> Option<Packages> {
    if !text
        .lines()
        .any(|line| line.starts_with("lockfileVersion:"))
    {
        return None;
    }
    let mut found = Packages::default();
    let mut current: Option<(String, String, Package)> = None;
    let mut is_inside = false;
    for line in text.lines() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if indent == 0 {
            is_inside = line.trim_end() == "packages:";
            continue;
        }
        if !is_inside {
            continue;
        }
        if indent == 2 {
            if let Some((name, version, package)) = current.take() {
                found.add(name, version, package)?;
            }
            let key = content.trim_end().strip_suffix(':')?;
            let (name, version) = split(key.trim_matches(['\'', '"']))?;
            current = Some((name, version, Package::default()));
        } else if let Some((_, _, package)) = &mut current {
            read_line(content, package);
        }
    }
    if let Some((name, version, package)) = current {
        found.add(name, version, package)?;
    }
    Some(found)
}

/// Splits `/@scope/name@1.2.3(peer@1)`, `name@1.2.3` or, in old files, `/name/1.2.3_peer@1`.
fn split(key: &str) -> Option<(String, String)> {
    let key = key.strip_prefix('/').unwrap_or(key);
    let key = key.split('(').next()?;
    let from = usize::from(key.starts_with('@'));
    let at = key.get(from..)?.find('@').map(|at| at + from);
    let is_old = at.is_none_or(|at| {
        key.get(..at)
            .is_some_and(|name| name.matches('/').count() > from)
    });
    let (name, version) = if is_old {
        key.rsplit_once('/')?
    } else {
        let at = at?;
        (key.get(..at)?, key.get(at + 1..)?)
    };
    Some((name.to_owned(), version.to_owned()))
}

/// Reads a line of a package: its resolution, on one line or below, and whether it runs scripts.
fn read_line(content: &str, package: &mut Package) {
    if content.starts_with("requiresBuild: true") {
        package.has_script = true;
    }
    let inner = content.strip_prefix("resolution:").unwrap_or(content);
    let inner = inner.trim().trim_matches(['{', '}']);
    for part in inner.split(", ") {
        let Some((key, value)) = part.split_once(": ") else {
            continue;
        };
        let value = value.trim().trim_matches(['\'', '"', '}']);
        match key.trim().trim_matches('{') {
            "integrity" => package.hashes.insert(value),
            "tarball" => package.source = Source::of(value),
            "repo" => package.source = Source::Git(value.to_owned()),
            "directory" => package.source = Source::File(value.to_owned()),
            _ => {}
        }
    }
}
