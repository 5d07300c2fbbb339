//! What a call would do, as its tool says it. Asked here alone: a tool that panics over it is denied, never let through.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::approval::Snapshot;
use crate::arguments::Arguments;
use crate::error::ErrorKind;
use crate::executor::early_end::EarlyEnd;
use crate::input::CallInput;
use crate::json::canonical::args_digest_without;
use crate::permission::{Condition, Effect, Permission};
use crate::policy::Policy;
use crate::tool::{PreparedCall, Tool};

/// Runs a question to a tool.
fn guarded<T>(ask: impl FnOnce() -> T) -> Result<T, EarlyEnd> {
    let message = "the tool could not say what the call would do";
    catch_unwind(AssertUnwindSafe(ask)).map_err(|_| {
        EarlyEnd::failed(ErrorKind::Denied, message)
            .advise("this is a fault of the tool; the run continues")
    })
}

/// Hands the arguments to the tool; the call, where it takes them in.
pub(super) fn prepare(
    tool: &Arc<dyn Tool>,
    arguments: &Arguments,
) -> Result<Option<Box<dyn PreparedCall>>, EarlyEnd> {
    Ok(guarded(|| Arc::clone(tool).prepare(arguments))??)
}

/// A tool with a call's arguments. What it says of the call and what runs come from one value.
pub(super) struct ToolInput {
    tool: Arc<dyn Tool>,
    arguments: Arguments,
    /// The call, where the tool has taken its arguments in.
    prepared: Option<Box<dyn PreparedCall>>,
    /// Its client pipes something in.
    has_input: bool,
}

/// What runs.
pub(super) enum Runnable {
    /// A call that its tool prepared.
    Prepared(Box<dyn PreparedCall>),
    /// A tool that reads the arguments itself.
    Plain(Arc<dyn Tool>, Arguments),
}

impl ToolInput {
    /// A tool with arguments that it took in.
    pub(super) fn new(
        tool: Arc<dyn Tool>,
        arguments: Arguments,
        prepared: Option<Box<dyn PreparedCall>>,
    ) -> Self {
        Self {
            tool,
            arguments,
            prepared,
            has_input: false,
        }
    }

    /// The same, into which its client pipes something.
    pub(super) fn with_input(self, has_input: bool) -> Self {
        Self { has_input, ..self }
    }

    /// Whether its client pipes something in.
    pub(super) fn has_input(&self) -> bool {
        self.has_input
    }

    /// The effective arguments.
    pub(super) fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// What the call would do, where the policy judges the workspace that the tool works in: rules on paths, and what is
    /// hidden, mean nothing in another one.
    pub(super) fn permissions(&self, policy: &Policy) -> Result<Vec<Permission>, EarlyEnd> {
        if let Some(workspace) = guarded(|| self.tool.workspace())? {
            policy.judges(workspace).map_err(|misplaced| {
                EarlyEnd::failed(ErrorKind::Unavailable, misplaced.to_string()).advise(
                    "this is a fault of the host: it builds the policy and the tools on one workspace",
                )
            })?;
        }
        Ok(guarded(|| match &self.prepared {
            Some(call) => call.permissions(),
            None => self.tool.permissions(&self.arguments),
        })??)
    }

    /// The same with the conditions it runs under and the files it would change, as they are now.
    pub(super) fn snapshot(&self, permissions: Vec<Permission>) -> Result<Snapshot, EarlyEnd> {
        let conditions = self.conditions()?;
        let preview = guarded(|| match &self.prepared {
            Some(call) => call.preview(),
            None => self.tool.preview(&self.arguments),
        })?;
        Ok(Snapshot {
            permissions,
            conditions,
            preview,
        })
    }

    /// What settings decide about the call.
    pub(super) fn conditions(&self) -> Result<Vec<Condition>, EarlyEnd> {
        let mut all = guarded(|| match &self.prepared {
            Some(call) => call.conditions(),
            None => self.tool.conditions(&self.arguments),
        })?;
        all.extend(self.has_input.then(CallInput::condition));
        Ok(all)
    }

    /// The digest of the arguments that the permissions do not state in full; `written` is how the caller wrote them.
    pub(super) fn unstated(
        &self,
        written: &str,
        permissions: &[Permission],
    ) -> Result<String, EarlyEnd> {
        let stated = guarded(|| match &self.prepared {
            Some(call) => call.stated(permissions),
            None => self.tool.stated(&self.arguments, permissions),
        })?;
        // No rule can speak of the value of any other effect: such a call has its arguments compared whole.
        let sayable = |permission: &Permission| {
            let effect = &permission.effect;
            let named = |effect: &Effect| {
                matches!(
                    effect,
                    // Which command it was is compared beside the paths that it changes.
                    Effect::Run { .. } | Effect::Connect { .. } | Effect::Apply { .. }
                )
            };
            effect.path().is_some() || named(effect)
        };
        let all = !permissions.is_empty() && permissions.iter().all(sayable);
        Ok(args_digest_without(written, if all { stated } else { &[] }))
    }

    /// The tool.
    pub(super) fn into_tool(self) -> Arc<dyn Tool> {
        self.tool
    }

    /// What runs, for the one place that runs it.
    pub(super) fn into_runnable(self) -> Runnable {
        match self.prepared {
            Some(call) => Runnable::Prepared(call),
            None => Runnable::Plain(self.tool, self.arguments),
        }
    }
}
