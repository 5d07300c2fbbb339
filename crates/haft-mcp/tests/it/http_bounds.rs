//! What HTTP clients make the server hold is limited, and one client cannot use up the share of the others.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use haft::call::Principal;
use haft_mcp::http::{Access, McpBody, McpService};
use haft_mcp::opener::OperatorMarker;
use haft_mcp::server::ServerLimits;
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use serde_json::json;
use tokio::task::JoinSet;
use tower_service::Service;

use crate::support::http_client::{MODERN, open, post, post_as, post_modern, reply, request, send};
use crate::support::small_tools::SmallOpener;
use crate::support::{call, initialize, modern, server, serving, until_async};

/// Returns the review's numbers under `HAFT_SOAK`, small ones otherwise.
fn sized(small: usize, soak: usize) -> usize {
    if std::env::var_os("HAFT_SOAK").is_some() {
        soak
    } else {
        small
    }
}

/// A body without a declared length.
struct Chunked(Option<Bytes>);

impl Body for Chunked {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Returns a call that needs an approval.
fn asks(content: &str) -> Request<Chunked> {
    let arguments = json!({"path": "a.txt", "content": content});
    let more = format!(r#","name":"write_file","arguments":{arguments}"#);
    let headers = [
        MODERN,
        ("mcp-method", "tools/call"),
        ("mcp-name", "write_file"),
    ];
    let (parts, _) = request(Method::POST, &headers, "").into_parts();
    let body = modern("1", "tools/call", &more);
    Request::from_parts(parts, Chunked(Some(body.into())))
}

async fn answer(service: McpService, request: Request<Chunked>) -> Response<McpBody> {
    let mut service = service;
    service.call(request).await.unwrap()
}

#[tokio::test]
async fn w5_calls_that_wait_for_a_person_keep_nobody_else_out() {
    let opener = Arc::new(SmallOpener::asking());
    let limits = ServerLimits {
        body_bytes: 16 << 20,
        ..ServerLimits::default()
    };
    let service = serving(limits, &opener).http(Access::checked_before());
    let long = "x".repeat(1 << 20);
    let mut waiting = JoinSet::new();
    let all = sized(64, 200);
    for nth in 0..all {
        waiting.spawn(answer(service.clone(), asks(&format!("{nth}{long}"))));
    }
    // Calls wait as long as there is room for their bodies; the others are told to retry.
    let mut refused = 0;
    while opener.requests().await.len() + refused < all {
        while let Some(told) = waiting.try_join_next() {
            assert_eq!(told.unwrap().status(), 503);
            refused += 1;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(refused > 0 && waiting.len() > 4, "{} wait", waiting.len());
    for _ in 0..3 {
        let list = modern("2", "tools/list", "");
        let listed = post_modern(&service, "tools/list", None, &list).await;
        assert_eq!(listed.verdict(), (200, 0));
        let read = modern(
            "3",
            "tools/call",
            r#","name":"read_file","arguments":{"path":"hello.txt"}"#,
        );
        let read = post_modern(&service, "tools/call", Some("read_file"), &read).await;
        assert_eq!(read.verdict(), (200, 0));
    }
    // A notification of the handshake era, also from the operator.
    let mut hello = request(Method::POST, &[], initialize("2025-11-25"));
    hello.extensions_mut().insert(OperatorMarker);
    assert_eq!(send(&service, hello).await.status(), 200);
    // When the clients close, the memory of their calls is free again.
    let before = opener.requests().await.len();
    waiting.shutdown().await;
    let again = tokio::spawn(answer(service.clone(), asks(&long)));
    while opener.requests().await.len() == before {
        assert!(!again.is_finished(), "refused");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    again.abort();
}

/// W5: a closed client's read from the disk still counts, because a thread is still reading.
#[tokio::test]
async fn w5_reads_count_until_their_work_has_ended() {
    let opener = Arc::new(SmallOpener::asking());
    let limits = ServerLimits {
        reads: 8,
        ..ServerLimits::default()
    };
    let service = serving(limits, &opener).http(Access::checked_before());
    // A call that looks for skills waits for this thread.
    let (held, holds) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let disk = Arc::clone(&opener);
    let holder = std::thread::spawn(move || {
        let _busy = disk.skills.lock();
        held.send(()).unwrap();
        let _ = released.recv();
    });
    holds.await.unwrap();
    let list = || {
        let service = service.clone();
        let headers = [MODERN, ("mcp-method", "resources/list")];
        let body = modern("1", "resources/list", "");
        let list = request(Method::POST, &headers, body);
        async move { send(&service, list).await.status().as_u16() }
    };
    let mut reading = JoinSet::new();
    let refused = loop {
        reading.spawn(list());
        tokio::time::sleep(Duration::from_millis(2)).await;
        if let Some(status) = reading.try_join_next() {
            break status.unwrap();
        }
    };
    assert_eq!(refused, 503);
    reading.shutdown().await;
    let next = tokio::time::timeout(Duration::from_secs(60), list()).await;
    assert_eq!(next, Ok(503), "the threads still wait for the disk");
    drop(release);
    holder.join().unwrap();
    while list().await != 200 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn w5_a_body_that_is_announced_and_not_sent_holds_nothing() {
    let (server, _) = server(ServerLimits {
        body_bytes: 1 << 20,
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let silent: Vec<_> = (0..sized(64, 2000))
        .map(|_| {
            let (parts, _) = request(Method::POST, &session, "").into_parts();
            tokio::spawn(service.clone().call(Request::from_parts(parts, Silent)))
        })
        .collect();
    tokio::task::yield_now().await;
    let padded = format!("{}{}", call("1", "echo", "{}"), " ".repeat(400 << 10));
    assert_eq!(post(&service, &session, &padded).await.verdict(), (200, 0));
    for one in silent {
        one.abort();
    }
}

/// A body that announces four megabytes and sends nothing.
struct Silent;

impl Body for Silent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(4 << 20)
    }
}

#[tokio::test]
async fn calls_under_way_are_bounded_and_the_operator_has_a_share() {
    let (server, opener) = server(ServerLimits {
        calls: 8,
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let slow = |id: usize| call(&id.to_string(), "slow", r#"{"milliseconds":600000}"#);
    let mut running = JoinSet::new();
    for nth in 0..8 {
        let (service, slow) = (service.clone(), request(Method::POST, &session, slow(nth)));
        running.spawn(async move { send(&service, slow).await });
    }
    until_async(|| opener.count("started") == 8).await;
    let ninth = post(&service, &session, &slow(8)).await;
    assert_eq!(ninth.verdict(), (503, -32000));
    let read = call("9", "read_file", r#"{"path":"hello.txt"}"#);
    let mut operators = request(Method::POST, &session, read.clone());
    operators.extensions_mut().insert(OperatorMarker);
    let operators = reply(send(&service, operators).await).await;
    assert_eq!(operators.verdict(), (200, 0));
    // Messages that are not calls still get through.
    let list = r#"{"jsonrpc":"2.0","id":1000,"method":"tools/list"}"#;
    assert_eq!(post(&service, &session, list).await.verdict(), (200, 0));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}"#;
    assert_eq!(post(&service, &session, cancel).await.status, 202);
    until_async(|| opener.count("ended:cancelled") == 1).await;
    assert_eq!(post(&service, &session, &read).await.verdict(), (200, 0));
    running.shutdown().await;
}

#[tokio::test]
async fn aw1_reads_under_way_are_bounded_and_keep_neither_calls_nor_the_operator_out() {
    let (server, opener) = server(ServerLimits {
        reads: 4,
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    // A slow folder of skills: listing resources waits for it.
    let (slow, ready) = tokio::sync::oneshot::channel();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let folder = {
        let opener = Arc::clone(&opener);
        std::thread::spawn(move || {
            let _skills = opener.skills.lock();
            slow.send(()).unwrap();
            let _ended = wait.recv();
        })
    };
    ready.await.unwrap();
    let ask = |id: usize, method: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        request(Method::POST, &session, body)
    };
    let mut reading = JoinSet::new();
    for nth in 0..5 {
        let (service, list) = (service.clone(), ask(nth, "resources/list"));
        reading.spawn(async move { reply(send(&service, list).await).await });
    }
    let fifth = reading.join_next().await.unwrap().unwrap();
    assert_eq!(fifth.verdict(), (503, -32000));
    let mut operators = ask(5, "tools/list");
    operators.extensions_mut().insert(OperatorMarker);
    let operators = reply(send(&service, operators).await).await;
    assert_eq!(operators.verdict(), (200, 0));
    let read = call("6", "read_file", r#"{"path":"hello.txt"}"#);
    assert_eq!(post(&service, &session, &read).await.verdict(), (200, 0));
    drop(go_on);
    folder.join().unwrap();
    for read in reading.join_all().await {
        assert_eq!(read.verdict(), (200, 0));
    }
    let again = reply(send(&service, ask(7, "resources/list")).await).await;
    assert_eq!(again.verdict(), (200, 0));
}

#[tokio::test]
async fn answers_that_nobody_takes_are_bounded() {
    let (server, _) = server(ServerLimits {
        answer_bytes: 1 << 20,
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let id = open(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let big = post(&service, &session, &call("1", "big", "{}"))
        .await
        .json();
    let content = big["result"]["content"].as_array().unwrap().clone();
    let uri = content
        .iter()
        .find_map(|block| block["uri"].as_str())
        .unwrap();
    let read = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"{uri}"}}}}"#
    );
    let mut untaken = Vec::new();
    let refused = loop {
        let response = send(&service, request(Method::POST, &session, read.clone())).await;
        if response.status() != 200 {
            break response;
        }
        untaken.push(response);
        assert!(untaken.len() < 100, "nothing bounds them");
    };
    assert_eq!(refused.status(), 503);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(post(&service, &session, list).await.verdict(), (200, 0));
    drop(untaken);
    assert_eq!(post(&service, &session, &read).await.verdict(), (200, 0));
}

#[tokio::test(start_paused = true)]
async fn w10_however_many_sessions_are_opened_the_next_one_finds_a_place() {
    let most = sized(20, 1024);
    let (server, opener) = server(ServerLimits {
        sessions: most,
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let mine = open(&service).await;
    let session = [("mcp-session-id", mine.as_str())];
    let read = call("1", "read_file", r#"{"path":"hello.txt"}"#);
    assert_eq!(post(&service, &session, &read).await.status, 200);
    for _ in 0..4 * most {
        open(&service).await;
    }
    // Unused sessions went first, and left nothing behind.
    assert_eq!(service.sessions(), most);
    assert_eq!(post(&service, &session, &read).await.verdict(), (200, 0));
    assert_eq!((opener.started.lock().len(), opener.count("run")), (1, 1));
    // slow on purpose: the clock is paused, and jumps.
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(service.sessions(), 1, "never used for a minute");
    assert_eq!(post(&service, &session, &read).await.verdict(), (200, 0));
}

#[tokio::test]
async fn w10_sessions_in_use_are_kept_and_the_operator_gets_in() {
    let (server, opener) = server(ServerLimits {
        sessions: 2,
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let mut running = JoinSet::new();
    for _ in 0..2 {
        let id = open(&service).await;
        let slow = call("1", "slow", r#"{"milliseconds":600000}"#);
        let slow = request(Method::POST, &[("mcp-session-id", id.as_str())], slow);
        let service = service.clone();
        running.spawn(async move { send(&service, slow).await });
    }
    until_async(|| opener.count("started") == 2).await;
    let third = post(&service, &[], &initialize("2025-11-25")).await;
    assert_eq!(third.verdict(), (503, -32000));
    let mut hello = request(Method::POST, &[], initialize("2025-11-25"));
    hello.extensions_mut().insert(OperatorMarker);
    assert_eq!(send(&service, hello).await.status(), 200);
    running.shutdown().await;
}

/// Returns a call of a stateless client of this name.
fn read_by(name: &str) -> String {
    let more = r#","name":"read_file","arguments":{"path":"hello.txt"}"#;
    modern("1", "tools/call", more).replace(r#""name":"c""#, &format!(r#""name":"{name}""#))
}

#[tokio::test]
async fn w6_stopping_one_clients_run_stops_no_other_and_it_gets_a_new_one() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let run = async |name: &str| {
        let body = read_by(name);
        let read = post_modern(&service, "tools/call", Some("read_file"), &body).await;
        let read = read.json();
        assert_eq!(read["result"]["isError"], json!(false), "{read}");
        read["result"]["_meta"]["haft"]["run"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (ann, bob) = (run("ann").await, run("bob").await);
    assert_ne!(ann, bob, "each client has a run of its own");
    assert_eq!(
        (run("ann").await, run("bob").await),
        (ann.clone(), bob.clone())
    );
    let sessions = opener.sessions.lock().clone();
    let stopped = sessions
        .iter()
        .find(|session| session.run().as_str() == ann);
    stopped.unwrap().cancel();
    assert_eq!(run("bob").await, bob);
    assert_ne!(run("ann").await, ann);
    until_async(|| opener.count("closed") == 1).await;
}

#[tokio::test]
async fn w6_stateless_clients_are_bounded_and_the_longest_idle_goes() {
    let (server, opener) = server(ServerLimits {
        sessions: 3,
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    for nth in 0..10 {
        let body = read_by(&nth.to_string());
        let read = post_modern(&service, "tools/call", Some("read_file"), &body).await;
        assert_eq!(read.verdict(), (200, 0));
    }
    assert_eq!(opener.count("closed"), 7);
}

#[tokio::test]
async fn n2_one_principal_keeps_no_other_out_and_ends_only_its_own_sessions() {
    let (server, _) = server(ServerLimits {
        sessions: 4,
        streams: 2,
        ..ServerLimits::default()
    });
    let service = server.http(Access::checked_before());
    let hello = initialize("2025-11-25");
    let opened = async |who: &'static str| {
        let reply = post_as(&service, who, &[], &hello).await;
        assert_eq!(reply.status, 200, "{who}: {reply:?}");
        reply.header("mcp-session-id").to_owned()
    };
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let uses = async |who: &'static str, id: &str| {
        let session = [("mcp-session-id", id)];
        post_as(&service, who, &session, list).await.status
    };
    let ann = opened("ann").await;
    // Unused, so the first to go if all of the class counted together.
    for _ in 0..100 {
        opened("eve").await;
    }
    assert_eq!(service.sessions(), 5, "four of eve's");
    assert_eq!(uses("ann", &ann).await, 200);
    // A class that five principals fill: the one that holds the most gives a place.
    let mut first = Vec::new();
    for who in ["bob", "cid", "dan"] {
        for _ in 0..4 {
            first.push((who, opened(who).await));
        }
    }
    assert_eq!(service.sessions(), 16);
    for _ in 0..3 {
        opened("late").await;
    }
    assert_eq!(service.sessions(), 16);
    assert_eq!(uses("ann", &ann).await, 200, "it holds one alone");
    // Streams, which end nothing of others'.
    let watch = async |who: &'static str, id: &str| {
        let session = [("mcp-session-id", id), ("accept", "text/event-stream")];
        let mut watch = request(Method::GET, &session, "");
        watch.extensions_mut().insert(Principal::local(who));
        send(&service, watch).await
    };
    let eve = opened("eve").await;
    let held = [watch("eve", &eve).await, watch("eve", &eve).await];
    assert!(held.iter().all(|stream| stream.status() == 200));
    assert_eq!(watch("eve", &eve).await.status(), 503);
    assert_eq!(watch("ann", &ann).await.status(), 200);
}
