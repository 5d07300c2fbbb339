//! The call that `haft exec` makes, and that a hook asks about before the agent runs it: the same arguments, so that one finds what was
//! decided about the other.

use haft::call::ToolCall;
use serde_json::json;

use crate::app::App;

/// The tool that runs commands.
pub const RUN_COMMAND: &str = "run_command";

/// The longest that `run_command` lets a command run, in seconds.
const LONGEST: u64 = 600;

impl App {
    /// A call of `run_command` with a line for the shell, where there is one word, or with a program and its arguments; `folder` is
    /// where it starts, below the workspace. It may take as long as settings let any call.
    pub fn exec_call(&self, words: &[String], folder: &str) -> ToolCall {
        let folder = if folder.is_empty() { "." } else { folder };
        let limit = self.runs().call_limit().as_secs().clamp(1, LONGEST);
        let arguments = match words {
            [line] => json!({"command": line, "cwd": folder, "timeout_s": limit}),
            words => json!({"argv": words, "cwd": folder, "timeout_s": limit}),
        };
        ToolCall::new(RUN_COMMAND, arguments.to_string())
    }
}
