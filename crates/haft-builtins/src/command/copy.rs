//! Commands on a copy of the workspace: which ones, and what `run_command` does before and after they run.

use std::sync::Arc;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::Effect;
use haft::result::ToolResult;
use haft::spec::Risk;
use haft_sandbox::CommandSpec;

use crate::command::changes::{Ended, OpenView, go_on, settle};
use crate::command::{Commands, RunCommandInput};
use crate::work::blocking;

impl Commands {
    /// Whether a command of this risk works on a view: one that ends within its call and may change something.
    pub(super) fn uses_view(&self, input: &RunCommandInput, risk: Risk) -> bool {
        let wanted = input.ends() && risk > Risk::Safe && self.jailed();
        let here = wanted && self.network.instead().is_none();
        here && self
            .views
            .as_ref()
            .is_some_and(|views| views.usable().is_ok())
    }

    /// Whether what a command changed is judged when it has ended, and nothing before.
    pub(super) fn is_judged_after(&self, input: &RunCommandInput, risk: Risk) -> bool {
        let asks_before = self.views.as_ref().is_none_or(|views| views.asks_before());
        !asks_before && self.network.is_judged_when_used() && self.uses_view(input, risk)
    }

    /// Whether what is started may change the workspace itself, in a jail.
    pub(super) fn changes_directly(&self, spec: &CommandSpec) -> bool {
        let here = self.jailed() && self.network.instead().is_none();
        here && !spec.mounts.only_reads
    }

    /// The view for a command that works on one.
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
        let (run, call) = (context.run().clone(), context.call_id().clone());
        let denials = context.denials();
        blocking(move |_| views.open(&run, &call, &words, &denials).map(Some)).await
    }

    /// Whether the command was judged to work on a copy.
    ///
    /// # Errors
    /// `denied`: these are not the commands that were judged, or not under this confinement; nothing was started.
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

    /// A view for what only looks, where there can be one.
    pub(super) async fn scratch_view(
        &self,
        context: &CallContext,
    ) -> Result<Option<OpenView>, ToolError> {
        let views = self.views.as_ref().filter(|views| views.usable().is_ok());
        let Some(views) = views.map(Arc::clone) else {
            return Ok(None);
        };
        let (run, call) = (context.run().clone(), context.call_id().clone());
        let denials = context.denials();
        blocking(move |_| views.open(&run, &call, "check", &denials).map(Some)).await
    }

    /// The result of a command of the same words that ended before, once what it changed is decided.
    pub(super) async fn go_on(
        &self,
        words: &str,
        context: &CallContext,
    ) -> Option<Result<ToolResult, ToolError>> {
        let views = self.views.as_ref()?;
        let view = views.waiting(context.run(), words)?;
        Some(go_on(views, view, context).await)
    }

    /// The result of a command that has ended, with what became of its changes.
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
            // No time is left for a decision: the result is returned without the changes.
            let words = "the call was ended, and nothing that the command changed was applied";
            let failed = result.error.is_some();
            return Ok(if failed {
                result
            } else {
                result.with_error(ToolError::failed(words))
            });
        }
        let (command, _) = Self::words(input)?;
        let result = with_limits(result);
        // A rule that lets it run without a view lets it change ordinary files.
        let intended = self.intended(input);
        let allowed = intended.is_ok_and(|intended| context.allows(&intended));
        let ended = Ended {
            command,
            result,
            approved: context.is_approved() || allowed,
        };
        settle(views, view, ended, context).await
    }
}

/// Whether the call has been told to end.
async fn is_ending(context: &CallContext) -> bool {
    tokio::select! {
        biased;
        _ = context.ending() => true,
        () = std::future::ready(()) => false,
    }
}

/// What programs say where overlays are not like other file systems, and what to do then.
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

/// The same result, with advice where a command failed because it worked on a view.
fn with_limits(mut result: ToolResult) -> ToolResult {
    let data = result.data.as_deref().map_or("", |data| data.get());
    let limit = LIMITS.iter().find(|(says, _)| data.contains(says));
    if let Some((_, advice)) = limit
        && let Some(error) = result.error.take()
    {
        let told = error.with_advice(*advice).for_operator(
            "sandbox.changes = \"direct\" lets commands work in the workspace itself",
        );
        result.error = Some(told);
    }
    result
}
