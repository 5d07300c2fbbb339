//! `pnpm-lock.yaml`: the section `packages`, and what else decides which packages are installed.

use super::lock::{Lockfile, PackageKey};
use super::package::Package;
use super::source::PackageSource;
use super::yaml::{self, YamlValue};

/// Reads the packages; `None` if it does not look as pnpm writes it.
pub(super) fn parse(text: &str) -> Option<Lockfile<'_>> {
    let (mut found, mut is_one) = (Lockfile::default(), false);
    for section in yaml::sections(text) {
        let head = section.split_inclusive('\n').next()?;
        if !head.trim_end().ends_with(':') || head.trim_start().starts_with('#') {
            // On one line, or only remarks.
            let Some(node) = yaml::parse(section) else {
                let says = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
                if section.lines().any(|line| says(line) && line != "---") {
                    return None;
                }
                continue;
            };
            for (name, value) in node.members() {
                is_one |= name == "lockfileVersion";
                found.add_text(name.clone(), None, section);
                read_section(&mut found, name, value)?;
            }
            continue;
        }
        let node = yaml::parse(head)?;
        let name = node.members().first()?.0.clone();
        for entry in yaml::entries(&section[head.len()..]) {
            let says = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
            if !entry.lines().any(says) {
                continue;
            }
            let value = yaml::parse(entry)?;
            let key = value.members().first().map(|(key, _)| key.clone());
            let key = key.unwrap_or_default();
            let of_package = matches!(&*name, "packages" | "snapshots");
            let owner = if of_package { Some(split(&key)?) } else { None };
            found.add_text(format!("{name}: {key}"), owner, entry);
            read_section(&mut found, &name, &value)?;
        }
    }
    is_one.then_some(found)
}

/// Reads members of a section.
fn read_section(found: &mut Lockfile<'_>, section: &str, members: &YamlValue) -> Option<()> {
    for (key, value) in members.members() {
        match section {
            "packages" => found.add(split(key)?, package(value))?,
            "overrides" => {
                let to = value.as_text().unwrap_or_default();
                found.steering.insert(format!("{key} is overridden: {to}"));
            }
            "patchedDependencies" => {
                let path = value.as_text().or_else(|| value.text("path"));
                let path = path.unwrap_or_default();
                found.steering.insert(format!("{key} is patched: {path}"));
            }
            "importers" | "dependencies" | "devDependencies" | "optionalDependencies" => {
                linked(key, value, found);
            }
            _ => {}
        }
    }
    Some(())
}

/// Finds what is installed from elsewhere than a registry.
fn linked(name: &str, value: &YamlValue, found: &mut Lockfile<'_>) {
    let version = value.as_text().or_else(|| value.text("version"));
    let places = ["link:", "file:", "http:", "https:", "git", "ssh:"];
    if let Some(version) = version.filter(|text| places.iter().any(|place| text.starts_with(place)))
    {
        found
            .steering
            .insert(format!("{name} comes from {version}"));
    }
    let is_one = value.text("version").is_some();
    for (key, value) in value.members().iter().filter(|_| !is_one) {
        linked(key, value, found);
    }
}

/// Splits `/@scope/name@1.2.3(peer@1)`, `name@1.2.3` or, in old files, `/name/1.2.3_peer@1`.
fn split(key: &str) -> Option<PackageKey> {
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

/// Reads a package: where it comes from, and whether it runs scripts.
fn package(node: &YamlValue) -> Package {
    let mut package = Package {
        has_script: node.text("requiresBuild") == Some("true"),
        ..Package::default()
    };
    let resolution = node.get("resolution");
    let text = |name: &str| resolution.and_then(|node| node.text(name));
    package.hashes.extend(text("integrity").map(str::to_owned));
    package.files.extend(text("tarball").map(str::to_owned));
    if let Some(tarball) = text("tarball") {
        package.source = PackageSource::of(tarball);
    } else if let Some(repository) = text("repo") {
        let commit = text("commit").map_or_else(String::new, |commit| format!("#{commit}"));
        package.source = PackageSource::Git(format!("{repository}{commit}"));
    } else if let Some(folder) = text("directory") {
        package.source = PackageSource::File(folder.to_owned());
    }
    package
}
