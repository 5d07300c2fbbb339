//! `haft init --client`: the hook of an agent with tools of its own comes first, haft as its MCP server second; a client without hooks gets
//! the server alone. The last line says whether the client is governed, and what is not.

use haft_app::clients::ClientProgram;
use haft_app::clients::install::InstallEdit;
use haft_app::hook_settings::agent_of;
use haft_app::problem::Problem;
use haft_hook::Agent;
use serde_json::{Map, Value, json};

use crate::args::{self, HookFiles};
use crate::commands::hook_settings::{self, HookInstall};
use crate::commands::mcp;
use crate::invocation::Invocation;

/// A client that init connects.
pub(super) struct Connection {
    client: &'static ClientProgram,
    /// The agent that it is and its files, if it has tools of its own that ask hooks.
    hook: Option<(Agent, HookFiles)>,
    /// How haft becomes its MCP server, if it does.
    server: Option<args::ClientFileArgs>,
    /// Whether the user agreed to the hook.
    agreed: bool,
}

/// What was done, or would be.
pub(super) struct Connected {
    hook: Option<HookInstall>,
    server: Option<InstallEdit>,
}

impl Connection {
    /// Checks that the client can be connected, shows what changes in its hooks and asks. Changes nothing.
    pub(super) fn prepare(at: &Invocation, args: &args::Init) -> Result<Option<Self>, Problem> {
        let Some(name) = &args.client else {
            return Ok(None);
        };
        let client = ClientProgram::find(name)?;
        let agent = agent_of(client.name);
        let files = agent.map(|agent| HookFiles {
            agent: Some(agent.name().to_owned()),
            project: args.project,
            dry_run: args.dry_run,
            yes: args.yes,
        });
        let server = (agent.is_none() || args.mcp).then(|| args::ClientFileArgs {
            name: name.clone(),
            project: args.project,
            user: args.user,
            dry_run: args.dry_run,
        });
        if let Some(server) = &server {
            mcp::install(at, &server.as_dry_run())?;
        }
        let agreed = match (agent, &files) {
            (Some(agent), Some(files)) => hook_settings::is_wanted(at, files, agent)?,
            _ => false,
        };
        Ok(Some(Self {
            client,
            hook: agent.zip(files),
            server,
            agreed,
        }))
    }

    /// Connects the client.
    pub(super) fn connect(&self, at: &Invocation) -> Result<Connected, Problem> {
        let hook = self.hook.as_ref().filter(|_| self.agreed);
        let hook =
            hook.map(|(agent, files)| hook_settings::plan(at, files, &[*agent], files.dry_run));
        let hook = hook.transpose()?;
        let server = self.server.as_ref().map(|typed| mcp::install(at, typed));
        let server = server.transpose()?.map(|(_, edit)| edit);
        Ok(Connected { hook, server })
    }

    /// Says what was done, and last whether the client is governed.
    pub(super) fn say(&self, at: &Invocation, done: &Connected) -> Result<(), Problem> {
        if let (Some((_, files)), Some(hook)) = (&self.hook, &done.hook) {
            hook_settings::say_put(at, files, hook);
        }
        let name = self.client.name;
        match (&done.server, &self.server) {
            (Some(edit), Some(typed)) => {
                mcp::say_installed(at, self.client, edit, typed.dry_run)?;
            }
            _ => at.screen.say(&format!(
                "to offer it haft's own tools and servers as well: haft mcp install {name}"
            )),
        }
        match &self.hook {
            Some((agent, files)) if !files.dry_run => hook_settings::say_governed(at, *agent),
            Some(_) => {}
            None => at
                .screen
                .say(&format!("{name} is not governed: {NO_HOOKS}")),
        }
        Ok(())
    }

    /// Adds what was done to the document of `--json`.
    pub(super) fn describe(&self, at: &Invocation, done: &Connected, map: &mut Map<String, Value>) {
        map.insert("client".into(), json!(self.client.name));
        if let Some(edit) = &done.server {
            map.insert("client_file".into(), json!(edit.file));
        }
        if let (Some((_, files)), Some(hook)) = (&self.hook, &done.hook) {
            let agents = hook_settings::described_install(files, hook);
            map.insert("hook".into(), json!(agents.first()));
        }
        let governed = match &self.hook {
            Some((agent, _)) => hook_settings::governed_word(at, *agent),
            None => json!("no"),
        };
        map.insert("governed".into(), governed);
    }
}

/// What haft judges of a client without hooks.
const NO_HOOKS: &str = "it has no hooks, so haft judges the calls of haft's own tools and of the servers behind it, and nothing that the \
    client's own tools do";
