//! Whether commands find git, the workspace's repository and the user's settings of git.

use std::path::Path;

use haft_builtins::command::shown_git::user_git;

use super::HealthCheck;
use crate::app::App;

const NAME: &str = "git";

/// Reports where git is, where the workspace's repository lies if not in the workspace, and which of the user's settings commands do
/// not get.
pub(super) fn check(app: &App) -> HealthCheck {
    let path = app.site().environment.get("PATH").unwrap_or_default();
    let found = std::env::split_paths(path)
        .map(|folder| folder.join(NAME))
        .find(|file| runs(file));
    let Some(file) = found else {
        let advice = "commands may need it: install git";
        return super::check(NAME, false, "not on PATH", advice);
    };
    let mut parts = vec![file.display().to_string()];
    if !app.site().has_folder() {
        return super::check(NAME, true, parts.concat(), "");
    }
    let workspace = app.files();
    if let Some(why) = workspace.refused_repository() {
        let detail = format!("commands see no repository here: {why}");
        let advice =
            "haft shows a repository only if it says itself that this folder is its work tree";
        return super::check(NAME, false, detail, advice);
    }
    if let Some(repository) = workspace.repository() {
        parts.push(format!("repository in {}", repository.folder().display()));
    }
    parts.extend(user_git(workspace).sentence());
    super::check(NAME, true, parts.join("; "), "")
}

fn runs(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}
