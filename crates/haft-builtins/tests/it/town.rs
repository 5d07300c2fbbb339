//! A public network of the tests: names to resolve, real servers on loopback behind public addresses, noted connections.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use haft_builtins::web::http::{FetchLimits, Http};
use haft_builtins::web::network::{BoxFuture, Network};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The default address of a name.
pub(crate) const PUBLIC: &str = "93.184.216.34";

/// What a server does with a request.
pub(crate) enum Does {
    /// Sends these bytes and closes.
    Sends(Vec<u8>),
    /// Sends the head, then this piece again and again until the client closes.
    Repeats(Vec<u8>, Vec<u8>),
    /// Sends these bytes and keeps the connection open.
    Hangs(Vec<u8>),
}

/// Returns a complete response with a length.
pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Does {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    Does::Sends([head.as_bytes(), body].concat())
}

/// Returns a successful response.
pub(crate) fn page(media_type: &str, body: impl AsRef<[u8]>) -> Does {
    answer("200 OK", &format!("Content-Type: {media_type}\r\n"), body)
}

/// Returns a redirect.
pub(crate) fn moved(location: &str) -> Does {
    answer("302 Found", &format!("Location: {location}\r\n"), "")
}

type Handler = dyn Fn(&ReceivedRequest) -> Does + Send + Sync;

/// A request as a server saw it.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    /// The whole head and the part of the body that came with it, if any.
    pub(crate) text: String,
}

/// The network.
pub(crate) struct Town {
    plain: SocketAddr,
    secure: SocketAddr,
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    connected: Mutex<Vec<SocketAddr>>,
    looked_up: Mutex<Vec<String>>,
    tls: TlsAcceptor,
    root: CertificateDer<'static>,
}

impl std::fmt::Debug for Town {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Town").finish_non_exhaustive()
    }
}

impl Town {
    /// Creates a network in which every name is at `PUBLIC` and every server does the same.
    pub(crate) async fn new(
        does: impl Fn(&ReceivedRequest) -> Does + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::dated(does, 2000..=4000).await
    }

    /// Like [`Town::new`], with certificates of these years.
    pub(crate) async fn dated(
        does: impl Fn(&ReceivedRequest) -> Does + Send + Sync + 'static,
        years: RangeInclusive<i32>,
    ) -> Arc<Self> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // It needs a name of its own: OpenSSL takes a certificate with equal issuer and subject names for self-signed.
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "the town's notary");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let root = issuer.der().clone();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Notary { issuer, years }));
        let does: Arc<Handler> = Arc::new(does);
        let tls = TlsAcceptor::from(Arc::new(config));
        Arc::new(Self {
            plain: listen(Arc::clone(&does), None).await,
            secure: listen(does, Some(tls.clone())).await,
            answers: Mutex::default(),
            connected: Mutex::default(),
            looked_up: Mutex::default(),
            tls,
            root,
        })
    }

    /// Returns the actual address of its plain server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.plain
    }

    /// Sets the answers for a name, one list per lookup; the last one repeats.
    pub(crate) fn answers(&self, name: &str, answers: &[&[&str]]) {
        let parsed = |list: &&[&str]| list.iter().map(|a| a.parse().unwrap()).collect();
        let answers = answers.iter().map(parsed).collect();
        self.answers.lock().insert(name.to_owned(), answers);
    }

    /// Returns a guarded client in this town.
    pub(crate) fn http(self: &Arc<Self>) -> Http {
        Http::guarded()
            .with_network(Arc::clone(self) as Arc<dyn Network>)
            .with_roots(vec![self.root().clone()])
    }

    /// Returns the root certificate of its servers.
    pub(crate) fn root(&self) -> &CertificateDer<'static> {
        &self.root
    }

    /// Returns an acceptor with a certificate for the requested name.
    pub(crate) fn tls(&self) -> &TlsAcceptor {
        &self.tls
    }

    /// Returns a guarded client with other limits.
    pub(crate) fn limited(self: &Arc<Self>, change: impl FnOnce(&mut FetchLimits)) -> Http {
        let mut limits = FetchLimits::default();
        change(&mut limits);
        self.http().with_limits(limits)
    }

    /// Returns every address that a connection was opened to, in order.
    pub(crate) fn connected(&self) -> Vec<SocketAddr> {
        self.connected.lock().clone()
    }

    /// Returns every name that was looked up, in order.
    pub(crate) fn looked_up(&self) -> Vec<String> {
        self.looked_up.lock().clone()
    }
}

impl Network for Town {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.looked_up.lock().push(name.to_owned());
        let mut answers = self.answers.lock();
        let answer = match answers.get_mut(name) {
            Some(lists) if lists.len() > 1 => lists.remove(0),
            Some(lists) => lists[0].clone(),
            None => vec![PUBLIC.parse().unwrap()],
        };
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.connected.lock().push(address);
        let secure = matches!(address.port(), 443 | 8443);
        Box::pin(TcpStream::connect(if secure {
            self.secure
        } else {
            self.plain
        }))
    }
}

/// Issues a certificate for any requested name.
struct Notary {
    issuer: CertifiedIssuer<'static, KeyPair>,
    years: RangeInclusive<i32>,
}

impl std::fmt::Debug for Notary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notary").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Notary {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or(PUBLIC);
        // A host of this name presents another host's certificate.
        let name = if name == "stolen.example.com" {
            "other.example.com"
        } else {
            name
        };
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(*self.years.start(), 1, 1);
        params.not_after = rcgen::date_time_ymd(*self.years.end(), 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
        Some(Arc::new(CertifiedKey::new(
            vec![certificate.der().clone()],
            key,
        )))
    }
}

async fn listen(does: Arc<Handler>, tls: Option<TlsAcceptor>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (does, tls) = (Arc::clone(&does), tls.clone());
            tokio::spawn(async move {
                // A client that refuses the certificate, or closes, ends its connection.
                let _ = match tls {
                    None => serve(stream, &*does).await,
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => serve(stream, &*does).await,
                        Err(error) => Err(error),
                    },
                };
            });
        }
    });
    address
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, does: &Handler) -> io::Result<()> {
    let asked = request(&mut stream).await?;
    match does(&asked) {
        Does::Sends(bytes) => stream.write_all(&bytes).await?,
        Does::Repeats(head, piece) => {
            stream.write_all(&head).await?;
            loop {
                stream.write_all(&piece).await?;
            }
        }
        Does::Hangs(bytes) => {
            stream.write_all(&bytes).await?;
            stream.flush().await?;
            // Until the client closes.
            stream.read_u8().await?;
        }
    }
    stream.flush().await?;
    stream.shutdown().await
}

/// Reads a request, and its body if a length announces one.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<ReceivedRequest> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut part).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&part[..n]),
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next()?.trim().parse::<usize>().ok());
    while bytes.len() < head + length.unwrap_or(0) {
        match stream.read(&mut part).await? {
            0 => break,
            n => bytes.extend_from_slice(&part[..n]),
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(ReceivedRequest { path, text })
}
