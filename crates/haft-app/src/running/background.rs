//! The background server: started if none is running, only once, with its console on loopback only.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use haft::file_lock::FileLock;
use haft_sandbox::{DetachedProgram, HostProgram};

use crate::config::{Settings, typed};
use crate::home::Home;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use crate::running::{RunningServer, choose, file_problem, folder, servers, store};
use crate::site::Site;

/// Held by the process that starts the server: of two at the same time, only one starts it.
const START_LOCK: &str = "start.lock";
/// Held by the server while it runs.
const SERVER_LOCK: &str = "background.lock";
/// The server's log, in the state folder.
const LOG_FILE: &str = "console.log";
/// The empty folder that the server works in.
const EMPTY_FOLDER: &str = "console";
/// Size in bytes at which the log is rotated.
const MAX_LOG: u64 = 1 << 20;
/// Bytes of the log that an error shows.
const LOG_TAIL: usize = 600;
/// How long a server may take until it responds.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How often to check for it meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Where a console is needed, and whether one may be started there.
#[derive(Debug, Clone)]
pub struct ConsoleRequest {
    site: Site,
    store: String,
    starts: bool,
}

/// A running server, and whether it was just started.
#[derive(Debug)]
pub struct ReachedServer {
    /// The server.
    pub server: RunningServer,
    /// Whether this process started it.
    pub fresh: bool,
}

impl ConsoleRequest {
    /// Reads the settings of this site (`console.start`, `store.url`).
    pub fn new(site: &Site, settings: &Settings) -> Self {
        Self {
            site: site.clone(),
            store: store(settings),
            starts: settings.get(typed::CONSOLE_START) == "auto",
        }
    }

    /// Starts no server on a build machine, where no user could look at it: for a console that the user did not ask for.
    #[must_use]
    pub fn unasked(mut self) -> Self {
        let ci = self.site.environment.get("CI").unwrap_or_default();
        self.starts &= matches!(ci, "" | "0" | "false");
        self
    }

    /// Never starts a server.
    #[must_use]
    pub fn without_start(mut self) -> Self {
        self.starts = false;
        self
    }

    /// Returns which database of approvals it shows; see [`store`].
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Returns whether a server is started if none is running.
    pub fn starts(&self) -> bool {
        self.starts
    }

    /// Takes the lock that only one background server holds; returns `None` if another one holds it.
    ///
    /// # Errors
    /// The state folder cannot be written.
    pub fn lock(&self) -> Result<Option<FileLock>, Problem> {
        let home = &self.site.home;
        lock(home, SERVER_LOCK)
            .map_err(|e| file_problem("start a server in the background", &folder(home), &e))
    }

    /// Returns the running server that shows the requests of this site, if there is one. Blocks.
    ///
    /// # Errors
    /// The state folder cannot be read.
    pub fn find(&self) -> Result<Option<RunningServer>, Problem> {
        let all = servers(&self.site.home)?;
        let workspace = self.site.workspace.to_string_lossy();
        Ok(choose(all, &workspace, &self.store))
    }

    /// Returns the running server, or starts one, which `fresh` tells. Blocks until it responds.
    ///
    /// # Errors
    /// None is running and the settings forbid starting one; this folder's approvals are in its own database; or starting it fails.
    pub fn find_or_start(&self) -> Result<ReachedServer, Problem> {
        let home = &self.site.home;
        if self.starts {
            home.create()?;
        }
        if let Some(server) = self.find()? {
            return Ok(ReachedServer {
                server,
                fresh: false,
            });
        }
        if !self.starts {
            return Err(Problem::failed("no haft server is running, and none is started")
                .at(SourceLocation::named("console.start"))
                .advise("start one with `haft serve`, or allow it: `haft console -c console.start=auto`"));
        }
        self.check_store()?;
        let until = Instant::now() + START_TIMEOUT;
        // Released when this process exits, however that happens.
        let _turn = wait_for(home, START_LOCK, until)?;
        if let Some(server) = self.find()? {
            return Ok(ReachedServer {
                server,
                fresh: false,
            });
        }
        // A server that is exiting has already removed its record.
        drop(wait_for(home, SERVER_LOCK, until)?);
        let started = self.start().map_err(|e| {
            let path = home.join(LOG_FILE);
            file_problem("start a server in the background", &path, &e)
        })?;
        self.wait_until_ready(&started, until)
    }

    /// Starts the server if none is running or starting, without waiting for it. Returns whether it started one.
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
            file_problem(
                "start a server in the background",
                &folder(&self.site.home),
                &e,
            )
        };
        let home = &self.site.home;
        let Some(_turn) = lock(home, START_LOCK).map_err(cannot_start)? else {
            return Ok(false);
        };
        // A running or exiting server holds it; if two are started, the second exits by itself.
        let Some(alone) = lock(home, SERVER_LOCK).map_err(cannot_start)? else {
            return Ok(false);
        };
        drop(alone);
        self.start().map_err(cannot_start)?;
        Ok(true)
    }

    /// Checks that the background server would show this folder's approvals. It reads the user's settings but no folder's: it cannot show
    /// approvals that a folder stores elsewhere, nor those of another state folder.
    fn check_store(&self) -> Result<(), Problem> {
        let site = Site {
            workspace: working_folder(&self.site.home),
            ..self.site.clone()
        };
        let settings = site.settings(&crate::site::Overrides::default(), false)?;
        if store(&settings) == self.store {
            return Ok(());
        }
        let what = "the approvals of this folder are in a database of its own, which no running server shows";
        Err(Problem::failed(what)
            .at(SourceLocation::named("store.url"))
            .advise("start a server for this folder: `haft serve`"))
    }

    fn start(&self) -> io::Result<DetachedProgram> {
        let home = &self.site.home;
        let nowhere = working_folder(home);
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

    /// Waits until the server responds.
    fn wait_until_ready(
        &self,
        started: &DetachedProgram,
        until: Instant,
    ) -> Result<ReachedServer, Problem> {
        loop {
            let ended = started.ended_within(POLL_INTERVAL);
            if let Some(server) = self.find()? {
                return Ok(ReachedServer {
                    server,
                    fresh: true,
                });
            }
            let why = match ended {
                Some(status) => format!("the background server exited at once ({status})"),
                None if Instant::now() >= until => {
                    format!(
                        "the background server does not answer (process {})",
                        started.pid()
                    )
                }
                None => continue,
            };
            let log = self.site.home.join(LOG_FILE);
            let tail = tail(&log);
            let advice = format!("try `haft serve` in the foreground; the log ends with: {tail}");
            return Err(Problem::failed(why)
                .at(SourceLocation::file(&log))
                .advise(advice));
        }
    }
}

/// Stops the background server and waits until it has exited; returns `false` if there is none.
///
/// # Errors
/// The state folder cannot be changed, or the server does not end.
pub fn stop(home: &Home) -> Result<bool, Problem> {
    let mut all = servers(home)?.into_iter();
    let Some(server) = all.find(RunningServer::is_background) else {
        return Ok(false);
    };
    server.stop(START_TIMEOUT)?;
    drop(wait_for(home, SERVER_LOCK, Instant::now() + START_TIMEOUT)?);
    Ok(true)
}

/// Rotates the log of the background server once it is too long.
pub fn trim_log(home: &Home) {
    let path = home.join(LOG_FILE);
    let long = fs::metadata(&path).is_ok_and(|meta| meta.len() > MAX_LOG);
    if !long {
        return;
    }
    let copied = fs::copy(&path, home.join("console.log.1"));
    // The server opens it for appending, so its next line goes to the start.
    let emptied = OpenOptions::new().write(true).truncate(true).open(&path);
    if let Err(error) = copied.and(emptied) {
        tracing::warn!(%error, "begin the log anew");
    }
}

fn open_log(home: &Home) -> io::Result<File> {
    trim_log(home);
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(home.join(LOG_FILE))
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let from = text.len().saturating_sub(LOG_TAIL);
    let text = String::from_utf8_lossy(text.get(from..).unwrap_or_default());
    text.trim().replace('\n', " · ")
}

/// Returns the folder of the background server.
fn working_folder(home: &Home) -> PathBuf {
    home.join(EMPTY_FOLDER)
}

/// Takes the lock of this name in the state folder, waiting until no other process holds it.
fn wait_for(home: &Home, name: &str, until: Instant) -> Result<FileLock, Problem> {
    loop {
        let wrong =
            |e: io::Error| file_problem("start a server in the background", &folder(home), &e);
        if let Some(lock) = lock(home, name).map_err(wrong)? {
            return Ok(lock);
        }
        if Instant::now() >= until {
            let place = SourceLocation::file(&folder(home).join(name));
            let problem = Problem::failed(
                "another haft process has been starting or stopping a server for too long",
            );
            return Err(problem.at(place).advise(
                "end the process that has the file open, and try again; `haft serve` starts a server in the foreground",
            ));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Takes the lock of this name in the state folder; returns `None` if another process holds it.
fn lock(home: &Home, name: &str) -> io::Result<Option<FileLock>> {
    plain_file::private_folder(&folder(home))?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder(home).join(name))?;
    FileLock::try_exclusive(file)
}
