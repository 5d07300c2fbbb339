//! The contract of every inbox, in memory, on `SQLite`, on `PostgreSQL`: one suite, run on each.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;
use std::time::Duration;

use haft::approval::ApprovalId;
use haft::approval::inbox::{
    InboxError, RequestEnding, RequestFilter, RequestStatus, StoredApproval, Submission,
    WaitingCalls, WaitingLimits,
};
use haft::approval::memory::MemoryInbox;
use haft::call::{Principal, RunId};
use haft::clock;
use haft_store::postgres::PostgresStore;
use haft_store::sqlite::SqliteInbox;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::inbox_steps::{self, Did, bring};
use crate::leases::{renewed, short};
use crate::request::{MINUTE, all, id, no, request, yes};

/// A place that stores requests, and connections to it.
pub(crate) trait Place: Send + Sync {
    /// Returns another connection, as another process has one.
    fn inbox(&self) -> Arc<dyn WaitingCalls>;

    /// Returns its address for another process; empty if no other process can reach it.
    fn address(&self) -> String {
        String::new()
    }
}

struct Memory(Arc<MemoryInbox>);

impl Place for Memory {
    fn inbox(&self) -> Arc<dyn WaitingCalls> {
        self.0.clone()
    }
}

struct Sqlite(tempfile::TempDir);

impl Place for Sqlite {
    fn inbox(&self) -> Arc<dyn WaitingCalls> {
        Arc::new(SqliteInbox::new(self.0.path()).with_lease(short()))
    }

    fn address(&self) -> String {
        format!("sqlite:{}", self.0.path().display())
    }
}

struct Postgres {
    _cluster: Arc<Cluster>,
    url: String,
}

impl Place for Postgres {
    fn inbox(&self) -> Arc<dyn WaitingCalls> {
        let store = PostgresStore::new(&self.url).unwrap();
        Arc::new(store.with_lease(short()))
    }

    fn address(&self) -> String {
        self.url.clone()
    }
}

/// The available places.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Memory,
    Sqlite,
    Postgres,
}

impl Kind {
    /// Returns a fresh place; prints a notice and returns `None` if it is not available.
    pub(crate) fn place(self) -> Option<Box<dyn Place>> {
        Some(match self {
            Self::Memory => Box::new(Memory(Arc::new(MemoryInbox::new()))),
            Self::Sqlite => Box::new(Sqlite(tempfile::tempdir().unwrap())),
            Self::Postgres => {
                let cluster = Cluster::shared()?;
                let url = cluster.database();
                Box::new(Postgres {
                    _cluster: cluster,
                    url,
                })
            }
        })
    }
}

/// Runs each of the suite's tests on each place.
macro_rules! on_each {
    ($($test:ident),* $(,)?) => {
        on_each!(memory_keeps Memory $($test)*);
        on_each!(sqlite_keeps Sqlite $($test)*);
        on_each!(postgres_keeps Postgres $($test)*);
    };
    ($module:ident $kind:ident $($test:ident)*) => {
        mod $module { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                // In a task, so that `block_in_place` runs on a worker thread, whose other tasks can move.
                let test = tokio::spawn(async {
                    if let Some(place) = super::Kind::$kind.place() {
                        super::$test(&*place).await;
                    }
                });
                test.await.unwrap();
            }
        )* }
    };
}
pub(crate) use on_each;

on_each!(
    a_request_goes_one_way,
    each_wrong_step_is_refused_with_its_reason,
    the_same_is_asked_once,
    what_has_expired_is_not_decided,
    lists_hold_what_is_asked_for,
    what_is_kept_is_what_was_written,
    a_thousand_wait_side_by_side,
    of_many_deciders_and_claimers_one_wins,
    changes_are_heard_from_every_connection,
    an_outcome_is_delivered_once,
    whoever_waits_is_alive_for_as_long,
    why_a_request_ended_is_kept,
    review_of_a_request_is_set_once_from_what_it_was,
    the_request_that_answers_a_call_is_found,
    w12_there_is_room_for_what_stands_and_for_so_many_of_a_run,
);

async fn status(inbox: &Arc<dyn WaitingCalls>, name: &str) -> RequestStatus {
    inbox.get(&id(name)).await.unwrap().unwrap().status
}

async fn a_request_goes_one_way(place: &dyn Place) {
    let (asker, person) = (place.inbox(), place.inbox());
    let a = request("a", "f");
    assert_eq!(asker.submit(&a).await.unwrap(), Submission::New);
    let seen = person.get(&a.id).await.unwrap().unwrap();
    let filed = StoredApproval {
        request: a.clone(),
        status: RequestStatus::Pending,
        decision: None,
        attended: true,
        claimed: false,
        outcome: None,
        delivered: false,
        why: None,
    };
    assert_eq!(seen, filed);
    let decision = yes("bob");
    let decided = person.decide(&a.id, &decision).await.unwrap();
    assert_eq!(
        (decided.status, decided.attended, decided.claimed),
        (RequestStatus::Approved, true, false)
    );
    assert_eq!(decided.decision, Some(decision));
    let claimed = asker.claim(&a.id).await.unwrap();
    assert_eq!(
        (claimed.status, claimed.claimed),
        (RequestStatus::Running, true)
    );
    assert_eq!(claimed.request, a, "what was written is what runs");
    assert_eq!(status(&person, "a").await, RequestStatus::Running);
    asker.finish(&a.id, r#"{"v":1}"#, true).await.unwrap();
    let done = person.get(&a.id).await.unwrap().unwrap();
    assert_eq!(
        (done.status, done.delivered, done.outcome.as_deref()),
        (RequestStatus::Done, true, Some(r#"{"v":1}"#))
    );
    assert_eq!(person.get(&id("b")).await.unwrap(), None);
}

#[expect(clippy::too_many_lines, reason = "a table")]
async fn each_wrong_step_is_refused_with_its_reason(place: &dyn Place) {
    let inbox = place.inbox();
    for (did, stands, decide, claim) in [
        (Did::Nothing, "pending", "", "not decided yet"),
        (
            Did::Approved,
            "approved",
            "already decided: approved, by bob",
            "",
        ),
        (Did::Denied, "denied", "already decided: denied, by bob", ""),
        (
            Did::Answered,
            "answered",
            "already decided: answered, by bob",
            "",
        ),
        (
            Did::Claimed,
            "running",
            "already decided: running, by bob",
            "already claimed",
        ),
        (
            Did::Finished,
            "done",
            "already decided: done, by bob",
            "already claimed",
        ),
        (Did::Expired, "expired", "is expired", "is expired"),
        (Did::Withdrawn, "withdrawn", "is withdrawn", "is withdrawn"),
        (Did::Voided, "withdrawn", "is withdrawn", "is withdrawn"),
    ] {
        let name = format!("{did:?}");
        bring(&inbox, &name, did).await;
        assert_eq!(status(&inbox, &name).await.as_str(), stands);
        let told = |result: Result<StoredApproval, InboxError>| match result {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let claimed = told(inbox.claim(&id(&name)).await);
        assert!(claimed.ends_with(claim), "{name}: {claimed}");
        assert_eq!(claimed.is_empty(), claim.is_empty(), "{name}: {claimed}");
        let decided = told(inbox.decide(&id(&name), &no("eve")).await);
        let after_claim = decide.replace("approved,", "running,");
        assert!(decided.ends_with(&after_claim), "{name}: {decided}");
        assert_eq!(decided.is_empty(), decide.is_empty(), "{name}: {decided}");
        // An ending comes too late for a request that is decided or claimed.
        inbox
            .end(&id(&name), RequestEnding::Withdrawn, "")
            .await
            .unwrap();
        if matches!(did, Did::Nothing | Did::Claimed | Did::Finished) {
            inbox
                .end(&id(&name), RequestEnding::Void, "")
                .await
                .unwrap();
        }
        let ended = status(&inbox, &name).await;
        assert_eq!(ended == RequestStatus::Withdrawn, stands == "withdrawn");
    }
    let none = id("none");
    let not_found = InboxError::NotFound(none.clone());
    assert_eq!(inbox.decide(&none, &yes("b")).await.unwrap_err(), not_found);
    assert_eq!(inbox.claim(&none).await.unwrap_err(), not_found);
    assert_eq!(inbox.finish(&none, "", true).await.unwrap_err(), not_found);
    assert_eq!(inbox.deliver(&none).await.unwrap_err(), not_found);
    assert_eq!(
        inbox.set_attended(&none, true).await.unwrap_err(),
        not_found
    );
    let ended = inbox.end(&none, RequestEnding::Expired, "").await;
    assert_eq!(ended.unwrap_err(), not_found);
}

async fn the_same_is_asked_once(place: &dyn Place) {
    let inbox = place.inbox();
    let known = async |name: &str, fingerprint: &str, run: &str| {
        let mut again = request(name, fingerprint);
        again.run = RunId::new(run);
        match inbox.submit(&again).await.unwrap() {
            Submission::New => None,
            Submission::Existing(entry) => Some(entry.request.id.to_string()),
        }
    };
    for (did, stands) in [
        (Did::Nothing, true),
        (Did::Approved, true),
        (Did::Claimed, true),
        (Did::Denied, true),
        (Did::Answered, true),
        (Did::Finished, true),
        (Did::Expired, false),
        (Did::Withdrawn, false),
    ] {
        let name = format!("{did:?}");
        bring(&inbox, &name, did).await;
        let again = known(&format!("{name}-again"), &name, "r1").await;
        assert_eq!(again, stands.then(|| name.clone()), "{name}");
        let elsewhere = known(&format!("{name}-elsewhere"), &name, "r2").await;
        assert_eq!(elsewhere, None, "{name} in another run");
    }
    // The outcome was delivered: the next call asks anew.
    assert!(inbox.deliver(&id("Finished")).await.unwrap());
    assert_eq!(known("Finished-anew", "Finished", "r1").await, None);
}

async fn what_has_expired_is_not_decided(place: &dyn Place) {
    let (asker, person) = (place.inbox(), place.inbox());
    let mut a = request("a", "f");
    a.expires = clock::now() + 30_000_000;
    asker.submit(&a).await.unwrap();
    while status(&person, "a").await != RequestStatus::Expired {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pending = RequestFilter {
        status: vec![RequestStatus::Pending],
        ..all()
    };
    let expired = RequestFilter {
        status: vec![RequestStatus::Expired],
        ..all()
    };
    assert_eq!(person.list(&pending).await.unwrap(), []);
    assert_eq!(person.list(&expired).await.unwrap().len(), 1);
    assert_eq!(status(&person, "a").await, RequestStatus::Expired);
    let over = InboxError::Over {
        id: a.id.clone(),
        status: RequestStatus::Expired,
        why: None,
    };
    assert_eq!(person.decide(&a.id, &yes("bob")).await.unwrap_err(), over);
    assert_eq!(asker.claim(&a.id).await.unwrap_err(), over);
    assert_eq!(person.list(&expired).await.unwrap().len(), 1);
    // It answers nothing: the same call may ask again.
    assert_eq!(
        asker.submit(&request("b", "f")).await.unwrap(),
        Submission::New
    );
}

async fn lists_hold_what_is_asked_for(place: &dyn Place) {
    let inbox = place.inbox();
    for n in 0..6 {
        let mut one = request(&format!("a{n}"), &format!("f{n}"));
        if n == 3 {
            one.run = RunId::new("r2");
        }
        if n == 4 {
            one.principal = Principal::new("other", "ada");
        }
        inbox.submit(&one).await.unwrap();
    }
    inbox.decide(&id("a1"), &no("bob")).await.unwrap();
    let ids = async |filter: RequestFilter| -> Vec<String> {
        let listed = inbox.list(&filter).await.unwrap();
        listed.iter().map(|e| e.request.id.to_string()).collect()
    };
    assert_eq!(ids(all()).await, ["a0", "a1", "a2", "a3", "a5"]);
    let pending = RequestFilter {
        status: vec![RequestStatus::Pending],
        ..all()
    };
    assert_eq!(ids(pending.clone()).await, ["a0", "a2", "a3", "a5"]);
    let two = RequestFilter {
        status: vec![RequestStatus::Denied, RequestStatus::Pending],
        limit: 2,
        ..all()
    };
    assert_eq!(ids(two).await, ["a0", "a1"]);
    let after = RequestFilter {
        after: Some(id("a2")),
        ..pending.clone()
    };
    assert_eq!(ids(after).await, ["a3", "a5"]);
    let run = RequestFilter {
        run: Some(RunId::new("r2")),
        ..all()
    };
    assert_eq!(ids(run).await, ["a3"]);
    let other = RequestFilter {
        tenant: "other".into(),
        ..all()
    };
    assert_eq!(ids(other).await, ["a4"]);
    let nobody = RequestFilter {
        tenant: "nobody".into(),
        ..all()
    };
    assert!(ids(nobody).await.is_empty());
}

async fn w12_there_is_room_for_what_stands_and_for_so_many_of_a_run(place: &dyn Place) {
    let inbox = place.inbox();
    for n in 0..4 {
        let mut one = request(&format!("a{n}"), &format!("f{n}"));
        if n == 3 {
            one.run = RunId::new("r2");
        }
        inbox.submit(&one).await.unwrap();
    }
    let mut expired = request("a4", "f4");
    expired.expires = clock::now() - 1;
    inbox.submit(&expired).await.unwrap();
    let room_of = async |fingerprint: &str, per_run, total| {
        let one = request("new", fingerprint);
        let limits = WaitingLimits {
            per_run,
            total,
            bytes: usize::MAX,
        };
        inbox.has_room(&one, limits).await.unwrap()
    };
    let room = async |fingerprint: &str, most| room_of(fingerprint, most, usize::MAX).await;
    // AW2: four are pending in total, in all runs.
    assert!(room_of("new", 9, 5).await && !room_of("new", 9, 4).await);
    assert!(room_of("f0", 9, 0).await && !room_of("f4", 9, 4).await);
    // Three of the run are pending; the other run's and expired ones do not count.
    assert!(room("new", 4).await && !room("new", 3).await && !room("new", 0).await);
    assert!(room("f0", 3).await && room("f0", 0).await);
    assert!(!room("f3", 3).await && !room("f4", 3).await);
    // A denied request stays, but is not pending.
    inbox.decide(&id("a0"), &no("bob")).await.unwrap();
    assert!(room("f0", 0).await && room("new", 3).await);
    let withdrawn = inbox.end(&id("a1"), RequestEnding::Withdrawn, "").await;
    withdrawn.unwrap();
    assert!(!room("f1", 0).await && room("f1", 2).await);
}

async fn what_is_kept_is_what_was_written(place: &dyn Place) {
    let (asker, person) = (place.inbox(), place.inbox());
    // All control characters, bidirectional marks, HTML, characters beyond the first plane, and noncharacters.
    let controls: String = (0..=0x9f).filter_map(char::from_u32).collect();
    let nasty = format!(
        "{controls}\u{202e}\u{2066}\u{200f}<script>alert(1)</script>&amp;'\"\\\u{fffd}\u{ffff}\u{10ffff}𝔘🏳️‍🌈 Ώ"
    );
    let arguments = nasty.repeat(1 + (1 << 20) / nasty.len());
    assert!(arguments.len() >= 1 << 20);
    let mut a = request("a", "f");
    a.arguments = arguments.clone();
    a.reason.clone_from(&nasty);
    a.suggested = vec![nasty.clone(), String::new()];
    a.expires = clock::now() + 7 * 24 * 60 * MINUTE;
    asker.submit(&a).await.unwrap();
    let seen = person.get(&a.id).await.unwrap().unwrap();
    assert!(seen.request.arguments.as_bytes() == arguments.as_bytes());
    assert!(seen.request == a);
    let decision = yes("zoë\u{202e}").with_arguments(arguments.clone());
    let decided = person.decide(&a.id, &decision).await.unwrap();
    assert!(decided.decision.as_ref() == Some(&decision));
    asker.claim(&a.id).await.unwrap();
    asker.finish(&a.id, &arguments, false).await.unwrap();
    let done = &person.list(&all()).await.unwrap()[0];
    assert!(done.outcome.as_deref() == Some(&*arguments));
    assert!(done.decision.as_ref() == Some(&decision) && done.request == a);
}

async fn a_thousand_wait_side_by_side(place: &dyn Place) {
    let (asker, person) = (place.inbox(), place.inbox());
    let filing = (0..1000).map(|n| {
        let asker = Arc::clone(&asker);
        tokio::spawn(async move {
            let one = request(&format!("a{n}"), &format!("f{n}"));
            asker.submit(&one).await.unwrap()
        })
    });
    for filed in filing.collect::<Vec<_>>() {
        assert_eq!(filed.await.unwrap(), Submission::New);
    }
    let listed = person.list(&all()).await.unwrap();
    assert_eq!(listed.len(), 1000);
    assert!(listed.iter().all(|entry| entry.is_open() && entry.attended));
    let decided = person.decide(&id("a999"), &yes("bob")).await.unwrap();
    assert_eq!(decided.request.fingerprint, "f999");
}

/// Returns the winners, and checks the errors of the others.
fn winners(results: Vec<Result<StoredApproval, InboxError>>) -> Vec<StoredApproval> {
    let mut won = Vec::new();
    for result in results {
        match result {
            Ok(entry) => won.push(entry),
            Err(InboxError::Decided { .. } | InboxError::Claimed(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    won
}

async fn of_many_deciders_and_claimers_one_wins(place: &dyn Place) {
    let inboxes: Vec<_> = (0..8).map(|_| place.inbox()).collect();
    inboxes[0].submit(&request("a", "f")).await.unwrap();
    let deciding = (0..200).map(|n| {
        let inbox = Arc::clone(&inboxes[n % 8]);
        tokio::spawn(async move { inbox.decide(&id("a"), &yes(&format!("p{n}"))).await })
    });
    let mut results = Vec::new();
    for decided in deciding.collect::<Vec<_>>() {
        results.push(decided.await.unwrap());
    }
    let won = winners(results);
    assert_eq!(won.len(), 1);
    let claiming = (0..200).map(|n| {
        let inbox = Arc::clone(&inboxes[n % 8]);
        tokio::spawn(async move { inbox.claim(&id("a")).await })
    });
    let mut results = Vec::new();
    for claimed in claiming.collect::<Vec<_>>() {
        results.push(claimed.await.unwrap());
    }
    let took = winners(results);
    assert_eq!(took.len(), 1);
    assert_eq!(
        took[0].decision, won[0].decision,
        "the first decision stands"
    );
    // Submitted 200 times at once, the request exists once.
    let filing = (0..200).map(|n| {
        let inbox = Arc::clone(&inboxes[n % 8]);
        tokio::spawn(async move { inbox.submit(&request(&format!("b{n}"), "g")).await.unwrap() })
    });
    let mut new = 0;
    for filed in filing.collect::<Vec<_>>() {
        new += usize::from(filed.await.unwrap() == Submission::New);
    }
    assert_eq!(new, 1);
    assert_eq!(inboxes[7].list(&all()).await.unwrap().len(), 2);
}

async fn changes_are_heard_from_every_connection(place: &dyn Place) {
    let (asker, person) = (place.inbox(), place.inbox());
    asker.submit(&request("old", "o")).await.unwrap();
    let (mut here, mut there) = (asker.changes(), person.changes());
    // Read after subscribing: later changes are received.
    person.get(&id("old")).await.unwrap();
    asker.get(&id("old")).await.unwrap();
    // A change written just before may be received, too.
    let next = async |from: &mut tokio::sync::broadcast::Receiver<ApprovalId>| {
        loop {
            let heard = timeout(Duration::from_secs(10), from.recv()).await;
            let heard = heard.unwrap().unwrap();
            if heard != id("old") {
                return heard;
            }
        }
    };
    asker.submit(&request("a", "f")).await.unwrap();
    assert_eq!(next(&mut here).await, id("a"));
    assert_eq!(next(&mut there).await, id("a"));
    person.decide(&id("a"), &yes("bob")).await.unwrap();
    assert_eq!(next(&mut here).await, id("a"));
    assert_eq!(next(&mut there).await, id("a"));
    assert_eq!(status(&asker, "a").await, RequestStatus::Approved);
}

async fn whoever_waits_is_alive_for_as_long(place: &dyn Place) {
    let (asker, other) = (place.inbox(), place.inbox());
    asker.submit(&request("a", "f")).await.unwrap();
    // The process renews its lease by itself, with nothing else to do.
    if asker.is_durable() {
        renewed(&place.address()).await;
    }
    assert!(other.get(&id("a")).await.unwrap().unwrap().attended);
    asker.set_attended(&id("a"), false).await.unwrap();
    assert!(!other.get(&id("a")).await.unwrap().unwrap().attended);
}

async fn an_outcome_is_delivered_once(place: &dyn Place) {
    let inboxes: Vec<_> = (0..4).map(|_| place.inbox()).collect();
    bring(&inboxes[0], "a", Did::Finished).await;
    let delivering = (0..40).map(|n| {
        let inbox = Arc::clone(&inboxes[n % 4]);
        tokio::spawn(async move { inbox.deliver(&id("a")).await.unwrap() })
    });
    let mut first = 0;
    for delivered in delivering.collect::<Vec<_>>() {
        first += usize::from(delivered.await.unwrap());
    }
    assert_eq!(first, 1);
    // A request that its process has released is not attended.
    bring(&inboxes[0], "b", Did::Nothing).await;
    inboxes[0].set_attended(&id("b"), false).await.unwrap();
    assert!(!inboxes[1].get(&id("b")).await.unwrap().unwrap().attended);
    inboxes[2].set_attended(&id("b"), true).await.unwrap();
    assert!(inboxes[1].get(&id("b")).await.unwrap().unwrap().attended);
}

async fn review_of_a_request_is_set_once_from_what_it_was(place: &dyn Place) {
    inbox_steps::review_is_set_once(&place.inbox(), &place.inbox()).await;
}

async fn why_a_request_ended_is_kept(place: &dyn Place) {
    inbox_steps::why_a_request_ended_is_kept(&place.inbox(), &place.inbox()).await;
}

async fn the_request_that_answers_a_call_is_found(place: &dyn Place) {
    inbox_steps::the_request_that_answers_a_call_is_found(&place.inbox(), &place.inbox()).await;
}
