//! What a run changed, file by file with its diff, within limits: for reports and for line counts.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use haft::approval::meaning::Meaning;
use haft::audit::redact::Redactor;
use haft::call::RunId;
use haft::change::net::{NetChange, PathState};
use haft::change::{ChangeLog, EntryState, FileHash};
use haft::workspace::Workspace;
use haft_builtins::command::meaning::{
    ChangeSides, PathChange, PathContent, ReadOptions, Side, read,
};
use haft_builtins::files::edit::diff as unified;
use serde::Serialize;

/// A file, link or folder in the list.
#[derive(Debug, Serialize)]
pub struct FileReport {
    /// The path relative to the workspace, after the changes.
    pub path: String,
    /// The action: `create`, `modify`, `delete`, `move`, `replace` or `chmod`.
    pub action: &'static str,
    /// The previous path, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<EntryState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<EntryState>,
    /// The unified diff of a text file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why there is no diff, or what the diff leaves out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Cow<'static, str>>,
}

/// A text file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTexts {
    /// The path relative to the workspace, after the changes.
    pub path: PathBuf,
    /// The text before; `None` for a new file.
    pub before: Option<String>,
    /// The text after; `None` for a deleted file.
    pub after: Option<String>,
}

/// The limits of a report.
#[derive(Debug)]
pub struct ReportLimits<'a> {
    /// Maximum number of files, links and folders.
    files: usize,
    /// Maximum number of bytes of a file, before and after together, that are compared.
    compared: u64,
    /// Maximum number of bytes of one diff.
    diff: usize,
    /// Maximum number of bytes of all diffs.
    diffs: usize,
    /// Hides secrets in the diffs.
    redactor: Option<&'a Redactor>,
}

impl<'a> ReportLimits<'a> {
    /// No limits: for the user's own terminal.
    pub const NONE: ReportLimits<'static> = ReportLimits {
        files: usize::MAX,
        compared: u64::MAX,
        diff: usize::MAX,
        diffs: usize::MAX,
        redactor: None,
    };

    /// The limits for counting the lines that a run changed.
    pub(crate) const COUNTED: ReportLimits<'static> = ReportLimits {
        files: 200,
        compared: 1 << 20,
        diff: 1 << 20,
        diffs: 16 << 20,
        redactor: None,
    };

    /// Returns the maximum number of files, links and folders.
    pub(crate) fn most_files(&self) -> usize {
        self.files
    }

    /// Returns what hides secrets.
    pub(crate) fn redactor(&self) -> Option<&'a Redactor> {
        self.redactor
    }

    /// Returns the limits of one HTTP response, which is redacted.
    pub fn http(redactor: &'a Redactor) -> Self {
        Self {
            files: 1_000,
            compared: 2 << 20,
            diff: 128 << 10,
            diffs: 4 << 20,
            redactor: Some(redactor),
        }
    }
}

/// Reads the saved and current files of a run.
pub(crate) struct ChangeTexts<'a> {
    workspace: &'a Workspace,
    log: &'a ChangeLog,
    run: &'a RunId,
    limits: &'a ReportLimits<'a>,
    /// Bytes left for the diffs of the remaining files.
    left: usize,
}

impl<'a> ChangeTexts<'a> {
    /// Returns the texts of a run, within these limits.
    pub(crate) fn new(
        workspace: &'a Workspace,
        log: &'a ChangeLog,
        run: &'a RunId,
        limits: &'a ReportLimits<'a>,
    ) -> Self {
        Self {
            workspace,
            log,
            run,
            limits,
            left: limits.diffs,
        }
    }
}

impl ChangeTexts<'_> {
    /// Returns the report on one change, with its diff.
    pub(crate) fn report(&mut self, net: &NetChange) -> FileReport {
        let (was, is) = (net.before.as_ref(), net.after.as_ref());
        let moved = was.filter(|was| is.is_some_and(|is| is.path != was.path));
        let (diff, note) = match self.texts(net) {
            Ok([before, after]) if before != after => {
                // The names go on lines of their own: a line break in one would look like part of the diff.
                let path = net.path().to_string_lossy();
                let path = path.replace(char::is_control, "\u{fffd}");
                self.bounded(unified(&path, &before, &after))
            }
            Ok(_) => (None, None),
            Err(note) => (None, Some(note.into())),
        };
        FileReport {
            path: net.path().to_string_lossy().into_owned(),
            action: net.action().as_str(),
            from: moved.map(|was| was.path.to_string_lossy().into_owned()),
            before: was.map(|was| was.state.clone()),
            after: is.map(|is| is.state.clone()),
            diff,
            note,
        }
    }

    /// Returns what changes amount to: commits, packages, pictures.
    pub(crate) fn meanings(&self, nets: &[NetChange]) -> Vec<Meaning> {
        let changes = nets.iter().flat_map(|net| {
            let (was, is) = (net.before.as_ref(), net.after.as_ref());
            let moved = was.filter(|was| is.is_some_and(|is| is.path != was.path));
            let from = moved.map(|was| PathChange {
                path: &was.path,
                before: Some(Cow::Borrowed(&was.state)),
                after: None,
            });
            let before = was.filter(|_| moved.is_none());
            let at = is.or(before).map(|at| PathChange {
                path: &at.path,
                before: before.map(|was| Cow::Borrowed(&was.state)),
                after: is.map(|is| Cow::Borrowed(&is.state)),
            });
            from.into_iter().chain(at)
        });
        let sides = ChangeSides::new(self.workspace, changes, |change, side| {
            self.content(change, side)
        });
        read(&sides, ReadOptions::default(), &|_| true)
    }

    /// Opens a changed file with its recorded content: the saved copy, or the workspace's file if that has the recorded
    /// hash.
    fn content(&self, change: &PathChange<'_>, side: Side) -> io::Result<PathContent> {
        let (path, state) = (change.path, change.state(side));
        if let (Some(EntryState::File { sha256: None, .. }), Side::After) = (state, side) {
            // Too large to be recorded by its hash: a pack, which its index describes.
            let open = self.workspace.open_file(path);
            return Ok(PathContent::File(open.map_err(io::Error::other)?.file));
        }
        let at = state.map(|state| PathState {
            path: path.to_owned(),
            state: state.clone(),
        });
        let text = self.text(at.as_ref(), "it was not saved");
        text.map(PathContent::Bytes).map_err(io::Error::other)
    }

    /// Returns a text file before and after; `None` if there is no text to show.
    pub(crate) fn sides(&mut self, net: &NetChange) -> Option<FileTexts> {
        let [before, after] = self.texts(net).ok()?;
        if before == after {
            return None;
        }
        self.left = self.left.saturating_sub(before.len() + after.len());
        let text = |there: bool, bytes: Vec<u8>| {
            there.then(|| String::from_utf8_lossy(&bytes).into_owned())
        };
        Some(FileTexts {
            path: net.path().to_owned(),
            before: text(net.before.is_some(), before),
            after: text(net.after.is_some(), after),
        })
    }

    /// Cuts the diff to the limits and returns it with a note on what was left out.
    fn bounded(&mut self, mut diff: String) -> (Option<String>, Option<Cow<'static, str>>) {
        let most = self.limits.diff.min(self.left);
        if diff.len() <= most {
            self.left -= diff.len();
            return (Some(diff), None);
        }
        let cut = diff.as_bytes().get(..most).unwrap_or_default();
        let end = cut.iter().rposition(|byte| *byte == b'\n');
        let end = end.map_or(0, |at| at + 1);
        let lines = diff.get(end..).unwrap_or_default().lines().count();
        diff.truncate(end);
        self.left -= end;
        let note = match lines {
            1 => "1 more line of the diff is left out".to_owned(),
            lines => format!("{lines} more lines of the diff are left out"),
        };
        ((end > 0).then_some(diff), Some(note.into()))
    }

    /// Returns a text file before and after, both empty if it is not a file or has not changed; or why it cannot be shown.
    fn texts(&self, net: &NetChange) -> Result<[Vec<u8>; 2], &'static str> {
        if let (Some(was), Some(is)) = (&net.before, &net.after)
            && was.state.is_same(&is.state)
        {
            return Ok([Vec::new(), Vec::new()]);
        }
        let states = [&net.before, &net.after].into_iter().flatten();
        let bytes = states.map(|lies| match &lies.state {
            EntryState::File { bytes, .. } => *bytes,
            _ => 0,
        });
        if bytes.fold(0, u64::saturating_add) > self.limits.compared {
            return Err("it is too large to compare here");
        }
        if self.left == 0 {
            return Err("its diff is left out: the diffs of the files before it are too long");
        }
        let before = self.text(
            net.before.as_ref(),
            "haft did not save what it held before the run",
        )?;
        let after = self.text(net.after.as_ref(), "it was undone or changed since: haft saves what a file held before each change, so the diff of that later change shows what this one wrote")?;
        if before.contains(&0) || after.contains(&0) {
            return Err("it is not text");
        }
        let is_same = before == after;
        let texts = [before, after].map(|bytes| self.redacted(bytes));
        match &texts {
            [before, after] if before == after && !is_same => Err("it differs in a secret only"),
            _ => Ok(texts),
        }
    }

    fn redacted(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.limits.redactor {
            Some(redactor) => {
                let text = String::from_utf8_lossy(&bytes);
                redactor.redact(&text).into_owned().into_bytes()
            }
            None => bytes,
        }
    }

    /// Returns the saved content of a file, or its current content if that has the same hash.
    fn text(&self, lies: Option<&PathState>, gone: &'static str) -> Result<Vec<u8>, &'static str> {
        let Some(PathState {
            path,
            state: EntryState::File { sha256, .. },
        }) = lies
        else {
            return Ok(Vec::new());
        };
        let sha256 = sha256.as_ref().ok_or("it is too large to show")?;
        if let Ok(Some(text)) = self.log.load_file(self.run, sha256) {
            return Ok(text);
        }
        let mut open = self.workspace.open_file(path).map_err(|_| gone)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut open.file, &mut bytes).map_err(|_| gone)?;
        let same = FileHash::of(&bytes) == *sha256;
        same.then_some(bytes).ok_or(gone)
    }
}

#[cfg(test)]
mod tests {
    use haft::audit::redact::Redactor;

    use super::ReportLimits;

    #[test]
    fn a_long_diff_is_cut_at_a_line_and_says_so() {
        let redactor = Redactor::new(<[&str; 0]>::default());
        let limits = ReportLimits {
            diff: 10,
            diffs: 15,
            ..ReportLimits::http(&redactor)
        };
        let root = tempfile::tempdir().unwrap();
        let workspace = haft::workspace::Workspace::open(root.path()).unwrap();
        let log = haft::change::ChangeLog::new(root.path());
        let mut texts = super::ChangeTexts {
            workspace: &workspace,
            log: &log,
            run: &haft::call::RunId::new("r-1"),
            limits: &limits,
            left: limits.diffs,
        };
        let (diff, note) = texts.bounded("+one\n+two\n+three\n+four\n".to_owned());
        assert_eq!(diff.as_deref(), Some("+one\n+two\n"));
        assert_eq!(
            note.as_deref(),
            Some("2 more lines of the diff are left out")
        );
        let (diff, note) = texts.bounded("+five\n".to_owned());
        assert_eq!(diff, None);
        assert_eq!(note.as_deref(), Some("1 more line of the diff is left out"));
    }
}
