//! `Driver`: the task that drives one HTTP/1.1 connection.

use std::error::Error;

use hyper::body::Body;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

/// The task of a connection, which ends when this is dropped.
#[derive(Debug)]
pub struct Driver(Option<JoinHandle<()>>);

impl Driver {
    /// Lets the task live as long as the connection's sender and the body of its last answer.
    pub fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

/// Starts HTTP/1.1 on a stream, with the builder's limits on the head of an answer.
///
/// # Errors
/// The connection cannot be set up.
pub async fn start<S, B>(
    builder: &Builder,
    stream: S,
) -> Result<(SendRequest<B>, Driver), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // Without a request for one, there is no upgrade.
    let connection = connection.with_upgrades();
    let task = tokio::spawn(async move {
        // The sender gets errors of the connection too.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a server ended");
        }
    });
    Ok((sender, Driver(Some(task))))
}
