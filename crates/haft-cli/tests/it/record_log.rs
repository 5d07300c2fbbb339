//! The signed log of finished runs: what is done to records, log and checkpoints behind haft's back, and what `runs verify --log` says.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Lab, Ran};

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let new = to.join(entry.file_name());
        if kind.is_dir() {
            copy(&path, &new);
        } else if kind.is_file() {
            fs::copy(path, new).unwrap();
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}

/// A state folder with three finished runs, the folder of the key beside it, and copies of both.
struct Scene {
    lab: Lab,
    runs: Vec<String>,
}

impl Scene {
    fn new() -> Self {
        let lab = Lab::new();
        let mut scene = Self {
            lab,
            runs: Vec::new(),
        };
        for _ in 0..3 {
            scene.finish_run();
            let older = format!("older-{}", scene.runs.len());
            fs::copy(scene.log("checkpoint"), scene.beside(&older)).unwrap();
        }
        copy(&scene.lab.home(), &scene.beside("home-copy"));
        copy(&scene.data(), &scene.beside("data-copy"));
        scene
    }

    fn finish_run(&mut self) {
        let ran = self.lab.run(&["call", "list_files"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let listed = self.lab.run(&["runs", "list", "--json"]).json();
        self.runs
            .push(listed[0]["run"].as_str().unwrap().to_owned());
    }

    /// Undoes what was changed.
    fn restore(&self) {
        for (folder, kept) in [(self.lab.home(), "home-copy"), (self.data(), "data-copy")] {
            fs::remove_dir_all(&folder).unwrap();
            copy(&self.beside(kept), &folder);
        }
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.lab.work().parent().unwrap().join(name)
    }

    fn data(&self) -> PathBuf {
        self.beside(".local/share/haft")
    }

    fn log(&self, name: &str) -> PathBuf {
        self.lab.home().join("log").join(name)
    }

    fn record(&self, run: usize) -> PathBuf {
        self.lab
            .home()
            .join("runs")
            .join(&self.runs[run])
            .join("events.jsonl")
    }

    fn verify(&self, more: &[&str]) -> Ran {
        self.lab
            .run(&[&["runs", "verify", "--log", "--json"], more].concat())
    }

    /// Leaves the first `count` leaves and their checkpoint.
    fn roll_back(&self, count: usize) {
        let leaves = fs::read_to_string(self.log("leaves")).unwrap();
        let first: String = leaves.split_inclusive('\n').take(count).collect();
        fs::write(self.log("leaves"), first).unwrap();
        fs::copy(
            self.beside(&format!("older-{count}")),
            self.log("checkpoint"),
        )
        .unwrap();
        fs::remove_file(self.log("edge")).unwrap();
    }

    /// Does the same with the checkpoint that is kept outside of the state folder.
    fn roll_back_seen(&self, count: usize) {
        let seen = fs::read_dir(self.data().join("checkpoints")).unwrap();
        let seen = seen.map(|entry| entry.unwrap().path()).next().unwrap();
        fs::copy(self.beside(&format!("older-{count}")), seen).unwrap();
    }
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    let other = text.replacen(from, to, 1);
    assert_ne!(text, other, "{}", path.display());
    fs::write(path, other).unwrap();
}

/// Returns the kinds of the findings, sorted, each with the place of its run.
fn findings(scene: &Scene, report: &Value) -> Vec<String> {
    let found = report["faults"].as_array().unwrap().iter().map(|fault| {
        let kind = fault["kind"].as_str().unwrap();
        let run = scene
            .runs
            .iter()
            .position(|run| fault["run"] == run.as_str());
        run.map_or_else(|| kind.to_owned(), |run| format!("{kind} {run}"))
    });
    let mut found: Vec<String> = found.collect();
    found.sort_unstable();
    found
}

/// What is done behind haft's back.
type Attack = fn(&Scene);

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_log_when_anything_is_rewritten_says_what() {
    let scene = Scene::new();
    let rows: [(&str, &[&str], &[&str], Attack); 19] = [
        ("nothing", &[], &[], |_| ()),
        ("a word of a record", &[], &["changed 1"], |scene| {
            replace(&scene.record(1), "list_files", "read_files");
        }),
        ("a record's end is cut", &[], &["changed 1"], |scene| {
            let text = fs::read_to_string(scene.record(1)).unwrap();
            let end = text.trim_end().rfind('\n').unwrap();
            fs::write(scene.record(1), &text[..=end]).unwrap();
        }),
        (
            "a record in place of another",
            &[],
            &["changed 1"],
            |scene| {
                let other = fs::read_to_string(scene.record(0)).unwrap();
                let other = other.replace(&scene.runs[0], &scene.runs[1]);
                fs::write(scene.record(1), other).unwrap();
            },
        ),
        ("a run is removed", &[], &["removed 1"], |scene| {
            fs::remove_dir_all(scene.record(1).parent().unwrap()).unwrap();
        }),
        (
            "an old run is removed, as was said",
            &["--kept-since", "2999-01-01"],
            &[],
            |scene| {
                fs::remove_dir_all(scene.record(1).parent().unwrap()).unwrap();
            },
        ),
        (
            "a young run is removed",
            &["--kept-since", "2001-01-01T00:00:00Z"],
            &["removed 1"],
            |scene| {
                fs::remove_dir_all(scene.record(1).parent().unwrap()).unwrap();
            },
        ),
        ("a finished run is put in", &[], &["missing"], |scene| {
            let run = scene.record(1).parent().unwrap().to_owned();
            let text = fs::read_to_string(scene.record(1)).unwrap();
            copy(&run, &run.with_file_name("forged"));
            fs::write(run.with_file_name("forged").join("events.jsonl"), text).unwrap();
        }),
        (
            "a leaf",
            &[],
            &["changed 1", "rewritten", "rewritten"],
            |scene| {
                let leaves = fs::read_to_string(scene.log("leaves")).unwrap();
                let head = leaves
                    .lines()
                    .nth(1)
                    .unwrap()
                    .rsplit(' ')
                    .next()
                    .unwrap()
                    .to_owned();
                replace(&scene.log("leaves"), &head, &"0".repeat(64));
            },
        ),
        (
            "a leaf is no line",
            &[],
            &["missing 1", "rewritten", "rewritten", "rewritten"],
            |scene| {
                replace(&scene.log("leaves"), &scene.runs[1].clone(), "../..");
            },
        ),
        (
            "leaves change places",
            &[],
            &["rewritten", "rewritten"],
            |scene| {
                let leaves = fs::read_to_string(scene.log("leaves")).unwrap();
                let lines: Vec<&str> = leaves.split_inclusive('\n').collect();
                fs::write(scene.log("leaves"), [lines[1], lines[0], lines[2]].concat()).unwrap();
            },
        ),
        (
            "the last leaf is cut",
            &[],
            &["missing 2", "truncated", "truncated"],
            |scene| {
                let leaves = fs::read_to_string(scene.log("leaves")).unwrap();
                fs::write(scene.log("leaves"), &leaves[..leaves.len() - 1]).unwrap();
            },
        ),
        (
            "the log is rolled back",
            &[],
            &["missing 2", "truncated"],
            |scene| scene.roll_back(2),
        ),
        (
            "the log and the last run are rolled back",
            &[],
            &["truncated"],
            |scene| {
                scene.roll_back(2);
                fs::remove_dir_all(scene.record(2).parent().unwrap()).unwrap();
            },
        ),
        (
            "all that is on this machine is rolled back",
            &["--checkpoint", "OLDER-3"],
            &["truncated"],
            |scene| {
                scene.roll_back(2);
                scene.roll_back_seen(2);
                fs::remove_dir_all(scene.record(2).parent().unwrap()).unwrap();
            },
        ),
        ("a checkpoint", &[], &["signature"], |scene| {
            replace(&scene.log("checkpoint"), "\n3\n", "\n2\n");
        }),
        ("the checkpoint is removed", &[], &["signature"], |scene| {
            fs::remove_file(scene.log("checkpoint")).unwrap();
        }),
        (
            "the key is another",
            &[],
            &["signature", "signature"],
            |scene| {
                let other = "haft record key 1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
                fs::write(scene.data().join("record.key"), other).unwrap();
            },
        ),
        (
            "the whole log is removed",
            &[],
            &["missing 0", "missing 1", "missing 2", "truncated"],
            |scene| {
                fs::remove_dir_all(scene.lab.home().join("log")).unwrap();
            },
        ),
    ];
    let older = scene.beside("older-3").display().to_string();
    for (name, options, expect, attack) in rows {
        scene.restore();
        attack(&scene);
        let options: Vec<&str> = options
            .iter()
            .map(|word| if *word == "OLDER-3" { &older } else { *word })
            .collect();
        let ran = scene.verify(&options);
        let report = ran.json();
        assert_eq!(findings(&scene, &report), expect, "{name}: {report:#}");
        assert_eq!(
            (ran.code, &report["ok"]),
            (i32::from(!expect.is_empty()), &json!(expect.is_empty())),
            "{name}"
        );
    }
}

#[test]
fn a_log_is_verified_by_a_key_and_checkpoints_from_elsewhere() {
    let scene = Scene::new();
    let key = scene.lab.run(&["runs", "log-key"]).stdout;
    let key = key.trim();
    let (older, newer) = (scene.beside("older-1"), scene.beside("older-3"));
    let (older, newer) = (older.display().to_string(), newer.display().to_string());
    fs::remove_file(scene.data().join("record.key")).unwrap();
    let report = scene.verify(&[]).json();
    assert_eq!(
        findings(&scene, &report),
        ["signature"],
        "without any key: {report:#}"
    );
    let ran = scene.verify(&["--key", key, "--checkpoint", &older, "--checkpoint", &newer]);
    let report = ran.json();
    assert_eq!(ran.code, 0, "{report:#}");
    assert_eq!(
        (&report["size"], &report["runs"], &report["key"]),
        (&json!(3), &json!(3), &json!(key))
    );
    let sizes: Vec<&Value> = report["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["size"])
        .collect();
    assert_eq!(sizes, [&json!(3), &json!(3), &json!(1), &json!(3)]);
    // A checkpoint of something else, a key of another log, words that are neither.
    let other = Scene::new();
    let foreign = other.beside("older-1").display().to_string();
    let foreign_key = other.lab.run(&["runs", "log-key"]).stdout;
    for options in [
        vec!["--key", key, "--checkpoint", &foreign],
        vec!["--key", key, "--checkpoint", "/no/such/file"],
        vec!["--key", foreign_key.trim()],
    ] {
        let ran = scene.verify(&options);
        assert_eq!(
            (ran.code, ran.json()["ok"].as_bool()),
            (1, Some(false)),
            "{options:?}"
        );
    }
    for options in [["--key", "nonsense"], ["--kept-since", "soon"]] {
        assert_eq!(scene.verify(&options).code, 2, "{options:?}");
    }
}

#[test]
fn a_missing_key_stops_no_run_unless_the_settings_say_so() {
    let mut scene = Scene::new();
    let key = scene.lab.run(&["runs", "log-key"]).stdout;
    let key = key.trim();
    fs::remove_file(scene.data().join("record.key")).unwrap();
    scene.finish_run();
    let report = scene.verify(&["--key", key]).json();
    assert_eq!(
        (&report["ok"], &report["pending"]),
        (&json!(true), &json!([scene.runs[3]]))
    );
    let doctor = scene.lab.run(&["doctor", "--json"]).json();
    let record = doctor["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "record");
    assert_eq!(record.unwrap()["ok"], false, "{record:?}");
    let refused = scene
        .lab
        .run(&["call", "list_files", "-c", "record.on_fault=refuse"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("record.key"),
        "{refused:?}"
    );
}

#[test]
fn the_key_and_the_anchor_are_seen_by_no_tool_and_checkpoints_are_anchored() {
    let lab = Lab::new();
    let anchor = lab.work().join("anchor.txt");
    lab.user_settings(&format!("record.anchor = \"{}\"\n", anchor.display()));
    for _ in 0..2 {
        assert_eq!(lab.run(&["call", "list_files"]).code, 0);
    }
    let text = fs::read_to_string(&anchor).unwrap();
    assert_eq!(text.matches("\u{2014} haft-record/").count(), 2, "{text}");
    let listed = lab.run(&["call", "list_files"]);
    assert!(!listed.stdout.contains("anchor.txt"), "{}", listed.stdout);
    let read = lab.run(&[
        "call",
        "read_file",
        "path=anchor.txt",
        "--profile",
        "trusted",
    ]);
    assert_ne!(read.code, 0, "{}", read.stdout);
    let command = lab.run(&[
        "call",
        "run_command",
        "command=cat anchor.txt",
        "--profile",
        "trusted",
    ]);
    assert!(
        !command.stdout.contains("haft-record"),
        "{}",
        command.stdout
    );
    let data = lab.home().parent().unwrap().join(".local/share");
    let shown = format!("sandbox.read=[\"{}\"]", data.display());
    let command = format!("command=cat {}/haft/record.key", data.display());
    let command = lab.run(&[
        "call",
        "run_command",
        &command,
        "--profile",
        "trusted",
        "-c",
        &shown,
    ]);
    assert!(
        !command.stdout.contains("haft record key"),
        "{}",
        command.stdout
    );
    // An anchor that was edited no longer says the same.
    let report = lab.run(&["runs", "verify", "--log", "--json"]).json();
    assert_eq!(report["ok"], true, "{report:#}");
    let first = text.find("\u{2014}").unwrap();
    let damaged = format!("{}X{}", &text[..first + 30], &text[first + 31..]);
    fs::write(&anchor, damaged).unwrap();
    let report = lab.run(&["runs", "verify", "--log", "--json"]).json();
    assert_eq!(report["ok"], false, "{report:#}");
}

#[test]
fn settings_of_the_log_that_cannot_hold_are_told() {
    let lab = Lab::new();
    for (setting, part) in [
        ("record.key=\"relative\"", "not an absolute path"),
        ("record.anchor=\"relative\"", "not an absolute path"),
        ("record.on_fault=\"never\"", "record.on_fault"),
    ] {
        let ran = lab.run(&["call", "list_files", "-c", setting]);
        assert!(
            ran.code == 5 && ran.stderr.contains(part),
            "{setting}: {ran:?}"
        );
    }
    let inside = format!("record.key=\"{}/record.key\"", lab.home().display());
    let ran = lab.run(&["call", "list_files", "-c", &inside]);
    assert!(
        ran.code == 5 && ran.stderr.contains("must not have the key"),
        "{ran:?}"
    );
}

#[test]
fn a_run_is_exported_as_recorded_and_as_events_of_security() {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    assert_eq!(lab.run(&["call", "read_file", "path=a.txt"]).code, 0);
    let listed = lab.run(&["runs", "list", "--json"]).json();
    let run = listed[0]["run"].as_str().unwrap();
    let lines = |ran: &Ran| -> Vec<Value> {
        let lines = ran
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    };
    let record = lab.run(&["runs", "export", run]);
    let text = fs::read_to_string(lab.home().join("runs").join(run).join("events.jsonl")).unwrap();
    assert_eq!(record.stdout, text);
    let events = lines(&lab.run(&["runs", "export", &run[..run.len() - 1], "--format", "ocsf"]));
    let types: Vec<&Value> = events.iter().map(|event| &event["type_uid"]).collect();
    assert_eq!(types, [&json!(600_203), &json!(600_302), &json!(600_204)]);
    for event in &events {
        assert_eq!(event["metadata"]["version"], "1.8.0");
        assert_eq!(event["metadata"]["correlation_uid"], run);
    }
    assert_eq!(
        events[1]["api"]["request"]["data"],
        json!({"path": "a.txt"})
    );
    assert_eq!(lab.run(&["runs", "export", "nothing"]).code, 2);
}
