//! `Fan`: two who show progress, as one.

use std::sync::Arc;

use crate::progress::{ProgressEvent, ProgressSink};

/// Passes every piece on to both.
#[derive(Debug)]
pub(crate) struct Fan(
    pub(crate) Arc<dyn ProgressSink>,
    pub(crate) Arc<dyn ProgressSink>,
);

impl ProgressSink for Fan {
    fn progress(&self, event: ProgressEvent) {
        self.0.progress(event.clone());
        self.1.progress(event);
    }
}
