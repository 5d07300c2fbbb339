//! The standard tools: files, search, commands, todo lists, artifacts.
//!
//! Tools and policy stand on one [`Workspace`]: its root, its hidden paths, and what the rules let a call see hold for both.
//!
//! ```
//! use std::sync::Arc;
//!
//! use haft::policy::{Policy, Profile, RuleSet, RuleText};
//! use haft::toolset::registry::ToolRegistry;
//! use haft::workspace::Workspace;
//! use haft::{Executor, Session, ToolCall};
//! use haft_builtins::Builtins;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let folder = dir.path();
//! # for name in ["plain.txt", "prod.pem", "state"] {
//! #     std::fs::write(folder.join(name), "needle")?;
//! # }
//! let workspace = Workspace::open(folder)?.with_hidden(["state".into()]);
//! let rules = RuleSet {
//!     deny: vec![RuleText::new("Read(*.pem)")],
//!     ..RuleSet::default()
//! };
//! let policy = Policy::builder(Profile::Workspace).workspace(&workspace).rules(rules).build()?;
//! let tools = ToolRegistry::new();
//! tools.add_all(Builtins::new(workspace).tools()?.into_iter().map(|builtin| builtin.tool))?;
//!
//! let (executor, session) = (Executor::new(policy), Session::builder(Arc::new(tools)).build()?);
//! let found = executor.execute(&session, ToolCall::new("grep_files", r#"{"pattern": "needle"}"#)).await;
//! let found = found.data.ok_or("no matches")?;
//! assert!(found.get().contains("plain.txt"));
//! assert!(!found.get().contains("prod.pem") && !found.get().contains("state"));
//! # Ok(())
//! # }
//! ```

pub mod artifacts;
pub mod command;
mod describe;
pub mod discover;
pub mod files;
pub mod image;
pub mod memory;
pub mod proxy;
pub mod question;
pub mod search;
pub mod skills;
pub mod todo;
pub mod web;
mod work;

pub use describe::classes;

use std::sync::Arc;

use haft::session::RunLimits as SessionLimits;
use haft::spec::NameError;
use haft::tool::{Tool, TypedTool};
use haft::workspace::Workspace;
use haft_sandbox::{Sandbox, Spool};

use crate::artifacts::ReadArtifact;
use crate::command::changes::CommandChanges;
use crate::command::{AwaitCommand, COMMANDS, CommandNetwork, Commands, KillCommand, RunCommand};
use crate::discover::{DISCOVER, DiscoverOptions, ToolExpandTools, ToolSearch};
use crate::files::tools::{ApplyPatch, DeleteFile, EditFile, FILES, MoveFile, ReadFile, WriteFile};
use crate::files::{FileOptions, Files};
use crate::image::ViewImage;
use crate::memory::Memory;
use crate::question::AskUser;
use crate::search::tools::{GlobFiles, GrepFiles, ListFiles};
use crate::todo::{TodoLists, TodoRead, TodoWrite};
use crate::web::fetch::FetchUrl;
use crate::web::search::WebSearch;
use crate::web::{WEB, Web};

/// What the standard tools work on.
#[derive(Debug, Clone)]
pub struct Builtins {
    /// The folder they work in, with what they must not touch.
    pub workspace: Workspace,
    /// How the file tools behave.
    pub files: FileOptions,
    /// Where commands run; without one there are no command tools.
    pub sandbox: Option<Sandbox>,
    /// How what commands change is judged and applied; without it they change the workspace directly.
    pub changes: Option<CommandChanges>,
    /// Memory of one command in MiB, where it is not the sandbox's default.
    pub memory_mb: Option<u64>,
    /// Where a command's output goes that is too long for memory; without one 8 MiB of each stream are kept.
    pub spool: Option<Arc<Spool>>,
    /// What commands reach over the network.
    pub network: CommandNetwork,
    /// Bytes of a picture that a call returns inline.
    pub inline_media_bytes: usize,
    /// How the web is reached; without it there are no web tools.
    pub web: Option<Web>,
    /// What is found besides tools, and how.
    pub discover: DiscoverOptions,
    /// What is remembered across runs; without one there are no memory tools.
    pub memory: Option<Memory>,
}

/// A standard tool, and whether it is there without being asked for.
#[derive(Clone)]
pub struct Builtin {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The bundle that enables it: `files`, `commands`, `web`; empty for tools of no bundle.
    pub bundle: &'static str,
    /// Part of the default set. The others exist only where settings enable them.
    pub default: bool,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builtin")
            .field("tool", &self.tool.spec().name)
            .field("bundle", &self.bundle)
            .field("default", &self.default)
            .finish()
    }
}

impl Builtins {
    /// The standard tools on this workspace, with the safe defaults.
    pub fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            files: FileOptions::default(),
            sandbox: None,
            changes: None,
            memory_mb: None,
            spool: None,
            network: CommandNetwork::default(),
            inline_media_bytes: SessionLimits::default().inline_media_bytes,
            web: Some(Web::default()),
            discover: DiscoverOptions::default(),
            memory: None,
        }
    }

    /// All standard tools, also those that are off until enabled.
    ///
    /// # Errors
    /// The name of a tool is not valid; those of the standard tools are.
    pub fn tools(&self) -> Result<Vec<Builtin>, NameError> {
        let commands = self.sandbox.clone().map(|sandbox| {
            let commands = Commands::new(sandbox, self.workspace.clone(), self.memory_mb);
            let commands = commands.with_network(self.network.clone());
            let commands = commands.with_changes(self.changes.clone());
            Arc::new(commands.with_spool(self.spool.clone()))
        });
        let files = Files::new(self.workspace.clone(), self.files.clone(), commands.clone());
        let todo = TodoLists::default();
        let web = self.web.clone().unwrap_or_default();
        let pictures = ViewImage::new(files.clone(), &web, self.inline_media_bytes);
        let on = |tool, bundle| Builtin {
            tool,
            bundle,
            default: true,
        };
        let off = |tool, bundle| Builtin {
            tool,
            bundle,
            default: false,
        };
        let mut tools = vec![
            on(ReadFile(files.clone()).into_tool()?, FILES),
            on(WriteFile(files.clone()).into_tool()?, FILES),
            on(EditFile(files.clone()).into_tool()?, FILES),
            on(ApplyPatch(files.clone()).into_tool()?, FILES),
            on(MoveFile(files.clone()).into_tool()?, FILES),
            off(DeleteFile(files.clone()).into_tool()?, FILES),
            on(ListFiles(files.clone()).into_tool()?, FILES),
            on(GlobFiles(files.clone()).into_tool()?, FILES),
            on(GrepFiles(files).into_tool()?, FILES),
            on(pictures.into_tool()?, FILES),
            on(ReadArtifact.into_tool()?, ""),
            on(TodoWrite(todo.clone()).into_tool()?, ""),
            on(TodoRead(todo).into_tool()?, ""),
            on(Arc::new(AskUser::new()?), ""),
            on(ToolSearch::new(&self.discover).into_tool()?, DISCOVER),
            on(ToolExpandTools.into_tool()?, DISCOVER),
        ];
        if let Some(web) = &self.web {
            tools.push(on(FetchUrl::new(web.clone()).into_tool()?, WEB));
            if let Some(service) = web.search.clone() {
                tools.push(on(WebSearch(service).into_tool()?, WEB));
            }
        }
        if let Some(commands) = commands {
            tools.extend([
                on(RunCommand(Arc::clone(&commands)).into_tool()?, COMMANDS),
                on(AwaitCommand(Arc::clone(&commands)).into_tool()?, COMMANDS),
                on(KillCommand(commands).into_tool()?, COMMANDS),
            ]);
        }
        if let Some(memory) = &self.memory {
            tools.extend(memory.tools()?);
        }
        Ok(tools)
    }
}
