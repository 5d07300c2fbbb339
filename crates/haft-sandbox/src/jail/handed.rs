//! What a jail hands to the host once its command runs: the listener of its outlet, the outer end of its terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::command::{CommandSpec, Network};
use crate::outlet::RunningOutlet;
use crate::terminal::CommandTerminal;

/// Opens the outlet if the command has one; a jail that handed over no listener is an error.
pub(super) fn gate(
    spec: &CommandSpec,
    files: &mut impl Iterator<Item = OwnedFd>,
) -> io::Result<Option<RunningOutlet>> {
    let Network::Outlet(outlet) = &spec.network else {
        return Ok(None);
    };
    let listener = files.next().ok_or(io::ErrorKind::NotConnected)?;
    RunningOutlet::open(listener, Arc::clone(outlet)).map(Some)
}

/// Takes the outer end of the command's terminal if it runs on one; a jail that handed over none is an error.
pub(super) fn terminal(
    spec: &CommandSpec,
    files: &mut impl Iterator<Item = OwnedFd>,
) -> io::Result<Option<CommandTerminal>> {
    let Some(wanted) = spec.terminal else {
        return Ok(None);
    };
    let master = files.next().ok_or(io::ErrorKind::NotConnected)?;
    CommandTerminal::new(master, wanted).map(Some)
}

/// Returns the kind of terminal that a command is told: on one, the kind that most emulators are like, and whose description every system has.
pub(super) fn terminal_kind(spec: &CommandSpec) -> &'static str {
    match spec.terminal {
        Some(_) => "xterm-256color",
        None => "dumb",
    }
}
