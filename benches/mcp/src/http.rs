//! Clients over HTTP: keep-alive connections of hyper's, each with one call at a time.

use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::request::Target;

/// Returns the times of all calls in nanoseconds, and the total seconds.
pub async fn load(address: &str, target: &Target, clients: usize, each: usize) -> (Vec<u64>, f64) {
    let mut open = Vec::new();
    for _ in 0..clients {
        open.push(Client::connect(address, target).await);
    }
    let begun = Instant::now();
    let mut running = Vec::new();
    for client in open {
        running.push(tokio::spawn(client.calls(each)));
    }
    let mut times = Vec::with_capacity(clients * each);
    for client in running {
        times.extend(client.await.expect("a client"));
    }
    (times, begun.elapsed().as_secs_f64())
}

/// A connection, with its session if the server started one.
pub struct Client {
    sender: SendRequest<Full<Bytes>>,
    address: String,
    target: Target,
    session: Option<String>,
}

impl Client {
    /// Connects, with a handshake if the era has one.
    pub async fn connect(address: &str, target: &Target) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        let mut client = Self {
            sender,
            address: address.to_owned(),
            target: target.clone(),
            session: None,
        };
        if target.legacy {
            client.shake_hands().await;
        }
        client
    }

    /// Starts a session in addition to those that this connection started before.
    pub async fn shake_hands(&mut self) {
        self.session = None;
        for message in Target::handshake() {
            let response = self.post(message).await;
            let session = response.headers().get("mcp-session-id");
            let session = session.and_then(|id| Some(id.to_str().ok()?.to_owned()));
            self.session = session.or(self.session.take());
            response.into_body().collect().await.expect("a body");
        }
    }

    /// Makes one call.
    pub async fn call(&mut self) {
        let response = self.post(self.target.body(1)).await;
        let body = response.into_body().collect().await.expect("a body");
        self.target.check(&body.to_bytes());
    }

    /// Returns the times of `count` calls, in nanoseconds.
    pub async fn calls(mut self, count: usize) -> Vec<u64> {
        let mut times = Vec::with_capacity(count);
        for id in 0..count as u64 {
            let body = self.target.body(id);
            let begun = Instant::now();
            let response = self.post(body).await;
            let body = response.into_body().collect().await.expect("a body");
            let took = begun.elapsed().as_nanos();
            times.push(u64::try_from(took).unwrap_or(u64::MAX));
            self.target.check(&body.to_bytes());
        }
        times
    }

    async fn post(&mut self, body: String) -> Response<Incoming> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.target.path)
            .header("host", &self.address);
        for (name, value) in self.target.headers() {
            request = request.header(name, value);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let body = Full::new(Bytes::from(body));
        let request = request.body(body).expect("a request");
        self.sender.ready().await.expect("the connection stands");
        let sent = self.sender.send_request(request).await;
        let response = sent.expect("an answer");
        assert!(response.status().is_success(), "{response:?}");
        response
    }
}
