//! Signals that end a command: SIGINT and SIGTERM.

use tokio::signal::unix::{Signal as Waiting, SignalKind, signal};

use crate::problem::Problem;

/// Which signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// The system, or whoever started haft.
    Terminate,
}

/// Both signals, heard from when this is made: one that comes before it is waited for is not lost.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Waiting,
    terminate: Waiting,
}

impl Signals {
    /// Hears signals from now on; needs a runtime.
    pub(crate) fn heard() -> Result<Self, Problem> {
        let heard = |kind| signal(kind).map_err(|e| Problem::failed(format!("hear signals: {e}")));
        Ok(Self {
            interrupt: heard(SignalKind::interrupt())?,
            terminate: heard(SignalKind::terminate())?,
        })
    }

    /// Waits for either.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}
