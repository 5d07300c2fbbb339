//! The call that `haft exec` makes, and that a hook asks about before the agent runs a command: with the same arguments, so that a decision
//! about one applies to the other.

use std::collections::BTreeMap;

use haft::call::ToolCall;
use serde_json::{Value, json};

use crate::app::App;

/// The tool that runs commands.
pub const RUN_COMMAND: &str = "run_command";

/// The maximum time that `run_command` allows a command, in seconds.
const MAX_SECONDS: u64 = 43_200;

impl App {
    /// Returns a call of `run_command` with a shell command line, if there is one word, or else with a program and its arguments. It starts
    /// in `folder`, relative to the workspace, and may take as long as the settings allow any call; in the background, as long as a command
    /// there may.
    pub fn exec_call(&self, words: &[String], folder: &str, background: bool) -> ToolCall {
        let arguments = if background {
            with(arguments(words, folder), "background", json!(true))
        } else {
            self.within_limit(arguments(words, folder))
        };
        ToolCall::new(RUN_COMMAND, arguments.to_string())
    }

    /// Returns the call of a line that also sets variables for the programs that it runs.
    pub(crate) fn exec_call_with(
        &self,
        line: String,
        folder: &str,
        background: bool,
        env: &BTreeMap<String, String>,
    ) -> ToolCall {
        let call = self.exec_call(&[line], folder, background);
        if env.is_empty() {
            return call;
        }
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        ToolCall::new(RUN_COMMAND, with(arguments, "env", json!(env)).to_string())
    }

    /// Returns the same call on a terminal, whose size is that of the client's.
    pub fn terminal_call(&self, words: &[String], folder: &str) -> ToolCall {
        let arguments = self.within_limit(arguments(words, folder));
        ToolCall::new(RUN_COMMAND, with(arguments, "tty", json!({})).to_string())
    }

    fn within_limit(&self, arguments: Value) -> Value {
        let limit = self.runs().call_limit().as_secs().clamp(1, MAX_SECONDS);
        with(arguments, "timeout_s", json!(limit))
    }
}

fn arguments(words: &[String], folder: &str) -> Value {
    let folder = if folder.is_empty() { "." } else { folder };
    match words {
        [line] => json!({"command": line, "cwd": folder}),
        words => json!({"argv": words, "cwd": folder}),
    }
}

fn with(mut arguments: Value, name: &str, value: Value) -> Value {
    arguments[name] = value;
    arguments
}
