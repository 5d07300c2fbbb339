//! `sign`: the internal tool through which the policy judges, asks about and records a command's use of a login like every call.

use std::sync::Arc;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::Condition;
use haft::result::ToolResult;
use haft::spec::{CallPhrases, NameError, Risk, ToolSpec};
use haft::tool::{Depth, Intent, Tool, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::COMMANDS;
use crate::command::connect::{LoginInput, OpenCommands};
use crate::describe::{builtin, writes};

/// The tool's name.
pub(crate) const SIGN: &str = "sign";

/// What `sign` takes. Only haft itself writes it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignInput {
    /// The program that the command line starts, for the person who decides.
    pub(crate) program: String,
    /// The login.
    pub(crate) login: LoginInput,
    /// The command line.
    pub(crate) command: String,
    /// The command itself, which may have ended by the time of the decision.
    pub(crate) task: String,
}

/// What `sign` gives.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SignData {
    /// The login that was agreed to.
    pub(crate) login: LoginInput,
}

/// The tool `sign`.
#[derive(Debug)]
pub(super) struct Sign(OpenCommands);

impl Sign {
    pub(super) fn tool(open: OpenCommands) -> Result<Arc<dyn Tool>, NameError> {
        Self(open).into_tool()
    }
}

impl TypedTool for Sign {
    const NAME: &'static str = SIGN;
    const DESCRIPTION: &'static str = "Let a running command use one of the user's logins.";
    type Input = SignInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<SignData>(spec, COMMANDS), Risk::Safe);
        ToolSpec {
            concurrency_safe: true,
            phrases: CallPhrases {
                waits: "waits for the user's approval of a login",
                undone: "the login was not used",
                in_doubt: "the login may have been used",
            },
            ..spec
        }
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        // A saved rule covers every command; a session grant covers only one, because of its condition.
        let stated = &["program", "login", "command", "task"];
        Ok(Intent::of(vec![input.login.permission()])
            .with_stated(stated)
            .with_conditions(depth, || {
                vec![Condition::new("command", input.command.clone())]
            }))
    }

    async fn run(&self, input: Self::Input, _: &CallContext) -> Result<ToolResult, ToolError> {
        let purpose = &input.login.purpose;
        if self.0.has(&input.task) {
            let summary = format!("{} uses a login for {purpose}", input.program);
            let data = SignData { login: input.login };
            return Ok(ToolResult::data(&data)?.with_summary(summary));
        }
        let message = format!(
            "`{}` has ended: no login was used for {purpose}, and this decision has no effect on it",
            input.program
        );
        Err(ToolError::conflict(message).with_advice("run the command again"))
    }
}
