//! Files: names that are protected before they exist, links and folders that lead elsewhere, denied places under other spellings.

use crate::entries::{OF_COMMANDS, OF_WRITES};
use crate::scene::{Scene, has_jail};

/// Names that other programs obey, and that do not exist when a command starts.
const ABSENT: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    ".vscode/tasks.json",
    ".mcp.json",
    ".git/hooks/pre-commit",
    ".envrc",
    "haft.toml",
];

/// CVE-2026-25725 (Claude Code before 2.1.2), openai/codex#15067, anthropics/claude-code#92901: a file of settings was protected
/// only if it existed when the sandbox was made.
#[test]
fn a_protected_file_is_not_created_unasked_where_it_was_absent() {
    if !has_jail() {
        return;
    }
    let ways = [
        "printf evil > \"$f\"",
        "printf evil > t; mv t \"$f\"",
        "printf evil > t; ln t \"$f\"",
        "printf evil > t; ln -s \"$PWD/t\" \"$f\"",
        "d=$(dirname \"$f\"); mv \"$d\" ./moved; mkdir -p ./moved; printf evil > ./moved/\"$(basename \"$f\")\"; mv ./moved \"$d\"",
        "printf evil > t; tar cf t.tar --transform \"s|^t$|$f|\" t; tar xf t.tar",
    ];
    for entry in OF_COMMANDS {
        for (nth, way) in ways.iter().enumerate() {
            let scene = Scene::new("policy.profile = \"trusted\"\n");
            scene.git(&["init", "-q"]);
            let names = ABSENT.join(" ");
            let line =
                format!("for f in {names}; do mkdir -p \"$(dirname \"$f\")\"; {way}; done; true");
            let said = entry.command(&scene, &line);
            for name in ABSENT {
                let path = scene.at("work").join(name);
                // A hook's example files are git's own; a placeholder is empty and ends with its command.
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                assert!(!text.contains("evil"), "{entry:?} {nth}: {name}: {said}");
            }
        }
    }
    for entry in OF_WRITES {
        for name in ABSENT {
            let scene = Scene::new("policy.profile = \"trusted\"\n");
            scene.git(&["init", "-q"]);
            let said = entry.write(&scene, name, "evil");
            assert!(
                !scene.at("work").join(name).exists(),
                "{entry:?}: {name}: {said}"
            );
        }
    }
}

/// CVE-2026-50548, CVE-2026-50549 (Cursor), CVE-2026-39861, CVE-2026-25724 (Claude Code), CVE-2026-103916: a working folder that the
/// model chose, a link whose canonical form could not be had, or one that denied files were read through.
#[test]
fn a_link_or_a_chosen_folder_leads_nowhere_else() {
    if !has_jail() {
        return;
    }
    for entry in OF_COMMANDS {
        let scene = Scene::new(
            "policy.profile = \"trusted\"\npolicy.deny = [\"Read(/secret/**)\", \"Edit(/secret/**)\"]\n",
        );
        scene.file("outside/kept", "as it was");
        scene.file("outside/private", "not to be read");
        scene.file("work/secret/key", "not to be read");
        let outside = scene.at("outside");
        let outside = outside.to_str().unwrap();
        std::os::unix::fs::symlink(outside, scene.at("work/there")).unwrap();
        std::os::unix::fs::symlink(scene.at("outside/absent"), scene.at("work/dangling")).unwrap();
        std::os::unix::fs::symlink("secret", scene.at("work/alias")).unwrap();
        let lines = [
            format!("echo x > {outside}/kept; echo x > there/kept; echo x > dangling; cat there/private; true"),
            format!("cd {outside} && echo x > kept; cd there && echo x > kept; cat private; true"),
            format!("ln -s {outside} mine; echo x > mine/kept; cat mine/private; ln -s loop loop; echo x > loop/../../outside/kept; true"),
            "cat alias/key; ln -s secret s2; cat s2/key; echo x > s2/key; cp -rL alias copy; cat copy/key; true".to_owned(),
            "mkdir -p a/b; ln -s ../../secret a/b/c; cat a/b/c/key; mv secret moved; cat moved/key; ln secret/key hard; cat hard; true".to_owned(),
        ];
        for line in &lines {
            let said = entry.command(&scene, line);
            assert!(
                !said.contains("not to be read"),
                "{entry:?}: {line}: {said}"
            );
            assert_eq!(
                scene.text("outside/kept").unwrap(),
                "as it was",
                "{entry:?}: {line}: {said}"
            );
            assert!(
                !scene.at("outside/absent").exists(),
                "{entry:?}: {line}: {said}"
            );
            assert_eq!(
                scene.text("work/secret/key").unwrap(),
                "not to be read",
                "{entry:?}: {line}"
            );
        }
    }
    for entry in OF_WRITES {
        let scene = Scene::new("policy.profile = \"trusted\"\n");
        scene.file("outside/kept", "as it was");
        std::os::unix::fs::symlink(scene.at("outside"), scene.at("work/there")).unwrap();
        std::os::unix::fs::symlink(scene.at("outside/absent"), scene.at("work/dangling")).unwrap();
        let direct = scene.at("outside/kept");
        for path in [
            "there/kept",
            "../outside/kept",
            "dangling",
            direct.to_str().unwrap(),
        ] {
            let said = entry.write(&scene, path, "x");
            assert_eq!(
                scene.text("outside/kept").unwrap(),
                "as it was",
                "{entry:?}: {path}: {said}"
            );
            assert!(
                !scene.at("outside/absent").exists(),
                "{entry:?}: {path}: {said}"
            );
        }
    }
}

/// Release notes of Claude Code 2.1.224 and 2.1.321: a denied folder was written under another spelling, or as the place that a
/// command copies or moves to.
#[test]
fn a_denied_folder_is_denied_under_every_spelling_and_as_a_destination() {
    if !has_jail() {
        return;
    }
    let settings = "policy.profile = \"trusted\"\npolicy.deny = [\"Edit(/locked/**)\"]\n";
    let line = "echo x > locked//a; echo x > ./locked/./b; echo x > locked/../locked/c; cp t locked; cp t locked/; cp -t locked t; \
        mv u locked/; install -D t locked/in/t; (cd locked && echo x > d); tar cf t.tar t && tar xf t.tar -C locked; mkdir locked/new; \
        rsync t locked/ 2>/dev/null; mv locked away; mkdir locked; echo x > locked/e; true";
    for entry in OF_COMMANDS {
        let scene = Scene::new(settings);
        scene.file("work/locked/own", "as it was");
        scene.file("work/t", "t");
        scene.file("work/u", "u");
        let said = entry.command(&scene, line);
        let names = std::fs::read_dir(scene.at("work/locked"))
            .unwrap()
            .flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["own"], "{entry:?}: {said}");
        assert_eq!(scene.text("work/locked/own").unwrap(), "as it was");
    }
    for entry in OF_WRITES {
        let scene = Scene::new(settings);
        scene.file("work/locked/own", "as it was");
        let direct = scene.at("work/locked/a");
        for path in [
            "locked/a",
            "./locked//a",
            "locked/../locked/a",
            "x/../locked/a",
            direct.to_str().unwrap(),
        ] {
            let said = entry.write(&scene, path, "x");
            assert!(
                !scene.at("work/locked/a").exists(),
                "{entry:?}: {path}: {said}"
            );
        }
    }
}
