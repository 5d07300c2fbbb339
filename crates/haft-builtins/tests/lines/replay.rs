//! Allowed random lines are replayed in bash in the jail: each command that they execute must be allowed on its own.
//!
//! Every program on `PATH` is a recorder, which notes its name and words and then runs the real program if that is harmless.
//! Data files hold text that would run if bash evaluated it, folders hold programs named like readers, and file names look
//! like options.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft::permission::Verdict;
use haft::policy::{CommandLine, Policy, Profile, RuleSet, RuleText};
use haft::testing::command_verdict;
use haft_sandbox::{CommandSpec, Mounts, Sandbox, direct_words};

use crate::generator::{Lines, Random};

/// Programs that run the real one after they are noted.
const REAL: &[&str] = &[
    "cat", "head", "grep", "wc", "stat", "du", "diff", "find", "git", "ls", "which", "timeout",
    "nice", "nohup", "stdbuf", "xargs", "env", "sh", "bash", "setsid",
];

/// Programs that are noted and do nothing.
const NOTED: &[&str] = &[
    "c1", "c2", "touch", "rm", "busybox", "printf", "test", "[", "tee", "tail",
];

/// Files of the workspace.
const FILES: &[(&str, &str)] = &[
    ("a.txt", "one\ntwo\n"),
    ("b.txt", "one\n"),
    ("sub/a.txt", "x\n"),
    ("evil.txt", "a[$(touch pwn)]\n"),
    (
        "args.txt",
        ". -exec touch pwn ; --output=pwn push origin config a.b c\n",
    ),
    ("--output=pwn", ""),
    ("-exec", ""),
    ("a[$(touch pwn)]", "1\n"),
];

/// The rules under which lines are judged.
struct Ground {
    name: &'static str,
    policy: Policy,
    /// Whether these rules allow no changes.
    only_reads: bool,
}

fn ground(name: &'static str, profile: Profile, allow: &[&str], deny: &[&str]) -> Ground {
    let texts = |rules: &[&str]| rules.iter().map(|rule| RuleText::new(*rule)).collect();
    let rules = RuleSet {
        allow: texts(allow),
        deny: texts(deny),
        ..RuleSet::default()
    };
    Ground {
        name,
        policy: Policy::builder(profile).rules(rules).build().unwrap(),
        only_reads: profile == Profile::ReadOnly,
    }
}

fn grounds() -> Vec<Ground> {
    let some = [
        "Bash(c1 *)",
        "Bash(c2)",
        "Bash(git *)",
        "Bash(find *)",
        "Bash(printf *)",
        "Bash(read *)",
        "Bash(export *)",
        "Bash(set *)",
        "Bash(test *)",
        "Read",
    ];
    let denied = ["Bash(git config *)", "Bash(git push *)", "Bash(touch *)"];
    vec![
        ground("read-only", Profile::ReadOnly, &[], &[]),
        ground("some rules", Profile::Workspace, &some, &denied),
        ground("all but some", Profile::Trusted, &["Bash(*)"], &denied),
    ]
}

/// Returns the verdict of a policy on a line, as the command tool declares it.
fn line_verdict(policy: &Policy, line: &str) -> Verdict {
    let read = match direct_words(line) {
        Some(argv) => CommandLine::of_argv(line.to_owned(), argv),
        None => CommandLine::new(line),
    };
    command_verdict(policy, read)
}

/// The workspace, the recorders, and their log.
struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self {
            dir: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        };
        fs::create_dir_all(stage.dir.path().join("bin")).unwrap();
        for name in REAL.iter().chain(NOTED) {
            stage.program(&format!("bin/{name}"), REAL.contains(name).then_some(*name));
        }
        stage.furnish();
        stage
    }

    fn workspace(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    /// Returns the log of the recorders: each record is the number of words, and the words.
    fn log(&self) -> PathBuf {
        self.workspace().join(".ran")
    }

    fn program(&self, path: &str, real: Option<&str>) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let log = self.log();
        let mut script = format!(
            "#!/bin/sh\nprintf '%s\\0' \"$(($# + 1))\" \"${{0##*/}}\" \"$@\" >> '{}'\n",
            log.display()
        );
        if let Some(real) = real {
            let hand_over = format!(
                "for at in /usr/bin /bin; do [ -x $at/{real} ] && exec $at/{real} \"$@\"; done\n"
            );
            script += &hand_over;
        }
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Sets up the workspace for a line.
    fn furnish(&self) {
        let _ = fs::remove_dir_all(self.workspace());
        for (path, text) in FILES {
            let path = self.workspace().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        // For a `PATH` that becomes a number or a folder of the workspace.
        for folder in ["0", "1", "10", "11", "sub"] {
            for name in ["ls", "cat"] {
                self.program(&format!("ws/{folder}/{name}"), None);
                let evil = self.workspace().join(folder).join(name);
                let script = fs::read_to_string(&evil)
                    .unwrap()
                    .replace("\"${0##*/}\"", "EVIL");
                fs::write(evil, script).unwrap();
            }
        }
        fs::write(self.log(), "").unwrap();
    }

    fn tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        let mut folders = vec![self.workspace()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(path);
                } else if path != self.log() {
                    let text = fs::read(&path).unwrap();
                    all.insert(path, text);
                }
            }
        }
        all
    }

    /// Runs a line as the command tool does, and returns what it executed.
    async fn replay(&self, sandbox: &Sandbox, line: &str) -> Vec<Vec<String>> {
        fs::write(self.log(), "").unwrap();
        let bin = self.dir.path().join("bin");
        let mounts = Mounts {
            workspace: Some(self.workspace()),
            read_only: vec![bin.clone()],
            ..Mounts::default()
        };
        let spec = CommandSpec::line(line, self.workspace())
            .with_mounts(mounts)
            .with_env("PATH", bin)
            .with_timeout(Duration::from_secs(20));
        if let Ok(running) = sandbox.start(spec).await {
            running.wait().await;
        }
        records(&fs::read(self.log()).unwrap_or_default())
    }
}

fn records(log: &[u8]) -> Vec<Vec<String>> {
    let text = String::from_utf8_lossy(log).into_owned();
    let mut words = text.split_terminator('\0').map(str::to_owned);
    let mut all = Vec::new();
    while let Some(count) = words.next() {
        let count = count.parse().unwrap_or(0);
        all.push(words.by_ref().take(count).collect());
    }
    all
}

/// Describes what is wrong with how an allowed line ran, if anything.
async fn fault(stage: &Stage, sandbox: &Sandbox, ground: &Ground, line: &str) -> Option<String> {
    if line_verdict(&ground.policy, line) != Verdict::Allow {
        return None;
    }
    let before = stage.tree();
    for argv in stage.replay(sandbox, line).await {
        let shown = format!("{argv:?}");
        let judged = command_verdict(
            &ground.policy,
            CommandLine::of_argv(haft::policy::join_words(&argv), argv),
        );
        if judged != Verdict::Allow {
            return Some(format!("it executed {shown}, which is {judged}"));
        }
    }
    let same = stage.tree() == before;
    if !same {
        stage.furnish();
    }
    (ground.only_reads && !same).then(|| "it changed the workspace".to_owned())
}

/// Returns a shorter line with the same kind of fault, found by leaving pieces out.
async fn shortened(stage: &Stage, sandbox: &Sandbox, ground: &Ground, line: &str) -> String {
    let mut random = Random::new(1);
    let mut best: Vec<char> = line.chars().collect();
    for _ in 0..300 {
        let at = random.below(best.len());
        let length = 1 + random.below(10);
        let mut shorter = best.clone();
        shorter.drain(at..(at + length).min(best.len()));
        let text: String = shorter.iter().collect();
        if fault(stage, sandbox, ground, &text).await.is_some() {
            best = shorter;
        }
    }
    best.into_iter().collect()
}

/// `HAFT_SOAK=1` replays many more lines; `HAFT_FUZZ_SEED` selects others.
pub(crate) async fn what_an_allowed_line_executes_is_allowed(sandbox: &Sandbox) {
    let soak = std::env::var_os("HAFT_SOAK").is_some();
    let (most_lines, most_replays) = if soak {
        (3_000_000, 30_000)
    } else {
        (60_000, 240)
    };
    let seed = std::env::var("HAFT_FUZZ_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(20);
    let mut lines = Lines {
        random: Random::new(seed),
    };
    let stage = Stage::new();
    let grounds = grounds();
    let mut replays = vec![0_usize; grounds.len()];
    let started = Instant::now();
    let mut made = 0;
    while made < most_lines
        && replays
            .iter()
            .any(|done| *done < most_replays / grounds.len())
    {
        let line = lines.line();
        made += 1;
        for (ground, done) in grounds.iter().zip(&mut replays) {
            let full = *done >= most_replays / grounds.len();
            if full || line_verdict(&ground.policy, &line) != Verdict::Allow {
                continue;
            }
            *done += 1;
            if let Some(fault) = fault(&stage, sandbox, ground, &line).await {
                let shorter = shortened(&stage, sandbox, ground, &line).await;
                panic!(
                    "seed {seed}, {}: {line:?}: {fault}; shorter: {shorter:?}",
                    ground.name
                );
            }
        }
    }
    let took = started.elapsed().as_secs_f64();
    eprintln!("lines: {made} made, {replays:?} replayed in {took:.1} s");
    assert!(
        replays.iter().all(|done| *done > most_replays / 30),
        "{replays:?} of {made}"
    );
}

/// The recorders see what a line executes: the test is not blind.
pub(crate) async fn what_a_line_executes_is_seen(sandbox: &Sandbox) {
    let stage = Stage::new();
    for (line, expect) in [
        (
            "ls -a; cat a.txt | wc -l",
            &["ls -a", "cat a.txt", "wc -l"][..],
        ),
        (
            "x=evil.txt; echo $(( $(cat $x) ))",
            &["cat evil.txt", "touch pwn"],
        ),
        (
            "echo . -exec touch pwn ';' | xargs find",
            &["xargs find", "find . -exec touch pwn ;", "touch pwn"],
        ),
        ("PATH=0; ls", &["EVIL"]),
        (
            "timeout 5 env -u X c1 'a b'",
            &["timeout 5 env -u X c1 a b", "env -u X c1 a b", "c1 a b"],
        ),
    ] {
        let ran = stage.replay(sandbox, line).await;
        let ran: Vec<String> = ran.iter().map(|words| words.join(" ")).collect();
        for command in expect {
            assert!(
                ran.iter().any(|seen| seen == command),
                "{line}: {ran:?} lacks {command}"
            );
        }
    }
    assert!(
        Path::new("/bin/bash").exists(),
        "lines are replayed in bash"
    );
}
