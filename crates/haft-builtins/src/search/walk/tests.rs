//! The walk finds what ripgrep's own walk finds, whatever ignore files there are.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use haft::workspace::{ResolvedPath, Workspace};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use ignore::{WalkBuilder, WalkState};
use parking_lot::Mutex;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::search::walk::{FileWalk, WalkEntry};

/// The options of a walk.
#[derive(Debug, Clone)]
struct Way {
    start: &'static str,
    hidden: bool,
    depth: usize,
    glob: Option<&'static str>,
    kind: Option<&'static str>,
}

/// Returns the folder where the walk starts, as named by the workspace.
fn base(root: &Path, way: &Way) -> PathBuf {
    root.join(way.start.trim_start_matches('.'))
}

fn globs(root: &Path, way: &Way) -> Override {
    let mut globs = OverrideBuilder::new(base(root, way));
    if let Some(glob) = way.glob {
        globs.add(glob).unwrap();
    }
    globs.build().unwrap()
}

fn types(way: &Way) -> Types {
    let mut types = TypesBuilder::new();
    types.add_defaults();
    if let Some(kind) = way.kind {
        types.select(kind);
    }
    types.build().unwrap()
}

fn ours(workspace: &Workspace, way: &Way, share: usize) -> Vec<PathBuf> {
    let view = workspace.unfiltered();
    let place: ResolvedPath = view.existing(way.start).unwrap();
    let found = Mutex::new(Vec::new());
    FileWalk::below(&view, &place)
        .with_hidden(way.hidden)
        .with_depth(way.depth)
        .with_share(share)
        .with_globs(globs(workspace.root(), way))
        .with_types(types(way))
        .run(|| {
            |each: &WalkEntry<'_>| {
                found.lock().push(each.path.to_path_buf());
                ControlFlow::Continue(())
            }
        });
    sorted(found.into_inner())
}

fn theirs(workspace: &Workspace, way: &Way) -> Vec<PathBuf> {
    let root = workspace.root();
    let found = Mutex::new(Vec::new());
    let mut builder = WalkBuilder::new(base(root, way));
    builder
        .hidden(!way.hidden)
        .follow_links(false)
        .max_depth(Some(way.depth))
        .overrides(globs(root, way))
        .types(types(way));
    let hidden = way.hidden;
    builder.filter_entry(move |entry| {
        !(hidden && entry.path().parent().is_some_and(|p| p.ends_with(".git")))
    });
    builder.build_parallel().run(|| {
        Box::new(|entry| {
            let entry = entry.unwrap();
            if entry.depth() > 0 {
                let path = entry.path().strip_prefix(root).unwrap();
                found.lock().push(path.to_path_buf());
            }
            WalkState::Continue
        })
    });
    sorted(found.into_inner())
}

fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths
}

/// Creates a file or, if the path ends with a slash, a folder.
fn put(root: &Path, path: &str, text: &str) {
    let whole = root.join(path);
    let folder = if path.ends_with('/') {
        whole.as_path()
    } else {
        whole.parent().unwrap()
    };
    // Existing entries are kept.
    if fs::create_dir_all(folder).is_ok() && !whole.exists() {
        fs::write(&whole, text).unwrap();
    }
}

fn tree(files: &[(String, String)]) -> (TempDir, Workspace) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        put(folder.path(), path, text);
    }
    put(folder.path(), "start/a.rs", "");
    let workspace = Workspace::open(folder.path()).unwrap();
    (folder, workspace)
}

fn way() -> impl Strategy<Value = Way> {
    (
        prop::sample::select(vec![".", "start"]),
        any::<bool>(),
        prop::sample::select(vec![1, 2, 64]),
        prop::sample::select(vec![
            None,
            Some("*.rs"),
            Some("!b*"),
            Some("start/**"),
            Some(".x"),
        ]),
        prop::sample::select(vec![None, None, Some("rust")]),
    )
        .prop_map(|(start, hidden, depth, glob, kind)| Way {
            start,
            hidden,
            depth,
            glob,
            kind,
        })
}

fn files() -> impl Strategy<Value = Vec<(String, String)>> {
    let folder = prop::sample::select(vec![
        "",
        "a/",
        "start/",
        "start/b/",
        "start/.x/",
        "start/b/a.rs/",
    ]);
    let name = prop::sample::select(vec![
        "a.rs",
        "b",
        "b.txt",
        ".x",
        ".gitignore",
        ".gitignore",
        ".ignore",
        ".git/",
        ".git/info/exclude",
        ".jj/",
    ]);
    let line = prop::sample::select(vec![
        "a.rs",
        "b",
        "b/",
        "/b",
        "!b",
        "*.txt",
        "!*.rs",
        "start/",
        "**/a.rs",
        ".x",
        "!.x",
        "# b",
        "start/b/*",
    ]);
    let text = prop::collection::vec(line, 0..4).prop_map(|lines| lines.join("\n"));
    let file =
        (folder, name, text).prop_map(|(folder, name, text)| (format!("{folder}{name}"), text));
    prop::collection::vec(file, 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_walk_finds_what_ripgreps_walk_finds(files in files(), way in way(), share in 1_usize..4) {
        let (_folder, workspace) = tree(&files);
        prop_assert_eq!(ours(&workspace, &way, share), theirs(&workspace, &way));
    }
}

#[test]
fn the_rules_of_a_worktrees_repository_count() {
    let (folder, workspace) = tree(&[("repository/.git/info/exclude".to_owned(), "b".to_owned())]);
    let git = folder.path().join("repository/.git");
    put(
        folder.path(),
        "repository/.git/worktrees/w/commondir",
        "../..\n",
    );
    let names = format!("gitdir: {}\n", git.join("worktrees/w").display());
    put(folder.path(), "start/.git", &names);
    put(folder.path(), "start/b", "");
    let way = Way {
        start: "start",
        hidden: false,
        depth: 64,
        glob: None,
        kind: None,
    };
    let found = ours(&workspace, &way, 8);
    assert_eq!(found, [PathBuf::from("start/a.rs")]);
    assert_eq!(found, theirs(&workspace, &way));
}

/// Returns the paths that a walk of a whole workspace finds.
fn list_names(workspace: &Workspace) -> Vec<String> {
    let way = Way {
        start: ".",
        hidden: false,
        depth: 64,
        glob: None,
        kind: None,
    };
    let paths = ours(workspace, &way, 8).into_iter();
    paths
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn an_ignore_file_that_is_a_link_or_a_pipe_has_no_effect() {
    let (folder, workspace) = tree(&[
        ("secret.env".to_owned(), "guess\n".to_owned()),
        ("guess".to_owned(), String::new()),
        (".git/info/".to_owned(), String::new()),
    ]);
    let at = |name: &str| folder.path().join(name);
    for name in [".ignore", ".gitignore", ".git/info/exclude"] {
        std::os::unix::fs::symlink(at("secret.env"), at(name)).unwrap();
    }
    let all = ["guess", "secret.env", "start", "start/a.rs"];
    assert_eq!(list_names(&workspace), all);
    fs::remove_file(at(".ignore")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at(".ignore"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    assert_eq!(list_names(&workspace), all);
}

#[test]
fn a_worktree_does_not_name_a_repository_outside_the_workspace() {
    let outside = tempfile::tempdir().unwrap();
    put(outside.path(), "info/exclude", "guess\n");
    put(outside.path(), "commondir", ".\n");
    let names = format!("gitdir: {}\n", outside.path().display());
    let (_folder, workspace) = tree(&[
        (".git".to_owned(), names),
        ("guess".to_owned(), String::new()),
    ]);
    assert_eq!(list_names(&workspace), ["guess", "start", "start/a.rs"]);
}

#[test]
fn of_an_ignore_file_no_more_is_held_than_its_bound() {
    let many = (0..20_000)
        .map(|n| format!("f{n}"))
        .collect::<Vec<_>>()
        .join("\n");
    let long = format!("{}\nb\n", "x".repeat(5_000));
    let far = format!("{}c\n", "#\n".repeat(600_000));
    let (_folder, workspace) = tree(&[
        (".ignore".to_owned(), many),
        ("f0".to_owned(), String::new()),
        ("f9999".to_owned(), String::new()),
        ("f10000".to_owned(), String::new()),
        ("long/.ignore".to_owned(), long),
        ("long/b".to_owned(), String::new()),
        ("far/.ignore".to_owned(), far),
        ("far/c".to_owned(), String::new()),
    ]);
    let found = list_names(&workspace);
    assert_eq!(
        found,
        ["f10000", "far", "far/c", "long", "start", "start/a.rs"]
    );
}

#[test]
fn a_visitor_that_stops_ends_the_walk_of_every_thread() {
    let files: Vec<_> = (0..500)
        .map(|n| (format!("d{n}/f"), String::new()))
        .collect();
    let (_folder, workspace) = tree(&files);
    let view = workspace.unfiltered();
    let place = view.existing(".").unwrap();
    let seen = Mutex::new(0);
    FileWalk::below(&view, &place).run(|| {
        |_: &WalkEntry<'_>| {
            *seen.lock() += 1;
            ControlFlow::Break(())
        }
    });
    // Each thread may have been about to visit one more entry.
    let seen = seen.into_inner();
    assert!((1..=2).contains(&seen), "{seen}");
}
