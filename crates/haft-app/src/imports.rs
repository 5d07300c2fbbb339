//! Servers from other programs' settings under names that haft allows and that are free: joins what was found with haft's own settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use haft_mcp::upstream::{MAX_SERVER_NAME, is_server_name};
use haft_setup::imports::{ImportRequest, find};

use crate::config::Settings;
use crate::problem::Problem;
use crate::servers::edit::{self, NewServer};
use crate::site::Site;

pub use haft_setup::imports::{ImportCandidate, ImportOptions, ImportedRules, Imports};

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
    let request = ImportRequest {
        at: at.setup(),
        reads_workspace: settings.trusted,
        options: wishes,
        to_name: to_valid_name,
    };
    let mut imports = find(request, from)?;
    choose_names(settings, wishes, &mut imports);
    Ok(imports)
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
    let taken = imports.servers.iter().filter(|one| one.is_taken());
    let names = taken.filter_map(|candidate| {
        let server = candidate.server.as_ref()?;
        Some((to_valid_name(&candidate.original), server.name.clone()))
    });
    imports.rules.rename(&names.collect());
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
