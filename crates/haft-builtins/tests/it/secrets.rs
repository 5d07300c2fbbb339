//! Files that hold secrets by their names: every way of a tool to their content needs an approval.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use haft::ErrorKind::Denied;
use haft::Executor;
use haft::approval::{ApprovalRequest, ApprovalScope, Approver, ApproverReply, Choice, Decision};
use haft::future::BoxFuture;
use haft::policy::{Policy, Profile, SecretFiles};
use haft::workspace::Workspace;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::scene::{Scene, data};

/// A user who always gives the same answer; the requests are noted.
#[derive(Debug, Clone)]
struct Person {
    says: Choice,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Person {
    fn new(says: Choice) -> Self {
        Self {
            says,
            asked: Arc::default(),
        }
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        self.asked.lock().push(request.reason.clone());
        let decision = Decision {
            choice: self.says.clone(),
            ..Decision::approve("person", "test")
        };
        Box::pin(async { decision.into() })
    }
}

fn no() -> Choice {
    Choice::Deny {
        message: None,
        stop: false,
    }
}

fn yes() -> Choice {
    Choice::Approve {
        scope: ApprovalScope::Once,
        edited: None,
        rule: None,
    }
}

/// Returns a workspace with secrets, under the most permissive profile, and this user.
fn scene(person: &Person, files: SecretFiles) -> Scene {
    let mut scene = Scene::new();
    for path in [".env", "apps/web/.env.local", "certs/dev.key", ".npmrc"] {
        scene.put(path, "KEY=needle");
    }
    for path in ["plain.txt", ".env.example", "credentials.rs"] {
        scene.put(path, "no needle");
    }
    symlink(".env", scene.at("link.txt")).unwrap();
    symlink("apps/web", scene.at("web")).unwrap();
    let workspace = Workspace::open(&scene.at("")).unwrap();
    let policy = Policy::builder(Profile::Trusted)
        .allow("*")
        .allow("Read(**)")
        .allow("Edit(**)")
        .secret_files(files)
        .workspace(&workspace)
        .build();
    scene.executor = Executor::new(policy.unwrap()).with_approver(person.clone());
    scene
}

fn patch(body: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch")})
}

#[tokio::test]
async fn every_way_to_a_secret_asks_and_a_no_holds() {
    let person = Person::new(no());
    let scene = scene(&person, SecretFiles::Ask);
    let edits = json!([{"find": "KEY", "replace": "X"}]);
    for (tool, args) in [
        ("read_file", json!({"path": ".env"})),
        ("read_file", json!({"path": "./apps/../.env"})),
        ("read_file", json!({"path": "link.txt"})),
        ("read_file", json!({"path": "web/.env.local"})),
        ("grep_files", json!({"pattern": "KEY", "path": ".env"})),
        ("grep_files", json!({"pattern": "KEY", "path": "link.txt"})),
        ("view_image", json!({"path": "certs/dev.key"})),
        ("edit_file", json!({"path": ".env", "edits": edits})),
        ("write_file", json!({"path": ".npmrc", "content": "x"})),
        ("write_file", json!({"path": "link.txt", "content": "x"})),
        ("move_file", json!({"from": ".env", "to": "open.txt"})),
        (
            "move_file",
            json!({"from": "plain.txt", "to": ".env", "overwrite": true}),
        ),
        (
            "apply_patch",
            patch("*** Update File: .env\n@@\n-KEY=needle\n+X"),
        ),
        (
            "apply_patch",
            patch("*** Update File: .env\n*** Move to: open.txt"),
        ),
        ("apply_patch", patch("*** Delete File: certs/dev.key")),
    ] {
        let outcome = scene.call(tool, args.clone()).await;
        let shown = serde_json::to_string(&outcome).unwrap();
        assert_eq!(outcome.status.as_str(), "denied", "{tool} {args}: {shown}");
        assert!(!shown.contains("needle"), "{tool} {args}: {shown}");
        let asked = person.requests();
        assert!(
            asked.len() == 1 && asked[0].contains("may hold secrets, judging by its name"),
            "{tool} {args}: {asked:?}"
        );
    }
    assert_eq!(scene.text(".env"), "KEY=needle");
    assert!(!scene.at("open.txt").exists());
}

#[tokio::test]
async fn a_search_leaves_secrets_out_and_says_so_and_lists_show_names() {
    let person = Person::new(no());
    let scene = scene(&person, SecretFiles::Ask);
    for args in [
        json!({"pattern": "needle", "glob": "{.env*,*.key,*.txt,*.rs}"}),
        json!({"pattern": "needle", "glob": "{.env*,*.key,*.txt,*.rs}", "output": "count"}),
    ] {
        let found = scene.data("grep_files", args).await;
        let paths: Vec<_> = found["matches"].as_array().unwrap().iter().collect();
        let paths: Vec<_> = paths.iter().map(|m| m["path"].as_str().unwrap()).collect();
        assert_eq!(paths, [".env.example", "credentials.rs", "plain.txt"]);
        let note = found["notes"][0].as_str().unwrap();
        for named in [".env, ", "apps/web/.env.local", "certs/dev.key"] {
            assert!(note.contains(named), "{note}");
        }
        assert!(!found.to_string().contains("KEY="), "{found}");
    }
    let list = scene.data("list_files", json!({"hidden": true})).await;
    let glob = scene.data("glob_files", json!({"pattern": ".env*"})).await;
    for shown in [list, glob] {
        assert!(shown.to_string().contains("\".env\""), "{shown}");
    }
    assert_eq!(person.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn an_approval_to_read_holds_for_that_file_in_that_run() {
    let person = Person::new(yes());
    let scene = scene(&person, SecretFiles::Ask);
    let read = scene.data("read_file", json!({"path": "link.txt"})).await;
    assert_eq!(person.requests().len(), 1);
    assert!(read.to_string().contains("link.txt"), "{read}");
    scene.data("read_file", json!({"path": ".env"})).await;
    let found = json!({"pattern": "needle", "glob": ".env*"});
    let found = scene.data("grep_files", found).await.to_string();
    assert!(found.contains("KEY=needle"), "{found}");
    assert_eq!(person.requests(), Vec::<String>::new());
    scene.data("read_file", json!({"path": ".npmrc"})).await;
    assert_eq!(person.requests().len(), 1);
    // Changing the file needs its own approval, and so does another run.
    scene
        .call("write_file", json!({"path": ".env", "content": "K=1"}))
        .await;
    assert_eq!(person.requests().len(), 1);
    let other = scene.other_session();
    let origin = haft::call::Origin::Host;
    let args = json!({"path": ".env"});
    scene.call_in(&other, origin, "read_file", args).await;
    assert_eq!(person.requests().len(), 1);
}

#[tokio::test]
async fn edited_arguments_are_judged_again_where_secrets_are_denied() {
    let edited = Choice::Approve {
        scope: ApprovalScope::Once,
        edited: Some(json!({"path": ".env", "content": "x"}).to_string()),
        rule: None,
    };
    let person = Person::new(edited);
    let mut scene = scene(&person, SecretFiles::Deny);
    let workspace = Workspace::open(&scene.at("")).unwrap();
    let policy = Policy::builder(Profile::Workspace)
        .secret_files(SecretFiles::Deny)
        .workspace(&workspace);
    scene.executor = Executor::new(policy.build().unwrap()).with_approver(person.clone());
    let args = json!({"path": "plain.txt", "content": "x"});
    scene
        .fails("write_file", args, Denied, "hold secrets")
        .await;
    assert_eq!(scene.text(".env"), "KEY=needle");
    let read = json!({"path": "link.txt"});
    scene.fails("read_file", read, Denied, "hold secrets").await;
}

#[tokio::test]
async fn a_denial_tells_a_model_nothing_about_rules_and_settings() {
    let person = Person::new(no());
    let scene = scene(&person, SecretFiles::Ask);
    let outcome = scene.model("read_file", json!({"path": ".env"})).await;
    let told = outcome.to_model();
    for word in ["Read(", "policy.", "rule", "approve"] {
        assert!(!told.contains(word), "{told}");
    }
}

#[tokio::test]
async fn with_the_setting_off_they_are_files_like_others() {
    let person = Person::new(no());
    let scene = scene(&person, SecretFiles::Allow);
    fs::write(scene.at("id_rsa"), "needle").unwrap();
    let found = json!({"pattern": "needle", "glob": "{id_rsa,.env}"});
    let outcome = scene.call("grep_files", found).await;
    let found = data(&outcome);
    assert_eq!(found["matches"].as_array().unwrap().len(), 2, "{found}");
    assert!(found.get("notes").is_none(), "{found}");
    scene.data("read_file", json!({"path": "link.txt"})).await;
}
