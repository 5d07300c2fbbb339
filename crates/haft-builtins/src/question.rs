//! `ask_user`: questions to the user, answered at the terminal, in the console, through the API or by the client.

use std::sync::Arc;
use std::time::Duration;

use haft::approval::form::{Question, QuestionForm};
use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::plural::counted;
use haft::result::ToolResult;
use haft::spec::{NameError, ToolName, ToolSpec};
use haft::tool::{Depth, Intent, PreparedCall, Tool, input_schema};
use haft::workspace::Workspace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::describe::{builtin, idempotent};

/// Default time that the user has to answer, in seconds.
const WAIT_S: u64 = 300;
/// Maximum time that a call may wait for answers, in seconds: a day.
const MAX_WAIT_S: u64 = 86_400;

const DESCRIPTION: &str = "Ask the user one or more questions and wait for the answers. Use it when a decision is the user's, \
        or when only the user knows. Give each question an id, a type (single, multiple, text, number, \
        confirm), a text, and options for a choice. data.answers holds the answers by id; a question without \
        an answer in time is missing there and named in data.unanswered, unless it has a default.";

/// What `ask_user` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskUserInput {
    /// What the questions are about, in a few words.
    #[schemars(length(min = 1, max = 500))]
    pub title: String,
    /// The questions.
    #[schemars(length(min = 1, max = 32))]
    pub questions: Vec<Question>,
    /// How long to wait for answers, in seconds.
    #[serde(default = "wait_s")]
    #[schemars(range(min = 1, max = 86_400))]
    pub wait_s: u64,
}

fn wait_s() -> u64 {
    WAIT_S
}

/// What `ask_user` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AskUserData {
    /// The answers, by the questions' ids.
    pub answers: Map<String, Value>,
    /// The ids of the questions without an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<String>,
}

/// The tool `ask_user`.
#[derive(Debug)]
pub struct AskUser(Arc<ToolSpec>);

impl AskUser {
    /// Creates the tool.
    ///
    /// # Errors
    /// If the tool's name is invalid, which it is not for a standard tool.
    pub fn new() -> Result<Self, NameError> {
        let schema = input_schema::<AskUserInput>();
        let spec = ToolSpec::new(ToolName::new("ask_user")?, DESCRIPTION, schema);
        // Asking again returns the answer that was given.
        let spec = idempotent(builtin::<AskUserData>(spec, "people"));
        Ok(Self(Arc::new(ToolSpec {
            concurrency_safe: true,
            timeout: Some(Duration::from_secs(MAX_WAIT_S + 60)),
            ..spec
        })))
    }
}

impl Tool for AskUser {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(AskUserCall {
            input: arguments.parse()?,
            arguments: arguments.clone(),
        }))
    }
}

/// A call of `ask_user`.
struct AskUserCall {
    input: AskUserInput,
    arguments: Arguments,
}

impl PreparedCall for AskUserCall {
    fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let Self { input, arguments } = *self;
            let form = QuestionForm {
                title: input.title,
                questions: input.questions,
            };
            let wait = Duration::from_secs(input.wait_s.clamp(1, MAX_WAIT_S));
            let answers = context.ask(&arguments, form.clone(), wait).await?;
            let (answers, unanswered) = form.with_defaults(answers);
            result(&AskUserData {
                answers,
                unanswered,
            })
        })
    }
}

fn result(data: &AskUserData) -> Result<ToolResult, ToolError> {
    let line = |(id, value): (&String, &Value)| match value {
        Value::String(text) => format!("{id}: {text}"),
        other => format!("{id}: {other}"),
    };
    let mut lines: Vec<String> = data.answers.iter().map(line).collect();
    if !data.unanswered.is_empty() {
        lines.push(format!("not answered: {}", data.unanswered.join(", ")));
    }
    let summary = counted(data.answers.len(), "answer");
    ToolResult::text(lines.join("\n"))
        .with_summary(summary)
        .with_data_for_programs(data)
}
