//! `DbJournal`: journals of chains in a database, so that a chain goes on in another process, or on another machine.
//!
//! A thread of its own writes, one entry after the other; whoever adds one waits for it, as they would for a file. While
//! chains of a run are at work their process holds it by a lease, which is looked at with every entry: a process that
//! lost it writes nothing any more, and what cannot be written is not run.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use haft::call::{CallId, RunId};
use haft::error::Failure;
use haft::journal::line::{Line, Reader};
use haft::journal::{ChainStart, Journal, JournalCall, JournalError, Recorded};
use haft::result::Status;
use parking_lot::Mutex;

use crate::blocking::may_block;
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
    /// The chains of runs that began here and did not close.
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
    /// Journals in a `SQLite` file. `home` is haft's state folder, whose records say which calls had started.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: PathBuf, home: impl Into<PathBuf>) -> Self {
        Self::new(Place::Sqlite(path), home.into())
    }

    /// Journals in a `PostgreSQL` database; `home` is haft's state folder, whose records say which calls had started.
    ///
    /// # Errors
    /// A URL that cannot be read.
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

    /// With another lease; for journals that were not used yet.
    pub fn with_lease(mut self, lease: Lease) -> Self {
        self.lease = lease;
        self
    }

    /// Gives a job and waits for its answer.
    fn ask<T>(&self, job: impl FnOnce(mpsc::SyncSender<Answer<T>>) -> Job) -> Answer<T> {
        let (answer, heard) = mpsc::sync_channel(1);
        let (place, lease) = (self.place.clone(), self.lease);
        let start = |jobs| {
            let thread = thread::Builder::new().name("haft-journal".to_owned());
            thread.spawn(move || work(place, lease, &jobs)).map(drop)
        };
        self.lane
            .send_at_once(job(answer), start)
            .map_err(Fault::Failed)?;
        let wait = || {
            heard
                .recv()
                .map_err(|_| Fault::Failed("its thread ended".into()))
        };
        if may_block() {
            // Others of this runtime's tasks go on elsewhere meanwhile.
            tokio::task::block_in_place(wait)?
        } else {
            wait()?
        }
    }

    fn add(&self, run: &RunId, line: &Line) -> Result<(), JournalError> {
        let json = serde_json::to_string(line).map_err(|e| failed(run, Failure::of(e)))?;
        let mut left = self.chains.lock();
        let chains = left.entry(run.clone()).or_default();
        line.note(chains);
        let last = chains.is_empty();
        if last {
            left.remove(run);
        }
        drop(left);
        let run_of = run.to_string();
        let added = self.ask(|answer| Job::Add {
            run: run_of,
            line: json,
            last,
            answer,
        });
        if added.is_err()
            && let Line::Begin { chain, .. } = line
        {
            // It did not begin.
            let mut left = self.chains.lock();
            if let Some(chains) = left.get_mut(run) {
                chains.remove(&CallId::new(chain.as_str()));
            }
            left.retain(|_, chains| !chains.is_empty());
        }
        added.map_err(|fault| to_journal_error(run, fault))
    }
}

impl Journal for DbJournal {
    fn begin(&self, run: &RunId, chain: &CallId, start: &ChainStart) -> Result<(), JournalError> {
        self.add(run, &Line::begin(chain, start))
    }

    fn call(&self, run: &RunId, chain: &CallId, call: &JournalCall) -> Result<(), JournalError> {
        self.add(run, &Line::call(chain, call))
    }

    fn end(&self, run: &RunId, chain: &CallId, seq: u64, reply: &str) -> Result<(), JournalError> {
        self.add(run, &Line::end(chain, seq, reply))
    }

    fn close(&self, run: &RunId, chain: &CallId, status: Status) -> Result<(), JournalError> {
        self.add(run, &Line::close(chain, status))
    }

    fn suspend(&self, run: &RunId, chain: &CallId) -> Result<(), JournalError> {
        let mut left = self.chains.lock();
        let chains = left.entry(run.clone()).or_default();
        chains.remove(chain);
        let last = chains.is_empty();
        if last {
            left.remove(run);
        }
        drop(left);
        let gone = self.ask(|answer| Job::Leave(run.to_string(), last, answer));
        gone.map_err(|fault| to_journal_error(run, fault))
    }

    fn abandoned(&self, run: &RunId) -> Result<Vec<Recorded>, JournalError> {
        let reader = self.read(run)?;
        let all = self.chains.lock();
        let none = HashSet::new();
        Ok(reader.abandoned(all.get(run).unwrap_or(&none)))
    }

    fn interrupted(
        &self,
        run: &RunId,
        chain: Option<&CallId>,
    ) -> Result<Option<Recorded>, JournalError> {
        Ok(self.read(run)?.open(chain, &self.home))
    }
}

impl DbJournal {
    /// The chains of a run that no other process is at.
    fn read<'a>(&self, run: &'a RunId) -> Result<Reader<'a>, JournalError> {
        let lines = self.ask(|answer| Job::Read(run.to_string(), answer));
        let lines = lines.map_err(|fault| to_journal_error(run, fault))?;
        let mut reader = Reader::new(run);
        for (number, line) in (1..).zip(&lines) {
            // A line is there whole or not at all.
            reader.line(number, &[line.as_slice(), b"\n"].concat())?;
        }
        Ok(reader)
    }
}

/// Why a journal said no.
#[derive(Debug)]
enum Fault {
    /// Another process is at the run.
    Busy,
    /// The database failed.
    Failed(Failure),
}

type Answer<T> = Result<T, Fault>;

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
    /// Add a line; `last` where no chain of the run is at work any more.
    Add {
        run: String,
        line: String,
        last: bool,
        answer: mpsc::SyncSender<Answer<()>>,
    },
    /// A chain of this run waits; whether it was the last at work.
    Leave(String, bool, mpsc::SyncSender<Answer<()>>),
    Read(String, mpsc::SyncSender<Answer<Vec<Vec<u8>>>>),
}

/// What a database does for journals.
trait Backend {
    /// Holds the run and adds a line; whether lines were there before it was held.
    fn add(&mut self, run: &str, line: &str, held: bool) -> Answer<bool>;

    /// Lets go of a run, and of its lines where they are of no use any more.
    fn let_go(&mut self, run: &str, wipe: bool) -> Answer<()>;

    /// Says that this process is alive and at these runs.
    fn renew(&mut self, runs: &mut dyn Iterator<Item = &str>) -> Answer<()>;

    /// The lines of a run that no other process is at; `ours` where this one is.
    fn lines(&mut self, run: &str, ours: bool) -> Answer<Vec<Vec<u8>>>;
}

fn backend(place: Place, lease: Lease) -> Result<Box<dyn Backend>, String> {
    Ok(match place {
        #[cfg(feature = "sqlite")]
        Place::Sqlite(path) => Box::new(sqlite::Lines::new(path, lease)),
        #[cfg(feature = "postgres")]
        Place::Postgres(url) => Box::new(postgres::Lines::new(&url, lease)?),
    })
}

/// Works until nobody can give a job any more.
fn work(place: Place, lease: Lease, jobs: &Jobs<Job>) {
    // Whoever waits hears that the thread ended.
    let Ok(mut backend) = backend(place, lease) else {
        return;
    };
    // The runs that are held, and whether they had lines before.
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
            }) => drop(answer.send(add(&mut *backend, &mut held, &NewLine { run, line, last }))),
            Next::Job(Job::Leave(run, last, answer)) => {
                drop(answer.send(leave(&mut *backend, &mut held, run, last)));
            }
            Next::Job(Job::Read(run, answer)) => {
                drop(answer.send(backend.lines(&run, held.contains_key(&run))));
            }
            Next::Quiet => {}
            Next::End => break,
        }
        if beat.elapsed() >= lease.beat && !held.is_empty() {
            // A run that was lost shows with its next line.
            drop(backend.renew(&mut held.keys().map(String::as_str)));
            beat = Instant::now();
        }
    }
}

/// What was left is not wiped when others end.
fn leave(
    backend: &mut dyn Backend,
    held: &mut HashMap<String, bool>,
    run: String,
    last: bool,
) -> Answer<()> {
    if last {
        held.remove(&run);
        return backend.let_go(&run, false);
    }
    held.insert(run, true);
    Ok(())
}

/// A line to be added to a run's journal.
struct NewLine {
    run: String,
    line: String,
    /// Whether its chain ends with it, and no other of the run is left.
    last: bool,
}

fn add(backend: &mut dyn Backend, held: &mut HashMap<String, bool>, new: &NewLine) -> Answer<()> {
    let NewLine { run, line, last } = new;
    let known = held.get(run).copied();
    let old = backend.add(run, line, known.is_some())?;
    let old = known.unwrap_or(old);
    if *last {
        held.remove(run);
        // Chains that ended need no journal; a run may have thousands.
        return backend.let_go(run, !old);
    }
    held.insert(run.to_owned(), old);
    Ok(())
}
