//! Attempts to escape from the jail, by their number in the threat model: every one must be stopped.
//!
//! This binary itself makes most attempts: it is executed inside the jail with the attempt's name, so that
//! they are plain system calls and need nothing from the machine. An attempt exits with code 0 if it was
//! stopped, and otherwise prints on standard error how it succeeded.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test binary with a main of its own; attempts hand over what they got"
)]

#[cfg(target_arch = "x86_64")]
mod environments;
mod files;
#[cfg(target_arch = "x86_64")]
mod host;
mod kernel;
mod loopback;
mod machine;
mod memory;
#[cfg(target_arch = "x86_64")]
mod lives;
mod network;
mod outlet;
mod process;
mod resources;
mod routes;
#[path = "../it/runner.rs"]
mod runner;
#[cfg(target_arch = "x86_64")]
mod scripts;
mod terminals;
mod tracing;
#[cfg(target_arch = "x86_64")]
mod zygotes;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use haft_sandbox::{CommandSpec, Config, Exit, Mounts, PathGuard, Sandbox};

/// The result of an attempt inside the jail: `Err` says how it succeeded.
pub(crate) type Outcome = Result<(), String>;
pub(crate) type Attempt = (&'static str, fn(&[String]) -> Outcome);

pub(crate) const INSIDE: &str = "--attempt";

fn main() {
    haft_sandbox::enter();
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|word| word == INSIDE) {
        std::process::exit(inside(&words[2], &words[3..]));
    }
    #[cfg(target_arch = "x86_64")]
    if words.get(1).is_some_and(|word| word == lives::HOST) {
        std::process::exit(lives::host(&words[2]));
    }
    #[cfg(target_arch = "x86_64")]
    if words.get(1).is_some_and(|word| word == environments::HOST) {
        std::process::exit(environments::host(&words[2], &words[3]));
    }
    let lists = [
        files::TESTS,
        #[cfg(target_arch = "x86_64")]
        host::TESTS,
        network::TESTS,
        outlet::TESTS,
        loopback::TESTS,
        routes::TESTS,
        process::TESTS,
        tracing::TESTS,
        terminals::TESTS,
        kernel::TESTS,
        machine::TESTS,
        resources::TESTS,
        memory::TESTS,
        #[cfg(target_arch = "x86_64")]
        scripts::TESTS,
        #[cfg(target_arch = "x86_64")]
        zygotes::TESTS,
        #[cfg(target_arch = "x86_64")]
        environments::TESTS,
        #[cfg(target_arch = "x86_64")]
        lives::TESTS,
    ];
    let code = runner::run(&[lists.concat(), vec![WITHOUT]].concat());
    if let Some(copy) = COPY.get().and_then(|copy| copy.parent()) {
        let _ = std::fs::remove_dir_all(copy);
    }
    std::process::exit(code);
}

fn inside(name: &str, words: &[String]) -> i32 {
    let lists = [
        files::ATTEMPTS,
        #[cfg(target_arch = "x86_64")]
        host::ATTEMPTS,
        network::ATTEMPTS,
        outlet::ATTEMPTS,
        loopback::ATTEMPTS,
        routes::ATTEMPTS,
        process::ATTEMPTS,
        tracing::ATTEMPTS,
        terminals::ATTEMPTS,
        kernel::ATTEMPTS,
        machine::ATTEMPTS,
        resources::ATTEMPTS,
        memory::ATTEMPTS,
    ];
    let Some((_, attempt)) = lists
        .into_iter()
        .flatten()
        .find(|(known, _)| *known == name)
    else {
        eprintln!("no attempt {name}");
        return 2;
    };
    match attempt(words) {
        Ok(()) => 0,
        Err(how) => {
            eprintln!("{name} got through: {how}");
            1
        }
    }
}

/// A folder to work in, the jail around it, and this binary in a place that the jail shows.
pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) mounts: Mounts,
    pub(crate) timeout: Duration,
    pub(crate) limits: haft_sandbox::ProcessLimits,
}

/// How a command ended, and its output.
pub(crate) struct Seen {
    pub(crate) exit: Exit,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mounts = Mounts::workspace(folder.path());
        mounts.guards = vec![PathGuard::protect_dir(".git").at_any_depth()];
        mounts.read_only.push(binary().to_owned());
        let limits = haft_sandbox::ProcessLimits::default();
        Self {
            folder,
            mounts,
            timeout: Duration::from_secs(60),
            limits,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes an attempt inside and returns the result.
    pub(crate) fn attempt(&self, name: &str, words: &[&str]) -> Seen {
        let mut argv = vec![binary().display().to_string(), INSIDE.into(), name.into()];
        argv.extend(words.iter().map(ToString::to_string));
        self.run(CommandSpec::argv(argv, self.path()))
    }

    pub(crate) fn run(&self, spec: CommandSpec) -> Seen {
        let mut spec = spec
            .with_mounts(self.mounts.clone())
            .with_timeout(self.timeout);
        spec.limits = self.limits;
        runtime().block_on(async {
            let running = jail()
                .start(spec)
                .await
                .unwrap_or_else(|error| panic!("{error}"));
            let exit = running.wait().await;
            let out = running.stdout().text(0, 1 << 20).text;
            let err = running.stderr().text(0, 1 << 20).text;
            Seen { exit, out, err }
        })
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Returns the jail with the default configuration; this machine must provide its full strength.
fn jail() -> &'static Sandbox {
    static JAIL: OnceLock<Sandbox> = OnceLock::new();
    JAIL.get_or_init(|| {
        let require = haft_sandbox::Strength::Full;
        Sandbox::new(Config {
            require,
            ..Config::default()
        })
    })
}

static COPY: OnceLock<PathBuf> = OnceLock::new();

/// Returns a copy of this binary outside every home folder, readable by everyone.
pub(crate) fn binary() -> &'static Path {
    COPY.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("haft-escape-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let copy = folder.join("attempt");
        std::fs::copy("/proc/self/exe", &copy).unwrap();
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
        copy
    })
}

/// Asserts that an attempt of this binary inside the default jail is stopped.
pub(crate) fn stopped(name: &str, words: &[&str]) {
    let seen = Stage::new().attempt(name, words);
    assert!(
        seen.exit.success(),
        "{:?} {}{}",
        seen.exit,
        seen.out,
        seen.err
    );
}

/// Inside: the call must fail.
pub(crate) fn refused<T, E>(what: &str, done: Result<T, E>) -> Outcome {
    match done {
        Ok(_) => Err(what.into()),
        Err(_) => Ok(()),
    }
}

/// Inside: a raw system call must fail with `errno`.
pub(crate) fn fails_with(what: &str, errno: i32, done: i64) -> Outcome {
    let got = std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or_default();
    if done >= 0 {
        return Err(what.into());
    }
    if got == errno {
        Ok(())
    } else {
        Err(format!("{what}: error {got} in place of {errno}"))
    }
}

/// An attempt that can never succeed would look stopped everywhere: without a jail, these must
/// succeed.
const WITHOUT: runner::Test = ("the_attempts_get_through_without_the_jail", || {
    let sandbox = Sandbox::new(Config {
        backend: haft_sandbox::Backend::Passthrough,
        require: haft_sandbox::Strength::None,
        ..Config::default()
    });
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let secret = tempfile::NamedTempFile::new().unwrap();
    let secret = secret.path().display().to_string();
    for words in [
        vec!["users"],
        vec!["root"],
        vec!["links", &secret],
        vec!["loopback", &port],
        vec!["set_id"],
        vec!["namespaces"],
        vec!["clone3"],
        vec!["proc_links"],
        vec!["proc_writes"],
        vec!["environment"],
        vec!["proc_shows"],
        #[cfg(target_arch = "x86_64")]
        vec!["host_files", &secret],
        #[cfg(target_arch = "x86_64")]
        vec!["host_processes", "0"],
        #[cfg(target_arch = "x86_64")]
        vec!["host_ipc"],
        #[cfg(target_arch = "x86_64")]
        vec!["host_pairs"],
        vec!["memory", "private", "600"],
        vec!["memory", "shared", "600"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut argv = vec![binary().display().to_string(), INSIDE.into()];
        argv.extend(words.iter().map(ToString::to_string));
        let exit = runtime().block_on(async {
            sandbox
                .start(CommandSpec::argv(argv, folder.path()))
                .await
                .unwrap()
                .wait()
                .await
        });
        assert_eq!(exit.code, Some(1), "{words:?}");
    }
});
