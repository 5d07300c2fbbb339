//! A journal that is read back contains what was written, even if its writer was killed.

use super::*;
use crate::wait::wait;

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

fn home() -> (tempfile::TempDir, RunId) {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("runs/r1")).unwrap();
    (home, RunId::new("r1"))
}

#[test]
fn who_reads_a_journal_keeps_nobody_from_going_on_with_it() {
    let (home, run) = home();
    let chain = CallId::new("call-1");
    let killed = DirJournal::new(home.path());
    wait(killed.begin(&run, &chain, &start("x"))).unwrap();
    drop(killed);
    let journal = DirJournal::new(home.path());
    let reader = File::open(journal.path(&run).unwrap()).unwrap();
    let reader = FileLock::try_shared(reader).unwrap().unwrap();
    std::thread::scope(|threads| {
        let begun = std::time::Instant::now();
        let goes_on = threads.spawn(|| wait(journal.call(&run, &chain, &call(1))));
        // A read that takes long, as on a busy machine.
        while begun.elapsed() < std::time::Duration::from_millis(100) && !goes_on.is_finished() {
            std::thread::yield_now();
        }
        drop(reader);
        goes_on.join().unwrap().unwrap();
    });
}

#[test]
fn an_interrupted_chain_is_read_back_whole() {
    let (home, run) = home();
    let chain = CallId::new("call-1");
    let journal = DirJournal::new(home.path());
    assert!(wait(journal.interrupted(&run, None)).unwrap().is_none());
    wait(journal.begin(&run, &chain, &start("x"))).unwrap();
    for seq in [1, 2, 3] {
        wait(journal.call(&run, &chain, &call(seq))).unwrap();
    }
    wait(journal.end(&run, &chain, 2, "two\n\"")).unwrap();
    wait(journal.end(&run, &chain, 1, "one")).unwrap();
    // No other process may resume it while its writer is running.
    let other = DirJournal::new(home.path());
    assert!(matches!(
        wait(other.interrupted(&run, None)),
        Err(JournalError::Busy(_))
    ));
    drop(journal);
    let read = wait(other.interrupted(&run, None)).unwrap().unwrap();
    assert_eq!((read.chain, read.start), (chain.clone(), start("x")));
    let replies: Vec<_> = read.calls.iter().map(|c| c.reply.as_deref()).collect();
    assert_eq!(replies, [Some("one"), Some("two\n\""), None]);
    assert_eq!(
        (read.calls[2].call.clone(), read.ends),
        (call(3), vec![2, 1])
    );
    // Once closed, a chain is over; another chain of the run is separate.
    wait(other.begin(&run, &CallId::new("call-9"), &start("y"))).unwrap();
    wait(other.close(&run, &CallId::new("call-9"), Status::Ok)).unwrap();
    assert_eq!(
        wait(other.interrupted(&run, None)).unwrap().unwrap().chain,
        chain
    );
    // When resumed, its earlier entries stay, even if they are recorded again.
    wait(other.begin(&run, &chain, &start("x"))).unwrap();
    wait(other.call(&run, &chain, &call(1))).unwrap();
    wait(other.end(&run, &chain, 1, "another")).unwrap();
    wait(other.call(&run, &chain, &call(3))).unwrap();
    wait(other.end(&run, &chain, 3, "three")).unwrap();
    drop(other);
    let other = DirJournal::new(home.path());
    let read = wait(other.interrupted(&run, None)).unwrap().unwrap();
    let replies: Vec<_> = read.calls.iter().map(|c| c.reply.as_deref()).collect();
    assert_eq!(replies, [Some("one"), Some("two\n\""), Some("three")]);
    assert_eq!(read.ends, [2, 1, 3]);
    wait(other.begin(&run, &chain, &start("x"))).unwrap();
    wait(other.close(&run, &chain, Status::Timeout)).unwrap();
    assert!(wait(other.interrupted(&run, None)).unwrap().is_none());
}

#[test]
fn every_cut_of_a_journal_reads_as_what_was_said_before_it() {
    let (home, run) = home();
    let chain = CallId::new("call-1");
    let journal = DirJournal::new(home.path());
    wait(journal.begin(&run, &chain, &start("x"))).unwrap();
    wait(journal.call(&run, &chain, &call(1))).unwrap();
    wait(journal.end(&run, &chain, 1, "one")).unwrap();
    drop(journal);
    let path = home.path().join("runs/r1").join(FILE_NAME);
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let lines = memchr::memchr_iter(b'\n', &whole[..cut]).count();
        // A line that only lacks its newline is complete.
        let lines = lines + usize::from(whole.get(cut) == Some(&b'\n'));
        let read = wait(DirJournal::new(home.path()).interrupted(&run, None)).unwrap();
        let seen = read.map(|r| (r.calls.len(), r.ends.len()));
        let expect = [None, Some((0, 0)), Some((1, 0)), Some((1, 1))];
        assert_eq!(seen, expect[lines], "cut at {cut}");
        // A process that resumes it writes complete lines of its own.
        let next = DirJournal::new(home.path());
        wait(next.begin(&run, &chain, &start("x"))).unwrap();
        drop(next);
        let again = wait(DirJournal::new(home.path()).interrupted(&run, None)).unwrap();
        let kept = expect[lines].map_or(0, |(calls, _)| calls);
        assert_eq!(again.unwrap().calls.len(), kept, "cut at {cut}");
    }
}

#[test]
fn a_damaged_journal_says_which_line() {
    let (home, run) = home();
    let path = home.path().join("runs/r1").join(FILE_NAME);
    for (text, line) in [
        ("nonsense\n", 1),
        (
            "{\"type\":\"end\",\"chain\":\"c\",\"seq\":1,\"reply\":\"\"}\n",
            1,
        ),
        (
            "{\"type\":\"close\",\"chain\":\"c\",\"status\":\"ok\"}\n[]\n",
            2,
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = wait(DirJournal::new(home.path()).interrupted(&run, None)).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(&format!("line {line}:")), "{said}");
    }
}

#[test]
fn chains_that_ended_leave_an_empty_journal() {
    let (home, run) = home();
    let journal = DirJournal::new(home.path());
    for number in 0..3 {
        let chain = CallId::new(format!("call-{number}"));
        wait(journal.begin(&run, &chain, &start("x"))).unwrap();
        wait(journal.call(&run, &chain, &call(1))).unwrap();
        wait(journal.close(&run, &chain, Status::Ok)).unwrap();
    }
    let left = std::fs::metadata(home.path().join("runs/r1").join(FILE_NAME));
    assert_eq!(left.unwrap().len(), 0);
}

#[test]
fn a_call_without_an_end_started_where_the_record_says_so_or_cannot_be_read() {
    let (home, run) = home();
    let chain = CallId::new("call-1");
    let journal = DirJournal::new(home.path());
    wait(journal.begin(&run, &chain, &start("x"))).unwrap();
    for seq in [1, 2] {
        wait(journal.call(&run, &chain, &call(seq))).unwrap();
    }
    drop(journal);
    let record = home.path().join("runs/r1/events.jsonl");
    let line = |call: &str| {
        let line = serde_json::json!({"v": 1, "seq": 1, "ts": "", "run": "r1", "type": "call_started", "prev": "", "call": call});
        format!("{line}\n")
    };
    for (text, expect) in [
        (None, [true, true]),
        (Some(String::new()), [false, false]),
        (Some(line("call-1.1") + &line("call-1.22")), [true, false]),
    ] {
        match text {
            Some(text) => std::fs::write(&record, text).unwrap(),
            None => assert!(!record.exists()),
        }
        let read = wait(DirJournal::new(home.path()).interrupted(&run, None)).unwrap();
        let started: Vec<_> = read.unwrap().calls.iter().map(|c| c.started).collect();
        assert_eq!(started, expect);
    }
}

#[test]
fn af13_all_chains_that_nobody_is_at_are_seen_and_none_that_is_at_work_here() {
    let (home, run) = home();
    let (a, b, c) = (
        CallId::new("call-1"),
        CallId::new("call-2"),
        CallId::new("call-3"),
    );
    let gone = DirJournal::new(home.path());
    wait(gone.begin(&run, &a, &start("a"))).unwrap();
    wait(gone.begin(&run, &b, &start("b"))).unwrap();
    drop(gone);
    let journal = DirJournal::new(home.path());
    let seen = || -> Vec<CallId> {
        let found = wait(journal.abandoned(&run)).unwrap().into_iter();
        found.map(|one| one.chain).collect()
    };
    assert_eq!(seen(), [a.clone(), b.clone()]);
    wait(journal.begin(&run, &c, &start("c"))).unwrap();
    wait(journal.begin(&run, &a, &start("a"))).unwrap();
    assert_eq!(seen(), std::slice::from_ref(&b));
    wait(journal.suspend(&run, &a)).unwrap();
    wait(journal.close(&run, &c, Status::Ok)).unwrap();
    assert_eq!(seen(), [a, b]);
}
