//! Skills over MCP: resources and prompts, in both eras, and errors in requests for one.

use std::fs;
use std::path::Path;

use haft_mcp::http::Access;
use haft_mcp::server::ServerLimits;
use serde_json::{Value, json};

use crate::support::http_client::post_modern;
use crate::support::line_client::LineClient;
use crate::support::{initialize, modern, server};

fn put(root: &Path, name: &str, front: &str) {
    let folder = root.join(name);
    fs::create_dir_all(folder.join("references")).unwrap();
    let text =
        format!("---\nname: {name}\ndescription: About {name}.\n{front}---\nText of {name}.\n");
    fs::write(folder.join("SKILL.md"), text).unwrap();
    fs::write(folder.join("references/a b.md"), "a reference").unwrap();
    fs::write(folder.join("logo.png"), b"\x89PNG\0").unwrap();
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        "fix",
        "arguments: [issue, branch]\nargument-hint: '[issue] [branch]'\n",
    );
    put(dir.path(), "inner", "user-invocable: false\n");
    put(dir.path(), "pdf", "");
    put(dir.path(), "broken", "");
    fs::write(dir.path().join("secret"), "SECRET").unwrap();
    std::os::unix::fs::symlink("../secret", dir.path().join("pdf/link.md")).unwrap();
    dir
}

/// Returns a client of the handshake era; the skills exist before its hello.
fn client(limits: ServerLimits) -> (LineClient, Value, tempfile::TempDir) {
    let dir = folder();
    let mut client = LineClient::start(limits);
    client.opener.offer_skills(dir.path());
    let hello = client.ask(&initialize("2025-11-25"));
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    (client, hello, dir)
}

fn ask(client: &mut LineClient, method: &str, params: &Value) -> Value {
    client.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string())
}

#[test]
fn prompts_are_told_of_only_where_there_are_skills() {
    let (_, hello, _dir) = client(ServerLimits::default());
    assert_eq!(hello["result"]["capabilities"]["prompts"], json!({}));
    let mut without = LineClient::start(ServerLimits::default());
    let hello = without.ask(&initialize("2025-11-25"));
    assert_eq!(hello["result"]["capabilities"].get("prompts"), None);
    // W16: undeclared methods are not answered.
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "x"})),
    ] {
        let refused = ask(&mut without, method, &params);
        assert_eq!(refused["error"]["code"], json!(-32601), "{method}");
    }
}

#[test]
fn skills_are_listed_in_pages_before_artifacts_and_their_files_read() {
    let (mut client, _, _dir) = client(ServerLimits {
        page: 3,
        ..ServerLimits::default()
    });
    let first = ask(&mut client, "resources/list", &json!({}))["result"].clone();
    let next = first["nextCursor"].clone();
    let second = ask(&mut client, "resources/list", &json!({"cursor": next}))["result"].clone();
    let uris = |page: &Value| -> Vec<String> {
        let all = page["resources"].as_array().unwrap().iter();
        all.map(|r| r["uri"].as_str().unwrap().to_owned()).collect()
    };
    let all = [uris(&first), uris(&second)].concat();
    let expect = ["broken", "fix", "inner", "pdf"].map(|name| format!("skill://{name}/SKILL.md"));
    assert_eq!(all, expect);
    assert_eq!(second.get("nextCursor"), None);
    let wrong = ask(
        &mut client,
        "resources/list",
        &json!({"cursor": "skill://no/SKILL.md"}),
    );
    assert_eq!(wrong["error"]["code"], -32602);

    let templates = ask(&mut client, "resources/templates/list", &json!({}));
    let template = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(*template, "skill://{name}/{+path}");

    for (uri, expect) in [
        ("skill://pdf/SKILL.md", Some("Text of pdf.")),
        ("skill://pdf/references/a%20b.md", Some("a reference")),
        ("skill://pdf/logo.png", Some("iVBORwA=")),
        ("skill://pdf/link.md", None),
        ("skill://pdf/../secret", None),
        ("skill://pdf/%2e%2e/secret", None),
        ("skill://pdf//etc/passwd", None),
        ("skill://pdf/references", None),
        ("skill://pdf/absent", None),
        ("skill://nobody/SKILL.md", None),
        ("skill://pdf", None),
        ("skill://%00/SKILL.md", None),
    ] {
        let read = ask(&mut client, "resources/read", &json!({"uri": uri}));
        if let Some(text) = expect {
            assert!(
                read["result"]["contents"][0].to_string().contains(text),
                "{uri}: {read}"
            );
        } else {
            assert_eq!(read["error"]["code"], -32002, "{uri}: {read}");
            assert!(!read.to_string().contains("SECRET"));
        }
    }
    // None of this was a call.
    assert_eq!(client.opener.calls(), []);
}

#[test]
#[expect(clippy::too_many_lines, reason = "tables of one conversation")]
fn a_prompt_is_a_recorded_call_that_loads_the_skill() {
    let (mut client, _, _dir) = client(ServerLimits {
        page: 2,
        ..ServerLimits::default()
    });
    let first = ask(&mut client, "prompts/list", &json!({}))["result"].clone();
    assert_eq!(
        first["prompts"][1]["arguments"][1],
        json!({"name": "branch", "description": "[issue] [branch]", "required": false})
    );
    let second = ask(
        &mut client,
        "prompts/list",
        &json!({"cursor": first["nextCursor"]}),
    )["result"]
        .clone();
    assert_eq!(second["prompts"][0]["name"], "pdf");
    assert_eq!(second["prompts"][0]["arguments"][0]["name"], "arguments");
    assert_eq!(second.get("nextCursor"), None);

    for (params, expect) in [
        (json!({"name": "pdf"}), r#"do "pdf" on """#),
        (
            json!({"name": "pdf", "arguments": {"arguments": "a b"}}),
            r#"do "pdf" on "a b""#,
        ),
        (
            json!({"name": "fix", "arguments": {"branch": "main"}}),
            r#"do "fix" on "'' main""#,
        ),
        (
            json!({"name": "fix", "arguments": {"issue": "a b"}}),
            r#"do "fix" on "'a b'""#,
        ),
    ] {
        let got = ask(&mut client, "prompts/get", &params);
        let message = &got["result"]["messages"][0];
        assert_eq!(message["role"], "user", "{got}");
        assert_eq!(message["content"]["text"], expect, "{params}");
    }
    assert_eq!(client.opener.calls().len(), 4);
    assert!(
        client
            .opener
            .calls()
            .iter()
            .all(|(tool, _)| tool == "invoke_skill")
    );

    for (params, code) in [
        (json!({"name": "inner"}), -32602),
        (json!({"name": "nobody"}), -32602),
        (json!({}), -32602),
        (json!({"name": "pdf", "arguments": {"other": "x"}}), -32602),
        (
            json!({"name": "pdf", "arguments": {"arguments": 1}}),
            -32602,
        ),
        (json!({"name": "pdf", "arguments": []}), -32602),
        (json!({"name": "broken"}), -32603),
    ] {
        let got = ask(&mut client, "prompts/get", &params);
        assert_eq!(got["error"]["code"], code, "{params}: {got}");
    }
    let denied = ask(&mut client, "prompts/get", &json!({"name": "broken"}));
    assert_eq!(
        denied["error"]["data"],
        json!({"status": "denied", "advice": "take another"})
    );
}

#[tokio::test]
async fn the_stateless_era_has_the_same() {
    let dir = folder();
    let (server, opener) = server(ServerLimits::default());
    opener.offer_skills(dir.path());
    let service = server.http(Access::checked_before());
    let found = post_modern(
        &service,
        "server/discover",
        None,
        &modern("1", "server/discover", ""),
    )
    .await;
    assert_eq!(found.json()["result"]["capabilities"]["prompts"], json!({}));
    let listed = post_modern(
        &service,
        "prompts/list",
        None,
        &modern("2", "prompts/list", ""),
    )
    .await;
    let listed = &listed.json()["result"];
    assert_eq!(listed["prompts"].as_array().unwrap().len(), 3);
    assert_eq!(listed["resultType"], "complete");
    let body = modern(
        "3",
        "prompts/get",
        r#","name":"pdf","arguments":{"arguments":"x"}"#,
    );
    let got = post_modern(&service, "prompts/get", Some("pdf"), &body).await;
    let got = &got.json()["result"];
    assert_eq!(got["messages"][0]["content"]["text"], r#"do "pdf" on "x""#);
    assert_eq!(got["resultType"], "complete");
    let uri = "skill://pdf/SKILL.md";
    let body = modern("4", "resources/read", &format!(r#","uri":"{uri}""#));
    let read = post_modern(&service, "resources/read", Some(uri), &body).await;
    let read = &read.json()["result"];
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
    assert_eq!(read["ttlMs"], 5_000);
}
