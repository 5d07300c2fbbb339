//! The life of runs within one process: releasing or dropping a handle suspends or finishes its run, once.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;

use haft::CancellationToken;
use haft::approval::inbox::RequestStatus;
use haft::approval::{ApprovalId, Decision};
use haft::audit::index::RunFilter;
use haft::call::{Principal, ToolCall};
use haft::result::{Outcome, Status};
use haft_app::app::App;
use haft_app::environment::Environment;
use haft_app::follow::FollowResult;
use haft_app::host::Host;
use haft_app::resume::ResumeResult;
use haft_app::run::verify::verify;
use haft_app::run::{ApprovalWait, RunOptions};
use haft_app::site::{Overrides, Site};
use haft_app::view::{overview, runs};
use tempfile::TempDir;

/// Returns an application on a workspace with one file. The folder lives as long as the returned guard.
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

/// Returns the state of a run, as every screen shows it.
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
    let verified = verify(app.runs(), dropped.run.as_str()).await.unwrap();
    assert!(verified.ok, "{verified:?}");
    app.shut_down().await;
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
    // One request is approved but not resumed yet, the other pending.
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
    app.shut_down().await;
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
    app.shut_down().await;
}

/// As for the one of two processes that comes second.
#[tokio::test]
async fn a_run_that_has_ended_is_refused_as_ended() {
    let (_folder, app) = scene();
    let run = app.runs().start(options()).await.unwrap();
    let done = run.call(read()).await;
    run.release().await;
    let refused = app.runs().resume(&done.run, 0, options()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("has ended"), "{refused}");
    app.shut_down().await;
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
    app.shut_down().await;
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
    // The run is finished: releasing it again changes nothing.
    run.release().await;
    assert_eq!(state(&app, &outcome).await, "closed");
    let events = runs::events(&app, outcome.run.as_str()).await.unwrap();
    let count = |kind: &str| events.iter().filter(|line| line["type"] == kind).count();
    assert_eq!(
        (count("run_started"), count("closed")),
        (1, 1),
        "{events:?}"
    );
    app.shut_down().await;
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
    // The operator's haft resumes the call on ann's behalf.
    let FollowResult::Ran(outcome) = app.follow(&id, options()).await.unwrap() else {
        panic!("nothing ran");
    };
    assert_eq!(outcome.status, Status::Ok, "{outcome:?}");
    assert_eq!(fs::read(folder.path().join("ws/b.txt")).unwrap(), b"new");
    assert_eq!(state(&app, &asked).await, "closed");
    app.shut_down().await;
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
    assert!(matches!(pending, ResumeResult::Pending(request) if request == id));

    let decision = Decision::approve("operator", "test");
    app.decide(&id, decision).await.unwrap();
    let resumed = app.resume(&asked.run, options(), never()).await.unwrap();
    let ResumeResult::Ran(outcome) = resumed else {
        panic!("{resumed:?}");
    };
    assert_eq!(outcome.status, Status::Ok, "{outcome:?}");
    assert_eq!(fs::read(folder.path().join("ws/b.txt")).unwrap(), b"new");
    assert_eq!(state(&app, &asked).await, "closed");

    let again = app.resume(&asked.run, options(), never()).await;
    assert!(again.unwrap_err().to_string().contains("has ended"));
    app.shut_down().await;
}

#[tokio::test]
async fn a_row_says_who_made_a_run_what_it_began_with_and_what_came_of_it() {
    let (_folder, app) = scene();
    let with_client = RunOptions {
        client: Some("claude-code 2.1".into()),
        ..options()
    };
    let run = app.runs().start(with_client).await.unwrap();
    run.call(read()).await;
    let missing = ToolCall::new("read_file", r#"{"path": "none.txt"}"#);
    run.call(missing).await;
    run.call(ToolCall::new("no_such_tool", "{}")).await;
    let id = run.id().to_string();

    // While the run is active, and after it.
    for ended in [false, true] {
        if ended {
            app.runs().release_all().await;
        }
        let page = runs::page(&app, RunFilter::newest(10)).await.unwrap();
        let [row] = page.as_slice() else {
            panic!("{page:?}")
        };
        assert_eq!((&row.run, row.calls), (&id, 3));
        assert_eq!(row.client.as_deref(), Some("claude-code 2.1"));
        let first = row.first.as_ref().unwrap();
        assert_eq!(first.tool, "read_file");
        assert_eq!(first.argument.as_deref(), Some("a.txt"));
        assert_eq!(row.outcome, Some(Status::Error));
        let counts: Vec<_> = row.statuses.iter().map(|(s, n)| (&**s, *n)).collect();
        assert_eq!(counts, [("error", 2), ("ok", 1)]);
        assert_eq!(row.duration_ms.is_some(), ended);
        assert_eq!(row.ended.is_some(), ended);
    }
    drop(run);

    // Denied and failed calls are found; a call of an unknown tool counts as unknown.
    let failed = RunFilter {
        failed: true,
        tool: Some("read_file".into()),
        ..RunFilter::newest(10)
    };
    assert_eq!(runs::page(&app, failed).await.unwrap().len(), 1);
    let shown = overview::overview(&app, haft::clock::now()).await.unwrap();
    assert_eq!((shown.today.calls, shown.today.failed), (3, 2));
    assert_eq!(shown.failed.len(), 1);
    assert!(shown.clients.is_empty(), "its client is gone");
    let text = haft_app::view::metrics::text(&app).await.unwrap();
    assert!(text.contains("haft_calls_total{tool=\"(unknown)\",status=\"error\"} 1"));
    assert!(!text.contains("no_such_tool"), "{text}");
    app.shut_down().await;
}

#[tokio::test]
async fn what_a_resumed_run_does_is_added_to_its_row() {
    let (_folder, app) = scene();
    let run = app.runs().start(options()).await.unwrap();
    let written = run.call(write()).await;
    assert_eq!(written.status, Status::Suspended, "{written:?}");
    run.release().await;
    let approval = ApprovalId::new(written.approval.clone().unwrap());
    let row = |page: Vec<runs::RunListItem>| page.into_iter().next().unwrap();
    let before = row(runs::page(&app, RunFilter::newest(1)).await.unwrap());
    assert_eq!(before.outcome, Some(Status::Suspended));
    let yes = Decision::approve("ada", "test");
    app.decide(&approval, yes).await.unwrap();
    let FollowResult::Ran(_) = app.follow(&approval, options()).await.unwrap() else {
        panic!("it was not run")
    };
    app.runs().release_all().await;
    let after = row(runs::page(&app, RunFilter::newest(1)).await.unwrap());
    assert_eq!(after.outcome, Some(Status::Ok));
    assert_eq!(after.first, before.first);
    assert_eq!(
        after.changes.map(|c| (c.files, c.added, c.removed)),
        Some((1, 1, 0))
    );
    // One decision, and how long it took.
    let shown = overview::overview(&app, haft::clock::now()).await.unwrap();
    assert_eq!(shown.today.decided, 1);
    app.shut_down().await;
}

#[tokio::test]
async fn pages_follow_one_another_and_hold_archives_that_the_database_lost() {
    let (_folder, app) = scene();
    let mut all = Vec::new();
    for _ in 0..5 {
        let run = app.runs().start(options()).await.unwrap();
        run.call(read()).await;
        all.push(run.id().clone());
        run.release().await;
    }
    // An archive from another machine.
    let copied = "20200101-000000-aaaaaaaa";
    let runs_folder = app.home().join("runs");
    fs::create_dir(runs_folder.join(copied)).unwrap();
    let record = fs::read_to_string(runs_folder.join(all[0].as_str()).join("events.jsonl"));
    let record = record.unwrap().replace(all[0].as_str(), copied);
    fs::write(runs_folder.join(copied).join("events.jsonl"), record).unwrap();

    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let filter = RunFilter {
            after: after.clone(),
            ..RunFilter::newest(2)
        };
        let page = runs::page(&app, filter).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(haft::call::RunId::new(last.run.as_str()));
        assert!(page.iter().all(|row| row.first.is_some()), "{page:?}");
        found.extend(page.into_iter().map(|row| row.run));
        assert!(found.len() < 20, "{found:?}");
    }
    found.sort_unstable();
    let mut expect: Vec<String> = all.iter().map(ToString::to_string).collect();
    expect.push(copied.to_owned());
    expect.sort_unstable();
    assert_eq!(found, expect);
    app.shut_down().await;
}
