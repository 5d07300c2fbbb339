//! What git's settings outside of a repository make its reading commands run or read in a workspace.
//!
//! The user's own programs are the user's choice: those on the path and those that an absolute path outside of the workspace names.
//! A relative path is different. Git and its programs start in the workspace, so `core.hooksPath = .githooks` in `~/.gitconfig` runs
//! what any workspace brings.

use std::ffi::OsString;
use std::path::Path;

use haft::workspace::Workspace;
use haft::workspace::git_file::Setting;
use haft::workspace::git_settings::{FoundSetting, GitSettingsReader};

use crate::command::git_command::names_only_own_programs;
use crate::command::git_scope::GitScope;
use crate::command::git_sections::{is_inert, names_section};

/// Sections whose settings a reading command neither runs nor reads in the workspace, with or without a name.
const INERT: &str = "advice alias am apply author blame branch checkout clean clone color column commit committer credential \
    difftool feature fetch format gc gitflow gui help http i18n index init lfs log maintenance merge mergetool notes pack pretty pull \
    push rebase receive rerere safe sendemail sequence stash status submodule svn-remote tag transfer url user versionsort web worktree";

/// Keys of `core` that only commands that write or connect use.
const INERT_CORE: &str =
    "alternaterefscommand askpass commentchar commentstring editor gitproxy sshcommand worktree";

/// Keys of a file driver that are patterns and switches.
const INERT_DRIVER: &str =
    "algorithm binary cachetextconv funcname trustexitcode wordregex xfuncname";

/// Returns the folders of hooks that the settings name relative to the workspace, or in it. Returns `None` if a setting may make a
/// reading command run or read something in the workspace, or cannot be read.
pub(super) fn hook_folders(workspace: &Workspace, home: Option<&Path>) -> Option<Vec<String>> {
    let root = workspace.root();
    folders(&GitScope { root, home }, &|name| std::env::var_os(name))
}

fn folders(
    scope: &GitScope<'_>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<Vec<String>> {
    let mut reader = GitSettingsReader::of_everything(scope.home);
    reader.read_user(variable);
    if reader.unread().is_some() {
        return None;
    }
    let mut hooks = Vec::new();
    for found in reader.settings() {
        if !is_quiet(scope, found, &mut hooks) {
            return None;
        }
    }
    Some(hooks)
}

/// Returns true if no reading command runs or reads something in the workspace because of a setting. Notes a folder of hooks there.
fn is_quiet(scope: &GitScope<'_>, found: &FoundSetting, hooks: &mut Vec<String>) -> bool {
    let setting = &found.setting;
    if found.is_include() {
        // An agent may create the file in the workspace.
        let at = found.path(scope.home);
        return at.is_some_and(|at| at.exists() || !scope.holds(&at));
    }
    if found.file.as_ref().is_some_and(|file| scope.holds(file)) {
        // A file of the workspace, as in a repository of settings.
        return is_inert(&written(setting));
    }
    let Setting {
        section,
        name,
        key,
        value,
    } = setting;
    if (&**section, name.is_some(), &**key) == ("core", false, "hookspath") {
        if !scope.is_own_path(value) {
            hooks.push(value.clone());
        }
        return true;
    }
    let inert = match (&**section, name.is_some()) {
        // Git fetches missing objects.
        ("extensions" | "remote", _) => {
            !matches!(&**key, "partialclone" | "partialclonefilter" | "promisor")
        }
        // Runs git in nested repositories.
        ("diff", false) if key == "submodule" && value.eq_ignore_ascii_case("diff") => {
            return false;
        }
        ("core", false) => names_section(INERT_CORE, key),
        ("diff", true) => names_section(INERT_DRIVER, key),
        _ => names_section(INERT, section),
    };
    inert || value.is_empty() || is_own(scope, key, value)
}

fn is_own(scope: &GitScope<'_>, key: &str, value: &str) -> bool {
    if key.ends_with("file") || key.ends_with("path") {
        return scope.is_own_path(value);
    }
    names_only_own_programs(scope, value)
}

/// Writes a setting as [`is_inert`] reads it.
fn written(setting: &Setting) -> String {
    let name = setting.name.as_ref();
    let name = name.map(|name| format!(" \"{name}\"")).unwrap_or_default();
    format!(
        "[{}{name}]\n{} = {}\n",
        setting.section, setting.key, setting.value
    )
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;

    use super::{GitScope, folders};

    #[test]
    fn variables_name_files_and_settings() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("ws");
        fs::create_dir_all(base.join("xdg/git")).unwrap();
        fs::create_dir_all(&root).unwrap();
        fs::write(base.join("xdg/git/config"), "[core]\nhooksPath = x\n").unwrap();
        fs::write(base.join("pager"), "[core]\npager = ./x\n").unwrap();
        let at = |name: &str| base.join(name).to_string_lossy().into_owned();
        let pair = |key: &str, value: &str| {
            vec![
                ("GIT_CONFIG_COUNT", "1".to_owned()),
                ("GIT_CONFIG_KEY_0", key.to_owned()),
                ("GIT_CONFIG_VALUE_0", value.to_owned()),
            ]
        };
        let none: Option<Vec<String>> = None;
        let hooks = |name: &str| Some(vec![name.to_owned()]);
        for (variables, expect) in [
            (vec![], Some(vec![])),
            (vec![("XDG_CONFIG_HOME", at("xdg"))], hooks("x")),
            (vec![("GIT_CONFIG_GLOBAL", at("pager"))], none.clone()),
            (vec![("GIT_CONFIG_SYSTEM", at("pager"))], none.clone()),
            (
                vec![("GIT_CONFIG_GLOBAL", "pager".to_owned())],
                none.clone(),
            ),
            (
                vec![("GIT_CONFIG_GLOBAL", "/dev/null".to_owned())],
                Some(vec![]),
            ),
            (vec![("GIT_CONFIG_COUNT", "x".to_owned())], none.clone()),
            (vec![("GIT_CONFIG_COUNT", "1".to_owned())], none.clone()),
            (
                vec![("GIT_CONFIG_PARAMETERS", "'a.b=c'".to_owned())],
                none.clone(),
            ),
            (pair("core.hooksPath", "y"), hooks("y")),
            (pair("safe.directory", "*"), Some(vec![])),
            (pair("include.path", "y"), none.clone()),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let scope = GitScope {
                root: &root,
                home: Some(&base),
            };
            assert_eq!(folders(&scope, &variable), expect, "{variables:?}");
        }
    }
}
