//! The terminal that a command runs on, as seen from outside: a pseudo-terminal of the jail whose other end this process holds.
//!
//! Output comes in two forms. The text goes to the command's log: lines without escape sequences, in which a line that was drawn
//! many times stands once. The screen, if somebody watches it, goes to a log of its own: what of the output may reach a person's
//! terminal. This process never opens the terminal by a name and never is in its session, so it cannot become its own.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::termios::{InputModes, LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::output::Log;
use crate::sys;

mod controls;
mod filter;
mod text;

pub use filter::ScreenFilter;
use text::ScreenText;

/// Bytes kept of a screen that somebody watches: enough for a follower, who may be half of the newest bytes behind.
const SCREEN: usize = 4 << 20;
/// How often input is tried again if the terminal has no room for it.
const AGAIN: Duration = Duration::from_millis(50);
/// What ends the input of a program that reads lines (`VEOF`).
const END_OF_INPUT: u8 = 0x04;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}

impl Default for TerminalSize {
    /// 24 rows of 80 columns.
    fn default() -> Self {
        Self { rows: 24, cols: 80 }
    }
}

impl TerminalSize {
    pub(crate) fn window(self) -> Winsize {
        Winsize {
            ws_row: self.rows.max(1),
            ws_col: self.cols.max(1),
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    }
}

/// A terminal for a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalSpec {
    /// Its size at the start.
    pub size: TerminalSize,
    /// Whether somebody watches its screen ([`CommandTerminal::screen`]).
    pub watched: bool,
}

/// How a program reads its terminal now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputMode {
    /// Whether it reads whole lines, of which the kernel keeps at most [`LONGEST_LINE`](CommandTerminal::LONGEST_LINE) bytes.
    pub lines: bool,
    /// Whether the return key is the end of a line to it.
    pub returns: bool,
}

/// The terminal of a running command.
#[derive(Debug)]
pub struct CommandTerminal {
    /// `None` once the command has ended.
    master: Mutex<Option<Arc<AsyncFd<OwnedFd>>>>,
    drawn: Mutex<DrawnOutput>,
    /// The screen, if somebody watches it.
    screen: Option<Log>,
    /// The number of bytes that the command has written.
    written: watch::Sender<u64>,
}

#[derive(Debug)]
struct DrawnOutput {
    text: ScreenText,
    filter: ScreenFilter,
}

impl CommandTerminal {
    /// The longest line that a program gets which reads lines (`N_TTY_BUF_SIZE`, without its end).
    pub const LONGEST_LINE: usize = 4095;

    /// Takes the outer end of a command's terminal.
    pub(crate) fn new(master: OwnedFd, spec: TerminalSpec) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&master, true)?;
        let master = sys::watch_for(master, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            master: Mutex::new(Some(Arc::new(master))),
            drawn: Mutex::new(DrawnOutput {
                text: ScreenText::new(spec.size.cols),
                filter: ScreenFilter::default(),
            }),
            screen: spec.watched.then(|| Log::new(SCREEN)),
            written: watch::Sender::new(0),
        })
    }

    /// Returns what of its output may reach a person's terminal, with every byte of it safe to write there; `None` if it is not watched.
    pub fn screen(&self) -> Option<&Log> {
        self.screen.as_ref()
    }

    /// Returns what is drawn of the line under the cursor (a prompt, a progress bar) and is not in the log yet.
    pub fn line(&self) -> String {
        self.drawn.lock().text.line()
    }

    /// Returns how many bytes the command has written to it.
    pub fn written(&self) -> u64 {
        *self.written.borrow()
    }

    /// Waits until the command has written more than `seen` bytes.
    pub async fn changed(&self, seen: u64) {
        let mut written = self.written.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ = written.wait_for(|written| *written > seen).await;
    }

    /// Returns how the program reads now, if it has not ended.
    pub fn input_mode(&self) -> Option<InputMode> {
        let modes = tcgetattr(self.master()?.get_ref()).ok()?;
        Some(InputMode {
            lines: modes.local_modes.contains(LocalModes::ICANON),
            returns: modes.input_modes.contains(InputModes::ICRNL),
        })
    }

    /// Tells the command that its terminal has another size.
    pub fn resize(&self, size: TerminalSize) {
        if let Some(master) = self.master() {
            self.drawn.lock().text.set_columns(size.cols);
            let _ = tcsetwinsize(master.get_ref(), size.window());
        }
    }

    /// Types bytes, and waits until `deadline` while the terminal has no room for them. Returns the number of bytes typed.
    ///
    /// # Errors
    /// If the command has ended.
    pub async fn input(&self, bytes: &[u8], deadline: std::time::Instant) -> io::Result<usize> {
        let deadline = Instant::from_std(deadline);
        let mut typed = 0;
        while typed < bytes.len() {
            let master = self.master().ok_or(io::ErrorKind::BrokenPipe)?;
            let wrote = master.try_io(Interest::WRITABLE, |master| {
                Ok(rustix::io::write(master, &bytes[typed..])?)
            });
            match wrote {
                Ok(count @ 1..) => typed += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) if Instant::now() >= deadline => break,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Err(error);
                }
                _ => {
                    // The kernel need not wake a writer of a terminal whenever there is room.
                    let soon = deadline.min(Instant::now() + AGAIN);
                    let _ = timeout_at(soon, master.writable()).await;
                    tokio::task::yield_now().await;
                }
            }
        }
        Ok(typed)
    }

    /// Types the end of the input, which a program that reads lines takes as such at the start of a line.
    ///
    /// # Errors
    /// If the command has ended.
    pub async fn end_input(&self, deadline: std::time::Instant) -> io::Result<usize> {
        self.input(&[END_OF_INPUT], deadline).await
    }

    pub(crate) fn master(&self) -> Option<Arc<AsyncFd<OwnedFd>>> {
        self.master.lock().clone()
    }

    /// Adds output to the screen and, line by line, to the log.
    pub(crate) fn take(&self, bytes: &[u8], log: &Log) {
        let mut drawn = self.drawn.lock();
        log.append(drawn.text.push(bytes).as_bytes());
        if let Some(screen) = &self.screen {
            screen.append(&drawn.filter.push(bytes));
        }
        self.written
            .send_modify(|written| *written += bytes.len() as u64);
    }

    /// Adds the line under the cursor to the log as it is now.
    pub(crate) fn show_line(&self, log: &Log) {
        log.append(self.drawn.lock().text.take_line().as_bytes());
    }

    /// Ends both forms of the output and closes the terminal.
    pub(crate) fn finish(&self, log: &Log) {
        *self.master.lock() = None;
        let mut drawn = self.drawn.lock();
        log.append(drawn.text.finish().as_bytes());
        if let Some(screen) = &self.screen {
            screen.append(&drawn.filter.finish());
            screen.finish();
        }
    }
}
