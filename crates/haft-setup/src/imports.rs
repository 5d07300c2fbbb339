//! Servers from other programs' settings: those of MCP clients and of plugin packages, read with their variables and quirks. Nothing is
//! started, and what cannot be imported is reported.
//!
//! ```text
//! files.rs ── files ──► document.rs ── entries ──► entry.rs, with texts.rs ──► ImportCandidate
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haft_shell::join_words;

use crate::clients::SERVER;
use crate::problem::Problem;
use crate::programs::claude;
use crate::server::{NewServer, ServerTarget};
use crate::site::SetupSite;

mod document;
mod entry;
mod env_file;
mod files;
mod plugin;
mod texts;

use document::ImportDocument;
use texts::ConversionContext;

pub use crate::imported_rules::ImportedRules;

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

/// What is imported, and by which rules.
#[derive(Debug, Clone, Copy)]
pub struct ImportRequest<'a> {
    /// Where settings are looked for.
    pub at: SetupSite<'a>,
    /// Whether files of the workspace are read, too, when all settings are.
    pub reads_workspace: bool,
    /// The user's options.
    pub options: &'a ImportOptions,
    /// Turns a server's name into one that haft allows.
    pub to_name: fn(&str) -> String,
}

/// Reads one file or package, or the settings of all clients that haft knows. The servers have the names of their files.
///
/// # Errors
/// The named file cannot be read or parsed.
pub fn find(request: ImportRequest<'_>, from: Option<&Path>) -> Result<Imports, Problem> {
    let mut imports = Imports::default();
    match from {
        Some(path) => one(request, path, &mut imports)?,
        None => all(request, &mut imports),
    }
    for candidate in &mut imports.servers {
        let is_off = imports.turned_off.contains(&candidate.original);
        if let Some(server) = &mut candidate.server
            && candidate.client == claude::CLIENT
            && is_off
        {
            server.enabled = false;
        }
    }
    Ok(imports)
}

fn one(request: ImportRequest<'_>, path: &Path, into: &mut Imports) -> Result<(), Problem> {
    let absolute = std::path::absolute(path);
    let path =
        absolute.map_err(|e| Problem::failed(format!("cannot find {}: {e}", path.display())))?;
    if path.is_dir() {
        return plugin::read(request, &path, into);
    }
    let source = ImportSource {
        client: files::client_of(&path),
        file: &path,
        package: None,
    };
    let entries = document::read(&source, request)?.known(&path)?;
    take(request, &source, entries, into);
    Ok(())
}

/// Reads all known files. One that cannot be read is noted, as the user did not name it.
fn all(request: ImportRequest<'_>, into: &mut Imports) {
    for place in files::all(request.at) {
        if !place.file.exists() {
            continue;
        }
        if place.in_workspace && !request.reads_workspace {
            into.notes.push(format!(
                "not read, as this folder is not trusted: {} (haft trust {})",
                place.file.display(),
                join_words(&[request.at.workspace.to_string_lossy()])
            ));
            continue;
        }
        let source = ImportSource {
            client: place.client,
            file: &place.file,
            package: None,
        };
        match document::read(&source, request) {
            Ok(entries) if entries.is_known => take(request, &source, entries, into),
            Ok(_) => {}
            Err(problem) => into.notes.push(format!("not read: {problem}")),
        }
    }
    for plugin in claude::plugins::installed(request.at) {
        let read = plugin.and_then(|folder| {
            let read = plugin::read(request, &folder, into);
            read.map_err(|problem| format!("not read: {problem}"))
        });
        into.notes.extend(read.err());
    }
}

/// Converts the contents of a file into candidates and rules.
fn take(
    request: ImportRequest<'_>,
    source: &ImportSource<'_>,
    entries: ImportDocument,
    into: &mut Imports,
) {
    into.files.push(source.file.to_owned());
    into.notes.extend(entries.notes);
    for (name, entry) in entries.servers {
        let context = ConversionContext {
            at: request.at,
            client: source.client,
            package: source.package,
            inputs: &entries.inputs,
        };
        let candidate = entry::candidate(source, &name, entry, &context, request.options);
        if !candidate.is_haft() {
            into.servers.push(candidate);
        }
    }
    into.turned_off.extend(entries.turned_off);
    into.rules.add(entries.rules);
}
