//! The request about a change set of 1,000 files: collected from a command's copy, hashed, and shown within the budget of one request.

use std::fs;
use std::path::Path;

use haft::change::collect::{CollectedChanges, ViewCreation};
use haft::workspace::Workspace;
use measure::{Row, Step, wall_ms};

/// Number of files.
const FILES: usize = 1_000;
/// Lines of each file, one of which is changed.
const LINES: usize = 200;

/// A workspace, and the upper folder of the copy on which a command changed its files.
pub(crate) struct ChangeSet {
    workspace: Workspace,
    since: ViewCreation,
    folder: tempfile::TempDir,
}

impl ChangeSet {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("a folder");
            path
        };
        let (root, upper) = (at("ws"), at("upper"));
        for number in 0..FILES {
            write(&root, number, "before");
        }
        let since = ViewCreation::of(&at("since")).expect("a time");
        for number in 0..FILES {
            write(&upper, number, "after");
        }
        let workspace = Workspace::open(&root).expect("a workspace");
        Self {
            workspace,
            since,
            folder,
        }
    }

    /// Returns the bytes of the request's changes as they are stored.
    fn request(&self) -> usize {
        let upper = self.folder.path().join("upper");
        let collected = CollectedChanges::collect(&self.workspace, &upper, self.since);
        let collected = collected.expect("changes");
        let hash = collected.sha256(&|_| true);
        let shown = collected.preview(&self.workspace, &|_| true, &|_| false, &|_| false);
        assert_eq!(shown.len(), FILES, "{hash}");
        serde_json::to_vec(&shown).expect("plain data").len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.request()
    }

    pub(crate) fn steps(&self) -> Vec<Step<'_>> {
        let row = Row::new("haft/request/1000 files", "ms");
        let request = || wall_ms(|| self.request()).0;
        vec![(row, Box::new(request) as Box<dyn FnMut() -> f64 + '_>)]
    }
}

fn write(root: &Path, number: usize, word: &str) {
    let folder = root.join(format!("d{}", number / 100));
    fs::create_dir_all(&folder).expect("a folder");
    let line = |at: usize| match at {
        100 => format!("{word} {number}\n"),
        _ => format!("line {at} of file {number}\n"),
    };
    let text: String = (0..LINES).map(line).collect();
    fs::write(folder.join(format!("f{number}.txt")), text).expect("a file");
}
