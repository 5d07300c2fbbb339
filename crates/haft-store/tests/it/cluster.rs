//! `Cluster`: a `PostgreSQL` server for the tests, on a free loopback port, ended with the process that started it.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests start real servers, and say when they cannot"
)]

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Runs the server until its standard input ends, then stops it: no killed test leaves one behind.
const KEEPER: &str = r#""$@" & pid=$!; echo $pid; cat >/dev/null; kill -INT $pid; wait $pid"#;

/// The user that runs the server if the tests run as root, which the server refuses: `nobody`.
const NOBODY: u32 = 65_534;

static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A running server.
#[derive(Debug)]
pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
    keeper: Mutex<Option<(Child, u32)>>,
}

impl Cluster {
    /// Returns the server that the tests of this process share; prints a notice and returns `None` if the programs are missing.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        let mut shared = SHARED.lock();
        if let Some(running) = shared.upgrade() {
            return Some(running);
        }
        let started = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&started);
        Some(started)
    }

    /// Starts a separate server.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!(
                "SKIPPED: no PostgreSQL server programs here: install the package postgresql"
            );
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        if is_root() {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        if is_root() {
            chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut initdb = unprivileged(&programs.join("initdb"));
        let made = initdb
            .args([
                "-U",
                "haft",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb: {said}");
        let cluster = Self {
            dir,
            programs,
            port: TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port(),
            keeper: Mutex::new(None),
        };
        cluster.run();
        Some(cluster)
    }

    /// Starts the server, if it was stopped, and waits until it accepts connections.
    pub(crate) fn run(&self) {
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]);
        if is_root() {
            let nobody = NOBODY.to_string();
            keeper.args([
                "setpriv",
                "--reuid",
                &nobody,
                "--regid",
                &nobody,
                "--clear-groups",
            ]);
        }
        let mut keeper = keeper
            .arg(self.programs.join("postgres"))
            .arg("-D")
            .arg(self.dir.path().join("data"))
            .args([
                "-p",
                &self.port.to_string(),
                "-c",
                "listen_addresses=127.0.0.1",
            ])
            .args([
                "-c",
                "unix_socket_directories=",
                "-c",
                "max_connections=300",
            ])
            .args(["-c", "shared_buffers=64MB"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = std::io::BufReader::new(keeper.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        let pid = line.trim().parse().unwrap();
        *self.keeper.lock() = Some((keeper, pid));
        let began = Instant::now();
        while !self.client("pg_isready", &[]).status.success() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "no PostgreSQL after 30 s"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the server at once, like a crash: connections break, and nothing more is written.
    pub(crate) fn crash(&self) {
        let Some((mut keeper, pid)) = self.keeper.lock().take() else {
            return;
        };
        let killed = Command::new("kill")
            .args(["-QUIT", &pid.to_string()])
            .status();
        assert!(killed.unwrap().success());
        drop(keeper.stdin.take());
        keeper.wait().unwrap();
    }

    /// Returns the URL of a fresh, empty database.
    pub(crate) fn database(&self) -> String {
        let name = format!("t{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let made = self.client("createdb", &[&name]);
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "createdb: {said}");
        format!("postgres://haft@127.0.0.1:{}/{name}", self.port)
    }

    fn client(&self, program: &str, args: &[&str]) -> std::process::Output {
        let mut client = Command::new(self.programs.join(program));
        let port = self.port.to_string();
        client.args(["-h", "127.0.0.1", "-p", &port, "-U", "haft"]);
        client.args(args).output().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let keeper = self.keeper.get_mut();
        if let Some((mut keeper, _)) = keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}

fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let nobody = NOBODY.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
    command.arg(program).current_dir("/");
    command
}

/// Returns the folder of the server's programs: the distribution's newest, or the one on the search path.
fn programs() -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    folders.sort_by_key(|path| {
        let version = path
            .parent()
            .and_then(|p| p.file_name()?.to_str()?.parse::<u32>().ok());
        std::cmp::Reverse(version)
    });
    let searched = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&searched));
    let all = ["initdb", "postgres", "pg_isready", "createdb"];
    folders
        .into_iter()
        .find(|folder| all.iter().all(|program| folder.join(program).is_file()))
}
