//! `Client`: an HTTP/1.1 client for a bucket's server, with this process's one TLS implementation and the system's root certificates.
//!
//! haft needs little of what the client of `object_store` offers; this one has less than half its weight.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector as TcpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

use super::dial::{Dial, Duplex};

/// Time limit for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit until a response begins; each MiB sent adds one second.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

type Connections = legacy::Client<HttpsConnector<Dialer>, HttpRequestBody>;

/// An HTTP client; clones share its connections.
#[derive(Debug, Clone)]
pub(super) struct Client(Connections);

impl Client {
    /// Creates a client that opens its own connections or has `dial` open them. It allows unencrypted HTTP only if `plain` is
    /// set.
    pub(super) fn new(plain: bool, dial: Option<Arc<dyn Dial>>) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        if !plain {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = HttpsConnectorBuilder::new().with_tls_config(tls);
        let https = if plain {
            https.https_or_http()
        } else {
            https.https_only()
        };
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build(https.enable_http1().wrap_connector(Dialer { tcp, dial }));
        Ok(Self(client))
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let sent = request.body().size_hint().lower() >> 20;
        let within = RESPONSE_TIMEOUT.saturating_add(Duration::from_secs(sent));
        let Ok(answer) = tokio::time::timeout(within, self.0.request(request)).await else {
            let silent = "the server says nothing";
            let silent = std::io::Error::new(std::io::ErrorKind::TimedOut, silent);
            return Err(HttpError::new(HttpErrorKind::Timeout, silent));
        };
        let (parts, body) = answer.map_err(failed)?.into_parts();
        let body = body.map_err(|e| HttpError::new(HttpErrorKind::Interrupted, e));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// Opens connections by TCP, or through the `Dial` that the embedder supplies.
#[derive(Debug, Clone)]
struct Dialer {
    tcp: TcpConnector,
    dial: Option<Arc<dyn Dial>>,
}

type Opening = Pin<Box<dyn Future<Output = io::Result<TokioIo<Line>>> + Send>>;

impl Service<hyper::Uri> for Dialer {
    type Response = TokioIo<Line>;
    type Error = io::Error;
    type Future = Opening;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        self.tcp.poll_ready(context).map_err(io::Error::other)
    }

    fn call(&mut self, uri: hyper::Uri) -> Opening {
        let Some(dial) = self.dial.clone() else {
            let opening = self.tcp.call(uri);
            return Box::pin(async move {
                let stream = opening.await.map_err(io::Error::other)?.into_inner();
                Ok(TokioIo::new(Line(Box::new(stream))))
            });
        };
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let standard = if uri.scheme_str() == Some("http") {
                80
            } else {
                443
            };
            let stream = dial.dial(host, uri.port_u16().unwrap_or(standard)).await?;
            Ok(TokioIo::new(Line(stream)))
        })
    }
}

/// A connection, regardless of how it was opened.
struct Line(Box<dyn Duplex>);

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

fn failed(error: legacy::Error) -> HttpError {
    let kind = if error.is_connect() {
        HttpErrorKind::Connect
    } else {
        HttpErrorKind::Request
    };
    HttpError::new(kind, error)
}

impl HttpConnector for Client {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// Written by hand as the trait's own macro would expand, to avoid a dependency for one method.
impl HttpService for Client {
    fn call<'life, 'future>(
        &'life self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'future>>
    where
        'life: 'future,
        Self: 'future,
    {
        Box::pin(self.send(request))
    }
}
