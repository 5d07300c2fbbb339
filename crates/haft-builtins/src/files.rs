//! What the file tools share: the workspace, the options, and what each run has read.

use std::sync::{Arc, OnceLock};

use haft::call::{Origin, RunId};
use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::{Effect, PathClaim, Permission};
use haft::workspace::{Place, Workspace};
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
pub mod write;

use crate::command::Commands;
use check::Check;
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

/// The paths as the policy saw them, kept with the input from the judging of a call to its running.
#[derive(Debug, Default)]
pub struct Cleared(OnceLock<Vec<PathClaim>>);

impl Cleared {
    /// Keeps the paths of these permissions, in order.
    pub(crate) fn note(&self, permissions: Vec<Permission>) -> Vec<Permission> {
        let path = |permission: &Permission| match &permission.effect {
            Effect::Read(claim) | Effect::Write(claim) => Some(claim.clone()),
            _ => None,
        };
        // Asked twice, the first answer is the one that was judged.
        let _ = self.0.set(permissions.iter().filter_map(path).collect());
        permissions
    }
}

/// Who calls, as far as the file tools care.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The run, to which what was read belongs.
    pub run: RunId,
    /// Where the call came from.
    pub origin: Origin,
    /// What the policy cleared, in the order of the tool's permissions; empty when unknown.
    pub cleared: Vec<PathClaim>,
    /// A person saw the files as they are and approved.
    pub approved: bool,
}

impl Caller {
    /// The caller of a running tool.
    pub(crate) fn of(context: &CallContext, cleared: &Cleared) -> Self {
        Self {
            run: context.run().clone(),
            origin: context.origin(),
            cleared: cleared.0.get().cloned().unwrap_or_default(),
            approved: context.is_approved(),
        }
    }
}

/// The workspace with its options and the memory of what was read.
#[derive(Debug, Clone)]
pub struct Files {
    pub(crate) workspace: Workspace,
    pub(crate) options: Arc<FileOptions>,
    pub(crate) seen: Arc<Seen>,
    commands: Option<Arc<Commands>>,
}

impl Files {
    /// Tools on this workspace; checkers run by `commands`.
    pub fn new(
        workspace: Workspace,
        options: FileOptions,
        commands: Option<Arc<Commands>>,
    ) -> Self {
        Self {
            workspace,
            options: Arc::new(options),
            seen: Arc::default(),
            commands,
        }
    }

    /// Runs the settings' checkers over a file that was written; a parser's complaint comes first.
    pub(crate) async fn checked(&self, place: &Place, check: &mut Option<Check>) {
        if check.as_ref().is_some_and(|check| !check.ok) {
            return;
        }
        let Some(commands) = &self.commands else {
            return;
        };
        match check::checker(&self.options.check, place) {
            Some(Ok(argv)) => *check = Some(check::by_command(commands, argv).await),
            Some(Err(wrong)) => *check = Some(wrong),
            None => {}
        }
    }

    /// Whether this caller must have read a file before writing it.
    pub(crate) fn must_have_read(&self, caller: &Caller) -> bool {
        let by_origin = caller.origin != Origin::Host;
        // The person's yes is bound to the files as they were shown.
        !caller.approved && self.options.read_before_write.unwrap_or(by_origin)
    }
}

impl Caller {
    /// The place, if it is still where the policy cleared claim number `index`.
    pub(crate) fn cleared(&self, place: Place, index: usize) -> Result<Place, ToolError> {
        match self.cleared.get(index) {
            Some(claim) => Ok(place.still(claim)?),
            None => Ok(place),
        }
    }
}

/// The SHA-256 of some bytes as hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
