//! How the editor shows a tool call: its title, its kind, the files that it is about.

use std::path::Path;

use haft::audit::redact::Redactor;
use haft::spec::ToolClass;
use haft_app::argument;
use serde_json::{Value, json};

/// Arguments that name files.
const PATHS: [&str; 5] = ["path", "paths", "from", "to", "cwd"];
/// Maximum number of files per call.
const MOST: usize = 50;

/// Returns the tool with its most informative argument.
pub(crate) fn title(tool: &str, arguments: &str, redactor: &Redactor) -> String {
    match argument::of_text(arguments, redactor) {
        Some(argument) => format!("{tool} {argument}"),
        None => tool.to_owned(),
    }
}

/// Returns the protocol's word for the kind of a call.
pub(crate) fn kind(tool: &str, class: Option<ToolClass>) -> &'static str {
    match tool {
        "delete_file" => return "delete",
        "move_file" => return "move",
        "list_files" | "glob_files" | "grep_files" | "tool_search" | "web_search" => {
            return "search";
        }
        "todo_write" | "todo_read" => return "think",
        // The host's own calls, nested in a command's.
        "apply_changes" => return "edit",
        "connect" => return "fetch",
        "await_command" | "command_input" | "kill_command" | "execute_code" => return "execute",
        _ => {}
    }
    match class {
        Some(ToolClass::Read) => "read",
        Some(ToolClass::Edit) => "edit",
        Some(ToolClass::Bash) => "execute",
        Some(ToolClass::WebFetch | ToolClass::Network | ToolClass::Sign) => "fetch",
        None => "other",
    }
}

/// Returns the files that the arguments name, as absolute paths.
pub(crate) fn locations(arguments: &str, workspace: &str) -> Vec<Value> {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let line = arguments.get("start_line").and_then(Value::as_u64);
    let mut places = Vec::new();
    for name in PATHS {
        let paths: Vec<&Value> = match arguments.get(name) {
            Some(Value::Array(paths)) => paths.iter().collect(),
            Some(path) => vec![path],
            None => continue,
        };
        for path in paths.into_iter().filter_map(Value::as_str) {
            let mut place = json!({"path": Path::new(workspace).join(path)});
            if let Some(line) = line {
                place["line"] = line.into();
            }
            places.push(place);
        }
    }
    places.truncate(MOST);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_absolute_and_name_the_line() {
        let rows = [
            (r#"{"path":"a.rs"}"#, json!([{"path": "/w/a.rs"}])),
            (
                r#"{"path":"a.rs","start_line":7}"#,
                json!([{"path": "/w/a.rs", "line": 7}]),
            ),
            (
                r#"{"from":"a","to":"/b"}"#,
                json!([{"path": "/w/a"}, {"path": "/b"}]),
            ),
            (
                r#"{"paths":["a","b",1]}"#,
                json!([{"path": "/w/a"}, {"path": "/w/b"}]),
            ),
            (r#"{"command":"ls"}"#, json!([])),
            ("no json", json!([])),
        ];
        for (arguments, expect) in rows {
            assert_eq!(json!(locations(arguments, "/w")), expect, "{arguments}");
        }
    }
}
