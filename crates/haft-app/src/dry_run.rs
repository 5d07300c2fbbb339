//! A dry run: the application works on a copy of the workspace that is thrown away, and nothing leaves it.
//!
//! Tools write files and run commands as usual, in the copy; calls that would need approval run there and are noted. A guard refuses and
//! notes calls that reach beyond it (pages, servers, memory, commands without a jail).

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use haft::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use haft::future::BoxFuture;
use haft::permission::{Effect, Permission};
use haft::policy::{Guard, JudgedCall, MinimumVerdict};
use parking_lot::Mutex;
use serde::Serialize;

use crate::argument;
use crate::config::Settings;
use crate::config::typed::SANDBOX_NETWORK;
use crate::dry_run::copy::FolderCopy;
use crate::host::{ApproverParts, Host, MakeApprover, PendingCallMode};
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::policy;

mod copy;

/// Maximum number of notes of each kind.
const MAX_NOTES: usize = 1_000;

/// A copy of a workspace, and notes on what happens in it. Dropping it removes the copy.
#[derive(Debug)]
pub struct DryRun {
    copy: FolderCopy,
    site: Site,
    settings: Settings,
    notes: Arc<Mutex<DryRunNotes>>,
}

/// What would have happened besides changes to files.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DryRunNotes {
    /// Calls that would have needed approval, with the reason.
    pub asked: BTreeSet<String>,
    /// Calls that would have reached beyond the folder and were refused.
    pub refused: BTreeSet<String>,
}

impl DryRun {
    /// Copies the workspace of a site, except what haft hides from tools.
    ///
    /// # Errors
    /// The workspace is too large, or cannot be copied.
    pub fn prepare(at: &Site, settings: &Settings) -> Result<Self, Problem> {
        let hidden: Vec<PathBuf> = policy::hidden_paths(at, settings);
        let place = at.environment.folder("TMPDIR");
        let place = place.unwrap_or_else(|| PathBuf::from("/tmp"));
        let copy = FolderCopy::make(&at.workspace, &place, &hidden)?;
        let site = Site::new(copy.root(), at.home.clone(), at.environment.clone())?;
        // Commands would change these folders directly.
        let mut settings = settings.clone().without("sandbox.write");
        if settings.get(SANDBOX_NETWORK) == "full" {
            // With `ask`, each connection is judged, and the guard refuses it.
            settings = settings.with_text(SANDBOX_NETWORK, "ask");
        }
        Ok(Self {
            copy,
            site,
            settings,
            notes: Arc::default(),
        })
    }

    /// Returns the site to run the application at.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Returns the settings to build it with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Adds the guard and the approver of a dry run to the host. Questions of tools still go to the host's own approver.
    pub fn host(&self, mut host: Host) -> Host {
        host.guards
            .push(Arc::new(CopyBoundary(Arc::clone(&self.notes))));
        host.when_asked = Some(PendingCallMode::Wait);
        let (own, notes) = (host.approver.take(), Arc::clone(&self.notes));
        let make: MakeApprover = Box::new(move |parts: ApproverParts| {
            let redactor = parts.redactor.clone();
            Arc::new(CopyApprover {
                own: own.map(|make| make(parts)),
                notes,
                redactor,
            })
        });
        host.approver = Some(make);
        host
    }

    /// Returns the notes so far.
    pub fn notes(&self) -> DryRunNotes {
        self.notes.lock().clone()
    }

    /// Returns what could not be copied: sockets, devices, other file systems.
    pub fn left_out(&self) -> &[String] {
        self.copy.left_out()
    }
}

/// Refuses calls that reach beyond the copy.
struct CopyBoundary(Arc<Mutex<DryRunNotes>>);

impl Guard for CopyBoundary {
    fn name(&self) -> &'static str {
        "dry-run"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        !matches!(
            effect,
            Effect::Read(_)
                | Effect::Write(_)
                | Effect::Remove(_)
                | Effect::Apply { .. }
                | Effect::Question
        )
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        let what = match &permission.effect {
            Effect::Connect { url, .. } => url.as_str(),
            Effect::Remember { .. } => "memory",
            Effect::Run {
                command,
                jailed: false,
                ..
            } => command.as_str(),
            Effect::Other { value, .. } => value.as_str(),
            // A tool of a server or of the program declares no other effect.
            Effect::Call if call.spec.source != "builtin" => "",
            _ => return Ok(MinimumVerdict::NONE),
        };
        let mut notes = self.0.lock();
        if notes.refused.len() < MAX_NOTES {
            let line = format!("{} {what}", call.spec.name);
            notes.refused.insert(line.trim_end().to_owned());
        }
        Ok(
            MinimumVerdict::deny("this is a dry run: nothing leaves the folder")
                .advise("continue without it, and say what it would have been for"),
        )
    }
}

/// Approves calls that would need approval: they only reach the copy.
struct CopyApprover {
    own: Option<Arc<dyn Approver>>,
    notes: Arc<Mutex<DryRunNotes>>,
    redactor: haft::audit::redact::Redactor,
}

impl Approver for CopyApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(async move {
            if request.is_question() {
                return match &self.own {
                    Some(own) => own.ask(request).await,
                    None => ApproverReply::Nobody,
                };
            }
            let argument = argument::of_text(&request.arguments, &self.redactor);
            let argument = argument.map(|argument| format!(" {argument}"));
            let reason = self.redactor.redact(&request.reason);
            let line = format!("{}{}: {reason}", request.tool, argument.unwrap_or_default());
            let mut notes = self.notes.lock();
            if notes.asked.len() < MAX_NOTES {
                notes.asked.insert(line);
            }
            Decision::approve("nobody", "dry run").into()
        })
    }
}

impl fmt::Debug for CopyBoundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

impl fmt::Debug for CopyApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DoneHere")
    }
}
