//! Which finished run a run goes on with: kept beside its record, so that what the earlier one has read counts in the later one, too.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use haft::audit::runs::{self, RunsError};
use haft::budget::Uses;
use haft::call::RunId;
use haft::untrusted::UntrustedSource;

use crate::plain_file;

/// The file in the run's folder: the earlier run's id.
const FILE: &str = "continues";
/// Most bytes of it.
const MOST: u64 = 4096;
/// Most runs that are followed back.
const LONGEST: usize = 1_000;

/// Keeps which run this one goes on with in the folder of its record.
pub(super) fn keep(folder: &Path, earlier: &RunId) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(folder.join(FILE))?;
    file.write_all(earlier.as_str().as_bytes())?;
    file.sync_all()
}

/// What a run and those that it goes on with have used of the budgets of effects. Of a record that is gone nothing is known.
pub(super) fn uses(home: &Path, run: &RunId) -> Result<Uses, RunsError> {
    let mut all = runs::uses(home, run.as_str())?;
    let mut at = run.clone();
    for _ in 0..LONGEST {
        let folder = runs::run_dir(home, at.as_str())?;
        let Ok(earlier) = plain_file::read(&folder.join(FILE), MOST) else {
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

/// What a run and those that it goes on with have read that strangers may have written. A record that is gone, or that cannot be
/// followed, counts as such a source itself.
pub(super) fn untrusted(home: &Path, run: &RunId) -> Result<Vec<UntrustedSource>, RunsError> {
    let mut all = runs::untrusted(home, run.as_str())?;
    let mut at = run.clone();
    for _ in 0..LONGEST {
        let folder = runs::run_dir(home, at.as_str())?;
        let earlier = match plain_file::read(&folder.join(FILE), MOST) {
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
