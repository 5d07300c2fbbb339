//! `package-lock.json` and `npm-shrinkwrap.json`, versions 1 to 3.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::package::{Package, Packages};
use super::source::Source;

#[derive(Deserialize)]
struct Lock {
    packages: Option<Listed>,
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
        let mut package = Package {
            source: if self.link { Source::Own } else { source },
            has_script: self.has_install_script,
            ..Package::default()
        };
        if let Some(hash) = &self.integrity {
            package.hashes.insert(hash);
        }
        package
    }
}

/// The packages by their folders, added while they are read: the entries themselves would take several times the room of the file. `None`
/// if there are too many.
struct Listed(Option<Packages>);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self(Some(Packages::default())))
    }
}

impl<'de> Visitor<'de> for Listed {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the packages by their folders")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some((path, entry)) = map.next_entry::<String, Entry>()? {
            // The empty path is the workspace's own package.
            let Some((_, last)) = path.rsplit_once("node_modules/") else {
                continue;
            };
            let package = entry.package();
            let name = entry.name.unwrap_or_else(|| last.to_owned());
            let version = entry.version.unwrap_or_default();
            let added = self
                .0
                .as_mut()
                .and_then(|all| all.add(name, version, package));
            if added.is_none() {
                self.0 = None;
            }
        }
        Ok(self)
    }
}

/// Reads the packages.
pub(super) fn parse(text: &str) -> Option<Packages> {
    let lock: Lock = serde_json::from_str(text).ok()?;
    if let Some(packages) = lock.packages {
        return packages.0;
    }
    let mut found = Packages::default();
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
