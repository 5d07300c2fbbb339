//! Where an effect of a call could send data.

mod bare_address;
mod way_back;

use crate::destination::way_back::{carries_nothing, is_free};
use crate::judged_call::JudgedCall;
use crate::untrusted::{COMMAND, recipient};
use haft_types::permission::{Effect, PathClaim, Permission};
use haft_types::spec::Risk;

/// Where an effect could send data.
pub(crate) struct Destination {
    /// In the form of an origin; `folder` for one outside the workspace.
    pub(crate) to: String,
    /// Whether the effect carries nothing new there: nothing at all, or nothing back to where content came from.
    pub(crate) is_free: bool,
    /// Whether that is so whatever the run has read elsewhere: see [`carries_nothing`].
    pub(crate) carries_nothing: bool,
}

/// Returns where this effect could send data; `None` if it sends nothing out. `commands_reach_out` is whether the connections of commands in
/// the jail are not judged by themselves.
pub(crate) fn of_effect(
    call: &JudgedCall<'_>,
    permission: &Permission,
    commands_reach_out: bool,
) -> Option<Destination> {
    let to = match &permission.effect {
        // It only reads in the workspace, by commands known to do nothing else.
        Effect::Run { .. } if permission.risk == Risk::Safe => None,
        Effect::Run {
            jailed, on_copy, ..
        } => {
            let confined = *jailed && (*on_copy || !commands_reach_out);
            (!confined).then(|| COMMAND.to_owned())
        }
        Effect::Write(claim) | Effect::Remove(claim) => {
            leaves_workspace(claim).then(|| "folder".to_owned())
        }
        other => recipient(call.spec, call.permissions, other).map(|to| to.to_string()),
    }?;
    let carries_nothing = carries_nothing(call, permission);
    let is_free = carries_nothing || call.run.has_read_from(&to) && is_free(call, permission, &to);
    Some(Destination {
        to,
        is_free,
        carries_nothing,
    })
}

/// Whether a path, or its link target, lies outside the workspace.
fn leaves_workspace(claim: &PathClaim) -> bool {
    let outside = |path: &str| path.starts_with('/') || path == ".." || path.starts_with("../");
    outside(&claim.path) || claim.target.as_deref().is_some_and(outside)
}
