//! The permissions of a command's changes: each is judged as a file tool's write or deletion would be.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use haft::change::State;
use haft::change::collect::ViewChange;
use haft::permission::{PathClaim, Permission};
use haft::policy::protected_from_commands;
use haft::spec::Risk;
use haft::workspace::Workspace;

use crate::command::changes::ignored::Ignored;
use crate::command::git_changes::extra_protected;
use crate::command::lexical::{cleaned, climbs};

/// Where programs of the system lie, which a link may name: who runs haft cannot change them.
const SYSTEM: [&str; 4] = ["/usr/", "/bin/", "/lib/", "/lib64/"];

/// How the changes of one command are judged.
pub(super) struct Effects<'a> {
    root: &'a Path,
    /// None where every file is asked about.
    ignored: Option<Ignored>,
    /// The command was approved before it ran.
    approved: bool,
    /// What is protected, whatever its name.
    protected: BTreeSet<String>,
    seen: HashMap<PathBuf, bool>,
}

impl<'a> Effects<'a> {
    pub(super) fn new(workspace: &'a Workspace, approved: bool, ask_ignored: bool) -> Self {
        Self {
            root: workspace.root(),
            ignored: (!ask_ignored && !approved)
                .then(|| Ignored::of(workspace))
                .flatten(),
            approved,
            protected: BTreeSet::new(),
            seen: HashMap::new(),
        }
    }

    /// The same for the changes of these paths: settings of repositories among them are protected.
    pub(super) fn with_repositories(
        mut self,
        workspace: &Workspace,
        changes: &[ViewChange],
    ) -> Self {
        let paths: Vec<_> = changes
            .iter()
            .map(|change| change.path.to_string_lossy())
            .collect();
        let found = extra_protected(workspace, paths.iter().map(|path| &**path));
        self.protected = found.into_iter().collect();
        self
    }

    /// What applying a change would do. It is safe where the command was approved and for what git ignores: then rules
    /// and guards alone speak of it.
    pub(super) fn of(&mut self, change: &ViewChange) -> Permission {
        let path = &change.path;
        let claim = PathClaim {
            path: path.to_string_lossy().into_owned(),
            target: self.target(change),
        };
        let mut permission = match change.after {
            None => Permission::remove(claim),
            Some(_) => Permission::write(claim),
        };
        let states = [&change.before, &change.after].into_iter().flatten();
        let seen = &mut self.seen;
        let ignored = self.ignored.as_ref().is_some_and(|ignored| {
            // What is lost and what comes are both ignored.
            let mut kinds = states.map(|state| matches!(state, State::Folder { .. }));
            kinds.all(|folder| ignored.covers(path, folder, seen))
        });
        if self.approved || ignored {
            permission.risk = Risk::Safe;
        }
        if self.is_protected(&permission) {
            // Neither a profile nor an approval of the command lets it pass.
            permission.risk = Risk::Critical;
        }
        permission
    }

    fn is_protected(&self, permission: &Permission) -> bool {
        let Some(claim) = permission.effect.changed_path() else {
            return false;
        };
        let protected = |path: &String| protected_from_commands(path).is_some();
        protected(&claim.path)
            || claim.target.as_ref().is_some_and(protected)
            || self.protected.contains(&claim.path)
    }

    /// Where a new link leads, when rules may have something to say about that.
    fn target(&self, change: &ViewChange) -> Option<String> {
        let Some(State::Link { target }) = &change.after else {
            return None;
        };
        let folder = change.path.parent().unwrap_or(Path::new(""));
        if climbs(&target.0) {
            // Where it leads depends on other links; its text does not tell.
            let whole = self.root.join(folder).join(&target.0);
            return Some(whole.to_string_lossy().into_owned());
        }
        let whole = cleaned(&self.root.join(folder).join(&target.0));
        let text = match whole.strip_prefix(self.root) {
            Ok(inside) if inside == Path::new("") => ".".to_owned(),
            Ok(inside) => inside.to_string_lossy().into_owned(),
            Err(_) => whole.to_string_lossy().into_owned(),
        };
        let system = SYSTEM.iter().any(|folder| text.starts_with(folder));
        (!system).then_some(text)
    }
}
