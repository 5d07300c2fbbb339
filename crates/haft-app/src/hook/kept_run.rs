//! `KeptRuns`: which runs a session of an agent has, kept so that a call made again finds what was decided about it. It is one run where
//! a server follows the session; hooks that judge by themselves at the same moment have one each.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use haft::approval::inbox::{Filter, Inbox, InboxError, RequestStatus, StoredApproval};
use haft::call::RunId;
use haft::text::hex;
use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::hook::key::Key;
use crate::plain_file;
use crate::run::{RunHandle, RunOptions};

/// The folder below haft's state folder.
const FOLDER: &str = "hooks";
/// How long a note may be of use: no request stands longer.
const STANDS: Duration = haft::approval::STANDS;
/// Most notes of sessions that are looked at for those that are of no use.
const MOST: usize = 4_096;
/// Most runs of a session that are known, the newest ones.
const MOST_RUNS: usize = 256;
/// Most runs that are tried to be resumed: what waits in an older one is found without.
const MOST_TRIED: usize = 4;
/// Most requests of a run that are looked at.
const MOST_REQUESTS: usize = 1_000;

/// The notes of a session's runs: a file each, which holds nothing and is named by the run.
#[derive(Debug)]
pub(super) struct KeptRuns {
    folder: PathBuf,
}

impl KeptRuns {
    /// The notes of this session in the application's folder.
    pub(super) fn of(app: &App, key: &Key) -> Self {
        let mut hasher = Sha256::new();
        let process = key.process.as_deref().unwrap_or_default();
        for part in [app.workspace(), key.agent.name(), &key.session, process] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let name = hex(&hasher.finalize());
        Self {
            folder: app.home().join(FOLDER).join(format!("{name}.runs")),
        }
    }

    /// The session's latest run that can be resumed; none where there is none.
    pub(super) async fn resume(&self, app: &App, options: &RunOptions) -> Option<RunHandle> {
        for run in self.runs().into_iter().take(MOST_TRIED) {
            // A call that was approved when its process ended may have run. In that run it would hear so for ever; made again, it is a new
            // one, and asked about anew.
            if has_claimed(app, &run).await {
                continue;
            }
            // One that is finished has nothing that waits; one that another process has goes on there.
            if let Ok(handle) = app.runs().resume(&run, 0, options.clone()).await {
                return Some(handle);
            }
        }
        None
    }

    /// Notes a run of the session. Without the note a call that is made again is asked about again.
    pub(super) fn note(&self, run: &RunId) {
        if let Some(all) = self.folder.parent() {
            remove_old(all);
        }
        let written = plain_file::private_folder(&self.folder)
            .and_then(|()| plain_file::write_private(&self.folder.join(run.as_str()), ""));
        if let Err(error) = written {
            tracing::warn!(%error, path = %self.folder.display(), "note the run of an agent's session");
        }
    }

    /// The run of the session in which this call was asked about before and is not answered yet: first one where a person has decided.
    /// None where there is none. In those that are `busy` it is another call that waits.
    ///
    /// # Errors
    /// The inbox cannot be read.
    pub(super) async fn asked_in(
        &self,
        app: &App,
        busy: &[RunId],
        call: SameCall<'_>,
    ) -> Result<Option<RunId>, InboxError> {
        let runs = self.runs();
        if runs.len() < 2 {
            // The inbox itself knows what was asked in the run that asks now.
            return Ok(None);
        }
        let inbox = &**app.executor().inbox();
        let mut best: Option<(u8, RunId)> = None;
        for run in runs {
            if busy.contains(&run) {
                continue;
            }
            let Some(rank) = rank_in(inbox, app, &run, call).await? else {
                continue;
            };
            if best.as_ref().is_none_or(|(known, _)| rank < *known) {
                best = Some((rank, run));
            }
        }
        Ok(best.map(|(_, run)| run))
    }

    /// Forgets a run that has ended if no call made again could find anything in it: hooks that judge by themselves have one run each, and
    /// each that is known is looked at by all that follow.
    pub(super) async fn forget_settled(&self, app: &App, run: &RunId) {
        if waits_in(app, run).await.is_ok_and(|waits| !waits) {
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
            Some((changed(&entry.path())?, RunId::new(name)))
        });
        let mut noted: Vec<_> = noted.collect();
        noted.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        let runs = noted.into_iter().map(|(_, run)| run);
        runs.take(MOST_RUNS).collect()
    }
}

/// What a call made again has in common with the one before.
#[derive(Debug, Clone, Copy)]
pub(super) struct SameCall<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: &'a str,
}

impl SameCall<'_> {
    fn is_of(&self, entry: &StoredApproval) -> bool {
        let request = &entry.request;
        request.tool.as_str() == self.tool && request.arguments == self.arguments
    }
}

/// How close the run's request about this call is to an answer, the closest being 0; none if the run has no such request.
async fn rank_in(
    inbox: &dyn Inbox,
    app: &App,
    run: &RunId,
    call: SameCall<'_>,
) -> Result<Option<u8>, InboxError> {
    let filter = Filter {
        tenant: app.principal().tenant.to_string(),
        run: Some(run.clone()),
        limit: MOST_REQUESTS,
        ..Filter::default()
    };
    let mut rank = None;
    let visit = |entry: StoredApproval| {
        let of_entry = match entry.status {
            RequestStatus::Approved if !entry.claimed => 0,
            RequestStatus::Denied if !entry.claimed => 1,
            // What another hook waits for is its own.
            RequestStatus::Pending if entry.is_open() && !entry.attended => 2,
            _ => return,
        };
        if call.is_of(&entry) && rank.is_none_or(|known| of_entry < known) {
            rank = Some(of_entry);
        }
    };
    haft::approval::listing::each(inbox, filter, visit).await?;
    Ok(rank)
}

/// Whether a request of this run waits for a decision, or for the call that it was made for.
async fn waits_in(app: &App, run: &RunId) -> Result<bool, InboxError> {
    let filter = Filter {
        tenant: app.principal().tenant.to_string(),
        run: Some(run.clone()),
        limit: MOST_REQUESTS,
        ..Filter::default()
    };
    let mut waits = false;
    let visit = |entry: StoredApproval| waits |= !entry.claimed;
    haft::approval::listing::each(&**app.executor().inbox(), filter, visit).await?;
    Ok(waits)
}

/// Whether calls of this run were approved of which it is not known how they ended.
async fn has_claimed(app: &App, run: &RunId) -> bool {
    let filter = Filter {
        tenant: app.principal().tenant.to_string(),
        status: vec![RequestStatus::Running, RequestStatus::InDoubt],
        run: Some(run.clone()),
        limit: 1,
        ..Filter::default()
    };
    let claimed = app.executor().inbox().list(&filter).await;
    claimed.is_ok_and(|claimed| !claimed.is_empty())
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata()
        .and_then(|meta| meta.modified())
        .ok()
}

/// Removes the notes of sessions that are of no use any more.
fn remove_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.take(MOST).flatten() {
        let path = entry.path();
        let age = changed(&path).and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > STANDS) {
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    }
}
