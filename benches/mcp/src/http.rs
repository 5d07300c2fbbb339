//! Clients over HTTP: keep-alive connections of hyper's, each with one call at a time.

use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::request::Target;

/// The times of all calls in nanoseconds, and the seconds it took in all.
pub(crate) async fn load(
    address: &str,
    target: &Target,
    clients: usize,
    each: usize,
) -> (Vec<u64>, f64) {
    let mut open = Vec::new();
    for _ in 0..clients {
        open.push(connect(address).await);
    }
    let begun = Instant::now();
    let mut running = Vec::new();
    for sender in open {
        let (address, target) = (address.to_owned(), target.clone());
        running.push(tokio::spawn(async move {
            calls(sender, &address, &target, each).await
        }));
    }
    let mut times = Vec::with_capacity(clients * each);
    for client in running {
        times.extend(client.await.expect("a client"));
    }
    (times, begun.elapsed().as_secs_f64())
}

type Sender = SendRequest<Full<Bytes>>;

async fn connect(address: &str) -> Sender {
    let stream = TcpStream::connect(address)
        .await
        .expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    sender
}

async fn calls(mut sender: Sender, address: &str, target: &Target, count: usize) -> Vec<u64> {
    let mut times = Vec::with_capacity(count);
    for id in 0..count as u64 {
        let request = request(address, target, id);
        let begun = Instant::now();
        sender.ready().await.expect("the connection stands");
        let response = sender.send_request(request).await.expect("an answer");
        assert!(response.status().is_success(), "{response:?}");
        let body = response.into_body().collect().await.expect("a body");
        let took = begun.elapsed().as_nanos();
        times.push(u64::try_from(took).unwrap_or(u64::MAX));
        target.check(&body.to_bytes());
    }
    times
}

fn request(address: &str, target: &Target, id: u64) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header("host", address);
    for (name, value) in target.headers() {
        request = request.header(name, value);
    }
    let body = Full::new(Bytes::from(target.body(id)));
    request.body(body).expect("a request")
}
