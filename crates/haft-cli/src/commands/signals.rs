//! Signals that end a command: SIGINT, SIGTERM and SIGHUP.

use tokio::signal::unix::{Signal as Waiting, SignalKind, signal};

use haft_app::problem::Problem;

/// The signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// The system, or the process that started haft; also a closed terminal.
    Terminate,
}

/// All of them, from the moment this is created: a signal that arrives before it is awaited is not lost.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Waiting,
    terminate: Waiting,
    /// `None` if the parent process had it ignored, which is the purpose of `nohup`.
    hangup: Option<Waiting>,
    /// `None` if it ends the process at once, as it does by default.
    quit: Option<Waiting>,
}

impl Signals {
    /// Listens for signals from now on; needs a runtime.
    pub(crate) fn heard() -> Result<Self, Problem> {
        let heard =
            |kind| signal(kind).map_err(|e| Problem::failed(format!("cannot hear signals: {e}")));
        // Checked before a handler replaces the disposition.
        let hangup = (!is_hangup_ignored()).then(|| heard(SignalKind::hangup()));
        Ok(Self {
            interrupt: heard(SignalKind::interrupt())?,
            terminate: heard(SignalKind::terminate())?,
            hangup: hangup.transpose()?,
            quit: None,
        })
    }

    /// Listens for SIGQUIT, too: for a process that has a terminal to restore.
    pub(crate) fn heard_with_quit() -> Result<Self, Problem> {
        let quit = signal(SignalKind::quit());
        Ok(Self {
            quit: Some(quit.map_err(|e| Problem::failed(format!("cannot hear signals: {e}")))?),
            ..Self::heard()?
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
        let quit = async {
            match &mut self.quit {
                Some(quit) => quit.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = hangup => Signal::Terminate,
            _ = quit => Signal::Terminate,
        }
    }
}

/// Returns whether SIGHUP is ignored (`proc_pid_status(5)`: the lowest bit of `SigIgn`).
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}
