//! A workspace in a temporary folder, and calls on it as an entry point makes them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use haft::artifact::memory::MemoryArtifacts;
use haft::call::{Origin, ToolCall};
use haft::policy::{Policy, PolicyBuilder};
use haft::result::Outcome;
use haft::session::Session;
use haft::testing::ConsentingPerson;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{ErrorKind, Executor};
use haft_builtins::Builtins;
use serde_json::Value;

pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) session: Session,
    pub(crate) executor: Executor,
    registry: Arc<ToolRegistry>,
}

impl Scene {
    /// Creates an empty workspace with all tools, everything approved.
    pub(crate) fn new() -> Self {
        Self::with(|builtins| builtins)
    }

    pub(crate) fn with(change: impl FnOnce(Builtins) -> Builtins) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        let workspace = Workspace::open(&dir.path().join("ws")).unwrap();
        let builtins = change(Builtins::new(workspace));
        let registry = Arc::new(ToolRegistry::new());
        let tools = builtins.tools().unwrap();
        registry
            .replace_all("builtin", tools.into_iter().map(|t| t.tool))
            .unwrap();
        let policy = Policy::trusted().with_workspace(&builtins.workspace);
        let executor = Executor::new(policy.unwrap())
            .with_approver(ConsentingPerson)
            .with_artifacts(Arc::new(MemoryArtifacts::new()));
        let session = Session::builder(Arc::clone(&registry) as _)
            .build()
            .unwrap();
        Self {
            dir,
            session,
            executor,
            registry,
        }
    }

    /// Replaces the policy that judges the calls.
    pub(crate) fn judged_by(&mut self, policy: PolicyBuilder) {
        self.executor = Executor::new(policy.build().unwrap())
            .with_approver(ConsentingPerson)
            .with_artifacts(Arc::new(MemoryArtifacts::new()));
    }

    /// Returns another session on the same tools.
    pub(crate) fn other_session(&self) -> Session {
        Session::builder(Arc::clone(&self.registry) as _)
            .build()
            .unwrap()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    pub(crate) fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    pub(crate) async fn call_in(
        &self,
        session: &Session,
        origin: Origin,
        tool: &str,
        args: Value,
    ) -> Outcome {
        let call = ToolCall::new(tool, args.to_string()).from_origin(origin);
        self.executor.execute(session, call).await
    }

    /// Makes a call of the host.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.call_in(&self.session, Origin::Host, tool, args).await
    }

    /// Makes a call of a model.
    pub(crate) async fn model(&self, tool: &str, args: Value) -> Outcome {
        self.call_in(&self.session, Origin::Model, tool, args).await
    }

    /// Returns the data of a call that must succeed.
    pub(crate) async fn data(&self, tool: &str, args: Value) -> Value {
        let outcome = self.call(tool, args.clone()).await;
        assert!(outcome.is_ok(), "{tool} {args}: {:?}", outcome.error);
        serde_json::from_str(outcome.data.unwrap().get()).unwrap()
    }

    /// Makes a call that must fail with this kind and these words in message or advice.
    pub(crate) async fn fails(&self, tool: &str, args: Value, kind: ErrorKind, says: &str) {
        let outcome = self.call(tool, args.clone()).await;
        let error = outcome
            .error
            .unwrap_or_else(|| panic!("{tool} {args} succeeded"));
        let words = format!("{} | {}", error.message, error.advice.unwrap_or_default());
        assert_eq!(error.kind, kind, "{tool} {args}: {words}");
        assert!(
            words.contains(says),
            "{tool} {args}: {words:?} lacks {says:?}"
        );
    }
}

/// Returns the data of an outcome.
pub(crate) fn data(outcome: &Outcome) -> Value {
    serde_json::from_str(outcome.data.as_ref().unwrap().get()).unwrap()
}
