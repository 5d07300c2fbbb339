//! Reads the package of a plugin: a folder with `plugin.json`, its servers, its skills, and parts that haft cannot use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft::plural::counted;
use serde_json::{Map, Value};

use crate::imports::document::{self, ImportDocument};
use crate::imports::{ImportRequest, ImportSource, Imports, take};
use crate::parse::parse;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use crate::programs;

/// The paths of the manifest for any client; those of some clients come after them. The first one that exists is used.
const MANIFESTS: [&str; 2] = [".plugin/plugin.json", "plugin.json"];
/// The files with servers.
const SERVERS: [&str; 2] = [".mcp.json", "mcp.json"];
/// Parts that haft cannot use, with the manifest member that may point to another place.
const UNUSABLE_PARTS: [(&str, &str); 7] = [
    ("commands", "commands"),
    ("agents", "agents"),
    ("hooks", "hooks"),
    ("rules", "rules"),
    (".lsp.json", "lspServers"),
    ("output-styles", "outputStyles"),
    ("monitors", "monitors"),
];
/// Maximum size of a manifest, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;

/// Reads a package.
pub(super) fn read(
    request: ImportRequest<'_>,
    folder: &Path,
    into: &mut Imports,
) -> Result<(), Problem> {
    let real = folder.canonicalize();
    let folder =
        real.map_err(|e| Problem::failed(format!("cannot find {}: {e}", folder.display())))?;
    let manifest = manifest(&folder)?;
    let name = manifest.get("name").and_then(Value::as_str);
    if name.is_none() {
        into.notes.push(format!(
            "{}: no manifest names the plugin",
            folder.display()
        ));
    }
    let package = PluginPackage {
        request,
        folder: &folder,
    };
    package.servers(&manifest, into)?;
    package.skills(&manifest, into);
    for (place, member) in UNUSABLE_PARTS {
        if folder.join(place).exists() || manifest.contains_key(member) {
            into.notes
                .push(format!("not carried over: {member} of the plugin"));
        }
    }
    Ok(())
}

/// Returns the paths at which a manifest is looked for.
fn manifests() -> impl Iterator<Item = &'static str> {
    let own = programs::all_imports().filter_map(|one| one.manifest);
    MANIFESTS.into_iter().chain(own)
}

fn manifest(folder: &Path) -> Result<Map<String, Value>, Problem> {
    let file = manifests()
        .map(|name| folder.join(name))
        .find(|file| file.exists());
    if let Some(file) = file {
        let real = file.canonicalize();
        let is_inside = real.is_ok_and(|real| real.starts_with(folder));
        if !is_inside {
            let what = format!("{} leads out of the plugin", file.display());
            return Err(Problem::usage(what).at(SourceLocation::file(&file)));
        }
        let text = plain_file::read(&file, MAX_MANIFEST).map_err(|e| {
            Problem::usage(format!("cannot read the plugin: {e}")).at(SourceLocation::file(&file))
        })?;
        return parse(&file, &text);
    }
    let is_package = SERVERS
        .iter()
        .chain(&["skills"])
        .any(|name| folder.join(name).exists());
    if is_package {
        return Ok(Map::new());
    }
    let problem = Problem::usage(format!(
        "{} is not the folder of a plugin",
        folder.display()
    ));
    Err(problem.advise(format!(
        "it has none of {}, {} and skills/",
        manifests().collect::<Vec<_>>().join(", "),
        SERVERS.join(", ")
    )))
}

struct PluginPackage<'a> {
    request: ImportRequest<'a>,
    folder: &'a Path,
}

impl PluginPackage<'_> {
    /// Reads the servers in the files, and those that the manifest contains or points to.
    fn servers(&self, manifest: &Map<String, Value>, into: &mut Imports) -> Result<(), Problem> {
        let mut files: Vec<PathBuf> = SERVERS
            .iter()
            .filter(|name| self.folder.join(name).exists())
            .filter_map(|name| self.path_inside(name, into))
            .collect();
        match manifest.get("mcpServers") {
            Some(Value::Object(servers)) => {
                let held = servers
                    .iter()
                    .filter_map(|(name, entry)| Some((name.clone(), entry.as_object()?.clone())));
                let entries = ImportDocument {
                    servers: held.collect(),
                    ..ImportDocument::default()
                };
                self.take(self.folder, entries, into);
            }
            named => files.extend(self.named(named, into)),
        }
        files.sort();
        files.dedup();
        for file in files {
            let source = self.source(&file);
            let entries = document::read(&source, self.request)?.known(&file)?;
            self.take(&file, entries, into);
        }
        Ok(())
    }

    fn source<'f>(&'f self, file: &'f Path) -> ImportSource<'f> {
        ImportSource {
            client: "a plugin",
            file,
            package: Some(self.folder),
        }
    }

    fn take(&self, file: &Path, entries: ImportDocument, into: &mut Imports) {
        take(self.request, &self.source(file), entries, into);
    }

    /// Returns the paths inside the package that a member of the manifest names.
    fn named(&self, member: Option<&Value>, into: &mut Imports) -> Vec<PathBuf> {
        let names = match member {
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let names = names.into_iter();
        names
            .filter_map(|name| self.path_inside(name, into))
            .collect()
    }

    /// Returns a path in the package with links resolved; `None` if it leads out of the package.
    fn path_inside(&self, name: &str, into: &mut Imports) -> Option<PathBuf> {
        let why = match self.folder.join(name).canonicalize() {
            Ok(path) if path.starts_with(self.folder) => return Some(path),
            Ok(_) => format!("not read: {name} leads out of the plugin"),
            Err(error) => format!("not read: {name}: {error}"),
        };
        into.notes.push(why);
        None
    }

    /// Notes how its skills can be used.
    fn skills(&self, manifest: &Map<String, Value>, into: &mut Imports) {
        let own = Some("skills").filter(|own| self.folder.join(own).exists());
        let own = own.and_then(|own| self.path_inside(own, into));
        let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
        let named = self.named(manifest.get("skills"), into);
        for folder in own
            .into_iter()
            .chain(named)
            .filter(|folder| folder.is_dir())
        {
            let count = std::fs::read_dir(&folder).map_or(0, |entries| {
                entries
                    .flatten()
                    .filter(|entry| entry.path().join("SKILL.md").is_file())
                    .count()
            });
            folders.insert(folder, count);
        }
        for (folder, count) in folders {
            into.notes.push(format!(
                "{}: skills.dirs = [{:?}] in haft's settings offers them",
                counted(count, "skill"),
                folder.display().to_string()
            ));
        }
    }
}
