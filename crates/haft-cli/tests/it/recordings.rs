//! Recorded sessions at a terminal: each can be recorded again, and the page with one shows what haft prints now.
//!
//! `HAFT_DOCS=write` updates the session in docs/guide/first-task.md, and docs/images/first-task.cast along with it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::Lab;

/// The marks around the session on the page.
const MARKS: (&str, &str) = ("```text\n~/shop $ ", "```\n");

/// A recording: the final screen, and the file.
struct Recorded {
    text: String,
    cast: String,
}

/// Records a session with the script of this name; `None` if this machine lacks something that it needs.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn record(lab: &Lab, name: &str, needs: &[&str]) -> Option<Recorded> {
    let has = |program: &str, args: &[&str]| {
        let ran = lab.program(program, args).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    let space = ["--mount", "sh", "-c", "mount -t tmpfs tmpfs /home"];
    if !has("unshare", &space) || needs.iter().any(|need| !has(need, &["--version"])) {
        eprintln!(
            "SKIPPED: it takes {} and a mount namespace as root",
            needs.join(", ")
        );
        return None;
    }
    let cast = lab.work().join("cast");
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scripts")
        .join(name);
    let args = [env!("CARGO_BIN_EXE_haft"), cast.to_str().unwrap()];
    let recorded = lab
        .program(script.to_str().unwrap(), &args)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&recorded.stderr);
    assert!(recorded.status.success(), "{stderr}");
    Some(Recorded {
        text: String::from_utf8(recorded.stdout).unwrap(),
        cast: fs::read_to_string(cast).unwrap(),
    })
}

/// Returns everything that a recording shows.
fn output(cast: &str) -> String {
    let mut lines = cast.lines().map(serde_json::from_str::<Value>);
    assert_eq!(lines.next().unwrap().unwrap()["version"], 2);
    lines
        .map(|line| line.unwrap()[2].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_recording_of_the_first_minutes_can_be_made_anew() {
    let Some(recorded) = record(&Lab::new(), "first-minutes", &["node", "git"]) else {
        return;
    };
    let output = output(&recorded.cast);
    for part in [
        "wrote /home/ana/shop/haft.toml",
        "run it?",
        "restored price.js",
    ] {
        assert!(output.contains(part), "no {part:?} in {output}");
    }
}

/// The answer of the recorded user.
const TYPED: &str = "y";

/// Returns the lines of a session without ids, times and counts, and unordered: parallel calls end in any order. Only the beginning of
/// a patch: how much of it fits depends on the length of its time.
fn lines(session: &str) -> Vec<String> {
    const UNITS: [&str; 3] = ["us", "ms", "s"];
    let mask = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        match word {
            _ if word.contains(|c: char| c.is_ascii_digit()) => "#".to_owned(),
            _ if UNITS.contains(&bare) => word.replace(bare, "#"),
            _ => word.to_owned(),
        }
    };
    // Columns are as wide as their content.
    let line = |line: &str| {
        let (line, _) = line.split_once("*** Begin Patch").unwrap_or((line, ""));
        line.split_whitespace()
            .map(mask)
            .collect::<Vec<_>>()
            .join(" ")
    };
    // The terminal echoes what is typed: after the question, or below it.
    let line = |text: &str| match line(text).as_str() {
        TYPED => String::new(),
        text => {
            let question = text.strip_suffix(TYPED);
            let question = question.filter(|text| text.ends_with("? why"));
            question.unwrap_or(text).to_owned()
        }
    };
    let lines = session.lines().map(line);
    let mut lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.sort();
    lines
}

#[test]
fn the_page_of_the_first_task_shows_the_session_that_haft_prints_now() {
    let Some(recorded) = record(&Lab::new(), "first-task", &["git"]) else {
        return;
    };
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (file, cast) = (
        docs.join("guide/first-task.md"),
        docs.join("images/first-task.cast"),
    );
    let page = fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(MARKS.0).unwrap();
    let (session, after) = rest.split_once(MARKS.1).unwrap();
    let now = recorded.text.strip_prefix("~/shop $ ").unwrap();
    if std::env::var_os("HAFT_DOCS").is_some_and(|value| value == "write") {
        let page = format!("{before}{}{now}{}{after}", MARKS.0, MARKS.1);
        fs::write(&file, page).unwrap();
        fs::write(&cast, &recorded.cast).unwrap();
        return;
    }
    let write = "HAFT_DOCS=write writes it anew";
    assert_eq!(
        lines(session),
        lines(now),
        "docs/guide/first-task.md: {write}"
    );
    // The recording that is played shows the same session.
    let played = output(&fs::read_to_string(&cast).unwrap());
    for part in ["run it?", "the README points to them", "denied"] {
        assert!(
            played.contains(part),
            "no {part:?} in {}: {write}",
            cast.display()
        );
    }
}
