//! `Files`: what the file tools share: the workspace, the options, and the files that each run has read.

use std::path::PathBuf;
use std::sync::Arc;

use haft::call::{Origin, RunId};
use haft::change::Changer;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::judgement::Judgement;
use haft::permission::{Condition, Permission};
use haft::policy::join_words;
use haft::workspace::{ResolvedPath, Workspace, WorkspaceView};
use sha2::{Digest, Sha256};

mod charset;
pub mod check;
pub mod edit;
mod format;
mod lines;
pub mod patch;
mod preview;
pub mod read;
mod seen;
pub mod splice;
pub(crate) mod text;
pub mod tools;
pub mod transfer;
pub mod undo;
pub mod write;

use check::{Checker, FileCheck};
use haft::text::hex;
use seen::ReadTracker;
pub use seen::continue_reads;

/// Options of the file tools (settings `files.*`).
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    /// Whether an existing file must have been read in the same run before it is written. Unset: yes for a model, a
    /// script and an MCP client, no for the host and the user.
    pub read_before_write: Option<bool>,
    /// Checkers to run in the jail after a write: a path glob, and the command as argv, in which `{path}` stands for the file.
    pub check: Vec<(String, Vec<String>)>,
    /// haft's state folder, in which a run's folder keeps what the run has read; `None` to know it only as long as this process runs.
    pub home: Option<PathBuf>,
}

/// The caller of a file tool.
#[derive(Debug, Clone)]
pub struct FileCaller {
    /// The run, which remembers the files that were read.
    pub(crate) run: RunId,
    /// The origin of the call.
    pub(crate) origin: Origin,
    /// True if the user saw the files as they are and approved.
    approved: bool,
    /// What the call is cleared for.
    clearance: Clearance,
    /// The workspace as the call may see it.
    pub(crate) view: WorkspaceView,
    /// Changes files for the call.
    pub(crate) changer: Changer,
}

/// What a call may touch.
#[derive(Debug, Clone)]
enum Clearance {
    /// What was judged for the call.
    Call(Arc<Judgement>),
    /// Nothing: the changes are only computed for display.
    Preview,
}

impl FileCaller {
    /// Returns the caller of a running tool.
    pub(crate) fn of(context: &CallContext, files: &Files) -> Self {
        Self {
            view: context.view(&files.workspace),
            changer: context.changer(&files.workspace),
            run: context.run().clone(),
            origin: context.origin(),
            approved: context.is_approved(),
            clearance: Clearance::Call(Arc::clone(context.judgement())),
        }
    }

    /// Returns a caller in a new run, cleared for these permissions and without hidden names.
    pub fn cleared_for(permissions: Vec<Permission>, files: &Files) -> Self {
        Self {
            view: files.workspace.unfiltered(),
            changer: files.workspace.unrecorded(),
            run: RunId::generate(),
            origin: Origin::Host,
            approved: false,
            clearance: Clearance::Call(Arc::new(Judgement::allowing(permissions))),
        }
    }

    /// Returns a caller that only previews changes.
    pub(crate) fn preview(files: &Files) -> Self {
        Self {
            view: files.workspace.unfiltered(),
            changer: files.workspace.unrecorded(),
            run: RunId::new(""),
            origin: Origin::Host,
            approved: true,
            clearance: Clearance::Preview,
        }
    }

    /// Returns the place if reading it was judged and it is still the same place.
    pub(crate) fn reads(&self, place: ResolvedPath) -> Result<ResolvedPath, ToolError> {
        match &self.clearance {
            Clearance::Call(judgement) => judgement.cleared_to_read(place),
            Clearance::Preview => Ok(place),
        }
    }

    /// Returns the place if changing it was judged and it is still the same place.
    pub(crate) fn changes(&self, place: ResolvedPath) -> Result<ResolvedPath, ToolError> {
        match &self.clearance {
            Clearance::Call(judgement) => judgement.cleared_to_change(place),
            Clearance::Preview => Ok(place),
        }
    }
}

/// The workspace with its options and a record of the files that were read.
#[derive(Debug, Clone)]
pub struct Files {
    pub(crate) workspace: Workspace,
    pub(crate) options: Arc<FileOptions>,
    pub(crate) seen: Arc<ReadTracker>,
    checker: Option<Arc<dyn Checker>>,
}

impl Files {
    /// Creates the tools for this workspace. Without a `checker`, the programs of [`FileOptions::check`] do not run.
    pub fn new(
        workspace: Workspace,
        options: FileOptions,
        checker: Option<Arc<dyn Checker>>,
    ) -> Self {
        Self {
            workspace,
            seen: Arc::new(ReadTracker::kept_in(options.home.clone())),
            options: Arc::new(options),
            checker,
        }
    }

    /// Runs the configured checker on a written file, unless a parser has already found an error.
    pub(crate) async fn run_check(
        &self,
        place: &ResolvedPath,
        check: &mut Option<FileCheck>,
        context: &CallContext,
    ) {
        if check.as_ref().is_some_and(|check| !check.ok) {
            return;
        }
        let Some(checker) = &self.checker else {
            return;
        };
        match check::program(&self.options.check, place) {
            Some(Ok(argv)) => *check = Some(check::run_checker(&**checker, argv, context).await),
            Some(Err(wrong)) => *check = Some(wrong),
            None => {}
        }
    }

    /// Returns the configured checkers that would run on these files after a write.
    pub(crate) fn checks<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Vec<Condition> {
        if self.checker.is_none() {
            return Vec::new();
        }
        let places = paths
            .into_iter()
            .filter_map(|path| self.workspace.place(path).ok());
        let programs = places.filter_map(|place| check::program(&self.options.check, &place));
        programs
            .filter_map(Result::ok)
            .map(|argv| Condition::new("check", join_words(&argv)))
            .collect()
    }

    /// Returns true if this caller must have read a file before writing it.
    pub(crate) fn requires_reading(&self, caller: &FileCaller) -> bool {
        let by_origin = caller.origin != Origin::Host;
        // The user's approval is bound to the files as shown.
        !caller.approved && self.options.read_before_write.unwrap_or(by_origin)
    }
}

/// Returns the SHA-256 of some bytes in hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
