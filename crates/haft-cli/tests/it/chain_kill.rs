//! A chain that is killed at random points and resumed: its effects happen once, or are in doubt and not repeated.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Lab, ended};

/// The number of points at which a chain is killed.
const POINTS: u32 = 100;
/// The number of labs running at the same time.
const LABS: u32 = 4;

/// Ten calls, each of which must happen once: the appended text differs in every run of the script.
const SCRIPT: &str = r#"
import datetime, random, time, uuid
stamp = f"{time.time_ns()} {random.random()} {uuid.uuid4()} {datetime.datetime.now()}"
for i in range(10):
    tools.write_file(path="log.txt", content=f"{i} {stamp}\n", mode="append")
print("wrote ten lines")
"#;

const FLAGS: [&str; 2] = ["--profile", "trusted"];

fn start(lab: &Lab) -> Child {
    let script = lab.file("script.py", SCRIPT);
    let args = [&["chain", script.to_str().unwrap()][..], &FLAGS].concat();
    lab.command(&args).spawn().unwrap()
}

/// Returns the run's journal, once its chain has started.
fn journal(lab: &Lab, child: &mut Child) -> PathBuf {
    loop {
        // Checked first: on a busy machine it could start and end between the two checks.
        let ended = child.try_wait().unwrap().is_some();
        let runs = std::fs::read_dir(lab.home().join("runs"))
            .into_iter()
            .flatten();
        for run in runs.flatten() {
            let journal = run.path().join("journal.jsonl");
            if std::fs::metadata(&journal).is_ok_and(|meta| meta.len() > 0) {
                return journal;
            }
        }
        assert!(!ended, "it ended before its chain began");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Returns how long a chain takes here from its start to the exit of the process.
fn length(lab: &Lab) -> Duration {
    let mut child = start(lab);
    journal(lab, &mut child);
    let begun = Instant::now();
    let ran = ended(child);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    begun.elapsed()
}

/// The result of killing a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It had already ended.
    Over,
    /// It was resumed to its end.
    Finished,
    /// One call may have run.
    InDoubt,
}

fn kill_and_resume(after: Duration) -> Fate {
    let lab = Lab::new();
    let mut child = start(&lab);
    let journal = journal(&lab, &mut child);
    // slow on purpose: the kill comes at a different moment each time, whatever the chain is doing then.
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let run = journal.parent().unwrap().file_name().unwrap().to_owned();
    let run = run.to_str().unwrap();
    let resume = [&["runs", "resume", run, "--json"][..], &FLAGS].concat();
    let ran = lab.run(&resume);
    let text = std::fs::read_to_string(lab.work().join("log.txt")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let numbers: Vec<&str> = lines
        .iter()
        .filter_map(|l| l.split_once(' '))
        .map(|(n, _)| n)
        .collect();
    let expect: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    // The script saw the same times and the same random numbers both times.
    let stamps: std::collections::BTreeSet<_> = lines
        .iter()
        .filter_map(|l| l.split_once(' '))
        .map(|(_, s)| s)
        .collect();
    assert!(stamps.len() <= 1, "{text}");
    let fate = match ran.code {
        0 => {
            assert_eq!(numbers, expect, "after {after:?}: {}", ran.stdout);
            Fate::Finished
        }
        1 => {
            let said = match &*ran.stdout {
                "" => &ran.stderr,
                outcome => outcome,
            };
            assert!(said.contains("may have run"), "{said}");
            assert!(lines.len() < 10 || numbers == expect, "{text}");
            assert_eq!(numbers, expect[..numbers.len()], "{text}");
            Fate::InDoubt
        }
        2 => {
            assert_eq!(numbers, expect, "after {after:?}: {}", ran.stderr);
            Fate::Over
        }
        code => panic!("exit {code}: {}{}", ran.stdout, ran.stderr),
    };
    // Whatever the result, it is not resumed twice, and the record is sound.
    let again = lab.run(&resume);
    // A call that cannot be resumed has no outcome: it stays in doubt, and is reported as such. Every other run has ended.
    let said = format!("{}{}", again.stdout, again.stderr);
    if ran.code == 1 && ran.stdout.is_empty() {
        assert_eq!((again.code, &*again.stdout), (1, ""), "{said}");
        assert_eq!(again.stderr, ran.stderr);
    } else {
        assert_eq!(again.code, 2, "{said}");
    }
    let verified: Value = lab.run(&["runs", "verify", run, "--json"]).json();
    assert_eq!(verified["ok"], true, "{verified}");
    let after = std::fs::read_to_string(lab.work().join("log.txt")).unwrap_or_default();
    assert_eq!(after, text);
    fate
}

#[test]
fn a_chain_killed_at_random_points_and_resumed_does_everything_once() {
    let length = length(&Lab::new());
    let point = move |n: u32| length * ((n * 37) % POINTS) / POINTS;
    let at_once = (0..LABS).map(|lab| {
        std::thread::spawn(move || {
            let points = (0..POINTS).filter(|n| n % LABS == lab);
            points
                .map(|n| kill_and_resume(point(n)))
                .collect::<Vec<_>>()
        })
    });
    let at_once: Vec<_> = at_once.collect();
    let mut fates: BTreeMap<Fate, u32> = BTreeMap::new();
    for fate in at_once.into_iter().flat_map(|lab| lab.join().unwrap()) {
        *fates.entry(fate).or_default() += 1;
    }
    eprintln!("{fates:?}");
    assert!(fates.contains_key(&Fate::Finished), "{fates:?}");
}
