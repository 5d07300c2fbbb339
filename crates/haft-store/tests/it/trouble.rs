//! Databases in trouble: a full disk, a lock, a missing file, a server that crashes, a clock that jumps.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests mount small disks, and say when they cannot"
)]

use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::approval::inbox::{InboxError, RequestStatus, StoredApproval, Submission, WaitingCalls};
use haft::clock;
use haft_store::postgres::PostgresStore;
use haft_store::sqlite::SqliteInbox;
use rusqlite::Connection;

use crate::cluster::Cluster;
use crate::inbox::Kind;
use crate::request::{MINUTE, all, id, request, yes};

fn why<T: std::fmt::Debug>(result: Result<T, InboxError>) -> String {
    match result {
        Err(InboxError::Unavailable(why)) => why.to_string(),
        other => panic!("{other:?}"),
    }
}

fn beside(home: &Path) -> Connection {
    Connection::open(home.join("haft.db")).unwrap()
}

/// A disk of four MiB, mounted as long as this value lives.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(dir.path())
            .output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self(dir));
        }
        eprintln!("SKIPPED: a full disk: no tmpfs can be mounted here");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_said_and_with_room_it_goes_on() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let home = disk.0.path().join("home");
    let inbox = SqliteInbox::new(&home);
    inbox.submit(&request("first", "first")).await.unwrap();
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![0; 2 << 20]).unwrap();
    let mut kept = 1;
    let told = loop {
        let name = format!("a{kept}");
        let mut one = request(&name, &name);
        one.arguments = "x".repeat(100_000);
        match inbox.submit(&one).await {
            Ok(filed) => assert_eq!(filed, Submission::New),
            refused => break why(refused),
        }
        kept += 1;
        assert!(kept < 100, "the disk is not full");
    };
    assert!(told.contains("the disk is full; make room"), "{told}");
    // Accepted requests are there; refused ones are not.
    assert_eq!(inbox.list(&all()).await.unwrap().len(), kept);
    std::fs::remove_file(&ballast).unwrap();
    let filed = inbox.submit(&request("after", "after")).await.unwrap();
    assert_eq!(filed, Submission::New);
    inbox.decide(&id("first"), &yes("bob")).await.unwrap();
    inbox.shut_down().await;
    let again = SqliteInbox::new(&home);
    assert_eq!(again.list(&all()).await.unwrap().len(), kept + 1);
    again.shut_down().await;
}

#[tokio::test]
async fn a_lock_that_does_not_end_is_said_and_then_it_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let inbox = SqliteInbox::new(home.path());
    inbox.submit(&request("a", "f")).await.unwrap();
    let other = beside(home.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = inbox.decide(&id("a"), &yes("bob")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("locked by another process for more than 5 s; wait"),
        "{error}"
    );
    let driver = error.source().and_then(Error::source);
    assert!(
        driver
            .and_then(|e| e.downcast_ref::<rusqlite::Error>())
            .is_some(),
        "{error:?}"
    );
    // Readers are not blocked.
    let seen = inbox.get(&id("a")).await.unwrap().unwrap();
    assert_eq!(seen.status, RequestStatus::Pending);
    other.execute_batch("ROLLBACK").unwrap();
    inbox.decide(&id("a"), &yes("bob")).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_gone_is_said_and_back_again_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (home, away) = (dir.path().join("home"), dir.path().join("away"));
    let inbox = SqliteInbox::new(&home);
    inbox.submit(&request("a", "f")).await.unwrap();
    inbox.get(&id("a")).await.unwrap();
    std::fs::rename(&home, &away).unwrap();
    for told in [
        why(inbox.decide(&id("a"), &yes("bob")).await),
        why(inbox.get(&id("a")).await),
        why(inbox.submit(&request("b", "g")).await),
    ] {
        assert!(told.contains("haft.db is gone; put it back"), "{told}");
    }
    assert!(!home.exists(), "an empty one was begun in its place");
    std::fs::rename(&away, &home).unwrap();
    inbox.decide(&id("a"), &yes("bob")).await.unwrap();
    let seen = inbox.get(&id("a")).await.unwrap().unwrap();
    assert_eq!(
        (seen.status, seen.attended),
        (RequestStatus::Approved, true)
    );
}

#[tokio::test]
async fn a_clock_that_jumps_delays_and_doubles_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (asker, other) = (SqliteInbox::new(home.path()), SqliteInbox::new(home.path()));
    asker.submit(&request("a", "f")).await.unwrap();
    asker.submit(&request("b", "g")).await.unwrap();
    let beside = beside(home.path());
    for jump in [3600, -3600] {
        // As others see it after the clock was set forward by an hour, or back.
        let moved = "UPDATE approval_processes SET alive_until = alive_until - ? * 1000000000";
        assert_eq!(beside.execute(moved, [jump]).unwrap(), 1);
        let name = if jump > 0 { "a" } else { "b" };
        let seen = other.get(&id(name)).await.unwrap().unwrap();
        assert!(!seen.attended);
        // Both try to run it; one succeeds.
        other.decide(&id(name), &yes("bob")).await.unwrap();
        let took = [
            asker.claim(&id(name)).await.is_ok(),
            other.claim(&id(name)).await.is_ok(),
        ];
        assert_eq!(took, [true, false]);
        let began = Instant::now();
        while !other.get(&id(name)).await.unwrap().unwrap().attended {
            assert!(began.elapsed() < Duration::from_secs(10), "dead for good");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn what_ended_over_thirty_days_ago_is_swept_and_the_rest_stays() {
    let home = tempfile::tempdir().unwrap();
    let days = |n: i128| clock::now() - n * 24 * 60 * MINUTE;
    let inbox = SqliteInbox::new(home.path());
    for (name, created) in [("old", days(31)), ("open", days(31)), ("new", days(29))] {
        let mut one = request(name, name);
        one.created = created;
        inbox.submit(&one).await.unwrap();
        if name != "open" {
            let ending = haft::approval::inbox::RequestEnding::Withdrawn;
            inbox.end(&id(name), ending, "").await.unwrap();
        }
    }
    inbox.shut_down().await;
    // Opening the database sweeps.
    let inbox = SqliteInbox::new(home.path());
    inbox.submit(&request("last", "last")).await.unwrap();
    let listed = inbox.list(&all()).await.unwrap();
    let ids: Vec<_> = listed.iter().map(|e| e.request.id.as_str()).collect();
    assert_eq!(ids, ["open", "new", "last"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_wait_and_no_more() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let Some(place) = kind.place() else { continue };
        let inbox = place.inbox();
        let filing = (0..10_000).map(|n| {
            let inbox = Arc::clone(&inbox);
            let name = format!("a{n}");
            tokio::spawn(async move { inbox.submit(&request(&name, &name)).await })
        });
        for filed in filing.collect::<Vec<_>>() {
            assert_eq!(filed.await.unwrap(), Ok(Submission::New));
        }
        let told = why(inbox.submit(&request("more", "more")).await);
        assert!(
            told.contains("10000 requests are already pending"),
            "{told}"
        );
        let mut other = request("other", "other");
        other.principal = haft::call::Principal::new("other", "ada");
        assert_eq!(
            inbox.submit(&other).await,
            Ok(Submission::New),
            "another tenant's"
        );
        inbox.decide(&id("a5000"), &yes("bob")).await.unwrap();
        assert_eq!(
            inbox.submit(&request("more", "more")).await,
            Ok(Submission::New)
        );
        assert_eq!(inbox.list(&all()).await.unwrap().len(), 10_001);
    }
}

#[tokio::test]
async fn what_is_too_long_is_refused_with_advice() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let Some(place) = kind.place() else { continue };
        let inbox = place.inbox();
        let mut one = request("a", "f");
        one.arguments = "x".repeat(16 << 20);
        let told = why(inbox.submit(&one).await);
        assert!(told.contains("pass big arguments as artifacts"), "{told}");
        one.arguments.truncate((16 << 20) - 10_000);
        assert_eq!(inbox.submit(&one).await, Ok(Submission::New));
        assert!(inbox.get(&id("a")).await.unwrap().unwrap().request == one);
    }
}

/// Asks again while a busy machine has not answered; returns whether it did. Without an answer, the result of a request is unknown.
async fn answered<T>(
    first: Result<T, InboxError>,
    again: impl AsyncFn() -> Result<T, InboxError>,
) -> (Result<T, InboxError>, bool) {
    let (mut answer, mut owed) = (first, false);
    while let Err(InboxError::Unavailable(_)) = answer {
        owed = true;
        answer = again().await;
    }
    (answer, owed)
}

/// Asserts that the request was stored once: by this answer, or before one that was lost.
async fn filed_once(store: &PostgresStore, first: Result<Submission, InboxError>) {
    match answered(first, async || store.submit(&request("c", "h")).await).await {
        (Ok(Submission::New), _) | (Ok(Submission::Existing(_)), true) => {}
        other => panic!("{other:?}"),
    }
}

/// The same for a decision.
async fn decided_once(store: &PostgresStore, first: Result<StoredApproval, InboxError>) {
    match answered(first, async || store.decide(&id("b"), &yes("bob")).await).await {
        (Ok(entry), _) => assert_eq!(entry.status, RequestStatus::Approved),
        (Err(InboxError::Decided { .. }), true) => {}
        other => panic!("{other:?}"),
    }
}

/// Asserts that one of these claims succeeded, or none that was answered: then a claim whose answer was lost has it, or the next one
/// gets it. No second claim succeeds.
async fn claimed_once(store: &PostgresStore, claims: Vec<Result<StoredApproval, InboxError>>) {
    let (mut took, mut owed) = (0, false);
    for claim in claims {
        match claim {
            Ok(entry) => {
                took += 1;
                assert_eq!(entry.status, RequestStatus::Running);
            }
            Err(InboxError::Unavailable(_)) => owed = true,
            Err(error) => assert_eq!(error, InboxError::Claimed(id("a"))),
        }
    }
    let claim = async || store.claim(&id("a")).await;
    if took == 0 {
        assert!(owed, "nobody took it, and each was told that another had");
        took += usize::from(answered(claim().await, claim).await.0.is_ok());
    }
    assert!(took <= 1, "{took} took it");
    let (next, _) = answered(claim().await, claim).await;
    assert_eq!(next.unwrap_err(), InboxError::Claimed(id("a")));
}

/// Waits, while the server of this URL is stopped, until a client tries to connect to it; the client finds no server.
fn wait_for_a_caller(url: &str) {
    let (_, address) = url.split_once('@').unwrap();
    let (address, _) = address.split_once('/').unwrap();
    let listener = TcpListener::bind(address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let began = Instant::now();
    while listener.accept().is_err() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "no client tried in 30 s"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_crashes_loses_nothing_and_doubles_nothing() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database();
    let stores: Vec<_> = (0..4)
        .map(|_| Arc::new(PostgresStore::new(&url).unwrap()))
        .collect();
    let mut heard = stores[3].changes();
    stores[0].submit(&request("a", "f")).await.unwrap();
    stores[1].decide(&id("a"), &yes("bob")).await.unwrap();
    stores[0].submit(&request("b", "g")).await.unwrap();
    cluster.crash();
    // The claims start while the server is down; it returns once a client has failed to connect.
    let claiming: Vec<_> = (0..40)
        .map(|n| {
            let store = Arc::clone(&stores[n % 4]);
            tokio::spawn(async move { store.claim(&id("a")).await })
        })
        .collect();
    let store = Arc::clone(&stores[2]);
    let filing = tokio::spawn(async move { store.submit(&request("c", "h")).await });
    let store = Arc::clone(&stores[2]);
    let deciding = tokio::spawn(async move { store.decide(&id("b"), &yes("bob")).await });
    tokio::task::block_in_place(|| wait_for_a_caller(&url));
    cluster.run();
    let mut claims = Vec::new();
    for claim in claiming {
        claims.push(claim.await.unwrap());
    }
    claimed_once(&stores[0], claims).await;
    filed_once(&stores[2], filing.await.unwrap()).await;
    decided_once(&stores[2], deciding.await.unwrap()).await;
    assert_eq!(stores[0].list(&all()).await.unwrap().len(), 3);
    // A subscriber receives the changes of the meantime.
    let mut missing = vec![id("a"), id("b"), id("c")];
    while !missing.is_empty() {
        let next = tokio::time::timeout(Duration::from_secs(20), heard.recv()).await;
        let next = next.expect("not heard").unwrap();
        missing.retain(|id| *id != next);
    }
    cluster.crash();
    // The call fails with this error even on a busy machine: it does not wait for a server that never returns.
    let asked = tokio::time::timeout(Duration::from_secs(120), stores[0].get(&id("a"))).await;
    let told = why(asked.expect("an answer"));
    assert!(told.contains("PostgreSQL at 127.0.0.1:"), "{told}");
    cluster.run();
    assert!(stores[0].get(&id("a")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_its_password() {
    let store = PostgresStore::new("postgres://haft:hush@127.0.0.1:1/db").unwrap();
    let told = why(store.get(&id("a")).await);
    assert!(told.contains("PostgreSQL at 127.0.0.1:1/db"), "{told}");
    assert!(!told.contains("hush"), "{told}");
    let refused = PostgresStore::new("postgres://haft:hush@[nonsense").unwrap_err();
    assert!(!refused.to_string().contains("hush"), "{refused}");
}
