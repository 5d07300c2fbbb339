//! `ServiceGroup`: the commands that reach each other's servers, and the ways into their networks.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use haft_sandbox::{JailPlace, LoopbackDoor, MAX_START_PORTS, NAMES_PORT, OUTLET_ADDRESS, Sandbox};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, Semaphore};

use crate::services::exposed::ExposedPort;
use crate::services::record::{self, ServedPort, ServiceRecord};

/// Maximum number of connections between the commands of a group in one process; more wait a moment, and are reset.
const MAX_CONNECTIONS: usize = 256;
/// The loopback's own addresses.
const BOTH: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];
/// The first port that a command can listen at without rights that none has.
pub(super) const FIRST_PORT: u16 = 1024;

/// Where a port of the group leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortTarget {
    pub(super) jail: JailPlace,
    pub(super) served: ServedPort,
}

/// A command of a group, in the process that started it.
pub(super) trait GroupMember: fmt::Debug + Send + Sync {
    /// Makes known what it serves now. Blocks.
    fn publish(&self);
}

/// A way into a jail, open once it was used.
type LazyDoor = Arc<OnceCell<LoopbackDoor>>;

/// The commands that reach each other's servers.
#[derive(Debug)]
pub struct ServiceGroup {
    folder: PathBuf,
    sandbox: Sandbox,
    /// The members in this process.
    members: Mutex<Vec<Weak<dyn GroupMember>>>,
    doors: Mutex<HashMap<JailPlace, LazyDoor>>,
    pub(super) connections: Arc<Semaphore>,
}

impl ServiceGroup {
    pub(super) fn new(folder: PathBuf, sandbox: &Sandbox) -> Self {
        Self {
            folder,
            sandbox: sandbox.clone(),
            members: Mutex::default(),
            doors: Mutex::default(),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn add(&self, member: Weak<dyn GroupMember>) {
        let mut members = self.members.lock();
        members.retain(|member| member.strong_count() > 0);
        members.push(member);
    }

    /// Returns the ports that a command reaches from its first moment. Members in this process are asked what they listen at now. Blocks.
    pub(super) fn ports_at_start(&self) -> Vec<u16> {
        let members: Vec<_> = self
            .members
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for member in members {
            member.publish();
        }
        self.targets(None)
            .into_keys()
            .take(MAX_START_PORTS)
            .collect()
    }

    /// Returns where the ports of the group lead that one of its members does not serve itself, ascending; where several serve one port, to
    /// the first that started. Blocks.
    pub(super) fn targets(&self, except: Option<JailPlace>) -> BTreeMap<u16, PortTarget> {
        let records = self.records();
        self.forget_doors(&records);
        let mut targets = BTreeMap::new();
        for record in records {
            let Some(jail) = record.jail().filter(|jail| Some(*jail) != except) else {
                continue;
            };
            for served in record.ports {
                if can_be_joined(served.port) {
                    targets
                        .entry(served.port)
                        .or_insert(PortTarget { jail, served });
                }
            }
        }
        while targets.len() > MAX_START_PORTS {
            targets.pop_last();
        }
        targets
    }

    /// Returns the commands of the group, in whichever process, oldest first. Blocks.
    pub fn records(&self) -> Vec<ServiceRecord> {
        record::read(&self.folder)
    }

    /// Returns the ports of the group that are exposed, in whichever process. Blocks.
    pub fn exposed(&self) -> Vec<ExposedPort> {
        record::read_exposed(&self.folder)
    }

    fn forget_doors(&self, records: &[ServiceRecord]) {
        let mut doors = self.doors.lock();
        if !doors.is_empty() {
            doors.retain(|jail, _| {
                jail.is_alive() || records.iter().any(|record| record.jail() == Some(*jail))
            });
        }
    }

    /// Closes the way into a jail whose command has ended: it would hold the jail's network and a process.
    pub(super) fn close_door(&self, jail: JailPlace) {
        self.doors.lock().remove(&jail);
    }

    pub(super) async fn door(&self, jail: JailPlace) -> io::Result<LazyDoor> {
        let door = Arc::clone(self.doors.lock().entry(jail).or_default());
        let open = || async { self.sandbox.enter_loopback(jail).await };
        door.get_or_try_init(open).await.map_err(io::Error::other)?;
        Ok(door)
    }

    /// Connects to a server of a member, by the protocol that the client uses if the server has it; a server that has begun to serve by
    /// another one since is reached by that.
    pub(super) async fn connect(&self, to: PortTarget, by_v4: bool) -> io::Result<TcpStream> {
        let cell = self.door(to.jail).await?;
        let door = cell.get().ok_or(io::ErrorKind::NotConnected)?;
        let v4 = if by_v4 { to.served.v4 } else { !to.served.v6 };
        let [first, second] = if v4 { BOTH } else { [BOTH[1], BOTH[0]] };
        let port = to.served.port;
        match door.connect(SocketAddr::new(first, port)).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                door.connect(SocketAddr::new(second, port)).await
            }
            connected => connected,
        }
    }

    /// Returns a connection to the command that serves at this port.
    ///
    /// # Errors
    /// No command serves there any more.
    pub async fn reach(&self, jail: JailPlace, served: ServedPort) -> io::Result<TcpStream> {
        self.connect(PortTarget { jail, served }, true).await
    }
}

/// Returns whether other commands may reach a port: not those of a command's own way out.
pub(super) fn can_be_joined(port: u16) -> bool {
    port >= FIRST_PORT && ![OUTLET_ADDRESS.port(), NAMES_PORT].contains(&port)
}
