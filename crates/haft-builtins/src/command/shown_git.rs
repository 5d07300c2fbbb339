//! What a command sees of git besides the workspace: the workspace's repository if it lies elsewhere, and the user's settings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use haft::context::CallContext;
use haft::policy::CommandPart;
use haft::workspace::{OutsideRepository, Workspace};
use haft_sandbox::{AbsentGuard, CommandSpec, RepositoryMount, is_placeholder};

use crate::command::changes::OpenView;
use crate::command::covers::protected_guards;
use crate::command::network::CommandConnections;
use crate::command::{Commands, RunCommandInput};
use crate::gpg_agent::GpgAgent;

mod conditions;
mod inert;
mod signing;
mod user;

pub use user::{UserGit, user_git};

impl Commands {
    /// Shows a command the repository and the user's settings. Returns what it does not see.
    pub(super) fn show_git(
        &self,
        spec: &mut CommandSpec,
        view: Option<&OpenView>,
        context: &CallContext,
    ) -> UnseenGit {
        let mut unseen = UnseenGit::default();
        if !self.jailed() || self.network.packages_workdir().is_some() {
            return unseen;
        }
        match self.repository(view, context) {
            Ok(repository) => {
                let is_direct = repository.is_some() && view.is_none() && !spec.mounts.only_reads;
                unseen.repository = is_direct.then(|| READ_ONLY.to_owned());
                spec.mounts.repository = repository;
                let outside = self.workspace().repository();
                if outside.is_some_and(|outside| outside.prefix() != Path::new("")) {
                    // The workspace is mounted, and git looks above it.
                    set(spec, ACROSS, "1");
                }
            }
            Err(why) => {
                unseen.repository = Some(format!("Commands see no git repository here: {why}."));
            }
        }
        let mut user = user_git(self.workspace());
        let is_direct = view.is_none() && !spec.mounts.only_reads;
        user.ignore(&held_places(self.workspace(), is_direct));
        unseen.settings = user.sentence();
        unseen.gpg_keys = std::mem::take(&mut user.gpg_keys);
        if !user.files.is_empty() {
            // A git that is not the system's looks elsewhere.
            set(spec, SYSTEM_VARIABLE, user::SYSTEM);
        }
        spec.mounts.etc.extend(user.files);
        unseen
    }

    /// Returns the repository outside of the workspace as this command sees it.
    ///
    /// # Errors
    /// Why it does not see the one that something names.
    fn repository(
        &self,
        view: Option<&OpenView>,
        context: &CallContext,
    ) -> Result<Option<RepositoryMount>, String> {
        let workspace = self.workspace();
        if let Some(why) = workspace.refused_repository() {
            return Err(why.to_owned());
        }
        workspace.check_repository()?;
        let Some(repository) = workspace.repository() else {
            return Ok(None);
        };
        let views = self.views.as_ref();
        let views = views.filter(|views| views.shows_repository());
        let views = views.ok_or_else(|| {
            let folder = repository.folder().display();
            format!("{folder} cannot be shown as a copy here")
        })?;
        let layer = Some(views.repository_layer(repository, context.run())?);
        Ok(Some(RepositoryMount {
            folder: repository.folder().to_owned(),
            layer,
            pointer: pointer(workspace, repository),
            view: view.and_then(OpenView::repository),
        }))
    }
}

/// What a command does not see of git, as sentences for its result.
#[derive(Debug, Default)]
pub(super) struct UnseenGit {
    /// What it does not see of the repository.
    repository: Option<String>,
    /// Which of the user's settings it does not get.
    settings: Option<String>,
    /// The names of the gpg keys that its commits may be signed with.
    gpg_keys: Vec<String>,
    /// Why it cannot sign with them.
    unsigned: Option<String>,
}

impl UnseenGit {
    /// Offers the command the agent of these keys.
    pub(super) async fn offer_gpg(
        mut self,
        connected: &mut CommandConnections,
        agent: Option<&GpgAgent>,
        spec: &mut CommandSpec,
    ) -> Self {
        self.unsigned = connected.offer_gpg(agent, &self.gpg_keys, spec).await;
        self
    }

    /// Returns the notes for a command that runs git: on settings only if it may have missed one.
    pub(super) fn notes(self, input: &RunCommandInput, failed: bool) -> Vec<String> {
        let Ok(line) = Commands::line(input) else {
            return Vec::new();
        };
        let runs = line.parts.iter();
        let runs_git: Vec<_> = runs.filter(|part| part.program() == Some("git")).collect();
        let repository = self.repository.filter(|_| !runs_git.is_empty());
        let mut parts = runs_git.iter();
        let misses = parts.any(|part| failed || !only_looks(part));
        let settings = self.settings.filter(|_| misses);
        let unsigned = self.unsigned.filter(|_| failed && !runs_git.is_empty());
        let all = repository.into_iter().chain(settings);
        all.chain(unsigned).collect()
    }
}

/// Commands of git that only show something: what they show depends on none of the settings that are not passed.
const LOOKS: [&str; 24] = [
    "blame",
    "branch",
    "cat-file",
    "check-ignore",
    "describe",
    "diff",
    "for-each-ref",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "reflog",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "symbolic-ref",
    "version",
    "--version",
];
/// Options of git that take the next word.
const WITH_VALUE: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// Whether a call of git only shows something, as far as its words tell.
fn only_looks(part: &CommandPart) -> bool {
    let mut words: Vec<&str> = match &part.argv {
        Some(argv) => argv.iter().map(String::as_str).collect(),
        None => part.command.split_whitespace().collect(),
    };
    words.reverse();
    words.pop();
    while let Some(word) = words.pop() {
        if WITH_VALUE.contains(&word) {
            words.pop();
        } else if LOOKS.contains(&word) {
            return true;
        } else if !word.starts_with('-') {
            return false;
        }
    }
    false
}

/// Returns the paths, from the top of the work tree, that empty files and folders hold while a command works in the workspace directly:
/// this one, or another. They are not part of the project, so git is neither to add nor to remove them (`git stash -u`, `git clean -d`).
fn held_places(workspace: &Workspace, is_direct: bool) -> Vec<String> {
    let prefix = workspace.repository().map(OutsideRepository::prefix);
    let prefix = prefix.unwrap_or(Path::new(""));
    let held = protected_guards().filter_map(|guard| {
        let is_to_be = is_direct && guard.absent == AbsentGuard::Placeholder;
        held_place(workspace.root(), &guard.path, is_to_be)
    });
    // Several names share the folder above that is missing.
    let held: BTreeSet<PathBuf> = held.collect();
    held.into_iter()
        .filter_map(|path| prefix.join(path).into_os_string().into_string().ok())
        .collect()
}

/// Returns the outermost part of a guarded path that a placeholder holds, or is to hold.
fn held_place(root: &Path, guarded: &Path, is_to_be: bool) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in guarded.components() {
        path.push(part);
        match root.join(&path).symlink_metadata() {
            Ok(meta) if is_placeholder(&meta) => return Some(path),
            Ok(_) => {}
            Err(_) => return is_to_be.then_some(path),
        }
    }
    None
}

/// The variable that names the system's settings for git.
const SYSTEM_VARIABLE: &str = "GIT_CONFIG_SYSTEM";
/// The variable that lets git look for a repository on another file system.
const ACROSS: &str = "GIT_DISCOVERY_ACROSS_FILESYSTEM";

const READ_ONLY: &str = "The git repository lies outside of the workspace: commands that change the workspace directly can only read it.";

/// Returns the `.git` file of the folder above, where the package's repository does not lie there itself.
fn pointer(workspace: &Workspace, repository: &OutsideRepository) -> Option<(PathBuf, Vec<u8>)> {
    let at = repository.tree().join(".git");
    let is_needed = repository.prefix() != Path::new("") && at != repository.folder();
    is_needed.then(|| {
        let own = workspace.host_path(&repository.own_part());
        let mut text = b"gitdir: ".to_vec();
        text.extend(own.as_os_str().as_encoded_bytes());
        text.push(b'\n');
        (at, text)
    })
}

/// Sets a variable that the call does not set itself.
fn set(spec: &mut CommandSpec, name: &str, value: &str) {
    let variable = spec.env.entry(name.into());
    variable.or_insert_with(|| value.into());
}

#[cfg(test)]
mod tests {
    use super::UnseenGit;
    use crate::command::RunCommandInput;

    #[test]
    fn settings_are_named_where_a_command_can_miss_one() {
        for (line, failed, expect) in [
            ("git status", false, 0),
            ("git -C web --no-pager log -3", false, 0),
            ("git diff && git show HEAD", false, 0),
            ("git status", true, 1),
            ("git commit -m x", false, 1),
            ("git status && git push", false, 1),
            ("git -c a=b fetch", false, 1),
            ("git ci", false, 1),
            ("npm test", true, 0),
            ("ls", false, 0),
        ] {
            let unseen = UnseenGit {
                settings: Some("credential.helper".to_owned()),
                ..UnseenGit::default()
            };
            let notes = unseen.notes(&RunCommandInput::from_line(line), failed);
            assert_eq!(notes.len(), expect, "{line}");
        }
    }
}
