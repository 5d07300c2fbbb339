//! The name of the agent's session that a run belongs to: stored next to its record, so that what a user allows for the session once the run
//! is resumed, by whichever process, holds in the session.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use haft::session::RunGroup;

use crate::plain_file;
use crate::session_group;

/// The file's name in the run's folder.
const FILE_NAME: &str = "session";
/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 256;

/// Stores the name in the folder of the run's record.
pub(super) fn keep(folder: &Path, group: &RunGroup) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(folder.join(FILE_NAME))?;
    file.write_all(group.name().as_bytes())
}

/// Returns the group of a run that is resumed. Without the file, what a user allows for the session holds in the run alone.
pub(super) fn read(home: &Path, folder: &Path) -> Option<Arc<RunGroup>> {
    let name = plain_file::read(&folder.join(FILE_NAME), MAX_FILE_BYTES).ok()?;
    session_group::named(home, &name)
}
