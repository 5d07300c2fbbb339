//! The way through the user's proxy: a connection to it, and a `CONNECT` tunnel on that.

use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::network::{Network, connect_first};
use crate::stream::Stream;
use crate::tls::Tls;
use crate::upstream::UpstreamProxy;

/// Maximum size of the proxy's response to `CONNECT`, in bytes.
const MAX_ANSWER: usize = 16 << 10;

/// The reason why a proxy did not connect to a host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProxyFault {
    /// The proxy is not found, or accepts no connection.
    #[error("it cannot be reached ({0})")]
    Away(String),
    /// The proxy requires a user name and a password.
    #[error("it asks for a user name and a password, or refuses those it got (407)")]
    Login,
    /// The proxy responded with this status.
    #[error("it answered {0}")]
    Answered(StatusCode),
    /// The proxy does not follow the protocol.
    #[error("{0}")]
    Odd(&'static str),
}

impl ProxyFault {
    fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => Self::Login,
            other => Self::Answered(other),
        }
    }

    /// Returns the proxy's fault if the status of a relayed response shows one; any other status is the server's own.
    pub fn from_relay_status(status: StatusCode) -> Option<Self> {
        (status == StatusCode::PROXY_AUTHENTICATION_REQUIRED).then_some(Self::Login)
    }
}

impl UpstreamProxy {
    /// Connects to the proxy itself; each of its addresses has an equal share of `limit`.
    ///
    /// # Errors
    /// [`ProxyFault::Away`] says what failed.
    pub async fn connect(
        &self,
        network: &dyn Network,
        tls: &Tls,
        limit: Duration,
    ) -> Result<Stream, ProxyFault> {
        let addresses: Vec<IpAddr> = if let Some(address) = self.ip() {
            vec![address]
        } else {
            let name = self.host().to_string();
            let found = network.resolve(&name).await;
            found.map_err(|error| ProxyFault::Away(format!("look it up: {error}")))?
        };
        let stream = connect_first(network, &addresses, self.port(), limit).await;
        let stream = stream.map_err(|error| ProxyFault::Away(error.to_string()))?;
        if !self.is_secure() {
            return Ok(Stream::Plain(stream));
        }
        let secured = tls.wrap(stream, &self.host().to_string()).await;
        let secured = secured.map_err(|error| ProxyFault::Away(error.to_string()))?;
        Ok(Stream::Secure(Box::new(secured)))
    }

    /// Requests a tunnel to a host, given as in a URL, on a connection to the proxy (RFC 9110 §9.3.6).
    ///
    /// # Errors
    /// [`ProxyFault`] says what the proxy did instead.
    pub async fn open_tunnel(
        &self,
        stream: &mut Stream,
        host: &str,
        port: u16,
    ) -> Result<(), ProxyFault> {
        let away = |error: std::io::Error| ProxyFault::Away(error.to_string());
        let host = host.trim_end_matches('.');
        let place = format!("{host}:{port}");
        let mut request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n").into_bytes();
        if let Some(value) = self.authorization() {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(value.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        stream.write_all(&request).await.map_err(away)?;
        stream.flush().await.map_err(away)?;
        let mut head = Vec::with_capacity(512);
        let end = loop {
            if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if head.len() >= MAX_ANSWER {
                return Err(ProxyFault::Odd("the head of its answer is too long"));
            }
            if stream.read_buf(&mut head).await.map_err(away)? == 0 {
                return Err(ProxyFault::Odd(
                    "it closed the connection without an answer",
                ));
            }
        };
        let status = status_of(&head).ok_or(ProxyFault::Odd("its answer is not HTTP/1.1"))?;
        if !status.is_success() {
            return Err(ProxyFault::of(status));
        }
        // In a tunnel the client sends first, so bytes that are already here come from no server.
        if head.len() > end {
            return Err(ProxyFault::Odd("it sent bytes before the tunnel was used"));
        }
        Ok(())
    }
}

fn status_of(head: &[u8]) -> Option<StatusCode> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let rest = line.strip_prefix(b"HTTP/1.1 ");
    let rest = rest.or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
    let (code, after) = (rest.get(..3)?, rest.get(3));
    if !matches!(after, None | Some(b' ')) {
        return None;
    }
    StatusCode::from_bytes(code).ok()
}

#[cfg(test)]
mod tests {
    use super::status_of;

    #[test]
    fn only_status_lines_of_http_are_read() {
        for (line, status) in [
            ("HTTP/1.1 200 Connection established\r\n\r\n", Some(200)),
            ("HTTP/1.0 407\r\n\r\n", Some(407)),
            ("HTTP/1.1 2000 x\r\n\r\n", None),
            ("HTTP/2 200\r\n\r\n", None),
            ("HTTP/1.1 abc\r\n\r\n", None),
            ("SSH-2.0-x\r\n\r\n", None),
            ("\r\n\r\n", None),
        ] {
            let read = status_of(line.as_bytes()).map(|status| status.as_u16());
            assert_eq!(read, status, "{line}");
        }
    }
}
