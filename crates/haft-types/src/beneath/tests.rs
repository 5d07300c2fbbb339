//! `openat2` and the walk side by side, on every short path over a tree of all kinds of entries; and the walk while folders are swapped.

use std::fs;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, unlinkat};
use rustix::io::{Errno, Result};

use super::{BENEATH, Lookup, NO_LINKS, has_openat2, walk};

const NAMES: &[&str] = &[
    ".",
    "..",
    "dir",
    "file",
    "missing",
    "fifo",
    "socket",
    "closed",
    "to_dir",
    "to_file",
    "to_slash",
    "out",
    "up",
    "in_and_up",
    "circle",
    "nowhere",
    "absolute",
];

/// A folder `root` with one entry of each name, in a folder that no path beneath it may reach.
fn tree() -> tempfile::TempDir {
    let above = tempfile::tempdir().unwrap();
    fs::write(above.path().join("file"), "outside").unwrap();
    fs::create_dir(above.path().join("dir")).unwrap();
    let root = above.path().join("root");
    for folder in [root.clone(), root.join("dir"), root.join("dir/dir")] {
        fs::create_dir(&folder).unwrap();
        fs::create_dir(folder.join("closed")).unwrap();
        fs::write(folder.join("file"), "inside").unwrap();
        rustix::fs::mkfifoat(CWD, folder.join("fifo"), Mode::RWXU).unwrap();
        std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        for (name, to) in [
            ("to_dir", "dir"),
            ("to_file", "./dir/../file"),
            ("to_slash", "dir/"),
            ("out", "../.."),
            ("up", ".."),
            ("in_and_up", "dir/dir/../.."),
            ("circle", "circle"),
            ("nowhere", "missing"),
            ("absolute", "/etc/passwd"),
        ] {
            symlink(to, folder.join(name)).unwrap();
        }
        fs::set_permissions(folder.join("closed"), fs::Permissions::from_mode(0o600)).unwrap();
    }
    above
}

fn root_of(tree: &tempfile::TempDir) -> OwnedFd {
    open_folder(&tree.path().join("root"))
}

fn open_folder(path: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

/// What was opened: device, inode, kind and the flags that matter from then on. A file without a name is told by that alone.
fn describe(opened: Result<OwnedFd>) -> Result<(u64, u64, FileType, OFlags)> {
    let opened = opened?;
    let stat = fstat(&opened)?;
    let number = if stat.st_nlink == 0 { 0 } else { stat.st_ino };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let how_it_was_found = OFlags::NOFOLLOW | OFlags::DIRECTORY;
    let flags = rustix::fs::fcntl_getfl(&opened)?.difference(how_it_was_found);
    Ok((stat.st_dev, number, kind, flags))
}

/// Opens it both ways, with what was created removed between, and compares.
fn compare(root: BorrowedFd<'_>, lookup: &Lookup<'_>) {
    let creates = lookup.flags.contains(OFlags::CREATE);
    let tidy = || {
        if creates {
            for folder in ["", "dir/", "dir/dir/"] {
                let _ = unlinkat(root, format!("{folder}missing"), AtFlags::empty());
            }
        }
    };
    // The kernel says so after `..` whenever anything on the machine was renamed meanwhile.
    let again =
        || Some(lookup.ask(root)).filter(|asked| asked.as_ref().err() != Some(&Errno::AGAIN));
    let mut by_kernel = describe(std::iter::repeat_with(again).flatten().next().unwrap());
    tidy();
    let mut by_walk = describe(walk::open(root, lookup));
    tidy();
    if creates {
        // The file is made twice: any two new ones are the same.
        for opened in [&mut by_kernel, &mut by_walk].into_iter().flatten() {
            opened.1 = 0;
        }
    }
    assert_eq!(by_walk, by_kernel, "{lookup:?}");
}

/// Skips a comparison loudly where there is nothing to compare with.
fn can_compare() -> bool {
    if !has_openat2() {
        eprintln!("SKIPPED: this system has no openat2 to compare the walk with");
    }
    has_openat2()
}

const RESOLVES: [ResolveFlags; 4] = [
    BENEATH.union(NO_LINKS),
    BENEATH.union(NO_LINKS).union(ResolveFlags::NO_XDEV),
    BENEATH.union(ResolveFlags::NO_MAGICLINKS),
    NO_LINKS,
];

#[test]
fn a_walk_when_compared_with_openat2_opens_the_same_and_fails_alike() {
    if !can_compare() {
        return;
    }
    let tree = tree();
    let root = root_of(&tree);
    let quiet = OFlags::CLOEXEC | OFlags::NONBLOCK;
    let every = [
        OFlags::PATH | OFlags::CLOEXEC,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        OFlags::RDONLY | quiet,
    ];
    let short = [
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        OFlags::PATH | OFlags::RDWR | OFlags::CLOEXEC,
        OFlags::RDONLY | OFlags::NOFOLLOW | quiet,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | quiet,
        OFlags::RDONLY | OFlags::DIRECTORY | quiet,
        OFlags::WRONLY | quiet,
        OFlags::RDWR | OFlags::CREATE | quiet,
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | quiet,
        OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | quiet,
        OFlags::RDWR | OFlags::TMPFILE | quiet,
        OFlags::RDONLY | OFlags::TMPFILE | quiet,
    ];
    let row = |path: &str, flags: OFlags| {
        let creates = flags.intersects(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
        let mode = if creates { Mode::RWXU } else { Mode::empty() };
        for resolve in RESOLVES {
            // Without BENEATH, `..` leads to folders that other tests change.
            if creates && resolve == NO_LINKS {
                continue;
            }
            let path = Path::new(path);
            compare(
                root.as_fd(),
                &Lookup {
                    path,
                    flags,
                    mode,
                    resolve,
                },
            );
        }
    };
    for first in NAMES {
        for flags in every.iter().chain(&short) {
            for path in [first.to_string(), format!("{first}/"), format!("//{first}")] {
                row(&path, *flags);
            }
            for second in NAMES {
                row(&format!("{first}/{second}"), *flags);
                row(&format!("{first}//{second}//"), *flags);
            }
        }
        for (second, third) in NAMES.iter().flat_map(|a| NAMES.iter().map(move |b| (a, b))) {
            for flags in every {
                row(&format!("{first}/{second}/{third}"), flags);
            }
        }
    }
}

#[test]
fn a_walk_when_given_odd_paths_and_flags_fails_as_openat2() {
    if !can_compare() {
        return;
    }
    let tree = tree();
    let root = root_of(&tree);
    let path = OFlags::PATH | OFlags::CLOEXEC;
    let (long_name, long_path) = ("n".repeat(256), "./".repeat(2048));
    let chain = |count: usize| {
        for n in 0..count {
            let to = if n == 0 {
                "file".to_owned()
            } else {
                format!("l{}", n - 1)
            };
            let _ = symlink(to, tree.path().join(format!("root/l{n}")));
        }
        format!("l{}", count - 1)
    };
    for given in [
        "",
        "/",
        "//",
        "/..",
        "/../",
        "./",
        "a\0b",
        &long_name,
        &long_path,
        &long_path[..4094],
        &chain(40),
        &chain(41),
        "dir/dir/../../dir/../..",
        "dir/dir/../../dir/../../root/file",
    ] {
        for resolve in RESOLVES {
            for mode in [Mode::empty(), Mode::RWXU] {
                let lookup = Lookup {
                    path: Path::new(given),
                    flags: path,
                    mode,
                    resolve,
                };
                compare(root.as_fd(), &lookup);
            }
        }
    }
    // What a walk starts in may not be a folder.
    let file = rustix::fs::open(tree.path().join("file"), path, Mode::empty()).unwrap();
    for given in ["x", ".", ".."] {
        compare(
            file.as_fd(),
            &Lookup::of(Path::new(given), path, RESOLVES[0]),
        );
    }
}

#[test]
fn another_mount_when_found_by_a_walk_is_refused_as_by_openat2() {
    let root = open_folder(Path::new("/"));
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    for given in ["proc", "proc/self", "proc/..", "dev/null"] {
        let lookup = Lookup::of(Path::new(given), flags, RESOLVES[1]);
        let by_walk = describe(walk::open(root.as_fd(), &lookup));
        if fs::exists("/proc/self").unwrap() && given == "proc" {
            assert_eq!(by_walk, Err(Errno::XDEV));
        }
        if can_compare() {
            assert_eq!(by_walk, describe(lookup.ask(root.as_fd())), "{given}");
        }
    }
}

#[test]
fn a_link_of_the_kernels_own_when_met_by_a_walk_leads_nowhere() {
    let root = open_folder(Path::new("/"));
    let own = format!("proc/{}", std::process::id());
    for given in ["root/etc", "cwd", "cwd/x", "fd/0", "exe"] {
        let given = format!("{own}/{given}");
        for resolve in [RESOLVES[0], RESOLVES[3]] {
            let lookup = Lookup::of(Path::new(&given), OFlags::RDONLY, resolve);
            let by_walk = describe(walk::open(root.as_fd(), &lookup));
            assert!(by_walk.is_err(), "{given}");
            if can_compare() {
                assert_eq!(by_walk, describe(lookup.ask(root.as_fd())), "{given}");
            }
        }
        // Its text is followed, and leads out of the folder.
        let lookup = Lookup::of(Path::new(&given), OFlags::RDONLY, RESOLVES[2]);
        assert!(walk::open(root.as_fd(), &lookup).is_err(), "{given}");
    }
}

#[test]
fn a_walk_of_very_many_steps_ends() {
    let tree = tree();
    let root = root_of(&tree);
    let deep = "d/".repeat(200);
    fs::create_dir_all(tree.path().join("root").join(&deep)).unwrap();
    let path = format!("{deep}{}", "d/../".repeat(700));
    fs::create_dir(tree.path().join("root").join(&deep).join("d")).unwrap();
    let lookup = Lookup::of(Path::new(&path), OFlags::PATH, RESOLVES[0]);
    assert_eq!(walk::open(root.as_fd(), &lookup).err(), Some(Errno::LOOP));
}

/// While a thread swaps `dir` for a link to the folder outside, and moves it there and back, no walk reads a file of the outside.
#[test]
fn a_walk_when_folders_are_swapped_meanwhile_never_leaves_the_root() {
    let tree = tree();
    let (root, above) = (root_of(&tree), open_folder(tree.path()));
    // The folders that a walk would see from one that was moved out.
    for folder in ["", "dir/"] {
        fs::write(tree.path().join(folder).join("other"), "outside").unwrap();
    }
    let stop = AtomicBool::new(false);
    let mut inside = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mv = |from: &OwnedFd, a: &str, to: &OwnedFd, b: &str| {
                rustix::fs::renameat(from, a, to, b).unwrap();
            };
            rustix::fs::symlinkat("..", &root, "link").unwrap();
            while !stop.load(Ordering::Relaxed) {
                mv(&root, "dir", &above, "moved");
                mv(&root, "link", &root, "dir");
                mv(&root, "dir", &root, "link");
                mv(&above, "moved", &root, "dir");
            }
        });
        let paths = [
            "dir/file",
            "dir/other",
            "dir/../file",
            "dir/dir/../../file",
            "dir/dir/../file",
            "dir/../other",
        ];
        let mut rounds = 0;
        while rounds < 5_000 || (inside < 100 && rounds < 5_000_000) {
            rounds += 1;
            for (path, resolve) in paths
                .iter()
                .flat_map(|path| [(path, RESOLVES[0]), (path, RESOLVES[2])])
            {
                let lookup = Lookup::of(Path::new(path), OFlags::RDONLY, resolve);
                if let Ok(opened) = walk::open(root.as_fd(), &lookup) {
                    let mut text = String::new();
                    fs::File::from(opened).read_to_string(&mut text).unwrap();
                    assert_eq!(text, "inside", "{path}");
                    inside += 1;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(inside >= 100, "the walk opened something {inside} times");
}

#[test]
fn what_callers_open_is_what_they_ask_for() {
    let tree = tree();
    let root = root_of(&tree);
    let read = OFlags::RDONLY | OFlags::NONBLOCK;
    let no_links = |path: &str| super::open_beneath(&root, Path::new(path), read).err();
    let on_mount = |path: &str| super::open_beneath_on_mount(&root, Path::new(path), read).err();
    let with_links =
        |path: &str| super::open_beneath_with_links(&root, Path::new(path), read).err();
    let anywhere = |path: &str| super::open_without_links(&tree.path().join(path), read).err();
    assert_eq!(
        [
            no_links("dir/file"),
            on_mount("file"),
            with_links("to_file"),
            anywhere("file")
        ],
        [None; 4]
    );
    let (links, out) = (Some(Errno::LOOP), Some(Errno::XDEV));
    assert_eq!(
        [
            no_links("to_file"),
            on_mount("to_dir/file"),
            with_links("circle"),
            anywhere("root/to_file")
        ],
        [links; 4]
    );
    assert_eq!(
        [
            no_links("../file"),
            on_mount("/etc"),
            with_links("up/file"),
            with_links("absolute")
        ],
        [out; 4]
    );
    let listed = Dir::new(super::open_beneath(&root, Path::new("."), read).unwrap()).unwrap();
    assert_eq!(listed.count(), NAMES.len() - 1);
}
