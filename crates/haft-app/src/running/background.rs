//! The server in the background: started where none runs, once, with its console on loopback alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use haft_sandbox::{Detached, HostProgram};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::config::{Settings, typed};
use crate::home::Home;
use crate::plain_file;
use crate::problem::{Place, Problem};
use crate::running::{Server, cannot, choose, folder, servers, store};
use crate::site::Site;

/// Held by whoever starts the server: two that come at the same time start one.
const START: &str = "start.lock";
/// Held by the server as long as it lives.
const ALONE: &str = "background.lock";
/// What the server says; below the state folder.
const LOG: &str = "console.log";
/// The folder that the server works in: nothing lies there.
const NOWHERE: &str = "console";
/// Bytes of the log at which it begins anew, the old one kept beside it.
const LONGEST_LOG: u64 = 1 << 20;
/// Bytes of the log that an error shows.
const TAIL: usize = 600;
/// How long a server may take until it answers.
const TAKES: Duration = Duration::from_secs(30);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// Where a console is wanted, and whether one may be started there.
#[derive(Debug, Clone)]
pub struct Wanted {
    site: Site,
    store: String,
    starts: bool,
}

/// A server, and whether it was started just now.
#[derive(Debug)]
pub struct Reached {
    /// The server.
    pub server: Server,
    /// Whether this process started it.
    pub fresh: bool,
}

impl Wanted {
    /// As settings of this site say (`console.start`, `store.url`).
    pub fn new(site: &Site, settings: &Settings) -> Self {
        Self {
            site: site.clone(),
            store: store(settings),
            starts: settings.get(typed::CONSOLE_START) == "auto",
        }
    }

    /// The same, where nobody asked for a console: on a build machine no one could look at it.
    #[must_use]
    pub fn unasked(mut self) -> Self {
        let ci = self.site.environment.get("CI").unwrap_or_default();
        self.starts &= matches!(ci, "" | "0" | "false");
        self
    }

    /// The same, where none is started.
    #[must_use]
    pub fn without_start(mut self) -> Self {
        self.starts = false;
        self
    }

    /// Which database of approvals it shows; see [`store`].
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Whether one is started where none runs.
    pub fn starts(&self) -> bool {
        self.starts
    }

    /// The lock that only one server in the background has; none where another one has it.
    ///
    /// # Errors
    /// The state folder cannot be written.
    pub fn lock(&self) -> Result<Option<File>, Problem> {
        let home = &self.site.home;
        lock(home, ALONE).map_err(|e| cannot("start a server in the background", &folder(home), &e))
    }

    /// The server that runs and shows the requests of this site, if there is one. Blocks.
    ///
    /// # Errors
    /// The state folder cannot be read.
    pub fn find(&self) -> Result<Option<Server>, Problem> {
        let all = servers(&self.site.home)?;
        let workspace = self.site.workspace.to_string_lossy();
        Ok(choose(all, &workspace, &self.store))
    }

    /// The server that runs, or one that is started; `fresh` is whether it was. Blocks until it answers.
    ///
    /// # Errors
    /// None runs and settings start none; the approvals of this folder are in a database of its own; or the server does not start.
    pub fn find_or_start(&self) -> Result<Reached, Problem> {
        let home = &self.site.home;
        if self.starts {
            home.create()?;
        }
        if let Some(server) = self.find()? {
            return Ok(Reached {
                server,
                fresh: false,
            });
        }
        if !self.starts {
            return Err(Problem::failed("no haft server runs here, and none is started")
                .at(Place::named("console.start"))
                .advise("start one with `haft serve`, or allow it: `haft console -c console.start=auto`"));
        }
        self.check_store()?;
        let until = Instant::now() + TAKES;
        // Freed with this process, however it ends.
        let _turn = wait_for(home, START, until)?;
        if let Some(server) = self.find()? {
            return Ok(Reached {
                server,
                fresh: false,
            });
        }
        // One that is ending has no record any more.
        drop(wait_for(home, ALONE, until)?);
        let started = self.start().map_err(|e| {
            let path = home.join(LOG);
            cannot("start a server in the background", &path, &e)
        })?;
        self.appears(&started, until)
    }

    /// Starts the server where none runs and none is being started, without waiting until it answers. False where none was started.
    ///
    /// # Errors
    /// The state folder cannot be written, or the server cannot be started.
    pub fn begin(&self) -> Result<bool, Problem> {
        if !self.starts {
            return Ok(false);
        }
        self.site.home.create()?;
        self.check_store()?;
        let cannot_start = |e: io::Error| {
            cannot(
                "start a server in the background",
                &folder(&self.site.home),
                &e,
            )
        };
        let home = &self.site.home;
        let Some(_turn) = lock(home, START).map_err(cannot_start)? else {
            return Ok(false);
        };
        // One that runs or ends has it; of two that are started the second ends by itself.
        let Some(alone) = lock(home, ALONE).map_err(cannot_start)? else {
            return Ok(false);
        };
        drop(alone);
        self.start().map_err(cannot_start)?;
        Ok(true)
    }

    /// The server in the background reads the settings of the user and of no folder: it shows the approvals of a folder that
    /// keeps them elsewhere no more than those of another home.
    fn check_store(&self) -> Result<(), Problem> {
        let site = Site {
            workspace: nowhere(&self.site.home),
            ..self.site.clone()
        };
        let settings = site.settings(&crate::site::Overrides::default(), false)?;
        if store(&settings) == self.store {
            return Ok(());
        }
        let what = "the approvals of this folder are in a database of its own, which no running server shows";
        Err(Problem::failed(what)
            .at(Place::named("store.url"))
            .advise("start a server for this folder: `haft serve`"))
    }

    fn start(&self) -> io::Result<Detached> {
        let home = &self.site.home;
        let nowhere = nowhere(home);
        plain_file::private_folder(&nowhere)?;
        let arguments = ["serve", "--background", "--workspace"].map(Into::into);
        let arguments = arguments.into_iter().chain([
            nowhere.clone().into_os_string(),
            "--home".into(),
            home.path().into(),
        ]);
        HostProgram::this("haft")
            .with_arguments(arguments)
            .with_variables(self.site.environment.iter())
            .in_folder(&nowhere)
            .with_log(open_log(home)?)
            .detach()
    }

    /// Waits until the server answers.
    fn appears(&self, started: &Detached, until: Instant) -> Result<Reached, Problem> {
        loop {
            let ended = started.ended_within(LOOK);
            if let Some(server) = self.find()? {
                return Ok(Reached {
                    server,
                    fresh: true,
                });
            }
            let why = match ended {
                Some(status) => format!("the server in the background ended at once ({status})"),
                None if Instant::now() >= until => {
                    format!(
                        "the server in the background does not answer (process {})",
                        started.pid()
                    )
                }
                None => continue,
            };
            let log = self.site.home.join(LOG);
            let tail = tail(&log);
            let advice = format!("try `haft serve` in the foreground; the log ends with: {tail}");
            return Err(Problem::failed(why).at(Place::file(&log)).advise(advice));
        }
    }
}

/// Stops the server in the background; false where there is none. Blocks until it is gone.
///
/// # Errors
/// The state folder cannot be changed, or the server does not end.
pub fn stop(home: &Home) -> Result<bool, Problem> {
    let mut all = servers(home)?.into_iter();
    let Some(server) = all.find(Server::is_background) else {
        return Ok(false);
    };
    server.stop(TAKES)?;
    drop(wait_for(home, ALONE, Instant::now() + TAKES)?);
    Ok(true)
}

/// Begins the log of the server in the background anew where it has grown long.
pub fn trim_log(home: &Home) {
    let path = home.join(LOG);
    let long = fs::metadata(&path).is_ok_and(|meta| meta.len() > LONGEST_LOG);
    if !long {
        return;
    }
    let kept = fs::copy(&path, home.join("console.log.1"));
    // Whoever writes it appends: the next line is the first.
    let emptied = OpenOptions::new().write(true).truncate(true).open(&path);
    if let Err(error) = kept.and(emptied) {
        tracing::warn!(%error, "begin the log anew");
    }
}

fn open_log(home: &Home) -> io::Result<File> {
    trim_log(home);
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(home.join(LOG))
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let from = text.len().saturating_sub(TAIL);
    let text = String::from_utf8_lossy(text.get(from..).unwrap_or_default());
    text.trim().replace('\n', " · ")
}

/// The folder of the server in the background.
fn nowhere(home: &Home) -> PathBuf {
    home.join(NOWHERE)
}

/// A lock of this name below the state folder, once no other process has it. Blocks until then.
fn wait_for(home: &Home, name: &str, until: Instant) -> Result<File, Problem> {
    loop {
        let wrong = |e: io::Error| cannot("start a server in the background", &folder(home), &e);
        if let Some(lock) = lock(home, name).map_err(wrong)? {
            return Ok(lock);
        }
        if Instant::now() >= until {
            let place = Place::file(&folder(home).join(name));
            let problem =
                Problem::failed("another haft has been starting or ending a server for too long");
            return Err(problem.at(place).advise(
                "end the process that has the file open, and try again; `haft serve` starts a server in the foreground",
            ));
        }
        thread::sleep(LOOK);
    }
}

/// A lock of this name below the state folder; none where another process has it.
fn lock(home: &Home, name: &str) -> io::Result<Option<File>> {
    plain_file::private_folder(&folder(home))?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder(home).join(name))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
