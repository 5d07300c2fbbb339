//! `spend_more`: the call by which a person is asked whether a run goes on beyond a budget of money. It does nothing: it is judged, asked
//! about and recorded like every call, and its outcome is the answer.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::budget::BUDGET_EFFECT;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::permission::{Effect, Permission};
use haft::result::ToolResult;
use haft::spec::{NameError, Risk, ToolName, ToolSpec};
use haft::tool::Tool;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Its name. No caller sees it.
pub(crate) const SPEND_MORE: &str = "spend_more";

/// What it takes. Only the loop writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpendMore {
    /// `run` or `day`.
    pub(crate) period: String,
    /// The budget.
    pub(crate) limit: f64,
    /// The amount up to which nobody needed to be asked.
    pub(crate) up_to: f64,
    /// The day, for one of a day.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) day: String,
    /// Why it is not known what was spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<String>,
}

impl SpendMore {
    pub(crate) fn to_arguments(&self) -> String {
        // Plain data: this does not fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What the person who decides reads.
    fn question(&self) -> String {
        let Self { limit, period, .. } = self;
        let more = format!("an approval lets the run cost {limit} more");
        match &self.unknown {
            Some(why) => format!(
                "what models cost today is not known, and the budget is {limit} of money a {period}: {why}; {more}"
            ),
            None if self.up_to > *limit => format!(
                "the budget of {limit} of money a {period}, and what was agreed to beyond it ({} in all), is used up; {more}",
                self.up_to
            ),
            None => format!("the budget of {limit} of money a {period} is used up; {more}"),
        }
    }
}

/// The tool.
#[derive(Debug)]
struct SpendMoreTool(Arc<ToolSpec>);

/// The tool by which a run of the loop asks whether it may cost more than a budget says, for
/// [`Executor::with_internal_tools`](haft::Executor::with_internal_tools). Without it such a run ends.
///
/// # Errors
/// The tool cannot be described.
pub fn spend_more() -> Result<Arc<dyn Tool>, NameError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "period": {"type": "string", "enum": ["run", "day"]},
            "limit": {"type": "number"},
            "up_to": {"type": "number"},
            "day": {"type": "string"},
            "unknown": {"type": "string"},
        },
        "required": ["period", "limit", "up_to"],
        "additionalProperties": false,
    });
    let spec = ToolSpec {
        source: "builtin".into(),
        ..ToolSpec::new(
            ToolName::new(SPEND_MORE)?,
            "Go on beyond a budget of money.",
            schema,
        )
    };
    Ok(Arc::new(SpendMoreTool(Arc::new(spec))))
}

fn read(arguments: &Arguments) -> Result<SpendMore, ToolError> {
    let read = serde_json::from_str(arguments.as_str());
    read.map_err(|error| ToolError::invalid_arguments(error.to_string()))
}

impl Tool for SpendMoreTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn permissions(&self, arguments: &Arguments) -> Result<Vec<Permission>, ToolError> {
        let effect = Effect::Other {
            kind: BUDGET_EFFECT.to_owned(),
            value: read(arguments)?.question(),
        };
        // The guard of budgets asks; no profile has anything to say on it.
        Ok(vec![Permission {
            effect,
            risk: Risk::Safe,
        }])
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Arguments,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let SpendMore { limit, .. } = read(arguments)?;
            Ok(ToolResult::text(format!("the run may cost {limit} more")))
        })
    }
}
