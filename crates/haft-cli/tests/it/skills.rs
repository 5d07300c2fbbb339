//! `haft skills`: lists, shows, checks; trust, shadowing and settings from a user's view.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::Lab;

fn skill(lab: &Lab, folder: &str, name: &str) {
    let text = format!(
        "---\nname: {name}\ndescription: About {name}.\nallowed-tools: Bash(git:*) Read\n---\n# {name}\n"
    );
    lab.file(&format!("{folder}/SKILL.md"), &text);
}

fn names(listed: &Value) -> Vec<&str> {
    let rows = listed.as_array().unwrap().iter();
    rows.map(|row| row["name"].as_str().unwrap()).collect()
}

#[test]
fn skills_of_a_workspace_count_once_it_is_trusted() {
    let lab = Lab::new();
    skill(&lab, ".agents/skills/one", "one");
    let ran = lab.run(&["skills", "list", "--json"]);
    assert_eq!((ran.code, ran.json()), (0, json!([])));
    assert!(
        ran.stderr.contains("withheld") && ran.stderr.contains("haft trust"),
        "{}",
        ran.stderr
    );
    let ran = lab.run(&["skills", "show", "one"]);
    assert_eq!(ran.code, 2);

    let listed = lab.run(&["skills", "list", "--json", "--trust"]).json();
    let path = lab.work().join(".agents/skills/one");
    let row = json!({"name": "one", "description": "About one.", "path": path, "source": "workspace", "valid": true});
    assert_eq!(listed, json!([row]));
    assert_eq!(lab.run(&["trust"]).code, 0);
    assert_eq!(names(&lab.run(&["skills", "--json"]).json()), ["one"]);
}

#[test]
fn earlier_folders_win_and_what_is_wrong_is_told() {
    let lab = Lab::new();
    skill(&lab, ".claude/skills/one", "one");
    skill(&lab, ".haft/skills/one", "one");
    skill(&lab, "more/two", "two");
    lab.file(".agents/skills/bad/SKILL.md", "# no front matter");
    let config =
        lab.user_settings("[skills]\ndirs = [\"more\", \"~/elsewhere\"]\ndeny = [\"tw*\"]\n");
    let user = config.parent().unwrap().join("skills/three");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(
        user.join("SKILL.md"),
        "---\nname: three\ndescription: D\n---\n",
    )
    .unwrap();
    let ran = lab.run(&["skills", "list", "--json", "--trust"]);
    let listed = ran.json();
    assert_eq!(names(&listed), ["one", "three", "bad"]);
    assert_eq!(
        listed[0]["path"],
        json!(lab.work().join(".haft/skills/one"))
    );
    assert_eq!(
        (&listed[1]["source"], &listed[2]["valid"]),
        (&json!("user"), &json!(false))
    );
    for told in [
        "bad/SKILL.md does not load: SKILL.md has no front matter",
        ".claude/skills/one/SKILL.md is shadowed",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("withheld"));
    let hidden = lab.run(&["skills", "show", "two", "--trust"]);
    assert_eq!(hidden.code, 2);
    assert!(hidden.stderr.contains("skills.deny"), "{}", hidden.stderr);
    let broken = lab.run(&["skills", "show", "bad", "--trust"]);
    assert!(
        broken.stderr.contains("haft skills check"),
        "{}",
        broken.stderr
    );
    let near = lab.run(&["skills", "show", "thre", "--trust"]);
    assert!(
        near.stderr.contains("did you mean `three`?"),
        "{}",
        near.stderr
    );
    let allowed = lab.run(&[
        "skills",
        "list",
        "--json",
        "--trust",
        "-c",
        "skills.allow=[\"one\"]",
    ]);
    assert_eq!(names(&allowed.json()), ["one", "bad"]);
}

#[test]
fn an_untrusted_folder_cannot_name_skills() {
    let lab = Lab::new();
    skill(&lab, "mine/one", "one");
    lab.file("haft.toml", "[skills]\ndirs = [\"mine\"]\n");
    let ran = lab.run(&["skills", "list", "--json"]);
    assert_eq!(ran.json(), json!([]));
    assert!(ran.stderr.contains("skills.dirs ignored"), "{}", ran.stderr);
    assert_eq!(
        names(&lab.run(&["skills", "list", "--json", "--trust"]).json()),
        ["one"]
    );
}

#[test]
fn a_skill_is_shown_whole() {
    let lab = Lab::new();
    skill(&lab, ".agents/skills/one", "one");
    lab.file(".agents/skills/one/scripts/run.sh", "true\n");
    let shown = lab
        .run(&["skills", "show", "one", "--json", "--trust"])
        .json();
    assert_eq!(shown["requests"], json!(["Bash(git:*)", "Read"]));
    assert_eq!(
        shown["resources"],
        json!([{"path": "scripts/run.sh", "bytes": 5}])
    );
    assert_eq!(shown["instructions"], "# one");
    assert!(
        shown.get("restricts_to").is_none() && shown.get("license").is_none(),
        "{shown}"
    );
    let page = lab.run(&["skills", "show", "one", "--trust"]).stdout;
    for part in [
        "About one.",
        "Bash(git:*), Read (shown; grants nothing)",
        "scripts/run.sh",
        "# one",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_check_ends_with_one_when_there_is_an_error() {
    let lab = Lab::new();
    skill(&lab, "good", "good");
    lab.file(
        "odd/SKILL.md",
        "---\nname: other\ndescription: D\nauthor: me\n---\n",
    );
    lab.file("bad/SKILL.md", "---\n- a\n---\n");
    lab.file("empty/README.md", "");
    std::fs::create_dir_all(lab.work().join("folder/SKILL.md")).unwrap();
    let rows: [(&str, i32, i32); 7] = [
        ("good", 0, 0),
        ("good/SKILL.md", 0, 0),
        ("odd", 0, 1),
        ("bad", 1, 1),
        ("empty", 1, 1),
        ("folder", 1, 1),
        ("missing", 2, 2),
    ];
    for (dir, lenient, strict) in rows {
        let ran = lab.run(&["skills", "check", dir, "--json"]);
        assert_eq!(ran.code, lenient, "{dir}: {}{}", ran.stdout, ran.stderr);
        let ran = lab.run(&["skills", "check", dir, "--strict", "--json"]);
        assert_eq!(
            ran.code, strict,
            "{dir} --strict: {}{}",
            ran.stdout, ran.stderr
        );
    }
    let report = lab
        .run(&["skills", "check", "odd", "--strict", "--json"])
        .json();
    assert_eq!(
        (&report["name"], &report["ok"]),
        (&json!("other"), &json!(false))
    );
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{report}");
    assert!(
        problems
            .iter()
            .all(|p| p["level"] == "error" && p["message"].is_string())
    );
    let text = lab.run(&["skills", "check", "odd"]).stdout;
    assert!(
        text.contains("warning: the name") && text.contains("ok other"),
        "{text}"
    );
}

/// The recorded skills through the command: what users and other programs see.
#[test]
fn the_recorded_skills_are_all_found() {
    let Some(data) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the recorded skills are not listed");
        return;
    };
    let folder = Path::new(&data).join("skills").canonicalize().unwrap();
    let lab = Lab::new();
    let setting = format!("skills.dirs=[{:?}]", folder.display().to_string());
    let ran = lab.run(&["skills", "list", "--json", "-c", &setting]);
    let listed = ran.json();
    assert_eq!(listed.as_array().unwrap().len(), 120, "{}", ran.stderr);
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["valid"] == true)
    );
}
