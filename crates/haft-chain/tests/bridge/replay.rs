//! Row 78, interrupted chains: resumed from every point, nothing twice, and calls that may have run are reported.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::call::{CallId, RunId};
use haft::journal::dir::DirJournal;
use haft::journal::{ChainStart, Journal, JournalCall, JournalError, JournalFuture, RecordedChain};
use haft::result::{Outcome, Status, ToolResult};
use haft::spec::ToolSpec;
use haft::testing::TestTool;
use haft::tool::Tool;
use haft_chain::engine::{Engine, EngineError, Worker};
use parking_lot::Mutex;
use serde_json::json;

use crate::runner::Test;
use crate::scene::{Parts, Scene, pretty, trace, value, wait};

pub(crate) const TESTS: &[Test] = &[
    (
        "no_78_an_interrupted_script_goes_on_from_every_point",
        every_point,
    ),
    (
        "no_78_a_script_reads_the_same_times_and_random_numbers_again",
        noise,
    ),
    (
        "j13_a_journal_holds_no_more_noise_than_can_be_told_again",
        bounded_noise,
    ),
    (
        "af15_a_script_that_catches_lost_noise_calls_nothing_more",
        caught_noise,
    ),
    (
        "f5_a_script_killed_while_its_interpreter_starts_is_resumed",
        killed_at_start,
    ),
    (
        "no_78_calls_side_by_side_are_answered_in_their_order_again",
        side_by_side,
    ),
    (
        "no_78_a_script_that_goes_another_way_is_stopped_with_both_shown",
        divergence,
    ),
    ("no_78_a_call_in_doubt_runs_again_only_if_it_may", doubt),
    (
        "no_78_replayed_calls_count_and_their_media_are_there_again",
        counted,
    ),
    (
        "no_78_a_journal_that_cannot_be_written_lets_nothing_run",
        unwritten,
    ),
];

/// A journal whose process is killed after a number of entries: nothing later is written, not even the end.
#[derive(Debug)]
struct Killed {
    journal: DirJournal,
    left: AtomicUsize,
    fails: bool,
}

impl Killed {
    fn then<'a>(
        &self,
        run: &RunId,
        write: impl FnOnce() -> JournalFuture<'a, ()>,
    ) -> JournalFuture<'a, ()> {
        let spent = |left: usize| left.checked_sub(1);
        let error = match self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, spent)
        {
            Ok(_) => return write(),
            Err(_) if self.fails => JournalError::Io {
                run: run.clone(),
                source: std::io::ErrorKind::StorageFull.into(),
            },
            // The process no longer exists: nothing receives this.
            Err(_) => JournalError::Busy(run.clone()),
        };
        Box::pin(ready(Err(error)))
    }
}

impl Journal for Killed {
    fn begin<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        start: &'a ChainStart,
    ) -> JournalFuture<'a, ()> {
        self.then(run, || self.journal.begin(run, chain, start))
    }

    fn call<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        call: &'a JournalCall,
    ) -> JournalFuture<'a, ()> {
        self.then(run, || self.journal.call(run, chain, call))
    }

    fn end<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        seq: u64,
        reply: &'a str,
    ) -> JournalFuture<'a, ()> {
        self.then(run, || self.journal.end(run, chain, seq, reply))
    }

    fn close<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        status: Status,
    ) -> JournalFuture<'a, ()> {
        self.then(run, || self.journal.close(run, chain, status))
    }

    fn suspend<'a>(&'a self, run: &'a RunId, chain: &'a CallId) -> JournalFuture<'a, ()> {
        self.then(run, || self.journal.suspend(run, chain))
    }

    fn abandoned<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<RecordedChain>> {
        self.journal.abandoned(run)
    }

    fn interrupted<'a>(
        &'a self,
        run: &'a RunId,
        chain: Option<&'a CallId>,
    ) -> JournalFuture<'a, Option<RecordedChain>> {
        self.journal.interrupted(run, chain)
    }
}

/// A machine that outlives its processes: a state folder, and what tools did to it.
struct World {
    home: tempfile::TempDir,
    run: RunId,
    lines: Arc<Mutex<Vec<String>>>,
    artifacts: Arc<haft::artifact::memory::MemoryArtifacts>,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join("runs/r1")).unwrap();
        Self {
            home,
            run: RunId::new("r1"),
            lines: Arc::default(),
            artifacts: Arc::default(),
        }
    }

    /// Starts a process that is killed after `left` entries of its journal; `None` = it is not killed.
    fn process(&self, left: Option<usize>, resumed: bool) -> Scene {
        Scene::of(self.parts(left, resumed))
    }

    fn parts(&self, left: Option<usize>, resumed: bool) -> Parts {
        let tool = |name: &str, idempotent: bool| -> Arc<dyn Tool> {
            let lines = Arc::clone(&self.lines);
            let spec = ToolSpec {
                idempotent,
                concurrency_safe: true,
                ..TestTool::echo(name)
            };
            let body = move |value: serde_json::Value, _| -> haft::future::BoxFuture<'static, _> {
                lines.lock().push(value["n"].to_string());
                Box::pin(async move { ToolResult::data(&value) })
            };
            TestTool::with_body(spec, body).arc()
        };
        Parts {
            journal: Some(journal(self.home.path(), left)),
            run: Some(self.run.clone()),
            resumed,
            tools: vec![tool("append", false), tool("again", true)],
            artifacts: Some(Arc::clone(&self.artifacts)),
            ..Parts::default()
        }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    fn interrupted(&self) -> Option<RecordedChain> {
        let journal = DirJournal::new(self.home.path());
        wait(journal.interrupted(&self.run, None)).unwrap()
    }
}

fn journal(home: &Path, left: Option<usize>) -> Arc<dyn Journal> {
    Arc::new(Killed {
        journal: DirJournal::new(home),
        left: AtomicUsize::new(left.unwrap_or(usize::MAX)),
        fails: false,
    })
}

fn error_message(outcome: &Outcome) -> String {
    let error = outcome.error.as_ref();
    error.map_or_else(String::new, |error| error.message.clone())
}

fn every_point() {
    let code = "print('begun')\nfor n in range(5):\n    tools.append(n=n)\n'done'";
    // begin, five calls with their ends, close.
    for left in 1..=12 {
        let world = World::new();
        wait(world.process(Some(left), false).chain(code));
        let before = world.lines();
        let in_doubt = world
            .interrupted()
            .is_some_and(|old| old.calls.iter().any(|call| call.reply.is_none()));
        let outcome = wait(world.process(None, true).chain(code));
        if in_doubt {
            assert!(
                error_message(&outcome).contains("may have run"),
                "{left}\n{}",
                pretty(&outcome)
            );
            assert!(error_message(&outcome).contains("append"), "{left}");
            assert_eq!(world.lines(), before, "{left}");
            // It is reported again when asked again.
            let outcome = wait(world.process(None, true).chain(code));
            assert!(
                error_message(&outcome).contains("may have run"),
                "{left}\n{}",
                pretty(&outcome)
            );
        } else if left < 12 {
            assert_eq!(
                value(&outcome),
                json!("done"),
                "{left}\n{}",
                pretty(&outcome)
            );
            assert_eq!(world.lines(), ["0", "1", "2", "3", "4"], "{left}");
            assert_eq!(trace(&outcome), ["append:ok"; 5], "{left}");
            assert!(outcome.text().contains("begun"), "{left}");
            assert!(world.interrupted().is_none(), "{left}");
        }
    }
    // Interrupted again while it is resumed.
    let world = World::new();
    wait(world.process(Some(3), false).chain(code));
    wait(world.process(Some(5), true).chain(code));
    let outcome = wait(world.process(None, true).chain(code));
    assert_eq!(value(&outcome), json!("done"), "{}", pretty(&outcome));
    assert_eq!(world.lines(), ["0", "1", "2", "3", "4"]);
}

fn noise() {
    let code = r"
import time, datetime, random, uuid, os, secrets
for n in range(4):
    tools.append(n=[time.time(), time.monotonic(), time.time_ns(), str(datetime.datetime.now()), str(datetime.date.today()),
        random.random(), random.Random().random(), random.SystemRandom().random(), str(uuid.uuid4()), str(uuid.uuid1()),
        os.urandom(4).hex(), secrets.token_hex(4), time.strftime('%H:%M:%S'), time.perf_counter(), random.sample(range(10**9), 3)])
'done'
";
    let world = World::new();
    wait(world.process(Some(5), false).chain(code));
    assert_eq!(world.lines().len(), 2);
    let outcome = wait(world.process(None, true).chain(code));
    assert_eq!(value(&outcome), json!("done"), "{}", pretty(&outcome));
    let lines = world.lines();
    assert_eq!(lines.len(), 4);
    // Two scripts of two runs share none of it.
    let other = World::new();
    wait(other.process(None, false).chain(code));
    let parts = |line: &String| serde_json::from_str::<Vec<serde_json::Value>>(line).unwrap();
    let (a, b) = (parts(&lines[0]), parts(&other.lines()[0]));
    for at in [0, 5, 6, 7, 8, 9, 10, 11, 14] {
        assert_ne!(a[at], b[at], "value {at}");
    }
}

fn bounded_noise() {
    let code = r"
import os, hashlib
for n in range(4):
    tools.append(n=hashlib.sha256(b''.join(os.urandom(7 << 20) for _ in range(3))).hexdigest())
'done'
";
    let world = World::new();
    wait(world.process(Some(5), false).chain(code));
    assert_eq!(world.lines().len(), 2);
    let outcome = wait(world.process(None, true).chain(code));
    assert_eq!(value(&outcome), json!("done"), "{}", pretty(&outcome));
    let mut lines = world.lines();
    assert_eq!(lines.len(), 4);
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), 4, "the same random bytes twice");
    // Noise is limited, per call and in total.
    for (reads, calls, told) in [
        (600_000, 1, "clocks were read too often"),
        (150_000, 6, "read clocks and random sources too often"),
    ] {
        let world = World::new();
        let code = format!(
            "import time\nfor n in range({calls}):\n    for _ in range({reads}): time.perf_counter_ns()\n    tools.append(n=n)"
        );
        let outcome = wait(world.process(None, false).chain(&code));
        assert!(pretty(&outcome).contains(told), "{}", pretty(&outcome));
        assert!(world.lines().len() < 6, "{:?}", world.lines());
    }
}

/// AF15: a script that catches the error for excessive reads makes no call whose noise is lost.
fn caught_noise() {
    let code = r"
import time
for _ in range(600000): time.perf_counter_ns()
said = []
for n in range(2):
    try:
        tools.append(n=n)
    except RuntimeError as error:
        said.append('too often' in str(error))
said
";
    let world = World::new();
    let outcome = wait(world.process(None, false).chain(code));
    assert_eq!(value(&outcome), json!([true, true]), "{}", pretty(&outcome));
    assert!(world.lines().is_empty());
}

/// An interpreter that does not start, and checks whether the chain is recorded by then.
#[derive(Debug)]
struct Slow(std::path::PathBuf);

impl Engine for Slow {
    fn describe(&self) -> String {
        "None.".to_owned()
    }

    fn start<'a>(
        &'a self,
        _: &'a str,
    ) -> haft::future::BoxFuture<'a, Result<Box<dyn Worker>, EngineError>> {
        let journal = std::fs::metadata(self.0.join("runs/r1/journal.jsonl"));
        assert!(journal.is_ok_and(|file| file.len() > 0), "not recorded yet");
        Box::pin(async {
            Err(EngineError {
                message: "killed".to_owned(),
                advice: None,
            })
        })
    }
}

fn killed_at_start() {
    let world = World::new();
    let code = "tools.append(n=1)\n'done'";
    for (left, resumed) in [(1, false), (1, true)] {
        let mut parts = world.parts(Some(left), resumed);
        parts.engine = Arc::new(Slow(world.home.path().to_owned()));
        let outcome = wait(Scene::of(parts).chain(code));
        assert!(
            error_message(&outcome).contains("killed"),
            "{}",
            pretty(&outcome)
        );
    }
    let outcome = wait(world.process(None, true).chain(code));
    assert_eq!(value(&outcome), json!("done"), "{}", pretty(&outcome));
    assert_eq!(world.lines(), ["1"]);
}

fn side_by_side() {
    // Each continues when its first call has ended: the order of the later calls is that of those ends.
    let code = r"
import asyncio
async def work(n):
    await tools.append(n=[n, 'a'])
    await tools.append(n=[n, 'b'])
await asyncio.gather(*[work(n) for n in range(4)])
'done'
";
    for left in [9, 13] {
        let world = World::new();
        wait(world.process(Some(left), false).chain(code));
        let old = world.interrupted().unwrap();
        let in_doubt = old.calls.iter().any(|call| call.reply.is_none());
        let outcome = wait(world.process(None, true).chain(code));
        if in_doubt {
            assert!(
                error_message(&outcome).contains("may have run"),
                "{}",
                pretty(&outcome)
            );
        } else {
            assert_eq!(value(&outcome), json!("done"), "{}", pretty(&outcome));
        }
        let mut lines = world.lines();
        let all = lines.len();
        lines.sort();
        lines.dedup();
        assert_eq!(lines.len(), all, "nothing twice: {lines:?}");
    }
}

fn divergence() {
    let world = World::new();
    let code =
        "import os\ntools.append(n=1)\ntools.append(n=len(os.listdir('/workspace')))\n'done'";
    wait(world.process(Some(5), false).chain(code));
    assert_eq!(world.lines(), ["1", "0"]);
    // The same script, with a new file in its folder.
    let folder = world.home.path().join("workspace");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("new"), "x").unwrap();
    let lines = Arc::clone(&world.lines);
    let append = TestTool::with_body(TestTool::echo("append"), move |value, _| {
        lines.lock().push(value["n"].to_string());
        Box::pin(async move { ToolResult::data(&value) })
    });
    let scene = Scene::of(Parts {
        journal: Some(journal(world.home.path(), None)),
        run: Some(world.run.clone()),
        resumed: true,
        folder: Some(folder),
        tools: vec![append.arc()],
        ..Parts::default()
    });
    let outcome = wait(scene.chain(code));
    let said = error_message(&outcome);
    assert!(
        said.contains("went another way") && said.contains("call 2"),
        "{}",
        pretty(&outcome)
    );
    assert!(said.contains("{\"n\":1}"), "{}", pretty(&outcome));
    assert_eq!(world.lines(), ["1", "0"]);
    // Another script of the run does not replay this one.
    let world = World::new();
    wait(world.process(Some(3), false).chain(code));
    let outcome = wait(
        world
            .process(None, true)
            .chain("tools.append(n=9)\n'other'"),
    );
    assert_eq!(value(&outcome), json!("other"), "{}", pretty(&outcome));
}

fn doubt() {
    let world = World::new();
    // Killed between the call and its end: begin, call.
    wait(
        world
            .process(Some(2), false)
            .chain("tools.again(n=1)\ntools.append(n=2)\n'done'"),
    );
    let outcome = wait(
        world
            .process(None, true)
            .chain("tools.again(n=1)\ntools.append(n=2)\n'done'"),
    );
    assert_eq!(value(&outcome), json!("done"), "{}", pretty(&outcome));
    assert_eq!(world.lines(), ["1", "1", "2"]);
    assert_eq!(trace(&outcome), ["again:ok", "append:ok"]);
}

fn counted() {
    let world = World::new();
    let code = "import os\nr = tools.picture(bytes='abc')\nfor n in range(2):\n    tools.append(n=n)\nkinds = []\nfor n in range(50):\n    try:\n        tools.again(n=n)\n    except ToolError as e:\n        kinds.append(e.kind)\n[open(r.files[0].path).read(), kinds]";
    wait(world.process(Some(7), false).chain(code));
    let outcome = wait(world.process(None, true).chain(code));
    assert_eq!(
        value(&outcome),
        json!(["abc", ["budget", "budget", "budget"]]),
        "{}",
        pretty(&outcome)
    );
    assert_eq!(outcome.calls.len(), 53);
    let numbers: Vec<u64> = outcome.calls.iter().map(|call| call.seq).collect();
    assert_eq!(numbers, (1..=53).collect::<Vec<_>>());
}

fn unwritten() {
    let world = World::new();
    for (left, lines) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        let journal = Arc::new(Killed {
            journal: DirJournal::new(world.home.path()),
            left: AtomicUsize::new(left),
            fails: true,
        });
        let scene = Scene::of(Parts {
            journal: Some(journal),
            run: Some(world.run.clone()),
            ..Parts::default()
        });
        let outcome = wait(scene.chain("tools.mark(text='a')\ntools.mark(text='b')"));
        assert!(
            error_message(&outcome).contains("journal cannot be kept"),
            "{left}\n{}",
            pretty(&outcome)
        );
        assert_eq!(scene.marks().len(), lines, "{left}");
    }
}
