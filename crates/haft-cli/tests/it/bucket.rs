//! `artifacts.url = s3://…`: large results in a bucket of a real S3 server, read back by other processes.

use std::process::Command;

use serde_json::json;

use crate::bucket_server::Server;
use crate::harness::{Lab, Ran, ended};

const URL: &str = "s3://results/team";

fn settings(lab: &Lab) {
    lab.user_settings(&format!(
        "[artifacts]\nurl = \"{URL}\"\n[limits]\ninline_tokens = 50\n"
    ));
}

fn with(mut command: Command, variables: &[(&'static str, String)]) -> Ran {
    for (name, value) in variables {
        command.env(name, value);
    }
    ended(command.spawn().unwrap())
}

#[test]
fn a_large_result_in_a_bucket_is_read_back_by_another_process_and_another_home() {
    let Some(server) = Server::start() else {
        return;
    };
    server.tell(&json!({"do": "bucket", "bucket": "results"}));
    let variables = server.variables();
    let lab = Lab::new();
    settings(&lab);
    let text = "0123456789abcdef".repeat(2000);
    lab.file("big.txt", &text);
    let run = |lab: &Lab, args: &[&str]| with(lab.command(args), &variables);
    let args = r#"{"path":"big.txt"}"#;
    let outcome = run(&lab, &["call", "read_file", "--args", args, "--json"]).json();
    let reference = outcome["artifacts"][0]["ref"].as_str().unwrap();
    assert!(!lab.home().join("artifacts").exists(), "nothing beside it");
    let elsewhere = Lab::new();
    settings(&elsewhere);
    for lab in [&lab, &elsewhere] {
        let listed = run(lab, &["artifacts", "list", "--json"]).json();
        let mut kept = listed.as_array().unwrap().iter();
        let entry = kept.find(|entry| entry["ref"] == reference);
        assert_eq!(entry.unwrap()["run"], outcome["run"], "{listed}");
        let whole = run(lab, &["artifacts", "get", reference]).stdout;
        assert!(whole.contains(&text[..1000]));
        let part = run(lab, &["artifacts", "get", reference, "--range", "2-5"]);
        assert_eq!(part.stdout, whole[2..6]);
    }
    // A call of another run has no access to it, as with every store.
    let args = json!({"ref": reference}).to_string();
    let foreign = run(&lab, &["call", "read_artifact", "--args", &args, "--json"]);
    assert_ne!(foreign.code, 0, "{}", foreign.stdout);
    // One chain is one run: a call can read what an earlier one stored.
    let code = "whole = tools.read_file(path='big.txt')\n\
                part = tools.read_artifact(ref=whole.artifacts[0].ref, offset=0, limit=64)\n\
                return {'read': '0123456789' in str(part)}";
    let chain = json!({"code": code}).to_string();
    let chained = run(&lab, &["call", "tool_chain", "--args", &chain, "--json"]).json();
    assert_eq!(chained["data"], json!({"read": true}), "{chained}");
}

#[test]
fn a_bucket_is_reached_by_tls_at_a_server_whose_certificate_is_known() {
    let Some(server) = Server::start() else {
        return;
    };
    let lab = Lab::new();
    settings(&lab);
    lab.file("big.txt", &"0123456789abcdef".repeat(200));
    server.tell(&json!({"do": "bucket", "bucket": "results"}));
    let encrypted = server.tell(&json!({"do": "encrypt", "folder": lab.home()}));
    let certificate = encrypted["certificate"].as_str().unwrap();
    let mut variables = vec![
        ("AWS_ACCESS_KEY_ID", "id".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "hush-hush".to_owned()),
        (
            "AWS_ENDPOINT_URL",
            format!("https://localhost:{}", encrypted["port"]),
        ),
    ];
    let list = ["artifacts", "list", "--json"];
    let unknown = with(lab.command(&list), &variables);
    assert_eq!(unknown.code, 1, "{}", unknown.stdout);
    assert!(unknown.stderr.contains("certificate"), "{}", unknown.stderr);
    variables.push(("SSL_CERT_FILE", certificate.to_owned()));
    let args = ["call", "read_file", "--args", r#"{"path":"big.txt"}"#];
    let ran = with(lab.command(&args), &variables);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let listed = with(lab.command(&list), &variables).json();
    assert!(!listed.as_array().unwrap().is_empty());
}

#[test]
fn what_names_no_store_is_refused_at_the_start_in_words() {
    let keys = [
        ("AWS_ACCESS_KEY_ID", "id".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "hush-hush".to_owned()),
    ];
    let lab = Lab::new();
    for (url, variables, expect) in [
        ("s3://", &keys[..], "the bucket's name has 3 to 63"),
        ("s3:///x", &keys, "the bucket's name has 3 to 63"),
        (
            "s3://id:hush-hush@results/x",
            &keys,
            "credentials do not belong in it",
        ),
        ("s3://results", &keys[1..], "set AWS_ACCESS_KEY_ID"),
        ("http://host/results", &keys, "it names no known store"),
        ("file://relative", &keys, "it names no known store"),
        ("nonsense", &keys, "it names no known store"),
    ] {
        lab.user_settings(&format!("[artifacts]\nurl = \"{url}\"\n"));
        let ran = with(lab.command(&["artifacts", "list"]), variables);
        assert_eq!(ran.code, 5, "{url}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("`artifacts.url`") && ran.stderr.contains(expect),
            "{url}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("hush-hush"), "{url}: {}", ran.stderr);
    }
}

#[test]
fn a_bucket_that_is_gone_is_told_and_keeps_no_other_call_from_running() {
    let lab = Lab::new();
    settings(&lab);
    lab.file("small.txt", "small");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", port.local_addr().unwrap());
    drop(port);
    let variables = [
        ("AWS_ACCESS_KEY_ID", "id".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "hush-hush".to_owned()),
        ("AWS_ENDPOINT_URL", nobody),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    let args = ["call", "read_file", "--args", r#"{"path":"small.txt"}"#];
    let small = with(lab.command(&args), &variables);
    assert_eq!(small.code, 0, "{}", small.stderr);
    let listed = with(lab.command(&["artifacts", "list"]), &variables);
    assert_eq!(listed.code, 1, "{}", listed.stderr);
    for word in [URL, "Connection refused", "try again"] {
        assert!(listed.stderr.contains(word), "{}", listed.stderr);
    }
    assert!(!listed.stderr.contains("hush-hush"), "{}", listed.stderr);
}
