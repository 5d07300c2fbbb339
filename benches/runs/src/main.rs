//! Fills a state folder's SQLite store with runs, as processes would have left them: `runs HOME [COUNT]`, 100,000 by default.
//!
//! The runs end one after the other over the last 30 days; each has a client, a first call, and six calls of four tools. Some have a call
//! that failed, that was denied, or that a user decided. They have no archives: the overview reads none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use haft::audit::RunStart;
use haft::audit::index::{
    CallCount, CallTally, ChangeCount, ClosedEvent, FirstCall, NoteEntry, RunIndex, RunNotes,
};
use haft::call::{Principal, RunId};
use haft::clock;
use haft::result::Status;
use haft_store::sqlite::SqliteStore;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

/// The default number of runs.
const RUNS: u64 = 100_000;
/// Number of parallel writers, which share commits.
const WRITERS: usize = 64;
/// The age of the first run, in nanoseconds.
const SPAN: i128 = 30 * 24 * HOUR;
/// An hour in nanoseconds.
const HOUR: i128 = 3_600_000_000_000;
/// The duration of a run, in nanoseconds.
const TAKES: i128 = 90_000_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let home = arguments.next().expect("usage: runs HOME [COUNT]");
    let count = arguments
        .next()
        .map_or(RUNS, |n| n.parse().expect("a count"));
    let store = Arc::new(SqliteStore::new(Path::new(&home)));
    let runtime = Builder::new_multi_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (mut writing, end) = (JoinSet::new(), clock::now() - TAKES);
        for nth in 0..count {
            if writing.len() >= WRITERS {
                writing
                    .join_next()
                    .await
                    .expect("a writer")
                    .expect("it ends");
            }
            let store = Arc::clone(&store);
            let at = end - SPAN + SPAN * i128::from(nth) / i128::from(count);
            writing.spawn(async move { write(&store, nth, at).await });
        }
        while let Some(ended) = writing.join_next().await {
            ended.expect("it ends");
        }
    });
    println!("{count} runs in {home}");
}

/// Writes one run, from its start to its end.
async fn write(store: &SqliteStore, nth: u64, at: i128) {
    let time = clock::rfc3339(at);
    let digits: String = time.chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, second) = digits.split_at(8);
    let run = RunId::new(format!("{day}-{second}-{nth:08x}"));
    let start = RunStart {
        principal: Principal::new("local", "uid-0"),
        entry_point: "mcp stdio".to_owned(),
        workspace: Some(format!("/home/dev/project-{}", nth % 7)),
        profile: "workspace".to_owned(),
    };
    store.open(&run, &start, at).await.expect("opened");
    let notes = note(nth, at);
    let calls = notes.tallies.iter().map(|tally| tally.count.calls).sum();
    store.note(&run, &notes).await.expect("noted");
    let closed = ClosedEvent {
        count: 2 * calls,
        head: format!("{nth:064x}"),
        calls,
        seal: format!("{nth:064x}"),
    };
    store
        .close(&run, &closed, at + TAKES)
        .await
        .expect("closed");
}

/// Returns what lists show about the run, and its calls by tool and status.
fn note(nth: u64, at: i128) -> NoteEntry {
    let (failed, denied, decided) = (nth % 11 == 0, nth % 17 == 0, nth % 3 == 0);
    let mut calls = vec![("read_file", Status::Ok, 3), ("grep_files", Status::Ok, 1)];
    calls.push(("edit_file", Status::Ok, 1));
    calls.push(match (failed, denied) {
        (true, _) => ("run_command", Status::Error, 1),
        (_, true) => ("run_command", Status::Denied, 1),
        _ => ("run_command", Status::Ok, 1),
    });
    let mut statuses = BTreeMap::new();
    for (_, status, count) in &calls {
        *statuses.entry(status.as_str().to_owned()).or_default() += count;
    }
    let hour = i64::try_from(at / HOUR).expect("an hour");
    let tally = |tool: &str, status: Status, calls: u64| CallTally {
        part: at,
        hour,
        tool: tool.to_owned(),
        status,
        exit: status == Status::Error,
        count: CallCount {
            calls,
            total_ms: 40 * calls,
            decided: u64::from(decided && tool == "edit_file"),
            waited_ms: if decided && tool == "edit_file" {
                4_000
            } else {
                0
            },
        },
    };
    NoteEntry {
        at: at + TAKES,
        started: at,
        notes: RunNotes {
            client: Some(
                ["claude-code 2", "codex 1", "cursor 1"][usize::try_from(nth % 3).unwrap_or(0)]
                    .to_owned(),
            ),
            first: Some(FirstCall {
                tool: "read_file".to_owned(),
                argument: Some(format!("src/part_{}.rs", nth % 400)),
            }),
            outcome: calls.last().map(|(_, status, _)| *status),
            exit_code: failed.then_some(1),
            statuses,
            exits: u64::from(failed),
            changes: Some(ChangeCount {
                files: 1,
                added: nth % 40,
                removed: nth % 9,
            }),
        },
        tallies: calls
            .into_iter()
            .map(|(tool, status, calls)| tally(tool, status, calls))
            .collect(),
    }
}
