//! `shell` and `local_shell` of Responses, `bash` of Anthropic: commands, as calls of `run_command`.

use haft::result::PartMark;
use haft::{Outcome, Status};
use serde_json::{Map, Value, json};

use crate::provided::step::{Next, ToolStep, one, with_item};

/// Maximum number of commands per call.
const MAX_COMMANDS: usize = 50;

/// Handles `shell`: one call per command, in order.
pub(super) fn shell(item: &Value, done: &[Outcome]) -> Next {
    let (id, action) = (
        item["call_id"].as_str().unwrap_or_default(),
        &item["action"],
    );
    let commands: Option<Vec<&str>> = action["commands"]
        .as_array()
        .and_then(|list| list.iter().map(Value::as_str).collect());
    let failed = |text: String| {
        let item = shell_item(id, action, &[failure(&text)]);
        with_item(&text, true, item)
    };
    let Some(commands) = commands.filter(|commands| !commands.is_empty()) else {
        return failed("invalid_arguments: the call names no commands".to_owned());
    };
    if commands.len() > MAX_COMMANDS {
        let count = commands.len();
        return failed(format!(
            "invalid_arguments: {count} commands; at most {MAX_COMMANDS} in one call"
        ));
    }
    if let Some(command) = commands.get(done.len()) {
        return Next::Call(run(json!({"command": command}), action));
    }
    let most = action["max_output_length"].as_u64();
    let outputs: Vec<Value> = done.iter().map(|outcome| output(outcome, most)).collect();
    let text: Vec<String> = done.iter().map(Outcome::to_model).collect();
    let is_error = done.iter().any(|outcome| !outcome.is_ok());
    with_item(&text.join("\n"), is_error, shell_item(id, action, &outputs))
}

/// Returns the item that answers a call of `shell`.
pub(super) fn shell_item(id: &str, action: &Value, outputs: &[Value]) -> String {
    let mut item = json!({"type": "shell_call_output", "call_id": id, "output": outputs});
    if let Some(most) = action.get("max_output_length").filter(|most| most.is_u64()) {
        item["max_output_length"] = most.clone();
    }
    item.to_string()
}

/// Returns the output of a command that did not run.
pub(super) fn failure(text: &str) -> Value {
    json!({"stdout": "", "stderr": text, "outcome": {"type": "exit", "exit_code": 1}})
}

/// Returns the output of one command.
fn output(outcome: &Outcome, most: Option<u64>) -> Value {
    let mut output = match CommandOutput::of(outcome) {
        Some(ran) => json!({"stdout": ran.stdout, "stderr": ran.stderr}),
        None => failure(&outcome.to_model()),
    };
    output["outcome"] = match (
        outcome.status,
        CommandOutput::of(outcome).and_then(|ran| ran.exit_code),
    ) {
        (Status::Timeout, _) => json!({"type": "timeout"}),
        (_, Some(code)) => json!({"type": "exit", "exit_code": code}),
        (status, None) => json!({"type": "exit", "exit_code": i32::from(status != Status::Ok)}),
    };
    if let Some(most) = most {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        for stream in ["stdout", "stderr"] {
            let text = output[stream].as_str().unwrap_or_default();
            output[stream] = haft::text::clip(text, most).into();
        }
    }
    output
}

/// The output of a command, and how it ended.
struct CommandOutput {
    stdout: String,
    stderr: String,
    exit_code: Option<i64>,
}

impl CommandOutput {
    /// Returns `None` if it did not run.
    fn of(outcome: &Outcome) -> Option<Self> {
        let data: Value = serde_json::from_str(outcome.data.as_ref()?.get()).ok()?;
        let text = |name: &str| Some(data.get(name)?.as_str()?.to_owned());
        let stdout = text("stdout")?;
        let mut stderr = text("stderr").unwrap_or_default();
        let rest = rest(outcome);
        if !(stderr.is_empty() || stderr.ends_with('\n') || rest.is_empty()) {
            stderr.push('\n');
        }
        stderr.push_str(&rest);
        Some(Self {
            stdout,
            stderr,
            exit_code: data.get("exit_code").and_then(Value::as_i64),
        })
    }
}

/// Returns what the item has no member for: why the call failed, unless the exit code says it, what it changed, and notes.
fn rest(outcome: &Outcome) -> String {
    let mut rendered = outcome.render();
    let reason = outcome.error.as_ref().map(|error| error.message.as_str());
    let by_code =
        reason.is_some_and(|reason| reason.starts_with("exit code ") && !reason.contains(';'));
    rendered.parts.retain(|part| match part.mark {
        PartMark::Stdout | PartMark::Stderr => false,
        PartMark::Status => !outcome.is_ok() && !by_code,
        // The item has a member for it.
        PartMark::Details => !part.text.starts_with("{\"exit_code\":") || part.text.contains(','),
        _ => true,
    });
    rendered.to_text()
}

/// Handles `local_shell`: program and arguments.
pub(super) fn local_shell(item: &Value, done: &[Outcome]) -> Next {
    let action = &item["action"];
    // The answer is matched by the item's own id.
    let id = item["id"].as_str().or_else(|| item["call_id"].as_str());
    let id = id.unwrap_or_default();
    let failed = |text: &str| with_item(text, true, local_item(id, text));
    if let Some(outcome) = done.last() {
        let text = outcome.to_model();
        return match CommandOutput::of(outcome) {
            None => failed(&text),
            Some(ran) => {
                let output = json!({
                    "stdout": ran.stdout, "stderr": ran.stderr, "exit_code": ran.exit_code,
                });
                let item = local_item(id, &output.to_string());
                with_item(&text, !outcome.is_ok(), item)
            }
        };
    }
    if action["user"].as_str().is_some_and(|user| !user.is_empty()) {
        return failed("invalid_arguments: commands run as the user of haft; leave `user` out");
    }
    let argv = &action["command"];
    if argv.as_array().is_none_or(Vec::is_empty) {
        return failed("invalid_arguments: the call names no command");
    }
    let mut arguments = json!({"argv": argv});
    if let Some(folder) = action["working_directory"].as_str() {
        arguments["cwd"] = folder.into();
    }
    if let Some(env) = action["env"].as_object().filter(|env| !env.is_empty()) {
        arguments["env"] = Value::Object(env.clone());
    }
    Next::Call(run(arguments, action))
}

/// Returns the item that answers a call of `local_shell`: its output is a text.
pub(super) fn local_item(id: &str, output: &str) -> String {
    json!({"type": "local_shell_call_output", "id": id, "output": output}).to_string()
}

/// Handles `bash`: a command, or a restart, which has no effect here.
pub(super) fn bash(input: &Value, done: &[Outcome]) -> Next {
    if input["restart"] == true {
        let text = "Nothing to restart: each command runs in a shell of its own. Write what must run together in one command.";
        return Next::Answer(Box::new(crate::conversation::AnswerText::text(text)));
    }
    let Some(command) = input["command"].as_str() else {
        return Next::failed("invalid_arguments: give {\"command\": TEXT} or {\"restart\": true}");
    };
    one(done, || run(json!({"command": command}), &Value::Null))
}

/// Returns a call of `run_command`, with the time limit that the action names, within the tool's own.
fn run(mut arguments: Value, action: &Value) -> ToolStep {
    if let Some(millis) = action.get("timeout_ms").and_then(Value::as_u64)
        && let Some(members) = arguments.as_object_mut()
    {
        limit(members, millis);
    }
    ToolStep::new("run_command", arguments)
}

fn limit(members: &mut Map<String, Value>, millis: u64) {
    const LONGEST: u64 = 600;
    let seconds = millis.div_ceil(1000).clamp(1, LONGEST);
    members.insert("timeout_s".to_owned(), seconds.into());
}
