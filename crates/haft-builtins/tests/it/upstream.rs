//! haft's own requests through the proxy of the settings: what passes, what is still checked, how failures are reported.

use std::sync::Arc;

use haft::error::ToolError;
use haft_builtins::web::http::{Http, HttpError};
use haft_builtins::web::network::Network;
use haft_builtins::web::upstream::UpstreamProxy;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::office::{BASIC, Manner, Office, proxy};
use crate::town::{Town, moved, page};

async fn town() -> Arc<Town> {
    Town::new(|asked| match asked.path.rsplit('/').next() {
        Some("moved") => moved("http://169.254.169.254/latest/"),
        Some("inside") => moved("https://intranet.example.org/"),
        _ => page("text/plain", &asked.text),
    })
    .await
}

fn guarded(office: &Arc<Office>, town: &Town, proxy: UpstreamProxy) -> Http {
    through(Http::guarded(), office, town).with_upstream(Some(proxy))
}

fn through(http: Http, office: &Arc<Office>, town: &Town) -> Http {
    http.with_network(Arc::clone(office) as Arc<dyn Network>)
        .with_roots(vec![town.root().clone()])
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_come_through_the_proxy_with_its_password_and_no_server_sees_it() {
    let town = town().await;
    for scheme in ["http", "https"] {
        let office = Office::new(&town, Manner::Guarded).await;
        let http = guarded(&office, &town, proxy(scheme, "ann:hush@", &[]));
        let secret = http
            .get("https://example.com/a?b=c", &[("X-Own", "1")])
            .await;
        let seen = String::from_utf8(secret.unwrap().body.to_vec()).unwrap();
        assert!(seen.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{seen}");
        assert!(!seen.to_lowercase().contains("proxy-"), "{seen}");
        let reply = http
            .get("http://example.com:8080/a?b=c", &[])
            .await
            .unwrap();
        assert_eq!(reply.status, 200);
        let heads = office.heads();
        assert!(
            heads[0].starts_with("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n"),
            "{heads:?}"
        );
        // Headers for the server are not shown to the proxy.
        assert!(!heads[0].contains("X-Own"), "{heads:?}");
        assert!(
            heads[1].starts_with("GET http://example.com:8080/a?b=c HTTP/1.1\r\n"),
            "{heads:?}"
        );
        assert!(heads.iter().all(|head| head.contains(BASIC)), "{heads:?}");
        assert!(office.direct().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_the_list_and_this_machine_are_connected_to_directly() {
    let town = town().await;
    let office = Office::new(&town, Manner::Open).await;
    office.knows("near.example.com", "93.184.216.35");
    let http = guarded(&office, &town, proxy("http", "", &["near.example.com"]));
    assert!(http.get("https://near.example.com/", &[]).await.is_ok());
    assert_eq!(office.direct().len(), 1);
    let own = through(Http::trusted(), &office, &town).with_upstream(Some(proxy("http", "", &[])));
    assert!(own.get("http://127.0.0.1:9000/", &[]).await.is_ok());
    assert_eq!(office.direct().len(), 2);
    assert!(office.heads().is_empty());
    // A configured service elsewhere is reached through the proxy, wherever it is.
    assert!(own.get("http://10.9.8.7/", &[]).await.is_ok());
    assert!(office.heads()[0].starts_with("GET http://10.9.8.7/ "));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_not_be_fetched_is_never_asked_of_the_proxy() {
    let town = town().await;
    let office = Office::new(&town, Manner::Open).await;
    office.knows("rebind.example.com", "169.254.169.254");
    office.knows("intranet.example.org", "10.0.0.7");
    let http = guarded(&office, &town, proxy("http", "", &[]));
    for (url, say) in [
        ("http://10.0.0.7/", "10.0.0.7"),
        ("http://169.254.169.254/latest/", "169.254.169.254"),
        (
            "http://metadata.google.internal/",
            "metadata.google.internal",
        ),
        ("http://localhost/", "localhost"),
        ("http://router/", "router"),
        // The machine's own resolver returns a private address.
        ("https://rebind.example.com/", "resolves to 169.254.169.254"),
        ("https://intranet.example.org/", "resolves to 10.0.0.7"),
    ] {
        let refused = http.get(url, &[]).await.unwrap_err();
        assert!(
            refused.is_refusal() && refused.to_string().contains(say),
            "{refused}"
        );
    }
    assert!(office.heads().is_empty() && office.direct().is_empty());
    // Redirects are checked like URLs.
    for path in ["moved", "inside"] {
        let refused = http.get(&format!("http://example.com/{path}"), &[]).await;
        assert!(refused.unwrap_err().is_refusal(), "{path}");
    }
    assert_eq!(office.heads().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_proxy_names_it_and_what_to_do_without_its_password() {
    let town = town().await;
    let name = "http://proxy.office.internal:3128";
    let long: &'static str =
        Box::leak(format!("HTTP/1.1 200 {}", "x".repeat(99_999)).into_boxed_str());
    for (manner, login, say, advice) in [
        (
            Manner::Guarded,
            "",
            "(407)",
            "http://USER:${env:PROXY_PASSWORD}@HOST:PORT",
        ),
        (Manner::Guarded, "ann:wrong@", "(407)", "network.proxy"),
        (
            Manner::Says("HTTP/1.1 403 hush\r\n\r\n"),
            "ann:hush@",
            "it answered 403 Forbidden",
            "network.no_proxy",
        ),
        (
            Manner::Says("SSH-2.0-x\r\n\r\n"),
            "",
            "not HTTP/1.1",
            "haft doctor",
        ),
        (Manner::Says(""), "", "without an answer", "haft doctor"),
        (Manner::Says(long), "", "too long", "haft doctor"),
        (
            Manner::Says("HTTP/1.1 200 OK\r\n\r\nmore"),
            "",
            "before the tunnel was used",
            "haft doctor",
        ),
    ] {
        let office = Office::new(&town, manner).await;
        let http = guarded(&office, &town, proxy("http", login, &[]));
        let fault = http.get("https://example.com/", &[]).await.unwrap_err();
        let shown = format!("{fault} {fault:?}");
        assert!(shown.contains(name) && shown.contains(say), "{shown}");
        assert!(shown.contains("example.com:443"), "{shown}");
        assert!(
            !shown.contains("hush") && !shown.contains("wrong"),
            "{shown}"
        );
        let told = ToolError::from(fault);
        let operator = told.operator_advice().unwrap_or_default().to_owned();
        assert!(operator.contains(advice), "{operator}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_is_away_or_asks_for_a_password_in_plain_is_named() {
    let town = town().await;
    // The proxy itself answers plain requests.
    let office = Office::new(&town, Manner::Guarded).await;
    let http = guarded(&office, &town, proxy("http", "", &[]));
    let fault = http.get("http://example.com/", &[]).await.unwrap_err();
    assert!(fault.to_string().contains("(407)"), "{fault}");
    // A proxy that does not exist.
    let away = UpstreamProxy::new("http://ann:hush@away.example:3128", [""; 0]).unwrap();
    let http = guarded(&office, &town, away);
    let fault = http.get("https://example.com/", &[]).await.unwrap_err();
    assert!(matches!(fault, HttpError::Proxy { .. }));
    assert!(
        fault.to_string().contains("http://away.example:3128"),
        "{fault}"
    );
    let said = http.check_upstream().await.unwrap().unwrap_err();
    assert!(
        said.contains("away.example") && !said.contains("hush"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn other_protocols_than_http_go_through_a_tunnel() {
    let town = town().await;
    let office = Office::new(&town, Manner::Guarded).await;
    let http = through(Http::trusted(), &office, &town);
    let http = http.with_upstream(Some(proxy("https", "ann:hush@", &[])));
    let mut stream = http.dial("bucket.example.com", 80).await.unwrap();
    stream.write_all(b"GET /x HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("GET /x HTTP/1.1"), "{answer}");
    assert!(office.heads()[0].starts_with("CONNECT bucket.example.com:80 "));
    assert_eq!(
        http.check_upstream().await.unwrap().unwrap(),
        "https://proxy.office.internal:3129"
    );
}
