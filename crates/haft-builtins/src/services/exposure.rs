//! `Exposure`: a port of a run's server on the host's loopback, for a browser.
//!
//! It is at an address of the run's own within 127.0.0.0/8, never at 127.0.0.1: browsers send cookies to every port of a host, so a page
//! there would get those of haft's console, and pages of two runs each other's.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::JailPlace;
use sha2::{Digest as _, Sha256};
use tokio::io::copy_bidirectional;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, Id, JoinSet};

use crate::proxy::counted::{CountedStream, Traffic, idle};
use crate::services::exposed::ExposedPort;
use crate::services::group::{ServiceGroup, can_be_joined};
use crate::services::record::{RecordFile, ServedPort, ServiceRecord};
use crate::work::blocking;

/// Maximum number of connections to one exposed port at the same time. Another one ends the one that has been quiet for longest, or waits in the
/// kernel's queue while all are busy.
const MAX_CONNECTIONS: usize = 128;
/// How long a connection must have been quiet to be ended for another.
const QUIET: Duration = Duration::from_secs(1);
/// How long a connection may be idle in both directions.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// How long to stop accepting after an error, which means that this process lacks descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A port that is exposed until this value is dropped.
#[derive(Debug)]
pub(crate) struct Exposure {
    listener: TcpListener,
    group: Arc<ServiceGroup>,
    /// What is listed; its file goes with the value.
    exposed: ExposedPort,
    file: RecordFile,
}

impl Exposure {
    /// Listens on the host, at the same port if that is free at the run's address.
    ///
    /// # Errors
    /// The host has no such address, or the state folder cannot be written.
    pub(crate) async fn open(group: Arc<ServiceGroup>, run: &str, port: u16) -> io::Result<Self> {
        if !can_be_joined(port) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let host = address(run);
        let listener = match TcpListener::bind((host, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                TcpListener::bind((host, 0)).await
            }
            bound => bound,
        }?;
        let exposed = ExposedPort {
            run: run.to_owned(),
            port,
            at: listener.local_addr()?,
        };
        let own = JailPlace::of_this_process().ok_or(io::ErrorKind::Unsupported)?;
        let mut file = RecordFile::of_exposure(group.folder(), own, port);
        let written = exposed.clone();
        let file = blocking(move |_| {
            file.write(&written)
                .map_err(|error| haft::error::ToolError::failed(error.to_string()))?;
            Ok(file)
        });
        let file = file.await.map_err(io::Error::other)?;
        Ok(Self {
            listener,
            group,
            exposed,
            file,
        })
    }

    pub(crate) fn exposed(&self) -> &ExposedPort {
        &self.exposed
    }

    /// Serves until dropped, or until the record is removed.
    pub(crate) async fn serve(self) {
        let mut served = ServedConnections::default();
        let mut look = tokio::time::interval(Duration::from_millis(500));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept(), if served.has_room() => accepted,
                () = served.one_ended() => continue,
                _ = look.tick() => {
                    if self.file.was_removed() {
                        return;
                    }
                    continue;
                }
            };
            let Ok((client, _)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (group, port) = (Arc::clone(&self.group), self.exposed.port);
            // Without it, small writes are only later.
            let _ = client.set_nodelay(true);
            let traffic = Traffic::begin();
            let client = CountedStream::new(client, traffic.clone());
            served.add(traffic.clone(), async move {
                pass(&group, client, &traffic, port).await;
            });
        }
    }
}

/// The connections that are served now.
#[derive(Debug, Default)]
struct ServedConnections {
    tasks: JoinSet<()>,
    open: HashMap<Id, (Traffic, AbortHandle)>,
}

impl ServedConnections {
    /// Whether there is room for another, now or once a quiet one was ended.
    fn has_room(&self) -> bool {
        self.open.len() < MAX_CONNECTIONS || self.quietest().is_some()
    }

    /// Serves another one; where there are as many as there can be, ends the one that has been quiet for longest.
    fn add(&mut self, traffic: Traffic, serve: impl Future<Output = ()> + Send + 'static) {
        if self.open.len() >= MAX_CONNECTIONS
            && let Some(id) = self.quietest()
            && let Some((_, task)) = self.open.remove(&id)
        {
            task.abort();
        }
        let task = self.tasks.spawn(serve);
        self.open.insert(task.id(), (traffic, task));
    }

    fn quietest(&self) -> Option<Id> {
        let quiet = self
            .open
            .iter()
            .map(|(id, (traffic, _))| (traffic.quiet_for(), *id));
        let (time, id) = quiet.max_by_key(|(time, _)| *time)?;
        (time >= QUIET).then_some(id)
    }

    /// Completes when one has ended; never if there is none.
    async fn one_ended(&mut self) {
        let id = match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => id,
            Some(Err(error)) => error.id(),
            None => return std::future::pending().await,
        };
        self.open.remove(&id);
    }
}

/// Passes a connection on to the command that serves the port now.
async fn pass(group: &Arc<ServiceGroup>, mut client: CountedStream, traffic: &Traffic, port: u16) {
    let reading = Arc::clone(group);
    let records = blocking(move |_| Ok(reading.records())).await;
    let serving = records.unwrap_or_default();
    let serving = serving.iter().find_map(|record| target(record, port));
    let Some((jail, served)) = serving else {
        return;
    };
    let Ok(mut server) = group.reach(jail, served).await else {
        return;
    };
    tokio::select! {
        // Either end may close or reset it at any time.
        _ = copy_bidirectional(&mut client, &mut server) => {}
        () = idle(traffic, IDLE, || true) => {}
    }
}

fn target(record: &ServiceRecord, port: u16) -> Option<(JailPlace, ServedPort)> {
    let served = record.ports.iter().find(|served| served.port == port)?;
    Some((record.jail()?, *served))
}

/// Returns the loopback address of a run: one of 4 million in 127.64.0.0/10, by its id.
pub(crate) fn address(run: &str) -> Ipv4Addr {
    let digest = Sha256::digest(run.as_bytes());
    // No part is 0 or 255, which some programs take for a network or a broadcast.
    let part = |at: usize| 1 + digest[at] % 254;
    Ipv4Addr::new(127, 64 + digest[0] % 64, part(1), part(2))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn every_run_has_a_loopback_address_that_is_not_the_consoles() {
        let mut seen = std::collections::HashSet::new();
        for n in 0..1_000 {
            let at = address(&format!("run-{n}"));
            assert!(at.is_loopback());
            let [_, second, third, fourth] = at.octets();
            assert!((64..128).contains(&second), "{at}");
            assert!(
                (1..255).contains(&third) && (1..255).contains(&fourth),
                "{at}"
            );
            seen.insert(at);
        }
        assert!(seen.len() > 990, "{}", seen.len());
    }
}
