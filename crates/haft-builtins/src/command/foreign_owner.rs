//! Says why a command may not write where the user may: the workspace belongs to another user than haft's, such as a folder that is mounted
//! into a container in which haft runs as root.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::command::said_notes::OWNER_NOTE;
use crate::command::{CommandData, Commands};

/// What programs print where they may not write, in lower case.
const REFUSALS: [&str; 4] = [
    "permission denied",
    "operation not permitted",
    "eacces",
    "dubious ownership",
];

impl Commands {
    /// Returns the note on a command that failed with this output.
    pub(super) fn foreign_owner(&self, data: &CommandData) -> Option<String> {
        let owner = fs::metadata(self.workspace().root()).ok()?.uid();
        let own = rustix::process::geteuid().as_raw();
        let is_cause = self.jailed() && owner != own && (says(&data.stderr) || says(&data.stdout));
        is_cause.then(|| {
            format!(
                "{OWNER_NOTE} ({owner}) than haft ({own}). A command has no rights of root, so it sees these files as a stranger's and may \
                 not change them. Run haft as user {owner}, or give it a folder of its own"
            )
        })
    }
}

/// Whether a program says that it was refused.
fn says(output: &str) -> bool {
    let output = output.to_ascii_lowercase();
    REFUSALS.iter().any(|refusal| output.contains(refusal))
}
