//! `InboxWriter` and its thread: commits queued steps in one transaction and answers them once it is on disk.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use haft::approval::ApprovalId;
use haft::approval::inbox::{ENDED_BYTES, InboxError};
use haft::clock;
use haft::error::HostFailure;
use parking_lot::MutexGuard;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::beat::SqliteHeartbeat;
use super::steps::{
    ChangeTransaction, InboxChange, InboxChangeResult, SqliteInboxError, TenantCapacity,
};
use super::{ChangeTicket, SharedInbox};
use crate::inbox::{RETENTION, SWEEP_BYTES, unavailable};
use crate::lane::{Jobs, NextJob};
use crate::lease::Lease;
use crate::number::nanoseconds;
use crate::sqlite::file::{CommitDurability, DbFile};

/// Maximum number of steps per transaction.
const MAX_BATCH: usize = 512;

/// How long a transaction waits for as many steps as the previous one had: callers that were just answered often come again.
const GATHER_TIME: Duration = Duration::from_micros(60);

/// Interval between deletions of old requests.
const SWEEP_INTERVAL: Duration = Duration::from_hours(1);

/// Looks only at the rows that changed the longest ago. The newest rows stay, so that numbers keep increasing.
const OLD: &str = "DELETE FROM approvals WHERE row IN (SELECT row FROM \
    (SELECT row, status, created, changed FROM approvals WHERE changed > 0 ORDER BY changed LIMIT 2000) \
    WHERE created < ? AND status IN ('done', 'denied', 'answered', 'expired', 'withdrawn') \
    AND changed < (SELECT max(changed) FROM approvals WHERE changed > 0) AND row < (SELECT max(row) FROM approvals))";
/// Deletes all but the newest bytes of what ended undecided. Expired requests need not be marked as such yet.
const UNDECIDED: &str = "DELETE FROM approvals WHERE row IN (SELECT row FROM (SELECT row, sum(octet_length(request)) \
    OVER (ORDER BY row DESC) AS newer FROM approvals \
    WHERE status IN ('expired', 'withdrawn') OR status = 'pending' AND expires <= ?) WHERE newer > ?) \
    AND (changed = 0 OR changed < (SELECT max(changed) FROM approvals)) AND row < (SELECT max(row) FROM approvals)";
/// Deletes processes that have been gone for a day; one that only seems gone because of a clock change renews its lease.
const GONE: &str = "DELETE FROM approval_processes WHERE abs(alive_until - ?) > 86400000000000";

/// A job for the thread.
#[derive(Debug)]
pub(super) enum WriteJob {
    Step {
        step: InboxChange,
        answer: ChangeResultSender,
        turn: ChangeTicket,
    },
    /// The lease has to be renewed regularly from now on.
    Wake,
    /// The process is leaving; answered once others can know.
    Leave(oneshot::Sender<()>),
}

type ChangeResultSender = oneshot::Sender<Result<InboxChangeResult, InboxError>>;

/// The connection, and what is known about the table.
#[derive(Debug)]
pub(super) struct InboxWriter {
    file: DbFile,
    beat: SqliteHeartbeat,
    room: TenantCapacity,
    swept: Option<Instant>,
    /// Bytes of requests written since the last sweep.
    filed: usize,
    /// Number of steps in the thread's last transaction.
    last: usize,
    /// Whether the thread knows that the lease needs renewal.
    awake: bool,
}

/// Runs jobs until every sender is dropped.
pub(super) fn run(shared: &SharedInbox, jobs: &Jobs<WriteJob>) {
    loop {
        let due = writer(shared).beats();
        match jobs.next(due) {
            NextJob::Job(first) => run_queued(shared, first, jobs),
            NextJob::Quiet => writer(shared).say(shared),
            NextJob::End => break,
        }
    }
    writer(shared).leave();
}

fn writer(shared: &SharedInbox) -> MutexGuard<'_, InboxWriter> {
    shared.writer.lock()
}

/// Runs a job and those queued behind it.
fn run_queued(shared: &SharedInbox, first: WriteJob, jobs: &Jobs<WriteJob>) {
    // More jobs arrive while this waits for the lock.
    let mut writer = writer(shared);
    let (mut steps, mut answers, mut left) = (Vec::new(), Vec::new(), None);
    let mut next = Some(first);
    let began = Instant::now();
    while let Some(job) = next.take() {
        match job {
            WriteJob::Step { step, answer, turn } => {
                steps.push(step);
                answers.push((answer, turn));
            }
            WriteJob::Wake => {}
            WriteJob::Leave(done) => {
                left = Some(done);
                break;
            }
        }
        if steps.len() < MAX_BATCH {
            next = jobs.try_next();
            while next.is_none() && steps.len() < writer.last && began.elapsed() < GATHER_TIME {
                thread::yield_now();
                next = jobs.try_next();
            }
        }
    }
    writer.last = steps.len();
    let results = writer.run_batch(shared, &steps);
    for (results, (answer, turn)) in results.into_iter().zip(answers) {
        drop(turn);
        // The caller may be gone.
        let _ = answer.send(results);
    }
    if let Some(done) = left {
        writer.leave();
        let _ = done.send(());
    }
}

impl InboxWriter {
    pub(super) fn new(path: &Path, lease: Lease) -> Self {
        Self {
            file: DbFile::new(path.to_owned(), CommitDurability::Synced),
            beat: SqliteHeartbeat::new(lease),
            room: TenantCapacity::default(),
            swept: None,
            filed: 0,
            last: 0,
            awake: false,
        }
    }

    /// Returns the time until the thread has to renew the lease.
    fn beats(&mut self) -> Option<Duration> {
        let next = self.beat.next_try();
        self.awake = next.is_some();
        next
    }

    /// Renews this process's lease if due.
    fn say(&mut self, shared: &SharedInbox) {
        let due = self.beat.due().is_some_and(|due| due.is_zero());
        // There is no caller to answer, and the next beat tries again.
        if due && self.transact(shared, &[]).is_err() {
            self.beat.note_failure();
        }
    }

    /// Returns whether the thread has to be told that the lease needs renewal.
    pub(super) fn needs_wake_up(&self) -> bool {
        !self.awake && self.beat.due().is_some()
    }

    /// Notes whether the thread could be told.
    pub(super) fn wakes(&mut self, told: bool) {
        self.awake = told;
    }

    /// Returns whether the thread's last transaction had several steps: their callers are likely to come again.
    pub(super) fn was_batched(&self) -> bool {
        self.last > 1
    }

    /// Runs steps and returns the result of each.
    pub(super) fn run_batch(
        &mut self,
        shared: &SharedInbox,
        steps: &[InboxChange],
    ) -> Vec<Result<InboxChangeResult, InboxError>> {
        if steps.is_empty() {
            return Vec::new();
        }
        self.transact(shared, steps).unwrap_or_else(|why| {
            self.file.disconnect();
            self.beat.invalidate_renewal();
            self.room = TenantCapacity::default();
            steps
                .iter()
                .map(|_| Err(unavailable(why.clone())))
                .collect()
        })
    }

    /// Runs these steps in one transaction and reports what they changed.
    fn transact(
        &mut self,
        shared: &SharedInbox,
        steps: &[InboxChange],
    ) -> Result<Vec<Result<InboxChangeResult, InboxError>>, HostFailure> {
        let (connection, new) = self.file.connection()?;
        if new {
            self.beat.invalidate_renewal();
            self.swept = None;
        }
        let made = if self.beat.me.is_empty() {
            name(connection).map(|me| self.beat.me = me)
        } else {
            Ok(())
        };
        let due = self.swept.is_none_or(|at| at.elapsed() >= SWEEP_INTERVAL);
        let sweep = due || self.filed >= SWEEP_BYTES;
        let made = made.and_then(|()| {
            let (beat, room) = (&mut self.beat, &mut self.room);
            let made = transaction(connection, beat, room, steps, sweep)?;
            made.commit(shared)
        });
        let made = made.map_err(|error| self.file.failure(error))?;
        if sweep {
            self.swept = Some(Instant::now());
            self.filed = 0;
        }
        self.filed += steps.iter().map(InboxChange::filed_bytes).sum::<usize>();
        let holds = self.beat.holds();
        shared.held.store(holds, Ordering::Relaxed);
        for id in made.changed {
            // The last listener may just have been dropped.
            let _ = shared.changes.send(id);
        }
        Ok(made.results)
    }

    /// Removes this process, so that others need not wait for its lease to expire.
    fn leave(&mut self) {
        if self.file.is_open() {
            let left = self
                .file
                .connection()
                .map(|(connection, _)| self.beat.leave(connection));
            // If this fails, others notice within seconds.
            drop(left);
            self.beat.invalidate_renewal();
            self.file.disconnect();
        }
    }
}

/// A transaction that is not committed yet.
struct OpenTransaction<'a> {
    transaction: Transaction<'a>,
    made: TransactionResults,
    number: Option<i64>,
    rows: Vec<i64>,
}

/// The results of a transaction.
struct TransactionResults {
    results: Vec<Result<InboxChangeResult, InboxError>>,
    changed: Vec<ApprovalId>,
}

impl OpenTransaction<'_> {
    /// Commits. Notes the changes first, so that the reading thread does not report them a second time.
    fn commit(self, shared: &SharedInbox) -> rusqlite::Result<TransactionResults> {
        let lock_reported = || shared.reported.lock();
        let tells = !self.made.changed.is_empty() && shared.changes.receiver_count() > 0;
        if tells {
            lock_reported().add(&self.rows, self.number);
        }
        let committed = self.transaction.commit();
        if committed.is_err() && tells {
            lock_reported().remove(&self.rows, self.number);
        }
        committed.map(|()| self.made)
    }
}

fn transaction<'a>(
    connection: &'a mut Connection,
    beat: &mut SqliteHeartbeat,
    room: &mut TenantCapacity,
    steps: &[InboxChange],
    sweep: bool,
) -> rusqlite::Result<OpenTransaction<'a>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if sweep {
        let now = nanoseconds(clock::now());
        transaction.execute(OLD, params![now.saturating_sub(RETENTION)])?;
        let most = i64::try_from(ENDED_BYTES).unwrap_or(i64::MAX);
        transaction.execute(UNDECIDED, params![now, most])?;
        transaction.execute(GONE, params![now])?;
    }
    let mut making = ChangeTransaction::new(&transaction, beat, room);
    let mut results = Vec::with_capacity(steps.len());
    for step in steps {
        results.push(match making.make(step) {
            Ok(done) => Ok(done),
            Err(SqliteInboxError::Inbox(no)) => Err(no),
            Err(SqliteInboxError::Database(error)) => return Err(error),
        });
    }
    let (number, rows, changed) = (making.number, making.rows, making.changed);
    beat.renew(&transaction)?;
    let made = TransactionResults { results, changed };
    Ok(OpenTransaction {
        transaction,
        made,
        number,
        rows,
    })
}

/// Returns a name that is unique to this process.
fn name(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("SELECT lower(hex(randomblob(12)))", [], |row| row.get(0))
}
