//! Reads replies of Responses.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::error::{WireError, quote};
use crate::limits::ReplyLimits;
use crate::loose::{LooseText, Members, malformed, owned, reported, utf8};
use crate::reply::{Reply, StopReason, Turn, TurnItem, Usage};
use crate::responses::item::items;

pub(crate) const RESPONSES: Dialect = Dialect::OpenAiResponses;

#[derive(Debug, Deserialize)]
pub(crate) struct ResponsesBody<'a> {
    #[serde(borrow, default)]
    id: LooseText<'a>,
    #[serde(borrow, default)]
    model: LooseText<'a>,
    #[serde(borrow, default)]
    status: LooseText<'a>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    incomplete_details: Option<Members<'a>>,
    #[serde(borrow, default)]
    pub(crate) output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<Members<'a>>,
    /// This or `detail` is all there is if a provider answers with nothing but an error.
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    detail: Option<&'a RawValue>,
}

/// Reads a reply that is not streamed.
pub(crate) fn read(body: &[u8], limits: ReplyLimits) -> Result<Reply, WireError> {
    let text = utf8(RESPONSES, "a reply", body)?;
    let failed = malformed(RESPONSES, "a reply", text);
    let response: ResponsesBody<'_> = serde_json::from_str(text).map_err(&failed)?;
    response.failed()?;
    let Some(output) = response.output else {
        if response.message.or(response.detail).is_some() {
            let whole: &RawValue = serde_json::from_str(text.trim()).map_err(&failed)?;
            return Err(reported(whole));
        }
        return Err(WireError::Malformed {
            dialect: RESPONSES.as_str(),
            what: "a reply",
            reason: format!("there is no output in it; it begins with {:?}", quote(text)),
        });
    };
    response.reply(owned(output), limits)
}

impl ResponsesBody<'_> {
    /// # Errors
    /// If the provider reports a failure.
    pub(crate) fn failed(&self) -> Result<(), WireError> {
        match self.error.filter(|raw| raw.get() != "null") {
            Some(raw) => Err(reported(raw)),
            None if self.status.text() == "failed" => Err(WireError::Provider {
                kind: "failed".to_owned(),
                message: "the response failed, and no reason is given".to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Builds the reply with these items.
    pub(crate) fn reply(
        &self,
        output: Box<RawValue>,
        limits: ReplyLimits,
    ) -> Result<Reply, WireError> {
        let items = items(&output).map_err(malformed(RESPONSES, "an output item", output.get()))?;
        let calls = items
            .iter()
            .filter(|item| matches!(item, TurnItem::Call(_)))
            .count();
        if calls > limits.calls {
            return Err(WireError::TooManyCalls(limits.calls));
        }
        let waits = items
            .iter()
            .any(|item| matches!(item, TurnItem::Call(_) | TurnItem::Approval { .. }));
        Ok(Reply {
            stop: self.stop(waits),
            usage: self.usage(),
            id: self.id.some(),
            model: self.model.some(),
            turn: Turn {
                dialect: RESPONSES,
                items,
                raw: output,
            },
        })
    }

    fn stop(&self, waits: bool) -> StopReason {
        let details = self.incomplete_details.as_ref();
        let reason = details
            .and_then(|members| members.loose("reason").ok())
            .unwrap_or_default();
        match (self.status.text(), reason.text()) {
            ("incomplete", "max_output_tokens") => StopReason::Length,
            ("incomplete", "content_filter") => StopReason::Filter,
            ("incomplete", word) if !word.is_empty() => StopReason::Other(word.to_owned()),
            ("completed" | "", _) if waits => StopReason::Calls,
            ("completed" | "", _) => StopReason::End,
            (word, _) => StopReason::Other(word.to_owned()),
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        let Some(usage) = &self.usage else {
            return Usage::default();
        };
        let number = |members: &Members<'_>, name| {
            members
                .get(name)
                .and_then(|raw| raw.get().parse::<u64>().ok())
        };
        let within = |name, inner| {
            let members = usage.get(name).and_then(|raw| Members::of(raw).ok())?;
            number(&members, inner)
        };
        Usage {
            input: number(usage, "input_tokens").unwrap_or_default(),
            cached: within("input_tokens_details", "cached_tokens").unwrap_or_default(),
            output: number(usage, "output_tokens").unwrap_or_default(),
            thinking: within("output_tokens_details", "reasoning_tokens").unwrap_or_default(),
        }
    }
}
