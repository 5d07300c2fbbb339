//! The host's logins: haft puts them into requests for their hosts once the user agreed, and the jail never has them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::approval::Decision;
use haft::permission::Effect;
use haft::policy::{Policy, Profile, RuleSet};
use haft_builtins::command::CommandNetwork;
use haft_builtins::proxy::logins::{Credential, LoginForm, Logins, SourceProgram};
use haft_builtins::proxy::{AllowList, Proxy};
use haft_builtins::web::network::Network;
use haft_sandbox::{Places, Sandbox};

use crate::ask::{allowing, next, with_people, yes};
use crate::git_server::GitServer;
use crate::town::{Does, Town, answer, page};
use crate::{Scene, Seen};

/// The value that no command may see, and its base64.
pub(crate) const TOKEN: &str = "tok-8f2a-never-in-a-jail";
const HOST: &str = "api.example.com";

pub(crate) async fn all(sandbox: &Sandbox) {
    if !Scene::new(sandbox, CommandNetwork::default())
        .line("curl --version")
        .await
        .ok
    {
        eprintln!("SKIPPED: no curl in the jail");
        return;
    }
    a_login_is_used_once_the_user_agreed(sandbox).await;
    rules_decide_about_a_login_by_itself(sandbox).await;
    a_login_stays_at_its_host(sandbox).await;
    a_login_that_cannot_be_had_is_a_clear_error(sandbox).await;
    what_is_no_plain_request_gets_no_login(sandbox).await;
    a_program_that_trusts_its_own_list_is_told_why_it_fails(sandbox).await;
    a_listed_host_asks_for_its_login_alone(sandbox).await;
    git_pushes_and_fetches_after_one_request(sandbox).await;
}

/// Where the tests' programs lie that print credentials.
pub(crate) struct Sources(tempfile::TempDir);

impl Sources {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Makes a program of this script.
    pub(crate) fn program(&self, script: &str) -> SourceProgram {
        let path = self.0.path().join(format!("source-{}", script.len()));
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        SourceProgram {
            path: Ok(path),
            argv: vec!["keeper".into(), "print".into()],
            shown: "keeper …".into(),
            variables: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            places: Places::default(),
        }
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }
}

pub(crate) fn credential(program: SourceProgram) -> Credential {
    Credential {
        name: "api".into(),
        host: HOST.into(),
        port: 443,
        form: LoginForm::header("Authorization: Bearer {}").unwrap(),
        program,
    }
}

/// Returns a proxy in this network, whose servers have certificates of this town.
fn proxy(network: Arc<dyn Network>, town: &Town, credential: Credential) -> Proxy {
    Proxy::new(AllowList::default())
        .with_network(network)
        .with_roots(vec![town.root().clone()])
        .with_logins(Logins::new(vec![credential]))
}

fn scene(sandbox: &Sandbox, proxy: Proxy, rules: RuleSet) -> Scene {
    let policy = Policy::builder(Profile::Trusted).rules(rules);
    Scene::judged(sandbox, CommandNetwork::ask(proxy), policy.build().unwrap())
}

/// Returns a town whose servers send back what they get; one of them redirects.
pub(crate) async fn echo() -> Arc<Town> {
    Town::new(|asked| match asked.path.as_str() {
        "/elsewhere" => answer(
            "302 Found",
            "Location: https://other.example.com/there\r\n",
            "",
        ),
        "/cookie" => answer(
            "200 OK",
            "Set-Cookie: session=abc\r\nAlt-Svc: h3\r\n",
            "taken",
        ),
        _ => page("text/plain", asked.text.to_lowercase()),
    })
    .await
}

pub(crate) fn stdout(seen: &Seen) -> &str {
    seen.data["stdout"].as_str().unwrap_or_default()
}

async fn a_login_is_used_once_the_user_agreed(sandbox: &Sandbox) {
    let (town, sources) = (echo().await, Sources::new());
    let program = sources.program(&format!(
        "echo asked >> {}; echo {TOKEN}",
        sources.log().display()
    ));
    let proxy = proxy(Arc::clone(&town) as _, &town, credential(program));
    let (scene, mut requests) = with_people(scene(sandbox, proxy, RuleSet::default()));
    let look = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; tail -n 12 /etc/ssl/certs/ca-certificates.crt; grep -rs 8f2a-nev[e]r /tmp /etc /home .";
    let line = format!(
        "curl -sS -H 'Authorization: Bearer mine' https://{HOST}/a https://{HOST}/b; curl -sS --noproxy '*' https://{HOST}/c; {look}"
    );
    let people = async {
        let pending = next(&mut requests, "api.example.com:443").await;
        let permissions = &pending.request().snapshot.permissions;
        let Effect::Sign { purpose, by } = &permissions[1].effect else {
            panic!("{permissions:?}");
        };
        assert_eq!(purpose, "https:api.example.com");
        assert_eq!(
            by,
            "network.credentials.api: the header authorization with what `keeper …` prints"
        );
        assert_eq!(fs::read_to_string(sources.log()).ok(), None);
        pending.decide(yes());
    };
    let (seen, ()) = tokio::join!(scene.line(&line), people);
    assert!(seen.shown.contains("BEGIN CERTIFICATE"), "{}", seen.shown);
    let out = stdout(&seen);
    for path in ["/a", "/b", "/c"] {
        assert!(
            out.contains(&format!("get {path} http/1.1")),
            "{}",
            seen.shown
        );
    }
    let stars = "*".repeat(TOKEN.len());
    assert_eq!(
        out.matches(&format!("authorization: bearer {stars}\r\n"))
            .count(),
        3,
        "{out}"
    );
    assert!(!out.contains("bearer mine"), "{out}");
    assert!(!seen.shown.contains("8f2a-never"), "{}", seen.shown);
    assert_eq!(fs::read_to_string(sources.log()).unwrap(), "asked\n");
}

async fn rules_decide_about_a_login_by_itself(sandbox: &Sandbox) {
    for (allow, deny, asks, works) in [
        (
            &["Network(api.example.com)", "Sign(https:api.example.com)"][..],
            &[][..],
            false,
            true,
        ),
        (&["Network"], &["Sign(https:*.example.com)"], false, false),
        (&["Network(api.example.com)"], &[], true, true),
        (
            &["Network(api.example.com)", "Sign(https:other.example.com)"],
            &[],
            true,
            true,
        ),
        (&["Network", "connect"], &[], true, true),
    ] {
        let (town, sources) = (echo().await, Sources::new());
        let program = sources.program(&format!("echo {TOKEN}"));
        let proxy = proxy(Arc::clone(&town) as _, &town, credential(program));
        let rules = RuleSet {
            deny: deny.iter().map(|rule| (*rule).into()).collect(),
            ..allowing(allow)
        };
        let (scene, mut requests) = with_people(scene(sandbox, proxy, rules));
        let line = format!("curl -sS https://{HOST}/a");
        let people = async {
            if asks {
                let pending = requests.next().await.unwrap();
                assert_eq!(pending.request().tool.as_str(), "sign", "{allow:?}");
                pending.decide(yes());
            }
        };
        let (seen, ()) = tokio::join!(scene.line(&line), people);
        assert_eq!(
            stdout(&seen).contains("bearer ****"),
            works,
            "{allow:?}: {}",
            seen.shown
        );
        assert_eq!(town.connected().is_empty(), !works, "{allow:?}");
    }
}

async fn a_login_stays_at_its_host(sandbox: &Sandbox) {
    let (town, sources) = (echo().await, Sources::new());
    let program = sources.program(&format!("echo {TOKEN}"));
    let proxy = proxy(Arc::clone(&town) as _, &town, credential(program));
    let rules = allowing(&[
        "Network(*.example.com)",
        "Network(api.example.com:8443)",
        "Sign(https:*)",
    ]);
    let scene = scene(sandbox, proxy, rules);
    scene.trust(&town);
    let line = format!(
        "curl -sSL --cacert ca.crt --proxy-cacert ca.crt https://other.example.com/x http://{HOST}/plain https://{HOST}:8443/port; \
         curl -sSLk https://{HOST}/elsewhere; curl -sSi --suppress-connect-headers https://{HOST}/cookie"
    );
    let seen = scene.line(&line).await;
    let out = stdout(&seen);
    for path in ["/x", "/plain", "/port", "/there"] {
        assert!(
            out.contains(&format!("get {path} http/1.1")),
            "{}",
            seen.shown
        );
    }
    assert!(!out.contains("authorization"), "{out}");
    assert!(
        out.contains("taken") && !out.to_lowercase().contains("cookie:"),
        "{out}"
    );
    assert!(!out.to_lowercase().contains("alt-svc"), "{out}");
}

async fn a_login_that_cannot_be_had_is_a_clear_error(sandbox: &Sandbox) {
    for (script, says) in [
        (
            "true",
            "printed nothing: run it once in a terminal to log in",
        ),
        ("exit 4", "gave no credential: it failed (exit status: 4)"),
        ("yes | head -c 90000; true", "printed 16384 bytes or more"),
        ("echo one two; echo three", "printed more than one line"),
    ] {
        let (town, sources) = (echo().await, Sources::new());
        let proxy = proxy(
            Arc::clone(&town) as _,
            &town,
            credential(sources.program(&format!(
                "echo started >> {}\n{script}",
                sources.log().display()
            ))),
        );
        let scene = scene(
            sandbox,
            proxy,
            allowing(&["Network", "Sign(https:api.example.com)"]),
        );
        let seen = scene
            .line(&format!(
                "for i in 1 2; do curl -sSi --suppress-connect-headers https://{HOST}/a; done"
            ))
            .await;
        let started = fs::read_to_string(sources.log()).unwrap();
        assert_eq!(started, "started\n", "{script}");
        let out = stdout(&seen);
        assert!(
            out.starts_with("HTTP/1.1 502 Bad Gateway"),
            "{}",
            seen.shown
        );
        let says =
            format!("haft: no login for {HOST}: the program of network.credentials.api {says}");
        assert!(out.contains(&says), "{script}: {out}");
        let refused = seen.data["network_refused"][0].as_str().unwrap();
        assert!(refused.starts_with("no login for"), "{refused}");
    }
    let mut program = Sources::new().program("true");
    program.path = Err("is not installed".into());
    let town = echo().await;
    let proxy = proxy(Arc::clone(&town) as _, &town, credential(program));
    let scene = scene(sandbox, proxy, allowing(&["Network", "Sign"]));
    let seen = scene.line(&format!("curl -sS https://{HOST}/a")).await;
    assert!(
        stdout(&seen).contains("the program of network.credentials.api is not installed"),
        "{}",
        seen.shown
    );
}

/// Sends bytes over TLS to the host as haft plays it, and prints the answer.
pub(crate) const RAW: &str = "
import socket, ssl, sys
def say(data, protocols=None):
    context = ssl.create_default_context()
    if protocols: context.set_alpn_protocols(protocols)
    stream = context.wrap_socket(socket.create_connection(('api.example.com', 443), 20), server_hostname='api.example.com')
    stream.settimeout(5)
    out = b''
    try:
        stream.sendall(data)
        while part := stream.recv(65536): out += part
    except OSError as error: out += repr(error).encode()
    print('ANSWER', stream.selected_alpn_protocol(), out.decode('latin1'))
H = b'Host: api.example.com\\r\\n'
E = b'Connection: close\\r\\n\\r\\n'
";

#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn what_is_no_plain_request_gets_no_login(sandbox: &Sandbox) {
    let (town, sources) = (echo().await, Sources::new());
    let program = sources.program(&format!("echo {TOKEN}"));
    let proxy = proxy(Arc::clone(&town) as _, &town, credential(program));
    let scene = scene(
        sandbox,
        proxy,
        allowing(&["Network(api.example.com)", "Sign(https:api.example.com)"]),
    );
    for (script, says) in [
        (
            "say(b'TRACE / HTTP/1.1\\r\\n' + H + E)",
            "TRACE is not sent on",
        ),
        (
            "say(b'GET https://evil.example/ HTTP/1.1\\r\\n' + H + E)",
            "names a path",
        ),
        (
            "say(b'CONNECT evil.example:443 HTTP/1.1\\r\\n' + H + E)",
            "names a path",
        ),
        (
            "say(b'GET / HTTP/1.1\\r\\nHost: evil.example\\r\\n' + E)",
            "must name the same host",
        ),
        (
            "say(b'GET / HTTP/1.1\\r\\n' + H + H + E)",
            "must name the same host",
        ),
        (
            "say(b'GET / HTTP/1.1\\r\\n' + E)",
            "must name the same host",
        ),
        (
            "say(b'GET / HTTP/1.1\\r\\n' + H + b'X: ' + b'x' * 400000 + b'\\r\\n' + E)",
            "message head is too large",
        ),
        (
            "say(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n', ['h2', 'http/1.1'])",
            "ANSWER http/1.1",
        ),
        // A second request hidden behind two lengths reaches no host.
        (
            "say(b'POST /one HTTP/1.1\\r\\n' + H + b'Content-Length: 4\\r\\nContent-Length: 40\\r\\n\\r\\nabcdGET /two HTTP/1.1\\r\\n\\r\\n')",
            "400",
        ),
        (
            "say(b'POST /one HTTP/1.1\\r\\n' + H + b'Transfer-Encoding: x\\r\\n\\r\\n5\\r\\nabcde\\r\\n0\\r\\n\\r\\n')",
            "400",
        ),
    ] {
        let script = format!("{RAW}{script}");
        fs::write(scene.root().join("raw.py"), script).unwrap();
        let before = town.connected().len();
        let seen = scene.line("python3 raw.py").await;
        assert!(seen.shown.contains(says), "{says}: {}", seen.shown);
        assert_eq!(town.connected().len(), before, "{says}");
    }
    // Several requests on one connection each get it; an upgrade is a plain request.
    let script = "say(b'GET /1 HTTP/1.1\\r\\n' + H + b'Upgrade: websocket\\r\\nConnection: upgrade\\r\\n\\r\\nGET /2 HTTP/1.1\\r\\n' + H + b'Connection: close\\r\\n\\r\\n')";
    fs::write(scene.root().join("raw.py"), format!("{RAW}{script}")).unwrap();
    let seen = scene.line("python3 raw.py").await;
    let out = stdout(&seen);
    assert_eq!(
        out.matches("authorization: bearer ****").count(),
        2,
        "{}",
        seen.shown
    );
    assert!(!out.contains("upgrade"), "{out}");
}

async fn a_program_that_trusts_its_own_list_is_told_why_it_fails(sandbox: &Sandbox) {
    let (town, sources) = (echo().await, Sources::new());
    let program = sources.program(&format!("echo {TOKEN}"));
    let proxy = proxy(Arc::clone(&town) as _, &town, credential(program));
    let scene = scene(sandbox, proxy, allowing(&["Network", "Sign"]));
    scene.trust(&town);
    let seen = scene
        .line(&format!("curl -sS --cacert ca.crt https://{HOST}/a"))
        .await;
    assert!(!seen.ok, "{}", seen.shown);
    let refused = seen.data["network_refused"][0].as_str().unwrap_or_default();
    assert!(
        refused.contains("does not accept haft's certificate"),
        "{}",
        seen.shown
    );
    assert!(town.connected().is_empty());
}

async fn a_listed_host_asks_for_its_login_alone(sandbox: &Sandbox) {
    let (town, sources) = (echo().await, Sources::new());
    let listed = Proxy::new(AllowList::read([HOST]).unwrap())
        .with_network(Arc::clone(&town) as _)
        .with_roots(vec![town.root().clone()])
        .with_logins(Logins::new(vec![credential(
            sources.program(&format!("echo {TOKEN}")),
        )]));
    let network = CommandNetwork::allow_list(listed);
    let (scene, mut requests) = with_people(Scene::judged(sandbox, network, Policy::trusted()));
    let people = async {
        let pending = requests.next().await.unwrap();
        assert_eq!(pending.request().tool.as_str(), "sign");
        pending.decide(Decision::deny("ann", "test"));
    };
    let line = format!("curl -sSi --suppress-connect-headers https://{HOST}/a");
    let (seen, ()) = tokio::join!(scene.line(&line), people);
    assert!(stdout(&seen).starts_with("HTTP/1.1 403"), "{}", seen.shown);
    assert!(stdout(&seen).contains("ann said no"), "{}", seen.shown);
    assert!(town.connected().is_empty());
}

/// A script that plays git's helper: it knows one login, and notes what it was asked.
fn helper(log: &Path) -> String {
    format!(
        "test \"$GIT_TERMINAL_PROMPT\" = 0 || exit 1; cat >> {}; printf 'username=ann\\npassword={TOKEN}\\n'",
        log.display()
    )
}

#[expect(
    clippy::too_many_lines,
    reason = "one push and one fetch, step by step"
)]
async fn git_pushes_and_fetches_after_one_request(sandbox: &Sandbox) {
    let (town, sources) = (Town::new(|_| Does::Sends(Vec::new())).await, Sources::new());
    let Some(server) = GitServer::new(&town, &format!("ann:{TOKEN}")).await else {
        eprintln!("SKIPPED: no git http-backend");
        return;
    };
    let credential = Credential {
        name: "git".into(),
        host: "git.example.com".into(),
        port: 443,
        form: LoginForm::Git,
        program: sources.program(&helper(&sources.log())),
    };
    let proxy = proxy(Arc::clone(&server) as _, &town, credential);
    let (scene, mut requests) = with_people(scene(sandbox, proxy, RuleSet::default()));
    let url = "https://git.example.com";
    let commit = "git config user.name a; git config user.email a@b; echo x >> f; git add f; git commit -qm one";
    // A public repository needs no login.
    let script = |text: String| {
        fs::write(scene.root().join("work.sh"), text).unwrap();
        scene.line("sh work.sh")
    };
    let line = script(format!(
        "git clone -q {url}/public.git public && echo CLONED"
    ));
    let people = async {
        let pending = next(&mut requests, "git.example.com:443").await;
        assert_eq!(pending.request().snapshot.permissions.len(), 1);
        pending.decide(yes());
    };
    let (seen, ()) = tokio::join!(line, people);
    assert!(stdout(&seen).contains("CLONED"), "{}", seen.shown);
    // A push asks about the connection and the login in one request.
    let line = script(format!(
        "git init -q mine && cd mine && {commit} && git push -q {url}/private.git HEAD:refs/heads/main && echo PUSHED"
    ));
    let people = async {
        let pending = next(&mut requests, "git.example.com:443").await;
        let permissions = &pending.request().snapshot.permissions;
        assert!(
            matches!(&permissions[1].effect, Effect::Sign { purpose, .. } if purpose == "https:git.example.com")
        );
        pending.decide(yes());
    };
    let (seen, ()) = tokio::join!(line, people);
    assert!(stdout(&seen).contains("PUSHED"), "{}", seen.shown);
    assert!(!seen.shown.contains(TOKEN), "{}", seen.shown);
    let asked = fs::read_to_string(sources.log()).unwrap();
    assert_eq!(
        asked,
        "protocol=https\nhost=git.example.com\npath=private.git\n\n"
    );
    assert!(server.has("private.git", "refs/heads/main"));
    // A fetch of a private repository asks once the host wants to know who asks.
    let line = script(format!(
        "git clone -q {url}/private.git copy && git clone -q {url}/private.git other && cat copy/f && cat copy/.git/config"
    ));
    let people = async {
        next(&mut requests, "git.example.com:443")
            .await
            .decide(yes());
        let pending = requests.next().await.unwrap();
        assert_eq!(pending.request().tool.as_str(), "sign");
        pending.decide(yes());
    };
    let (seen, ()) = tokio::join!(line, people);
    assert!(stdout(&seen).starts_with("x\n"), "{}", seen.shown);
    assert!(!seen.shown.contains(TOKEN), "{}", seen.shown);
    // So does a request with a body, as git-lfs begins with one.
    let line = script(format!(
        "curl -sS -o answer -w '%{{http_code}}' -H 'content-type: application/x-git-upload-pack-request' -d 0000 {url}/private.git/git-upload-pack"
    ));
    let people = async {
        next(&mut requests, "git.example.com:443")
            .await
            .decide(yes());
        requests.next().await.unwrap().decide(yes());
    };
    let (seen, ()) = tokio::join!(line, people);
    assert_eq!(stdout(&seen), "200", "{}", seen.shown);
}
