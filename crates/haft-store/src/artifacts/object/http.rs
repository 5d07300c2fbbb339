//! `ObjectClient`: an HTTP/1.1 client for a bucket's server, with this process's one TLS implementation and the system's root certificates.
//!
//! haft needs little of what the client of `object_store` offers; this one has less than half its weight.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use haft_http::dial::{BoxFuture, Dial, Io};
use haft_http::tls::Tls;
use http_body_util::BodyExt as _;
use hyper::Uri;
use hyper::body::Body as _;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector as TcpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

/// Time limit for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit until a response begins; each MiB sent adds one second.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

type PooledClient = legacy::Client<Dialer, HttpRequestBody>;

/// An HTTP client; clones share its connections.
#[derive(Debug, Clone)]
pub(super) struct ObjectClient(PooledClient);

impl ObjectClient {
    /// Creates a client that opens its own connections or has `dial` open them. It allows unencrypted HTTP only if `plain` is
    /// set.
    pub(super) fn new(plain: bool, dial: Option<Arc<dyn Dial>>) -> Self {
        let dial = dial.unwrap_or_else(|| Arc::new(TcpDial::new()));
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build(Dialer { plain, dial });
        Self(client)
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

/// Opens connections by TCP to whichever of the host's addresses is the fastest to accept.
#[derive(Debug)]
struct TcpDial {
    tcp: TcpConnector,
    tls: Tls,
}

impl TcpDial {
    fn new() -> Self {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        Self {
            tcp,
            tls: Tls::default(),
        }
    }

    async fn connect(&self, host: &str, port: u16, secure: bool) -> io::Result<Box<dyn Io>> {
        let uri = format!("http://{host}:{port}/").parse::<Uri>();
        let opening = self.tcp.clone().call(uri.map_err(io::Error::other)?);
        let stream = opening.await.map_err(io::Error::other)?.into_inner();
        if !secure {
            return Ok(Box::new(stream));
        }
        Ok(Box::new(self.tls.wrap(stream, host).await?))
    }
}

impl Dial for TcpDial {
    fn dial<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        secure: bool,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(self.connect(host, port, secure))
    }
}

/// Opens the connections of the client's pool.
#[derive(Debug, Clone)]
struct Dialer {
    /// Whether connections may be unencrypted.
    plain: bool,
    dial: Arc<dyn Dial>,
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<PooledStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<PooledStream>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { plain, dial } = self.clone();
        Box::pin(async move {
            let secure = uri.scheme_str() != Some("http");
            if !secure && !plain {
                return Err(io::Error::other("unencrypted connections are not allowed"));
            }
            let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
            let host = uri.host().unwrap_or_default();
            Ok(TokioIo::new(PooledStream(
                dial.dial(host, port, secure).await?,
            )))
        })
    }
}

/// A connection, regardless of how it was opened.
struct PooledStream(Box<dyn Io>);

impl Connection for PooledStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for PooledStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for PooledStream {
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

impl HttpConnector for ObjectClient {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// Written by hand as the trait's own macro would expand, to avoid a dependency for one method.
impl HttpService for ObjectClient {
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
