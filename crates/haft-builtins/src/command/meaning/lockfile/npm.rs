//! `package-lock.json` and `npm-shrinkwrap.json`, versions 1 to 3.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Package, Packages, Source};

#[derive(Deserialize)]
struct Lock {
    packages: Option<BTreeMap<String, Entry>>,
    dependencies: Option<BTreeMap<String, Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: Option<String>,
    version: Option<String>,
    resolved: Option<Resolved>,
    integrity: Option<String>,
    #[serde(default)]
    has_install_script: bool,
    #[serde(default)]
    link: bool,
    dependencies: Option<serde_json::Value>,
}

/// npm writes `false` for a package that is bundled.
#[derive(Deserialize)]
#[serde(untagged)]
enum Resolved {
    Text(String),
    Other(serde::de::IgnoredAny),
}

impl Entry {
    fn package(&self) -> Package {
        let source = match &self.resolved {
            Some(Resolved::Text(text)) if !self.link => Source::of(text),
            _ => Source::Unknown,
        };
        Package {
            source: if self.link { Source::Own } else { source },
            hashes: self.integrity.iter().cloned().collect(),
            has_script: self.has_install_script,
        }
    }
}

/// Reads the packages.
pub(super) fn parse(text: &str) -> Option<Packages> {
    let lock: Lock = serde_json::from_str(text).ok()?;
    let mut found = Packages::default();
    if let Some(packages) = lock.packages {
        for (path, entry) in packages {
            // The empty path is the workspace's own package.
            let Some((_, last)) = path.rsplit_once("node_modules/") else {
                continue;
            };
            let name = entry.name.clone().unwrap_or_else(|| last.to_owned());
            let version = entry.version.clone().unwrap_or_default();
            found.add(name, version, entry.package())?;
        }
        return Some(found);
    }
    let mut left = vec![lock.dependencies.unwrap_or_default()];
    while let Some(entries) = left.pop() {
        for (name, entry) in entries {
            let mut package = entry.package();
            let mut version = entry.version.clone().unwrap_or_default();
            if version.contains(':') {
                package.source = Source::of(&version);
                version = String::new();
            }
            found.add(name, version, package)?;
            if let Some(nested) = entry.dependencies {
                left.push(serde_json::from_value(nested).ok()?);
            }
        }
    }
    Some(found)
}
