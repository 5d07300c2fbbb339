//! What a request says about commits, branches, tags, stashes and resets that real git made on a copy of the workspace.

mod rows;

use haft::approval::ApprovalRequest;
use haft::approval::meaning::{Meaning, MeaningKind};
use haft::approval::preview::FileChange;
use haft::policy::Profile;
use haft_sandbox::Sandbox;

use self::rows::{REPOSITORY, ROWS, Row};
use crate::git::host;
use crate::scene::{Scene, Settings};

pub(crate) async fn all(sandbox: &Sandbox) {
    for row in ROWS {
        check(sandbox, row).await;
    }
    files_are_covered(sandbox).await;
    what_only_a_log_names_is_said(sandbox).await;
    uncommitted_changes_are_named(sandbox).await;
    stashes_come_back_or_are_dropped(sandbox).await;
    packed_repositories_are_read(sandbox).await;
    what_is_not_understood_stays_visible(sandbox).await;
    what_is_not_applied_is_said_beforehand(sandbox).await;
    large_and_odd_repositories_are_read(sandbox).await;
    states_and_places_are_named(sandbox).await;
    what_is_stored_under_a_wrong_name_is_not_believed(sandbox).await;
    single_files_say_what_they_mean(sandbox).await;
    a_commit_says_which_packages_change(sandbox).await;
    eprintln!("changes: {} meanings of git commands: ok", ROWS.len());
}

fn scene(sandbox: &Sandbox, make: &str) -> Scene {
    let scene = Scene::with(
        sandbox,
        &Settings {
            profile: Profile::Workspace,
            ..Settings::default()
        },
    );
    host(&scene.at(""), make);
    scene
}

/// Runs a line and returns what its request says.
async fn meanings(scene: &Scene, line: &str) -> Vec<Meaning> {
    let outcome = scene.run(line).await;
    assert!(outcome.is_ok(), "{line}: {outcome:?}");
    let asked = scene.questions();
    let request = asked
        .iter()
        .find(|request| request.tool.as_str() == "apply_changes");
    let request = request.unwrap_or_else(|| panic!("{line}: {asked:?}"));
    request.snapshot.meanings.clone()
}

fn texts(meaning: &Meaning) -> String {
    let sides = |file: &FileChange| format!("{:?}{:?}", file.before, file.after);
    let own: Vec<String> = meaning.files.iter().map(sides).collect();
    let parts: String = meaning.parts.iter().map(texts).collect();
    own.concat() + &parts
}

/// Returns what a meaning says in words.
fn sentences(meaning: &Meaning) -> String {
    let own = std::iter::once(&meaning.title).chain(&meaning.warnings);
    let own = own.chain(&meaning.lines);
    let folded = meaning.files.iter().filter_map(|file| file.folded.as_ref());
    let own: Vec<&str> = own.chain(folded).map(String::as_str).collect();
    let parts: String = meaning.parts.iter().map(sentences).collect();
    own.join("\n") + "\n" + &parts
}

async fn check(sandbox: &Sandbox, row: &Row) {
    let scene = scene(sandbox, REPOSITORY);
    let found = meanings(&scene, row.line).await;
    let shown = format!("{}: {found:#?}", row.line);
    let first = found.first().unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(first.kind, row.kind, "{shown}");
    assert!(first.title.starts_with(row.title), "{shown}");
    let warnings = first.warnings.join("\n");
    assert_eq!(warnings.is_empty(), row.warning.is_empty(), "{shown}");
    assert!(warnings.contains(row.warning), "{shown}");
    assert!(texts(first).contains(row.shows), "{shown}");
    let all: String = found.iter().map(sentences).collect();
    assert!(all.contains(row.says), "{shown}");
    let last = found.last().unwrap();
    assert_eq!(last.kind, MeaningKind::GitInternals, "{shown}");
    assert!(
        last.covers.iter().all(|path| path.starts_with(".git")),
        "{shown}"
    );
    assert!(last.warnings.is_empty(), "{shown}");
}

async fn files_are_covered(sandbox: &Sandbox) {
    let scene = scene(sandbox, REPOSITORY);
    let line =
        "echo x >> file && echo y > new && git add file && git commit -qm x && echo z >> other";
    let found = meanings(&scene, line).await;
    // A file of the workspace stays visible, whatever a commit shows of it.
    assert_eq!(found[0].covers.len(), 0, "{found:#?}");
    let line = "git config alias.x '!evil' && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit && git tag t";
    let found = meanings(&scene, line).await;
    let covers: Vec<&String> = found.iter().flat_map(|meaning| &meaning.covers).collect();
    assert!(
        !covers
            .iter()
            .any(|path| path.contains("hooks") || path.contains("config")),
        "{covers:?}"
    );
    assert!(
        covers.iter().any(|path| *path == ".git/refs/tags/t"),
        "{covers:?}"
    );
}

/// Lines after which nothing names a commit any more that only logs, or nothing, named before.
async fn what_only_a_log_names_is_said(sandbox: &Sandbox) {
    let make = format!(
        "{REPOSITORY} && echo l > lost && git add lost && git commit -qm 'precious work' && git reset -q --hard HEAD~1"
    );
    let on_none = "1 commit is then on no branch, tag or log, and git will delete it: ";
    for (made, line, says) in [
        ("true", "git reflog expire --expire=now --all", on_none),
        (
            "true",
            ": > .git/logs/HEAD; rm .git/logs/refs/heads/main",
            on_none,
        ),
        (
            "true",
            "git reflog expire --expire=now --all; git gc -q --prune=now",
            on_none,
        ),
        (
            "git reflog expire --expire=now --all",
            "git prune --expire=now",
            "; commits among them: ",
        ),
    ] {
        let scene = scene(sandbox, &format!("{make} && {made}"));
        let found = meanings(&scene, line).await;
        let all: String = found.iter().map(sentences).collect();
        assert!(all.contains(says), "{line}: {found:#?}");
        assert!(all.contains("'precious work'"), "{line}: {found:#?}");
    }
}

async fn uncommitted_changes_are_named(sandbox: &Sandbox) {
    for (line, kind) in [
        ("git reset -q --hard", MeaningKind::Reset),
        (
            "git checkout -q -- file && git update-index --refresh",
            MeaningKind::Reset,
        ),
        ("git reset -q --hard HEAD~1", MeaningKind::Reset),
    ] {
        let scene = scene(sandbox, REPOSITORY);
        scene.put("file", "1\n2\n3\n4\nhours of work\n");
        let found = meanings(&scene, line).await;
        let reset = found.iter().find(|meaning| meaning.kind == kind);
        let warnings = reset
            .map(|meaning| meaning.warnings.join("\n"))
            .unwrap_or_default();
        let says = "uncommitted changes of 1 file are thrown away: file";
        assert!(warnings.contains(says), "{line}: {found:#?}");
    }
}

async fn stashes_come_back_or_are_dropped(sandbox: &Sandbox) {
    let make = format!("{REPOSITORY} && echo 6 >> file && git stash -q");
    for (line, title, warnings) in [
        ("git stash pop -q", "take back the stash 'WIP on main:", 0),
        ("git stash drop -q", "drop the stash 'WIP on main:", 1),
    ] {
        let scene = scene(sandbox, &make);
        let found = meanings(&scene, line).await;
        let shown = format!("{line}: {found:#?}");
        assert!(found[0].title.starts_with(title), "{shown}");
        assert_eq!(found[0].warnings.len(), warnings, "{shown}");
    }
}

async fn packed_repositories_are_read(sandbox: &Sandbox) {
    let many = "for i in 1 2 3 4 5 6 7 8 9; do seq 1 3000 > long; echo $i >> long; git add long; git commit -qm $i; done; git gc -q";
    for (make, line, title) in [
        (
            many,
            "echo x >> long && git commit -qam deep",
            "commit 'deep' on main: 1 file, +1 −0",
        ),
        (
            many,
            "echo x >> long && git commit -qam deep && git gc -q --prune=now",
            "commit 'deep' on main: 1 file, +1 −0",
        ),
        (
            "git clone -q --depth 1 file://$PWD shallow && rm -rf .git && mv shallow/.git . && rm -r shallow && git config user.name A && git config user.email a@b",
            "echo x >> file && git commit -qam shallow",
            "commit 'shallow' on main: 1 file, +1 −0",
        ),
        (
            "git config uploadpack.allowFilter true && git clone -q --filter=blob:none file://$PWD part && rm -rf .git && mv part/.git . && \
                rm -r part && git config user.name A && git config user.email a@b",
            "echo x >> file && git commit -qam partial",
            "commit 'partial' on main: 1 file, +1 −0",
        ),
    ] {
        let scene = scene(sandbox, &format!("{REPOSITORY} && {make}"));
        let found = meanings(&scene, line).await;
        assert_eq!(found[0].title, title, "{line}: {found:#?}");
        assert!(found[0].warnings.is_empty(), "{line}: {found:#?}");
    }
}

async fn what_is_not_understood_stays_visible(sandbox: &Sandbox) {
    for (make, line, says) in [
        (
            "git init -q -b main --object-format=sha256 . && git config user.name A && git config user.email a@b && git commit -q --allow-empty -m one",
            "git tag t",
            "SHA-256",
        ),
        (
            REPOSITORY,
            "ln -s heads/main .git/refs/odd",
            "is a link or no file",
        ),
        (REPOSITORY, "echo junk > .git/refs/heads/odd", "is damaged"),
        (REPOSITORY, "echo junk > .git/index", "index is damaged"),
    ] {
        let scene = scene(sandbox, make);
        let found = meanings(&scene, line).await;
        let shown = format!("{line}: {found:#?}");
        assert!(
            found.iter().all(|meaning| meaning.covers.is_empty()),
            "{shown}"
        );
        let warnings: String = found
            .iter()
            .flat_map(|meaning| meaning.warnings.clone())
            .collect();
        assert!(warnings.contains(says), "{shown}");
    }
}

async fn what_is_not_applied_is_said_beforehand(sandbox: &Sandbox) {
    for make in [
        format!("{REPOSITORY} && git update-index --split-index && echo K=1 > .env"),
        format!(
            "{REPOSITORY} && echo K=1 > .env && cp .git/index .git/other && ln -sf other .git/index"
        ),
    ] {
        let settings = Settings {
            ask: &["Edit(/asked/**)"],
            deny: &["Read(.env)"],
            ..Settings::default()
        };
        let scene = Scene::with(sandbox, &settings);
        host(&scene.at(""), &make);
        let line = "mkdir asked && echo 2 > asked/x && echo x > .envrc && echo 2 >> file && git add file && git commit -qm two && \
            { test ! -L .git/index || ln -sf ../.git/other .git/index; }";
        let outcome = scene.run(line).await;
        let asked = scene.questions();
        let is_apply = |one: &&ApprovalRequest| one.tool.as_str() == "apply_changes";
        let request = asked.iter().find(is_apply);
        let request = request.unwrap_or_else(|| panic!("{make}: {outcome:?} {asked:?}"));
        let found = &request.snapshot.meanings;
        let shown = format!("{make}: {found:#?}");
        let first = &found[0];
        assert!(
            first.title.starts_with("not applied, even if approved: "),
            "{shown}"
        );
        let all: String = found.iter().map(sentences).collect();
        assert!(
            all.contains("it reads no index that is a link, split, damaged or over"),
            "{shown}"
        );
        assert!(all.contains("\n.git/index\n"), "{shown}");
    }
}

async fn large_and_odd_repositories_are_read(sandbox: &Sandbox) {
    let huge = "git update-ref refs/heads/main $(git commit-tree -p HEAD -m huge $(b=$(echo x | git hash-object -w --stdin) && \
        seq 50000 | sed \"s/.*/100644 blob $b\\tf&/\" | git mktree))";
    let scene = scene(sandbox, REPOSITORY);
    let found = meanings(&scene, huge).await;
    let commit = found.iter().find(|one| one.kind == MeaningKind::Commit);
    let commit = commit.unwrap_or_else(|| panic!("{:?}", found.len()));
    let title = "commit 'huge' on main: 50002 files, +";
    assert!(commit.title.starts_with(title), "{}", commit.title);
    assert!(commit.files.len() <= 300, "{}", commit.files.len());
    let not_shown = |line: &String| line.starts_with("files that are not shown: 49");
    assert!(commit.lines.iter().any(not_shown), "{:?}", commit.lines);

    let lib = "git init -q lib && git -C lib -c user.name=A -c user.email=a@b commit -q --allow-empty -m l";
    let link = "git -c protocol.file.allow=always submodule --quiet add ./lib sub";
    let scene = Scene::with(sandbox, &Settings::default());
    host(
        &scene.at(""),
        &format!("{REPOSITORY} && {lib} && {link} && git commit -qm sub"),
    );
    let line = "git -C sub -c user.name=A -c user.email=a@b commit -q --allow-empty -m next && git commit -qm up sub";
    let found = meanings(&scene, line).await;
    let lines: Vec<&String> = found.iter().flat_map(|one| &one.lines).collect();
    let is_link = |line: &&&String| line.starts_with("submodule sub: ");
    assert!(lines.iter().any(|line| is_link(&line)), "{found:#?}");

    let scene = Scene::with(sandbox, &Settings::default());
    host(
        &scene.at(""),
        &format!("{REPOSITORY} && git clone -q --bare . bare.git"),
    );
    let found = meanings(&scene, "git --git-dir=bare.git tag t v1").await;
    assert!(found[0].title.starts_with("tag t on "), "{found:#?}");
}

async fn states_and_places_are_named(sandbox: &Sandbox) {
    let two = "git switch -qc x && echo x >> file && git commit -qam x && git switch -q main && echo y >> file && git commit -qam y";
    let lib = "git init -q -b main lib && git -C lib config user.name A && git -C lib config user.email a@b";
    for (make, line, says) in [
        (
            two,
            "git merge -q x || true",
            "a merge is left unfinished, with conflicts in 1 file: file",
        ),
        (
            two,
            "git cherry-pick x || true",
            "a cherry-pick is left unfinished, with conflicts in 1 file: file",
        ),
        (
            two,
            "git rebase -q x || true",
            "a rebase is left unfinished, with conflicts in 1 file: file",
        ),
        (
            lib,
            "git -C lib commit -q --allow-empty -m l",
            "commit 'l' on main (its first): no files (in lib)",
        ),
        (
            "true",
            "git checkout -q --orphan fresh",
            "switch from main to fresh, which has no commit yet",
        ),
        (
            "true",
            "mkdir -p d/e d-x && echo 1 | tee d/e/f d-x/f d.x > d/z && git add . && git commit -qm nested",
            "commit 'nested' on main: 4 files",
        ),
        (
            "git gc -q && for i in 1 2 3; do echo $i > f; git add f; git commit -qm $i; done",
            "git gc -q --prune=now",
            "moved into a pack",
        ),
    ] {
        let scene = scene(sandbox, &format!("{REPOSITORY} && {make}"));
        let found = meanings(&scene, line).await;
        let all: String = found.iter().map(sentences).collect();
        assert!(all.contains(says), "{line}: {found:#?}");
        let warnings: usize = found.iter().map(|one| one.warnings.len()).sum();
        assert_eq!(warnings, 0, "{line}: {found:#?}");
    }
}

async fn what_is_stored_under_a_wrong_name_is_not_believed(sandbox: &Sandbox) {
    let at = "at() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }; evil=$(echo evil | git hash-object -w --stdin)";
    for (line, says) in [
        (
            "mkdir -p .git/objects/aa && cp $(at $evil) .git/objects/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "1 stored object not what the name says",
        ),
        (
            "cp -f $(at $evil) $(at $(git rev-parse HEAD:other))",
            "1 stored object deleted or changed",
        ),
        (
            "echo good > good && git add good && git commit -qm good && cp -f $(at $evil) $(at $(git rev-parse HEAD:good))",
            "is not what its name says",
        ),
        (
            // The index of a pack gives the first object another name.
            "git repack -adq && f=$(ls .git/objects/pack/*.idx) && chmod u+w $f && printf '\\001\\002' | dd of=$f bs=1 seek=1050 conv=notrunc 2>/dev/null && chmod 444 $f",
            "1 stored object not what the name says",
        ),
    ] {
        let scene = scene(sandbox, REPOSITORY);
        let found = meanings(&scene, &format!("{at}; {line}")).await;
        let all: String = found.iter().map(sentences).collect();
        assert!(all.contains(says), "{line}: {found:#?}");
    }
}

/// A packed picture of one pixel, without its checksums: only its header is read.
const PNG: &str =
    "printf '\\211PNG\\r\\n\\032\\n\\0\\0\\0\\rIHDR\\0\\0\\0\\020\\0\\0\\0\\010' > logo.png";

/// A lockfile with a package of an unusual place.
const LOCK: &str = r#"{"lockfileVersion":3,"packages":{"node_modules/a":{"version":"1.0.0","resolved":"http://evil.example/a.tgz"}}}"#;

/// A bomb: only its header is read.
const BOMB: &str =
    "printf '\\211PNG\\r\\n\\032\\n\\0\\0\\0\\rIHDR\\0\\0\\377\\377\\0\\0\\377\\377' > bomb.png";

async fn single_files_say_what_they_mean(sandbox: &Sandbox) {
    let lock = LOCK;
    let notebook =
        r#"{"cells":[{"cell_type":"code","source":["x = 1\n"],"outputs":[]}],"metadata":{}}"#;
    for (line, kind, title, warnings) in [
        (
            format!("echo '{lock}' > package-lock.json"),
            MeaningKind::Lockfile,
            "packages in package-lock.json: 1 added, 0 removed, 0 changed",
            1,
        ),
        (
            "head -c 26000000 /dev/zero > package-lock.json".to_owned(),
            MeaningKind::Lockfile,
            "what changes in package-lock.json was not read",
            1,
        ),
        (
            format!("printf '%s' '{notebook}' > a.ipynb"),
            MeaningKind::Notebook,
            "notebook a.ipynb: 1 cell added",
            0,
        ),
        (
            BOMB.to_owned(),
            MeaningKind::Image,
            "picture bomb.png: new, 65535×65535, 24 bytes",
            0,
        ),
        (
            PNG.to_owned(),
            MeaningKind::Image,
            "picture logo.png: new, 16×8, 24 bytes",
            0,
        ),
        (
            "seq 5000 > dist.min.js".to_owned(),
            MeaningKind::Generated,
            "dist.min.js: it is a minified file of 23.8 kB",
            0,
        ),
        (
            "echo x | gzip > a.gz".to_owned(),
            MeaningKind::Archive,
            "a.gz: it is a gzip file of",
            0,
        ),
    ] {
        let scene = Scene::with(sandbox, &Settings::default());
        let found = meanings(&scene, &line).await;
        let shown = format!("{line}: {found:#?}");
        assert_eq!(found.len(), 1, "{shown}");
        assert_eq!(found[0].kind, kind, "{shown}");
        assert!(found[0].title.starts_with(title), "{shown}");
        assert_eq!(found[0].warnings.len(), warnings, "{shown}");
        let is_picture = kind == MeaningKind::Image;
        assert_eq!(found[0].covers.len(), usize::from(is_picture), "{shown}");
    }
}

async fn a_commit_says_which_packages_change(sandbox: &Sandbox) {
    let scene = scene(sandbox, REPOSITORY);
    let line = format!("echo '{LOCK}' > package-lock.json && git add -A && git commit -qm deps");
    let found = meanings(&scene, &line).await;
    let parts: Vec<MeaningKind> = found[0].parts.iter().map(|part| part.kind).collect();
    assert_eq!(parts, [MeaningKind::Lockfile], "{found:#?}");
}
