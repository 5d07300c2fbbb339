//! Artifact refs in arguments: resolved before the call is judged, recorded as written, and never those of another run.

use std::sync::Arc;

use bytes::Bytes;
use haft::artifact::ArtifactStore;
use haft::artifact::memory::MemoryArtifacts;
use haft::audit::EventKind;
use haft::policy::{RuleSet, RuleText};
use haft::testing::{MemoryAudit, ScriptedApprover, TestTool};
use haft::{
    Decision, ErrorKind, Executor, Outcome, Policy, Session, ToolCall, ToolRegistry, ToolResult,
    ToolSpec,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

type Seen = Arc<Mutex<Vec<Value>>>;

struct House {
    executor: Executor,
    session: Session,
    store: Arc<dyn ArtifactStore>,
    audit: Arc<MemoryAudit>,
    seen: Seen,
}

fn house(executor: Executor) -> House {
    let seen = Seen::default();
    let keep = Arc::clone(&seen);
    let spec = ToolSpec {
        input_schema: Arc::new(json!({"type": "object", "properties": {
            "text": {"type": "string"},
            "rows": {"type": "array", "items": {"type": "object"}},
            "ref": {"type": "string", "format": "artifact"},
            "bytes": {"type": "string", "contentEncoding": "base64"},
            "path": {"type": "string"},
            "list": {"type": "array", "items": {"type": "string"}}
        }, "additionalProperties": false})),
        ..TestTool::echo("take")
    };
    let take = TestTool::with_body(spec, move |value, _| {
        keep.lock().push(value);
        Box::pin(async { Ok(ToolResult::text("taken")) })
    });
    let tools = ToolRegistry::new();
    tools.add_all([take.arc()]).unwrap();
    let store: Arc<dyn ArtifactStore> = Arc::new(MemoryArtifacts::new());
    let audit = Arc::new(MemoryAudit::new());
    let executor = executor
        .with_artifacts(Arc::clone(&store))
        .with_audit(Arc::clone(&audit) as _);
    House {
        executor,
        session: Session::new(tools),
        store,
        audit,
        seen,
    }
}

impl House {
    async fn put(&self, media_type: &str, bytes: &[u8]) -> Value {
        let bytes = Bytes::copy_from_slice(bytes);
        let owner = self.session.owner();
        let reference = self.store.put(owner, media_type, bytes).await.unwrap();
        json!({"$artifact": reference.as_str()})
    }

    async fn take(&self, arguments: &Value) -> Outcome {
        let call = ToolCall::new("take", arguments.to_string());
        self.executor.execute(&self.session, call).await
    }

    fn last(&self) -> Value {
        self.seen.lock().last().cloned().unwrap()
    }
}

#[tokio::test]
async fn each_argument_takes_of_an_artifact_what_its_schema_says() {
    let house = house(Executor::new(Policy::workspace()));
    let text = house
        .put("text/plain", "ein \"Wort\"\n\u{1F600}".as_bytes())
        .await;
    let rows = house
        .put("application/json", br#"[{"n": 12345678901234567890}]"#)
        .await;
    let blob = house.put("image/png", &[0x89, 0xFF, 0]).await;
    for (name, given, expect) in [
        ("text", text.clone(), json!("ein \"Wort\"\n\u{1F600}")),
        (
            "rows",
            rows.clone(),
            json!([{"n": 12_345_678_901_234_567_890_u64}]),
        ),
        ("text", rows, json!(r#"[{"n": 12345678901234567890}]"#)),
        ("ref", blob.clone(), blob["$artifact"].clone()),
        ("bytes", blob, json!("if8A")),
        (
            "list",
            json!(["a", text]),
            json!(["a", "ein \"Wort\"\n\u{1F600}"]),
        ),
    ] {
        let outcome = house.take(&json!({name: given})).await;
        assert!(outcome.is_ok(), "{name}: {:?}", outcome.error);
        assert_eq!(house.last(), json!({name: expect}));
    }
    // The record has what the client wrote: the hash of the content, not the content.
    let events = house.audit.events();
    let logged = events.iter().filter_map(|event| match &event.what {
        EventKind::CallStarted(call) => Some(call.arguments.to_string()),
        _ => None,
    });
    assert!(logged.into_iter().all(|text| text.contains("$artifact")));
}

#[tokio::test]
async fn what_cannot_be_bound_is_refused_and_never_passed_on() {
    let house = house(Executor::new(Policy::workspace()));
    let text = house.put("text/plain", b"plain").await;
    let blob = house.put("image/png", &[0xFF]).await;
    let own = text["$artifact"].as_str().unwrap();
    let foreign = Session::new(ToolRegistry::new());
    let other = Bytes::from_static(b"theirs");
    let other = house
        .store
        .put(foreign.owner(), "text/plain", other)
        .await
        .unwrap();
    let unknown = format!("sha256-{}", "0".repeat(64));
    for (arguments, kind) in [
        (json!({"text": {"$artifact": unknown}}), ErrorKind::NotFound),
        (
            json!({"text": {"$artifact": other.as_str()}}),
            ErrorKind::NotFound,
        ),
        (
            json!({"text": {"$artifact": "../../etc/passwd"}}),
            ErrorKind::NotFound,
        ),
        (
            json!({"text": {"$artifact": own, "and": 1}}),
            ErrorKind::InvalidArguments,
        ),
        (
            json!({"text": {"$artifact": 7}}),
            ErrorKind::InvalidArguments,
        ),
        (json!({"text": blob}), ErrorKind::InvalidArguments),
        (json!({"rows": text}), ErrorKind::InvalidArguments),
        (json!({"$artifact": own}), ErrorKind::InvalidArguments),
    ] {
        let outcome = house.take(&arguments).await;
        let kinds = outcome.error.as_ref().map(|error| error.kind);
        assert_eq!(kinds, Some(kind), "{arguments}: {:?}", outcome.error);
    }
    assert!(house.seen.lock().is_empty());
}

#[tokio::test]
async fn a_path_hidden_in_an_artifact_does_not_walk_past_the_policy() {
    let rules = RuleSet {
        deny: vec![RuleText::new("take(path:secret*)")],
        ..RuleSet::default()
    };
    let policy = Policy::workspace().with_rules(rules).unwrap();
    let house = house(Executor::new(policy));
    let path = house.put("text/plain", b"secret/key").await;
    let outcome = house.take(&json!({"path": path})).await;
    assert_eq!(outcome.status, haft::Status::Denied, "{:?}", outcome.error);
    assert!(house.seen.lock().is_empty());
}

#[tokio::test]
async fn a_person_sees_the_ref_and_what_runs_is_what_it_named() {
    let approver = ScriptedApprover::new([Decision::approve("ann", "test").into()]);
    let asked = Arc::clone(&approver.asked);
    let rules = RuleSet {
        ask: vec![RuleText::new("take")],
        ..RuleSet::default()
    };
    let policy = Policy::workspace().with_rules(rules).unwrap();
    let house = house(Executor::new(policy).with_approver(approver));
    let text = house.put("text/plain", b"the content").await;
    let arguments = json!({"text": text});
    let outcome = house.take(&arguments).await;
    assert!(outcome.is_ok(), "{:?}", outcome.error);
    assert_eq!(house.last(), json!({"text": "the content"}));
    let asked = asked.lock();
    assert_eq!(asked[0].arguments, arguments.to_string());
}
