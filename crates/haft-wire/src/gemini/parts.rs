//! The parts of a turn, complete or one after another: consecutive texts of the same kind are merged.

use haft_json::escape::string;
use serde_json::value::RawValue;

use super::part::{FunctionCall, GeminiPart, is_hosted, kind};
use super::partial::PartialArgs;
use crate::borrowed::BorrowedText;
use crate::dialect::Dialect;
use crate::error::{WireError, quote};
use crate::reply::{Call, CallKind, TurnItem};
use crate::stream::Delta;

#[derive(Debug)]
pub(crate) struct PartCollector {
    items: Vec<TurnItem>,
    /// The parts to send back to the provider, separated by commas.
    raw: Vec<u8>,
    /// The text that may be continued.
    text: Option<TextRun>,
    /// The call whose arguments may be continued.
    call: Option<GeminiPartialCall>,
    calls: usize,
    most_calls: usize,
}

/// Consecutive texts.
#[derive(Debug)]
struct TextRun {
    is_thought: bool,
    text: String,
}

/// A call whose arguments arrive in pieces.
#[derive(Debug)]
struct GeminiPartialCall {
    call: Call,
    /// The part's signature, as it was sent.
    signature: Option<Box<RawValue>>,
    has_id: bool,
    arguments: PartialArgs,
    /// Whether the last piece said that there are more.
    expects_more: bool,
}

impl PartCollector {
    pub(crate) fn new(most_calls: usize) -> Self {
        Self {
            items: Vec::new(),
            raw: Vec::new(),
            text: None,
            call: None,
            calls: 0,
            most_calls,
        }
    }

    /// Adds a part.
    ///
    /// # Errors
    /// If there are more calls than allowed, or the part is not in the provider's format.
    pub(crate) fn push(
        &mut self,
        raw: &RawValue,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), PartError> {
        let part: GeminiPart<'_> = serde_json::from_str(raw.get())
            .map_err(|error| PartError::Malformed(error.to_string()))?;
        if let Some(call) = part.function_call {
            return self.function_call(call, part.thought_signature, raw, deltas);
        }
        let Some(text) = part.text else {
            self.settle()?;
            self.add_raw(raw.get());
            let kind = kind(raw);
            let raw = raw.to_owned();
            self.items.push(if is_hosted(&kind) {
                TurnItem::Hosted {
                    kind,
                    name: None,
                    raw,
                }
            } else {
                TurnItem::Unknown { kind, raw }
            });
            return Ok(());
        };
        let is_thought = part.thought == Some(true);
        let text = text.0;
        // A signature belongs to its part, so a part with one is not merged.
        if part.thought_signature.is_some() {
            self.settle()?;
            self.add_raw(raw.get());
            if !text.is_empty() {
                deltas.push(delta(is_thought, &text));
                self.items.push(item(is_thought, text.into_owned()));
            }
            return Ok(());
        }
        if text.is_empty() {
            return Ok(());
        }
        deltas.push(delta(is_thought, &text));
        match &mut self.text {
            Some(run) if run.is_thought == is_thought => run.text.push_str(&text),
            _ => {
                self.settle()?;
                let text = text.into_owned();
                self.text = Some(TextRun { is_thought, text });
            }
        }
        Ok(())
    }

    fn function_call(
        &mut self,
        call: FunctionCall<'_>,
        signature: Option<&RawValue>,
        raw: &RawValue,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), PartError> {
        let goes_on = call.will_continue == Some(true) || call.partial_args.is_some();
        // A part without a name continues the call before it, or ends it.
        if call
            .name
            .as_ref()
            .is_none_or(|name| name.0.trim().is_empty())
        {
            return self.continue_call(call, signature, deltas);
        }
        self.settle()?;
        let index = self.begin_call()?;
        let has_id = call.id.is_some();
        let own = Call {
            id: BorrowedText::owned(call.id).unwrap_or_else(|| format!("call-{index}")),
            item: None,
            kind: CallKind::Function,
            name: BorrowedText::owned(call.name).unwrap_or_default(),
            namespace: None,
            toolset: None,
            caller: None,
            arguments: call.args.map_or("{}", RawValue::get).to_owned(),
        };
        deltas.push(Delta::Call {
            index,
            name: own.name.clone(),
        });
        if goes_on {
            let mut arguments = PartialArgs::default();
            arguments
                .add(call.partial_args.unwrap_or_default())
                .map_err(PartError::Malformed)?;
            self.call = Some(GeminiPartialCall {
                call: own,
                signature: signature.map(RawValue::to_owned),
                has_id,
                arguments,
                expects_more: call.will_continue == Some(true),
            });
            if call.will_continue == Some(false) {
                self.end_call(deltas)?;
            }
            return Ok(());
        }
        deltas.push(Delta::Arguments {
            index,
            text: own.arguments.clone(),
        });
        self.add_raw(raw.get());
        self.items.push(TurnItem::Call(own));
        Ok(())
    }

    fn continue_call(
        &mut self,
        call: FunctionCall<'_>,
        signature: Option<&RawValue>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), PartError> {
        let malformed = |reason: &str| PartError::Malformed(reason.to_owned());
        let Some(growing) = &mut self.call else {
            return Err(malformed("a `functionCall` without a `name`"));
        };
        let whole = call
            .args
            .filter(|args| !matches!(args.get(), "null" | "{}"));
        if let Some(args) = whole {
            if !growing.arguments.is_empty() {
                return Err(malformed("arguments as a whole after pieces of them"));
            }
            args.get().clone_into(&mut growing.call.arguments);
        }
        growing
            .arguments
            .add(call.partial_args.unwrap_or_default())
            .map_err(PartError::Malformed)?;
        if growing.signature.is_none() {
            growing.signature = signature.map(RawValue::to_owned);
        }
        if call.will_continue != Some(true) {
            growing.expects_more = false;
            self.end_call(deltas)?;
        }
        Ok(())
    }

    fn begin_call(&mut self) -> Result<usize, PartError> {
        if self.calls == self.most_calls {
            return Err(PartError::TooManyCalls);
        }
        self.calls += 1;
        Ok(self.calls - 1)
    }

    /// Ends a call whose arguments arrived in pieces: it is sent back to the provider as if it had arrived complete.
    ///
    /// # Errors
    /// If its last piece said that there are more: what came would run as another call than the model made.
    fn end_call(&mut self, deltas: &mut Vec<Delta>) -> Result<(), PartError> {
        let Some(GeminiPartialCall {
            mut call,
            signature,
            has_id,
            arguments,
            expects_more,
        }) = self.call.take()
        else {
            return Ok(());
        };
        if expects_more {
            return Err(PartError::Unended(call.name));
        }
        if !arguments.is_empty() {
            call.arguments = arguments.json();
        }
        let mut out = b"{\"functionCall\":{\"name\":".to_vec();
        string(&mut out, &call.name);
        if has_id {
            out.extend_from_slice(b",\"id\":");
            string(&mut out, &call.id);
        }
        out.extend_from_slice(b",\"args\":");
        out.extend_from_slice(call.arguments.as_bytes());
        out.push(b'}');
        if let Some(signature) = signature {
            out.extend_from_slice(b",\"thoughtSignature\":");
            out.extend_from_slice(signature.get().as_bytes());
        }
        out.push(b'}');
        self.add_raw(&String::from_utf8_lossy(&out));
        deltas.push(Delta::Arguments {
            index: self.calls - 1,
            text: call.arguments.clone(),
        });
        self.items.push(TurnItem::Call(call));
        Ok(())
    }

    /// Ends the text and the call that could have been continued.
    fn settle(&mut self) -> Result<(), PartError> {
        self.end_call(&mut Vec::new())?;
        let Some(TextRun { is_thought, text }) = self.text.take() else {
            return Ok(());
        };
        let mut raw = b"{\"text\":".to_vec();
        string(&mut raw, &text);
        raw.extend_from_slice(if is_thought {
            b",\"thought\":true}"
        } else {
            b"}"
        });
        self.add_raw(&String::from_utf8_lossy(&raw));
        self.items.push(item(is_thought, text));
        Ok(())
    }

    fn add_raw(&mut self, part: &str) {
        if !self.raw.is_empty() {
            self.raw.push(b',');
        }
        self.raw.extend_from_slice(part.as_bytes());
    }

    /// Returns the items, and the parts to send back to the provider, separated by commas. `is_cut` is for a reply that ended at its
    /// limit: a reader expects its last call to be incomplete.
    ///
    /// # Errors
    /// If the arguments of the last call go on, and the reply does not.
    pub(crate) fn finish(mut self, is_cut: bool) -> Result<(Vec<TurnItem>, String), PartError> {
        if let Some(call) = self.call.as_mut().filter(|_| is_cut) {
            call.expects_more = false;
        }
        self.settle()?;
        let raw = String::from_utf8(self.raw).unwrap_or_default();
        Ok((self.items, raw))
    }
}

fn item(is_thought: bool, text: String) -> TurnItem {
    if is_thought {
        TurnItem::Thinking(text)
    } else {
        TurnItem::Text(text)
    }
}

fn delta(is_thought: bool, text: &str) -> Delta {
    let text = text.to_owned();
    if is_thought {
        Delta::Thinking(text)
    } else {
        Delta::Text(text)
    }
}

/// The reason why a part is refused.
#[derive(Debug)]
pub(crate) enum PartError {
    Malformed(String),
    TooManyCalls,
    /// The arguments of this call did not end.
    Unended(String),
}

impl PartError {
    pub(crate) fn error(self, most_calls: usize, raw: &str) -> WireError {
        match self {
            Self::Malformed(reason) => {
                WireError::malformed(Dialect::Gemini, "a part", reason, raw.as_bytes())
            }
            Self::TooManyCalls => WireError::TooManyCalls(most_calls),
            Self::Unended(name) => WireError::UnassignedCall {
                call: quote(&name),
                what: "no end of the arguments",
            },
        }
    }
}
