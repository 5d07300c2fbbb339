//! Signals that end a command: SIGINT and SIGTERM.

use tokio::signal::unix::{SignalKind, signal};

/// Which signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// The system, or whoever started haft.
    Terminate,
}

/// Waits for either. Where signals cannot be had it waits for ever: the default action then ends the process.
pub(crate) async fn next() -> Signal {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => Signal::Interrupt,
        _ = terminate.recv() => Signal::Terminate,
    }
}

/// Waits for either, whichever it is.
pub(crate) async fn told_to_stop() {
    next().await;
}
