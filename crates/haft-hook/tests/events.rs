//! Every agent's events, as its published documentation describes them: how haft reads each, and what it replies for each verdict.
//!
//! The events are in `tests/events/`, one file per agent; `_source` names the source of the facts. A case holds the event (or `bytes`, for
//! what JSON cannot hold), the expected reading and the replies. `HAFT_EVENTS=write cargo test -p haft-hook --test events` regenerates
//! readings and replies; the change is then part of the commit, to be reviewed like code.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::Path;

use haft_hook::{Agent, HookEvent, HookVerdict, read, refusal, reply, rewrite_line};
use serde_json::{Map, Value, json};

/// Returns the verdicts to reply with to an event of a call.
fn verdicts(event: &HookEvent) -> Vec<(&'static str, HookVerdict)> {
    let reason = "the rule says so".to_owned();
    let mut verdicts = vec![
        ("no_opinion", HookVerdict::NoOpinion),
        ("allow", HookVerdict::Allow { input: None }),
        (
            "ask",
            HookVerdict::Ask {
                reason: reason.clone(),
            },
        ),
        ("deny", HookVerdict::Deny { reason }),
    ];
    if let Some(input) = rewrite_line(event, "haft exec -- true") {
        verdicts.push(("rewritten", HookVerdict::Allow { input: Some(input) }));
    }
    verdicts
}

/// Returns a reply as the files hold it: the output as JSON if it is JSON, and the other parts unless empty.
fn reply_as_json(reply: &haft_hook::HookReply) -> Value {
    let mut members = Map::new();
    if !reply.stdout.is_empty() {
        let stdout = serde_json::from_str(&reply.stdout).unwrap();
        members.insert("stdout".to_owned(), stdout);
    }
    if !reply.stderr.is_empty() {
        members.insert("stderr".to_owned(), json!(reply.stderr));
    }
    if reply.exit != 0 {
        members.insert("exit".to_owned(), json!(reply.exit));
    }
    Value::Object(members)
}

/// Returns what this crate reads and replies for a case.
fn outcome(invoked_as: Agent, bytes: &[u8]) -> Map<String, Value> {
    let mut members = Map::new();
    let event = match read(invoked_as, bytes) {
        Ok(event) => event,
        Err(error) => {
            let reply = refusal(invoked_as, &error.to_string());
            members.insert("refused".to_owned(), json!(error.to_string()));
            members.insert("refusal".to_owned(), reply_as_json(&reply));
            return members;
        }
    };
    members.insert("reads".to_owned(), serde_json::to_value(&event).unwrap());
    let replies: Map<String, Value> = verdicts(&event)
        .iter()
        .map(|(name, verdict)| {
            let reply = reply(&event, verdict);
            ((*name).to_owned(), reply_as_json(&reply))
        })
        .collect();
    // An event that decides nothing has one reply for all verdicts.
    let first = replies["no_opinion"].clone();
    let one = event.call().is_none() && replies.values().all(|reply| *reply == first);
    let (key, value) = if one {
        ("reply", first)
    } else {
        ("replies", Value::Object(replies))
    };
    members.insert(key.to_owned(), value);
    members
}

/// Returns the bytes of a case.
fn bytes_of(case: &Map<String, Value>) -> Vec<u8> {
    match (case.get("event"), case.get("bytes")) {
        (Some(event), None) => event.to_string().into_bytes(),
        (None, Some(Value::String(text))) => text.clone().into_bytes(),
        other => panic!("a case has an event or bytes: {other:?}"),
    }
}

#[test]
fn events_are_read_and_answered_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/events");
    let write = std::env::var_os("HAFT_EVENTS").is_some_and(|value| value == "write");
    let mut cases = 0;
    for agent in Agent::ALL {
        let path = folder.join(format!("{}.json", agent.name()));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let mut file: Value = serde_json::from_str(&text).unwrap();
        assert!(file["_source"].is_object(), "{path:?} names its source");
        for (name, case) in file["cases"].as_object_mut().unwrap() {
            cases += 1;
            let case = case.as_object_mut().unwrap();
            let invoked_as = case.get("invoked_as").map_or(agent, |invoked_as| {
                Agent::from_name(invoked_as.as_str().unwrap()).unwrap()
            });
            let outcome = outcome(invoked_as, &bytes_of(case));
            if write {
                case.retain(|key, _| ["event", "bytes", "invoked_as", "note"].contains(&&**key));
                case.extend(outcome);
                continue;
            }
            let given = ["event", "bytes", "invoked_as", "note"];
            let expect = case
                .iter()
                .filter(|(key, _)| !given.contains(&key.as_str()));
            let expect: Map<String, Value> = expect
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            assert_eq!(
                serde_json::to_string_pretty(&outcome).unwrap(),
                serde_json::to_string_pretty(&expect).unwrap(),
                "{agent}: {name}"
            );
        }
        if write {
            fs::write(&path, serde_json::to_string_pretty(&file).unwrap() + "\n").unwrap();
        }
    }
    assert!(cases >= 200, "{cases} cases");
}
