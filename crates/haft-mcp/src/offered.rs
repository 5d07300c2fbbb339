//! What a host offers beside tools, as clients get it: entries of lists, and results of the calls that a read or a prompt comes to.

use haft::call::{Origin, ToolCall};
use haft::error::{ErrorKind, Failure};
use haft::executor::Executor;
use haft::json::amend::Amended;
use haft::result::{Outcome, Status};
use haft::text::clip;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::job::CallJob;
use crate::offer::{Entry, Kinds, MOST_ENTRIES, Reference, Wanted};
use crate::page::page;
use crate::required;
use crate::resource::listed::missing;
use crate::run::{Ending, Made, Run};
use crate::then::Then;
use crate::wire::RpcError;
use crate::wire::reply;

/// Which kinds a run's clients may be offered by the host.
pub(crate) fn kinds(run: &Run) -> Kinds {
    let offer = run.offer();
    offer.map_or_else(Kinds::default, |offer| offer.kinds(&run.session))
}

/// An entry of this server's own.
pub(crate) fn entry<T: Serialize>(key: &str, item: &T) -> Entry {
    // Structs of strings are always JSON.
    let json = serde_json::value::to_raw_value(item).unwrap_or_default();
    Entry {
        key: key.to_owned(),
        json: json.into(),
    }
}

/// Adds what the host offers, as far as no entry of this server has its key.
pub(crate) fn join(
    mut own: Vec<Entry>,
    offered: Result<Vec<Entry>, Failure>,
    is_own: impl Fn(&str) -> bool,
) -> Result<Vec<Entry>, RpcError> {
    let offered = offered.map_err(|error| {
        tracing::error!(%error, "list what the host offers");
        RpcError::new(RpcError::INTERNAL, error.to_string())
    })?;
    let room = MOST_ENTRIES.saturating_sub(own.len());
    let offered = offered.into_iter().filter(|entry| !is_own(&entry.key));
    own.extend(offered.take(room));
    Ok(own)
}

/// Writes `"MEMBER":[…]` with at most `size` entries after the cursor, and `nextCursor` where more follow.
pub(crate) fn write_page(
    out: &mut Vec<u8>,
    member: &str,
    all: &[Entry],
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

/// What a request for something offered comes to.
pub(crate) enum Given {
    /// A result, as raw JSON: an object.
    Result(Box<RawValue>),
    /// To ask somebody first.
    Asks(Vec<u8>),
    /// It waits for this approval.
    Waits(String),
}

/// Reads a resource or gets a prompt that the host offers: a call of an internal tool, which may ask its client.
pub(crate) async fn get(
    run: &Run,
    wanted: &Wanted,
    job: CallJob,
    notes: Option<mpsc::Sender<Vec<u8>>>,
) -> Result<Given, RpcError> {
    let call = wanted_call(run, wanted).await?;
    let made = |_: &mut CallJob| Made {
        call,
        internal: true,
    };
    let meta = json!({"haft": {"run": run.session.run()}});
    let asks = |asked: &[_], state: &str| {
        let mut out = Vec::new();
        required::write(&mut out, asked, state, &meta);
        Given::Asks(out)
    };
    Ok(match run.call(made, job, notes).await? {
        Ending::Asks(asked, state) | Ending::Outcome(_, Then::Ask(asked, state)) => {
            asks(&asked, &state)
        }
        // None but tools' calls become tasks.
        Ending::Task(_) => {
            return Err(RpcError::new(
                RpcError::INTERNAL,
                "the request became a task",
            ));
        }
        Ending::Outcome(outcome, _) => result(run, *outcome, wanted)?,
    })
}

/// The same for what asks nobody: completion, and subscriptions.
pub(crate) async fn get_alone(run: &Run, wanted: &Wanted) -> Result<Given, RpcError> {
    let call = wanted_call(run, wanted).await?;
    run.begin().await?;
    let outcome = Executor::execute_internal(&run.executor, &run.session, call).await;
    result(run, outcome, wanted)
}

async fn wanted_call(run: &Run, wanted: &Wanted) -> Result<ToolCall, RpcError> {
    let offer = run.offer().ok_or_else(|| absent(run, wanted))?;
    let call = offer.call(&run.session, wanted).await;
    let call = call.ok_or_else(|| absent(run, wanted))?;
    Ok(call.from_origin(Origin::Mcp))
}

fn result(run: &Run, outcome: Outcome, wanted: &Wanted) -> Result<Given, RpcError> {
    if let (Status::Suspended, Some(approval)) = (outcome.status, &outcome.approval) {
        return Ok(Given::Waits(approval.clone()));
    }
    let Some(error) = &outcome.error else {
        let subscribed = matches!(wanted, Wanted::Subscribe { .. });
        return match outcome.data {
            Some(data) if outcome.artifacts.is_empty() => Ok(Given::Result(data)),
            None if subscribed => Ok(Given::Result(RawValue::NULL.to_owned())),
            _ => Err(RpcError::new(
                RpcError::INTERNAL,
                "the result is too large to be given whole: read it with a tool",
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

/// The error of what is not there.
fn absent(run: &Run, wanted: &Wanted) -> RpcError {
    match wanted {
        Wanted::Read { uri } | Wanted::Subscribe { uri } => missing(run, uri),
        Wanted::Prompt { name, .. } => {
            RpcError::invalid_params(format!("no prompt {:?}", clip(name, 64)))
        }
        Wanted::Complete { reference, .. } => {
            let (Reference::Prompt(of) | Reference::Resource(of)) = reference;
            let shown = clip(of, 256);
            RpcError::invalid_params(format!("nothing completes arguments of {shown:?}"))
        }
    }
}

/// Writes a result as it came, and behind its members those of these (raw JSON) that it lacks.
pub(crate) fn write_with(out: &mut Vec<u8>, result: &str, more: &[(&str, &str)]) {
    // Internal tools give objects.
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
