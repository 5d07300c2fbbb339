//! A day of work with git on copies of the workspace: the host's git and the jail's agree, and nothing breaks.

use std::path::Path;
use std::process::Command;

use haft::policy::Profile;
use haft_sandbox::Sandbox;

use crate::scene::{Scene, Settings};

/// The commands of the day, in order.
const DAY: &[&str] = &[
    "git clone --quiet --no-hardlinks origin clone && rm -rf origin && mv clone/* clone/.git . && rmdir clone",
    "git config user.name Ada && git config user.email ada@example.com",
    "git switch --quiet -c feature && echo two >> file && git add file && git commit --quiet -m two",
    "echo three > other && git add . && git commit --quiet -m three",
    "git switch --quiet main && echo own > own && git add own && git commit --quiet -m own",
    "git switch --quiet feature && git rebase --quiet main",
    "echo unsaved >> file && git stash --quiet && git stash pop --quiet && git checkout --quiet file",
    "git switch --quiet main && sed -i s/one/changed/ file && git commit --quiet -am changed",
    "git merge --quiet feature; sed -i '/^[<=>]/d' file; git add file; git commit --quiet -m merged; true",
    "git worktree add --quiet tree feature && echo four > tree/four && git -C tree add four && git -C tree commit --quiet -m four",
    "git init --quiet part && git -C part -c user.name=A -c user.email=a@b commit --quiet --allow-empty -m part",
    "git -c protocol.file.allow=always submodule --quiet add \"file://$PWD/part\" sub && git commit --quiet -m sub",
    "mv file renamed && git add -A && git commit --quiet -m renamed",
    "git branch --quiet -d feature; git gc --quiet",
];

/// Makes the repository in the workspace that is cloned.
const ORIGIN: &str = "git init --quiet -b main origin && cd origin && echo one > file && git add . && \
    git -c user.name=O -c user.email=o@example.com commit --quiet -m one";

pub(crate) async fn all(sandbox: &Sandbox) {
    let settings = Settings {
        profile: Profile::Trusted,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    host(&scene.at(""), ORIGIN);
    let linked = scene.run("git clone --quiet origin clone").await;
    let advice = linked.error.unwrap().advice.unwrap_or_default();
    assert!(advice.contains("--no-hardlinks"), "{advice}");
    for line in DAY {
        let outcome = scene.run(line).await;
        let shown = format!("{line}: {}", serde_json::to_string(&outcome).unwrap());
        assert!(outcome.is_ok(), "{shown}");
        if !scene.at(".git").is_dir() {
            continue;
        }
        let status = "git status --porcelain --untracked-files=all";
        let inside = scene.run(&format!("{status} | cat; true")).await;
        let data: serde_json::Value = serde_json::from_str(inside.data.unwrap().get()).unwrap();
        assert_eq!(data["stdout"], host(&scene.at(""), status), "{shown}");
        assert_eq!(
            host(
                &scene.at(""),
                "git fsck --strict 2>&1 | grep -v ^dangling; true"
            ),
            "",
            "{shown}"
        );
    }
    assert_eq!(host(&scene.at(""), "git status --porcelain"), "");
    assert_eq!(
        host(&scene.at(""), "git show HEAD:renamed | head -1"),
        "changed\n"
    );
    assert_eq!(host(&scene.at("tree"), "git log -1 --format=%s"), "four\n");
    hidden_files_are_not_emptied(sandbox).await;
    what_git_stores_anew_is_no_conflict(sandbox).await;
    odd_indexes_are_applied_where_nothing_is_hidden(sandbox).await;
    new_repositories_are_units(sandbox).await;
    eprintln!("changes: {} git commands: ok", DAY.len());
}

/// A user's repositories, each with a file `.env` in `at` that a rule hides, and the command that commits there.
const HIDING: &[(&str, &str, &str, &str)] = &[
    ("plain", "git init -q -b main .", ".", "git add -A"),
    ("commit -a", "git init -q -b main .", ".", "true"),
    (
        "version 4",
        "git init -q -b main . && git config index.version 4",
        ".",
        "git add -A",
    ),
    (
        "SHA-256",
        "git init -q -b main --object-format=sha256 .",
        ".",
        "git add -A",
    ),
    (
        "split",
        "git init -q -b main . && git config core.splitIndex true",
        ".",
        "git add -A",
    ),
    (
        "other folder",
        "git init -q -b main --separate-git-dir=meta .",
        ".",
        "git add -u",
    ),
    (
        "worktree",
        "git init -q -b main . && git commit -q --allow-empty -m first && git worktree add -q tree",
        "tree",
        "git add -A",
    ),
    (
        "submodule",
        "git init -q -b main lib && git -C lib commit -q --allow-empty -m first && git init -q . && \
            git -c protocol.file.allow=always submodule --quiet add ./lib sub && git commit -q -m sub",
        "sub",
        "git add -A",
    ),
];

/// To git in a command, files that rules hide look empty or deleted: no commit of a command may record them so.
async fn hidden_files_are_not_emptied(sandbox: &Sandbox) {
    for deny in [&["Read(.env)"][..], &["Read(//**/hidden/**)"]] {
        for (name, make, at, add) in HIDING {
            let settings = Settings {
                profile: Profile::Trusted,
                deny,
                ..Settings::default()
            };
            let scene = Scene::with(sandbox, &settings);
            host(&scene.at(""), make);
            let line = "mkdir -p hidden && echo KEY=1 > hidden/.env && echo one > file && touch empty && \
                git add hidden file empty && git commit -q -m one";
            host(&scene.at(at), line);
            let log =
                "git log -1 --format=%s; git show HEAD:hidden/.env; git status --porcelain -uno";
            let before = host(&scene.at(at), log);
            let who = "-c user.name=A -c user.email=a@localhost";
            let line = format!("cd {at} && echo two > file && {add} && git {who} commit -qam two");
            let outcome = scene.run(&line).await;
            let why = outcome.error.map(|error| error.message).unwrap_or_default();
            assert!(
                why.contains("commands cannot read"),
                "{name} {deny:?}: {why:?}"
            );
            let after = host(&scene.at(at), log).replace(" M file\n", "");
            assert_eq!(after, before, "{name} {deny:?}");
            if *name == "plain" {
                for line in [
                    "truncate -s 65M .git/index",
                    "cp .git/index .git/other && ln -sf other .git/index",
                ] {
                    let outcome = scene.run(line).await;
                    let why = outcome.error.map(|error| error.message).unwrap_or_default();
                    assert!(why.contains("commands cannot read"), "{line}: {why:?}");
                    assert_eq!(host(&scene.at(at), log).replace(" M file\n", ""), before);
                }
                let one = scene.run(&format!("git {who} commit -q -m two file")).await;
                assert!(one.is_ok(), "{one:?}");
                assert_eq!(host(&scene.at(at), log), "two\nKEY=1\n");
            }
        }
    }
}

/// Repositories with an index of a rarer kind, in whose work tree a rule hides no file, or none that is recorded.
const ODD: &[(&str, &str)] = &[
    (
        "SHA-256",
        "git init -q -b main --object-format=sha256 . && echo K=1 > .env && echo .env > .gitignore && COMMIT",
    ),
    (
        "split",
        "git init -q -b main . && COMMIT && git update-index --split-index",
    ),
    (
        "sparse",
        "git init -q -b main . && COMMIT && git sparse-checkout set --sparse-index x && echo K=1 > .env",
    ),
];

async fn odd_indexes_are_applied_where_nothing_is_hidden(sandbox: &Sandbox) {
    for (name, make) in ODD {
        let settings = Settings {
            profile: Profile::Trusted,
            deny: &["Read(.env)"],
            ..Settings::default()
        };
        let scene = Scene::with(sandbox, &settings);
        let commit =
            "mkdir x y && echo a > x/a && echo b > y/b && git add x y && git commit -q -m one";
        host(&scene.at(""), &make.replace("COMMIT", commit));
        let who = "-c user.name=A -c user.email=a@localhost";
        let line = format!("echo two >> x/a && git {who} commit -qam two");
        let outcome = scene.run(&line).await;
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
        let log = host(
            &scene.at(""),
            "git log --format=%s; git show HEAD:y/b; git status -s -uno",
        );
        assert_eq!(log, "two\none\nb\n", "{name}");
        host(&scene.at(""), "git fsck --strict");
        let left = host(&scene.at(""), "find .git -name '*.lock'");
        assert_eq!(left, "", "{name}");
    }
}

/// What git on the host does in the repository at a path.
type HostAction = fn(&Path);

/// What git on the host does while a commit waits, and whether that changes what was shown.
const MEANWHILE: &[(HostAction, bool)] = &[
    (
        |root| _ = host(root, "touch -d 2001-01-01 other && git status"),
        false,
    ),
    (|root| _ = host(root, "git pack-refs --all"), false),
    (|root| _ = host(root, "git gc -q"), false),
    (
        |root| _ = host(root, "echo x > other && git add other"),
        true,
    ),
    (
        |root| _ = host(root, "git update-ref refs/heads/main HEAD~1"),
        true,
    ),
];

async fn what_git_stores_anew_is_no_conflict(sandbox: &Sandbox) {
    for (nth, (acts, changes)) in MEANWHILE.iter().enumerate() {
        let settings = Settings {
            acts: Some(*acts),
            ..Settings::default()
        };
        let scene = Scene::with(sandbox, &settings);
        host(
            &scene.at(""),
            "git init -q -b main . && echo 1 > file && echo 1 > other && git add . && git commit -qm one && \
                git commit -qm two --allow-empty && git tag v1",
        );
        let who = "-c user.name=A -c user.email=a@localhost";
        let line = format!("echo 2 >> file && git {who} commit -qam three");
        let outcome = scene.run(&line).await;
        assert_eq!(outcome.is_ok(), !changes, "{nth}: {outcome:?}");
        host(&scene.at(""), "git fsck --strict");
        if !changes {
            let log = host(
                &scene.at(""),
                "git log --format=%s; git status -s; find .git -name '*.lock'",
            );
            assert_eq!(log, "three\ntwo\none\n", "{nth}");
        }
    }
}

/// Commands that make a repository in a folder of another name than `.git`, and that folder.
const MAKING: &[(&str, &str)] = &[
    ("git clone -q --bare --no-hardlinks sub cl.git", "cl.git"),
    ("mv sub/.git gd", "gd"),
    ("git init -q --bare x; echo more > x/notes", "x"),
    ("git init -q --separate-git-dir=sep there", "sep"),
    // In a folder that exists only what git keeps there belongs to it.
    (
        "git init -q --bare old; git -C old pack-refs; echo y > old/other",
        "old",
    ),
];

/// What belongs to a new repository is asked about as a whole, and applied as a whole or not at all.
async fn new_repositories_are_units(sandbox: &Sandbox) {
    for (line, folder) in MAKING {
        for says_no in [true, false] {
            let settings = Settings {
                profile: Profile::Trusted,
                says_no,
                ..Settings::default()
            };
            let scene = Scene::with(sandbox, &settings);
            host(
                &scene.at(""),
                "git init -q sub && git -C sub commit -q --allow-empty -m one && git -C sub pack-refs --all",
            );
            scene.put("old/kept", "k\n");
            let before = scene.tree();
            let outcome = scene.run(line).await;
            let others = ["old/other", "there"].map(Path::new);
            if says_no {
                assert!(!outcome.is_ok(), "{line}: {outcome:?}");
                let mut after = scene.tree();
                after.retain(|path, _| !others.contains(&&**path));
                assert_eq!(after, before, "{line}");
                continue;
            }
            assert!(outcome.is_ok(), "{line}: {outcome:?}");
            let asked = scene.questions();
            let [request] = &asked[..] else {
                panic!("{line}: {asked:?}");
            };
            let permissions = request.snapshot.permissions.iter();
            let asked: Vec<&str> = permissions.map(|one| one.effect.value()).collect();
            let within = |path: &Path| path.starts_with(folder) && !others.contains(&path);
            let all = scene.tree();
            let unasked = all.keys().find(|path| {
                within(path)
                    && !before.contains_key(*path)
                    && !asked.contains(&&*path.to_string_lossy())
            });
            assert_eq!(unasked, None, "{line}: {asked:?}");
            host(&scene.at(""), &format!("git --git-dir={folder} fsck"));
        }
    }
}

/// Runs a command of the user, outside the jail.
#[expect(clippy::disallowed_methods, reason = "the host's own git")]
pub(crate) fn host(folder: &Path, line: &str) -> String {
    let done = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "ada")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "ada@localhost")))
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}
