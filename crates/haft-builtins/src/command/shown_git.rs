//! What a command sees of git besides the workspace: the workspace's repository if it lies elsewhere, and the user's settings.

use std::path::{Path, PathBuf};

use haft::context::CallContext;
use haft::policy::CommandPart;
use haft::result::ToolResult;
use haft::workspace::{OutsideRepository, Workspace};
use haft_sandbox::{AbsentGuard, CommandSpec, RepositoryMount, is_placeholder};

use crate::command::changes::OpenView;
use crate::command::covers::protected_guards;
use crate::command::{Commands, RunCommandInput};

mod conditions;
mod inert;
mod user;

pub use user::{UserGit, user_git};

impl Commands {
    /// Shows a command the repository and the user's settings. Returns what it does not see, as sentences for its result.
    pub(super) fn show_git(
        &self,
        spec: &mut CommandSpec,
        view: Option<&OpenView>,
        context: &CallContext,
    ) -> Vec<String> {
        if !self.jailed() || self.network.packages_workdir().is_some() {
            return Vec::new();
        }
        let mut unseen = Vec::new();
        match self.repository(view, context) {
            Ok(repository) => {
                let is_direct = repository.is_some() && view.is_none() && !spec.mounts.only_reads;
                unseen.extend(is_direct.then(|| READ_ONLY.to_owned()));
                spec.mounts.repository = repository;
                let outside = self.workspace().repository();
                if outside.is_some_and(|outside| outside.prefix() != Path::new("")) {
                    // The workspace is mounted, and git looks above it.
                    set(spec, ACROSS, "1");
                }
            }
            Err(why) => unseen.push(format!("Commands see no git repository here: {why}.")),
        }
        let mut user = user_git(self.workspace());
        let is_direct = view.is_none() && !spec.mounts.only_reads;
        user.ignore(&held_places(self.workspace(), is_direct));
        unseen.extend(user.sentence());
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

impl Commands {
    /// Adds what a command that runs git did not see of it to its result, once in a run.
    pub(super) fn with_git_notes(
        &self,
        mut result: ToolResult,
        input: &RunCommandInput,
        unseen: Vec<String>,
        context: &CallContext,
    ) -> ToolResult {
        if unseen.is_empty() || !runs_git(input) {
            return result;
        }
        for sentence in unseen {
            if self.git_notes.is_new(context.run(), &sentence) {
                result.notes.push(sentence);
            }
        }
        result
    }
}

/// Returns the paths, from the top of the work tree, that empty files hold while a command works in the workspace directly: this one, or
/// another. They are no files of the project, so git is not to add them.
fn held_places(workspace: &Workspace, is_direct: bool) -> Vec<String> {
    let root = workspace.root();
    let files = protected_guards().filter(|guard| !guard.folder);
    let held = files.filter(|guard| match root.join(&guard.path).symlink_metadata() {
        Ok(meta) => is_placeholder(&meta),
        Err(_) => is_direct && guard.absent == AbsentGuard::Placeholder,
    });
    let prefix = workspace.repository().map(OutsideRepository::prefix);
    let prefix = prefix.unwrap_or(Path::new(""));
    held.filter_map(|guard| prefix.join(guard.path).into_os_string().into_string().ok())
        .collect()
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

/// Returns true if a command runs git, as far as its words tell.
fn runs_git(input: &RunCommandInput) -> bool {
    Commands::line(input).is_ok_and(|line| {
        let mut programs = line.parts.iter().filter_map(CommandPart::program);
        programs.any(|program| program == "git")
    })
}
