//! Plans what a command sees of a git repository outside of its workspace, and the made files below `/etc`.

use std::path::{Path, PathBuf};

use super::plan::{LandlockGrant, RootEntry, SupervisorPlan};
use super::{depth, wrong};
use crate::StartError;
use crate::command::{Mounts, OverlayFolders, RepositoryMount};
use crate::places::{PathPurpose, Places};
use crate::strength::Strength;

/// Where made files may lie.
const ETC: &str = "/etc";

/// Adds the repository and the made files to the plan.
pub(super) fn show(
    plan: &mut SupervisorPlan,
    places: &Places,
    mounts: &Mounts,
) -> Result<(), StartError> {
    let own_root = plan.strength() > Strength::LandlockSeccomp;
    if own_root {
        for (target, bytes) in &mounts.etc {
            let below = target.strip_prefix(ETC);
            let is_plain = |path: &Path| {
                path.components()
                    .all(|part| matches!(part, std::path::Component::Normal(_)))
            };
            if !below.is_ok_and(is_plain) {
                return Err(wrong(target, "is not a path below /etc"));
            }
            plan.entries.push(RootEntry::File {
                target: target.clone(),
                bytes: bytes.clone(),
            });
        }
    }
    if let Some(repository) = &mounts.repository {
        add(plan, places, repository, mounts.only_reads)?;
    }
    plan.entries.sort_by_key(depth);
    Ok(())
}

fn add(
    plan: &mut SupervisorPlan,
    places: &Places,
    repository: &RepositoryMount,
    only_reads: bool,
) -> Result<(), StartError> {
    let own_root = plan.strength() > Strength::LandlockSeccomp;
    let folder = places.admit(&repository.folder, PathPurpose::Named)?;
    if plan.workspace.starts_with(&folder) || folder.starts_with(&plan.workspace) {
        return Err(wrong(&folder, "lies around or in the workspace"));
    }
    let view = repository.view.as_ref().filter(|_| !only_reads);
    let grant = if view.is_some() {
        LandlockGrant::Write
    } else {
        LandlockGrant::Read
    };
    plan.grants.push((folder.clone(), grant));
    if !own_root {
        return Ok(());
    }
    if let Some((at, text)) = &repository.pointer {
        let is_above = |above: &Path| plan.workspace.starts_with(above) && plan.workspace != above;
        if !at.parent().is_some_and(is_above) {
            return Err(wrong(at, "does not lie above the workspace"));
        }
        plan.grants.push((at.clone(), LandlockGrant::Read));
        plan.entries.push(RootEntry::File {
            target: at.clone(),
            bytes: text.clone(),
        });
    }
    let layer = repository.layer.clone();
    if view.is_none() && layer.is_none() {
        return Err(wrong(&folder, "has no layer over it"));
    }
    plan.entries.push(match view {
        Some(view) => match overlay(view, folder.clone(), folder)? {
            RootEntry::Overlay {
                target,
                lower,
                upper,
                ..
            } => RootEntry::Overlay {
                target,
                lower,
                layer,
                upper,
            },
            entry => entry,
        },
        // An overlay also where nothing changes: no socket of the host can be reached through it.
        None => RootEntry::Overlay {
            target: folder.clone(),
            lower: folder,
            layer,
            upper: None,
        },
    });
    Ok(())
}

/// Plans the overlay of a view. None of its folders may lie in the folder shown, where the command would see and change them.
pub(super) fn overlay(
    view: &OverlayFolders,
    lower: PathBuf,
    target: PathBuf,
) -> Result<RootEntry, StartError> {
    for folder in [&view.upper, &view.work] {
        if !folder.is_absolute() || folder.starts_with(&lower) {
            return Err(wrong(
                folder,
                "cannot hold the changes of a view: it lies in the folder that is shown",
            ));
        }
    }
    Ok(RootEntry::Overlay {
        target,
        lower,
        layer: None,
        upper: Some((view.upper.clone(), view.work.clone())),
    })
}
