//! What a call would do, as its tool says it. Asked here alone: a tool that panics over it is denied, never let through.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::approval::Snapshot;
use crate::arguments::Arguments;
use crate::error::ErrorKind;
use crate::executor::stop::Stop;
use crate::json::canonical::args_digest_without;
use crate::permission::{Condition, Effect, Permission};
use crate::policy::Policy;
use crate::tool::Tool;

/// Runs a question to a tool.
fn guarded<T>(ask: impl FnOnce() -> T) -> Result<T, Stop> {
    let message = "the tool could not say what the call would do";
    catch_unwind(AssertUnwindSafe(ask)).map_err(|_| {
        Stop::new(ErrorKind::Denied, message)
            .advise("this is a fault of the tool; the run continues")
    })
}

/// What the call would do, where the policy judges the workspace that the tool works in: rules on paths, and what is
/// hidden, mean nothing in another one.
pub(super) fn permissions(
    tool: &dyn Tool,
    arguments: &Arguments,
    policy: &Policy,
) -> Result<Vec<Permission>, Stop> {
    if let Some(workspace) = guarded(|| tool.workspace())? {
        policy.judges(workspace).map_err(|misplaced| {
            Stop::new(ErrorKind::Unavailable, misplaced.to_string()).advise(
                "this is a fault of the host: it builds the policy and the tools on one workspace",
            )
        })?;
    }
    Ok(guarded(|| tool.permissions(arguments))??)
}

/// The same with the conditions it runs under and the files it would change, as they are now.
pub(super) fn snapshot(
    tool: &dyn Tool,
    arguments: &Arguments,
    permissions: Vec<Permission>,
) -> Result<Snapshot, Stop> {
    guarded(|| Snapshot {
        conditions: tool.conditions(arguments),
        preview: tool.preview(arguments),
        permissions,
    })
}

/// What settings decide about the call.
pub(super) fn conditions(tool: &dyn Tool, arguments: &Arguments) -> Result<Vec<Condition>, Stop> {
    guarded(|| tool.conditions(arguments))
}

/// The digest of the arguments that the permissions do not state in full; `written` is how the caller wrote them.
pub(super) fn unstated(
    tool: &dyn Tool,
    arguments: &Arguments,
    written: &str,
    permissions: &[Permission],
) -> Result<String, Stop> {
    let stated = guarded(|| tool.stated(arguments, permissions))?;
    // No rule can speak of the value of any other effect: such a call has its arguments compared whole.
    let sayable = |permission: &Permission| {
        let effect = &permission.effect;
        effect.path().is_some() || matches!(effect, Effect::Run { .. } | Effect::Connect { .. })
    };
    let all = !permissions.is_empty() && permissions.iter().all(sayable);
    Ok(args_digest_without(written, if all { stated } else { &[] }))
}
