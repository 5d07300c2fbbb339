//! What a caller is told of a command whose jail ends before it has reported the start, whatever the order of reports.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use haft_sandbox::{Config, Exit, PathGuard, Places, Sandbox, StartError};

use crate::runner::Test;
use crate::{line, wait};

pub(crate) const TESTS: &[Test] = &[
    (
        "start_of_a_jail_that_ends_at_once_is_told_as_its_end",
        ends_at_once,
    ),
    (
        "start_that_the_machine_fails_is_not_blamed_on_the_arguments",
        blames,
    ),
];

/// Says whether a command ended so; `None` = it did not start.
type Expected = Option<fn(&Exit) -> bool>;

/// What a supervisor does in place of its work, as bash, and how the command then ended.
const ENDS: &[(&str, &str, Expected)] = &[
    (
        "the tree used too much before the start was reported",
        r"printf '\005\200\000\000\000\000\000' >&0",
        Some(|exit| exit.over_memory && exit.code.is_none()),
    ),
    (
        "the end was reported alone",
        r"printf '\003\007\000\000\000\000\000' >&0",
        Some(|exit| exit.code == Some(7) && !exit.over_memory),
    ),
    (
        "and in this order",
        r"printf '\004\011\000\000\000\000\000\005\200\000\000\000\000\000' >&0",
        Some(|exit| exit.signal == Some(9) && exit.over_memory),
    ),
    (
        "a guard was lost",
        r"printf '\006\002\000\000\000\001\000x' >&0",
        Some(Exit::escaped_a_guard),
    ),
    (
        "the first process was killed",
        "exit 0",
        Some(|exit| exit.signal == Some(9) && !exit.over_memory),
    ),
    (
        "the supervisor was killed",
        "kill -KILL $$",
        Some(|exit| exit.signal == Some(9)),
    ),
    ("the supervisor failed", "exit 125", None),
    (
        "it said why",
        r"printf '\001\002\000\000\000\001\000s' >&0; exit 125",
        None,
    ),
];

fn ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let [program, acts, work] = ["supervisor", "acts", "work"].map(|name| folder.path().join(name));
    let script = format!(
        "#!/bin/bash\n[ -e '{acts}' ] && {{ length=$(head -c 4 <&0 | od -An -tu4); head -c $length <&0 >/dev/null; . '{acts}'; exit 0; }}\n\
         exec -a haft-jail-supervisor '{own}' \"$@\"\n",
        acts = acts.display(),
        own = std::env::current_exe().unwrap().display(),
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(&work).unwrap();
    for (what, does, expect) in ENDS {
        // Each is the first command of its sandbox, so that none uses a supervisor that was started ahead.
        let sandbox = Sandbox::new(Config {
            supervisor: Some(program.clone()),
            places: Places::declared(Vec::<std::path::PathBuf>::new(), [work.clone()]),
            ..Config::default()
        });
        let _ = fs::remove_file(&acts);
        wait(async {
            sandbox.probe().await;
            fs::write(&acts, does).unwrap();
            match (sandbox.start(line("true", &work)).await, expect) {
                (Ok(running), Some(expect)) => {
                    let exit = running.wait().await;
                    assert!(expect(&exit), "{what}: {exit:?}");
                }
                (Err(StartError::Jail { .. }), None) => {}
                (Ok(running), None) => panic!("{what}: {:?}", running.wait().await),
                (Err(error), _) => panic!("{what}: {error:?}"),
            }
        });
    }
}

/// A name that is too long for the file system is nothing that the caller of a command chose; a path that leads out of the workspace is.
fn blames() {
    let work = tempfile::tempdir().unwrap();
    let long = "n".repeat(300);
    for (guard, by_arguments) in [(long.as_str(), false), ("../out", true)] {
        let mut spec = line("true", work.path());
        spec.mounts.guards = vec![PathGuard::protect_file(guard)];
        let started = wait(crate::jail().start(spec));
        let error = started.map(drop).unwrap_err();
        assert_eq!(
            matches!(error, StartError::Spec(_)),
            by_arguments,
            "{error:?}"
        );
    }
}
