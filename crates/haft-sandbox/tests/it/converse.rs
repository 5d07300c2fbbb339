//! Commands that the host talks to while they run.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::runner::Test;
use crate::{drivers, line, text, wait};

pub(crate) const TESTS: &[Test] = &[
    (
        "a_command_answers_while_it_runs_and_ends_with_its_input",
        answers,
    ),
    ("a_flood_waits_until_it_is_read", flood),
    (
        "a_command_that_ignores_its_input_s_end_hears_a_signal",
        hears,
    ),
    ("a_command_whose_handles_are_gone_is_gone", gone),
    (
        "a_thousand_commands_that_are_let_go_leave_no_process",
        let_go,
    ),
];

fn answers() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "echo ready >&2; while read -r words; do echo \"heard $words\"; done; echo bye; exit 3";
    for sandbox in drivers() {
        wait(async {
            let (running, mut input, mut output) =
                sandbox.converse(line(script, folder.path())).await.unwrap();
            let mut got = [0; 10];
            input.write_all(b"one\n").await.unwrap();
            output.read_exact(&mut got).await.unwrap();
            assert_eq!(&got, b"heard one\n");
            input.write_all(b"two\n").await.unwrap();
            drop(input);
            let mut rest = String::new();
            output.read_to_string(&mut rest).await.unwrap();
            assert_eq!(rest, "heard two\nbye\n");
            assert_eq!(running.wait().await.code, Some(3));
            assert_eq!(text(running.stderr()), "ready\n");
            assert_eq!(running.stdout().total(), 0);
        });
    }
}

/// Unread output is not buffered: the command waits.
fn flood() {
    let folder = tempfile::tempdir().unwrap();
    for sandbox in drivers() {
        wait(async {
            let spec = line("head -c 50000000 /dev/zero; echo done >&2", folder.path());
            let (running, _input, mut output) = sandbox.converse(spec).await.unwrap();
            let soon = Instant::now() + Duration::from_secs(60);
            let mut part = vec![0; 1 << 16];
            output.read_exact(&mut part).await.unwrap();
            assert_eq!(running.exit(), None);
            let mut count = part.len();
            loop {
                match output.read(&mut part).await.unwrap() {
                    0 => break,
                    more => count += more,
                }
            }
            assert_eq!(count, 50_000_000);
            assert!(
                running
                    .wait_until(soon)
                    .await
                    .is_some_and(|exit| exit.success())
            );
        });
    }
}

fn hears() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo asked; exit 5' TERM; echo up; while :; do sleep 0.05; done";
    for sandbox in drivers() {
        wait(async {
            let (running, input, mut output) =
                sandbox.converse(line(script, folder.path())).await.unwrap();
            let mut up = [0; 3];
            output.read_exact(&mut up).await.unwrap();
            drop(input);
            running.terminate();
            let mut rest = String::new();
            output.read_to_string(&mut rest).await.unwrap();
            assert_eq!(rest, "asked\n");
            assert_eq!(running.wait().await.code, Some(5));
        });
    }
}

fn gone() {
    let folder = tempfile::tempdir().unwrap();
    for sandbox in drivers() {
        wait(async {
            let spec = line("trap '' TERM; sleep 1000 & sleep 1000", folder.path());
            let (running, _input, mut output) = sandbox.converse(spec).await.unwrap();
            drop(running);
            // Every process of its tree held the other end.
            assert_eq!(output.read(&mut [0]).await.unwrap(), 0);
        });
    }
}

/// Half of them after a line was exchanged, half at once; each had a child that ignores signals. Both drivers run it, as root and as
/// another user: 1,000 commands in total.
fn let_go() {
    let folder = tempfile::tempdir().unwrap();
    let count = if soak() { 2_500 } else { 250 };
    for sandbox in drivers() {
        wait(async {
            for nth in 0..count {
                let spec = line("trap '' TERM; sleep 1000 & cat", folder.path());
                let (running, mut input, mut output) = sandbox.converse(spec).await.unwrap();
                if nth % 2 == 0 {
                    input.write_all(b"x").await.unwrap();
                    output.read_exact(&mut [0]).await.unwrap();
                }
                drop(running);
                // Every process of its tree held the other end.
                assert_eq!(output.read(&mut [0]).await.unwrap(), 0, "{nth}");
            }
        });
    }
}

/// Returns whether to run the long version.
fn soak() -> bool {
    std::env::var_os("HAFT_SOAK").is_some_and(|value| value == "1")
}
