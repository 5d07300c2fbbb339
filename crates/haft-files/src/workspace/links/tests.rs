//! Links are those of the moment, and each leads where the kernel would follow it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::{Links, OutsideLinks};
use crate::workspace::Workspace;

/// A folder with `ws`, the workspace, and `out` beside it.
struct Scene {
    dir: tempfile::TempDir,
    workspace: Workspace,
}

impl Scene {
    /// Creates folders (`a/`), files and links (`a -> b`); `ROOT` is the workspace.
    fn new(tree: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        let workspace = Workspace::open(&dir.path().join("ws")).unwrap();
        let scene = Self { dir, workspace };
        for path in tree {
            scene.add(path);
        }
        scene
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    fn add(&self, path: &str) {
        let root = self.workspace.root().to_str().unwrap();
        let (path, text) = path.split_once(" -> ").unwrap_or((path, ""));
        let at = self.at(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        if !text.is_empty() {
            symlink(text.replace("ROOT", root), at).unwrap();
        } else if path.ends_with('/') {
            fs::create_dir(at).unwrap();
        } else {
            fs::write(at, "").unwrap();
        }
    }

    fn links(&self) -> Vec<String> {
        let links = self.workspace.links();
        links
            .paths()
            .map(|path| path.display().to_string())
            .collect()
    }
}

fn texts(paths: &[PathBuf]) -> Vec<&str> {
    paths.iter().map(|path| path.to_str().unwrap()).collect()
}

fn ways(links: &Links, link: &str) -> (Vec<String>, Vec<String>, bool) {
    let way = links.way(&links.root().join(link), &mut OutsideLinks::default());
    let owned = |paths: &[PathBuf]| texts(paths).into_iter().map(str::to_owned).collect();
    (owned(&way.ends), owned(&way.over), way.is_cut)
}

#[test]
fn the_links_are_those_of_the_moment() {
    let scene = Scene::new(&["a/b/one -> x", "two -> a", "c/d/e/"]);
    assert_eq!(scene.links(), ["a/b/one", "two"]);
    let same = scene.workspace.links();
    assert!(Arc::ptr_eq(&same, &scene.workspace.links()));
    let steps: [(&dyn Fn(), &[&str]); 6] = [
        (
            &|| scene.add("c/d/e/three -> y"),
            &["a/b/one", "c/d/e/three", "two"],
        ),
        (
            &|| fs::rename(scene.at("c"), scene.at("f")).unwrap(),
            &["a/b/one", "f/d/e/three", "two"],
        ),
        (
            &|| fs::remove_file(scene.at("a/b/one")).unwrap(),
            &["f/d/e/three", "two"],
        ),
        (
            &|| scene.add("a/b/deep/new/four -> z"),
            &["a/b/deep/new/four", "f/d/e/three", "two"],
        ),
        (
            &|| fs::remove_dir_all(scene.at("f")).unwrap(),
            &["a/b/deep/new/four", "two"],
        ),
        (&|| scene.add("f"), &["a/b/deep/new/four", "two"]),
    ];
    for (change, expect) in steps {
        change();
        assert_eq!(scene.links(), expect);
        // Once with what was listed before, once without.
        let anew = Workspace::open(&scene.at("")).unwrap();
        assert_eq!(*anew.links(), *scene.workspace.links());
    }
}

#[test]
fn a_way_leads_over_links_here_and_elsewhere() {
    let scene = Scene::new(&[
        "db/1",
        "mid -> db",
        "up -> ../ws/mid",
        "../out/back -> ROOT/mid",
        "../out/gone -> ROOT/new/file",
        "../out/ws -> ../ws",
        "over -> ../out/back/1",
        "dangling -> ../out/gone",
        "root -> ../out/ws",
        "through -> ../out/ws/mid/../x",
        "loop -> pool",
        "pool -> loop",
        "away -> ../out/none",
    ]);
    let links = scene.workspace.links();
    for (link, ends, over) in [
        ("mid", &["db"][..], &[][..]),
        ("up", &["db"], &["mid"]),
        ("over", &["db/1"], &["mid"]),
        ("dangling", &["new/file"], &[]),
        ("root", &[""], &[]),
        ("through", &["x"], &["mid"]),
        ("loop", &[], &["pool"]),
        ("away", &[], &[]),
    ] {
        let found = ways(&links, link);
        let expect = (ends.to_vec(), over.to_vec(), false);
        let found = (
            found.0.iter().map(String::as_str).collect(),
            found.1.iter().map(String::as_str).collect(),
            found.2,
        );
        assert_eq!(found, expect, "{link}");
    }
}

#[test]
fn links_with_two_texts_each_are_followed_once_from_each_position() {
    let mut links = Links::none(Path::new("/ws"));
    links.add_change(Path::new("l0"), Path::new("a"), false);
    links.add_change(Path::new("l0"), Path::new("b"), false);
    for at in 1..30 {
        let path = format!("l{at}");
        let text = format!("l{}", at - 1);
        links.add_change(Path::new(&path), Path::new(&text), false);
        links.add_change(Path::new(&path), Path::new(&format!("../ws/{text}")), false);
    }
    let (mut ends, over, is_cut) = ways(&links, "l29");
    ends.sort();
    assert_eq!(
        (ends, over.len(), is_cut),
        (vec!["a".to_owned(), "b".to_owned()], 29, false)
    );
}

#[test]
fn links_in_a_folder_whose_path_is_too_long_are_known_to_be_missing() {
    // The path of the second folder leaves no room for the name of the link in it.
    for end in [4_300, 4_085] {
        let scene = Scene::new(&["a -> b"]);
        let mut fd = rustix::fs::open(scene.at(""), OFlags::PATH, Mode::empty()).unwrap();
        let mut length = scene.workspace.root().as_os_str().len();
        while length + 1 < end {
            let name = "d".repeat(250.min(end - length - 1));
            rustix::fs::mkdirat(&fd, &name, Mode::RWXU).unwrap();
            fd = rustix::fs::openat(&fd, &name, OFlags::PATH, Mode::empty()).unwrap();
            length += name.len() + 1;
        }
        rustix::fs::symlinkat("x", &fd, "link-with-a-name").unwrap();
        let missing = scene.workspace.links().missing();
        let missing = missing.unwrap_or_default();
        assert!(missing.contains("longer than 4,095 bytes"), "{missing}");
        assert!(missing.contains("shorten"), "{missing}");
        assert!(missing.len() < 400, "{missing}");
    }
}
