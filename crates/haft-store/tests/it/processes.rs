//! Several processes at one inbox, and processes that are killed at the worst moment.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests start themselves as other processes and talk to them"
)]

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::approval::inbox::{InboxError, RequestStatus, WaitingCalls};
use haft_store::postgres::PostgresStore;
use haft_store::sqlite::SqliteInbox;

use crate::inbox::Kind;
use crate::leases::{renewed, short};
use crate::request::{id, request, yes};

/// Tells a process of this test binary its role, its place, and the file for the effect.
const ROLE: &str = "HAFT_STORE_TEST_ROLE";

/// Number of competing tasks in each process.
const EACH: usize = 20;

fn open(place: &str) -> Arc<dyn WaitingCalls> {
    match place.strip_prefix("sqlite:") {
        Some(home) => Arc::new(SqliteInbox::new(Path::new(home)).with_lease(short())),
        None => Arc::new(PostgresStore::new(place).unwrap().with_lease(short())),
    }
}

/// The work of the processes that tests start; does nothing on its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_plays_its_role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let mut words = role.split(' ');
    let (Some(role), Some(place), Some(effect)) = (words.next(), words.next(), words.next()) else {
        panic!("no role");
    };
    let inbox = open(place);
    match role {
        "race" => race(&inbox, effect).await,
        "decide" => drop(inbox.decide(&id("a"), &yes("child")).await.unwrap()),
        "claim" => drop(inbox.claim(&id("a")).await.unwrap()),
        "file" => drop(inbox.submit(&request("a", "f")).await.unwrap()),
        other => panic!("{other}"),
    }
    println!("\ndone: {role}");
    // Until it or the test is killed: it does not release what it holds.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

async fn race(inbox: &Arc<dyn WaitingCalls>, effect: &str) {
    let racing = (0..EACH).map(|n| {
        let (inbox, effect) = (Arc::clone(inbox), effect.to_owned());
        tokio::spawn(async move {
            let by = format!("{}-{n}", std::process::id());
            match inbox.decide(&id("a"), &yes(&by)).await {
                Ok(_) => println!("\ndecided"),
                Err(error) => assert!(matches!(error, InboxError::Decided { .. }), "{error}"),
            }
            match inbox.claim(&id("a")).await {
                Ok(_) => {
                    let mut file = OpenOptions::new().append(true).open(effect).unwrap();
                    file.write_all(b"x").unwrap();
                    inbox.finish(&id("a"), "{}", true).await.unwrap();
                }
                Err(error) => assert!(matches!(error, InboxError::Claimed(_)), "{error}"),
            }
        })
    });
    for one in racing.collect::<Vec<_>>() {
        one.await.unwrap();
    }
}

struct Process(Child, BufReader<ChildStdout>);

impl Process {
    fn start(role: &str, place: &str, effect: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "processes::a_process_plays_its_role",
                "--nocapture",
            ])
            .env(ROLE, format!("{role} {place} {}", effect.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self(child, said)
    }

    /// Returns its lines up to the end of its part.
    fn done(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            assert!(
                self.1.read_line(&mut line).unwrap() > 0,
                "it died: {said:?}"
            );
            if line.starts_with("done: ") {
                return said;
            }
            said.push(line.trim().to_owned());
        }
    }
}

impl Drop for Process {
    /// Kills it with -9.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a test on each place that outlives a process.
async fn on_each(test: impl AsyncFn(&str, &Path)) {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let Some(place) = kind.place() else { continue };
        let effect = tempfile::NamedTempFile::new().unwrap();
        test(&place.address(), effect.path()).await;
    }
}

#[tokio::test]
async fn of_two_hundred_in_ten_processes_one_decides_one_runs_it() {
    on_each(async |place, effect| {
        let inbox = open(place);
        inbox.submit(&request("a", "f")).await.unwrap();
        let mut racing: Vec<_> = (0..10)
            .map(|_| Process::start("race", place, effect))
            .collect();
        let said: Vec<String> = racing.iter_mut().flat_map(Process::done).collect();
        let decided = said.iter().filter(|line| *line == "decided").count();
        assert_eq!(decided, 1, "{place}");
        assert_eq!(std::fs::read(effect).unwrap(), b"x", "{place}");
        let done = inbox.get(&id("a")).await.unwrap().unwrap();
        assert_eq!((done.status, done.delivered), (RequestStatus::Done, true));
    })
    .await;
}

#[tokio::test]
async fn what_a_killed_process_decided_is_claimed_by_another() {
    on_each(async |place, effect| {
        let inbox = open(place);
        inbox.submit(&request("a", "f")).await.unwrap();
        let mut child = Process::start("decide", place, effect);
        child.done();
        drop(child);
        let entry = inbox.get(&id("a")).await.unwrap().unwrap();
        assert_eq!(
            (entry.status, entry.attended),
            (RequestStatus::Approved, true)
        );
        let claimed = inbox.claim(&id("a")).await.unwrap();
        assert_eq!(claimed.decision.unwrap().by, "child");
    })
    .await;
}

/// Waits until a request reads as expected: the lease of a killed process must expire first.
async fn until(
    inbox: &Arc<dyn WaitingCalls>,
    reads: impl Fn(RequestStatus, bool) -> bool,
) -> Duration {
    let began = Instant::now();
    loop {
        let entry = inbox.get(&id("a")).await.unwrap().unwrap();
        if reads(entry.status, entry.attended) {
            return began.elapsed();
        }
        let late = began.elapsed() > Duration::from_secs(60);
        assert!(!late, "{} {}", entry.status, entry.attended);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_a_killed_process_took_is_in_doubt_and_never_taken_again() {
    on_each(async |place, effect| {
        let inbox = open(place);
        inbox.submit(&request("a", "f")).await.unwrap();
        inbox.decide(&id("a"), &yes("bob")).await.unwrap();
        let mut child = Process::start("claim", place, effect);
        child.done();
        // While the process lives and renews its lease, the request is running.
        renewed(place).await;
        let entry = inbox.get(&id("a")).await.unwrap().unwrap();
        assert_eq!(entry.status, RequestStatus::Running, "{place}");
        drop(child);
        until(&inbox, |status, _| status == RequestStatus::InDoubt).await;
        let again = inbox.claim(&id("a")).await.unwrap_err();
        assert_eq!(again, InboxError::Claimed(id("a")), "{place}");
        // The request still covers an identical call: haft neither asks nor runs anything anew.
        let filed = inbox.submit(&request("b", "f")).await.unwrap();
        assert_ne!(filed, haft::approval::inbox::Submission::New, "{place}");
    })
    .await;
}

#[tokio::test]
async fn what_a_killed_process_waited_for_is_attended_by_nobody() {
    on_each(async |place, effect| {
        let mut child = Process::start("file", place, effect);
        child.done();
        let inbox = open(place);
        until(&inbox, |_, attended| attended).await;
        drop(child);
        until(&inbox, |_, attended| !attended).await;
        inbox.decide(&id("a"), &yes("bob")).await.unwrap();
        inbox.claim(&id("a")).await.unwrap();
    })
    .await;
}
