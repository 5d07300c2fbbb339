//! The pool against servers that answer as they are told: reuse, what a failed request may have reached, time and size limits.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft_http::body::BodyError;
use haft_http::connections::{ConnectionPool, Destination, HttpExchange, SendError};
use haft_http::dial::{BoxFuture, Dial, Io};
use haft_http::waits::Waits;
use http::Request;
use http_body_util::Full;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::Instant;

const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok";

/// What a server does on one connection.
#[derive(Debug, Clone, Copy)]
enum Script {
    /// Refuses it.
    Refuses,
    /// Answers one request after the other with these, then closes.
    Answers(&'static [&'static str]),
    /// Answers a request with this, then says nothing more.
    Stalls(&'static str),
}

/// A server that follows a script for each connection.
#[derive(Debug)]
struct Scripted(Mutex<VecDeque<Script>>);

impl Dial for Scripted {
    fn dial<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        secure: bool,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        assert_eq!((host, port, secure), ("models.example", 443, true));
        let script = self.0.lock().pop_front().unwrap();
        Box::pin(async move {
            if matches!(script, Script::Refuses) {
                return Err(io::Error::other("refused by the script"));
            }
            let (client, server) = tokio::io::duplex(1 << 16);
            tokio::spawn(play(server, script));
            Ok(Box::new(client) as Box<dyn Io>)
        })
    }
}

async fn play(mut server: DuplexStream, script: Script) {
    match script {
        Script::Refuses => {}
        Script::Answers(answers) => {
            for answer in answers {
                read_head(&mut server).await;
                server.write_all(answer.as_bytes()).await.unwrap();
            }
            if answers.is_empty() {
                read_head(&mut server).await;
            }
        }
        Script::Stalls(answer) => {
            read_head(&mut server).await;
            server.write_all(answer.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        }
    }
}

async fn read_head(server: &mut DuplexStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(server.read_u8().await.unwrap());
    }
}

fn connections(scripts: &[Script]) -> (ConnectionPool, Arc<Scripted>) {
    let server = Arc::new(Scripted(Mutex::new(scripts.iter().copied().collect())));
    let to = Destination {
        host: "models.example".to_owned(),
        port: 443,
        secure: true,
    };
    let dial = Arc::clone(&server) as Arc<dyn Dial>;
    (ConnectionPool::new(to, dial, 1), server)
}

async fn send(connections: &ConnectionPool, waits: &Waits) -> Result<HttpExchange, SendError> {
    let request = Request::post("/").body(Full::new(Bytes::new())).unwrap();
    connections.send(request, waits).await
}

#[tokio::test]
async fn connection_is_reused_when_its_body_was_read_and_the_server_holds_it_open() {
    for (scripts, unused) in [
        (
            [Script::Answers(&[WHOLE, WHOLE]), Script::Answers(&[WHOLE])],
            1,
        ),
        ([Script::Answers(&[WHOLE]), Script::Answers(&[WHOLE])], 0),
    ] {
        let (connections, server) = connections(&scripts);
        for _ in 0..2 {
            let mut exchange = send(&connections, &Waits::default()).await.unwrap();
            let body = exchange.whole(2, &Waits::default()).await.unwrap();
            assert_eq!((body, exchange.received()), (Bytes::from("ok"), 2));
            exchange.keep().await;
        }
        assert_eq!(server.0.lock().len(), unused, "{scripts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_request_says_whether_the_server_may_have_it() {
    let waits = Waits {
        first_byte: Some(Duration::from_secs(3)),
        ..Waits::default()
    };
    for (script, expect) in [
        (Script::Refuses, "Unreachable(\"refused by the script\")"),
        (Script::Answers(&[]), "Closed("),
        (Script::Stalls(""), "Late(FirstByte)"),
    ] {
        let error = send(&connections(&[script]).0, &waits).await.unwrap_err();
        let error = format!("{error:?}");
        assert!(error.starts_with(expect), "{script:?}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn body_ends_at_its_limits() {
    let short = Waits {
        next_byte: Some(Duration::from_secs(1)),
        deadline: Some(Instant::now() + Duration::from_secs(600)),
        ..Waits::default()
    };
    let last = Waits::until(Instant::now() + Duration::from_secs(5));
    for (script, waits, expect) in [
        (Script::Answers(&[WHOLE]), Waits::default(), "TooLong(1)"),
        (Script::Answers(&[CUT]), Waits::default(), "TooLong(1)"),
        (Script::Stalls(CUT), short, "Late(NextByte)"),
        (Script::Stalls(CUT), last, "Late(Whole)"),
    ] {
        let longest = if expect.starts_with("Late") { 99 } else { 1 };
        let mut exchange = send(&connections(&[script]).0, &waits).await.unwrap();
        let error = exchange.whole(longest, &waits).await.unwrap_err();
        assert_eq!(format!("{error:?}"), expect, "{script:?}");
    }
    let (connections, _server) = connections(&[Script::Answers(&[CUT])]);
    let mut exchange = send(&connections, &Waits::default()).await.unwrap();
    let error = exchange.whole(99, &Waits::default()).await.unwrap_err();
    assert!(matches!(error, BodyError::Broken(_)), "{error}");
    assert_eq!(exchange.received(), 2);
}
