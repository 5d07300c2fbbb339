//! Fuzz targets of the standard tools: each runs for a few seconds over its corpus, and longer with `make fuzz`.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose scene cannot be set has failed"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use haft::workspace::Workspace;
use haft::{Depth, TypedTool};
use haft_builtins::files::patch::{ApplyPatchInput, apply_patch};
use haft_builtins::files::tools::ApplyPatch;
use haft_builtins::files::{FileCaller, FileOptions, Files};
use haft_fuzz::fuzz;

const WORDS: &[&str] = &[
    "*** Begin Patch\n",
    "*** End Patch\n",
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "*** End of File\n",
    "@@\n",
    "@@ a 1\n",
    "@@ -1,3 +1,3 @@\n",
    "@@ -0,0 +1 @@\n",
    " a 1\n",
    "-a 2\n",
    "+x\n",
    "diff --git a/a b/a\n",
    "--- a/a\n",
    "+++ b/a\n",
    "/dev/null\n",
    "rename from a\n",
    "rename to n\n",
    "new file mode 100644\n",
    "deleted file mode 100644\n",
    "\\ No newline at end of file\n",
    "../",
    "out/",
    "link",
    "\r\n",
    "\0",
];

/// Creates the files that the corpus refers to; `out` links out of the workspace.
fn furnish(root: &Path) {
    fs::create_dir_all(root.join("dir")).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(root.join(name), format!("{name} 1\n{name} 2\n{name} 3\n")).unwrap();
    }
    fs::write(root.join("dir/f"), "f\n").unwrap();
    fs::write(root.join("crlf"), "one\r\ntwo\r\n").unwrap();
    fs::write(root.join("open"), "last\nline").unwrap();
    fs::write(root.join("same"), "x\nx\nx\n").unwrap();
    symlink("a", root.join("link")).unwrap();
    symlink("../outside", root.join("out")).unwrap();
}

/// Returns everything below a folder.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
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
            all.insert(path, text);
        }
    }
    all
}

/// A patch is applied or changes nothing; outside the workspace nothing changes in either case.
#[test]
fn fuzz_a_patch_is_applied_or_changes_nothing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/patch");
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("ws"), dir.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    let beyond = || fs::read_dir(dir.path()).unwrap().count();
    let before = RefCell::new(None);
    fuzz(&corpus, WORDS, |input| {
        let mut before = before.borrow_mut();
        let furnished = before.get_or_insert_with(|| {
            let _ = fs::remove_dir_all(&root);
            furnish(&root);
            tree(&root)
        });
        let files = Files::new(
            Workspace::open(&root).unwrap(),
            FileOptions::default(),
            None,
        );
        let input = ApplyPatchInput {
            patch: String::from_utf8_lossy(input).into_owned(),
        };
        let applied = ApplyPatch(files.clone())
            .intent(&input, Depth::Permissions)
            .and_then(|intent| {
                apply_patch(
                    &files,
                    &input,
                    &FileCaller::cleared_for(intent.permissions, &files),
                    &|| false,
                )
            });
        match applied {
            Err(_) => assert_eq!(&tree(&root), furnished),
            Ok((data, _)) => {
                assert!(!data.files.is_empty());
                *before = None;
            }
        }
        assert_eq!(fs::read(outside.join("kept")).unwrap(), b"kept");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(beyond(), 2);
    });
}
