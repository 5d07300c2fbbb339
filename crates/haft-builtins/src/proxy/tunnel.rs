//! `Tunnel`: passes bytes in both directions once they begin with a TLS hello for the requested host.

use haft_http::stream::Stream;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, copy_bidirectional};
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
    host: String,
    /// True if the host is an address, which no hello names.
    address: bool,
}

impl Tunnel {
    pub(super) fn new(client: OnUpgrade, upstream: Stream, target: &WebUrl) -> Self {
        Self {
            client,
            upstream,
            host: strip_trailing_dot(target.host()).to_owned(),
            address: target.address().is_some(),
        }
    }

    /// Runs until either end closes. Fails if the bytes do not begin with a TLS hello for the host.
    pub(super) async fn run(self) -> Result<(), ConnectionRefusal> {
        let Self {
            client,
            mut upstream,
            host,
            address,
        } = self;
        // A client that disconnected needs no response.
        let Ok(Ok(client)) = timeout(STEP_TIMEOUT, client).await else {
            return Ok(());
        };
        let mut client = TokioIo::new(client);
        let closed = |why: String| ConnectionRefusal::Tunnel {
            host: host.clone(),
            why,
        };
        let first = timeout(STEP_TIMEOUT, first(&mut client)).await;
        let (bytes, name) = match first {
            Err(_) => return Err(closed("no TLS hello came in time".into())),
            Ok(Err(why)) => return Err(closed(why.into())),
            Ok(Ok(None)) => return Ok(()),
            Ok(Ok(Some(first))) => first,
        };
        match name {
            None if address => {}
            None => return Err(closed("the TLS hello names no host".into())),
            Some(name) if !address && name == host => {}
            Some(name) => return Err(closed(format!("the TLS hello names {name}"))),
        }
        if upstream.write_all(&bytes).await.is_ok() {
            // Either end may have closed the tunnel; it is over.
            let _ = copy_bidirectional(&mut client, &mut upstream).await;
        }
        Ok(())
    }
}

type FirstBytes = (Vec<u8>, Option<String>);

/// Reads up to the end of the hello or slightly further, and returns the bytes and the host that it names. Returns `None` if the
/// client disconnects without sending anything.
async fn first(client: &mut (impl AsyncRead + Unpin)) -> Result<Option<FirstBytes>, &'static str> {
    let mut bytes = Vec::new();
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
