//! The contract of every store about suspended calls: in memory, on `SQLite`, on `PostgreSQL`.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;

use haft::approval::ApprovalId;
use haft::approval::inbox::{RequestEnding, RequestStatus, WaitingCalls};
use haft::approval::memory::MemoryInbox;
use haft::approval::suspended::{CollectedCall, RepeatScope, SuspendedCall, SuspendedEntry, key};
use haft::approval::transition::{CallState, CallerState, WaitingEvent, transition};
use haft::call::{CallId, Principal, RunId};
use haft::spec::ToolName;

use crate::inbox::{Kind, Place, on_each};
use crate::inbox_steps::{Did, bring};
use crate::request::{id, request};

on_each!(
    f1_a_suspended_call_is_found_and_its_outcome_collected_once,
    a_suspended_call_in_each_state_comes_to_what_the_rule_says,
    the_outcome_of_a_request_is_collected_once_and_delivered_by_that,
    two_calls_that_wait_for_one_request_are_each_kept,
);

fn call(run: &str, call: &str, key: &str) -> SuspendedCall {
    SuspendedCall {
        run: RunId::new(run),
        call: CallId::new(call),
        key: key.to_owned(),
        approval: ApprovalId::new("ap-1"),
        within: true,
        alone: false,
    }
}

/// A call whose outcome is that of the request's call.
fn own(name: &str) -> SuspendedCall {
    SuspendedCall {
        approval: id(name),
        within: false,
        ..call("other run", "other call", name)
    }
}

async fn calls_with(store: &Arc<dyn WaitingCalls>, key: &str) -> Vec<SuspendedCall> {
    let found = store.find_suspended(key).await.unwrap();
    found.into_iter().map(|entry| entry.call).collect()
}

async fn outcome(store: &Arc<dyn WaitingCalls>, call: &SuspendedCall) -> Option<String> {
    let collected = store.collect(&call.run, &call.call).await.unwrap();
    collected.and_then(|collected| collected.outcome)
}

/// Checks the duties of a store; `again` is another process's connection to it.
async fn f1_a_suspended_call_is_found_and_its_outcome_collected_once(place: &dyn Place) {
    let (store, again) = (place.inbox(), place.inbox());
    let (first, second) = (call("r1", "call-1", "k"), call("r2", "call-1", "k"));
    for one in [&first, &second, &call("r1", "call-2", "other")] {
        store.suspend(one).await.unwrap();
    }
    // The newest first, and no others.
    assert_eq!(
        calls_with(&again, "k").await,
        [second.clone(), first.clone()]
    );
    assert!(again.find_suspended("none").await.unwrap().is_empty());
    let (run, id) = (&first.run, &first.call);
    let noted = again.get_suspended(run, id).await.unwrap();
    assert_eq!(noted.map(|noted| noted.call), Some(first.clone()));
    // A call that has not ended cannot be collected.
    assert_eq!(again.collect(run, id).await.unwrap(), None);
    let text = "{\"ok\":\"ü\0\"}";
    store.end_suspended(run, id, Some(text)).await.unwrap();
    let ended = again.get_suspended(run, id).await.unwrap().unwrap();
    assert!(ended.has_ended());
    let listed = again.find_suspended("k").await.unwrap().pop().unwrap();
    assert_eq!(listed, ended);
    // A call that is suspended again has not ended.
    let later = SuspendedCall {
        approval: ApprovalId::new("ap-2"),
        ..first.clone()
    };
    store.suspend(&later).await.unwrap();
    assert_eq!(
        calls_with(&again, "k").await,
        [later.clone(), second.clone()]
    );
    let noted = again.get_suspended(run, id).await.unwrap().unwrap();
    assert!(!noted.has_ended());
    store.end_suspended(run, id, Some(text)).await.unwrap();
    assert_eq!(outcome(&again, &later).await.as_deref(), Some(text));
    store.suspend(&later).await.unwrap();
    store.end_suspended(run, id, Some("done")).await.unwrap();
    // Of many concurrent attempts to collect, one succeeds.
    let tries = (0..8).map(|n| {
        let store = if n % 2 == 0 { &store } else { &again };
        let (store, later) = (store.clone(), later.clone());
        tokio::spawn(async move { outcome(&store, &later).await })
    });
    let mut got = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        got.extend(one.await.unwrap());
    }
    assert_eq!(got, ["done"]);
    assert_eq!(store.get_suspended(run, id).await.unwrap(), None);
    assert_eq!(calls_with(&store, "k").await, std::slice::from_ref(&second));
    again
        .end_suspended(&second.run, &second.call, None)
        .await
        .unwrap();
    assert!(calls_with(&store, "k").await.is_empty());
    // An unknown call is not an error: its outcome was already delivered.
    store.end_suspended(run, id, Some("late")).await.unwrap();
    store.end_suspended(run, id, None).await.unwrap();
    assert_eq!(store.get_suspended(run, id).await.unwrap(), None);
}

/// Every event of a suspended call, at every state of its request and its own: each store does what `transition` says.
async fn a_suspended_call_in_each_state_comes_to_what_the_rule_says(place: &dyn Place) {
    let store = place.inbox();
    let pasts = [
        Did::Nothing,
        Did::Approved,
        Did::Denied,
        Did::Answered,
        Did::Claimed,
        Did::Finished,
        Did::Expired,
        Did::Withdrawn,
    ];
    let events = [
        WaitingEvent::Suspend { within: false },
        WaitingEvent::Suspend { within: true },
        WaitingEvent::Return { heard: true },
        WaitingEvent::Return { heard: false },
        WaitingEvent::Collect,
    ];
    let callers = [CallerState::Own, CallerState::Within, CallerState::Ended];
    for past in pasts {
        for event in events {
            for caller in callers {
                let name = format!("{past:?} {event:?} {caller:?}");
                bring(&store, &name, past).await;
                let noted = suspend(&store, &name, caller).await;
                let state = now(&store, &noted).await.unwrap();
                assert_eq!(state.caller, caller, "{name}");
                let expect = transition(state, event).unwrap();
                let collected = apply(&store, &noted, event).await;
                let after = now(&store, &noted).await;
                let left = after.map_or(CallerState::None, |state| state.caller);
                assert_eq!(left, expect.caller, "{name}");
                let stored = store.get(&id(&name)).await.unwrap().unwrap();
                assert_eq!(stored.delivered, expect.delivered, "{name}");
                if event == WaitingEvent::Collect {
                    let gone = expect.caller == CallerState::None;
                    assert_eq!(
                        collected.map(|one| one.before),
                        gone.then_some(state),
                        "{name}"
                    );
                }
            }
        }
    }
}

async fn now(store: &Arc<dyn WaitingCalls>, call: &SuspendedCall) -> Option<CallState> {
    let noted = store.get_suspended(&call.run, &call.call).await.unwrap();
    noted.map(|noted| noted.state)
}

/// Suspends a call on this request, and returns it as it is noted.
async fn suspend(store: &Arc<dyn WaitingCalls>, name: &str, caller: CallerState) -> SuspendedCall {
    let request = request(name, name);
    let noted = SuspendedCall {
        run: request.run,
        call: request.call,
        approval: id(name),
        within: caller != CallerState::Own,
        ..call("", "", name)
    };
    store.suspend(&noted).await.unwrap();
    if caller == CallerState::Ended {
        let ended = store.end_suspended(&noted.run, &noted.call, Some("{}"));
        ended.await.unwrap();
    }
    noted
}

async fn apply(
    store: &Arc<dyn WaitingCalls>,
    call: &SuspendedCall,
    event: WaitingEvent,
) -> Option<CollectedCall> {
    match event {
        WaitingEvent::Suspend { within } => {
            let again = SuspendedCall {
                within,
                ..call.clone()
            };
            store.suspend(&again).await.unwrap();
        }
        WaitingEvent::Return { heard } => {
            let outcome = (!heard).then_some("{}");
            let ended = store.end_suspended(&call.run, &call.call, outcome);
            ended.await.unwrap();
        }
        _ => return store.collect(&call.run, &call.call).await.unwrap(),
    }
    None
}

async fn the_outcome_of_a_request_is_collected_once_and_delivered_by_that(place: &dyn Place) {
    let (store, again) = (place.inbox(), place.inbox());
    bring(&store, "one", Did::Claimed).await;
    store.suspend(&own("one")).await.unwrap();
    let listed = calls_with(&again, "one").await.remove(0);
    let named = request("one", "one");
    // An identical call shares the request of the first, and its names.
    assert_eq!((&listed.run, &listed.call), (&named.run, &named.call));
    assert_eq!(
        again.collect(&listed.run, &listed.call).await.unwrap(),
        None
    );
    store
        .finish(&id("one"), "the outcome", false)
        .await
        .unwrap();
    let tries = (0..8).map(|n| {
        let store = if n % 2 == 0 { &store } else { &again };
        let (store, listed) = (store.clone(), listed.clone());
        tokio::spawn(async move { outcome(&store, &listed).await })
    });
    let mut got = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        got.extend(one.await.unwrap());
    }
    assert_eq!(got, ["the outcome"]);
    assert!(!store.deliver(&id("one")).await.unwrap());
    assert!(calls_with(&store, "one").await.is_empty());
    // One that was delivered otherwise, or that there never will be, is owed to nobody; the call is forgotten all the same.
    for (name, past) in [("two", Did::Finished), ("three", Did::Nothing)] {
        bring(&store, name, past).await;
        store.suspend(&own(name)).await.unwrap();
        store
            .end(&id(name), RequestEnding::Withdrawn, "")
            .await
            .unwrap();
        store.deliver(&id(name)).await.unwrap();
        let listed = calls_with(&again, name).await.remove(0);
        let collected = again.collect(&listed.run, &listed.call).await.unwrap();
        let collected = collected.unwrap();
        assert!(!collected.before.owes_outcome(), "{name}: {collected:?}");
        assert_eq!(collected.outcome, None, "{name}");
        assert!(calls_with(&store, name).await.is_empty(), "{name}");
    }
}

async fn two_calls_that_wait_for_one_request_are_each_kept(place: &dyn Place) {
    let store = place.inbox();
    bring(&store, "one", Did::Nothing).await;
    let scripts = ["script-1", "script-2"].map(|name| SuspendedCall {
        approval: id("one"),
        ..call("r1", name, name)
    });
    for script in &scripts {
        store.suspend(script).await.unwrap();
    }
    let [first, second] = &scripts;
    store
        .end_suspended(&first.run, &first.call, Some("first"))
        .await
        .unwrap();
    assert_eq!(outcome(&store, first).await.as_deref(), Some("first"));
    let SuspendedEntry { call, state } = store
        .get_suspended(&second.run, &second.call)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(call, *second);
    assert_eq!(state.status, RequestStatus::Pending);
    assert_eq!(state.caller, CallerState::Within);
}

#[tokio::test]
async fn af12_a_known_call_takes_no_other_s_place_in_memory_and_outcomes_are_bounded() {
    let memory = MemoryInbox::new();
    let at = |n: usize| call(&format!("r{n}"), "call-1", "k");
    for n in 0..1000 {
        memory.suspend(&at(n)).await.unwrap();
    }
    memory.suspend(&at(999)).await.unwrap();
    assert_eq!(memory.find_suspended("k").await.unwrap().len(), 1000);
    memory.suspend(&at(1000)).await.unwrap();
    let oldest = at(0);
    let known = memory.get_suspended(&oldest.run, &oldest.call).await;
    assert_eq!(known.unwrap(), None);
    let long = "x".repeat(1 << 20);
    for n in 1..101 {
        let one = at(n);
        let ended = memory.end_suspended(&one.run, &one.call, Some(&long));
        ended.await.unwrap();
    }
    let left = memory.find_suspended("k").await.unwrap();
    let ended = left.iter().filter(|call| call.has_ended());
    assert_eq!(ended.count(), 64);
}

#[test]
fn f1_a_call_is_the_same_by_tool_person_workspace_group_and_arguments() {
    let [tool, chain] = ["other", "tool_chain"].map(|name| ToolName::new(name).unwrap());
    let [ada, bob] = ["ada", "bob"].map(Principal::local);
    let scope = RepeatScope {
        principal: &ada,
        workspace: "/w",
        group: None,
    };
    let args = r#"{"code":"1","timeout_s":5}"#;
    let one = key(&chain, scope, args);
    let spaced = r#"{ "timeout_s": 5, "code": "1" }"#;
    assert_eq!(one, key(&chain, scope, spaced));
    let elsewhere = RepeatScope {
        workspace: "/v",
        ..scope
    };
    let of_other = RepeatScope {
        principal: &bob,
        ..scope
    };
    let in_group = RepeatScope {
        group: Some("g"),
        ..scope
    };
    for other in [
        key(&chain, scope, r#"{"code":"2","timeout_s":5}"#),
        key(&chain, elsewhere, args),
        key(&chain, of_other, args),
        key(&chain, in_group, args),
        key(&tool, scope, args),
    ] {
        assert_ne!(one, other);
    }
}
