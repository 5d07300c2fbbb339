//! `DbJournal`: journals of chains in a database, so that a chain can continue in another process or on another machine.
//!
//! A dedicated thread writes the entries one after the other, even if a caller is dropped. While chains of a run are active,
//! their process holds the run by a lease, which is checked with every entry: a process that lost its lease writes nothing, and
//! what cannot be written does not run.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use haft::call::{CallId, RunId};
use haft::error::HostFailure;
use haft::future::{BoxFuture, run_blocking};
use haft::journal::line::{JournalLine, JournalReader};
use haft::journal::{ChainStart, Journal, JournalCall, JournalError, JournalFuture, RecordedChain};
use haft::result::Status;
use parking_lot::Mutex;
use tokio::sync::oneshot;

#[cfg(feature = "postgres")]
use crate::error::StoreError;
use crate::lane::{JobLane, Jobs, NextJob};
use crate::lease::Lease;

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

/// Journals in a database.
#[derive(Debug)]
pub struct DbJournal {
    home: PathBuf,
    place: JournalLocation,
    lease: Lease,
    lane: JobLane<JournalJob>,
    /// By run, the chains that began in this process and have not closed.
    chains: Mutex<HashMap<RunId, HashSet<CallId>>>,
}

#[derive(Debug, Clone)]
enum JournalLocation {
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(String),
}

impl DbJournal {
    /// Creates journals in a `SQLite` file. `home` is haft's state folder, whose records say which calls had started.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: PathBuf, home: impl Into<PathBuf>) -> Self {
        Self::new(JournalLocation::Sqlite(path), home.into())
    }

    /// Creates journals in a `PostgreSQL` database. `home` is haft's state folder, whose records say which calls had started.
    ///
    /// # Errors
    /// The URL is invalid.
    #[cfg(feature = "postgres")]
    pub fn postgres(url: &str, home: impl Into<PathBuf>) -> Result<Self, StoreError> {
        crate::postgres::PostgresStore::new(url)?;
        Ok(Self::new(
            JournalLocation::Postgres(url.to_owned()),
            home.into(),
        ))
    }

    fn new(place: JournalLocation, home: PathBuf) -> Self {
        Self {
            home,
            place,
            lease: Lease::default(),
            lane: JobLane::new(),
            chains: Mutex::default(),
        }
    }

    /// Sets another lease; for journals that have not been used yet.
    pub fn with_lease(mut self, lease: Lease) -> Self {
        self.lease = lease;
        self
    }

    /// Sends a job to the thread, which runs it even if the answer is not awaited.
    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<JournalJobResult<T>>) -> JournalJob,
    ) -> BoxFuture<'static, JournalJobResult<T>> {
        let (answer, answered) = oneshot::channel();
        let (place, lease) = (self.place.clone(), self.lease);
        let start = |jobs| {
            let thread = thread::Builder::new().name("haft-journal".to_owned());
            thread.spawn(move || work(place, lease, &jobs)).map(drop)
        };
        let sent = self.lane.send_at_once(job(answer), start);
        Box::pin(async move {
            sent.map_err(JournalJobError::Failed)?;
            let ended = |_| JournalJobError::Failed("its thread ended".into());
            answered.await.map_err(ended)?
        })
    }

    fn add<'a>(&'a self, run: &'a RunId, line: &JournalLine) -> JournalFuture<'a, ()> {
        let json = match serde_json::to_string(line) {
            Ok(json) => json,
            Err(error) => return Box::pin(ready(Err(failed(run, HostFailure::of(error))))),
        };
        let begun = match line {
            JournalLine::Begin { chain, .. } => Some(CallId::new(chain.as_str())),
            _ => None,
        };
        let mut left = self.chains.lock();
        let chains = left.entry(run.clone()).or_default();
        line.note(chains);
        let last = chains.is_empty();
        if last {
            left.remove(run);
        }
        let added = self.ask(|answer| JournalJob::Add {
            run: run.to_string(),
            line: json,
            last,
            answer,
        });
        // Sent under the lock, so `last` still holds when the thread takes the job.
        drop(left);
        Box::pin(async move {
            let added = added.await;
            if let (Err(_), Some(chain)) = (&added, &begun) {
                self.forget(run, chain);
            }
            added.map_err(|fault| to_journal_error(run, fault))
        })
    }

    /// Notes that a chain did not begin.
    fn forget(&self, run: &RunId, chain: &CallId) {
        let mut left = self.chains.lock();
        if let Some(chains) = left.get_mut(run) {
            chains.remove(chain);
        }
        left.retain(|_, chains| !chains.is_empty());
    }
}

impl Journal for DbJournal {
    fn begin<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        start: &'a ChainStart,
    ) -> JournalFuture<'a, ()> {
        self.add(run, &JournalLine::begin(chain, start))
    }

    fn call<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        call: &'a JournalCall,
    ) -> JournalFuture<'a, ()> {
        self.add(run, &JournalLine::call(chain, call))
    }

    fn end<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        seq: u64,
        reply: &'a str,
    ) -> JournalFuture<'a, ()> {
        self.add(run, &JournalLine::end(chain, seq, reply))
    }

    fn close<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        status: Status,
    ) -> JournalFuture<'a, ()> {
        self.add(run, &JournalLine::close(chain, status))
    }

    fn suspend<'a>(&'a self, run: &'a RunId, chain: &'a CallId) -> JournalFuture<'a, ()> {
        let mut left = self.chains.lock();
        let chains = left.entry(run.clone()).or_default();
        chains.remove(chain);
        let last = chains.is_empty();
        if last {
            left.remove(run);
        }
        let released = self.ask(|answer| JournalJob::Leave(run.to_string(), last, answer));
        drop(left);
        Box::pin(async move { released.await.map_err(|fault| to_journal_error(run, fault)) })
    }

    fn abandoned<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<RecordedChain>> {
        let lines = self.lines(run);
        Box::pin(async move {
            let lines = lines.await?;
            let ours = self.chains.lock().get(run).cloned().unwrap_or_default();
            let read = move |reader: JournalReader<'_>| reader.abandoned(&ours);
            read_lines(run, lines, read).await
        })
    }

    fn interrupted<'a>(
        &'a self,
        run: &'a RunId,
        chain: Option<&'a CallId>,
    ) -> JournalFuture<'a, Option<RecordedChain>> {
        let lines = self.lines(run);
        let (home, chain) = (self.home.clone(), chain.cloned());
        Box::pin(async move {
            let read = move |reader: JournalReader<'_>| reader.open(chain.as_ref(), &home);
            read_lines(run, lines.await?, read).await
        })
    }
}

impl DbJournal {
    /// Returns the lines of a run, unless another process holds it.
    fn lines<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<Vec<u8>>> {
        let lines = self.ask(|answer| JournalJob::Read(run.to_string(), answer));
        Box::pin(async move { lines.await.map_err(|fault| to_journal_error(run, fault)) })
    }
}

/// Reads a run's lines on a blocking thread: a journal may be long, and the run's record is read with it.
async fn read_lines<T: Send + 'static>(
    run: &RunId,
    lines: Vec<Vec<u8>>,
    read: impl FnOnce(JournalReader<'_>) -> T + Send + 'static,
) -> Result<T, JournalError> {
    let of = run.clone();
    let read = run_blocking(move || {
        let mut reader = JournalReader::new(&of);
        for (number, line) in (1..).zip(&lines) {
            // The database stores a line completely or not at all.
            reader.line(number, &[line.as_slice(), b"\n"].concat())?;
        }
        Ok(read(reader))
    });
    read.await.map_err(|e| failed(run, HostFailure::of(e)))?
}

/// Why a journal operation failed.
#[derive(Debug)]
enum JournalJobError {
    /// Another process holds the run.
    Busy,
    /// The database failed.
    Failed(HostFailure),
}

type JournalJobResult<T> = Result<T, JournalJobError>;

fn to_journal_error(run: &RunId, fault: JournalJobError) -> JournalError {
    match fault {
        JournalJobError::Busy => JournalError::Busy(run.clone()),
        JournalJobError::Failed(why) => failed(run, why),
    }
}

fn failed(run: &RunId, why: HostFailure) -> JournalError {
    JournalError::Io {
        run: run.clone(),
        source: io::Error::other(why),
    }
}

/// A job for the thread.
#[derive(Debug)]
enum JournalJob {
    /// Adds a line; `last` if no chain of the run is active any more.
    Add {
        run: String,
        line: String,
        last: bool,
        answer: oneshot::Sender<JournalJobResult<()>>,
    },
    /// Suspends a chain of this run; the flag says whether it was the last active one.
    Leave(String, bool, oneshot::Sender<JournalJobResult<()>>),
    Read(String, oneshot::Sender<JournalJobResult<Vec<Vec<u8>>>>),
}

/// What journals need from a database.
trait JournalBackend {
    /// Holds the run and adds a line; returns whether there were lines before it was held.
    fn add(&mut self, run: &str, line: &str, held: bool) -> JournalJobResult<bool>;

    /// Releases a run, and deletes its lines if they are no longer needed.
    fn release_run(&mut self, run: &str, wipe: bool) -> JournalJobResult<()>;

    /// Renews this process's lease on these runs.
    fn renew(&mut self, runs: &mut dyn Iterator<Item = &str>) -> JournalJobResult<()>;

    /// Returns the lines of a run unless another process holds it; `ours` says that this process does.
    fn lines(&mut self, run: &str, ours: bool) -> JournalJobResult<Vec<Vec<u8>>>;
}

fn backend(place: JournalLocation, lease: Lease) -> Result<Box<dyn JournalBackend>, String> {
    Ok(match place {
        #[cfg(feature = "sqlite")]
        JournalLocation::Sqlite(path) => Box::new(sqlite::SqliteJournal::new(path, lease)),
        #[cfg(feature = "postgres")]
        JournalLocation::Postgres(url) => Box::new(postgres::PostgresJournal::new(&url, lease)?),
    })
}

/// Runs jobs until every sender is dropped.
fn work(place: JournalLocation, lease: Lease, jobs: &Jobs<JournalJob>) {
    // Waiting callers learn that the thread ended.
    let Ok(mut backend) = backend(place, lease) else {
        return;
    };
    // The runs held, and whether they had lines before.
    let mut held: HashMap<String, bool> = HashMap::new();
    let mut beat = Instant::now();
    loop {
        let wait = (!held.is_empty()).then(|| lease.beat.saturating_sub(beat.elapsed()));
        match jobs.next(wait) {
            NextJob::Job(JournalJob::Add {
                run,
                line,
                last,
                answer,
            }) => send_answer(
                answer,
                add(&mut *backend, &mut held, &NewLine { run, line, last }),
            ),
            NextJob::Job(JournalJob::Leave(run, last, answer)) => {
                send_answer(answer, release(&mut *backend, &mut held, run, last));
            }
            NextJob::Job(JournalJob::Read(run, answer)) => {
                drop(answer.send(backend.lines(&run, held.contains_key(&run))));
            }
            NextJob::Quiet => {}
            NextJob::End => break,
        }
        if beat.elapsed() >= lease.beat && !held.is_empty() {
            // The loss of a run shows when its next line is added.
            drop(backend.renew(&mut held.keys().map(String::as_str)));
            beat = Instant::now();
        }
    }
}

/// Sends an answer; logs a failure if the caller is gone.
fn send_answer(answer: oneshot::Sender<JournalJobResult<()>>, outcome: JournalJobResult<()>) {
    if let Err(Err(fault)) = answer.send(outcome) {
        tracing::error!(?fault, "write the journal of a chain that was dropped");
    }
}

/// Releases a run without deleting what a suspended chain still needs.
fn release(
    backend: &mut dyn JournalBackend,
    held: &mut HashMap<String, bool>,
    run: String,
    last: bool,
) -> JournalJobResult<()> {
    if last {
        held.remove(&run);
        return backend.release_run(&run, false);
    }
    held.insert(run, true);
    Ok(())
}

/// A line to add to a run's journal.
struct NewLine {
    run: String,
    line: String,
    /// Whether it ends its chain and the run has no other active one.
    last: bool,
}

fn add(
    backend: &mut dyn JournalBackend,
    held: &mut HashMap<String, bool>,
    new: &NewLine,
) -> JournalJobResult<()> {
    let NewLine { run, line, last } = new;
    let known = held.get(run).copied();
    let old = backend.add(run, line, known.is_some())?;
    let old = known.unwrap_or(old);
    if *last {
        held.remove(run);
        // Chains that ended need no journal, and a run may have thousands.
        return backend.release_run(run, !old);
    }
    held.insert(run.to_owned(), old);
    Ok(())
}
