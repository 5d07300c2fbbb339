//! The life of runs, without a process: a handle that is released or dropped suspends or finishes its run, once.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;

use haft::CancellationToken;
use haft::approval::inbox::RequestStatus;
use haft::approval::{ApprovalId, Decision};
use haft::call::{Principal, ToolCall};
use haft::result::{Outcome, Status};
use haft_app::app::App;
use haft_app::environment::Environment;
use haft_app::follow::Followed;
use haft_app::host::Host;
use haft_app::resume::Resumed;
use haft_app::run::{ApprovalWait, RunOptions};
use haft_app::site::{Overrides, Site};
use haft_app::view::runs;
use tempfile::TempDir;

/// An application on a workspace with one file. The folder goes with the returned guard.
fn scene() -> (TempDir, App) {
    let folder = tempfile::tempdir().unwrap();
    let (workspace, home) = (folder.path().join("ws"), folder.path().join("home"));
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("a.txt"), "hello\n").unwrap();
    let environment = Environment::default();
    let site = Site::find(Some(&workspace), Some(&home), environment).unwrap();
    let settings = site.settings(&Overrides::default(), false).unwrap();
    (
        folder,
        App::build(&site, &settings, Host::default()).unwrap(),
    )
}

fn options() -> RunOptions {
    RunOptions {
        wait: ApprovalWait::Never,
        ..RunOptions::new("test")
    }
}

fn read() -> ToolCall {
    ToolCall::new("read_file", r#"{"path": "a.txt"}"#)
}

fn write() -> ToolCall {
    ToolCall::new("write_file", r#"{"path": "b.txt", "content": "new"}"#)
}

fn other_write() -> ToolCall {
    ToolCall::new("write_file", r#"{"path": "c.txt", "content": "new"}"#)
}

/// The state of a run, as every screen shows it.
async fn state(app: &App, outcome: &Outcome) -> &'static str {
    let all = runs::list(app).await.unwrap();
    let run = all.iter().find(|run| run.run == outcome.run.as_str());
    run.map_or("unknown", |run| run.state.as_str())
}

#[tokio::test]
async fn a_released_run_is_finished_and_so_is_a_dropped_one() {
    let (_folder, app) = scene();
    let run = app.runs().start(options()).await.unwrap();
    let released = run.call(read()).await;
    assert_eq!(released.status, Status::Ok, "{released:?}");
    assert_eq!(state(&app, &released).await, "open");
    run.release().await;
    assert_eq!(state(&app, &released).await, "closed");

    let run = app.runs().start(options()).await.unwrap();
    let dropped = run.call(read()).await;
    drop(run);
    app.runs().release_all().await;
    assert_eq!(state(&app, &dropped).await, "closed");
    let verified = runs::verify(&app, dropped.run.as_str()).await.unwrap();
    assert!(verified.ok, "{verified:?}");
    app.shut().await;
}

#[tokio::test]
async fn a_finished_run_withdraws_what_it_asked() {
    let (folder, app) = scene();
    let run = app.runs().start(options()).await.unwrap();
    let outcomes = run.call_all(vec![read(), write(), other_write()]).await;
    let statuses: Vec<Status> = outcomes.iter().map(|outcome| outcome.status).collect();
    let expect = [Status::Ok, Status::Suspended, Status::Suspended];
    assert_eq!(statuses, expect, "{outcomes:?}");
    let ids: Vec<ApprovalId> = outcomes
        .iter()
        .filter_map(|outcome| outcome.approval.as_deref().map(ApprovalId::new))
        .collect();
    // One is approved and not acted on yet, the other pending.
    app.decide(&ids[0], Decision::approve("operator", "test"))
        .await
        .unwrap();
    run.finish().await.unwrap();
    assert_eq!(state(&app, &outcomes[0]).await, "closed");
    for id in &ids {
        let entry = app.entry(id).await.unwrap();
        assert_eq!(entry.status, RequestStatus::Withdrawn, "{entry:?}");
        let late = Decision::approve("operator", "test");
        app.decide(id, late).await.unwrap_err();
    }
    assert!(!folder.path().join("ws/b.txt").exists());
    app.shut().await;
}

#[tokio::test]
async fn a_run_is_suspended_where_something_of_it_waits_and_finished_elsewhere() {
    let (_folder, app) = scene();
    let run = app.runs().start(options()).await.unwrap();
    let asked = run.call(write()).await;
    run.suspend().await.unwrap();
    assert_eq!(state(&app, &asked).await, "suspended");
    let run = app.runs().start(options()).await.unwrap();
    let done = run.call(read()).await;
    run.suspend().await.unwrap();
    assert_eq!(state(&app, &done).await, "closed");
    app.shut().await;
}

#[tokio::test]
async fn a_parent_s_token_ends_a_run() {
    let (_folder, app) = scene();
    let token = CancellationToken::new();
    let run = RunOptions {
        cancellation: Some(token.clone()),
        ..options()
    };
    let run = app.runs().start(run).await.unwrap();
    assert_eq!(run.call(read()).await.status, Status::Ok);
    token.cancel();
    let late = run.call(read()).await;
    assert_eq!(late.status, Status::Cancelled, "{late:?}");
    run.finish().await.unwrap();
    assert_eq!(state(&app, &late).await, "closed");
    app.shut().await;
}

#[tokio::test]
async fn a_prepared_run_leaves_nothing_and_a_started_one_starts_once() {
    let (_folder, app) = scene();
    drop(app.runs().prepare(options()).unwrap());
    app.runs().release_all().await;
    assert_eq!(runs::list(&app).await.unwrap().len(), 0);

    let run = app.runs().prepare(options()).unwrap();
    run.start().await.unwrap();
    run.start().await.unwrap();
    let outcome = run.call(read()).await;
    assert!(app.runs().session(&outcome.run).is_some());
    app.runs().release_all().await;
    assert!(app.runs().session(&outcome.run).is_none());
    // It is over: releasing it once more changes nothing.
    run.release().await;
    assert_eq!(state(&app, &outcome).await, "closed");
    let events = runs::events(&app, outcome.run.as_str()).await.unwrap();
    let count = |kind: &str| events.iter().filter(|line| line["type"] == kind).count();
    assert_eq!(
        (count("run_started"), count("closed")),
        (1, 1),
        "{events:?}"
    );
    app.shut().await;
}

#[tokio::test]
async fn a_run_is_resumed_for_whom_it_was_started() {
    let ann = || RunOptions {
        principal: Some(Principal::local("ann")),
        ..options()
    };
    let (folder, app) = scene();
    assert_ne!(*app.principal(), Principal::local("ann"));
    let run = app.runs().start(ann()).await.unwrap();
    let asked = run.call(write()).await;
    drop(run);
    app.runs().release_all().await;
    assert_eq!(state(&app, &asked).await, "suspended");

    let bob = RunOptions {
        principal: Some(Principal::local("bob")),
        ..options()
    };
    let refused = app.runs().resume(&asked.run, 0, bob).await.unwrap_err();
    assert!(refused.to_string().contains("started for"), "{refused}");

    let id = ApprovalId::new(asked.approval.as_deref().unwrap());
    let decision = Decision::approve("operator", "test");
    app.decide(&id, decision).await.unwrap();
    // The operator's haft acts on it, for ann.
    let Followed::Ran(outcome) = app.follow(&id, options()).await.unwrap() else {
        panic!("nothing ran");
    };
    assert_eq!(outcome.status, Status::Ok, "{outcome:?}");
    assert_eq!(fs::read(folder.path().join("ws/b.txt")).unwrap(), b"new");
    assert_eq!(state(&app, &asked).await, "closed");
    app.shut().await;
}

#[tokio::test]
async fn a_run_with_a_pending_request_is_suspended_and_resumed_after_the_decision() {
    let (folder, app) = scene();
    let run = app.runs().start(options()).await.unwrap();
    let asked = run.call(write()).await;
    assert_eq!(asked.status, Status::Suspended, "{asked:?}");
    drop(run);
    app.runs().release_all().await;
    assert_eq!(state(&app, &asked).await, "suspended");

    let never = std::future::pending::<()>;
    let pending = app.resume(&asked.run, options(), never()).await.unwrap();
    let id = ApprovalId::new(asked.approval.as_deref().unwrap());
    assert!(matches!(pending, Resumed::Pending(request) if request == id));

    let decision = Decision::approve("operator", "test");
    app.decide(&id, decision).await.unwrap();
    let resumed = app.resume(&asked.run, options(), never()).await.unwrap();
    let Resumed::Ran(outcome) = resumed else {
        panic!("{resumed:?}");
    };
    assert_eq!(outcome.status, Status::Ok, "{outcome:?}");
    assert_eq!(fs::read(folder.path().join("ws/b.txt")).unwrap(), b"new");
    assert_eq!(state(&app, &asked).await, "closed");

    let again = app.resume(&asked.run, options(), never()).await;
    assert!(again.unwrap_err().to_string().contains("has ended"));
    app.shut().await;
}
