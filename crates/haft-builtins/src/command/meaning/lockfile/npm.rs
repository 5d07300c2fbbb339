//! `package-lock.json` and `npm-shrinkwrap.json`, versions 1 to 3.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lock::{Lockfile, PackageKey};
use super::package::Package;
use super::source::{PackageSource, tarball};

type RawMembers<'t> = BTreeMap<String, &'t RawValue>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NpmEntry<'t> {
    name: Option<String>,
    version: Option<String>,
    resolved: Option<NpmResolved>,
    integrity: Option<String>,
    #[serde(default)]
    has_install_script: bool,
    #[serde(default)]
    link: bool,
    #[serde(borrow)]
    dependencies: Option<&'t RawValue>,
}

/// npm writes `false` for a package that is bundled.
#[derive(Deserialize)]
#[serde(untagged)]
enum NpmResolved {
    Text(String),
    Other(serde::de::IgnoredAny),
}

impl NpmEntry<'_> {
    fn package(&self, name: &str) -> Package {
        let mut package = Package {
            hashes: self.integrity.iter().cloned().collect(),
            has_script: self.has_install_script,
            ..Package::default()
        };
        match &self.resolved {
            Some(NpmResolved::Text(folder)) if self.link && folder.starts_with("..") => {
                package.source = PackageSource::File(folder.clone());
            }
            _ if self.link => package.source = PackageSource::Own,
            Some(NpmResolved::Text(address)) => {
                (package.source, package.alias) = tarball(name, address);
                package.files.extend([address.clone()]);
            }
            _ => {}
        }
        let real = self.name.clone().filter(|real| real != name);
        package.alias = real.or(package.alias);
        package
    }
}

/// Reads the packages.
pub(super) fn parse(text: &str) -> Option<Lockfile<'_>> {
    let mut members: RawMembers<'_> = serde_json::from_str(text).ok()?;
    let mut found = Lockfile::default();
    if let Some(packages) = members.remove("packages") {
        let packages: RawMembers<'_> = serde_json::from_str(packages.get()).ok()?;
        for (path, raw) in packages {
            // Other paths are the workspace's own packages.
            let Some((_, name)) = path.rsplit_once("node_modules/") else {
                found.add_text(format!("packages: {path:?}"), None, raw.get());
                continue;
            };
            let entry: NpmEntry<'_> = serde_json::from_str(raw.get()).ok()?;
            let key: PackageKey = (name.to_owned(), entry.version.clone().unwrap_or_default());
            found.add(key.clone(), entry.package(name))?;
            found.add_text(path.clone(), Some(key), raw.get());
        }
    }
    // Version 2 has both: npm 6 installs from this part.
    if let Some(dependencies) = members.remove("dependencies") {
        old_packages(&mut found, dependencies)?;
    }
    for (name, raw) in members {
        found.add_text(name, None, raw.get());
    }
    Some(found)
}

/// Reads the packages of version 1, which are nested.
fn old_packages<'t>(found: &mut Lockfile<'t>, dependencies: &'t RawValue) -> Option<()> {
    let mut left = vec![dependencies];
    while let Some(entries) = left.pop() {
        let entries: RawMembers<'t> = serde_json::from_str(entries.get()).ok()?;
        for (name, raw) in entries {
            let entry: NpmEntry<'t> = serde_json::from_str(raw.get()).ok()?;
            let mut package = entry.package(&name);
            let mut version = entry.version.clone().unwrap_or_default();
            if let Some(real) = version.strip_prefix("npm:") {
                package.alias = Some(real.to_owned());
            } else if version.contains(':') {
                package.source = PackageSource::of(&version);
                version = String::new();
            }
            let key = (name.clone(), version);
            found.add(key.clone(), package)?;
            let title = format!("dependencies: {name} {}", key.1);
            let Some(nested) = entry.dependencies else {
                found.add_text(title, Some(key), raw.get());
                continue;
            };
            left.push(nested);
            let members: RawMembers<'t> = serde_json::from_str(raw.get()).ok()?;
            let compared = ["version", "resolved", "integrity", "dependencies"];
            let others = members.into_iter();
            let others = others.filter(|(member, _)| !compared.contains(&&**member));
            for (member, value) in others {
                let title = format!("{title} {member}");
                found.add_text(title, Some(key.clone()), value.get());
            }
        }
    }
    Some(())
}

/// Spreads a value over lines.
pub(super) fn spread(raw: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(raw);
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value));
    let pretty = pretty.unwrap_or_else(|_| raw.to_owned());
    // The last member of a map has no comma.
    let lines = pretty.lines().map(|line| line.trim_end_matches(','));
    let lines: Vec<&str> = lines.collect();
    lines.join("\n") + "\n"
}
