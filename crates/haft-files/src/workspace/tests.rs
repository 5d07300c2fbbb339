//! Tables over a small real folder: the result of each operation, and how it refuses.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::workspace::{FileUpdate, Workspace, WorkspaceError, WriteMode};
use haft_types::error::ErrorKind::{Conflict, Denied, Failed, InvalidArguments, NotFound};
use haft_types::error::{ErrorKind, ToolError};
use haft_types::permission::PathClaim;

struct Scene {
    dir: tempfile::TempDir,
    ws: Workspace,
}

/// Creates `ws/` with a few files, links, a repository and haft's own folder; and `out/` beside it.
fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let at = |p: &str| dir.path().join(p);
    for folder in [
        "ws/src/deep",
        "ws/.git/hooks",
        "ws/mod/.git",
        "ws/.haft/runs",
        "out",
    ] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for file in [
        "ws/a.txt",
        "ws/src/main.rs",
        "ws/.git/config",
        "ws/.haft/token",
        "out/secret",
    ] {
        fs::write(at(file), file).unwrap();
    }
    symlink("src", at("ws/lnk")).unwrap();
    symlink(at("ws/src"), at("ws/abs")).unwrap();
    symlink("../out", at("ws/leave")).unwrap();
    symlink(".haft", at("ws/mine")).unwrap();
    symlink("nowhere", at("ws/dangling")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("ws/pipe"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("ws/socket")).unwrap();
    let ws = Workspace::open(&at("ws"))
        .unwrap()
        .with_hidden([PathBuf::from(".haft")]);
    Scene { dir, ws }
}

impl Scene {
    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    /// Runs one operation given in words (`verb path [to]`); returns its result or how it fails.
    fn run(&self, line: &str) -> Result<String, ErrorKind> {
        let words: Vec<&str> = line.split(' ').collect();
        let done = |()| String::new();
        let write = |mode| {
            let place = self.ws.place(words[1])?;
            self.ws
                .write(&place, b"new", mode, None)
                .map(|w| format!("created={}", w.created))
        };
        let result: Result<String, WorkspaceError> = match words[0] {
            "read" => self
                .ws
                .existing(words[1])
                .and_then(|place| self.ws.read(&place))
                .map(|mut open| {
                    let mut text = String::new();
                    open.file.read_to_string(&mut text).unwrap();
                    text
                }),
            "write" => write(WriteMode::Overwrite),
            "append" => write(WriteMode::Append),
            "create" => write(WriteMode::Create),
            "list" => self
                .ws
                .place(words[1])
                .and_then(|place| self.ws.unfiltered().list(&place, 100))
                .map(|(found, _)| {
                    found
                        .into_iter()
                        .map(|e| e.name)
                        .collect::<Vec<_>>()
                        .join(" ")
                }),
            "rm" => self
                .ws
                .entry(words[1])
                .and_then(|p| self.ws.remove(&p, false))
                .map(done),
            "rmtree" => self
                .ws
                .entry(words[1])
                .and_then(|p| self.ws.remove(&p, true))
                .map(done),
            "mv" | "mvf" => {
                let overwrite = words[0] == "mvf";
                self.ws.entry(words[1]).and_then(|from| {
                    let to = self.ws.entry(words[2])?;
                    self.ws.rename(&from, &to, overwrite).map(done)
                })
            }
            other => panic!("unknown verb {other}"),
        };
        result.map_err(|error| ToolError::from(error).kind())
    }
}

fn check(line: &str, expect: Result<&str, ErrorKind>) {
    let scene = scene();
    let got = scene.run(line);
    assert_eq!(got.as_deref().map_err(|e| *e), expect, "{line}");
    let secret = fs::read_to_string(scene.dir.path().join("out/secret")).unwrap();
    assert_eq!(secret, "out/secret", "{line}");
    assert_eq!(
        fs::read_to_string(scene.at(".haft/token")).unwrap(),
        "ws/.haft/token"
    );
    let drafts = fs::read_dir(scene.at("")).unwrap();
    let draft = |e: fs::DirEntry| e.file_name().to_string_lossy().ends_with(".tmp");
    assert!(
        !drafts.map(Result::unwrap).any(draft),
        "{line} left its draft behind"
    );
}

const ALL: &str = ".git a.txt abs dangling leave lnk mine mod pipe socket src";

/// An operation, and its result or how it fails.
const ROWS: &[(&str, Result<&str, ErrorKind>)] = &[
    ("read a.txt", Ok("ws/a.txt")),
    ("read ./src//main.rs", Ok("ws/src/main.rs")),
    ("read lnk/main.rs", Ok("ws/src/main.rs")),
    ("read abs/main.rs", Ok("ws/src/main.rs")),
    ("read lnk/deep/../main.rs", Ok("ws/src/main.rs")),
    ("read .git/config", Ok("ws/.git/config")),
    ("read a.txt/", Err(Failed)),
    ("read a.txt/x", Err(Failed)),
    ("read src", Err(Failed)),
    ("read pipe", Err(Failed)),
    ("read socket", Err(Failed)),
    ("read dangling", Err(NotFound)),
    ("read leave/secret", Err(Denied)),
    ("read .haft/token", Err(Denied)),
    ("read mine/token", Err(Denied)),
    ("read /etc/passwd", Err(Denied)),
    ("read ", Err(InvalidArguments)),
    ("list .", Ok(ALL)),
    ("list .haft", Err(Denied)),
    ("list a.txt", Err(Failed)),
    ("write a.txt", Ok("created=false")),
    ("write x/y/z.txt", Ok("created=true")),
    ("write dangling", Ok("created=true")),
    ("write lnk/deep/new/f", Ok("created=true")),
    ("write leave/new/f", Err(Denied)),
    ("write .haft/new/f", Err(Denied)),
    ("write mine/f", Err(Denied)),
    ("write .git/hooks/x", Err(Denied)),
    ("write src/.GIT", Err(Denied)),
    ("write src", Err(Failed)),
    ("write pipe", Err(Failed)),
    ("write socket", Err(Failed)),
    ("write .", Err(Denied)),
    ("write no/", Err(NotFound)),
    ("append a.txt", Ok("created=false")),
    ("append new", Ok("created=true")),
    ("create a.txt", Err(Conflict)),
    ("create new", Ok("created=true")),
    ("rm a.txt", Ok("")),
    ("rm lnk", Ok("")),
    ("rm leave", Ok("")),
    ("rm pipe", Ok("")),
    ("rm src", Err(Failed)),
    ("rm src/deep", Ok("")),
    ("rm none", Err(NotFound)),
    ("rm leave/secret", Err(Denied)),
    ("rmtree src", Ok("")),
    ("rmtree lnk", Ok("")),
    ("rmtree mod", Err(Denied)),
    ("rmtree .git", Err(Denied)),
    ("rmtree .haft", Err(Denied)),
    ("rmtree .haft/runs", Err(Denied)),
    ("rmtree .", Err(Denied)),
    ("rmtree src/..", Err(Denied)),
    ("mv a.txt b.txt", Ok("")),
    ("mv a.txt new/sub/b.txt", Ok("")),
    ("mv a.txt src/main.rs", Err(Conflict)),
    ("mvf a.txt src/main.rs", Ok("")),
    ("mvf a.txt src", Err(Conflict)),
    ("mvf a.txt lnk", Ok("")),
    ("mv src src/deep/x", Err(Failed)),
    ("mv src new", Ok("")),
    ("mv .haft new", Err(Denied)),
    ("mv a.txt .haft/x", Err(Denied)),
    ("mv a.txt src/.git", Err(Denied)),
    ("mv mod new", Err(Denied)),
    ("mv none new", Err(NotFound)),
    ("mv a.txt leave/x", Err(Denied)),
];

#[test]
fn every_operation_ends_as_its_row_says() {
    for (line, expect) in ROWS {
        check(line, *expect);
    }
}

#[test]
fn deleting_a_link_leaves_what_it_points_at() {
    let scene = scene();
    scene.run("rmtree lnk").unwrap();
    assert!(scene.at("src/main.rs").exists());
    assert!(scene.at("lnk").symlink_metadata().is_err());
}

#[test]
fn a_write_keeps_mode_and_other_names_of_the_file() {
    let scene = scene();
    fs::set_permissions(scene.at("a.txt"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::hard_link(scene.at("a.txt"), scene.dir.path().join("out/other")).unwrap();
    scene.run("append a.txt").unwrap();
    let mode = fs::metadata(scene.at("a.txt"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o751);
    assert_eq!(
        fs::read_to_string(scene.at("a.txt")).unwrap(),
        "ws/a.txtnew"
    );
    let other = fs::read_to_string(scene.dir.path().join("out/other")).unwrap();
    assert_eq!(other, "ws/a.txt");
}

#[test]
fn j5_a_write_keeps_no_set_id_bit() {
    let scene = scene();
    for bits in [0o4000, 0o2000, 0o6000] {
        let mode = fs::Permissions::from_mode(0o755 | bits);
        fs::set_permissions(scene.at("a.txt"), mode).unwrap();
        scene.run("append a.txt").unwrap();
        let mode = fs::metadata(scene.at("a.txt"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o755, "{bits:o}");
    }
}

#[test]
fn a_write_of_a_file_that_changed_since_is_refused() {
    let scene = scene();
    let place = scene.ws.place("a.txt").unwrap();
    let stamp = scene.ws.read(&place).unwrap().stamp;
    fs::write(scene.at("a.txt"), "other text").unwrap();
    let result = scene
        .ws
        .write(&place, b"x", WriteMode::Overwrite, Some(&stamp));
    assert!(
        matches!(result, Err(WorkspaceError::Changed(_))),
        "{result:?}"
    );
    assert_eq!(fs::read_to_string(scene.at("a.txt")).unwrap(), "other text");
}

#[test]
fn a_file_that_appears_during_a_write_is_not_replaced() {
    let scene = scene();
    let place = scene.ws.place("new.txt").unwrap();
    symlink(scene.dir.path().join("out/created"), scene.at("new.txt")).unwrap();
    let result = scene.ws.write(&place, b"x", WriteMode::Overwrite, None);
    assert!(
        matches!(result, Err(WorkspaceError::Changed(_))),
        "{result:?}"
    );
    assert!(!scene.dir.path().join("out/created").exists());
}

#[test]
fn a_swap_puts_back_what_came_after_the_file_was_compared() {
    use super::change::swap;
    use std::os::fd::AsFd as _;

    let scene = scene();
    let folder = std::fs::File::open(scene.ws.root()).unwrap();
    // The entry in place of the compared file, and whether it may be replaced.
    for (name, replaced) in [
        ("a.txt", true),
        ("src", false),
        ("lnk", false),
        ("pipe", false),
        ("src/main.rs", false),
    ] {
        let compared = scene.ws.place("a.txt").unwrap();
        let expected = scene.ws.stamp(&compared).unwrap().unwrap();
        if name.contains('/') {
            fs::write(scene.ws.root().join("a.txt"), "written to since").unwrap();
        }
        let name = if name.contains('/') { "a.txt" } else { name };
        let before = listing(scene.ws.root());
        let place = scene.ws.entry(name).unwrap();
        let (mut draft, fd) = super::write::new_draft(folder.as_fd()).unwrap();
        rustix::io::write(&fd, b"new").unwrap();
        let swapped = swap(&mut draft, &place, name.as_ref(), &expected);
        match swapped {
            Ok(Some(_)) => assert!(replaced, "{name}"),
            Ok(None) => panic!("this file system cannot swap"),
            Err(WorkspaceError::Changed(_)) => {
                assert!(!replaced, "{name}");
                drop(draft);
                assert_eq!(listing(scene.ws.root()), before, "{name}");
                continue;
            }
            Err(other) => panic!("{name}: {other}"),
        }
        drop((swapped, draft));
        assert_eq!(fs::read(scene.ws.root().join(name)).unwrap(), b"new");
        assert_eq!(before.len(), listing(scene.ws.root()).len());
    }
}

#[test]
fn a_claim_says_where_links_lead() {
    let scene = scene();
    let rows = [
        ("./src/../a.txt", "a.txt", None),
        (".", ".", None),
        ("lnk/main.rs", "lnk/main.rs", Some("src/main.rs")),
        ("lnk/..", ".", None),
        ("lnk/deep/..", "lnk", Some("src")),
        ("new/file", "new/file", None),
        ("lnk/new/file", "lnk/new/file", Some("src/new/file")),
        ("dangling", "dangling", Some("nowhere")),
    ];
    for (path, written, target) in rows {
        let expect = PathClaim {
            path: written.to_owned(),
            target: target.map(str::to_owned),
        };
        assert_eq!(scene.ws.claim(path).unwrap(), expect, "{path}");
        let absolute = scene.at(path);
        let absolute = absolute.to_str().unwrap();
        assert_eq!(scene.ws.claim(absolute).unwrap(), expect, "{absolute}");
    }
}

#[test]
fn a_path_that_leads_elsewhere_than_cleared_is_a_conflict() {
    let scene = scene();
    let cleared = scene.ws.claim("lnk/main.rs").unwrap();
    fs::remove_file(scene.at("lnk")).unwrap();
    symlink("mod", scene.at("lnk")).unwrap();
    let error = scene
        .ws
        .place("lnk/main.rs")
        .unwrap()
        .still(&cleared)
        .unwrap_err();
    assert_eq!(ToolError::from(error).kind(), ErrorKind::Conflict);
}

#[test]
fn a_root_given_by_a_link_takes_absolute_paths_in_both_spellings() {
    let scene = scene();
    let link = scene.dir.path().join("by-link");
    symlink(scene.dir.path().join("ws"), &link).unwrap();
    let ws = Workspace::open(&link).unwrap();
    for base in [link, scene.dir.path().join("ws")] {
        let path = base.join("a.txt");
        assert_eq!(
            ws.claim(path.to_str().unwrap()).unwrap(),
            PathClaim::plain("a.txt")
        );
    }
}

#[test]
fn a_missing_file_offers_the_nearest_name_but_never_a_hidden_one() {
    let scene = scene();
    let filter = |path: &str| path != "secret.txt";
    fs::write(scene.at("secret.txt"), "x").unwrap();
    let ws = scene.ws.filtered(Some(Arc::new(filter)));
    let rows = [
        ("b.txt", Some("a.txt")),
        ("src/mian.rs", Some("src/main.rs")),
        ("scr/main.rs", Some("src")),
        ("secret.tx", None),
        ("zzz", None),
    ];
    for (path, near) in rows {
        let error = ToolError::from(ws.existing(path).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::NotFound, "{path}");
        let advice = error.advice().unwrap();
        match near {
            Some(near) => assert_eq!(advice, format!("did you mean {near:?}?")),
            None => assert!(!advice.contains("secret"), "{advice}"),
        }
    }
    let place = ws.place(".").unwrap();
    let (names, _) = ws.list(&place, 100).unwrap();
    assert!(
        names
            .iter()
            .all(|e| e.name != "secret.txt" && e.name != ".haft")
    );
    assert!(!ws.shows(Path::new(".haft/token")));
}

#[test]
fn looking_at_many_paths_shows_nothing_reached_through_a_link() {
    let scene = scene();
    let paths = [
        "a.txt",
        "gone",
        "leave",
        "leave/secret",
        "lnk/main.rs",
        "src/deep",
        "src/main.rs",
    ];
    let mut found = Vec::new();
    scene
        .ws
        .look_each(&paths.map(PathBuf::from), |path, kind, _| {
            found.push(format!("{} {}", path.display(), kind.as_str()));
        });
    let expect = [
        "a.txt file",
        "leave link",
        "src/deep directory",
        "src/main.rs file",
    ];
    assert_eq!(found, expect);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2_000))]
    /// Every path is refused, or leads below the root and to exactly the place that the system reports.
    #[test]
    fn a_path_leads_where_the_system_says_or_nowhere(
        path in proptest::collection::vec(
            proptest::sample::select(vec![
                "a.txt", "src", "deep", "main.rs", "lnk", "abs", "leave", "secret", "dangling", ".", "..", "", "new",
            ]),
            1..8,
        ),
    ) {
        let scene = SCENE.with(std::rc::Rc::clone);
        let path = path.join("/");
        let path = path.trim_start_matches('/');
        let root = fs::canonicalize(scene.at("")).unwrap();
        let system = fs::canonicalize(root.join(path));
        let place = scene.ws.place(path);
        match (&place, &system) {
            (Ok(place), Ok(system)) if place.kind().is_some() => {
                proptest::prop_assert_eq!(&root.join(place.real()).components().collect::<PathBuf>(), system);
            }
            // A place for a new file: nothing is there, as the system reports, and it is inside.
            (Ok(place), Err(_)) => {
                proptest::prop_assert!(place.kind().is_none());
                proptest::prop_assert!(place.real().components().all(|c| c.as_os_str() != ".."));
            }
            (Ok(_), Ok(_)) => proptest::prop_assert!(false, "something is there, and it was not found"),
            (Err(_), Ok(system)) => {
                // The system may leave the root and return; haft never leaves it.
                let goes_out = path.contains("leave") || path.contains("..") || path.is_empty();
                proptest::prop_assert!(goes_out || !system.starts_with(&root), "{path} was refused");
            }
            (Err(_), Err(_)) => {}
        }
    }
}

thread_local! {
    static SCENE: std::rc::Rc<Scene> = std::rc::Rc::new(scene());
}

/// Several changes: all of them, or none if one fails.
#[test]
fn changes_are_made_together_or_not_at_all() {
    let s = scene();
    fs::write(s.at("b.txt"), "b").unwrap();
    fs::write(s.at("c.txt"), "c").unwrap();
    fs::set_permissions(s.at("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    let place = |path: &str| s.ws.place(path).unwrap();
    let (a, b, c) = (place("a.txt"), place("b.txt"), place("c.txt"));
    let stamp = |place| s.ws.stamp(place).unwrap();
    let (new, long) = (place("n/m/new"), place(&format!("n/{}", "x".repeat(300))));
    let one = |place, content, expected, like| FileUpdate {
        place,
        content,
        expected,
        like,
        mode: None,
    };
    let good = |a_stamp| {
        [
            one(&a, Some(&b"A"[..]), a_stamp, None),
            one(&b, None, stamp(&b), None),
            one(&new, Some(&b"N"[..]), None, Some(&a)),
        ]
    };
    let before = listing(&s.at(""));
    // Found after all others are made: a second file of the same name; found earlier: a name that is too long.
    for (last, kind) in [(&new, "changed"), (&long, "255 bytes")] {
        let mut bad = good(stamp(&a)).to_vec();
        bad.push(one(last, Some(&b""[..]), None, None));
        let error = s.ws.change(&bad).unwrap_err().to_string();
        assert!(error.contains(kind), "{error}");
        assert_eq!(listing(&s.at("")), before);
    }
    // Found before anything is touched.
    let changed = good(stamp(&c));
    assert!(matches!(
        s.ws.change(&changed),
        Err(WorkspaceError::Changed(_))
    ));
    assert_eq!(listing(&s.at("")), before);
    let stamps = s.ws.change(&good(stamp(&a))).unwrap();
    assert_eq!(stamps, [stamp(&a), None, stamp(&new)]);
    assert_eq!(fs::read(s.at("a.txt")).unwrap(), b"A");
    assert!(!s.at("b.txt").exists());
    assert_eq!(fs::read(s.at("n/m/new")).unwrap(), b"N");
    let mode = fs::metadata(s.at("n/m/new")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(
        listing(&s.at("")).len(),
        before.len() + 2,
        "drafts are left"
    );
}

/// Returns every path below a folder, with the text of files.
fn listing(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                todo.push(path.clone());
            }
            let text = if kind.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            all.push((path, text));
        }
    }
    all.sort();
    all
}
