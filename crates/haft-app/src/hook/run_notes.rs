//! `SessionRunNotes`: notes on disk of which runs a session of an agent has, so that a call made again finds what was decided about it. Where a
//! server follows the session that is one run as a rule; hooks that judge by themselves at the same time have one each.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use haft::approval::inbox::{InboxError, RequestFilter, RequestStatus, StoredApproval};
use haft::call::RunId;
use haft::text::hex;
use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::hook::key::SessionKey;
use crate::hook::open_call::CallKey;
use crate::plain_file;
use crate::run::{RunHandle, RunOptions};
use crate::session_group;

/// How long a note is kept: as long as a request can be pending.
const LIFETIME: Duration = haft::approval::STANDS;
/// Maximum number of notes that are read at a time, of one session or of all.
const MOST: usize = 4_096;
/// Maximum number of runs per session that are considered, the newest first.
const MOST_RUNS: usize = 256;
/// Maximum number of runs that haft tries to resume. A request in an older run is found without that.
const MOST_TRIED: usize = 4;
/// Maximum number of requests per run that are read.
const MOST_REQUESTS: usize = 1_000;

/// The notes of a session's runs: for each run an empty file with the run's id as its name.
#[derive(Debug)]
pub(super) struct SessionRunNotes {
    folder: PathBuf,
}

impl SessionRunNotes {
    /// The notes about this session, in the folder's application.
    pub(super) fn of(app: &App, key: &SessionKey) -> Self {
        let mut hasher = Sha256::new();
        let process = key.process.as_deref().unwrap_or_default();
        for part in [app.workspace(), key.agent.name(), &key.session, process] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let name = hex(&hasher.finalize());
        Self {
            folder: session_group::file(app.home(), &name, "runs"),
        }
    }

    /// Resumes the session's latest run that can be resumed, if any.
    pub(super) async fn resume(&self, app: &App, options: &RunOptions) -> Option<RunHandle> {
        for run in self.runs().into_iter().take(MOST_TRIED) {
            // A call that was approved when its process ended may have run, and in that run it would always be answered so. In another run
            // it is a new call, and asked about again.
            let unsettled = [RequestStatus::Running, RequestStatus::InDoubt];
            let claimed = pick_requests(app, &run, &unsettled, |_| Some(())).await;
            if claimed.is_ok_and(|claimed| !claimed.is_empty()) {
                continue;
            }
            // A finished run cannot be resumed, nor one that another process has open.
            if let Ok(handle) = app.runs().resume(&run, 0, options.clone()).await {
                return Some(handle);
            }
        }
        None
    }

    /// Notes a run of the session. Without the note, a call that is made again is asked about again.
    pub(super) fn add(&self, run: &RunId) {
        if let Some(all) = self.folder.parent() {
            remove_old(all);
        }
        let written = plain_file::private_folder(&self.folder)
            .and_then(|()| plain_file::write_private(&self.folder.join(run.as_str()), ""));
        if let Err(error) = written {
            tracing::warn!(%error, path = %self.folder.display(), "note the run of an agent's session");
        }
    }

    /// Finds the run of the session with a request about this call that can still answer it, preferably one that is decided. In the `busy`
    /// runs the request belongs to another call.
    ///
    /// # Errors
    /// The inbox cannot be read.
    pub(super) async fn find_request(
        &self,
        app: &App,
        busy: &[RunId],
        call: CallKey<'_>,
    ) -> Result<Option<RunId>, InboxError> {
        let runs = self.runs();
        if runs.len() < 2 {
            // The executor finds the requests of the run that asks now.
            return Ok(None);
        }
        let mut best: Option<(u8, RunId)> = None;
        for run in runs {
            if busy.contains(&run) {
                continue;
            }
            let pick = |entry: &StoredApproval| rank(entry).filter(|_| is_about(entry, call));
            let ranks = pick_requests(app, &run, &[], pick).await?;
            let Some(rank) = ranks.into_iter().min() else {
                continue;
            };
            if best.as_ref().is_none_or(|(known, _)| rank < *known) {
                best = Some((rank, run));
            }
        }
        Ok(best.map(|(_, run)| run))
    }

    /// Forgets a run that has ended, unless it has a request that a call made again could find. Hooks that judge by themselves have a run
    /// each, and each hook reads the requests of all noted runs.
    pub(super) async fn forget_settled(&self, app: &App, run: &RunId) {
        let unclaimed = |entry: &StoredApproval| (!entry.claimed).then_some(());
        let unclaimed = pick_requests(app, run, &[], unclaimed).await;
        if unclaimed.is_ok_and(|unclaimed| unclaimed.is_empty()) {
            let _ = fs::remove_file(self.folder.join(run.as_str()));
        }
    }

    /// The session's runs, the newest first.
    fn runs(&self) -> Vec<RunId> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let noted = entries.take(MOST).flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((time_of(&entry.path())?, RunId::new(name)))
        });
        let mut noted: Vec<_> = noted.collect();
        noted.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        let runs = noted.into_iter().map(|(_, run)| run);
        runs.take(MOST_RUNS).collect()
    }
}

/// How close a request is to an answer for a call that is made again, 0 being the closest; `None` if it cannot answer one.
fn rank(entry: &StoredApproval) -> Option<u8> {
    match entry.status {
        RequestStatus::Approved if !entry.claimed => Some(0),
        RequestStatus::Denied if !entry.claimed => Some(1),
        // A request that another hook waits for is that hook's own.
        RequestStatus::Pending if entry.is_open() && !entry.attended => Some(2),
        _ => None,
    }
}

fn is_about(entry: &StoredApproval, call: CallKey<'_>) -> bool {
    let request = &entry.request;
    request.tool.as_str() == call.tool && request.arguments == call.arguments
}

/// Returns what `pick` returns for the requests of a run that have one of these statuses, or any status if the list is empty.
///
/// # Errors
/// The inbox cannot be read.
async fn pick_requests<T>(
    app: &App,
    run: &RunId,
    status: &[RequestStatus],
    pick: impl Fn(&StoredApproval) -> Option<T>,
) -> Result<Vec<T>, InboxError> {
    let filter = RequestFilter {
        tenant: app.principal().tenant.to_string(),
        status: status.to_vec(),
        run: Some(run.clone()),
        limit: MOST_REQUESTS,
        ..RequestFilter::default()
    };
    let mut picked = Vec::new();
    let visit = |entry: StoredApproval| picked.extend(pick(&entry));
    haft::approval::listing::each(&**app.executor().inbox(), filter, visit).await?;
    Ok(picked)
}

/// When a note was last written.
fn time_of(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata()
        .and_then(|meta| meta.modified())
        .ok()
}

/// Removes the notes that have outlived every request of their session.
fn remove_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.take(MOST).flatten() {
        let path = entry.path();
        let age = time_of(&path).and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > LIFETIME) {
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    }
}
