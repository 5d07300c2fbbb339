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
use haft::error::Failure;
use haft::future::{BoxFuture, run_blocking};
use haft::journal::line::{Line, Reader};
use haft::journal::{Answer, ChainStart, Journal, JournalCall, JournalError, Recorded};
use haft::result::Status;
use parking_lot::Mutex;
use tokio::sync::oneshot;

#[cfg(feature = "postgres")]
use crate::error::StoreError;
use crate::lane::{Jobs, Lane, Next};
use crate::lease::Lease;

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

/// Journals in a database.
#[derive(Debug)]
pub struct DbJournal {
    home: PathBuf,
    place: Place,
    lease: Lease,
    lane: Lane<Job>,
    /// By run, the chains that began in this process and have not closed.
    chains: Mutex<HashMap<RunId, HashSet<CallId>>>,
}

#[derive(Debug, Clone)]
enum Place {
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(String),
}

impl DbJournal {
    /// Creates journals in a `SQLite` file. `home` is haft's state folder, whose records say which calls had started.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: PathBuf, home: impl Into<PathBuf>) -> Self {
        Self::new(Place::Sqlite(path), home.into())
    }

    /// Creates journals in a `PostgreSQL` database. `home` is haft's state folder, whose records say which calls had started.
    ///
    /// # Errors
    /// The URL is invalid.
    #[cfg(feature = "postgres")]
    pub fn postgres(url: &str, home: impl Into<PathBuf>) -> Result<Self, StoreError> {
        crate::postgres::PostgresStore::new(url)?;
        Ok(Self::new(Place::Postgres(url.to_owned()), home.into()))
    }

    fn new(place: Place, home: PathBuf) -> Self {
        Self {
            home,
            place,
            lease: Lease::default(),
            lane: Lane::new(),
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
        job: impl FnOnce(oneshot::Sender<Outcome<T>>) -> Job,
    ) -> BoxFuture<'static, Outcome<T>> {
        let (answer, answered) = oneshot::channel();
        let (place, lease) = (self.place.clone(), self.lease);
        let start = |jobs| {
            let thread = thread::Builder::new().name("haft-journal".to_owned());
            thread.spawn(move || work(place, lease, &jobs)).map(drop)
        };
        let sent = self.lane.send_at_once(job(answer), start);
        Box::pin(async move {
            sent.map_err(Fault::Failed)?;
            let ended = |_| Fault::Failed("its thread ended".into());
            answered.await.map_err(ended)?
        })
    }

    fn add<'a>(&'a self, run: &'a RunId, line: &Line) -> Answer<'a, ()> {
        let json = match serde_json::to_string(line) {
            Ok(json) => json,
            Err(error) => return Box::pin(ready(Err(failed(run, Failure::of(error))))),
        };
        let begun = match line {
            Line::Begin { chain, .. } => Some(CallId::new(chain.as_str())),
            _ => None,
        };
        let mut left = self.chains.lock();
        let chains = left.entry(run.clone()).or_default();
        line.note(chains);
        let last = chains.is_empty();
        if last {
            left.remove(run);
        }
        let added = self.ask(|answer| Job::Add {
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
    ) -> Answer<'a, ()> {
        self.add(run, &Line::begin(chain, start))
    }

    fn call<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        call: &'a JournalCall,
    ) -> Answer<'a, ()> {
        self.add(run, &Line::call(chain, call))
    }

    fn end<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        seq: u64,
        reply: &'a str,
    ) -> Answer<'a, ()> {
        self.add(run, &Line::end(chain, seq, reply))
    }

    fn close<'a>(&'a self, run: &'a RunId, chain: &'a CallId, status: Status) -> Answer<'a, ()> {
        self.add(run, &Line::close(chain, status))
    }

    fn suspend<'a>(&'a self, run: &'a RunId, chain: &'a CallId) -> Answer<'a, ()> {
        let mut left = self.chains.lock();
        let chains = left.entry(run.clone()).or_default();
        chains.remove(chain);
        let last = chains.is_empty();
        if last {
            left.remove(run);
        }
        let released = self.ask(|answer| Job::Leave(run.to_string(), last, answer));
        drop(left);
        Box::pin(async move { released.await.map_err(|fault| to_journal_error(run, fault)) })
    }

    fn abandoned<'a>(&'a self, run: &'a RunId) -> Answer<'a, Vec<Recorded>> {
        let lines = self.lines(run);
        Box::pin(async move {
            let lines = lines.await?;
            let ours = self.chains.lock().get(run).cloned().unwrap_or_default();
            let read = move |reader: Reader<'_>| reader.abandoned(&ours);
            read_lines(run, lines, read).await
        })
    }

    fn interrupted<'a>(
        &'a self,
        run: &'a RunId,
        chain: Option<&'a CallId>,
    ) -> Answer<'a, Option<Recorded>> {
        let lines = self.lines(run);
        let (home, chain) = (self.home.clone(), chain.cloned());
        Box::pin(async move {
            let read = move |reader: Reader<'_>| reader.open(chain.as_ref(), &home);
            read_lines(run, lines.await?, read).await
        })
    }
}

impl DbJournal {
    /// Returns the lines of a run, unless another process holds it.
    fn lines<'a>(&'a self, run: &'a RunId) -> Answer<'a, Vec<Vec<u8>>> {
        let lines = self.ask(|answer| Job::Read(run.to_string(), answer));
        Box::pin(async move { lines.await.map_err(|fault| to_journal_error(run, fault)) })
    }
}

/// Reads a run's lines on a blocking thread: a journal may be long, and the run's record is read with it.
async fn read_lines<T: Send + 'static>(
    run: &RunId,
    lines: Vec<Vec<u8>>,
    read: impl FnOnce(Reader<'_>) -> T + Send + 'static,
) -> Result<T, JournalError> {
    let of = run.clone();
    let read = run_blocking(move || {
        let mut reader = Reader::new(&of);
        for (number, line) in (1..).zip(&lines) {
            // The database stores a line completely or not at all.
            reader.line(number, &[line.as_slice(), b"\n"].concat())?;
        }
        Ok(read(reader))
    });
    read.await.map_err(|e| failed(run, Failure::of(e)))?
}

/// Why a journal operation failed.
#[derive(Debug)]
enum Fault {
    /// Another process holds the run.
    Busy,
    /// The database failed.
    Failed(Failure),
}

type Outcome<T> = Result<T, Fault>;

fn to_journal_error(run: &RunId, fault: Fault) -> JournalError {
    match fault {
        Fault::Busy => JournalError::Busy(run.clone()),
        Fault::Failed(why) => failed(run, why),
    }
}

fn failed(run: &RunId, why: Failure) -> JournalError {
    JournalError::Io {
        run: run.clone(),
        source: io::Error::other(why),
    }
}

/// A job for the thread.
#[derive(Debug)]
enum Job {
    /// Adds a line; `last` if no chain of the run is active any more.
    Add {
        run: String,
        line: String,
        last: bool,
        answer: oneshot::Sender<Outcome<()>>,
    },
    /// Suspends a chain of this run; the flag says whether it was the last active one.
    Leave(String, bool, oneshot::Sender<Outcome<()>>),
    Read(String, oneshot::Sender<Outcome<Vec<Vec<u8>>>>),
}

/// What journals need from a database.
trait Backend {
    /// Holds the run and adds a line; returns whether there were lines before it was held.
    fn add(&mut self, run: &str, line: &str, held: bool) -> Outcome<bool>;

    /// Releases a run, and deletes its lines if they are no longer needed.
    fn release_run(&mut self, run: &str, wipe: bool) -> Outcome<()>;

    /// Renews this process's lease on these runs.
    fn renew(&mut self, runs: &mut dyn Iterator<Item = &str>) -> Outcome<()>;

    /// Returns the lines of a run unless another process holds it; `ours` says that this process does.
    fn lines(&mut self, run: &str, ours: bool) -> Outcome<Vec<Vec<u8>>>;
}

fn backend(place: Place, lease: Lease) -> Result<Box<dyn Backend>, String> {
    Ok(match place {
        #[cfg(feature = "sqlite")]
        Place::Sqlite(path) => Box::new(sqlite::Lines::new(path, lease)),
        #[cfg(feature = "postgres")]
        Place::Postgres(url) => Box::new(postgres::Lines::new(&url, lease)?),
    })
}

/// Runs jobs until every sender is dropped.
fn work(place: Place, lease: Lease, jobs: &Jobs<Job>) {
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
            Next::Job(Job::Add {
                run,
                line,
                last,
                answer,
            }) => send_answer(
                answer,
                add(&mut *backend, &mut held, &NewLine { run, line, last }),
            ),
            Next::Job(Job::Leave(run, last, answer)) => {
                send_answer(answer, release(&mut *backend, &mut held, run, last));
            }
            Next::Job(Job::Read(run, answer)) => {
                drop(answer.send(backend.lines(&run, held.contains_key(&run))));
            }
            Next::Quiet => {}
            Next::End => break,
        }
        if beat.elapsed() >= lease.beat && !held.is_empty() {
            // The loss of a run shows when its next line is added.
            drop(backend.renew(&mut held.keys().map(String::as_str)));
            beat = Instant::now();
        }
    }
}

/// Sends an answer; logs a failure if the caller is gone.
fn send_answer(answer: oneshot::Sender<Outcome<()>>, outcome: Outcome<()>) {
    if let Err(Err(fault)) = answer.send(outcome) {
        tracing::error!(?fault, "write the journal of a chain that was dropped");
    }
}

/// Releases a run without deleting what a suspended chain still needs.
fn release(
    backend: &mut dyn Backend,
    held: &mut HashMap<String, bool>,
    run: String,
    last: bool,
) -> Outcome<()> {
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

fn add(backend: &mut dyn Backend, held: &mut HashMap<String, bool>, new: &NewLine) -> Outcome<()> {
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
