//! `SuspendedTable`: the calls that ended suspended on requests in memory. Above a thousand calls, or 64 MiB of outcomes, the oldest are
//! forgotten.

use std::collections::HashMap;

use crate::approval::ApprovalId;
use crate::approval::suspended::{SuspendedCall, SuspendedEntry};
use crate::approval::transition::{CallState, CallerState, WaitingEvent, transition};
use crate::call::{CallId, RunId};

/// Maximum number of calls that a process remembers without a store.
const MAX_CALLS: usize = 1000;

/// Maximum total size of their outcomes, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// The suspended calls, by run and call.
#[derive(Debug, Default)]
pub(super) struct SuspendedTable {
    calls: HashMap<(RunId, CallId), SuspendedRow>,
    number: u64,
}

#[derive(Debug)]
struct SuspendedRow {
    /// Rises with each call.
    number: u64,
    call: SuspendedCall,
    outcome: Option<String>,
}

impl SuspendedRow {
    fn entry(&self, request: Option<CallState>) -> SuspendedEntry {
        SuspendedEntry::of(self.call.clone(), self.outcome.is_some(), request)
    }

    /// Returns the state of the call after an event; no such event depends on the request.
    fn after(&self, event: WaitingEvent) -> CallerState {
        let before = self.entry(None).state;
        transition(before, event).map_or(before.caller, |after| after.caller)
    }
}

impl SuspendedTable {
    pub(super) fn suspend(&mut self, call: SuspendedCall) {
        self.number += 1;
        let name = (call.run.clone(), call.call.clone());
        let row = SuspendedRow {
            number: self.number,
            call,
            outcome: None,
        };
        self.calls.insert(name, row);
        self.bound();
    }

    /// Returns the calls with this key, newest first; `request` returns the state of a request.
    pub(super) fn find(
        &self,
        key: &str,
        request: impl Fn(&ApprovalId) -> Option<CallState>,
    ) -> Vec<SuspendedEntry> {
        let mut found: Vec<_> = self
            .calls
            .values()
            .filter(|row| row.call.key == key)
            .collect();
        found.sort_by_key(|row| std::cmp::Reverse(row.number));
        let entries = found
            .into_iter()
            .map(|row| row.entry(request(&row.call.approval)));
        entries.collect()
    }

    pub(super) fn get(
        &self,
        run: &RunId,
        call: &CallId,
        request: impl Fn(&ApprovalId) -> Option<CallState>,
    ) -> Option<SuspendedEntry> {
        let row = self.calls.get(&(run.clone(), call.clone()))?;
        Some(row.entry(request(&row.call.approval)))
    }

    /// Stores the outcome of a call, or forgets the call if there is none to store.
    pub(super) fn end(&mut self, run: &RunId, call: &CallId, outcome: Option<&str>) {
        let name = (run.clone(), call.clone());
        let Some(row) = self.calls.get_mut(&name) else {
            return;
        };
        let heard = outcome.is_none();
        match row.after(WaitingEvent::Return { heard }) {
            CallerState::Ended => row.outcome = outcome.map(str::to_owned),
            CallerState::None => drop(self.calls.remove(&name)),
            CallerState::Own | CallerState::Within => {}
        }
        self.bound();
    }

    /// Forgets a call, and returns its outcome if it has one of its own.
    pub(super) fn remove(&mut self, run: &RunId, call: &CallId) -> Option<String> {
        self.calls.remove(&(run.clone(), call.clone()))?.outcome
    }

    /// Forgets the oldest calls until the rest is within the limits.
    fn bound(&mut self) {
        let size = |row: &SuspendedRow| row.outcome.as_ref().map_or(0, String::len);
        let mut bytes: usize = self.calls.values().map(size).sum();
        while self.calls.len() > MAX_CALLS || (bytes > MAX_BYTES && self.calls.len() > 1) {
            let oldest = self.calls.iter().min_by_key(|(_, row)| row.number);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                return;
            };
            let removed = self.calls.remove(&oldest);
            bytes -= removed.map_or(0, |row| size(&row));
        }
    }
}
