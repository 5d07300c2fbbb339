//! Tests of artifacts on disk: the duties that only a disk adds.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;
use crate::wait::wait;

const DAY: i128 = 24 * 3_600_000_000_000;

fn owner(run: &str) -> ArtifactOwner {
    ArtifactOwner {
        principal: Principal::local("ada"),
        run: RunId::new(run),
    }
}

fn put(store: &DirArtifacts, run: &str, text: &str) -> ArtifactRef {
    wait(store.put(
        &owner(run),
        "text/plain",
        Bytes::copy_from_slice(text.as_bytes()),
    ))
    .unwrap()
}

fn read(store: &DirArtifacts, run: &str, reference: &ArtifactRef) -> Result<Bytes, ArtifactError> {
    wait(store.read(&owner(run), reference, 0..u64::MAX))
}

/// Opens the same folder as another process would, some days later.
fn later(root: &Path, now: fn() -> i128) -> DirArtifacts {
    DirArtifacts {
        now,
        ..DirArtifacts::new(root)
    }
}

#[test]
fn everything_is_private() {
    fn check(dir: &Path) -> usize {
        let entries = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let seen = entries.map(|path| {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            let below = if path.is_dir() { check(&path) } else { 0 };
            let usual = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, usual, "{mode:o} {}", path.display());
            below + 1
        });
        seen.sum()
    }
    let home = tempfile::tempdir().unwrap();
    let store = DirArtifacts::new(home.path().join("artifacts"));
    store.pin(&owner("r"));
    put(&store, "r", "secret");
    assert!(check(home.path()) > 10);
}

#[test]
fn bytes_that_changed_on_the_disk_are_found_out() {
    let root = tempfile::tempdir().unwrap();
    let store = DirArtifacts::new(root.path());
    let reference = put(&store, "r", "as it was");
    read(&store, "r", &reference).unwrap();
    let blob = store.blob(&reference);
    for (name, harm) in [
        ("edited", &b"as it is."[..]),
        ("cut", b"as it"),
        ("emptied", b""),
    ] {
        fs::write(&blob, harm).unwrap();
        for store in [&store, &DirArtifacts::new(root.path())] {
            let error = wait(store.read(&owner("r"), &reference, 0..4)).unwrap_err();
            assert!(
                matches!(error, ArtifactError::Damaged(_)),
                "{name}: {error}"
            );
        }
    }
    assert_eq!(put(&store, "r", "as it was"), reference, "stored again");
    assert_eq!(read(&store, "r", &reference).unwrap(), "as it was");

    fs::remove_file(&blob).unwrap();
    let error = read(&store, "r", &reference).unwrap_err().to_string();
    assert!(
        error.contains(reference.as_str()) && error.contains("cannot be read"),
        "{error}"
    );
    fs::create_dir(&blob).unwrap();
    assert!(read(&store, "r", &reference).is_err());
}

#[test]
fn an_artifact_lives_seven_days_from_the_end_of_its_run() {
    let root = tempfile::tempdir().unwrap();
    let store = DirArtifacts::new(root.path());
    store.pin(&owner("lives"));
    store.pin(&owner("lives"));
    let held = put(&store, "lives", "held");
    let loose = put(&store, "loose", "loose");
    let both = put(&store, "loose", "held");
    assert_eq!(held, both);

    let in_six_days = later(root.path(), || clock::now() + 6 * DAY);
    assert_eq!(wait(in_six_days.sweep()).unwrap(), SweepReport::default());
    let in_eight_days = later(root.path(), || clock::now() + 8 * DAY);
    assert_eq!(
        wait(in_eight_days.sweep()).unwrap(),
        SweepReport {
            artifacts: 2,
            blobs: 1,
            ..SweepReport::default()
        }
    );
    assert!(matches!(
        read(&store, "loose", &loose),
        Err(ArtifactError::NotFound(_))
    ));
    assert!(matches!(
        read(&store, "loose", &held),
        Err(ArtifactError::NotFound(_))
    ));
    assert_eq!(read(&store, "lives", &held).unwrap(), "held");

    // Its time to live starts at the last unpin.
    store.unpin(&owner("lives"));
    assert_eq!(wait(in_eight_days.sweep()).unwrap(), SweepReport::default());
    let store = DirArtifacts {
        now: || clock::now() + 8 * DAY,
        ..store
    };
    store.unpin(&owner("lives"));
    assert_eq!(wait(in_eight_days.sweep()).unwrap(), SweepReport::default());
    let in_sixteen_days = later(root.path(), || clock::now() + 16 * DAY);
    assert_eq!(
        wait(in_sixteen_days.sweep()).unwrap(),
        SweepReport {
            artifacts: 1,
            blobs: 1,
            ..SweepReport::default()
        }
    );
    assert!(
        wait(store.list(&Principal::local("ada"), None))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn the_pins_of_a_process_that_is_gone_end() {
    let root = tempfile::tempdir().unwrap();
    let crashed = DirArtifacts::new(root.path());
    crashed.pin(&owner("r"));
    let reference = put(&crashed, "r", "left behind");
    // A process that ends abruptly only releases its files.
    drop(crashed);
    let in_eight_days = later(root.path(), || clock::now() + 8 * DAY);
    assert_eq!(
        wait(in_eight_days.sweep()).unwrap(),
        SweepReport::default(),
        "its time runs from now on"
    );
    assert_eq!(
        read(&in_eight_days, "r", &reference).unwrap(),
        "left behind"
    );
    let in_sixteen_days = later(root.path(), || clock::now() + 16 * DAY);
    assert_eq!(
        wait(in_sixteen_days.sweep()).unwrap(),
        SweepReport {
            artifacts: 1,
            blobs: 1,
            ..SweepReport::default()
        }
    );
}

#[test]
fn a_full_quota_makes_room_of_what_expired() {
    let root = tempfile::tempdir().unwrap();
    let store = DirArtifacts::new(root.path()).with_quota(10);
    store.pin(&owner("r"));
    put(&store, "r", "12345678");
    let error = wait(store.put(&owner("s"), "text/plain", Bytes::from_static(b"abc"))).unwrap_err();
    assert!(
        matches!(error, ArtifactError::Quota { bytes: 3, left: 2 }),
        "{error}"
    );
    store.unpin(&owner("r"));
    let in_eight_days = later(root.path(), || clock::now() + 8 * DAY).with_quota(10);
    put(&in_eight_days, "s", "abc");
    assert_eq!(
        wait(in_eight_days.list(&Principal::local("ada"), None))
            .unwrap()
            .len(),
        1
    );
    assert_eq!(fs::read_dir(root.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn many_who_store_at_once_keep_all_and_count_right() {
    let root = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for n in 0..6 {
            let root = root.path();
            scope.spawn(move || {
                // A separate store: to the disk, it is another process.
                let store = DirArtifacts::new(root);
                let run = format!("r{}", n % 3);
                for m in 0..8 {
                    let shared = put(&store, &run, &format!("shared {m}"));
                    put(&store, &run, &format!("own {n} {m}"));
                    assert_eq!(read(&store, &run, &shared).unwrap(), format!("shared {m}"));
                    if m == 4 {
                        assert_eq!(wait(store.sweep()).unwrap(), SweepReport::default());
                    }
                }
            });
        }
    });
    let store = DirArtifacts::new(root.path());
    let all = wait(store.list(&Principal::local("ada"), None)).unwrap();
    assert_eq!(all.len(), 3 * 8 + 6 * 8);
    let tenant = store.tenant_dir(&Principal::local("ada"));
    let total = all.iter().map(|info| info.bytes).sum::<u64>();
    assert_eq!(
        (
            owners::usage(&tenant).unwrap(),
            owners::counted(&tenant).unwrap()
        ),
        (total, total)
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_not_a_loss() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let store = DirArtifacts::new(&file);
    assert!(wait(store.put(&owner("r"), "text/plain", Bytes::from_static(b"x"))).is_err());
    store.pin(&owner("r"));
    assert!(read(&store, "r", &ArtifactRef::of(b"x")).is_err());
}

#[test]
fn a_sweep_is_due_once_in_a_while_whoever_made_the_last() {
    let root = tempfile::tempdir().unwrap();
    let day = Duration::from_hours(24);
    put(&DirArtifacts::new(root.path()), "r", "old");
    let swept = |now| wait(later(root.path(), now).sweep_if_due(day)).unwrap();
    let some = |artifacts, blobs| {
        Some(SweepReport {
            artifacts,
            blobs,
            left: None,
        })
    };
    assert_eq!(swept(clock::now), some(0, 0), "never swept before");
    assert_eq!(swept(clock::now), None, "just swept");
    assert_eq!(swept(|| clock::now() + 8 * DAY), some(1, 1));
    assert_eq!(swept(|| clock::now() + 8 * DAY), None);
    assert_eq!(swept(clock::now), some(0, 0), "the clock was set back");
    let nowhere = DirArtifacts::new(root.path().join("none"));
    assert_eq!(wait(nowhere.sweep_if_due(day)).unwrap(), some(0, 0));
    assert!(!root.path().join("none").exists(), "nothing is made for it");
}
