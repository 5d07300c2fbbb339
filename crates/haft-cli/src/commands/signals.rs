//! Signals that end a command: SIGINT, SIGTERM and SIGHUP; at a terminal, all that would leave it raw.

use std::future::poll_fn;
use std::task::Poll;

use haft_app::problem::Problem;
use rustix::process::Signal as Sent;
use tokio::signal::unix::{Signal as Waiting, SignalKind, signal};

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
    /// Others that would end this process at once.
    others: Vec<Waiting>,
}

/// What a process that has a terminal to restore hears, too, as `signal(7)` names them: whatever ends a process by default and another one may
/// send. Not those by which the kernel reports an error of the process itself.
fn deadly() -> impl Iterator<Item = i32> {
    let named = [
        Sent::QUIT,
        Sent::USR1,
        Sent::USR2,
        Sent::ALARM,
        Sent::STKFLT,
        Sent::XCPU,
        Sent::XFSZ,
        Sent::VTALARM,
        Sent::PROF,
        Sent::IO,
        Sent::POWER,
    ];
    named.map(Sent::as_raw).into_iter().chain(REAL_TIME)
}

/// Those for real time; the C library has taken the first two.
const REAL_TIME: std::ops::RangeInclusive<i32> = 34..=64;

impl Signals {
    /// Listens for signals from now on; needs a runtime.
    pub(crate) fn heard() -> Result<Self, Problem> {
        let heard =
            |kind| signal(kind).map_err(|e| Problem::failed(format!("cannot hear signals: {e}")));
        // Checked before a handler replaces the disposition.
        let is_heard = !holds(ignored(), Sent::HUP.as_raw());
        let hangup = is_heard.then(|| heard(SignalKind::hangup()));
        Ok(Self {
            interrupt: heard(SignalKind::interrupt())?,
            terminate: heard(SignalKind::terminate())?,
            hangup: hangup.transpose()?,
            others: Vec::new(),
        })
    }

    /// Listens for all that would end this process and leave its terminal as it is.
    pub(crate) fn heard_at_a_terminal() -> Result<Self, Problem> {
        let mask = ignored();
        let mut signals = Self::heard()?;
        for number in deadly().filter(|number| !holds(mask, *number)) {
            let other = signal(SignalKind::from_raw(number));
            let other = other.map_err(|e| Problem::failed(format!("cannot hear signals: {e}")))?;
            signals.others.push(other);
        }
        Ok(signals)
    }

    /// Waits for the first of them.
    pub(crate) async fn next(&mut self) -> Signal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let others = &mut self.others;
        let other = poll_fn(|context| {
            let arrived = others
                .iter_mut()
                .any(|one| one.poll_recv(context).is_ready());
            if arrived {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = hangup => Signal::Terminate,
            () = other => Signal::Terminate,
        }
    }
}

/// Returns the signals that are ignored (`proc_pid_status(5)`: the lowest bit of `SigIgn` is for number 1).
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0)
}

fn holds(mask: u64, number: i32) -> bool {
    mask >> (number - 1) & 1 == 1
}
