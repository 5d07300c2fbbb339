//! `Connections`: connections to one HTTP server, kept for reuse.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client::error::ClientError;

/// Maximum number of idle connections to keep.
const MAX_IDLE: usize = 32;

/// A connection, encrypted if the server's address says so.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Connects to the one server of a wire.
pub trait Dial: Send + Sync {
    /// Opens a new connection.
    fn dial(&self) -> BoxFuture<'_, io::Result<Box<dyn Io>>>;
}

type Sender = SendRequest<Full<Bytes>>;

/// The connections to a server.
pub(crate) struct Connections {
    dial: Box<dyn Dial>,
    idle: Arc<Mutex<Vec<Sender>>>,
}

/// A response whose connection is reused once its body has been read.
pub(crate) struct Exchange {
    pub(crate) response: Response<Incoming>,
    sender: Sender,
    idle: Arc<Mutex<Vec<Sender>>>,
}

impl Exchange {
    /// Keeps the connection. Call this after reading the body to its end; otherwise drop this to close the connection.
    pub(crate) async fn keep(mut self) {
        drop(self.response);
        if self.sender.ready().await.is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < MAX_IDLE {
                idle.push(self.sender);
            }
        }
    }
}

impl Connections {
    pub(crate) fn new(dial: Box<dyn Dial>) -> Self {
        Self {
            dial,
            idle: Arc::default(),
        }
    }

    /// Sends a request on an idle connection, or else on a new one. Skips an idle connection that the server closed before it
    /// took anything of the request.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Exchange, ClientError> {
        loop {
            let spare = self.idle.lock().pop();
            let is_new = spare.is_none();
            let mut sender = match spare {
                Some(sender) if sender.is_ready() => sender,
                Some(_) => continue,
                None => self.connect().await?,
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    return Ok(Exchange {
                        response,
                        sender,
                        idle: Arc::clone(&self.idle),
                    });
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    Some(_) => {
                        let why = failed.into_error().to_string();
                        return Err(ClientError::Unreachable(why));
                    }
                    None => {
                        let said = failed.into_error().to_string();
                        return Err(ClientError::Closed { said });
                    }
                },
            }
        }
    }

    async fn connect(&self) -> Result<Sender, ClientError> {
        let unreachable = |why: String| ClientError::Unreachable(why);
        let stream = self.dial.dial().await;
        let stream = stream.map_err(|e| unreachable(e.to_string()))?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| unreachable(e.to_string()))?;
        // It ends when its sender is dropped.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a server ended");
            }
        });
        Ok(sender)
    }

    /// Closes the idle connections.
    pub(crate) fn close(&self) {
        self.idle.lock().clear();
    }
}
