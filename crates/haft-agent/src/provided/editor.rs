//! `str_replace_based_edit_tool` of Anthropic: views and edits of files, as calls of haft's file tools.

use haft::{Outcome, ToolError};
use serde_json::{Value, json};

use crate::conversation::AnswerText;
use crate::provided::step::{Next, ToolStep, one};

/// Maximum number of lines of a view.
const MAX_LINES: u64 = 2000;

/// Returns what to do next.
pub(super) fn next(input: &Value, done: &[Outcome]) -> Next {
    match command(input, done) {
        Ok(next) => next,
        Err(error) => Next::failed(format!("{}: {error}", error.kind())),
    }
}

fn command(input: &Value, done: &[Outcome]) -> Result<Next, ToolError> {
    let text = |name: &str| {
        let found = input[name].as_str();
        found.ok_or_else(|| {
            ToolError::invalid_arguments(format!("the command needs {name:?}, a text"))
        })
    };
    let path = text("path")?;
    let next = match text("command")? {
        "view" => return view(path, &input["view_range"], done),
        "create" => {
            let content = text("file_text")?;
            one(done, || {
                ToolStep::new("write_file", json!({"path": path, "content": content}))
            })
        }
        "str_replace" => {
            let (find, replace) = (text("old_str")?, input["new_str"].as_str());
            let edit = json!({"find": find, "replace": replace.unwrap_or_default()});
            one(done, || {
                ToolStep::new("edit_file", json!({"path": path, "edits": [edit]}))
            })
        }
        "insert" => {
            let after = input["insert_line"].as_u64().ok_or_else(|| {
                ToolError::invalid_arguments("the command needs \"insert_line\", a line from 0")
            })?;
            let lines = text("insert_text").or_else(|_| text("new_str"))?;
            // Inserted text consists of complete lines.
            let lines = format!("{}\n", lines.strip_suffix('\n').unwrap_or(lines));
            let edit = json!({"start_line": after + 1, "end_line": after, "replace": lines});
            one(done, || {
                ToolStep::new("edit_file", json!({"path": path, "edits": [edit]}))
            })
        }
        other => {
            let other = haft::text::clip(other, 50);
            let message = format!("no command {other:?}: view, create, str_replace or insert");
            return Err(ToolError::invalid_arguments(message));
        }
    };
    Ok(next)
}

/// Views a file with numbered lines, or lists a folder.
fn view(path: &str, range: &Value, done: &[Outcome]) -> Result<Next, ToolError> {
    let mut ends = [1, MAX_LINES];
    if !range.is_null() {
        let numbers: Option<Vec<i64>> = range
            .as_array()
            .and_then(|list| list.iter().map(Value::as_i64).collect());
        let Some([first, last]) = numbers.as_deref() else {
            return Err(ToolError::invalid_arguments(
                "view_range is [FIRST, LAST]; LAST -1 is the end",
            ));
        };
        let first = u64::try_from(*first).unwrap_or(1).max(1);
        // -1 means the end.
        let last = u64::try_from(*last).unwrap_or(u64::MAX);
        if last < first {
            return Err(ToolError::invalid_arguments(
                "view_range ends before it begins",
            ));
        }
        ends = [first, (last - first).saturating_add(1).min(MAX_LINES)];
    }
    let [first, lines] = ends;
    Ok(match done {
        [] => Next::Call(ToolStep::new(
            "read_file",
            json!({"path": path, "start_line": first, "max_lines": lines}),
        )),
        [read] if read.is_ok() => Next::Answer(Box::new(AnswerText::text(view_of(read, first)))),
        // Reading a folder fails: its listing is the view of it.
        [_] if range.is_null() => Next::Call(ToolStep::new(
            "list_files",
            json!({"path": path, "depth": 2}),
        )),
        [read, list] if !list.is_ok() => Next::of(read),
        [.., last] => Next::of(last),
    })
}

/// Returns the lines that were read with their numbers, then the notes about them.
fn view_of(read: &Outcome, first: u64) -> String {
    let mut text = numbered(&read.text(), first);
    for note in &read.notes {
        text.extend(["\n[", note, "]"]);
    }
    text
}

/// Returns the text with line numbers.
fn numbered(text: &str, first: u64) -> String {
    let lines = text.lines().zip(first..);
    let lines = lines.map(|(line, number)| format!("{number:6}\t{line}\n"));
    lines.collect()
}
