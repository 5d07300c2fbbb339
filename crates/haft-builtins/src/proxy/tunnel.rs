//! `Tunnel`: passes bytes in both directions once they begin with a TLS hello for the requested host.

use haft_http::stream::Stream;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::time::timeout;

use crate::proxy::hello::{HelloParse, parse_hello};
use crate::proxy::refusal::ConnectionRefusal;
use crate::proxy::{STEP_TIMEOUT, strip_trailing_dot};
use crate::web::target::WebUrl;

/// A tunnel that has been accepted but not opened.
#[derive(Debug)]
pub(super) struct Tunnel {
    client: OnUpgrade,
    upstream: Stream,
    names: HelloNames,
}

impl Tunnel {
    pub(super) fn new(client: OnUpgrade, upstream: Stream, target: &WebUrl) -> Self {
        Self {
            client,
            upstream,
            names: HelloNames::required(target),
        }
    }

    /// Runs until either end closes. Fails if the bytes do not begin with a TLS hello for the host.
    pub(super) async fn run(self) -> Result<(), ConnectionRefusal> {
        // A client that disconnected needs no response.
        let Ok(Ok(client)) = timeout(STEP_TIMEOUT, self.client).await else {
            return Ok(());
        };
        let mut client = TokioIo::new(client);
        match self.names.read_hello(&mut client, Vec::new()).await? {
            Some(bytes) => splice(client, self.upstream, &bytes).await,
            None => Ok(()),
        }
    }
}

/// Sends these bytes to the host, then passes all others in both directions until either end closes.
pub(super) async fn splice(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    mut upstream: Stream,
    first: &[u8],
) -> Result<(), ConnectionRefusal> {
    if upstream.write_all(first).await.is_ok() {
        // Either end may have closed the tunnel; it is over.
        let _ = copy_bidirectional(&mut client, &mut upstream).await;
    }
    Ok(())
}

/// The name that a TLS hello must have, or may have.
#[derive(Debug, Clone)]
pub(super) struct HelloNames {
    host: String,
    /// True if the host is an address, which no hello names.
    is_address: bool,
    /// Whether a hello without a name is refused. A client of the proxy names the host to the proxy in words that the host does not
    /// see; where the connection itself is for the host, a hello without a name leads nowhere else.
    needed: bool,
}

impl HelloNames {
    /// Accepts a hello that names this host, or none.
    pub(super) fn of(target: &WebUrl) -> Self {
        Self {
            host: strip_trailing_dot(target.host()).to_owned(),
            is_address: target.address().is_some(),
            needed: false,
        }
    }

    /// Accepts a hello that names this host; one without a name only if the host is an address.
    pub(super) fn required(target: &WebUrl) -> Self {
        Self {
            needed: true,
            ..Self::of(target)
        }
    }

    /// Reads up to the end of the hello or slightly further, after the bytes that were read already. Returns all these bytes, or `None`
    /// if the client disconnects without sending anything. Fails if they are not a TLS hello for the host.
    pub(super) async fn read_hello(
        &self,
        client: &mut (impl AsyncRead + Unpin),
        bytes: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, ConnectionRefusal> {
        let closed = |why: String| ConnectionRefusal::Tunnel {
            host: self.host.clone(),
            why,
        };
        let first = timeout(STEP_TIMEOUT, first(client, bytes)).await;
        let (bytes, name) = match first {
            Err(_) => return Err(closed("no TLS hello came in time".into())),
            Ok(Err(why)) => return Err(closed(why.into())),
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some(first))) => first,
        };
        match name {
            None if self.is_address || !self.needed => Ok(Some(bytes)),
            None => Err(closed("the TLS hello names no host".into())),
            Some(name) if !self.is_address && name == self.host => Ok(Some(bytes)),
            Some(name) => Err(closed(format!("the TLS hello names {name}"))),
        }
    }
}

type FirstBytes = (Vec<u8>, Option<String>);

/// Reads up to the end of the hello or slightly further, and returns the bytes and the host that it names. Returns `None` if the
/// client disconnects without sending anything.
async fn first(
    client: &mut (impl AsyncRead + Unpin),
    mut bytes: Vec<u8>,
) -> Result<Option<FirstBytes>, &'static str> {
    loop {
        match parse_hello(&bytes) {
            HelloParse::More => {}
            HelloParse::Names(name) => return Ok(Some((bytes, name))),
            HelloParse::Wrong(why) => return Err(why),
        }
        match client.read_buf(&mut bytes).await {
            Ok(0) | Err(_) if bytes.is_empty() => return Ok(None),
            Ok(0) | Err(_) => return Err("the connection ended within its TLS hello"),
            Ok(_) => {}
        }
    }
}
