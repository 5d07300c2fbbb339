//! read, write, edit, move, delete: their results, and how every bad input ends.

use std::fs;
use std::os::unix::fs::symlink;

use haft::ErrorKind::Conflict;
use haft::call::Origin;
use haft_builtins::files::FileOptions;
use proptest::prelude::*;
use serde_json::json;

use crate::scene::{Scene, data};

fn lines(count: usize) -> String {
    let lines = (1..=count).map(|n| format!("line {n}\n"));
    lines.collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn a_read_gives_raw_lines_and_says_what_follows() {
    let scene = Scene::new();
    let text = lines(1000);
    scene.put("a.txt", &text);
    let outcome = scene.call("read_file", json!({"path": "a.txt"})).await;
    let first = lines(400);
    assert!(outcome.text().starts_with(&first));
    assert_eq!(
        outcome.notes,
        ["lines 1-400 of 1,000; start_line=401 continues"]
    );
    let got = data(&outcome);
    for (member, expect) in [
        ("lines", json!(400)),
        ("total_lines", json!(1000)),
        ("truncated", json!(true)),
        ("start_line", json!(1)),
    ] {
        assert_eq!(got[member], expect, "{member}");
    }
    let outcome = scene
        .call(
            "read_file",
            json!({"path": "a.txt", "start_line": 999, "max_lines": 5}),
        )
        .await;
    assert_eq!(outcome.text(), "line 999\nline 1000\n");
    assert_eq!(data(&outcome)["truncated"], false);
}

/// text, start, max → the text shown, total lines, truncated
#[tokio::test]
async fn ranges_of_odd_texts() {
    let scene = Scene::new();
    let rows: &[(&str, u64, u64, &str, u64, bool)] = &[
        ("", 1, 10, "", 0, false),
        ("a", 1, 10, "a", 1, false),
        ("a\n", 1, 10, "a\n", 1, false),
        ("a\n\nb", 2, 1, "\n", 3, true),
        ("a\r\nb\r\n", 1, 10, "a\r\nb\r\n", 2, false),
        ("\n\n\n", 1, 2, "\n\n", 3, true),
        ("日本\nx", 1, 1, "日本\n", 2, true),
    ];
    for (text, start, max, expect, total, truncated) in rows {
        scene.put("f", text);
        let args = json!({"path": "f", "start_line": start, "max_lines": max});
        let outcome = scene.call("read_file", args).await;
        let shown = match &outcome.content[0] {
            haft::Content::Text { text } => text.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(&shown, expect, "{text:?}");
        let got = data(&outcome);
        assert_eq!(
            (&got["total_lines"], &got["truncated"]),
            (&json!(total), &json!(truncated)),
            "{text:?}"
        );
    }
}

#[tokio::test]
async fn a_large_file_is_streamed_and_its_long_lines_cut() {
    let scene = Scene::new();
    let long = "x".repeat(200_000);
    let text = format!("{long}\nshort\n{}", "y\n".repeat(500_000));
    scene.put("big", &text);
    let outcome = scene
        .call("read_file", json!({"path": "big", "max_lines": 2}))
        .await;
    let got = data(&outcome);
    assert_eq!(got["total_lines"], 500_002);
    let shown = outcome.text();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!((lines[0].len(), lines[1]), (16 * 1024, "short"));
    assert!(
        outcome.notes[0].contains("line 1 (and perhaps later ones) is longer than 16384 bytes"),
        "{:?}",
        outcome.notes
    );
    let digest = scene
        .data(
            "read_file",
            json!({"path": "big", "start_line": 400_000, "max_lines": 1}),
        )
        .await;
    assert_eq!(digest["sha256"], got["sha256"]);
}

#[tokio::test]
async fn what_is_no_text_is_named_and_not_shown() {
    let scene = Scene::new();
    let rows: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n\0\0\0", "image/png"),
        (b"\x7fELF\0\0", "application/x-executable"),
        (b"abc\0def", "application/octet-stream"),
        (b"\xff\xfeh\0i\xdc", "text/plain; charset=utf-16le"),
    ];
    for (bytes, media_type) in rows {
        scene.put("bin", bytes);
        let outcome = scene.call("read_file", json!({"path": "bin"})).await;
        let got = data(&outcome);
        assert_eq!(got["media_type"], *media_type);
        assert_eq!(got["bytes"], bytes.len());
        assert!(outcome.text().contains("is not text"), "{}", outcome.text());
    }
    scene.put("damaged", b"\xc3\xa9\xc3\xa9 caf\xe9\n");
    let outcome = scene.call("read_file", json!({"path": "damaged"})).await;
    assert!(outcome.text().starts_with("éé caf\u{fffd}\n"));
    assert!(outcome.notes[0].contains("not UTF-8"));
}

#[tokio::test]
async fn a_write_makes_parents_and_parses_what_it_wrote() {
    let scene = Scene::new();
    let got = scene
        .data(
            "write_file",
            json!({"path": "a/b/c.json", "content": "{\"x\": 1}"}),
        )
        .await;
    assert_eq!((&got["created"], &got["bytes"]), (&json!(true), &json!(8)));
    assert_eq!(got["check"], json!({"ok": true}));
    let got = scene
        .data(
            "write_file",
            json!({"path": "a/b/c.json", "content": "{\n\"x\": }"}),
        )
        .await;
    assert_eq!(
        (&got["check"]["ok"], &got["check"]["line"]),
        (&json!(false), &json!(2))
    );
    assert_eq!(got["created"], false);
    assert_eq!(scene.text("a/b/c.json"), "{\n\"x\": }");
    let got = scene
        .data(
            "write_file",
            json!({"path": "log", "content": "1\n", "mode": "append"}),
        )
        .await;
    assert_eq!(got["created"], true);
    scene
        .data(
            "write_file",
            json!({"path": "log", "content": "2\n", "mode": "append"}),
        )
        .await;
    assert_eq!(scene.text("log"), "1\n2\n");
    scene
        .fails(
            "write_file",
            json!({"path": "log", "content": "", "mode": "create"}),
            Conflict,
            "exists already",
        )
        .await;
    assert_eq!(scene.text("log"), "1\n2\n");
}

#[tokio::test]
async fn an_edit_tells_what_it_did() {
    let scene = Scene::new();
    scene.put("a.toml", "x = 1\ny = 2\nz = 3\n");
    let edits = json!([{"find": "x = 1", "replace": "x = 10"}, {"start_line": 3, "end_line": 3, "replace": "z = [1"}]);
    let got = scene
        .data("edit_file", json!({"path": "a.toml", "edits": edits}))
        .await;
    assert_eq!(got["applied"], 2);
    assert_eq!(
        got["diff"],
        "--- a/a.toml\n+++ b/a.toml\n@@ -1,3 +1,3 @@\n-x = 1\n+x = 10\n y = 2\n-z = 3\n+z = [1\n"
    );
    assert_eq!(got["check"]["ok"], false);
    assert_eq!(scene.text("a.toml"), "x = 10\ny = 2\nz = [1\n");
}

#[tokio::test]
async fn a_model_must_have_read_what_it_overwrites() {
    let scene = Scene::new();
    scene.put("a.txt", "one\n");
    let write = json!({"path": "a.txt", "content": "two\n"});
    let kind = |outcome: haft::Outcome| outcome.error.map(|e| e.kind);
    assert_eq!(
        kind(scene.model("write_file", write.clone()).await),
        Some(Conflict)
    );
    // Listing or searching the folder does not count as reading.
    scene.model("list_files", json!({})).await;
    scene.model("grep_files", json!({"pattern": "one"})).await;
    assert_eq!(
        kind(scene.model("write_file", write.clone()).await),
        Some(Conflict)
    );
    scene
        .model("read_file", json!({"path": "./a.txt", "max_lines": 1}))
        .await;
    // A read in another session does not count.
    let other = scene.other_session();
    let theirs = scene
        .call_in(&other, Origin::Mcp, "write_file", write.clone())
        .await;
    assert_eq!(kind(theirs), Some(Conflict));
    assert_eq!(kind(scene.model("write_file", write.clone()).await), None);
    // The session knows what it wrote itself.
    assert_eq!(
        kind(
            scene
                .model(
                    "edit_file",
                    json!({"path": "a.txt", "edits": [{"find": "two", "replace": "three"}]})
                )
                .await
        ),
        None
    );
    // Rewriting the same text is not a change; another text is.
    scene.put("a.txt", "three\n");
    assert_eq!(
        kind(
            scene
                .model(
                    "edit_file",
                    json!({"path": "a.txt", "edits": [{"find": "three", "replace": "four"}]})
                )
                .await
        ),
        None
    );
    scene.put("a.txt", "five\n");
    let stale = scene
        .model(
            "edit_file",
            json!({"path": "a.txt", "edits": [{"find": "five", "replace": "six"}]}),
        )
        .await;
    assert_eq!(kind(stale), Some(Conflict));
    assert_eq!(scene.text("a.txt"), "five\n");
}

#[tokio::test]
async fn what_loses_nothing_needs_no_reading() {
    let scene = Scene::new();
    scene.put("a.txt", "five\n");
    let write = json!({"path": "a.txt", "content": "two\n"});
    let kind = |outcome: haft::Outcome| outcome.error.map(|e| e.kind);
    // A new file needs no read; appending loses nothing and does not count as a read either.
    assert_eq!(
        kind(
            scene
                .model("write_file", json!({"path": "b.txt", "content": "x"}))
                .await
        ),
        None
    );
    assert_eq!(
        kind(
            scene
                .model(
                    "write_file",
                    json!({"path": "a.txt", "content": "x", "mode": "append"})
                )
                .await
        ),
        None
    );
    assert_eq!(
        kind(scene.model("write_file", write.clone()).await),
        Some(Conflict)
    );
    // A move carries the knowledge along; replacing an unread file needs a read.
    assert_eq!(
        kind(
            scene
                .model("move_file", json!({"from": "b.txt", "to": "c.txt"}))
                .await
        ),
        None
    );
    assert_eq!(
        kind(
            scene
                .model("write_file", json!({"path": "c.txt", "content": "y"}))
                .await
        ),
        None
    );
    assert_eq!(
        kind(
            scene
                .model(
                    "move_file",
                    json!({"from": "c.txt", "to": "a.txt", "overwrite": true})
                )
                .await
        ),
        Some(Conflict)
    );
    // The rule does not apply to the user.
    assert_eq!(kind(scene.call("write_file", write).await), None);
}

#[tokio::test]
async fn f9_what_was_not_shown_is_neither_overwritten_nor_moved() {
    let rows = [
        (
            "past its end",
            "read_file",
            json!({"path": "f", "start_line": 1000}),
            "one\n",
        ),
        ("no picture", "view_image", json!({"path": "f"}), "one\n"),
        ("listed", "list_files", json!({}), "one\n"),
    ];
    let changes = [
        ("write_file", json!({"path": "f", "content": "x"})),
        (
            "edit_file",
            json!({"path": "f", "edits": [{"start_line": 1, "replace": "x"}]}),
        ),
        ("move_file", json!({"from": "f", "to": "g"})),
        (
            "move_file",
            json!({"from": "own", "to": "f", "overwrite": true}),
        ),
    ];
    for (what, tool, look, content) in rows {
        let scene = Scene::new();
        scene.put("f", content);
        scene
            .model("write_file", json!({"path": "own", "content": "own"}))
            .await;
        scene.model(tool, look).await;
        for (change, arguments) in &changes {
            let outcome = scene.model(change, arguments.clone()).await;
            let kind = outcome.error.as_ref().map(|e| e.kind);
            assert_eq!(kind, Some(Conflict), "{what}: {change} {outcome:?}");
            assert_eq!(scene.text("f"), content, "{what}: {change}");
        }
    }
    // Text that was shown may be overwritten.
    let scene = Scene::new();
    scene.put("f", "one\n");
    scene.model("read_file", json!({"path": "f"})).await;
    assert!(
        scene
            .model("move_file", json!({"from": "f", "to": "g"}))
            .await
            .is_ok()
    );
}

/// F9: for a file that is not text, the tool reports type and size: enough to move it, not to overwrite it.
#[tokio::test]
async fn f9_what_is_no_text_is_moved_once_it_was_named_and_never_overwritten() {
    for content in ["a\0b", "PK\x03\x04\0", "SQLite format 3\0"] {
        let scene = Scene::new();
        scene.put("f", content);
        scene
            .model("write_file", json!({"path": "own", "content": "own"}))
            .await;
        let moves = json!({"from": "f", "to": "g"});
        let unread = scene.model("move_file", moves.clone()).await.error;
        let unread = unread.unwrap();
        assert_eq!(unread.kind, Conflict);
        let advice = unread.advice.unwrap();
        assert!(advice.contains("then move it"), "{advice}");
        scene.model("read_file", json!({"path": "f"})).await;
        for (change, arguments) in [
            ("write_file", json!({"path": "f", "content": "x"})),
            (
                "move_file",
                json!({"from": "own", "to": "f", "overwrite": true}),
            ),
        ] {
            let error = scene.model(change, arguments.clone()).await.error;
            assert_eq!(error.map(|e| e.kind), Some(Conflict), "{change}");
            assert_eq!(scene.text("f"), content, "{change}");
        }
        scene.put("f", format!("{content}."));
        let stale = scene.model("move_file", moves.clone()).await.error;
        assert_eq!(stale.map(|e| e.kind), Some(Conflict));
        scene.model("read_file", json!({"path": "f"})).await;
        let moved = scene.model("move_file", moves).await;
        assert!(moved.is_ok(), "{moved:?}");
        let over = json!({"path": "g", "content": "x"});
        let error = scene.model("write_file", over).await.error.unwrap();
        assert!(error.message.contains("was not shown"), "{}", error.message);
    }
}

#[tokio::test]
async fn the_setting_beats_the_origin() {
    for (setting, model, host) in [
        (Some(true), true, true),
        (Some(false), false, false),
        (None, true, false),
    ] {
        let scene = Scene::with(|mut builtins| {
            builtins.files = FileOptions {
                read_before_write: setting,
                ..FileOptions::default()
            };
            builtins
        });
        scene.put("a", "x");
        let write = json!({"path": "a", "content": "y"});
        assert_eq!(
            scene
                .model("write_file", write.clone())
                .await
                .error
                .is_some(),
            model
        );
        scene.put("b", "x");
        let write = json!({"path": "b", "content": "y"});
        assert_eq!(scene.call("write_file", write).await.error.is_some(), host);
    }
}

#[tokio::test]
async fn moving_and_deleting() {
    let scene = Scene::new();
    scene.put("d/a", "1");
    scene.put("d/e/b", "2");
    symlink("d", scene.at("l")).unwrap();
    scene
        .data("move_file", json!({"from": "d", "to": "new/place"}))
        .await;
    assert_eq!(scene.text("new/place/e/b"), "2");
    let got = scene.data("delete_file", json!({"path": "l"})).await;
    assert_eq!(got["path"], "l");
    scene
        .data("delete_file", json!({"path": "new", "recursive": true}))
        .await;
    assert!(fs::read_dir(scene.at("")).unwrap().next().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Written text is read back page by page, byte for byte.
    #[test]
    fn pages_put_together_are_the_file(text in "([a-z日\r]{0,6}\n){0,30}[a-z]{0,3}", page in 1u64..12) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let back = runtime.block_on(async {
            let scene = Scene::new();
            scene.data("write_file", json!({"path": "f", "content": text})).await;
            let (mut all, mut start) = (String::new(), 1);
            loop {
                let outcome = scene.call("read_file", json!({"path": "f", "start_line": start, "max_lines": page})).await;
                let haft::Content::Text { text } = &outcome.content[0] else { panic!() };
                all.push_str(text);
                let got = data(&outcome);
                start += got["lines"].as_u64().unwrap();
                if got["truncated"] == false {
                    break all;
                }
            }
        });
        prop_assert_eq!(back, text);
    }
}
