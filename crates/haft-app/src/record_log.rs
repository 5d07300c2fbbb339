//! `RecordLog`: one log of all finished runs of a state folder, signed with a key outside of it, so that no record can be rewritten unseen.
//!
//! A run that finishes leaves a note in `log/pending`; one thread, off the path of calls, turns the notes into leaves of a Merkle tree,
//! signs its head and sends that to the anchor. What a kill interrupts, the next process does.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haft::audit::index::ClosedEvent;
use haft::audit::runs::{self, run_dir};
use haft::call::RunId;
use haft::clock;
use parking_lot::{Condvar, Mutex};

use crate::notices::Notices;
use crate::problem::Problem;
use crate::record_log::anchor::AnchorState;
use crate::record_log::folder::{LogFault, OpenLog};
use crate::record_log::leaf::RunLeaf;

mod anchor;
mod checkpoint;
mod file;
mod folder;
mod key;
mod leaf;
mod note;
mod pending;
mod seen;
mod status;
mod tree;
pub mod verify;

pub(crate) use anchor::{Anchor, AnchorService};
pub(crate) use folder::LogPlace;
pub use note::{InvalidVerifierKey, VerifierKey};
pub(crate) use status::LogStatus;

/// Maximum number of leaves that are written together.
const BATCH: usize = 1024;
/// Maximum number of runs whose ends are remembered while the log cannot be written; further ones are read from their records.
const MOST_KNOWN: usize = 10_000;
/// How long the thread waits for more to do before it ends.
const IDLE: Duration = Duration::from_secs(1);
/// How often it tries an anchor again that it did not reach; the pauses between attempts grow beyond that.
const RETRY: Duration = Duration::from_secs(15);
/// How long a process that ends waits for the leaves of its runs; what is left then, the next process does.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The log of a state folder.
#[derive(Debug, Clone)]
pub(crate) struct RecordLog(Arc<SharedLog>);

#[derive(Debug)]
struct SharedLog {
    settings: LogSettings,
    notices: Notices,
    work: Mutex<LogWork>,
    changed: Condvar,
}

/// Where the log lies, where its checkpoints go, and whether runs depend on it.
#[derive(Debug)]
pub(crate) struct LogSettings {
    pub(crate) place: LogPlace,
    pub(crate) anchor: Option<Anchor>,
    /// Whether runs of other machines are in the index, too: what it says of a run need not be about the record that is here.
    pub(crate) is_index_shared: bool,
    /// Whether no run starts while the log cannot be written.
    pub(crate) is_required: bool,
}

impl LogSettings {
    /// Returns whether an earlier process did not reach the anchor, and it is time to try again.
    fn is_anchor_behind(&self) -> bool {
        let state = || AnchorState::read(&self.place.folder());
        self.anchor.is_some() && state().is_retry_due(anchor::seconds(clock::now()))
    }
}

/// The thread that writes the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LogThread {
    /// There is none.
    #[default]
    None,
    /// It waits for something to do.
    Idle,
    /// It writes.
    Busy,
}

/// What is to be done, and by whom.
#[derive(Debug, Default)]
struct LogWork {
    /// How runs of this process were closed: what their records say by now need not be that.
    closed: HashMap<String, ClosedEvent>,
    is_wanted: bool,
    is_over: bool,
    thread: LogThread,
    /// Whether the anchor lacks the last checkpoint.
    is_unanchored: bool,
    /// Why the last attempt failed.
    fault: Option<String>,
}

impl RecordLog {
    /// Returns the log. What earlier processes left to do is done in the background.
    pub(crate) fn new(settings: LogSettings, notices: Notices) -> Self {
        let is_left = settings.place.pending().has_any() || settings.is_anchor_behind();
        let log = Self(Arc::new(SharedLog {
            settings,
            notices,
            work: Mutex::default(),
            changed: Condvar::new(),
        }));
        if is_left {
            log.want(None);
        }
        log
    }

    /// Notes that a run is about to be closed.
    pub(crate) fn closing(&self, run: &RunId) {
        if let Err(error) = self.0.settings.place.pending().note(run.as_str()) {
            tracing::warn!(%run, %error, "note that a finished run is to be logged");
        }
    }

    /// Has a closed run written to the log, in the background.
    pub(crate) fn closed(&self, run: &RunId, closed: &ClosedEvent) {
        self.want(Some((run, closed)));
    }

    fn want(&self, closed: Option<(&RunId, &ClosedEvent)>) {
        let mut work = self.0.work.lock();
        if let Some((run, closed)) = closed {
            work.closed.insert(run.to_string(), closed.clone());
        }
        work.is_wanted = true;
        if work.thread != LogThread::None {
            self.0.changed.notify_all();
            return;
        }
        let shared = Arc::clone(&self.0);
        let thread = thread::Builder::new().name("haft-log".into());
        match thread.spawn(move || shared.serve()) {
            Ok(_) => work.thread = LogThread::Idle,
            Err(error) => work.fault = Some(format!("cannot start a thread: {error}")),
        }
    }

    /// Refuses a run if it depends on the log and the log cannot be written.
    ///
    /// # Errors
    /// Why, and what mends it.
    pub(crate) async fn admit(&self) -> Result<(), Problem> {
        if !self.0.settings.is_required {
            return Ok(());
        }
        let place = self.0.settings.place.clone();
        let opened = tokio::task::spawn_blocking(move || {
            OpenLog::open(&place).map(drop).map_err(|fault| {
                let why = format!("no run starts, as record.on_fault says: {fault}");
                Problem::failed(why).advise(fault.advice(&place))
            })
        });
        opened.await.unwrap_or_else(|error| {
            Err(Problem::failed(format!(
                "cannot look at the record's log: {error}"
            )))
        })
    }

    /// Waits a little until everything that finished is in the log, and ends the thread.
    pub(crate) fn shut_down(&self) {
        let is_writing = |work: &LogWork| match work.thread {
            LogThread::None => false,
            LogThread::Idle => work.is_wanted,
            LogThread::Busy => true,
        };
        let end = Instant::now() + LAST_WAIT;
        let mut work = self.0.work.lock();
        while is_writing(&work) {
            if self.0.changed.wait_until(&mut work, end).timed_out() {
                break;
            }
        }
        work.is_over = true;
        self.0.changed.notify_all();
    }

    /// Returns the settings that it works by.
    pub(crate) fn settings(&self) -> &LogSettings {
        &self.0.settings
    }

    /// Writes what is pending now, makes the log if there is none, and returns the key by which its checkpoints are verified.
    ///
    /// # Errors
    /// Why the log cannot be written, and what mends it.
    pub(crate) fn verifier(&self) -> Result<VerifierKey, Problem> {
        let place = &self.0.settings.place;
        let opened = OpenLog::open(place).map(|log| log.verifier());
        opened.map_err(|fault| Problem::failed(fault.to_string()).advise(fault.advice(place)))
    }
}

impl SharedLog {
    /// Does what is wanted, until nothing more comes or the application ends.
    fn serve(self: &Arc<Self>) {
        let mut work = self.work.lock();
        loop {
            while !work.is_wanted && !work.is_over {
                let patience = if work.is_unanchored { RETRY } else { IDLE };
                let is_late = self.changed.wait_for(&mut work, patience).timed_out();
                // What is wanted in the very moment in which the wait ends counts, too.
                if !is_late || work.is_wanted || work.is_over {
                    continue;
                }
                // The next one who wants something starts a thread again; nobody does once the application is gone.
                if !work.is_unanchored || Arc::strong_count(self) == 1 {
                    work.thread = LogThread::None;
                    return;
                }
                work.is_wanted = true;
            }
            if work.is_over {
                return;
            }
            work.is_wanted = false;
            work.thread = LogThread::Busy;
            let mut closed = std::mem::take(&mut work.closed);
            drop(work);
            let done = self.write(&mut closed);
            let is_anchored = self.anchor();
            work = self.work.lock();
            work.thread = LogThread::Idle;
            work.is_unanchored = !is_anchored;
            if done.is_err() && work.closed.len() < MOST_KNOWN {
                work.closed.extend(closed);
            }
            self.note(&mut work, done.as_ref().err());
            self.changed.notify_all();
        }
    }

    /// Sends the last checkpoint to the anchor, and returns whether it is there.
    fn anchor(&self) -> bool {
        let LogSettings { place, anchor, .. } = &self.settings;
        let Some(anchor) = anchor else { return true };
        match folder::head(place) {
            Ok(Some(note)) => anchor.send(&place.folder(), &note),
            // There is nothing to send yet; why it cannot be read, writing has said.
            Ok(None) | Err(_) => true,
        }
    }

    /// Says what failed, once.
    fn note(&self, work: &mut LogWork, fault: Option<&LogFault>) {
        let told = fault.map(ToString::to_string);
        if told != work.fault
            && let (Some(fault), Some(told)) = (fault, &told)
        {
            if matches!(fault, LogFault::Changed(_)) {
                self.notices
                    .warn(&format!("{told}; {}", fault.advice(&self.settings.place)));
            } else {
                tracing::warn!("{told}");
            }
        }
        work.fault = told;
    }

    /// Writes the leaves of all pending runs that are closed.
    fn write(&self, closed: &mut HashMap<String, ClosedEvent>) -> Result<(), LogFault> {
        let place = &self.settings.place;
        let mut log = OpenLog::open(place)?;
        let pending = place.pending();
        let runs = pending.list()?;
        for batch in runs.chunks(BATCH) {
            let mut leaves = Vec::new();
            for run in batch {
                match self.leaf(run, closed.remove(run)) {
                    Some(leaf) => leaves.push(leaf),
                    None if !place.home.join("runs").join(run).exists() => {
                        pending.forget_if_old(run);
                    }
                    None => {}
                }
            }
            if leaves.is_empty() {
                continue;
            }
            log.append(&leaves)?;
            for leaf in &leaves {
                pending.forget(&leaf.run);
            }
        }
        Ok(())
    }

    /// Returns the leaf of a run; `None` while it is open. What this process knows of its end counts more than what is on disk now.
    fn leaf(&self, run: &str, known: Option<ClosedEvent>) -> Option<RunLeaf> {
        let dir = run_dir(&self.settings.place.home, run).ok()?;
        // A record that cannot be read stays pending; verifying the run says why.
        let found = runs::ending(&dir).ok().flatten();
        let leaf = |ended, closed| RunLeaf {
            run: run.to_owned(),
            ended,
            closed,
        };
        match (found, known) {
            (Some((ended, closed)), None) => Some(leaf(ended, closed)),
            (Some((ended, closed)), Some(known)) if closed == known => Some(leaf(ended, closed)),
            // It was changed within a moment; verifying says so.
            (_, Some(known)) => Some(leaf(clock::rfc3339(clock::now()), known)),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests;
