//! `CallEffects`: the effects of what a command uses, one for each path and one for what cannot be known.

use std::os::unix::fs::MetadataExt as _;

use haft::permission::{PathClaim, Permission};
use haft::policy::{PathAccess, PathUse, protected_from_commands};
use haft::spec::Risk;
use haft::workspace::EntryKind;

use super::below::{covers, holds_link, walk};
use super::places::{PathBases, resolve_spots};
use super::spot::{PathLocation, spot};
use super::{Outside, connect_permission, outside_claim, unknown};
use crate::command::index;

/// Maximum number of effects per call; any more become one effect that is asked about.
const MAX_EFFECTS: usize = 256;
/// Maximum number of uses that are checked.
const MAX_USES: usize = 1_024;

/// Maximum length of a file name, in bytes: `NAME_MAX` of Linux and macOS.
const MAX_NAME: usize = 255;

/// Collects the effects of a call: each once, and at most [`MAX_EFFECTS`].
pub(super) struct CallEffects<'a> {
    outside: &'a Outside,
    bases: PathBases,
    found: Vec<Permission>,
    uses: usize,
}

impl<'a> CallEffects<'a> {
    /// Creates an empty collection.
    pub(super) fn new(outside: &'a Outside, bases: PathBases) -> Self {
        Self {
            outside,
            bases,
            found: Vec::new(),
            uses: 0,
        }
    }

    /// Returns all effects.
    pub(super) fn done(self) -> Vec<Permission> {
        self.found
    }

    /// Returns all effects, after these.
    pub(super) fn with(self, mut first: Vec<Permission>) -> Vec<Permission> {
        for one in self.found {
            if !first.contains(&one) {
                first.push(one);
            }
        }
        first
    }

    fn note(&mut self, permission: Permission) {
        if self.found.contains(&permission) {
            return;
        }
        if self.found.len() < MAX_EFFECTS {
            self.found.push(permission);
        } else if self.found.len() == MAX_EFFECTS {
            self.found.push(unknown("more paths than are looked at"));
        }
    }

    /// Adds the effects of a use.
    pub(super) fn add(&mut self, place: &PathUse) {
        self.uses += 1;
        if self.uses > MAX_USES {
            return self.note(unknown("more words than are looked at"));
        }
        match place.how {
            PathAccess::Connects => self.note(connect_permission(&place.path)),
            // No system allows a file name this long.
            PathAccess::MayUse if place.path.split('/').any(|name| name.len() > MAX_NAME) => {}
            PathAccess::ReadsTracked => self.add_tracked_secrets(),
            _ => self.add_file(place),
        }
    }

    /// Adds the effects of a path.
    pub(super) fn add_file(&mut self, place: &PathUse) {
        let entry = matches!(
            place.how,
            PathAccess::Removes | PathAccess::Moves | PathAccess::Carries
        );
        for found in resolve_spots(self.outside, &self.bases, place, entry) {
            match found {
                PathLocation::Unknown => self.note(unknown(&place.path)),
                PathLocation::Away(path) => {
                    let claim = outside_claim(&path);
                    self.note(match place.how {
                        PathAccess::Writes | PathAccess::Edits => Permission::write(claim),
                        PathAccess::Removes | PathAccess::Moves => Permission::remove(claim),
                        _ => Permission::read(claim).at(Risk::High),
                    });
                }
                PathLocation::Inside(claim, kind) => self.add_workspace_use(place, claim, kind),
            }
        }
    }

    fn add_workspace_use(&mut self, place: &PathUse, claim: PathClaim, kind: Option<EntryKind>) {
        match place.how {
            PathAccess::Reads | PathAccess::ReadsHistory => self.note(Permission::read(claim)),
            PathAccess::ReadsBelow { follows } => {
                if kind == Some(EntryKind::Directory) {
                    self.add_folder(&claim, follows);
                }
                self.note(Permission::read(claim));
            }
            PathAccess::Writes | PathAccess::Edits => self.written(place, claim, kind),
            PathAccess::Removes | PathAccess::Moves => {
                // Everything in the folder would be moved with it.
                let folder = place.how == PathAccess::Moves && kind == Some(EntryKind::Directory);
                let risk = if folder { Risk::Critical } else { risk(&claim) };
                self.note(Permission::remove(claim).at(risk));
            }
            PathAccess::MayUse => {
                let file = kind.is_some_and(|kind| kind != EntryKind::Directory);
                if file && covers(self.outside, &claim) {
                    self.note(Permission::read(claim.clone()));
                }
                if protected_from_commands(&claim.path).is_some() {
                    self.note(Permission::write(claim));
                }
            }
            PathAccess::NamesBelow if kind == Some(EntryKind::Directory) => {
                let found = walk(self.outside, folder_of(&claim), true);
                self.add_outward_links(&claim, found.outward_links, found.more);
            }
            PathAccess::Carries if self.holds_link(&claim, kind) => {
                self.note(unknown(&format!(
                    "{}, a link that is put elsewhere",
                    claim.path
                )));
            }
            PathAccess::Names
            | PathAccess::NamesBelow
            | PathAccess::Carries
            | PathAccess::Goes
            | PathAccess::ReadsTracked
            | PathAccess::Connects => {}
        }
    }

    /// Adds the effect of writing a file, or of putting one into an existing folder.
    fn written(&mut self, place: &PathUse, claim: PathClaim, kind: Option<EntryKind>) {
        let is_folder = kind == Some(EntryKind::Directory);
        if let Some(name) = &place.puts {
            let path = claim.target.as_deref().unwrap_or(&claim.path);
            match spot(self.outside, path, name, false) {
                PathLocation::Inside(into, _) => {
                    // An earlier part of the line may create the folder.
                    let sensitive = protected_from_commands(&into.path).is_some()
                        || covers(self.outside, &into);
                    if is_folder || (kind.is_none() && sensitive) {
                        self.write(into);
                    }
                }
                PathLocation::Away(path) => self.note(Permission::write(outside_claim(&path))),
                PathLocation::Unknown if is_folder => self.note(unknown(&place.path)),
                PathLocation::Unknown => {}
            }
            if is_folder {
                return;
            }
        }
        self.write(claim);
    }

    fn write(&mut self, claim: PathClaim) {
        if self.has_other_names(&claim) {
            // Writing under this name also changes the file's other names.
            let value = format!("{}, a file that has other names (hard links)", claim.path);
            self.note(unknown(&value));
        }
        let risk = risk(&claim);
        self.note(Permission::write(claim).at(risk));
    }

    fn has_other_names(&self, claim: &PathClaim) -> bool {
        let path = claim.target.as_deref().unwrap_or(&claim.path);
        let meta = self.outside.workspace.root().join(path).symlink_metadata();
        meta.is_ok_and(|meta| meta.is_file() && meta.nlink() > 1)
    }

    fn add_folder(&mut self, claim: &PathClaim, follows: bool) {
        let folder = folder_of(claim);
        let found = walk(self.outside, folder, follows);
        for secret in found.secrets {
            self.note(Permission::read(secret));
        }
        self.add_outward_links(claim, found.outward_links, found.more);
        let workspace = &self.outside.workspace;
        let own = workspace.hidden_inside().iter();
        let mut own = own.filter(|own| folder == "." || own.starts_with(folder));
        if own.any(|own| workspace.root().join(own).symlink_metadata().is_ok()) {
            self.note(unknown(&format!("haft's own files in {}", claim.path)));
        }
    }

    fn add_outward_links(&mut self, claim: &PathClaim, links: Vec<PathLocation>, more: bool) {
        for place in links {
            self.note(match place {
                PathLocation::Away(path) => Permission::read(outside_claim(&path)).at(Risk::High),
                PathLocation::Inside(..) | PathLocation::Unknown => unknown(&claim.path),
            });
        }
        if more {
            let value = format!("more files in {} than are looked at", claim.path);
            self.note(unknown(&value));
        }
    }

    /// Returns true if the entry is a link, or a folder that holds one, or more than can be searched.
    fn holds_link(&self, claim: &PathClaim, kind: Option<EntryKind>) -> bool {
        match kind {
            Some(EntryKind::Link) => true,
            Some(EntryKind::Directory) => holds_link(self.outside, &claim.path),
            _ => false,
        }
    }

    /// Adds the secrets that git tracks, because git shows changes of tracked files.
    fn add_tracked_secrets(&mut self) {
        let workspace = &self.outside.workspace;
        if workspace.root().join(".git").symlink_metadata().is_err() {
            return;
        }
        let Some(names) = index::tracked_files(workspace) else {
            return self.note(unknown("which files the repository tracks"));
        };
        let secret = workspace.secret_names();
        let names: Result<Vec<&str>, _> =
            names.iter().map(|name| std::str::from_utf8(name)).collect();
        let Ok(names) = names else {
            return self.note(unknown(
                "tracked files, one of which has a name that is not UTF-8",
            ));
        };
        let secrets = names.into_iter().filter(|name| secret.covers(name));
        let secrets: Vec<String> = secrets.map(str::to_owned).collect();
        for path in secrets.into_iter().take(MAX_EFFECTS) {
            self.note(Permission::read(PathClaim::plain(path)));
        }
    }
}

/// Returns the folder that a path leads to.
fn folder_of(claim: &PathClaim) -> &str {
    claim.target.as_deref().unwrap_or(&claim.path)
}

/// Returns the risk of changing a path. Git cannot restore its own data, so no rule that allows files covers that.
fn risk(claim: &PathClaim) -> Risk {
    let of_git = |path: &str| {
        let mut parts = path.split('/');
        parts.any(|part| part.to_ascii_lowercase().ends_with(".git"))
    };
    if of_git(&claim.path) || claim.target.as_deref().is_some_and(of_git) {
        Risk::Critical
    } else {
        Risk::High
    }
}
