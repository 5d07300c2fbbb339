//! What stays with a run once it has happened: secrets whose reading was approved, untrusted content that was read, effects that were
//! counted.

use std::sync::Arc;

use crate::budget::{RunUses, Uses};
use crate::session::Session;
use crate::untrusted::UntrustedSource;

impl Session {
    /// The secrets whose reading was approved in the run.
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

    /// What the run has read that strangers may have written.
    pub fn untrusted(&self) -> Arc<[UntrustedSource]> {
        self.parts.run.untrusted.all()
    }

    /// Notes what was read that strangers may have written.
    pub(crate) fn note_untrusted(&self, sources: Vec<UntrustedSource>) {
        self.parts.run.untrusted.note(sources);
    }
    /// What its calls have used of the budgets of effects.
    pub fn uses(&self) -> Uses {
        self.parts.run.uses.now()
    }

    /// Where that is counted.
    pub(crate) fn run_uses(&self) -> &Arc<RunUses> {
        &self.parts.run.uses
    }
}
