//! The deciding fact of an approval, whole: the command, the diff, the URL, else the arguments.

use std::path::Path;

use haft::approval::ApprovalRequest;
use haft::permission::{Effect, Verdict};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::plain_file;
use crate::screen::{BOLD, DIM, GREEN, RED, YELLOW, styled, visible};

/// The largest file that is compared; above it the new text alone is shown.
const MAX_COMPARED: u64 = 1024 * 1024;

/// The lines to show, safe to print.
pub(crate) fn lines(request: &ApprovalRequest, workspace: &Path) -> Vec<String> {
    let arguments: Value = serde_json::from_str(&request.arguments).unwrap_or_default();
    let mut out = run(request, &arguments);
    for permission in &request.permissions {
        if let Effect::Connect { url, host } = &permission.effect {
            out.push(connect(url, host));
        }
    }
    out.extend(change(&arguments, workspace));
    if out.is_empty() {
        let text = serde_json::to_string_pretty(&arguments).unwrap_or_default();
        let text = if arguments.is_null() {
            request.arguments.clone()
        } else {
            text
        };
        out.extend(visible::block(&text).lines().map(str::to_owned));
    }
    out
}

/// The whole command line with where and under which variables it runs, then what it comes to: every part by itself, and
/// what it writes, each with what the policy says of it.
fn run(request: &ApprovalRequest, arguments: &Value) -> Vec<String> {
    let effects = || request.permissions.iter().map(|p| &p.effect).enumerate();
    let parts: Vec<(usize, &str)> = effects()
        .filter_map(|(at, effect)| match effect {
            Effect::Run { command, .. } => Some((at, command.as_str())),
            _ => None,
        })
        .collect();
    let Some((_, first)) = parts.first() else {
        return Vec::new();
    };
    let line = arguments.get("command").and_then(Value::as_str);
    let line = line.unwrap_or(first);
    let mut out = command_lines(line);
    if let Some(cwd) = arguments.get("cwd").and_then(Value::as_str) {
        out.push(format!("  in     {}", visible::line(cwd)));
    }
    let variables = arguments.get("env").and_then(Value::as_object);
    for (name, value) in variables.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        out.push(format!(
            "  with   {}",
            visible::line(&format!("{name}={value}"))
        ));
    }
    if parts.len() > 1 {
        let runs = |(at, part): &(usize, &str)| judged(request, *at, "runs", &visible::line(part));
        out.extend(parts.iter().map(runs));
    }
    for (at, effect) in effects() {
        if let Effect::Write(claim) = effect {
            let path = styled(BOLD, &visible::line(&claim.path));
            out.push(judged(request, at, "writes", &path));
        }
    }
    out
}

/// A part of a command; the verdict stands before it, where nothing that the part says can pass for one.
fn judged(request: &ApprovalRequest, at: usize, does: &str, part: &str) -> String {
    let Some(verdict) = request.verdicts.get(at) else {
        return format!("  {does:<6} {part}");
    };
    let style = match verdict {
        Verdict::Allow => DIM,
        Verdict::Ask => YELLOW,
        Verdict::Deny => RED,
    };
    let word = styled(style, &format!("{:<6}", verdict.as_str()));
    format!("  {word} {does} {part}")
}

fn command_lines(command: &str) -> Vec<String> {
    let shown = visible::block(command);
    let mark = |(i, line): (usize, &str)| {
        let mark = if i == 0 { "$" } else { ">" };
        format!("{mark} {}", styled(BOLD, line))
    };
    shown.lines().enumerate().map(mark).collect()
}

fn connect(url: &str, host: &str) -> String {
    let (url, host) = (visible::line(url), visible::line(host));
    match url.split_once(&host) {
        Some((before, after)) if !host.is_empty() => {
            format!("{before}{}{after}", styled(BOLD, &host))
        }
        _ => format!("{url} (host {})", styled(BOLD, &host)),
    }
}

/// What a write would change, as a diff.
fn change(arguments: &Value, workspace: &Path) -> Vec<String> {
    let Some(path) = arguments.get("path").and_then(Value::as_str) else {
        return patch(arguments);
    };
    let head = styled(BOLD, &visible::line(path));
    if let Some(content) = arguments.get("content").and_then(Value::as_str) {
        let mode = arguments
            .get("mode")
            .and_then(Value::as_str)
            .unwrap_or("overwrite");
        let old = plain_file::read(&workspace.join(path), MAX_COMPARED).unwrap_or_default();
        let new = if mode == "append" {
            format!("{old}{content}")
        } else {
            content.to_owned()
        };
        let mut out = vec![format!("{head} ({})", visible::line(mode))];
        out.extend(diff(&old, &new));
        return out;
    }
    let Some(edits) = arguments.get("edits").and_then(Value::as_array) else {
        return Vec::new();
    };
    let mut out = vec![head];
    for edit in edits {
        out.extend(edit_lines(edit));
    }
    out
}

fn patch(arguments: &Value) -> Vec<String> {
    let patch = arguments
        .get("patch")
        .and_then(Value::as_str)
        .unwrap_or_default();
    visible::block(patch).lines().map(str::to_owned).collect()
}

fn edit_lines(edit: &Value) -> Vec<String> {
    let text = |name: &str| edit.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| edit.get(name).and_then(Value::as_u64);
    let mut out = Vec::new();
    if let (Some(from), Some(to)) = (number("start_line"), number("end_line")) {
        out.push(format!("@@ lines {from} to {to} become"));
    } else if edit.get("all").and_then(Value::as_bool) == Some(true) {
        out.push("@@ everywhere".to_owned());
    } else {
        out.push("@@".to_owned());
    }
    out.extend(diff(text("find"), text("replace")));
    out
}

/// Changed lines with three unchanged ones around them.
fn diff(old: &str, new: &str) -> Vec<String> {
    const AROUND: usize = 3;
    let diff = TextDiff::from_lines(old, new);
    let mut out = Vec::new();
    for group in diff.grouped_ops(AROUND) {
        if !out.is_empty() {
            out.push("…".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = visible::block(change.value().trim_end_matches('\n'));
            out.push(match change.tag() {
                ChangeTag::Delete => styled(RED, &format!("-{line}")),
                ChangeTag::Insert => styled(GREEN, &format!("+{line}")),
                ChangeTag::Equal => format!(" {line}"),
            });
        }
    }
    out
}
