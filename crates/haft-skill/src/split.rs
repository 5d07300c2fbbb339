//! Splitting a `SKILL.md` into the front matter and the instructions below it.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SplitText<'a> {
    /// The YAML between the two marks.
    pub(super) front: &'a str,
    /// Number of lines above it.
    pub(super) above: usize,
    /// The text that follows.
    pub(super) body: &'a str,
}

/// The reason why a text has no front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoFrontMatter {
    /// It does not start with `---`.
    Missing,
    /// The closing `---` is missing.
    Open,
}

const DELIMITER: &str = "---";

/// Splits at lines that contain only `---`, as authors mean it; skips a leading byte order mark and empty lines.
pub(super) fn by_line(text: &str) -> Result<SplitText<'_>, NoFrontMatter> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = 0;
    let mut front = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let next = at + line.len();
        let marks = line.trim_end() == DELIMITER;
        match front {
            None if marks => front = Some((next, number + 1)),
            None if line.trim().is_empty() => {}
            None => return Err(NoFrontMatter::Missing),
            Some((start, above)) if marks => {
                return Ok(SplitText {
                    front: &text[start..at],
                    above,
                    body: &text[next..],
                });
            }
            Some(_) => {}
        }
        at = next;
    }
    Err(if front.is_some() {
        NoFrontMatter::Open
    } else {
        NoFrontMatter::Missing
    })
}

/// Splits at the first two `---`, wherever they are, as the reference validator does.
pub(super) fn by_mark(text: &str) -> Result<SplitText<'_>, NoFrontMatter> {
    let rest = text.strip_prefix(DELIMITER).ok_or(NoFrontMatter::Missing)?;
    let (front, body) = rest.split_once(DELIMITER).ok_or(NoFrontMatter::Open)?;
    Ok(SplitText {
        front,
        above: 0,
        body,
    })
}

/// Returns only the instructions: the text below the front matter, or all of it if there is none.
pub(super) fn body(text: &str) -> &str {
    let split = by_line(text).or_else(|_| by_mark(text));
    let body = split.map_or(text, |split| split.body);
    body.trim_start_matches('\u{feff}').trim()
}

#[cfg(test)]
mod tests {
    use super::{NoFrontMatter, SplitText, body, by_line, by_mark};

    #[test]
    fn the_cut_is_where_authors_mean_it() {
        let cut = |front, above, body| Ok(SplitText { front, above, body });
        let rows: [(&str, Result<SplitText<'_>, NoFrontMatter>); 9] = [
            ("---\na: b\n---\nhi", cut("a: b\n", 1, "hi")),
            ("\u{feff}---\r\na: b\r\n---\r\nhi", cut("a: b\r\n", 1, "hi")),
            ("\n\n---\na: b --- c\n---", cut("a: b --- c\n", 3, "")),
            ("---  \na: b\n--- \n", cut("a: b\n", 1, "")),
            ("---\n---\n", cut("", 1, "")),
            ("---\na: b\n", Err(NoFrontMatter::Open)),
            ("# Skill: x\n---\n---\n", Err(NoFrontMatter::Missing)),
            ("", Err(NoFrontMatter::Missing)),
            ("----\na: b\n----\n", Err(NoFrontMatter::Missing)),
        ];
        for (text, expect) in rows {
            assert_eq!(by_line(text), expect, "{text:?}");
        }
    }

    #[test]
    fn the_reference_cuts_at_any_dashes() {
        let front = |text| by_mark(text).map(|split| split.front);
        assert_eq!(front("---\na: b --- c\n---\n"), Ok("\na: b "));
        assert_eq!(front("---a---b---"), Ok("a"));
        assert_eq!(front("\n---\n---"), Err(NoFrontMatter::Missing));
        assert_eq!(front("\u{feff}---\n---"), Err(NoFrontMatter::Missing));
        assert_eq!(front("---\n"), Err(NoFrontMatter::Open));
    }

    #[test]
    fn instructions_are_what_is_below() {
        assert_eq!(
            body("---\na: b\n---\n\n# Hi\n---\nthere\n"),
            "# Hi\n---\nthere"
        );
        assert_eq!(body("# No front matter\n"), "# No front matter");
        assert_eq!(body("\u{feff}"), "");
    }
}
