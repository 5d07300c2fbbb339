//! `spend_more`: the call that asks an operator whether a run may exceed a budget of money. It does nothing: like every call it is
//! judged, approved and recorded, and its outcome is the answer.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::budget::BUDGET_EFFECT;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::permission::{Effect, Permission};
use haft::result::ToolResult;
use haft::spec::{NameError, Risk, ToolName, ToolSpec};
use haft::tool::{Depth, Intent, PreparedCall, Tool};
use haft::workspace::Workspace;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Its name. No client sees it.
pub(crate) const SPEND_MORE: &str = "spend_more";

/// Its arguments. Only the loop writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpendMore {
    /// `run` or `day`.
    pub(crate) period: String,
    /// The budget, in the currency of the prices.
    pub(crate) limit: f64,
    /// The amount up to which no approval was needed.
    pub(crate) up_to: f64,
    /// The day, for a budget per day.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) day: String,
    /// The reason why the amount spent is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<String>,
}

impl SpendMore {
    pub(crate) fn to_arguments(&self) -> String {
        // This is plain data and cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the text that the operator reads.
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

#[derive(Debug)]
struct SpendMoreTool(Arc<ToolSpec>);

/// Returns the tool by which a run of the loop asks whether it may exceed a budget, for
/// [`Executor::with_internal_tools`](haft::Executor::with_internal_tools). Without it such a run ends.
///
/// # Errors
/// If the tool cannot be described.
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

impl Tool for SpendMoreTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        let read = serde_json::from_str::<SpendMore>(arguments.as_str());
        let call = read.map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        Ok(Box::new(call))
    }
}

impl PreparedCall for SpendMore {
    fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
        let effect = Effect::Other {
            kind: BUDGET_EFFECT.to_owned(),
            value: self.question(),
        };
        // The budget guard asks; no profile has a say in it.
        Ok(Intent::of([Permission {
            effect,
            risk: Risk::Safe,
        }]))
    }

    fn run(self: Box<Self>, _: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let limit = self.limit;
        Box::pin(async move { Ok(ToolResult::text(format!("the run may cost {limit} more"))) })
    }
}
