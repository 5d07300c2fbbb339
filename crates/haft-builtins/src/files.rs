//! What the file tools share: the workspace, the options, and what each run has read.

use std::sync::Arc;

use haft::call::{Origin, RunId};
use haft::change::Changer;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::judgement::Judgement;
use haft::permission::{Condition, Permission};
use haft::policy::join_words;
use haft::workspace::{Place, Workspace, WorkspaceView};
use sha2::{Digest, Sha256};

pub mod check;
pub mod edit;
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

use check::{Check, Checker};
use haft::text::hex;
use seen::Seen;

/// How the file tools behave (settings `files.*`).
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    /// Whether an existing file must have been read in the same run before it is written. Unset: yes for a model, a
    /// script and an MCP client, no for the host and a person.
    pub read_before_write: Option<bool>,
    /// Checkers run in the jail after a write: a glob over paths, and the command as argv; `{path}` stands for the file.
    pub check: Vec<(String, Vec<String>)>,
}

/// Who calls, as far as the file tools care.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The run, to which what was read belongs.
    pub(crate) run: RunId,
    /// Where the call came from.
    pub(crate) origin: Origin,
    /// A person saw the files as they are and approved.
    approved: bool,
    /// What the call was cleared for.
    clearance: Clearance,
    /// The workspace as the call may see it.
    pub(crate) view: WorkspaceView,
    /// What it changes files with.
    pub(crate) changer: Changer,
}

/// What a call may touch.
#[derive(Debug, Clone)]
enum Clearance {
    /// What was judged of it.
    Call(Arc<Judgement>),
    /// Nothing: its changes are only worked out, for a person to see.
    Preview,
}

impl Caller {
    /// The caller of a running tool.
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

    /// A caller in a run of its own, cleared for these permissions, from whom no rule withholds a name.
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

    /// Somebody who is only shown what would change.
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

    /// The place, if reading it was judged and it is still there where it was then.
    pub(crate) fn reads(&self, place: Place) -> Result<Place, ToolError> {
        match &self.clearance {
            Clearance::Call(judgement) => judgement.cleared_to_read(place),
            Clearance::Preview => Ok(place),
        }
    }

    /// The same for changing it.
    pub(crate) fn changes(&self, place: Place) -> Result<Place, ToolError> {
        match &self.clearance {
            Clearance::Call(judgement) => judgement.cleared_to_change(place),
            Clearance::Preview => Ok(place),
        }
    }
}

/// The workspace with its options and the memory of what was read.
#[derive(Debug, Clone)]
pub struct Files {
    pub(crate) workspace: Workspace,
    pub(crate) options: Arc<FileOptions>,
    pub(crate) seen: Arc<Seen>,
    checker: Option<Arc<dyn Checker>>,
}

impl Files {
    /// Tools on this workspace; without a `checker` the programs of [`FileOptions::check`] do not run.
    pub fn new(
        workspace: Workspace,
        options: FileOptions,
        checker: Option<Arc<dyn Checker>>,
    ) -> Self {
        Self {
            workspace,
            options: Arc::new(options),
            seen: Arc::default(),
            checker,
        }
    }

    /// Runs the settings' checkers over a file that was written; a parser's complaint comes first.
    pub(crate) async fn checked(
        &self,
        place: &Place,
        check: &mut Option<Check>,
        context: &CallContext,
    ) {
        if check.as_ref().is_some_and(|check| !check.ok) {
            return;
        }
        let Some(checker) = &self.checker else {
            return;
        };
        match check::program(&self.options.check, place) {
            Some(Ok(argv)) => *check = Some(check::by_program(&**checker, argv, context).await),
            Some(Err(wrong)) => *check = Some(wrong),
            None => {}
        }
    }

    /// The settings' checkers that would run over these files once they are written.
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

    /// Whether this caller must have read a file before writing it.
    pub(crate) fn must_have_read(&self, caller: &Caller) -> bool {
        let by_origin = caller.origin != Origin::Host;
        // The person's yes is bound to the files as they were shown.
        !caller.approved && self.options.read_before_write.unwrap_or(by_origin)
    }
}

/// The SHA-256 of some bytes as hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
