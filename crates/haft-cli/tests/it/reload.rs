//! Settings and rules that change while `haft serve` runs.

use std::io::{BufRead, BufReader};
use std::process::ChildStderr;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::Lab;
use crate::serve::{Server, get, post};

/// The stderr of a server, line by line.
pub(crate) struct Voice(BufReader<ChildStderr>);

impl Voice {
    /// Returns the text up to the next line that contains this.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let read = self.0.read_line(&mut line).unwrap();
            all.push_str(&line);
            assert!(read > 0, "it never said {text:?}:\n{all}");
            if line.contains(text) {
                return all;
            }
        }
    }
}

pub(crate) fn serve(lab: &Lab, args: &[&str]) -> (Server, Voice) {
    let mut server = Server::start(lab, args);
    let voice = Voice(BufReader::new(server.stderr()));
    (server, voice)
}

fn status(server: &Server, tool: &str, args: &Value) -> String {
    let body = json!({"tool": tool, "arguments": args}).to_string();
    let reply = server
        .ask(&post("/api/v1/calls", &server.call, &body))
        .json();
    reply["status"].as_str().unwrap_or_default().to_owned()
}

fn listed(server: &Server) -> String {
    server.ask(&get("/api/v1/tools", Some(&server.call))).body
}

#[test]
fn changed_rules_and_tools_count_at_once_and_broken_ones_change_nothing() {
    let lab = Lab::new();
    lab.file("a.txt", "text");
    lab.file("haft.toml", "");
    let (server, mut voice) = serve(&lab, &["--trust"]);
    let read = json!({"path": "a.txt"});
    assert_eq!(status(&server, "read_file", &read), "ok");

    lab.file("haft.toml", "[policy]\ndeny = [\"Read(a.txt)\"]\n");
    voice.until("changed settings are in force: policy.deny");
    assert_eq!(status(&server, "read_file", &read), "denied");

    for broken in [
        "[policy\n",
        "[policy]\ndeny = [\"Read(a.txt)\"]\nalow = []\n",
    ] {
        lab.file("haft.toml", broken);
        let said = voice.until("do not load");
        assert!(
            said.contains("haft.toml") && said.contains("stay in force"),
            "{said}"
        );
        assert_eq!(status(&server, "read_file", &read), "denied");
    }
    // A rule that violates its own example is refused with all others.
    let wrong = "[policy]\nallow = [{ rule = \"Read(a.txt)\", match = [\"b.txt\"] }]\n";
    lab.file("haft.toml", wrong);
    voice.until("do not load");
    assert_eq!(status(&server, "read_file", &read), "denied");

    lab.file("haft.toml", "[policy]\ndeny = [\"Read(a.txt)\"]\n");
    let said = voice.until("load again");
    assert!(!said.contains("in force:"), "{said}");
    assert!(listed(&server).contains("\"write_file\""));
    lab.file("haft.toml", "[tools]\ndisable = [\"write_file\"]\n");
    voice.until("changed settings are in force: policy.deny, tools.disable");
    assert_eq!(status(&server, "read_file", &read), "ok");
    assert!(!listed(&server).contains("\"write_file\""));
    server.end(Signal::TERM);
}

#[test]
fn what_needs_a_new_start_is_named_and_left_alone() {
    let lab = Lab::new();
    lab.file("haft.toml", "");
    let (server, mut voice) = serve(&lab, &["--trust"]);
    let text = "[serve]\nhosts = [\"haft.example\"]\n[sandbox]\nmemory_mb = 500\n[policy]\nprofile = \"read-only\"\n";
    lab.file("haft.toml", text);
    let said = voice.until("changed settings are in force: policy.profile");
    assert!(
        said.contains("apply when haft starts the next time: sandbox.memory_mb, serve.hosts"),
        "{said}"
    );
    let write = json!({"path": "b.txt", "content": "x"});
    assert_eq!(status(&server, "write_file", &write), "denied");
    server.end(Signal::TERM);
}

#[test]
fn trust_counts_while_serving_as_at_the_start() {
    let lab = Lab::new();
    lab.file("a.txt", "text");
    lab.file(
        "haft.toml",
        "[policy]\nallow = [\"Edit(a.txt)\"]\ndeny = [\"Read(b.txt)\"]\n",
    );
    let (server, mut voice) = serve(&lab, &[]);
    let write = json!({"path": "a.txt", "content": "x"});
    let policy = || {
        let reply = server.ask(&get("/api/v1/policy", Some(&server.operator)));
        reply.body
    };
    assert!(!policy().contains("Edit(a.txt)"), "{}", policy());
    assert_eq!(lab.run(&["trust"]).code, 0);
    voice.until("changed settings are in force: policy.allow");
    assert_eq!(status(&server, "write_file", &write), "ok");
    assert_eq!(lab.run(&["trust", "--remove"]).code, 0);
    let said = voice.until("changed settings are in force");
    assert!(policy().contains("Read(b.txt)"), "{said}");
    assert!(!policy().contains("Edit(a.txt)"), "{said}");
    server.end(Signal::TERM);
}

#[test]
fn a_file_that_was_emptied_lifts_nothing_until_it_is_deleted() {
    let lab = Lab::new();
    lab.file("a.txt", "text");
    let rules = "[policy]\ndeny = [\"Read(a.txt)\"]\n";
    lab.file("haft.toml", rules);
    let config = lab.file("more.toml", "[policy]\ndeny = [\"Read(b.txt)\"]\n");
    let config = config.to_str().unwrap();
    let (server, mut voice) = serve(&lab, &["--trust", "--config", config]);
    let read = json!({"path": "a.txt"});
    let health = || {
        server
            .ask(&get("/api/v1/health", Some(&server.operator)))
            .body
    };
    for empty in ["", " \n\n\t", "\u{feff}"] {
        lab.file("haft.toml", empty);
        let said = voice.until("do not load");
        let fault = "haft.toml is now empty: its previous settings stay in force; delete the file to drop them";
        assert!(said.contains(fault), "{empty:?}: {said}");
        assert!(health().contains(fault), "{}", health());
        assert_eq!(status(&server, "read_file", &read), "denied", "{empty:?}");
        let doctor = lab.run(&["doctor"]);
        assert!(
            doctor.stdout.contains("haft.toml is empty"),
            "{}",
            doctor.stdout
        );
        lab.file("haft.toml", rules);
        voice.until("load again");
        assert!(!health().contains("is now empty"), "{}", health());
    }
    // The same for every file of the settings.
    lab.file("more.toml", "");
    let said = voice.until("do not load");
    assert!(said.contains("more.toml is now empty"), "{said}");
    lab.file("more.toml", "# nothing but this\n");
    voice.until("changed settings are in force: policy.deny");

    std::fs::remove_file(lab.work().join("haft.toml")).unwrap();
    voice.until("changed settings are in force: policy.deny");
    assert_eq!(status(&server, "read_file", &read), "ok");
    // A file that has always been empty may be empty.
    lab.file("haft.toml", "");
    lab.file("more.toml", "[policy]\nask = [\"Read(a.txt)\"]\n");
    let said = voice.until("changed settings are in force: policy.ask");
    assert!(!said.contains("is now empty"), "{said}");
    server.end(Signal::TERM);
}

#[test]
fn emptied_files_of_haft_s_own_change_nothing_either() {
    let lab = Lab::new();
    lab.file("haft.toml", "[policy]\nallow = [\"Edit(a.txt)\"]\n");
    assert_eq!(lab.run(&["trust"]).code, 0);
    let workspace = lab.work().canonicalize().unwrap();
    let kept = haft_app::rules::file(&lab.home(), &workspace.to_string_lossy());
    let trust = lab.home().join("trust.json");
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    let rule = "[[policy.allow]]\nrule = \"Edit(k.txt)\"\n";
    std::fs::write(&kept, rule).unwrap();
    let trusts = std::fs::read_to_string(&trust).unwrap();
    let (server, mut voice) = serve(&lab, &[]);
    for (file, text, fault) in [
        (
            &kept,
            rule,
            ".toml is now empty: its previous settings stay in force",
        ),
        (&trust, trusts.as_str(), "read the trust store"),
    ] {
        std::fs::write(file, "").unwrap();
        let said = voice.until("do not load");
        assert!(said.contains(fault), "{said}");
        for path in ["a.txt", "k.txt"] {
            let write = json!({"path": path, "content": "x"});
            assert_eq!(status(&server, "write_file", &write), "ok", "{path}");
        }
        std::fs::write(file, text).unwrap();
        voice.until("load again");
    }
    server.end(Signal::TERM);
}
