//! `ComposedReply`: the model's answer to one request: a turn of the scenario, with the names that this request declares.

use haft_wire::Dialect;
use serde_json::{Map, Value, json};

use crate::conversation::{AllowedTools, Conversation, RequestTool, ToolKind};
use crate::names;
use crate::scenario::{
    CallPiece, PatchAction, PatchPiece, ReplyPiece, ReplyUsage, ScenarioStop, ScenarioTurn,
    ShellPiece,
};

/// A reply, independent of any dialect except for its items.
#[derive(Debug)]
pub(crate) struct ComposedReply {
    /// Its pieces, in order.
    pub(crate) outputs: Vec<ReplyOutput>,
    /// The reason why the model stops.
    pub(crate) stop: ScenarioStop,
    pub(crate) usage: ReplyUsage,
    pub(crate) model: String,
    /// Its number, from 1, from which ids are made.
    pub(crate) number: u64,
}

/// One piece of a reply.
#[derive(Debug)]
pub(crate) enum ReplyOutput {
    Text(String),
    Thinking(String),
    /// A refusal of the model.
    Refusal(String),
    Call(OutCall),
    /// An item in wire format.
    Item(Value),
}

/// A call with its name on the wire.
#[derive(Debug, Clone)]
pub(crate) struct OutCall {
    /// The id that the result refers to.
    pub(crate) id: String,
    /// The tool's wire name.
    pub(crate) name: String,
    /// The namespace in which it was declared.
    pub(crate) namespace: Option<String>,
    /// Whether the argument is a text.
    pub(crate) is_freeform: bool,
    /// The arguments: JSON text, unless they are a text or deliberately invalid JSON.
    pub(crate) arguments: String,
}

impl OutCall {
    /// Returns the arguments as an object, for a dialect that does not carry them as text.
    pub(crate) fn object(&self) -> Result<Value, String> {
        let object = serde_json::from_str::<Map<String, Value>>(&self.arguments);
        object.map(Value::Object).map_err(|error| {
            let id = &self.id;
            format!("the raw arguments of the call `{id}` are not a JSON object ({error}), but this dialect carries one in their place; use openai-chat, openai-responses, or a stream of anthropic")
        })
    }
}

/// The types of items that are calls for the client.
const CALLS: [&str; 7] = [
    "tool_use",
    "function_call",
    "custom_tool_call",
    "shell_call",
    "local_shell_call",
    "apply_patch_call",
    "computer_call",
];

/// Returns whether the client must answer this item.
fn is_answered(item: &Value) -> bool {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
    let client = item.get("execution").and_then(Value::as_str) == Some("client");
    let client = client && kind == "tool_search_call";
    client || CALLS.contains(&kind) || item.get("functionCall").is_some()
}

/// Builds the reply of a turn.
///
/// # Errors
/// If the request does not allow this answer: a tool is not declared, a call is not allowed, or one that is required
/// is missing; or if a freeform tool is called without `input`.
pub(crate) fn compose(
    turn: &ScenarioTurn,
    dialect: Dialect,
    conversation: &Conversation,
    number: u64,
) -> Result<ComposedReply, String> {
    let mut composer = Composer {
        dialect,
        tools: &conversation.tools,
        number,
        outputs: Vec::new(),
    };
    for (at, piece) in (1..).zip(&turn.say) {
        composer.add(piece, at)?;
    }
    let outputs = composer.outputs;
    let calls = outputs.iter().any(|output| match output {
        ReplyOutput::Call(_) => true,
        ReplyOutput::Item(item) => is_answered(item),
        _ => false,
    });
    check_allowed(conversation, &outputs, calls, turn.stop)?;
    let default = if calls {
        ScenarioStop::Calls
    } else {
        ScenarioStop::End
    };
    Ok(ComposedReply {
        stop: turn.stop.unwrap_or(default),
        usage: turn.usage.unwrap_or_else(|| cost(conversation, &outputs)),
        outputs,
        model: conversation.model.clone(),
        number,
    })
}

/// Checks that the request allows these calls.
fn check_allowed(
    conversation: &Conversation,
    outputs: &[ReplyOutput],
    calls: bool,
    stop: Option<ScenarioStop>,
) -> Result<(), String> {
    let made = || {
        outputs.iter().filter_map(|output| match output {
            ReplyOutput::Call(call) => Some(call.name.as_str()),
            _ => None,
        })
    };
    if conversation.one_call && made().count() > 1 {
        return Err("the turn makes several calls, and the request allows one".to_owned());
    }
    match &conversation.choice {
        AllowedTools::None if calls => {
            Err("the turn makes a call, and the request allows none".to_owned())
        }
        AllowedTools::Required | AllowedTools::Among(_, true) if !calls && stop.is_none() => {
            Err("the turn makes no call, and the request demands one".to_owned())
        }
        AllowedTools::Among(names, _) => {
            match made().find(|name| !names.iter().any(|allowed| allowed == name)) {
                Some(name) => Err(format!(
                    "the turn calls `{name}`, and the request allows only {}",
                    names.join(", ")
                )),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Estimates a quarter of the bytes as tokens, read and written.
fn cost(conversation: &Conversation, outputs: &[ReplyOutput]) -> ReplyUsage {
    let bytes = |output: &ReplyOutput| match output {
        ReplyOutput::Text(text) | ReplyOutput::Thinking(text) | ReplyOutput::Refusal(text) => {
            text.len()
        }
        ReplyOutput::Call(call) => call.name.len() + call.arguments.len(),
        ReplyOutput::Item(item) => item.to_string().len(),
    };
    let tokens = |bytes: usize| u64::try_from(bytes / 4 + 1).unwrap_or(u64::MAX);
    let thoughts = outputs
        .iter()
        .filter(|o| matches!(o, ReplyOutput::Thinking(_)));
    let thoughts: usize = thoughts.map(bytes).sum();
    ReplyUsage {
        input: tokens(conversation.bytes),
        cached: 0,
        output: tokens(outputs.iter().map(bytes).sum()),
        thinking: if thoughts == 0 { 0 } else { tokens(thoughts) },
    }
}

struct Composer<'c> {
    dialect: Dialect,
    tools: &'c [RequestTool],
    number: u64,
    outputs: Vec<ReplyOutput>,
}

impl Composer<'_> {
    fn add(&mut self, piece: &ReplyPiece, at: usize) -> Result<(), String> {
        match piece {
            ReplyPiece::Text(text) => self.outputs.push(ReplyOutput::Text(text.clone())),
            ReplyPiece::Thinking(text) => self.outputs.push(ReplyOutput::Thinking(text.clone())),
            ReplyPiece::Refusal(text) => self.outputs.push(ReplyOutput::Refusal(text.clone())),
            ReplyPiece::Call(call) => self.call(call, at)?,
            ReplyPiece::Patch(patch) => self.patch(patch, at)?,
            ReplyPiece::Shell(shell) => self.shell(shell, at)?,
            ReplyPiece::Item(items) => {
                let own = items.get(self.dialect.as_str());
                self.outputs.extend(own.cloned().map(ReplyOutput::Item));
            }
        }
        Ok(())
    }

    /// Returns the id of a call: the scenario's, else one made from the number of the reply and the position in it.
    fn id(&self, id: Option<&String>, at: usize) -> String {
        let prefix = match self.dialect {
            Dialect::Anthropic => "toolu",
            _ => "call",
        };
        id.cloned()
            .unwrap_or_else(|| format!("{prefix}_{}_{at}", self.number))
    }

    fn find(&self, name: &str) -> Result<&RequestTool, String> {
        names::find(self.tools, name).ok_or_else(|| {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).take(50).collect();
            format!(
                "the turn calls `{name}`, which the request does not declare (declared: {}); declare it, or say `undeclared = true`",
                names.join(", ")
            )
        })
    }

    /// Returns the provider-defined tool of this type, if it is declared.
    fn provider(&self, kind: &str) -> Option<&RequestTool> {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.kind == ToolKind::Provider && tool.name == kind)
    }

    fn call(&mut self, call: &CallPiece, at: usize) -> Result<(), String> {
        let undeclared;
        let tool = match self.find(&call.tool) {
            Err(_) if call.undeclared => {
                undeclared = RequestTool::new(call.tool.as_str(), ToolKind::Function);
                &undeclared
            }
            found => found?,
        };
        let is_freeform = tool.kind == ToolKind::Freeform;
        let arguments = match (&call.raw, &call.input) {
            (Some(raw), _) => raw.clone(),
            (_, Some(input)) if is_freeform => input.clone(),
            (_, Some(input)) => json!({"input": input}).to_string(),
            _ if is_freeform => {
                let name = &call.tool;
                return Err(format!(
                    "`{name}` is declared as a freeform tool; give its call an `input`"
                ));
            }
            _ => Value::Object(call.arguments.clone().unwrap_or_default()).to_string(),
        };
        let out = OutCall {
            id: self.id(call.id.as_ref(), at),
            name: tool.name.clone(),
            namespace: tool.namespace.clone(),
            is_freeform,
            arguments,
        };
        self.outputs.push(ReplyOutput::Call(out));
        Ok(())
    }

    /// Adds a call of a function or a provider-defined tool, with these arguments.
    fn function(&mut self, name: &str, id: String, arguments: &Value) -> Result<(), String> {
        let tool = self.find(name)?;
        let out = OutCall {
            id,
            name: tool.name.clone(),
            namespace: tool.namespace.clone(),
            is_freeform: tool.kind == ToolKind::Freeform,
            arguments: match (tool.kind, arguments.get("patch").and_then(Value::as_str)) {
                (ToolKind::Freeform, Some(patch)) => patch.to_owned(),
                _ => arguments.to_string(),
            },
        };
        self.outputs.push(ReplyOutput::Call(out));
        Ok(())
    }

    fn patch(&mut self, patch: &PatchPiece, at: usize) -> Result<(), String> {
        let id = self.id(patch.id.as_ref(), at);
        let path = &patch.path;
        let diff = patch.diff.as_deref().unwrap_or_default();
        if self.provider("apply_patch").is_some() {
            let operation = match patch.action {
                PatchAction::Create => json!({"type": "create_file", "path": path, "diff": diff}),
                PatchAction::Update => json!({"type": "update_file", "path": path, "diff": diff}),
                PatchAction::Delete => json!({"type": "delete_file", "path": path}),
            };
            self.outputs.push(ReplyOutput::Item(json!({
                "type": "apply_patch_call", "id": format!("apc_{}_{at}", self.number),
                "call_id": id, "status": "completed", "operation": operation,
            })));
            return Ok(());
        }
        let word = match patch.action {
            PatchAction::Create => "Add",
            PatchAction::Update => "Update",
            PatchAction::Delete => "Delete",
        };
        let diff = diff.trim_end_matches('\n');
        let line = if diff.is_empty() { "" } else { "\n" };
        let text = format!("*** Begin Patch\n*** {word} File: {path}\n{diff}{line}*** End Patch\n");
        self.function("apply_patch", id, &json!({"patch": text}))
    }

    fn shell(&mut self, shell: &ShellPiece, at: usize) -> Result<(), String> {
        let id = self.id(shell.id.as_ref(), at);
        if self.provider("shell").is_some() {
            let mut action = json!({"commands": shell.commands});
            if let Some(millis) = shell.timeout_ms {
                action["timeout_ms"] = json!(millis);
            }
            self.outputs.push(ReplyOutput::Item(json!({
                "type": "shell_call", "id": format!("sh_{}_{at}", self.number),
                "call_id": id, "status": "completed", "action": action,
            })));
            return Ok(());
        }
        for (number, command) in (1..).zip(&shell.commands) {
            let id = if number == 1 {
                id.clone()
            } else {
                format!("{id}_{number}")
            };
            if self.provider("local_shell").is_some() {
                let mut action =
                    json!({"type": "exec", "command": ["bash", "-lc", command], "env": {}});
                if let Some(millis) = shell.timeout_ms {
                    action["timeout_ms"] = json!(millis);
                }
                self.outputs.push(ReplyOutput::Item(json!({
                    "type": "local_shell_call",
                    "id": format!("lsh_{}_{at}_{number}", self.number),
                    "call_id": id, "status": "completed", "action": action,
                })));
                continue;
            }
            let bash = self.provider("bash").is_some();
            let name = if bash { "bash" } else { "run_command" };
            let mut arguments = json!({"command": command});
            if let (false, Some(millis)) = (bash, shell.timeout_ms) {
                arguments["timeout_s"] = json!(millis.div_ceil(1000));
            }
            self.function(name, id, &arguments)?;
        }
        Ok(())
    }
}
