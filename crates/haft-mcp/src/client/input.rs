//! Input requests of a stateless server in the middle of a call, answered for the call's next round (2026-07-28, MRTR).

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use haft::future::BoxFuture;
use haft::text::clip;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::error::ClientError;
use crate::client::respond::Responder;
use crate::wire::reply;

/// Maximum number of a server's questions per round.
const MAX_QUESTIONS: usize = 16;
/// Maximum length of the state carried for a server, in bytes.
const MAX_STATE: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequiredResult<'a> {
    #[serde(borrow, default)]
    input_requests: BTreeMap<String, ServerInputRequest<'a>>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ServerInputRequest<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Returns the members of the next round's `params` besides the call's own, each with a leading comma.
///
/// # Errors
/// The server asks for something that was not offered, or for too much.
pub(super) async fn next_round(
    result: &RawValue,
    responder: Option<&Responder>,
) -> Result<String, ClientError> {
    let malformed = |why: String| ClientError::Malformed(format!("what it asks for: {why}"));
    let required: InputRequiredResult<'_> =
        serde_json::from_str(result.get()).map_err(|e| malformed(e.to_string()))?;
    let questions = &required.input_requests;
    if questions.is_empty() && required.request_state.is_none() {
        return Err(malformed("nothing".into()));
    }
    if questions.len() > MAX_QUESTIONS {
        return Err(malformed(format!("over {MAX_QUESTIONS} answers at once")));
    }
    let mut members = String::new();
    if !questions.is_empty() {
        let asking = questions.iter();
        let asking = asking.map(|(name, question)| {
            Box::pin(answer(name, question, responder)) as BoxFuture<'_, InputReply>
        });
        // Concurrently, so that the responder may be asked everything at once.
        let given = all(asking.collect()).await;
        let mut answers = Vec::new();
        for (name, answer) in questions.keys().zip(given) {
            let answer = answer?;
            let mut member = Vec::new();
            reply::json(&mut member, name);
            answers.push(format!(
                "{}:{}",
                String::from_utf8_lossy(&member),
                answer.get()
            ));
        }
        members = format!(",\"inputResponses\":{{{}}}", answers.join(","));
    }
    // The state goes back unchanged, and only if there was one.
    if let Some(state) = required.request_state {
        if state.get().len() > MAX_STATE {
            return Err(malformed(format!("a state of over {MAX_STATE} bytes")));
        }
        members.push_str(",\"requestState\":");
        members.push_str(state.get());
    }
    Ok(members)
}

/// An answer, or why there is none.
type InputReply = Result<Box<RawValue>, ClientError>;

/// Runs the futures concurrently and returns their results in order.
async fn all<T>(mut running: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in running.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
    done.into_iter().flatten().collect()
}

async fn answer(
    name: &str,
    question: &ServerInputRequest<'_>,
    responder: Option<&Responder>,
) -> InputReply {
    let method = &question.method;
    let answer = match responder {
        Some(responder) => {
            responder
                .answer_named(Some(name), method, question.params)
                .await
        }
        None => None,
    };
    let refused = |why: &str| {
        let method = clip(method, 100);
        ClientError::Malformed(format!("it asks for {method}, {why}"))
    };
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(why)) => Err(refused(&format!("which failed: {}", clip(&why, 300)))),
        None => Err(refused("which haft did not offer")),
    }
}
