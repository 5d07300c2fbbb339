//! The user's toolchains in a jail's plan: binds and links if it has a root of its own, and grants.

use super::plan::{BindMode, LandlockGrant, RootEntry, SupervisorPlan};
use crate::toolchains::{ToolchainPart, Toolchains};

/// Shows them, each part at its own path.
pub(super) fn show(toolchains: &Toolchains, plan: &mut SupervisorPlan, own_root: bool) {
    // Programs found on `PATH` may lie in one of them.
    plan.entries
        .retain(|entry| !toolchains.shows(entry.target()));
    for part in toolchains.parts() {
        match part {
            ToolchainPart::Shown(path) => {
                plan.grants.push((path.clone(), LandlockGrant::Execute));
                if own_root {
                    plan.entries.push(RootEntry::Bind {
                        source: path.clone(),
                        target: path.clone(),
                        kind: BindMode::ReadOnly,
                    });
                }
            }
            ToolchainPart::Link { path, to } if own_root => plan.entries.push(RootEntry::Link {
                target: path.clone(),
                to: to.clone(),
            }),
            ToolchainPart::Link { .. } => {}
        }
    }
}
