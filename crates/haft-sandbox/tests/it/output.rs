//! Programs, exits and output: all output is read exactly once, complete, and bounded.

use std::time::{Duration, Instant};

use haft_sandbox::{CommandSpec, StartError, WaitOutcome};

use crate::runner::Test;
use crate::{drivers, line, run, soon, text, wait, wait_for_output};

pub(crate) const TESTS: &[Test] = &[
    ("a_command_ends_with_its_code_signal_and_output", ends),
    (
        "a_program_that_cannot_be_executed_is_an_error_of_its_own",
        cannot_be_executed,
    ),
    ("input_is_read_to_its_end", input),
    ("every_byte_comes_once_over_random_waits", every_byte_once),
    ("what_is_no_text_is_kept_as_bytes", no_text),
    ("a_flood_stays_bounded", flood),
    ("a_condition_on_the_output_is_waited_for", condition),
    ("several_callers_wait_for_one_command", several),
    ("commands_run_side_by_side_on_many_threads", side_by_side),
];

fn ends() {
    let folder = tempfile::tempdir().unwrap();
    for sandbox in drivers() {
        for (command, code, signal, out, err) in [
            ("true", Some(0), None, "", ""),
            ("false", Some(1), None, "", ""),
            ("echo one two", Some(0), None, "one two\n", ""),
            (
                "echo one; echo two >&2; exit 7",
                Some(7),
                None,
                "one\n",
                "two\n",
            ),
            ("kill -TERM $$", None, Some(15), "", ""),
            ("kill -KILL $$", None, Some(9), "", ""),
            ("printf '%s' 'a b'", Some(0), None, "a b", ""),
            (
                "[[ a == a* ]] && set -o pipefail; true | true",
                Some(0),
                None,
                "",
                "",
            ),
        ] {
            let (exit, got_out, got_err) = run(sandbox, line(command, folder.path()));
            assert_eq!(
                (exit.code, exit.signal),
                (code, signal),
                "{command}: {got_err}"
            );
            assert_eq!(
                (got_out.as_str(), got_err.as_str()),
                (out, err),
                "{command}"
            );
            assert!(!exit.timed_out && !exit.killed);
        }
        let (exit, out, _) = run(sandbox, line("pwd -P", folder.path()));
        assert!(exit.success());
        assert_eq!(
            out.trim_end(),
            folder.path().canonicalize().unwrap().to_str().unwrap()
        );
    }
}

fn cannot_be_executed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plain"), "no program").unwrap();
    for sandbox in drivers() {
        for words in [
            vec!["no-such-program-here"],
            vec!["./absent"],
            vec!["./plain"],
            vec!["/"],
        ] {
            let mut spec = line("true", folder.path());
            spec.program = CommandSpec::argv(words.clone(), folder.path()).program;
            let error = wait(sandbox.start(spec)).unwrap_err();
            assert!(
                matches!(error, StartError::Program { .. }),
                "{words:?}: {error:?}"
            );
            assert!(error.to_string().contains(words[0]), "{error}");
        }
        for words in [vec![], vec![""]] {
            let mut spec = line("true", folder.path());
            spec.program = CommandSpec::argv(words, folder.path()).program;
            assert!(wait(sandbox.start(spec)).is_err());
        }
        let mut spec = line("true", folder.path());
        spec.cwd = folder.path().join("absent");
        assert!(wait(sandbox.start(spec)).is_err());
    }
}

fn input() {
    let folder = tempfile::tempdir().unwrap();
    for sandbox in drivers() {
        let (_, out, _) = run(sandbox, line("cat", folder.path()));
        assert_eq!(out, "");
        let bytes = "ü line\n".repeat(50_000);
        let spec = line("wc -c", folder.path()).with_stdin(bytes.clone());
        let (_, out, _) = run(sandbox, spec);
        assert_eq!(out.trim(), bytes.len().to_string());
    }
}

/// A reader that reads at random times and in random amounts sees exactly what was written.
fn every_byte_once() {
    let folder = tempfile::tempdir().unwrap();
    let script = "for i in $(seq 1 3000); do printf 'line %s ü漢🦀\\n' $i; \
                  [ $((i % 500)) = 0 ] && sleep 0.02; done; printf end";
    let expect: String = (1..=3000)
        .map(|i| format!("line {i} ü漢🦀\n"))
        .chain(["end".to_owned()])
        .collect();
    for sandbox in drivers() {
        for seed in 1..4_u64 {
            let mut random = seed;
            let got = wait(async {
                let running = sandbox.start(line(script, folder.path())).await.unwrap();
                let (mut at, mut got) = (0, String::new());
                loop {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let most = usize::try_from(random >> 33).unwrap() % 5000 + 4;
                    let chunk = running.stdout().text(at, most);
                    assert_eq!((chunk.offset, chunk.lost), (at, 0));
                    got += &chunk.text;
                    at = chunk.next;
                    if chunk.ended {
                        return got;
                    }
                    if random >> 60 == 0 {
                        tokio::time::sleep(Duration::from_millis(3)).await;
                    }
                    running.stdout().changed(at).await;
                }
            });
            assert_eq!(got.len(), expect.len());
            assert_eq!(got, expect);
        }
    }
}

fn no_text() {
    let folder = tempfile::tempdir().unwrap();
    for sandbox in drivers() {
        wait(async {
            let spec = line(
                "printf 'a\\377\\000\\303'; printf '\\303(' >&2",
                folder.path(),
            );
            let running = sandbox.start(spec).await.unwrap();
            assert!(running.wait().await.success());
            assert_eq!(running.stdout().read(0, 100).bytes, b"a\xFF\0\xC3");
            assert_eq!(text(running.stdout()), "a\u{FFFD}\0\u{FFFD}");
            assert_eq!(text(running.stderr()), "\u{FFFD}(");
        });
    }
}

/// A gigabyte through a log of one megabyte: counted completely, kept within its limit; the command is never blocked by
/// a missing reader.
fn flood() {
    let folder = tempfile::tempdir().unwrap();
    for sandbox in drivers() {
        wait(async {
            let before = memory();
            let mut spec = line(
                "head -c 1G /dev/zero | tr '\\0' x; printf tail",
                folder.path(),
            );
            spec.log_cap = 1 << 20;
            let running = sandbox.start(spec).await.unwrap();
            assert!(running.wait().await.success());
            let log = running.stdout();
            assert_eq!(log.total(), (1 << 30) + 4);
            assert!(log.truncated());
            let head = log.read(0, usize::MAX);
            let tail = log.read(head.next, usize::MAX);
            assert!(head.bytes.len() + tail.bytes.len() <= 1 << 20);
            assert_eq!(
                head.bytes.len() as u64 + tail.lost + tail.bytes.len() as u64,
                log.total()
            );
            assert!(tail.bytes.ends_with(b"xtail") && tail.ended);
            let grown = memory().saturating_sub(before);
            assert!(grown < 64 << 20, "{grown} bytes more");
        });
    }
}

/// Returns the memory of this process.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn condition() {
    let folder = tempfile::tempdir().unwrap();
    for sandbox in drivers() {
        wait(async {
            let spec = line(
                "echo starting; sleep 0.2; echo ready; sleep 60",
                folder.path(),
            );
            let running = sandbox.start(spec).await.unwrap();
            wait_for_output(&running, "ready").await;
            assert!(running.exit().is_none());
            let passed = Instant::now() + Duration::from_millis(50);
            let never = running.wait_for(|_| false, passed).await;
            assert_eq!(never, WaitOutcome::TimedOut);
            assert!(running.wait_until(Instant::now()).await.is_none());
            running.kill();
            let WaitOutcome::Ended(exit) = running.wait_for(|_| false, soon()).await else {
                panic!("no end");
            };
            assert!(exit.killed && exit.code.is_none());
            assert_eq!(running.exit(), Some(exit));
        });
    }
}

fn several() {
    let folder = tempfile::tempdir().unwrap();
    for sandbox in drivers() {
        wait(async {
            let running = sandbox
                .start(line("sleep 0.1; echo done", folder.path()))
                .await
                .unwrap();
            let waits: Vec<_> = (0..5)
                .map(|_| {
                    let running = running.clone();
                    tokio::spawn(async move { (running.wait().await, text(running.stdout())) })
                })
                .collect();
            for wait in waits {
                let (exit, out) = wait.await.unwrap();
                assert!(exit.success());
                assert_eq!(out, "done\n");
            }
        });
    }
}

fn side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    for sandbox in drivers() {
        let before = open_descriptors();
        runtime.block_on(async {
            let all: Vec<_> = (0..48)
                .map(|number| {
                    let spec = line(&format!("echo {number}; exit {number}"), folder.path());
                    let sandbox = sandbox.clone();
                    tokio::spawn(async move {
                        let running = sandbox.start(spec).await.unwrap();
                        (running.wait().await.code, text(running.stdout()))
                    })
                })
                .collect();
            for (number, one) in all.into_iter().enumerate() {
                let (code, out) = one.await.unwrap();
                assert_eq!(code, Some(i32::try_from(number).unwrap()));
                assert_eq!(out, format!("{number}\n"));
            }
        });
        // Tasks that end last may still be dropping theirs.
        let limit = soon();
        while open_descriptors() > before && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(
            open_descriptors() <= before,
            "{} were {before}",
            open_descriptors()
        );
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
