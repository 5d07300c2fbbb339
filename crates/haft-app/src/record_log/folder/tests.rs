//! A log on disk: extended, cut at every byte, changed, replaced, written by many at once, and with a million leaves.

use std::os::unix::fs::symlink;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft::audit::index::ClosedEvent;
use tempfile::TempDir;

use super::*;

struct Scene {
    root: TempDir,
    place: LogPlace,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap().join("state");
        fs::create_dir(&home).unwrap();
        let place = LogPlace::new(&home, None, Some(&home.parent().unwrap().join("data")));
        Self { root, place }
    }

    /// Returns a scene with so many leaves.
    fn with(count: u64) -> Self {
        let scene = Self::new();
        for number in 0..count {
            scene.append(number).unwrap();
        }
        scene
    }

    fn append(&self, number: u64) -> Result<u64, LogFault> {
        let mut log = OpenLog::open(&self.place)?;
        log.append(&[leaf(number)])?;
        Ok(log.size())
    }

    fn size(&self) -> Result<u64, LogFault> {
        OpenLog::open(&self.place).map(|log| log.size())
    }

    fn seen(&self) -> PathBuf {
        self.place.seen.as_ref().unwrap().path().to_owned()
    }

    fn key(&self) -> PathBuf {
        self.place.key.clone().unwrap()
    }
}

fn leaf(number: u64) -> RunLeaf {
    RunLeaf {
        run: format!("run-{number}"),
        ended: "2026-11-28T19:31:45.001Z".to_owned(),
        closed: ClosedEvent {
            count: number + 1,
            head: format!("{number:064x}"),
            calls: number,
            seal: "a".repeat(64),
        },
    }
}

#[test]
fn a_log_cut_at_any_byte_is_mended_only_where_nothing_was_signed() {
    let scene = Scene::with(2);
    let signed = fs::read(scene.place.leaves()).unwrap();
    let third = leaf(2).to_line() + "\n";
    let whole = [&signed[..], third.as_bytes()].concat();
    // As a process leaves them that is killed between the leaves and the checkpoint.
    for end in signed.len()..=whole.len() {
        fs::write(scene.place.leaves(), &whole[..end]).unwrap();
        assert_eq!(scene.size().unwrap(), 2, "{end}");
        assert_eq!(fs::read(scene.place.leaves()).unwrap(), signed, "{end}");
    }
    for end in 0..signed.len() {
        fs::write(scene.place.leaves(), &whole[..end]).unwrap();
        let fault = scene.size().unwrap_err();
        assert!(matches!(fault, LogFault::Changed(_)), "{end}: {fault}");
        assert_eq!(
            fs::read(scene.place.leaves()).unwrap(),
            &whole[..end],
            "evidence stays"
        );
    }
}

#[test]
fn a_leaf_with_any_byte_changed_does_not_fit_the_checkpoint() {
    let scene = Scene::with(2);
    let signed = fs::read(scene.place.leaves()).unwrap();
    fs::remove_file(scene.place.folder().join(EDGE)).unwrap();
    for at in 0..signed.len() {
        let mut other = signed.clone();
        other[at] ^= 1;
        fs::write(scene.place.leaves(), other).unwrap();
        let fault = scene.size().unwrap_err();
        assert!(matches!(fault, LogFault::Changed(_)), "{at}: {fault}");
    }
    fs::write(scene.place.leaves(), signed).unwrap();
    assert_eq!(scene.size().unwrap(), 2);
}

/// Changes the folder `other`, a copy of the state folder from when its log had one leaf; later a link leads there in place of the one
/// whose log has two.
type Replace = fn(state: &Path, other: &Path);

#[test]
fn a_log_behind_a_link_in_place_of_the_state_folder_is_compared_with_what_lay_there() {
    let rows: [(&str, &str, Replace); 4] = [
        ("an older copy", "cut: 1 of 2 leaves", |_, _| ()),
        ("one without a log", "its leaves are gone", |_, other| {
            fs::remove_dir_all(other.join(LOG)).unwrap();
        }),
        ("another log", "and was haft-record/", |state, other| {
            fs::remove_dir_all(other.join(LOG)).unwrap();
            let data = state.with_file_name("data");
            let place = LogPlace::new(other, None, Some(&data));
            OpenLog::open(&place).unwrap().append(&[leaf(7)]).unwrap();
        }),
        ("the state folder itself, moved", "", |state, other| {
            fs::remove_dir_all(other).unwrap();
            copy(state, other);
        }),
    ];
    for (name, expect, replace) in rows {
        let scene = Scene::with(1);
        let (state, data) = (scene.place.home.clone(), scene.root.path().join("data"));
        let other = state.with_file_name("other");
        copy(&state, &other);
        scene.append(1).unwrap();
        replace(&state, &other);
        fs::rename(&state, state.with_file_name("gone")).unwrap();
        symlink(&other, &state).unwrap();
        let place = LogPlace::new(&state, None, Some(&data));
        match (expect, OpenLog::open(&place)) {
            ("", Ok(mut log)) => {
                log.append(&[leaf(2)]).unwrap();
                // Also where the folder lies by its own name.
                drop(log);
                let place = LogPlace::new(&other, None, Some(&data));
                assert_eq!(OpenLog::open(&place).unwrap().size(), 3);
            }
            (part, Err(fault)) if !part.is_empty() => {
                assert!(fault.to_string().contains(part), "{name}: {fault}");
            }
            (_, opened) => panic!("{name}: {:?}", opened.map(|log| log.size())),
        }
    }
}

/// Copies a state folder that holds nothing but its log.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join(LOG)).unwrap();
    for entry in fs::read_dir(from.join(LOG)).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(LOG).join(entry.file_name())).unwrap();
        }
    }
}

/// What is done to a log of two leaves; its older checkpoint is in the state folder's parent, as `older`.
type Change = fn(&Scene);

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_log_that_is_not_what_was_signed_is_not_extended() {
    let other_key = |scene: &Scene| {
        fs::remove_file(scene.key()).unwrap();
        key::load_or_make(Some(&scene.key())).unwrap();
    };
    let rows: [(&str, &str, Change); 20] = [
        ("as it was", "", |_| ()),
        ("without its edge", "", |scene| {
            fs::remove_file(scene.place.folder().join(EDGE)).unwrap();
        }),
        ("with another edge", "", |scene| {
            let edge = scene.place.folder().join(EDGE);
            let text = fs::read_to_string(&edge).unwrap();
            fs::write(edge, text.replace('A', "B")).unwrap();
        }),
        ("with an edge that says fewer bytes", "", |scene| {
            let edge = scene.place.folder().join(EDGE);
            let text = fs::read_to_string(&edge).unwrap();
            let (_, rest) = text.split_once('\n').unwrap();
            fs::write(edge, format!("3\n{rest}")).unwrap();
        }),
        ("killed before the checkpoint was seen", "", |scene| {
            fs::copy(scene.older(), scene.seen()).unwrap();
        }),
        (
            "lost the name of the checkpoint with the power",
            "",
            |scene| {
                fs::copy(scene.older(), scene.place.checkpoint()).unwrap();
            },
        ),
        ("without its checkpoint", "", |scene| {
            fs::remove_file(scene.place.checkpoint()).unwrap();
        }),
        (
            "without both checkpoints",
            "checkpoint is missing",
            |scene| {
                fs::remove_file(scene.place.checkpoint()).unwrap();
                fs::remove_file(scene.seen()).unwrap();
            },
        ),
        ("with an empty checkpoint", "not a signed note", |scene| {
            fs::write(scene.place.checkpoint(), "").unwrap();
        }),
        (
            "with a checkpoint of another text",
            "signature is wrong",
            |scene| {
                let text = fs::read_to_string(scene.place.checkpoint()).unwrap();
                fs::write(scene.place.checkpoint(), text.replacen("\n2\n", "\n3\n", 1)).unwrap();
            },
        ),
        ("with another key", "signed by another key", other_key),
        (
            "of another log of the same key",
            "and was haft-record/",
            |scene| {
                let pair = key::load(Some(&scene.key())).unwrap();
                let other = Checkpoint {
                    origin: "haft-record/other".to_owned(),
                    size: 2,
                    root: [0; 32],
                };
                fs::write(scene.place.checkpoint(), other.sign(&pair)).unwrap();
            },
        ),
        ("rolled back", "cut: 1 of 2 leaves", |scene| {
            fs::copy(scene.older(), scene.place.checkpoint()).unwrap();
            let leaves = fs::read_to_string(scene.place.leaves()).unwrap();
            let first = leaves.split_inclusive('\n').next().unwrap();
            fs::write(scene.place.leaves(), first).unwrap();
        }),
        ("without its leaves", "its leaves are gone", |scene| {
            fs::remove_file(scene.place.leaves()).unwrap();
        }),
        ("removed", "its leaves are gone", |scene| {
            fs::remove_dir_all(scene.place.folder()).unwrap();
        }),
        ("without its key", "is missing", |scene| {
            fs::remove_file(scene.key()).unwrap();
        }),
        ("with a link as its leaves", "leaves", |scene| {
            let real = scene.place.folder().join("real");
            fs::rename(scene.place.leaves(), &real).unwrap();
            symlink(real, scene.place.leaves()).unwrap();
        }),
        ("with a folder as its leaves", "leaves", |scene| {
            fs::remove_file(scene.place.leaves()).unwrap();
            fs::create_dir(scene.place.leaves()).unwrap();
        }),
        (
            "with a pipe as its checkpoint",
            "not a regular file",
            |scene| {
                fs::remove_file(scene.place.checkpoint()).unwrap();
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                let kind = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, scene.place.checkpoint(), kind, mode, 0)
                    .unwrap();
            },
        ),
        ("that is a link", "not a folder", |scene| {
            let real = scene.root.path().join("real");
            fs::rename(scene.place.folder(), &real).unwrap();
            symlink(real, scene.place.folder()).unwrap();
        }),
    ];
    for (name, expect, change) in rows {
        let scene = Scene::with(1);
        fs::copy(scene.place.checkpoint(), scene.older()).unwrap();
        scene.append(1).unwrap();
        change(&scene);
        match (expect, scene.append(2)) {
            ("", Ok(size)) => assert_eq!(size, 3, "{name}"),
            (part, Err(fault)) if !part.is_empty() => {
                assert!(fault.to_string().contains(part), "{name}: {fault}");
                assert!(!fault.advice(&scene.place).is_empty(), "{name}");
                assert!(scene.append(2).is_err(), "{name}: it stays so");
            }
            (_, found) => panic!("{name}: {found:?}"),
        }
    }
}

impl Scene {
    fn older(&self) -> PathBuf {
        self.root.path().join("older")
    }
}

#[test]
fn many_that_write_at_once_lose_no_leaf() {
    let scene = Scene::new();
    std::thread::scope(|threads| {
        for writer in 0..6_u64 {
            let scene = &scene;
            threads.spawn(move || {
                for number in 0..4 {
                    scene.append(writer * 10 + number).unwrap();
                }
            });
        }
    });
    fs::remove_file(scene.place.folder().join(EDGE)).unwrap();
    assert_eq!(scene.size().unwrap(), 24);
    let text = fs::read_to_string(scene.place.leaves()).unwrap();
    let mut runs: Vec<String> = text
        .lines()
        .map(|line| RunLeaf::of_line(line).unwrap().run)
        .collect();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), 24);
}

#[test]
fn a_leaf_after_a_million_others_reads_none_of_them() {
    const MILLION: u64 = 1_000_000;
    let scene = Scene::with(1);
    let pair = key::load(Some(&scene.key())).unwrap();
    let before =
        checkpoint::unproved(&fs::read_to_string(scene.place.checkpoint()).unwrap()).unwrap();
    // Nodes of any content: what they stand for is never read, and the file of leaves is a hole that holds no line.
    let node = STANDARD.encode([0; 32]) + "\n";
    let nodes = node.repeat(MILLION.count_ones() as usize);
    let edge = TreeEdge::of_text(&format!("{MILLION}\n{nodes}")).unwrap();
    let checkpoint = Checkpoint {
        root: edge.root(),
        size: MILLION,
        ..before
    };
    let bytes = MILLION;
    let leaves = fs::File::create(scene.place.leaves()).unwrap();
    leaves.set_len(bytes - 1).unwrap();
    file::append(&scene.place.leaves(), "\n").unwrap();
    let note = checkpoint.sign(&pair);
    fs::write(scene.place.checkpoint(), &note).unwrap();
    fs::write(scene.seen(), &note).unwrap();
    fs::write(
        scene.place.folder().join(EDGE),
        format!("{bytes}\n{}", edge.to_text()),
    )
    .unwrap();
    assert_eq!(scene.append(7).unwrap(), MILLION + 1);
    assert_eq!(scene.append(8).unwrap(), MILLION + 2);
    // Without the edge they are read, and do not fit.
    fs::remove_file(scene.place.folder().join(EDGE)).unwrap();
    assert!(matches!(scene.size(), Err(LogFault::Changed(_))));
}
