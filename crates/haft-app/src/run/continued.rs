//! Links a run to the finished run that it continues, next to its record, so that what the earlier one read also counts in the later one;
//! and that one to the run that continues it, so that there is only one.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use haft::audit::runs::{self, RunsError};
use haft::budget::EffectCounts;
use haft::call::RunId;
use haft::untrusted::UntrustedSource;

use crate::plain_file;

/// The file in the run's folder, with the earlier run's id.
const FILE_NAME: &str = "continues";
/// The file in the earlier run's folder, with the later run's id.
const SUCCESSOR: &str = "continued-by";
/// Maximum size of these files, in bytes.
const MAX_FILE_BYTES: u64 = 4096;
/// Maximum number of earlier runs that are followed.
pub(crate) const MAX_CHAIN: usize = 1_000;

/// Stores the id of the continued run in the folder of this run's record.
pub(super) fn keep(folder: &Path, earlier: &RunId) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(folder.join(FILE_NAME))?;
    file.write_all(earlier.as_str().as_bytes())?;
    file.sync_all()
}

/// Returns the run that continues the finished run with this folder.
pub(crate) fn successor(folder: &Path) -> io::Result<Option<RunId>> {
    match plain_file::read(&folder.join(SUCCESSOR), MAX_FILE_BYTES) {
        Ok(later) => Ok(Some(RunId::new(later.trim()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Stores which run continues the finished run with this folder.
pub(crate) fn keep_successor(folder: &Path, later: &RunId) -> io::Result<()> {
    plain_file::write_private(&folder.join(SUCCESSOR), later.as_str())
}

/// Returns the budget use of a run and those that it continues. A run whose record is missing, and any before it, is not counted.
pub(super) fn uses(home: &Path, run: &RunId) -> Result<EffectCounts, RunsError> {
    let mut all = runs::uses(home, run.as_str())?;
    let mut at = run.clone();
    for _ in 0..MAX_CHAIN {
        let folder = runs::run_dir(home, at.as_str())?;
        let Ok(earlier) = plain_file::read(&folder.join(FILE_NAME), MAX_FILE_BYTES) else {
            break;
        };
        let earlier = RunId::new(earlier.trim());
        let Ok(more) = runs::uses(home, earlier.as_str()) else {
            break;
        };
        all = all.plus(more);
        at = earlier;
    }
    Ok(all)
}

/// Returns the sources that a run and those that it continues have read and that strangers may have written. A missing record, or one that
/// cannot be followed, counts as such a source itself.
pub(super) fn untrusted(home: &Path, run: &RunId) -> Result<Vec<UntrustedSource>, RunsError> {
    let mut all = runs::untrusted(home, run.as_str())?;
    let mut at = run.clone();
    for _ in 0..MAX_CHAIN {
        let folder = runs::run_dir(home, at.as_str())?;
        let earlier = match plain_file::read(&folder.join(FILE_NAME), MAX_FILE_BYTES) {
            Ok(earlier) => RunId::new(earlier.trim()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
            Err(_) => break,
        };
        let Ok(more) = runs::untrusted(home, earlier.as_str()) else {
            break;
        };
        all.extend(more);
        at = earlier;
    }
    all.push(UntrustedSource::recorded(
        "an earlier run whose record is gone",
    ));
    Ok(all)
}
