//! The files that a command shows or edits, as far as its words tell: clause 14 of the shell rules.

use haft_shell::{AsWord, Layer, base_name};

use crate::old::git;
use crate::old::grep;
use crate::path::clean;

/// Programs that show the files their words name, or something about them. This includes the commands that run without approval: otherwise
/// they could read a denied file.
const PRINTERS: &[&str] = &["cat", "head", "tail", "sed", "grep", "diff", "wc", "du"];

/// Maximum number of letters in one word inspected as options; a file name may follow any of them.
const MAX_LETTERS: usize = 8;

/// The files that a command names and that rules on files therefore cover.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TouchedFiles {
    /// Files that it shows.
    pub reads: Vec<String>,
    /// Files that it changes in place.
    pub edits: Vec<String>,
    /// Folders below which it may also read.
    pub below: Vec<String>,
    /// Whether it also uses files that are only known at run time.
    pub unknown: bool,
}

impl TouchedFiles {
    /// Adds the files of another command.
    pub fn add(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.edits.extend(other.edits);
        self.below.extend(other.below);
        self.unknown |= other.unknown;
    }

    /// Whether a rule on a file that is not named could apply.
    pub fn is_open(&self) -> bool {
        self.unknown || !self.below.is_empty()
    }
}

/// Returns the files that a printing command names; `sed -i` edits them.
pub fn touched<W: AsWord>(layer: Layer<'_, W>) -> TouchedFiles {
    let mut found = TouchedFiles::default();
    let Some((name, rest)) = layer.words.split_first() else {
        return found;
    };
    let name = base_name(name.text());
    let rest: Vec<&str> = rest.iter().map(AsWord::text).collect();
    if name == "git" {
        let shown = git::git_reads(&rest);
        found.unknown = shown.contents && !layer.is_known();
        found.reads = shown.named.into_iter().map(clean).collect();
        found.below = shown.below.into_iter().map(clean).collect();
        found.reads.extend_from_slice(&found.below);
        return found;
    }
    if !PRINTERS.contains(&name) {
        return found;
    }
    found.unknown = !layer.is_known() || rest.iter().any(|word| may_name_more(word));
    let mut files: Vec<&str> = operands(&rest).collect();
    if matches!(name, "sed" | "grep") && !rest.iter().any(gives_pattern) && !files.is_empty() {
        files.remove(0);
    }
    let in_place = |w: &&str| (is_short(w) && w.contains('i')) || w.starts_with("--i");
    if name == "sed" && rest.iter().any(in_place) {
        found.edits = files.iter().map(|&file| clean(file)).collect();
    }
    let search = (name == "grep").then(|| grep::search(&layer.words[1..]));
    let (descends, implied) = match search {
        Some(Some(search)) => (search.descends, search.is_implied),
        // With an unknown option, any word may be a value, and none of them a folder.
        Some(None) => (rest.iter().any(may_descend), true),
        None => (name == "diff", files.is_empty()),
    };
    if descends {
        if implied {
            files.push(".");
        }
        let folders = files.iter().filter(|file| **file != "/dev/null");
        found.below = folders.map(|&file| clean(file)).collect();
    }
    files.extend(rest.iter().flat_map(|word| values(word)));
    found.reads = files.into_iter().map(clean).collect();
    found.unknown |= found.reads.iter().any(|file| leads_through_process(file));
    found
}

/// Whether the path leads through a process, such as `/proc/PID/cwd/…` or `/proc/PID/root/…`, and so may be any file.
fn leads_through_process(file: &str) -> bool {
    file.strip_prefix("/proc/")
        .is_some_and(|rest| rest.split('/').count() > 2)
}

/// Whether an option gives the script or pattern, which otherwise comes first.
fn gives_pattern(word: &&str) -> bool {
    let long = ["--e", "--f", "--reg"];
    (is_short(word) && word.contains(['e', 'f'])) || long.iter().any(|o| word.starts_with(o))
}

/// Whether an option makes `grep` walk folders: `-r`, `-R`, `-d recurse`, or their long names.
fn may_descend(word: &&str) -> bool {
    (is_short(word) && word.contains(['r', 'R', 'd']))
        || word.starts_with("--r")
        || word.starts_with("--d")
}

/// Returns what may be an option's value within the same word: `--from-file=x`, `-nfx`.
fn values(word: &str) -> Vec<&str> {
    if !is_short(word) {
        let value = word.strip_prefix("--").and_then(|w| w.split_once('='));
        return value.map(|(_, value)| value).into_iter().collect();
    }
    let ends = word.char_indices().skip(2).take(MAX_LETTERS);
    ends.map(|(at, _)| &word[at..]).collect()
}

/// Whether a word has more option letters than are inspected. A file name may follow any of them.
fn may_name_more(word: &str) -> bool {
    is_short(word) && word.chars().count() > 2 + MAX_LETTERS
}

/// Returns the words that are not options, and all words after `--`.
fn operands<'a>(words: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let end = words.iter().position(|w| *w == "--");
    let end = end.unwrap_or(words.len());
    let before = words[..end].iter();
    let before = before.filter(|w| !w.starts_with('-') || w.len() == 1);
    before
        .chain(words.get(end + 1..).unwrap_or_default())
        .copied()
}

fn is_short(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}
