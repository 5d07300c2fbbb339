//! Events of 10 MB: reading one takes a few times its size in memory, whatever its shape, and compares nothing pairwise.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;

use haft_hook::{Agent, HookVerdict, MAX_REASON, read, reply, rewrite_line};

const SIZE: usize = 10 * 1024 * 1024;

/// Returns the peak memory of this process, in bytes.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse::<usize>().unwrap() * 1024
}

/// Size of shapes that a debug build takes long to walk.
const PART: usize = SIZE / 4;

/// Repeats this item until the text has `size` bytes.
fn many(size: usize, item: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(size + 100);
    for nth in 0.. {
        if text.len() >= size {
            break;
        }
        text.push_str(&item(nth));
    }
    text
}

fn list(size: usize, item: impl Fn(usize) -> String) -> String {
    many(size, |nth| {
        format!("{}{}", if nth > 0 { "," } else { "" }, item(nth))
    })
}

/// Tools and inputs of every shape that may grow.
fn inputs() -> Vec<(&'static str, String)> {
    let lines = many(SIZE, |_| "ls\\n".to_owned());
    let words = list(PART, |_| "\"a\"".to_owned());
    let todos = list(SIZE, |nth| nth.to_string());
    let members = list(PART, |nth| format!("\"k{nth}\":{nth}"));
    let choices = many(PART, |_| "{a/b,".to_owned());
    let patch = many(SIZE, |nth| format!("*** Delete File: src/f{nth}.rs\\n"));
    vec![
        (
            "Write",
            format!(r#"{{"file_path":"a","content":"{}"}}"#, "x".repeat(SIZE)),
        ),
        ("Bash", format!(r#"{{"command":"{lines}"}}"#)),
        ("Bash", format!(r#"{{"command":[{words}]}}"#)),
        ("TodoWrite", format!(r#"{{"todos":[{todos}]}}"#)),
        ("Read", format!("{{{members}}}")),
        ("Glob", format!(r#"{{"path":".","pattern":"{choices}"}}"#)),
        ("apply_patch", format!(r#"{{"command":"{patch}"}}"#)),
    ]
}

/// Reads and answers an event; returns by how much that raised the peak memory of the process.
fn grown_by(agent: Agent, text: &str) -> usize {
    let before = peak();
    let event = read(agent, text.as_bytes()).unwrap();
    let deny = HookVerdict::Deny {
        reason: "x".repeat(SIZE),
    };
    let reply = reply(&event, &deny);
    assert!(reply.stdout.len() < 2 * MAX_REASON);
    let other = rewrite_line(&event, "true");
    assert!(other.is_none_or(|other| other.get().len() < 1000));
    peak() - before
}

/// A single test, because it measures the memory of the whole process.
#[test]
fn ten_megabytes_are_read_within_a_few_times_their_size() {
    let mut inputs: Vec<(String, String)> = inputs()
        .into_iter()
        .map(|(tool, input)| (tool.to_owned(), input))
        .collect();
    let long = format!("mcp__{}", "a__".repeat(SIZE / 3));
    inputs.push((long, "{}".to_owned()));
    for (tool, input) in &inputs {
        let agent = match tool.as_str() {
            "apply_patch" => Agent::Codex,
            _ => Agent::Claude,
        };
        let text = format!(
            r#"{{"hook_event_name":"PreToolUse","tool_name":"{tool}","tool_input":{input}}}"#
        );
        let grown = grown_by(agent, &text);
        // The stored input, its texts, the words of a list, the long reason: each is at most a few times 10 MB.
        let tool: String = tool.chars().take(20).collect();
        assert!(grown < 16 * SIZE, "{tool}: {} MB", grown >> 20);
    }
    // Members at the top level that no reader looks for.
    let members = list(PART, |nth| format!("\"k{nth}\":{nth}"));
    let text = format!(r#"{{"hook_event_name":"Stop",{members}}}"#);
    let grown = grown_by(Agent::Claude, &text);
    assert!(grown < 16 * SIZE, "{} MB", grown >> 20);
}
