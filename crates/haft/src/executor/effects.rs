//! What a call would do, according to its tool. Only this module asks; if the tool panics, the call is denied.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::arguments::Arguments;
use crate::error::ErrorKind;
use crate::executor::early_end::EarlyEnd;
use crate::executor::shared_permissions::SharedPermissions;
use crate::input::CallInput;
use crate::json::canonical::args_digest_without;
use crate::permission::{Effect, Permission};
use crate::policy::{JudgedCall, Policy, RunHistory};
use crate::result::{Failure, ToolResult};
use crate::spec::ToolSpec;
use crate::tool::{Depth, Intent, PreparedCall, Tool};

/// Asks the tool something and turns a panic into a denial.
fn catch_panic<T>(ask: impl FnOnce() -> T) -> Result<T, EarlyEnd> {
    let message = "the tool could not say what the call would do";
    catch_unwind(AssertUnwindSafe(ask)).map_err(|_| {
        EarlyEnd::failed(ErrorKind::Denied, message)
            .advise("this is a bug in the tool; the run continues")
    })
}

/// Passes the arguments to the tool, which parses them.
pub(super) fn prepare(
    tool: &Arc<dyn Tool>,
    arguments: &Arguments,
) -> Result<Box<dyn PreparedCall>, EarlyEnd> {
    Ok(catch_panic(|| Arc::clone(tool).prepare(arguments))??)
}

/// Returns what the tool knows of the call that this one carries on: see [`PreparedCall::without_running`].
pub(super) fn without_running(
    tool: &Arc<dyn Tool>,
    arguments: &Arguments,
    why: &Failure,
) -> Option<ToolResult> {
    let call = prepare(tool, arguments).ok()?;
    catch_panic(|| call.without_running(why)).ok()?
}

/// Returns the digest of the arguments that these permissions do not state in full. `written` is the caller's own text, and `stated` the
/// names of the arguments that its tool says are stated.
pub(super) fn unstated(written: &str, permissions: &[Permission], stated: &[&str]) -> String {
    // Rules cannot match the value of any other effect: for such a call, all arguments are compared.
    let sayable = |permission: &Permission| {
        let effect = &permission.effect;
        let named = |effect: &Effect| {
            matches!(
                effect,
                // The command itself is compared together with the paths that it changes.
                Effect::Run { .. }
                    | Effect::Connect { .. }
                    | Effect::Sign { .. }
                    | Effect::Apply { .. }
            )
        };
        effect.path().is_some() || named(effect)
    };
    let all = !permissions.is_empty() && permissions.iter().all(sayable);
    args_digest_without(written, if all { stated } else { &[] })
}

/// What a call is judged by at one moment.
pub(super) struct Moment<'a> {
    pub(super) policy: &'a Policy,
    pub(super) spec: &'a ToolSpec,
    pub(super) run: &'a RunHistory,
    /// What the call would have done at an earlier moment; empty if there was none.
    pub(super) known: &'a Arc<Vec<Permission>>,
}

/// A tool with a call's arguments. What the tool says about the call and what runs are one value.
pub(super) struct ToolInput {
    tool: Arc<dyn Tool>,
    arguments: Arguments,
    call: Box<dyn PreparedCall>,
    /// Whether the client pipes input in.
    has_input: bool,
}

impl ToolInput {
    /// Creates the input from a tool and arguments that it has prepared.
    pub(super) fn new(
        tool: Arc<dyn Tool>,
        arguments: Arguments,
        call: Box<dyn PreparedCall>,
    ) -> Self {
        Self {
            tool,
            arguments,
            call,
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

    /// Returns what the call would do, as its tool states it; the conditions also say that input is piped in. The permissions are passed
    /// to `each` instead: there may be very many.
    pub(super) fn intent(
        &self,
        depth: Depth,
        each: &mut dyn FnMut(Permission),
    ) -> Result<Intent, EarlyEnd> {
        let mut intent = catch_panic(|| self.call.intent_in_parts(depth, each))??;
        if self.has_input && depth >= Depth::Conditions {
            intent.conditions.push(CallInput::condition());
        }
        Ok(intent)
    }

    /// Returns what the call would do now in this run: also under further names by which links reach its files, so that every use of
    /// the answer (the ruling, the request, the comparison before it runs) has the names of its own moment. The permissions are beside
    /// the intent: if they are those that are known from an earlier moment, they are not held twice. Fails if the policy judges another
    /// workspace than the one that the tool works in: path rules and hidden paths mean nothing there.
    pub(super) fn judged_intent(
        &self,
        moment: &Moment<'_>,
        depth: Depth,
    ) -> Result<(Arc<Vec<Permission>>, Intent), EarlyEnd> {
        let Moment {
            policy, spec, run, ..
        } = *moment;
        if let Some(workspace) = catch_panic(|| self.tool.workspace())? {
            policy.judges(workspace).map_err(|misplaced| {
                EarlyEnd::failed(ErrorKind::Unavailable, misplaced.to_string()).advise(
                    "this is a bug in the host: the policy and the tools must use the same workspace",
                )
            })?;
        }
        let mut permissions = SharedPermissions::like(moment.known);
        let intent = self.intent(depth, &mut |one| permissions.add(one))?;
        let linked = self.linked(policy, spec, permissions.so_far(), run)?;
        for one in linked {
            permissions.add(one);
        }
        Ok((permissions.finish(), intent))
    }

    /// Returns what a call with these permissions would do under further names of its files, as far as that is not allowed now.
    pub(super) fn linked(
        &self,
        policy: &Policy,
        spec: &ToolSpec,
        permissions: &[Permission],
        run: &RunHistory,
    ) -> Result<Vec<Permission>, EarlyEnd> {
        let call = JudgedCall::new(spec, self.arguments.as_str(), permissions, run);
        Ok(policy.linked_effects(&call, catch_panic(|| self.tool.workspace())?))
    }

    pub(super) fn into_tool(self) -> Arc<dyn Tool> {
        self.tool
    }

    /// Returns what runs, for the one place that runs it.
    pub(super) fn into_call(self) -> Box<dyn PreparedCall> {
        self.call
    }
}
