//! Where clients store the servers that they use.

use std::path::{Path, PathBuf};

use crate::clients::InstallScope;
use crate::program::ImportQuirks;
use crate::programs;
use crate::site::SetupSite;

/// A file that may contain servers.
pub(super) struct CandidateFile {
    pub(super) client: &'static str,
    pub(super) file: PathBuf,
    /// Whether it is in the workspace.
    pub(super) in_workspace: bool,
}

/// Returns the files of all clients: those of the user, then those of the workspace.
pub(super) fn all(at: SetupSite<'_>) -> Vec<CandidateFile> {
    let mut files = Vec::new();
    for level in [InstallScope::User, InstallScope::Project] {
        let mut add = |client, file: PathBuf| {
            files.push(CandidateFile {
                client,
                file,
                in_workspace: level == InstallScope::Project,
            });
        };
        for client in programs::clients().filter(|client| client.has(level)) {
            if let Ok(file) = client.file(level, at) {
                add(client.name, file);
            }
        }
        let all = || programs::all_imports();
        let server_files = all().flat_map(|one| {
            (one.server_files)(at, level)
                .into_iter()
                .map(|file| (one.client, file))
        });
        let rule_files = all().flat_map(|one| {
            (one.rule_files)(at, level)
                .into_iter()
                .map(|file| (one.client, file))
        });
        for (client, file) in server_files.chain(rule_files) {
            add(client, file);
        }
    }
    files
}

/// Returns the client that a file belongs to, judging by its path.
pub(super) fn client_of(file: &Path) -> &'static str {
    let path = file.to_string_lossy();
    let by_end = |one: &&ImportQuirks| one.path_ends.iter().any(|end| path.ends_with(end));
    let by_form = |one: &&ImportQuirks| one.extensions.iter().any(|end| path.ends_with(end));
    let found = programs::all_imports().find(by_end);
    let found = found.or_else(|| programs::all_imports().find(by_form));
    found.map_or("a client", |one| one.client)
}
