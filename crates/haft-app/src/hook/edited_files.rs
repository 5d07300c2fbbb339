//! `EditedFiles`: the files that an agent's own tool is about to change, saved before, so that the user can see and undo the change.

use std::path::{Path, PathBuf};

use haft::change::ForeignChange;
use haft::context::CallContext;
use haft::permission::{Effect, Permission};
use haft_builtins::outside::Outside;
use haft_hook::CallAction;

/// The files that a call of an agent edits, as they were before.
#[derive(Debug)]
pub(super) struct EditedFiles(Option<ForeignChange>);

impl EditedFiles {
    /// Saves the workspace's files that a call edits. If they cannot be saved, the agent may edit them all the same: haft does not make
    /// the change, and only cannot undo it.
    pub(super) async fn save(
        context: &CallContext,
        outside: &Outside,
        actions: &[CallAction],
    ) -> Self {
        let paths = edited_paths(actions, context.judgement().permissions());
        if paths.is_empty() {
            return Self(None);
        }
        let changer = context.changer(outside.workspace());
        let saved = tokio::task::spawn_blocking(move || changer.foreign_change(&paths)).await;
        match saved {
            Ok(Ok(change)) => return Self(Some(change)),
            Ok(Err(error)) => tracing::warn!(%error, "save what an agent is about to edit"),
            Err(error) => tracing::warn!(%error, "save what an agent is about to edit"),
        }
        Self(None)
    }

    /// Records what is different now.
    pub(super) async fn record(self) {
        let Some(change) = self.0 else { return };
        match tokio::task::spawn_blocking(move || change.record()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "record what an agent edited"),
            Err(error) => tracing::warn!(%error, "record what an agent edited"),
        }
    }
}

/// Returns the paths in the workspace that a call edits, through links. A command may change more than it names, so it counts as editing
/// nothing.
fn edited_paths(actions: &[CallAction], permissions: &[Permission]) -> Vec<PathBuf> {
    let is_edit = |action: &CallAction| matches!(action, CallAction::Edit { .. });
    if !actions.iter().all(is_edit) {
        return Vec::new();
    }
    let changed = permissions.iter().filter_map(|permission| {
        let (Effect::Write(claim) | Effect::Remove(claim)) = &permission.effect else {
            return None;
        };
        let real = claim.target.as_ref().unwrap_or(&claim.path);
        Path::new(real).is_relative().then(|| PathBuf::from(real))
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use haft::permission::{PathClaim, Permission};
    use haft_hook::{AgentCommand, CallAction, EditKind};

    use super::edited_paths;

    #[test]
    fn edited_paths_are_those_in_the_workspace_of_calls_that_only_edit() {
        let edit = || CallAction::Edit {
            path: "a".into(),
            change: EditKind::Write,
        };
        let command = || CallAction::Command(AgentCommand::default());
        let linked = PathClaim {
            target: Some("real/b".into()),
            ..PathClaim::plain("b")
        };
        let permissions = [
            Permission::write(PathClaim::plain("a")),
            Permission::write(linked),
            Permission::remove(PathClaim::plain("c")),
            Permission::write(PathClaim::plain("/etc/hosts")),
            Permission::read(PathClaim::plain("d")),
        ];
        for (actions, expect) in [
            (vec![edit()], &["a", "real/b", "c"][..]),
            (vec![edit(), command()], &[]),
            (vec![command()], &[]),
        ] {
            let found = edited_paths(&actions, &permissions);
            let expect: Vec<_> = expect.iter().map(std::path::PathBuf::from).collect();
            assert_eq!(found, expect, "{actions:?}");
        }
    }
}
