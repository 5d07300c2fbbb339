//! `OwnProgram`: no call changes the program that judges it.

use std::path::{Path, PathBuf};

use crate::guards::{Guard, MinimumVerdict, OwnFiles, both_paths};
use crate::judged_call::JudgedCall;
use haft_types::permission::{Effect, Permission};
use haft_types::text::visible;

/// Denies changes to the host's own program where it lies in a folder that tools change, and to the folders above it: what replaces it
/// would run outside of any jail the next time. No rule and no approval allows them. Reading is not its matter.
#[derive(Debug, Clone, Default)]
pub struct OwnProgram {
    files: OwnFiles,
    links: OwnFiles,
}

impl OwnProgram {
    /// Creates a guard for files and folders of the program, and for links that lead to it. Paths are absolute.
    pub fn new(
        files: impl IntoIterator<Item = PathBuf>,
        links: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        Self {
            files: OwnFiles::new(files),
            links: OwnFiles::new(links),
        }
    }

    /// Sets the workspace's root, so that the guard also matches the relative form of a path within it.
    #[must_use]
    pub fn in_workspace(self, root: &Path) -> Self {
        Self {
            files: self.files.in_workspace(root),
            links: self.links.in_workspace(root),
        }
    }

    /// Whether changing this path would change the program, or what is started by its name.
    fn covers(&self, path: &str) -> bool {
        self.files.covers(path) || self.files.lies_in(path) || self.links.lies_in(path)
    }
}

impl Guard for OwnProgram {
    fn name(&self) -> &'static str {
        "own-program"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        effect.changed_path().is_some()
    }

    fn floor(
        &self,
        _call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        let claim = permission.effect.changed_path();
        let path = claim.and_then(|claim| both_paths(claim).find(|path| self.covers(path)));
        Ok(path.map_or(MinimumVerdict::NONE, |path| {
            let path = visible::path(path);
            MinimumVerdict::deny(format!("{path} is, or holds, haft's own program"))
                .advise("leave it as it is: only the user installs and removes haft")
                .for_operator("install haft outside of projects")
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::OwnProgram;

    #[test]
    fn a_guard_covers_the_program_its_package_and_the_folders_above() {
        let files = ["/ws/.venv/bin/haft", "/ws/.venv/lib/h.dist-info"].map(PathBuf::from);
        let links = ["/ws/env"].map(PathBuf::from);
        let guard = OwnProgram::new(files, links).in_workspace(Path::new("/ws"));
        for (path, expect) in [
            (".venv/bin/haft", true),
            (".venv/bin", true),
            (".venv", true),
            (".", true),
            (".venv/bin/python", false),
            (".venv/lib/h.dist-info/RECORD", true),
            (".venv/lib/other", false),
            ("env", true),
            ("env/lib/x", false),
            ("env2", false),
            ("/ws/.venv/bin/haft", true),
            ("/elsewhere", false),
        ] {
            assert_eq!(guard.covers(path), expect, "{path}");
        }
    }
}
