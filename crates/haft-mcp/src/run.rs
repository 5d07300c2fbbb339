//! `Run`: a host with the protocol it is spoken to in, and what it has under way.

use std::sync::Arc;

use tokio::sync::watch;

use crate::era::Era;
use crate::host::Host;
use crate::in_flight::InFlight;

/// One run as the transports hold it.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) era: Era,
    pub(crate) in_flight: InFlight,
    ended: watch::Sender<bool>,
}

impl Run {
    pub(crate) fn new(host: Arc<dyn Host>, era: Era) -> Self {
        Self {
            host,
            era,
            in_flight: InFlight::default(),
            ended: watch::Sender::new(false),
        }
    }

    /// Waits until the run is over.
    pub(crate) async fn over(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives in `self`: waiting cannot fail.
        let _closed = ended.wait_for(|ended| *ended).await;
    }

    /// Cancels what is under way, ends its streams and closes the host's side. Once.
    pub(crate) async fn end(&self) {
        let first = self.ended.send_if_modified(|ended| {
            let first = !*ended;
            *ended = true;
            first
        });
        if first {
            self.in_flight.cancel_all();
            self.host.close().await;
        }
    }
}
