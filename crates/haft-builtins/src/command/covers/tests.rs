//! What is guarded in which workspace under which rules.

mod repositories;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use haft::policy::{Denials, Policy, Profile, RuleSet, SecretFiles};
use haft::workspace::Workspace;
use haft_sandbox::{AbsentGuard, GuardKind, PathGuard};
use rustix::fs::{Mode, OFlags};

use super::{MAX_DENIED, crowd, find, own, protected_guards};
use crate::command::walk::{GuardWalk, WalkStop};

fn denials(workspace: &Workspace, deny: &[&str]) -> Denials {
    let rules = RuleSet {
        deny: deny.iter().map(|rule| (*rule).into()).collect(),
        ask: vec!["Read(asked)".into(), "Edit(asked)".into()],
        ..RuleSet::default()
    };
    let policy = Policy::builder(Profile::Trusted)
        .classes(crate::classes())
        .workspace(workspace);
    let policy = policy.rules(rules).secret_files(SecretFiles::Allow);
    policy.build().unwrap().denials()
}

/// Creates a tree of files; a path that ends in `/` is a folder, `a = b` another name of the file b, `a -> b` a link.
fn tree(paths: &[&str]) -> (tempfile::TempDir, Workspace) {
    let dir = tempfile::tempdir().unwrap();
    let make = |path: &str| {
        let full = dir.path().join(path);
        let folder = if path.ends_with('/') {
            Some(&*full)
        } else {
            full.parent()
        };
        fs::create_dir_all(folder.unwrap()).unwrap();
        full
    };
    for path in paths {
        if let Some((one, other)) = path.split_once(" = ") {
            fs::hard_link(dir.path().join(other), make(one)).unwrap();
        } else if let Some((link, to)) = path.split_once(" -> ") {
            symlink(to, make(link)).unwrap();
        } else if !path.ends_with('/') {
            fs::write(make(path), "").unwrap();
        } else {
            make(path);
        }
    }
    let workspace = Workspace::open(dir.path()).unwrap();
    (dir, workspace)
}

/// Describes guards in words, without those for protected names, which are always the same.
fn describe(guards: &[PathGuard]) -> BTreeSet<String> {
    let names: Vec<PathGuard> = protected_guards().collect();
    let guards = guards.iter().filter(|guard| !names.contains(guard));
    let word = |guard: &PathGuard| {
        let kind = match (guard.kind, guard.absent) {
            (GuardKind::Hidden, _) => "hide",
            (GuardKind::ReadOnly, AbsentGuard::Placeholder) => "keep",
            (GuardKind::ReadOnly, AbsentGuard::Renamed) => "keep if there",
            (GuardKind::ReadOnly, AbsentGuard::NewEntries) => "close",
        };
        let end = if guard.folder { "/" } else { "" };
        format!("{kind} {}{end}", guard.path.display())
    };
    guards.map(word).collect()
}

fn words(expect: &[&str]) -> BTreeSet<String> {
    expect.iter().map(|&word| word.to_owned()).collect()
}

async fn check(paths: &[&str], deny: &[&str], on_view: bool, expect: &[&str]) {
    let (_dir, workspace) = tree(paths);
    let rules = denials(&workspace, deny);
    let guards = find(rules, workspace, on_view).await.unwrap().guards;
    assert_eq!(
        describe(&guards),
        words(expect),
        "{paths:?} {deny:?} {on_view}"
    );
}

#[tokio::test]
async fn instructions_to_agents_that_exist_are_kept_where_a_command_works_directly() {
    let tree = &["AGENTS.md", "sub/CLAUDE.md", ".github/instructions/a.md"];
    let kept = [
        "keep .git/",
        "keep if there AGENTS.md",
        "keep if there .github/instructions/",
    ];
    check(tree, &[], false, &kept).await;
    check(tree, &[], true, &[]).await;
}

const FILES: &[&str] = &[
    ".git",
    ".env",
    "a/b/.env",
    "a/c",
    "secret/one",
    "secret/deep/two",
    "config/x",
    "asked",
];

/// The deny rules, what is guarded on a view, and what else in the live workspace.
type Row = (
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const RULES: &[Row] = &[
    (&[], &[], &[]),
    (&["Read(.env)"], &["hide .env", "hide a/b/.env"], &[]),
    (&["Read(/.env)"], &["hide .env"], &[]),
    (&["Read(/a/**/.env)"], &["hide a/b/.env"], &[]),
    (&["Read(/secret/**)"], &["hide secret/"], &[]),
    (
        &["Read(secret/*)"],
        &["hide secret/deep/", "hide secret/one"],
        &[],
    ),
    (
        &["Read(**)"],
        &[
            "hide .env",
            "hide .git",
            "hide a/",
            "hide asked",
            "hide config/",
            "hide secret/",
        ],
        &[],
    ),
    (
        &["Read(absent)", "read_file(a/c)", "Bash(cat a/c)"],
        &[],
        &[],
    ),
    (&["Edit(/config/**)"], &[], &["keep config/"]),
    (&["Edit(.env)"], &[], &["keep .env", "keep a/b/.env"]),
    // Within a read-only path only hidden paths matter.
    (
        &["Edit(/secret/**)", "Read(two)", "Edit(one)"],
        &["hide secret/deep/two"],
        &["keep secret/"],
    ),
    (&["Edit(one)", "Read(/secret/**)"], &["hide secret/"], &[]),
];

#[tokio::test]
async fn what_rules_deny_is_covered() {
    for (deny, on_view, live) in RULES {
        check(FILES, deny, true, on_view).await;
        let all = [*on_view, *live, &["keep .git"]].concat();
        check(FILES, deny, false, &all).await;
    }
}

#[tokio::test]
async fn other_names_of_a_denied_file_are_covered() {
    let files = [
        "x/.env",
        "copy = x/.env",
        "y/deep/name = x/.env",
        "other",
        "same = other",
        "in/file",
        "out = in/file",
        "link -> x/.env",
        ".env.local -> other",
    ];
    let hidden: &[&str] = &["hide x/.env", "hide copy", "hide y/deep/name"];
    check(&files, &["Read(.env)"], true, hidden).await;
    check(&files, &["Read(/in/**)"], true, &["hide in/", "hide out"]).await;
    check(&files, &["Read(.env.local)"], true, &["hide .env.local"]).await;
    check(
        &files,
        &["Edit(/in/**)"],
        false,
        &["keep in/", "keep out", "keep .git/"],
    )
    .await;
    let both = ["Edit(/x/**)", "Read(/y/deep/name)"];
    check(
        &files,
        &both,
        false,
        &[
            "hide y/deep/name",
            "hide x/.env",
            "hide copy",
            "keep x/",
            "keep .git/",
        ],
    )
    .await;
}

#[tokio::test]
async fn what_rules_name_through_a_link_is_covered() {
    let files = [
        "real/key",
        "real/deep/key",
        "link -> real",
        "a/up -> ..",
        "a/.env",
        "seclink -> secret",
        "secret/key",
    ];
    for (deny, on_view, expect) in [
        ("Read(/link/key)", true, &["hide real/key"][..]),
        ("Read(/link/deep/**)", true, &["hide real/deep/"]),
        ("Read(/link/**)", true, &["hide link"]),
        ("Read(/a/up/a/.env)", true, &["hide a/.env"]),
        ("Read(/secret/**)", true, &["hide secret/"]),
        ("Edit(/link/key)", false, &["keep real/key", "keep .git/"]),
        ("Edit(/link/key)", true, &[]),
    ] {
        check(&files, &[deny], on_view, expect).await;
    }
}

#[tokio::test]
async fn hafts_own_files_are_hidden_in_every_mode() {
    let (_dir, workspace) = tree(&["state/x", "own.toml"]);
    let workspace = workspace.with_hidden(["state", "own.toml"].map(Into::into));
    for on_view in [true, false] {
        let guards = find(Denials::default(), workspace.clone(), on_view)
            .await
            .unwrap()
            .guards;
        let own = words(&["hide state/", "hide own.toml"]);
        assert!(describe(&guards).is_superset(&own), "{guards:?}");
        let names = guards.iter().filter(|guard| guard.any_depth).count();
        assert_eq!(names > 0, !on_view, "{guards:?}");
    }
    assert_eq!(own(&workspace).len(), 2);
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_covered() {
    let deep = format!("{}/x", "n".repeat(250)).repeat(13);
    let (dir, workspace) = tree(&[&format!("{deep}/.env"), "closed/.env", "open/.env"]);
    let rules = denials(&workspace, &["Read(.env)"]);
    let closed = dir.path().join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let listable = fs::read_dir(&closed).is_ok();
    let guards = find(rules, workspace.clone(), true).await.unwrap().guards;
    let bare = find(Denials::default(), workspace, false)
        .await
        .unwrap()
        .guards;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    let long = |guards: &[PathGuard], kind| {
        let mut long = guards
            .iter()
            .filter(|guard| guard.kind == kind && guard.folder);
        long.any(|guard| guard.path.as_os_str().len() > 3_000)
    };
    assert!(long(&guards, GuardKind::Hidden), "{:?}", describe(&guards));
    assert!(long(&bare, GuardKind::ReadOnly), "{:?}", describe(&bare));
    assert!(describe(&guards).contains("hide open/.env"));
    // The superuser can list it anyway.
    let expect = if listable {
        "hide closed/.env"
    } else {
        "hide closed/"
    };
    assert!(
        describe(&guards).contains(expect),
        "{:?}",
        describe(&guards)
    );
    assert_eq!(describe(&bare).contains("keep closed/"), !listable);
}

#[test]
fn a_look_ends_at_its_bound() {
    let paths: Vec<String> = (0..30).map(|at| format!("d{}/f{at}", at % 3)).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (_dir, workspace) = tree(&paths);
    for (deny, most, whole) in [
        ("Read(.env)", 33, true),
        ("Read(.env)", 32, false),
        ("Read(/d0/f0)", 13, true),
        ("Read(/d0/f0)", 12, false),
        // Its contents are searched for files with other names.
        ("Read(/d0/**)", 13, true),
        ("Read(/d0/**)", 12, false),
    ] {
        let rules = denials(&workspace, &[deny]);
        let run = GuardWalk::new(&workspace, &rules, true, most).run();
        assert_eq!(run.is_ok(), whole, "{deny} {most}");
        assert!(
            matches!(run, Ok(_) | Err(WalkStop::TooMany)),
            "{deny} {most}"
        );
    }
}

#[tokio::test]
async fn too_many_denied_files_are_refused_with_a_way_out() {
    let mut paths: Vec<String> = (0..5_001).map(|at| format!("d/{at}.env")).collect();
    paths.push("d/readme".to_owned());
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (_dir, workspace) = tree(&paths);
    let rules = denials(&workspace, &["Read(*.env)"]);
    let error = find(rules, workspace.clone(), true).await.unwrap_err();
    assert!(error.message().contains("5001"), "{error:?}");
    let advice = error.operator_advice().unwrap();
    assert!(advice.contains("Read(/d/**)"), "{advice}");
    let rules = denials(&workspace, &["Read(/d/**)"]);
    let guards = find(rules, workspace, true).await.unwrap().guards;
    assert_eq!(guards, [PathGuard::hide_dir(Path::new("d"))]);
}

#[tokio::test]
async fn secrets_are_covered_by_their_names_and_their_other_names() {
    let (_dir, workspace) = tree(&[
        ".env",
        ".env.example",
        "copy = .env",
        "link -> .env",
        "web/.env.local",
        "web/id_rsa.pub",
        "web/credentials/index.ts",
        "web/node_modules/x/.npmrc",
        ".ssh/config",
        ".git/config",
    ]);
    let policy = Policy::builder(Profile::Trusted).workspace(&workspace);
    let denials = policy.build().unwrap().denials();
    let guards = find(denials, workspace, true).await.unwrap().guards;
    let expect = [
        "hide .env",
        "hide copy",
        "hide web/.env.local",
        "hide .ssh/",
    ];
    assert_eq!(describe(&guards), words(&expect));
}

fn hidden(paths: &[&str]) -> Vec<PathGuard> {
    paths
        .iter()
        .map(|path| PathGuard::hide_file(*path))
        .collect()
}

#[test]
fn a_folder_of_which_all_is_hidden_is_hidden_whole() {
    let (dir, _workspace) = tree(&[
        "keys/a.pem",
        "keys/old/b.pem",
        "keys/old/c.pem",
        "mixed/d.pem",
        "mixed/readme",
        "top.pem",
    ]);
    let all = hidden(&[
        "keys/a.pem",
        "keys/old/b.pem",
        "keys/old/c.pem",
        "mixed/d.pem",
        "top.pem",
    ]);
    let read_only = PathGuard::protect_file("keys/old/b.pem");
    let all = [
        all,
        vec![read_only, PathGuard::protect_file("mixed/readme")],
    ]
    .concat();
    let folded = crowd::merge_guards(dir.path(), all);
    let expect = [
        "hide keys/",
        "hide mixed/d.pem",
        "hide top.pem",
        "keep mixed/readme",
    ];
    assert_eq!(describe(&folded), words(&expect));
}

#[test]
fn the_folder_with_most_of_what_is_covered_is_named() {
    for (paths, expect) in [
        (&["a", "b"][..], None),
        (&["x/a", "b"], Some(("x", 1))),
        (&["x/y/a", "x/y/b", "x/z/c", "d"], Some(("x/y", 2))),
        (&["x/1/a", "x/2/a", "x/3/a", "y/a"], Some(("x", 3))),
        (&["x/a", "y/a", "y/b", "z/a", "w/a"], Some(("y", 2))),
    ] {
        let guards = hidden(paths);
        let found = crowd::most_crowded(&guards);
        let expect = expect.map(|(path, count)| (Path::new(path), count));
        assert_eq!(found, expect, "{paths:?}");
    }
}

#[tokio::test]
async fn very_many_secrets_refuse_no_command_where_a_folder_holds_nothing_else() {
    let names = |folder: &str| -> Vec<String> {
        let name = |at| format!("{folder}/{at}.pem");
        (0..=MAX_DENIED).map(name).collect()
    };
    let paths = names("certs/dev");
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (dir, workspace) = tree(&paths);
    let policy = Policy::builder(Profile::Trusted).classes(crate::classes());
    let policy = policy.workspace(&workspace).build().unwrap();
    let guards = find(policy.denials(), workspace.clone(), true).await;
    assert_eq!(describe(&guards.unwrap().guards), words(&["hide certs/"]));

    fs::write(dir.path().join("certs/dev/readme"), "").unwrap();
    let refused = find(policy.denials(), workspace, true).await.unwrap_err();
    let said = format!("{refused} {:?}", refused.operator_advice());
    for part in [
        "match 5001 files",
        "5001 of them lie in certs/dev/",
        "Read(/certs/dev/**)",
        "!/certs/dev/",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A link to another folder, over a further link, has a denied or protected name only by a link to the folder that it lies in.
#[tokio::test]
async fn links_on_the_way_are_pinned_and_what_they_lead_to_stays_open() {
    let paths = [
        "d/db/1.sql",
        "d/other",
        "loop -> d",
        "a/migrations -> ../loop/db",
        "x -> a",
    ];
    let (_dir, workspace) = tree(&paths);
    let rules = denials(&workspace, &["Edit(/x/migrations)"]);
    let found = find(rules, workspace, false).await.unwrap();
    assert_eq!(found.pinned, [Path::new("loop")], "{found:?}");
    let guards = describe(&found.guards);
    for open in ["keep loop", "keep loop/", "keep d/"] {
        assert!(!guards.contains(open), "{guards:?}");
    }
    assert!(guards.contains("keep d/db/"), "{guards:?}");
}

#[tokio::test]
async fn a_folder_behind_a_link_whose_path_is_too_long_is_covered_further_up() {
    let deep = format!("{}/", "n".repeat(250)).repeat(13);
    let (dir, workspace) = tree(&[&deep]);
    let deep = deep.trim_end_matches('/');
    symlink(deep, dir.path().join("s")).unwrap();
    let mut fd = rustix::fs::open(dir.path().join(deep), OFlags::PATH, Mode::empty()).unwrap();
    for _ in 0..4 {
        let name = "m".repeat(250);
        rustix::fs::mkdirat(&fd, &name, Mode::RWXU).unwrap();
        fd = rustix::fs::openat(&fd, &name, OFlags::PATH, Mode::empty()).unwrap();
    }
    for on_view in [true, false] {
        let rules = denials(&workspace, &["Read(/s/**/key)"]);
        let found = find(rules, workspace.clone(), on_view).await;
        let guards = match found {
            Ok(found) => found.guards,
            Err(error) => {
                assert!(!on_view && error.message().contains("shorten"), "{error:?}");
                continue;
            }
        };
        let length = |guard: &PathGuard| guard.path.as_os_str().len();
        let covered = guards.iter().filter(|guard| length(guard) > 2_000);
        assert!(covered.clone().count() > 0, "{guards:?}");
        assert!(
            covered.clone().all(|guard| length(guard) < 3_500),
            "{guards:?}"
        );
    }
}
