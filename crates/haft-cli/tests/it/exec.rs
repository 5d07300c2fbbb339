//! `haft exec`: input, output and exit code of its command, and how it ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::approvals::wait;
use crate::harness::{Lab, ended};

/// A lab in which jailed commands and their changes are not asked about, and no server is started.
fn lab(settings: &str) -> Lab {
    let mut lab = Lab::new();
    lab.set("CI", "1");
    lab.user_settings(settings);
    lab
}

fn trusted() -> Lab {
    lab("[policy]\nprofile = \"trusted\"\n")
}

fn exec(lab: &Lab, words: &[&str]) -> Child {
    let mut all = vec!["exec"];
    all.extend(words);
    lab.command(&all).spawn().unwrap()
}

/// The processes that were started with this word.
fn processes_with(word: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap();
    let lines = all.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    let is_word = |line: &Vec<u8>| {
        line.split(|byte| *byte == 0)
            .any(|one| one == word.as_bytes())
    };
    lines.filter(is_word).count()
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = i32::try_from(child.id()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn only_run(lab: &Lab) -> Value {
    let all = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    all[0].clone()
}

#[test]
fn command_when_haft_ignores_signals_ignores_none() {
    let lab = trusted();
    let haft = env!("CARGO_BIN_EXE_haft");
    let ignored = "trap '' HUP INT QUIT TERM USR2";
    let line = format!("{ignored}; exec {haft} exec -- grep SigIgn /proc/self/status");
    let ran = ended(lab.program("bash", &["-c", &line]).spawn().unwrap());
    let mask = ran
        .stdout
        .strip_prefix("SigIgn:")
        .unwrap_or_default()
        .trim();
    let mask =
        u64::from_str_radix(mask, 16).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
    // 32 and 33 are the C library's own, and may be ignored where these tests run.
    assert_eq!(mask & !(0b11 << 31), 0, "{}", ran.stdout);
}

#[test]
fn command_when_settings_let_a_call_take_hours_may_take_them() {
    let lab = lab(
        "[policy]\nprofile = \"trusted\"\n[limits]\ncall_timeout_s = 7200\ntotal_timeout_s = 7200\n",
    );
    assert_eq!(ended(exec(&lab, &["--", "true"])).code, 0);
    let run = only_run(&lab)["run"].as_str().unwrap().to_owned();
    let shown = lab.run(&["runs", "show", &run, "--json"]).stdout;
    assert!(shown.contains(r#"\"timeout_s\":7200"#), "{shown}");
}

#[test]
fn command_when_it_takes_longer_than_settings_allow_says_which_to_raise() {
    let lab = lab("[policy]\nprofile = \"trusted\"\n[limits]\ncall_timeout_s = 1\n");
    let ran = ended(exec(&lab, &["--", "sleep 600"]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("haft: timeout: "), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("limits.call_timeout_s"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("raise timeout_s"), "{}", ran.stderr);
}

#[test]
fn input_and_output_pass_while_the_command_runs() {
    let lab = trusted();
    let line =
        "echo first; echo aside >&2; while read -r word; do echo \"got $word\"; done; echo end";
    let mut child = exec(&lab, &["--", line]);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || output.next().unwrap().unwrap();
    assert_eq!(next(), "first");
    for word in ["one", "zwei ü"] {
        writeln!(input, "{word}").unwrap();
        assert_eq!(next(), format!("got {word}"));
    }
    drop(input);
    assert_eq!(next(), "end");
    let ran = ended(child);
    assert_eq!((ran.code, &*ran.stderr), (0, "aside\n"));
}

#[test]
fn the_exit_code_is_the_commands_own_where_it_ran_and_hafts_where_it_did_not() {
    let lab = lab(
        "[policy]\nprofile = \"trusted\"\nask = [\"Bash(date *)\"]\ndeny = [\"Bash(whoami)\", \"Edit(/kept.txt)\"]\n",
    );
    lab.file("kept.txt", "old\n");
    let plain = lab.file("plain.txt", "no program\n");
    std::fs::set_permissions(plain, std::fs::Permissions::from_mode(0o644)).unwrap();
    // words, exit code, what stderr holds
    let rows: &[(&[&str], i32, &str)] = &[
        (&["true"], 0, ""),
        (&["exit 3"], 3, ""),
        (&["sh", "-c", "exit 200"], 200, ""),
        (&["kill -TERM $$"], 143, "signal 15"),
        (&["kill -KILL $$"], 137, "signal 9"),
        (&["no-such-program"], 127, "no-such-program"),
        (&["no-such-program", "a", "b"], 127, "no-such-program"),
        (
            &["no-such-program | cat; exit $PIPESTATUS"],
            127,
            "no-such-program",
        ),
        (&["./plain.txt"], 126, "plain.txt"),
        (&["whoami"], 3, "haft: denied: "),
        (&["echo new > kept.txt"], 3, "haft: denied: "),
        (&["echo new > kept.txt; exit 9"], 9, "kept.txt"),
        (
            &["date -u"],
            4,
            "haft: suspended: run_command needs approval",
        ),
    ];
    for (words, code, says) in rows {
        let mut all = vec!["--wait", "1", "--"];
        all.extend(*words);
        let ran = ended(exec(&lab, &all));
        assert_eq!(ran.code, *code, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{words:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{words:?}");
        if says.is_empty() {
            assert_eq!(ran.stderr, "", "{words:?}");
        }
    }
    assert_eq!(ended(exec(&lab, &[])).code, 2);
    assert_eq!(
        std::fs::read_to_string(lab.work().join("kept.txt")).unwrap(),
        "old\n"
    );
}

#[test]
fn what_a_command_writes_comes_out_byte_by_byte_however_much_the_record_keeps() {
    let lab = trusted();
    let bytes: Vec<u8> = (0..10_u32 << 20)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    std::fs::write(lab.work().join("big.bin"), &bytes).unwrap();
    let child = exec(&lab, &["--", "cat", "big.bin"]);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.stdout == bytes,
        "{} of {} bytes",
        output.stdout.len(),
        bytes.len()
    );
    let run = only_run(&lab);
    let shown = lab.run(&["runs", "show", run["run"].as_str().unwrap(), "--json"]);
    assert!(shown.stdout.len() < 1 << 20, "{}", shown.stdout.len());
}

#[test]
fn a_command_waits_for_a_slow_reader_and_nothing_is_left_out() {
    // More than what is kept of a stream in memory and in files.
    let lab = trusted();
    let count = 300_u64 << 20;
    let mut child = exec(
        &lab,
        &["--", &format!("head -c {count} /dev/zero; echo end")],
    );
    let mut output = child.stdout.take().unwrap();
    let (mut read, mut buffer, mut last) = (0, vec![0; 3 << 20], Vec::new());
    loop {
        let some = output.read(&mut buffer).unwrap();
        if some == 0 {
            break;
        }
        read += some as u64;
        last.extend_from_slice(&buffer[some.saturating_sub(4)..some]);
        // Lets the writer run between two reads.
        std::thread::yield_now();
    }
    assert_eq!(read, count + 4);
    assert!(last.ends_with(b"end\n"));
    assert_eq!(ended(child).code, 0);
}

#[test]
fn a_reader_that_goes_away_ends_the_command() {
    let lab = trusted();
    let mut child = exec(
        &lab,
        &[
            "--",
            "sh",
            "-c",
            "while :; do echo y; done",
            "reader-gone-7391",
        ],
    );
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    drop(output);
    let ran = ended(child);
    assert_eq!((ran.code, &*line), (141, "y\n"), "{}", ran.stderr);
    assert_eq!(processes_with("reader-gone-7391"), 0);
    assert_eq!(only_run(&lab)["state"], "closed");
}

#[test]
fn a_signal_ends_the_command_and_leaves_nothing_behind() {
    use rustix::process::Signal;
    for (sent, word) in [
        (Signal::INT, "interrupted-7391"),
        (Signal::TERM, "terminated-7391"),
    ] {
        let lab = trusted();
        let line = "trap '' INT TERM; echo up; while :; do sleep 1; done";
        let mut child = exec(&lab, &["--", "bash", "-c", line, word]);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        assert_eq!(first, "up\n");
        signal(&child, sent);
        let ran = ended(child);
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        assert!(ran.stderr.contains("haft: cancelled: "), "{}", ran.stderr);
        assert_eq!(processes_with(word), 0);
        let run = only_run(&lab);
        assert_eq!(run["state"], "closed", "{run}");
        assert!(run.to_string().contains("cancelled"), "{run}");
    }
}

fn pending(lab: &Lab) -> String {
    wait("a pending request", || {
        let all = lab.run(&["approvals", "list", "--json"]).json();
        let pending = all.as_array().unwrap().iter();
        let mut pending = pending.filter(|one| one["status"] == "pending");
        Some(pending.next()?["id"].as_str().unwrap().to_owned())
    })
}

#[test]
fn changes_stay_pending_when_haft_is_ended_before_they_are_decided() {
    let lab = lab("");
    lab.file("a.txt", "old\n");
    let read = || std::fs::read_to_string(lab.work().join("a.txt")).unwrap();
    let child = exec(&lab, &["--", "echo new > a.txt; echo done; exit 5"]);
    let id = pending(&lab);
    signal(&child, rustix::process::Signal::TERM);
    let ran = ended(child);
    assert_eq!((ran.code, &*ran.stdout), (4, "done\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains(&id), "{}", ran.stderr);
    assert_eq!(read(), "old\n");
    let approved = lab.run(&["approvals", "approve", &id]);
    assert_eq!(read(), "new\n", "{}", approved.stderr);
    // The repeated command returns the outcome, once.
    let again = ended(exec(&lab, &["--", "echo new > a.txt; echo done; exit 5"]));
    assert_eq!(
        (again.code, &*again.stdout),
        (5, "done\n"),
        "{}",
        again.stderr
    );
}

#[test]
fn an_approval_for_a_command_with_input_holds_for_none_without_it() {
    let lab = lab("[policy]\nprofile = \"trusted\"\nask = [\"Bash(tee *)\"]\n");
    let words = ["exec", "--wait", "1", "--", "tee", "out.txt"];
    let ran = lab.run_with(&words, "precious\n");
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let id = pending(&lab);
    let approved = lab.run(&["approvals", "approve", &id]);
    assert!(approved.stderr.contains("input"), "{}", approved.stderr);
    assert!(!lab.work().join("out.txt").exists());
}

#[test]
fn a_terminal_is_no_input_and_a_file_is() {
    let lab = trusted();
    let file = lab.file("in.txt", "from a file\n");
    let mut command = lab.command(&["exec", "--", "cat"]);
    command.stdin(Stdio::from(std::fs::File::open(file).unwrap()));
    let ran = ended(command.spawn().unwrap());
    assert_eq!(
        (ran.code, &*ran.stdout),
        (0, "from a file\n"),
        "{}",
        ran.stderr
    );
    let mut command = lab.command(&["exec", "--", "cat"]);
    command.stdin(Stdio::null());
    let ran = ended(command.spawn().unwrap());
    assert_eq!((ran.code, &*ran.stdout), (0, ""), "{}", ran.stderr);
}

#[test]
fn a_secret_that_settings_name_is_not_passed_on() {
    let mut lab = trusted();
    lab.set("TEST_TOKEN", "k3pt-to-ourselves");
    lab.user_settings(
        "[policy]\nprofile = \"trusted\"\n[sandbox]\nenv = { TOKEN = \"${env:TEST_TOKEN}\" }\n",
    );
    let line =
        "echo \"a $TOKEN b\"; printf '%s' \"$TOKEN\" | cut -c1-9 >&2; echo 'password=hunter2'";
    let ran = ended(exec(&lab, &["--", line]));
    assert_eq!(
        ran.stdout, "a [redacted] b\npassword=hunter2\n",
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stderr, "k3pt-to-o\n");
}
