//! The user's toolchains in a jail's plan: binds and links if it has a root of its own, and grants.

use super::plan::{Bind, Entry, Grant, Plan};
use crate::toolchains::{Part, Toolchains};

/// Shows them, each part at its own path.
pub(super) fn show(toolchains: &Toolchains, plan: &mut Plan, own_root: bool) {
    // Programs found on `PATH` may lie in one of them.
    plan.entries
        .retain(|entry| !toolchains.shows(entry.target()));
    for part in toolchains.parts() {
        match part {
            Part::Shown(path) => {
                plan.grants.push((path.clone(), Grant::Execute));
                if own_root {
                    plan.entries.push(Entry::Bind {
                        source: path.clone(),
                        target: path.clone(),
                        kind: Bind::ReadOnly,
                    });
                }
            }
            Part::Link { path, to } if own_root => plan.entries.push(Entry::Link {
                target: path.clone(),
                to: to.clone(),
            }),
            Part::Link { .. } => {}
        }
    }
}
