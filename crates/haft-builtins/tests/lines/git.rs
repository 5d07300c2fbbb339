//! Read-only git commands run no program that the workspace names (P4).

use std::fs;

use haft::policy::Profile;
use haft_sandbox::Sandbox;
use serde_json::json;

use crate::scene::Scene;

/// Makes a repository with one commit, one changed file and one untracked file.
const REPOSITORY: &str = "git init -q . && git config user.email a@b.c && git config user.name a \
    && echo one > f && git add f && git commit -q -m one && echo two >> f && echo new > g";

/// What a program of the workspace does when it runs: the git that waits for it is killed.
const EVIL: &str = "echo EVIL RAN >&2; kill -9 $PPID; exit 1";

/// How the repository is prepared, and whether its read-only commands run under `read-only`.
const SETTINGS: &[(&str, bool)] = &[
    ("true", true),
    ("git config core.fsmonitor ./evil", true),
    ("git config core.fsmonitor true", true),
    (
        "git config core.hooksPath hooks; mkdir hooks; cp evil hooks/post-index-change",
        true,
    ),
    ("cp evil .git/hooks/post-index-change", true),
    (
        "git config core.pager ./evil; git config pager.log ./evil; git config --remove-section pager",
        true,
    ),
    (
        "git config log.showSignature true; git config gpg.program ./evil",
        true,
    ),
    (
        "git config log.showSignature true; git config gpg.openpgp.program ./evil",
        true,
    ),
    (
        "git config format.pretty '%h %G?'; git config gpg.program ./evil",
        true,
    ),
    (
        "git config remote.x.url \"ext::$PWD/evil\"; git config remote.x.promisor true; git config extensions.partialClone x; git config core.repositoryFormatVersion 1",
        true,
    ),
    ("git config diff.submodule diff", true),
    ("git update-index --index-version 4", true),
    ("git add -N g", true),
    ("git config diff.external ./evil", false),
    (
        "git config diff.x.command ./evil; echo 'f diff=x' > .gitattributes",
        false,
    ),
    (
        "git config diff.x.textconv ./evil; echo 'f diff=x' > .gitattributes",
        false,
    ),
    (
        "git config filter.x.clean ./evil; echo 'f filter=x' > .gitattributes",
        false,
    ),
    (
        "git config filter.x.process ./evil; echo 'f filter=x' > .gitattributes",
        false,
    ),
    (
        "git config filter.x.clean ./evil; echo 'f filter=x' > .git/info/attributes",
        false,
    ),
    (
        "printf '[diff]\\n\\texternal = ./evil\\n' > more; git config include.path ../more",
        false,
    ),
    (
        "printf '[diff]\\n\\texternal = ./evil\\n' > more; git config includeIf.gitdir:/.path ../more",
        false,
    ),
    (
        "git config extensions.worktreeConfig true; git config --worktree diff.external ./evil",
        false,
    ),
    ("mv .git real; printf 'gitdir: real\\n' > .git", false),
    ("mv .git real; ln -s real .git", false),
    (
        "mkdir other; cp -r .git/* other; git config -f other/config diff.external ./evil; echo ../other > .git/commondir",
        false,
    ),
    ("rm .git/config; mkfifo .git/config", false),
];

/// Makes a repository within the repository, whose own settings name a program.
const NESTED: &str = "mkdir sub; cp -r .git sub; cp evil sub; echo one > sub/f; echo '* filter=x' > sub/.gitattributes; \
    git -C sub config filter.x.clean ./evil; git -c advice.addEmbeddedRepo=false add sub";

const READING: &[&str] = &[
    "git status",
    "git log -1",
    "git log -p -1",
    "git log --format=%h -1 && git diff --stat",
    "git diff",
    "git show",
    "timeout 20 git status --short | head -3",
];

/// Signs the last commit, so that there is something to verify.
const SIGNED: &str = "t=$(git rev-parse 'HEAD^{tree}'); \
    c=$(printf 'tree %s\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----\\n\\nsigned\\n' \"$t\" \
    | git hash-object -t commit -w --stdin --literally); git update-ref HEAD \"$c\"";

pub(crate) async fn reading_commands_run_nothing_that_settings_name(sandbox: &Sandbox) {
    for (settings, runs) in SETTINGS {
        let scene = Scene::new(sandbox, Profile::ReadOnly);
        scene.put_program("evil", EVIL);
        scene.prepare(REPOSITORY);
        scene.prepare(SIGNED);
        scene.prepare(settings);
        for line in READING {
            let outcome = scene.run(json!({"command": line})).await;
            let shown = serde_json::to_string(&outcome).unwrap();
            assert!(!shown.contains("EVIL RAN"), "{settings}: {line}: {shown}");
            if *runs {
                assert!(outcome.is_ok(), "{settings}: {line}: {shown}");
            } else {
                assert_eq!(
                    outcome.status.as_str(),
                    "denied",
                    "{settings}: {line}: {shown}"
                );
            }
        }
    }
}

/// AP6: commands that look at files would start git within it, where it obeys other settings.
pub(crate) async fn a_repository_within_the_repository_has_settings_of_its_own(sandbox: &Sandbox) {
    for index in [
        "true",
        "git update-index --index-version 4",
        "git add -N g",
        "git update-index --split-index",
    ] {
        let scene = Scene::new(sandbox, Profile::ReadOnly);
        scene.put_program("evil", EVIL);
        scene.prepare(REPOSITORY);
        scene.prepare(NESTED);
        scene.prepare(index);
        for line in READING {
            let outcome = scene.run(json!({"command": line})).await;
            let shown = serde_json::to_string(&outcome).unwrap();
            assert!(!shown.contains("EVIL RAN"), "{index}: {line}: {shown}");
            let looks = line.contains("status") || line.contains("diff");
            assert_eq!(outcome.is_ok(), !looks, "{index}: {line}: {shown}");
        }
    }
}

/// P4: `cwd` names another folder, whose settings are files of an unknown author.
pub(crate) async fn another_folder_is_another_repository(sandbox: &Sandbox) {
    let calls = [
        json!({"command": "git status", "cwd": "bare"}),
        json!({"command": "git diff", "cwd": "bare"}),
        json!({"command": "timeout 5 git status", "cwd": "bare"}),
        json!({"argv": ["git", "status"], "cwd": "bare"}),
        json!({"command": "ls; git log -1", "cwd": "sub/../bare"}),
        json!({"command": "cd bare && git status"}),
        json!({"command": "git -C bare status"}),
        json!({"command": "git --git-dir=bare status"}),
    ];
    let bare = "git init -q --bare bare && git -C bare config core.bare false \
        && git -C bare config core.worktree .. && git -C bare config core.fsmonitor ../evil && mkdir sub";
    for call in calls {
        let scene = Scene::new(sandbox, Profile::ReadOnly);
        scene.put_program("evil", EVIL);
        scene.prepare(REPOSITORY);
        scene.prepare(bare);
        let outcome = scene.run(call.clone()).await;
        assert_eq!(outcome.status.as_str(), "denied", "{call}: {outcome:?}");
    }
    // If the profile allows the call, git refuses a bare repository that the call did not name.
    let scene = Scene::new(sandbox, Profile::Trusted);
    scene.put_program("evil", EVIL);
    scene.prepare(bare);
    for call in [
        json!({"command": "git status", "cwd": "bare"}),
        json!({"command": "cd bare; git status"}),
    ] {
        let outcome = scene.run(call.clone()).await;
        let shown = serde_json::to_string(&outcome).unwrap();
        assert!(!shown.contains("EVIL RAN"), "{call}: {shown}");
        assert!(shown.contains("safe.bareRepository"), "{call}: {shown}");
    }
}

/// A line that is judged read-only cannot change the workspace, whatever it actually does.
pub(crate) async fn what_only_reads_changes_nothing(sandbox: &Sandbox) {
    let scene = Scene::new(sandbox, Profile::ReadOnly);
    scene.prepare(REPOSITORY);
    let index = fs::read(scene.at(".git/index")).unwrap();
    scene.prepare("touch f");
    for line in [
        "git status",
        "ls -la && cat f",
        "find . -name f; grep -r one .",
    ] {
        let outcome = scene.run(json!({"command": line})).await;
        assert!(outcome.is_ok(), "{line}: {outcome:?}");
    }
    assert_eq!(fs::read(scene.at(".git/index")).unwrap(), index);
    assert!(!scene.at(".vscode").exists());
    // The same jail lets a line write if it was judged to write.
    let scene = Scene::new(sandbox, Profile::Trusted);
    let outcome = scene.run(json!({"command": "ls; touch made"})).await;
    assert!(outcome.is_ok() && scene.at("made").exists(), "{outcome:?}");
}
