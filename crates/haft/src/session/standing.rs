//! State that stays with a run: what a user allowed for the session, secrets whose reading was approved, untrusted content that was read, effects that were counted.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::approval::Grant;
use crate::budget::{EffectCounts, RunEffectCounts};
use crate::policy::{RunHistory, RunProperties};
use crate::provenance::MarkStore;
use crate::session::{RunGroup, Session};
use crate::untrusted::{SeenLinks, UntrustedSource, UntrustedSources};

/// Where the content that a run has read comes from, and what follows from that for its calls.
#[derive(Debug, Default)]
pub(super) struct ContentOrigins {
    /// Untrusted sources that were read.
    pub(super) untrusted: UntrustedSources,
    /// The addresses that stood in what was read.
    links: Arc<SeenLinks>,
    /// Which of the Rule of Two the run holds, besides the sources.
    pub(super) properties: Mutex<RunProperties>,
    /// Where untrusted content is noted beyond the run.
    pub(super) provenance: Option<Arc<dyn MarkStore>>,
}

impl Session {
    /// Returns what the user allowed for the session, in this run or another of its group.
    pub(crate) fn grants(&self) -> Vec<Grant> {
        let mut grants = self.parts.run.grants.lock().clone();
        if let Some(group) = self.group() {
            grants.extend(group.grants());
        }
        grants
    }

    /// Adds what the user allowed for the session.
    pub(crate) fn grant(&self, grant: Grant) {
        if let Some(group) = self.group() {
            group.add(&grant);
        }
        self.parts.run.grants.lock().push(grant);
    }

    /// Returns the runs that it belongs to, if it is one of several.
    pub fn group(&self) -> Option<&RunGroup> {
        self.parts.run.group.as_deref()
    }

    /// Returns the secrets whose reading was approved in the run.
    pub(crate) fn released(&self) -> Arc<[String]> {
        Arc::clone(&self.parts.run.released.lock())
    }

    /// Notes that reading these secrets was approved.
    pub(crate) fn release(&self, paths: Vec<String>) {
        if paths.is_empty() {
            return;
        }
        let mut released = self.parts.run.released.lock();
        let mut all = released.to_vec();
        all.extend(paths);
        all.sort();
        all.dedup();
        *released = all.into();
    }

    /// Returns the untrusted sources that the run has read.
    pub fn untrusted(&self) -> Arc<[UntrustedSource]> {
        self.parts.run.origins.untrusted.all()
    }

    /// Returns the untrusted sources for the record of a call that began when there were `before`.
    pub(crate) fn untrusted_for_record(&self, before: usize) -> Vec<UntrustedSource> {
        self.parts.run.origins.untrusted.take_for_record(before)
    }

    /// Returns what the run has done so far, for the verdict on its next call.
    pub fn history(&self) -> RunHistory {
        let properties = *self.parts.run.origins.properties.lock();
        RunHistory {
            released: self.released(),
            untrusted: self.untrusted(),
            links: Arc::clone(self.links()),
            private: properties.private,
            sent: properties.sends,
            used: Some(self.uses()),
        }
    }

    /// Notes what a call adds to what the run holds of the Rule of Two.
    pub(crate) fn note_properties(&self, added: RunProperties) {
        let mut held = self.parts.run.origins.properties.lock();
        *held = held.or(added);
    }

    /// Returns where untrusted content is noted beyond the run.
    pub(crate) fn provenance(&self) -> Option<&Arc<dyn MarkStore>> {
        self.parts.run.origins.provenance.as_ref()
    }

    /// Notes untrusted sources that were read: by a call, or where this process did not see it, by what the run works for.
    pub fn note_untrusted(&self, sources: Vec<UntrustedSource>) {
        if let Some(provenance) = self.provenance().filter(|_| !sources.is_empty())
            && let Err(error) = provenance.keep(&sources)
        {
            tracing::error!(%error, run = %self.run(), "keep what a run has read for its client's later runs");
        }
        self.parts.run.origins.untrusted.note(sources);
    }

    /// Returns the addresses that stood in what the run has read, or in what its user wrote: such a link may be followed back to where the
    /// content came from.
    pub fn links(&self) -> &Arc<SeenLinks> {
        &self.parts.run.origins.links
    }

    /// Returns what its calls have used of the effect budgets.
    pub fn uses(&self) -> EffectCounts {
        self.parts.run.uses.now()
    }

    /// Returns the counter of these uses.
    pub(crate) fn run_uses(&self) -> &Arc<RunEffectCounts> {
        &self.parts.run.uses
    }
}
