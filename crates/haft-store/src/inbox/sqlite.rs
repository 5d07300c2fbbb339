//! `SqliteInbox`: the waiting calls in haft's own database file, which several processes share.
//!
//! A change that arrives alone is made on the caller's thread: handing it to another thread and back costs as much as the disk.
//! Concurrent changes go to a dedicated thread, which makes all queued ones in one transaction (group commit) and answers when
//! it is on disk. Another thread reads and, while there are listeners, looks for changes by other processes.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use haft::approval::inbox::{
    InboxError, RequestEnding, RequestFilter, StoredApproval, Submission, WaitingCalls,
    WaitingLimits,
};
use haft::approval::review::Review;
use haft::approval::suspended::{CollectedCall, SuspendedCall, SuspendedEntry};
use haft::approval::{ApprovalId, ApprovalRequest, Decision};
use haft::call::{CallId, RunId};
use haft::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{broadcast, oneshot};

use crate::blocking::may_block;
use crate::inbox::{CapacityCheck, DecisionRow, ReviewChange, unavailable};
use crate::lane::{JobLane, Jobs};
use crate::lease::Lease;
use crate::request_changes;
use crate::request_draft::RequestDraft;
use crate::sqlite::file::FILE;

mod beat;
mod read;
mod steps;
mod write;

use read::ReadJob;
use steps::callers::{CallerChange, CallerName};
use steps::{InboxChange, InboxChangeResult};
use write::{InboxWriter, WriteJob};

/// Approval requests in `haft.db`, and the calls that wait for them.
#[derive(Debug)]
pub struct SqliteInbox {
    shared: Arc<SharedInbox>,
    writes: JobLane<WriteJob>,
    reads: JobLane<ReadJob>,
}

/// State that the inbox shares with its threads.
#[derive(Debug)]
struct SharedInbox {
    path: PathBuf,
    lease: Lease,
    /// The writer, used by whichever thread holds the lock.
    writer: Mutex<InboxWriter>,
    /// Number of changes in progress or queued.
    under_way: AtomicUsize,
    changes: broadcast::Sender<ApprovalId>,
    /// Changes that this inbox made and already reported, kept while there are listeners.
    reported: Mutex<OwnChanges>,
    /// Number of requests that this process attends or runs: while there are any, it polls for others' decisions more often.
    held: AtomicUsize,
}

/// How an inbox recognizes its own changes.
#[derive(Debug, Default)]
struct OwnChanges {
    /// Rows that it wrote.
    rows: BTreeSet<i64>,
    /// Numbers of its transactions.
    numbers: BTreeSet<i64>,
}

impl OwnChanges {
    fn add(&mut self, rows: &[i64], number: Option<i64>) {
        self.rows.extend(rows);
        self.numbers.extend(number);
    }

    fn remove(&mut self, rows: &[i64], number: Option<i64>) {
        self.rows.retain(|row| !rows.contains(row));
        self.numbers.retain(|known| Some(*known) != number);
    }
}

impl SqliteInbox {
    /// Creates the inbox in `haft.db` in `home`; does not create or open the file yet.
    pub fn new(home: &Path) -> Self {
        Self::at(home.join(FILE))
    }

    /// Creates the inbox in a database file with any name.
    pub fn at(path: PathBuf) -> Self {
        Self::of(path, Lease::default())
    }

    /// Sets another lease; for an inbox that has not been used yet.
    pub fn with_lease(self, lease: Lease) -> Self {
        Self::of(self.shared.path.clone(), lease)
    }

    fn of(path: PathBuf, lease: Lease) -> Self {
        Self {
            shared: Arc::new(SharedInbox {
                writer: Mutex::new(InboxWriter::new(&path, lease)),
                under_way: AtomicUsize::new(0),
                path,
                lease,
                changes: request_changes::new_sender(),
                reported: Mutex::default(),
                held: AtomicUsize::new(0),
            }),
            writes: JobLane::new(),
            reads: JobLane::new(),
        }
    }

    /// Ends the threads once the queue is done; later operations start new ones. Dropping without it loses nothing.
    pub async fn shut_down(&self) {
        let (done, heard) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        let leave = self
            .writes
            .send_at_once(WriteJob::Leave(done), |jobs| write_thread(shared, jobs));
        if leave.is_ok() {
            let _ = heard.await;
        }
        self.writes.end();
        self.reads.end();
    }

    async fn write(
        &self,
        step: InboxChange,
        bytes: usize,
    ) -> Result<InboxChangeResult, InboxError> {
        let (turn, alone) = ChangeTicket::take(&self.shared);
        if alone
            && may_block()
            && let Some(result) = self.try_immediately(&step)
        {
            return result;
        }
        let (answer, heard) = oneshot::channel();
        let job = WriteJob::Step { step, answer, turn };
        let shared = Arc::clone(&self.shared);
        let given = self
            .writes
            .give(job, bytes, move |jobs| write_thread(shared, jobs));
        given.await.map_err(unavailable)?;
        heard.await.map_err(|_| thread_ended())?
    }

    /// Makes a change that has the queue to itself; `None` if more are likely to come beside it.
    fn try_immediately(&self, step: &InboxChange) -> Option<Result<InboxChangeResult, InboxError>> {
        let mut writer = self.shared.writer.try_lock()?;
        if writer.was_batched() {
            return None;
        }
        let results =
            tokio::task::block_in_place(|| writer.run_batch(&self.shared, from_ref(step)));
        if writer.needs_wake_up() {
            let shared = Arc::clone(&self.shared);
            let start = |jobs| write_thread(shared, jobs);
            // If the thread cannot start, others notice within seconds that this process has stopped renewing its lease.
            writer.wakes(self.writes.send_at_once(WriteJob::Wake, start).is_ok());
        }
        results.into_iter().next()
    }

    async fn read<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, InboxError>>) -> ReadJob,
    ) -> Result<T, InboxError> {
        let (answer, heard) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        let given = self
            .reads
            .give(job(answer), 0, move |jobs| read_thread(shared, jobs));
        given.await.map_err(unavailable)?;
        heard.await.map_err(|_| thread_ended())?
    }

    /// Marks what has expired, when there is time.
    fn sweep(&self, tenant: &str) {
        let step = InboxChange::Sweep(tenant.to_owned());
        let answer = oneshot::channel().0;
        let (turn, _) = ChangeTicket::take(&self.shared);
        self.writes.offer(WriteJob::Step { step, answer, turn });
    }

    async fn write_one(
        &self,
        step: InboxChange,
        bytes: usize,
    ) -> Result<StoredApproval, InboxError> {
        match self.write(step, bytes).await? {
            InboxChangeResult::Entry(entry) => Ok(*entry),
            _ => Err(thread_ended()),
        }
    }
}

/// A change in progress or queued. The next one runs on its caller's thread only when there is none, which keeps them in order.
#[derive(Debug)]
struct ChangeTicket(Arc<SharedInbox>);

impl ChangeTicket {
    /// Adds one; also returns whether it is the only one.
    fn take(shared: &Arc<SharedInbox>) -> (Self, bool) {
        let others = shared.under_way.fetch_add(1, Ordering::AcqRel);
        (Self(Arc::clone(shared)), others == 0)
    }
}

impl Drop for ChangeTicket {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

fn write_thread(shared: Arc<SharedInbox>, jobs: Jobs<WriteJob>) -> io::Result<()> {
    let thread = thread::Builder::new().name("haft-inbox-write".to_owned());
    thread.spawn(move || write::run(&shared, &jobs)).map(drop)
}

fn read_thread(shared: Arc<SharedInbox>, jobs: Jobs<ReadJob>) -> io::Result<()> {
    let thread = thread::Builder::new().name("haft-inbox-read".to_owned());
    thread.spawn(move || read::run(&shared, &jobs)).map(drop)
}

fn thread_ended() -> InboxError {
    unavailable("its thread ended")
}

impl WaitingCalls for SqliteInbox {
    fn is_durable(&self) -> bool {
        true
    }

    fn submit<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> BoxFuture<'a, Result<Submission, InboxError>> {
        Box::pin(async move {
            let draft = RequestDraft::of(request)?;
            let bytes = draft.request.len();
            match self
                .write(InboxChange::File(Box::new(draft)), bytes)
                .await?
            {
                InboxChangeResult::Done => Ok(Submission::New),
                InboxChangeResult::Entry(entry) => Ok(Submission::Existing(entry)),
                InboxChangeResult::First(_) | InboxChangeResult::Collected(_) => {
                    Err(thread_ended())
                }
            }
        })
    }

    fn has_room<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        limits: WaitingLimits,
    ) -> BoxFuture<'a, Result<bool, InboxError>> {
        Box::pin(async move {
            let room = CapacityCheck::of(request, limits);
            self.read(|answer| ReadJob::Room(room, answer)).await
        })
    }

    fn get<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>> {
        Box::pin(async move {
            self.read(|answer| ReadJob::Get(id.to_string(), answer))
                .await
        })
    }

    fn find<'a>(
        &'a self,
        run: &'a RunId,
        fingerprint: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>> {
        let (run, fingerprint) = (run.to_string(), fingerprint.to_owned());
        Box::pin(async move {
            self.read(|answer| ReadJob::Find(run, fingerprint, answer))
                .await
        })
    }

    fn list<'a>(
        &'a self,
        filter: &'a RequestFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, InboxError>> {
        Box::pin(async move {
            let listed = self.read(|answer| ReadJob::List(filter.clone(), answer));
            let (entries, stale) = listed.await?;
            if stale {
                self.sweep(&filter.tenant);
            }
            Ok(entries)
        })
    }

    fn decide<'a>(
        &'a self,
        id: &'a ApprovalId,
        decision: &'a Decision,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>> {
        Box::pin(async move {
            let verdict = DecisionRow::of(decision)?;
            let bytes = verdict.json.len();
            self.write_one(InboxChange::Decide(id.clone(), verdict), bytes)
                .await
        })
    }

    fn claim<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>> {
        Box::pin(self.write_one(InboxChange::Claim(id.clone()), 0))
    }

    fn finish<'a>(
        &'a self,
        id: &'a ApprovalId,
        outcome: &'a str,
        delivered: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let step = InboxChange::Finish {
            id: id.clone(),
            outcome: outcome.to_owned(),
            delivered,
        };
        Box::pin(async move { self.write(step, outcome.len()).await.map(drop) })
    }

    fn deliver<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<bool, InboxError>> {
        Box::pin(async move {
            let result = self.write(InboxChange::Deliver(id.clone()), 0).await?;
            Ok(matches!(result, InboxChangeResult::First(true)))
        })
    }

    fn set_attended<'a>(
        &'a self,
        id: &'a ApprovalId,
        attended: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let step = InboxChange::Attend(id.clone(), attended);
        Box::pin(async move { self.write(step, 0).await.map(drop) })
    }

    fn end<'a>(
        &'a self,
        id: &'a ApprovalId,
        ending: RequestEnding,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let step = InboxChange::End(id.clone(), ending, why.to_owned());
        Box::pin(async move { self.write(step, why.len()).await.map(drop) })
    }

    fn set_review<'a>(
        &'a self,
        id: &'a ApprovalId,
        was: Option<&'a Review>,
        now: &'a Review,
    ) -> BoxFuture<'a, Result<bool, InboxError>> {
        Box::pin(async move {
            let change = ReviewChange::of(was, now)?;
            let bytes = change.now.len();
            let step = InboxChange::Review(id.clone(), change);
            let result = self.write(step, bytes).await?;
            Ok(matches!(result, InboxChangeResult::First(true)))
        })
    }

    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), InboxError>> {
        let change = CallerChange::Suspend(call.clone());
        Box::pin(async move { self.write(InboxChange::Caller(change), 0).await.map(drop) })
    }

    fn find_suspended<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedEntry>, InboxError>> {
        let key = key.to_owned();
        Box::pin(async move {
            self.read(|answer| ReadJob::FindSuspended(key, answer))
                .await
        })
    }

    fn get_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedEntry>, InboxError>> {
        let name = CallerName::of(run, call);
        Box::pin(async move {
            self.read(|answer| ReadJob::GetSuspended(name, answer))
                .await
        })
    }

    fn end_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let bytes = outcome.map_or(0, str::len);
        let change = CallerChange::End {
            name: CallerName::of(run, call),
            outcome: outcome.map(str::to_owned),
        };
        Box::pin(async move {
            self.write(InboxChange::Caller(change), bytes)
                .await
                .map(drop)
        })
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<CollectedCall>, InboxError>> {
        let change = CallerChange::Collect(CallerName::of(run, call));
        Box::pin(async move {
            match self.write(InboxChange::Caller(change), 0).await? {
                InboxChangeResult::Collected(collected) => Ok(collected),
                _ => Err(thread_ended()),
            }
        })
    }

    fn changes(&self) -> broadcast::Receiver<ApprovalId> {
        let receiver = self.shared.changes.subscribe();
        let shared = Arc::clone(&self.shared);
        // If the thread cannot start, every read reports it.
        let _ = self
            .reads
            .send_at_once(ReadJob::Look, move |jobs| read_thread(shared, jobs));
        receiver
    }
}
