//! The names of the tools of a run with restricted tools: stored next to its record, so that it is resumed with only these.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use haft::call::RunId;
use haft::toolset::Toolset;
use haft_builtins::skills::SKILL_TOOLS;

use crate::plain_file;
use crate::problem::Problem;

/// The file's name in the run's folder.
const FILE_NAME: &str = "tools.json";
/// Maximum size of the file, in bytes: a hundred thousand long names.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Stores the names of a run's tools in the folder of its record.
pub(super) fn keep<'n>(folder: &Path, names: impl Iterator<Item = &'n str>) -> io::Result<()> {
    let names = serde_json::to_vec(&names.collect::<Vec<_>>())?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(folder.join(FILE_NAME))?;
    file.write_all(&names)?;
    file.sync_all()
}

/// Returns the names of the tools that the run was restricted to, if it was.
pub(super) fn names_of(run: &RunId, folder: &Path) -> Result<Option<Vec<String>>, Problem> {
    names(folder).map_err(|e| {
        Problem::failed(format!("cannot read which tools run {run} has: {e}"))
            .advise("without that it cannot be resumed; deny its pending request")
    })
}

/// Returns the stored names; `None` if the run has all tools.
fn names(folder: &Path) -> io::Result<Option<Vec<String>>> {
    let text = match plain_file::read(&folder.join(FILE_NAME), MAX_FILE_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(serde_json::from_str(&text)?))
}

/// Returns whether any of these tools depends on skills.
pub(super) fn has_skills(tools: &dyn Toolset) -> bool {
    let tools = tools.snapshot();
    SKILL_TOOLS.iter().any(|name| tools.entry(name).is_some())
}
