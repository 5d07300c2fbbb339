//! Requests in rounds: a stateless server asks for input, and the client repeats the request with it (2026-07-28, MRTR).

use haft::text::clip;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::error::ClientError;
use crate::client::{Client, ClientRequest, input};

/// How often a server may ask for input per call.
const MAX_ROUNDS: usize = 32;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultTypeMember {
    result_type: Option<String>,
}

impl Client {
    /// Repeats a request until its answer is complete and returns the whole result.
    pub(crate) async fn ask_in_rounds(
        &self,
        question: &ClientRequest<'_>,
    ) -> Result<Box<RawValue>, ClientError> {
        self.want_log(question.log).await;
        let what = question.name.unwrap_or(question.method);
        let mut input = String::new();
        for _ in 0..MAX_ROUNDS {
            let params = format!("{}{input}", question.params);
            let round = ClientRequest {
                params: &params,
                ..question.clone()
            };
            let raw = self.ask(round).await?;
            let answered: ResultTypeMember = serde_json::from_str(raw.get())
                .map_err(|e| ClientError::Malformed(format!("the result of {what}: {e}")))?;
            match answered.result_type.as_deref() {
                None | Some("complete") => return Ok(raw),
                Some("input_required") => {
                    input = input::next_round(&raw, question.responder.as_ref()).await?;
                }
                Some("task") if question.tasks && self.era.is_modern() => {
                    return self.follow_task(&raw, question).await;
                }
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
