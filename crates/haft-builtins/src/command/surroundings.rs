//! `CommandSurroundings`: what a command can see besides the workspace, its caches and the system's programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use haft_sandbox::{CommandSpec, Toolchains};

/// The additions of the settings and the user's toolchains to every command. The default adds nothing.
#[derive(Debug, Clone, Default)]
pub struct CommandSurroundings {
    /// The user's toolchains, read-only and on `PATH`.
    pub toolchains: Arc<Toolchains>,
    /// Additional absolute paths that commands may read.
    pub read: Vec<PathBuf>,
    /// Additional absolute folders that commands may change, immediately and without approval of each change.
    pub write: Vec<PathBuf>,
    /// Program folders, first on `PATH`. Those outside the system's folders are in `read` too.
    pub path: Vec<PathBuf>,
    /// Environment variables; those of a call take precedence.
    pub env: BTreeMap<String, String>,
}

impl CommandSurroundings {
    /// Lists the folders outside the workspace that commands may change, for the user.
    pub(super) fn changed(&self) -> Option<String> {
        let all: Vec<_> = self
            .write
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Adds the surroundings to a command.
    pub fn add_to(&self, spec: &mut CommandSpec) {
        spec.mounts.toolchains = Some(Arc::clone(&self.toolchains));
        spec.mounts.read_only.extend(self.read.iter().cloned());
        spec.mounts.read_write.extend(self.write.iter().cloned());
        spec.path_first.extend(self.path.iter().cloned());
        for (name, value) in &self.env {
            spec.env.entry(name.into()).or_insert(value.into());
        }
    }
}
