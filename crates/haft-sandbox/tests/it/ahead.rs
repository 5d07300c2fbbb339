//! What is prepared in advance: supervisors of commands, and a CPU for a script that starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_sandbox::code::{CodeConfig, CodeJail, LibrarySet};
use haft_sandbox::{Config, MemoryBound, Network, Places, Sandbox, Strength};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::runner::Test;
use crate::{jail, line, run, wait};

pub(crate) const TESTS: &[Test] = &[
    (
        "ahead_a_supervisor_waits_after_two_commands_and_ends_with_the_sandbox",
        waits,
    ),
    (
        "ahead_a_command_of_a_supervisor_made_ahead_has_all_namespaces",
        confined,
    ),
    ("ahead_a_prepared_root_is_the_same_root", same_root),
    (
        "ahead_a_prepared_root_that_does_not_fit_is_removed",
        unfit_root,
    ),
    ("ahead_a_supervisor_that_died_is_not_used", died),
    (
        "ahead_a_first_process_that_died_is_not_used",
        first_process_died,
    ),
    (
        "ahead_a_command_is_held_to_its_own_limit_of_memory",
        own_limit,
    ),
    (
        "ahead_a_script_begins_on_another_cpu_and_has_all_afterwards",
        cpus,
    ),
];

/// A sandbox that records its supervisors: the ID of each, and whether it was started ahead.
struct Scene {
    folder: TempDir,
    sandbox: Sandbox,
}

impl Scene {
    fn new() -> Self {
        Self::at(Strength::Full)
    }

    /// Creates one whose commands are confined by no more than this.
    fn at(strength: Strength) -> Self {
        Self::with(strength, |_| Vec::new())
    }

    /// Creates one whose commands see these folders, too, given the workspace.
    fn with(strength: Strength, folders: impl FnOnce(&Path) -> Vec<PathBuf>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("supervisor");
        let list = folder.path().join("list");
        let own = std::env::current_exe().unwrap();
        let script = format!(
            "#!/bin/bash\necho \"$$ $1\" >>'{}'\nexec -a haft-jail-supervisor '{}' \"$@\"\n",
            list.display(),
            own.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let extra_read_only = folders(&folder.path().join("work"));
        let sandbox = Sandbox::new(Config {
            supervisor: Some(program),
            places: Places::declared(Vec::<PathBuf>::new(), [folder.path().join("work")]),
            extra_read_only,
            at_most: Some(strength),
            require: Strength::NoProc,
            ..Config::default()
        });
        // So that the probe's own supervisors are not counted.
        wait(async { sandbox.probe().await.clone() });
        fs::write(list, "").unwrap();
        Self { folder, sandbox }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn says(&self, words: &str, network: Network) -> String {
        let mut spec = line(words, &self.work());
        spec.network = network;
        let (exit, stdout, stderr) = run(&self.sandbox, spec);
        assert!(exit.success(), "{exit:?} {stderr}");
        stdout
    }

    fn started(&self, ahead: bool) -> Vec<i32> {
        let list = fs::read_to_string(self.folder.path().join("list")).unwrap();
        let lines = list
            .lines()
            .filter(|line| line.ends_with(" ahead") == ahead);
        let number = |line: &str| line.split(' ').next()?.parse().ok();
        lines.filter_map(number).collect()
    }

    /// Returns the waiting supervisor once `count` were started ahead.
    fn waiting(&self, count: usize) -> i32 {
        until(|| self.started(true).len() == count);
        self.started(true)[count - 1]
    }
}

fn until(done: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it does not come to that");
}

fn is_there(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn waits() {
    let scene = Scene::new();
    let go = || scene.says("true", Network::None);
    go();
    assert_eq!(scene.started(true), Vec::<i32>::new());
    go();
    let first = scene.waiting(1);
    go();
    let second = scene.waiting(2);
    // The third command used the first of them, which exited with it.
    assert_eq!(scene.started(false).len(), 2);
    until(|| !is_there(first));
    let inside = first_process(second);
    assert!(is_there(second));
    drop(scene);
    until(|| !is_there(second) && !is_there(inside));
}

/// Returns the first process of the jail that a supervisor has prepared, once there is one.
fn first_process(supervisor: i32) -> i32 {
    let children = || {
        let list = format!("/proc/{supervisor}/task/{supervisor}/children");
        let list = fs::read_to_string(list).unwrap_or_default();
        let words = list.split_ascii_whitespace();
        words
            .map(|word| word.parse().unwrap())
            .collect::<Vec<i32>>()
    };
    until(|| !children().is_empty());
    assert_eq!(children().len(), 1);
    children()[0]
}

/// Also what it tells of the limits, which may differ from those that it was prepared for.
fn same_root() {
    same_root_at(Strength::Full);
    same_root_at(Strength::NoProc);
}

fn same_root_at(strength: Strength) {
    let scene = Scene::at(strength);
    let list = "find / -path '/proc/[0-9]*' -prune -o -path '/proc/t*self' -prune -o -path /usr -prune -o -print 2>/dev/null | sort; \
        cat /etc/passwd /dev/null /proc/meminfo; mount | wc -l; ls /proc/self/fd; ls /proc | grep -c '^[0-9]'; hostname; ulimit -a; umask";
    let on_demand = scene.says(list, Network::None);
    scene.says("true", Network::None);
    scene.waiting(1);
    assert_eq!(scene.says(list, Network::None), on_demand);
    scene.waiting(2);
    let mut spec = line(
        "cat /sys/fs/cgroup/memory.max; grep MemTotal /proc/meminfo",
        &scene.work(),
    );
    spec.limits.memory_mb = Some(256);
    let (exit, stdout, stderr) = run(&scene.sandbox, spec);
    assert!(exit.success(), "{exit:?} {stderr}");
    assert_eq!(stdout, "268435456\nMemTotal:         262144 kB\n");
    assert_eq!(scene.started(false).len(), 2);
}

/// A folder of every command in the workspace, which is mounted later than what is prepared. One below `/tmp` is prepared with that.
fn unfit_root() {
    let in_tmp = tempfile::tempdir_in("/tmp").unwrap();
    for is_in_work in [false, true] {
        let mut tools = in_tmp.path().to_owned();
        let scene = Scene::with(Strength::Full, |work| {
            if is_in_work {
                tools = work.join("tools");
                fs::create_dir(&tools).unwrap();
            }
            fs::set_permissions(&tools, fs::Permissions::from_mode(0o755)).unwrap();
            fs::write(tools.join("data"), "tool").unwrap();
            vec![tools.clone()]
        });
        let shown = tools.display();
        let read = format!(
            "cat '{shown}/data'; touch '{shown}/x' 2>&1 | grep -c Read-only; ls /dev | wc -l"
        );
        let on_demand = scene.says(&read, Network::None);
        assert!(on_demand.starts_with("tool1\n"), "{on_demand}");
        scene.says("true", Network::None);
        scene.waiting(1);
        assert_eq!(scene.says(&read, Network::None), on_demand);
        assert_eq!(scene.started(false).len(), 2);
    }
}

fn confined() {
    let scene = Scene::new();
    let namespaces = "cd /proc/self/ns && readlink cgroup ipc mnt net pid user uts";
    let on_demand = scene.says(namespaces, Network::None);
    scene.says("true", Network::None);
    scene.waiting(1);
    // With the host's network, the waiting supervisor is not used.
    let names = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];
    let host: Vec<String> = names
        .iter()
        .map(|name| fs::read_link(format!("/proc/self/ns/{name}")).unwrap())
        .map(|link| link.display().to_string())
        .collect();
    let with_host = scene.says(namespaces, Network::Host);
    assert_eq!(scene.started(false).len(), 3);
    assert_eq!(with_host.lines().nth(3), Some(host[3].as_str()));
    let ahead = scene.says(namespaces, Network::None);
    assert_eq!(scene.started(false).len(), 3);
    for (index, name) in names.iter().enumerate() {
        let own = ahead.lines().nth(index).unwrap();
        assert!(own.starts_with(name), "{ahead}");
        assert_ne!(own, host[index]);
        assert_ne!(on_demand.lines().nth(index), Some(host[index].as_str()));
    }
    // It sees mounts as of the command's start: a folder created later is visible.
    fs::create_dir(scene.work().join("later")).unwrap();
    let seen = scene.says("ls; id -u; cat /proc/self/uid_map", Network::None);
    assert!(seen.starts_with("later\n"), "{seen}");
}

fn died() {
    let scene = Scene::new();
    scene.says("true", Network::None);
    scene.says("true", Network::None);
    let waiting = scene.waiting(1);
    let inside = first_process(waiting);
    kill_process(Pid::from_raw(waiting).unwrap(), Signal::KILL).unwrap();
    until(|| has_ended(waiting) && has_ended(inside));
    assert_eq!(scene.says("echo here", Network::None), "here\n");
    assert_eq!(scene.started(false).len(), 3);
}

fn first_process_died() {
    let scene = Scene::new();
    scene.says("true", Network::None);
    scene.says("true", Network::None);
    let waiting = scene.waiting(1);
    let inside = first_process(waiting);
    kill_process(Pid::from_raw(inside).unwrap(), Signal::KILL).unwrap();
    until(|| has_ended(waiting));
    assert_eq!(scene.says("echo here", Network::None), "here\n");
    assert_eq!(scene.started(false).len(), 3);
}

fn has_ended(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// The jail was prepared for a command with more; and one without a limit is not held to that of the command before.
fn own_limit() {
    let scene = Scene::new();
    let held = |mib, then| {
        // `tail` keeps what it has read until it can pass that on.
        let hold = format!("head -c 150m /dev/zero | tail -c 150m | {then}");
        let mut spec = line(&hold, &scene.work());
        spec.limits.memory_mb = mib;
        run(&scene.sandbox, spec)
    };
    if wait(async { scene.sandbox.probe().await.memory }) == MemoryBound::Process {
        print!("(the memory of a tree cannot be limited here) ");
        return;
    }
    for (mib, fits) in [
        (Some(512), true),
        (Some(512), true),
        (Some(64), false),
        (Some(512), true),
        (Some(64), false),
        (None, true),
        (Some(64), false),
        // Less than the jail itself needs: it ends before it has told of its start.
        (Some(1), false),
        (Some(1), false),
        (Some(512), true),
    ] {
        let (exit, stdout, stderr) = held(mib, if fits { "wc -c" } else { "sleep 50" });
        let shown = format!("{mib:?}: {exit:?} {stdout} {stderr}");
        assert_eq!(exit.over_memory, !fits, "{shown}");
        assert!(!fits || stdout == "157286400\n", "{shown}");
    }
}

/// Reports on which CPUs it may run; the content of messages does not matter.
const RUNTIME: &str = r#"
import os, socket
def warm(): pass
def main(bridge, folder):
    link = socket.socket(fileno=bridge)
    while link.recv(65536):
        link.send(b"%d" % len(os.sched_getaffinity(0)))
"#;

fn cpus() {
    wait(async {
        let config = CodeConfig {
            runtime: RUNTIME.into(),
            ..CodeConfig::default()
        };
        let code = CodeJail::new(jail(), config);
        let script = code.take(LibrarySet::Plain).await.unwrap();
        let own = rustix::thread::sched_getaffinity(None).unwrap().count();
        let mut frame = [0; 64];
        let mut said = Vec::new();
        for _ in 0..3 {
            script.try_send(b"how many").unwrap();
            // Polled instead of awaited.
            let length = loop {
                match script.try_recv(&mut frame) {
                    Ok(length) => break length,
                    Err(_) => std::thread::yield_now(),
                }
            };
            let text = std::str::from_utf8(&frame[..length]).unwrap();
            said.push(text.parse::<u32>().unwrap());
        }
        let first = if own > 1 { own - 1 } else { own };
        assert_eq!(said, [first, own, own]);
        drop(script);
        code.shut_down().await;
    });
}
