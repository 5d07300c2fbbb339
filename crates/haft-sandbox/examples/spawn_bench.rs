//! Measures what starting `/bin/true` costs: with plain `posix_spawn`, without the jail, and in the jail; interleaved.
//!
//! `cargo run --release -p haft-sandbox --example spawn_bench [ROUNDS]`
//!
//! Back to back, a jail's start also waits for what was begun for it when the one before had started. After a pause, that is ready, as
//! between the commands of an agent.
#![expect(unsafe_code, reason = "the yardstick is the system's own posix_spawn")]

use std::io::Write;
use std::time::{Duration, Instant};

use std::sync::Arc;

use haft_sandbox::{
    Backend, CommandSpec, Config, Mounts, Network, Outlet, PathGuard, Sandbox, ServeFuture,
    SharedLoopback,
};
use tokio::net::TcpStream;

/// Longer than it takes to prepare the next jail.
const PAUSE: Duration = Duration::from_millis(25);
/// As many as haft takes connections at, to every address.
const PORTS: std::ops::Range<u16> = 9000..9064;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    haft_sandbox::enter();
    let rounds = std::env::args()
        .nth(1)
        .map_or(Ok(200), |word| word.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(compare(rounds))
}

/// Takes connections to every address, as with logins, and answers none.
#[derive(Debug)]
struct Silent;

impl Outlet for Silent {
    fn serve(&self, connection: TcpStream) -> ServeFuture {
        Box::pin(async move { drop(connection) })
    }

    fn ports(&self) -> Vec<u16> {
        PORTS.collect()
    }
}

/// What is measured, and whether there is a pause before.
struct Row {
    name: &'static str,
    sandbox: Sandbox,
    spec: CommandSpec,
    pauses: bool,
    times: Vec<Duration>,
}

fn rows(folder: &std::path::Path) -> Vec<Row> {
    let passthrough = Sandbox::new(Config {
        backend: Backend::Passthrough,
        require: haft_sandbox::Strength::None,
        ..Config::default()
    });
    let jail = Sandbox::new(Config::default());
    let spec = CommandSpec::argv(["/bin/true"], folder);
    let plain = spec.clone().with_mounts(Mounts::workspace(folder));
    let mut guarded = plain.clone();
    guarded.mounts.guards = vec![
        PathGuard::protect_dir(".git").at_any_depth(),
        PathGuard::protect_dir(".vscode"),
        PathGuard::protect_dir(".claude"),
        PathGuard::protect_file(".envrc"),
        PathGuard::protect_file("haft.toml"),
    ];
    let mut joined = plain.clone();
    joined.network = Network::Outlet(Arc::new(Silent));
    joined.loopback = Some(SharedLoopback::default());
    let row = |name, sandbox: &Sandbox, spec: &CommandSpec, pauses| Row {
        name,
        sandbox: sandbox.clone(),
        spec: spec.clone(),
        pauses,
        times: Vec::new(),
    };
    vec![
        row("passthrough", &passthrough, &spec, false),
        row("jail", &jail, &plain, false),
        row("jail, five guards", &jail, &guarded, false),
        row("jail, after a pause", &jail, &plain, true),
        row("five guards, after a pause", &jail, &guarded, true),
        row("services and logins, after a pause", &jail, &joined, true),
    ]
}

async fn compare(rounds: usize) -> Fallible<()> {
    let folder = std::env::temp_dir().join(format!("haft-bench-{}", std::process::id()));
    std::fs::create_dir_all(folder.join(".git"))?;
    let mut rows = rows(&folder);
    let mut base = Vec::new();
    for _ in 0..rounds + 5 {
        base.push(posix_spawn()?);
        for row in &mut rows {
            if row.pauses {
                tokio::time::sleep(PAUSE).await;
            }
            let started = Instant::now();
            let exit = row.sandbox.start(row.spec.clone()).await?.wait().await;
            row.times.push(started.elapsed());
            if !exit.success() {
                return Err(format!("{exit:?}").into());
            }
        }
    }
    std::fs::remove_dir_all(folder)?;
    let base = median("posix_spawn", &mut base, None)?;
    for row in &mut rows {
        median(row.name, &mut row.times, Some(base))?;
    }
    Ok(())
}

/// Prints a row and returns its median.
fn median(name: &str, times: &mut Vec<Duration>, base: Option<Duration>) -> Fallible<Duration> {
    // In the first rounds the machine is cold and the jail is not probed.
    times.drain(..5);
    times.sort_unstable();
    let median = times[times.len() / 2];
    let base = base.unwrap_or(median);
    writeln!(
        std::io::stdout().lock(),
        "{name:34} min {:7.1} us  median {:7.1} us  {:5.2}x  +{:.2} ms",
        times[0].as_secs_f64() * 1e6,
        median.as_secs_f64() * 1e6,
        median.as_secs_f64() / base.as_secs_f64(),
        median.saturating_sub(base).as_secs_f64() * 1e3,
    )?;
    Ok(median)
}

fn posix_spawn() -> Fallible<Duration> {
    let argv = [c"/bin/true".as_ptr().cast_mut(), std::ptr::null_mut()];
    let environ = [std::ptr::null_mut()];
    let (mut child, mut status) = (0, 0);
    let started = Instant::now();
    // SAFETY: the arrays end with null, hold C strings and outlive the calls.
    let failed = unsafe {
        libc::posix_spawn(
            &raw mut child,
            argv[0],
            std::ptr::null(),
            std::ptr::null(),
            argv.as_ptr(),
            environ.as_ptr(),
        ) != 0
            || libc::waitpid(child, &raw mut status, 0) != child
    };
    if failed || status != 0 {
        return Err("posix_spawn".into());
    }
    Ok(started.elapsed())
}
