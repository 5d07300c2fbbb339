//! Rows 48 to 60 from the host's view: every script ends when it is killed, and nothing of it is left.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::runner::Test;
use crate::runtime;
use crate::scripts::{Setting, jail, run, take};

pub(crate) const TESTS: &[Test] = &[
    ("lives_31_48_50_56_57_59_end_when_they_are_ended", ends),
    ("lives_60_many_at_once_leave_nothing", at_once),
    ("lives_60_many_in_a_row_leave_nothing", in_a_row),
    ("lives_33_nobody_outlives_the_host", host_dies),
    (
        "lives_35_36_the_hosts_environment_is_not_theirs",
        environment,
    ),
];

/// Code that never ends by itself, and ignores what it can.
const ENDLESS: &[(&str, &str)] = &[
    (
        "row 31",
        "import signal, time\nfor n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n  except (OSError, ValueError): pass\nLINK.send(b'on')\ntime.sleep(1000)",
    ),
    ("row 48", "LINK.send(b'on')\nwhile True: pass"),
    (
        "row 48 with threads",
        "import threading\ndef spin():\n  while True: pass\nfor n in range(8): threading.Thread(target=spin).start()\nLINK.send(b'on')\nspin()",
    ),
    (
        "row 50",
        "import sys\nsys.setrecursionlimit(10**9)\nLINK.send(b'on')\ndef f(n): return f(n + 1)\nwhile True:\n  try: f(0)\n  except BaseException: pass",
    ),
    (
        "row 56",
        "LINK.send(b'on')\nwhile True: LINK.send(b'x' * 60000)",
    ),
    (
        "row 57 regex",
        "import re\nLINK.send(b'on')\nre.match('(a+)+$', 'a' * 60 + 'b')",
    ),
    (
        "row 57 number",
        "import sys\nLINK.send(b'on')\ngetattr(sys, 'set_int_max_str_digits', id)(0)\nstr(10 ** (10 ** 8))",
    ),
    (
        "row 59",
        "import time\nLINK.send(b'on')\ntime.sleep(100000)",
    ),
    (
        "catches everything",
        "LINK.send(b'on')\nwhile True:\n  try:\n    while True: pass\n  except BaseException: pass",
    ),
];

fn ends() {
    runtime().block_on(async {
        for setting in [Setting::Full, Setting::Bare, Setting::Fresh] {
            let jail = jail(setting);
            for (name, source) in ENDLESS {
                let script = take(&jail).await;
                assert_eq!(run(&script, source).await, "on", "{name}");
                let pid = script.pid();
                assert!(alive(pid), "{name}");
                script.kill();
                gone(&script).await;
                assert!(!alive(pid), "{name} at {setting:?}");
                // Its folder belongs to the host until the end.
                rustix::fs::openat(
                    script.folder(),
                    "after",
                    rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY,
                    rustix::fs::Mode::RUSR,
                )
                .unwrap();
            }
            // Dropping a script kills it too.
            let script = take(&jail).await;
            assert_eq!(run(&script, ENDLESS[1].1).await, "on");
            let watch = rustix::process::pidfd_open(
                Pid::from_raw(script.pid().cast_signed()).unwrap(),
                rustix::process::PidfdFlags::empty(),
            );
            drop(script);
            wait_for(watch.unwrap()).await;
            jail.shut_down().await;
        }
    });
}

async fn gone(script: &haft_sandbox::code::Script) {
    let ended = tokio::time::timeout(Duration::from_secs(30), script.ended()).await;
    assert!(ended.is_ok(), "it lives on");
}

async fn wait_for(pidfd: std::os::fd::OwnedFd) {
    let fd = pidfd.as_fd().try_clone_to_owned().unwrap();
    let waited = tokio::task::spawn_blocking(move || {
        let mut fds = [rustix::event::PollFd::new(
            &fd,
            rustix::event::PollFlags::IN,
        )];
        let limit = rustix::event::Timespec {
            tv_sec: 30,
            tv_nsec: 0,
        };
        rustix::event::poll(&mut fds, Some(&limit)).unwrap()
    });
    assert_eq!(waited.await.unwrap(), 1, "it lives on");
}

/// Returns whether a process is running; a zombie is not.
fn alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

/// Returns what this process holds: descriptors, visible mounts, child processes, private folders.
fn held() -> [usize; 4] {
    let count = |path: &str| std::fs::read_dir(path).unwrap().count();
    let own = format!("haft-{}-", std::process::id());
    let folders = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let folders = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    [
        count("/proc/self/fd"),
        mounts.lines().count(),
        below(std::process::id()),
        folders.count(),
    ]
}

/// Returns the number of processes below one, in the whole tree.
fn below(pid: u32) -> usize {
    let mut count = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_ascii_whitespace() {
            count += 1 + below(child.parse().unwrap());
        }
    }
    count
}

/// Waits until no number is greater than its limit; what earlier tests left may still be ending meanwhile.
fn settles(limits: [usize; 4]) {
    let within = |held: [usize; 4]| held.iter().zip(limits).all(|(held, limit)| *held <= limit);
    let until = Instant::now() + Duration::from_secs(30);
    while !within(held()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let held = held();
    assert!(
        within(held),
        "descriptors, mounts, processes, folders: {held:?} of {limits:?}"
    );
}

fn at_once() {
    for setting in [Setting::Full, Setting::Bare] {
        let runtime = runtime();
        // slow on purpose: the runtime's timer exists from now on.
        runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
        let before = held();
        runtime.block_on(async {
            let jail = jail(setting);
            let mut scripts = Vec::new();
            for number in 0..200 {
                let script = take(&jail).await;
                let source = format!(
                    "import os\nopen(FOLDER + '/own', 'w').write('{number}')\nLINK.send(b'on')\n\
                     LINK.recv(10)\nassert os.listdir(FOLDER) == ['own']\n\
                     assert open(FOLDER + '/own').read() == '{number}'"
                );
                assert_eq!(run(&script, &source).await, "on");
                scripts.push(script);
            }
            for script in &scripts {
                assert_eq!(run(script, "go on").await, "done");
            }
            drop(scripts);
            jail.shut_down().await;
        });
        settles(before);
    }
}

fn in_a_row() {
    let runtime = runtime();
    let before = held();
    runtime.block_on(async {
        let jail = jail(Setting::Full);
        for _ in 0..300 {
            let script = take(&jail).await;
            let source = "open(FOLDER + '/x', 'w').write('x')";
            assert_eq!(run(&script, source).await, "done");
        }
        // One zygote with its jail, the idle children, and nothing else, once the dead are reaped.
        settles([usize::MAX, usize::MAX, 8, usize::MAX]);
        jail.shut_down().await;
    });
    settles(before);
}

/// The argument that makes this binary a host to be killed.
pub(crate) const HOST: &str = "--host";

/// Runs such a host: takes scripts, prints their process IDs, runs a source in one, and never ends by itself.
pub(crate) fn host(source: &str) -> i32 {
    let runtime = runtime();
    runtime.block_on(async {
        let jail = jail(Setting::Full);
        let (one, other) = (take(&jail).await, take(&jail).await);
        println!("{} {}", one.pid(), other.pid());
        println!("{}", run(&one, source).await.replace('\n', " "));
        assert_eq!(run(&other, ENDLESS[1].1).await, "on");
        println!("ready");
        std::future::pending::<()>().await;
    });
    1
}

/// Starts such a host in its own process; returns the lines that it printed.
fn with_host(source: &str, env: &[(&str, &str)]) -> (std::process::Child, Vec<String>) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a host to kill, with an environment of its own"
    )]
    let mut command = std::process::Command::new("/proc/self/exe");
    let mut child = command
        .args([HOST, source])
        .envs(env.iter().copied())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let out = std::io::BufReader::new(child.stdout.take().unwrap());
    let lines = std::io::BufRead::lines(out).map_while(Result::ok);
    let mut said = Vec::new();
    for line in lines {
        if line == "ready" {
            break;
        }
        said.push(line);
    }
    (child, said)
}

fn host_dies() {
    let (mut child, said) = with_host("LINK.send(b'on')", &[]);
    let pids: Vec<u32> = said[0].split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(alive(pids[1]), "{said:?}");
    // A snapshot is incomplete while processes start and exit.
    let until = Instant::now() + Duration::from_secs(30);
    while below(child.id()) < 5 {
        assert!(Instant::now() < until, "{}", below(child.id()));
        std::thread::sleep(Duration::from_millis(10));
    }
    let host = Pid::from_child(&child);
    kill_process(host, Signal::KILL).unwrap();
    child.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while pids.iter().any(|pid| alive(*pid)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!pids.iter().any(|pid| alive(*pid)));
}

fn environment() {
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    for name in ["sitecustomize.py", "usercustomize.py", "start.py"] {
        std::fs::write(folder.path().join(name), "import sys\nsys.came_in = 1\n").unwrap();
    }
    let path = folder.path().display().to_string();
    let start = format!("{path}/start.py");
    let env = [
        ("PYTHONPATH", path.as_str()),
        ("PYTHONSTARTUP", &start),
        ("PYTHONHOME", "/nowhere"),
        ("PYTHONINSPECT", "1"),
        ("SECRET", "in-the-environment-of-the-host"),
        ("TZ", "Europe/Berlin"),
    ];
    let source = format!(
        "{}\nimport time\nassert not hasattr(sys, 'came_in') and {path:?} not in sys.path\n\
         assert os.environ.get('TZ') == 'Europe/Berlin'\nrow_36_no_secret()\nrow_35_paths_are_not_ours()\n",
        crate::scripts::ATTEMPTS
    );
    let (mut child, said) = with_host(&source, &env);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(said.get(1).map(String::as_str), Some("done"), "{said:?}");
}
