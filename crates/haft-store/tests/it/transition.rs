//! One table for every inbox: for each event at each status, memory and SQL do what `transition` says.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::approval::Decision;
use haft::approval::inbox::{Inbox, InboxError, RequestEnding, RequestStatus, StoredApproval};
use haft::approval::transition::{RequestEvent, transition};
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

/// The request itself shows whether a claim is the second one.
const EVENTS: [RequestEvent; 8] = [
    RequestEvent::Approve,
    RequestEvent::Deny,
    RequestEvent::Answer,
    RequestEvent::Claim { again: false },
    RequestEvent::Finish,
    RequestEvent::End(RequestEnding::Expired),
    RequestEvent::End(RequestEnding::Withdrawn),
    RequestEvent::End(RequestEnding::Void),
];

fn name(past: Past, event: RequestEvent) -> String {
    format!("{past:?} {event:?}")
}

async fn bring(inbox: &Arc<dyn Inbox>, name: &str, past: Past) {
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
    inbox: &Arc<dyn Inbox>,
    name: &str,
    event: RequestEvent,
) -> Result<(), InboxError> {
    let decision: fn(&str) -> Decision = match event {
        RequestEvent::Approve => yes,
        RequestEvent::Deny => no,
        RequestEvent::Answer => answer,
        RequestEvent::Claim { .. } => return inbox.claim(&id(name)).await.map(drop),
        RequestEvent::Finish => return inbox.finish(&id(name), r#"{"v":1}"#, false).await,
        RequestEvent::End(ending) => return inbox.end(&id(name), ending, "").await,
    };
    inbox.decide(&id(name), &decision("eve")).await.map(drop)
}

async fn entry(inbox: &Arc<dyn Inbox>, name: &str) -> StoredApproval {
    inbox.get(&id(name)).await.unwrap().unwrap()
}

/// Waits until a request that a vanished inbox claimed is shown as in doubt.
async fn in_doubt(inbox: &Arc<dyn Inbox>, name: &str) {
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
            let event = match event {
                RequestEvent::Claim { .. } => RequestEvent::Claim {
                    again: before.claimed,
                },
                other => other,
            };
            let (expect, stands) = match transition(status, event) {
                Ok(after) => (Ok(()), after),
                Err(refused) => (Err(refused.error(&before)), status),
            };
            assert_eq!(happens(&inbox, &name, event).await, expect, "{name}");
            let after = entry(&inbox, &name).await;
            assert_eq!(after.status, stands, "{name}");
        }
    }
}
