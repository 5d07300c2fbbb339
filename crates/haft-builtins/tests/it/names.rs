//! Names of files with letters that are special elsewhere: brackets in globs, and characters with two Unicode forms.

use haft::error::ErrorKind;
use haft::policy::{Policy, PolicyBuilder, Profile};
use haft::spec::ToolClass;
use haft::workspace::Workspace;
use serde_json::{Value, json};

use crate::scene::Scene;

fn paths(data: &Value) -> Vec<String> {
    let entries = data["entries"].as_array().unwrap().iter();
    entries
        .map(|e| e["path"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn brackets_in_names_are_found_as_letters_where_no_set_matches() {
    let scene = Scene::new();
    for path in [
        "app/[id]/page.tsx",
        "app/[...slug].tsx",
        "app/[[opt]].tsx",
        "app/[user-id].ts",
    ] {
        scene.put(path, "x");
    }
    let rows: &[(&str, &[&str], &str)] = &[
        ("**/[id]/*.tsx", &["app/[id]/page.tsx"], "taken as letters"),
        ("[...slug].tsx", &["app/[...slug].tsx"], "taken as letters"),
        ("app/[[opt]].tsx", &["app/[[opt]].tsx"], "taken as letters"),
        // Not even a valid set.
        ("[user-id].ts", &["app/[user-id].ts"], "taken as letters"),
        ("app/\\[id\\]/*", &["app/[id]/page.tsx"], ""),
        ("app/[[]id]/*", &["app/[id]/page.tsx"], ""),
        ("[xyz].tsx", &[], ""),
        (
            "app/[[]*.{ts,tsx}",
            &["app/[...slug].tsx", "app/[[opt]].tsx", "app/[user-id].ts"],
            "",
        ),
    ];
    let check = async |pattern: &str, expect: &[&str], note: &str| {
        let outcome = scene.call("glob_files", json!({"pattern": pattern})).await;
        let got = crate::scene::data(&outcome);
        assert_eq!(paths(&got), expect, "{pattern}");
        let notes = outcome.notes.join(" ");
        assert!(
            notes.contains(note) && notes.is_empty() == note.is_empty(),
            "{pattern}: {notes:?}"
        );
    };
    for (pattern, expect, note) in rows {
        check(pattern, expect, note).await;
    }
    scene.put("app/i/page.tsx", "x");
    check(
        "**/[id]/*.tsx",
        &["app/i/page.tsx"],
        "1 file with these brackets",
    )
    .await;
    let broken = json!({"pattern": "{a"});
    scene
        .fails("glob_files", broken, ErrorKind::InvalidArguments, "pattern")
        .await;
}

const COMPOSED: &str = "caf\u{e9}";
const DECOMPOSED: &str = "cafe\u{301}";

#[tokio::test]
async fn a_name_is_found_in_its_other_unicode_form_if_only_one_has_it() {
    for (there, asked) in [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)] {
        let scene = Scene::new();
        let real = format!("{there}/{there}.txt");
        scene.put(&real, "one\n");
        let path = format!("{asked}/{asked}.txt");
        let outcome = scene.model("read_file", json!({"path": path})).await;
        assert!(outcome.text().starts_with("one"), "{outcome:?}");
        let edits = json!([{"find": "one", "replace": "two"}]);
        for (tool, args, expect) in [
            ("edit_file", json!({"path": path, "edits": edits}), "two\n"),
            (
                "write_file",
                json!({"path": path, "content": "three\n"}),
                "three\n",
            ),
            (
                "apply_patch",
                json!({"patch": format!("*** Begin Patch\n*** Update File: {path}\n-three\n+four\n*** End Patch")}),
                "four\n",
            ),
        ] {
            let outcome = scene.model(tool, args).await;
            assert!(outcome.is_ok(), "{tool}: {:?}", outcome.error);
            assert_eq!(scene.text(&real), expect, "{tool}");
        }
        let create = json!({"path": path, "content": "", "mode": "create"});
        scene
            .fails("write_file", create, ErrorKind::Conflict, "exists already")
            .await;
        for (tool, args) in [
            ("list_files", json!({"path": asked})),
            ("glob_files", json!({"pattern": format!("{asked}/*.txt")})),
            ("glob_files", json!({"pattern": format!("{asked}.*")})),
            ("glob_files", json!({"pattern": "*", "path": asked})),
        ] {
            let got = scene.data(tool, args.clone()).await;
            assert_eq!(paths(&got), [real.as_str()], "{tool} {args}");
        }
        // A second form of the same name: each is only itself, and a third is neither.
        scene.put(&format!("{there}/{asked}.txt"), "other\n");
        let outcome = scene.call("read_file", json!({"path": path})).await;
        assert!(outcome.text().starts_with("other"), "{outcome:?}");
    }
    let scene = Scene::new();
    scene.put("\u{e9}\u{e9}", "1");
    scene.put("e\u{301}e\u{301}", "2");
    let third = json!({"path": "\u{e9}e\u{301}"});
    scene
        .fails("read_file", third, ErrorKind::NotFound, "no file or folder")
        .await;
    // ASCII names are never found by another one: U+212A composes to K, U+037E to a semicolon.
    scene.put("Kconfig", "x");
    scene.put("a;b", "x");
    for path in ["\u{212a}config", "a\u{37e}b"] {
        scene
            .fails("read_file", json!({"path": path}), ErrorKind::NotFound, "")
            .await;
    }
}

/// The policy that denies what lies below a folder.
fn denying(scene: &Scene, folder: &str) -> PolicyBuilder {
    let workspace = Workspace::open(&scene.at("")).unwrap();
    let policy = Policy::builder(Profile::Trusted).workspace(&workspace);
    let classes = [
        ("read_file", ToolClass::Read),
        ("list_files", ToolClass::Read),
        ("write_file", ToolClass::Edit),
        ("delete_file", ToolClass::Edit),
    ];
    let (read, edit) = (
        format!("Read(/{folder}/**)"),
        format!("Edit(/{folder}/*.txt)"),
    );
    policy
        .classes(classes)
        .deny(read.as_str())
        .deny(edit.as_str())
}

#[tokio::test]
async fn rules_hold_for_every_unicode_form_of_a_name() {
    const FORMS: [&str; 2] = [COMPOSED, DECOMPOSED];
    for (there, named) in FORMS
        .iter()
        .flat_map(|there| FORMS.map(|named| (*there, named)))
    {
        let mut scene = Scene::new();
        scene.put(&format!("{there}/key.txt"), "secret\n");
        scene.put("other/key.txt", "public\n");
        scene.judged_by(denying(&scene, named));
        let open = scene
            .call("read_file", json!({"path": "other/key.txt"}))
            .await;
        assert!(open.is_ok(), "{open:?}");
        for asked in FORMS {
            let path = format!("{asked}/key.txt");
            for (tool, args) in [
                ("read_file", json!({"path": path})),
                ("write_file", json!({"path": path, "content": "x"})),
                ("delete_file", json!({"path": path})),
                ("delete_file", json!({"path": asked, "recursive": true})),
            ] {
                let outcome = scene.call(tool, args).await;
                let kind = outcome.error.map(|error| error.kind);
                assert_eq!(
                    kind,
                    Some(ErrorKind::Denied),
                    "{tool}: {there:?} {named:?} {asked:?}"
                );
            }
            for (tool, args) in [
                ("list_files", json!({"path": asked})),
                ("glob_files", json!({"pattern": format!("{asked}/*")})),
                ("grep_files", json!({"pattern": "secret"})),
            ] {
                let shown = scene.call(tool, args).await.text();
                assert!(
                    !shown.contains("key.txt\",\"kind\":\"file") || !shown.contains("caf"),
                    "{tool}: {shown}"
                );
                assert!(!shown.contains("secret"), "{tool}: {shown}");
            }
        }
        assert_eq!(scene.text(&format!("{there}/key.txt")), "secret\n");
    }
}
