//! Starting `/bin/true` and waiting for its end: free and jailed, compared to `posix_spawn`.
//!
//! `spawn ROUNDS HAFT`: the program whose jail is measured, starting its jails as a process that uses it does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haft_sandbox::{Backend, CommandSpec, Config, Mounts, Places, Sandbox};
use measure::{Row, fact, interleave, wall_ms};

/// Number of starts per round: their mean is a round's value.
const STARTS: usize = 4;

fn main() {
    let supervisor: PathBuf = std::env::args()
        .nth(2)
        .expect("usage: spawn ROUNDS HAFT")
        .into();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    let free = Sandbox::new(Config {
        backend: Backend::Passthrough,
        require: haft_sandbox::Strength::None,
        ..Config::default()
    });
    let jail = Sandbox::new(Config {
        supervisor: Some(supervisor),
        places: Places::declared(Vec::<PathBuf>::new(), [here.to_owned()]),
        ..Config::default()
    });
    fact("jail", runtime.block_on(jail.probe()).detail());
    let start = |sandbox: &Sandbox| runtime.block_on(once(sandbox, here));
    let many = |one: &dyn Fn()| {
        let (ms, ()) = wall_ms(|| (0..STARTS).for_each(|_| one()));
        ms * 1e3 / STARTS as f64
    };
    let peer = Row::new("posix_spawn/true", "us");
    let ours = Row::new("haft/true/passthrough", "us");
    let jailed = Row::new("haft/true/jail", "us");
    interleave(
        measure::rounds(15),
        vec![
            (peer, Box::new(|| many(&|| posix_spawn(here)))),
            (ours, Box::new(|| many(&|| start(&free)))),
            (jailed, Box::new(|| many(&|| start(&jail)))),
        ],
    );
}

async fn once(sandbox: &Sandbox, folder: &Path) {
    let spec = CommandSpec::argv(["/bin/true"], folder).with_mounts(Mounts::workspace(folder));
    let running = sandbox.start(spec).await.expect("it starts");
    let exit = running.wait().await;
    assert!(exit.success(), "{exit:?}");
}

/// The standard library starts a program given by its path with `posix_spawn`; output goes to pipes, like ours.
fn posix_spawn(folder: &Path) {
    let output = Command::new("/bin/true")
        .env_clear()
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    assert!(output.status.success());
}
