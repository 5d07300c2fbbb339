//! How `haft serve` is reached: other machines connect over TLS or through a proxy, under names in the settings.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use crate::harness::Lab;
use crate::serve::{Request, Server, get};

#[test]
fn u12_an_address_that_other_machines_reach_needs_encryption_and_names() {
    let lab = Lab::new();
    let cert = Certificate::of(&lab);
    let (tls_cert, tls_key) = (cert.cert_setting(), cert.key_setting());
    refuse_to_start(
        &lab,
        &[
            (&["--http", "0.0.0.0:0"], 5, "serve.tls.cert"),
            (&["-c", "serve.http=0.0.0.0:0"], 5, "serve.tls.cert"),
            (&["--http", "[::]:0"], 5, "serve.tls.cert"),
            (
                &[
                    "--http",
                    "0.0.0.0:0",
                    "-c",
                    "serve.hosts=[\"haft.example\"]",
                ],
                5,
                "serve.tls.cert",
            ),
            (
                &["--http", "0.0.0.0:0", "-c", &tls_cert, "-c", &tls_key],
                5,
                "serve.hosts",
            ),
        ],
    );
}

#[test]
fn u12_settings_that_would_open_it_to_others_or_to_nobody_are_refused() {
    let lab = Lab::new();
    let cert = Certificate::of(&lab);
    let (tls_cert, tls_key) = (cert.cert_setting(), cert.key_setting());
    refuse_to_start(
        &lab,
        &[
            // haft cannot know where the proxy is.
            (&["-c", "serve.behind_proxy=true"], 5, "serve.hosts"),
            (&["-c", "serve.hosts=[\"*\"]"], 5, "`*` is not a host"),
            (
                &["-c", "serve.hosts=[\"https://haft.example/\"]"],
                5,
                "is not a host",
            ),
            (
                &["-c", "serve.hosts=[\"0.0.0.0\"]"],
                5,
                "`0.0.0.0` is not a host",
            ),
            (&["-c", &tls_cert], 5, "only one of cert and key"),
            (
                &["-c", &tls_key, "-c", "serve.tls.cert=/nowhere.pem"],
                5,
                "/nowhere.pem",
            ),
            (&["--no-auth", "--http", "0.0.0.0:0"], 2, "loopback"),
            (
                &[
                    "--no-auth",
                    "-c",
                    "serve.behind_proxy=true",
                    "-c",
                    "serve.hosts=[\"haft.example\"]",
                ],
                2,
                "without a proxy",
            ),
        ],
    );
}

/// Checks rows of arguments of `haft serve`, its exit code, and its message.
fn refuse_to_start(lab: &Lab, rows: &[(&[&str], i32, &str)]) {
    for (args, code, says) in rows {
        let mut all = vec!["serve"];
        if !args.iter().any(|arg| arg.ends_with(":0")) {
            all.extend(["--http", "127.0.0.1:0"]);
        }
        all.extend(*args);
        let ran = lab.run(&all);
        assert_eq!(ran.code, *code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("listening"), "{args:?}");
    }
}

#[test]
fn u12_behind_a_proxy_haft_is_reached_under_the_proxys_name() {
    let lab = Lab::new();
    let proxy = "serve.behind_proxy=true";
    let args = ["-c", proxy, "-c", "serve.hosts=[\"haft.example\"]"];
    let server = Server::start(&lab, &args);
    assert_eq!(server.ready()["mcp"], "https://haft.example/mcp");
    assert_eq!(server.ready()["console"], "https://haft.example/");
    for (host, origin, status) in [
        ("haft.example", "https://haft.example", 200),
        ("haft.example:443", "https://haft.example", 200),
        ("HAFT.example", "https://haft.example:443", 200),
        ("haft.example", "http://haft.example", 403),
        ("haft.example", "https://evil.example", 403),
        ("evil.example", "https://evil.example", 403),
        ("sub.haft.example", "https://sub.haft.example", 403),
    ] {
        let reply = server.ask(&Request {
            host: Some(host),
            headers: &[("origin", origin)],
            ..get("/api/v1/runs", Some(&server.operator))
        });
        assert_eq!(reply.status, status, "{host} {origin}: {}", reply.body);
    }
}

#[test]
fn u12_over_tls_a_console_session_is_a_cookie_of_this_host_alone() {
    let lab = Lab::new();
    let cert = Certificate::of(&lab);
    let (tls_cert, tls_key) = (cert.cert_setting(), cert.key_setting());
    let args = [
        "-c",
        &tls_cert,
        "-c",
        &tls_key,
        "-c",
        "serve.hosts=[\"localhost\"]",
    ];
    let server = Server::start(&lab, &args);
    let port = server.address.rsplit(':').next().unwrap();
    let url = format!("https://localhost:{port}");
    assert_eq!(server.ready()["mcp"], format!("{url}/mcp"));

    let (head, session) = cert.log_in(&server, &url);
    let cookie = head.lines().find(|line| line.starts_with("set-cookie: "));
    let cookie = cookie.unwrap_or_else(|| panic!("{head}"));
    let wanted = format!("set-cookie: __Host-haft_session_{port}=");
    assert!(cookie.starts_with(&wanted), "{cookie}");
    for part in ["; Path=/;", "; HttpOnly", "; SameSite=Strict", "; Secure"] {
        assert!(cookie.contains(part), "{part}: {cookie}");
    }
    let pair = cookie["set-cookie: ".len()..].split(';').next().unwrap();
    let secret: Value = serde_json::from_str(&session).unwrap();
    let secret = secret["secret"].as_str().unwrap();
    for (headers, status) in [
        (
            format!("cookie: {pair}\r\nx-haft-console: {secret}\r\n"),
            "200",
        ),
        (format!("cookie: {pair}\r\n"), "401"),
        (format!("x-haft-console: {secret}\r\n"), "401"),
        // The cookie name for plain loopback is not this server's.
        (
            format!(
                "cookie: {}\r\nx-haft-console: {secret}\r\n",
                &pair["__Host-".len()..]
            ),
            "401",
        ),
    ] {
        let (head, _) = cert.ask(&server, "GET /api/v1/runs", &headers, "");
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}")),
            "{headers}: {head}"
        );
    }
    // It does not accept plain HTTP.
    let mut plain = TcpStream::connect(&server.address).unwrap();
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut said = Vec::new();
    let _cut = plain.read_to_end(&mut said);
    assert!(
        !said.starts_with(b"HTTP"),
        "{}",
        String::from_utf8_lossy(&said)
    );
}

#[test]
fn u12_no_tool_reads_the_key_of_the_certificate() {
    let lab = Lab::new();
    let cert = Certificate::of(&lab);
    std::fs::copy(&cert.key, lab.work().join("key.pem")).unwrap();
    let (tls_cert, key) = (cert.cert_setting(), "serve.tls.key=key.pem");
    // Its name alone would only need approval.
    let args = [
        "call",
        "read_file",
        "--args",
        r#"{"path":"key.pem"}"#,
        "-c",
        "policy.secret_files=allow",
    ];
    let read = lab.run(&args);
    assert_eq!(read.code, 0, "{}", read.stderr);
    let mut configured = args.to_vec();
    configured.extend(["-c", &tls_cert, "-c", key]);
    let refused = lab.run(&configured);
    assert_ne!(refused.code, 0);
    assert!(
        !refused.stdout.contains("PRIVATE KEY"),
        "{}",
        refused.stdout
    );
}

/// A certificate for `localhost`, in files, with a client that trusts it.
struct Certificate {
    cert: PathBuf,
    key: PathBuf,
    trusting: Arc<ClientConfig>,
}

impl Certificate {
    fn of(lab: &Lab) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = lab.work().parent().unwrap().join("tls");
        std::fs::create_dir_all(&folder).unwrap();
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::clone(made.cert.der())).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusting = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            cert,
            key,
            trusting: Arc::new(trusting),
        }
    }

    fn cert_setting(&self) -> String {
        format!("serve.tls.cert={}", self.cert.display())
    }

    fn key_setting(&self) -> String {
        format!("serve.tls.key={}", self.key.display())
    }

    /// Logs in with a fresh link; returns the head and the body of the answer.
    fn log_in(&self, server: &Server, url: &str) -> (String, String) {
        let operator = format!("authorization: bearer {}\r\n", server.operator);
        let (_, made) = self.ask(server, "POST /api/v1/login-link", &operator, "");
        let made: Value = serde_json::from_str(&made).unwrap();
        let (base, code) = made["url"]
            .as_str()
            .unwrap()
            .split_once("/#login=")
            .unwrap();
        assert_eq!(base, url);
        let login = format!("{{\"code\":\"{code}\"}}");
        let origin = format!("origin: {url}\r\ncontent-type: application/json\r\n");
        self.ask(server, "POST /api/v1/login", &origin, &login)
    }

    /// Sends one request over TLS; returns the head and the body of the answer.
    fn ask(&self, server: &Server, line: &str, headers: &str, body: &str) -> (String, String) {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.trusting), name).unwrap();
        let stream = TcpStream::connect(&server.address).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        let port = server.address.rsplit(':').next().unwrap();
        let length = body.len();
        write!(
            stream,
            "{line} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }
}
