//! Reads streamed replies of Responses.
//!
//! Every item arrives complete once it is done, and the last event contains them all: pieces are only for a screen, and a missing or
//! repeated one does not change the reply. What runs is the last event's, so a call in it must be the one that the stream showed.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::error::{WireError, quote};
use crate::events::SseParser;
use crate::fault::StreamError;
use crate::limits::ReplyLimits;
use crate::loose::{LooseText, Members, list, malformed, owned, reported, utf8};
use crate::reply::{Call, CallKind, Reply, Usage};
use crate::responses::item::call;
use crate::responses::read::ResponsesBody;
use crate::stream::Delta;

const RESPONSES: Dialect = Dialect::OpenAiResponses;

#[derive(Debug, Deserialize)]
struct ResponsesEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: LooseText<'a>,
    #[serde(default)]
    sequence_number: Option<i64>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(borrow, default)]
    delta: LooseText<'a>,
    #[serde(borrow, default)]
    item_id: LooseText<'a>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// A call that has started.
#[derive(Debug)]
struct ResponsesPartialCall {
    /// Its position in the output; some servers send none, or the same one for all.
    output: Option<u64>,
    id: String,
    /// The second id, which pieces name.
    item: Option<String>,
    is_done: bool,
    /// Whether a piece of its arguments was received.
    has_pieces: bool,
}

/// Reads a reply from events.
#[derive(Debug)]
pub(crate) struct ResponsesStream {
    events: SseParser,
    state: ResponsesStreamState,
}

#[derive(Debug)]
struct ResponsesStreamState {
    limits: ReplyLimits,
    bytes: usize,
    /// The highest event number so far.
    last: i64,
    /// Calls by their position in the output, in order of arrival.
    calls: Vec<ResponsesPartialCall>,
    /// Completed items, by their position, or the order of their arrival.
    done: Vec<(u64, Box<RawValue>)>,
    /// The usage that the provider reports, even for a reply that failed.
    usage: Usage,
    reply: Option<Reply>,
}

impl ResponsesStream {
    pub(crate) fn new(limits: ReplyLimits) -> Self {
        Self {
            events: SseParser::new(limits.event),
            state: ResponsesStreamState {
                limits,
                bytes: 0,
                last: 0,
                calls: Vec::new(),
                done: Vec::new(),
                usage: Usage::default(),
                reply: None,
            },
        }
    }

    pub(crate) fn push(&mut self, piece: &[u8], deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let state = &mut self.state;
        state.bytes += piece.len();
        if state.bytes > state.limits.reply {
            return Err(WireError::TooLarge {
                what: "a reply",
                limit: state.limits.reply,
            });
        }
        let limit = state.limits.event;
        let read = self.events.each(piece, |data, _| state.event(data, deltas));
        read.map_err(|fault| fault.at(limit))
    }

    pub(crate) fn usage(&self) -> Usage {
        self.state.usage
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.state.reply.is_some()
    }

    pub(crate) fn finish(self) -> Result<Reply, WireError> {
        self.state.reply.ok_or(WireError::Cut(self.state.bytes))
    }
}

impl ResponsesStreamState {
    fn event(&mut self, data: &[u8], deltas: &mut Vec<Delta>) -> Result<(), StreamError> {
        if self.reply.is_some() || data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let text = utf8(RESPONSES, "an event", data)?;
        let failed = malformed(RESPONSES, "an event", text);
        let event: ResponsesEvent<'_> = serde_json::from_str(text).map_err(&failed)?;
        let number = event.sequence_number.unwrap_or_default();
        // Some providers give every event the same number: such numbers mean nothing.
        let is_repeated = number > 0 && number <= self.last;
        self.last = self.last.max(number);
        match event.kind.text() {
            "response.output_text.delta" | "response.refusal.delta" if !is_repeated => {
                deltas.extend(event.delta.some().map(Delta::Text));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta"
                if !is_repeated =>
            {
                deltas.extend(event.delta.some().map(Delta::Thinking));
            }
            "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta"
            | "response.shell_call_command.delta"
                if !is_repeated =>
            {
                self.arguments(&event, deltas);
            }
            "response.output_item.added" => {
                self.added(&event, deltas).map_err(&failed)?;
            }
            "response.output_item.done" => self.done(&event, deltas).map_err(&failed)?,
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                self.end(&event, text)?;
            }
            "error" => {
                let whole: &RawValue = serde_json::from_str(text.trim()).map_err(&failed)?;
                return Err(reported(event.error.unwrap_or(whole)).into());
            }
            "" => {
                if let Some(error) = event.error {
                    return Err(reported(error).into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn arguments(&mut self, event: &ResponsesEvent<'_>, deltas: &mut Vec<Delta>) {
        let item = event.item_id.some();
        let mut all = self.calls.iter();
        let at = all.rposition(|one| {
            one.output == event.output_index && (item.is_none() || one.item == item)
        });
        if let (Some(index), Some(text)) = (at, event.delta.some()) {
            self.calls[index].has_pieces = true;
            deltas.push(Delta::Arguments { index, text });
        }
    }

    /// Handles the start of an item; only calls matter.
    fn added(
        &mut self,
        event: &ResponsesEvent<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<Option<usize>, serde_json::Error> {
        let Some(raw) = event.item else {
            return Ok(None);
        };
        let Some(call) = call(raw, &Members::of(raw)?)? else {
            return Ok(None);
        };
        let mut all = self.calls.iter();
        let known = all.position(|one| one.output == event.output_index && one.id == call.id);
        if known.is_some() {
            return Ok(known);
        }
        deltas.push(Delta::Call {
            index: self.calls.len(),
            name: call.name,
        });
        self.calls.push(ResponsesPartialCall {
            output: event.output_index,
            id: call.id,
            item: call.item,
            is_done: false,
            has_pieces: false,
        });
        Ok(Some(self.calls.len() - 1))
    }

    /// Handles a complete item. Arguments that did not arrive in pieces are passed on now.
    fn done(
        &mut self,
        event: &ResponsesEvent<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), serde_json::Error> {
        let Some(raw) = event.item else {
            return Ok(());
        };
        let at = self.added(event, deltas)?;
        let is_known = match at {
            Some(at) => std::mem::replace(&mut self.calls[at].is_done, true),
            None => self.done.iter().any(|(known, other)| {
                Some(*known) == event.output_index && other.get() == owned(raw).get()
            }),
        };
        if is_known {
            return Ok(());
        }
        if let (Some(index), Some(call)) = (at, call(raw, &Members::of(raw)?)?)
            && !std::mem::replace(&mut self.calls[index].has_pieces, true)
        {
            deltas.push(Delta::Arguments {
                index,
                text: call.arguments,
            });
        }
        let arrival = self.done.len() as u64;
        let output = event.output_index.unwrap_or(arrival);
        self.done.push((output, owned(raw)));
        Ok(())
    }

    /// Handles the complete response. It contains every item; if it contains none, the completed items count.
    fn end(&mut self, event: &ResponsesEvent<'_>, text: &str) -> Result<(), WireError> {
        let failed = malformed(RESPONSES, "an event", text);
        let Some(raw) = event.response else {
            return Err(failed(serde::de::Error::missing_field("response")));
        };
        let response: ResponsesBody<'_> = serde_json::from_str(raw.get()).map_err(&failed)?;
        self.usage = response.usage();
        response.failed()?;
        let output = response
            .output
            .filter(|output| list(output).is_ok_and(|all| !all.is_empty()));
        let output = if let Some(output) = output {
            self.check_calls(output, &failed)?;
            owned(output)
        } else {
            if event.kind.text() == "response.completed" {
                self.check_ends()?;
            }
            self.collected().map_err(&failed)?
        };
        self.reply = Some(response.reply(output, self.limits)?);
        Ok(())
    }

    /// Fails if a call that the stream showed complete is missing in the last event's items, or different there.
    fn check_calls(
        &self,
        output: &RawValue,
        failed: &impl Fn(serde_json::Error) -> WireError,
    ) -> Result<(), WireError> {
        let calls =
            |all: &mut dyn Iterator<Item = &RawValue>| -> Result<Vec<Call>, serde_json::Error> {
                let mut found = Vec::new();
                for raw in all {
                    found.extend(call(raw, &Members::of(raw)?)?);
                }
                Ok(found)
            };
        let shown = calls(&mut self.done.iter().map(|(_, raw)| &**raw)).map_err(failed)?;
        if shown.is_empty() {
            return Ok(());
        }
        let last = calls(&mut list(output).map_err(failed)?.into_iter()).map_err(failed)?;
        let differs = |one: &&Call| !last.iter().any(|other| is_same(one, other));
        match shown.iter().find(differs) {
            Some(one) => Err(WireError::Contradiction(quote(&one.id))),
            None => Ok(()),
        }
    }

    /// Fails if a call started that no event ends, where the last event has no items.
    fn check_ends(&self) -> Result<(), WireError> {
        match self.calls.iter().find(|call| !call.is_done) {
            Some(call) => Err(WireError::UnassignedCall {
                call: quote(&call.id),
                what: "a start and no end",
            }),
            None => Ok(()),
        }
    }

    fn collected(&mut self) -> Result<Box<RawValue>, serde_json::Error> {
        self.done.sort_by_key(|(output, _)| *output);
        let all: Vec<&str> = self.done.iter().map(|(_, raw)| raw.get()).collect();
        RawValue::from_string(format!("[{}]", all.join(",")))
    }
}

/// Whether two items are one call, however its arguments are spaced. Its state, and the item's own id, may have changed meanwhile.
fn is_same(one: &Call, other: &Call) -> bool {
    let arguments = |call: &Call| {
        let mut value = serde_json::from_str::<Value>(&call.arguments).ok()?;
        if let (CallKind::Provider(_), Value::Object(map)) = (&call.kind, &mut value) {
            map.retain(|name, _| !matches!(name.as_str(), "status" | "id"));
        }
        Some(value)
    };
    let alike = || {
        one.arguments == other.arguments || {
            let (one, other) = (arguments(one), arguments(other));
            one.is_some() && one == other
        }
    };
    one.id == other.id
        && one.kind == other.kind
        && one.name == other.name
        && one.namespace == other.namespace
        && alike()
}
