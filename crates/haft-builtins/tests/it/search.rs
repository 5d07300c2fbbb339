//! list, glob, grep: compared to a naive walk, and at their limits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::error::ErrorKind;
use haft::permission::Permission;
use haft::workspace::Workspace;
use haft_builtins::files::{FileCaller, FileOptions, Files};
use haft_builtins::search::grep::{GrepFilesInput, grep_files};
use serde_json::{Value, json};

use crate::scene::Scene;

fn paths(data: &Value) -> Vec<String> {
    let list = data["entries"]
        .as_array()
        .unwrap_or_else(|| data["matches"].as_array().unwrap());
    list.iter()
        .map(|e| e["path"].as_str().unwrap().to_owned())
        .collect()
}

fn tree(scene: &Scene) {
    fs::create_dir(scene.at(".git")).unwrap();
    scene.put(".gitignore", "/target\n*.log\n");
    scene.put("src/main.rs", "fn main() {\n    needle();\n}\n");
    scene.put("src/deep/er/lib.rs", "// needle\n// Needle\nfn x() {}\n");
    scene.put("README.md", "# needle\n");
    scene.put("target/out.rs", "needle\n");
    scene.put("a.log", "needle\n");
    scene.put(".hidden/x.rs", "needle\n");
    scene.put("bin.dat", b"needle\0needle\n");
    scene.put("latin.txt", b"n\xe9edle needle\n");
    fs::create_dir(scene.dir.path().join("outside")).unwrap();
    fs::write(scene.dir.path().join("outside/o.rs"), "needle\n").unwrap();
    symlink("../outside", scene.at("leave")).unwrap();
    symlink("src", scene.at("link")).unwrap();
}

#[tokio::test]
async fn a_list_is_sorted_and_leaves_out_what_git_ignores() {
    let scene = Scene::new();
    tree(&scene);
    let got = scene.data("list_files", json!({})).await;
    let expect = [
        "README.md",
        "bin.dat",
        "latin.txt",
        "leave",
        "link",
        "src",
        "src/deep",
        "src/main.rs",
    ];
    assert_eq!(paths(&got), expect);
    assert_eq!(got["truncated"], false);
    let main = &got["entries"][7];
    assert_eq!(
        main,
        &json!({"path": "src/main.rs", "kind": "file", "bytes": 28})
    );
    assert_eq!(got["entries"][3]["kind"], "link");
    let got = scene
        .data("list_files", json!({"depth": 1, "hidden": true}))
        .await;
    assert!(
        paths(&got).contains(&".hidden".to_owned()) && paths(&got).contains(&".git".to_owned())
    );
    let got = scene
        .data("list_files", json!({"path": "src", "depth": 3, "limit": 2}))
        .await;
    assert_eq!(paths(&got), ["src/deep", "src/main.rs"]);
    assert_eq!(got["truncated"], true);
    let got = scene
        .data("list_files", json!({"path": "link", "depth": 1}))
        .await;
    assert_eq!(paths(&got), ["src/deep", "src/main.rs"]);
}

#[tokio::test]
async fn globs_match_below_the_folder() {
    let scene = Scene::new();
    tree(&scene);
    let rows: &[(&str, &str, &[&str])] = &[
        ("*.rs", ".", &["src/deep/er/lib.rs", "src/main.rs"]),
        ("src/*.rs", ".", &["src/main.rs"]),
        ("/*.md", ".", &["README.md"]),
        (
            "**/*.{rs,md}",
            ".",
            &["README.md", "src/deep/er/lib.rs", "src/main.rs"],
        ),
        ("deep/**", "src", &["src/deep/er/lib.rs"]),
        ("./src/m*.rs", ".", &["src/main.rs"]),
        (".hidden/*", ".", &[".hidden/x.rs"]),
        ("*.py", ".", &[]),
    ];
    for (pattern, path, expect) in rows {
        let got = scene
            .data("glob_files", json!({"pattern": pattern, "path": path}))
            .await;
        assert_eq!(&paths(&got), expect, "{pattern}");
    }
    let got = scene
        .data("glob_files", json!({"pattern": "*", "limit": 2}))
        .await;
    assert_eq!((paths(&got).len(), &got["truncated"]), (2, &json!(true)));
}

#[tokio::test]
async fn greps_in_every_form() {
    let scene = Scene::new();
    tree(&scene);
    let got = scene.data("grep_files", json!({"pattern": "needle"})).await;
    let expect = json!([
        {"path": "README.md", "line": 1, "text": "# needle"},
        {"path": "latin.txt", "line": 1, "text": "n\u{fffd}edle needle"},
        {"path": "src/deep/er/lib.rs", "line": 1, "text": "// needle"},
        {"path": "src/main.rs", "line": 2, "text": "    needle();"},
    ]);
    assert_eq!(got, json!({"matches": expect, "truncated": false}));
    let rows = [
        (
            json!({"pattern": "needle", "type": "rust"}),
            vec!["src/deep/er/lib.rs", "src/main.rs"],
        ),
        (
            json!({"pattern": "needle", "glob": "!*.rs"}),
            vec!["README.md", "latin.txt"],
        ),
        (
            json!({"pattern": "needle", "path": "src/main.rs"}),
            vec!["src/main.rs"],
        ),
        (
            json!({"pattern": "NEEDLE", "ignore_case": true, "path": "src"}),
            vec!["src/deep/er/lib.rs", "src/deep/er/lib.rs", "src/main.rs"],
        ),
        (
            json!({"pattern": "^fn", "output": "files"}),
            vec!["src/deep/er/lib.rs", "src/main.rs"],
        ),
        (
            json!({"pattern": "main\\(\\) \\{\\n +needle", "multiline": true}),
            vec!["src/main.rs"],
        ),
        (json!({"pattern": "absent"}), vec![]),
    ];
    for (args, expect) in rows {
        let got = scene.data("grep_files", args.clone()).await;
        assert_eq!(paths(&got), expect, "{args}");
    }
}

#[tokio::test]
async fn greps_that_count_or_show_what_lies_around() {
    let scene = Scene::new();
    tree(&scene);
    let got = scene
        .data(
            "grep_files",
            json!({"pattern": "(?i)needle", "output": "count", "path": "src"}),
        )
        .await;
    assert_eq!(
        got["matches"],
        json!([{"path": "src/deep/er/lib.rs", "count": 2}, {"path": "src/main.rs", "count": 1}])
    );
    let got = scene
        .data(
            "grep_files",
            json!({"pattern": "needle", "path": "src/main.rs", "before": 1, "after": 1}),
        )
        .await;
    assert_eq!(
        got["matches"],
        json!([
            {"path": "src/main.rs", "line": 1, "text": "fn main() {", "context": true},
            {"path": "src/main.rs", "line": 2, "text": "    needle();"},
            {"path": "src/main.rs", "line": 3, "text": "}", "context": true},
        ])
    );
}

#[tokio::test]
async fn a_capped_grep_returns_so_many_and_says_so() {
    let scene = Scene::new();
    for n in 0..40 {
        scene.put(&format!("f{n:02}"), "hit\n".repeat(20));
    }
    let got = scene
        .data("grep_files", json!({"pattern": "hit", "limit": 50}))
        .await;
    let found = paths(&got);
    assert_eq!((found.len(), &got["truncated"]), (50, &json!(true)));
    assert!(found.is_sorted());
    let got = scene
        .data("grep_files", json!({"pattern": "hit", "limit": 800}))
        .await;
    assert_eq!((paths(&got).len(), &got["truncated"]), (800, &json!(false)));
    let got = scene
        .data(
            "grep_files",
            json!({"pattern": "hit", "output": "files", "limit": 7}),
        )
        .await;
    assert_eq!((paths(&got).len(), &got["truncated"]), (7, &json!(true)));
}

#[tokio::test]
async fn a_long_line_is_cut() {
    let scene = Scene::new();
    scene.put("long", format!("{}needle\n", "é".repeat(1000)));
    let got = scene.data("grep_files", json!({"pattern": "needle"})).await;
    let text = got["matches"][0]["text"].as_str().unwrap();
    assert_eq!(text, format!("{}…", "é".repeat(500)));
}

#[tokio::test]
async fn p11_a_search_stops_inside_a_file_when_its_call_has_ended() {
    let scene = Scene::new();
    scene.put("large", "nothing here\n".repeat(2 << 20));
    let workspace = Workspace::open(&scene.at("")).unwrap();
    let input = json!({"pattern": "needle"});
    let claim = workspace.claim(".").unwrap();
    let files = Files::new(workspace, FileOptions::default(), None);
    let caller = FileCaller::cleared_for(vec![Permission::read(claim)], &files);
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 5;
    grep_files(&serde_json::from_value(input).unwrap(), &caller, &stop).unwrap();
    let asked = asked.into_inner();
    assert!((6..=10).contains(&asked), "asked {asked} times");
}

#[tokio::test]
async fn p11_a_pattern_that_may_take_long_is_refused_or_looks_at_short_lines_alone() {
    let scene = Scene::new();
    scene.put("long", "a".repeat(50 << 20));
    scene.put("short", "aab\n");
    let refused = scene
        .call("grep_files", json!({"pattern": "(?:a{1,1000}){1,100}b"}))
        .await;
    let error = refused.error.unwrap();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    assert!(error.advice.unwrap().contains("repeat less often"));
    for multiline in [false, true] {
        let got = scene
            .data(
                "grep_files",
                json!({"pattern": "(?:a{1,100}){1,100}b", "multiline": multiline}),
            )
            .await;
        assert_eq!(paths(&got), ["short"]);
        assert_eq!(got["truncated"], true);
        let note = got["notes"][0].as_str().unwrap();
        assert!(note.starts_with("1 file was not searched"), "{note}");
    }
    let got = scene.data("grep_files", json!({"pattern": "aab"})).await;
    assert_eq!(
        (paths(&got), got.get("notes")),
        (vec!["short".to_owned()], None)
    );
}

/// A search of one file.
struct Row {
    name: &'static str,
    file: Vec<u8>,
    pattern: &'static str,
    /// Lines before and after a match.
    around: (usize, usize),
    multiline: bool,
    /// Number of lines in the result.
    lines: usize,
    /// A part of the expected note, if there is one.
    note: Option<&'static str>,
}

/// Returns a file with one match among `others` other lines of `bytes` bytes.
fn log(others: usize, bytes: usize) -> String {
    let rest = format!("{}\n", "x".repeat(bytes - 1)).repeat(others / 2);
    format!("{rest}a ParseError here\n{rest}")
}

fn utf16(text: &str) -> Vec<u8> {
    let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

/// A pattern that may only search 8 KiB at a time.
const SLOW: &str = r"\b[A-Z]\w{2,30}Error\b";
/// The same across lines.
const SPANS: &str = r"[A-Z]\w{2,30}Error\s+h";

#[rustfmt::skip]
fn bounded_rows() -> Vec<Row> {
    let short = || log(800, 160).into_bytes();
    let line = Some("lines of at most 8 KiB");
    vec![
        Row { name: "before", file: short(), pattern: SLOW, around: (100, 0), multiline: false, lines: 101, note: None },
        Row { name: "after", file: short(), pattern: SLOW, around: (0, 100), multiline: false, lines: 101, note: None },
        Row { name: "both", file: short(), pattern: SLOW, around: (100, 100), multiline: false, lines: 201, note: None },
        Row { name: "long lines", file: log(200, 8_000).into(), pattern: SLOW, around: (10, 10), multiline: false, lines: 21, note: None },
        Row { name: "multiline that spans none", file: short(), pattern: SLOW, around: (100, 0), multiline: true, lines: 101, note: None },
        Row { name: "UTF-16", file: utf16(&log(800, 160)), pattern: SLOW, around: (100, 100), multiline: false, lines: 201, note: None },
        Row { name: "a line too long", file: log(2, 9_000).into(), pattern: SLOW, around: (1, 1), multiline: false, lines: 0, note: line },
        Row { name: "U+0A61 does not end a line", file: utf16(&"\u{a61}".repeat(1 << 20)), pattern: SLOW, around: (0, 0), multiline: false, lines: 0, note: line },
        Row { name: "a file too long", file: short(), pattern: SPANS, around: (0, 0), multiline: true, lines: 0, note: Some("files of at most 8 KiB") },
        Row { name: "no room", file: log(60, 1 << 20).into(), pattern: "TODO|ParseError", around: (100, 0), multiline: false, lines: 0, note: Some("ask for fewer") },
    ]
}

/// P11: the limits on the text that a pattern searches lose no match, and the result says which limit was reached.
#[tokio::test]
async fn p11_context_lines_have_room_of_their_own() {
    for row in bounded_rows() {
        let (name, (before, after)) = (row.name, row.around);
        let scene = Scene::new();
        scene.put("log", row.file);
        let input = json!({
            "pattern": row.pattern, "before": before, "after": after, "multiline": row.multiline,
        });
        let got = scene.data("grep_files", input).await;
        let note = got["notes"][0].as_str();
        assert_eq!(paths(&got).len(), row.lines, "{name}: {note:?}");
        assert_eq!(note.is_some(), row.note.is_some(), "{name}: {note:?}");
        let says = row.note.unwrap_or_default();
        assert!(note.unwrap_or_default().contains(says), "{name}: {note:?}");
    }
}

/// P11: each cause is counted separately.
#[tokio::test]
async fn p11_files_that_were_not_searched_to_the_end_are_counted_by_cause() {
    let scene = Scene::new();
    for name in ["a", "b"] {
        scene.put(name, "x".repeat(9_000));
    }
    scene.put("c", [&b"\xff\xfe"[..], &[b'x', 0].repeat(9_000)].concat());
    let input = json!({"pattern": r"\b[A-Z]\w{2,30}Error\b"});
    let got = scene.data("grep_files", input.clone()).await;
    let bound = "this pattern looks at lines of at most 8 KiB; use a simpler one, or search for a plain text";
    let expect = format!("3 files were not searched to the end: {bound}");
    assert_eq!(got["notes"], json!([expect]));
    // The first page of a process's memory is a file that opens and cannot be read.
    let process = format!("/proc/{}", std::process::id());
    let workspace = Workspace::open(Path::new(&process)).unwrap();
    let claim = workspace.claim("mem").unwrap();
    let files = Files::new(workspace, FileOptions::default(), None);
    let caller = FileCaller::cleared_for(vec![Permission::read(claim)], &files);
    let mut input = serde_json::from_value::<GrepFilesInput>(input).unwrap();
    input.path = "mem".to_owned();
    let got = grep_files(&input, &caller, &|| false).unwrap();
    let expect = "0 matches, but 1 file was not searched to the end: reading ended with an error";
    assert_eq!(got.summary.as_deref(), Some(expect));
}

/// Collects every file below a folder with the lines that contain the needle, the slow way.
fn naive(folder: &Path, root: &Path, needle: &str, found: &mut Vec<(String, u64)>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            naive(&path, root, needle, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (n, line) in text.lines().enumerate() {
            if line.contains(needle) {
                let shown = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                found.push((shown, n as u64 + 1));
            }
        }
    }
}

/// Creates 200 files in folders up to three deep, from a fixed sequence, so that a failure can be reproduced.
fn haystack(scene: &Scene) {
    let mut state = 42_u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for n in 0..200 {
        let depth = next(4);
        let folder = (0..depth).map(|_| format!("d{}/", next(5)));
        let folder = folder.collect::<Vec<_>>().concat();
        let lines: String = (0..next(60))
            .map(|_| {
                [
                    "abc\n",
                    "needle in hay\n",
                    "\n",
                    "hay needle\n",
                    "日本 needle\n",
                ][usize::try_from(next(5)).unwrap()]
            })
            .collect();
        scene.put(&format!("{folder}f{n}.txt"), lines);
    }
}

#[tokio::test]
async fn grep_finds_what_a_naive_walk_finds() {
    let scene = Scene::new();
    haystack(&scene);
    let mut expect = Vec::new();
    naive(&scene.at(""), &scene.at(""), "needle", &mut expect);
    assert!(expect.len() > 1000);
    expect.sort();
    // A result over the inline limit becomes an artifact, so the test asks in parts by folder depth.
    let got = scene
        .data(
            "grep_files",
            json!({"pattern": "needle", "output": "count", "limit": 1000}),
        )
        .await;
    let counts: Vec<(String, u64)> = got["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| {
            (
                m["path"].as_str().unwrap().to_owned(),
                m["count"].as_u64().unwrap(),
            )
        })
        .collect();
    let mut wanted: Vec<(String, u64)> = Vec::new();
    for (path, _) in &expect {
        match wanted.last_mut() {
            Some((last, count)) if last == path => *count += 1,
            _ => wanted.push((path.clone(), 1)),
        }
    }
    assert_eq!(counts, wanted);
    for (path, _) in &wanted {
        let got = scene
            .data("grep_files", json!({"pattern": "needle", "path": path}))
            .await;
        let lines: Vec<u64> = got["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["line"].as_u64().unwrap())
            .collect();
        let right: Vec<u64> = expect
            .iter()
            .filter(|(p, _)| p == path)
            .map(|(_, n)| *n)
            .collect();
        assert_eq!(lines, right, "{path}");
    }
}
