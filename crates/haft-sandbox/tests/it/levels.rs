//! Strengths: found by trying, refused below the minimum, never lowered silently.

use std::fs;
use std::path::Path;

use haft_sandbox::{Backend, Config, PathGuard, Sandbox, StartError, Strength};

use crate::runner::Test;
use crate::{Alive, jail, line, run, wait};

pub(crate) const TESTS: &[Test] = &[
    ("this_machine_gives_the_full_strength", full),
    ("a_weaker_machine_is_refused_below_the_floor", refused),
    ("strengths_are_ordered_and_read_back", words),
    ("the_level_without_proc_confines", no_proc),
    ("the_level_without_namespaces_confines", bare),
    ("passthrough_is_what_it_says", passthrough),
    (
        "f7_passthrough_needs_the_floor_none_in_so_many_words",
        floor,
    ),
    (
        "another_runtime_does_not_wait_for_a_probe_of_this_one",
        other_runtime,
    ),
];

/// Before `enter`, the jail must refuse with the error that says what to do; returns whether it did not.
/// Called by `main` because there is no other time for it.
pub(crate) fn before_enter() -> i32 {
    let is_supervisor = std::env::args()
        .next()
        .is_some_and(|name| name == "haft-jail-supervisor");
    if is_supervisor {
        return 0;
    }
    let folder = tempfile::tempdir().unwrap();
    let error = wait(Sandbox::new(Config::default()).start(line("true", folder.path())));
    let said = error
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    let refused = said.contains("call haft_sandbox::enter() first in main");
    println!(
        "test the_jail_without_enter_is_refused ... {}",
        if refused { "ok" } else { "FAILED" }
    );
    i32::from(!refused)
}

pub(crate) fn at_most(at_most: Strength, require: Strength) -> Sandbox {
    Sandbox::new(Config {
        at_most: Some(at_most),
        require,
        ..Config::default()
    })
}

fn full() {
    wait(async {
        let probe = jail().probe().await;
        assert_eq!(probe.strength, Strength::Full, "{:?}", probe.missing);
        assert!(probe.landlock_abi >= 1);
        assert!(
            probe.detail().starts_with("full (landlock "),
            "{}",
            probe.detail()
        );
    });
}

fn refused() {
    let folder = tempfile::tempdir().unwrap();
    for (most, require) in [
        (Strength::NoProc, Strength::Full),
        (Strength::LandlockSeccomp, Strength::NoProc),
        (Strength::LandlockSeccomp, Strength::Full),
        (Strength::None, Strength::LandlockSeccomp),
        // The minimum alone never leads to running without a jail: that takes passthrough, chosen by name.
        (Strength::None, Strength::None),
    ] {
        let error = wait(at_most(most, require).start(line("touch ran", folder.path())));
        let Err(StartError::TooWeak { have, why, .. }) = error else {
            panic!("{most} {require}: {error:?}");
        };
        assert_eq!(have, most);
        assert!(!why.is_empty());
    }
    assert!(!folder.path().join("ran").exists());
}

fn words() {
    let all = ["none", "landlock+seccomp", "no-proc", "full"];
    let read = all.map(|word| word.parse::<Strength>().unwrap());
    assert!(read.is_sorted());
    assert_eq!(read.map(|strength| strength.to_string()), all);
    assert!("strong".parse::<Strength>().is_err());
    assert_eq!(Strength::default(), Strength::NoProc);
}

fn no_proc() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = at_most(Strength::NoProc, Strength::NoProc);
    let script = "[ ! -e /proc/self ] && grep -q MemTotal /proc/meminfo && ! ls /root/.bashrc && ! touch /usr/x && echo ok > made";
    let (exit, out, err) = run(&sandbox, line(script, folder.path()));
    assert!(exit.success(), "{out}{err}");
    assert_eq!(
        fs::read_to_string(folder.path().join("made")).unwrap(),
        "ok\n"
    );
}

fn bare() {
    let sandbox = at_most(Strength::LandlockSeccomp, Strength::LandlockSeccomp);
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(
        outside.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    for path in [".git/config", ".haft/state", "src/main"] {
        fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
        fs::write(folder.path().join(path), "before").unwrap();
    }
    let check = |script: &str| {
        let mut spec = line(script, folder.path());
        spec.mounts.guards = vec![
            PathGuard::protect_dir(".git").at_any_depth(),
            PathGuard::protect_file("haft.toml"),
            PathGuard::hide_dir(".haft"),
        ];
        let (exit, out, err) = run(&sandbox, spec);
        assert!(exit.success(), "{script}: {exit:?} {out}{err}");
    };
    let secret = secret.display();
    for script in [
        "echo after > src/main && cat src/main && echo x > $TMPDIR/x && cat $TMPDIR/x",
        "cat .git/config && ! echo x > .git/config && ! rm .git/config && ! touch .git/x",
        "! cat .haft/state",
        "! touch haft.toml",
        "! mv .git x",
        "! ln -s /tmp .git/x",
        "! ls /root",
        "! ls /home",
        "! ls /tmp",
        "! cat /etc/passwd",
        "! cat /proc/1/environ",
        "! ls /dev/shm",
        "! touch /usr/x",
        "! exec 3<>/dev/tcp/127.0.0.1/22",
        "kill -0 $$ && ! kill -0 1",
        "! python3 -c 'import socket; socket.socket()'",
        "! unshare -U true",
    ] {
        check(script);
    }
    check(&format!("! cat {secret}"));
    // A file that does not exist yet: at this level, the timestamps of an existing one can be changed (see the guide).
    check(&format!("! touch {secret}.new"));
    // Here too, everything is killed with the command, by adoption.
    let mut alive = Alive::new(&folder.path().join("src"));
    check("exec 9>src/alive; (setsid sh -c 'sleep 1; echo x > src/late' &) ; true");
    wait(alive.ended());
    assert!(!folder.path().join("src/late").exists());
    assert_eq!(
        fs::read_to_string(folder.path().join(".git/config")).unwrap(),
        "before"
    );
    no_scratch_left();
}

/// The private folder that replaced `/tmp` is gone.
fn no_scratch_left() {
    let left = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let own = format!("haft-{}-", std::process::id());
    assert_eq!(
        left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
            .count(),
        0
    );
}

fn passthrough() {
    let sandbox = Sandbox::new(Config {
        backend: Backend::Passthrough,
        require: haft_sandbox::Strength::None,
        ..Config::default()
    });
    wait(async {
        let running = sandbox
            .start(line("env; ls /", Path::new("/")))
            .await
            .unwrap();
        assert_eq!(running.strength(), Strength::None);
        assert!(running.wait().await.success());
        let out = crate::text(running.stdout());
        assert!(out.contains("PATH=") && out.contains("\nproc\n"), "{out}");
        assert!(!out.contains("CARGO"), "{out}");
    });
}

/// The minimum applies to every backend; what the host runs itself is jailed whatever the backend.
fn floor() {
    let sandbox = |require| {
        Sandbox::new(Config {
            backend: Backend::Passthrough,
            require,
            ..Config::default()
        })
    };
    let folder = tempfile::tempdir().unwrap();
    let spec = || line("touch ran; cat /proc/1/environ", folder.path());
    for require in [
        Strength::Full,
        Strength::default(),
        Strength::LandlockSeccomp,
    ] {
        let error = wait(sandbox(require).start(spec())).unwrap_err();
        let StartError::TooWeak { have, need, .. } = error else {
            panic!("{require}: {error:?}");
        };
        assert_eq!((have, need), (Strength::None, require));
    }
    assert!(!folder.path().join("ran").exists());
    wait(async {
        let running = sandbox(Strength::None).start_jailed(spec()).await.unwrap();
        assert!(!running.wait().await.success());
        assert_eq!(running.strength(), Strength::Full);
    });
    assert!(folder.path().join("ran").exists());
}

/// A thread that blocks one runtime, and probes in another one, does not wait for what the first has started.
fn other_runtime() {
    let sandbox = Sandbox::new(Config::default());
    wait(async {
        let mut probing = std::pin::pin!(sandbox.probe());
        // In progress, and not polled while this thread waits.
        std::future::poll_fn(|context| {
            let _ = probing.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
        let other = sandbox.for_other_runtime();
        let tried = std::thread::spawn(move || wait(async { other.probe().await.strength }));
        let strength = tried.join().unwrap();
        assert_eq!(probing.await.strength, strength);
        // What the other has found holds for this one, which need not probe.
        let sandbox = Sandbox::new(Config::default());
        let other = sandbox.for_other_runtime();
        let found = std::thread::spawn(move || wait(async { other.probe().await.clone() }));
        let found = found.join().unwrap();
        let mut known = std::pin::pin!(sandbox.probe());
        std::future::poll_fn(|context| {
            assert_eq!(known.as_mut().poll(context), std::task::Poll::Ready(&found));
            std::task::Poll::Ready(())
        })
        .await;
    });
}
