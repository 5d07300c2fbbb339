//! Killing commands: by deadline, explicitly, by dropping; always the whole tree.

use std::path::Path;
use std::time::{Duration, Instant};

use haft_sandbox::Sandbox;

use crate::runner::Test;
use crate::{Alive, HOLD, drivers, line, soon, wait, wait_for_output};

pub(crate) const TESTS: &[Test] = &[
    ("the_deadline_ends_the_whole_tree", deadline),
    ("a_kill_ends_the_whole_tree", kill),
    ("letting_go_of_every_handle_ends_the_whole_tree", let_go),
    (
        "a_runtime_that_goes_down_takes_the_tree_along",
        runtime_down,
    ),
    ("a_start_that_is_dropped_leaves_nothing", dropped_start),
    ("what_a_command_leaves_behind_ends_with_it", left_behind),
    ("a_deadline_is_moved_and_lifted", moved_deadline),
    ("ignoring_signals_does_not_help", deaf),
];

/// A child, a grandchild, one in its own session, one whose parent has exited; each writes its name
/// while it is alive.
const TREE: &str = "exec 9>alive; tick() { while :; do date +%N > $1; sleep 0.02; done; }; \
    tick a & (tick b & sleep 60) & export -f tick; setsid bash -c 'tick c' & \
    (setsid bash -c 'tick d & exec sleep 60' &) ; \
    while ! [ -s a -a -s b -a -s c -a -s d ]; do sleep 0.01; done; echo ready; sleep 60";

/// Waits until each process of the tree has written once more.
async fn ticks(folder: &Path) {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    for name in ["a", "b", "c", "d"] {
        let (before, late) = (read(name), soon());
        while read(name) == before {
            assert!(Instant::now() < late, "{name} has ended");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Runs the test with each driver, and waits until every process of the tree has ended.
fn each(test: impl Fn(&Sandbox, &Path, &mut Alive)) {
    for sandbox in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let mut alive = Alive::new(folder.path());
        test(sandbox, folder.path(), &mut alive);
        wait(alive.ended());
    }
}

fn deadline() {
    each(|sandbox, folder, _| {
        wait(async {
            let running = sandbox.start(line(TREE, folder)).await.unwrap();
            wait_for_output(&running, "ready").await;
            running.set_timeout(Some(Duration::from_millis(100)));
            let exit = running.wait().await;
            assert!(
                exit.timed_out && !exit.killed && !exit.success(),
                "{exit:?}"
            );
        });
    });
}

fn kill() {
    each(|sandbox, folder, _| {
        wait(async {
            let running = sandbox.start(line(TREE, folder)).await.unwrap();
            wait_for_output(&running, "ready").await;
            running.kill();
            running.kill();
            let exit = running.wait().await;
            assert!(exit.killed && !exit.timed_out, "{exit:?}");
        });
    });
}

fn let_go() {
    each(|sandbox, folder, alive| {
        wait(async {
            let running = sandbox.start(line(TREE, folder)).await.unwrap();
            wait_for_output(&running, "ready").await;
            let other = running.clone();
            drop(running);
            ticks(folder).await;
            assert!(other.exit().is_none());
            drop(other);
            alive.ended().await;
        });
    });
}

fn runtime_down() {
    each(|sandbox, folder, _| {
        let running = wait(async {
            let running = sandbox.start(line(TREE, folder)).await.unwrap();
            wait_for_output(&running, "ready").await;
            running
        });
        assert!(running.exit().is_some_and(|exit| exit.killed));
    });
}

fn dropped_start() {
    for sandbox in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let mut alive = Alive::new(folder.path());
        for micros in [0, 200, 800, 2000, 5000] {
            wait(async {
                let script = format!("{HOLD}sleep 0.5; echo x > late");
                let start = sandbox.start(line(&script, folder.path()));
                let limit = Duration::from_micros(micros);
                let started = tokio::time::timeout(limit, start).await;
                drop(started);
                alive.ended().await;
            });
        }
        // slow on purpose: a start that continued would open the pipe after the check, and write the file within this time.
        std::thread::sleep(Duration::from_millis(900));
        wait(alive.ended());
        assert!(!folder.path().join("late").exists());
    }
}

/// Also with both streams: a process that holds them open does not delay the end.
fn left_behind() {
    for sandbox in drivers() {
        let folder = tempfile::tempdir().unwrap();
        let mut alive = Alive::new(folder.path());
        wait(async {
            let script = format!("{HOLD}(sleep 1; echo x > late) & setsid sleep 5 & echo done");
            let running = sandbox.start(line(&script, folder.path())).await.unwrap();
            let started = Instant::now();
            let exit = running.wait().await;
            assert!(exit.success() && !exit.killed, "{exit:?}");
            assert!(started.elapsed() < Duration::from_secs(4));
            alive.ended().await;
        });
        assert!(!folder.path().join("late").exists());
    }
}

fn moved_deadline() {
    for sandbox in drivers() {
        let folder = tempfile::tempdir().unwrap();
        wait(async {
            let spec = line("echo ready; sleep 1; echo done", folder.path());
            let running = sandbox
                .start(spec.with_timeout(Duration::from_secs(20)))
                .await
                .unwrap();
            wait_for_output(&running, "ready").await;
            running.set_timeout(Some(Duration::from_millis(500)));
            running.set_timeout(None);
            let exit = running.wait_until(soon()).await.unwrap();
            assert!(exit.success() && !exit.timed_out, "{exit:?}");
        });
    }
}

fn deaf() {
    for sandbox in drivers() {
        let folder = tempfile::tempdir().unwrap();
        wait(async {
            let script = "trap '' TERM INT HUP QUIT; echo ready; while :; do sleep 0.05; done";
            let spec = line(script, folder.path()).with_timeout(Duration::from_millis(300));
            let exit = sandbox
                .start(spec)
                .await
                .unwrap()
                .wait_until(soon())
                .await
                .unwrap();
            assert!(exit.timed_out, "{exit:?}");
        });
    }
}
