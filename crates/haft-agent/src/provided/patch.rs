//! `apply_patch` of Responses: one operation on one file, as a patch of haft's `apply_patch`.

use haft::Outcome;
use serde_json::{Value, json};

use crate::provided::step::{Next, ToolStep, with_item};

/// Returns what to do next.
pub(super) fn next(item: &Value, done: &[Outcome]) -> Next {
    let id = item["call_id"].as_str().unwrap_or_default();
    if let Some(outcome) = done.last() {
        let text = outcome.to_model();
        let failed = (!outcome.is_ok()).then_some(text.as_str());
        return with_item(&text, failed.is_some(), self::item(id, failed));
    }
    match patch_of(&item["operation"]) {
        Ok(patch) => Next::Call(ToolStep::new("apply_patch", json!({"patch": patch}))),
        Err(why) => {
            let text = format!("invalid_arguments: {why}");
            with_item(&text, true, self::item(id, Some(&text)))
        }
    }
}

/// Returns the item that answers a call: completed, or failed with a text.
pub(super) fn item(id: &str, failed: Option<&str>) -> String {
    let mut item = json!({"type": "apply_patch_call_output", "call_id": id});
    match failed {
        None => item["status"] = "completed".into(),
        Some(text) => {
            item["status"] = "failed".into();
            item["output"] = text.into();
        }
    }
    item.to_string()
}

/// Returns the patch of an operation. Refuses anything that would patch another file, too: the item names only one.
fn patch_of(operation: &Value) -> Result<String, String> {
    let text = |name: &str| operation[name].as_str();
    let path = text("path").ok_or("the operation names no path")?;
    if path.is_empty() || path.chars().any(char::is_control) || path.trim() != path {
        return Err(format!("{path:?} is not a path"));
    }
    let diff = text("diff").unwrap_or_default();
    let another = |line: &str| line.starts_with("*** ") && line.trim_end() != "*** End of File";
    if diff.lines().any(another) {
        return Err("a diff holds the changes of one file, without `***` lines".to_owned());
    }
    let (verb, body) = match text("type") {
        Some("delete_file") => ("Delete", ""),
        Some("update_file") => ("Update", diff),
        Some("create_file") => {
            if let Some(line) = diff.lines().find(|line| !line.starts_with('+')) {
                let line = haft::text::clip(line, 80);
                return Err(format!(
                    "each line of a new file begins with `+`, not {line:?}"
                ));
            }
            ("Add", diff)
        }
        other => return Err(format!("{other:?} is not an operation")),
    };
    let end = if body.is_empty() || body.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Ok(format!(
        "*** Begin Patch\n*** {verb} File: {path}\n{body}{end}*** End Patch\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_become_patches_of_the_one_file_that_they_name() {
        let rows = [
            (
                json!({"type": "create_file", "path": "a.txt", "diff": "+one\n+two\n"}),
                Ok("*** Add File: a.txt\n+one\n+two\n"),
            ),
            (
                json!({"type": "update_file", "path": "a.txt", "diff": "@@\n-one\n+1"}),
                Ok("*** Update File: a.txt\n@@\n-one\n+1\n"),
            ),
            (
                json!({"type": "delete_file", "path": "a.txt"}),
                Ok("*** Delete File: a.txt\n"),
            ),
            (
                json!({"type": "update_file", "path": "a", "diff": "@@\n-x\n*** Delete File: b\n"}),
                Err("one file"),
            ),
            (
                json!({"type": "update_file", "path": "a\n*** Delete File: b", "diff": ""}),
                Err("is not a path"),
            ),
            (
                json!({"type": "create_file", "path": "a", "diff": "one"}),
                Err("begins with `+`"),
            ),
            (
                json!({"type": "rename_file", "path": "a"}),
                Err("is not an operation"),
            ),
            (json!({"path": "a"}), Err("is not an operation")),
            (json!(null), Err("names no path")),
        ];
        for (operation, expect) in rows {
            match (patch_of(&operation), expect) {
                (Ok(patch), Ok(inner)) => {
                    assert_eq!(patch, format!("*** Begin Patch\n{inner}*** End Patch\n"));
                }
                (Err(why), Err(says)) => assert!(why.contains(says), "{operation}: {why}"),
                (got, _) => panic!("{operation}: {got:?}"),
            }
        }
    }
}
