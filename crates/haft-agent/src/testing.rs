//! `ScriptedModel`: a model that answers from a script, for tests of hosts and of the loop.

use std::collections::VecDeque;
use std::sync::Arc;

use haft::future::BoxFuture;
use haft_wire::{
    Call, CallKind, Delta, Dialect, Message, Reply, StopReason, Turn, TurnItem, Usage,
};
use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::model::{EventSink, Model, ModelError, ModelEvent, ModelRequest};

/// Gives scripted answers in order; an error once the script is exhausted.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    dialect: Dialect,
    script: Arc<Mutex<VecDeque<ScriptLine>>>,
    requests: Arc<Mutex<Vec<SeenRequest>>>,
}

#[derive(Debug)]
enum ScriptLine {
    Reply(Box<Reply>),
    Fails(String),
    Never,
}

/// A request that the model received.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    /// The instructions; empty if there are none.
    pub system: String,
    /// The conversation so far, oldest message first.
    pub messages: Vec<Message>,
    /// The declarations, as sent.
    pub tools: String,
    /// Whether tools may be called.
    pub choice: haft_wire::request::ToolChoice,
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new()
    }
}

impl ScriptedModel {
    /// Creates a model without answers yet, in the OpenAI Chat dialect.
    pub fn new() -> Self {
        Self {
            dialect: Dialect::OpenAiChat,
            script: Arc::default(),
            requests: Arc::default(),
        }
    }

    /// Sets the dialect in which tools are declared to it.
    pub fn in_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Adds a reply with this text.
    pub fn says(self, text: &str) -> Self {
        self.replies(vec![TurnItem::Text(text.to_owned())], StopReason::End)
    }

    /// Adds a reply with these function calls: id, name on the wire, arguments.
    pub fn calls<'a>(self, calls: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Self {
        let calls = calls
            .into_iter()
            .map(|(id, name, arguments)| TurnItem::Call(function_call(id, name, arguments)));
        let calls = calls.collect();
        self.replies(calls, StopReason::Calls)
    }

    /// Adds a reply with these items; it reports ten tokens read and five written.
    pub fn replies(self, items: Vec<TurnItem>, stop: StopReason) -> Self {
        let usage = Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        };
        self.replies_at(items, stop, usage)
    }

    /// Adds a reply with these items and this usage.
    pub fn replies_at(self, items: Vec<TurnItem>, stop: StopReason, usage: Usage) -> Self {
        let turn = Turn {
            dialect: self.dialect,
            items,
            raw: RawValue::NULL.to_owned(),
        };
        let reply = Reply {
            turn,
            stop,
            usage,
            id: None,
            model: None,
        };
        self.script
            .lock()
            .push_back(ScriptLine::Reply(Box::new(reply)));
        self
    }

    /// Adds a request that fails with this reason.
    pub fn fails(self, why: &str) -> Self {
        self.script
            .lock()
            .push_back(ScriptLine::Fails(why.to_owned()));
        self
    }

    /// Adds a request that is never answered.
    pub fn hangs(self) -> Self {
        self.script.lock().push_back(ScriptLine::Never);
        self
    }

    /// Returns the requests received so far.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.requests.lock().clone()
    }
}

/// Creates a function call.
pub fn function_call(id: &str, name: &str, arguments: &str) -> Call {
    Call {
        id: id.to_owned(),
        item: None,
        kind: CallKind::Function,
        name: name.to_owned(),
        namespace: None,
        toolset: None,
        caller: None,
        arguments: arguments.to_owned(),
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted:model"
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        watch: &'a mut EventSink<'_>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            self.requests.lock().push(SeenRequest {
                system: request.system.to_owned(),
                messages: request.messages.to_vec(),
                tools: String::from_utf8_lossy(request.tools.json()).into_owned(),
                choice: request.choice.clone(),
            });
            let line = self.script.lock().pop_front();
            match line {
                Some(ScriptLine::Reply(reply)) => {
                    let text = reply.turn.text();
                    if !text.is_empty() {
                        watch(ModelEvent::Delta(Delta::Text(text)));
                    }
                    Ok(*reply)
                }
                Some(ScriptLine::Fails(why)) => Err(ModelError::Other(why)),
                Some(ScriptLine::Never) => std::future::pending().await,
                None => Err(ModelError::Other("the script is at its end".to_owned())),
            }
        })
    }
}
