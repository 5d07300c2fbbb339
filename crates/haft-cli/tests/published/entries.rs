//! The entry points through which a model's command line, or its write of a file, reaches haft.

use std::path::Path;

use serde_json::{Value, json};

use crate::scene::{Scene, output_text, run};

/// An entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// `haft call`.
    Call,
    /// `haft exec`.
    Exec,
    /// `haft hook claude`: what it lets through is run as the agent runs it.
    Hook,
    /// A client of `haft serve --stdio`.
    Mcp,
    /// A script of `haft chain`.
    Chain,
}

/// Those that take a command line.
pub(crate) const OF_COMMANDS: [Entry; 5] = [
    Entry::Call,
    Entry::Exec,
    Entry::Hook,
    Entry::Mcp,
    Entry::Chain,
];
/// Those that take a write of a file.
pub(crate) const OF_WRITES: [Entry; 4] = [Entry::Call, Entry::Hook, Entry::Mcp, Entry::Chain];

impl Entry {
    /// Has a command line run, if haft lets it; returns all that was printed.
    pub(crate) fn command(self, scene: &Scene, line: &str) -> String {
        match self {
            Self::Exec => output_text(&run(scene.haft(&["exec", "--", "sh", "-c", line]), "")),
            Self::Hook => {
                let input = json!({"command": line, "description": "Works"});
                match hooked(scene, "Bash", &input) {
                    Ok(input) => {
                        let line = input["command"].as_str().unwrap();
                        output_text(&run(scene.program(Path::new("sh"), &["-c", line]), ""))
                    }
                    Err(said) => said,
                }
            }
            _ => self.tool(scene, "run_command", &json!({"command": line})),
        }
    }

    /// Has a file written, if haft lets it; returns all that was printed.
    pub(crate) fn write(self, scene: &Scene, path: &str, text: &str) -> String {
        if self != Self::Hook {
            return self.tool(scene, "write_file", &json!({"path": path, "content": text}));
        }
        let input = json!({"file_path": path, "content": text});
        match hooked(scene, "Write", &input) {
            Ok(input) => {
                let path = scene.at("work").join(input["file_path"].as_str().unwrap());
                let _ = std::fs::create_dir_all(path.parent().unwrap());
                let _ = std::fs::write(path, text);
                "written by the agent".to_owned()
            }
            Err(said) => said,
        }
    }

    fn tool(self, scene: &Scene, tool: &str, args: &Value) -> String {
        let args = args.to_string();
        match self {
            Self::Mcp => {
                let ask = [
                    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                        "protocolVersion": "2025-11-25", "capabilities": {},
                        "clientInfo": {"name": "published", "version": "1"}}}),
                    json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                        "name": tool, "arguments": serde_json::from_str::<Value>(&args).unwrap()}}),
                ];
                let lines = ask.map(|message| format!("{message}\n")).concat();
                output_text(&run(scene.haft(&["serve", "--stdio"]), &lines))
            }
            Self::Chain => {
                let script = format!(
                    "import sys\nwire = sys.modules['haft_runtime']._state.wire\n\
                     wire.wait(wire.call({tool:?}.encode(), {args:?}.encode()))\n"
                );
                let file = scene.file("outside/script.py", &script);
                let ran = run(scene.haft(&["chain", file.to_str().unwrap(), "--json"]), "");
                std::fs::remove_file(file).unwrap();
                output_text(&ran)
            }
            _ => output_text(&run(
                scene.haft(&["call", tool, "--json", "--args", &args]),
                "",
            )),
        }
    }
}

/// Returns the input with which the agent runs its tool; what haft said if it does not.
fn hooked(scene: &Scene, tool: &str, input: &Value) -> Result<Value, String> {
    let event = json!({
        "session_id": "s", "cwd": scene.at("work"), "hook_event_name": "PreToolUse",
        "tool_name": tool, "tool_input": input, "tool_use_id": "t",
    });
    let output = run(scene.haft(&["hook", "claude"]), &event.to_string());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let said = &said["hookSpecificOutput"];
    if said["permissionDecision"] != "allow" {
        return Err(output_text(&output));
    }
    Ok(match &said["updatedInput"] {
        Value::Null => input.clone(),
        updated => updated.clone(),
    })
}
