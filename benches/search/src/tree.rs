//! A tree of source code to search: copies of the crates in cargo's registry, so that it holds nothing else.

use std::fs;
use std::path::Path;

use measure::sources;

/// Enough files, and the maximum number of bytes.
const FILES: usize = 9_000;
const BYTES: u64 = 150_000_000;

/// Copies crates into `root` and returns the number of files.
pub(crate) fn build(root: &Path) -> usize {
    let mut so_far = Copied::default();
    for folder in sources::crates() {
        if so_far.files >= FILES || so_far.bytes >= BYTES {
            break;
        }
        let name = folder.file_name().unwrap_or_default();
        copy(&folder, &root.join(name), &mut so_far);
    }
    so_far.files
}

/// What was copied so far.
#[derive(Default)]
struct Copied {
    files: usize,
    bytes: u64,
}

fn copy(from: &Path, to: &Path, so_far: &mut Copied) {
    let Ok(entries) = fs::read_dir(from) else {
        return;
    };
    fs::create_dir_all(to).expect("a folder");
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(about) = path.symlink_metadata() else {
            continue;
        };
        if about.is_dir() {
            copy(&path, &to.join(name), so_far);
        } else if about.is_file() {
            fs::copy(&path, to.join(name)).expect("a copy");
            so_far.files += 1;
            so_far.bytes += about.len();
        }
    }
}
