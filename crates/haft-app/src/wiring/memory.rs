//! Memory from settings: the store, the write mode, and what the memory tools may know about runs.

use std::sync::Arc;

use haft::audit::archive::Archive;
use haft::audit::index::RunIndex;
use haft::call::RunId;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::memory::run_texts::{self, RunText};
use haft::memory::{MemoryRecord, MemoryStore, MemoryWriteMode, candidate_file};
use haft_builtins::memory::server::MemoryServer;
use haft_builtins::memory::{Memory, MemoryParts, RunNotes};

use crate::config::{Settings, typed};
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::memory_server;
use crate::wiring::stores::Stores;

/// Tools that the memory settings remove, whatever `tools.enable` says.
const MEMORY_TOOLS: [&str; 3] = ["recall_memory", "write_memory", "memory"];

/// The agent's name if the run is unknown.
const UNKNOWN_AGENT: &str = "library";

/// Calls of this tool are excluded from session memory: every search would find itself.
const NOT_RECALLED: &[&str] = &["recall_memory"];

/// Where memory is kept.
pub(crate) enum MemoryKeeper {
    /// haft itself keeps it.
    Here(Memory),
    /// An external server keeps it.
    Server(MemoryServer),
}

/// Builds the memory, unless the settings turn it off. An unknown provider is an error.
pub(crate) fn build(
    at: &Site,
    settings: &Settings,
    archive: &Arc<Archive>,
    stores: &Stores,
) -> Result<Option<MemoryKeeper>, Problem> {
    let provider = settings.get(typed::MEMORY_PROVIDER);
    let server = memory_server::name(&provider);
    if server.is_none() && provider != "local" {
        return Err(settings.unavailable("memory.provider", &provider));
    }
    if !settings.get(typed::MEMORY_ENABLED) {
        return Ok(None);
    }
    if let Some(server) = server {
        return memory_server::build(settings, server)
            .map(|server| Some(MemoryKeeper::Server(server)));
    }
    let notes = ArchiveRunNotes {
        archive: Arc::clone(archive),
        index: Arc::clone(&stores.index),
    };
    Ok(Some(MemoryKeeper::Here(Memory::new(MemoryParts {
        store: Arc::clone(&stores.memory) as Arc<dyn MemoryStore>,
        runs: Arc::new(notes),
        redactor: settings.redactor.clone(),
        mode: mode(settings),
        project: at.workspace.display().to_string(),
    }))))
}

/// Reads how writes by tools enter memory.
fn mode(settings: &Settings) -> MemoryWriteMode {
    match settings.get(typed::MEMORY_WRITE_MODE).as_str() {
        "external" => MemoryWriteMode::External,
        "candidate" => MemoryWriteMode::Candidate,
        // The key takes three words; any other word means that nothing is written.
        _ => MemoryWriteMode::Disabled,
    }
}

/// Describes the settings for `haft doctor`.
pub(crate) fn describe(settings: &Settings) -> String {
    if !settings.get(typed::MEMORY_ENABLED) {
        return "off (memory.enabled)".to_owned();
    }
    if let Some(server) = memory_server::name(&settings.get(typed::MEMORY_PROVIDER)) {
        return memory_server::describe(settings, server);
    }
    let mode = settings.get(typed::MEMORY_WRITE_MODE);
    format!("write mode {mode}")
}

/// Returns how to get a memory tool that is missing.
pub(crate) fn absent(name: &str) -> Option<String> {
    MEMORY_TOOLS.contains(&name).then(|| {
        format!("`{name}` needs memory.enabled = true, and to write memory.write_mode = \"candidate\" or \"external\"")
    })
}

/// What the memory tools may know about runs.
#[derive(Debug)]
struct ArchiveRunNotes {
    archive: Arc<Archive>,
    index: Arc<dyn RunIndex>,
}

impl RunNotes for ArchiveRunNotes {
    fn agent<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            let found = self
                .index
                .get(run)
                .await
                .map_err(|e| memory_unavailable("the run", e))?;
            // `mcp http` and `mcp stdio` are the same agent over two transports.
            let entry_point = found.map(|entry| entry.start.entry_point);
            let word = entry_point
                .as_deref()
                .and_then(|name| name.split(' ').next());
            Ok(word.unwrap_or(UNKNOWN_AGENT).to_owned())
        })
    }

    fn propose<'a>(
        &'a self,
        run: &'a RunId,
        record: &'a MemoryRecord,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        let home = self.archive.home().to_owned();
        let (run, record) = (run.clone(), record.clone());
        Box::pin(async move {
            let write = move || candidate_file::append(&home, &run, &record);
            let written = tokio::task::spawn_blocking(write).await;
            let written = written.map_err(|e| memory_unavailable("the run's archive", e))?;
            written.map_err(|e| memory_unavailable("the run's archive", e))
        })
    }

    fn recall<'a>(
        &'a self,
        run: &'a RunId,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(RunText, f64)>, ToolError>> {
        let home = self.archive.home().to_owned();
        let (run, query) = (run.clone(), query.to_owned());
        Box::pin(async move {
            let flushed = self.archive.flush().await;
            flushed.map_err(|e| memory_unavailable("the run's record", e))?;
            let search = move || {
                let texts = run_texts::read(&home, run.as_str(), NOT_RECALLED)?;
                let found = run_texts::search(&texts, &query, limit);
                let found = found.into_iter().map(|(text, rank)| (text.clone(), rank));
                Ok::<_, haft::audit::runs::RunsError>(found.collect())
            };
            let found = tokio::task::spawn_blocking(search).await;
            let found = found.map_err(|e| memory_unavailable("the run's record", e))?;
            found.map_err(|e| memory_unavailable("the run's record", e))
        })
    }
}

fn memory_unavailable(
    what: &str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> ToolError {
    ToolError::unavailable(format!("{what} cannot be used now")).with_source(error)
}
