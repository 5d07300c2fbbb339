//! What git's settings outside of a repository make its reading commands run or read in a workspace.
//!
//! The user's own programs are the user's choice: those on the path and those that an absolute path outside of the workspace names.
//! A relative path is different. Git and its programs start in the workspace, so `core.hooksPath = .githooks` in `~/.gitconfig` runs
//! what any workspace brings.

use std::ffi::OsString;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use haft::workspace::Workspace;
use haft::workspace::git_file::{Setting, parse};

use crate::command::git_command::names_only_own_programs;
use crate::command::git_scope::GitScope;
use crate::command::git_sections::{is_inert, names_section};

/// Maximum size of a settings file, in bytes.
const MAX_SETTINGS: u64 = 256 * 1024;
/// Maximum number of files that are read, with those that they include.
const MAX_FILES: usize = 32;
/// Maximum depth of includes, as in git.
const MAX_DEPTH: usize = 10;
/// Maximum number of settings in variables.
const MAX_PAIRS: usize = 256;

/// The system's settings, wherever a package of git puts them.
const SYSTEM_FILES: &[&str] = &[
    "/etc/gitconfig",
    "/usr/local/etc/gitconfig",
    "/opt/homebrew/etc/gitconfig",
    "/home/linuxbrew/.linuxbrew/etc/gitconfig",
    "/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
    "/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
];

/// Variables that name a file of settings.
const FILE_VARIABLES: [&str; 2] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];

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
    let mut reading = GitSettingsReader {
        scope,
        files: 0,
        hooks: Vec::new(),
    };
    for file in files(scope.home, variable) {
        reading.file(&file, 0)?;
    }
    for setting in pairs(variable)? {
        reading.setting(setting, None, 0)?;
    }
    Some(reading.hooks)
}

/// Returns the files in which git looks. Variables may name others to haft than to git, so the usual ones count, too.
fn files(home: Option<&Path>, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut files: Vec<PathBuf> = SYSTEM_FILES.iter().map(PathBuf::from).collect();
    files.extend(
        FILE_VARIABLES
            .into_iter()
            .filter_map(set)
            .map(PathBuf::from),
    );
    files.extend(set("XDG_CONFIG_HOME").map(|folder| PathBuf::from(folder).join("git/config")));
    files.extend(home.map(|home| home.join(".config/git/config")));
    files.extend(home.map(|home| home.join(".gitconfig")));
    files
}

/// Returns the settings in variables, or `None` if they cannot be read.
fn pairs(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Vec<Setting>> {
    if variable("GIT_CONFIG_PARAMETERS").is_some_and(|value| !value.is_empty()) {
        return None;
    }
    let text = |name: &str| variable(name)?.into_string().ok();
    let count = match variable("GIT_CONFIG_COUNT") {
        None => 0,
        Some(count) if count.is_empty() => 0,
        Some(count) => count.to_str()?.trim().parse().ok()?,
    };
    let each = (0..count).take(MAX_PAIRS + 1).map(|at: usize| {
        let within = at < MAX_PAIRS;
        let key = within.then(|| text(&format!("GIT_CONFIG_KEY_{at}")))??;
        Setting::from_pair(&key, text(&format!("GIT_CONFIG_VALUE_{at}"))?)
    });
    each.collect()
}

/// Reads files and what they include. Its functions return `None` for what must be asked about.
#[derive(Debug)]
struct GitSettingsReader<'a> {
    scope: &'a GitScope<'a>,
    files: usize,
    hooks: Vec<String>,
}

impl GitSettingsReader<'_> {
    fn file(&mut self, path: &Path, depth: usize) -> Option<()> {
        // A relative path of a variable starts where the agent does.
        if !path.is_absolute() {
            return None;
        }
        let found = match path.metadata() {
            Ok(found) => found,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                // An agent may create it in the workspace.
                return (!self.scope.holds(path)).then_some(());
            }
            Err(_) => return None,
        };
        if path == Path::new("/dev/null") {
            return Some(());
        }
        self.files += 1;
        let fits = found.is_file() && found.len() <= MAX_SETTINGS;
        if !fits || self.files > MAX_FILES || depth > MAX_DEPTH {
            return None;
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        file.take(MAX_SETTINGS + 1).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        if self.scope.holds(path) {
            // A file of the workspace, as in a repository of settings.
            return is_inert(&text).then_some(());
        }
        for setting in parse(&text)? {
            self.setting(setting, Some(path), depth)?;
        }
        Some(())
    }

    fn setting(&mut self, setting: Setting, file: Option<&Path>, depth: usize) -> Option<()> {
        let Setting {
            section,
            name,
            key,
            value,
        } = setting;
        match (&*section, name.is_some(), &*key) {
            ("include", false, "path") | ("includeif", true, "path") => {
                // Whatever the condition: it may hold where git reads it.
                return self.file(&self.included(&value, file)?, depth + 1);
            }
            ("core", false, "hookspath") => {
                if !self.scope.is_own_path(&value) {
                    self.hooks.push(value);
                }
                return Some(());
            }
            _ => {}
        }
        let inert = match (&*section, name.is_some()) {
            // Git fetches missing objects.
            ("extensions" | "remote", _) => {
                !matches!(&*key, "partialclone" | "partialclonefilter" | "promisor")
            }
            // Runs git in nested repositories.
            ("diff", false) if key == "submodule" && value.eq_ignore_ascii_case("diff") => {
                return None;
            }
            ("core", false) => names_section(INERT_CORE, &key),
            ("diff", true) => names_section(INERT_DRIVER, &key),
            _ => names_section(INERT, &section),
        };
        let is_quiet = inert || value.is_empty() || self.is_own(&key, &value);
        is_quiet.then_some(())
    }

    fn is_own(&self, key: &str, value: &str) -> bool {
        if key.ends_with("file") || key.ends_with("path") {
            return self.scope.is_own_path(value);
        }
        names_only_own_programs(self.scope, value)
    }

    /// Returns the path of an included file.
    fn included(&self, path: &str, file: Option<&Path>) -> Option<PathBuf> {
        match path.strip_prefix('~') {
            Some(rest) => Some(self.scope.home?.join(rest.strip_prefix('/')?)),
            // Git's own folder, which is not known.
            None if path.starts_with("%(") => None,
            None => Some(file?.parent()?.join(path)),
        }
    }
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
