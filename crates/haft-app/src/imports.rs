//! Servers from other programs' settings: those of MCP clients and of plugin packages, read with their variables and quirks. Nothing is
//! started, and what cannot be imported is reported.
//!
//! ```text
//! places.rs ── files ──► document.rs ── entries ──► entry.rs, with texts.rs ──► Candidate ──► servers::edit
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haft_mcp::upstream::{MAX_SERVER_NAME, is_server_name};

use crate::clients::SERVER;
use crate::config::Settings;
use crate::problem::Problem;
use crate::servers::edit::{self, NewServer, ServerTarget};
use crate::site::Site;

mod document;
mod entry;
mod env_file;
mod installed;
mod permissions;
mod places;
mod plugin;
mod texts;

use document::ImportDocument;
use texts::ConversionContext;

pub use permissions::ImportedRules;

/// The options of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// New names, by the names in the settings that are read.
    pub rename: BTreeMap<String, String>,
    /// Whether secrets that those settings hold in plain text may be copied.
    pub copy_secrets: bool,
    /// Whether the processes get unrestricted network access.
    pub network: bool,
}

/// A server that was found.
#[derive(Debug, Clone)]
pub struct ImportCandidate {
    /// Its name in the settings that it was found in.
    pub original: String,
    /// The client that these settings belong to.
    pub client: &'static str,
    /// The file that it was found in.
    pub file: PathBuf,
    /// The server as haft would configure it; `None` if that is not possible.
    pub server: Option<NewServer>,
    /// What is not imported, or differs after the import.
    pub notes: Vec<String>,
    /// Why it is not imported.
    pub refused: Option<String>,
}

/// Everything that was found.
#[derive(Debug, Clone, Default)]
pub struct Imports {
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// The servers, in the order of the files.
    pub servers: Vec<ImportCandidate>,
    /// Rules about the tools of servers.
    pub rules: ImportedRules,
    /// Other notes for the user.
    pub notes: Vec<String>,
    /// Servers of Claude Code that are turned off somewhere other than in their own entry.
    turned_off: BTreeSet<String>,
}

/// A file or package, and the client that it belongs to.
#[derive(Debug, Clone)]
struct ImportSource<'a> {
    client: &'static str,
    file: &'a Path,
    /// The folder of the package that contains it.
    package: Option<&'a Path>,
}

impl ImportCandidate {
    /// Returns whether it is to be imported.
    pub fn is_taken(&self) -> bool {
        self.server.is_some() && self.refused.is_none()
    }

    /// Records why it is not imported.
    pub fn refuse(&mut self, why: impl Into<String>) {
        self.refused.get_or_insert_with(|| why.into());
    }

    /// Returns whether it is haft itself, added by `haft mcp install`.
    fn is_haft(&self) -> bool {
        match self.server.as_ref().map(|server| &server.reach) {
            Some(ServerTarget::Command { program, args, .. }) => {
                let program = Path::new(program).file_name();
                let program = program
                    .and_then(std::ffi::OsStr::to_str)
                    .unwrap_or_default();
                program.starts_with(SERVER) && args.first().is_some_and(|word| word == "serve")
            }
            Some(ServerTarget::Address { .. }) => self.original == SERVER,
            None => false,
        }
    }
}

/// Reads one file or package, or the settings of all clients that haft knows. Files of the workspace are read only if it is trusted.
///
/// # Errors
/// The named file cannot be read or parsed, or a new name is not a valid server name.
pub fn look(
    at: &Site,
    settings: &Settings,
    from: Option<&Path>,
    wishes: &ImportOptions,
) -> Result<Imports, Problem> {
    for (old, new) in &wishes.rename {
        if !is_server_name(new) {
            let problem =
                Problem::usage(format!("`{old}={new}`: `{new}` cannot be a server's name"));
            return Err(problem.advise(format!(
                "use 1 to {MAX_SERVER_NAME} of letters, digits, `_` and `-`"
            )));
        }
    }
    let mut imports = Imports::default();
    match from {
        Some(path) => one(at, path, wishes, &mut imports)?,
        None => all(at, settings, wishes, &mut imports),
    }
    choose_names(settings, wishes, &mut imports);
    Ok(imports)
}

fn one(at: &Site, path: &Path, wishes: &ImportOptions, into: &mut Imports) -> Result<(), Problem> {
    let absolute = std::path::absolute(path);
    let path =
        absolute.map_err(|e| Problem::failed(format!("cannot find {}: {e}", path.display())))?;
    if path.is_dir() {
        return plugin::read(at, &path, wishes, into);
    }
    let source = ImportSource {
        client: places::client_of(&path),
        file: &path,
        package: None,
    };
    let entries = document::read(&source, at)?.known(&path)?;
    take(at, &source, wishes, entries, into);
    Ok(())
}

/// Reads all known files. One that cannot be read is noted, as the user did not name it.
fn all(at: &Site, settings: &Settings, wishes: &ImportOptions, into: &mut Imports) {
    for place in places::all(at) {
        if !place.file.exists() {
            continue;
        }
        if place.in_workspace && !settings.trusted {
            into.notes.push(format!(
                "not read, as this folder is not trusted: {} (haft trust)",
                place.file.display()
            ));
            continue;
        }
        let source = ImportSource {
            client: place.client,
            file: &place.file,
            package: None,
        };
        match document::read(&source, at) {
            Ok(entries) if entries.is_known => take(at, &source, wishes, entries, into),
            Ok(_) => {}
            Err(problem) => into.notes.push(format!("not read: {problem}")),
        }
    }
    installed::read(at, wishes, into);
}

/// Converts the contents of a file into candidates and rules.
fn take(
    at: &Site,
    source: &ImportSource<'_>,
    wishes: &ImportOptions,
    entries: ImportDocument,
    into: &mut Imports,
) {
    into.files.push(source.file.to_owned());
    into.notes.extend(entries.notes);
    for (name, entry) in entries.servers {
        let context = ConversionContext {
            at,
            client: source.client,
            package: source.package,
            inputs: &entries.inputs,
        };
        let candidate = entry::candidate(source, &name, entry, &context, wishes);
        if !candidate.is_haft() {
            into.servers.push(candidate);
        }
    }
    into.turned_off.extend(entries.turned_off);
    into.rules.add(entries.rules);
}

/// Sets each candidate's name in haft: the one that the user chose, or its own without invalid characters.
fn choose_names(settings: &Settings, wishes: &ImportOptions, imports: &mut Imports) {
    let mut names: BTreeMap<String, NewServer> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for candidate in &mut imports.servers {
        let original = candidate.original.clone();
        let Some(mut server) = candidate.server.take() else {
            continue;
        };
        if candidate.client == "claude-code" && imports.turned_off.contains(&original) {
            server.enabled = false;
        }
        let chosen = wishes.rename.get(&original);
        if chosen.is_some() {
            used.insert(original.clone());
        }
        server.name = chosen.cloned().unwrap_or_else(|| to_valid_name(&original));
        if chosen.is_none() && server.name != original {
            candidate
                .notes
                .push(format!("its name is `{}` in haft", server.name));
        }
        let name = server.name.clone();
        if !is_server_name(&name) {
            candidate.refuse(format!(
                "`{name}` cannot be a server's name: --rename {original}=NEW"
            ));
        } else if edit::has(settings, &name) {
            candidate.refuse(format!(
                "haft already has a server `{name}`: --rename {original}=NEW also adds this one"
            ));
        } else if let Some(same) = names.get(&name).filter(|_| candidate.refused.is_none()) {
            candidate.refuse(if same.reach == server.reach {
                "it is the same as one listed above".to_owned()
            } else {
                format!("another server listed above is also named `{name}`: import its file separately with --rename {original}=NEW")
            });
        } else if candidate.refused.is_none() {
            names.insert(name, server.clone());
        }
        candidate.server = Some(server);
    }
    let unused = wishes.rename.keys().filter(|name| !used.contains(*name));
    for name in unused {
        imports.notes.push(format!(
            "--rename {name}=…: no server with this name was found"
        ));
    }
    imports.rules.rename(&imports.servers);
}

/// Replaces the characters of a name that haft does not allow.
fn to_valid_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            c
        } else {
            '-'
        }
    };
    let plain: String = name.chars().map(plain).collect();
    let plain = plain.trim_matches('-');
    plain.chars().take(MAX_SERVER_NAME).collect()
}

#[cfg(test)]
mod tests;
