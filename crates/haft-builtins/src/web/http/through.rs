//! Connects through the proxy named in settings: by a `CONNECT` tunnel for TLS, or to the proxy itself for plain requests.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hyper::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::web::http::{Http, HttpError, ProxyFault, Reach};
use crate::web::stream::Stream;
use crate::web::target::Target;
use crate::web::upstream::UpstreamProxy;

/// Maximum size of the proxy's response to `CONNECT`, in bytes.
const MAX_ANSWER: usize = 16 << 10;
/// Maximum number of the proxy's addresses tried.
const MAX_ADDRESSES: usize = 4;
/// Maximum time of the local lookup for a name that the proxy will resolve.
const OWN_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that can carry requests for a host.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) stream: Stream,
    /// The proxy that gets requests with the whole URL; `None` if the stream is a tunnel or direct.
    pub(crate) relay: Option<UpstreamProxy>,
}

impl Http {
    /// Returns the proxy for requests to this target.
    pub(super) fn upstream_for(&self, target: &Target) -> Option<&UpstreamProxy> {
        let proxy = self.upstream.as_ref()?;
        proxy.serves(target.host(), target.port()).then_some(proxy)
    }

    /// Connects to a target through the proxy, with a tunnel for TLS.
    pub(super) async fn through(
        &self,
        proxy: &UpstreamProxy,
        target: &Target,
    ) -> Result<Reached, HttpError> {
        self.check_as_far_as_known(target).await?;
        let fault = |fault| HttpError::from_proxy_fault(proxy, target, fault);
        let mut stream = self.to_proxy(proxy).await.map_err(fault)?;
        if !target.is_secure() {
            let relay = Some(proxy.clone());
            return Ok(Reached { stream, relay });
        }
        open_tunnel(&mut stream, proxy, target)
            .await
            .map_err(fault)?;
        Ok(Reached {
            stream,
            relay: None,
        })
    }

    /// Checks whether the proxy named in settings accepts connections: its address, or why it does not. `None` if there is none.
    pub async fn check_upstream(&self) -> Option<Result<String, String>> {
        let proxy = self.upstream.as_ref()?;
        let reached = timeout(self.limits.connect, self.to_proxy(proxy)).await;
        let why = match reached {
            Ok(Ok(_)) => return Some(Ok(proxy.address())),
            Ok(Err(fault)) => fault.to_string(),
            Err(_) => "it did not answer in time".to_owned(),
        };
        Some(Err(format!("{}: {why}", proxy.address())))
    }

    /// Refuses a name if the local resolver finds a refused address (URL rule 10). The proxy resolves the name again.
    async fn check_as_far_as_known(&self, target: &Target) -> Result<(), HttpError> {
        if self.reach != Reach::Public || target.address().is_some() {
            return Ok(());
        }
        let found = timeout(OWN_LOOKUP_TIMEOUT, self.network.resolve(target.host())).await;
        match found {
            Ok(Ok(addresses)) => self.check_addresses(target, &addresses),
            // Behind a proxy, this machine may be unable to resolve public names.
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    async fn to_proxy(&self, proxy: &UpstreamProxy) -> Result<Stream, ProxyFault> {
        let addresses: Vec<IpAddr> = if let Some(address) = proxy.ip() {
            vec![address]
        } else {
            let name = proxy.host().to_string();
            let found = self.network.resolve(&name).await;
            found.map_err(|error| ProxyFault::Away(format!("look it up: {error}")))?
        };
        let mut failed = "its name has no address".to_owned();
        let share = self.limits.connect
            / u32::try_from(addresses.len().clamp(1, MAX_ADDRESSES)).unwrap_or(1);
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            let place = SocketAddr::new(address.to_canonical(), proxy.port());
            let stream = match timeout(share, self.network.connect(place)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    failed = error.to_string();
                    continue;
                }
                Err(_) => {
                    "no answer in time".clone_into(&mut failed);
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            if !proxy.is_secure() {
                return Ok(Stream::Plain(stream));
            }
            let secured = self.tls.wrap_for(stream, &proxy.host().to_string()).await;
            let secured = secured.map_err(|error| ProxyFault::Away(error.to_string()))?;
            return Ok(Stream::Secure(Box::new(secured)));
        }
        Err(ProxyFault::Away(failed))
    }
}

/// Requests a tunnel to the target from the proxy (RFC 9110 §9.3.6).
async fn open_tunnel(
    stream: &mut Stream,
    proxy: &UpstreamProxy,
    target: &Target,
) -> Result<(), ProxyFault> {
    let away = |error: std::io::Error| ProxyFault::Away(error.to_string());
    let host = target.host().trim_end_matches('.');
    let place = format!("{host}:{}", target.port());
    let mut request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n").into_bytes();
    if let Some(value) = proxy.authorization() {
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
