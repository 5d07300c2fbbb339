//! `ConnectionPool`: connections to one server, kept for reuse.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use parking_lot::Mutex;
use thiserror::Error;

use crate::body::{BodyError, next_piece};
use crate::connection::start;
use crate::dial::Dial;
use crate::waits::{Wait, Waits};

type Sender = SendRequest<Full<Bytes>>;

/// The server that connections lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host, as written in a URL.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether connections are encrypted.
    pub secure: bool,
}

/// Why a request got no answer.
#[derive(Debug, Error)]
pub enum SendError {
    /// There is no connection; nothing of the request was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke; the server may have the request.
    #[error("{0}")]
    Closed(String),
    /// It took too long.
    #[error("{} did not come in time", .0.as_str())]
    Late(Wait),
}

/// The connections to a server.
#[derive(Debug)]
pub struct ConnectionPool {
    to: Destination,
    dial: Arc<dyn Dial>,
    idle: Arc<Idle>,
}

/// Connections whose last answer was read to its end.
#[derive(Debug)]
struct Idle {
    senders: Mutex<Vec<Sender>>,
    /// Maximum number to keep.
    most: usize,
}

impl ConnectionPool {
    /// Creates a pool that keeps at most this many idle connections.
    pub fn new(to: Destination, dial: Arc<dyn Dial>, most: usize) -> Self {
        let senders = Mutex::default();
        Self {
            to,
            dial,
            idle: Arc::new(Idle { senders, most }),
        }
    }

    /// Sends a request on an idle connection, or else on a new one. Skips an idle connection that the server closed before it
    /// took anything of the request.
    ///
    /// # Errors
    /// [`SendError`] says whether the server may have the request.
    pub async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        waits: &Waits,
    ) -> Result<HttpExchange, SendError> {
        loop {
            let spare = self.idle.senders.lock().pop();
            let is_new = spare.is_none();
            let mut sender = match spare {
                Some(sender) if sender.is_ready() => sender,
                Some(_) => continue,
                None => self.connect(waits).await?,
            };
            let answered = waits.for_answer(sender.try_send_request(request)).await;
            match answered.map_err(SendError::Late)? {
                Ok(response) => {
                    return Ok(HttpExchange {
                        response,
                        received: 0,
                        sender,
                        idle: Arc::clone(&self.idle),
                    });
                }
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    Some(_) => {
                        let why = failed.into_error().to_string();
                        return Err(SendError::Unreachable(why));
                    }
                    None => return Err(SendError::Closed(failed.into_error().to_string())),
                },
            }
        }
    }

    async fn connect(&self, waits: &Waits) -> Result<Sender, SendError> {
        let Destination { host, port, secure } = &self.to;
        let connecting = async {
            let stream = self.dial.dial(host, *port, *secure).await;
            let stream = stream.map_err(|e| SendError::Unreachable(e.to_string()))?;
            let started = start(&Builder::new(), stream).await;
            started.map_err(|e| SendError::Unreachable(e.to_string()))
        };
        let connected = waits.for_connection(connecting).await;
        let (sender, driver) = connected.map_err(SendError::Late)??;
        driver.detach();
        Ok(sender)
    }

    /// Closes the idle connections.
    pub fn close(&self) {
        self.idle.senders.lock().clear();
    }
}

/// A request that was answered, and the connection on which its body arrives.
#[derive(Debug)]
pub struct HttpExchange {
    /// The head of the answer, and the rest of its body.
    pub response: Response<Incoming>,
    /// The number of bytes of the body that were read.
    received: usize,
    sender: Sender,
    idle: Arc<Idle>,
}

impl HttpExchange {
    /// Returns the next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// The body breaks off, or the piece takes too long.
    pub async fn next(&mut self, waits: &Waits) -> Result<Option<Bytes>, BodyError> {
        let piece = next_piece(self.response.body_mut(), waits).await?;
        self.received += piece.as_ref().map_or(0, Bytes::len);
        Ok(piece)
    }

    /// Returns the number of bytes of the body that were read.
    pub fn received(&self) -> usize {
        self.received
    }

    /// Reads the whole body, of at most `longest` bytes.
    ///
    /// # Errors
    /// The body is longer, breaks off, or takes too long.
    pub async fn whole(&mut self, longest: usize, waits: &Waits) -> Result<Bytes, BodyError> {
        let mut parts = Vec::new();
        let mut length = 0;
        while let Some(part) = self.next(waits).await? {
            length += part.len();
            if length > longest {
                return Err(BodyError::TooLong(longest));
            }
            parts.push(part);
        }
        Ok(match <[Bytes; 1]>::try_from(parts) {
            Ok([whole]) => whole,
            Err(parts) => parts.concat().into(),
        })
    }

    /// Returns whether the answer is a stream of events.
    pub fn is_event_stream(&self) -> bool {
        is_event_stream(self.response.headers())
    }

    /// Keeps the connection for another request. Call this after reading the body to its end; otherwise drop this to close the
    /// connection.
    pub async fn keep(mut self) {
        drop(self.response);
        if self.sender.ready().await.is_ok() {
            let mut idle = self.idle.senders.lock();
            if idle.len() < self.idle.most {
                idle.push(self.sender);
            }
        }
    }
}

/// Returns whether these headers announce a stream of events.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let kind = kind.unwrap_or_default().trim_start();
    kind.get(..17)
        .is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
}
