//! The memory tools with a real executor and a real database file: every command, every refusal, both write modes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft::approval::AutoApprove;
use haft::audit::redact::Redactor;
use haft::call::{RunId, ToolCall};
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::memory::run_texts::{self, RunText};
use haft::memory::{
    CandidateDecision, MemoryAccess, MemoryCounts, MemoryId, MemoryRecord, MemoryStore as _,
    MemoryWriteMode,
};
use haft::toolset::Toolset as _;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{ErrorKind, Executor, Outcome, Policy, Risk, Session};
use haft_builtins::Builtins;
use haft_builtins::memory::{Memory, MemoryParts, RunNotes};
use haft_store::sqlite::SqliteStore;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Collects what is proposed; reports a record of two calls.
#[derive(Debug, Default)]
struct Notes {
    proposed: Mutex<Vec<MemoryRecord>>,
    full: AtomicBool,
}

impl RunNotes for Notes {
    fn agent<'a>(&'a self, _: &'a RunId) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Ok("call".to_owned()) })
    }

    fn propose<'a>(
        &'a self,
        _: &'a RunId,
        record: &'a MemoryRecord,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            if self.full.load(Ordering::Relaxed) {
                return Err(ToolError::unavailable("the disk is full"));
            }
            self.proposed.lock().push(record.clone());
            Ok(())
        })
    }

    fn recall<'a>(
        &'a self,
        _: &'a RunId,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(RunText, f64)>, ToolError>> {
        let text = |seq, text: &str| RunText {
            seq,
            at: "2026-01-01T00:00:00.000Z".into(),
            tool: "read_file".into(),
            text: text.into(),
        };
        let texts = [
            text(3, "read_file config.toml"),
            text(5, "read_file main.rs"),
        ];
        let found = run_texts::search(&texts, query, limit);
        let found = found.into_iter().map(|(text, rank)| (text.clone(), rank));
        let found = found.collect();
        Box::pin(async move { Ok(found) })
    }
}

mod files;

struct Scene {
    _dir: tempfile::TempDir,
    registry: Arc<ToolRegistry>,
    executor: Executor,
    session: Session,
    store: Arc<SqliteStore>,
    notes: Arc<Notes>,
}

impl Scene {
    fn new(mode: MemoryWriteMode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        let (store, notes) = (
            Arc::new(SqliteStore::new(dir.path())),
            Arc::new(Notes::default()),
        );
        let parts = MemoryParts {
            store: Arc::clone(&store) as _,
            runs: Arc::clone(&notes) as _,
            redactor: Redactor::new(["hunter2-secret"]),
            mode,
            project: "/w".into(),
        };
        let mut builtins = Builtins::new(Workspace::open(&dir.path().join("ws")).unwrap());
        builtins.memory = Some(Memory::new(parts));
        let registry = Arc::new(ToolRegistry::new());
        let tools = builtins.tools().unwrap();
        registry.add_all(tools.into_iter().map(|t| t.tool)).unwrap();
        let executor =
            Executor::new(Policy::trusted()).with_approver(AutoApprove::up_to(Risk::Critical));
        Self {
            session: Session::new(Arc::clone(&registry)),
            _dir: dir,
            registry,
            executor,
            store,
            notes,
        }
    }

    fn asker(&self) -> MemoryAccess {
        MemoryAccess::now(self.session.principal())
    }

    async fn call(&self, tool: &str, args: &Value) -> Outcome {
        let call = ToolCall::new(tool, args.to_string());
        self.executor.execute(&self.session, call).await
    }

    async fn data(&self, tool: &str, args: Value) -> Value {
        let outcome = self.call(tool, &args).await;
        assert!(outcome.is_ok(), "{tool} {args}: {:?}", outcome.error);
        serde_json::from_str(outcome.data.unwrap().get()).unwrap()
    }

    async fn fails(&self, tool: &str, args: Value, kind: ErrorKind, says: &str) {
        let outcome = self.call(tool, &args).await;
        let error = outcome
            .error
            .unwrap_or_else(|| panic!("{tool} {args} succeeded"));
        let words = format!("{} | {}", error.message, error.advice.unwrap_or_default());
        assert_eq!(error.kind, kind, "{tool} {args}: {words}");
        assert!(words.contains(says), "{tool}: {words:?} lacks {says:?}");
    }

    /// Runs a file command that must succeed with this text.
    async fn says(&self, args: Value, text: &str) {
        let outcome = self.call("memory", &args).await;
        assert!(outcome.is_ok(), "{args}: {:?}", outcome.error);
        assert_eq!(outcome.text(), text, "{args}");
    }

    async fn recalls(&self, args: Value) -> Vec<String> {
        let found = self.data("recall_memory", args).await;
        let records = found["records"].as_array().unwrap().iter();
        let contents = records.map(|r| r["content"].as_str().unwrap().to_owned());
        contents.collect()
    }

    async fn accept(&self, id: &str) {
        let decision = CandidateDecision {
            accept: true,
            by: "ada".into(),
        };
        let id = MemoryId::new(id);
        self.store
            .decide(&self.asker(), &id, &decision)
            .await
            .unwrap();
    }

    async fn accept_all(&self) {
        let filter = haft::memory::MemoryFilter {
            state: Some(haft::memory::MemoryState::Candidate),
            limit: 100,
            ..haft::memory::MemoryFilter::default()
        };
        let waiting = self.store.list(&self.asker(), &filter).await.unwrap();
        for record in waiting.iter().rev() {
            self.accept(record.id.as_str()).await;
        }
    }
}

#[tokio::test]
async fn what_is_proposed_is_recalled_when_a_person_accepted_it() {
    let scene = Scene::new(MemoryWriteMode::Candidate);
    let written = json!({"content": "deploys run on Fridays", "tags": ["release"]});
    let data = scene.data("write_memory", written).await;
    assert_eq!(
        (&data["state"], &data["scope"]),
        (&json!("candidate"), &json!("project"))
    );
    assert!(scene.recalls(json!({"query": "deploy"})).await.is_empty());
    let proposed = scene.notes.proposed.lock().clone();
    assert_eq!(proposed[0].id.as_str(), data["id"].as_str().unwrap());
    assert_eq!(proposed[0].provenance.author, "host");
    scene.accept(data["id"].as_str().unwrap()).await;
    for scope in [json!("project"), json!(null)] {
        let mut args = json!({"query": "deploy", "scope": scope});
        if scope.is_null() {
            args.as_object_mut().unwrap().remove("scope");
        }
        assert_eq!(scene.recalls(args).await, ["deploys run on Fridays"]);
    }
    assert!(
        scene
            .recalls(json!({"query": "deploy", "scope": "user"}))
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn written_at_once_is_recalled_at_once_by_each_scope() {
    let scene = Scene::new(MemoryWriteMode::External);
    for scope in ["user", "agent", "project"] {
        let content = format!("for the {scope} alone");
        let data = scene
            .data("write_memory", json!({"content": content, "scope": scope}))
            .await;
        assert_eq!(data["state"], "accepted");
        assert_eq!(
            scene
                .recalls(json!({"query": "alone", "scope": scope}))
                .await,
            [content]
        );
    }
    assert_eq!(scene.recalls(json!({"query": "alone"})).await.len(), 3);
    assert_eq!(
        scene
            .recalls(json!({"query": "alone", "limit": 2}))
            .await
            .len(),
        2
    );
    assert!(scene.notes.proposed.lock().is_empty(), "nothing waits");
    let risk = |name: &str| scene.registry.snapshot().entry(name).unwrap().spec().risk;
    assert_eq!(
        (risk("write_memory"), risk("recall_memory")),
        (Risk::High, Risk::Safe)
    );
}

#[tokio::test]
async fn modes_decide_which_tools_there_are() {
    for (mode, expect) in [
        (MemoryWriteMode::Disabled, vec!["recall_memory"]),
        (
            MemoryWriteMode::Candidate,
            vec!["memory", "recall_memory", "write_memory"],
        ),
    ] {
        let scene = Scene::new(mode);
        let snapshot = scene.registry.snapshot();
        let mut there = vec!["memory", "recall_memory", "write_memory"];
        there.retain(|name| snapshot.entry(name).is_some());
        assert_eq!(there, expect);
        if let Some(entry) = snapshot.entry("write_memory") {
            assert_eq!(entry.spec().risk, Risk::Safe);
        }
    }
}

#[tokio::test]
async fn the_session_is_searched_and_not_written() {
    let scene = Scene::new(MemoryWriteMode::Candidate);
    let args = json!({"query": "config", "scope": "session"});
    let found = scene.data("recall_memory", args).await;
    assert_eq!(found["records"][0]["id"], "line-3");
    assert_eq!(found["records"].as_array().unwrap().len(), 1);
    scene
        .fails(
            "write_memory",
            json!({"content": "x", "scope": "session"}),
            ErrorKind::InvalidArguments,
            "project, agent or user",
        )
        .await;
}

#[tokio::test]
async fn secrets_are_not_kept() {
    let scene = Scene::new(MemoryWriteMode::External);
    let content = "the password is hunter2-secret, and Authorization: Bearer abcdefghijklmnop1234";
    let args = json!({"content": content, "tags": ["hunter2-secret"]});
    scene.data("write_memory", args).await;
    let found = scene
        .data("recall_memory", json!({"query": "password"}))
        .await;
    let text = found.to_string();
    assert!(text.contains("[redacted]"), "{text}");
    assert!(
        !text.contains("hunter2") && !text.contains("abcdefghijklmnop"),
        "{text}"
    );
    let create = json!({"command": "create", "path": "/memories/hunter2-secret", "file_text": "x"});
    scene
        .fails(
            "memory",
            create,
            ErrorKind::InvalidArguments,
            "held a secret",
        )
        .await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table")]
async fn bad_input_is_refused_with_reasons() {
    let scene = Scene::new(MemoryWriteMode::Candidate);
    let invalid = ErrorKind::InvalidArguments;
    let rows = [
        ("write_memory", json!({"content": "bell \u{7}"}), "U+0007"),
        ("write_memory", json!({"content": "\u{202e}text"}), "U+202E"),
        ("write_memory", json!({"content": ""}), "content"),
        (
            "write_memory",
            json!({"content": "x".repeat(1 << 20)}),
            "content",
        ),
        (
            "write_memory",
            json!({"content": "é".repeat(16_384)}),
            "32768 bytes",
        ),
        (
            "write_memory",
            json!({"content": "x", "tags": vec!["t"; 1_000]}),
            "tags",
        ),
        (
            "write_memory",
            json!({"content": "x", "tags": ["t".repeat(65)]}),
            "tags",
        ),
        (
            "write_memory",
            json!({"content": "x", "tags": ["a\u{0}b"]}),
            "U+0000",
        ),
        (
            "write_memory",
            json!({"content": "x", "scope": "galaxy"}),
            "scope",
        ),
        ("write_memory", json!({"content": "x", "ttl_s": 0}), "ttl_s"),
        (
            "write_memory",
            json!({"content": "x", "ttl_s": -1}),
            "ttl_s",
        ),
        (
            "write_memory",
            json!({"content": "x", "ttl_s": u64::MAX}),
            "ttl_s",
        ),
        (
            "write_memory",
            json!({"content": "x", "ttl_s": 1e300}),
            "ttl_s",
        ),
        ("recall_memory", json!({"query": ""}), "query"),
        ("recall_memory", json!({"query": " \"*()"}), "no word"),
        (
            "recall_memory",
            json!({"query": " *", "scope": "session"}),
            "no word",
        ),
        (
            "recall_memory",
            json!({"query": "x".repeat(1_001)}),
            "query",
        ),
        ("recall_memory", json!({"query": "x", "limit": 0}), "limit"),
        (
            "recall_memory",
            json!({"query": "x", "scope": "org"}),
            "scope",
        ),
        ("memory", json!({"command": "format"}), "command"),
        ("memory", json!({"command": "view"}), "needs path"),
        (
            "memory",
            json!({"command": "create", "path": "/memories/a"}),
            "needs file_text",
        ),
        (
            "memory",
            json!({"command": "create", "path": "/memories/a", "file_text": "x".repeat(17_000)}),
            "17000 bytes",
        ),
        (
            "memory",
            json!({"command": "create", "path": "/memories/a\u{1b}", "file_text": ""}),
            "control",
        ),
        (
            "memory",
            json!({"command": "delete", "path": "/memories/"}),
            "Cannot delete",
        ),
    ];
    for (tool, args, says) in rows {
        scene.fails(tool, args, invalid, says).await;
    }
    for path in [
        "/etc/passwd",
        "/memories/../x",
        "/memories/%2e%2e/x",
        "/memories/a\u{0}",
        "memories",
    ] {
        let create = json!({"command": "create", "path": path, "file_text": "x"});
        scene
            .fails("memory", create, ErrorKind::Denied, "/memories")
            .await;
        let rename = json!({"command": "rename", "old_path": "/memories/a", "new_path": path});
        scene
            .fails("memory", rename, ErrorKind::Denied, "/memories")
            .await;
    }
    assert_eq!(
        scene.store.counts(&scene.asker()).await.unwrap(),
        MemoryCounts::default()
    );
}

#[tokio::test]
async fn nothing_is_proposed_that_the_archive_does_not_hold() {
    let scene = Scene::new(MemoryWriteMode::Candidate);
    scene.notes.full.store(true, Ordering::Relaxed);
    let rows = [
        ("write_memory", json!({"content": "x"})),
        (
            "memory",
            json!({"command": "create", "path": "/memories/a", "file_text": "x"}),
        ),
    ];
    for (tool, args) in rows {
        scene
            .fails(tool, args, ErrorKind::Unavailable, "disk is full")
            .await;
    }
    assert_eq!(
        scene.store.counts(&scene.asker()).await.unwrap(),
        MemoryCounts::default()
    );
}
