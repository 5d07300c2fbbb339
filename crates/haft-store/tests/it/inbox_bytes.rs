//! Memory use of long requests, in memory, on `SQLite`, on `PostgreSQL`: lists come in pages, and requests that end undecided are removed.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use haft::approval::inbox::{
    RequestEnding, RequestFilter, RequestStatus, StoredApproval, WaitingLimits,
};
use haft::approval::listing;
use haft::approval::{ApprovalRequest, Choice, Decision};
use haft::clock;

use crate::inbox::{Kind, Place, on_each};
use crate::request::{all, id, no, request};

on_each!(
    aw3_a_list_holds_so_many_bytes_and_all_pages_everything,
    aw3_a_list_counts_what_was_decided_and_what_came_of_it,
    aw3_requests_that_ended_undecided_take_so_many_bytes,
);

/// Returns a request with arguments of `mib` MiB.
fn long(name: &str, mib: usize) -> ApprovalRequest {
    let mut one = request(name, name);
    one.arguments = format!(r#"{{"text":"{}"}}"#, "x".repeat(mib << 20));
    one
}

async fn aw3_a_list_holds_so_many_bytes_and_all_pages_everything(place: &dyn Place) {
    let inbox = place.inbox();
    for (name, mib) in [("a0", 6), ("a1", 6), ("a2", 6), ("a3", 15), ("a4", 1)] {
        inbox.submit(&long(name, mib)).await.unwrap();
    }
    let listed = inbox.list(&all()).await.unwrap();
    assert_eq!(listed.len(), 2, "16 MiB of 34");
    let after = RequestFilter {
        after: Some(id("a2")),
        ..all()
    };
    assert_eq!(inbox.list(&after).await.unwrap().len(), 1);
    let pending = RequestFilter {
        status: vec![RequestStatus::Pending],
        ..all()
    };
    let four = RequestFilter { limit: 4, ..all() };
    for (filter, expect) in [(all(), 5), (pending, 5), (four, 4)] {
        let mut ids = Vec::new();
        let visit = |entry: StoredApproval| ids.push(entry.request.id.to_string());
        listing::each(&*inbox, filter, visit).await.unwrap();
        assert_eq!(ids, ["a0", "a1", "a2", "a3", "a4"][..expect]);
    }
    let room = async |mib: usize| {
        let limits = WaitingLimits {
            per_run: 9,
            total: 9,
            bytes: mib << 20,
        };
        let one = request("new", "new");
        inbox.has_room(&one, limits).await.unwrap()
    };
    assert!(room(36).await && !room(34).await);
}

async fn aw3_a_list_counts_what_was_decided_and_what_came_of_it(place: &dyn Place) {
    let inbox = place.inbox();
    let text = format!(r#"{{"text":"{}"}}"#, "x".repeat(7 << 20));
    for name in ["a0", "a1", "a2", "a3"] {
        inbox.submit(&request(name, name)).await.unwrap();
        let mut yes = Decision::approve("bob", "test");
        let done = name < "a2";
        if let (Choice::Approve { edited, .. }, false) = (&mut yes.choice, done) {
            *edited = Some(text.clone());
        }
        inbox.decide(&id(name), &yes).await.unwrap();
        if done {
            inbox.claim(&id(name)).await.unwrap();
            inbox.finish(&id(name), &text, true).await.unwrap();
        }
    }
    assert_eq!(inbox.list(&all()).await.unwrap().len(), 2, "16 MiB of 28");
    let after = RequestFilter {
        after: Some(id("a0")),
        ..all()
    };
    assert_eq!(inbox.list(&after).await.unwrap().len(), 2, "16 MiB of 21");
    let mut ids = Vec::new();
    let visit = |entry: StoredApproval| ids.push(entry.request.id.to_string());
    listing::each(&*inbox, all(), visit).await.unwrap();
    assert_eq!(ids, ["a0", "a1", "a2", "a3"]);
}

async fn aw3_requests_that_ended_undecided_take_so_many_bytes(place: &dyn Place) {
    let inbox = place.inbox();
    inbox
        .submit(&request("a-denied", "a-denied"))
        .await
        .unwrap();
    inbox.decide(&id("a-denied"), &no("bob")).await.unwrap();
    for n in 0..16 {
        let mut one = long(&format!("a{n:02}"), 4);
        if n % 2 == 0 {
            one.expires = clock::now() - 1;
        }
        inbox.submit(&one).await.unwrap();
        if n % 2 == 1 {
            let withdrawn = inbox.end(&one.id, RequestEnding::Withdrawn, "").await;
            withdrawn.unwrap();
        }
    }
    let mut left = Vec::new();
    let visit = |entry: StoredApproval| left.push(entry.request.id.to_string());
    listing::each(&*inbox, all(), visit).await.unwrap();
    assert_eq!((&*left[0], &*left[left.len() - 1]), ("a-denied", "a15"));
    assert!((8..=11).contains(&left.len()), "{left:?}");
}
