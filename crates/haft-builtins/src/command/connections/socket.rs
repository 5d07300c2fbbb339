//! Lets the connections of a command to unix sockets of the host be decided like those to hosts.

use std::sync::Arc;

use super::{Connections, MAX_PLACES};
use crate::command::connect::ConnectionTarget;
use crate::proxy::ConnectionRefusal;

impl Connections {
    /// Decides about connections to a socket, unless that was done for this command.
    pub(in crate::command) async fn decide_socket(
        self: &Arc<Self>,
        path: &str,
    ) -> Result<(), ConnectionRefusal> {
        let place = ConnectionTarget::of_socket(path);
        Arc::clone(self).decide(place, None).await.map(drop)
    }

    /// Notes that there was a connection to a socket.
    pub(in crate::command) fn note_socket(&self, path: &str) {
        let mut reached = self.reached.lock();
        if reached.len() < MAX_PLACES {
            reached.insert(ConnectionTarget::of_socket(path).to_string());
        }
    }
}
