//! Commands on a copy of the workspace: which commands use one, and what `run_command` does before and after they run.

use std::sync::Arc;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::Effect;
use haft::result::ToolResult;
use haft::spec::Risk;
use haft_sandbox::CommandSpec;

use crate::command::changes::{EndedCommand, OpenView, ViewOwner, resume_decision, settle};
use crate::command::git_reading::QuietLine;
use crate::command::{Commands, RunCommandInput};
use crate::work::blocking;

impl Commands {
    /// Returns true if a command of this risk works on a view: it ends within its call and may change something.
    pub(super) fn uses_view(&self, input: &RunCommandInput, risk: Risk) -> bool {
        let wanted = input.ends() && risk > Risk::Safe && self.jailed();
        let here = wanted && self.network.packages_workdir().is_none();
        here && self
            .views
            .as_ref()
            .is_some_and(|views| views.usable().is_ok())
    }

    /// Returns true if what the command changes and connects to is judged when it does so, not before it starts; what it starts and reads is.
    pub(super) fn is_judged_after(&self, input: &RunCommandInput, risk: Risk) -> bool {
        let asks_before = self.views.as_ref().is_none_or(|views| views.asks_before());
        !asks_before && self.network.is_judged_when_used() && self.uses_view(input, risk)
    }

    /// Returns true if the command runs in a jail and may change the workspace itself.
    pub(super) fn changes_directly(&self, spec: &CommandSpec) -> bool {
        let here = self.jailed() && self.network.packages_workdir().is_none();
        here && !spec.mounts.only_reads
    }

    /// Creates the view for a command that works on one.
    pub(super) async fn view(
        &self,
        input: &RunCommandInput,
        words: &str,
        context: &CallContext,
    ) -> Result<Option<OpenView>, ToolError> {
        let on_copy = self.cleared(input, context)?;
        let uses_view = self.uses_view(input, self.risk(input)?);
        let views = self.views.as_ref().filter(|_| on_copy || uses_view);
        let Some(views) = views.map(Arc::clone) else {
            return Ok(None);
        };
        let words = words.to_owned();
        let (owner, denials) = (ViewOwner::of(context), context.denials());
        blocking(move |_| views.open(&owner, &words, &denials).map(Some)).await
    }

    /// Returns true if the command was judged to work on a copy.
    ///
    /// # Errors
    /// `denied` if these are not the commands that were judged, or not under this confinement. Nothing was started.
    fn cleared(&self, input: &RunCommandInput, context: &CallContext) -> Result<bool, ToolError> {
        let judged = context.judgement().permissions();
        let on_copy = judged
            .iter()
            .any(|wanted| matches!(wanted.effect, Effect::Run { on_copy: true, .. }));
        for part in Self::line(input)?.runs(self.jailed(), on_copy) {
            context.cleared(&part.effect)?;
        }
        Ok(on_copy)
    }

    /// Creates a view for a command that only inspects, if views work here.
    pub(super) async fn scratch_view(
        &self,
        context: &CallContext,
    ) -> Result<Option<OpenView>, ToolError> {
        let views = self.views.as_ref().filter(|views| views.usable().is_ok());
        let Some(views) = views.map(Arc::clone) else {
            return Ok(None);
        };
        let (owner, denials) = (ViewOwner::of(context), context.denials());
        blocking(move |_| views.open(&owner, "check", &denials).map(Some)).await
    }

    /// Returns the result of an earlier command with the same words, once its changes are decided.
    pub(super) async fn resume_decision(
        &self,
        words: &str,
        context: &CallContext,
    ) -> Option<Result<ToolResult, ToolError>> {
        let views = self.views.as_ref()?;
        let view = views.find_pending(context.run(), words)?;
        Some(resume_decision(views, view, context).await)
    }

    /// Returns the result of an ended command, with the fates of its changes.
    pub(super) async fn settle(
        &self,
        view: Option<OpenView>,
        input: &RunCommandInput,
        result: ToolResult,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let (Some(mut view), Some(views)) = (view, &self.views) else {
            return Ok(result);
        };
        view.leave_caches();
        if is_ending(context).await {
            // There is no time left for a decision, so the result comes without the changes.
            let words = "the call was stopped, and none of the command's changes were applied";
            let failed = result.error.is_some();
            return Ok(if failed {
                result
            } else {
                result.with_error(ToolError::failed(words))
            });
        }
        let (command, _) = Self::words(input)?;
        let result = with_limits(result);
        let (allowed, uncovered) = match self.is_allowed(input, context) {
            Ok(allowed) => (allowed, self.rule_in_folder(input, context)),
            Err(why) => (false, Some(why)),
        };
        let ended = EndedCommand {
            command,
            result,
            approved: context.is_approved() || allowed,
            uncovered: uncovered.filter(|_| !allowed),
        };
        settle(views, view, ended, context).await
    }
}

impl Commands {
    /// Returns true if rules allow the command without a view: then they also allow it to change ordinary files.
    ///
    /// # Errors
    /// They would if git's settings in the workspace named no program: the text that says so.
    fn is_allowed(&self, input: &RunCommandInput, context: &CallContext) -> Result<bool, String> {
        let intended = self.intended_permissions(input);
        if intended.is_ok_and(|intended| context.allows(&intended)) {
            return Ok(true);
        }
        let quiet = self.without_git_settings(input);
        let Some(quiet) = quiet.filter(|quiet| context.allows(&quiet.permissions)) else {
            return Ok(false);
        };
        if quiet.has_other {
            // What these settings name may run with the command that a rule allows. One that only reads adds nothing to that.
            return Ok(true);
        }
        let QuietLine {
            reading, section, ..
        } = quiet;
        Err(format!(
            "`{reading}`: git may start a program because of {section}"
        ))
    }
}

/// Returns true if the call has been told to end.
async fn is_ending(context: &CallContext) -> bool {
    tokio::select! {
        biased;
        _ = context.ending() => true,
        () = std::future::ready(()) => false,
    }
}

/// Messages of programs that fail because overlays differ from other file systems, each with advice.
const LIMITS: [(&str, &str); 3] = [
    (
        "hardlink different from source",
        "on a copy-on-write view git cannot make hard links to files that it copies: clone with --no-hardlinks",
    ),
    (
        "Invalid cross-device link",
        "on a copy-on-write view a folder cannot be renamed in one step: use mv, which copies it",
    ),
    (
        "EXDEV",
        "on a copy-on-write view a folder cannot be renamed in one step: use mv, which copies it",
    ),
];

/// Adds advice to the result if the command failed because it worked on a view.
fn with_limits(mut result: ToolResult) -> ToolResult {
    let data = result.data.as_deref().map_or("", |data| data.get());
    let limit = LIMITS.iter().find(|(says, _)| data.contains(says));
    if let Some((_, advice)) = limit
        && let Some(error) = result.error.take()
    {
        let advised = error.with_advice(*advice).for_operator(
            "sandbox.changes = \"direct\" lets commands work in the workspace itself",
        );
        result.error = Some(advised);
    }
    result
}
