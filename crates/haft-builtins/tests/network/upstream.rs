//! `network.proxy`: the connections of commands leave through the company's proxy, judged and checked as without it.

use std::sync::Arc;

use haft_builtins::command::CommandNetwork;
use haft_builtins::proxy::{AllowList, Proxy};
use haft_builtins::web::network::Network;
use haft_sandbox::Sandbox;

use crate::Scene;
use crate::office::{BASIC, Manner, Office, proxy};
use crate::town::{Town, page};

pub(crate) async fn all(sandbox: &Sandbox) {
    let town = Town::new(|asked| page("text/plain", asked.text.to_lowercase())).await;
    for (manner, works) in [
        (Manner::Guarded, true),
        (Manner::Says("HTTP/1.1 403 No\r\n\r\n"), false),
    ] {
        let office = Office::new(&town, manner).await;
        office.knows("inside.example.com", "10.0.0.7");
        let hosts = AllowList::read(["*.example.com", "example.com:8080"]).unwrap();
        let way = Proxy::new(hosts)
            .with_network(Arc::clone(&office) as Arc<dyn Network>)
            .with_upstream(Some(proxy("http", "ann:hush@", &[])));
        let scene = Scene::new(sandbox, CommandNetwork::allow_list(way));
        scene.trust(&town);
        let secret = scene.script("get('https://www.example.com/a')").await;
        assert_eq!(secret.ok, works, "{}", secret.shown);
        assert!(!secret.shown.contains("hush"), "{}", secret.shown);
        if works {
            let plain = scene.script("get('http://example.com:8080/b?c')").await;
            assert!(plain.ok, "{}", plain.shown);
            // The server does not receive the proxy's password.
            let out = format!("{} {}", secret.shown, plain.shown);
            assert!(!out.contains("proxy-authorization"), "{out}");
            let heads = office.heads();
            assert!(
                heads[0].starts_with("CONNECT www.example.com:443 "),
                "{heads:?}"
            );
            assert!(
                heads[1].starts_with("GET http://example.com:8080/b?c "),
                "{heads:?}"
            );
            assert!(heads.iter().all(|head| head.contains(BASIC)), "{heads:?}");
            let seen = heads.len();
            // A server that answers TRACE would echo haft's credentials for the proxy.
            let traced = "raw('TRACE http://example.com:8080/b HTTP/1.1\\r\\nHost: example.com:8080\\r\\nMax-Forwards: 0\\r\\n\\r\\n')";
            let traced = scene.script(traced).await;
            assert!(
                traced.shown.contains("TRACE is not sent on"),
                "{}",
                traced.shown
            );
            let inside = scene.script("connect('inside.example.com:443')").await;
            assert!(inside.shown.contains("10.0.0.7"), "{}", inside.shown);
            assert_eq!(office.heads().len(), seen);
        } else {
            let refused = secret.data["network_refused"][0].as_str().unwrap();
            let say = "the proxy http://proxy.office.internal:3128 did not connect to www.example.com:443: it answered 403 Forbidden";
            assert_eq!(refused, say);
        }
        assert!(office.direct().is_empty());
    }
}
