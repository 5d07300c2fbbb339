//! Attacks on the gate of `haft serve`: foreign pages and targets, public routes, headers of every answer.

use crate::harness::Lab;
use crate::serve::{Request, Server, get, post};

#[test]
fn w1_a_request_of_another_origins_page_is_refused_whatever_it_carries() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let (call, operator) = (server.call.as_str(), server.operator.as_str());
    let own = format!("http://{}", server.address);
    let sites = ["same-site", "cross-site", "", "none, same-origin"];
    for site in sites {
        for path in ["/api/v1/runs", "/mcp", "/healthz", "/nope", "/app.js"] {
            for token in [None, Some(call), Some(operator)] {
                let request = Request {
                    headers: &[("sec-fetch-site", site), ("origin", &own)],
                    ..get(path, token)
                };
                assert_eq!(server.ask(&request).status, 403, "{path} {site}");
            }
        }
    }
    // A link on another site may lead to the console, whose pages contain no data; it may lead to nothing else.
    let navigation = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    for (path, status) in [("/waiting/ap-1", 200), ("/api/v1/runs", 403)] {
        let request = Request {
            headers: &navigation,
            ..get(path, Some(operator))
        };
        assert_eq!(server.ask(&request).status, status, "{path}");
    }
}

#[test]
fn w16_a_target_on_another_host_is_refused() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let own = format!("http://{}/api/v1/tools", server.address);
    for (target, status) in [
        (own.as_str(), 200),
        ("http://evil.example/api/v1/tools", 403),
        ("http://localhost/api/v1/tools", 403),
        ("https://127.0.0.1/healthz", 403),
    ] {
        let reply = server.ask(&get(target, Some(&server.call)));
        assert_eq!(reply.status, status, "{target}: {}", reply.body);
    }
}

#[test]
fn w16_every_answer_is_kept_nowhere_and_taken_for_nothing_else() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let hello = crate::serve::hello().to_string();
    for request in [
        get("/healthz", None),
        get("/api/v1/tools", Some(&server.call)),
        get("/api/v1/tools", None),
        get("/nope", Some(&server.operator)),
        get("/mcp", Some(&server.call)),
        post("/mcp", &server.call, &hello),
        post("/mcp", &server.call, "{"),
    ] {
        let head = server.ask(&request).head;
        for header in [
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "cross-origin-resource-policy: same-origin",
            "frame-ancestors 'none'",
        ] {
            assert!(head.contains(header), "{}: {head}", request.path);
        }
    }
}

#[test]
fn w16_only_the_webhooks_own_addresses_are_public() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    for path in [
        "/api/v1/webhook",
        "/api/v1/webhook/",
        "/api/v1/webhook/x/y",
        "/api/v1/webhook/x/",
        "/api/v1/webhook//",
        "/api/v1/webhook/../calls",
        "/api/v1/webhook/x%2Fy",
        "/api/v1/webhook/ap-1",
        "//api/v1/webhook/ap-1",
    ] {
        for method in ["POST", "GET", "PUT"] {
            let request = Request {
                method,
                ..get(path, None)
            };
            assert_eq!(server.ask(&request).status, 401, "{method} {path}");
        }
    }
}
