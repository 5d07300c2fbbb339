//! The life of runs, without a process: a handle that is released or dropped suspends or finishes its run, once.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;

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
