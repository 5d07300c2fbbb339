//! One table for every inbox: for each event at each status, memory and SQL do what `transition` says.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::approval::Decision;
use haft::approval::inbox::{
    InboxError, RequestEnding, RequestStatus, StoredApproval, WaitingCalls,
};
use haft::approval::transition::{WaitingEvent, transition};
use haft::clock;

use crate::inbox::{Kind, Place, on_each};
use crate::request::{answer, id, no, request, yes};

on_each!(each_event_at_each_status_comes_to_what_the_rule_says);

/// The steps that bring a request to a status.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Past {
    Nothing,
    Approved,
    Denied,
    Answered,
    /// The same two, and claimed.
    DenialClaimed,
    AnswerClaimed,
    Running,
    Done,
    Expired,
    /// It has expired, and nothing has marked it as expired.
    Overdue,
    Withdrawn,
    Voided,
    /// Claimed by an inbox that no longer exists.
    Left,
}

const PASTS: [(Past, RequestStatus); 13] = [
    (Past::Nothing, RequestStatus::Pending),
    (Past::Approved, RequestStatus::Approved),
    (Past::Denied, RequestStatus::Denied),
    (Past::Answered, RequestStatus::Answered),
    (Past::DenialClaimed, RequestStatus::Denied),
    (Past::AnswerClaimed, RequestStatus::Answered),
    (Past::Running, RequestStatus::Running),
    (Past::Done, RequestStatus::Done),
    (Past::Expired, RequestStatus::Expired),
    (Past::Overdue, RequestStatus::Expired),
    (Past::Withdrawn, RequestStatus::Withdrawn),
    (Past::Voided, RequestStatus::Withdrawn),
    (Past::Left, RequestStatus::InDoubt),
];

const EVENTS: [WaitingEvent; 9] = [
    WaitingEvent::Approve,
    WaitingEvent::Deny,
    WaitingEvent::Answer,
    WaitingEvent::Claim,
    WaitingEvent::Finish { delivered: false },
    WaitingEvent::Deliver,
    WaitingEvent::End(RequestEnding::Expired),
    WaitingEvent::End(RequestEnding::Withdrawn),
    WaitingEvent::End(RequestEnding::Void),
];

fn name(past: Past, event: WaitingEvent) -> String {
    format!("{past:?} {event:?}")
}

async fn bring(inbox: &Arc<dyn WaitingCalls>, name: &str, past: Past) {
    let mut one = request(name, name);
    if past == Past::Overdue {
        one.expires = clock::now() - 1;
    }
    inbox.submit(&one).await.unwrap();
    let decision: Option<fn(&str) -> Decision> = match past {
        Past::Approved | Past::Running | Past::Done | Past::Voided | Past::Left => Some(yes),
        Past::Denied | Past::DenialClaimed => Some(no),
        Past::Answered | Past::AnswerClaimed => Some(answer),
        Past::Nothing | Past::Expired | Past::Overdue | Past::Withdrawn => None,
    };
    if let Some(decision) = decision {
        inbox.decide(&id(name), &decision("bob")).await.unwrap();
    }
    let claimed = [Past::DenialClaimed, Past::AnswerClaimed];
    if claimed.contains(&past) || [Past::Running, Past::Done, Past::Left].contains(&past) {
        inbox.claim(&id(name)).await.unwrap();
    }
    if past == Past::Done {
        inbox.finish(&id(name), "{}", false).await.unwrap();
    }
    let ending = match past {
        Past::Expired => RequestEnding::Expired,
        Past::Withdrawn => RequestEnding::Withdrawn,
        Past::Voided => RequestEnding::Void,
        _ => return,
    };
    inbox.end(&id(name), ending, "").await.unwrap();
}

async fn happens(
    inbox: &Arc<dyn WaitingCalls>,
    name: &str,
    event: WaitingEvent,
) -> Result<(), InboxError> {
    let decision: fn(&str) -> Decision = match event {
        WaitingEvent::Approve => yes,
        WaitingEvent::Deny => no,
        WaitingEvent::Answer => answer,
        WaitingEvent::Claim => return inbox.claim(&id(name)).await.map(drop),
        WaitingEvent::Finish { delivered } => {
            return inbox.finish(&id(name), r#"{"v":1}"#, delivered).await;
        }
        WaitingEvent::Deliver => return inbox.deliver(&id(name)).await.map(drop),
        WaitingEvent::End(ending) => return inbox.end(&id(name), ending, "").await,
        // Processes exit by themselves, and suspended calls have a table of their own.
        WaitingEvent::Exit
        | WaitingEvent::Suspend { .. }
        | WaitingEvent::Return { .. }
        | WaitingEvent::Collect => return Ok(()),
    };
    inbox.decide(&id(name), &decision("eve")).await.map(drop)
}

async fn entry(inbox: &Arc<dyn WaitingCalls>, name: &str) -> StoredApproval {
    inbox.get(&id(name)).await.unwrap().unwrap()
}

/// Waits until a request that a vanished inbox claimed is shown as in doubt.
async fn in_doubt(inbox: &Arc<dyn WaitingCalls>, name: &str) {
    let began = Instant::now();
    while entry(inbox, name).await.status != RequestStatus::InDoubt {
        assert!(began.elapsed() < Duration::from_secs(60), "{name}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn each_event_at_each_status_comes_to_what_the_rule_says(place: &dyn Place) {
    let inbox = place.inbox();
    let other = place.inbox();
    for event in EVENTS {
        bring(&other, &name(Past::Left, event), Past::Left).await;
    }
    drop(other);
    for (past, status) in PASTS {
        // No other process can use an inbox in memory.
        if past == Past::Left && !inbox.is_durable() {
            continue;
        }
        for event in EVENTS {
            let name = name(past, event);
            if past == Past::Left {
                in_doubt(&inbox, &name).await;
            } else {
                bring(&inbox, &name, past).await;
            }
            let before = entry(&inbox, &name).await;
            assert_eq!(before.status, status, "{name}");
            let (expect, stands) = match transition(before.state(), event) {
                Ok(after) => (Ok(()), after),
                Err(refused) => (Err(refused.error(&before)), before.state()),
            };
            assert_eq!(happens(&inbox, &name, event).await, expect, "{name}");
            let after = entry(&inbox, &name).await;
            assert_eq!(after.state(), stands, "{name}");
        }
    }
}
