//! What every tool that writes an existing text file keeps: character set, byte-order mark, line endings.

use std::fs;

use haft::ErrorKind::Failed;
use serde_json::{Value, json};

use crate::scene::Scene;

/// Returns a text as UTF-16 with its mark.
fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let units = text.encode_utf16();
    let marked = std::iter::once(0xfeff).chain(units);
    marked.flat_map(bytes).collect()
}

fn le(text: &str) -> Vec<u8> {
    utf16(text, u16::to_le_bytes)
}

fn be(text: &str) -> Vec<u8> {
    utf16(text, u16::to_be_bytes)
}

/// A tool and its arguments.
struct FileCall(&'static str, Value);

fn find(find: &str, replace: &str) -> FileCall {
    let edits = json!([{"find": find, "replace": replace}]);
    FileCall("edit_file", json!({"path": "f", "edits": edits}))
}

fn lines(start: u64, end: u64, replace: &str) -> FileCall {
    let edits = json!([{"start_line": start, "end_line": end, "replace": replace}]);
    FileCall("edit_file", json!({"path": "f", "edits": edits}))
}

fn patch(hunks: &str) -> FileCall {
    let patch = format!("*** Begin Patch\n*** Update File: f\n{hunks}\n*** End Patch");
    FileCall("apply_patch", json!({"patch": patch}))
}

fn write(content: &str) -> FileCall {
    FileCall("write_file", json!({"path": "f", "content": content}))
}

fn append(content: &str) -> FileCall {
    let args = json!({"path": "f", "content": content, "mode": "append"});
    FileCall("write_file", args)
}

/// The file, the call, the file afterwards.
type Row = (Vec<u8>, FileCall, Vec<u8>);

fn row(old: impl AsRef<[u8]>, call: FileCall, new: impl AsRef<[u8]>) -> Row {
    (old.as_ref().to_vec(), call, new.as_ref().to_vec())
}

async fn check(rows: Vec<Row>) {
    let scene = Scene::new();
    for (old, FileCall(tool, args), new) in rows {
        scene.put("f", &old);
        scene.data(tool, args.clone()).await;
        let got = fs::read(scene.at("f")).unwrap();
        let text = String::from_utf8_lossy(&got);
        assert_eq!(got, new, "{tool} {args} on {old:?} gives {text:?}");
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_no_part_of_line_1_and_stays() {
    let old = "\u{feff}a\nb\n";
    check(vec![
        row(old, find("a", "x"), "\u{feff}x\nb\n"),
        row(old, find("\u{feff}a", "x"), "\u{feff}x\nb\n"),
        row(old, lines(1, 1, "x"), "\u{feff}x\nb\n"),
        row(old, lines(1, 0, "x"), "\u{feff}x\na\nb\n"),
        row(old, lines(1, 2, ""), "\u{feff}"),
        row(old, patch("@@\n-a\n+x\n b"), "\u{feff}x\nb\n"),
        row(old, patch("@@\n-\u{feff}a\n+x\n b"), "\u{feff}x\nb\n"),
        row(
            old,
            patch("@@\n-\u{feff}a\n+\u{feff}x\n b"),
            "\u{feff}x\nb\n",
        ),
        row(old, patch("@@ a\n-b\n+x"), "\u{feff}a\nx\n"),
        row(old, write("x\n"), "\u{feff}x\n"),
        row(old, write("\u{feff}x"), "\u{feff}x"),
        row("a\n", write("\u{feff}x\n"), "\u{feff}x\n"),
        row(old, append("c"), "\u{feff}a\nb\nc"),
        row("a \u{feff}b\n", find("\u{feff}b", "c"), "a c\n"),
    ])
    .await;
}

#[tokio::test]
async fn line_endings_stay() {
    let crlf = "a\r\nb\r\n";
    let mixed = "a\r\nb\nc\r\nd\r\n";
    check(vec![
        row(crlf, write("a\nx\ny\n"), "a\r\nx\r\ny\r\n"),
        row(crlf, write("a\nx"), "a\r\nx"),
        row(crlf, write("a\r\nx\n"), "a\r\nx\n"),
        row(crlf, append("c\nd\n"), "a\r\nb\r\nc\r\nd\r\n"),
        row(crlf, find("b", "x\ny"), "a\r\nx\r\ny\r\n"),
        row(crlf, lines(2, 2, "x\ny\n"), "a\r\nx\r\ny\r\n"),
        row(crlf, find("a\r\n", "a\n"), "a\nb\r\n"),
        row(mixed, write("a\nb\nx\nd\n"), "a\r\nb\nx\r\nd\r\n"),
        row(mixed, find("b\nc", "b\nx\nc"), "a\r\nb\nx\r\nc\r\nd\r\n"),
        row(mixed, find("a\nb\nc", "a\nb\ny"), "a\r\nb\ny\r\nd\r\n"),
        row(mixed, patch("@@\n b\n+x\n c"), "a\r\nb\nx\r\nc\r\nd\r\n"),
        row("a\nb\n", write("x\r\n"), "x\r\n"),
        row("a\nb\n", write("x\n"), "x\n"),
        row("\u{feff}a\r\nb\r\n", write("x\ny\n"), "\u{feff}x\r\ny\r\n"),
        // A picture is replaced, not imitated.
        row(b"\x89PNG\r\n\0\r\n", write("x\n"), "x\n"),
    ])
    .await;
}

#[tokio::test]
async fn the_character_set_stays() {
    let latin = b"caf\xe9\r\nna\xefve\r\n";
    check(vec![
        row(le("aé😀\nb\n"), find("é", "日"), le("a日😀\nb\n")),
        row(be("a\r\nb\r\n"), lines(2, 2, "x\ny"), be("a\r\nx\r\ny\r\n")),
        row(le("a\r\nb\r\n"), patch("@@\n-a\n+x\n b"), le("x\r\nb\r\n")),
        row(le("a\n"), write("日\n"), le("日\n")),
        row(be("a\r\n"), append("b\n"), be("a\r\nb\r\n")),
        row(latin, find("café", "thé"), b"th\xe9\r\nna\xefve\r\n"),
        row(latin, lines(1, 1, "10 €"), b"10 \x80\r\nna\xefve\r\n"),
        row(
            latin,
            patch("@@\n café\n-naïve\n+ü"),
            b"caf\xe9\r\n\xfc\r\n",
        ),
        row(latin, write("ü\n"), b"\xfc\r\n"),
        row(latin, append("ü\n"), b"caf\xe9\r\nna\xefve\r\n\xfc\r\n"),
        // Valid in both UTF-8 and Windows-1252: UTF-8.
        row(b"\xc3\xa9\n", find("é", "日"), "日\n"),
        // Damaged UTF-8: what is not changed stays as it is.
        row(
            b"\xc3\xa9\xc3\xa9 a\xe9\nb\n",
            find("b", "日"),
            b"\xc3\xa9\xc3\xa9 a\xe9\n\xe6\x97\xa5\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_character_that_the_file_cannot_hold_is_named_and_nothing_is_written() {
    let scene = Scene::new();
    let latin = b"caf\xe9\nb\n";
    for FileCall(tool, args) in [
        find("b", "x\n日"),
        lines(2, 2, "日"),
        patch("@@\n-b\n+日"),
        write("日"),
        append("日"),
    ] {
        scene.put("f", latin);
        for says in ["Windows-1252", "'日' (U+65E5", "iconv -f"] {
            scene.fails(tool, args.clone(), Failed, says).await;
        }
        assert_eq!(fs::read(scene.at("f")).unwrap(), latin, "{tool}");
    }
    let torn = [
        &le("a\n")[..],
        &"x\n".repeat(9000).into_bytes(),
        &[0, 0xd8, b'a', 0],
    ]
    .concat();
    scene.put("f", &torn);
    let FileCall(tool, args) = find("a", "b");
    scene
        .fails(tool, args, Failed, "not characters in it")
        .await;
    assert_eq!(fs::read(scene.at("f")).unwrap(), torn);
    let moved = "diff --git a/f b/g\nrename from f\nrename to g\n";
    scene.data("apply_patch", json!({"patch": moved})).await;
    assert_eq!(fs::read(scene.at("g")).unwrap(), torn);
}

#[tokio::test]
async fn a_read_shows_text_in_every_character_set_and_says_which() {
    let scene = Scene::new();
    let long = "é日\n".repeat(20_000);
    let rows: Vec<(Vec<u8>, &str, u64, &str)> = vec![
        ("\u{feff}a\nb\n".into(), "a\nb\n", 2, "byte-order mark"),
        ("\u{feff}".into(), "", 0, "byte-order mark"),
        (le("aé\r\n😀"), "aé\r\n😀", 2, "UTF-16LE"),
        (be("\u{10a}\n"), "\u{10a}\n", 1, "UTF-16BE"),
        (le(&long), "é日\né日\n", 20_000, "UTF-16LE"),
        (b"caf\xe9 \x80\n".to_vec(), "café €\n", 1, "Windows-1252"),
        (
            [&b"a\nb\n".repeat(9_000)[..], b"\xe9"].concat(),
            "a\nb\n",
            18_001,
            "Windows-1252",
        ),
    ];
    for (bytes, expect, total, note) in rows {
        scene.put("f", &bytes);
        let args = json!({"path": "f", "max_lines": 2});
        let outcome = scene.call("read_file", args).await;
        let haft::Content::Text { text } = &outcome.content[0] else {
            panic!("{outcome:?}")
        };
        assert_eq!(text, expect);
        let got = crate::scene::data(&outcome);
        assert_eq!(got["total_lines"], total, "{expect:?}");
        let notes = outcome.notes.join(" ");
        assert!(notes.contains(note), "{expect:?}: {notes:?}");
        let sha256 = haft_builtins::files::sha256(&bytes);
        assert_eq!(got["sha256"], sha256, "{expect:?}");
    }
}
