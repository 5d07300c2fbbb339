//! Measures what starting `/bin/true` costs: with plain `posix_spawn`, without the jail, and in the jail; interleaved.
//!
//! `cargo run --release -p haft-sandbox --example spawn_bench [ROUNDS]`
#![expect(unsafe_code, reason = "the yardstick is the system's own posix_spawn")]

use std::io::Write;
use std::time::{Duration, Instant};

use haft_sandbox::{Backend, CommandSpec, Config, Mounts, PathGuard, Sandbox};

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

async fn compare(rounds: usize) -> Fallible<()> {
    let folder = std::env::temp_dir().join(format!("haft-bench-{}", std::process::id()));
    std::fs::create_dir_all(folder.join(".git"))?;
    let passthrough = Sandbox::new(Config {
        backend: Backend::Passthrough,
        require: haft_sandbox::Strength::None,
        ..Config::default()
    });
    let jail = Sandbox::new(Config::default());
    let spec = CommandSpec::argv(["/bin/true"], &folder);
    let plain = spec.clone().with_mounts(Mounts::workspace(&folder));
    let mut guarded = plain.clone();
    guarded.mounts.guards = vec![
        PathGuard::protect_dir(".git").at_any_depth(),
        PathGuard::protect_dir(".vscode"),
        PathGuard::protect_dir(".claude"),
        PathGuard::protect_file(".envrc"),
        PathGuard::protect_file("haft.toml"),
    ];
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..rounds + 5 {
        times[0].push(posix_spawn()?);
        for (index, (sandbox, spec)) in [(&passthrough, &spec), (&jail, &plain), (&jail, &guarded)]
            .into_iter()
            .enumerate()
        {
            let started = Instant::now();
            let exit = sandbox.start(spec.clone()).await?.wait().await;
            times[index + 1].push(started.elapsed());
            if !exit.success() {
                return Err(format!("{exit:?}").into());
            }
        }
    }
    std::fs::remove_dir_all(folder)?;
    let mut out = std::io::stdout().lock();
    let names = ["posix_spawn", "passthrough", "jail", "jail, five guards"];
    let mut base = Duration::ZERO;
    for (name, times) in names.into_iter().zip(&mut times) {
        // In the first rounds the machine is cold and the jail is not probed.
        times.drain(..5);
        times.sort_unstable();
        let median = times[times.len() / 2];
        if base.is_zero() {
            base = median;
        }
        writeln!(
            out,
            "{name:18} min {:7.1} us  median {:7.1} us  {:5.2}x  +{:.2} ms",
            times[0].as_secs_f64() * 1e6,
            median.as_secs_f64() * 1e6,
            median.as_secs_f64() / base.as_secs_f64(),
            median.saturating_sub(base).as_secs_f64() * 1e3,
        )?;
    }
    Ok(())
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
