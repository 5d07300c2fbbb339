//! `propose_rule`: the model proposes a narrow rule after repeated approval requests; the user accepts, edits or denies it.

use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::{Effect, Permission};
use haft::policy::{Classes, PROPOSED_RULE, RuleText, refuse_proposal};
use haft::result::ToolResult;
use haft::spec::{Risk, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use haft::workspace::Workspace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::describe::{builtin, known_as};

/// What `propose_rule` takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeRuleInput {
    /// A narrow allow rule: `Bash(npm run test)`, `Edit(/docs/**)`, `WebFetch(domain:docs.example.org)`.
    #[schemars(length(min = 1, max = 500))]
    pub rule: String,
    /// Why it helps, in a sentence for the user.
    #[schemars(length(min = 1, max = 1_000))]
    pub reason: String,
}

/// What `propose_rule` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProposeRuleData {
    /// The rule that is in force from now on, as the user accepted it.
    pub rule: String,
}

/// The tool `propose_rule`.
#[derive(Debug)]
pub struct ProposeRule {
    workspace: Workspace,
    classes: Classes,
}

impl ProposeRule {
    /// Creates the tool for calls in this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            classes: crate::classes().collect(),
        }
    }
}

impl TypedTool for ProposeRule {
    const NAME: &'static str = "propose_rule";
    const DESCRIPTION: &'static str = "Propose a narrow rule to the user after calls of one kind were denied or approved again and again. \
        The user sees the rule, your reason and which earlier calls it would have covered, and accepts, edits or \
        denies it. Name one command, path or host exactly; wide rules are refused at once. At most 5 in a run.";
    type Input = ProposeRuleInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = builtin::<ProposeRuleData>(spec, "people");
        let spec = ToolSpec {
            risk: Risk::Critical,
            ..spec
        };
        known_as(spec, &["request_permission", "add_permission"])
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        let rule = input.rule.trim();
        if let Some(why) = refuse_proposal(rule, &self.classes, self.workspace.secret_names()) {
            return Err(ToolError::denied(format!(
                "the rule {rule} was not proposed to the user: {why}"
            ))
            .with_advice("propose a narrower rule, or continue without one"));
        }
        Ok(Intent::of([Permission {
            effect: proposal_effect(rule),
            risk: Risk::Critical,
        }]))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let rule = input.rule.trim().to_owned();
        context.cleared(&proposal_effect(&rule))?;
        context.keep_rule(RuleText::new(&rule))?;
        let summary = format!("accepted: {rule}");
        Ok(ToolResult::data(&ProposeRuleData { rule })?.with_summary(summary))
    }
}

fn proposal_effect(rule: &str) -> Effect {
    Effect::Other {
        kind: PROPOSED_RULE.to_owned(),
        value: rule.to_owned(),
    }
}
