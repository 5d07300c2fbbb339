//! A coding agent's hook, from the start of its process to its answer: haft's with a server and without, and the same verdict from
//! a script in Node and one in Python, which judge by a list of words and record nothing.
//!
//! `hook ROUNDS HAFT`: the program.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use measure::{Row, rounds, wall_ms};

/// Number of hooks started per round, in sequence.
const STARTS: usize = 100;
/// The same for those that take longer.
const FEW: usize = 20;

const NODE: &str = r#"
const event = JSON.parse(require("fs").readFileSync(0, "utf8"));
const allow = /^(ls|cat|git status)\b/.test(event.tool_input.command);
const permissionDecision = allow ? "allow" : "ask";
console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision } }));
"#;

const PYTHON: &str = r#"
import json, re, sys
event = json.load(sys.stdin)
allow = re.match(r"(ls|cat|git status)\b", event["tool_input"]["command"])
decision = "allow" if allow else "ask"
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}}))
"#;

fn main() {
    let program: PathBuf = std::env::args()
        .nth(2)
        .expect("usage: hook ROUNDS HAFT")
        .into();
    let folder = tempfile::tempdir().expect("a folder");
    let scene = Scene::new(folder.path(), &program);
    let mut warm = Row::new("haft/hook/p50", "ms");
    let mut late = Row::new("haft/hook/p99", "ms");
    let mut alone = Row::new("haft/hook/without a server", "ms");
    let mut node = Row::new("node/hook", "ms");
    let mut python = Row::new("python/hook", "ms");
    for _ in 0..rounds(9) {
        {
            let _server = Served::start(&scene);
            scene.times(&scene.haft(), 3);
            let times = scene.times(&scene.haft(), STARTS);
            warm.rounds.push(percentile(&times, 50));
            late.rounds.push(percentile(&times, 99));
        }
        let times = scene.times(&scene.haft(), FEW);
        alone.rounds.push(percentile(&times, 50));
        let times = scene.times(&scene.script("node", "-e", NODE), FEW);
        node.rounds.push(percentile(&times, 50));
        let times = scene.times(&scene.script("python3", "-c", PYTHON), FEW);
        python.rounds.push(percentile(&times, 50));
    }
    for row in [warm, late, alone, node, python] {
        row.print();
    }
}

/// Returns the value at this percentile.
fn percentile(sorted: &[f64], of: usize) -> f64 {
    let at = (sorted.len() * of).div_ceil(100).max(1) - 1;
    sorted[at]
}

/// A program with its arguments.
type Line = Vec<String>;

/// A workspace and a home of its own.
struct Scene<'a> {
    folder: &'a Path,
    program: &'a Path,
    event: String,
}

impl<'a> Scene<'a> {
    fn new(folder: &'a Path, program: &'a Path) -> Self {
        for name in ["work", "home", "config"] {
            fs::create_dir(folder.join(name)).expect("a folder");
        }
        let work = folder.join("work").canonicalize().expect("a folder");
        let event = format!(
            r#"{{"session_id":"s","transcript_path":"/t","cwd":{work:?},"permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"ls"}},"tool_use_id":"ID"}}"#
        );
        Self {
            folder,
            program,
            event,
        }
    }

    fn haft(&self) -> Line {
        vec![
            self.program.display().to_string(),
            "hook".into(),
            "claude".into(),
        ]
    }

    fn script(&self, program: &str, option: &str, text: &str) -> Line {
        vec![program.into(), option.into(), text.into()]
    }

    fn command(&self, line: &[String]) -> Command {
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .current_dir(self.folder.join("work"))
            .env("HOME", self.folder)
            .env("HAFT_HOME", self.folder.join("home"))
            .env("XDG_CONFIG_HOME", self.folder.join("config"))
            // No server is started in the background.
            .env("CI", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    /// Returns the milliseconds of `count` hooks, each with another call, sorted.
    fn times(&self, line: &[String], count: usize) -> Vec<f64> {
        let one = |n: usize| {
            let event = self.event.replace("ID", &format!("t-{n}"));
            let (ms, output) = wall_ms(|| {
                let mut child = self
                    .command(line)
                    .spawn()
                    .expect("MISSING PEER: it does not start");
                let mut input = child.stdin.take().expect("piped");
                input.write_all(event.as_bytes()).expect("it reads");
                drop(input);
                child.wait_with_output().expect("it ends")
            });
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("\"allow\""), "{line:?}: {said}");
            ms
        };
        let mut times: Vec<f64> = (0..count).map(one).collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

/// A server that is ready.
struct Served(Child);

impl Served {
    fn start(scene: &Scene<'_>) -> Self {
        let line = ["serve", "--http", "127.0.0.1:0"].map(str::to_owned);
        let line: Line = std::iter::once(scene.program.display().to_string())
            .chain(line)
            .collect();
        let mut command = scene.command(&line);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        lines
            .find(|line| {
                line.as_ref()
                    .is_ok_and(|line| line.starts_with("listening on "))
            })
            .expect("it says where it listens")
            .expect("it writes text");
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
