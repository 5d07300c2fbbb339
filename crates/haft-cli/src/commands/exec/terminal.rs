//! `AttendedTerminal`: the user's own terminal while a command of `haft exec -t` runs on it: raw, its size followed, restored on every way out.

use std::io::{self, IsTerminal as _, Write as _};
use std::panic;
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll};

use haft::input::{CallInput, ScreenSize};
use haft_app::problem::Problem;
use haft_sandbox::ScreenFilter;
use parking_lot::Mutex;
use rustix::process::Signal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::terminal::stdin::StdinRouter;

/// How the terminal was before it was made raw. Global, because a panic anywhere must restore it.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// Sets the hook for panics, once.
static HOOK: Once = Once::new();

/// The user's terminal; dropping this restores it.
#[derive(Debug)]
pub(super) struct AttendedTerminal {
    router: Arc<StdinRouter>,
    size: watch::Sender<ScreenSize>,
    /// Passes on what may reach the terminal, and knows what resets it.
    filter: Mutex<ScreenFilter>,
    follows: Mutex<Option<AbortHandle>>,
}

impl AttendedTerminal {
    /// Takes the terminal that standard input and output are.
    ///
    /// # Errors
    /// One of them is no terminal.
    pub(super) fn take(router: &Arc<StdinRouter>) -> Result<Arc<Self>, Problem> {
        let ends = [
            ("standard input", io::stdin().is_terminal()),
            ("standard output", io::stdout().is_terminal()),
        ];
        if let Some((name, _)) = ends.iter().find(|(_, is_terminal)| !is_terminal) {
            let what = format!("haft exec -t needs a terminal, and {name} is none");
            return Err(Problem::usage(what).advise("run it at a terminal, or leave -t out"));
        }
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                restore();
                before(panicked);
            }));
        });
        let terminal = Arc::new(Self {
            router: Arc::clone(router),
            size: watch::Sender::new(size()),
            filter: Mutex::default(),
            follows: Mutex::default(),
        });
        Ok(terminal)
    }

    /// Returns the input for the call: what is typed from when its command runs.
    pub(super) fn input(self: &Arc<Self>) -> Arc<CallInput> {
        let keys = TypedKeys {
            terminal: Arc::clone(self),
            keys: None,
            rest: Vec::new(),
        };
        Arc::new(CallInput::terminal(keys, self.size.subscribe()))
    }

    /// Makes the terminal raw and follows its size, from now until [`leave`](Self::leave).
    fn enter(self: &Arc<Self>) -> io::Result<mpsc::Receiver<Vec<u8>>> {
        make_raw()?;
        self.size.send_replace(size());
        // They wake this process when the size changes, and when it goes on after it was stopped.
        let mut changed = signal(SignalKind::window_change())?;
        let mut woken = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        let sizes = self.size.clone();
        let follows = tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = changed.recv() => {}
                    _ = woken.recv() => {
                        let _ = make_raw();
                    }
                }
                sizes.send_replace(size());
            }
        });
        *self.follows.lock() = Some(follows.abort_handle());
        Ok(self.router.bytes())
    }

    /// Returns what of the output may reach the terminal.
    pub(super) fn passed(&self, bytes: &[u8]) -> Vec<u8> {
        self.filter.lock().push(bytes)
    }

    /// Gives the keyboard back, and the terminal's modes. Returns what resets what the command left switched on, to be written behind
    /// its output. Does nothing if it was given back.
    pub(super) fn leave(&self) -> Vec<u8> {
        if let Some(follows) = self.follows.lock().take() {
            follows.abort();
        }
        self.router.end_bytes();
        restore();
        self.filter.lock().finish()
    }
}

impl Drop for AttendedTerminal {
    fn drop(&mut self) {
        let reset = self.leave();
        if !reset.is_empty() {
            let mut stdout = io::stdout();
            let _ = stdout.write_all(&reset).and_then(|()| stdout.flush());
        }
    }
}

/// Whether a command has the terminal now.
pub(super) fn is_raw() -> bool {
    BEFORE.lock().is_some()
}

fn make_raw() -> io::Result<()> {
    let mut before = BEFORE.lock();
    let now = tcgetattr(io::stdin())?;
    let mut raw = now.clone();
    raw.make_raw();
    before.get_or_insert(now);
    Ok(tcsetattr(io::stdin(), OptionalActions::Now, &raw)?)
}

/// Restores the terminal's modes, if they were changed.
pub(super) fn restore() {
    // A panic while this lock is held must not wait for itself.
    let Some(mut before) = BEFORE.try_lock() else {
        return;
    };
    if let Some(modes) = before.take() {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
}

/// Returns the size of the terminal; 24 rows of 80 columns if it does not know.
fn size() -> ScreenSize {
    let known = tcgetwinsize(io::stdout()).ok();
    let known = known.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    known.map_or(ScreenSize { rows: 24, cols: 80 }, |size| ScreenSize {
        rows: size.ws_row,
        cols: size.ws_col,
    })
}

/// What is typed. The terminal becomes raw when the command reads first, so that until then Ctrl-C ends haft.
struct TypedKeys {
    terminal: Arc<AttendedTerminal>,
    keys: Option<mpsc::Receiver<Vec<u8>>>,
    rest: Vec<u8>,
}

impl AsyncRead for TypedKeys {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let keys = match this.keys.take() {
            Some(keys) => keys,
            None => this.terminal.enter()?,
        };
        let keys = this.keys.insert(keys);
        if this.rest.is_empty() {
            match keys.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(bytes)) => this.rest = bytes,
            }
        }
        let count = this.rest.len().min(buffer.remaining());
        buffer.put_slice(&this.rest[..count]);
        this.rest.drain(..count);
        Poll::Ready(Ok(()))
    }
}
