//! Which requests are for this server, as tables.

use super::*;

fn guard() -> HostGuard {
    let guard = HostGuard::new("127.0.0.1:7420".parse().unwrap());
    guard
        .also("Tools.Example")
        .unwrap()
        .also("one.example:8443")
        .unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(*name, value.parse().unwrap());
    }
    map
}

fn checked(target: &str, pairs: &[(&'static str, &str)]) -> Result<(), HostGuardError> {
    guard().check(&target.parse().unwrap(), &headers(pairs))
}

#[test]
fn a_host_is_ours_by_loopback_name_bound_address_or_leave() {
    for (host, expect) in [
        ("127.0.0.1:7420", true),
        ("localhost:7420", true),
        ("LOCALHOST:7420", true),
        ("[::1]:7420", true),
        ("127.0.0.2:7420", true),
        ("tools.example", true),
        ("tools.example:8443", true),
        ("one.example:8443", true),
        ("one.example:8444", false),
        ("one.example", false),
        ("127.0.0.1", false),
        ("localhost:7421", false),
        ("evil.example:7420", false),
        ("localhost.evil.example:7420", false),
        ("127.0.0.1.evil.example:7420", false),
        ("evil@localhost:7420", false),
        ("localhost:7420@evil", false),
        ("localhost:7420, evil", false),
        ("localhost:+7420", false),
        ("localhost:", false),
        ("localhost:99999", false),
        ("[::1:7420", false),
        ("10.0.0.1:7420", false),
        ("0.0.0.0:7420", false),
        ("[::]:7420", false),
        ("", false),
    ] {
        let found = checked("/mcp", &[("host", host)]);
        assert_eq!(found.is_ok(), expect, "{host:?}: {found:?}");
    }
    assert_eq!(checked("/mcp", &[]), Err(HostGuardError::NoHost));
    let twice = [("host", "localhost:7420"), ("host", "localhost:7420")];
    assert_eq!(checked("/mcp", &twice), Err(HostGuardError::Unclear(HOST)));
}

#[test]
fn w16_a_target_on_another_host_than_the_header_is_refused() {
    for (target, host, expect) in [
        ("http://127.0.0.1:7420/mcp", Some("127.0.0.1:7420"), true),
        ("http://LOCALHOST:7420/mcp", Some("localhost:7420"), true),
        // In HTTP/2, only the target names the host.
        ("http://127.0.0.1:7420/mcp", None, true),
        ("http://evil.example/mcp", None, false),
        ("http://evil.example/mcp", Some("127.0.0.1:7420"), false),
        ("http://localhost:7420/mcp", Some("127.0.0.1:7420"), false),
        ("http://127.0.0.1:7420/mcp", Some("evil.example"), false),
        ("http://x@127.0.0.1:7420/mcp", Some("127.0.0.1:7420"), false),
    ] {
        let host: Vec<_> = host.map(|host| ("host", host)).into_iter().collect();
        let found = checked(target, &host);
        assert_eq!(found.is_ok(), expect, "{target} {host:?}: {found:?}");
    }
}

#[test]
fn an_origin_is_the_one_that_the_request_is_sent_to_or_absent() {
    for (host, origin, expect) in [
        ("localhost:7420", "http://localhost:7420", true),
        ("127.0.0.1:7420", "http://127.0.0.1:7420", true),
        ("[::1]:7420", "http://[::1]:7420", true),
        ("tools.example:8443", "https://tools.example:8443", true),
        ("tools.example", "http://tools.example", true),
        // Another scheme, port or name belongs to another server's page.
        ("tools.example", "https://tools.example", false),
        ("tools.example", "http://tools.example:3000", false),
        ("localhost:7420", "http://127.0.0.1:7420", false),
        ("localhost:7420", "null", false),
        ("localhost:7420", "", false),
        ("localhost:7420", "http://localhost", false),
        ("localhost:7420", "http://localhost:3000", false),
        ("localhost:7420", "http://evil.example", false),
        ("localhost:7420", "file://localhost:7420", false),
        ("localhost:7420", "http://localhost:7420/path", false),
        ("localhost:7420", "chrome-extension://abc", false),
    ] {
        let found = checked("/mcp", &[("host", host), ("origin", origin)]);
        assert_eq!(found.is_ok(), expect, "{host} {origin:?}: {found:?}");
    }
    let https = HostGuard::new("127.0.0.1:7420".parse().unwrap()).over_https();
    let https = https.also("tools.example").unwrap();
    for (origin, expect) in [
        ("https://tools.example", true),
        ("http://tools.example", false),
        ("https://tools.example:8443", false),
    ] {
        let pairs = headers(&[("host", "tools.example"), ("origin", origin)]);
        let found = https.check(&Uri::from_static("/mcp"), &pairs);
        assert_eq!(found.is_ok(), expect, "{origin}");
    }
}

#[test]
fn w1_a_request_that_a_page_of_another_origin_makes_is_refused() {
    let host = ("host", "localhost:7420");
    let site = |value| ("sec-fetch-site", value);
    let (navigate, document) = (
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    );
    // Headers, then whether a data request and a page request pass.
    for (more, data, page) in [
        (vec![], true, true),
        (vec![site("none")], true, true),
        (vec![site("same-origin")], true, true),
        (vec![site("same-site")], false, false),
        (vec![site("cross-site")], false, false),
        (vec![site("")], false, false),
        (vec![site("same-origin"), site("cross-site")], false, false),
        (vec![site("cross-site"), navigate, document], false, true),
        (vec![site("same-site"), navigate, document], false, true),
        (
            vec![site("cross-site"), navigate, ("sec-fetch-dest", "iframe")],
            false,
            false,
        ),
    ] {
        let pairs = headers(&[&[host], &more[..]].concat());
        let target = Uri::from_static("/");
        let found = (
            guard().check(&target, &pairs).is_ok(),
            guard().check_page(&target, &pairs).is_ok(),
        );
        assert_eq!(found, (data, page), "{more:?}");
    }
}

#[test]
fn a_bound_address_of_the_network_is_its_own_name() {
    let guard = HostGuard::new("10.1.2.3:80".parse().unwrap());
    for (host, expect) in [("10.1.2.3", true), ("10.1.2.4", false)] {
        let pairs = headers(&[("host", host)]);
        let found = guard.check(&Uri::from_static("/"), &pairs);
        assert_eq!(found.is_ok(), expect, "{host}");
    }
}

#[test]
fn what_is_no_host_is_told() {
    for wrong in [
        "",
        "http://tools.example",
        "tools.example/x",
        "a b",
        "x:y",
        "*",
    ] {
        let guard = HostGuard::new("127.0.0.1:7420".parse().unwrap());
        let error = guard.also(wrong).unwrap_err();
        assert!(error.to_string().contains(&format!("`{wrong}`")), "{error}");
    }
}

#[test]
fn a_bearer_is_read_and_compared_whole() {
    for (header, expect) in [
        (Some("Bearer abc"), Some("abc")),
        (Some("bearer  abc "), Some("abc")),
        (Some("Basic abc"), None),
        (Some("Bearer "), None),
        (Some("Bearer"), None),
        (None, None),
    ] {
        assert_eq!(bearer(header), expect, "{header:?}");
    }
    assert!(same_token("secret", "secret"));
    assert!(!same_token("secret", "secreT"));
    assert!(!same_token("secret", "secret2"));
    assert!(!same_token("", ""));
}
