//! Renders data that a call returned as text for users: paths, matches, diffs, what a command changed; otherwise JSON.

use std::fmt::Write as _;

use serde_json::Value;

use crate::screen::{BOLD, DIM, GREEN, RED, styled, visible};

/// Renders data.
pub(crate) fn render(data: &str) -> String {
    let Ok(data) = serde_json::from_str::<Value>(data) else {
        return format!("{}\n", visible::block(data));
    };
    entries(&data)
        .or_else(|| matches(&data))
        .or_else(|| diff(&data))
        .unwrap_or_else(|| {
            let pretty = serde_json::to_string_pretty(&data).unwrap_or_default();
            format!("{}\n", visible::block(&pretty))
        })
}

/// Renders what is known of a command besides its output: what it changed, the task that goes on, and everything else by name.
pub(crate) fn details(data: &str) -> String {
    let mut out = String::new();
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(data) else {
        return format!("{}\n", visible::block(data));
    };
    for (name, value) in &members {
        match (name.as_str(), value) {
            ("changes", Value::Array(changes)) => out.push_str(&changed(changes)),
            (_, Value::String(value)) => {
                let _ = writeln!(out, "{} {}", visible::line(name), visible::line(value));
            }
            (_, value) => {
                let value = visible::line(&value.to_string());
                let line = format!("{} {value}", visible::line(name));
                let _ = writeln!(out, "{}", styled(DIM, &line));
            }
        }
    }
    out
}

/// Maximum number of changed files that are listed.
const LISTED: usize = 20;

/// Renders the files that a command changed: a commit or an installation changes thousands. What git keeps for itself is only counted, unless
/// there is nothing else.
fn changed(changes: &[Value]) -> String {
    let path = |change: &Value| text(change, "path").unwrap_or_default().to_owned();
    let is_own = |change: &&Value| !path(change).split('/').any(|part| part == ".git");
    let own: Vec<&Value> = changes.iter().filter(is_own).collect();
    let listed = if own.is_empty() {
        changes.iter().collect()
    } else {
        own
    };
    let mut out = String::new();
    for change in listed.iter().take(LISTED) {
        let action = text(change, "action").unwrap_or("changed");
        let line = format!("{action} {}", visible::line(&path(change)));
        let _ = writeln!(out, "{}", styled(DIM, &line));
    }
    let more = changes.len() - listed.len().min(LISTED);
    if more > 0 {
        let of_git = changes.len() - listed.len();
        let of_git = match of_git {
            0 => String::new(),
            number => format!(", {number} of them git's own files"),
        };
        let line = format!("and {more} more{of_git}");
        let _ = writeln!(out, "{}", styled(DIM, &line));
    }
    out
}

fn text<'a>(data: &'a Value, name: &str) -> Option<&'a str> {
    data.get(name)?.as_str()
}

/// Renders one path per line; folders end with a slash.
fn entries(data: &Value) -> Option<String> {
    let list = data.get("entries")?.as_array()?;
    let mut out = String::new();
    for entry in list {
        let slash = if text(entry, "kind") == Some("directory") {
            "/"
        } else {
            ""
        };
        let _ = writeln!(out, "{}{slash}", visible::line(text(entry, "path")?));
    }
    Some(out + cut(data))
}

/// Renders `path:line:text`, as grep prints it.
fn matches(data: &Value) -> Option<String> {
    let list = data.get("matches")?.as_array()?;
    let mut out = String::new();
    for found in list {
        let path = styled(BOLD, &visible::line(text(found, "path")?));
        match (
            found.get("line").and_then(Value::as_u64),
            text(found, "text"),
        ) {
            (Some(line), Some(text)) => {
                let _ = writeln!(out, "{path}:{line}:{}", visible::line(text));
            }
            _ => match found.get("count").and_then(Value::as_u64) {
                Some(count) => {
                    let _ = writeln!(out, "{path}:{count}");
                }
                None => {
                    let _ = writeln!(out, "{path}");
                }
            },
        }
    }
    Some(out + cut(data))
}

fn diff(data: &Value) -> Option<String> {
    let lines = text(data, "diff")?.lines().map(|line| {
        let shown = visible::line(line);
        match line.as_bytes().first() {
            Some(b'+') => styled(GREEN, &shown),
            Some(b'-') => styled(RED, &shown),
            _ => shown,
        }
    });
    Some(lines.map(|line| line + "\n").collect())
}

fn cut(data: &Value) -> &'static str {
    if data.get("truncated").and_then(Value::as_bool) == Some(true) {
        "… there is more\n"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{details, render};

    #[test]
    fn what_people_know_as_text_is_text() {
        let rows = [
            (
                json!({"entries": [{"path": "a", "kind": "directory"}, {"path": "b", "kind": "file"}], "truncated": true}),
                "a/\nb\n… there is more\n",
            ),
            (json!({"tasks": []}), "{\n  \"tasks\": []\n}\n"),
            (
                json!({"entries": [{"kind": "file"}]}),
                "{\n  \"entries\": [\n    {\n      \"kind\": \"file\"\n    }\n  ]\n}\n",
            ),
        ];
        for (data, out) in rows {
            assert_eq!(render(&data.to_string()), out);
        }
    }

    #[test]
    fn nothing_that_is_known_of_a_command_is_left_out() {
        let data = json!({
            "changes": [{"path": "x", "action": "added"}], "task": "cmd-1", "not_applied": [{"path": "y", "why": "denied"}],
        });
        let shown = details(&data.to_string());
        for part in ["added x", "task cmd-1", "not_applied", r#""path":"y""#] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
