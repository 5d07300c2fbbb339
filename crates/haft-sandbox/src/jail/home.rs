//! What is shown below the command's own home: views of folders of the user's, and made files.

use std::path::{Component, Path, PathBuf};

use super::plan::{BindMode, RootEntry, SupervisorPlan};
use super::{repository, wrong};
use crate::StartError;
use crate::command::CommandSpec;
use crate::places::{PathPurpose, Places};
use crate::strength::Strength;

/// Plans it; a jail without a root of its own shows none.
pub(super) fn plan(
    plan: &mut SupervisorPlan,
    places: &Places,
    spec: &CommandSpec,
    scratch: &Path,
) -> Result<(), StartError> {
    let own_root = plan.strength() > Strength::LandlockSeccomp;
    for one in spec.mounts.home.iter().filter(|_| own_root) {
        let target = in_home(scratch, &one.at)?;
        let Some(folder) = &one.folder else {
            plan.entries.push(RootEntry::Bind {
                source: one.view.upper.clone(),
                target,
                kind: BindMode::ReadWrite,
            });
            continue;
        };
        let Ok(lower) = places.admit(folder, PathPurpose::Named) else {
            continue;
        };
        plan.entries
            .push(repository::overlay(&one.view, lower, target)?);
    }
    for (at, bytes) in spec.mounts.home_files.iter().filter(|_| own_root) {
        let target = in_home(scratch, at)?;
        if let Some(folder) = target.parent().filter(|folder| *folder != scratch) {
            let target = folder.to_owned();
            plan.entries.push(RootEntry::PrivateDir { target });
        }
        let bytes = bytes.clone();
        plan.entries.push(RootEntry::File { target, bytes });
    }
    Ok(())
}

/// Returns where a path below the command's own home lies in the jail.
fn in_home(scratch: &Path, at: &Path) -> Result<PathBuf, StartError> {
    let below = |part| matches!(part, Component::Normal(_));
    if !at.components().all(below) {
        return Err(wrong(at, "is not a path below HOME"));
    }
    Ok(scratch.join(at))
}
