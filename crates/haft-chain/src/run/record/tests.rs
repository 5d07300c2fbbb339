//! A chain that is dropped at any moment is closed in its journal, exactly once and without waiting.

use std::future::pending;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt as _;
use haft::journal::JournalFuture;
use parking_lot::Mutex;

use super::*;

/// Accepts entries at once, but never confirms any from `silent_from` on.
#[derive(Default)]
struct Slow {
    entries: Mutex<Vec<&'static str>>,
    silent_from: usize,
}

impl Slow {
    fn after(silent_from: usize) -> Arc<Self> {
        Arc::new(Self {
            silent_from,
            ..Self::default()
        })
    }

    fn take(&self, entry: &'static str) -> JournalFuture<'static, ()> {
        let mut entries = self.entries.lock();
        entries.push(entry);
        if entries.len() > self.silent_from {
            return Box::pin(pending());
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn entries(&self) -> Vec<&'static str> {
        self.entries.lock().clone()
    }
}

impl Journal for Slow {
    fn begin<'a>(
        &'a self,
        _: &'a RunId,
        _: &'a CallId,
        _: &'a ChainStart,
    ) -> JournalFuture<'a, ()> {
        self.take("begin")
    }

    fn call<'a>(
        &'a self,
        _: &'a RunId,
        _: &'a CallId,
        _: &'a JournalCall,
    ) -> JournalFuture<'a, ()> {
        self.take("call")
    }

    fn end<'a>(&'a self, _: &'a RunId, _: &'a CallId, _: u64, _: &'a str) -> JournalFuture<'a, ()> {
        self.take("end")
    }

    fn close<'a>(&'a self, _: &'a RunId, _: &'a CallId, _: Status) -> JournalFuture<'a, ()> {
        self.take("close")
    }

    fn suspend<'a>(&'a self, _: &'a RunId, _: &'a CallId) -> JournalFuture<'a, ()> {
        self.take("suspend")
    }

    fn abandoned<'a>(&'a self, _: &'a RunId) -> JournalFuture<'a, Vec<RecordedChain>> {
        Box::pin(pending())
    }

    fn interrupted<'a>(
        &'a self,
        _: &'a RunId,
        _: Option<&'a CallId>,
    ) -> JournalFuture<'a, Option<RecordedChain>> {
        Box::pin(pending())
    }
}

fn start() -> ChainStart {
    ChainStart {
        code: "1".to_owned(),
        arguments: "{}".to_owned(),
        seed: 1,
        started_ns: 1,
    }
}

async fn begun(journal: &Arc<Slow>) -> Result<ChainRecord, ToolError> {
    let journal = Arc::clone(journal) as Arc<dyn Journal>;
    ChainRecord::begin(journal, RunId::new("r"), CallId::new("c"), &start()).await
}

/// Polls once, then drops the future.
fn begin_and_drop(future: impl Future) {
    let mut future = Box::pin(future);
    let polled = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending));
}

#[test]
fn a_chain_dropped_while_it_begins_is_closed() {
    let journal = Slow::after(0);
    begin_and_drop(begun(&journal));
    assert_eq!(journal.entries(), ["begin", "close"]);
}

#[test]
fn a_chain_dropped_while_it_runs_is_closed() {
    let journal = Slow::after(1);
    drop(begun(&journal).now_or_never().unwrap().unwrap());
    assert_eq!(journal.entries(), ["begin", "close"]);
}

#[test]
fn a_chain_dropped_while_a_call_is_written_is_closed() {
    let journal = Slow::after(1);
    let mut record = begun(&journal).now_or_never().unwrap().unwrap();
    begin_and_drop(record.call(CallRequest {
        seq: 1,
        id: 1,
        name: "echo",
        noise: "[]".to_owned(),
        arguments: "{}",
    }));
    drop(record);
    assert_eq!(journal.entries(), ["begin", "call", "close"]);
}

#[test]
fn a_chain_dropped_while_it_ends_ends_once() {
    for leaves in [true, false] {
        let journal = Slow::after(1);
        let mut record = begun(&journal).now_or_never().unwrap().unwrap();
        if leaves {
            begin_and_drop(record.leave());
        } else {
            begin_and_drop(record.close(Status::Ok));
        }
        drop(record);
        let end = if leaves { "suspend" } else { "close" };
        assert_eq!(journal.entries(), ["begin", end]);
    }
}
