//! The changes of commands, made on a copy-on-write view of the workspace, then judged and applied when the command has ended.

mod additions;
mod apply;
mod build_outputs;
mod caches;
mod data;
mod effects;
mod explain;
mod fate_table;
mod change_outcomes;
mod folder;
mod found_by_name;
mod ignored;
mod ignored_set;
mod incoming;
mod incoming_name;
mod pending;
mod note;
mod opened_side;
mod owner;
mod probe;
mod repository;
mod rest;
mod settle;
mod sweep;
mod taken_from_tree;
mod thumbnails;
mod times;
mod unread;
mod unsaved;
mod versions;
mod view;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use haft::change::ChangeLog;
use haft::error::ToolError;
use haft::permission::Condition;
use haft::spec::NameError;
use haft::tool::{Tool, TypedTool as _};
use haft::workspace::Workspace;
use haft_sandbox::Sandbox;
use parking_lot::Mutex;

pub use build_outputs::{BUILD_OUTPUTS, BuildOutputs};
pub use data::{AppliedChange, UnappliedChange};
pub(crate) use owner::ViewOwner;
pub use rest::open_changed;
pub(crate) use settle::{EndedCommand, resume_decision, settle};
pub(crate) use view::OpenView;

use crate::command::meaning::PictureReader;

use apply::ApplyChanges;
use pending::PendingChanges;
use probe::Visibility;

/// The name of the tool that applies changes.
pub(crate) const APPLY: &str = "apply_changes";

/// Where a command's changes go (`sandbox.changes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangeMode {
    /// To a view. They are judged and applied when the command has ended.
    #[default]
    Copy,
    /// Directly to the workspace, at once.
    Direct,
    /// To a view. The user is asked about all of them.
    Review,
}

/// What to do with a command's other changes if some must not be applied (`policy.on_partial`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnPartial {
    /// Apply them.
    #[default]
    Apply,
    /// Apply nothing.
    Discard,
}

/// What happens to a command's changes to files that git ignores (`policy.ignored_changes`).
#[derive(Debug, Clone)]
pub enum IgnoredChanges {
    /// They are applied.
    Apply,
    /// Those of a build are applied; the user is asked about the others.
    Outputs(Box<BuildOutputs>),
    /// They are judged like all others.
    Ask,
}

/// Options for handling the changes of commands.
#[derive(Debug, Clone)]
pub struct ChangeOptions {
    /// The executor's change log, which stores views and saved files.
    pub log: Arc<ChangeLog>,
    /// Where changes go.
    pub mode: ChangeMode,
    /// What to do with the rest if some must not be applied.
    pub on_partial: OnPartial,
    /// What to do with files that git ignores (`policy.ignored_changes`).
    pub ignored: IgnoredChanges,
    /// The folders of the user's toolchains: a link to a program there leads no further than the command saw.
    pub toolchains: Vec<PathBuf>,
    /// The user's home, whose caches commands see as copies; `None` to show them nothing of it.
    pub home: Option<PathBuf>,
    /// Makes the thumbnails of changed pictures; `None` to show only their sizes.
    pub pictures: Option<Arc<dyn PictureReader>>,
    /// The policy asks about commands before they run (`policy.commands`), so permissions state their writes as far as they are known.
    pub ask_before: bool,
}

impl ChangeOptions {
    /// Creates options with this log and the strictest defaults.
    pub fn new(log: Arc<ChangeLog>) -> Self {
        Self {
            log,
            mode: ChangeMode::default(),
            on_partial: OnPartial::default(),
            ignored: IgnoredChanges::Ask,
            toolchains: Vec::new(),
            home: None,
            pictures: None,
            ask_before: false,
        }
    }
}

/// The handling of a workspace's command changes, shared by the tools that run commands and the tool that applies changes.
#[derive(Debug, Clone)]
pub struct CommandChanges {
    pub(crate) views: Arc<Views>,
}

impl CommandChanges {
    /// Creates the handling for the commands that this sandbox runs in this workspace.
    pub fn new(options: ChangeOptions, workspace: Workspace, sandbox: Sandbox) -> Self {
        let views = Views::new(options, workspace, sandbox);
        Self {
            views: Arc::new(views),
        }
    }

    /// Returns the internal tool that applies changes, for
    /// [`Executor::with_internal_tools`](haft::Executor::with_internal_tools). Without it, nothing is applied.
    ///
    /// # Errors
    /// If the tool cannot be described.
    pub fn tool(&self) -> Result<Arc<dyn Tool>, NameError> {
        ApplyChanges(Arc::clone(&self.views)).into_tool()
    }

    /// Returns where changes go, as configured.
    pub fn mode(&self) -> ChangeMode {
        self.views.options.mode
    }

    /// Checks whether commands can work on views here.
    ///
    /// # Errors
    /// The reason why they cannot, for the user.
    pub fn usable(&self) -> Result<(), String> {
        self.views.usable()
    }
}

/// The views of a workspace's commands.
#[derive(Debug)]
pub(crate) struct Views {
    options: ChangeOptions,
    workspace: Workspace,
    sandbox: Sandbox,
    /// The result of the probe, which runs once.
    probed: OnceLock<Result<Visibility, String>>,
    /// Ended commands whose changes this process is deciding, by the names of their folders.
    open: Mutex<HashMap<String, Arc<PendingChanges>>>,
}

impl Views {
    pub(crate) fn new(options: ChangeOptions, workspace: Workspace, sandbox: Sandbox) -> Self {
        Self {
            options,
            workspace,
            sandbox,
            probed: OnceLock::new(),
            open: Mutex::default(),
        }
    }

    /// Checks whether commands can work on views, and gives the reason if they cannot.
    pub(crate) fn usable(&self) -> Result<(), String> {
        if self.options.mode == ChangeMode::Direct {
            return Err("sandbox.changes is \"direct\"".to_owned());
        }
        probe::check_mounts(self.workspace.root())?;
        self.visibility().map(|_| ())
    }

    fn visibility(&self) -> Result<Visibility, String> {
        self.probed.get_or_init(|| probe::probe(self)).clone()
    }

    /// Returns true if commands see the user's caches.
    fn shows_caches(&self) -> bool {
        self.visibility().is_ok_and(|shown| shown.caches)
    }

    /// Returns true if commands on views see the repository outside of the workspace.
    pub(crate) fn shows_repository(&self) -> bool {
        self.visibility().is_ok_and(|shown| shown.repository)
    }

    /// Returns what settings require of a command's changes beyond the defaults: an approval of the command holds for exactly this.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let changes = match self.options.mode {
            // A command states by itself whether it works on a copy.
            ChangeMode::Copy | ChangeMode::Direct => None,
            ChangeMode::Review => Some("all are asked about"),
        };
        let ignored = match self.options.ignored {
            IgnoredChanges::Apply => Some("all are applied"),
            IgnoredChanges::Outputs(_) => None,
            IgnoredChanges::Ask => Some("asked about"),
        };
        let discards = self.options.on_partial == OnPartial::Discard;
        let all = [
            ("changes", changes),
            ("changes to ignored files", ignored),
            (
                "other changes where one is refused",
                discards.then_some("discarded"),
            ),
        ];
        let set = all.into_iter();
        set.filter_map(|(name, value)| Some(Condition::new(name, value?)))
            .collect()
    }

    /// Returns true if the policy asks about commands before they run.
    pub(crate) fn asks_before(&self) -> bool {
        self.options.ask_before
    }

    fn keep_open(&self, name: &str, kept: &Arc<PendingChanges>) -> PendingGuard<'_> {
        let name = name.to_owned();
        self.table().insert(name.clone(), Arc::clone(kept));
        PendingGuard { views: self, name }
    }

    fn opened(&self, name: &str) -> Option<Arc<PendingChanges>> {
        self.table().get(name).cloned()
    }

    fn table(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Arc<PendingChanges>>> {
        self.open.lock()
    }
}

/// Keeps the changes of a command in memory while they are being decided.
struct PendingGuard<'a> {
    views: &'a Views,
    name: String,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.views.table().remove(&self.name);
    }
}

/// Creates an error about a view.
fn failed(verb: &str, error: impl std::fmt::Display) -> ToolError {
    ToolError::unavailable(format!(
        "{verb} the command's view of the workspace: {error}"
    ))
    .for_operator("sandbox.changes = \"direct\" needs no view; `haft doctor` says what works here")
}
