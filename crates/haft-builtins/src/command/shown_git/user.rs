//! `UserGit`: the user's git settings as commands get them: the inert ones, as the system's settings of the jail.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use haft::text::visible;
use haft::workspace::Workspace;
use haft::workspace::git_file::Setting;
use haft::workspace::git_settings::{
    FoundSetting, GitSettingsReader, expand, git_folder, read_bounded,
};

use super::conditions::holds;
use super::inert::{PatternFile, SettingKind, kind};
use super::signing;
use crate::command::git_command::names_only_own_programs;
use crate::command::git_scope::GitScope;
use crate::command::said_notes::GIT_NOTE;

/// Where git in the jail reads them: a call's own settings and those of the repository come later and win, as they do for the user.
pub(super) const SYSTEM: &str = "/etc/gitconfig";
const IGNORED: &str = "/etc/haft-git/ignore";
const ATTRIBUTES: &str = "/etc/haft-git/attributes";
/// Maximum size of the settings that are passed, and of a file of patterns, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum number of keys that a sentence names.
const MAX_NAMED: usize = 6;
/// Where the programs of filters are found: what every jail shows, and what only an administrator changes.
const PROGRAM_FOLDERS: [&str; 6] = [
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
];

/// The user's git settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UserGit {
    /// The files that commands see.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The keys that are set and not passed, except those that only a person at a screen would miss.
    pub left: BTreeSet<String>,
    /// Why there may be more settings.
    pub unread: Option<String>,
    /// The names of the user's gpg keys that commits are signed with.
    pub gpg_keys: Vec<String>,
}

impl UserGit {
    /// Lets git ignore these paths of the workspace's root, besides what the user's patterns name.
    pub(super) fn ignore(&mut self, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        let at = |files: &[(PathBuf, Vec<u8>)], name: &str| {
            files.iter().position(|(path, _)| path == Path::new(name))
        };
        let patterns = format!("\n/{}", paths.join("\n/"));
        if let Some(at) = at(&self.files, IGNORED) {
            self.files[at].1.extend(patterns.into_bytes());
            return;
        }
        self.files.push((IGNORED.into(), patterns.into_bytes()));
        let setting = format!("[core]\n\texcludesFile = {IGNORED}\n");
        match at(&self.files, SYSTEM) {
            Some(at) => self.files[at].1.extend(setting.into_bytes()),
            None => self.files.push((SYSTEM.into(), setting.into_bytes())),
        }
    }

    /// Returns a sentence on what commands do not get; `None` if they get all.
    pub fn sentence(&self) -> Option<String> {
        let mut named: Vec<&str> = self.left.iter().map(String::as_str).collect();
        let more = named.len().saturating_sub(MAX_NAMED);
        named.truncate(MAX_NAMED);
        let mut parts = Vec::new();
        if !named.is_empty() {
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            parts.push(format!("{}{more}", named.join(", ")));
        }
        parts.extend(self.unread.clone());
        (!parts.is_empty()).then(|| format!("{GIT_NOTE}: {}.", parts.join("; ")))
    }
}

/// Reads the user's and the system's settings of git for commands in a workspace.
pub fn user_git(workspace: &Workspace) -> UserGit {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    collect(workspace, home.as_deref(), &|name| std::env::var_os(name))
}

fn collect(
    workspace: &Workspace,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<std::ffi::OsString>,
) -> UserGit {
    let repository = match workspace.repository() {
        Some(outside) => Some(workspace.host_path(&outside.own_part())),
        None => Some(workspace.root().join(".git")).filter(|git| git.is_dir()),
    };
    let condition = |setting: &Setting| {
        let name = setting.name.as_deref();
        name.map_or(Some(true), |name| holds(name, repository.as_deref(), home))
    };
    let includes = |setting: &Setting| condition(setting) == Some(true);
    let mut reader = GitSettingsReader::new(home, &includes);
    reader.read_user_as_git(variable);
    let mut settings = PassedSettings {
        scope: GitScope {
            root: workspace.root(),
            home,
        },
        workspace,
        text: String::new(),
        patterns: BTreeMap::new(),
        user: UserGit::default(),
    };
    settings.user.unread = reader.unread().map(str::to_owned);
    settings.user.gpg_keys = signing::gpg_names(reader.settings(), repository.as_deref());
    for found in reader.settings() {
        if found.is_include() && condition(&found.setting).is_none() {
            let name = found.setting.name.as_deref().unwrap_or_default();
            settings.leave(&format!("includeIf {}", visible::line(name)));
        }
        settings.add(found);
    }
    let defaults = git_folder(home, variable);
    for (file, name) in [
        (PatternFile::Ignored, "ignore"),
        (PatternFile::Attributes, "attributes"),
    ] {
        let at = defaults.as_ref().map(|folder| folder.join(name));
        if let Some(at) = at.filter(|at| at.symlink_metadata().is_ok())
            && !settings.patterns.contains_key(name)
        {
            settings.add_patterns(file, &at);
        }
    }
    settings.finish()
}

struct PassedSettings<'a> {
    scope: GitScope<'a>,
    workspace: &'a Workspace,
    text: String,
    /// The files of patterns, by what the user's own are called.
    patterns: BTreeMap<&'static str, Vec<u8>>,
    user: UserGit,
}

impl PassedSettings<'_> {
    fn add(&mut self, found: &FoundSetting) {
        let setting = &found.setting;
        match kind(setting) {
            SettingKind::Inert => self.pass(setting),
            SettingKind::Filter if self.finds_programs(setting) => self.pass(setting),
            SettingKind::Patterns(file) => {
                match expand(&setting.value, self.scope.home).filter(|at| at.is_absolute()) {
                    Some(at) => self.add_patterns(file, &at),
                    None => self.leave(&key_of(setting)),
                }
            }
            SettingKind::SigningKey => match signing::passed_key(&setting.value, self.scope.home) {
                Some(value) => self.pass(&Setting {
                    value,
                    ..setting.clone()
                }),
                None => self.leave(&key_of(setting)),
            },
            SettingKind::SigningProgram(name)
                if signing::is_program(&setting.value, name) && self.finds_programs(setting) =>
            {
                self.pass(setting);
            }
            SettingKind::ForPeople => {}
            SettingKind::Filter | SettingKind::SigningProgram(_) | SettingKind::Left => {
                if !is_off(&setting.value) {
                    self.leave(&key_of(setting));
                }
            }
        }
    }

    /// Whether commands find every program of a filter, and none lies in the workspace.
    fn finds_programs(&self, setting: &Setting) -> bool {
        if setting.key == "required" {
            return true;
        }
        let is_found = |program: &str| {
            let at = Path::new(program);
            if at.is_absolute() {
                return PROGRAM_FOLDERS.iter().any(|folder| at.starts_with(folder)) && at.is_file();
            }
            let mut folders = PROGRAM_FOLDERS.iter().map(Path::new);
            !program.contains('/') && folders.any(|folder| folder.join(program).is_file())
        };
        let program = setting.value.split_ascii_whitespace().next();
        let is_plain = !setting
            .value
            .contains([';', '|', '&', '`', '$', '(', '<', '>', '\n']);
        is_plain
            && program.is_some_and(is_found)
            && names_only_own_programs(&self.scope, &setting.value)
    }

    fn pass(&mut self, setting: &Setting) {
        let line = written(setting);
        if self.text.len() + line.len() > MAX_BYTES {
            return self.leave(&key_of(setting));
        }
        self.text.push_str(&line);
    }

    fn add_patterns(&mut self, file: PatternFile, at: &Path) {
        let (name, to, key) = match file {
            PatternFile::Ignored => ("ignore", IGNORED, "core.excludesFile"),
            PatternFile::Attributes => ("attributes", ATTRIBUTES, "core.attributesFile"),
        };
        if at.symlink_metadata().is_err() {
            return;
        }
        let is_secret = self.workspace.secret_names().covers(&at.to_string_lossy());
        match read_bounded(at, MAX_BYTES as u64)
            .ok()
            .filter(|_| !is_secret)
        {
            Some(text) => {
                if self.patterns.insert(name, text.into_bytes()).is_none() {
                    let short = if name == "ignore" {
                        "excludesFile"
                    } else {
                        "attributesFile"
                    };
                    let _ = write!(self.text, "[core]\n\t{short} = {to}\n");
                }
            }
            None => self.leave(key),
        }
    }

    fn leave(&mut self, key: &str) {
        self.user.left.insert(key.to_owned());
    }

    fn finish(mut self) -> UserGit {
        for (name, to) in [("ignore", IGNORED), ("attributes", ATTRIBUTES)] {
            if let Some(bytes) = self.patterns.remove(name) {
                self.user.files.push((PathBuf::from(to), bytes));
            }
        }
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text).into_bytes();
            self.user.files.push((PathBuf::from(SYSTEM), text));
        }
        self.user
    }
}

/// Whether a switch is off, so that nobody misses it.
fn is_off(value: &str) -> bool {
    matches!(&*value.to_ascii_lowercase(), "false" | "no" | "off" | "0")
}

/// Returns the key of a setting for a sentence, without a name that may hold a password.
fn key_of(setting: &Setting) -> String {
    let Setting {
        section, name, key, ..
    } = setting;
    match name {
        Some(name) if !name.contains([':', '@']) => {
            format!("{section}.{}.{key}", visible::line(name))
        }
        Some(_) => format!("{section}.….{key}"),
        None => format!("{section}.{key}"),
    }
}

/// Writes a setting as git reads it.
fn written(setting: &Setting) -> String {
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let name = setting.name.as_ref();
    let name = name
        .map(|name| format!(" \"{}\"", escape(name)))
        .unwrap_or_default();
    if setting.value.is_empty() {
        // A key alone means true.
        return format!("[{}{name}]\n\t{}\n", setting.section, setting.key);
    }
    let value = escape(&setting.value)
        .replace('\n', "\\n")
        .replace('\t', "\\t")
        .replace('\u{8}', "\\b");
    format!(
        "[{}{name}]\n\t{} = \"{value}\"\n",
        setting.section, setting.key
    )
}
