//! `Conversation`: the content of a request, independent of its dialect.

use serde_json::Value;

/// A request that was read and is valid.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) model: String,
    /// Whether the reply should be streamed.
    pub(crate) stream: bool,
    /// The instructions.
    pub(crate) system: String,
    /// The last text of the user.
    pub(crate) user: String,
    /// The tools that may be called.
    pub(crate) tools: Vec<RequestTool>,
    /// Which of them the model may or must call.
    pub(crate) choice: AllowedTools,
    /// Whether a turn may hold at most one call.
    pub(crate) one_call: bool,
    /// The turns of the model so far, each with its calls.
    pub(crate) turns: Vec<Vec<HistoryCall>>,
    /// The size of the request, in bytes.
    pub(crate) bytes: usize,
    /// What the reply repeats of the request, and other options of one dialect.
    pub(crate) own: EchoedRequest,
}

/// Which tools the model may or must call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum AllowedTools {
    /// The model decides.
    #[default]
    Auto,
    /// No tool.
    None,
    /// At least one.
    Required,
    /// Only these, by their wire names; and whether one of them must be called.
    Among(Vec<String>, bool),
}

/// A tool that a request declares.
#[derive(Debug, Clone)]
pub(crate) struct RequestTool {
    /// Its name on the wire; the type of a provider-defined tool without a name.
    pub(crate) name: String,
    /// The namespace that it is in (Responses).
    pub(crate) namespace: Option<String>,
    pub(crate) kind: ToolKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolKind {
    /// A function with a schema.
    Function,
    /// A tool with a text argument.
    Freeform,
    /// A tool that the provider defines or runs.
    Provider,
}

impl RequestTool {
    /// Creates a tool without a namespace.
    pub(crate) fn new(name: impl Into<String>, kind: ToolKind) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            kind,
        }
    }
}

/// A call in the history.
#[derive(Debug, Clone)]
pub(crate) struct HistoryCall {
    /// The id that its result refers to, if it has one.
    pub(crate) id: Option<String>,
    /// Its result, if the request contains one.
    pub(crate) result: Option<HistoryResult>,
}

/// A result in the history.
#[derive(Debug, Clone)]
pub(crate) struct HistoryResult {
    /// All texts of its content, one per line.
    pub(crate) text: String,
    /// Whether it is an error; `None` if the dialect has no flag for it.
    pub(crate) is_error: Option<bool>,
}

/// What the reply repeats of the request.
#[derive(Debug, Default)]
pub(crate) struct EchoedRequest {
    /// Whether a stream ends with the usage (Chat).
    pub(crate) usage: bool,
    /// Whether reasoning is also sent encrypted (Responses).
    pub(crate) encrypted: bool,
    /// Whether the reply can be continued by its id (Responses).
    pub(crate) store: bool,
    /// The whole history as items (Responses).
    pub(crate) items: Vec<Value>,
    /// The request, if the reply repeats its members (Responses).
    pub(crate) body: Value,
}

impl Conversation {
    /// Adds a result to the call that waits for it under this id: the last one, because some providers reuse ids.
    pub(crate) fn answer(&mut self, id: &str, result: HistoryResult) {
        let calls = self.turns.iter_mut().rev().flatten();
        let mut named = calls.filter(|call| call.id.as_deref() == Some(id));
        if let Some(call) = named.find(|call| call.result.is_none()) {
            call.result = Some(result);
        }
    }
}
