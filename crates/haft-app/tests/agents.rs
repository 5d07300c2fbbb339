//! Agents and suspended calls in a program: a run goes on in itself, and nothing waits or runs twice.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::approval::ApprovalId;
use haft::audit::index::RunState;
use haft::{Decision, Outcome, Principal, RunId, Status, ToolCall, tool};
use haft_agent::RunEnd;
use haft_app::agent::AgentTask;
use haft_app::environment::Environment;
use haft_app::{Haft, HaftBuilder, PendingCallMode};
use tempfile::TempDir;

/// Close an account.
#[tool(risk = "high")]
fn close(account: String) -> String {
    format!("closed {account}")
}

static SENT: AtomicUsize = AtomicUsize::new(0);

/// Send a letter.
#[tool(risk = "high")]
fn send() -> String {
    SENT.fetch_add(1, Ordering::Relaxed);
    "sent".to_owned()
}

/// Creates a folder with an empty workspace.
fn scene() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("ws")).unwrap();
    folder
}

/// Returns a builder on the scene's workspace and state, without environment variables.
fn on(folder: &Path) -> HaftBuilder {
    Haft::builder()
        .workspace(folder.join("ws"))
        .state(folder.join("state"))
        .environment(Environment::default())
        .when_asked(PendingCallMode::Suspend)
}

/// Returns the outcome of one call in a run of its own, which is then suspended or finished.
async fn call(haft: &Haft) -> Outcome {
    let run = haft.run(Principal::local("ann")).await.unwrap();
    let outcome = run
        .call(ToolCall::new("close", r#"{"account":"ann"}"#))
        .await;
    run.suspend().await.unwrap();
    outcome
}

fn approval(outcome: &Outcome) -> ApprovalId {
    ApprovalId::new(outcome.approval.as_deref().unwrap())
}

#[tokio::test]
async fn a_call_like_one_that_another_run_waits_to_resume_is_suspended_at_once() {
    let folder = scene();
    let haft = on(folder.path()).tool(close).build().unwrap();
    let first = call(&haft).await;
    let id = approval(&first);
    let decision = Decision::approve("ann", "chat");
    haft.approvals().decide(&id, decision).await.unwrap();
    // Nobody resumes it meanwhile: waiting would take the whole approval time-out.
    let second = call(&haft).await;
    assert_eq!(second.status, Status::Suspended, "{second:?}");
    assert_eq!(approval(&second), id);
    haft.shut_down().await;
}

#[tokio::test]
async fn a_suspended_agent_goes_on_in_its_run_after_the_call_ran_elsewhere() {
    let folder = scene();
    let script = folder.path().join("script.toml");
    let turns = "title = \"A test\"\n[[turns]]\nsay = [{ call = { id = \"s\", tool = \"send\", arguments = {} } }]\n\
         [[turns]]\nexpect.results = [{ call = \"s\", contains = \"sent\" }]\nsay = [{ text = \"It is sent.\" }]\n";
    fs::write(&script, turns).unwrap();
    let model = format!("scripted:{}", script.display());
    let build = || on(folder.path()).tool(send);
    let haft = build().build().unwrap();
    let mut agent = haft.agent(AgentTask::of_model(&model)).await.unwrap();
    let RunEnd::Suspended(waiting) = agent.run("Send it.").await.unwrap().end else {
        panic!("not suspended");
    };
    let run = agent.id().clone();
    let id = ApprovalId::new(waiting[0].approval.clone());
    // A second agent cannot resume a run that is in use.
    let task = || AgentTask {
        resume: Some(run.clone()),
        ..AgentTask::of_model(&model)
    };
    let busy = haft.agent(task()).await.unwrap_err();
    assert!(busy.to_string().contains("in use in this"), "{busy}");
    agent.release().await;
    haft.shut_down().await;

    let other = build().build().unwrap();
    let decision = Decision::approve("ann", "chat");
    other.approvals().decide(&id, decision).await.unwrap();
    let outcome = other.resume(&id).await.unwrap();
    assert_eq!(outcome.run, run);
    let entry = other.app().index().get(&run).await.unwrap().unwrap();
    assert_eq!(entry.state, RunState::Suspended);
    let mut agent = other.agent(task()).await.unwrap();
    assert_eq!(agent.id(), &run);
    for _ in 0..2 {
        assert_eq!(agent.resume().await.unwrap().text, "It is sent.");
    }
    agent.release().await;
    assert_eq!(SENT.load(Ordering::Relaxed), 1);
    // The newest of the runs that continue it is found from each of them.
    let mut known = vec![run.clone()];
    for _ in 0..2 {
        let agent = other.agent(task()).await.unwrap();
        assert!(!known.contains(agent.id()));
        known.push(agent.id().clone());
        agent.release().await;
    }
    let text = |run: &RunId, file: &str| {
        fs::read_to_string(
            folder
                .path()
                .join("state/runs")
                .join(run.as_str())
                .join(file),
        )
        .unwrap()
    };
    for pair in known.windows(2) {
        assert_eq!(text(&pair[0], "continued-by"), pair[1].as_str());
        assert_eq!(text(&pair[1], "continues"), pair[0].as_str());
    }
    assert_eq!(SENT.load(Ordering::Relaxed), 1);
    other.shut_down().await;
}
