//! Changes of commands in the upper folder of a view: read, and applied.

use std::fs;
use std::path::Path;

use haft::change::collect::{CollectedChanges, ViewCreation};
use haft::workspace::Workspace;
use measure::{Row, interleave, wall_ms};

/// Number of files in the large set.
const FILES: usize = 10_000;
/// Size of the large file in bytes.
const BYTES: usize = 1 << 30;

pub(crate) fn measure(rounds: usize) {
    interleave(
        rounds.min(5),
        vec![
            (
                Row::new("haft/collect/10000 files", "ms"),
                Box::new(|| of(&many, false)),
            ),
            (
                Row::new("haft/apply/10000 files, each", "us"),
                Box::new(|| of(&many, true) * 1e3 / FILES as f64),
            ),
            (
                Row::new("haft/apply/1 GB file", "ms"),
                Box::new(|| of(&large, true)),
            ),
        ],
    );
}

/// Returns the milliseconds to collect, or apply, the changes that `make` leaves in a workspace and a view's folder.
fn of(make: &dyn Fn(&Path, &Path), applying: bool) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, upper) = (folder.path().join("ws"), folder.path().join("upper"));
    for path in [&root, &upper] {
        fs::create_dir(path).expect("a folder");
    }
    make(&root, &upper);
    // Excludes what the scene left unwritten in memory.
    let synced = std::process::Command::new("sync")
        .arg("-f")
        .arg(&root)
        .status();
    assert!(synced.is_ok_and(|status| status.success()), "sync");
    let since = folder.path().join("since");
    fs::create_dir(&since).expect("a folder");
    let since = ViewCreation::of(&since).expect("a time");
    let workspace = Workspace::open(&root).expect("a workspace");
    let (collecting, collected) =
        wall_ms(|| CollectedChanges::collect(&workspace, &upper, since).expect("changes"));
    if !applying {
        return collecting;
    }
    let changer = workspace.unrecorded();
    let (ms, applied) = wall_ms(|| collected.apply(&workspace, &changer, &|_| true));
    applied.expect("they are applied");
    ms
}

fn many(root: &Path, upper: &Path) {
    for number in 0..FILES {
        let (folder, file) = (format!("d{}", number / 100), format!("f{number}"));
        for (place, text) in [(root, "before"), (upper, "after")] {
            let folder = place.join(&folder);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(&file), text).expect("a file");
        }
    }
}

fn large(root: &Path, upper: &Path) {
    fs::write(root.join("large"), "before").expect("a file");
    fs::write(upper.join("large"), vec![7; BYTES]).expect("a file");
}
