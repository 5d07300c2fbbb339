//! The file interface of the memory: its texts, and who sees what before a user decides.

use std::sync::Arc;

use haft::memory::MemoryWriteMode;
use haft::{ErrorKind, Session};
use serde_json::json;

use super::Scene;

/// The texts of the file interface, in both write modes, exactly as in its reference.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one conversation, word by word")]
async fn the_file_face_says_what_its_reference_says() {
    for mode in [MemoryWriteMode::Candidate, MemoryWriteMode::External] {
        let scene = Scene::new(mode);
        let listed = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n";
        scene
            .says(
                json!({"command": "view", "path": "/memories"}),
                &format!("{listed}0B\t/memories"),
            )
            .await;
        let create =
            |path: &str, text: &str| json!({"command": "create", "path": path, "file_text": text});
        scene
            .says(
                create("/memories/notes.md", "one\ntwo\nthree\n"),
                "File created successfully at: /memories/notes.md",
            )
            .await;
        scene
            .fails(
                "memory",
                create("/memories/notes.md", "x"),
                ErrorKind::Conflict,
                "File /memories/notes.md already exists",
            )
            .await;
        scene
            .fails(
                "memory",
                create("/memories/notes.md/x", "x"),
                ErrorKind::Conflict,
                "is a file",
            )
            .await;
        scene.says(
            json!({"command": "view", "path": "/memories/notes.md"}),
            "Here's the content of /memories/notes.md with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree\n     4\t",
        ).await;
        scene.says(
            json!({"command": "view", "path": "/memories/notes.md", "view_range": [2, 3]}),
            "Here's the content of /memories/notes.md with line numbers:\n     2\ttwo\n     3\tthree",
        ).await;
        scene
            .fails(
                "memory",
                json!({"command": "view", "path": "/memories/notes.md", "view_range": [9, -1]}),
                ErrorKind::InvalidArguments,
                "Invalid `view_range`",
            )
            .await;
        let replace = |old: &str, new: &str| json!({"command": "str_replace", "path": "/memories/notes.md", "old_str": old, "new_str": new});
        scene.says(
            replace("two", "2"),
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     1\tone\n     2\t2\n     3\tthree\n     4\t",
        ).await;
        scene.fails("memory", replace("zwei", "x"), ErrorKind::Failed, "No replacement was performed, old_str `zwei` did not appear verbatim in /memories/notes.md.").await;
        scene
            .fails(
                "memory",
                replace("e", "x"),
                ErrorKind::Failed,
                "Multiple occurrences of old_str `e` in lines: 1, 3, 3. Please ensure it is unique",
            )
            .await;
        let insert = |line: i64| json!({"command": "insert", "path": "/memories/notes.md", "insert_line": line, "insert_text": "zero\n"});
        scene
            .says(insert(0), "The file /memories/notes.md has been edited.")
            .await;
        scene
            .fails(
                "memory",
                insert(9),
                ErrorKind::InvalidArguments,
                "Invalid `insert_line` parameter: 9. It should be within the range [0, 4].",
            )
            .await;
        scene
            .says(
                create("/memories/deep/er/est.md", ""),
                "File created successfully at: /memories/deep/er/est.md",
            )
            .await;
        scene.says(
            json!({"command": "view", "path": "/memories"}),
            &format!("{listed}17B\t/memories\n0B\t/memories/deep/\n0B\t/memories/deep/er/\n17B\t/memories/notes.md"),
        ).await;
        let rename =
            |from: &str, to: &str| json!({"command": "rename", "old_path": from, "new_path": to});
        scene
            .fails(
                "memory",
                rename("/memories/deep", "/memories/notes.md"),
                ErrorKind::Conflict,
                "The destination /memories/notes.md already exists",
            )
            .await;
        scene
            .fails(
                "memory",
                rename("/memories/none", "/memories/x"),
                ErrorKind::NotFound,
                "The path /memories/none does not exist",
            )
            .await;
        scene
            .fails(
                "memory",
                rename("/memories/deep", "/memories/deep/er/x"),
                ErrorKind::InvalidArguments,
                "into itself",
            )
            .await;
        scene
            .says(
                rename("/memories/deep", "/memories/flat"),
                "Successfully renamed /memories/deep to /memories/flat",
            )
            .await;
        scene
            .says(
                json!({"command": "delete", "path": "/memories/flat"}),
                "Successfully deleted /memories/flat",
            )
            .await;
        scene
            .fails(
                "memory",
                json!({"command": "view", "path": "/memories/flat"}),
                ErrorKind::NotFound,
                "The path /memories/flat does not exist. Please provide a valid path.",
            )
            .await;
        scene
            .fails(
                "memory",
                json!({"command": "str_replace", "path": "/memories", "old_str": "a"}),
                ErrorKind::Failed,
                "is not a file",
            )
            .await;
        scene.accept_all().await;
        scene.says(
            json!({"command": "view", "path": "/memories/notes.md", "view_range": [1, 2]}),
            "Here's the content of /memories/notes.md with line numbers:\n     1\tzero\n     2\tone",
        ).await;
        assert_eq!(
            scene.recalls(json!({"query": "three notes"})).await,
            ["zero\none\n2\nthree\n"]
        );
    }
}

#[tokio::test]
async fn a_run_sees_its_own_proposals_and_others_see_them_when_accepted() {
    let mut scene = Scene::new(MemoryWriteMode::Candidate);
    let create = json!({"command": "create", "path": "/memories/a.md", "file_text": "one\n"});
    scene.data("memory", create).await;
    let view = json!({"command": "view", "path": "/memories/a.md"});
    scene.data("memory", view.clone()).await;
    let own = scene.session.clone();
    scene.session = Session::new(Arc::clone(&scene.registry));
    scene
        .fails(
            "memory",
            view.clone(),
            ErrorKind::NotFound,
            "does not exist",
        )
        .await;
    scene.accept_all().await;
    scene.data("memory", view.clone()).await;

    // A proposed change and a proposed deletion of an accepted memory, visible only to their run.
    let replace = json!({"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "two"});
    let data = scene.data("memory", replace).await;
    assert_eq!(data["state"], "candidate");
    let moved =
        json!({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"});
    scene.data("memory", moved).await;
    scene
        .fails(
            "memory",
            view.clone(),
            ErrorKind::NotFound,
            "does not exist",
        )
        .await;
    scene
        .data(
            "memory",
            json!({"command": "view", "path": "/memories/b.md"}),
        )
        .await;
    let other = std::mem::replace(&mut scene.session, own);
    scene
        .says(
            view.clone(),
            "Here's the content of /memories/a.md with line numbers:\n     1\tone\n     2\t",
        )
        .await;
    scene.session = other;
    scene.accept_all().await;
    scene
        .fails("memory", view, ErrorKind::NotFound, "does not exist")
        .await;
    assert_eq!(scene.recalls(json!({"query": "two"})).await, ["two\n"]);
}
