//! Journals in databases: what is read back, which process holds a run, and what a killed process leaves.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::path::Path;
use std::time::{Duration, Instant};

use haft::call::{CallId, RunId};
use haft::journal::dir::DirJournal;
use haft::journal::{ChainStart, Journal, JournalCall, JournalError, RecordedChain};
use haft::result::Status;
use haft_store::journal::DbJournal;

use crate::cluster::Cluster;
use crate::leases::short;
use crate::waiting::wait;

fn start(code: &str) -> ChainStart {
    ChainStart {
        code: code.into(),
        arguments: format!("{{\"code\":{code:?}}}"),
        seed: u64::MAX,
        started_ns: 1_795_298_400_123_456_789,
    }
}

fn call(seq: u64) -> JournalCall {
    JournalCall {
        seq,
        tool: "append".into(),
        args_digest: format!("digest-{seq}"),
        noise: "[]".into(),
    }
}

/// Runs the duty on files and on each database; `make` returns another process's journal of the same place.
fn on_each(duty: impl Fn(&dyn Fn() -> Box<dyn Journal>)) {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("runs/r1")).unwrap();
    duty(&|| Box::new(DirJournal::new(home.path())));
    let file = home.path().join("haft.db");
    duty(&|| Box::new(DbJournal::sqlite(file.clone(), home.path()).with_lease(short())));
    if let Some(cluster) = Cluster::shared() {
        let url = cluster.database();
        let home: &Path = home.path();
        duty(&|| Box::new(DbJournal::postgres(&url, home).unwrap().with_lease(short())));
    }
}

/// Returns what another process finds once the previous one is known to have exited.
fn find_interrupted(journal: &dyn Journal, run: &RunId) -> Option<RecordedChain> {
    let began = Instant::now();
    loop {
        match wait(journal.interrupted(run, None)) {
            Err(JournalError::Busy(_)) if began.elapsed() < Duration::from_secs(60) => {
                std::thread::sleep(Duration::from_millis(100));
            }
            found => return found.unwrap(),
        }
    }
}

#[test]
fn an_interrupted_chain_is_gone_on_with_by_another_process() {
    on_each(|make| {
        let (run, chain) = (RunId::new("r1"), CallId::new("call-1"));
        let first = make();
        assert!(wait(first.interrupted(&run, None)).unwrap().is_none());
        wait(first.begin(&run, &chain, &start("x\u{202e}\u{0}"))).unwrap();
        for seq in [1, 2, 3] {
            wait(first.call(&run, &chain, &call(seq))).unwrap();
        }
        wait(first.end(&run, &chain, 2, "two\n\"\u{7}")).unwrap();
        wait(first.end(&run, &chain, 1, "one")).unwrap();
        let second = make();
        let busy = wait(second.interrupted(&run, None)).unwrap_err();
        assert!(matches!(busy, JournalError::Busy(_)), "{busy}");
        let busy = wait(second.begin(&run, &chain, &start("y"))).unwrap_err();
        assert!(matches!(busy, JournalError::Busy(_)), "{busy}");
        drop(first);
        let read = find_interrupted(&*second, &run).unwrap();
        assert_eq!(
            (read.chain, read.start),
            (chain.clone(), start("x\u{202e}\u{0}"))
        );
        let replies: Vec<_> = read.calls.iter().map(|c| c.reply.as_deref()).collect();
        assert_eq!(replies, [Some("one"), Some("two\n\"\u{7}"), None]);
        assert!(read.calls[2].started, "nobody knows");
        assert_eq!(
            (read.calls[2].call.clone(), read.ends),
            (call(3), vec![2, 1])
        );
        // After it is resumed, its earlier calls are unchanged.
        wait(second.begin(&run, &chain, &start("x\u{202e}\u{0}"))).unwrap();
        wait(second.call(&run, &chain, &call(3))).unwrap();
        wait(second.end(&run, &chain, 3, "three")).unwrap();
        wait(second.close(&run, &chain, Status::Ok)).unwrap();
        assert!(wait(make().interrupted(&run, None)).unwrap().is_none());
    });
}

#[test]
fn of_many_that_go_on_with_a_chain_one_does() {
    on_each(|make| {
        let (run, chain) = (RunId::new("r1"), CallId::new("call-7"));
        let journals: Vec<_> = (0..8).map(|_| make()).collect();
        let began = std::thread::scope(|scope| {
            let racing = journals.iter().map(|journal| {
                let (run, chain) = (&run, &chain);
                scope.spawn(move || wait(journal.begin(run, chain, &start("x"))).is_ok())
            });
            let racing: Vec<_> = racing.collect();
            let won = racing.into_iter().map(|one| one.join().unwrap());
            won.filter(|won| *won).count()
        });
        assert_eq!(began, 1);
    });
}

#[test]
fn p20_a_journal_is_awaited_on_any_thread() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("runs/r1")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let journal = DbJournal::sqlite(home.path().join("haft.db"), home.path());
    // A task of a `LocalSet` runs on a thread that is not a worker.
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        tokio::task::spawn_local(async move {
            let run = RunId::new("r1");
            assert!(journal.interrupted(&run, None).await.unwrap().is_none());
        })
        .await
        .unwrap();
    });
}

#[test]
fn entries_are_written_in_their_order_where_nothing_waits_for_them() {
    on_each(|make| {
        let (run, chain) = (RunId::new("r1"), CallId::new("call-1"));
        let first = make();
        drop(first.begin(&run, &chain, &start("x")));
        drop(first.call(&run, &chain, &call(1)));
        drop(first.end(&run, &chain, 1, "one"));
        drop(first.call(&run, &chain, &call(2)));
        // The read comes after all of them.
        assert!(wait(first.abandoned(&run)).unwrap().is_empty());
        drop(first);
        let second = make();
        let read = find_interrupted(&*second, &run).unwrap();
        let replies: Vec<_> = read.calls.iter().map(|c| c.reply.as_deref()).collect();
        assert_eq!(replies, [Some("one"), None]);
        wait(second.begin(&run, &chain, &start("x"))).unwrap();
        drop(second.close(&run, &chain, Status::Cancelled));
        assert!(wait(second.interrupted(&run, None)).unwrap().is_none());
    });
}
