//! Signals that end a command: SIGINT, SIGTERM and SIGHUP.

use tokio::signal::unix::{Signal as Waiting, SignalKind, signal};

use haft_app::problem::Problem;

/// Which signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// The system, or whoever started haft; also a terminal that was closed.
    Terminate,
}

/// All of them, heard from when this is made: one that comes before it is waited for is not lost.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Waiting,
    terminate: Waiting,
    /// None where whoever started haft had it ignored: `nohup` means it.
    hangup: Option<Waiting>,
}

impl Signals {
    /// Hears signals from now on; needs a runtime.
    pub(crate) fn heard() -> Result<Self, Problem> {
        let heard = |kind| signal(kind).map_err(|e| Problem::failed(format!("hear signals: {e}")));
        // Before a handler takes its place.
        let hangup = (!is_hangup_ignored()).then(|| heard(SignalKind::hangup()));
        Ok(Self {
            interrupt: heard(SignalKind::interrupt())?,
            terminate: heard(SignalKind::terminate())?,
            hangup: hangup.transpose()?,
        })
    }

    /// Waits for the first of them.
    pub(crate) async fn next(&mut self) -> Signal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = hangup => Signal::Terminate,
        }
    }
}

/// Whether SIGHUP is ignored (`proc_pid_status(5)`: the lowest bit of `SigIgn`).
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}
