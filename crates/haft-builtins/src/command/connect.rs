//! `connect`: the host's own tool by which a command's connection is judged, asked about and recorded like every call.

use std::collections::HashSet;
use std::sync::Arc;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::{Condition, Effect, Permission};
use haft::result::ToolResult;
use haft::spec::{NameError, Risk, ToolSpec};
use haft::tool::{Tool, TypedTool};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::COMMANDS;
use crate::describe::{builtin, writes};

/// The tool's name.
pub(crate) const CONNECT: &str = "connect";

/// What `connect` takes. Only a command's own network writes it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectInput {
    /// The program that the command line starts, for the person who decides.
    pub(crate) program: String,
    /// The host.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// The command line.
    pub(crate) command: String,
    /// The command itself, which may have ended by the time of the decision.
    pub(crate) task: String,
}

/// What `connect` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConnectData {
    /// `HOST:PORT`.
    connected: String,
}

/// The commands whose connections are asked about, by the names in their requests. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCommands(Arc<Mutex<HashSet<String>>>);

impl OpenCommands {
    pub(super) fn add(&self, task: &str) {
        self.0.lock().insert(task.to_owned());
    }

    pub(super) fn remove(&self, task: &str) {
        self.0.lock().remove(task);
    }

    fn has(&self, task: &str) -> bool {
        self.0.lock().contains(task)
    }
}

/// The permission to connect to a host.
pub(super) fn permission(host: &str, port: u16) -> Permission {
    Permission {
        effect: Effect::Connect {
            url: format!("{host}:{port}"),
            host: host.to_owned(),
        },
        risk: Risk::High,
    }
}

/// `connect`.
#[derive(Debug)]
pub(super) struct Connect(pub(super) OpenCommands);

impl Connect {
    pub(super) fn tool(open: OpenCommands) -> Result<Arc<dyn Tool>, NameError> {
        Self(open).into_tool()
    }
}

impl TypedTool for Connect {
    const NAME: &'static str = CONNECT;
    const DESCRIPTION: &'static str = "Let a running command connect to a host.";
    type Input = ConnectInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<ConnectData>(spec, COMMANDS), Risk::Safe);
        ToolSpec {
            concurrency_safe: true,
            ..spec
        }
    }

    fn permissions(&self, input: &Self::Input) -> Result<Vec<Permission>, ToolError> {
        Ok(vec![permission(&input.host, input.port)])
    }

    fn stated(&self, _: &Self::Input, _: &[Permission]) -> &'static [&'static str] {
        // A rule that is kept covers every command; an approval for the session holds for one, by its condition.
        &["program", "host", "port", "command", "task"]
    }

    fn conditions(&self, input: &Self::Input) -> Vec<Condition> {
        vec![Condition::new("command", input.command.clone())]
    }

    async fn run(&self, input: Self::Input, _: &CallContext) -> Result<ToolResult, ToolError> {
        let connected = format!("{}:{}", input.host, input.port);
        if self.0.has(&input.task) {
            let summary = format!("{} connects to {connected}", input.program);
            return Ok(ToolResult::data(&ConnectData { connected })?.with_summary(summary));
        }
        let message = format!(
            "`{}` has ended: nothing was connected to {connected}, and this decision changes nothing for it",
            input.program
        );
        Err(ToolError::conflict(message).with_advice("run the command again"))
    }
}
