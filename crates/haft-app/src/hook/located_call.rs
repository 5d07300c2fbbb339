//! `LocatedCall`: an agent's call with the folder and the session that it belongs to, and how it is judged there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use haft::permission::Verdict as ByName;
use haft_hook::{HookCall, HookEvent, HookVerdict};

use crate::environment_part::EnvironmentPart;
use crate::hook::folder::AgentFolder;
use crate::hook::jailed_call::JailedCall;
use crate::hook::location::{Doubt, Location};
use crate::hook::open_call::AgentCall;
use crate::hook::readings::{ToolInterpretations, readings};
use crate::hook::session::{AgentSession, AnswerTerms};
use crate::hook::unjudged::UnjudgedCall;
use crate::problem::Problem;

/// A call of an agent, and where it is made.
#[derive(Debug)]
pub(super) struct LocatedCall<'a> {
    pub(super) event: &'a HookEvent,
    pub(super) call: &'a HookCall,
    pub(super) location: Location,
    pub(super) folder: Arc<AgentFolder>,
    pub(super) session: Arc<AgentSession>,
    /// The folder that the call works in, as rules see it.
    pub(super) cwd: String,
    /// The arguments, as rules see them.
    pub(super) arguments: String,
}

/// Whether and how commands run in the jail.
#[derive(Debug, Clone, Copy)]
pub(super) struct JailTerms<'a> {
    pub(super) wraps: bool,
    /// Whether this is the hook's own process.
    pub(super) is_own: bool,
    /// What the hook's process gives commands of its environment; `None` if it was not asked.
    pub(super) environment: Option<&'a EnvironmentPart>,
}

impl JailTerms<'_> {
    /// Checks that a command about which a user is asked here gets the same environment and settings from `haft exec`, as far as the
    /// hook's process shows that: the request states them, and the approval holds for nothing else.
    fn check_environment(
        self,
        folder: &AgentFolder,
        jailed: &JailedCall,
    ) -> Result<(), UnjudgedCall> {
        if self.is_own || !jailed.is_asked(folder) {
            return Ok(());
        }
        let surroundings = &folder.app.0.surroundings;
        if surroundings
            .has_old_command_settings
            .load(Ordering::Relaxed)
        {
            return Err(UnjudgedCall::OtherEnvironment);
        }
        let here = &surroundings.confined.environment;
        match self.environment {
            None => Err(UnjudgedCall::NeedsEnvironment(here.names())),
            Some(there) if there != here => Err(UnjudgedCall::OtherEnvironment),
            Some(_) => Ok(()),
        }
    }
}

/// The jailed form of a call, and what its tool's own name adds to its judgement.
#[derive(Debug)]
struct JailPlan {
    jailed: JailedCall,
    /// A rule that asks about the tool by its name holds in the jail, too.
    doubt: Option<Doubt>,
}

impl LocatedCall<'_> {
    /// Judges the call, in the jailed form that it has if `wraps`, else as the agent made it.
    pub(super) async fn judge(
        &self,
        jail: JailTerms<'_>,
        terms: AnswerTerms,
    ) -> Result<HookVerdict, UnjudgedCall> {
        let policy = self.folder.app.executor().policy();
        let readings = readings(
            self.event.agent,
            &self.call.tool,
            &self.call.actions,
            &policy,
        )?;
        let plan = if jail.wraps {
            self.plan_jail(&readings, terms.again)?
        } else {
            None
        };
        if let Some(plan) = plan {
            jail.check_environment(&self.folder, &plan.jailed)?;
            return Ok(self.judge_jailed(readings, plan, terms).await?);
        }
        let call = self.agent_call(&self.location.doubts);
        let verdict = self.session.judge(readings, call, terms).await?;
        Ok(verdict.unwrap_or_else(undecided))
    }

    /// The jailed form of the call. `None` if it has none, if it is uncertain where it works, or if a rule denies its tool by name.
    fn plan_jail(
        &self,
        readings: &ToolInterpretations,
        again: bool,
    ) -> Result<Option<JailPlan>, Problem> {
        if !self.location.doubts.is_empty() {
            return Ok(None);
        }
        let tool = &self.call.tool;
        let by_name = self
            .session
            .verdict_by_name(&readings.first, tool, &self.arguments);
        if by_name == ByName::Deny {
            return Ok(None);
        }
        let start = &self.location.start;
        let session = self.session.name();
        let jailed = JailedCall::of(&self.folder, self.event, self.call, start, session)?;
        // Before its own prompt an agent takes no other input: only what is in this form already stays in it.
        let jailed = jailed.filter(|jailed| !again || jailed.input.is_none());
        Ok(jailed.map(|jailed| JailPlan {
            jailed,
            doubt: (by_name == ByName::Ask).then(|| Doubt::Named(tool.clone())),
        }))
    }

    /// Judges first the call that `haft exec` will make, and then the agent's call that starts it.
    async fn judge_jailed(
        &self,
        readings: ToolInterpretations,
        plan: JailPlan,
        terms: AnswerTerms,
    ) -> Result<HookVerdict, Problem> {
        let JailPlan { jailed, doubt } = plan;
        let begun = Instant::now();
        let refusal = jailed.refusal(&self.folder, terms.within);
        if let Some(reason) = refusal.await? {
            return Ok(HookVerdict::Deny { reason });
        }
        // One line of a shell has one name.
        let readings = ToolInterpretations::only(readings.first.into_jailed()?);
        let doubts: Vec<Doubt> = doubt.into_iter().collect();
        let elapsed = begun.elapsed();
        let terms = AnswerTerms {
            // What the agent's prompt asks about would run as the agent made it.
            by_agent: false,
            within: terms.within.saturating_sub(elapsed),
            answer_within: terms.answer_within.saturating_sub(elapsed),
            ..terms
        };
        let call = self.agent_call(&doubts);
        Ok(match self.session.judge(readings, call, terms).await? {
            Some(HookVerdict::Allow { input: None }) => HookVerdict::Allow {
                input: jailed.input,
            },
            verdict => verdict.unwrap_or_else(undecided),
        })
    }

    fn agent_call<'c>(&'c self, doubts: &'c [Doubt]) -> AgentCall<'c> {
        AgentCall {
            tool: &self.call.tool,
            arguments: &self.arguments,
            folder: &self.cwd,
            actions: &self.call.actions,
            doubts,
            id: self.call.id.as_deref(),
        }
    }
}

/// The verdict where none was reached in time.
fn undecided() -> HookVerdict {
    HookVerdict::Deny {
        reason: "no decision about this call came in time, so it did not run. Make the same call again later".to_owned(),
    }
}
