//! `GuardedSink`: a sink whose panic affects nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::future::BoxFuture;
use crate::progress::{ProgressEvent, ProgressSink};

/// Passes pieces on until the sink panics, and then none: a broken screen must not break the call's answer.
#[derive(Debug)]
pub(crate) struct GuardedSink {
    sink: Arc<dyn ProgressSink>,
    broken: AtomicBool,
}

impl GuardedSink {
    pub(crate) fn new(sink: Arc<dyn ProgressSink>) -> Self {
        Self {
            sink,
            broken: AtomicBool::new(false),
        }
    }
}

impl ProgressSink for GuardedSink {
    fn progress(&self, event: ProgressEvent) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        let shown = catch_unwind(AssertUnwindSafe(|| self.sink.progress(event)));
        if shown.is_err() {
            self.broken.store(true, Ordering::Relaxed);
            tracing::error!(sink = ?self.sink, "a progress sink panicked; it is told nothing more");
        }
    }

    fn is_exact(&self) -> bool {
        !self.broken.load(Ordering::Relaxed) && self.sink.is_exact()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        if self.broken.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(()));
        }
        self.sink.room()
    }
}
