//! What is prepared in advance: supervisors of commands, and a CPU for a script that starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_sandbox::code::{CodeConfig, CodeJail, LibrarySet};
use haft_sandbox::{Config, Network, Places, Sandbox};
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
        Self::with(Vec::new())
    }

    fn with(extra_read_only: Vec<PathBuf>) -> Self {
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
        let sandbox = Sandbox::new(Config {
            supervisor: Some(program),
            places: Places::declared(Vec::<PathBuf>::new(), [folder.path().join("work")]),
            extra_read_only,
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
    assert_eq!(scene.started(true), []);
    go();
    let first = scene.waiting(1);
    go();
    let second = scene.waiting(2);
    // The third command used the first of them, which exited with it.
    assert_eq!(scene.started(false).len(), 2);
    until(|| !is_there(first));
    assert!(is_there(second));
    drop(scene);
    until(|| !is_there(second));
}

/// Also what it tells of the limits, which may differ from those that it was prepared for.
fn same_root() {
    let scene = Scene::new();
    let list = "find / -path /proc -prune -o -path /usr -prune -o -print | sort; cat /etc/passwd /dev/null; mount | wc -l";
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

/// A folder of every command below its `/tmp`, which is mounted later than what is prepared.
fn unfit_root() {
    let tools = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(tools.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(tools.path().join("data"), "tool").unwrap();
    let scene = Scene::with(vec![tools.path().to_owned()]);
    let read = format!("cat '{}/data'; ls /dev | wc -l", tools.path().display());
    let on_demand = scene.says(&read, Network::None);
    assert!(on_demand.starts_with("tool"), "{on_demand}");
    scene.says("true", Network::None);
    scene.waiting(1);
    assert_eq!(scene.says(&read, Network::None), on_demand);
    assert_eq!(scene.started(false).len(), 2);
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
    kill_process(Pid::from_raw(waiting).unwrap(), Signal::KILL).unwrap();
    until(|| {
        let stat = fs::read_to_string(format!("/proc/{waiting}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    });
    assert_eq!(scene.says("echo here", Network::None), "here\n");
    assert_eq!(scene.started(false).len(), 3);
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
