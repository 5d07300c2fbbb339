//! Adds servers to haft's own settings files and removes them: the rest of a file stays the same, byte for byte.

use std::path::{Path, PathBuf};

use haft_mcp::upstream::{MAX_SERVER_NAME, is_server_name};

use crate::config::{FILE_NAME, Settings, document, user_file};
use crate::problem::Problem;
use crate::site::Site;
use haft_setup::clients::settings_file::EditableFile;
use haft_setup::edit::EditError;
use haft_setup::edit::toml as toml_edit;
use haft_setup::server::SERVERS;
pub use haft_setup::server::{NewServer, ServerTarget};

/// The settings file of haft to edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsScope {
    /// The user's: the server exists in every folder.
    User,
    /// The workspace's.
    Workspace,
}

/// A settings file, before and after an edit.
#[derive(Debug, Clone)]
pub struct SettingsEdit {
    /// The file.
    pub file: PathBuf,
    /// Its previous text; `None` if it did not exist.
    pub before: Option<String>,
    /// Its new text.
    pub after: String,
}

/// Refuses an invalid server name.
///
/// # Errors
/// It is too long, or contains anything but letters, digits, `_` and `-`.
pub fn check_name(name: &str) -> Result<(), Problem> {
    if is_server_name(name) {
        return Ok(());
    }
    let problem = Problem::usage(format!("`{name}` cannot be a server's name"));
    Err(problem.advise(format!(
        "use 1 to {MAX_SERVER_NAME} of letters, digits, `_` and `-`"
    )))
}

/// Returns whether these settings have a server of this name.
pub fn has(settings: &Settings, name: &str) -> bool {
    let mut paths = settings.iter().map(|(path, _)| path);
    paths.any(|path| matches!(path, [mcp, servers, own, ..] if mcp == "mcp" && servers == "servers" && own == name))
}

/// Returns the settings file of this scope.
///
/// # Errors
/// There is no home folder for the user's settings.
pub fn file(at: &Site, scope: SettingsScope) -> Result<PathBuf, Problem> {
    match scope {
        SettingsScope::Workspace => Ok(at.workspace.join(FILE_NAME)),
        SettingsScope::User => user_file(&at.environment).ok_or_else(|| {
            Problem::failed("there is no home folder: HOME is not set")
                .advise("set HOME, or use --here")
        }),
    }
}

/// Adds servers to a settings file; `dry_run` only returns what it would become.
///
/// # Errors
/// The file cannot be read, edited or written.
pub fn add(file: &Path, servers: &[NewServer], dry_run: bool) -> Result<SettingsEdit, Problem> {
    change(file, dry_run, |text| {
        let mut text = text.to_owned();
        for server in servers {
            text = toml_edit::put_table(&text, SERVERS, &server.name, &server.text())?;
        }
        Ok(text)
    })
}

/// Removes a server from a settings file; returns `None` if it is not there.
///
/// # Errors
/// The file cannot be read, edited or written.
pub fn remove(file: &Path, name: &str, dry_run: bool) -> Result<Option<SettingsEdit>, Problem> {
    let edit = change(file, dry_run, |text| {
        let without = toml_edit::remove(text, SERVERS, name)?;
        Ok(without.unwrap_or_else(|| text.to_owned()))
    })?;
    let is_other = edit
        .before
        .as_ref()
        .is_some_and(|before| *before != edit.after);
    Ok(is_other.then_some(edit))
}

fn change(
    named: &Path,
    dry_run: bool,
    edit: impl FnOnce(&str) -> Result<String, EditError>,
) -> Result<SettingsEdit, Problem> {
    // A new file may hold secrets, except a workspace's `haft.toml`, which others share.
    let mode = (!named.ends_with(FILE_NAME)).then_some(0o600);
    let file = EditableFile::own(named, mode)?;
    let texts = file.rewrite(dry_run, |text| {
        let after = edit(text).map_err(|wrong| {
            let problem = wrong.problem("cannot edit the settings", &file.path, text);
            problem.advise("nothing was changed; edit the file by hand")
        })?;
        // A text that haft could not read afterwards is not written.
        document::parse(&file.path.display().to_string(), &after)?;
        Ok(after)
    })?;
    Ok(SettingsEdit {
        file: file.path,
        before: texts.before,
        after: texts.after,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{NewServer, ServerTarget};
    use crate::config::document;

    #[test]
    fn what_is_written_is_read_again_whatever_it_holds() {
        let odd = "a \"b\" 'c' \\ \u{7}\n# é".to_owned();
        let pairs = BTreeMap::from([
            ("A.b c".to_owned(), odd.clone()),
            ("X-Y".to_owned(), String::new()),
        ]);
        let command = ServerTarget::Command {
            program: odd.clone(),
            args: vec![odd.clone(), String::new()],
            env: pairs.clone(),
            cwd: Some("/tmp".into()),
        };
        let address = ServerTarget::Address {
            url: "https://x/?a=b".into(),
            headers: pairs,
        };
        for reach in [command, address] {
            let server = NewServer {
                trusted: true,
                enabled: false,
                network: true,
                call_timeout: Some(1.0),
                read: vec![odd.clone()],
                ..NewServer::new("a-b", reach)
            };
            let given = document::parse("x", &server.text()).unwrap();
            assert_eq!(given.len(), server.options().len());
            let texts: Vec<String> = given.iter().map(|given| given.value.to_string()).collect();
            assert!(texts.iter().any(|text| text.contains('é')), "{texts:?}");
            let again = given.iter().find(|given| given.path[3] == "call_timeout_s");
            assert_eq!(again.unwrap().value.as_float(), Some(1.0));
        }
    }
}
