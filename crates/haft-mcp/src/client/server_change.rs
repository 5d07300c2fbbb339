//! `ServerChange`: what a server reports on its own about its lists and resources rather than about a call.

use std::sync::Arc;

use haft::text::clip;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};

/// Maximum number of news items that a listener may lag behind.
const LISTENER_BUFFER: usize = 256;
/// Maximum length of a resource's URI from a server, in bytes.
const MAX_ADDRESS: usize = 64 << 10;

/// What a server says has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerChange {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or of their templates.
    Resources,
    /// The resource with this URI.
    Updated(Arc<str>),
    /// The stream of changes that the request with this number opened begins, and will report these resources.
    Acknowledged(u64, Arc<[String]>),
    /// The server can no longer be heard.
    Over,
}

impl ServerChange {
    /// Reads a notification; `None` if it is none of these.
    pub(crate) fn read(method: &str, params: Option<&RawValue>) -> Option<Self> {
        Some(match method {
            "notifications/tools/list_changed" => Self::Tools,
            "notifications/prompts/list_changed" => Self::Prompts,
            "notifications/resources/list_changed" => Self::Resources,
            "notifications/resources/updated" => updated(params?)?,
            "notifications/subscriptions/acknowledged" => acknowledgement(params?)?,
            _ => return None,
        })
    }
}

fn updated(params: &RawValue) -> Option<ServerChange> {
    #[derive(Deserialize)]
    struct UpdatedParams {
        uri: String,
    }
    let params: UpdatedParams = serde_json::from_str(params.get()).ok()?;
    let fits = params.uri.len() <= MAX_ADDRESS;
    if !fits {
        tracing::debug!(uri = %clip(&params.uri, 100), "the address of a changed resource is too long");
    }
    fits.then(|| ServerChange::Updated(params.uri.into()))
}

fn acknowledgement(params: &RawValue) -> Option<ServerChange> {
    #[derive(Deserialize)]
    struct AcknowledgedParams {
        #[serde(default)]
        notifications: AcknowledgedFilter,
        #[serde(rename = "_meta")]
        meta: AcknowledgedMeta,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct AcknowledgedFilter {
        resource_subscriptions: Option<Vec<String>>,
    }
    #[derive(Deserialize)]
    struct AcknowledgedMeta {
        #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
        stream: u64,
    }
    let params: AcknowledgedParams = serde_json::from_str(params.get()).ok()?;
    let uris = params.notifications.resource_subscriptions;
    let uris = uris.unwrap_or_default();
    Some(ServerChange::Acknowledged(params.meta.stream, uris.into()))
}

/// Distributes a server's news to listeners.
#[derive(Debug)]
pub(crate) struct ChangeBroadcast {
    /// Counts the changes of the server's list of tools.
    tools: watch::Sender<u64>,
    news: broadcast::Sender<ServerChange>,
}

impl ChangeBroadcast {
    pub(crate) fn new() -> Self {
        Self {
            tools: watch::Sender::new(0),
            news: broadcast::Sender::new(LISTENER_BUFFER),
        }
    }

    /// Sends news to all listeners.
    pub(crate) fn post(&self, news: ServerChange) {
        if news == ServerChange::Tools {
            self.tools.send_modify(|count| *count += 1);
        }
        // There may be no listeners.
        let _ = self.news.send(news);
    }

    /// Returns a counter of the changes to the server's list of tools.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.tools.subscribe()
    }

    /// Returns all news from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<ServerChange> {
        self.news.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::ServerChange;

    #[test]
    fn news_are_read_and_nothing_else_is() {
        let uris = ["a:b".to_owned()];
        for (method, params, expect) in [
            ("tools/list_changed", None, Some(ServerChange::Tools)),
            (
                "prompts/list_changed",
                Some("{}"),
                Some(ServerChange::Prompts),
            ),
            (
                "resources/list_changed",
                None,
                Some(ServerChange::Resources),
            ),
            (
                "resources/updated",
                Some(r#"{"uri":"a\u003ab","x":1}"#),
                Some(ServerChange::Updated("a:b".into())),
            ),
            ("resources/updated", Some(r#"{"uri":1}"#), None),
            ("resources/updated", None, None),
            (
                "subscriptions/acknowledged",
                Some(
                    r#"{"notifications":{"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#,
                ),
                Some(ServerChange::Acknowledged(7, uris.into())),
            ),
            (
                "subscriptions/acknowledged",
                Some(
                    r#"{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":"x"}}"#,
                ),
                None,
            ),
            ("message", Some("{}"), None),
        ] {
            let params = params.map(|text| RawValue::from_string(text.to_owned()).unwrap());
            let read = ServerChange::read(&format!("notifications/{method}"), params.as_deref());
            assert_eq!(read, expect, "{method}");
        }
        let long = format!(r#"{{"uri":"{}"}}"#, "a".repeat(70_000));
        let long = RawValue::from_string(long).unwrap();
        assert_eq!(
            ServerChange::read("notifications/resources/updated", Some(&long)),
            None
        );
    }
}
