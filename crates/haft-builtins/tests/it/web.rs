//! `fetch_url` and `web_search` through an executor, against real servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft::ErrorKind;
use haft::permission::Verdict;
use haft::policy::{Policy, Profile, UntrustedContent};
use haft::result::{Content, Outcome, Status};
use haft::workspace::Workspace;
use haft_builtins::web::WebOptions;
use haft_builtins::web::reader::{PageReader, UnconfinedReader};
use haft_builtins::web::search::{SearchProvider, SearchService, SearchSettings};
use serde_json::{Value, json};

use crate::scene::{Scene, data};
use crate::town::{Does, ReceivedRequest, Town, answer, moved, page};

fn scene(town: &Arc<Town>, robots: bool) -> Scene {
    let reader = UnconfinedReader::default();
    scene_with(town, robots, Some(Arc::new(reader)))
}

fn scene_with(town: &Arc<Town>, robots: bool, reader: Option<Arc<dyn PageReader>>) -> Scene {
    let web = WebOptions {
        http: town.http(),
        robots,
        reader,
        ..WebOptions::default()
    };
    Scene::with(|mut builtins| {
        builtins.web = Some(web);
        builtins
    })
}

const ARTICLE: &str = "<html><head><title>On rivers</title><meta charset=utf-8></head><body><nav><a href=/>Home</a></nav>\
    <article><h1>On rivers</h1><p>A river carries water from the hills to the sea, and with it stones, sand and silt, \
    which it leaves where it slows down. Deltas grow that way, a hand's breadth a year or a mile a century.</p>\
    <p>See the <a href=\"/map\">map</a> for where they do, and mind that maps are <em>old</em>. Rivers move, maps do \
    not, and the people who drew them had boats, patience and little paper, so they drew what they had seen.</p>\
    </article><script>alert(1)</script></body></html>";

#[tokio::test(flavor = "multi_thread")]
async fn a_page_comes_as_its_article_and_is_kept_whole() {
    let town = Town::new(|_| page("text/html", ARTICLE)).await;
    let scene = scene(&town, false);
    let got = scene
        .call("fetch_url", json!({"url": "http://example.com/a"}))
        .await;
    assert!(got.is_ok(), "{:?}", got.error);
    let text = got.text();
    assert!(text.contains("A river carries water"), "{text}");
    assert!(text.contains("[map](http://example.com/map)"), "{text}");
    assert!(!text.contains("alert") && !text.contains("<p>"), "{text}");
    let first = data(&got);
    assert_eq!(first["title"], "On rivers");
    assert_eq!(
        (&first["status"], &first["media_type"]),
        (&json!(200), &json!("text/html"))
    );
    assert_eq!(first["truncated"], false);
    let raw = scene
        .data("read_artifact", json!({"ref": first["raw"]}))
        .await;
    assert_eq!(raw["bytes"], ARTICLE.len());

    let cut = scene
        .call(
            "fetch_url",
            json!({"url": "http://example.com/a", "max_chars": 20}),
        )
        .await;
    let (shown, about) = (cut.text(), data(&cut));
    assert_eq!(about["truncated"], true);
    let (_, offset) = shown.split_once("offset=").unwrap();
    let offset: u64 = offset.split(']').next().unwrap().parse().unwrap();
    let rest = scene
        .call(
            "read_artifact",
            json!({"ref": about["artifact"], "offset": offset}),
        )
        .await;
    let whole = format!("{}{}", shown.lines().next().unwrap(), rest.text());
    assert!(text.starts_with(whole.lines().next().unwrap()), "{whole}");

    for (format, has, lacks) in [
        ("text", "carries water", "]("),
        ("html", "<p>", "alert"),
        ("raw", "alert(1)", "]("),
    ] {
        let got = scene
            .call(
                "fetch_url",
                json!({"url": "http://example.com/a", "format": format}),
            )
            .await;
        let text = got.text();
        assert!(
            text.contains(has) && !text.contains(lacks),
            "{format}: {text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_page_comes_as_what_it_is() {
    let png = {
        let mut png = std::io::Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(3, 2)
            .write_to(&mut png, image::ImageFormat::Png)
            .unwrap();
        png.into_inner()
    };
    let town = Town::new(move |asked| match asked.path.as_str() {
        "/json" => page("application/json", r#"{"a":[1,2]}"#),
        "/latin" => page("text/plain; charset=iso-8859-1", b"gr\xfcn"),
        "/wrong" => page("text/html; charset=utf-8", b"<p>gr\xfcn"),
        "/png" => page("application/octet-stream", &png),
        "/lie" => page("image/png", "<script>"),
        "/pdf" => page("application/pdf", "%PDF-1.4"),
        "/empty" => answer("204 No Content", "", ""),
        "/short" => page("text/html", "<p>one line, no article"),
        _ => page("application/zip", b"PK\x03\x04\0\0"),
    })
    .await;
    let scene = scene(&town, false);
    let get = async |path: &str| {
        let got = scene
            .call(
                "fetch_url",
                json!({"url": format!("http://example.com/{path}")}),
            )
            .await;
        assert!(got.is_ok(), "{path}: {:?}", got.error);
        got
    };
    assert_eq!(get("json").await.text(), r#"{"a":[1,2]}"#);
    assert_eq!(get("latin").await.text(), "grün");
    assert_eq!(get("wrong").await.text().trim(), "gr\u{fffd}n");
    assert_eq!(get("short").await.text().trim(), "one line, no article");
    assert!(get("empty").await.text().is_empty());
    let png = get("png").await;
    assert!(
        matches!(&png.content[0], Content::Image { mime_type, .. } if mime_type == "image/png")
    );
    for (path, says) in [
        ("lie", "not a PNG"),
        ("pdf", "could not be extracted"),
        ("zip", "not text"),
    ] {
        let got = get(path).await;
        let about = data(&got);
        assert!(
            about["notes"][0].as_str().unwrap().contains(says),
            "{about}"
        );
        assert!(about["artifact"].is_string(), "{about}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn w3_a_program_without_a_reader_keeps_pages_raw() {
    let town = Town::new(|asked| match asked.path.as_str() {
        "/pdf" => page("application/pdf", "%PDF-1.4"),
        _ => page("text/html", ARTICLE),
    })
    .await;
    let scene = scene_with(&town, false, None);
    for (path, says) in [("html", "cannot convert HTML"), ("pdf", "cannot read PDF")] {
        let url = format!("http://example.com/{path}");
        let outcome = scene.call("fetch_url", json!({"url": url})).await;
        let got = data(&outcome);
        assert!(got["notes"].to_string().contains(says), "{got}");
        assert!(got["artifact"].is_string(), "{got}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_of_failure_is_a_failure_with_its_text() {
    let town = Town::new(|_| {
        answer(
            "404 Not Found",
            "Content-Type: text/plain\r\n",
            "gone fishing",
        )
    })
    .await;
    let scene = scene(&town, false);
    let got = scene
        .call("fetch_url", json!({"url": "http://example.com/"}))
        .await;
    assert_eq!(got.status, Status::Error);
    assert!(got.error.as_ref().unwrap().message.contains("status 404"));
    assert_eq!(got.text(), "gone fishing");
    assert_eq!(data(&got)["status"], 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_page_that_fails_does_not_hide_the_others() {
    let town = Town::new(|asked| match asked.path.as_str() {
        "/fine" => page("text/plain", "fine"),
        "/private" => moved("http://10.0.0.1/"),
        _ => answer("500 Broken", "Content-Type: text/plain\r\n", "broken"),
    })
    .await;
    let scene = scene(&town, false);
    let several = async |paths: &[&str]| {
        let urls: Vec<String> = paths
            .iter()
            .map(|p| format!("http://example.com/{p}"))
            .collect();
        scene.call("fetch_url", json!({ "urls": urls })).await
    };
    let got = several(&["broken", "fine", "private"]).await;
    assert!(got.is_ok(), "{:?}", got.error);
    let pages = data(&got)["pages"].clone();
    assert_eq!(pages[0]["status"], 500);
    assert_eq!(
        (&pages[1]["status"], &pages[1]["error"]),
        (&json!(200), &Value::Null)
    );
    assert_eq!(pages[2]["error"]["kind"], "denied");
    assert!(
        got.text().contains("fine") && got.text().contains("10.0.0.1"),
        "{}",
        got.text()
    );
    assert_eq!(several(&["broken", "private"]).await.status, Status::Error);
    let denied: Outcome = several(&["private", "private"]).await;
    assert_eq!(denied.status, Status::Denied);
    for wrong in [
        json!({}),
        json!({"url": "http://a.example/", "urls": []}),
        json!({"urls": vec!["http://a.example/"; 11]}),
    ] {
        let got = scene.call("fetch_url", wrong).await;
        assert_eq!(got.error.unwrap().kind, ErrorKind::InvalidArguments);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn robots_txt_is_asked_once_a_host_and_kept_to() {
    let town = Town::new(|asked| match asked.path.as_str() {
        "/robots.txt" if asked.text.contains("failing.example.com") => answer("503 Busy", "", ""),
        "/robots.txt" if asked.text.contains("none.example.com") => answer("404 None", "", "x"),
        "/robots.txt" => page("text/plain", "User-agent: haft\nDisallow: /private\n"),
        "/moved" => moved("/private/x"),
        _ => page("text/plain", "here"),
    })
    .await;
    let scene = scene(&town, true);
    for (url, says) in [
        ("http://example.com/private/x", "Disallow: /private"),
        ("http://example.com/moved", "Disallow: /private"),
        ("http://failing.example.com/", "503"),
    ] {
        scene
            .fails("fetch_url", json!({ "url": url }), ErrorKind::Failed, says)
            .await;
    }
    let asked = town.connected().len();
    for url in [
        "http://example.com/",
        "http://none.example.com/private/x",
        "http://example.com/robots.txt",
    ] {
        let got = scene.call("fetch_url", json!({ "url": url })).await;
        assert!(got.is_ok(), "{url}: {:?}", got.error);
    }
    // Three pages and one more robots.txt.
    assert_eq!(town.connected().len() - asked, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_a_host_that_no_rule_allows_is_not_followed() {
    let town = Town::new(|asked| match asked.path.as_str() {
        "/www" => moved("https://www.example.com/end"),
        "/allowed" => moved("http://allowed.example.org/end"),
        "/other" => moved("http://other.example.org/end"),
        "/port" => moved("http://example.com:8080/end"),
        _ => page("text/plain", "end"),
    })
    .await;
    let web = WebOptions {
        http: town.http(),
        robots: false,
        ..WebOptions::default()
    };
    let mut scene = Scene::with(|mut builtins| {
        builtins.web = Some(web);
        builtins
    });
    let policy = Policy::builder(Profile::Trusted).allow("WebFetch(domain:allowed.example.org)");
    scene.judged_by(policy);
    for path in ["www", "allowed"] {
        let got = scene
            .call(
                "fetch_url",
                json!({"url": format!("http://example.com/{path}")}),
            )
            .await;
        assert!(got.is_ok(), "{path}: {:?}", got.error);
    }
    for (path, leads_to) in [
        ("other", "http://other.example.org/end"),
        // Another port of the same host is another server.
        ("port", "http://example.com:8080/end"),
    ] {
        let url = json!({"url": format!("http://example.com/{path}")});
        scene
            .fails("fetch_url", url, ErrorKind::Denied, leads_to)
            .await;
    }
    assert_eq!(town.connected().len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn w11_whatever_is_read_leads_to_no_host_that_no_rule_allows() {
    let strayed = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&strayed);
    let town = Town::new(move |asked| match asked.path.as_str() {
        _ if asked.text.contains("other.example.org") => {
            noted.store(true, Ordering::Relaxed);
            page("text/plain", "never asked")
        }
        "/robots.txt" if asked.text.contains("www.") => {
            page("text/plain", "User-agent: *\nDisallow: /no\n")
        }
        "/robots.txt" if asked.text.contains("near.example.com") => {
            moved("http://www.near.example.com/robots.txt")
        }
        "/robots.txt" if asked.text.contains("far.example.com") => {
            moved("http://other.example.org/robots.txt")
        }
        "/robots.txt" => answer("404 None", "", ""),
        "/picture" => moved("http://other.example.org/picture.png"),
        _ => page("text/plain", "end"),
    })
    .await;
    let web = WebOptions {
        http: town.http(),
        robots: true,
        ..WebOptions::default()
    };
    let scene = Scene::with(|mut builtins| {
        builtins.web = Some(web);
        builtins
    });
    let elsewhere = "http://other.example.org/";
    for (tool, url) in [
        ("fetch_url", "http://far.example.com/page"),
        ("view_image", "http://example.com/picture"),
    ] {
        scene
            .fails(tool, json!({ "url": url }), ErrorKind::Denied, elsewhere)
            .await;
    }
    assert!(!strayed.load(Ordering::Relaxed));
    // The robots.txt of the same site is fetched and obeyed.
    let got = scene
        .call("fetch_url", json!({"url": "http://near.example.com/yes"}))
        .await;
    assert!(got.is_ok(), "{:?}", got.error);
    let no = json!({"url": "http://near.example.com/no"});
    scene
        .fails("fetch_url", no, ErrorKind::Failed, "Disallow: /no")
        .await;
}

/// A web whose every host has a page, and one that leads to another host.
async fn leading_town() -> Arc<Town> {
    Town::new(|asked| match asked.path.as_str() {
        "/away" => moved("http://other.example.org/SECRET"),
        "/twice" => moved("http://docs.example.org/away"),
        _ => page("text/plain", "a page"),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn a_redirect_is_judged_with_what_the_run_has_read() {
    let url = |path: &str| format!("http://{path}");
    // What is fetched in turn, and whether the last of it is, under a guard that asks and one that denies.
    let rows: [(&str, &[&str], bool); 7] = [
        ("nothing was read before", &["docs.example.org/away"], true),
        (
            "a hop does not speak against the next",
            &["example.com/twice"],
            true,
        ),
        (
            "an address that nobody named, of a host that was read",
            &["docs.example.org/a", "docs.example.org/b"],
            false,
        ),
        (
            "a hop after a page",
            &["docs.example.org/a", "docs.example.org/away"],
            false,
        ),
        (
            "a later hop after a page",
            &["docs.example.org/a", "docs.example.org/twice"],
            false,
        ),
        (
            "the target was read, and so was its way there",
            &["docs.example.org/away", "example.com/a"],
            false,
        ),
        (
            "a picture after a page",
            &["docs.example.org/a", "view docs.example.org/away"],
            false,
        ),
    ];
    for (name, steps, goes) in rows {
        for verdict in [Verdict::Ask, Verdict::Deny] {
            let town = leading_town().await;
            let web = WebOptions {
                http: town.http(),
                robots: false,
                ..WebOptions::default()
            };
            let mut scene = Scene::with(|mut builtins| {
                builtins.web = Some(web);
                builtins
            });
            let guard = UntrustedContent::new(verdict);
            let workspace = Workspace::open(&scene.at("")).unwrap();
            let policy = Policy::builder(Profile::Trusted)
                .workspace(&workspace)
                .allow("WebFetch(domain:*)")
                .guard(guard);
            scene.executor = haft::Executor::new(policy.build().unwrap());
            let (last, first) = steps.split_last().unwrap();
            for step in first {
                let got = scene.call("fetch_url", json!({ "url": url(step) })).await;
                assert!(got.is_ok(), "{name}: {step}: {:?}", got.error);
            }
            let before = town.connected().len();
            let (tool, place) = match last.strip_prefix("view ") {
                Some(place) => ("view_image", place),
                None => ("fetch_url", *last),
            };
            let got = scene.call(tool, json!({ "url": url(place) })).await;
            if goes {
                assert!(got.is_ok(), "{name}: {:?}", got.error);
                continue;
            }
            assert_eq!(got.status, Status::Denied, "{name}: {:?}", got.error);
            let said = got.error.unwrap().message;
            // A first address that would be asked about is denied, because no one can be asked.
            let says = said.contains("has read") || said.contains("untrusted-content");
            assert!(says, "{name}: {said}");
            let hops = town.connected().len() - before;
            assert!(
                hops <= usize::from(place.contains("docs")) * 2,
                "{name}: {hops} connections"
            );
        }
    }
}

/// Answers like a search service of each kind, each on its own path.
fn engines(asked: &ReceivedRequest) -> Does {
    let text = asked.text.to_lowercase();
    let path = asked.path.as_str();
    if path == "/res?q=two+words&count=2" && text.contains("x-subscription-token: key") {
        page(
            "application/json",
            r#"{"web":{"results":[{"title":"<b>A</b> &amp; b","url":"https://a.example/","description":"one\n two"},
                {"title":"no url","description":"x"},{"title":"C","url":"https://c.example/","description":"c"},{"url":"https://d.example/"}]}}"#,
        )
    } else if path == "/searx/search?q=two+words&format=json" {
        page(
            "application/json",
            r#"{"results":[{"title":"A & b","url":"https://a.example/","content":"one two"},{"title":"C","url":"https://c.example/","content":"c"},{"title":"more","url":"https://e.example/"}]}"#,
        )
    } else if path == "/v1?q=two+words&n=2"
        && text.contains("authorization: bearer key")
        && text.contains("x-own: 1")
    {
        page(
            "application/json",
            r#"{"data":{"items":[{"name":"A & b","at":{"href":"https://a.example/"},"text":"one two"},{"name":"C","at":{"href":"https://c.example/"},"text":"c"}]}}"#,
        )
    } else if path.starts_with("/page") {
        page("text/html", "<p>a page")
    } else {
        answer("401 Unauthorized", "", "")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_search_service_gives_the_same_shape() {
    let town = Town::new(engines).await;
    let base = format!("http://{}", town.address());
    let own = |text: &str| Some(text.to_owned());
    let settings = |url: &str| SearchSettings {
        url: Some(format!("{base}{url}")),
        api_key: own("key"),
        ..SearchSettings::default()
    };
    let generic = SearchSettings {
        headers: vec![("X-Own".to_owned(), "1".to_owned())],
        results: own("/data/items"),
        title: own("name"),
        link: own("/at/href"),
        snippet: own("text"),
        ..settings("/v1?q={query}&n={limit}")
    };
    let with = |provider, settings| {
        let web = WebOptions {
            search: Some(SearchService::new(provider, settings).unwrap()),
            ..WebOptions::default()
        };
        Scene::with(|mut builtins| {
            builtins.web = Some(web);
            builtins
        })
    };
    let expect = json!([{"title": "A & b", "url": "https://a.example/", "snippet": "one two"},
        {"title": "C", "url": "https://c.example/", "snippet": "c"}]);
    for (provider, settings) in [
        (SearchProvider::Brave, settings("/res")),
        (SearchProvider::Searxng, settings("/searx/")),
        (SearchProvider::Json, generic.clone()),
    ] {
        let found = with(provider, settings)
            .data("web_search", json!({"query": "two words", "limit": 2}))
            .await;
        assert_eq!(found["results"], expect, "{provider:?}");
    }
    let page = settings("/page?{query}");
    let nowhere = SearchSettings {
        results: own("/elsewhere"),
        ..generic
    };
    for (settings, says) in [
        (page, "not JSON"),
        (nowhere, "has nothing at \"/elsewhere\""),
        (settings("/none?{query}"), "401"),
    ] {
        let scene = with(SearchProvider::Json, settings);
        scene
            .fails(
                "web_search",
                json!({"query": "two words", "limit": 2}),
                ErrorKind::Failed,
                says,
            )
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_not_whole_is_no_service() {
    let settings = |url: &str| SearchSettings {
        url: Some(url.to_owned()),
        ..SearchSettings::default()
    };
    let rows = [
        (SearchProvider::Json, settings("http://localhost/none")),
        (SearchProvider::Json, settings("ftp://localhost/{query}")),
        (SearchProvider::Searxng, SearchSettings::default()),
        (SearchProvider::Brave, SearchSettings::default()),
    ];
    for (provider, settings) in rows {
        let refused = SearchService::new(provider, settings);
        assert!(refused.is_err(), "{provider:?}");
    }
    let unset = Scene::new().call("web_search", json!({"query": "x"})).await;
    assert_eq!(unset.error.unwrap().kind, ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_page_says_so() {
    let town = Town::new(|_| {
        let head =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf";
        Does::Sends(head.to_vec())
    })
    .await;
    let got = scene(&town, false)
        .call("fetch_url", json!({"url": "http://example.com/"}))
        .await;
    assert!(got.is_ok());
    assert!(
        got.text().contains("closed the connection before the end"),
        "{}",
        got.text()
    );
}
