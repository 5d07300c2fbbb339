//! What a command removes or overwrites and haft cannot save for an undo is asked about, also in a build output.

use std::fs::{self, File};

use haft::approval::meaning::Meaning;
use haft::policy::Profile;
use haft_sandbox::Sandbox;
use serde_json::json;

use crate::scene::{Scene, Settings, data};

/// More than haft saves of one file.
const LARGE: u64 = 65 << 20;

pub(crate) async fn all(sandbox: &Sandbox) {
    // The line, whether it is asked about, and what the request says.
    let rows = [
        ("rm -r out", true, "out/big, 68.1 MB: deleted"),
        ("rm out/big", true, "out/big, 68.1 MB: deleted"),
        ("echo x > out/big", true, "out/big, 68.1 MB: overwritten"),
        (
            "rm out/big; mkdir out/big",
            true,
            "out/big, 68.1 MB: overwritten",
        ),
        ("rm out/notes", false, ""),
        ("chmod 600 out/big", false, ""),
        ("touch out/big", false, ""),
        // cargo tags its folder, and replaces large files there.
        ("rm target/made", false, ""),
        ("echo x > target/made", false, ""),
        (
            "rm -r target/debug",
            true,
            "target/debug/older, 68.1 MB: deleted",
        ),
        // No command tags a folder to have removed what is there.
        (
            "rm out/target/big",
            true,
            "out/target/big, 68.1 MB: deleted",
        ),
    ];
    for (line, is_asked, words) in rows {
        let scene = scene(sandbox, Profile::Workspace);
        let forged = "Signature: 8a477f597d28d172789f06886806bc55\n";
        let tagged = scene
            .run(&format!("echo '{forged}' > out/target/CACHEDIR.TAG"))
            .await;
        assert!(tagged.is_ok() && scene.questions().is_empty(), "{tagged:?}");
        let outcome = scene.run(line).await;
        let questions = scene.questions();
        let shown = format!("{line}: {}", serde_json::to_string(&outcome).unwrap());
        assert_eq!(questions.len(), usize::from(is_asked), "{shown}");
        let meanings = questions.iter().flat_map(|one| &one.snapshot.meanings);
        assert!(words_of(meanings).contains(words), "{shown} {questions:?}");
    }
    room(sandbox).await;
    undo(sandbox).await;
    eprintln!("changes: {} rows of what cannot be undone: ok", rows.len());
}

fn scene(sandbox: &Sandbox, profile: Profile) -> Scene {
    let settings = Settings {
        profile,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    scene.put(".gitignore", "/out/\n/target/\n");
    scene.put(".git/HEAD", "ref: refs/heads/main\n");
    scene.put("out/notes", "precious\n");
    large(&scene, "out/big");
    large(&scene, "out/target/big");
    large(&scene, "target/debug/older");
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n# made by cargo\n";
    later_than(&scene, "target/debug/older", "target/CACHEDIR.TAG", tag);
    later_than(&scene, "target/CACHEDIR.TAG", "target/made", "");
    large(&scene, "target/made");
    scene
}

fn large(scene: &Scene, path: &str) {
    fs::create_dir_all(scene.at(path).parent().unwrap()).unwrap();
    File::create(scene.at(path))
        .unwrap()
        .set_len(LARGE)
        .unwrap();
}

/// Writes a file until it is younger than another one: the clock of a file system may not advance for some milliseconds.
fn later_than(scene: &Scene, first: &str, path: &str, text: &str) {
    let time = |path: &str| fs::metadata(scene.at(path)).unwrap().modified().unwrap();
    scene.put(path, text);
    while time(path) <= time(first) {
        scene.put(path, text);
    }
}

fn words_of<'a>(meanings: impl Iterator<Item = &'a Meaning>) -> String {
    let lines = meanings.flat_map(|one| [vec![one.title.clone()], one.lines.clone()].concat());
    lines.collect::<Vec<_>>().join("\n")
}

/// A run whose saved files leave no room for more.
async fn room(sandbox: &Sandbox) {
    let scene = scene(sandbox, Profile::Workspace);
    let first = scene.run("echo x > out/notes").await;
    assert!(first.is_ok() && scene.questions().is_empty(), "{first:?}");
    let again = Scene::with(sandbox, &Settings::default());
    again.put(".gitignore", "/out/\n");
    again.put(".git/HEAD", "ref: refs/heads/main\n");
    again.put("out/notes", "precious\n");
    assert!(again.run("touch out/notes").await.is_ok());
    let runs = again.dir.path().join("home/runs");
    let run = fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let files = run.join("changes/files");
    fs::create_dir_all(&files).unwrap();
    File::create(files.join("full"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let outcome = again.run("rm out/notes").await;
    let questions = again.questions();
    assert_eq!(questions.len(), 1, "{outcome:?}");
    let words = words_of(questions[0].snapshot.meanings.iter());
    assert!(words.contains("out/notes, 9 bytes: deleted"), "{words}");
}

/// A forced undo restores what was saved, leaves the rest as it is, and names it.
async fn undo(sandbox: &Sandbox) {
    for (line, restored, lost, now) in [
        (
            "rm -r out",
            "out/notes",
            "out/big: it was too large to save",
            None,
        ),
        (
            "rm out/notes; echo x > out/big",
            "out/notes",
            "out/big: it was too large to save",
            Some("x\n"),
        ),
    ] {
        let scene = scene(sandbox, Profile::Trusted);
        let outcome = scene.run(line).await;
        assert!(
            outcome.is_ok() && !scene.at(restored).exists(),
            "{outcome:?}"
        );
        let (run, call) = (outcome.run.as_str(), outcome.call.as_str());
        let refused = scene
            .call("undo_changes", json!({"run": run, "call": call}))
            .await;
        let shown = serde_json::to_string(&refused).unwrap();
        assert!(!refused.is_ok() && shown.contains(lost), "{shown}");
        let force = json!({"run": run, "call": call, "force": true});
        let undone = scene.call("undo_changes", force.clone()).await;
        let shown = serde_json::to_string(&undone).unwrap();
        assert!(
            undone.is_ok() && shown.contains(&format!("not undone {lost}")),
            "{shown}"
        );
        assert_eq!(
            fs::read_to_string(scene.at(restored)).unwrap(),
            "precious\n",
            "{shown}"
        );
        assert_eq!(
            fs::read_to_string(scene.at("out/big")).ok().as_deref(),
            now,
            "{shown}"
        );
        assert!(!scene.at("out/big.before-undo").exists(), "{shown}");
        let again = scene.call("undo_changes", force).await;
        assert!(!again.is_ok(), "{:?}", data(&again));
    }
}
