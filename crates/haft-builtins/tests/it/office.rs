//! A company network: a real proxy on loopback is the only way to the town; direct connections are noted.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use haft_builtins::web::network::{BoxFuture, Network};
use haft_builtins::web::upstream::UpstreamProxy;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::town::Town;

/// The name of the company's proxy, and its address.
const NAME: &str = "proxy.office.internal";
const ADDRESS: &str = "10.0.0.8";
/// The credentials of a proxy that requires them: `ann` with the password `hush`.
pub(crate) const BASIC: &str = "Basic YW5uOmh1c2g=";

/// How the proxy answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Serves every client.
    Open,
    /// Serves clients that send the password.
    Guarded,
    /// Sends this response to every request.
    Says(&'static str),
}

/// The company's network.
#[derive(Debug)]
pub(crate) struct Office {
    town: Arc<Town>,
    plain: SocketAddr,
    secure: SocketAddr,
    /// Names that the machine's own resolver knows.
    known: Mutex<Vec<(String, IpAddr)>>,
    direct: Mutex<Vec<SocketAddr>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Office {
    pub(crate) async fn new(town: &Arc<Town>, manner: Manner) -> Arc<Self> {
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let mut places = Vec::new();
        for secure in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            places.push(listener.local_addr().unwrap());
            let (town, heads) = (Arc::clone(town), Arc::clone(&heads));
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let (town, heads) = (Arc::clone(&town), Arc::clone(&heads));
                    tokio::spawn(async move {
                        // A client that closes ends its connection.
                        let _ = if secure {
                            let stream = town.tls().accept(stream).await?;
                            serve(stream, &town, manner, &heads).await
                        } else {
                            serve(stream, &town, manner, &heads).await
                        };
                        io::Result::Ok(())
                    });
                }
            });
        }
        Arc::new(Self {
            town: Arc::clone(town),
            plain: places[0],
            secure: places[1],
            known: Mutex::default(),
            direct: Mutex::default(),
            heads,
        })
    }

    /// Adds a name to the machine's own resolver.
    pub(crate) fn knows(&self, name: &str, address: &str) {
        let known = (name.to_owned(), address.parse().unwrap());
        self.known.lock().push(known);
    }

    /// Returns the heads of the requests to the proxy.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }

    /// Returns the addresses that were connected to without the proxy.
    pub(crate) fn direct(&self) -> Vec<SocketAddr> {
        self.direct.lock().clone()
    }
}

/// Returns the proxy as settings name it; `login` includes its `@` or is empty.
pub(crate) fn proxy(scheme: &str, login: &str, direct: &[&str]) -> UpstreamProxy {
    let port = if scheme == "https" { 3129 } else { 3128 };
    UpstreamProxy::new(&format!("{scheme}://{login}{NAME}:{port}"), direct).unwrap()
}

impl Network for Office {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let known = self.known.lock();
        let known = known.iter().find(|(own, _)| own == name);
        let found = match known {
            Some((_, address)) => Ok(vec![*address]),
            None if name == NAME => Ok(vec![ADDRESS.parse().unwrap()]),
            None => Err(io::Error::other("no such name in this network")),
        };
        Box::pin(std::future::ready(found))
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        let proxy: IpAddr = ADDRESS.parse().unwrap();
        match (address.ip() == proxy, address.port()) {
            (true, 3128) => Box::pin(TcpStream::connect(self.plain)),
            (true, 3129) => Box::pin(TcpStream::connect(self.secure)),
            _ => {
                self.direct.lock().push(address);
                self.town.connect(address)
            }
        }
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    town: &Town,
    manner: Manner,
    heads: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    heads.lock().push(head.clone());
    let shown = head.to_lowercase().contains(&BASIC.to_lowercase());
    let refusal = match manner {
        Manner::Says(answer) => Some(answer),
        Manner::Guarded if !shown => Some(
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"office\"\r\nContent-Length: 0\r\n\r\n",
        ),
        Manner::Guarded | Manner::Open => None,
    };
    if let Some(answer) = refusal {
        stream.write_all(answer.as_bytes()).await?;
        return stream.shutdown().await;
    }
    let public = |port| SocketAddr::new(crate::town::PUBLIC.parse().unwrap(), port);
    let asked = head.split(' ').nth(1).unwrap_or_default();
    let mut server = if head.starts_with("CONNECT ") {
        let port = asked.rsplit(':').next().and_then(|port| port.parse().ok());
        let server = town.connect(public(port.unwrap_or(443))).await?;
        stream
            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            .await?;
        server
    } else {
        let mut server = town.connect(public(80)).await?;
        // Like real proxies: headers for the proxy itself are not forwarded.
        let passed: String = head
            .split_inclusive("\r\n")
            .filter(|line| !line.to_lowercase().starts_with("proxy-"))
            .collect();
        server.write_all(passed.as_bytes()).await?;
        server
    };
    copy_bidirectional(&mut stream, &mut server).await?;
    Ok(())
}
