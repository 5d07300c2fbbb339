//! What a running tool can reach of the executor: nested calls on the same path, and the parts that it may use.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::approval::{ApprovalId, SavedRules};
use crate::artifact::ArtifactStore;
use crate::call::ToolCall;
use crate::change::ChangeLog;
use crate::context::{NestedExecutor, UserQuestion};
use crate::error::ToolError;
use crate::executor::incoming::{CallMode, IncomingCall};
use crate::executor::{ExecutorParts, ask, execute, question};
use crate::future::BoxFuture;
use crate::policy::{Policy, RuleText};
use crate::result::Outcome;
use crate::session::Session;
use crate::tokens::Tokenizer;
use crate::toolset::ToolsetSnapshot;

impl NestedExecutor for ExecutorParts {
    fn execute_nested(
        self: Arc<Self>,
        session: &Session,
        call: ToolCall,
    ) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { execute(&self, session, CallMode::ByClient.incoming(call)).await })
    }

    fn execute_internal(
        self: Arc<Self>,
        session: &Session,
        call: ToolCall,
    ) -> BoxFuture<'_, Outcome> {
        let incoming = IncomingCall {
            internal: true,
            ..CallMode::ByClient.incoming(call)
        };
        Box::pin(async move { execute(&self, session, incoming).await })
    }

    fn internal_tools(&self) -> Arc<ToolsetSnapshot> {
        self.internal.snapshot()
    }

    fn has_approver(&self) -> bool {
        self.approver.is_some()
    }

    fn can_get_decision(&self, session: &Session) -> bool {
        ask::can_get_decision(self, session)
    }

    fn artifacts(&self) -> Option<&Arc<dyn ArtifactStore>> {
        self.artifacts.as_ref()
    }

    fn changes(&self) -> Option<&Arc<ChangeLog>> {
        self.changes.as_ref()
    }

    fn policy(&self) -> Arc<Policy> {
        self.policy.now()
    }

    fn tokenizer(&self) -> &dyn Tokenizer {
        &*self.tokenizer
    }

    fn ask(
        self: Arc<Self>,
        question: UserQuestion<'_>,
    ) -> BoxFuture<'_, Result<Map<String, Value>, ToolError>> {
        Box::pin(async move { question::ask(&self, question).await })
    }

    fn keep_rule(&self, rule: RuleText, approval: &ApprovalId, by: &str) -> Result<(), ToolError> {
        let policy = self.policy.now();
        let kept = SavedRules {
            rules: vec![rule],
            workspace: policy.workspace_root().unwrap_or_default(),
            approval,
            by,
        };
        let failed = |error| ToolError::unavailable(format!("save the rule: {error}"));
        self.policy.accept(&kept).map_err(failed)
    }
}
