//! Subscriptions to a server's changes: `resources/subscribe` in the handshake era, a stream of changes (`subscriptions/listen`)
//! in the stateless one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use crate::client::error::ClientError;
use crate::client::respond::Inquiry;
use crate::client::server_change::ServerChange;
use crate::client::wire::WireRequest;
use crate::client::{Client, ClientRequest, speech};
use crate::era::Era;

/// The changes that a stream should report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeFilter<'a> {
    /// Whether to include the lists that the server says may change.
    pub(crate) lists: bool,
    /// URIs of single resources.
    pub(crate) uris: &'a [String],
}

/// A stream of changes, open until this is dropped or the server ends it.
#[derive(Debug)]
pub(crate) struct ChangeStream {
    id: u64,
    reading: JoinHandle<Result<Bytes, ClientError>>,
}

impl Drop for ChangeStream {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl ChangeStream {
    /// Waits until the server ends the stream and returns why.
    pub(crate) async fn ended(&mut self) -> ClientError {
        match (&mut self.reading).await {
            Ok(Ok(answer)) => match speech::result(&answer) {
                Ok(_) => ClientError::SessionOver,
                Err(error) => error,
            },
            Ok(Err(error)) => error,
            Err(_) => ClientError::SessionOver,
        }
    }
}

impl Client {
    /// Subscribes to changes of a resource, or unsubscribes (handshake era).
    pub(crate) async fn subscribe(&self, uri: &str, on: bool) -> Result<(), ClientError> {
        let method = if on {
            "resources/subscribe"
        } else {
            "resources/unsubscribe"
        };
        let params = format!("\"uri\":{}", json!(uri));
        let question = ClientRequest::new(method, &params, self.limits().list);
        self.ask(question).await.map(drop)
    }

    /// Opens a stream of changes (stateless era). They arrive with all other [`news`](Self::news).
    pub(crate) fn stream(&self, wanted: &ChangeFilter<'_>) -> ChangeStream {
        let server = self.server();
        let lists = |tells: bool| (wanted.lists && tells).then_some(true);
        let mut notifications = serde_json::Map::new();
        for (name, tells) in [
            ("toolsListChanged", server.tells_tools),
            ("promptsListChanged", server.tells_prompts),
            ("resourcesListChanged", server.tells_resources),
        ] {
            if let Some(wanted) = lists(tells) {
                notifications.insert(name.to_owned(), wanted.into());
            }
        }
        if !wanted.uris.is_empty() {
            notifications.insert("resourceSubscriptions".to_owned(), json!(wanted.uris));
        }
        let params = format!(
            "\"notifications\":{}",
            serde_json::Value::Object(notifications)
        );
        // The answer comes when the stream ends.
        let question = ClientRequest::new("subscriptions/listen", &params, Duration::MAX);
        let id = self.next_id();
        let message = speech::request(id, Some(Era::Modern), &question);
        let wire = Arc::clone(&self.wire);
        let reading = tokio::spawn(async move {
            let ask = WireRequest {
                id,
                method: "subscriptions/listen",
                name: None,
                mirrored: &[],
                era: Some(Era::Modern),
                message,
                progress: None,
                inquiry: Arc::new(Inquiry::new(None)),
            };
            wire.ask(ask).await
        });
        ChangeStream { id, reading }
    }

    /// Opens a stream for single resources and waits until the server says which of them it will report.
    ///
    /// # Errors
    /// The server opens no such stream, or does not say so in time.
    pub(crate) async fn follow(
        &self,
        uris: &[String],
    ) -> Result<(ChangeStream, Arc<[String]>), ClientError> {
        let mut news = self.news();
        let wanted = ChangeFilter { lists: false, uris };
        let mut stream = self.stream(&wanted);
        let id = stream.id;
        let acknowledged = async {
            loop {
                match news.recv().await {
                    Ok(ServerChange::Acknowledged(of, uris)) if of == id => return Some(uris),
                    Err(RecvError::Closed) => return None,
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                }
            }
        };
        let limit = self.limits().list;
        tokio::select! {
            uris = acknowledged => match uris {
                Some(uris) => Ok((stream, uris)),
                None => Err(ClientError::SessionOver),
            },
            error = stream.ended() => Err(error),
            () = tokio::time::sleep(limit) => Err(self.timeout_error("subscriptions/listen", limit)),
        }
    }
}
