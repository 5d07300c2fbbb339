//! Edits as replacements of byte ranges of a text: all found first, then applied together or not at all.

use std::cell::OnceCell;
use std::ops::Range;

use memchr::memmem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::lines::{LineEnding, keep_endings, usual_in};

/// Maximum number of places that one edit may match.
const MAX_PLACES: usize = 10_000;

/// One edit of a file: by text (`find`) or by lines (`start_line`, `end_line`).
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextEdit {
    /// The exact text to replace; it must occur once unless `all` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub find: Option<String>,
    /// With `find`: replace every occurrence.
    #[serde(default)]
    pub all: bool,
    /// Instead of `find`: the first line to replace, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 1))]
    pub start_line: Option<u64>,
    /// The last line to replace; one less than `start_line` inserts before it. Default: `start_line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub end_line: Option<u64>,
    /// The new text; empty deletes.
    pub replace: String,
}

/// The reason why edits do not fit a text. `edit` counts from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    /// The edit has neither a text nor lines, or both.
    #[error("edit {edit}: {why}")]
    Malformed {
        /// The edit's number.
        edit: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The text does not occur.
    #[error("edit {edit}: the text to find does not occur")]
    Absent {
        /// The edit's number.
        edit: usize,
        /// A line that equals the first line of `find` except for blanks.
        near: Option<usize>,
    },
    /// The text occurs more than once.
    #[error("edit {edit}: the text to find occurs {count} times, at lines {lines}")]
    Ambiguous {
        /// The edit's number.
        edit: usize,
        /// The number of occurrences.
        count: usize,
        /// The lines of the first ten occurrences.
        lines: String,
    },
    /// The lines do not exist.
    #[error("edit {edit}: lines {start}-{end} are not in a file of {total} lines")]
    NoSuchLines {
        /// The edit's number.
        edit: usize,
        /// The first line.
        start: u64,
        /// The last line.
        end: u64,
        /// The number of lines in the file.
        total: u64,
    },
    /// Two edits change the same bytes.
    #[error("edits {first} and {second} overlap")]
    Overlap {
        /// The number of the one edit.
        first: usize,
        /// The number of the other edit.
        second: usize,
    },
}

/// One replacement: its edit, its range, and the new text.
struct Splice {
    edit: usize,
    range: Range<usize>,
    text: Vec<u8>,
}

/// Applies all edits to a text; all refer to the text as given. Also returns the number of replacements.
///
/// # Errors
/// [`SpliceError`] names the edit: its text does not occur, or more than once, its lines do not exist, or two edits overlap.
pub fn splice(text: &[u8], edits: &[TextEdit]) -> Result<(Vec<u8>, usize), SpliceError> {
    let mut splices = Vec::new();
    let source = SourceText {
        bytes: text,
        usual: usual_in(text),
        lf: OnceCell::new(),
    };
    for (index, edit) in edits.iter().enumerate() {
        places(&source, index + 1, edit, &mut splices)?;
    }
    splices.sort_by_key(|s| (s.range.start, s.range.end, s.edit));
    for pair in splices.windows(2) {
        if pair[1].range.start < pair[0].range.end {
            return Err(SpliceError::Overlap {
                first: pair[0].edit.min(pair[1].edit),
                second: pair[0].edit.max(pair[1].edit),
            });
        }
    }
    let mut new = Vec::with_capacity(text.len());
    let mut at = 0;
    for splice in &splices {
        new.extend_from_slice(&text[at..splice.range.start]);
        new.extend_from_slice(&splice.text);
        at = splice.range.end;
    }
    new.extend_from_slice(&text[at..]);
    Ok((new, splices.len()))
}

/// The text that edits refer to.
struct SourceText<'a> {
    bytes: &'a [u8],
    /// The ending that most lines have, which new lines get.
    usual: LineEnding,
    /// The text with LF for each CR LF, and where each CR was in it; made when it is needed.
    lf: OnceCell<(Vec<u8>, Vec<usize>)>,
}

impl SourceText<'_> {
    /// Returns where a text occurs, at most [`MAX_PLACES`] times: exactly, or else with CR LF where it has LF.
    fn find(&self, find: &str) -> Vec<Range<usize>> {
        let (text, needle) = (self.bytes, find.as_bytes());
        let exact = memmem::find_iter(text, needle).take(MAX_PLACES);
        // A line ends with both characters, or it would keep the CR alone.
        let whole = |at: usize| {
            let within = needle.starts_with(b"\n") && text[..at].ends_with(b"\r");
            at - usize::from(within)..at + needle.len()
        };
        let found: Vec<_> = exact.map(whole).collect();
        if !found.is_empty() || needle.contains(&b'\r') || !needle.contains(&b'\n') {
            return found;
        }
        let (lf, removed) = self.lf.get_or_init(|| without_cr(text));
        let back = |at: usize| at + removed.partition_point(|cr| *cr < at);
        let found = memmem::find_iter(lf, needle).take(MAX_PLACES);
        found.map(|at| back(at)..back(at + needle.len())).collect()
    }
}

/// Returns a text with LF for each CR LF, and the place in it of each LF that had a CR.
fn without_cr(text: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut lf, mut removed) = (Vec::with_capacity(text.len()), Vec::new());
    let mut from = 0;
    for at in memmem::find_iter(text, b"\r\n") {
        lf.extend_from_slice(&text[from..at]);
        removed.push(lf.len());
        from = at + 1;
    }
    lf.extend_from_slice(&text[from..]);
    (lf, removed)
}

fn places(
    text: &SourceText<'_>,
    number: usize,
    edit: &TextEdit,
    into: &mut Vec<Splice>,
) -> Result<(), SpliceError> {
    let malformed = |why| Err(SpliceError::Malformed { edit: number, why });
    match (&edit.find, edit.start_line, edit.end_line) {
        (Some(find), None, None) if find.is_empty() => malformed("find is empty"),
        (Some(find), None, None) => splice_by_text(text, number, edit, find, into),
        (None, Some(start), end) => {
            if edit.all {
                return malformed("all works only with find");
            }
            splice_by_lines(text, number, start..end.unwrap_or(start), edit, into)
        }
        (Some(_), ..) => malformed("give either find or start_line and end_line, not both"),
        (None, None, _) => malformed("give find, or start_line and end_line"),
    }
}

fn splice_by_text(
    text: &SourceText<'_>,
    number: usize,
    edit: &TextEdit,
    find: &str,
    into: &mut Vec<Splice>,
) -> Result<(), SpliceError> {
    let found = text.find(find);
    let bytes = text.bytes;
    match found.len() {
        0 => {
            let near = near_line(bytes, find);
            return Err(SpliceError::Absent { edit: number, near });
        }
        1 => {}
        MAX_PLACES => {
            let why = "the text to find occurs 10,000 times or more";
            return Err(SpliceError::Malformed { edit: number, why });
        }
        count if !edit.all => {
            let lines = found
                .iter()
                .take(10)
                .map(|at| line_of(bytes, at.start).to_string());
            let mut lines = lines.collect::<Vec<_>>().join(", ");
            if count > 10 {
                lines.push_str(", …");
            }
            return Err(SpliceError::Ambiguous {
                edit: number,
                count,
                lines,
            });
        }
        _ => {}
    }
    let replace = edit.replace.as_bytes();
    into.extend(found.into_iter().map(|range| Splice {
        edit: number,
        text: if find.contains('\r') {
            replace.to_vec()
        } else {
            keep_endings(&bytes[range.clone()], replace, text.usual).into_owned()
        },
        range,
    }));
    Ok(())
}

fn splice_by_lines(
    source: &SourceText<'_>,
    number: usize,
    lines: Range<u64>,
    edit: &TextEdit,
    into: &mut Vec<Splice>,
) -> Result<(), SpliceError> {
    let text = source.bytes;
    let mut starts = vec![0];
    starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
    if starts.last() == Some(&text.len()) {
        starts.pop();
    }
    let total = starts.len();
    let missing = SpliceError::NoSuchLines {
        edit: number,
        start: lines.start,
        end: lines.end,
        total: total as u64,
    };
    let first = usize::try_from(lines.start).map_err(|_| missing.clone())?;
    let last = usize::try_from(lines.end).map_err(|_| missing.clone())?;
    if first == 0 || last + 1 < first || last > total || first > total + 1 {
        return Err(missing);
    }
    let start = starts.get(first - 1).copied().unwrap_or(text.len());
    let end = starts.get(last).copied().unwrap_or(text.len());
    let newline: &[u8] = match source.usual {
        LineEnding::CrLf => b"\r\n",
        LineEnding::Lf | LineEnding::Open => b"\n",
    };
    let old = &text[start..end.max(start)];
    let mut new = keep_endings(old, edit.replace.as_bytes(), source.usual).into_owned();
    // Lines stay separate: only the last line of the file may lack an ending.
    let last_open = end == text.len() && !text.is_empty() && !text.ends_with(b"\n");
    if !new.is_empty() && !new.ends_with(b"\n") && (!last_open || old.is_empty()) {
        new.extend_from_slice(newline);
    }
    if start == text.len() && !text.is_empty() && !text.ends_with(b"\n") && !new.is_empty() {
        new.splice(0..0, newline.iter().copied());
    }
    into.push(Splice {
        edit: number,
        range: start..end.max(start),
        text: new,
    });
    Ok(())
}

fn line_of(text: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[..at]).count() + 1
}

/// Returns the line that equals the first line to find except for blanks.
fn near_line(text: &[u8], find: &str) -> Option<usize> {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = find.lines().map(squeeze).find(|line| !line.is_empty())?;
    let text = String::from_utf8_lossy(text);
    let at = text.lines().position(|line| squeeze(line) == wanted)?;
    Some(at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn find(find: &str, replace: &str) -> TextEdit {
        TextEdit {
            find: Some(find.into()),
            replace: replace.into(),
            ..TextEdit::default()
        }
    }

    fn all(text: &str, replace: &str) -> TextEdit {
        TextEdit {
            all: true,
            ..find(text, replace)
        }
    }

    fn lines(start: u64, end: u64, replace: &str) -> TextEdit {
        TextEdit {
            start_line: Some(start),
            end_line: Some(end),
            replace: replace.into(),
            ..TextEdit::default()
        }
    }

    fn check(text: &str, edits: &[TextEdit], expect: Result<&str, &str>) {
        let got = splice(text.as_bytes(), edits);
        let got = got
            .map(|(new, _)| String::from_utf8(new).unwrap())
            .map_err(|e| e.to_string());
        let expect = expect.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(got, expect, "{text:?} {edits:?}");
    }

    #[test]
    fn edits_by_text() {
        check("a b c", &[find("b", "x")], Ok("a x c"));
        check("a b c", &[find("c", ""), find("a", "z")], Ok("z b "));
        check("aaa", &[all("a", "bb")], Ok("bbbbbb"));
        check("a\r\nb\r\n", &[find("a\nb", "x\ny")], Ok("x\r\ny\r\n"));
        check("a\r\nb\r\n", &[find("b", "x\ny")], Ok("a\r\nx\r\ny\r\n"));
        check(
            "a\r\nb\r\n",
            &[find("\nb", "\nx\ny")],
            Ok("a\r\nx\r\ny\r\n"),
        );
        check("a\r\nb\r\n", &[find("\nb", "c")], Ok("ac\r\n"));
        check(
            "a\r\nb\nc\r\n",
            &[find("a\nb\nc", "a\nx\nc")],
            Ok("a\r\nx\r\nc\r\n"),
        );
        check(
            "a\r\nb\nc\n",
            &[find("a\nb\nc", "a\nb\nx")],
            Ok("a\r\nb\nx\n"),
        );
        check("a\r\nb\r\n", &[find("a\r\n", "a\n")], Ok("a\nb\r\n"));
        check("a\nb", &[find("", "x")], Err("edit 1: find is empty"));
        check(
            "x",
            &[find("y", "z")],
            Err("edit 1: the text to find does not occur"),
        );
        let twice = "edit 1: the text to find occurs 2 times, at lines 1, 3";
        check("a\nb\na\n", &[find("a", "x")], Err(twice));
        check(
            "abc",
            &[find("ab", "x"), find("bc", "y")],
            Err("edits 1 and 2 overlap"),
        );
        check("abc", &[find("ab", "x"), find("c", "y")], Ok("xy"));
    }

    #[test]
    fn edits_by_lines() {
        check("a\nb\nc\n", &[lines(2, 2, "x")], Ok("a\nx\nc\n"));
        check("a\nb\nc\n", &[lines(2, 3, "")], Ok("a\n"));
        check("a\nb\nc", &[lines(3, 3, "x")], Ok("a\nb\nx"));
        check("a\nb\n", &[lines(1, 0, "x\ny")], Ok("x\ny\na\nb\n"));
        check("a\nb\n", &[lines(3, 2, "x")], Ok("a\nb\nx\n"));
        check("a\nb", &[lines(3, 2, "x")], Ok("a\nb\nx\n"));
        check("", &[lines(1, 0, "x")], Ok("x\n"));
        check("a\r\nb\r\n", &[lines(1, 1, "x\ny")], Ok("x\r\ny\r\nb\r\n"));
        check(
            "a\nb\nc\n",
            &[lines(1, 1, "x\ny"), lines(3, 3, "z")],
            Ok("x\ny\nb\nz\n"),
        );
        for bad in [
            lines(0, 1, ""),
            lines(2, 4, ""),
            lines(3, 1, ""),
            lines(5, 4, ""),
        ] {
            assert!(
                splice(b"a\nb\nc\n", std::slice::from_ref(&bad)).is_err(),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn an_edit_is_by_text_or_by_lines() {
        let both = TextEdit {
            start_line: Some(1),
            ..find("a", "b")
        };
        let neither = TextEdit::default();
        for edit in [both, neither] {
            let error = splice(b"a", &[edit]).unwrap_err();
            assert!(matches!(error, SpliceError::Malformed { .. }), "{error}");
        }
    }

    #[test]
    fn a_text_that_differs_in_blanks_is_pointed_at() {
        let error = splice(b"x\n    let a  = 1;\n", &[find("let a = 1;", "")]).unwrap_err();
        let near = SpliceError::Absent {
            edit: 1,
            near: Some(2),
        };
        assert_eq!(error, near);
    }

    proptest! {
        #[test]
        fn an_edit_and_its_inverse_give_the_text_back(
            before in "[a-c\n]{0,20}", old in "[x-z]{1,5}", new in "[u-w]{1,5}", after in "[a-c\n]{0,20}",
        ) {
            let text = format!("{before}{old}{after}");
            let (changed, count) = splice(text.as_bytes(), &[find(&old, &new)]).unwrap();
            prop_assert_eq!(count, 1);
            let expect = format!("{before}{new}{after}");
            prop_assert_eq!(&changed, expect.as_bytes());
            let (back, _) = splice(&changed, &[find(&new, &old)]).unwrap();
            prop_assert_eq!(back, text.as_bytes());
        }

        #[test]
        fn replacing_lines_and_putting_them_back_gives_the_text_back(
            text in proptest::collection::vec("[a-c]{0,4}", 1..12), at in 0usize..12, new in "[x-z]{1,4}",
        ) {
            let at = at % text.len();
            let whole = text.iter().fold(String::new(), |all, line| all + line + "\n");
            let number = at as u64 + 1;
            let (changed, _) = splice(whole.as_bytes(), &[lines(number, number, &new)]).unwrap();
            let old = format!("{}\n", text[at]);
            let (back, _) = splice(&changed, &[lines(number, number, &old)]).unwrap();
            prop_assert_eq!(String::from_utf8(back).unwrap(), whole);
        }
    }
}
