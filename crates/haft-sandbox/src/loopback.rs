//! The loopback of one jail, as the host reaches into it: what listens there, and sockets in that network for the host.
//!
//! Each command has a network namespace of its own. The host joins the loopbacks of the commands that may reach each other: it listens
//! in one and connects in the other. For that it needs sockets of these namespaces, which only a process inside can open.

pub(crate) mod door;
pub(crate) mod listening;
mod place;

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;

use parking_lot::Mutex;

use crate::outlet::{NAMES_PORT, OUTLET_ADDRESS};

pub use self::door::LoopbackDoor;
use self::listening::Listening;
pub use self::listening::{ListeningPort, ListeningPorts};
pub use self::place::{JailPlace, NoPlace};

pub use crate::report::MAX_START_PORTS;

/// What a command shares of its loopback with others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedLoopback {
    /// The ports at which the host listens before the command starts; those that are taken are left out.
    pub ports: Vec<u16>,
}

impl SharedLoopback {
    /// Returns the ports that a jail can take: no more than descriptors can be handed over, and none of an outlet.
    pub(crate) fn first_ports(&self) -> Vec<u16> {
        let own = [OUTLET_ADDRESS.port(), NAMES_PORT, 0];
        let ports = self.ports.iter().copied();
        let ports = ports.filter(|port| !own.contains(port));
        ports.take(MAX_START_PORTS).collect()
    }
}

/// The loopback of a running jail.
#[derive(Debug)]
pub struct JailLoopback {
    place: JailPlace,
    /// The ports of an outlet, at which haft listens.
    outlet: Vec<u16>,
    listening: Mutex<Listening>,
    listeners: Mutex<Vec<TcpListener>>,
}

impl JailLoopback {
    pub(crate) fn new(place: JailPlace, link: OwnedFd, listeners: Vec<TcpListener>) -> Self {
        Self {
            place,
            outlet: Vec::new(),
            listening: Mutex::new(Listening::new(link)),
            listeners: Mutex::new(listeners),
        }
    }

    /// Leaves these ports out of lists, besides the outlet's address and that of names.
    pub(crate) fn without_outlet(mut self, ports: &[u16]) -> Self {
        self.outlet = [OUTLET_ADDRESS.port(), NAMES_PORT].to_vec();
        self.outlet.extend(ports);
        self
    }

    /// Returns where other processes of this user find the jail.
    pub fn place(&self) -> JailPlace {
        self.place
    }

    /// Returns the ports at which something listens, what the host opened by a [`LoopbackDoor`] included. Blocks for as long as the kernel
    /// needs to list them.
    ///
    /// # Errors
    /// The kernel does not list them, or there were too many once.
    pub fn listening(&self) -> io::Result<ListeningPorts> {
        let mut ports = self.listening.lock().ports()?;
        ports.retain(|port| !self.outlet.contains(&port.port));
        Ok(ports)
    }

    /// Takes the listeners that the host has had there since before the command started.
    pub fn take_listeners(&self) -> Vec<TcpListener> {
        std::mem::take(&mut *self.listeners.lock())
    }
}
