//! `MemoryInbox`: an inbox that lives as long as the process.

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;

use crate::approval::inbox::{
    ENDED_BYTES, Inbox, InboxError, RequestEnding, RequestFilter, RequestStatus, StoredApproval,
    Submission, WaitingLimits,
};
use crate::approval::listing::RequestPage;
use crate::approval::transition::{RequestEvent, transition};
use crate::approval::{ApprovalId, ApprovalRequest, Decision};
use crate::call::RunId;
use crate::error::HostFailure;
use crate::future::BoxFuture;

/// Maximum number of requests held; above it, the oldest that has ended is removed first.
const MAX_REQUESTS: usize = 10_000;

/// Number of changes that a slow receiver may lag behind.
const WATCHER_BUFFER: usize = 1024;

/// Stores requests in memory.
#[derive(Debug)]
pub struct MemoryInbox {
    entries: Mutex<Vec<StoredApproval>>,
    changes: broadcast::Sender<ApprovalId>,
}

impl Default for MemoryInbox {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
            changes: broadcast::channel(WATCHER_BUFFER).0,
        }
    }
}

impl MemoryInbox {
    /// Creates an empty inbox.
    pub fn new() -> Self {
        Self::default()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<StoredApproval>> {
        self.entries.lock()
    }

    /// Changes one entry and notifies the receivers.
    fn change<T>(
        &self,
        id: &ApprovalId,
        change: impl FnOnce(&mut StoredApproval) -> Result<T, InboxError>,
    ) -> Result<T, InboxError> {
        let mut entries = self.entries();
        let entry = entries.iter_mut().find(|entry| entry.request.id == *id);
        let entry = entry.ok_or_else(|| InboxError::NotFound(id.clone()))?;
        expire(entry);
        let changed = change(entry)?;
        drop(entries);
        // There may be no receiver.
        let _ = self.changes.send(id.clone());
        Ok(changed)
    }

    fn write(&self, request: &ApprovalRequest) -> Result<Submission, InboxError> {
        let mut entries = self.entries();
        if let Some(entry) = newest(&mut entries, &request.run, &request.fingerprint) {
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
        forget(&mut entries);
        drop(entries);
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

/// Applies an event to a request's status.
fn advance(entry: &mut StoredApproval, event: RequestEvent) -> Result<(), InboxError> {
    entry.status = transition(entry.status, event).map_err(|refused| refused.error(entry))?;
    Ok(())
}

fn decide(entry: &mut StoredApproval, decision: &Decision) -> Result<StoredApproval, InboxError> {
    advance(entry, RequestEvent::from(&decision.choice))?;
    entry.decision = Some(decision.clone());
    Ok(entry.clone())
}

fn claim(entry: &mut StoredApproval) -> Result<StoredApproval, InboxError> {
    let again = entry.claimed;
    advance(entry, RequestEvent::Claim { again })?;
    entry.claimed = true;
    Ok(entry.clone())
}

impl Inbox for MemoryInbox {
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
        let mut entries = self.entries();
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
        let mut entries = self.entries();
        let found = entries.iter_mut().find(|entry| entry.request.id == *id);
        let found = found.map(|entry| {
            expire(entry);
            entry.clone()
        });
        Box::pin(async move { Ok(found) })
    }

    fn find<'a>(
        &'a self,
        run: &'a RunId,
        fingerprint: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredApproval>, InboxError>> {
        let mut entries = self.entries();
        let found = newest(&mut entries, run, fingerprint).map(|entry| entry.clone());
        Box::pin(async move { Ok(found) })
    }

    fn list<'a>(
        &'a self,
        filter: &'a RequestFilter,
    ) -> BoxFuture<'a, Result<Vec<StoredApproval>, InboxError>> {
        let mut entries = self.entries();
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
            advance(entry, RequestEvent::Finish)?;
            entry.outcome = Some(outcome.to_owned());
            entry.delivered |= delivered;
            Ok(())
        };
        Box::pin(async move { self.change(id, finish) })
    }

    fn deliver<'a>(&'a self, id: &'a ApprovalId) -> BoxFuture<'a, Result<bool, InboxError>> {
        let deliver =
            |entry: &mut StoredApproval| Ok(!std::mem::replace(&mut entry.delivered, true));
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
            advance(entry, RequestEvent::End(ending))?;
            if entry.status != before && !why.is_empty() {
                entry.why = Some(why.to_owned());
            }
            Ok(())
        };
        Box::pin(async move { self.change(id, end) })
    }

    fn changes(&self) -> broadcast::Receiver<ApprovalId> {
        self.changes.subscribe()
    }
}
