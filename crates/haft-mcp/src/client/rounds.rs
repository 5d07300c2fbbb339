//! Requests in rounds: a stateless server asks for input, and the client repeats the request with it (2026-07-28, MRTR).

use std::borrow::Cow;

use haft::json::members::{Member, members};
use haft::text::clip;
use serde_json::value::RawValue;

use crate::client::error::ClientError;
use crate::client::speech::ServerResult;
use crate::client::{Client, ClientRequest, input};
use crate::wire::params::text;

/// How often a server may ask for input per call.
const MAX_ROUNDS: usize = 32;

/// Returns what a result says that it is. What is no object says nothing.
fn result_type(raw: &RawValue) -> Option<String> {
    let all = members(raw.get()).ok()?;
    let kind = all.iter().find(|member| member.is("resultType"))?;
    text(kind.value()).map(Cow::into_owned)
}

/// Returns whether a result has what a tool says.
fn has_content(raw: &RawValue) -> bool {
    let all = members(raw.get()).unwrap_or_default();
    let is_content = |member: &Member<'_>| member.is("content") || member.is("structuredContent");
    all.iter().any(is_content)
}

impl Client {
    /// Repeats a request until its answer is complete and returns the whole result.
    pub(crate) async fn ask_in_rounds(
        &self,
        question: &ClientRequest<'_>,
    ) -> Result<ServerResult, ClientError> {
        self.want_log(question.log).await;
        let what = question.name.unwrap_or(question.method);
        let mut input = String::new();
        for _ in 0..MAX_ROUNDS {
            let params = format!("{}{input}", question.params);
            let round = ClientRequest {
                params: &params,
                ..question.clone()
            };
            let answer = self.ask_noted(round).await?;
            match result_type(&answer.raw).as_deref() {
                None | Some("complete") => return Ok(answer),
                Some("input_required") => {
                    input = input::next_round(&answer.raw, question.responder.as_ref()).await?;
                }
                Some("task") if question.tasks && self.era.is_modern() => {
                    return self.follow_task(&answer.raw, question).await;
                }
                // Whatever it calls it, what the tool said is there.
                Some(_) if has_content(&answer.raw) => return Ok(answer),
                Some(other) => {
                    let other = clip(other, 100);
                    return Err(ClientError::Malformed(format!(
                        "the result of {what} is {other:?}, which haft did not offer to take"
                    )));
                }
            }
        }
        Err(ClientError::Malformed(format!(
            "{what} asked for input {MAX_ROUNDS} times in one call"
        )))
    }
}
