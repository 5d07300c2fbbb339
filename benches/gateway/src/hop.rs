//! The hand-written hop: it forwards a request and returns the response, and reads neither.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::header::HOST;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mcp::processor;
use mcp::server::Server;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

type Sender = client::SendRequest<Full<Bytes>>;

/// Starts the hop in front of a server.
pub(crate) fn start(backend: &str) -> Server {
    let program = std::env::current_exe().expect("this program");
    let mut command = processor::server(&program);
    command.args(["hop", backend]);
    Server::start(command)
}

/// Serves until it is killed, with one connection to the server per client connection.
pub(crate) fn serve(backend: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        eprintln!("listening on http://{address}");
        loop {
            let (stream, _) = listener.accept().await.expect("a client");
            stream.set_nodelay(true).expect("a socket");
            tokio::spawn(one(stream, backend.to_owned()));
        }
    });
}

async fn one(stream: TcpStream, backend: String) {
    let on = TcpStream::connect(&backend)
        .await
        .expect("the server listens");
    on.set_nodelay(true).expect("a socket");
    let (sender, connection) = client::handshake(TokioIo::new(on)).await.expect("HTTP");
    tokio::spawn(connection);
    let sender = Mutex::new(sender);
    let service = service_fn(|request| pass(&sender, &backend, request));
    let served = server::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A client that closes ends the hop's connection, too.
    let _gone = served.await;
}

async fn pass(
    sender: &Mutex<Sender>,
    backend: &str,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (mut head, body) = request.into_parts();
    let host = backend.parse().expect("an address is a header");
    head.headers.insert(HOST, host);
    let body = body.collect().await.expect("a body").to_bytes();
    let mut sender = sender.lock().await;
    sender.ready().await.expect("the connection stands");
    let sent = sender.send_request(Request::from_parts(head, Full::new(body)));
    let (head, body) = sent.await.expect("an answer").into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    Ok(Response::from_parts(head, Full::new(body)))
}
