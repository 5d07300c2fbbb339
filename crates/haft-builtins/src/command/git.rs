//! The environment in which git's reading commands run no program that the workspace names.
//!
//! A workspace, including its `.git` folder, may come from anywhere. Git reads settings there that name programs: monitors, hooks,
//! file drivers, signature verifiers, transports. The environment turns most of them off. It cannot turn off drivers, whose names
//! are arbitrary, so a git command does not count as reading if the settings name any.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use haft::text::visible;
use haft::workspace::git_settings::MAX_SETTINGS;
use haft::workspace::{OutsideRepository, Workspace, git_file};
use haft_sandbox::CommandSpec;

use crate::command::git_sections::{SettingsEffect, acting_section, check_sections, names_program};
use crate::command::{git_user, index};

/// Settings of every command. They remove nothing that is useful in a jail.
///
/// Git uses a bare repository below the workspace only if the command names it (`--git-dir`), because its settings are ordinary
/// files of the workspace.
const COMMAND_SETTINGS: &[(&str, &str)] = &[
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    // A command sees no other worktree: git would take each for deleted, and remove its part of the repository.
    ("gc.worktreePruneExpire", "never"),
];

/// Additional settings of a command that only reads.
const READ_ONLY_SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("log.showSignature", "false"),
    ("diff.submodule", "short"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
];

/// Additional variables of a command that only reads, so that git fetches nothing.
const READ_ONLY_VARIABLES: &[(&str, &str)] = &[
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Returns true if a reading git command with these words may look at the workspace's files, which includes unknown words.
pub(super) fn compares_files(argv: Option<&[String]>) -> bool {
    let looks = |word: &String| matches!(word.as_str(), "status" | "diff" | "describe");
    argv.is_none_or(|argv| argv.iter().any(looks))
}

/// The name of the workspace's repository, wherever it lies.
const GIT: &str = ".git";

/// Classifies the settings of the repository at the root of the workspace.
pub(super) fn settings(workspace: &Workspace) -> SettingsEffect {
    let mut files: Vec<PathBuf> = ["config", "config.worktree"]
        .iter()
        .map(|name| Path::new(GIT).join(name))
        .collect();
    if let Some(outside) = workspace.repository() {
        files.push(outside.own_part().join("config.worktree"));
    } else {
        let folder = workspace.root().join(GIT);
        let Ok(found) = folder.symlink_metadata() else {
            // The jail does not show a parent's repository.
            return SettingsEffect::Inert;
        };
        // A file, a link or `commondir` leads to settings elsewhere.
        if !found.is_dir() || folder.join("commondir").symlink_metadata().is_ok() {
            return SettingsEffect::Programs;
        }
    }
    let each = files.iter().map(|file| {
        if workspace.host_path(file).symlink_metadata().is_err() {
            return SettingsEffect::Inert;
        }
        text(workspace, file).map_or(SettingsEffect::Programs, |text| check_sections(&text))
    });
    each.max().unwrap_or(SettingsEffect::Inert)
}

/// Names the section of the repository's settings because of which a reading git command may start a program: `[gpg] in .git/config`.
/// `None` if there is none, or haft cannot tell.
pub fn program_section(workspace: &Workspace) -> Option<String> {
    let file = Path::new(GIT).join("config");
    let text = text(workspace, &file)?;
    let section: String = acting_section(&text)?.chars().take(MAX_SECTION).collect();
    Some(format!("[{}] in .git/config", visible::line(&section)))
}

/// Maximum length of the name of a section that is shown, in characters.
const MAX_SECTION: usize = 60;

/// The hook that a reading command runs after it has updated the index with what it saw of the files.
const INDEX_HOOK: &str = "post-index-change";

/// Returns true if git at the root of the workspace runs no program that the workspace names, even without the settings above. `home`
/// is the folder with the user's settings of git.
pub(crate) fn is_quiet_alone(
    workspace: &Workspace,
    home: Option<&Path>,
    argv: Option<&[String]>,
) -> bool {
    let root = workspace.root();
    if root.join(".git").symlink_metadata().is_err() {
        // Git would then find a repository around the workspace, or the workspace itself: a folder with `HEAD`, `objects` and `refs` is a
        // repository, and an agent that edits files can create these.
        return false;
    }
    // Git finds the repository of a folder above from the workspace too, but its files are not all the workspace's.
    let outside = workspace.repository();
    if outside.is_some_and(|outside| outside.prefix() != Path::new("")) {
        return false;
    }
    let own = outside.map_or_else(|| PathBuf::from(GIT), OutsideRepository::own_part);
    let mut of_worktree = [Path::new(GIT), &own].into_iter();
    let is_there = |folder: &Path| {
        let file = workspace.host_path(&folder.join("config.worktree"));
        file.symlink_metadata().is_ok()
    };
    if of_worktree.any(is_there) {
        return false;
    }
    let Some(text) = text(workspace, &Path::new(".git").join("config")) else {
        return false;
    };
    if settings(workspace) != SettingsEffect::Inert || names_program(&text) {
        return false;
    }
    let Some(of_user) = git_user::hook_folders(workspace, home) else {
        return false;
    };
    !(compares_files(argv)
        && (index::may_hold_repositories(workspace) || has_index_hook(workspace, &text, of_user)))
}

/// Returns true if the hook exists in a folder that the settings name, or in the default one. The repository's own setting overrides
/// the user's.
fn has_index_hook(workspace: &Workspace, settings: &str, of_user: Vec<String>) -> bool {
    let root = workspace.root();
    let Some(settings) = git_file::parse(settings) else {
        return true;
    };
    let of_repository: Vec<String> = settings
        .into_iter()
        .filter(|one| (&*one.section, &one.name, &*one.key) == ("core", &None, "hookspath"))
        .map(|one| one.value)
        .collect();
    let named = if of_repository.is_empty() {
        of_user
    } else {
        of_repository
    };
    let is_hook = |folder: PathBuf| folder.join(INDEX_HOOK).symlink_metadata().is_ok();
    is_hook(workspace.host_path(Path::new(".git/hooks")))
        || named.iter().any(|folder| {
            let leads_out = folder.starts_with(['~', '%'])
                || Path::new(folder)
                    .components()
                    .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
            // A missing folder may be created by the same line.
            let folder = root.join(folder);
            leads_out || !folder.is_dir() || is_hook(folder)
        })
}

fn text(workspace: &Workspace, file: &Path) -> Option<String> {
    let open = workspace.open_file(file).ok()?;
    if open.stamp.bytes() > MAX_SETTINGS {
        return None;
    }
    let mut text = String::new();
    open.file
        .take(MAX_SETTINGS)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

/// Adds the settings above to the command, including those for reading commands if it only reads. If a call passes git settings
/// by variables, they are kept instead.
pub(super) fn with_settings(mut spec: CommandSpec, reads: bool, root: &Path) -> CommandSpec {
    if spec.env.contains_key(OsStr::new("GIT_CONFIG_COUNT")) {
        return spec;
    }
    let more = if reads { READ_ONLY_SETTINGS } else { &[] };
    let mut count = 0;
    for (key, value) in COMMAND_SETTINGS.iter().chain(more) {
        spec = spec.with_env(format!("GIT_CONFIG_KEY_{count}"), *key);
        spec = spec.with_env(format!("GIT_CONFIG_VALUE_{count}"), *value);
        count += 1;
    }
    spec = spec.with_env("GIT_CONFIG_COUNT", count.to_string());
    // Otherwise reading commands would write the index to save later ones some work, and run a hook afterwards.
    spec = spec.with_env("GIT_OPTIONAL_LOCKS", "0");
    if reads {
        for (name, value) in READ_ONLY_VARIABLES {
            spec = spec.with_env(*name, *value);
        }
        if let Some(parent) = root.parent() {
            spec = spec.with_env("GIT_CEILING_DIRECTORIES", parent);
        }
    }
    spec
}
