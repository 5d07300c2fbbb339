//! What a jail hands to the host when its command starts: the listeners of its outlet, then the outer end of its terminal.

use std::io;
use std::os::fd::OwnedFd;

use crate::command::CommandSpec;
use crate::outlet::RunningOutlet;
use crate::terminal::CommandTerminal;

/// Takes the outer end of the command's terminal, which comes last, if it runs on one; a jail that handed over none is an error.
pub(super) fn terminal(
    spec: &CommandSpec,
    files: &mut Vec<OwnedFd>,
) -> io::Result<Option<CommandTerminal>> {
    let Some(wanted) = spec.terminal else {
        return Ok(None);
    };
    let master = files.pop().ok_or(io::ErrorKind::NotConnected)?;
    CommandTerminal::new(master, wanted).map(Some)
}

/// Opens the outlet if the command has one; a jail that handed over no listeners is an error.
pub(super) fn gate(
    spec: &CommandSpec,
    listeners: Vec<OwnedFd>,
) -> io::Result<Option<RunningOutlet>> {
    let outlet = spec.network.outlet();
    outlet
        .map(|outlet| RunningOutlet::open(outlet, listeners))
        .transpose()
}

/// Returns the kind of terminal that a command is told: on one, the kind that most emulators are like, and whose description every system has.
pub(super) fn terminal_kind(spec: &CommandSpec) -> &'static str {
    match spec.terminal {
        Some(_) => "xterm-256color",
        None => "dumb",
    }
}
