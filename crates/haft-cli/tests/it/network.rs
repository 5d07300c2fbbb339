//! `sandbox.network`: who may open it, what results and explanations say about it, and what a command encounters.

use serde_json::{Value, json};

use crate::harness::{Lab, Ran};

const ON: [&str; 2] = ["-c", "tools.enable=[\"commands\"]"];
const ASKS: &str = r#"bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; printf "CONNECT pypi.org:443 HTTP/1.1\r\n\r\n" >&3; cat <&3'"#;

/// Runs a command under these settings.
fn run(lab: &Lab, line: &str, settings: &[&str]) -> Ran {
    let args = json!({ "command": line }).to_string();
    let mut words = vec!["call", "run_command", "--args", &args, "--json"];
    words.extend(ON);
    for setting in settings {
        words.extend(["-c", setting]);
    }
    lab.run(&words)
}

/// Returns whether commands run here: other tests require the jail's full strength.
#[expect(
    clippy::print_stderr,
    reason = "what could not be tested here is said aloud"
)]
fn jailed(lab: &Lab) -> bool {
    let ran = run(lab, "true", &["policy.profile=trusted"]);
    if ran.code != 0 {
        eprintln!("SKIPPED: no jail here: {}", ran.stdout);
    }
    ran.code == 0
}

#[test]
fn a_folder_that_is_not_trusted_opens_no_network() {
    let lab = Lab::new();
    lab.file(
        "haft.toml",
        "sandbox.network = \"full\"\nsandbox.allow_hosts = [\"example.com\"]\n",
    );
    for (trust, word) in [(false, "ask"), (true, "full")] {
        let mut words = vec!["policy", "show", "--json"];
        words.extend(trust.then_some("--trust"));
        let ran = lab.run(&words);
        assert_eq!(ran.json()["sandbox"]["network"], word, "{}", ran.stderr);
        let warned = ran.stderr.contains("sandbox.network");
        assert_eq!(warned, !trust, "{}", ran.stderr);
    }
    // It can remove network access that the user's settings give.
    lab.user_settings("sandbox.network = \"full\"\n");
    let ran = lab.run(&["policy", "show", "--json"]);
    assert_eq!(ran.json()["sandbox"]["network"], "full");
    lab.file("haft.toml", "sandbox.network = \"none\"\n");
    let ran = lab.run(&["policy", "show", "--json"]);
    assert_eq!(ran.json()["sandbox"]["network"], "none");
}

#[test]
fn a_network_raises_the_risk_and_is_named_where_a_call_is_explained() {
    let lab = Lab::new();
    for (setting, workspace, trusted) in [
        ("none", "allow", "allow"),
        ("allow-list", "ask", "allow"),
        ("install", "ask", "allow"),
        ("full", "ask", "ask"),
    ] {
        for (profile, verdict) in [("workspace", workspace), ("trusted", trusted)] {
            let network = format!("sandbox.network={setting}");
            let line = [
                "policy",
                "explain",
                "run_command",
                "--args",
                r#"{"command":"ls"}"#,
            ];
            let more = ["-c", &network, "--profile", profile, "--json"];
            let said = lab.run(&[&line[..], &ON, &more].concat()).json();
            assert_eq!(said["verdict"], verdict, "{setting} {profile}: {said}");
            let rule = format!("sandbox.network = {setting}");
            let layers = said["layers"].as_array().unwrap();
            let named = layers.iter().any(|layer| layer["rule"] == rule.as_str());
            assert_eq!(named, setting != "none", "{setting}: {said}");
        }
        let network = format!("sandbox.network={setting}");
        let doctor = lab.run(&["doctor", "--json", "-c", &network]).json();
        let checks = doctor["checks"].as_array().unwrap();
        let check: Vec<&Value> = checks.iter().filter(|c| c["name"] == "network").collect();
        let detail = check[0]["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("{setting}: ")), "{detail}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn settings_that_cannot_hold_are_told() {
    let lab = Lab::new();
    for (settings, say) in [
        (
            &["sandbox.network=allow-list", "sandbox.allow_hosts=[\"*\"]"][..],
            "`*` names no host",
        ),
        (
            &[
                "sandbox.network=allow-list",
                "sandbox.allow_hosts=[\"localhost\"]",
            ],
            "this machine",
        ),
        (
            &[
                "sandbox.network=install",
                "sandbox.allow_hosts=[\"10.0.0.1\"]",
            ],
            "public network",
        ),
        (
            &["sandbox.network=allow-list", "sandbox.backend=passthrough"],
            "needs the jail",
        ),
        (
            &["sandbox.network=install", "sandbox.backend=passthrough"],
            "needs the jail",
        ),
        (&["sandbox.network=open"], "sandbox.network"),
        (
            &["network.credentials.a.command=[\"true\"]"],
            "`network.credentials.a` has no `host`",
        ),
        (
            &["network.credentials.a.host=*.example.com"],
            "`*.example.com` is not a host",
        ),
        (
            &["network.credentials.a.host=example.com"],
            "`network.credentials.a` has no `command` that prints it",
        ),
        (
            &[
                "network.credentials.a.host=example.com",
                "network.credentials.a.command=[\"true\"]",
                "network.credentials.a.header=Authorization",
            ],
            "`Authorization` is not a header with a place for the value",
        ),
        (
            &[
                "network.credentials.a.source=gh",
                "network.credentials.a.command=[\"true\"]",
            ],
            "has a `command`, but its `source` is",
        ),
        (
            &[
                "network.credentials.a.source=gh",
                "network.credentials.b.source=git",
                "network.credentials.b.host=api.github.com",
            ],
            "are both for api.github.com",
        ),
        (
            &["sandbox.sockets=[\"/run/docker.sock\"]"],
            "is one of Docker, Podman, containerd or another runtime of containers: whoever reaches it has the whole machine",
        ),
        (
            &["sandbox.sockets=[\"/run/user/1000/bus\"]"],
            "is one of the system's own services",
        ),
        (
            &["sandbox.sockets=[\"db.sock\"]"],
            "is not an absolute path",
        ),
        (
            &["sandbox.sockets=[\"/etc/x.sock\"]"],
            "lies in a folder that commands see as it is",
        ),
    ] {
        let ran = run(&lab, "true", settings);
        assert_eq!(ran.code, 5, "{settings:?}: {} {}", ran.stdout, ran.stderr);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains(say), "{settings:?}: {told}");
    }
    // The error of a table is at its first line.
    lab.user_settings("[network.credentials.a]\nhost = \"*.example.com\"\n");
    let ran = run(&lab, "true", &[]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("config.toml:2:"), "{told}");
    let own = lab.work().join("db.sock");
    lab.user_settings(&format!(
        "sandbox.sockets = [{own:?}, \"/run/nothing/here.sock\"]\n"
    ));
    let ran = run(&lab, "true", &[]);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        told.contains("lies in a folder that commands may change")
            && told.contains("config.toml:1:"),
        "{told}"
    );
}

#[test]
fn a_refused_host_is_told_with_the_setting_that_would_allow_it() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let listed = [
        "policy.profile=trusted",
        "sandbox.network=allow-list",
        "sandbox.allow_hosts=[\"example.com\"]",
    ];
    let said = run(&lab, ASKS, &listed).json();
    let refusal = "pypi.org:443 is not one of the hosts that commands may reach here";
    assert_eq!(said["data"]["network_refused"], json!([refusal]), "{said}");
    let out = said["data"]["stdout"].as_str().unwrap();
    assert!(
        out.starts_with("HTTP/1.1 403 Forbidden\r\n") && out.contains(refusal),
        "{out}"
    );
    let strength = said["strength"].as_str().unwrap();
    assert!(strength.ends_with(", network allow-list"), "{strength}");
    let none = ["policy.profile=trusted", "sandbox.network=none"];
    let said = run(&lab, ASKS, &none).json();
    assert_eq!(said["status"], "error", "{said}");
    assert!(said["data"].get("network_refused").is_none(), "{said}");
    // If a user would be asked but none is present, it is refused at once.
    let said = run(&lab, ASKS, &["policy.profile=trusted"]).json();
    let refused = said["data"]["network_refused"][0].as_str().unwrap();
    assert!(
        refused.contains("connection to pypi.org:443 refused"),
        "{said}"
    );
    let out = said["data"]["stdout"].as_str().unwrap();
    assert!(out.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{out}");
}

#[test]
fn packages_are_installed_apart_from_the_workspace_and_seen_in_it() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    lab.file("secret.txt", "IN-THE-WORKSPACE");
    let install = ["policy.profile=trusted", "sandbox.network=install"];
    let secret = lab.work().join("secret.txt").display().to_string();
    let said = run(&lab, &format!("cat {secret}"), &install).json();
    assert_eq!(said["status"], "error");
    assert!(!said.to_string().contains("IN-THE-WORKSPACE"), "{said}");
    let script = "import os; os.makedirs('python/bin'); open('python/bin/mine', 'w').write('#!/bin/sh\\necho mine\\n'); os.chmod('python/bin/mine', 0o755)";
    let line = format!("python3 -c \"{script}\"");
    let said = run(&lab, &line, &install).json();
    assert_eq!(said["status"], "ok", "{said}");
    let said = run(&lab, "mine", &["policy.profile=trusted"]).json();
    assert_eq!(said["data"]["stdout"], "mine\n", "{said}");
    let other = Lab::new();
    assert_eq!(
        run(&other, "mine", &["policy.profile=trusted"]).json()["status"],
        "error"
    );
}

/// Starts a server on this machine that answers every request with this text; counts the requests.
fn server(answer: &'static str) -> (u16, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
    let count = std::sync::Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, asked)
}

#[test]
fn use_11_a_rule_that_names_host_and_port_reaches_a_server_of_this_machine() {
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    let (port, asked) = server(page);
    let (other, other_asked) = server(page);
    let lab = Lab::new();
    let fetch = |at: u16, rules: &[String]| {
        let args = json!({ "url": format!("http://127.0.0.1:{at}/") }).to_string();
        let mut words = vec!["call", "fetch_url", "--args", &args, "--json"];
        for rule in rules {
            words.extend(["-c", rule]);
        }
        lab.run(&words)
    };
    let allow = [format!(
        "policy.allow=[\"WebFetch(domain:127.0.0.1:{port})\"]"
    )];
    let ask = [format!(
        "policy.ask=[\"WebFetch(domain:127.0.0.1:{port})\"]"
    )];
    assert_eq!(fetch(port, &[]).code, 3);
    assert_eq!(
        fetch(port, &["policy.allow=[\"WebFetch\"]".to_owned()]).code,
        3
    );
    assert_eq!(fetch(other, &allow).code, 3);
    assert_eq!(fetch(port, &ask).code, 4);
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 0);
    let ran = fetch(port, &allow);
    assert!(
        ran.code == 0 && ran.stdout.contains("hello"),
        "{}",
        ran.stdout
    );
    // A redirect leads to no other address, whatever its name.
    let location = format!("http://127.0.0.1:{other}/");
    let answer = format!(
        "HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let (from, _) = server(Box::leak(answer.into_boxed_str()));
    let both = [format!(
        "policy.allow=[\"WebFetch(domain:127.0.0.1:{from})\", \"WebFetch(domain:127.0.0.1:{other})\"]"
    )];
    let ran = fetch(from, &both);
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(other_asked.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[test]
fn commands_trust_the_authorities_that_the_machine_trusts() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let own = lab.work().parent().unwrap().join("authorities.pem");
    std::fs::write(&own, "authorities").unwrap();
    let args = json!({ "command": "cat \"$SSL_CERT_FILE\" \"$NODE_EXTRA_CA_CERTS\"" }).to_string();
    let words = [
        "call",
        "run_command",
        "--args",
        &args,
        "--json",
        "--profile",
        "trusted",
    ];
    let mut command = lab.command(&words);
    command.env("SSL_CERT_FILE", &own);
    let said = crate::harness::ended(command.spawn().unwrap()).json();
    assert_eq!(said["data"]["stdout"], "authoritiesauthorities", "{said}");
}

#[test]
fn listed_hosts_are_allow_rules_where_each_connection_is_judged() {
    let lab = Lab::new();
    for (network, listed) in [("ask", true), ("allow-list", false), ("none", false)] {
        let network = format!("sandbox.network={network}");
        let hosts = "sandbox.allow_hosts=[\"example.com\",\"*.example.org\"]";
        let shown = lab.run(&["policy", "show", "--json", "-c", &network, "-c", hosts]);
        for rule in ["Network(example.com)", "Network(*.example.org)"] {
            assert_eq!(
                shown.stdout.contains(rule),
                listed,
                "{network}: {}",
                shown.stdout
            );
        }
    }
}

#[test]
fn a_request_is_explained_and_a_rule_about_requests_checked() {
    let lab = Lab::new();
    let allow = r#"policy.allow=["Network(api.github.com: GET /repos/**)"]"#;
    let deny = r#"policy.deny=["Network(api.github.com: DELETE /**)"]"#;
    for (method, target, verdict) in [
        ("GET", "/repos/a/b", "allow"),
        ("GET", "/repos/../user", "ask"),
        ("POST", "/repos/a/b", "ask"),
        ("DELETE", "/repos/a/b", "deny"),
        ("delete", "/repos/a/b", "deny"),
    ] {
        let request = json!({"method": method, "scheme": "https", "target": target});
        let args = json!({"host": "api.github.com", "port": 443, "request": request}).to_string();
        let explain = ["policy", "explain", "connect", "--args", &args, "--json"];
        let words = [&explain[..], &ON, &["-c", allow, "-c", deny]].concat();
        let ran = lab.run(&words);
        assert_eq!(
            ran.json()["verdict"],
            verdict,
            "{method} {target}: {}",
            ran.stdout
        );
    }
    for (setting, says) in [
        (
            r#"policy.allow=["Network(api.github.com: GET repos)"]"#,
            "does not begin with a slash",
        ),
        (
            r#"policy.deny=["Network(api.github.com: /x)"]"#,
            "is not a method and a path",
        ),
    ] {
        let ran = lab.run(&["policy", "check", "-c", setting]);
        assert_ne!(ran.code, 0, "{setting}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(says), "{setting}: {said}");
    }
}
