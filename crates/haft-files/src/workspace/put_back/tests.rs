//! What another program puts in a place between a change and its reversal is never lost.

use std::fs;
use std::os::fd::AsFd as _;
use std::path::Path;

use super::{CompletedChange, put_back};
use crate::workspace::write::{TemporaryFile, draft_name};
use crate::workspace::{FileStamp, Workspace, WorkspaceError};

const OLD: &str = "old";
const NEW: &str = "new";
const THEIRS: &str = "theirs, saved since";

fn stamp(path: &Path) -> FileStamp {
    FileStamp::of(&rustix::fs::lstat(path).unwrap())
}

/// Returns the texts of all files in a folder, that of `file` first.
fn texts(folder: &Path) -> Vec<String> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    entries.sort_by_key(|entry| entry.file_name() != "file");
    let read = |entry: fs::DirEntry| fs::read_to_string(entry.path()).unwrap();
    entries.into_iter().map(read).collect()
}

fn save(path: &Path) {
    fs::write(path.with_extension("save"), THEIRS).unwrap();
    fs::rename(path.with_extension("save"), path).unwrap();
}

#[test]
fn what_was_put_there_since_stays_and_the_old_text_beside_it() {
    type Act = fn(&Path);
    type Row<'a> = (Option<&'a str>, Option<&'a str>, Act, &'a [&'a str]);
    let (nothing, save): (Act, Act) = (|_| (), save);
    let edit: Act = |path| fs::write(path, THEIRS).unwrap();
    // What is there before and after the change, what another program then does, and the final texts.
    let rows: [Row<'_>; 9] = [
        (Some(OLD), Some(NEW), nothing, &[OLD]),
        (Some(OLD), Some(NEW), edit, &[THEIRS, OLD]),
        (Some(OLD), Some(NEW), save, &[THEIRS, OLD]),
        (
            Some(OLD),
            Some(NEW),
            |path| fs::remove_file(path).unwrap(),
            &[OLD],
        ),
        (Some(OLD), None, nothing, &[OLD]),
        (Some(OLD), None, save, &[THEIRS, OLD]),
        (None, Some(NEW), nothing, &[]),
        (None, Some(NEW), edit, &[THEIRS]),
        (None, Some(NEW), save, &[THEIRS]),
    ];
    for (row, (before, after, act, expected)) in rows.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        let folder = fs::File::open(dir.path()).unwrap();
        let path = dir.path().join("file");
        fs::write(&path, OLD).unwrap();
        let place = workspace.place("file").unwrap();
        fs::remove_file(&path).unwrap();
        let old = before.map(|text| {
            let name = draft_name();
            fs::write(dir.path().join(&name), text).unwrap();
            let folder = folder.as_fd();
            TemporaryFile {
                folder,
                name,
                done: false,
            }
        });
        let new = after.map(|text| {
            fs::write(&path, text).unwrap();
            stamp(&path)
        });
        let made = CompletedChange {
            place: &place,
            name: "file".as_ref(),
            folder: folder.as_fd(),
            old,
            new,
        };
        act(&path);
        let told = put_back(vec![made], WorkspaceError::Root);
        assert_eq!(texts(dir.path()), expected, "row {row}: {told}");
        let lost = matches!(told, WorkspaceError::NotPutBack { .. });
        let gone = path.symlink_metadata().is_err() && before.is_some();
        assert_eq!(
            lost,
            expected.contains(&THEIRS) || gone,
            "row {row}: {told}"
        );
    }
}
