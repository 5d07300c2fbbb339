//! `Conversation`: what a request says, whatever its dialect.

use serde_json::Value;

/// A request that was read and found right.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The model.
    pub(crate) model: String,
    /// Whether the reply is to come as a stream.
    pub(crate) stream: bool,
    /// The instructions.
    pub(crate) system: String,
    /// The last text that the user says.
    pub(crate) user: String,
    /// The tools that may be called.
    pub(crate) tools: Vec<Tool>,
    /// Which of them.
    pub(crate) choice: Choice,
    /// Whether a turn may hold one call at most.
    pub(crate) one_call: bool,
    /// The turns that the model had so far, each with its calls.
    pub(crate) turns: Vec<Vec<Call>>,
    /// The size of the request, in bytes.
    pub(crate) bytes: usize,
    /// What the reply repeats of the request, and other wishes of one dialect.
    pub(crate) own: Own,
}

/// Which tools the model may call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// As it likes.
    #[default]
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// These alone, by their wire names; whether one of them must be called.
    Among(Vec<String>, bool),
}

/// A tool that a request declares.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    /// Its name on the wire; of a tool that the provider defines without a name, its type.
    pub(crate) name: String,
    /// The namespace that it stands in (Responses).
    pub(crate) namespace: Option<String>,
    /// What sort of tool.
    pub(crate) kind: ToolKind,
}

/// What sort of tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolKind {
    /// By its schema.
    Function,
    /// Its argument is a text.
    Freeform,
    /// The provider defines or runs it.
    Provider,
}

impl Tool {
    /// A tool without a namespace.
    pub(crate) fn new(name: impl Into<String>, kind: ToolKind) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            kind,
        }
    }
}

/// A call of the history.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The id that its result names, where it has one.
    pub(crate) id: Option<String>,
    /// Its result, where the request holds one.
    pub(crate) result: Option<CallResult>,
}

/// A result of the history.
#[derive(Debug, Clone)]
pub(crate) struct CallResult {
    /// Its texts.
    pub(crate) text: String,
    /// Whether it is an error; `None` where the dialect has no flag for it.
    pub(crate) is_error: Option<bool>,
}

/// What the reply repeats of the request.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// A stream ends with the usage (Chat).
    pub(crate) usage: bool,
    /// Reasoning comes encrypted, too (Responses).
    pub(crate) encrypted: bool,
    /// The reply may be continued by its id (Responses).
    pub(crate) store: bool,
    /// The whole history as items (Responses).
    pub(crate) items: Vec<Value>,
    /// The request, where the reply repeats its members (Responses).
    pub(crate) body: Value,
}

impl Conversation {
    /// Puts a result to the call that waits for it under this id: the last one, because some providers use ids again.
    pub(crate) fn answer(&mut self, id: &str, result: CallResult) {
        let calls = self.turns.iter_mut().rev().flatten();
        let mut named = calls.filter(|call| call.id.as_deref() == Some(id));
        if let Some(call) = named.find(|call| call.result.is_none()) {
            call.result = Some(result);
        }
    }
}
