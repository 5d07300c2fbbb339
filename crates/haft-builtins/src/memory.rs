//! `Memory`: what the tools that recall, write and edit memories share.

use std::sync::Arc;

use haft::audit::redact::Redactor;
use haft::call::{Principal, RunId};
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::memory::record::digest;
use haft::memory::run_texts::RunText;
use haft::memory::{
    MemoryAccess, MemoryDraft, MemoryError, MemoryOperation, MemoryRecord, MemoryScope,
    MemoryState, MemoryStore, MemoryWriteMode, Provenance, Shelf,
};
use haft::permission::{Effect, Permission};
use haft::spec::{NameError, Risk};
use haft::tool::TypedTool;

use crate::builtin::Builtin;
use crate::memory::files::MemoryFiles;
use crate::memory::labels::labels;
use crate::memory::recall::RecallMemory;
use crate::memory::write::WriteMemory;

mod labels;
pub mod files;
pub mod recall;
pub mod server;
pub mod write;

/// The name of the bundle.
pub const MEMORY: &str = "memory";

/// The host's information about runs. The memory tools use this and never read the disk.
pub trait RunNotes: Send + Sync + std::fmt::Debug {
    /// Returns the name of the agent that a run is for.
    fn agent<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<String, ToolError>>;

    /// Records a proposed memory in the run's archive. It is durable when this returns.
    fn propose<'a>(
        &'a self,
        run: &'a RunId,
        record: &'a MemoryRecord,
    ) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Searches the run's own record for the words. Returns the best matches first, each with its rank.
    fn recall<'a>(
        &'a self,
        run: &'a RunId,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(RunText, f64)>, ToolError>>;
}

/// The parts of the memory tools.
#[derive(Debug)]
pub struct MemoryParts {
    /// The store of the memories.
    pub store: Arc<dyn MemoryStore>,
    /// Information about runs.
    pub runs: Arc<dyn RunNotes>,
    /// Removes secrets from everything that is stored.
    pub redactor: Redactor,
    /// How memories written by tools take effect.
    pub mode: MemoryWriteMode,
    /// The workspace's root, which is the key of the project's memory.
    pub project: String,
}

/// The memory of one host. Clones share it.
#[derive(Debug, Clone)]
pub struct Memory(Arc<MemoryParts>);

impl Memory {
    /// Creates the memory from its parts.
    pub fn new(parts: MemoryParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Returns the tools of this write mode. The file tool is off by default.
    pub(crate) fn tools(&self) -> Result<Vec<Builtin>, NameError> {
        let builtin = |tool, default| Builtin {
            tool,
            bundle: MEMORY,
            default,
        };
        let memory = || self.clone();
        let mut tools = vec![builtin(RecallMemory(memory()).into_tool()?, true)];
        match self.0.mode {
            MemoryWriteMode::Disabled => {}
            MemoryWriteMode::Candidate => tools.extend([
                builtin(WriteMemory::<false>(memory()).into_tool()?, true),
                builtin(MemoryFiles::<false>(memory()).into_tool()?, false),
            ]),
            MemoryWriteMode::External => tools.extend([
                builtin(WriteMemory::<true>(memory()).into_tool()?, true),
                builtin(MemoryFiles::<true>(memory()).into_tool()?, false),
            ]),
        }
        Ok(tools)
    }

    /// Returns the shelf of this scope in the run's memory.
    async fn shelf(&self, scope: MemoryScope, context: &CallContext) -> Result<Shelf, ToolError> {
        match scope {
            MemoryScope::User => Ok(Shelf::user()),
            MemoryScope::Project => Ok(Shelf::project(&self.0.project)),
            MemoryScope::Agent => Ok(Shelf::agent(self.0.runs.agent(context.run()).await?)),
            MemoryScope::Session => Err(read_only_session()),
        }
    }

    /// Creates a draft of a text, without secrets and in the state that the write mode determines.
    async fn draft(
        &self,
        shelf: Shelf,
        content: &str,
        context: &CallContext,
    ) -> Result<MemoryDraft, ToolError> {
        let provenance = Provenance {
            run: Some(context.run().clone()),
            call: Some(context.call_id().clone()),
            agent: Some(self.0.runs.agent(context.run()).await?),
            author: context.origin().as_str().to_owned(),
        };
        let mut draft =
            MemoryDraft::new(shelf, self.redact(content), provenance).map_err(to_tool_error)?;
        draft.tags = labels(context);
        if self.0.mode == MemoryWriteMode::External {
            draft.state = MemoryState::Accepted;
        }
        Ok(draft)
    }

    /// Returns a text without secrets.
    fn redact(&self, text: &str) -> String {
        self.0.redactor.redact(text).into_owned()
    }

    /// Applies the changes and records new candidates in the run's archive. A candidate that cannot be recorded is removed.
    async fn apply(
        &self,
        steps: Vec<MemoryOperation>,
        context: &CallContext,
    ) -> Result<Vec<MemoryRecord>, ToolError> {
        let asker = asker(context.principal());
        let drafts: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                MemoryOperation::Put(draft) => Some(draft.id.clone()),
                MemoryOperation::Update { .. } | MemoryOperation::Delete { .. } => None,
            })
            .collect();
        let records = self
            .0
            .store
            .apply(&asker, steps)
            .await
            .map_err(to_tool_error)?;
        for record in &records {
            let fresh = record.state == MemoryState::Candidate && drafts.contains(&record.id);
            if !fresh {
                continue;
            }
            if let Err(error) = self.0.runs.propose(context.run(), record).await {
                // A memory that is not in the archive does not count as proposed.
                let (id, revision) = (record.id.clone(), record.revision);
                self.0.store.delete(&asker, id, revision).await.ok();
                return Err(error);
            }
        }
        Ok(records)
    }
}

fn asker(principal: &Principal) -> MemoryAccess {
    MemoryAccess::now(principal)
}

/// Returns the permission to write a text to a scope: safe if the user reviews it, high if it takes effect at once.
fn remember(scope: MemoryScope, text: &str, at_once: bool) -> Permission {
    Permission {
        effect: Effect::Remember {
            scope: scope.as_str().to_owned(),
            digest: digest(text),
        },
        risk: risk(at_once),
    }
}

fn risk(at_once: bool) -> Risk {
    if at_once { Risk::High } else { Risk::Safe }
}

fn read_only_session() -> ToolError {
    ToolError::invalid_arguments("session memory is the record of the run and cannot be written")
        .with_advice("write to scope project, agent or user")
}

/// Converts a memory error for the caller.
fn to_tool_error(error: MemoryError) -> ToolError {
    let message = error.to_string();
    match error {
        MemoryError::Invalid(_) => ToolError::invalid_arguments(message),
        MemoryError::NoWords => {
            ToolError::invalid_arguments(message).with_advice("name at least one word")
        }
        MemoryError::NotFound(_) => ToolError::not_found(message),
        MemoryError::Changed(_) | MemoryError::Decided(..) => ToolError::conflict(message)
            .with_advice("another writer changed it meanwhile: read it again, then repeat"),
        MemoryError::Exists(_) => ToolError::conflict(message),
        MemoryError::Full(..) => ToolError::failed(message)
            .with_advice("the user must delete some")
            .for_operator("`haft memory candidates` and `haft memory reject` make room"),
        MemoryError::Store(_) => {
            ToolError::unavailable("the memory cannot be reached now").with_source(error)
        }
    }
}
