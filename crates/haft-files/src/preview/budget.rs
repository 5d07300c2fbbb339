//! `Preview`: the files of one request, shown within one budget that is spent while they are read.

use std::fmt;
use std::fs::File;

use crate::preview::content::{FirstDifference, SideContent, cut, first_difference, to_text};
use crate::preview::lines::{Region, regions, split};
use crate::preview::{FileChange, Hunk, MAX_DETAILED, MAX_TEXT, MAX_WHOLE};

/// Number of unchanged lines around a change.
const AROUND: usize = 3;
/// Maximum size of a side that is compared line by line.
const MAX_COMPARED: u64 = 8 << 20;
/// Maximum number of bytes that a request reads to compare files line by line.
const MAX_READ: u64 = 32 << 20;
/// Maximum number of bytes that a request reads to find where longer files begin to differ.
const MAX_SEARCHED: u64 = 256 << 20;
/// Maximum number of them in one file, on each side.
const MAX_SEARCHED_OF_FILE: u64 = 32 << 20;
/// Maximum length of each side of what is shown of a longer file.
const MAX_FIRST: usize = 16 << 10;

/// Opens one side of a change when it is its turn.
pub type SideOpener<'a> = Box<dyn FnOnce() -> Option<File> + 'a>;

/// One side of a change, before it is read.
pub enum ChangeSide<'a> {
    /// There is no file, or nothing of it is to be shown.
    None,
    /// Its content.
    Content(SideContent<'a>),
    /// A file that is opened when it is its turn.
    File(SideOpener<'a>),
}

impl fmt::Debug for ChangeSide<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Content(_) => "Content",
            Self::File(_) => "File",
        })
    }
}

impl<'a> From<Option<&'a [u8]>> for ChangeSide<'a> {
    fn from(bytes: Option<&'a [u8]>) -> Self {
        bytes.map_or(Self::None, |bytes| Self::Content(bytes.into()))
    }
}

/// A side that is there but cannot be opened.
struct UnreadableSide;

impl<'a> ChangeSide<'a> {
    fn open(self, bytes: Option<u64>) -> Result<Option<SideContent<'a>>, UnreadableSide> {
        Ok(match self {
            Self::None => None,
            Self::Content(content) => Some(content),
            Self::File(open) => {
                let file = open().ok_or(UnreadableSide)?;
                Some(SideContent::File(file, bytes.unwrap_or(0)))
            }
        })
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Content(content) => content.len(),
            Self::None | Self::File(_) => 0,
        }
    }
}

/// The files of a request. Each gets an equal share of the budget; what a short one leaves goes to the longer ones.
///
/// ```
/// use haft_files::preview::{FileChange, Preview};
///
/// let mut preview = Preview::default();
/// preview.add(FileChange::unread("a.txt"), Some(&b"one\n"[..]).into(), Some(&b"two\n"[..]).into());
/// let shown = preview.into_changes();
/// assert_eq!(shown[0].after.as_deref(), Some("two\n"));
/// assert_eq!(shown[0].lines(), Some((1, 1)));
/// ```
#[derive(Debug, Default)]
pub struct Preview<'a> {
    files: Vec<(FileChange, ChangeSide<'a>, ChangeSide<'a>)>,
    /// Which of them are shown before others if there are too many.
    first: Vec<bool>,
}

impl<'a> Preview<'a> {
    /// Adds a file. `change` describes it without its content; its sizes say what it is going to cost.
    pub fn add(&mut self, change: FileChange, before: ChangeSide<'a>, after: ChangeSide<'a>) {
        self.files.push((change, before, after));
        self.first.push(false);
    }

    /// Adds a file whose content is shown before that of others if there are too many.
    pub fn add_first(&mut self, change: FileChange, before: ChangeSide<'a>, after: ChangeSide<'a>) {
        self.files.push((change, before, after));
        self.first.push(true);
    }

    /// Returns the files with as much of their content as the budget allows, in the order in which they were added.
    pub fn into_changes(self) -> Vec<FileChange> {
        let size = |(change, before, after): &(FileChange, ChangeSide<'_>, ChangeSide<'_>)| {
            let known = |bytes: Option<u64>, side: &ChangeSide<'_>| bytes.unwrap_or(side.bytes());
            known(change.before_bytes, before).saturating_add(known(change.after_bytes, after))
        };
        let mut turns: Vec<usize> = (0..self.files.len()).collect();
        let sizes: Vec<u64> = self.files.iter().map(size).collect();
        // Short files first: what they leave of their shares goes to the others.
        turns.sort_by_key(|at| (!self.first[*at], sizes[*at]));
        let mut budget = PreviewBudget::of(turns.len().min(MAX_DETAILED));
        let mut files: Vec<Option<(FileChange, ChangeSide<'_>, ChangeSide<'_>)>> =
            self.files.into_iter().map(Some).collect();
        let mut shown: Vec<Option<FileChange>> = files.iter().map(|_| None).collect();
        for at in turns {
            let Some((mut change, before, after)) = files[at].take() else {
                continue;
            };
            if budget.files == 0 {
                change.fold("the request shows the content of 1,000 files at most");
            } else {
                budget.show(&mut change, before, after);
            }
            shown[at] = Some(change);
        }
        shown.into_iter().flatten().collect()
    }
}

/// What one file may cost.
struct FileBudget {
    text: usize,
    read: u64,
}

/// What is left to spend.
struct PreviewBudget {
    files: usize,
    text: usize,
    read: u64,
    searched: u64,
}

impl PreviewBudget {
    fn of(files: usize) -> Self {
        Self {
            files,
            text: MAX_TEXT,
            read: MAX_READ,
            searched: MAX_SEARCHED,
        }
    }

    /// Shows a file within its share of what is left.
    fn show(&mut self, change: &mut FileChange, before: ChangeSide<'_>, after: ChangeSide<'_>) {
        let share = FileBudget {
            text: self.text / self.files,
            read: self.read / self.files as u64,
        };
        self.files -= 1;
        let (Ok(before), Ok(after)) = (
            before.open(change.before_bytes),
            after.open(change.after_bytes),
        ) else {
            return change.fold("it cannot be read");
        };
        let filled = self.fill(change, before.as_ref(), after.as_ref(), &share);
        if filled.is_err() {
            change.fold("it cannot be read");
        }
        self.text -= change.text_bytes().min(share.text);
    }

    fn fill(
        &mut self,
        change: &mut FileChange,
        before: Option<&SideContent<'_>>,
        after: Option<&SideContent<'_>>,
        share: &FileBudget,
    ) -> std::io::Result<()> {
        let sides = || before.into_iter().chain(after);
        for side in sides() {
            if side.is_binary()? {
                change.binary = true;
            }
        }
        if change.binary {
            return Ok(());
        }
        let none = SideContent::from(&b""[..]);
        let (was, is) = (before.unwrap_or(&none), after.unwrap_or(&none));
        let in_memory = sides().all(|side| matches!(side, SideContent::Bytes(_)));
        let all: u64 = sides().map(SideContent::len).sum();
        let fits = sides().all(|side| side.len() <= MAX_COMPARED);
        if fits && (in_memory || all <= share.read) {
            self.read -= all.min(self.read);
            let most = usize::try_from(MAX_COMPARED).unwrap_or(usize::MAX);
            let (old, new) = (was.read(0, most)?, is.read(0, most)?);
            if old.contains(&0) || new.contains(&0) {
                change.binary = true;
                return Ok(());
            }
            let (old, new) = (before.map(|_| &*old), after.map(|_| &*new));
            whole(change, old, new, share.text);
            return Ok(());
        }
        self.first(change, was, is, share.text)
    }

    /// Shows where a long file begins to differ.
    fn first(
        &mut self,
        change: &mut FileChange,
        was: &SideContent<'_>,
        is: &SideContent<'_>,
        share: usize,
    ) -> std::io::Result<()> {
        let mut read = 0;
        let most = MAX_SEARCHED_OF_FILE.min(self.searched / 2);
        let found = if was.len() == 0 || is.len() == 0 {
            Some(FirstDifference {
                line_start: 0,
                lines: 0,
            })
        } else {
            first_difference(was, is, most, &mut read)?
        };
        self.searched -= read.min(self.searched);
        let Some(found) = found else {
            change.fold("it is too long to find what differs");
            return Ok(());
        };
        let most = (share / 2).min(MAX_FIRST);
        let mut escaped = false;
        let mut side = |content: &SideContent<'_>| -> std::io::Result<String> {
            let bytes = content.read(found.line_start, most + 4)?;
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            let piece = ClippedText::of(text, most);
            escaped |= piece.escaped;
            Ok(piece.text)
        };
        let line = u32::try_from(found.lines + 1).unwrap_or(u32::MAX);
        change.hunks = vec![Hunk {
            before_line: line,
            after_line: line,
            before: side(was)?,
            after: side(is)?,
        }];
        change.escaped = escaped;
        change.clipped = true;
        Ok(())
    }
}

/// Text of limited length.
struct ClippedText {
    text: String,
    escaped: bool,
    cut: bool,
}

impl ClippedText {
    fn of(bytes: &[u8], room: usize) -> Self {
        let part = cut(bytes, room);
        let (mut text, escaped) = to_text(part);
        let mut is_cut = part.len() < bytes.len();
        if text.len() > room {
            // Escapes are longer than what they stand for.
            text.truncate(text.floor_char_boundary(room));
            is_cut = true;
        }
        Self {
            text,
            escaped,
            cut: is_cut,
        }
    }
}

/// Shows a file of which all is known: its sides if they are short, else what differs.
fn whole(change: &mut FileChange, old: Option<&[u8]>, new: Option<&[u8]>, share: usize) {
    let (before, after) = (
        split(old.unwrap_or_default()),
        split(new.unwrap_or_default()),
    );
    let regions = regions(&before, &after);
    let count = |side: fn(&Region) -> usize| regions.iter().map(side).sum::<usize>() as u64;
    change.added = Some(count(|region| region.after.len()));
    change.removed = Some(count(|region| region.before.len()));
    let whole = |side: Option<&[u8]>| side.map(|side| ClippedText::of(side, MAX_WHOLE));
    let sides = [whole(old), whole(new)];
    let known = || sides.iter().flatten();
    let bytes = known().map(|side| side.text.len()).sum::<usize>();
    if bytes <= share && known().all(|side| !side.cut) {
        change.escaped = known().any(|side| side.escaped);
        let [was, is] = sides.map(|side| side.map(|side| side.text));
        (change.before, change.after) = (was, is);
        return;
    }
    let mut left = share;
    for hunk in grouped(&regions, before.len()) {
        let (was, is) = (
            before[hunk.before.clone()].concat(),
            after[hunk.after.clone()].concat(),
        );
        let (was_room, is_room) = rooms(was.len(), is.len(), left);
        let (was, is) = (
            ClippedText::of(&was, was_room),
            ClippedText::of(&is, is_room),
        );
        left -= (was.text.len() + is.text.len()).min(left);
        change.escaped |= was.escaped || is.escaped;
        change.clipped |= was.cut || is.cut;
        if was.text.is_empty() && is.text.is_empty() {
            break;
        }
        let line = |at: usize| u32::try_from(at + 1).unwrap_or(u32::MAX);
        change.hunks.push(Hunk {
            before_line: line(hunk.before.start),
            after_line: line(hunk.after.start),
            before: was.text,
            after: is.text,
        });
        if change.clipped {
            break;
        }
    }
}

/// Divides room between two sides: a short one leaves what it does not need to the other.
fn rooms(was: usize, is: usize, left: usize) -> (usize, usize) {
    let half = left / 2;
    if was <= half {
        (was, left - was)
    } else if is <= half {
        (left - is, is)
    } else {
        (half, half)
    }
}

/// Returns the regions with some lines around them, joined where these meet.
fn grouped(regions: &[Region], lines: usize) -> Vec<Region> {
    let mut hunks: Vec<Region> = Vec::new();
    for region in regions {
        let above = region.before.start.min(AROUND);
        let below = (lines - region.before.end).min(AROUND);
        let wide = Region {
            before: region.before.start - above..region.before.end + below,
            after: region.after.start - above..region.after.end + below,
        };
        match hunks.last_mut() {
            Some(last) if wide.before.start <= last.before.end => {
                last.before.end = wide.before.end;
                last.after.end = wide.after.end;
            }
            _ => hunks.push(wide),
        }
    }
    hunks
}
