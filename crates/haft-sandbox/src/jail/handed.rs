//! What a jail hands to the host when its command starts: the listeners of its outlet, those of a shared loopback, then the outer end of
//! its terminal.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, getsockname, sockopt};

use super::failed;
use super::plan::{JailNetwork, SupervisorPlan};
use crate::StartError;
use crate::command::CommandSpec;
use crate::loopback::{JailLoopback, JailPlace};
use crate::outlet::RunningOutlet;
use crate::terminal::CommandTerminal;

/// What the host has of a jail besides its output.
#[derive(Debug)]
pub(super) struct HandedFiles {
    pub(super) terminal: Option<CommandTerminal>,
    /// Answers the command's connections.
    pub(super) gate: Option<RunningOutlet>,
    /// Its loopback, if it shares that.
    pub(super) loopback: Option<JailLoopback>,
}

impl HandedFiles {
    /// Takes what the jail of a started command must have handed over.
    pub(super) fn take(
        spec: &CommandSpec,
        plan: &SupervisorPlan,
        supervisor: u32,
        mut files: Vec<OwnedFd>,
    ) -> Result<Self, StartError> {
        let terminal = terminal(spec, &mut files).map_err(failed("open its terminal"))?;
        let loopback = loopback(plan, supervisor, &mut files);
        let gate = gate(spec, files).map_err(failed("open the outlet"))?;
        Ok(Self {
            terminal,
            gate,
            loopback,
        })
    }

    /// Takes what is left to read of a jail that has ended: its terminal, if it has handed over one.
    pub(super) fn of_ended(
        spec: &CommandSpec,
        mut files: Vec<OwnedFd>,
    ) -> Result<Self, StartError> {
        let terminal = if files.is_empty() {
            None
        } else {
            terminal(spec, &mut files).map_err(failed("open its terminal"))?
        };
        Ok(Self {
            terminal,
            gate: None,
            loopback: None,
        })
    }
}

/// Takes the outer end of the command's terminal, which comes last, if it runs on one; a jail that handed over none is an error.
fn terminal(spec: &CommandSpec, files: &mut Vec<OwnedFd>) -> io::Result<Option<CommandTerminal>> {
    let Some(wanted) = spec.terminal else {
        return Ok(None);
    };
    let master = files.pop().ok_or(io::ErrorKind::NotConnected)?;
    CommandTerminal::new(master, wanted).map(Some)
}

/// Takes what belongs to a shared loopback: the link by which it is listed, and the listeners at its ports. An outlet's are at every
/// address, or at its own. `None` if it is not shared, or cannot be.
fn loopback(
    plan: &SupervisorPlan,
    supervisor: u32,
    files: &mut Vec<OwnedFd>,
) -> Option<JailLoopback> {
    let ports = plan.shares.as_ref()?;
    let (mut link, mut listeners) = (None, Vec::new());
    for file in std::mem::take(files) {
        if sockopt::socket_domain(&file) == Ok(AddressFamily::NETLINK) {
            link = Some(file);
            continue;
        }
        let at = getsockname(&file)
            .ok()
            .and_then(|at| SocketAddr::try_from(at).ok());
        let is_shared = |at: &SocketAddr| at.ip().is_loopback() && ports.contains(&at.port());
        if at.as_ref().is_some_and(is_shared) {
            listeners.push(TcpListener::from(file));
        } else {
            files.push(file);
        }
    }
    let place = JailPlace::of(supervisor)?;
    let loopback = JailLoopback::new(place, link?, listeners);
    Some(match plan.net {
        JailNetwork::Outlet => loopback.without_outlet(&plan.ports),
        JailNetwork::Own | JailNetwork::Host => loopback,
    })
}

/// Opens the outlet if the command has one; a jail that handed over no listeners is an error.
fn gate(spec: &CommandSpec, listeners: Vec<OwnedFd>) -> io::Result<Option<RunningOutlet>> {
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
