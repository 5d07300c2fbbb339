//! What a command is and how it is run, killed, read and guarded, with and without the jail.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test binary with a main of its own"
)]

mod ahead;
mod code;
mod converse;
mod direct;
mod guards;
mod left_behind;
mod hidden_from_git;
mod levels;
mod output;
mod runner;
mod starts;
mod terminals;
mod tree;
mod views;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use haft_sandbox::{Backend, CommandSpec, Config, Exit, Mounts, RunningCommand, Sandbox};

fn main() {
    let code = levels::before_enter();
    haft_sandbox::enter();
    let lists = [
        output::TESTS,
        converse::TESTS,
        tree::TESTS,
        guards::TESTS,
        direct::TESTS,
        views::TESTS,
        left_behind::TESTS,
        hidden_from_git::TESTS,
        terminals::TESTS,
        levels::TESTS,
        code::TESTS,
        ahead::TESTS,
        starts::TESTS,
    ];
    std::process::exit(code.max(runner::run(&lists.concat())));
}

/// Both drivers: what does not depend on the jail must hold with and without it.
pub(crate) fn drivers() -> &'static [Sandbox; 2] {
    static BOTH: OnceLock<[Sandbox; 2]> = OnceLock::new();
    BOTH.get_or_init(|| {
        [Backend::Passthrough, Backend::Jail].map(|backend| {
            Sandbox::new(Config {
                backend,
                require: match backend {
                    Backend::Passthrough => haft_sandbox::Strength::None,
                    Backend::Jail => haft_sandbox::Strength::default(),
                },
                ..Config::default()
            })
        })
    })
}

pub(crate) fn jail() -> &'static Sandbox {
    &drivers()[1]
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Returns a command line in a workspace, with a timeout of one minute.
pub(crate) fn line(line: &str, workspace: &Path) -> CommandSpec {
    CommandSpec::line(line, workspace)
        .with_mounts(Mounts::workspace(workspace))
        .with_timeout(Duration::from_secs(60))
}

/// Starts a command, waits for it, and returns how it ended and both streams as text.
pub(crate) fn run(sandbox: &Sandbox, spec: CommandSpec) -> (Exit, String, String) {
    wait(async {
        let running = sandbox
            .start(spec)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        let exit = running.wait().await;
        (exit, text(running.stdout()), text(running.stderr()))
    })
}

pub(crate) fn text(log: &haft_sandbox::Log) -> String {
    log.text(0, 1 << 20).text
}

pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// Opens the named pipe `alive` as descriptor 9, at the start of a script: everything that the script starts holds it.
pub(crate) const HOLD: &str = "exec 9>alive; ";

/// The reading end of the named pipe `alive` in a command's folder: it ends when the last process that [`HOLD`]s it exits.
pub(crate) struct Alive(File);

impl Alive {
    pub(crate) fn new(folder: &Path) -> Self {
        let path = folder.join("alive");
        let (fifo, mode) = (
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
        );
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(nonblock);
        Self(options.open(path).unwrap())
    }

    /// Waits until no process holds the other end.
    pub(crate) async fn ended(&mut self) {
        let late = soon();
        while let Err(error) = self.0.read(&mut [0; 16]) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            assert!(Instant::now() < late, "a process is still alive");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Waits until a command has written this text.
pub(crate) async fn wait_for_output(running: &RunningCommand, what: &str) {
    let waited = running
        .wait_for(|running| text(running.stdout()).contains(what), soon())
        .await;
    assert_eq!(
        waited,
        haft_sandbox::WaitOutcome::Matched,
        "{}",
        text(running.stderr())
    );
}
