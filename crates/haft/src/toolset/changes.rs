//! `Changes`: waits for changes of one or several toolsets.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio::sync::watch;

/// Waits for changes of one or several toolsets. A change between two waits is seen by the second.
#[derive(Debug, Default)]
pub struct Changes {
    receivers: Vec<watch::Receiver<u64>>,
}

impl Changes {
    /// Changes of one source.
    pub(crate) fn of(receiver: watch::Receiver<u64>) -> Self {
        Self {
            receivers: vec![receiver],
        }
    }

    /// Changes of this and that.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.receivers.extend(other.receivers);
        self
    }

    /// Completes at the next change; never where all sources are gone.
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
