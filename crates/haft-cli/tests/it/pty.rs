//! A real terminal with the binary: what appears on the screen, and what a user types.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::approvals::wait;
use crate::harness::{Lab, Ran};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal in which the binary runs.
pub(crate) struct Pty {
    child: Child,
    typing: File,
    seen: mpsc::Receiver<String>,
    screen: String,
    /// How much of the screen was already matched.
    read: usize,
}

impl Pty {
    /// Starts a command whose input and messages are a terminal; its stdout is a pipe.
    pub(crate) fn start(lab: &Lab, args: &[&str]) -> Self {
        Self::open(lab, args, 0, false)
    }

    /// Starts a command with all streams on a terminal with this many columns.
    pub(crate) fn whole(lab: &Lab, args: &[&str], columns: u16) -> Self {
        Self::open(lab, args, columns, true)
    }

    fn open(lab: &Lab, args: &[&str], columns: u16, whole: bool) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = || {
            let path = name.to_str().unwrap();
            let file = File::options().read(true).write(true).open(path).unwrap();
            Stdio::from(file)
        };
        let mut command = lab.command(args);
        command.stdin(slave()).stderr(slave());
        if whole {
            command.stdout(slave());
        }
        let child = command.spawn().unwrap();
        // The parent keeps no copy of its end, so that the reader sees end of file when the child exits.
        drop(command);
        let typing = File::from(master);
        Self {
            child,
            seen: reader(typing.try_clone().unwrap()),
            typing,
            screen: String::new(),
            read: 0,
        }
    }

    /// Waits until this appears after what was matched before; returns everything up to it.
    pub(crate) fn expect(&mut self, text: &str) -> &str {
        let from = self.read;
        loop {
            if let Some(at) = self.screen[from..].find(text) {
                self.read = from + at + text.len();
                return &self.screen[from..self.read];
            }
            let more = self.seen.recv_timeout(PATIENCE);
            let more = more.unwrap_or_else(|e| panic!("{e}: no {text:?} in {}", self.screen));
            self.screen.push_str(&more);
        }
    }

    /// Types a line.
    pub(crate) fn enter(&mut self, line: &str) {
        self.typing
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    /// Types without ending the line.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.typing.write_all(text.as_bytes()).unwrap();
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, rows: u16, cols: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.typing, size).unwrap();
    }

    /// Returns whether the terminal passes on each key as it is.
    pub(crate) fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.typing).unwrap().local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits until the terminal passes on each key as it is.
    pub(crate) fn wait_until_raw(&self) {
        wait("a raw terminal", || self.is_raw().then_some(()));
    }

    /// Waits until the terminal is as it was at the start.
    pub(crate) fn wait_until_cooked(&self) {
        wait("a restored terminal", || {
            let modes = tcgetattr(&self.typing).unwrap().local_modes;
            let all = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            modes.contains(all).then_some(())
        });
    }

    /// Returns the process's number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it at once.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Waits for its exit; `stderr` is everything that was on the screen.
    pub(crate) fn end(mut self) -> Ran {
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).unwrap();
        }
        let status = self.child.wait().unwrap();
        while let Ok(more) = self.seen.recv_timeout(PATIENCE) {
            self.screen.push_str(&more);
        }
        Ran {
            code: status.code().unwrap_or(-1),
            stdout,
            stderr: std::mem::take(&mut self.screen),
        }
    }
}

/// A test that fails leaves no process.
impl Drop for Pty {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what appears on the screen, as it comes; closed at its end.
fn reader(mut screen: File) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let (mut block, mut rest) = ([0; 4096], Vec::new());
        // A terminal that no process holds any more returns an error.
        while let Ok(read @ 1..) = screen.read(&mut block) {
            rest.extend_from_slice(&block[..read]);
            // A character may arrive in two pieces.
            let whole = match std::str::from_utf8(&rest) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => rest.len(),
            };
            let text = String::from_utf8_lossy(&rest[..whole]).into_owned();
            rest.drain(..whole);
            if send.send(text).is_err() {
                return;
            }
        }
    });
    receive
}
