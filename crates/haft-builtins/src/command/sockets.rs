//! Offers a command the sockets of the host's services that settings name, and asks about its connections to them.

use std::sync::Arc;

use haft_sandbox::CommandSpec;

use crate::command::connections::Connections;
use crate::host_sockets::{HostSockets, SocketInPlace, SocketJudge};
use crate::proxy::{ConnectionRefusal, Refusals};
use crate::web::network::BoxFuture;

/// Opens a socket in place of each of the host's, and shows it where that lies. Without, the command finds none.
pub(super) fn offer(
    sockets: &HostSockets,
    spec: &mut CommandSpec,
    questions: SocketQuestions,
) -> Vec<Arc<SocketInPlace>> {
    if sockets.is_empty() {
        return Vec::new();
    }
    let judge: Arc<dyn SocketJudge> = Arc::new(questions);
    let open = sockets.open(&judge).unwrap_or_default();
    for one in &open {
        let shown = one.shown.iter().map(|shown| (one.path(), shown.clone()));
        spec.mounts.sockets.extend(shown);
    }
    open.into_iter().map(Arc::new).collect()
}

/// What is asked about one command's connections to sockets.
#[derive(Debug)]
pub(super) struct SocketQuestions {
    pub(super) connections: Arc<Connections>,
    pub(super) refusals: Arc<Refusals>,
}

impl SocketJudge for SocketQuestions {
    fn judge<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(), ConnectionRefusal>> {
        Box::pin(self.connections.decide_socket(path))
    }

    fn note_connected(&self, path: &str) {
        self.connections.note_socket(path);
    }

    fn note_refused(&self, refusal: &ConnectionRefusal) {
        self.refusals.note(refusal);
    }
}
