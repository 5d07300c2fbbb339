//! `News`: what a server reports on its own about its lists and resources rather than about a call.

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
pub enum News {
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

impl News {
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

fn updated(params: &RawValue) -> Option<News> {
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    let params: Params = serde_json::from_str(params.get()).ok()?;
    let fits = params.uri.len() <= MAX_ADDRESS;
    if !fits {
        tracing::debug!(uri = %clip(&params.uri, 100), "the address of a changed resource is too long");
    }
    fits.then(|| News::Updated(params.uri.into()))
}

fn acknowledgement(params: &RawValue) -> Option<News> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        notifications: Filter,
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Filter {
        resource_subscriptions: Option<Vec<String>>,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
        stream: u64,
    }
    let params: Params = serde_json::from_str(params.get()).ok()?;
    let uris = params.notifications.resource_subscriptions;
    let uris = uris.unwrap_or_default();
    Some(News::Acknowledged(params.meta.stream, uris.into()))
}

/// Distributes a server's news to listeners.
#[derive(Debug)]
pub(crate) struct Bulletin {
    /// Counts the changes of the server's list of tools.
    tools: watch::Sender<u64>,
    news: broadcast::Sender<News>,
}

impl Bulletin {
    pub(crate) fn new() -> Self {
        Self {
            tools: watch::Sender::new(0),
            news: broadcast::Sender::new(LISTENER_BUFFER),
        }
    }

    /// Sends news to all listeners.
    pub(crate) fn post(&self, news: News) {
        if news == News::Tools {
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
    pub(crate) fn listen(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::News;

    #[test]
    fn news_are_read_and_nothing_else_is() {
        let uris = ["a:b".to_owned()];
        for (method, params, expect) in [
            ("tools/list_changed", None, Some(News::Tools)),
            ("prompts/list_changed", Some("{}"), Some(News::Prompts)),
            ("resources/list_changed", None, Some(News::Resources)),
            (
                "resources/updated",
                Some(r#"{"uri":"a\u003ab","x":1}"#),
                Some(News::Updated("a:b".into())),
            ),
            ("resources/updated", Some(r#"{"uri":1}"#), None),
            ("resources/updated", None, None),
            (
                "subscriptions/acknowledged",
                Some(
                    r#"{"notifications":{"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#,
                ),
                Some(News::Acknowledged(7, uris.into())),
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
            let read = News::read(&format!("notifications/{method}"), params.as_deref());
            assert_eq!(read, expect, "{method}");
        }
        let long = format!(r#"{{"uri":"{}"}}"#, "a".repeat(70_000));
        let long = RawValue::from_string(long).unwrap();
        assert_eq!(
            News::read("notifications/resources/updated", Some(&long)),
            None
        );
    }
}
