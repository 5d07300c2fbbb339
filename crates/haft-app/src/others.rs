//! Runs of other processes that share the database: passes their changes in the index on to the clients that watch this one.

use std::collections::HashMap;
use std::time::Duration;

use haft::audit::index::{RunFilter, RunState};
use haft::call::RunId;
use haft::clock;

use crate::app::App;

/// How often the index is read for changes by other processes, while there are watchers.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Nanoseconds by which the clocks of processes that share a database may differ, plus the time that a note may take.
const CLOCK_TOLERANCE: i128 = 5_000_000_000;
/// Maximum number of changed runs of other processes per read.
const MAX_RUNS: u32 = 200;

/// Tells watchers about the runs of other processes in the index, until the future is dropped.
pub async fn follow_other_processes(app: App) {
    let mut since = clock::now();
    let mut known: HashMap<RunId, (RunState, u64)> = HashMap::new();
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        if !app.feed().has_watchers() {
            since = clock::now();
            known.clear();
            continue;
        }
        let filter = RunFilter {
            noted_since: Some(since - CLOCK_TOLERANCE),
            ..RunFilter::newest(MAX_RUNS)
        };
        let now = clock::now();
        let entries = match app.index().list(&filter).await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::debug!(%error, "look for runs of other processes");
                continue;
            }
        };
        since = now;
        let mut seen = HashMap::with_capacity(entries.len());
        for entry in entries {
            let ended: u64 = entry
                .notes
                .iter()
                .flat_map(|notes| notes.statuses.values())
                .sum();
            let is = (entry.state, ended);
            let is_own = app.runs().session(&entry.run).is_some();
            if !is_own && known.get(&entry.run) != Some(&is) {
                app.feed().changed(entry.run.clone(), entry.state);
            }
            seen.insert(entry.run, is);
        }
        known = seen;
    }
}
