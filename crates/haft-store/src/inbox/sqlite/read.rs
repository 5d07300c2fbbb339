//! The thread that reads and, while there are listeners, looks for other processes' changes.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use haft::approval::ApprovalId;
use haft::approval::inbox::{InboxError, RequestFilter, RequestStatus, StoredApproval};
use haft::approval::listing::RequestPage;
use haft::approval::suspended::SuspendedEntry;
use haft::clock;
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};
use tokio::sync::oneshot;

use super::beat::alive;
use super::steps::callers::{self, CallerName};
use super::steps::{alike, columns, get, read_bare_row};
use super::{OwnChanges, SharedInbox};
use crate::inbox::{CapacityCheck, stored_statuses, unavailable};
use crate::lane::{Jobs, NextJob};
use crate::lease::Lease;
use crate::number::nanoseconds;
use crate::request_changes::LISTENER_BUFFER;
use crate::sqlite::file::{CommitDurability, DbFile};

/// Interval between checks for other processes' changes. As long as nothing changes, a check only reads a counter in shared
/// memory.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// The interval while this process attends or runs a request: it acts on a decision made elsewhere within five milliseconds.
const FAST_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The interval while the database is unusable.
const RETRY_DELAY: Duration = Duration::from_secs(1);

const LIST: &str = "SELECT row FROM approvals WHERE tenant = ?";
const AT: &str = concat!("SELECT ", columns!(), " FROM approvals WHERE row = ?");
const ROW: &str = "SELECT row FROM approvals WHERE id = ?";
const NEWEST: &str = "SELECT coalesce((SELECT max(row) FROM approvals), 0), \
    coalesce((SELECT max(changed) FROM approvals WHERE changed > 0), 0)";
const NEW: &str = "SELECT id, row FROM approvals WHERE row > ? ORDER BY row LIMIT ?";
const CHANGED: &str =
    "SELECT id, changed FROM approvals WHERE changed > ? AND changed > 0 ORDER BY changed LIMIT ?";

/// True if fewer than `?4` requests of the run are pending, or if an identical one still counts.
const ROOM: &str = "SELECT (SELECT count(*) FROM (SELECT 1 FROM approvals \
    WHERE tenant = ?1 AND status = 'pending' AND run = ?2 AND expires > ?5 LIMIT ?4)) < ?4 \
    AND (SELECT count(*) FROM (SELECT 1 FROM approvals \
    WHERE tenant = ?1 AND status = 'pending' AND expires > ?5 LIMIT ?6)) < ?6 \
    AND (?7 IS NULL OR (SELECT coalesce(sum(octet_length(request)), 0) FROM approvals \
    WHERE tenant = ?1 AND status = 'pending' AND expires > ?5) < ?7) \
    OR EXISTS (SELECT 1 FROM approvals \
    WHERE substr(fingerprint, -16) = substr(?3, -16) AND run = ?2 AND fingerprint = ?3 \
    AND (status = 'pending' AND expires > ?5 OR status IN ('approved', 'running', 'denied') \
    OR status IN ('answered', 'done') AND delivered = 0))";

/// A job for the thread.
#[derive(Debug)]
pub(super) enum ReadJob {
    Get(
        String,
        oneshot::Sender<Result<Option<StoredApproval>, InboxError>>,
    ),
    /// The request of this run with this fingerprint that answers an identical call.
    Find(
        String,
        String,
        oneshot::Sender<Result<Option<StoredApproval>, InboxError>>,
    ),
    /// Also returns whether a listed request has expired without being marked so.
    List(
        RequestFilter,
        oneshot::Sender<Result<(Vec<StoredApproval>, bool), InboxError>>,
    ),
    Room(CapacityCheck, oneshot::Sender<Result<bool, InboxError>>),
    /// The suspended calls with a key.
    FindSuspended(
        String,
        oneshot::Sender<Result<Vec<SuspendedEntry>, InboxError>>,
    ),
    GetSuspended(
        CallerName,
        oneshot::Sender<Result<Option<SuspendedEntry>, InboxError>>,
    ),
    /// A listener was added.
    Look,
}

/// How far changes have been seen.
#[derive(Debug, Clone, Copy)]
struct ReadPosition {
    /// The newest row.
    row: i64,
    /// The newest change number.
    number: i64,
    /// The database's counter of other connections' changes.
    version: i64,
}

/// Requests, each with its row or change number, ascending.
type NumberedIds = Vec<(String, i64)>;

struct InboxReader<'a> {
    shared: &'a SharedInbox,
    file: DbFile,
    /// `None` while there are no listeners.
    seen: Option<ReadPosition>,
    looked: Instant,
    failing: bool,
}

/// Runs jobs until every sender is dropped.
pub(super) fn run(shared: &SharedInbox, jobs: &Jobs<ReadJob>) {
    let mut reader = InboxReader {
        shared,
        file: DbFile::new(shared.path.clone(), CommitDurability::Synced),
        seen: None,
        looked: Instant::now(),
        failing: false,
    };
    loop {
        let next = jobs.next(reader.wait_limit());
        // Before the job: a read made after a listener was added is no older than the changes that it receives.
        reader.look();
        match next {
            NextJob::Job(ReadJob::Get(id, answer)) => drop(answer.send(reader.get(&id))),
            NextJob::Job(ReadJob::Find(run, fingerprint, answer)) => {
                drop(answer.send(reader.find(&run, &fingerprint)));
            }
            NextJob::Job(ReadJob::List(filter, answer)) => drop(answer.send(reader.list(&filter))),
            NextJob::Job(ReadJob::Room(room, answer)) => drop(answer.send(reader.room(&room))),
            NextJob::Job(ReadJob::FindSuspended(key, answer)) => {
                let lease = shared.lease;
                let found = reader.read(|connection| callers::find(connection, lease, &key));
                drop(answer.send(found));
            }
            NextJob::Job(ReadJob::GetSuspended(name, answer)) => {
                let lease = shared.lease;
                let found = reader.read(|connection| callers::get(connection, lease, &name));
                drop(answer.send(found));
            }
            NextJob::Job(ReadJob::Look) | NextJob::Quiet => {}
            NextJob::End => break,
        }
    }
}

impl InboxReader<'_> {
    /// Returns how long to wait for a job.
    fn wait_limit(&self) -> Option<Duration> {
        if self.shared.changes.receiver_count() == 0 {
            return None;
        }
        let every = match self.shared.held.load(Ordering::Relaxed) {
            _ if self.failing => RETRY_DELAY,
            0 => POLL_INTERVAL,
            _ => FAST_POLL_INTERVAL,
        };
        Some(every.saturating_sub(self.looked.elapsed()))
    }

    /// Looks for changes if there are listeners and the interval has passed.
    fn look(&mut self) {
        if self.shared.changes.receiver_count() == 0 {
            self.seen = None;
            return;
        }
        if self.seen.is_some() && self.wait_limit().is_some_and(|left| !left.is_zero()) {
            return;
        }
        self.looked = Instant::now();
        let Ok((connection, new)) = self.file.connection() else {
            self.failing = true;
            return;
        };
        let looked = look(connection, self.seen, new);
        self.failing = looked.is_err();
        match looked {
            Ok((seen, new, changed)) => {
                self.tell(&new, |told| &mut told.rows);
                self.tell(&changed, |told| &mut told.numbers);
                self.seen = Some(seen);
            }
            Err(_) => self.file.disconnect(),
        }
    }

    /// Reports the changes that this inbox did not make itself.
    fn tell(&self, found: &NumberedIds, kind: fn(&mut OwnChanges) -> &mut BTreeSet<i64>) {
        let Some((_, newest)) = found.last() else {
            return;
        };
        let reported = &self.shared.reported;
        let mut reported = reported.lock();
        let reported = kind(&mut reported);
        for (id, _) in found
            .iter()
            .filter(|(_, number)| !reported.contains(number))
        {
            // The last listener may just have been dropped.
            let _ = self.shared.changes.send(ApprovalId::new(id.as_str()));
        }
        reported.retain(|number| number > newest);
    }

    fn get(&mut self, id: &str) -> Result<Option<StoredApproval>, InboxError> {
        let lease = self.shared.lease;
        self.read(|connection| {
            let Some(row) = get(connection, id)? else {
                return Ok(Ok(None));
            };
            let stored = row.alive(&alive(connection, lease)?);
            Ok(stored.entry(clock::now()).map(Some))
        })
    }

    fn find(&mut self, run: &str, fingerprint: &str) -> Result<Option<StoredApproval>, InboxError> {
        let lease = self.shared.lease;
        let found = self.read(|connection| {
            let Some(row) = alike(connection, run, fingerprint)? else {
                return Ok(Ok(None));
            };
            let stored = row.alive(&alive(connection, lease)?);
            Ok(stored.entry(clock::now()).map(Some))
        });
        Ok(found?.filter(StoredApproval::answers_again))
    }

    fn list(&mut self, filter: &RequestFilter) -> Result<(Vec<StoredApproval>, bool), InboxError> {
        let lease = self.shared.lease;
        self.read(|connection| list(connection, filter, lease))
    }

    fn room(&mut self, room: &CapacityCheck) -> Result<bool, InboxError> {
        let now = nanoseconds(clock::now());
        let CapacityCheck {
            tenant,
            run,
            fingerprint,
            per_run,
            total,
            bytes,
        } = room;
        self.read(|connection| {
            let mut query = connection.prepare_cached(ROOM)?;
            query
                .query_row(
                    params![tenant, run, fingerprint, per_run, now, total, bytes],
                    |row| row.get(0),
                )
                .map(Ok)
        })
    }

    /// Reads in one transaction, for a consistent snapshot.
    fn read<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<Result<T, InboxError>>,
    ) -> Result<T, InboxError> {
        let (connection, _) = self.file.connection().map_err(unavailable)?;
        let done = connection.transaction().and_then(|moment| read(&moment));
        done.unwrap_or_else(|error| {
            let why = self.file.failure(error);
            self.file.disconnect();
            Err(unavailable(why))
        })
    }
}

/// Returns the new and the changed requests since the last look, and how far that reaches.
fn look(
    connection: &Connection,
    seen: Option<ReadPosition>,
    fresh: bool,
) -> rusqlite::Result<(ReadPosition, NumberedIds, NumberedIds)> {
    let version: i64 = connection
        .prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))?;
    let Some(mut seen) = seen else {
        let newest = connection.prepare_cached(NEWEST)?.query_row([], |found| {
            Ok(ReadPosition {
                row: found.get(0)?,
                number: found.get(1)?,
                version,
            })
        })?;
        return Ok((newest, Vec::new(), Vec::new()));
    };
    if seen.version == version && !fresh {
        return Ok((seen, Vec::new(), Vec::new()));
    }
    let new = since(connection, NEW, seen.row)?;
    let mut changed = since(connection, CHANGED, seen.number)?;
    let more = new.len() >= LISTENER_BUFFER || changed.len() >= LISTENER_BUFFER;
    if changed.len() >= LISTENER_BUFFER {
        // More than a listener can lag behind: the rest of this number and what follows is left to the next look.
        let newest = changed.last().map_or(0, |(_, newest)| *newest);
        if changed.first().is_some_and(|(_, first)| *first < newest) {
            changed.retain(|(_, number)| *number < newest);
        }
    }
    seen.row = new.last().map_or(seen.row, |(_, row)| *row);
    seen.number = changed.last().map_or(seen.number, |(_, number)| *number);
    seen.version = if more {
        version.wrapping_sub(1)
    } else {
        version
    };
    Ok((seen, new, changed))
}

fn since(connection: &Connection, sql: &str, number: i64) -> rusqlite::Result<NumberedIds> {
    let most = i64::try_from(LISTENER_BUFFER).unwrap_or(i64::MAX);
    let mut query = connection.prepare_cached(sql)?;
    let found = query.query_map(params![number, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.collect()
}

fn list(
    connection: &Connection,
    filter: &RequestFilter,
    lease: Lease,
) -> rusqlite::Result<Result<(Vec<StoredApproval>, bool), InboxError>> {
    let alive = alive(connection, lease)?;
    let (now, mut stale, mut page) = (clock::now(), false, RequestPage::new(filter.limit));
    let mut at = connection.prepare_cached(AT)?;
    for row in rows(connection, filter)? {
        let stored = at.query_row([row], read_bare_row)?.alive(&alive);
        let bytes = stored.request.len();
        let pending = stored.status == RequestStatus::Pending.as_str();
        let entry = match stored.entry(now) {
            Ok(entry) => entry,
            Err(error) => return Ok(Err(error)),
        };
        stale |= pending && entry.status == RequestStatus::Expired;
        let wanted = filter.status.is_empty() || filter.status.contains(&entry.status);
        if wanted && !page.add(entry, bytes) {
            break;
        }
    }
    Ok(Ok((page.into_entries(), stale)))
}

/// Returns the rows that match a filter, oldest first. Only row numbers are sorted: `SQLite` would sort the texts with them, in a
/// temporary file.
fn rows(connection: &Connection, filter: &RequestFilter) -> rusqlite::Result<Vec<i64>> {
    let mut sql = LIST.to_owned();
    let mut values: Vec<Box<dyn ToSql>> = vec![Box::new(filter.tenant.clone())];
    if !filter.status.is_empty() {
        let words = stored_statuses(&filter.status);
        sql.push_str(" AND status IN (");
        sql.push_str(&vec!["?"; words.len()].join(", "));
        sql.push(')');
        values.extend(
            words
                .into_iter()
                .map(|word| Box::new(word) as Box<dyn ToSql>),
        );
    }
    if let Some(run) = &filter.run {
        sql.push_str(" AND run = ?");
        values.push(Box::new(run.to_string()));
    }
    if let Some(after) = &filter.after {
        let row: Option<i64> = connection
            .prepare_cached(ROW)?
            .query_row([after.as_str()], |row| row.get(0))
            .optional()?;
        sql.push_str(" AND row > ?");
        values.push(Box::new(row.unwrap_or(0)));
    }
    let mut query = connection.prepare_cached(&sql)?;
    let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
    let found = query.query_map(values.as_slice(), |row| row.get(0))?;
    let mut found: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
    found.sort_unstable();
    Ok(found)
}
