//! How a host gets, uses and kills locked interpreters: pool, dying zygotes, missing parts.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::code::{CodeConfig, CodeJail, LibrarySet, Script};
use haft_sandbox::{Config, Sandbox, StartError, Strength};
use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Pid, Signal, kill_process};

use crate::runner::Test;
use crate::{jail, wait};

pub(crate) const TESTS: &[Test] = &[
    ("code_scripts_have_a_bridge_and_a_folder", bridge),
    ("code_frames_are_whole_or_refused", frames),
    ("code_a_script_that_does_not_read_blocks_nobody", full),
    ("code_the_probe_says_what_there_is", probe),
    (
        "code_without_a_python_the_probe_says_what_to_install",
        missing,
    ),
    ("code_a_python_without_ctypes_is_started_afresh", no_zygote),
    ("code_a_runtime_that_is_wrong_is_an_error", wrong_runtime),
    ("code_a_dead_zygote_is_replaced", dead_zygote),
    ("code_an_idle_child_that_died_is_not_given_out", dead_child),
    ("code_a_zygote_that_served_its_time_is_replaced", recycled),
    ("code_a_take_that_is_given_up_disturbs_nobody", given_up),
    ("code_a_jail_outlives_the_runtime_that_warmed_it", runtimes),
    ("code_nothing_is_given_out_after_the_end", shut),
    ("code_data_scripts_have_more_memory", data),
    ("code_the_floor_holds", floor),
];

/// Echoes messages in capitals; some words are commands.
const RUNTIME: &str = r#"
import os, socket
def warm(): pass
def main(bridge, folder):
    link = socket.socket(fileno=bridge)
    while True:
        said = link.recv(65536)
        if not said: os._exit(0)
        if said.startswith(b"exec "): exec(said[5:], {"link": link, "folder": folder})
        else: link.send(said.upper())
"#;

fn config() -> CodeConfig {
    CodeConfig {
        runtime: RUNTIME.into(),
        ..CodeConfig::default()
    }
}

fn code(config: CodeConfig) -> CodeJail {
    CodeJail::new(jail(), config)
}

async fn take(code: &CodeJail) -> Script {
    let script = code.take(LibrarySet::Plain).await;
    script.unwrap_or_else(|error| panic!("{error}"))
}

async fn ask(script: &Script, said: &str) -> String {
    script.send(said.as_bytes()).await.unwrap();
    let mut frame = vec![0; 65536];
    let length = script.recv(&mut frame).await.unwrap();
    String::from_utf8_lossy(&frame[..length]).into_owned()
}

fn bridge() {
    wait(async {
        let code = code(config());
        let script = take(&code).await;
        assert_eq!(ask(&script, "hello").await, "HELLO");
        assert_eq!(script.folder_path(), "/workspace");
        assert_eq!(script.strength(), Strength::Full);
        assert!(
            script.engine().ends_with(" (zygote)"),
            "{}",
            script.engine()
        );
        assert!(script.pid() > 1);
        // Both sides see the folder, even after the script's end.
        let said = ask(
            &script,
            "exec open('own', 'w').write('x' * 9); link.send(b'made')",
        )
        .await;
        assert_eq!(said, "made");
        script.kill();
        script.ended().await;
        assert_eq!(script.recv(&mut [0; 9]).await.unwrap(), 0);
        let file = openat(script.folder(), "own", OFlags::RDONLY, Mode::empty()).unwrap();
        let mut text = String::new();
        std::fs::File::from(file).read_to_string(&mut text).unwrap();
        assert_eq!(text, "xxxxxxxxx");
        openat(
            script.folder(),
            "late",
            OFlags::CREATE | OFlags::WRONLY,
            Mode::RUSR,
        )
        .unwrap();
        code.shut_down().await;
    });
}

fn frames() {
    wait(async {
        let code = code(config());
        let script = take(&code).await;
        let large = "x".repeat(60_000);
        assert_eq!(ask(&script, &large).await, large.to_uppercase());
        script.send(b"exec link.send(b'y' * 100)").await.unwrap();
        let error = script.recv(&mut [0; 99]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(ask(&script, "on").await, "ON");
        // A cancelled recv loses nothing.
        let mut frame = [0; 16];
        let none = tokio::time::timeout(Duration::from_millis(5), script.recv(&mut frame)).await;
        assert!(none.is_err());
        let nothing = script.try_recv(&mut frame).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        assert_eq!(ask(&script, "still").await, "STILL");
        // Messages sent before the end are received before the end.
        script
            .send(b"exec import os; link.send(b'last'); os._exit(3)")
            .await
            .unwrap();
        script.ended().await;
        assert_eq!(script.recv(&mut frame).await.unwrap(), 4);
        assert_eq!(script.recv(&mut frame).await.unwrap(), 0);
        assert!(script.send(b"x").await.is_err());
        code.shut_down().await;
    });
}

fn full() {
    wait(async {
        let code = code(config());
        let script = take(&code).await;
        script
            .send(b"exec import time; time.sleep(1000)")
            .await
            .unwrap();
        let frame = vec![0; 60_000];
        let mut sent = 0;
        let error = loop {
            match script.try_send(&frame) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
            assert!(sent < 1000);
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let waiting = tokio::time::timeout(Duration::from_millis(20), script.send(&frame)).await;
        assert!(waiting.is_err());
        script.kill();
        script.ended().await;
        code.shut_down().await;
    });
}

fn probe() {
    wait(async {
        let code = code(config());
        let probe = code.probe().await;
        assert!(probe.zygote && probe.missing.is_none(), "{probe:?}");
        assert!(probe.python.as_ref().unwrap().is_absolute());
        assert!(probe.version.starts_with("cpython 3."), "{probe:?}");
        assert_eq!(probe.strength, Strength::Full);
        code.shut_down().await;
        let fresh = CodeJail::new(
            jail(),
            CodeConfig {
                force_fresh: true,
                ..config()
            },
        );
        let again = fresh.probe().await;
        assert!(!again.zygote && again.why_not.is_some(), "{again:?}");
        assert_eq!(again.version, probe.version);
        let script = take(&fresh).await;
        assert_eq!(ask(&script, "hello").await, "HELLO");
        assert!(script.engine().ends_with(" (fresh)"), "{}", script.engine());
    });
}

fn missing() {
    wait(async {
        for python in ["/nowhere/python3", "/bin/true", "/etc/passwd"] {
            let code = code(CodeConfig {
                python: Some(python.into()),
                ..config()
            });
            let probe = code.probe().await.clone();
            let missing = probe.missing.unwrap();
            assert!(missing.fix.contains("install python3"), "{missing}");
            assert!(probe.python.is_none() && !probe.zygote);
            let error = code.take(LibrarySet::Plain).await.unwrap_err();
            assert!(matches!(error, StartError::NoInterpreter(_)), "{error}");
        }
    });
}

/// A zygote that fails for its own reason; without ctypes, a Python fails in the same way.
fn no_zygote() {
    wait(async {
        let mut config = config();
        // The zygote imports it first; a fresh interpreter does not need it.
        config.runtime =
            format!("import sys\nassert 'ctypes' not in sys.modules\n{RUNTIME}").into();
        let code = code(config);
        let probe = code.probe().await;
        assert!(!probe.zygote, "{probe:?}");
        assert!(
            probe.why_not.as_ref().unwrap().contains("AssertionError"),
            "{probe:?}"
        );
        let script = take(&code).await;
        assert_eq!(ask(&script, "hello").await, "HELLO");
        assert_eq!(script.strength(), Strength::Full);
    });
}

fn wrong_runtime() {
    wait(async {
        for runtime in [
            "def warm(:",
            "def warm(): 1 / 0\ndef main(a, b): pass",
            "1 / 0",
            "",
        ] {
            let runtime: Arc<str> = runtime.into();
            let code = code(CodeConfig {
                runtime,
                ..config()
            });
            let error = code.take(LibrarySet::Plain).await.unwrap_err();
            assert!(matches!(error, StartError::NoInterpreter(_)), "{error}");
        }
    });
}

/// Returns the parent of a child's parent: the zygote itself is the parent.
fn parent(pid: u32) -> Pid {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("PPid:"))
        .unwrap();
    Pid::from_raw(line[5..].trim().parse().unwrap()).unwrap()
}

fn dead_zygote() {
    wait(async {
        let code = code(CodeConfig {
            idle: 0,
            ..config()
        });
        let script = take(&code).await;
        let zygote = parent(script.pid());
        kill_process(zygote, Signal::KILL).unwrap();
        // Its children are killed with it.
        script.ended().await;
        let next = take(&code).await;
        assert_eq!(ask(&next, "hello").await, "HELLO");
        assert_ne!(parent(next.pid()), zygote);
        assert!(next.engine().ends_with(" (zygote)"), "{}", next.engine());
        code.shut_down().await;
    });
}

fn dead_child() {
    wait(async {
        let code = code(config());
        let script = take(&code).await;
        let zygote = parent(script.pid());
        // The pool is full by now, or soon.
        let children = || {
            let path = format!("/proc/{0}/task/{0}/children", zygote.as_raw_nonzero());
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let words = text.split_ascii_whitespace().map(str::to_owned);
            words
                .filter(|word| *word != script.pid().to_string())
                .collect::<Vec<_>>()
        };
        // Each one waits for a script: it sleeps.
        let sleeps = |pid: &String| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('S'))
        };
        while children().len() < 2 || !children().iter().all(sleeps) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for child in children() {
            let _ = kill_process(Pid::from_raw(child.parse().unwrap()).unwrap(), Signal::KILL);
        }
        while !children().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(ask(&take(&code).await, "hello").await, "HELLO");
        code.shut_down().await;
    });
}

fn recycled() {
    for idle in [0, 2] {
        recycled_with(idle);
    }
}

fn recycled_with(idle: usize) {
    wait(async {
        let code = code(CodeConfig {
            recycle_after: 5,
            idle,
            ..config()
        });
        let first = take(&code).await;
        let zygote = parent(first.pid());
        let mut other = zygote;
        for _ in 0..200 {
            let script = take(&code).await;
            assert_eq!(ask(&script, "hello").await, "HELLO");
            other = parent(script.pid());
            if other != zygote {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_ne!(other, zygote);
        // A script of the old one keeps running.
        assert_eq!(ask(&first, "still").await, "STILL");
        code.shut_down().await;
    });
}

fn given_up() {
    wait(async {
        let code = code(CodeConfig {
            idle: 0,
            ..config()
        });
        code.probe().await;
        for micros in (0..3000).step_by(150) {
            let _ =
                tokio::time::timeout(Duration::from_micros(micros), code.take(LibrarySet::Plain))
                    .await;
        }
        let script = take(&code).await;
        assert!(
            script.engine().ends_with(" (zygote)"),
            "{}",
            script.engine()
        );
        assert_eq!(ask(&script, "hello").await, "HELLO");
        code.shut_down().await;
    });
}

fn runtimes() {
    let code = code(config());
    wait(async {
        code.warm();
        assert_eq!(ask(&take(&code).await, "one").await, "ONE");
    });
    for _ in 0..5 {
        wait(async { assert_eq!(ask(&take(&code).await, "two").await, "TWO") });
    }
    wait(async { code.shut_down().await });
}

fn shut() {
    wait(async {
        let code = code(config());
        let script = take(&code).await;
        code.shut_down().await;
        script.ended().await;
        let error = code.take(LibrarySet::Plain).await.unwrap_err();
        assert!(matches!(error, StartError::Shut), "{error}");
    });
}

fn data() {
    wait(async {
        let code = code(CodeConfig {
            memory_mb: 600,
            data_memory_mb: 900,
            idle: 0,
            ..config()
        });
        let grow = "exec import json\ntry:\n  x = bytearray(700 << 20)\n  link.send(b'had')\n\
                    except MemoryError:\n  link.send(b'not')\n";
        assert_eq!(ask(&take(&code).await, grow).await, "not");
        let script = code.take(LibrarySet::Data).await.unwrap();
        assert_eq!(ask(&script, grow).await, "had");
        if code.probe().await.data {
            let sum = "exec import sys\nassert 'numpy' in sys.modules or 'pandas' in sys.modules\n\
                       import numpy\na = numpy.arange(250000.0).reshape(500, 500)\n\
                       assert (a @ a).shape == (500, 500)\nnumpy.linalg.svd(a[:50, :50])\n\
                       link.send(b'there')";
            assert_eq!(ask(&script, sum).await, "there");
        }
        code.shut_down().await;
    });
}

fn floor() {
    wait(async {
        let sandbox = Sandbox::new(Config {
            require: Strength::Full,
            at_most: Some(Strength::NoProc),
            ..Config::default()
        });
        let code = CodeJail::new(&sandbox, config());
        assert!(code.probe().await.missing.is_some());
        let error = code.take(LibrarySet::Plain).await.unwrap_err();
        assert!(matches!(error, StartError::TooWeak { .. }), "{error}");
        // And if a weaker level is explicitly requested, the script gets it.
        let sandbox = Sandbox::new(Config {
            require: Strength::LandlockSeccomp,
            at_most: Some(Strength::LandlockSeccomp),
            ..Config::default()
        });
        let code = CodeJail::new(&sandbox, config());
        let script = take(&code).await;
        assert_eq!(script.strength(), Strength::LandlockSeccomp);
        assert_eq!(ask(&script, "hello").await, "HELLO");
        let path = script.folder_path().to_owned();
        assert!(std::path::Path::new(&path).is_dir());
        assert!(script.folder().as_fd().try_clone_to_owned().is_ok());
        drop(script);
        assert!(!std::path::Path::new(&path).exists());
        code.shut_down().await;
    });
}
