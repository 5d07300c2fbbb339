//! The steps of a request before the one that a test looks at, and what they leave: why it ended, and whether it answers a call.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;

use haft::approval::inbox::{RequestEnding, Submission, WaitingCalls};
use haft::approval::review::Review;
use haft::call::RunId;

use crate::request::{answer, id, no, request, yes};

/// The earlier steps of a request, before the step that is refused.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Did {
    Nothing,
    Approved,
    Denied,
    Answered,
    Claimed,
    Finished,
    Expired,
    Withdrawn,
    Voided,
}

/// Files a request and takes it through the steps.
pub(crate) async fn bring(inbox: &Arc<dyn WaitingCalls>, name: &str, to: Did) {
    inbox.submit(&request(name, name)).await.unwrap();
    let id = id(name);
    match to {
        Did::Nothing => {}
        Did::Approved | Did::Claimed | Did::Finished | Did::Voided => {
            inbox.decide(&id, &yes("bob")).await.unwrap();
        }
        Did::Denied => drop(inbox.decide(&id, &no("bob")).await.unwrap()),
        Did::Answered => drop(inbox.decide(&id, &answer("bob")).await.unwrap()),
        Did::Expired => inbox.end(&id, RequestEnding::Expired, "").await.unwrap(),
        Did::Withdrawn => inbox.end(&id, RequestEnding::Withdrawn, "").await.unwrap(),
    }
    if matches!(to, Did::Voided) {
        inbox.end(&id, RequestEnding::Void, "").await.unwrap();
    }
    if matches!(to, Did::Claimed | Did::Finished) {
        inbox.claim(&id).await.unwrap();
    }
    if matches!(to, Did::Finished) {
        inbox.finish(&id, "{}", false).await.unwrap();
    }
}

pub(crate) async fn why_a_request_ended_is_kept(
    store: &Arc<dyn WaitingCalls>,
    person: &Arc<dyn WaitingCalls>,
) {
    let why = "rules allow the call now";
    // What was done before, the ending, and whether it took effect.
    for (did, ending, ends) in [
        (Did::Nothing, RequestEnding::Withdrawn, true),
        (Did::Approved, RequestEnding::Void, true),
        (Did::Nothing, RequestEnding::Void, false),
        (Did::Approved, RequestEnding::Withdrawn, false),
        (Did::Claimed, RequestEnding::Void, false),
        (Did::Withdrawn, RequestEnding::Withdrawn, false),
    ] {
        let name = format!("{did:?}-{ending:?}");
        bring(store, &name, did).await;
        store.end(&id(&name), ending, why).await.unwrap();
        let entry = person.get(&id(&name)).await.unwrap().unwrap();
        let expect = ends.then_some(why);
        assert_eq!(entry.why.as_deref(), expect, "{name}");
        if ends && did as u8 == Did::Nothing as u8 {
            let late = person.decide(&id(&name), &yes("bob")).await.unwrap_err();
            let says = format!("approval {name} is withdrawn: {why}");
            assert_eq!(late.to_string(), says);
        }
    }
}

pub(crate) async fn the_request_that_answers_a_call_is_found(
    store: &Arc<dyn WaitingCalls>,
    other: &Arc<dyn WaitingCalls>,
) {
    let run = request("a", "f").run;
    let found = async |run: &RunId, fingerprint: &str| {
        let found = other.find(run, fingerprint).await.unwrap();
        found.map(|entry| entry.request.id.to_string())
    };
    for (did, expect) in [
        (Did::Nothing, true),
        (Did::Approved, true),
        (Did::Denied, true),
        (Did::Claimed, true),
        (Did::Finished, true),
        (Did::Expired, false),
        (Did::Withdrawn, false),
        (Did::Voided, false),
    ] {
        let name = format!("{did:?}");
        bring(store, &name, did).await;
        let expect = expect.then(|| name.clone());
        assert_eq!(found(&run, &name).await, expect, "{name}");
        assert_eq!(found(&RunId::new("another"), &name).await, None, "{name}");
    }
    assert_eq!(found(&run, "none").await, None);
    // The newest counts.
    let again = request("again", "Withdrawn");
    assert_eq!(store.submit(&again).await.unwrap(), Submission::New);
    assert_eq!(found(&run, "Withdrawn").await.as_deref(), Some("again"));
}

pub(crate) async fn review_is_set_once(
    store: &Arc<dyn WaitingCalls>,
    other: &Arc<dyn WaitingCalls>,
) {
    bring(store, "a", Did::Nothing).await;
    bring(store, "b", Did::Nothing).await;
    let (a, b) = (id("a"), id("b"));
    let (first, second) = (Review::begin("openai:x"), Review::begin("openai:y"));
    let said = Review {
        reason: "it's “fine”".to_owned(),
        ..first.clone()
    };
    let set = |inbox: &Arc<dyn WaitingCalls>, was: Option<&Review>, now: &Review| {
        let (inbox, was, now, a) = (Arc::clone(inbox), was.cloned(), now.clone(), a.clone());
        async move { inbox.set_review(&a, was.as_ref(), &now).await.unwrap() }
    };
    let both = tokio::join!(set(store, None, &first), set(other, None, &second));
    assert!(both.0 ^ both.1, "{both:?}");
    let (won, lost) = if both.0 {
        (first, second)
    } else {
        (second, first)
    };
    let said = Review {
        reason: said.reason,
        ..won.clone()
    };
    for (was, now, sets) in [
        (Some(&lost), &said, false),
        (Some(&won), &said, true),
        (Some(&won), &lost, false),
        (Some(&said), &said, true),
    ] {
        assert_eq!(set(store, was, now).await, sets, "{was:?}");
    }
    let review = async |id| other.get(id).await.unwrap().unwrap().request.review;
    assert_eq!(review(&a).await.as_deref(), Some(&said));
    assert_eq!(review(&b).await, None);
    // What is decided keeps it, also in what the decision returns.
    let decided = other.decide(&a, &yes("bob")).await.unwrap();
    assert_eq!(decided.request.review.as_deref(), Some(&said));
    let claimed = store.claim(&a).await.unwrap();
    assert_eq!(claimed.request.review.as_deref(), Some(&said));
    assert!(store.set_review(&id("none"), None, &lost).await.is_err());
}
