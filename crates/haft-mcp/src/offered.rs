//! The host's offer as clients receive it: entries of lists, and results of the calls that a read or a prompt makes.

use haft::call::{Origin, ToolCall};
use haft::error::{ErrorKind, HostFailure};
use haft::executor::Executor;
use haft::json::amend::Amended;
use haft::result::{Outcome, Status};
use haft::text::clip;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::call_follow_up::CallFollowUp;
use crate::job::CallJob;
use crate::offer::{MAX_ENTRIES, OfferEntry, OfferKinds, OfferRequest, Reference};
use crate::page::page;
use crate::required;
use crate::resource_entry::missing;
use crate::run::{ClientCall, ClientCallEnd, ClientRun};
use crate::wire::RpcError;
use crate::wire::reply;

/// Returns the kinds that the host may offer this run's clients.
pub(crate) fn kinds(run: &ClientRun) -> OfferKinds {
    let offer = run.offer();
    offer.map_or_else(OfferKinds::default, |offer| offer.kinds(&run.session))
}

/// Returns an entry of this server's own.
pub(crate) fn entry<T: Serialize>(key: &str, item: &T) -> OfferEntry {
    // Structs of strings always serialize.
    let json = serde_json::value::to_raw_value(item).unwrap_or_default();
    OfferEntry {
        key: key.to_owned(),
        json: json.into(),
    }
}

/// Adds the host's entries, except those whose key belongs to this server.
pub(crate) fn join(
    mut own: Vec<OfferEntry>,
    offered: Result<Vec<OfferEntry>, HostFailure>,
    is_own: impl Fn(&str) -> bool,
) -> Result<Vec<OfferEntry>, RpcError> {
    let offered = offered.map_err(|error| {
        tracing::error!(%error, "list what the host offers");
        RpcError::new(RpcError::INTERNAL, error.to_string())
    })?;
    let room = MAX_ENTRIES.saturating_sub(own.len());
    let offered = offered.into_iter().filter(|entry| !is_own(&entry.key));
    own.extend(offered.take(room));
    Ok(own)
}

/// Writes `"MEMBER":[…]` with at most `size` entries after the cursor, and `nextCursor` if more follow.
pub(crate) fn write_page(
    out: &mut Vec<u8>,
    member: &str,
    all: &[OfferEntry],
    cursor: Option<&str>,
    size: usize,
) -> Result<(), RpcError> {
    let page = page(all, cursor, size, |entry| entry.key.as_str())?;
    reply::json(out, member);
    out.extend_from_slice(b":[");
    for (nth, entry) in page.items.iter().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        out.extend_from_slice(entry.json.get().as_bytes());
    }
    out.push(b']');
    page.write_next(out);
    Ok(())
}

/// The result of a request to the host's offer.
pub(crate) enum OfferResult {
    /// A result as raw JSON: an object.
    Result(Box<RawValue>),
    /// The client has to ask the user first.
    Asks(Vec<u8>),
    /// It waits for this approval.
    Waits(String),
}

/// Reads a resource or gets a prompt of the host: calls an internal tool, which may ask its client.
pub(crate) async fn get(
    run: &ClientRun,
    wanted: &OfferRequest,
    job: CallJob,
    notes: Option<mpsc::Sender<Vec<u8>>>,
) -> Result<OfferResult, RpcError> {
    let call = wanted_call(run, wanted).await?;
    let made = |_: &mut CallJob| ClientCall {
        call,
        internal: true,
    };
    let meta = json!({"haft": {"run": run.session.run()}});
    let asks = |asked: &[_], state: &str| {
        let mut out = Vec::new();
        required::write(&mut out, asked, state, &meta);
        OfferResult::Asks(out)
    };
    Ok(match run.call(made, job, notes).await? {
        ClientCallEnd::Asks(asked, state)
        | ClientCallEnd::Outcome(_, CallFollowUp::Ask(asked, state)) => asks(&asked, &state),
        // Only calls of tools become tasks.
        ClientCallEnd::Task(_) => {
            return Err(RpcError::new(
                RpcError::INTERNAL,
                "the request became a task",
            ));
        }
        ClientCallEnd::Outcome(outcome, _) => result(run, *outcome, wanted)?,
    })
}

/// Like [`get`], for requests that never ask the client: completion and subscriptions.
pub(crate) async fn get_alone(
    run: &ClientRun,
    wanted: &OfferRequest,
) -> Result<OfferResult, RpcError> {
    let call = wanted_call(run, wanted).await?;
    run.begin().await?;
    let outcome = Executor::execute_internal(&run.executor, &run.session, call).await;
    result(run, outcome, wanted)
}

async fn wanted_call(run: &ClientRun, wanted: &OfferRequest) -> Result<ToolCall, RpcError> {
    let offer = run.offer().ok_or_else(|| absent(run, wanted))?;
    let call = offer.call(&run.session, wanted).await;
    let call = call.ok_or_else(|| absent(run, wanted))?;
    Ok(call.from_origin(Origin::Mcp))
}

fn result(
    run: &ClientRun,
    outcome: Outcome,
    wanted: &OfferRequest,
) -> Result<OfferResult, RpcError> {
    if let (Status::Suspended, Some(approval)) = (outcome.status, &outcome.approval) {
        return Ok(OfferResult::Waits(approval.clone()));
    }
    let Some(error) = &outcome.error else {
        let subscribed = matches!(wanted, OfferRequest::Subscribe { .. });
        return match outcome.data {
            Some(data) if outcome.artifacts.is_empty() => Ok(OfferResult::Result(data)),
            None if subscribed => Ok(OfferResult::Result(RawValue::NULL.to_owned())),
            _ => Err(RpcError::new(
                RpcError::INTERNAL,
                "the result is too large to return whole: read it with a tool",
            )),
        };
    };
    if error.kind == ErrorKind::NotFound {
        return Err(absent(run, wanted));
    }
    let code = match error.kind {
        ErrorKind::InvalidArguments => RpcError::INVALID_PARAMS,
        _ => RpcError::INTERNAL,
    };
    let data =
        json!({"status": outcome.status.as_str(), "kind": error.kind, "advice": error.advice});
    Err(RpcError::new(code, error.message.clone()).with_data(data.to_string()))
}

/// Returns the error for something that does not exist.
fn absent(run: &ClientRun, wanted: &OfferRequest) -> RpcError {
    match wanted {
        OfferRequest::Read { uri } | OfferRequest::Subscribe { uri } => missing(run, uri),
        OfferRequest::Prompt { name, .. } => {
            RpcError::invalid_params(format!("no prompt {:?}", clip(name, 64)))
        }
        OfferRequest::Complete { reference, .. } => {
            let (Reference::Prompt(of) | Reference::Resource(of)) = reference;
            let shown = clip(of, 256);
            RpcError::invalid_params(format!("nothing completes arguments of {shown:?}"))
        }
    }
}

/// Writes a result unchanged, followed by those of these members (raw JSON) that it lacks.
pub(crate) fn write_with(out: &mut Vec<u8>, result: &str, more: &[(&str, &str)]) {
    // Internal tools return objects.
    let Ok(mut object) = Amended::read(result).or_else(|_| Amended::read("{}")) else {
        return;
    };
    for (name, value) in more {
        if object.position(name).is_none() {
            object.add(name).extend_from_slice(value.as_bytes());
        }
    }
    object.write(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_stays_as_it_came_and_gets_what_it_lacks() {
        for (result, expect) in [
            ("{}", r#"{"ttlMs":0,"resultType":"complete"}"#),
            (
                r#"{ "b" : 12345678901234567890123 , "a":1 }"#,
                r#"{ "b" : 12345678901234567890123 , "a":1,"ttlMs":0,"resultType":"complete" }"#,
            ),
            (
                r#"{"ttlMs":7,"x":{}}"#,
                r#"{"ttlMs":7,"x":{},"resultType":"complete"}"#,
            ),
        ] {
            let mut out = Vec::new();
            let more = [("ttlMs", "0"), ("resultType", "\"complete\"")];
            write_with(&mut out, result, &more);
            assert_eq!(String::from_utf8(out).unwrap(), expect);
        }
    }
}
