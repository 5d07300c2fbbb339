//! `MemoryInbox`: an inbox that lives as long as the process.

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;

use crate::approval::inbox::{
    ENDED_BYTES, InboxError, RequestEnding, RequestFilter, RequestStatus, StoredApproval,
    Submission, WaitingCalls, WaitingLimits,
};
use crate::approval::listing::RequestPage;
use crate::approval::review::Review;
use crate::approval::suspended::{CollectedCall, SuspendedCall, SuspendedEntry};
use crate::approval::transition::{CallState, CallerState, WaitingEvent, transition};
use crate::approval::{ApprovalId, ApprovalRequest, Decision};
use crate::call::{CallId, RunId};
use crate::error::HostFailure;
use crate::future::BoxFuture;

mod callers;

use callers::SuspendedTable;

/// Maximum number of requests held; above it, the oldest that has ended is removed first.
const MAX_REQUESTS: usize = 10_000;

/// Number of changes that a slow receiver may lag behind.
const WATCHER_BUFFER: usize = 1024;

/// Stores requests in memory.
#[derive(Debug)]
pub struct MemoryInbox {
    rows: Mutex<MemoryRows>,
    changes: broadcast::Sender<ApprovalId>,
}

/// The rows, in the order of their requests, and the calls that ended suspended on them.
#[derive(Debug, Default)]
struct MemoryRows {
    entries: Vec<StoredApproval>,
    callers: SuspendedTable,
}

impl MemoryRows {
    /// Returns the row of this request.
    fn get(&mut self, id: &ApprovalId) -> Option<&mut StoredApproval> {
        let entry = self
            .entries
            .iter_mut()
            .find(|entry| entry.request.id == *id)?;
        expire(entry);
        Some(entry)
    }

    /// Takes what is owed to a suspended call: its own outcome, or that of the request's call.
    fn collect(&mut self, run: &RunId, call: &CallId) -> Option<CollectedCall> {
        let found = self.callers.get(run, call, |id| self.state_of(id))?;
        let before = found.state;
        let after = transition(before, WaitingEvent::Collect).ok()?;
        if after.caller != CallerState::None {
            return None;
        }
        let own = self.callers.remove(run, call);
        let entry = self.get(&found.call.approval);
        let of_request = entry.and_then(|entry| {
            entry.delivered = after.delivered;
            entry.outcome.clone().filter(|_| before.owes_outcome())
        });
        let outcome = match before.caller {
            CallerState::Own => of_request,
            _ => own,
        };
        Some(CollectedCall { before, outcome })
    }

    /// Returns the state of this request; `None` if it is not stored.
    fn state_of(&self, id: &ApprovalId) -> Option<CallState> {
        let entry = self.entries.iter().find(|entry| entry.request.id == *id)?;
        Some(entry.state())
    }
}

impl Default for MemoryInbox {
    fn default() -> Self {
        Self {
            rows: Mutex::default(),
            changes: broadcast::channel(WATCHER_BUFFER).0,
        }
    }
}

impl MemoryInbox {
    /// Creates an empty inbox.
    pub fn new() -> Self {
        Self::default()
    }

    fn rows(&self) -> MutexGuard<'_, MemoryRows> {
        self.rows.lock()
    }

    /// Changes one entry and notifies the receivers.
    fn change<T>(
        &self,
        id: &ApprovalId,
        change: impl FnOnce(&mut StoredApproval) -> Result<T, InboxError>,
    ) -> Result<T, InboxError> {
        let mut rows = self.rows();
        let entry = rows.get(id);
        let entry = entry.ok_or_else(|| InboxError::NotFound(id.clone()))?;
        let changed = change(entry)?;
        drop(rows);
        // There may be no receiver.
        let _ = self.changes.send(id.clone());
        Ok(changed)
    }

    fn write(&self, request: &ApprovalRequest) -> Result<Submission, InboxError> {
        let mut rows = self.rows();
        let entries = &mut rows.entries;
        if let Some(entry) = newest(entries, &request.run, &request.fingerprint) {
            return Ok(Submission::Existing(Box::new(entry.clone())));
        }
        if entries.len() >= MAX_REQUESTS {
            let over = |entry: &StoredApproval| entry.delivered || ended(entry.status);
            let oldest = entries.iter().position(over);
            let oldest = oldest.ok_or_else(|| {
                InboxError::Unavailable(HostFailure::new(format!(
                    "{MAX_REQUESTS} requests are already pending"
                )))
            })?;
            entries.remove(oldest);
        }
        entries.push(StoredApproval {
            request: request.clone(),
            status: RequestStatus::Pending,
            decision: None,
            attended: true,
            claimed: false,
            outcome: None,
            delivered: false,
            why: None,
        });
        forget(entries);
        drop(rows);
        let _ = self.changes.send(request.id.clone());
        Ok(Submission::New)
    }
}

/// Returns the newest request of this run with this fingerprint, if it answers an identical call.
fn newest<'a>(
    entries: &'a mut [StoredApproval],
    run: &RunId,
    fingerprint: &str,
) -> Option<&'a mut StoredApproval> {
    let is_alike = |entry: &&mut StoredApproval| {
        entry.request.run == *run && entry.request.fingerprint == fingerprint
    };
    let entry = entries.iter_mut().rev().find(is_alike)?;
    expire(entry);
    entry.answers_again().then_some(entry)
}

/// Drops the oldest requests that ended undecided, if together they are too large.
fn forget(entries: &mut Vec<StoredApproval>) {
    entries.iter_mut().for_each(expire);
    let undecided = |entry: &StoredApproval| {
        matches!(
            entry.status,
            RequestStatus::Expired | RequestStatus::Withdrawn
        )
    };
    let ended = entries.iter().filter(|entry| undecided(entry));
    let mut over = ended.map(|entry| entry.request.bytes()).sum::<usize>();
    entries.retain(|entry| {
        let drops = over > ENDED_BYTES && undecided(entry);
        if drops {
            over -= entry.request.bytes();
        }
        !drops
    });
}

fn ended(status: RequestStatus) -> bool {
    matches!(
        status,
        RequestStatus::Denied | RequestStatus::Expired | RequestStatus::Withdrawn
    )
}

fn expire(entry: &mut StoredApproval) {
    if entry.status == RequestStatus::Pending && !entry.is_open() {
        entry.status = RequestEnding::Expired.status();
    }
}

/// Applies an event to a row.
fn advance(entry: &mut StoredApproval, event: WaitingEvent) -> Result<(), InboxError> {
    let after = transition(entry.state(), event).map_err(|refused| refused.error(entry))?;
    (entry.status, entry.claimed, entry.delivered) = (after.status, after.claimed, after.delivered);
    Ok(())
}

fn decide(entry: &mut StoredApproval, decision: &Decision) -> Result<StoredApproval, InboxError> {
    advance(entry, WaitingEvent::from(&decision.choice))?;
    entry.decision = Some(decision.clone());
    Ok(entry.clone())
}

fn claim(entry: &mut StoredApproval) -> Result<StoredApproval, InboxError> {
    advance(entry, WaitingEvent::Claim)?;
    Ok(entry.clone())
}

impl WaitingCalls for MemoryInbox {
    fn is_durable(&self) -> bool {
        false
    }

    fn submit<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> BoxFuture<'a, Result<Submission, InboxError>> {
        Box::pin(async move { self.write(request) })
    }

    fn has_room<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        limits: WaitingLimits,
    ) -> BoxFuture<'a, Result<bool, InboxError>> {
        let mut rows = self.rows();
        let entries = &mut rows.entries;
        entries.iter_mut().for_each(expire);
        let of_run = || {
            let run = &request.run;
            entries
                .iter()
                .filter(move |entry| entry.request.run == *run)
        };
        let alike = |entry: &StoredApproval| entry.request.fingerprint == request.fingerprint;
        let stands = of_run().any(|entry| alike(entry) && entry.answers_again());
        let waits = |entry: &&StoredApproval| entry.status == RequestStatus::Pending;
        let tenant = &request.principal.tenant;
        let of_all = entries
            .iter()
            .filter(|entry| entry.request.principal.tenant == *tenant);
        let (mut total, mut bytes) = (0, 0);
        for entry in of_all.filter(waits) {
            total += 1;
            bytes += entry.request.bytes();
        }
        let few = of_run().filter(waits).count() < limits.per_run
            && total < limits.total
            && bytes < limits.bytes;
        let room = stands || few;
        Box::pin(async move { Ok(room) })
    }

    fn get<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>> {
        let found = self.rows().get(id).map(|entry| entry.clone());
        Box::pin(async move { Ok(found) })
    }

    fn find<'a>(
        &'a self,
        run: &'a RunId,
        fingerprint: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>> {
        let found = newest(&mut self.rows().entries, run, fingerprint).map(|entry| entry.clone());
        Box::pin(async move { Ok(found) })
    }

    fn list<'a>(
        &'a self,
        filter: &'a RequestFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, InboxError>> {
        let mut rows = self.rows();
        let entries = &mut rows.entries;
        entries.iter_mut().for_each(expire);
        let past = |id: &ApprovalId| entries.iter().position(|entry| entry.request.id == *id);
        let first = filter.after.as_ref().and_then(past).map_or(0, |at| at + 1);
        let wanted = |entry: &&StoredApproval| {
            let request = &entry.request;
            *request.principal.tenant == *filter.tenant
                && (filter.status.is_empty() || filter.status.contains(&entry.status))
                && filter.run.as_ref().is_none_or(|run| *run == request.run)
        };
        let mut page = RequestPage::new(filter.limit);
        for entry in entries.iter().skip(first).filter(wanted) {
            if !page.add(entry.clone(), entry.request.bytes()) {
                break;
            }
        }
        Box::pin(async move { Ok(page.into_entries()) })
    }

    fn decide<'a>(
        &'a self,
        id: &'a ApprovalId,
        decision: &'a Decision,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>> {
        Box::pin(async move { self.change(id, |entry| decide(entry, decision)) })
    }

    fn claim<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> BoxFuture<'a, Result<StoredApproval, InboxError>> {
        Box::pin(async move { self.change(id, claim) })
    }

    fn finish<'a>(
        &'a self,
        id: &'a ApprovalId,
        outcome: &'a str,
        delivered: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let finish = move |entry: &mut StoredApproval| {
            advance(entry, WaitingEvent::Finish { delivered })?;
            entry.outcome = Some(outcome.to_owned());
            Ok(())
        };
        Box::pin(async move { self.change(id, finish) })
    }

    fn deliver<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<bool, InboxError>> {
        let deliver = |entry: &mut StoredApproval| {
            let before = entry.delivered;
            advance(entry, WaitingEvent::Deliver)?;
            Ok(!before)
        };
        Box::pin(async move { self.change(id, deliver) })
    }

    fn set_attended<'a>(
        &'a self,
        id: &'a ApprovalId,
        attended: bool,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let attend = move |entry: &mut StoredApproval| {
            entry.attended = attended;
            Ok(())
        };
        Box::pin(async move { self.change(id, attend) })
    }

    fn end<'a>(
        &'a self,
        id: &'a ApprovalId,
        ending: RequestEnding,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let end = move |entry: &mut StoredApproval| {
            let before = entry.status;
            advance(entry, WaitingEvent::End(ending))?;
            if entry.status != before && !why.is_empty() {
                entry.why = Some(why.to_owned());
            }
            Ok(())
        };
        Box::pin(async move { self.change(id, end) })
    }

    fn set_review<'a>(
        &'a self,
        id: &'a ApprovalId,
        was: Option<&'a Review>,
        now: &'a Review,
    ) -> BoxFuture<'a, Result<bool, InboxError>> {
        let set = move |entry: &mut StoredApproval| {
            let stored = &mut entry.request.review;
            let is_same = stored.as_deref() == was;
            if is_same {
                *stored = Some(Box::new(now.clone()));
            }
            Ok(is_same)
        };
        Box::pin(async move { self.change(id, set) })
    }

    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), InboxError>> {
        let mut rows = self.rows();
        let noted = match rows.get(&call.approval) {
            Some(entry) if !call.within => SuspendedCall {
                run: entry.request.run.clone(),
                call: entry.request.call.clone(),
                ..call.clone()
            },
            _ => call.clone(),
        };
        rows.callers.suspend(noted);
        Box::pin(async { Ok(()) })
    }

    fn find_suspended<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedEntry>, InboxError>> {
        let rows = self.rows();
        let found = rows.callers.find(key, |id| rows.state_of(id));
        Box::pin(async move { Ok(found) })
    }

    fn get_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedEntry>, InboxError>> {
        let rows = self.rows();
        let found = rows.callers.get(run, call, |id| rows.state_of(id));
        Box::pin(async move { Ok(found) })
    }

    fn end_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        self.rows().callers.end(run, call, outcome);
        Box::pin(async { Ok(()) })
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<CollectedCall>, InboxError>> {
        let collected = self.rows().collect(run, call);
        Box::pin(async move { Ok(collected) })
    }

    fn changes(&self) -> broadcast::Receiver<ApprovalId> {
        self.changes.subscribe()
    }
}
