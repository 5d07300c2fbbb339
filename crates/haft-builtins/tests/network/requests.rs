//! Rules by method and path: each request at their hosts is judged, however the command sends it.

use std::fs;
use std::sync::Arc;

use haft::approval::Decision;
use haft::permission::Effect;
use haft::policy::{Policy, Profile, RuleSet};
use haft_builtins::command::CommandNetwork;
use haft_builtins::proxy::{AllowList, Proxy};
use haft_sandbox::Sandbox;

use crate::ask::{allowing, with_people, yes};
use crate::logins::{RAW, Sources, TOKEN, credential, echo, stdout};
use crate::town::Town;
use crate::{Scene, Seen};
use haft_builtins::proxy::logins::Logins;

const HOST: &str = "api.example.com";
/// The options of a request whose answer is printed with its status.
const CURL: &str = "curl -sS --path-as-is --max-time 20 -w '[%{http_code}]'";

pub(crate) async fn all(sandbox: &Sandbox) {
    if !Scene::new(sandbox, CommandNetwork::default())
        .line("curl --version")
        .await
        .ok
    {
        eprintln!("SKIPPED: no curl in the jail");
        return;
    }
    rules_decide_about_each_request(sandbox).await;
    a_plain_rule_leaves_tls_as_it_is(sandbox).await;
    what_cannot_be_judged_reaches_no_host(sandbox).await;
    a_request_is_asked_about_with_method_path_and_size(sandbox).await;
    a_request_that_changes_something_is_approved_once(sandbox).await;
    a_login_and_its_request_are_one_question(sandbox).await;
    ten_thousand_rules_of_one_host_are_few(sandbox).await;
}

fn rules(allow: &[&str], deny: &[&str]) -> RuleSet {
    RuleSet {
        deny: deny.iter().map(|rule| (*rule).into()).collect(),
        ..allowing(allow)
    }
}

fn scene(sandbox: &Sandbox, town: &Arc<Town>, rules: RuleSet) -> Scene {
    let proxy = Proxy::new(AllowList::default())
        .with_network(Arc::clone(town) as _)
        .with_roots(vec![town.root().clone()]);
    of_proxy(sandbox, proxy, rules)
}

fn of_proxy(sandbox: &Sandbox, proxy: Proxy, rules: RuleSet) -> Scene {
    let policy = Policy::builder(Profile::Trusted).rules(rules);
    Scene::judged(sandbox, CommandNetwork::ask(proxy), policy.build().unwrap())
}

async fn rules_decide_about_each_request(sandbox: &Sandbox) {
    const REPOS: &[&str] = &["Network(api.example.com: GET,HEAD /repos/**)"];
    const NO_DELETE: &[&str] = &["Network(api.example.com: DELETE /**)"];
    const ALL: &[&str] = &["Network(api.example.com)", "Network(api.example.com:8443)"];
    let town = echo().await;
    for (allow, deny, line, codes) in [
        (REPOS, &[][..], "https://HOST/repos/a?x=1", "200"),
        (REPOS, &[], "https://HOST/users", "403"),
        (REPOS, &[], "-X POST -d x https://HOST/repos/a", "403"),
        (REPOS, &[], "-X get https://HOST/repos/a", "403"),
        (REPOS, &[], "-I https://HOST/repos/a", "200"),
        (REPOS, &[], "https://HOST/repos/../users", "403"),
        (REPOS, &[], "https://HOST/repos/%2e%2e/users", "403"),
        (REPOS, &[], "https://HOST/repos/..%2fusers", "403"),
        (REPOS, &[], "'https://HOST/repos/..;/users'", "403"),
        (
            REPOS,
            &[],
            "https://HOST/repos/a%252fb%252fc%2f..%2f..%2fusers https://HOST/repos/a%2fb",
            "403 200",
        ),
        (
            ALL,
            &["Network(*: * /admin/**)"],
            "https://HOST/admin%2f%252e%252e%2f..%2fx https://HOST/a%252fb",
            "403 200",
        ),
        (REPOS, &[], "https://HOST/repos/a/../b", "200"),
        (REPOS, &[], "https://HOST/repos/%zz", "403"),
        (
            REPOS,
            &[],
            "https://HOST/repos/a https://HOST/users https://HOST/repos/b",
            "200 403 200",
        ),
        (
            REPOS,
            &[],
            "--noproxy '*' https://HOST/repos/a https://HOST/users",
            "200 403",
        ),
        (
            REPOS,
            &[],
            "http://HOST/repos/a http://HOST/users",
            "200 403",
        ),
        (
            REPOS,
            &[],
            "--noproxy '*' http://HOST/repos/a --next CURL --noproxy '*' http://HOST/users",
            "200 403",
        ),
        (
            REPOS,
            &[],
            "-H 'X-HTTP-Method-Override: DELETE' https://HOST/repos/a",
            "403",
        ),
        (
            REPOS,
            &[],
            "-H 'X-Original-URL: /users' https://HOST/repos/a",
            "403",
        ),
        (
            REPOS,
            &[],
            "-H 'X_HTTP-Method_Override: DELETE' https://HOST/repos/a",
            "403",
        ),
        (
            REPOS,
            &[],
            "-H 'Forwarded: host=other.example.com' https://HOST/repos/a",
            "403",
        ),
        (
            REPOS,
            &[],
            "-H 'Connection: Upgrade' -H 'Upgrade: websocket' https://HOST/repos/a",
            "403",
        ),
        (
            REPOS,
            &[],
            "-H 'Host: other.example.com' https://HOST/repos/a",
            "403",
        ),
        (REPOS, &[], "--http2 https://HOST/repos/a", "200"),
        (
            ALL,
            NO_DELETE,
            "https://HOST/a -X DELETE --next CURL https://HOST/a",
            "403 200",
        ),
        (ALL, NO_DELETE, "-X delete https://HOST/a", "403"),
        (
            ALL,
            NO_DELETE,
            "-X DELETE https://HOST:8443/a --next CURL https://HOST:8443/a",
            "403 200",
        ),
        (
            ALL,
            NO_DELETE,
            "--noproxy '*' -X DELETE https://HOST:8443/a --next CURL --noproxy '*' https://HOST:8443/a",
            "403 200",
        ),
        (
            ALL,
            &["Network(*: * /admin/**)"],
            "https://HOST/ADMIN https://HOST/a",
            "403 200",
        ),
        (
            &["Network(*.example.com: GET /**?page=*)"],
            &[],
            "https://HOST/a?page=1 https://HOST/a",
            "200 403",
        ),
    ] {
        let scene = scene(sandbox, &town, rules(allow, deny));
        let line = line.replace("HOST", HOST);
        let line = format!("{CURL} {}", line.replace("CURL", &CURL[5..]));
        let seen = scene.line(&line).await;
        let out = stdout(&seen);
        let mut rest = out;
        for code in codes.split(' ') {
            let found = rest.split_once(&format!("[{code}]"));
            let Some((_, after)) = found else {
                panic!("{allow:?} {deny:?}: {line}: no {code} in {}", seen.shown);
            };
            rest = after;
        }
        assert_eq!(
            out.matches("[200]").count(),
            codes.matches("200").count(),
            "{line}: {out}"
        );
    }
    // A server that reads no body would take it for the next request on the connection.
    let bodies = scene(sandbox, &town, rules(REPOS, &[]));
    let seen = bodies
        .line(&format!(
            "{CURL} -X GET -d x https://{HOST}/repos/a https://{HOST}/repos/b; {CURL} https://{HOST}/repos/c"
        ))
        .await;
    let out = stdout(&seen);
    assert_eq!(out.matches("connection: close").count(), 2, "{out}");
    assert_eq!(out.matches("[200]").count(), 3, "{out}");
    // What was judged is what is sent, and the refusal says which request, and because of what.
    let judged = scene(sandbox, &town, rules(REPOS, &[]));
    let seen = judged
        .line(&format!("{CURL} https://{HOST}/repos/a/%2e./b/%63?x=%63; {CURL} https://{HOST}/users; {CURL} -H 'X-Rewrite-URL: /' https://{HOST}/repos/x"))
        .await;
    let out = stdout(&seen);
    assert!(out.contains("get /repos/b/c?x=%63 http/1.1"), "{out}");
    assert!(
        out.contains("connection to api.example.com:443 for GET /users refused"),
        "{out}"
    );
    assert!(
        out.contains("because of the rule Network(api.example.com: GET,HEAD /repos/**)"),
        "{out}"
    );
}

/// A program that knows its host's certificate goes on to do so where a rule allows all of the host.
async fn a_plain_rule_leaves_tls_as_it_is(sandbox: &Sandbox) {
    let town = echo().await;
    for (allow, works) in [
        (
            &[
                "Network(api.example.com)",
                "Network(api.example.com: GET /a)",
            ][..],
            true,
        ),
        (&["Network(api.example.com: GET /a)"], false),
        (
            &[
                "Network(api.example.com)",
                "Network(other.example.com: GET /a)",
            ],
            true,
        ),
    ] {
        let scene = scene(sandbox, &town, rules(allow, &[]));
        scene.trust(&town);
        let seen = scene
            .line(&format!("{CURL} --cacert ca.crt https://{HOST}/a"))
            .await;
        assert_eq!(
            stdout(&seen).contains("[200]"),
            works,
            "{allow:?}: {}",
            seen.shown
        );
        if !works {
            let refused = seen.data["network_refused"][0].as_str().unwrap_or_default();
            assert!(
                refused.contains("does not accept haft's certificate")
                    && refused.contains("to judge each request (the rule Network("),
                "{}",
                seen.shown
            );
        }
    }
}

async fn what_cannot_be_judged_reaches_no_host(sandbox: &Sandbox) {
    let town = echo().await;
    let judged = || {
        scene(
            sandbox,
            &town,
            rules(&["Network(api.example.com: GET,POST /ok/**)"], &[]),
        )
    };
    let (scene, mut reached) = (judged(), 0);
    for (script, says, sent) in [
        (
            "say(b'GET /ok/a HTTP/1.1\\r\\n' + H + E)",
            "get /ok/a http/1.1",
            1,
        ),
        (
            "say(b'TRACE /ok/a HTTP/1.1\\r\\n' + H + E)",
            "TRACE is not sent on",
            0,
        ),
        (
            "say(b'GET https://evil.example/ok/a HTTP/1.1\\r\\n' + H + E)",
            "names a path",
            0,
        ),
        (
            "say(b'CONNECT api.example.com:443 HTTP/1.1\\r\\n' + H + E)",
            "names a path",
            0,
        ),
        ("say(b'OPTIONS * HTTP/1.1\\r\\n' + H + E)", "403", 0),
        (
            "say(b'GET /ok/a HTTP/1.1\\r\\nHost: evil.example\\r\\n' + E)",
            "must name the same host",
            0,
        ),
        (
            "say(b'GET /ok/a HTTP/1.1\\r\\n' + H + H + E)",
            "must name the same host",
            0,
        ),
        (
            "say(b'GET /ok/a HTTP/1.1\\r\\n' + E)",
            "must name the same host",
            0,
        ),
        (
            "say(b'GET /ok/a HTTP/1.1\\r\\n' + H + b'A: b\\r\\n c: d\\r\\n' + E)",
            "400",
            0,
        ),
        (
            "say(b'GET /ok/a HTTP/1.1\\r\\n' + H + b'A : b\\r\\n' + E)",
            "400",
            0,
        ),
        (
            "say(b'GET /ok/' + b'a' * 9000 + b' HTTP/1.1\\r\\n' + H + E)",
            "over 8 KiB",
            0,
        ),
        (
            "say(b'GET /ok/' + b'a' * 1000000 + b' HTTP/1.1\\r\\n' + H + E)",
            "ANSWER",
            0,
        ),
        (
            "say(b'GET /ok/a\\\\..\\\\..\\\\x HTTP/1.1\\r\\n' + H + E)",
            "ANSWER",
            0,
        ),
        ("say(b'GET /ok/\\x00 HTTP/1.1\\r\\n' + H + E)", "400", 0),
        (
            "say(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n', ['h2', 'http/1.1'])",
            "ANSWER http/1.1",
            0,
        ),
        // A request in the body of another is no request.
        (
            "say(b'POST /ok/a HTTP/1.1\\r\\n' + H + b'Content-Length: 29\\r\\nConnection: close\\r\\n\\r\\nGET /no HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')",
            "content-length: 29",
            1,
        ),
        (
            "say(b'POST /ok/a HTTP/1.1\\r\\n' + H + b'Content-Length: 4\\r\\nContent-Length: 40\\r\\n\\r\\nabcdGET /no HTTP/1.1\\r\\n\\r\\n')",
            "400",
            0,
        ),
        (
            "say(b'POST /ok/a HTTP/1.1\\r\\n' + H + b'Transfer-Encoding: x\\r\\n\\r\\n5\\r\\nabcde\\r\\n0\\r\\n\\r\\n')",
            "400",
            0,
        ),
        // The second request on a connection is judged like the first, or never read where the first has two lengths.
        (
            "say(b'POST /ok/a HTTP/1.1\\r\\n' + H + b'Content-Length: 90\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /no HTTP/1.1\\r\\n' + H + E)",
            "connection: close",
            1,
        ),
        (
            "say(b'GET /ok/1 HTTP/1.1\\r\\n' + H + b'\\r\\nGET /no HTTP/1.1\\r\\n' + H + b'\\r\\nGET /ok/2 HTTP/1.1\\r\\n' + H + E)",
            "for GET /no refused",
            2,
        ),
        (
            "say(b'GET /ok/a HTTP/1.1\\r\\n' + H + b'Content-Length: 3\\r\\n' + E + b'abc')",
            "get /ok/a http/1.1",
            1,
        ),
        // A body in chunks is not lost with a GET.
        (
            "say(b'GET /ok/a HTTP/1.1\\r\\n' + H + b'Transfer-Encoding: chunked\\r\\n' + E + b'3\\r\\nabc\\r\\n0\\r\\n\\r\\n')",
            "transfer-encoding: chunked",
            1,
        ),
    ] {
        fs::write(scene.root().join("raw.py"), format!("{RAW}{script}")).unwrap();
        let seen = scene.line("python3 raw.py").await;
        assert!(
            seen.shown.contains(says),
            "{says}: {script}: {}",
            seen.shown
        );
        reached += sent;
        assert_eq!(town.connected().len(), reached, "{script}: {}", seen.shown);
        assert!(
            !stdout(&seen).contains("get /no http/1.1\r\nhost: api"),
            "{script}: {}",
            seen.shown
        );
    }
}

/// Returns the effect that a request is about, and its body.
fn question_of(request: &haft::approval::ApprovalRequest) -> (String, String, Option<String>) {
    let Effect::Connect { url, method, .. } = &request.snapshot.permissions[0].effect else {
        panic!("{request:?}");
    };
    let conditions = request.snapshot.conditions.iter();
    let mut body = conditions.filter(|one| one.name == "body");
    let body = body.next().map(|one| one.value.clone());
    (method.clone().unwrap_or_default(), url.clone(), body)
}

async fn a_request_is_asked_about_with_method_path_and_size(sandbox: &Sandbox) {
    let town = echo().await;
    let allow = &["Network(api.example.com: GET /ok/**)"];
    for (line, method, url, body, rule) in [
        (
            "https://HOST/a?q=1",
            "GET",
            "https://api.example.com/a?q=1",
            "none",
            "Network(api.example.com: GET /a?q=1)",
        ),
        (
            "-d secret https://HOST/a/*b",
            "POST",
            "https://api.example.com/a/*b",
            "6 bytes",
            "Network(api.example.com: POST /a/\\*b)",
        ),
        (
            "-H 'Transfer-Encoding: chunked' -d x https://HOST/a",
            "POST",
            "https://api.example.com/a",
            "of unknown length",
            "Network(api.example.com: POST /a)",
        ),
        (
            "-X DELETE http://HOST/a/",
            "DELETE",
            "http://api.example.com/a/",
            "none",
            "Network(api.example.com: DELETE /a/)",
        ),
    ] {
        let (scene, mut requests) = with_people(scene(sandbox, &town, rules(allow, &[])));
        let line = format!("{CURL} {}", line.replace("HOST", HOST));
        let people = async {
            let pending = requests.next().await.unwrap();
            let request = pending.request();
            let body = Some(body.to_owned());
            assert_eq!(
                question_of(request),
                (method.into(), url.into(), body),
                "{line}"
            );
            assert_eq!(request.suggested, [rule], "{line}");
            let whole = serde_json::to_string(&request.arguments).unwrap();
            assert!(!whole.replace(&line, "").contains("\"secret\""), "{whole}");
            pending.decide(yes());
        };
        let (seen, ()) = tokio::join!(scene.line(&line), people);
        assert!(stdout(&seen).contains("[200]"), "{line}: {}", seen.shown);
    }
    // The rule that is offered covers the request, and nothing beside it.
    let kept = &["Network(api.example.com: POST /a/\\*b)"];
    let scene = scene(sandbox, &town, rules(kept, &[]));
    let seen = scene
        .line(&format!(
            "{CURL} -d x 'https://{HOST}/a/*b' 'https://{HOST}/a/xb'"
        ))
        .await;
    let out = stdout(&seen);
    assert!(out.contains("[200]") && out.contains("[403]"), "{out}");
}

async fn a_request_that_changes_something_is_approved_once(sandbox: &Sandbox) {
    let town = echo().await;
    let allow = &["Network(api.example.com: GET /ok/**)"];
    for (line, expect) in [
        (
            "https://HOST/a https://HOST/a https://HOST/a",
            "200 200 200",
        ),
        ("-d x https://HOST/a https://HOST/a", "200 403"),
    ] {
        let (scene, mut requests) = with_people(scene(sandbox, &town, rules(allow, &[])));
        let line = format!("{CURL} {}", line.replace("HOST", HOST));
        let people = async {
            requests.next().await.unwrap().decide(yes());
            if let Some(second) = requests.next().await {
                assert!(expect.contains("403"), "{line}");
                second.decide(Decision::deny("ann", "test"));
            }
        };
        let seen: Seen = tokio::select! {
            seen = scene.line(&line) => seen,
            () = async { people.await; std::future::pending().await } => unreachable!(),
        };
        let out = stdout(&seen);
        for code in ["200", "403"] {
            let found = out.matches(&format!("[{code}]")).count();
            assert_eq!(found, expect.matches(code).count(), "{line}: {out}");
        }
    }
}

async fn a_login_and_its_request_are_one_question(sandbox: &Sandbox) {
    let (town, sources) = (echo().await, Sources::new());
    let program = sources.program(&format!("echo {TOKEN}"));
    let proxy = Proxy::new(AllowList::default())
        .with_network(Arc::clone(&town) as _)
        .with_roots(vec![town.root().clone()])
        .with_logins(Logins::new(vec![credential(program)]));
    let deny = &["Network(api.example.com: DELETE /**)"];
    let (scene, mut requests) = with_people(of_proxy(sandbox, proxy, rules(&[], deny)));
    let line =
        format!("{CURL} https://{HOST}/a https://{HOST}/a; {CURL} -X DELETE https://{HOST}/a");
    let people = async {
        let pending = requests.next().await.unwrap();
        let request = pending.request();
        assert_eq!(question_of(request).1, "https://api.example.com/a");
        let signs = matches!(request.snapshot.permissions[1].effect, Effect::Sign { .. });
        assert!(signs, "{:?}", request.snapshot.permissions);
        pending.decide(yes());
    };
    let (seen, ()) = tokio::join!(scene.line(&line), people);
    let out = stdout(&seen);
    let stars = "*".repeat(TOKEN.len());
    let login = format!("authorization: bearer {stars}");
    assert_eq!(out.matches(&login).count(), 2, "{}", seen.shown);
    assert!(out.contains("[403]"), "{out}");
}

async fn ten_thousand_rules_of_one_host_are_few(sandbox: &Sandbox) {
    let town = echo().await;
    let rule = |number: usize| format!("Network(api.example.com: GET /p{number}/**)");
    let all: Vec<String> = (0..10_000).map(rule).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let scene = scene(sandbox, &town, rules(&all, &[]));
    let seen = scene
        .line(&format!(
            "{CURL} https://{HOST}/p9999/a https://{HOST}/p10000/a"
        ))
        .await;
    let out = stdout(&seen);
    assert!(
        out.contains("[200]") && out.contains("[403]"),
        "{}",
        seen.shown
    );
}
