//! `Tunnel`: bytes passed both ways once the first of them are a TLS hello for the host that was asked for.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::time::timeout;

use crate::proxy::hello::{Hello, hello};
use crate::proxy::refusal::Refusal;
use crate::proxy::{SOON, bare};
use crate::web::stream::Stream;
use crate::web::target::Target;

/// A tunnel that has been promised.
#[derive(Debug)]
pub(super) struct Tunnel {
    client: OnUpgrade,
    upstream: Stream,
    host: String,
    /// The host is an address, which no hello names.
    address: bool,
}

impl Tunnel {
    pub(super) fn new(client: OnUpgrade, upstream: Stream, target: &Target) -> Self {
        Self {
            client,
            upstream,
            host: bare(target.host()).to_owned(),
            address: target.address().is_some(),
        }
    }

    /// Until either end is gone; an error where the bytes are not what was promised.
    pub(super) async fn run(self) -> Result<(), Refusal> {
        let Self {
            client,
            mut upstream,
            host,
            address,
        } = self;
        // A client that is gone needs no answer.
        let Ok(Ok(client)) = timeout(SOON, client).await else {
            return Ok(());
        };
        let mut client = TokioIo::new(client);
        let closed = |why: String| Refusal::Tunnel {
            host: host.clone(),
            why,
        };
        let first = timeout(SOON, first(&mut client)).await;
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
            // Whoever broke it off, it is over.
            let _ = copy_bidirectional(&mut client, &mut upstream).await;
        }
        Ok(())
    }
}

type First = (Vec<u8>, Option<String>);

/// The bytes up to the end of the hello or a little further, and the host it names; nothing where the client went
/// without a word.
async fn first(client: &mut (impl AsyncRead + Unpin)) -> Result<Option<First>, &'static str> {
    let mut bytes = Vec::new();
    loop {
        match hello(&bytes) {
            Hello::More => {}
            Hello::Names(name) => return Ok(Some((bytes, name))),
            Hello::Wrong(why) => return Err(why),
        }
        match client.read_buf(&mut bytes).await {
            Ok(0) | Err(_) if bytes.is_empty() => return Ok(None),
            Ok(0) | Err(_) => return Err("the connection ended within its TLS hello"),
            Ok(_) => {}
        }
    }
}
