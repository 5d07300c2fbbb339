//! `Builtins`: the standard tools of a workspace, depending on the features that are compiled in.

use std::sync::Arc;

#[cfg(feature = "images")]
use haft::session::RunLimits;
use haft::spec::NameError;
use haft::tool::{Tool, TypedTool};
use haft::workspace::Workspace;
#[cfg(feature = "commands")]
use haft_sandbox::{Sandbox, Spool};

use crate::artifacts::ReadArtifact;
use crate::builtin::Builtin;
#[cfg(feature = "commands")]
use crate::command::changes::CommandChanges;
#[cfg(feature = "commands")]
use crate::command::{
    AwaitCommand, COMMANDS, CommandInput, CommandNetwork, CommandSurroundings, Commands,
    ExposePort, KillCommand, RunCommand,
};
use crate::discover::{DISCOVER, DescribeTools, DiscoverOptions, ToolExpandTools, ToolSearch};
#[cfg(feature = "commands")]
use crate::files::check::Checker;
use crate::files::tools::{ApplyPatch, DeleteFile, EditFile, FILES, MoveFile, ReadFile, WriteFile};
use crate::files::{FileOptions, Files};
#[cfg(feature = "images")]
use crate::image::ViewImage;
use crate::memory::Memory;
use crate::memory::server::MemoryServer;
use crate::propose::ProposeRule;
use crate::question::AskUser;
use crate::search::tools::{GlobFiles, GrepFiles, ListFiles};
use crate::todo::{TodoLists, TodoRead, TodoWrite};
#[cfg(feature = "web")]
use crate::web::WEB;
#[cfg(feature = "web")]
use crate::web::fetch::FetchUrl;
#[cfg(feature = "web")]
use crate::web::options::WebOptions;
#[cfg(feature = "web")]
use crate::web::search::WebSearch;

/// The configuration of the standard tools.
#[derive(Debug, Clone)]
pub struct Builtins {
    /// The folder that the tools work in, with its hidden paths.
    pub workspace: Workspace,
    /// Options of the file tools.
    pub files: FileOptions,
    /// The sandbox that commands run in; without one there are no command tools.
    #[cfg(feature = "commands")]
    pub sandbox: Option<Sandbox>,
    /// How to judge and apply the changes of commands; without it, commands change the workspace directly.
    #[cfg(feature = "commands")]
    pub changes: Option<CommandChanges>,
    /// Memory limit of one command, in MiB; `None` for the sandbox's default.
    #[cfg(feature = "commands")]
    pub memory_mb: Option<u64>,
    /// Storage for command output that is too long for memory; without one, haft keeps 8 MiB of each stream.
    #[cfg(feature = "commands")]
    pub spool: Option<Arc<Spool>>,
    /// Network access of commands.
    #[cfg(feature = "commands")]
    pub network: CommandNetwork,
    /// Toolchains, folders and variables that commands get in addition to the workspace.
    #[cfg(feature = "commands")]
    pub surroundings: CommandSurroundings,
    /// Maximum size of an image that a call returns inline, in bytes.
    #[cfg(feature = "images")]
    pub inline_media_bytes: usize,
    /// Web access; without it there are no web tools.
    #[cfg(feature = "web")]
    pub web: Option<WebOptions>,
    /// Sources and options of the tool search.
    pub discover: DiscoverOptions,
    /// Memory across runs; without one there are no memory tools.
    pub memory: Option<Memory>,
    /// A server that provides the memory tools instead of `memory`.
    pub memory_server: Option<MemoryServer>,
}

impl Builtins {
    /// Creates the standard tools of a workspace with safe defaults.
    pub fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            files: FileOptions::default(),
            #[cfg(feature = "commands")]
            sandbox: None,
            #[cfg(feature = "commands")]
            changes: None,
            #[cfg(feature = "commands")]
            memory_mb: None,
            #[cfg(feature = "commands")]
            spool: None,
            #[cfg(feature = "commands")]
            network: CommandNetwork::default(),
            #[cfg(feature = "commands")]
            surroundings: CommandSurroundings::default(),
            #[cfg(feature = "images")]
            inline_media_bytes: RunLimits::default().inline_media_bytes,
            #[cfg(feature = "web")]
            web: Some(WebOptions::default()),
            discover: DiscoverOptions::default(),
            memory: None,
            memory_server: None,
        }
    }

    /// Returns all standard tools, including those that are off by default.
    ///
    /// # Errors
    ///
    /// If a tool's name is invalid, which is a bug in this crate.
    pub fn tools(&self) -> Result<Vec<Builtin>, NameError> {
        #[cfg(feature = "commands")]
        let commands = self.commands();
        #[cfg(feature = "commands")]
        let checker = commands
            .clone()
            .map(|commands| commands as Arc<dyn Checker>);
        #[cfg(not(feature = "commands"))]
        let checker = None;
        let files = Files::new(self.workspace.clone(), self.files.clone(), checker);
        let mut tools = file_tools(&files)?;
        #[cfg(feature = "images")]
        {
            let web = self.web.clone().unwrap_or_default();
            let pictures = ViewImage::new(files, &web, self.inline_media_bytes);
            tools.push(on(pictures.into_tool()?, FILES));
        }
        tools.extend(self.run_tools()?);
        #[cfg(feature = "web")]
        tools.extend(self.web_tools()?);
        #[cfg(feature = "commands")]
        if let Some(commands) = commands {
            tools.extend(command_tools(&commands)?);
        }
        if let Some(server) = &self.memory_server {
            tools.extend(server.tools()?);
        } else if let Some(memory) = &self.memory {
            tools.extend(memory.tools()?);
        }
        Ok(tools)
    }

    /// Returns the tools that work on the state of the run.
    fn run_tools(&self) -> Result<Vec<Builtin>, NameError> {
        let todo = TodoLists::default();
        Ok(vec![
            on(ReadArtifact.into_tool()?, ""),
            on(TodoWrite(todo.clone()).into_tool()?, ""),
            on(TodoRead(todo).into_tool()?, ""),
            on(Arc::new(AskUser::new()?), ""),
            on(ProposeRule::new(self.workspace.clone()).into_tool()?, ""),
            on(ToolSearch::new(&self.discover).into_tool()?, DISCOVER),
            on(ToolExpandTools.into_tool()?, DISCOVER),
            optional_builtin(DescribeTools.into_tool()?, DISCOVER),
        ])
    }

    #[cfg(feature = "web")]
    fn web_tools(&self) -> Result<Vec<Builtin>, NameError> {
        let Some(web) = &self.web else {
            return Ok(Vec::new());
        };
        let mut tools = vec![on(FetchUrl::new(web.clone()).into_tool()?, WEB)];
        if let Some(service) = web.search.clone() {
            tools.push(on(WebSearch(service).into_tool()?, WEB));
        }
        Ok(tools)
    }

    #[cfg(feature = "commands")]
    fn commands(&self) -> Option<Arc<Commands>> {
        let sandbox = self.sandbox.clone()?;
        let commands = Commands::new(sandbox, self.workspace.clone(), self.memory_mb);
        let commands = commands.with_network(self.network.clone());
        let commands = commands.with_surroundings(self.surroundings.clone());
        let commands = commands.with_changes(self.changes.clone());
        Some(Arc::new(commands.with_spool(self.spool.clone())))
    }
}

/// Wraps a tool of the default set.
fn on(tool: Arc<dyn Tool>, bundle: &'static str) -> Builtin {
    Builtin {
        tool,
        bundle,
        default: true,
    }
}

/// Wraps a tool that exists only if the settings enable it.
fn optional_builtin(tool: Arc<dyn Tool>, bundle: &'static str) -> Builtin {
    Builtin {
        tool,
        bundle,
        default: false,
    }
}

fn file_tools(files: &Files) -> Result<Vec<Builtin>, NameError> {
    Ok(vec![
        on(ReadFile(files.clone()).into_tool()?, FILES),
        on(WriteFile(files.clone()).into_tool()?, FILES),
        on(EditFile(files.clone()).into_tool()?, FILES),
        on(ApplyPatch(files.clone()).into_tool()?, FILES),
        on(MoveFile(files.clone()).into_tool()?, FILES),
        optional_builtin(DeleteFile(files.clone()).into_tool()?, FILES),
        on(ListFiles(files.clone()).into_tool()?, FILES),
        on(GlobFiles(files.clone()).into_tool()?, FILES),
        on(GrepFiles(files.clone()).into_tool()?, FILES),
    ])
}

#[cfg(feature = "commands")]
fn command_tools(commands: &Arc<Commands>) -> Result<Vec<Builtin>, NameError> {
    Ok(vec![
        on(RunCommand(Arc::clone(commands)).into_tool()?, COMMANDS),
        on(AwaitCommand(Arc::clone(commands)).into_tool()?, COMMANDS),
        on(CommandInput(Arc::clone(commands)).into_tool()?, COMMANDS),
        on(KillCommand(Arc::clone(commands)).into_tool()?, COMMANDS),
        on(ExposePort(Arc::clone(commands)).into_tool()?, COMMANDS),
    ])
}
