//! Renders what a call returned as text for users: paths, matches, a command's output; otherwise JSON.

use std::fmt::Write as _;

use serde_json::Value;

use crate::screen::{BOLD, DIM, GREEN, RED, styled, visible};

/// The data as text, with standard error separate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DataText {
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Renders data. `shown` tells whether a command's output was already shown on the terminal while it ran.
pub(crate) fn render(data: &Value, shown: bool) -> DataText {
    if let (Some(stdout), Some(stderr)) = (text(data, "stdout"), text(data, "stderr")) {
        return command(data, [stdout, stderr], shown);
    }
    let out = entries(data)
        .or_else(|| matches(data))
        .or_else(|| diff(data))
        .unwrap_or_else(|| {
            let pretty = serde_json::to_string_pretty(data).unwrap_or_default();
            format!("{}\n", visible::block(&pretty))
        });
    DataText {
        out,
        err: String::new(),
    }
}

fn text<'a>(data: &'a Value, name: &str) -> Option<&'a str> {
    data.get(name)?.as_str()
}

fn command(data: &Value, [stdout, stderr]: [&str; 2], shown: bool) -> DataText {
    let mut texts = DataText::default();
    if !shown {
        texts.out = ended(&visible::block(stdout));
        texts.err = ended(&visible::block(stderr));
    }
    let changes = data.get("changes").and_then(Value::as_array);
    for change in changes.into_iter().flatten() {
        let (action, path) = (text(change, "action"), text(change, "path"));
        let _ = writeln!(
            texts.err,
            "{}",
            styled(
                DIM,
                &format!(
                    "{} {}",
                    action.unwrap_or("changed"),
                    visible::line(path.unwrap_or_default())
                )
            )
        );
    }
    if let Some(task) = text(data, "task") {
        let _ = writeln!(texts.err, "task {}", visible::line(task));
    }
    texts
}

fn ended(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}\n")
    }
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

    use super::render;

    #[test]
    fn what_people_know_as_text_is_text() {
        let rows = [
            (
                json!({"stdout": "a\nb", "stderr": "e", "exit_code": 0}),
                "a\nb\n",
                "e\n",
            ),
            (
                json!({"entries": [{"path": "a", "kind": "directory"}, {"path": "b", "kind": "file"}], "truncated": true}),
                "a/\nb\n… there is more\n",
                "",
            ),
            (json!({"tasks": []}), "{\n  \"tasks\": []\n}\n", ""),
            (
                json!({"entries": [{"kind": "file"}]}),
                "{\n  \"entries\": [\n    {\n      \"kind\": \"file\"\n    }\n  ]\n}\n",
                "",
            ),
        ];
        for (data, out, err) in rows {
            let texts = render(&data, false);
            assert_eq!((texts.out.as_str(), texts.err.as_str()), (out, err));
        }
        let shown = render(
            &json!({"stdout": "a", "stderr": "", "changes": [{"path": "x", "action": "added"}]}),
            true,
        );
        assert!(shown.out.is_empty() && shown.err.contains("added x"));
    }
}
