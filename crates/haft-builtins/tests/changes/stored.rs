//! What commands put into git's objects, refs and indexes is judged like the files that git makes of it.

use haft::Outcome;
use haft::policy::Profile;
use haft_sandbox::Sandbox;

use crate::git::host;
use crate::scene::{Scene, Settings};

/// The user's repository: `main`, and `feature`, whose commit changes a file that a rule denies. An old commit has it otherwise, too.
const MAKE: &str = "git init -q -b main . && git config user.name A && git config user.email a@localhost && \
    mkdir ci db && echo first > ci/deploy.yml && git add . && git commit -q -m zero && echo old > ci/deploy.yml && echo one > f && echo 1 > db/1.sql && ln -s db migrations && \
    printf 'evil/\\nrun.sh\\ntree/\\n' > .gitignore && git add . && git commit -q -m one && \
    git switch -q -c feature && echo mine > ci/deploy.yml && git commit -q -am ci && git switch -q main && \
    echo two >> f && git commit -q -am two && git worktree add -q --detach tree && \
    git init -q -b main evil && echo x > evil/x && mkdir evil/ci && echo evil > evil/ci/deploy.yml && git -C evil add . && \
    git -C evil -c user.name=E -c user.email=e@localhost commit -q -m evil && git -C evil tag v1";

/// Stores a commit `$c` with the tree `$t`, in which the file of the object `$h` is in the place of a denied one.
const EVIL: &str = "h=$(echo evil | git hash-object -w --stdin); export GIT_INDEX_FILE=/tmp/index; git read-tree HEAD; \
    git update-index --add --cacheinfo 100644,$h,ci/deploy.yml; t=$(git write-tree); c=$(git commit-tree -p HEAD -m e $t); \
    unset GIT_INDEX_FILE; ";

/// Makes a tree `$t` with the denied file as it was in the oldest commit `$o`.
const OLD: &str = "o=$(git rev-list --max-parents=0 HEAD); export GIT_INDEX_FILE=/tmp/old; git read-tree HEAD; \
    git update-index --cacheinfo 100644,$(git rev-parse $o:ci/deploy.yml),ci/deploy.yml; t=$(git write-tree); unset GIT_INDEX_FILE; ";

/// Commands that are refused, which begin with [`OLD`].
const REFUSED_OLD: &[(&str, &str)] = &[
    (
        "old content, known from a log",
        "git update-ref refs/heads/main $(git commit-tree -p HEAD -m m $t)",
    ),
    (
        "old content by a merge",
        "git update-ref refs/heads/main $(git commit-tree -p HEAD -p $o -m m $t)",
    ),
    (
        "old content by a merge the other way round",
        "git branch new $(git commit-tree -p $o -p HEAD -m m $t)",
    ),
    (
        "old content by a merge with a new commit on an old one",
        "git branch new $(git commit-tree -p HEAD -p $(git commit-tree -p $o -m x $o^{tree}) -m m $t)",
    ),
    (
        "old content by a merge of three",
        "git branch new $(git commit-tree -p HEAD -p feature -p $o -m m $t)",
    ),
    (
        "removal by a merge",
        "export GIT_INDEX_FILE=/tmp/old; git rm -q --cached ci/deploy.yml; e=$(git write-tree); unset GIT_INDEX_FILE; n=$(git commit-tree -m n $(git mktree < /dev/null)); \
        git branch new $(git commit-tree -p $n -p HEAD -m m $e)",
    ),
];

/// Commands that are refused.
const REFUSED: &[(&str, &str)] = &[
    (
        "k4 commit",
        "git update-index --cacheinfo 100644,$h,ci/deploy.yml; git commit -qm sneaky",
    ),
    (
        "index",
        "git update-index --cacheinfo 100644,$h,ci/deploy.yml",
    ),
    (
        "index, not stored",
        "git update-index --cacheinfo 100644,1111111111111111111111111111111111111111,ci/deploy.yml",
    ),
    (
        "index, executable",
        "git update-index --chmod=+x ci/deploy.yml",
    ),
    (
        "index, further stage",
        "printf \"100644 $h 1\\tci/deploy.yml\\n\" | git update-index --index-info",
    ),
    ("index of a tree", "git read-tree $t"),
    ("removal", "git rm --cached -q ci/deploy.yml"),
    (
        "file and commit",
        "echo evil > ci/deploy.yml; git commit -qam evil",
    ),
    ("branch", "git branch new $c"),
    ("branch of known ones", "git update-ref refs/heads/main $c"),
    ("ref by hand", "echo $c > .git/refs/heads/new"),
    (
        "packed ref",
        "echo \"$c refs/heads/new\" >> .git/packed-refs",
    ),
    ("HEAD", "git update-ref --no-deref HEAD $c"),
    ("tag", "git tag -a -m t t $c"),
    (
        "stash",
        "git stash store $(git commit-tree -p HEAD -p $c -m e $t)",
    ),
    (
        "log",
        "printf \"$c $c A <a> 1 +0000\\tx\\n\" >> .git/logs/HEAD",
    ),
    (
        "message of a log",
        "printf \"%s %s A <a> 1 +0000\\tcheckout: moving from $c to main\\n\" $(git rev-parse HEAD HEAD) >> .git/logs/HEAD",
    ),
    ("MERGE_HEAD", "echo $c > .git/MERGE_HEAD"),
    ("ref of a tree", "git update-ref refs/x/y $t"),
    ("ref of worktrees", "git update-ref refs/worktree/x $c"),
    ("notes", "git update-ref refs/notes/x $c"),
    (
        "history",
        "b=$(git commit-tree -p $c -m back HEAD^{tree}); git branch new $b",
    ),
    (
        "without parents",
        "git branch new $(git commit-tree -m e $t)",
    ),
    (
        "merge of known ones",
        "git branch new $(git commit-tree -p HEAD -p feature -m e $t)",
    ),
    (
        "packed",
        "printf '%s\\n' $c $t $h | git pack-objects -q .git/objects/pack/pack; git prune-packed -q; git branch new $c",
    ),
    (
        "index of a linked worktree",
        "git -C tree update-index --cacheinfo 100644,$h,ci/deploy.yml",
    ),
    (
        "link to a denied file",
        "l=$(printf ci/deploy.yml | git hash-object -w --stdin); git update-index --add --cacheinfo 120000,$l,link",
    ),
    (
        "submodule",
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),ci/sub",
    ),
    (
        "folder in place of files",
        "git update-index --force-remove ci/deploy.yml; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),ci",
    ),
    (
        "further name",
        "git update-index --cacheinfo 100644,$h,db/1.sql",
    ),
    ("fetched into a branch", "git fetch -q ./evil main:new"),
    (
        "folder with permissions",
        "t=$(git cat-file tree $t | LC_ALL=C sed 's/40000 ci/40755 ci/' | git hash-object -t tree -w --stdin --literally); \
        git branch new $(git commit-tree -p HEAD -m m $t)",
    ),
    (
        "link with permissions",
        "l=$(printf ci/deploy.yml | git hash-object -w --stdin); t=$(printf \"120000 blob $l\\tlink\\n\" | git mktree); \
        t=$(git cat-file tree $t | LC_ALL=C sed 's/120000/120777/' | git hash-object -t tree -w --stdin --literally); \
        git branch new $(git commit-tree -m m $t)",
    ),
    (
        "patch",
        "git format-patch -q --stdout main..feature > /tmp/p; git am -q /tmp/p",
    ),
];

/// Commands that are asked about.
const ASKED: &[(&str, &str)] = &[
    (
        "protected name",
        "git update-index --add --cacheinfo 100644,$h,.mcp.json",
    ),
    (
        "replaced object",
        "git replace $(git rev-parse HEAD:ci/deploy.yml) $h",
    ),
    ("fetched", "git fetch -q ./evil main:refs/remotes/o/main"),
    ("fetched as a tag", "git fetch -q ./evil tag v1"),
    (
        "ref to nothing",
        "echo 1111111111111111111111111111111111111111 > .git/refs/heads/x",
    ),
    (
        "parent that is nowhere",
        "c=$(git cat-file commit HEAD | sed s/^parent.*/parent\\ 1111111111111111111111111111111111111111/ | \
        git hash-object -t commit -w --stdin); git branch new $c",
    ),
    (
        "tree of a commit twice",
        "c=$( (git cat-file commit $c | sed '/^$/,$d'; git rev-parse HEAD^{tree} | sed 's/^/tree /'; echo; echo m) | \
        git hash-object -t commit -w --stdin --literally); git branch new $c",
    ),
    (
        "parent of a commit at its end",
        "c=$( (git cat-file commit HEAD | sed '/^$/,$d'; echo parent $c; echo; echo m) | \
        git hash-object -t commit -w --stdin --literally); git branch new $c",
    ),
    (
        "target of a tag twice",
        "v=$( (echo object $c; echo type commit; echo tag v; echo 'tagger A <a> 1 +0000'; git rev-parse HEAD | sed 's/^/object /'; echo; echo m) | \
        git hash-object -t tag -w --stdin --literally); git update-ref refs/tags/v $v",
    ),
    (
        "tree out of order",
        "t=$( (git cat-file tree $(printf \"100644 blob $h\\tz\\n\" | git mktree); git cat-file tree $t) | \
        git hash-object -t tree -w --stdin --literally); git branch new $(git commit-tree -p HEAD -m m $t)",
    ),
    (
        "link out of the workspace with permissions",
        "l=$(printf /etc/hostname | git hash-object -w --stdin); t=$(printf \"120000 blob $l\\tl\\n\" | git mktree); \
        t=$(git cat-file tree $t | LC_ALL=C sed 's/120000/120777/' | git hash-object -t tree -w --stdin --literally); \
        git branch new $(git commit-tree -m m $t)",
    ),
    (
        "name of another length in an index",
        "printf '\\005' | dd status=none conv=notrunc bs=1 of=.git/index \
        seek=$(($(grep -abo ci/deploy.yml .git/index | head -1 | cut -d: -f1) - 1))",
    ),
    (
        "symbolic ref in place of an object",
        "git update-ref refs/tags/b $h; mkdir -p .git/refs/replace; \
        echo ref: refs/tags/b > .git/refs/replace/$(git rev-parse HEAD:ci/deploy.yml)",
    ),
    (
        "branch that leads to a file",
        "mkdir -p .git/rr-cache; echo $c > .git/rr-cache/e; echo ref: rr-cache/e > .git/refs/heads/x",
    ),
    (
        "HEAD over a branch that leads to a file",
        "echo $c > .git/description; echo ref: description > .git/refs/heads/x; echo ref: refs/heads/x > .git/HEAD",
    ),
    (
        "stash that leads to a file",
        "echo $c > .git/gc.log; echo ref: gc.log > .git/refs/stash",
    ),
    (
        "place in a log that is a file",
        "mkdir -p .git/rr-cache; echo $c > .git/rr-cache/e; \
        printf \"%s %s A <a> 1 +0000\\tcheckout: moving from rr-cache/e to main\\n\" $(git rev-parse HEAD HEAD) >> .git/logs/HEAD",
    ),
    (
        "short name in MERGE_HEAD",
        "echo $c | cut -c1-20 > .git/MERGE_HEAD",
    ),
    (
        "packed ref twice",
        "git pack-refs --all; git rev-parse HEAD~1 | sed 's,$, refs/heads/main,' >> .git/packed-refs",
    ),
    ("ref that is a link", "ln -s ../../../f .git/refs/heads/x"),
    (
        "name of a repository",
        "git branch new $(git commit-tree -m e $(printf \"100644 blob $h\\t.GIT\\n\" | git mktree))",
    ),
    (
        "object under another's name",
        "f=.git/objects/$(git rev-parse HEAD:ci/deploy.yml | sed s,..,\\&/,); rm -f $f; \
        cp .git/objects/$(echo $h | sed s,..,\\&/,) $f",
    ),
    (
        "pack under others' names",
        "printf '%s\\n' $h $(git rev-parse HEAD:ci/deploy.yml) | git pack-objects -q .git/objects/pack/pack; \
        i=$(ls .git/objects/pack/*.idx); cp $i /tmp/idx; chmod u+w $i; dd status=none conv=notrunc bs=4 count=1 skip=270 seek=271 if=/tmp/idx of=$i; \
        dd status=none conv=notrunc bs=4 count=1 skip=271 seek=270 if=/tmp/idx of=$i",
    ),
    (
        "list of packs",
        "git repack -qa; git multi-pack-index write",
    ),
    (
        "graph with another tree",
        "git commit-graph write; chmod u+w .git/objects/info/commit-graph; printf x | \
        dd status=none conv=notrunc bs=1 seek=1250 of=.git/objects/info/commit-graph",
    ),
    (
        "file of lfs",
        "mkdir -p .git/lfs/objects/aa/aa; echo evil > .git/lfs/objects/aa/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ),
    (
        "resolution of conflicts",
        "mkdir -p .git/rr-cache/x; echo evil > .git/rr-cache/x/postimage",
    ),
    (
        "commit of a submodule that nothing leads to",
        "d=$(git -C evil commit-tree -m m $(git -C evil rev-parse HEAD^{tree})); git update-index --add --cacheinfo 160000,$d,evil",
    ),
    ("shared index", "git update-index --split-index"),
    (
        "trees that an index keeps",
        "dd status=none conv=notrunc bs=1 seek=$(($(grep -abo TREE .git/index | cut -d: -f1) + 15)) of=.git/index if=/bin/sh count=8; true",
    ),
];

/// Commands that nobody is asked about, in order.
const UNASKED: &[(&str, &str)] = &[
    ("commit", "echo three > g; git add g; git commit -qm three"),
    (
        "many",
        "mkdir many; for n in $(seq 100); do echo $n > many/$n; done; git add many; git commit -qm many",
    ),
    ("no change", "touch f; git status -s"),
    (
        "branch",
        "git branch a feature; git tag b feature; git update-ref refs/remotes/o/c feature",
    ),
    ("branch of an older commit", "git branch old HEAD~2"),
    (
        "commit on an older commit",
        "git update-ref refs/heads/old $(git commit-tree -p HEAD~3 -m again HEAD~2^{tree})",
    ),
    (
        "merge of known ones",
        "git branch merged $(git commit-tree -p HEAD -p feature -m merge $(git merge-tree --write-tree HEAD feature))",
    ),
    (
        "merge the other way round",
        "git branch back $(git commit-tree -p feature -p HEAD -m merge $(git merge-tree --write-tree HEAD feature))",
    ),
    (
        "merge of unrelated ones",
        "n=$(git commit-tree -m n $(printf \"100644 blob $(git rev-parse HEAD:f)\\tn\\n\" | git mktree)); git branch apart $n; \
        git merge -q --allow-unrelated-histories -m m apart",
    ),
    (
        "merge",
        "git switch -q -c side HEAD~3; echo side > side; git add side; git commit -qm side; git switch -q main; git merge -q -m m side",
    ),
    (
        "branches changed",
        "git switch -q -c description; git switch -q -; git switch -q -; git switch -q --detach; git switch -q main",
    ),
    ("notes", "git notes add -m hello"),
    ("amend", "git commit -q --amend -m amended"),
    (
        "reset",
        "git reset -q --soft HEAD~1; git reset -q --soft HEAD@{1}",
    ),
    (
        "commit of a submodule",
        "git -C evil -c user.name=E -c user.email=e@localhost commit -q --allow-empty -m m; git update-index --add --cacheinfo 160000,$(git -C evil rev-parse HEAD),evil; \
        git update-index --force-remove evil",
    ),
    ("pack refs", "git pack-refs --all"),
    ("graph", "git commit-graph write"),
    ("gc", "git gc -q"),
    (
        "nothing reachable",
        "echo evil | git hash-object -w --stdin",
    ),
];

/// The same on the branch whose commit changes the denied file.
const ON_FEATURE: &[(&str, &str)] = &[
    ("edited by the user", "git add ci"),
    ("committed for the user", "git commit -qm mine"),
    ("amend", "git commit -q --amend -m amended"),
    ("rebase", "git rebase -q main"),
];

pub(crate) async fn all(sandbox: &Sandbox) {
    let settings = Settings {
        profile: Profile::Trusted,
        deny: &["Edit(/ci/**)", "Edit(/migrations/**)"],
        says_no: true,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    host(&scene.at(""), MAKE);
    let state = "git for-each-ref; git ls-files -s; git rev-parse HEAD; git fsck --strict --no-dangling 2>&1; git show HEAD:ci/deploy.yml";
    let before = host(&scene.at(""), state);
    let mut failed = Vec::new();
    let of_evil = REFUSED.iter().map(|row| (EVIL, row));
    let of_old = REFUSED_OLD.iter().map(|row| (OLD, row));
    for (before_line, (name, line)) in of_evil.chain(of_old) {
        let outcome = run(&scene, &format!("{before_line}{line}")).await;
        let why = outcome.error.as_ref().map_or("", |error| &error.message);
        let is_stated = [
            "changes ci",
            "removes ci",
            "changes migrations",
            "changes link",
        ]
        .iter()
        .any(|what| why.contains(&format!("what git stores by it {what}")));
        let asked = scene.questions().len();
        if !is_stated || !why.contains("deny rule") || asked > 0 {
            failed.push(format!(
                "refused {name}: asked {asked}: {why:?} {}",
                to_json(&outcome)
            ));
        }
        repair(&scene, state, &before, name, &mut failed);
    }
    for (name, line) in ASKED {
        let outcome = run(&scene, &format!("{EVIL}{line}")).await;
        let asked = scene.questions();
        if asked.len() != 1 {
            failed.push(format!(
                "asked {name}: {} {}",
                asked.len(),
                to_json(&outcome)
            ));
        }
        repair(&scene, state, &before, name, &mut failed);
    }
    for (name, line) in UNASKED {
        unasked(&scene, name, line, &mut failed).await;
    }
    host(
        &scene.at(""),
        "git switch -q feature && echo edited > ci/deploy.yml",
    );
    for (name, line) in ON_FEATURE {
        unasked(&scene, name, line, &mut failed).await;
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    approved(sandbox).await;
    replaced_files_are_deletions(sandbox).await;
    eprintln!(
        "changes: {} commands that store files in git: ok",
        REFUSED.len() + REFUSED_OLD.len() + ASKED.len() + UNASKED.len()
    );
}

/// Runs lines that would be asked about for how they are written.
async fn run(scene: &Scene, lines: &str) -> Outcome {
    scene.put("run.sh", lines);
    scene.run("sh run.sh").await
}

fn to_json(outcome: &Outcome) -> String {
    serde_json::to_string(outcome).unwrap()
}

/// Notes if a repository is not as it was.
fn repair(scene: &Scene, state: &str, before: &str, name: &str, failed: &mut Vec<String>) {
    let after = host(&scene.at(""), state);
    if after != before {
        failed.push(format!("{name}: the repository is now\n{after}"));
    }
}

async fn unasked(scene: &Scene, name: &str, line: &str, failed: &mut Vec<String>) {
    let outcome = run(scene, line).await;
    let asked = scene.questions();
    if !outcome.is_ok() || !asked.is_empty() {
        failed.push(format!("unasked {name}: {} {asked:?}", to_json(&outcome)));
    }
    host(&scene.at(""), "git fsck --strict");
}

/// What the user approves is applied, and the request says what git stores.
async fn approved(sandbox: &Sandbox) {
    let settings = Settings {
        profile: Profile::Trusted,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    host(&scene.at(""), MAKE);
    let line = format!(
        "{EVIL} git update-index --add --cacheinfo 100644,$h,.mcp.json; git commit -qm tools"
    );
    let outcome = run(&scene, &line).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    let asked = scene.questions();
    let shown = format!("{asked:?}");
    assert!(
        asked.len() == 1 && shown.contains(".mcp.json") && shown.contains("tools"),
        "{shown}"
    );
    assert_eq!(host(&scene.at(""), "git show HEAD:.mcp.json"), "evil\n");
    let scene = Scene::with(sandbox, &settings);
    host(
        &scene.at(""),
        "git init -q --object-format=sha256 . && git config user.name A && git config user.email a@localhost",
    );
    let outcome = scene.run("echo a > a; git add a; git commit -qm a").await;
    assert!(outcome.is_ok(), "{outcome:?}");
    let shown = format!("{:?}", scene.questions());
    assert!(shown.contains("SHA-256"), "{shown}");
    let status = scene.run("touch a; git status -s").await;
    assert!(status.is_ok() && scene.questions().is_empty(), "{status:?}");
}

/// Commands that put something else in the place of three files, and how many deletions these are.
const REPLACED: &[(&str, &str, u64)] = &[
    (
        "replaced by folders and links",
        "rm f/1 f/2; mkdir f/1; ln -sf x f/2; ln -sf x f/3",
        3,
    ),
    (
        "written anew",
        "echo x > f/1; rm f/2; echo y > f/2; mv f/3 f/4; mv f/4 f/3",
        0,
    ),
];

async fn replaced_files_are_deletions(sandbox: &Sandbox) {
    for (name, line, count) in REPLACED {
        for room in [*count, count.saturating_sub(1)] {
            let settings = Settings {
                profile: Profile::Trusted,
                deletions: Some(room),
                ..Settings::default()
            };
            let scene = Scene::with(sandbox, &settings);
            for file in ["f/1", "f/2", "f/3"] {
                scene.put(file, file);
            }
            let outcome = scene.run(line).await;
            assert!(outcome.is_ok(), "{name}: {outcome:?}");
            let asked = scene.questions().len();
            assert_eq!(asked, usize::from(room < *count), "{name}, room for {room}");
        }
    }
}
