//! K1: what rules deny and what is protected holds through every link, on a copy and in the workspace itself.

use std::fs;
use std::os::unix::fs::symlink;

use haft::policy::Profile;
use haft_builtins::command::changes::ChangeMode;
use haft_sandbox::Sandbox;

use crate::scene::{Scene, Settings};

/// A workspace with links, and commands that try to change what one of them guards.
struct Row {
    name: &'static str,
    /// `path`, `link -> text` or `other = path` for a hard link; `ROOT` is the workspace's path, `OUT` a folder beside it.
    tree: &'static [&'static str],
    deny: &'static [&'static str],
    lines: &'static [&'static str],
    /// Paths, also over links, whose content must stay as it is.
    guarded: &'static [&'static str],
}

const MIGRATIONS: &[&str] = &["Edit(/migrations/**)"];

const ROWS: &[Row] = &[
    Row {
        name: "a link to a folder",
        tree: &["db/1.sql", "migrations -> db"],
        deny: MIGRATIONS,
        lines: &[
            "echo evil > migrations/1.sql; true",
            "echo evil > db/1.sql; true",
            "rm -r db",
        ],
        guarded: &["db/1.sql", "migrations/1.sql"],
    },
    Row {
        name: "a link to a file",
        tree: &["conf/prod.yml", "prod.yml -> conf/prod.yml"],
        deny: &["Edit(/prod.yml)"],
        lines: &[
            "echo evil > prod.yml; true",
            "mv conf c2; mkdir conf; echo evil > conf/prod.yml; true",
        ],
        guarded: &["conf/prod.yml", "prod.yml"],
    },
    Row {
        name: "a protected name that leads to an ignored file",
        tree: &[".local/mcp.json", ".mcp.json -> .local/mcp.json"],
        deny: &[],
        lines: &[
            "echo evil > .mcp.json; true",
            "echo evil > .local/mcp.json; true",
            "rm -rf .local",
        ],
        guarded: &[".mcp.json"],
    },
    Row {
        name: "a protected name that leads to nothing yet",
        tree: &["a", ".mcp.json -> .local/mcp.json"],
        deny: &[],
        lines: &["mkdir -p .local; echo evil > .local/mcp.json; true"],
        guarded: &[".mcp.json"],
    },
    Row {
        name: "links in a row",
        tree: &["conf/x.yml", "mid -> conf/x.yml", "prod.yml -> mid"],
        deny: &["Edit(/prod.yml)"],
        lines: &[
            "echo evil > conf/x.yml; true",
            "echo evil > new; ln -sfn new mid; true",
        ],
        guarded: &["conf/x.yml", "prod.yml"],
    },
    Row {
        name: "a link in the folder that a link leads to",
        tree: &["infra/k.yml", "shared/prod -> ../infra", "config -> shared"],
        deny: &["Edit(/config/prod/**)"],
        lines: &[
            "echo evil > infra/k.yml; true",
            "echo evil > config/prod/k.yml; true",
        ],
        guarded: &["config/prod/k.yml"],
    },
    Row {
        name: "a denied file in the folder that a link leads to",
        tree: &["settings/prod.yml", "conf -> settings"],
        deny: &["Edit(/conf/*.yml)"],
        lines: &[
            "echo evil > settings/prod.yml; true",
            "rm settings/prod.yml",
        ],
        guarded: &["settings/prod.yml"],
    },
    Row {
        name: "a protected folder in the folder that a link leads to",
        tree: &["my/skills/a.md", ".agents -> my"],
        deny: &[],
        lines: &["echo evil > my/skills/a.md; true"],
        guarded: &[".agents/skills/a.md"],
    },
    Row {
        name: "an absolute link that leads back",
        tree: &["db/1.sql", "migrations -> ROOT/db"],
        deny: MIGRATIONS,
        lines: &["echo evil > db/1.sql; true"],
        guarded: &["db/1.sql"],
    },
    Row {
        name: "a relative link that leads out and back",
        tree: &["db/1.sql", "sub/x", "migrations -> sub/../../ws/db"],
        deny: MIGRATIONS,
        lines: &["echo evil > db/1.sql; true"],
        guarded: &["db/1.sql"],
    },
    Row {
        name: "a hard link",
        tree: &[".mcp.json", "notes = .mcp.json"],
        deny: &[],
        lines: &[
            "echo evil > notes; true",
            "chmod 700 notes",
            "rm notes; echo evil > notes",
        ],
        guarded: &[".mcp.json", "notes"],
    },
    Row {
        name: "a link within a protected folder",
        tree: &["skills/a.md", ".claude/skills -> ../skills"],
        deny: &[],
        lines: &["echo evil > skills/a.md; true", "rm -r skills"],
        guarded: &["skills/a.md"],
    },
    Row {
        name: "a protected name in a nested folder",
        tree: &["scripts/env.sh", "a/b/.envrc -> ../../scripts/env.sh"],
        deny: &[],
        lines: &["echo evil > scripts/env.sh; true"],
        guarded: &["a/b/.envrc"],
    },
    Row {
        name: "hooks of a repository in a folder of another name",
        tree: &[
            ".git/HEAD",
            ".git/objects/x",
            ".git/refs/x",
            "hooks/pre-commit",
            ".git/hooks -> ../hooks",
        ],
        deny: &[],
        lines: &["echo evil > hooks/pre-commit; true"],
        guarded: &["hooks/pre-commit"],
    },
    Row {
        name: "a folder on the way that is replaced by a link",
        tree: &[
            "store/mcp.json",
            "other/x",
            ".local -> store",
            ".mcp.json -> .local/mcp.json",
        ],
        deny: &[],
        lines: &[
            "echo evil > other/mcp.json; ln -sfn other .local; true",
            "echo evil > other/mcp.json; true",
            "rm .local; mkdir .local; echo evil > .local/mcp.json; true",
        ],
        guarded: &[".mcp.json"],
    },
    Row {
        name: "a link that an earlier command made",
        tree: &["db/c", "a/keep"],
        deny: &["Edit(/a/*/c)"],
        lines: &[
            "ln -s ../db a/x",
            "echo evil > db/c; true",
            "echo evil > a/x/c; true",
        ],
        guarded: &["db/c"],
    },
    Row {
        name: "a link elsewhere that leads back to a file that is not there yet",
        tree: &["a", "OUT/m -> ROOT/ign/m.json", ".mcp.json -> ../out/m"],
        deny: &[],
        lines: &["mkdir -p ign; echo evil > ign/m.json; true"],
        guarded: &[".mcp.json"],
    },
    Row {
        name: "a link elsewhere that leads back to a folder that is not there yet",
        tree: &["a", "OUT/back -> ROOT/db", "migrations -> ../out/back"],
        deny: MIGRATIONS,
        lines: &["mkdir db; echo evil > db/1.sql; true"],
        guarded: &["migrations/1.sql"],
    },
    Row {
        name: "a link of the workspace behind one elsewhere",
        tree: &[
            "db/1.sql",
            "db2/1.sql",
            "mid -> db",
            "OUT/back -> ROOT/mid",
            "migrations -> ../out/back",
        ],
        deny: MIGRATIONS,
        lines: &["echo evil > db2/1.sql; ln -sfn db2 mid; true"],
        guarded: &["migrations/1.sql"],
    },
    Row {
        name: "a link elsewhere to the workspace",
        tree: &[
            "db/1.sql",
            "db2/1.sql",
            "mid -> db",
            "OUT/ws -> ROOT",
            "migrations -> OUT/ws/mid",
        ],
        deny: MIGRATIONS,
        lines: &["echo evil > db2/1.sql; ln -sfn db2 mid; true"],
        guarded: &["migrations/1.sql"],
    },
    Row {
        name: "a folder elsewhere with a link into the workspace",
        tree: &[
            "db/1.sql",
            "OUT/sub/1.sql -> ROOT/db/1.sql",
            "migrations -> ../out",
        ],
        deny: MIGRATIONS,
        lines: &["echo evil > db/1.sql; true"],
        guarded: &["db/1.sql"],
    },
    Row {
        name: "a link to the whole workspace",
        tree: &["db/c", "all -> ."],
        deny: &["Edit(/all/db/**)"],
        lines: &["echo evil > db/c; true"],
        guarded: &["db/c"],
    },
];

fn make(scene: &Scene, tree: &[&str]) {
    let root = scene.at("").canonicalize().unwrap();
    let out = root.with_file_name("out");
    for path in tree {
        let path = path.replace("ROOT", root.to_str().unwrap());
        let path = path.replace("OUT", out.to_str().unwrap());
        if let Some((link, text)) = path.split_once(" -> ") {
            fs::create_dir_all(scene.at(link).parent().unwrap()).unwrap();
            symlink(text, scene.at(link)).unwrap();
        } else if let Some((name, other)) = path.split_once(" = ") {
            fs::hard_link(scene.at(other), scene.at(name)).unwrap();
        } else {
            scene.put(&path, "old");
        }
    }
}

pub(crate) async fn all(sandbox: &Sandbox) {
    links_hold_in_both_modes(sandbox).await;
    links_that_name_nothing_guarded_ask_nothing(sandbox).await;
    a_request_names_the_link(sandbox).await;
    links_that_cannot_be_listed_are_asked_about(sandbox).await;
    many_ways_hide_no_name(sandbox).await;
    a_link_made_after_the_request_is_judged(sandbox).await;
}

async fn links_hold_in_both_modes(sandbox: &Sandbox) {
    for row in ROWS {
        for mode in [ChangeMode::Copy, ChangeMode::Direct] {
            let settings = Settings {
                profile: Profile::Trusted,
                deny: row.deny,
                mode,
                says_no: true,
                ..Settings::default()
            };
            let scene = Scene::with(sandbox, &settings);
            make(&scene, row.tree);
            let look = || {
                let each = row.guarded.iter();
                let each = each.map(|path| fs::read_to_string(scene.at(path)).ok());
                each.collect::<Vec<_>>()
            };
            let before = look();
            for line in row.lines {
                let outcome = scene.run(line).await;
                assert_eq!(
                    look(),
                    before,
                    "{}: {mode:?}: {line}: {outcome:?}",
                    row.name
                );
            }
        }
    }
}

async fn links_that_name_nothing_guarded_ask_nothing(sandbox: &Sandbox) {
    let settings = Settings {
        profile: Profile::Trusted,
        deny: &["Edit(/migrations/**)", "Edit(**/secret/**)"],
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    let tree = [
        "packages/a/x",
        "packages/b/x",
        "node_modules/a -> ../packages/a",
    ];
    let links = [
        "packages/a/node_modules/b -> ../../b",
        "packages/b/node_modules/a -> ../../a",
        "all -> .",
        "migrations -> db",
    ];
    make(&scene, &[&tree[..], &links].concat());
    let outcome = scene
        .run("echo new > packages/b/x; echo new > node_modules/a/x")
        .await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(scene.questions().is_empty());
    for path in ["packages/a/x", "packages/b/x"] {
        assert_eq!(fs::read_to_string(scene.at(path)).unwrap(), "new\n");
    }
}

async fn a_request_names_the_link(sandbox: &Sandbox) {
    let scene = Scene::with(sandbox, &Settings::default());
    make(
        &scene,
        &[
            ".git/HEAD",
            ".local/mcp.json",
            ".mcp.json -> .local/mcp.json",
        ],
    );
    scene.put(".gitignore", ".local/\n");
    let outcome = scene.run("echo new > .local/mcp.json; true").await;
    assert!(outcome.is_ok(), "{outcome:?}");
    let asked = serde_json::to_string(&scene.questions()).unwrap();
    assert!(
        asked.contains(r#""path":".mcp.json","target":".local/mcp.json""#),
        "{asked}"
    );
    assert_eq!(fs::read_to_string(scene.at(".mcp.json")).unwrap(), "new\n");
}

/// A folder that cannot be listed but entered: links in it work, and are not known.
async fn links_that_cannot_be_listed_are_asked_about(sandbox: &Sandbox) {
    use std::os::unix::fs::PermissionsExt as _;
    let settings = Settings {
        profile: Profile::Trusted,
        says_no: true,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    make(&scene, &["a", "closed/x"]);
    let set = |mode| fs::set_permissions(scene.at("closed"), fs::Permissions::from_mode(mode));
    set(0o311).unwrap();
    let listed = fs::read_dir(scene.at("closed")).is_ok();
    let outcome = scene.run("echo new > a; true").await;
    set(0o755).unwrap();
    // Root lists every folder.
    let questions = scene.questions();
    assert_eq!(questions.len(), usize::from(!listed), "{outcome:?}");
    let asked = serde_json::to_string(&questions).unwrap();
    assert_eq!(asked.contains("but not list it"), !listed, "{asked}");
    assert_eq!(outcome.is_ok(), listed, "{outcome:?}");
}

/// Each of these links has two texts, the old and the new one, so the last one has hundreds of ways.
async fn many_ways_hide_no_name(sandbox: &Sandbox) {
    let settings = Settings {
        profile: Profile::Trusted,
        deny: MIGRATIONS,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    let links: Vec<String> = (2..=9)
        .map(|at| format!("ign/l{at} -> l{}", at - 1))
        .collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let tree = [
        "db/1.sql",
        "ign/a/x",
        "ign/b/x",
        "migrations -> db",
        "ign/l1 -> a",
    ];
    make(&scene, &[&tree[..], &links].concat());
    let line = "for i in 2 3 4 5 6 7 8 9; do ln -sfn ../ign/l$((i-1)) ign/l$i; done; ln -sfn b ign/l1; echo evil > db/1.sql; true";
    let outcome = scene.run(line).await;
    assert!(scene.questions().is_empty(), "{outcome:?}");
    let kept = fs::read_to_string(scene.at("db/1.sql")).unwrap();
    assert_eq!(kept, "old", "{outcome:?}");
    let moved = fs::read_link(scene.at("ign/l1")).unwrap();
    assert_eq!(moved.to_str(), Some("b"), "{outcome:?}");
}

/// The user makes the link before approving.
async fn a_link_made_after_the_request_is_judged(sandbox: &Sandbox) {
    let settings = Settings {
        profile: Profile::Trusted,
        ask: &["Edit(/db/**)"],
        deny: MIGRATIONS,
        acts: Some(|root| symlink("db", root.join("migrations")).unwrap()),
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    make(&scene, &["db/1.sql"]);
    let outcome = scene.run("echo evil > db/1.sql; true").await;
    assert_eq!(scene.questions().len(), 1, "{outcome:?}");
    let kept = fs::read_to_string(scene.at("migrations/1.sql")).unwrap();
    assert_eq!(kept, "old", "{outcome:?}");
}
