//! `Tee`: combines two progress sinks.

use std::sync::Arc;

use crate::future::BoxFuture;
use crate::progress::guarded::GuardedSink;
use crate::progress::{ProgressEvent, ProgressSink};

/// Passes every piece to both sinks.
#[derive(Debug)]
pub(crate) struct Tee(GuardedSink, GuardedSink);

impl Tee {
    pub(crate) fn new(one: Arc<dyn ProgressSink>, two: Arc<dyn ProgressSink>) -> Self {
        Self(GuardedSink::new(one), GuardedSink::new(two))
    }
}

impl ProgressSink for Tee {
    fn progress(&self, event: ProgressEvent) {
        self.0.progress(event.clone());
        self.1.progress(event);
    }

    fn is_exact(&self) -> bool {
        self.0.is_exact() || self.1.is_exact()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.0.room().await;
            self.1.room().await;
        })
    }
}
