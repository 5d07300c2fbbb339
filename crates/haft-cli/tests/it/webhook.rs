//! The webhook: it receives every request, signed; its reply decides about that one request, once, and only if it is signed for it.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::approvals::call_in_background;
use crate::harness::Lab;
use crate::serve::{Request, Server, get};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn sign(parts: &[&[u8]]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    for part in parts {
        mac.update(part);
    }
    let mut signature = "sha256=".to_owned();
    for byte in mac.finalize().into_bytes() {
        write!(signature, "{byte:02x}").unwrap();
    }
    signature
}

/// Starts a receiver of posts; each is the signature and the body.
fn receiver() -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut signature, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim();
                if line.is_empty() {
                    break;
                }
                let (name, value) = line.split_once(':').unwrap_or((line, ""));
                match name.to_lowercase().as_str() {
                    "x-haft-signature" => value.trim().clone_into(&mut signature),
                    "content-length" => length = value.trim().parse().unwrap(),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).unwrap();
            if send
                .send((signature, String::from_utf8(body).unwrap()))
                .is_err()
            {
                return;
            }
        }
    });
    (url, receive)
}

struct Scene {
    lab: Lab,
    server: Server,
    told: Receiver<(String, String)>,
}

fn scene(more: &[&str]) -> Scene {
    let (url, told) = receiver();
    let lab = Lab::new();
    lab.file("gone.txt", "x");
    let url = format!("approval.webhook.url={url}");
    let secret = format!("approval.webhook.secret={SECRET}");
    let mut args = vec![
        "-c",
        &url,
        "-c",
        &secret,
        "-c",
        "tools.enable=[\"delete_file\"]",
    ];
    args.extend(more);
    let server = Server::start(&lab, &args);
    Scene { lab, server, told }
}

impl Scene {
    /// Returns the webhook's next request, after checking its signature.
    fn next_request(&self) -> Value {
        let (signature, body) = self.told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(signature, sign(&[body.as_bytes()]));
        serde_json::from_str(&body).unwrap()
    }

    fn reply(&self, request: &Value, body: &str, signature: &str) -> u16 {
        let id = request["id"].as_str().unwrap();
        let path = format!("/api/v1/webhook/{id}");
        assert!(request["reply"].as_str().unwrap().ends_with(&path));
        self.server
            .ask(&Request {
                method: "POST",
                headers: &[("x-haft-signature", signature)],
                body,
                ..get(&path, None)
            })
            .status
    }

    /// Replies with a signature for the request; returns the status.
    fn signed(&self, request: &Value, body: &str) -> u16 {
        let nonce = request["nonce"].as_str().unwrap();
        let signature = sign(&[nonce.as_bytes(), b"\n", body.as_bytes()]);
        self.reply(request, body, &signature)
    }
}

const YES: &str = r#"{"decision":"approve","by":"ann"}"#;

#[test]
fn a_signed_reply_decides_once_and_a_forged_one_never() {
    let scene = scene(&[]);
    let write = |path: &str| json!({"path": path, "content": "x"});
    let asker = call_in_background(&scene.server, "write_file", &write("a.txt"));
    let request = scene.next_request();
    let fact =
        json!({"kind": "diff", "text": "a.txt", "action": "create", "added": 1, "removed": 0});
    assert_eq!(request["fact"], fact);
    let files = json!([{"path": "a.txt", "action": "create", "added": 1, "removed": 0}]);
    assert_eq!(request["files"], files);
    let other = call_in_background(&scene.server, "write_file", &write("b.txt"));
    let second = scene.next_request();
    let nonce = second["nonce"].as_str().unwrap();
    for signature in [
        String::new(),
        "sha256=".to_owned() + &"0".repeat(64),
        // Right, but for the bare body, and for another request.
        sign(&[YES.as_bytes()]),
        sign(&[nonce.as_bytes(), b"\n", YES.as_bytes()]),
    ] {
        assert_eq!(scene.reply(&request, YES, &signature), 401, "{signature}");
    }
    let mut unknown = request.clone();
    unknown["id"] = json!("ap-0");
    unknown["reply"] = json!("/api/v1/webhook/ap-0");
    assert_eq!(scene.signed(&unknown, YES), 401);
    assert_eq!(scene.signed(&request, r#"{"decision":"perhaps"}"#), 400);
    assert!(!scene.lab.work().join("a.txt").exists());
    assert_eq!(scene.signed(&request, YES), 200);
    assert_eq!(asker.join().unwrap().unwrap().json()["status"], "ok");
    assert_eq!(scene.signed(&request, YES), 409, "a replay");
    let no = r#"{"decision":"deny","message":"not by phone"}"#;
    assert_eq!(scene.signed(&second, no), 200);
    let outcome = other.join().unwrap().unwrap().json();
    assert_eq!(outcome["status"], "denied", "{outcome}");
    assert!(
        outcome["summary"]
            .as_str()
            .unwrap()
            .contains("not by phone")
    );
}

#[test]
fn w8_a_signed_reply_is_taken_whatever_token_comes_with_it() {
    for more in [&[][..], &["--no-auth"]] {
        let scene = scene(more);
        for token in [None, Some("call"), Some("operator"), Some("foreign")] {
            let path = format!("{}.txt", token.unwrap_or("none"));
            let arguments = json!({"path": path, "content": "x"});
            let asker = call_in_background(&scene.server, "write_file", &arguments);
            let request = scene.next_request();
            let nonce = request["nonce"].as_str().unwrap();
            let signature = sign(&[nonce.as_bytes(), b"\n", YES.as_bytes()]);
            let token = token.map(|token| match token {
                "call" => scene.server.call.as_str(),
                "operator" => scene.server.operator.as_str(),
                other => other,
            });
            let id = request["id"].as_str().unwrap();
            let reply = scene.server.ask(&Request {
                method: "POST",
                headers: &[("x-haft-signature", &signature)],
                body: YES,
                ..get(&format!("/api/v1/webhook/{id}"), token)
            });
            assert_eq!(reply.status, 200, "{more:?} {token:?}: {}", reply.body);
            assert_eq!(asker.join().unwrap().unwrap().json()["status"], "ok");
        }
    }
}

#[test]
fn a_reply_approves_nothing_critical_and_nothing_that_expired() {
    let scene = scene(&[
        "-c",
        "limits.approval_timeout_s=2",
        "-c",
        "policy.on_approval_timeout=deny",
    ]);
    let asker = call_in_background(&scene.server, "delete_file", &json!({"path": "gone.txt"}));
    let request = scene.next_request();
    assert_eq!(request["risk"], "critical");
    assert_eq!(scene.signed(&request, YES), 403);
    assert_eq!(asker.join().unwrap().unwrap().json()["status"], "denied");
    assert_eq!(
        scene.signed(&request, r#"{"decision":"deny"}"#),
        410,
        "too late"
    );
    assert!(scene.lab.work().join("gone.txt").exists());
}

#[test]
fn a_webhook_without_a_secret_is_a_settings_error() {
    let lab = Lab::new();
    for secret in ["", "short"] {
        let secret = format!("approval.webhook.secret={secret}");
        let url = "approval.webhook.url=http://127.0.0.1:1/";
        let ran = lab.run(&["-c", url, "-c", &secret, "tools"]);
        assert_eq!(ran.code, 5, "{}", ran.stderr);
    }
}
