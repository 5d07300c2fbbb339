//! `haft call fetch_url`: every trick is refused before a connection, and one page is read on the test's own network.

use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::process::Command;

use crate::harness::{Lab, ended};

/// Starts a server on loopback that would accept connections but must never get one.
fn trap() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Returns notations of addresses that must not be reached, and what the refusal must name.
fn tricks(port: u16) -> Vec<(String, &'static str)> {
    vec![
        (format!("http://127.0.0.1:{port}/"), "127.0.0.1"),
        (format!("http://localhost:{port}/"), "localhost"),
        (format!("http://localhost.:{port}/"), "localhost"),
        (format!("http://x.localhost:{port}/"), "x.localhost"),
        (format!("http://0x7f.1:{port}/"), "127.0.0.1"),
        (format!("http://2130706433:{port}/"), "127.0.0.1"),
        (format!("http://017700000001:{port}/"), "127.0.0.1"),
        (format!("http://127.1:{port}/"), "127.0.0.1"),
        (format!("http://①②⑦.0.0.1:{port}/"), "127.0.0.1"),
        (
            format!("http://%6c%6f%63%61%6c%68%6f%73%74:{port}/"),
            "localhost",
        ),
        (format!("http://[::1]:{port}/"), "[::1]"),
        (
            format!("http://[::ffff:127.0.0.1]:{port}/"),
            "[::ffff:7f00:1]",
        ),
        (format!("http://[::127.0.0.1]:{port}/"), "[::7f00:1]"),
        (
            format!("http://[64:ff9b::7f00:1]:{port}/"),
            "[64:ff9b::7f00:1]",
        ),
        (format!("http://[2002:7f00:1::]:{port}/"), "[2002:7f00:1::]"),
        (format!("http://0.0.0.0:{port}/"), "0.0.0.0"),
        (format!("http://example.com@127.0.0.1:{port}/"), "user name"),
        (
            format!("http://127.0.0.1:{port}#@example.com/"),
            "127.0.0.1",
        ),
        (format!("http:\\\\127.0.0.1:{port}\\"), "backslash"),
        (format!("http:///127.0.0.1:{port}/"), "no host"),
        (format!(" http://127.0.0.1:{port}/"), "blank"),
        (
            "http://169.254.169.254/latest/".to_owned(),
            "169.254.169.254",
        ),
        (
            "http://metadata.google.internal/".to_owned(),
            "metadata.google.internal",
        ),
        ("http://router/".to_owned(), "router"),
        ("http://example.com:22/".to_owned(), "port 22"),
        ("file:///etc/passwd".to_owned(), "not file"),
        ("gopher://example.com:70/_x".to_owned(), "not gopher"),
    ]
}

#[test]
fn every_trick_is_denied_with_the_address_named_and_no_connection_made() {
    let (listener, port) = trap();
    let lab = Lab::new();
    // A rule and a profile that would allow it, if there were no guard.
    let allow = ["--profile", "trusted", "-c", "policy.allow=[\"WebFetch\"]"];
    for (url, named) in tricks(port) {
        let args = serde_json::json!({ "url": url }).to_string();
        let line = ["call", "fetch_url", "--args", &args, "--json"];
        let ran = lab.run(&[&line[..], &allow[..]].concat());
        let said = ran.json();
        assert_eq!(ran.code, 3, "{url}: {said}");
        assert_eq!(said["status"], "denied", "{url}: {said}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(message.contains(named), "{url}: {message}");
        assert!(message.contains("no connection"), "{url}: {message}");
    }
    let taken = listener.accept().map(|_| ()).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::WouldBlock, "a connection was made");
}

#[test]
fn a_search_service_is_there_once_it_is_configured() {
    let lab = Lab::new();
    let absent = lab.run(&[
        "call",
        "web_search",
        "--args",
        "{\"query\":\"x\"}",
        "--json",
    ]);
    assert_eq!(absent.code, 2);
    assert!(
        absent.stderr.contains("web.search.provider"),
        "{}",
        absent.stderr
    );
    assert!(!lab.run(&["tools"]).stdout.contains("web_search"));
    let wrong = lab.run(&["tools", "-c", "web.search.provider=searxng"]);
    assert_eq!(wrong.code, 5);
    assert!(wrong.stderr.contains("web.search.url"), "{}", wrong.stderr);
    lab.user_settings("[web.search]\nprovider = \"searxng\"\nurl = \"http://127.0.0.1:8888\"\n");
    assert!(lab.run(&["tools"]).stdout.contains("web_search"));
}

/// A page, a redirect to it, robots.txt, and a PDF file with one line.
const SERVER: &str = r#"
import http.server, sys
def pdf():
    body = b"BT /F1 24 Tf 72 700 Td (Words of a file) Tj ET"
    parts = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n" % len(body) + body + b"\nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"]
    out, places = b"%PDF-1.4\n", []
    for n, part in enumerate(parts):
        places.append(len(out))
        out += b"%d 0 obj\n" % (n + 1) + part + b"\nendobj\n"
    xref = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % p for p in places)
    return out + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % xref
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        pages = {"/robots.txt": ("text/plain", b"User-agent: haft\nDisallow: /private\n"), "/file.pdf": ("application/pdf", pdf()),
            "/flood": ("text/html", b"<title>Flood</title><body" + b"".join(b" a%d" % n for n in range(300000)) + b"><p>After <i>it</i>."),
            "/page": ("text/html", b"<title>A page</title><body><h1>Head</h1><p>Some <b>bold</b> words.</p>")}
        if self.path == "/moved":
            self.send_response(302); self.send_header("Location", "/page"); self.send_header("Content-Length", "0"); self.end_headers(); return
        kind, body = pages.get(self.path, ("text/plain", b"nothing here"))
        self.send_response(200 if self.path in pages else 404)
        self.send_header("Content-Type", kind); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *args): pass
server = http.server.HTTPServer(("93.184.216.34", 80), Handler)
print("ready", flush=True)
server.serve_forever()
"#;

/// Makes calls in their own network, in which a public address is this machine's.
const SCRIPT: &str = r#"
ip link set lo up && ip addr add 93.184.216.34/32 dev lo || exit 77
python3 server.py > ready & server=$!
for i in $(seq 100); do grep -q ready ready && break; sleep 0.1; done
call() { "$HAFT" call fetch_url --args "{\"url\":\"http://93.184.216.34/$1\"}" --json --profile trusted -c 'policy.allow=["WebFetch"]'; echo "code $?"; }
call moved; call private; call absent; call file.pdf; call flood
kill $server
"#;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test makes a network of its own around the binary"
)]
fn w3_pages_of_the_public_network_are_read_by_their_rules_and_in_the_jail() {
    let possible = Command::new("unshare").args(["-rn", "ip", "link"]).output();
    let python = Command::new("python3").arg("--version").output();
    if !possible.is_ok_and(|ran| ran.status.success()) || python.is_err() {
        eprintln!("SKIPPED: no network namespaces, no ip or no python3 here");
        return;
    }
    let lab = Lab::new();
    lab.file("server.py", SERVER);
    let like = lab.command(&[]);
    let mut command = Command::new("unshare");
    command
        .args(["-rn", "sh", "-c", SCRIPT])
        .current_dir(lab.work())
        .env_clear()
        .envs(like.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .env("HAFT", like.get_program())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().flush().unwrap();
    let ran = ended(child);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let said = format!("{}\n{}", ran.stdout, ran.stderr);
    let text = ran.stdout.clone();
    let parts: Vec<serde_json::Value> = text
        .split("code ")
        .filter_map(|part| {
            serde_json::from_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '\n'))
                .ok()
        })
        .collect();
    let codes: Vec<&str> = lines
        .iter()
        .filter_map(|l| l.strip_prefix("code "))
        .collect();
    assert_eq!(codes, ["0", "1", "1", "0", "0"], "{said}");
    let data = &parts[0]["data"];
    assert_eq!(data["final_url"], "http://93.184.216.34/page", "{said}");
    assert_eq!(data["title"], "A page");
    let shown = parts[0]["content"][0]["text"].as_str().unwrap();
    assert!(shown.contains("Some **bold** words."), "{shown}");
    let forbidden = parts[1]["error"]["message"].as_str().unwrap();
    assert!(forbidden.contains("Disallow: /private"), "{forbidden}");
    assert_eq!(parts[2]["data"]["status"], 404);
    let pdf = parts[3]["content"][0]["text"].as_str().unwrap();
    assert!(pdf.contains("Words of a file"), "{said}");
    let flood = parts[4]["content"][0]["text"].as_str().unwrap();
    assert!(flood.contains("After *it*."), "{said}");
}
