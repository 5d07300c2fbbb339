//! `HttpWire`: the wire to an HTTP server: Streamable HTTP, or HTTP+SSE of 2024-11-05 if the server supports nothing newer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use haft::future::BoxFuture;
use haft_http::dial::Dial;
use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};

use crate::client::courier::Courier;
use crate::client::error::ClientError;
use crate::client::server_change::ServerChange;
use crate::client::sse::SseWire;
use crate::client::wire::{Wire, WireRequest};
use crate::era::Era;

mod listening;
mod session;
mod streamable;

pub use crate::client::courier::{AuthRefusal, Authorize};
pub use crate::client::endpoint::{Endpoint, EndpointError};

use streamable::Streamable;

/// What a server turned out to speak, so that the next wire to it starts there.
#[derive(Debug, Default)]
pub struct TransportHint {
    is_sse: AtomicBool,
}

impl TransportHint {
    /// Returns whether the server speaks HTTP+SSE of 2024-11-05.
    pub fn is_sse(&self) -> bool {
        self.is_sse.load(Ordering::Relaxed)
    }
}

/// The wire to an HTTP server.
pub struct HttpWire {
    streamable: Streamable,
    /// The older transport, once in use.
    sse: Mutex<Option<Arc<SseWire>>>,
    remembered: Arc<TransportHint>,
}

impl std::fmt::Debug for HttpWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpWire").finish_non_exhaustive()
    }
}

impl HttpWire {
    /// Creates a wire to this endpoint.
    pub fn new(endpoint: Endpoint, dial: Box<dyn Dial>) -> Self {
        Self::of(Courier::new(endpoint, dial, None), Arc::default())
    }

    /// Creates a wire with what is remembered of the server, and with a source of credentials.
    pub fn known(
        endpoint: Endpoint,
        dial: Box<dyn Dial>,
        remembered: Arc<TransportHint>,
        authorize: Option<Arc<dyn Authorize>>,
    ) -> Self {
        Self::of(Courier::new(endpoint, dial, authorize), remembered)
    }

    fn of(courier: Courier, remembered: Arc<TransportHint>) -> Self {
        Self {
            streamable: Streamable::new(Arc::new(courier)),
            sse: Mutex::default(),
            remembered,
        }
    }

    fn sse(&self) -> Option<Arc<SseWire>> {
        self.sse.lock().clone()
    }

    async fn send_ask(&self, ask: WireRequest<'_>) -> Result<Bytes, ClientError> {
        if let Some(sse) = self.sse() {
            return sse.ask(ask).await;
        }
        let begins = ask.era.is_none();
        if !begins {
            return self.streamable.ask(ask).await;
        }
        if self.remembered.is_sse()
            && let Ok(sse) = self.switch_to_sse().await
        {
            return sse.ask(ask).await;
        }
        match self.streamable.ask(ask.clone()).await {
            // A server that takes no messages at this address may have a stream there.
            Err(
                refused @ ClientError::Http {
                    status: 400..=499, ..
                },
            ) => {
                match self.switch_to_sse().await {
                    Ok(sse) => sse.ask(ask).await,
                    // It has a stream, but an invalid one.
                    Err(why @ (ClientError::Malformed(_) | ClientError::TooLong(_))) => Err(why),
                    Err(_) => Err(refused),
                }
            }
            other => other,
        }
    }

    /// Switches to the older transport, if the server supports it.
    async fn switch_to_sse(&self) -> Result<Arc<SseWire>, ClientError> {
        let opened = SseWire::open(Arc::clone(self.streamable.courier())).await;
        let is_sse = opened.is_ok();
        self.remembered.is_sse.store(is_sse, Ordering::Relaxed);
        let sse = Arc::new(opened?);
        *self.sse.lock() = Some(Arc::clone(&sse));
        Ok(sse)
    }
}

impl Wire for HttpWire {
    fn ask<'a>(&'a self, ask: WireRequest<'a>) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(self.send_ask(ask))
    }

    fn send_notification(
        &self,
        message: Vec<u8>,
        era: Era,
    ) -> BoxFuture<'_, Result<(), ClientError>> {
        Box::pin(async move {
            match self.sse() {
                Some(sse) => sse.send_notification(message, era).await,
                None => self.streamable.send_notification(message, era).await,
            }
        })
    }

    fn begun(&self, era: Era) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.sse().is_none() {
                self.streamable.listen(era).await;
            }
        })
    }

    fn transport(&self) -> &'static str {
        self.sse().map_or("http", |sse| sse.transport())
    }

    fn is_open(&self) -> bool {
        self.sse().is_none_or(|sse| sse.is_open())
    }

    fn list_changes(&self) -> watch::Receiver<u64> {
        match self.sse() {
            Some(sse) => sse.list_changes(),
            None => self.streamable.list_changes(),
        }
    }

    fn news(&self) -> broadcast::Receiver<ServerChange> {
        match self.sse() {
            Some(sse) => sse.news(),
            None => self.streamable.news(),
        }
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn may_ignore_discover(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match self.sse() {
                Some(sse) => sse.close().await,
                None => self.streamable.leave().await,
            }
        })
    }
}
