//! What the policy says about a call that is not made.

use std::sync::Arc;

use crate::budget::EffectCounts;
use crate::executor::early_end::EarlyEnd;
use crate::executor::effects::Moment;
use crate::executor::{Executor, admit, effects};
use crate::permission::Verdict;
use crate::policy::{Explanation, JudgedCall, Policy, RunHistory};
use crate::result::Failure;
use crate::tool::Depth;
use crate::toolset::{ToolEntry, ToolsetSnapshot};

impl Executor {
    /// Explains why a call of this tool with these arguments would be allowed, denied or need approval. Nothing runs and nothing is
    /// recorded.
    ///
    /// # Errors
    /// The failure that the call would have: this process cannot run the tool, or the arguments do not fit its schema or cannot be judged.
    pub fn explain(&self, entry: &ToolEntry, arguments: &str) -> Result<Explanation, Failure> {
        let explained = || {
            let input = admit::admit_for_inspection(entry, arguments)?;
            let (policy, arguments) = (self.parts.policy.now(), input.arguments());
            let run = RunHistory {
                used: Some(EffectCounts::NONE),
                ..RunHistory::none()
            };
            let moment = Moment {
                policy: &policy,
                spec: entry.spec(),
                run: &run,
                known: &Arc::default(),
            };
            let (permissions, intent) = input.judged_intent(&moment, Depth::Permissions)?;
            let unstated = effects::unstated(arguments.as_str(), &permissions, intent.stated);
            Ok(policy.explain(
                &JudgedCall::new(entry.spec(), arguments.as_str(), &permissions, &run)
                    .with_unstated(unstated.as_str()),
            ))
        };
        // People read this, so it includes the advice for operators.
        explained().map_err(EarlyEnd::into_failure_for_people)
    }

    /// Returns the verdict of another policy, for the same workspace, on a call of a run with this history. Nothing runs and nothing is
    /// recorded.
    ///
    /// # Errors
    /// The failure that the call would have: this process cannot run the tool, or the arguments do not fit its schema or cannot be judged.
    pub fn verdict_under(
        &self,
        policy: &Policy,
        entry: &ToolEntry,
        arguments: &str,
        run: &RunHistory,
    ) -> Result<Verdict, Failure> {
        let judged = || {
            let input = admit::admit_for_inspection(entry, arguments)?;
            let moment = Moment {
                policy,
                spec: entry.spec(),
                run,
                known: &Arc::default(),
            };
            let (permissions, intent) = input.judged_intent(&moment, Depth::Permissions)?;
            let arguments = input.arguments().as_str();
            let unstated = effects::unstated(arguments, &permissions, intent.stated);
            let call = JudgedCall::new(entry.spec(), arguments, &permissions, run);
            Ok(policy.judge(&call.with_unstated(unstated.as_str())).verdict)
        };
        judged().map_err(EarlyEnd::into_failure_for_people)
    }

    /// Returns the host's internal tools, whose calls can be explained like others.
    pub fn internal_toolset(&self) -> Arc<ToolsetSnapshot> {
        self.parts.internal.snapshot()
    }

    /// Returns which of these rules, requested by a skill, match a call. They are shown beside its explanation and grant nothing.
    pub fn asked_for(&self, entry: &ToolEntry, arguments: &str, rules: &[String]) -> Vec<String> {
        let speaking = || {
            let input = admit::admit_for_inspection(entry, arguments)?;
            let policy = self.parts.policy.now();
            let run = RunHistory::none();
            let moment = Moment {
                policy: &policy,
                spec: entry.spec(),
                run: &run,
                known: &Arc::default(),
            };
            let (permissions, _) = input.judged_intent(&moment, Depth::Permissions)?;
            let call =
                JudgedCall::new(entry.spec(), input.arguments().as_str(), &permissions, &run);
            let found = policy.asked_for(rules, &call);
            Ok::<_, EarlyEnd>(found.into_iter().map(str::to_owned).collect())
        };
        speaking().unwrap_or_default()
    }
}
