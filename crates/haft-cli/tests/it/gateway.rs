//! haft in front of many tools and many users: few listed tools, views, access tokens, an authorization server, with the real binary.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use haft::tokens;
use serde_json::{Value, json};

use crate::harness::Lab;
use crate::serve::{Reply, Request, Server, get, post};

/// A server with 150 tools.
const SERVER: &str = r#"
import json, sys
verbs = ["create", "list", "get", "update", "delete", "find", "archive", "export", "assign", "comment"]
nouns = ["issue", "invoice", "customer", "order", "event", "document", "repository", "deployment", "metric", "ticket",
         "shipment", "payment", "employee", "contract", "meeting"]
schema = {"type": "object", "properties": {"id": {"type": "string", "description": "which one"}, "fields": {"type": "object"}}}
tools = [{"name": v + "_" + n, "description": v.capitalize() + " a " + n + " of the company.", "inputSchema": schema}
         for v in verbs for n in nouns]
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    answer = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "crm", "version": "1"}}
    elif m["method"] == "tools/list":
        answer["result"] = {"tools": tools}
    elif m["method"] == "tools/call":
        raw = line[line.index('"arguments":') + 12:]
        answer["result"] = {"content": [{"type": "text", "text": m["params"]["name"] + " got " + raw[:raw.index("}") + 1]}]}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"#;

/// Views of it, and the tools that may run without asking.
const SETTINGS: &str = r#"
policy.allow = ["crm.list_*", "crm.get_issue"]
policy.deny = ["crm.delete_invoice"]
approval.mode = "deny"
views.support = { tools = ["crm.*"], deny = ["crm.get_customer"] }
views.files = { tools = ["read_file", "list_files"] }
"#;

fn lab(more: &str) -> Lab {
    let lab = Lab::new();
    let folder = lab.home().parent().unwrap().join("server");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("server.py"), SERVER).unwrap();
    let at = folder.display();
    lab.user_settings(&format!(
        "{more}\n{SETTINGS}\n[mcp.servers.crm]\ncommand = \"python3\"\nargs = [\"{at}/server.py\"]\nsandbox.read = [\"{at}\"]\n"
    ));
    let pinned = lab.run(&["mcp", "pin", "crm", "--yes"]);
    assert_eq!(pinned.code, 0, "{}", pinned.stderr);
    lab
}

/// Sends a request as a client of the stateless era.
pub(crate) fn ask(server: &Server, token: &str, method: &str, params: &Value) -> Reply {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "team", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let name = params["name"].as_str().or(params["uri"].as_str());
    let name = name.unwrap_or_default();
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    if !name.is_empty() {
        headers.push(("mcp-name", name));
    }
    server.ask(&Request {
        headers: &headers,
        ..post("/mcp", token, &body.to_string())
    })
}

fn list(server: &Server, token: &str) -> (Vec<String>, Value) {
    let reply = ask(server, token, "tools/list", &json!({}));
    let result = reply.json()["result"].clone();
    let tools = result["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{}", reply.body));
    let names = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned());
    (names.collect(), result)
}

fn call(server: &Server, token: &str, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    ask(server, token, "tools/call", &params).json()["result"].clone()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn a_hundred_and_fifty_tools_are_listed_in_few_tokens_found_and_described() {
    let lab = lab("serve.tools = \"lazy\"\nserve.pinned = [\"crm.get_issue\"]");
    let server = Server::start(&lab, &[]);
    let token = server.call.as_str();
    let (names, result) = list(&server, token);
    let expect = [
        "call_tool",
        "crm.get_issue",
        "describe_tools",
        "tool_chain",
        "tool_search",
    ];
    assert_eq!(names, expect);
    assert_eq!(result["cacheScope"], "private");
    let listed = result["tools"].to_string();
    let whole = tokens::standard().fits(&listed, 100_000).unwrap();
    eprintln!("{whole} tokens");
    assert!(whole <= 1500, "{whole} tokens: {listed}");
    let finder = &result["tools"][4]["description"];
    let says = finder.as_str().unwrap();
    assert!(says.contains("By server: crm 148."), "{says}");

    let found = call(
        &server,
        token,
        "tool_search",
        &json!({"query": "create an invoice"}),
    );
    assert_eq!(
        found["structuredContent"]["tools"][0]["name"],
        "crm.create_invoice"
    );
    let described = json!({"tool_names": ["crm.list_orders", "crm.list_order"]});
    let described = call(&server, token, "describe_tools", &described);
    let of = &described["structuredContent"];
    assert_eq!(of["tools"][0]["name"], "crm.list_order");
    assert!(
        of["tools"][0]["input_schema"]["properties"]["id"].is_object(),
        "{of}"
    );
    assert_eq!(of["invalid_tools"], json!(["crm.list_orders"]));

    server.end(rustix::process::Signal::TERM);
}

#[test]
fn a_call_by_the_meta_tool_is_one_of_the_tool_that_it_names() {
    let lab = lab("serve.tools = \"lazy\"");
    let server = Server::start(&lab, &[]);
    let token = server.call.as_str();
    // Through the meta-tool and by its own name: the same call.
    let by_name = json!({"tool": "crm.list_order", "arguments": {"id": "7"}});
    let came = call(&server, token, "call_tool", &by_name);
    assert!(text(&came).starts_with("list_order got"), "{came}");
    let came = call(&server, token, "crm.list_order", &json!({"id": "7"}));
    assert!(text(&came).starts_with("list_order got"), "{came}");
    for (tool, kind) in [
        ("crm.delete_invoice", "denied"),
        ("crm.create_order", "denied"),
        ("crm.list_ordr", "not_found"),
    ] {
        let came = call(
            &server,
            token,
            "call_tool",
            &json!({"tool": tool, "arguments": {}}),
        );
        assert_eq!(came["isError"], true, "{tool}: {came}");
        assert!(text(&came).starts_with(kind), "{tool}: {came}");
    }
    let wrong = call(
        &server,
        token,
        "call_tool",
        &json!({"name": "crm.list_order"}),
    );
    assert!(text(&wrong).starts_with("invalid_arguments"), "{wrong}");
    server.end(rustix::process::Signal::TERM);
    // The record names the tools themselves.
    let runs = lab.run(&["runs", "list", "--json", "-n", "1"]).json();
    let shown = lab
        .run(&["runs", "show", runs[0]["run"].as_str().unwrap(), "--json"])
        .json();
    let record = shown.to_string();
    assert!(
        record.contains("\"crm.list_order\"") && record.contains("\"crm.delete_invoice\""),
        "{record}"
    );
    assert_eq!(
        record.matches("\"call_tool\"").count(),
        1,
        "the one that named no tool: {record}"
    );
}

#[test]
fn auto_lists_few_tools_where_there_are_many_and_all_where_there_are_not() {
    let lab = lab("serve.tools = \"auto\"");
    let server = Server::start(&lab, &[]);
    let (names, _) = list(&server, &server.call);
    assert!(names.len() < 6, "{names:?}");
    drop(server);
    let server = Server::start(&lab, &["-c", "serve.lazy_above=1000"]);
    let (names, _) = list(&server, &server.call);
    assert!(names.len() > 150 && !names.iter().any(|name| name == "call_tool"));
}

#[test]
fn what_cannot_be_served_is_refused_at_the_start() {
    let lab = Lab::new();
    let issuer = "serve.oauth.issuer=\"https://a.example\"";
    let audience = "serve.oauth.audience=\"https://b.example/mcp\"";
    let rows: [(&[&str], &str); 9] = [
        (&["serve.tools=some"], "serve.tools"),
        (
            &["serve.tools=lazy", "tools.disable=discover"],
            "needs `tool_search`",
        ),
        (
            &["serve.pinned=[\"read_fil\"]"],
            "did you mean `read_file`?",
        ),
        (
            &["views.a.tools=[\"read_fil\"]"],
            "did you mean `read_file`?",
        ),
        (&[issuer], "lacks `serve.oauth.audience`"),
        (&[issuer, audience], "`serve.oauth.scopes` is empty"),
        (
            &[issuer, audience, "serve.oauth.scopes={x=\"nope\"}"],
            "names the view `nope`",
        ),
        (
            &["serve.oauth.issuer=http://a.example", audience],
            "it is not encrypted",
        ),
        (
            &[issuer, "serve.oauth.audience=mcp"],
            "`serve.oauth.audience`",
        ),
    ];
    for (options, says) in rows {
        let mut args = vec!["tools"];
        for option in options {
            args.extend(["-c", *option]);
        }
        let ran = lab.run(&args);
        assert_eq!(ran.code, 5, "{options:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{options:?}: {}", ran.stderr);
    }
}

/// Creates a token on the command line.
pub(crate) fn token(lab: &Lab, args: &[&str]) -> String {
    let made = lab.run(&[&["token", "add", "--json"], args].concat());
    assert_eq!(made.code, 0, "{}", made.stderr);
    made.json()["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_person_with_a_view_sees_and_calls_its_tools_and_no_others_until_the_token_is_taken_back() {
    let lab = lab("");
    let server = Server::start(&lab, &[]);
    // Created while it serves.
    let ann = token(&lab, &["ann", "--view", "support"]);
    let bob = token(&lab, &["bob", "--view", "files"]);
    let eve = token(&lab, &["eve"]);
    let (names, result) = list(&server, &ann);
    // All except the one that is not in the view, and the one that a bare deny rule removes from every list.
    assert_eq!(names.len(), 148, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("crm.")));
    assert_eq!(result["cacheScope"], "private");
    assert_eq!(list(&server, &bob).0, ["list_files", "read_file"]);
    assert!(list(&server, &eve).0.len() > 150);
    lab.file("a.txt", "hello");
    let read = json!({"path": "a.txt"});
    assert!(text(&call(&server, &bob, "read_file", &read)).contains("hello"));
    for (token, tool) in [
        (&ann, "read_file"),
        (&ann, "crm.get_customer"),
        (&bob, "crm.list_order"),
    ] {
        let came = call(&server, token, tool, &read);
        assert!(text(&came).starts_with("not_found"), "{tool}: {came}");
        // It is not suggested either, and its error is the same as for a tool that does not exist.
        let (line, more) = text(&came).split_once('\n').unwrap_or((text(&came), ""));
        assert!(
            !more.contains(tool) && !more.contains("off"),
            "{tool}: {came}"
        );
        let nothing = call(&server, token, "q_q_q", &read);
        let nothing = text(&nothing).lines().next().unwrap_or_default();
        assert_eq!(nothing.replace("q_q_q", tool), line);
    }
    // Only for MCP, and not for decisions.
    for path in ["/api/v1/tools", "/api/v1/runs", "/metrics", "/nope"] {
        assert_eq!(server.ask(&get(path, Some(&ann))).status, 403, "{path}");
    }
    for path in ["/api/v1/calls", "/api/v1/approvals/x/approve"] {
        assert_eq!(server.ask(&post(path, &ann, "{}")).status, 403, "{path}");
    }
    let removed = lab.run(&["token", "remove", "ann"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert_eq!(ask(&server, &ann, "tools/list", &json!({})).status, 401);
    assert_eq!(list(&server, &bob).0.len(), 2);
    // Another view of the same user is another run.
    let again = token(&lab, &["ann", "--view", "files"]);
    assert_eq!(list(&server, &again).0, ["list_files", "read_file"]);
    assert_eq!(lab.run(&["token", "remove", "ann"]).code, 0);
    server.end(rustix::process::Signal::TERM);
    let runs = lab.run(&["runs", "list", "--json"]).json().to_string();
    assert!(runs.contains("token:bob (team 1)"), "{runs}");
}

#[test]
fn tokens_are_listed_without_their_secret_and_reach_nothing_without_their_view() {
    let lab = lab("");
    let bob = token(&lab, &["bob", "--view", "files"]);
    let listed = lab.run(&["token", "list", "--json"]).json();
    assert_eq!(listed[0]["name"], "bob");
    assert!(listed.to_string().find("haft_").is_none());
    for (args, says) in [
        (
            &["token", "add", "zoe", "--view", "suport"][..],
            "did you mean `support`?",
        ),
        (&["token", "add", "bob"], "a token `bob` already"),
        (&["token", "remove", "ann"], "no token `ann`"),
    ] {
        let ran = lab.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
    // A view that is no longer in the settings.
    lab.user_settings("policy.allow = []");
    let doctor = lab.run(&["doctor"]);
    assert!(
        doctor
            .stdout
            .contains("settings do not have the views of bob"),
        "{}",
        doctor.stdout
    );
    let server = Server::start(&lab, &[]);
    let reply = ask(&server, &bob, "tools/list", &json!({}));
    assert_eq!(reply.status, 403, "{}", reply.body);
    assert!(reply.body.contains("the view `files`"), "{}", reply.body);
}

#[test]
fn a_view_served_lazily_finds_its_own_tools_alone() {
    let lab = lab("serve.tools = \"lazy\"");
    let server = Server::start(&lab, &[]);
    let ann = token(&lab, &["ann", "--view", "support"]);
    let (names, _) = list(&server, &ann);
    assert_eq!(names, ["call_tool", "describe_tools", "tool_search"]);
    let found = call(
        &server,
        &ann,
        "tool_search",
        &json!({"query": "read a file of the customer"}),
    );
    let tools = found["structuredContent"]["tools"].as_array().unwrap();
    assert!(
        tools
            .iter()
            .all(|tool| tool["name"].as_str().unwrap().starts_with("crm.")),
        "{found}"
    );
    for tool in ["read_file", "crm.get_customer", "tool_expand_tools"] {
        let came = call(
            &server,
            &ann,
            "call_tool",
            &json!({"tool": tool, "arguments": {"path": "a"}}),
        );
        assert!(text(&came).starts_with("not_found"), "{tool}: {came}");
    }
}

/// Starts an authorization server whose keys cannot be read; returns its address.
fn issuer_without_keys() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream
                .write_all(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    format!("http://{address}")
}

#[test]
fn a_client_without_a_token_is_sent_to_the_authorization_server() {
    let issuer = issuer_without_keys();
    let lab = Lab::new();
    lab.user_settings(&format!(
        "views.files.tools = [\"read_file\"]\n[serve.oauth]\nissuer = \"{issuer}\"\naudience = \"https://haft.example/mcp\"\nscopes = {{ \"files\" = \"files\", \"all\" = \"*\" }}\n"
    ));
    let server = Server::start(&lab, &[]);
    let place = "/.well-known/oauth-protected-resource";
    for path in [place, "/.well-known/oauth-protected-resource/mcp"] {
        let reply = server.ask(&get(path, None));
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        let metadata = reply.json();
        assert_eq!(metadata["resource"], "https://haft.example/mcp");
        assert_eq!(metadata["authorization_servers"], json!([issuer]));
        assert_eq!(metadata["scopes_supported"], json!(["all", "files"]));
    }
    let hello = crate::serve::hello().to_string();
    let sent = server.ask(&Request {
        token: None,
        ..post("/mcp", "", &hello)
    });
    assert_eq!(sent.status, 401);
    let challenge = "www-authenticate: bearer resource_metadata=\"https://haft.example/.well-known/oauth-protected-resource/mcp\", scope=\"all files\"";
    assert!(sent.head.contains(challenge), "{}", sent.head);
    let junk = server.ask(&post("/mcp", "abc", &hello));
    assert_eq!(junk.status, 401);
    assert!(
        junk.head.contains("error=\"invalid_token\""),
        "{}",
        junk.head
    );
    // Its keys cannot be read, so nothing is known about the token.
    let header = "eyJhbGciOiJFUzI1NiIsImtpZCI6IngifQ";
    let unknown = server.ask(&post("/mcp", &format!("{header}.e30.AA"), &hello));
    assert_eq!(unknown.status, 503, "{}", unknown.body);
    // The two tokens of the state folder still work, and other routes are unchanged.
    assert_eq!(server.ask(&post("/mcp", &server.call, &hello)).status, 200);
    let other = server.ask(&get("/api/v1/tools", None));
    assert!(
        other.status == 401 && !other.head.contains("resource_metadata"),
        "{}",
        other.head
    );
    drop(server);
    let ran = lab.run(&["serve", "--http", "127.0.0.1:0", "--no-auth"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("contradict"), "{}", ran.stderr);
    let doctor = lab.run(&["doctor"]);
    assert!(doctor.stdout.contains("status 503"), "{}", doctor.stdout);
}

/// Opens a stream of changes as a client of the stateless era.
fn listen(server: &Server, token: &str) -> TcpStream {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "team", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}}})
    .to_string();
    let head = [
        "POST /mcp HTTP/1.1",
        &format!("host: {}", server.address),
        &format!("authorization: Bearer {token}"),
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: subscriptions/listen",
        "connection: close",
        &format!("content-length: {}", body.len()),
        "",
        &body,
    ]
    .join("\r\n");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).unwrap();
    stream
}

#[test]
fn n5_what_a_removed_token_has_open_ends_and_its_requests_cannot_be_approved() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let (ann, bob) = (token(&lab, &["ann"]), token(&lab, &["bob"]));
    let mut stream = listen(&server, &ann);
    let pending = || {
        let listed = lab.run(&["approvals", "list", "--json"]).json();
        listed.as_array().unwrap().clone()
    };
    let until_pending = |count: usize| {
        let mut all = pending();
        while all.len() != count {
            thread::sleep(Duration::from_millis(20));
            all = pending();
        }
        all
    };
    let decide = |id: &str| lab.run(&["approvals", "approve", id]).code;
    thread::scope(|scope| {
        let calls = [&ann, &bob].map(|token| {
            let arguments = json!({"path": "b.txt", "content": token});
            let params = json!({"name": "write_file", "arguments": arguments});
            let server = &server;
            scope.spawn(move || ask(server, token, "tools/call", &params).status)
        });
        let all = until_pending(2);
        let [anns, bobs] = ["token:ann", "token:bob"].map(|who| {
            let found = all.iter().find(|one| one.to_string().contains(who));
            found.unwrap()["id"].as_str().unwrap().to_owned()
        });
        assert_eq!(lab.run(&["token", "remove", "ann"]).code, 0);
        // Refused at once, in whatever process.
        assert_ne!(decide(&anns), 0);
        // Her stream ends, her request is withdrawn, and her call is answered.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        until_pending(1);
        let shown = lab.run(&["approvals", "show", &anns, "--json"]).stdout;
        assert!(shown.contains("the access token `ann`"), "{shown}");
        let [hers, his] = calls;
        hers.join().unwrap();
        // A new token of her name does not bring it back.
        let again = token(&lab, &["ann"]);
        assert_eq!(ask(&server, &again, "tools/list", &json!({})).status, 200);
        assert_ne!(decide(&anns), 0);
        assert_eq!(decide(&bobs), 0);
        assert_eq!(his.join().unwrap(), 200);
    });
    assert_eq!(fs::read_to_string(lab.work().join("b.txt")).unwrap(), bob);
}
