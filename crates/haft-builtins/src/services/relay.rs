//! `Relay`: passes connections to a port in one command's network on to the command that serves there.

use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::services::group::{PortTarget, ServiceGroup};

/// How long to stop accepting after an error, which means that this process lacks descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a connection waits for another to end where there are as many as there can be; then it is reset.
const WAIT: Duration = Duration::from_secs(5);

/// Listens at one port and passes on what arrives; stops, with its connections, when dropped.
#[derive(Debug)]
pub(super) struct Relay {
    target: PortTarget,
    tasks: Vec<AbortHandle>,
}

impl Relay {
    /// Holds the place of one that is about to listen.
    pub(super) fn reserve(target: PortTarget) -> Self {
        Self {
            target,
            tasks: Vec::new(),
        }
    }

    pub(super) fn start(
        group: &Arc<ServiceGroup>,
        listeners: Vec<TcpListener>,
        target: PortTarget,
    ) -> Self {
        let serve = |listener| tokio::spawn(serve(Arc::clone(group), listener, target));
        let tasks = listeners.into_iter().map(serve);
        Self {
            target,
            tasks: tasks.map(|task| task.abort_handle()).collect(),
        }
    }

    pub(super) fn target(&self) -> &PortTarget {
        &self.target
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn serve(group: Arc<ServiceGroup>, listener: TcpListener, target: PortTarget) {
    let mut served = JoinSet::new();
    // Once one has waited in vain, those behind it do not wait.
    let mut wait = WAIT;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = served.join_next() => continue,
        };
        let Ok((client, from)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let permit = Arc::clone(&group.connections).acquire_owned();
        let Ok(Ok(permit)) = timeout(wait, permit).await else {
            wait = Duration::ZERO;
            reset(&client);
            continue;
        };
        wait = WAIT;
        let group = Arc::clone(&group);
        served.spawn(async move {
            pass(&group, client, target, from.is_ipv4()).await;
            drop(permit);
        });
    }
}

async fn pass(group: &ServiceGroup, mut client: TcpStream, target: PortTarget, by_v4: bool) {
    match group.connect(target, by_v4).await {
        Ok(mut server) => {
            // Either end may close or reset it at any time.
            let _ = copy_bidirectional(&mut client, &mut server).await;
        }
        Err(_) => reset(&client),
    }
}

/// Has a connection end with a reset when it is dropped, as if nothing had listened.
fn reset(client: &TcpStream) {
    // Without it the connection only ends.
    let _ = sockopt::set_socket_linger(client, Some(Duration::ZERO));
}
