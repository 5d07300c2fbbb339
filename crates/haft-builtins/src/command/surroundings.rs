//! `CommandSurroundings`: what a command finds beside the workspace, its caches and the system's programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use haft_sandbox::{CommandSpec, Toolchains};

/// What settings and the user's toolchains add to every command. The default adds nothing.
#[derive(Debug, Clone, Default)]
pub struct CommandSurroundings {
    /// The user's toolchains, read-only and on `PATH`.
    pub toolchains: Arc<Toolchains>,
    /// Further absolute paths that are read.
    pub read: Vec<PathBuf>,
    /// Further absolute folders that commands may change, at once and without an approval of each change.
    pub write: Vec<PathBuf>,
    /// Folders of programs, first on `PATH`; those outside the system's are in `read`, too.
    pub path: Vec<PathBuf>,
    /// Variables; those of a call win.
    pub env: BTreeMap<String, String>,
}

impl CommandSurroundings {
    /// The folders beside the workspace that commands change, for a person.
    pub(super) fn changed(&self) -> Option<String> {
        let all: Vec<_> = self
            .write
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Adds them to a command.
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
