//! Sends records to every sink. A sink that panics counts as failed and affects nothing else.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use crate::audit::{AuditError, AuditEvent, AuditSink};

/// Sends the event to every sink, in order, and returns the first failure. The last sink gets the event itself.
pub(super) fn record(sinks: &[Arc<dyn AuditSink>], event: AuditEvent) -> Result<(), AuditError> {
    let Some((last, others)) = sinks.split_last() else {
        return Ok(());
    };
    for sink in others {
        record_event(sink, event.clone())?;
    }
    record_event(last, event)
}

fn record_event(sink: &Arc<dyn AuditSink>, event: AuditEvent) -> Result<(), AuditError> {
    let recorded = catch_unwind(AssertUnwindSafe(|| sink.record(event)));
    recorded.unwrap_or_else(|_| Err(panicked(sink)))
}

/// Sends the event to every sink and waits until each has stored it durably.
pub(super) async fn record_durably(
    sinks: &[Arc<dyn AuditSink>],
    event: &AuditEvent,
) -> Result<(), AuditError> {
    for sink in sinks {
        let recording = catch_unwind(AssertUnwindSafe(|| sink.record_durably(event.clone())));
        let mut telling = recording.map_err(|_| panicked(sink))?;
        let told = poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| telling.as_mut().poll(cx)));
            polled.unwrap_or_else(|_| Poll::Ready(Err(panicked(sink))))
        });
        told.await?;
    }
    Ok(())
}

fn panicked(sink: &Arc<dyn AuditSink>) -> AuditError {
    AuditError::new(format!("the sink {} panicked", sink.name()))
}
