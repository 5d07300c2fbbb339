//! What a call would do, according to its tool. Only this module asks; if the tool panics, the call is denied.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::approval::Snapshot;
use crate::arguments::Arguments;
use crate::error::ErrorKind;
use crate::executor::early_end::EarlyEnd;
use crate::input::CallInput;
use crate::json::canonical::args_digest_without;
use crate::permission::{Condition, Effect, Permission};
use crate::policy::{JudgedCall, Policy, RunHistory};
use crate::spec::ToolSpec;
use crate::tool::{PreparedCall, Tool};

/// Asks the tool something and turns a panic into a denial.
fn catch_panic<T>(ask: impl FnOnce() -> T) -> Result<T, EarlyEnd> {
    let message = "the tool could not say what the call would do";
    catch_unwind(AssertUnwindSafe(ask)).map_err(|_| {
        EarlyEnd::failed(ErrorKind::Denied, message)
            .advise("this is a bug in the tool; the run continues")
    })
}

/// Passes the arguments to the tool; returns the prepared call if the tool prepares calls.
pub(super) fn prepare(
    tool: &Arc<dyn Tool>,
    arguments: &Arguments,
) -> Result<Option<Box<dyn PreparedCall>>, EarlyEnd> {
    Ok(catch_panic(|| Arc::clone(tool).prepare(arguments))??)
}

/// A tool with a call's arguments. What the tool says about the call and what runs come from one value.
pub(super) struct ToolInput {
    tool: Arc<dyn Tool>,
    arguments: Arguments,
    /// The prepared call, if the tool prepares calls.
    prepared: Option<Box<dyn PreparedCall>>,
    /// Whether the client pipes input in.
    has_input: bool,
}

pub(super) enum Runnable {
    /// A call that the tool prepared.
    Prepared(Box<dyn PreparedCall>),
    /// A tool that parses the arguments itself.
    Plain(Arc<dyn Tool>, Arguments),
}

impl ToolInput {
    /// Creates the input from a tool and arguments that it has prepared.
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

    /// Sets whether the client pipes input in.
    pub(super) fn with_input(self, has_input: bool) -> Self {
        Self { has_input, ..self }
    }

    /// Returns whether the client pipes input in.
    pub(super) fn has_input(&self) -> bool {
        self.has_input
    }

    /// Returns the effective arguments.
    pub(super) fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// Returns what the call would do, as the tool states it. Fails if the policy judges another workspace than the one
    /// that the tool works in: path rules and hidden paths mean nothing there.
    fn stated(&self, policy: &Policy) -> Result<Vec<Permission>, EarlyEnd> {
        if let Some(workspace) = catch_panic(|| self.tool.workspace())? {
            policy.judges(workspace).map_err(|misplaced| {
                EarlyEnd::failed(ErrorKind::Unavailable, misplaced.to_string()).advise(
                    "this is a bug in the host: the policy and the tools must use the same workspace",
                )
            })?;
        }
        Ok(catch_panic(|| match &self.prepared {
            Some(call) => call.permissions(),
            None => self.tool.permissions(&self.arguments),
        })??)
    }

    /// Returns what the call would do now in this run: also under further names by which links reach its files, so that every use of
    /// the answer (the ruling, the request, the comparison before it runs) has the names of its own moment.
    pub(super) fn permissions(
        &self,
        policy: &Policy,
        spec: &ToolSpec,
        run: &RunHistory,
    ) -> Result<Vec<Permission>, EarlyEnd> {
        let mut permissions = self.stated(policy)?;
        permissions.extend(self.linked(policy, spec, &permissions, run)?);
        Ok(permissions)
    }

    /// Returns what a call with these permissions would do under further names of its files, as far as that is not allowed now.
    pub(super) fn linked(
        &self,
        policy: &Policy,
        spec: &ToolSpec,
        permissions: &[Permission],
        run: &RunHistory,
    ) -> Result<Vec<Permission>, EarlyEnd> {
        let call = JudgedCall::new(spec, &self.arguments, permissions, run);
        Ok(policy.linked_effects(&call, catch_panic(|| self.tool.workspace())?))
    }

    /// Returns the permissions with the conditions of the call and a preview of the files it would change, as they are now.
    pub(super) fn snapshot(&self, permissions: &[Permission]) -> Result<Snapshot, EarlyEnd> {
        let conditions = self.conditions()?;
        let preview = catch_panic(|| match &self.prepared {
            Some(call) => call.preview(),
            None => self.tool.preview(&self.arguments),
        })?;
        let meanings = catch_panic(|| match &self.prepared {
            Some(call) => call.meanings(),
            None => self.tool.meanings(&self.arguments),
        })?;
        Ok(Snapshot::of(permissions, conditions, preview, meanings))
    }

    /// Returns the conditions that settings impose on the call, and the one that input is piped in.
    pub(super) fn conditions(&self) -> Result<Vec<Condition>, EarlyEnd> {
        let mut all = catch_panic(|| match &self.prepared {
            Some(call) => call.conditions(),
            None => self.tool.conditions(&self.arguments),
        })?;
        all.extend(self.has_input.then(CallInput::condition));
        Ok(all)
    }

    /// Returns the digest of the arguments that the permissions do not state in full. `written` is the caller's own text.
    pub(super) fn unstated(
        &self,
        written: &str,
        permissions: &[Permission],
    ) -> Result<String, EarlyEnd> {
        let stated = catch_panic(|| match &self.prepared {
            Some(call) => call.stated(permissions),
            None => self.tool.stated(&self.arguments, permissions),
        })?;
        // Rules cannot match the value of any other effect: for such a call, all arguments are compared.
        let sayable = |permission: &Permission| {
            let effect = &permission.effect;
            let named = |effect: &Effect| {
                matches!(
                    effect,
                    // The command itself is compared together with the paths that it changes.
                    Effect::Run { .. } | Effect::Connect { .. } | Effect::Apply { .. }
                )
            };
            effect.path().is_some() || named(effect)
        };
        let all = !permissions.is_empty() && permissions.iter().all(sayable);
        Ok(args_digest_without(written, if all { stated } else { &[] }))
    }

    pub(super) fn into_tool(self) -> Arc<dyn Tool> {
        self.tool
    }

    /// Returns what runs, for the one place that runs it.
    pub(super) fn into_runnable(self) -> Runnable {
        match self.prepared {
            Some(call) => Runnable::Prepared(call),
            None => Runnable::Plain(self.tool, self.arguments),
        }
    }
}
