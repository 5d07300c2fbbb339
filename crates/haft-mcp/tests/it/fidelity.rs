//! Nothing of a server behind haft is lost on the way: its lists, the arguments that it receives, its results.

use std::sync::Arc;

use haft::{Policy, Profile, Tool};
use haft_mcp::http::{Access, McpService};
use haft_mcp::server::ServerLimits;
use haft_mcp::upstream::{Upstream, UpstreamTerms};

use crate::support::front::Front;
use crate::support::http_client::{post, post_modern};
use crate::support::small_tools::SmallOpener;
use crate::support::strange::{CONTENT, DATA, LIST, META, Strange, TOOL, UNKNOWN};
use crate::support::{call, initialize, modern, serving};

/// Unusual arguments, exactly as the server must receive them.
const ARGUMENTS: &str =
    r#"{ "z":12345678901234567890123,"a":"gr\u00fcn" , "n": 5,"y":[1.0, 1e2],"":{"b":1,"a":2} }"#;

/// How a client connects to haft: over pipes or HTTP, in a revision.
#[derive(Debug, Clone, Copy)]
struct Way {
    over_http: bool,
    revision: &'static str,
}

const WAYS: [Way; 8] = [
    Way {
        over_http: false,
        revision: "2026-07-28",
    },
    Way {
        over_http: true,
        revision: "2026-07-28",
    },
    Way {
        over_http: false,
        revision: "2025-11-25",
    },
    Way {
        over_http: true,
        revision: "2025-11-25",
    },
    Way {
        over_http: false,
        revision: "2025-06-18",
    },
    Way {
        over_http: false,
        revision: "2025-03-26",
    },
    Way {
        over_http: true,
        revision: "2024-11-05",
    },
    Way {
        over_http: false,
        revision: "2024-11-05",
    },
];

/// Returns haft with the server behind it.
async fn haft(strange: &Strange) -> Arc<SmallOpener> {
    let terms = UpstreamTerms::default();
    let manifest = Upstream::look("strange".into(), strange, terms.limits)
        .await
        .unwrap();
    // The pinned manifest is read back from a file.
    let manifest = haft_mcp::upstream::Manifest::parse(&manifest.to_text()).unwrap();
    let upstream = Upstream::new("far", manifest, Arc::new(strange.clone()), terms);
    let (tools, refused) = Arc::new(upstream).tools();
    assert!(refused.is_empty(), "{refused:?}");
    let policy = Policy::builder(Profile::Workspace).allow("far.*").build();
    let opener = SmallOpener::new(policy.unwrap(), true);
    opener.add_tools(
        tools
            .into_iter()
            .map(|tool| Arc::new(tool) as Arc<dyn Tool>),
    );
    Arc::new(opener)
}

/// Returns haft's raw answers to `tools/list` and to the call.
async fn answers(opener: &Arc<SmallOpener>, way: Way, tool: &str) -> [String; 2] {
    let is_modern = way.revision == "2026-07-28";
    let list = if is_modern {
        modern("1", "tools/list", "")
    } else {
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned()
    };
    let called = if is_modern {
        let more = format!(r#","name":"{tool}","arguments":{ARGUMENTS}"#);
        modern("2", "tools/call", &more)
    } else {
        call("2", tool, ARGUMENTS)
    };
    if way.over_http {
        let service = serving(ServerLimits::default(), opener).http(Access::checked_before());
        return by_http(&service, way, [list, called], tool).await;
    }
    let mut front = Front::to(opener);
    if !is_modern {
        front.ask(&initialize(way.revision)).await;
    }
    let mut lines = [String::new(), String::new()];
    for (message, line) in [list, called].iter().zip(&mut lines) {
        front.send(message).await;
        *line = front.receive_text().await;
    }
    lines
}

async fn by_http(service: &McpService, way: Way, messages: [String; 2], tool: &str) -> [String; 2] {
    let [list, called] = messages;
    if way.revision == "2026-07-28" {
        let listed = post_modern(service, "tools/list", None, &list).await;
        let called = post_modern(service, "tools/call", Some(tool), &called).await;
        return [listed.text, called.text];
    }
    let greeted = post(service, &[], &initialize(way.revision)).await;
    let session = [
        ("mcp-session-id", greeted.header("mcp-session-id")),
        ("mcp-protocol-version", way.revision),
    ];
    let listed = post(service, &session, &list).await;
    let called = post(service, &session, &called).await;
    [listed.text, called.text]
}

/// Returns the content that a client of this revision must receive.
fn content(revision: &str) -> String {
    let audio = r#"{"type":"audio","mimeType":"audio/wav","data":"AAAA","x":1}"#;
    let link =
        r#"{"type":"resource_link","uri":"odd://1","name":"one","size":12345678901234567890123}"#;
    let mut content = CONTENT.to_owned();
    assert!(content.contains(audio) && content.contains(link));
    if revision < "2025-03-26" {
        content = content.replace(audio, r#"{"type":"text","text":"[sound, audio/wav]"}"#);
    }
    if revision < "2025-06-18" {
        content = content.replace(link, r#"{"type":"text","text":"[resource one: odd://1]"}"#);
    }
    content
}

#[tokio::test]
async fn what_a_server_says_comes_out_byte_for_byte_over_every_wire_and_in_every_revision() {
    for (is_modern, over_http) in [(true, true), (true, false), (false, true), (false, false)] {
        let strange = Strange::new(is_modern, over_http);
        let opener = haft(&strange).await;
        for way in WAYS {
            let what = format!("server: modern {is_modern}, http {over_http}; client: {way:?}");
            let [listed, called] = answers(&opener, way, "far.odd").await;
            let tool = TOOL.replace("NAME", "far.odd");
            assert!(listed.contains(&tool), "{what}: {listed}");
            assert_eq!(*strange.arguments.lock(), ARGUMENTS, "{what}: {called}");
            strange.arguments.lock().clear();
            let kind = if way.revision == "2026-07-28" {
                r#","resultType":"complete""#
            } else {
                ""
            };
            let own = r#","haft":{"#;
            let begins = format!(r#""result":{{ {UNKNOWN} , "_meta" : {{ {META}{own}"#);
            assert!(called.contains(&begins), "{what}: {called}");
            let ends = format!(
                r#" }} ,"structuredContent": {DATA}, "content" : {}{kind} }}}}"#,
                content(way.revision)
            );
            assert!(called.trim_end().ends_with(&ends), "{what}: {called}");
        }
        let calls = opener.calls();
        assert_eq!(calls.len(), WAYS.len());
        assert!(
            calls
                .iter()
                .all(|(tool, arguments)| tool == "far.odd" && arguments == ARGUMENTS)
        );
    }
}

#[tokio::test]
async fn a_result_that_is_no_object_is_one_for_clients_that_know_no_other() {
    let strange = Strange::new(true, false);
    let opener = haft(&strange).await;
    for way in WAYS {
        let [listed, called] = answers(&opener, way, "far.list").await;
        let is_modern = way.revision == "2026-07-28";
        assert_eq!(
            listed.contains(&LIST.replace("NAME", "far.list")),
            is_modern,
            "{way:?}: {listed}"
        );
        assert_eq!(
            listed.contains(r#""type":"array""#),
            is_modern,
            "{way:?}: {listed}"
        );
        let data = if is_modern {
            "[1, 2]"
        } else {
            r#"{"result":[1, 2]}"#
        };
        let data = format!(r#""structuredContent":{data}"#);
        assert!(called.contains(&data), "{way:?}: {called}");
        // A client that does not know structured content gets it as text.
        let in_words = called.contains(r#""content":[{"type":"text""#);
        assert_eq!(in_words, way.revision < "2025-06-18", "{way:?}: {called}");
    }
}

#[tokio::test]
async fn a_result_that_is_too_long_says_so_and_keeps_what_stands_beside() {
    let opener = haft(&Strange::new(false, false)).await;
    let mut front = Front::to(&opener);
    front.ask(&initialize("2025-11-25")).await;
    front.send(&call("1", "far.list", r#"{"long":1}"#)).await;
    let answer = front.receive_text().await;
    assert!(answer.len() < 200_000, "{}", answer.len());
    let begins =
        format!(r#""result":{{{UNKNOWN},"content":[{{"type":"text","text":"line of many\n"#);
    assert!(answer.contains(&begins), "{}", &answer[..400]);
    assert!(answer.contains("read_artifact") && answer.contains(r#""type":"resource_link""#));
    assert!(answer.contains(r#""structuredContent":{"result":[1, 2]}"#));
}
