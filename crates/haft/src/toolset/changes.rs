//! `ToolsetChanges`: waits for changes of one or several toolsets.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio::sync::watch;

/// Waits for changes of one or several toolsets. The next wait sees a change that happens between two waits.
#[derive(Debug, Default)]
pub struct ToolsetChanges {
    receivers: Vec<watch::Receiver<u64>>,
}

impl ToolsetChanges {
    /// Creates a receiver for changes of one source.
    pub(crate) fn of(receiver: watch::Receiver<u64>) -> Self {
        Self {
            receivers: vec![receiver],
        }
    }

    /// Adds the sources of another receiver.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.receivers.extend(other.receivers);
        self
    }

    /// Completes at the next change; never completes if all sources are dropped.
    pub async fn changed(&mut self) {
        let mut waits: Vec<Pin<Box<_>>> = self
            .receivers
            .iter_mut()
            .map(|receiver| Box::pin(receiver.changed()))
            .collect();
        poll_fn(|cx| {
            let mut changed = false;
            waits.retain_mut(|wait| match wait.as_mut().poll(cx) {
                Poll::Ready(Ok(())) => {
                    changed = true;
                    true
                }
                Poll::Ready(Err(_)) => false,
                Poll::Pending => true,
            });
            if changed {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}
