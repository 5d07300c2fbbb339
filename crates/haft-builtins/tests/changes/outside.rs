//! Repositories outside of the workspace: git works as on the host, and one set has the changes of both.

use std::fs;
use std::path::Path;

use haft::approval::meaning::MeaningKind;
use haft::policy::Profile;
use haft_sandbox::Sandbox;
use serde_json::json;

use crate::git::host;
use crate::scene::{Scene, Settings, data};

/// How a repository lies outside of the workspace, the line that makes it in the scene's folder, and the workspace.
const PLACES: &[(&str, &str, &str)] = &[
    (
        "linked worktree",
        "git init -q -b main main && cd main && echo o > file && git add . && git commit -qm one && git worktree add -q ../ws -b topic",
        "ws",
    ),
    (
        "worktree of a bare repository",
        "git init -q -b main seed && cd seed && echo o > file && git add . && git commit -qm one && cd .. && \
            git clone -q --bare seed bare.git && git -C bare.git worktree add -q ../ws -b topic",
        "ws",
    ),
    (
        "settings of a worktree",
        "git init -q -b main main && cd main && echo o > file && git add . && git commit -qm one && \
            git config extensions.worktreeConfig true && git worktree add -q ../ws -b topic && \
            git -C ../ws config --worktree user.name W",
        "ws",
    ),
    (
        "submodule",
        "git init -q -b main lib && cd lib && echo o > file && git add . && git commit -qm one && cd .. && git init -q super && \
            cd super && git -c protocol.file.allow=always submodule --quiet add ../lib sub && git commit -qm sub",
        "super/sub",
    ),
    (
        "separate folder",
        "git init -q -b main --separate-git-dir=store ws && cd ws && echo o > file && git add . && git commit -qm one",
        "ws",
    ),
    (
        "package",
        "git init -q -b main super && cd super && mkdir -p packages/a packages/b && echo o > packages/a/file && \
            echo b > packages/b/file && echo r > README && git add . && git commit -qm one && echo unsaved >> packages/b/file",
        "super/packages/a",
    ),
    (
        "package, index of version 4",
        "git init -q -b main super && cd super && git config index.version 4 && mkdir -p packages/a packages/b && \
            echo o > packages/a/file && echo b > packages/b/file && git add . && git commit -qm one",
        "super/packages/a",
    ),
    (
        "package of a worktree",
        "git init -q -b main main && cd main && mkdir -p a b && echo o > a/file && echo b > b/file && git add . && \
            git commit -qm one && git worktree add -q ../tree -b topic",
        "tree/a",
    ),
];

/// The commands of a day, in order.
const DAY: &[&str] = &[
    "echo two >> file && git add -A && git commit -qm two",
    "git switch -q -c side && echo x > x && git add x && git commit -qm side",
    "git switch -q - && echo own > own && git add own && git commit -qm own",
    "git rebase -q side && git branch -d side",
    "echo unsaved >> file && git stash -q && git stash pop -q && git checkout -q file",
    "git rm -q own && git commit -qm removed && git tag v1",
    "git config alias.x status; git gc -q",
];

pub(crate) async fn all(sandbox: &Sandbox) {
    for (name, make, place) in PLACES {
        a_day_is_as_on_the_host(sandbox, name, make, place).await;
    }
    requests_show_commits(sandbox).await;
    settings_and_other_worktrees_are_asked_about(sandbox).await;
    what_a_package_does_not_see_stays(sandbox).await;
    what_is_not_its_own_is_not_shown(sandbox).await;
    a_repository_that_is_swapped_gets_nothing(sandbox).await;
    direct_changes_leave_it_alone(sandbox).await;
    sha256_is_read_and_committed_to(sandbox).await;
    eprintln!("changes: {} places of repositories: ok", PLACES.len());
}

fn scene(sandbox: &Sandbox, settings: &Settings, make: &str, place: &'static str) -> Scene {
    let settings = Settings {
        place,
        ..settings.clone()
    };
    Scene::placed(sandbox, &settings, &std::env::temp_dir(), |dir| {
        host(dir, make);
    })
}

fn trusted() -> Settings {
    Settings {
        profile: Profile::Trusted,
        ..Settings::default()
    }
}

/// A line in which git knows who commits.
fn named(line: &str) -> String {
    format!(
        "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b; {line}"
    )
}

async fn a_day_is_as_on_the_host(sandbox: &Sandbox, name: &str, make: &str, place: &'static str) {
    let scene = scene(sandbox, &trusted(), make, place);
    let before = scene.tree();
    let first = host(&scene.at(""), "git rev-parse HEAD");
    let first = first.trim();
    let top = "cd $(git rev-parse --show-toplevel) && git status --porcelain -uall -- . ':!packages/a' ':!a'; git fsck --strict 2>&1 | grep -v ^dangling; true";
    let around = host(&scene.at(""), top);
    let mut run = None;
    for line in DAY {
        let outcome = scene.run(&named(line)).await;
        let shown = format!(
            "{name}: {line}: {}",
            serde_json::to_string(&outcome).unwrap()
        );
        assert!(outcome.is_ok(), "{shown}");
        assert!(data(&outcome).get("not_applied").is_none(), "{shown}");
        run = Some(outcome.run);
        let status = "git status --porcelain -uall; git log --format=%s";
        let inside = scene.run(&format!("{status} | cat; true")).await;
        let seen = data(&inside)["stdout"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let without_others = |text: &str| {
            let lines = text.lines().filter(|line| !line.contains("packages/b"));
            lines.collect::<Vec<_>>().join("\n")
        };
        let whole = host(&scene.at(""), status);
        assert_eq!(without_others(&seen), without_others(&whole), "{shown}");
        if !place.contains("sub") {
            assert_eq!(host(&scene.at(""), top), around, "{shown}");
        }
    }
    let run = run.unwrap();
    let undone = scene
        .call("undo_changes", json!({"run": run.as_str()}))
        .await;
    assert!(undone.is_ok(), "{name}: {undone:?}");
    assert_eq!(
        fs::read_to_string(scene.at("file")).unwrap(),
        "o\n",
        "{name}"
    );
    assert!(!scene.at("x").exists(), "{name}");
    // As in every repository, undo restores the files and leaves git's own to git.
    let kept = host(&scene.at(""), "git log -1 --format=%s");
    assert_eq!(kept, "removed\n", "{name}");
    host(&scene.at(""), &format!("git reset -q --hard {first}"));
    assert_eq!(scene.tree(), before, "{name}");
    assert_eq!(scene.views_left(), 0, "{name}");
}

async fn requests_show_commits(sandbox: &Sandbox) {
    for (name, make, place) in PLACES {
        let scene = scene(sandbox, &Settings::default(), make, place);
        let line = named("echo two >> file && git commit -qam two");
        let outcome = scene.run(&line).await;
        assert!(outcome.is_ok(), "{name}: {outcome:?}");
        let asked = scene.questions();
        let meanings: Vec<_> = asked
            .iter()
            .flat_map(|request| &request.snapshot.meanings)
            .collect();
        let commit = meanings
            .iter()
            .find(|meaning| meaning.kind == MeaningKind::Commit);
        let title = commit.map(|meaning| &*meaning.title).unwrap_or_default();
        assert!(title.contains("two"), "{name}: {meanings:#?}");
    }
}

/// Lines that change what git obeys, or what is another worktree's, and the changed path.
const GUARDED: &[(&str, &str)] = &[
    ("git config core.hooksPath x", ".git/config"),
    (
        "echo exit > $(git rev-parse --git-common-dir)/hooks/post-commit",
        ".git/hooks/post-commit",
    ),
    (
        "echo /x > $(git rev-parse --git-dir)/commondir",
        ".git/worktrees/ws/commondir",
    ),
    (
        "echo x > $(git rev-parse --git-dir)/config.worktree",
        ".git/worktrees/ws/config.worktree",
    ),
    (
        "echo 'ref: refs/heads/main' > $(git rev-parse --git-common-dir)/worktrees/other/HEAD",
        ".git/worktrees/other/HEAD",
    ),
    ("git worktree prune", ".git/worktrees/other/HEAD"),
    // The main worktree's own part lies at the top of the repository's folder.
    (
        "GIT_DIR=$(git rev-parse --git-common-dir) git symbolic-ref HEAD refs/heads/third",
        ".git/HEAD",
    ),
    (
        "mkdir /tmp/wt && GIT_DIR=$(git rev-parse --git-common-dir) GIT_WORK_TREE=/tmp/wt git add -A",
        ".git/index",
    ),
    (
        "git rev-parse HEAD > $(git rev-parse --git-common-dir)/MERGE_HEAD",
        ".git/MERGE_HEAD",
    ),
    (
        "echo evil > $(git rev-parse --git-common-dir)/SQUASH_MSG",
        ".git/SQUASH_MSG",
    ),
    (
        "mkdir $(git rev-parse --git-common-dir)/rebase-merge",
        ".git/rebase-merge",
    ),
    // A repository in the workspace has worktrees outside of it.
    (
        "git symbolic-ref --short HEAD; echo 'ref: refs/heads/x' > sub/.git/worktrees/far/HEAD",
        "sub/.git/worktrees/far/HEAD",
    ),
];

/// Shows what no line above changes.
const STATE: &str = "cat ../main/.git/config ../main/.git/HEAD ../main/.git/index sub/.git/worktrees/far/HEAD | base64; ls -R ../main/.git";

/// Lines about other worktrees, and what a request says of them.
const SAID: &[(&str, &str)] = &[
    (
        "GIT_DIR=$(git rev-parse --git-common-dir) git symbolic-ref HEAD refs/heads/third",
        "switch from main to third (in the worktree ROOT/main)",
    ),
    (
        "mkdir /tmp/wt && GIT_DIR=$(git rev-parse --git-common-dir) GIT_WORK_TREE=/tmp/wt git add -A",
        "staged for the next commit: 1 file, +0 \u{2212}1 (in the worktree ROOT/main)",
    ),
    (
        "git rev-parse HEAD > $(git rev-parse --git-common-dir)/MERGE_HEAD",
        "a merge is left unfinished (in the worktree ROOT/main)",
    ),
    (
        "git update-ref refs/heads/third $(git commit-tree -p HEAD -m m HEAD^{tree})",
        "the worktree ROOT/other has it checked out: its files and index stay",
    ),
    (
        "git worktree prune",
        "git forgets the worktree ROOT/other, which is on third",
    ),
    (
        "git worktree add -q new third -f",
        "the worktree ROOT/ws/new is added, on third",
    ),
];

async fn settings_and_other_worktrees_are_asked_about(sandbox: &Sandbox) {
    let make = "git init -q -b main main && cd main && echo o > file && git add . && git commit -qm one && \
        git worktree add -q ../ws -b topic && git worktree add -q ../other -b third && \
        git init -q ../ws/sub && cd ../ws/sub && git commit -q --allow-empty -m s && git worktree add -q ../../far";
    for (line, says) in SAID {
        let scene = scene(sandbox, &Settings::default(), make, "ws");
        let outcome = scene.run(&named(line)).await;
        let asked = scene.questions();
        let meanings = asked.iter().flat_map(|request| &request.snapshot.meanings);
        let said = meanings.map(|one| format!("{}\n{}\n", one.title, one.warnings.join("\n")));
        let said: String = said.collect();
        let root = scene.dir.path().canonicalize().unwrap();
        let says = says.replace("ROOT", &root.to_string_lossy());
        assert!(said.contains(&says), "{line}: {said}: {outcome:?}");
    }
    for (line, path) in GUARDED {
        let settings = Settings {
            says_no: true,
            ..trusted()
        };
        let scene = scene(sandbox, &settings, make, "ws");
        let before = host(&scene.at(""), STATE);
        let outcome = scene.run(line).await;
        assert!(!outcome.is_ok(), "{line}: {outcome:?}");
        let asked = scene.questions();
        let permissions = asked
            .iter()
            .flat_map(|request| &request.snapshot.permissions);
        let paths: Vec<&str> = permissions.map(|one| one.effect.value()).collect();
        assert!(paths.contains(path), "{line}: {paths:?}");
        let after = host(&scene.at(""), STATE);
        assert_eq!(after, before, "{line}");
    }
    // A rule names the repository as if it lay in the workspace.
    let settings = Settings {
        deny: &["Edit(/.git/refs/**)"],
        ..trusted()
    };
    let scene = scene(sandbox, &settings, make, "ws");
    let outcome = scene.run("git branch new").await;
    assert!(!outcome.is_ok(), "{outcome:?}");
    assert!(!host(&scene.at(""), "git branch").contains("new"));
}

/// Lines in a package that would change what lies outside of it.
const LEAVING: &[&str] = &[
    "git rm -q --sparse --cached ../b/file",
    "git update-index --force-remove ../b/file",
    "git switch -q other",
];

async fn what_a_package_does_not_see_stays(sandbox: &Sandbox) {
    let make = "git init -q -b main super && cd super && mkdir -p packages/a packages/b && echo o > packages/a/file && \
        echo b > packages/b/file && git add . && git commit -qm one && git switch -q -c other && git rm -q packages/b/file && \
        git commit -qm gone && git switch -q main";
    for line in LEAVING {
        let scene = scene(sandbox, &trusted(), make, "super/packages/a");
        let top = "git -C ../.. status --porcelain; git -C ../.. ls-files -s -v";
        let before = host(&scene.at(""), top);
        let outcome = scene.run(line).await;
        let why = outcome.error.map(|error| error.message).unwrap_or_default();
        assert!(why.contains("outside of the workspace"), "{line}: {why}");
        assert_eq!(host(&scene.at(""), top), before, "{line}");
    }
    let scene = scene(sandbox, &trusted(), make, "super/packages/a");
    let line = named("echo n > new && git add -A && git commit -qam two");
    assert!(scene.run(&line).await.is_ok());
    let files = host(&scene.at(""), "git -C ../.. ls-tree -r --name-only HEAD");
    assert_eq!(files, "packages/a/file\npackages/a/new\npackages/b/file\n");
    let flags = host(&scene.at(""), "git -C ../.. ls-files -v");
    assert!(flags.lines().all(|line| line.starts_with("H ")), "{flags}");
}

/// What names a repository that is not the workspace's own, and what is said of it.
const FOREIGN: &[(&str, &str)] = &[
    (
        "git init -q victim && echo 'gitdir: ../victim/.git' > ws/.git",
        "is not the repository of",
    ),
    (
        "git init -q victim && cd victim && git commit -q --allow-empty -m one && git worktree add -q ../real && \
            echo 'gitdir: ../victim/.git/worktrees/real' > ../ws/.git",
        "as its work tree, not",
    ),
    (
        "git init -q --bare victim.git && echo 'gitdir: ../victim.git' > ws/.git",
        "is not the repository of",
    ),
    (
        "git init -q --separate-git-dir=store other && cd other && echo x > x && git add x && git commit -qm x && cd .. && \
            echo 'gitdir: ../store' > ws/.git",
        "nothing in",
    ),
    ("echo 'gitdir: /' > ws/.git", "no repository"),
    ("echo 'gitdir: ../absent' > ws/.git", "No such file"),
    ("echo nonsense > ws/.git", "names no folder"),
    (
        "git init -q victim && ln -s ../victim/.git ws/.git",
        "is a link",
    ),
    (
        "mkdir -p fake/worktrees/x && echo .. > fake/worktrees/x/commondir && echo 'gitdir: ../fake/worktrees/x' > ws/.git",
        "is not a worktree of",
    ),
    (
        "mkdir -p fake/worktrees/x && echo . > fake/worktrees/x/commondir && echo 'gitdir: ../fake/worktrees/x' > ws/.git",
        "is not a worktree of",
    ),
    (
        "git init -q main && cd main && git commit -q --allow-empty -m one && git worktree add -q ../ws && \
            rm .git/worktrees/ws/gitdir && mkfifo .git/worktrees/ws/gitdir",
        "it is no file",
    ),
];

async fn what_is_not_its_own_is_not_shown(sandbox: &Sandbox) {
    for (make, expect) in FOREIGN {
        let scene = scene(sandbox, &trusted(), make, "ws");
        let outcome = scene
            .run("git log --format=seen; git config -l --show-scope; true")
            .await;
        let shown = serde_json::to_string(&outcome).unwrap();
        assert!(!shown.contains("seen\\n"), "{make}: {shown}");
        assert!(
            !shown.contains("repositoryformatversion"),
            "{make}: {shown}"
        );
        let notes = outcome.notes.join("\n");
        assert!(notes.contains(expect), "{make}: {shown}");
        assert_eq!(notes.matches("no git repository here").count(), 1, "{make}");
    }
}

/// The repository is another one when a decision is made: nothing is applied to it.
async fn a_repository_that_is_swapped_gets_nothing(sandbox: &Sandbox) {
    let (_, make, place) = PLACES[0];
    let swap = |root: &Path| {
        let line = "mv ../main/.git ../main/was && git init -q -b main ../main && mkdir -p ../main/.git/worktrees && \
            cp -r ../main/was/worktrees/ws ../main/.git/worktrees/";
        host(root, line);
    };
    let settings = Settings {
        acts: Some(swap),
        ..Settings::default()
    };
    let scene = scene(sandbox, &settings, make, place);
    let outcome = scene
        .run(&named("echo two >> file && git commit -qam two"))
        .await;
    let objects = host(&scene.at(""), "find ../main/.git/objects -type f");
    assert_eq!(objects, "", "{outcome:?}");
}

async fn direct_changes_leave_it_alone(sandbox: &Sandbox) {
    let settings = Settings {
        mode: haft_builtins::command::changes::ChangeMode::Direct,
        ..trusted()
    };
    let (_, make, place) = PLACES[0];
    let scene = scene(sandbox, &settings, make, place);
    let log = scene.run("git log --format=%s").await;
    assert_eq!(data(&log)["stdout"], "one\n", "{log:?}");
    let outcome = scene
        .run(&named("echo two >> file && git commit -qam two"))
        .await;
    assert!(!outcome.is_ok(), "{outcome:?}");
    let notes = outcome.notes.join("\n");
    assert!(notes.contains("can only read it"), "{outcome:?}");
    assert_eq!(host(&scene.at(""), "git log --format=%s"), "one\n");
    assert_eq!(fs::read_to_string(scene.at("file")).unwrap(), "o\ntwo\n");
}

async fn sha256_is_read_and_committed_to(sandbox: &Sandbox) {
    let make = "git init -q -b main --object-format=sha256 main && cd main && echo o > file && git add . && git commit -qm one && \
        git worktree add -q ../ws -b topic";
    let scene = scene(sandbox, &trusted(), make, "ws");
    let log = scene.run("git log --format=%s").await;
    assert_eq!(data(&log)["stdout"], "one\n", "{log:?}");
    let line = named("echo two >> file && git commit -qam two");
    let outcome = scene.run(&line).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    let log = host(
        &scene.at(""),
        "git log --format=%s; git status -s; git fsck --strict",
    );
    assert_eq!(log, "two\none\n");
}
