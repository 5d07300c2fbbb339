//! Plans the sockets of the host's own program that a command sees.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::depth;
use super::plan::{BindMode, RootEntry, SupervisorPlan};
use super::wrong;
use crate::StartError;
use crate::command::Mounts;
use crate::strength::Strength;

/// Where sockets may be shown: in a folder that no system fills.
const SHOWN: &str = "/run/haft";

/// Adds the sockets to the plan. Without a root of its own, a command reaches no socket file.
pub(super) fn show(plan: &mut SupervisorPlan, mounts: &Mounts) -> Result<(), StartError> {
    if plan.strength() <= Strength::LandlockSeccomp {
        return Ok(());
    }
    for (source, target) in &mounts.sockets {
        let is_socket =
            fs::symlink_metadata(source).is_ok_and(|about| about.file_type().is_socket());
        if !is_socket {
            return Err(wrong(source, "is not a socket"));
        }
        if target.parent() != Some(Path::new(SHOWN)) {
            return Err(wrong(target, "is not a name in /run/haft"));
        }
        plan.entries.push(RootEntry::Bind {
            source: source.clone(),
            target: target.clone(),
            kind: BindMode::Data,
        });
    }
    plan.entries.sort_by_key(depth);
    Ok(())
}
