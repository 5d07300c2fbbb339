//! `fetch_url` where rules judge the requests at a host: the page itself, and where its redirects lead.

use haft::ErrorKind;
use haft::policy::{Policy, Profile};
use haft_builtins::web::WebOptions;
use serde_json::json;

use crate::scene::Scene;
use crate::town::{Town, moved, page};

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_at_a_judged_host_is_judged() {
    let town = Town::new(|asked| match asked.path.as_str() {
        "/docs/in" => moved("/docs/end"),
        "/docs/out" => moved("/admin"),
        "/docs/dots" => moved("/docs/%2e%2e/admin"),
        "/docs/slash" => moved("/docs/..%2fadmin"),
        "/robots.txt" => page("text/plain", "User-agent: *\nDisallow: /no\n"),
        "/admin" => page("text/plain", "the admin's page"),
        _ => page("text/plain", "end"),
    })
    .await;
    let web = WebOptions {
        http: town.http(),
        ..WebOptions::default()
    };
    let mut scene = Scene::with(|mut builtins| {
        builtins.web = Some(web);
        builtins
    });
    let docs = "WebFetch(domain:example.com: GET /docs/**)";
    scene.judged_by(Policy::builder(Profile::Trusted).allow(docs));
    for (path, leads_to) in [
        ("docs/x", None),
        ("docs/in", None),
        ("docs/out", Some("http://example.com/admin")),
        ("docs/dots", Some("http://example.com/admin")),
        ("docs/slash", Some("http://example.com/docs/..%2fadmin")),
    ] {
        let url = json!({"url": format!("http://example.com/{path}")});
        match leads_to {
            None => {
                let got = scene.call("fetch_url", url).await;
                assert!(got.is_ok(), "{path}: {:?}", got.error);
            }
            Some(leads_to) => {
                scene
                    .fails("fetch_url", url, ErrorKind::Denied, leads_to)
                    .await;
            }
        }
    }
}
