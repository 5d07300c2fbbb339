//! `ScenarioServer`: serves a scenario on a local port.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::body::BodyPieces;
use crate::exchange::{self, IncomingRequest, RecordedExchange, RequestRoute};
use crate::faults::Delivery;
use crate::refusal::ProviderError;
use crate::scenario::Scenario;
use crate::stage::ScenarioPlayer;

/// Maximum number of open connections; more have to wait.
const CONNECTIONS: usize = 64;
/// Maximum size of a request, in bytes.
const LARGEST: usize = 32 << 20;
/// The pause after a connection that could not be accepted.
const MOMENT: Duration = Duration::from_millis(50);
/// How long a client may take to send a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// A scenario being served. Dropping it stops the server and closes open connections.
#[derive(Debug)]
pub struct ScenarioServer {
    address: SocketAddr,
    stage: Arc<ScenarioPlayer>,
    serving: JoinHandle<()>,
}

/// Serves a scenario on a free port of 127.0.0.1, on the current runtime.
///
/// # Errors
/// If no port can be opened.
pub async fn serve(scenario: Scenario) -> io::Result<ScenarioServer> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let stage = Arc::new(ScenarioPlayer::new(scenario));
    let serving = tokio::spawn(accept(listener, Arc::clone(&stage)));
    Ok(ScenarioServer {
        address,
        stage,
        serving,
    })
}

impl ScenarioServer {
    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL, `http://127.0.0.1:PORT`, without `/v1/…` or `/v1beta/…`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests so far, oldest first: the last 1,000, as long as their bodies fit in 64 MiB.
    pub fn requests(&self) -> Vec<RecordedExchange> {
        self.stage.exchanges()
    }

    /// Returns why requests were refused; empty if all satisfied the provider's rules and the scenario.
    pub fn problems(&self) -> Vec<String> {
        let exchanges = self.stage.exchanges();
        exchanges
            .into_iter()
            .filter_map(|exchange| exchange.problem)
            .collect()
    }

    /// Returns whether the last turn was answered, without a fault.
    pub fn is_over(&self) -> bool {
        self.stage.is_over()
    }
}

impl Drop for ScenarioServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn accept(listener: TcpListener, stage: Arc<ScenarioPlayer>) {
    // Dropped with this task: the connections end with the server.
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(converse(stream, Arc::clone(&stage)));
            }
            // No descriptor is free, or the client has disconnected: try again a moment later.
            Err(_) => tokio::time::sleep(MOMENT).await,
        }
    }
}

async fn converse(stream: TcpStream, stage: Arc<ScenarioPlayer>) {
    // Send each piece as it is.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let stage = Arc::clone(&stage);
        async move { Ok::<_, Infallible>(respond(&stage, request).await) }
    });
    // A client that disconnects, or a connection that the scenario breaks, is not an error of the server.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(stage: &ScenarioPlayer, request: http::Request<Incoming>) -> Response<BodyPieces> {
    let (parts, body) = request.into_parts();
    let route = match exchange::route(&parts.method, &parts.uri) {
        Ok(route) => route,
        Err(refusal) => {
            let delivery = Delivery::refusal(&refusal, haft_wire::Dialect::OpenAiChat);
            return response(delivery, Duration::ZERO);
        }
    };
    let RequestRoute {
        dialect,
        model,
        stream,
    } = route;
    let collected = Limited::new(body, LARGEST).collect();
    let body = match tokio::time::timeout(PATIENCE, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        _ => Err(ProviderError::new(
            413,
            format!(
                "the request did not come within {} s, or is larger than {LARGEST} bytes",
                PATIENCE.as_secs()
            ),
        )),
    };
    let key = stage.scenario.key.as_deref();
    let allowed = exchange::authorize(dialect, &parts.headers, &parts.uri, key);
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let exchange = RecordedExchange {
        dialect,
        path: path.to_owned(),
        headers: texts(&parts.headers),
        body: body.clone().unwrap_or_default(),
        model,
        stream,
        turn: None,
        status: 0,
        is_faulty: false,
        problem: None,
    };
    let body = allowed
        .and(body)
        .and_then(|body| exchange::parse(dialect, &body));
    let delivery = stage.play(IncomingRequest {
        exchange,
        headers: parts.headers,
        body,
    });
    if delivery.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(delivery.delay_ms)).await;
    }
    let pause = Duration::from_millis(stage.scenario.pause_ms);
    response(delivery, pause)
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        (name.as_str().to_owned(), value.into_owned())
    };
    let mut texts: Vec<(String, String)> = headers.iter().map(text).collect();
    texts.sort();
    texts
}

fn response(delivery: Delivery, pause: Duration) -> Response<BodyPieces> {
    let mut response = Response::new(BodyPieces::new(delivery.pieces, pause, delivery.end));
    *response.status_mut() = StatusCode::from_u16(delivery.status).unwrap_or_default();
    let kind = HeaderValue::from_str(&delivery.content_type);
    let headers = response.headers_mut();
    headers.extend(kind.ok().map(|kind| (CONTENT_TYPE, kind)));
    let id = HeaderValue::from_static("req_scripted");
    headers.insert("x-request-id", id.clone());
    headers.insert("request-id", id);
    for (name, value) in delivery.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            headers.insert(name, value);
        }
    }
    response
}
