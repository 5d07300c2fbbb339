//! E2: the service as usually mounted checks Host, Origin and token itself; it is open only if its host explicitly says so.

use std::net::SocketAddr;

use bytes::Bytes;
use haft::call::Principal;
use haft_mcp::guard::{HostGuard, same_token};
use haft_mcp::http::{Access, McpService, TokenOwner};
use haft_mcp::opener::OperatorMarker;
use haft_mcp::server::ServerLimits;
use http::{Method, Request};
use http_body_util::Full;

use crate::support::http_client::{reply, request, send};
use crate::support::{initialize, server};

const BOUND: &str = "127.0.0.1:7420";

fn hosts() -> HostGuard {
    HostGuard::new(BOUND.parse::<SocketAddr>().unwrap())
}

fn tokens() -> Access {
    Access::bearer(hosts(), |token| {
        let operator = same_token(token, "the operator's");
        let known = operator || same_token(token, "ann's");
        known.then(|| TokenOwner {
            principal: Some(Principal::local(if operator { "operator" } else { "ann" })),
            view: None,
            operator,
        })
    })
}

async fn status(service: &McpService, method: Method, headers: &[(&str, &str)]) -> u16 {
    let asked = request(method, headers, initialize("2025-11-25"));
    reply(send(service, asked).await).await.status
}

type Headers<'a> = Vec<(&'a str, &'a str)>;

#[tokio::test]
async fn e2_a_service_mounted_as_usual_checks_host_origin_and_token() {
    let host = ("host", BOUND);
    let token = ("authorization", "Bearer ann's");
    let origin = |origin| ("origin", origin);
    // Headers, then the status with tokens, without tokens, and behind other checks.
    let rows: [(Headers<'_>, [u16; 3]); 10] = [
        (vec![host, token], [200, 200, 200]),
        (vec![host], [401, 200, 200]),
        (
            vec![host, ("authorization", "Bearer bob's")],
            [401, 200, 200],
        ),
        (
            vec![host, ("authorization", "Basic ann's")],
            [401, 200, 200],
        ),
        (vec![host, token, token], [403, 200, 200]),
        (vec![token], [403, 403, 200]),
        (vec![token, ("host", "evil.example")], [403, 403, 200]),
        (
            vec![host, token, origin("http://evil.example")],
            [403, 403, 200],
        ),
        (
            vec![host, token, origin("http://127.0.0.1:7420")],
            [200, 200, 200],
        ),
        (
            vec![host, token, ("sec-fetch-site", "same-site")],
            [403, 403, 200],
        ),
    ];
    let (server, _) = server(ServerLimits::default());
    let services = [
        server.http(tokens()),
        server.http(Access::without_token(hosts())),
        server.http(Access::checked_before()),
    ];
    for (headers, expect) in rows {
        for (service, expect) in services.iter().zip(expect) {
            let found = status(service, Method::POST, &headers).await;
            assert_eq!(found, expect, "{headers:?}");
        }
        // A client without access learns nothing about methods and sessions either.
        for method in [Method::GET, Method::DELETE, Method::PUT] {
            let found = status(&services[0], method.clone(), &headers).await;
            assert_eq!(found == expect[0], expect[0] != 200, "{method} {headers:?}");
        }
    }
}

#[tokio::test]
async fn e2_a_token_says_whose_session_it_is() {
    let (server, opener) = server(ServerLimits::default());
    let service = server.http(tokens());
    let host = ("host", BOUND);
    for (token, who) in [("ann's", "local/ann"), ("the operator's", "local/operator")] {
        let bearer = format!("Bearer {token}");
        let authorization = ("authorization", bearer.as_str());
        let asked = request(
            Method::POST,
            &[host, authorization],
            initialize("2025-11-25"),
        );
        let hello = reply(send(&service, asked).await).await;
        let session = ("mcp-session-id", hello.header("mcp-session-id"));
        let client = opener.clients.lock().last().cloned().unwrap();
        assert_eq!(client.principal.unwrap().to_string(), who);
        for (other, expect) in [
            ("ann's", who == "local/ann"),
            ("the operator's", who != "local/ann"),
        ] {
            let bearer = format!("Bearer {other}");
            let headers = [host, session, ("authorization", bearer.as_str())];
            let asked = request(Method::DELETE, &headers, "");
            let found = reply(send(&service, asked).await).await.status;
            assert_eq!(found == 204, expect, "{other} for {who}'s session");
        }
    }
}

#[tokio::test]
async fn aw4_the_operators_session_needs_the_operators_token_each_time() {
    let (server, _) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let by = |is_operator, mut asked: Request<Full<Bytes>>| {
        if is_operator {
            asked.extensions_mut().insert(OperatorMarker);
        }
        let service = service.clone();
        async move { reply(send(&service, asked).await).await }
    };
    for (opened_by_operator, for_the_call_token) in [(true, 404), (false, 200)] {
        let hello = request(Method::POST, &[], initialize("2025-11-25"));
        let hello = by(opened_by_operator, hello).await;
        let session = [("mcp-session-id", hello.header("mcp-session-id"))];
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        for (is_operator, expect) in [(false, for_the_call_token), (true, 200)] {
            let listed = by(is_operator, request(Method::POST, &session, list)).await;
            assert_eq!(listed.status, expect, "operator: {is_operator}");
        }
        let twice = [session[0], session[0]];
        let ambiguous = by(true, request(Method::POST, &twice, list)).await;
        assert_eq!(ambiguous.status, 404);
        if opened_by_operator {
            for method in [Method::GET, Method::DELETE] {
                let refused = by(false, request(method, &session, "")).await;
                assert_eq!(refused.status, 404);
            }
        }
    }
}
