//! The HTTP client against real servers: what it refuses, where it stops, what it reports.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use haft_builtins::web::http::{Http, HttpError, HttpReply, IncompleteReason};

use crate::town::{Does, PUBLIC, Town, answer, moved, page};

const MIB: usize = 1024 * 1024;

async fn get(town: &std::sync::Arc<Town>, url: &str) -> Result<HttpReply, HttpError> {
    town.http().get(url, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_comes_over_both_schemes_under_its_own_name() {
    let town = Town::new(|asked| page("text/plain; charset=utf-8", &asked.text)).await;
    for url in ["http://example.com/a?b=c#d", "https://example.com./a?b=c"] {
        let reply = get(&town, url).await.unwrap();
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        assert!(text.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{text}");
        assert!(text.to_lowercase().contains("host: example.com"), "{text}");
        assert!(text.contains(concat!("haft/", env!("CARGO_PKG_VERSION"))));
        assert_eq!((reply.status, reply.cut), (200, None));
        assert_eq!(reply.media_type(), "text/plain");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_looked_up_once_a_request_and_what_was_checked_is_used() {
    let town = Town::new(|_| page("text/plain", "here")).await;
    town.answers("rebind.example.com", &[&[PUBLIC], &["127.0.0.1"]]);
    assert!(get(&town, "http://rebind.example.com/").await.is_ok());
    let pinned: SocketAddr = format!("{PUBLIC}:80").parse().unwrap();
    assert_eq!(town.connected(), [pinned]);
    // The second request gets the second answer.
    let refused = get(&town, "http://rebind.example.com/").await.unwrap_err();
    assert!(refused.is_refusal());
    assert!(refused.to_string().contains("127.0.0.1"), "{refused}");
    assert!(refused.to_string().contains("no connection"), "{refused}");
    assert_eq!(town.connected(), [pinned]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_one_private_answer_is_refused() {
    let town = Town::new(|_| page("text/plain", "here")).await;
    town.answers("mixed.example.com", &[&[PUBLIC, "10.0.0.7"]]);
    let refused = get(&town, "http://mixed.example.com/").await.unwrap_err();
    assert!(refused.to_string().contains("10.0.0.7"), "{refused}");
    assert!(town.connected().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_checked_and_counted() {
    let town = Town::new(|asked| match asked.path.as_str() {
        "/two" => moved("/one"),
        "/one" => moved("https://other.example.org/end"),
        "/private" => moved("http://10.0.0.1/"),
        path if path.starts_with("/chain/") => {
            let left: usize = path["/chain/".len()..].parse().unwrap();
            match left {
                0 => page("text/plain", "end"),
                _ => moved(&format!("/chain/{}", left - 1)),
            }
        }
        "/loop" => moved("/loop"),
        _ => page("text/plain", "end"),
    })
    .await;
    let end = get(&town, "http://example.com/two").await.unwrap();
    assert_eq!(end.url, "https://other.example.org/end");
    assert!(get(&town, "http://example.com/chain/10").await.is_ok());
    for endless in ["/chain/11", "/chain/20", "/loop"] {
        let before = town.connected().len();
        let error = get(&town, &format!("http://example.com{endless}")).await;
        assert!(
            matches!(error, Err(HttpError::Redirects { limit: 10, .. })),
            "{error:?}"
        );
        assert_eq!(town.connected().len() - before, 11, "{endless}");
    }
    let before = town.connected().len();
    let refused = get(&town, "http://example.com/private").await.unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("http://10.0.0.1/ is refused"),
        "{refused}"
    );
    assert_eq!(town.connected().len() - before, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_fails_is_said_to() {
    let town = Town::new(|_| page("text/plain", "here")).await;
    let stolen = get(&town, "https://stolen.example.com/").await.unwrap_err();
    assert!(matches!(&stolen, HttpError::Certificate { host, .. } if host == "stolen.example.com"));
    let others = Http::guarded().with_network(town.clone());
    let unknown = others.get("https://example.com/", &[]);
    let unknown = unknown.await.unwrap_err();
    // A machine without root certificates reports that instead.
    assert!(
        matches!(
            unknown,
            HttpError::Certificate { .. } | HttpError::NoRoots(_)
        ),
        "{unknown}"
    );
    let old = Town::dated(|_| page("text/plain", "here"), 2000..=2010).await;
    let old = get(&old, "https://example.com/").await.unwrap_err();
    assert!(old.to_string().contains("expired"), "{old}");
    let none = town
        .http()
        .with_roots(Vec::new())
        .get("https://example.com/", &[])
        .await;
    assert!(matches!(none, Err(HttpError::NoRoots(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_end_is_kept_up_to_the_limit_and_said_to_be_cut() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let huge = b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n".to_vec();
    let open = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let mut chunk = b"10000\r\n".to_vec();
    chunk.extend_from_slice(&vec![b'x'; 0x10000]);
    chunk.extend_from_slice(b"\r\n");
    let town = Town::new(move |asked| match asked.path.as_str() {
        "/chunked" => Does::Repeats(chunked.clone(), chunk.clone()),
        "/huge" => Does::Repeats(huge.clone(), vec![b'x'; MIB]),
        _ => Does::Repeats(open.clone(), vec![b'x'; MIB]),
    })
    .await;
    for path in ["chunked", "huge", "open"] {
        let reply = get(&town, &format!("http://example.com/{path}"))
            .await
            .unwrap();
        assert_eq!(reply.body.len(), 10 * MIB, "{path}");
        assert_eq!(reply.cut, Some(IncompleteReason::TooLarge), "{path}");
    }
}

fn packed(coding: &str, data: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let mut to = GzEncoder::new(Vec::new(), Compression::default());
            to.write_all(data).unwrap();
            to.finish().unwrap()
        }
        "zlib" => {
            let mut to = ZlibEncoder::new(Vec::new(), Compression::default());
            to.write_all(data).unwrap();
            to.finish().unwrap()
        }
        _ => {
            let mut to = DeflateEncoder::new(Vec::new(), Compression::default());
            to.write_all(data).unwrap();
            to.finish().unwrap()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packed_bodies_are_unpacked_and_a_bomb_stops_at_the_limit() {
    // A gzip stream may have several members: 10 MB that unpack to 10 GB.
    let member = packed("gzip", &vec![0; 10 * MIB]);
    let town = Town::new(move |asked| match asked.path.as_str() {
        "/gzip" => answer(
            "200 OK",
            "Content-Encoding: gzip\r\n",
            packed("gzip", b"text"),
        ),
        "/zlib" => answer(
            "200 OK",
            "Content-Encoding: deflate\r\n",
            packed("zlib", b"text"),
        ),
        "/raw" => answer(
            "200 OK",
            "Content-Encoding: deflate\r\n",
            packed("raw", b"text"),
        ),
        "/bomb" => answer("200 OK", "Content-Encoding: gzip\r\n", member.repeat(1000)),
        "/none" => answer("200 OK", "Content-Encoding: gzip\r\n", ""),
        "/wrong" => answer("200 OK", "Content-Encoding: gzip\r\n", "this is no gzip"),
        "/half" => answer(
            "200 OK",
            "Content-Encoding: gzip\r\n",
            &packed("gzip", b"text")[..12],
        ),
        _ => answer("200 OK", "Content-Encoding: br\r\n", "x"),
    })
    .await;
    let at = async |path: &str| get(&town, &format!("http://example.com/{path}")).await;
    for path in ["gzip", "zlib", "raw"] {
        assert_eq!(at(path).await.unwrap().body, "text", "{path}");
    }
    assert_eq!(at("none").await.unwrap().body, "");
    let bomb = at("bomb").await.unwrap();
    assert_eq!(
        (bomb.body.len(), bomb.cut),
        (10 * MIB, Some(IncompleteReason::TooLarge))
    );
    for path in ["wrong", "half", "brotli"] {
        let error = at(path).await.unwrap_err();
        assert!(
            matches!(error, HttpError::Encoding { .. }),
            "{path}: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_answers_are_named_or_kept_as_far_as_they_came() {
    let town = Town::new(|asked| match asked.path.as_str() {
        "/short" => Does::Sends(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec()),
        "/head" => {
            let line = format!("X-Long: {}\r\n", "x".repeat(200_000));
            answer("200 OK", &line, "body")
        }
        "/lines" => answer("200 OK", &"X-Line: x\r\n".repeat(1000), "body"),
        "/nothing" => Does::Sends(Vec::new()),
        _ => Does::Sends(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
    })
    .await;
    let short = get(&town, "http://example.com/short").await.unwrap();
    assert_eq!(
        (&short.body[..], short.cut),
        (&b"half"[..], Some(IncompleteReason::BrokenOff))
    );
    for path in ["head", "lines", "nothing", "ssh"] {
        let error = get(&town, &format!("http://example.com/{path}"))
            .await
            .unwrap_err();
        assert!(
            matches!(error, HttpError::Protocol { .. }),
            "{path}: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_still_is_left() {
    let town = Town::new(|asked| match asked.path.as_str() {
        "/silent" => Does::Hangs(Vec::new()),
        _ => Does::Hangs(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec()),
    })
    .await;
    let http = town.limited(|limits| limits.whole = Duration::from_millis(300));
    let silent = http
        .get("http://example.com/silent", &[])
        .await
        .unwrap_err();
    assert!(matches!(silent, HttpError::TooSlow { .. }), "{silent}");
    let slow = http.get("http://example.com/slow", &[]).await.unwrap();
    assert_eq!(
        (&slow.body[..], slow.cut),
        (&b"half"[..], Some(IncompleteReason::TooSlow))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_service_may_be_local_and_is_not_followed_elsewhere() {
    let town = Town::new(|asked| match asked.path.as_str() {
        "/moved" => moved("http://example.com/"),
        _ => page(
            "application/json",
            asked.text.split("\r\n\r\n").nth(1).unwrap(),
        ),
    })
    .await;
    let http = Http::trusted().with_network(town.clone());
    let key = [("Authorization", "Bearer k")];
    let sent = http
        .post_json("http://localhost:8080/v1", &key, r#"{"a":1}"#)
        .await;
    // A name without a network of its own resolves to PUBLIC here; the point is that it is resolved at all.
    assert_eq!(sent.unwrap().body, r#"{"a":1}"#);
    let moved = http.get("http://127.0.0.1:8080/moved", &key).await;
    assert!(
        matches!(moved, Err(HttpError::Redirected { .. })),
        "{moved:?}"
    );
    assert!(http.get("file:///etc/passwd", &[]).await.is_err());
    let header = http.get("http://localhost/", &[("X", "a\r\nb")]).await;
    assert!(matches!(header, Err(HttpError::Header(_))), "{header:?}");
}
