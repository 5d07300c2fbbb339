//! Commits of submodules that a repository gets: one that no branch of the submodule has was never judged.

use std::path::{Path, PathBuf};

use super::super::entries::MODE_SUBMODULE;
use super::super::history::exclusive;
use super::super::refs::{Refs, read_target};
use super::super::repository::RepositoryLayout;
use super::super::store::ObjectDatabase;
use super::super::tree::TreeFile;
use super::pointer_file::HEAD;
use super::{IncomingFile, IncomingReader, TOO_SLOW};
use crate::command::meaning::sides::{ChangeSides, Side};

/// Maximum size of a file that names a repository's folder, in bytes.
const MAX_POINTER: u64 = 8 << 10;
/// Maximum number of submodules that are looked into.
const MAX_SUBMODULES: usize = 1_000;

impl IncomingReader<'_> {
    /// Looks at the commits of submodules that are new: `git submodule update` checks out what is there, whatever leads to it.
    pub(super) fn read_submodules(&mut self) {
        let known = self.found.known.as_ref();
        let is_new = |one: &&IncomingFile| match one.file {
            Some(file @ (MODE_SUBMODULE, _)) => {
                known.is_none_or(|known| !known.is_recorded(&one.inner, file))
            }
            _ => false,
        };
        let mut doubts = Vec::new();
        let new = self.found.files.iter().filter(is_new);
        for one in new.take(MAX_SUBMODULES) {
            let is_unjudged = |place: &PathBuf| {
                let repository = repository_at(self.sides, place);
                let leads = |at: PathBuf| is_unreachable(self.sides, &at, one.file);
                !self.budget.is_over() && repository.is_some_and(leads)
            };
            if one.paths.iter().any(is_unjudged) {
                let shown = one.name_in_git();
                let why = format!("git stores a commit of {shown} that no branch there has");
                doubts.push((one.carrier.clone(), why));
            } else if self.budget.is_over() {
                doubts.push((one.carrier.clone(), TOO_SLOW.to_owned()));
                break;
            }
        }
        for (carrier, why) in doubts {
            self.doubt(&carrier, why);
        }
    }
}

/// Returns the repository's folder of the work tree at a path.
fn repository_at(sides: &ChangeSides<'_>, place: &Path) -> Option<PathBuf> {
    let git = place.join(".git");
    if sides.kind(Side::After, &git.join(HEAD)).is_some() {
        return Some(git);
    }
    let text = sides.read(Side::After, &git, MAX_POINTER)?;
    let text = String::from_utf8(text).ok()?;
    sides.named_in(place, text.strip_prefix("gitdir:")?.trim())
}

/// Whether a commit is in a repository, and neither a ref nor HEAD leads to it.
fn is_unreachable(sides: &ChangeSides<'_>, repository: &Path, file: Option<TreeFile>) -> bool {
    let layout = RepositoryLayout::read(sides, repository).ok();
    let Some(((_, id), layout)) = file.zip(layout) else {
        return false;
    };
    let store = ObjectDatabase::new(sides, repository, layout.incomplete);
    if store.commit(&id).is_err() {
        return false;
    }
    let Ok(refs) = Refs::read(sides, Side::After, repository) else {
        return true;
    };
    let mut roots = refs.ids();
    let head = read_target(sides, Side::After, &repository.join(HEAD));
    roots.extend(head.and_then(|head| refs.resolve(&head)));
    !exclusive(&store, &[id], &roots).commits.is_empty()
}
