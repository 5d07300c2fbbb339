//! Streams of changes: `subscriptions/listen`, the legacy GET stream, and stdio's own line.

use std::sync::Arc;

use haft::toolset::Changes;
use serde_json::value::RawValue;

use crate::core::write_tail;
use crate::run::Run;
use crate::wire::Id;
use crate::wire::reply;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The next thing that happens to a run's list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The tools changed.
    Tools,
    /// The run is over.
    Over,
}

/// Follows a run's tool list.
#[derive(Debug)]
pub(crate) struct Watch {
    run: Arc<Run>,
    /// Where list changes are wanted at all.
    changes: Option<Changes>,
}

impl Watch {
    /// Follows from now on; `tools` is whether list changes are wanted at all.
    pub(crate) fn new(run: &Arc<Run>, tools: bool) -> Self {
        Self {
            run: Arc::clone(run),
            changes: tools.then(|| run.session.changes()),
        }
    }

    /// Waits for the next change.
    pub(crate) async fn next(&mut self) -> Change {
        let changed = async {
            match &mut self.changes {
                Some(changes) => changes.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.run.over() => Change::Over,
            () = changed => Change::Tools,
        }
    }
}

/// A tool list change, as the handshake era says it.
pub(crate) fn legacy_changed() -> Vec<u8> {
    reply::notification("notifications/tools/list_changed", None)
}

/// The first frame of a `subscriptions/listen` stream: what will be sent.
pub(crate) fn acknowledged(id: &Id, tools: bool) -> Vec<u8> {
    let filter = if tools {
        "{\"toolsListChanged\":true}"
    } else {
        "{}"
    };
    let id = id.as_str();
    let params = format!("{{\"notifications\":{filter},\"_meta\":{{\"{SUBSCRIPTION}\":{id}}}}}");
    reply::notification("notifications/subscriptions/acknowledged", Some(&params))
}

/// A tool list change on a `subscriptions/listen` stream.
pub(crate) fn changed(id: &Id) -> Vec<u8> {
    let params = format!("{{\"_meta\":{{\"{SUBSCRIPTION}\":{}}}}}", id.as_str());
    reply::notification("notifications/tools/list_changed", Some(&params))
}

/// The last frame of a `subscriptions/listen` stream: it ended on purpose.
pub(crate) fn finished(id: &Id, server: &RawValue) -> Vec<u8> {
    let mut out = reply::begin(id, 192);
    out.extend_from_slice(b"{\"resultType\":\"complete\",\"_meta\":{\"");
    out.extend_from_slice(SUBSCRIPTION.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(id.as_str().as_bytes());
    out.push(b',');
    write_tail(&mut out, server);
    out.extend_from_slice(b"}}");
    reply::end(&mut out);
    out
}
