//! File names in unified diffs: quoted, followed by a timestamp, prefixed by `a/` and `b/`.

/// The names of a section's file.
#[derive(Debug, Default)]
pub(super) struct SectionNames {
    /// The name after `--- `, unless it is the null device.
    pub(super) old: Option<String>,
    /// The name after `+++ `, unless it is the null device.
    pub(super) new: Option<String>,
    /// The name after `diff --git `, without its prefix.
    pub(super) git: Option<String>,
}

impl SectionNames {
    /// Returns the one file that the names refer to.
    pub(super) fn single_name(&self) -> Result<String, String> {
        match (&self.old, &self.new, &self.git) {
            (Some(old), Some(new), _) => common_name(old, new)
                .map(str::to_owned)
                .ok_or_else(|| format!("expected one file, found {old:?} and {new:?}")),
            (_, _, Some(git)) => Ok(git.clone()),
            (Some(old), None, None) => Ok(strip_prefix_or_keep(old, "a/")),
            (None, Some(new), None) => Ok(strip_prefix_or_keep(new, "b/")),
            (None, None, None) => Err("expected the file's path".to_owned()),
        }
    }
}

fn strip_prefix_or_keep(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

/// Returns the common name of both sides: equal, or equal below two different first folders, or different only by `.orig`.
fn common_name<'a>(old: &'a str, new: &'a str) -> Option<&'a str> {
    if old == new
        || old
            .strip_prefix(new)
            .is_some_and(|rest| rest == ".orig" || rest == "~")
    {
        return Some(new);
    }
    let below = |name: &'a str| name.split_once('/').map(|(_, rest)| rest);
    let rest = below(new)?;
    (below(old)? == rest && !rest.is_empty() && !new.starts_with('/')).then_some(rest)
}

/// Returns the file of `a/NAME b/NAME`, if both names are the same.
pub(super) fn pair(text: &str) -> Option<String> {
    if text.starts_with('"') {
        let end = closing_quote(text)?;
        let (old, new) = (&text[..=end], text[end + 1..].trim());
        return common_name(&name(old).ok()?, &name(new).ok()?).map(str::to_owned);
    }
    // A name may contain blanks, so split where both halves are equal.
    let middle = text.len().checked_sub(1)? / 2;
    let (old, new) = (text.get(..middle)?, text.get(middle + 1..)?);
    common_name(old, new).map(str::to_owned)
}

/// Reads a name as written after `---` and `+++`: quoted as in C, or plain up to a tab.
pub(super) fn name(text: &str) -> Result<String, String> {
    let text = text.trim_end();
    let name = if text.starts_with('"') {
        let end = closing_quote(text).ok_or("expected a closing quote")?;
        unquote(&text[1..end])?
    } else {
        text.split('\t')
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned()
    };
    if name.is_empty() {
        return Err("expected a path".to_owned());
    }
    Ok(name)
}

/// Returns the position of the closing quote.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().enumerate().skip(1).find_map(|(at, byte)| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends.then_some(at)
    })
}

fn unquote(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b'v') => 11,
            Some(b'f') => 12,
            Some(byte @ (b'"' | b'\\')) => byte,
            Some(first @ b'0'..=b'3') => {
                let mut value = first - b'0';
                for _ in 0..2 {
                    let digit = rest.next_if(|b| matches!(b, b'0'..=b'7'));
                    let digit = digit.ok_or("expected three octal digits in a quoted path")?;
                    value = value * 8 + (digit - b'0');
                }
                value
            }
            _ => return Err("expected an escape of C in a quoted path".to_owned()),
        });
    }
    String::from_utf8(bytes).map_err(|_| "expected a path in UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_both_sides_share() {
        for (old, new, expect) in [
            ("a/src/x", "b/src/x", Some("src/x")),
            ("i/x", "w/x", Some("x")),
            ("src/x", "src/x", Some("src/x")),
            ("x.orig", "x", Some("x")),
            ("old/x", "new/x", Some("x")),
            ("a/x", "b/y", None),
            ("/a/x", "/b/x", None),
            ("a/", "b/", None),
        ] {
            assert_eq!(common_name(old, new), expect, "{old} {new}");
        }
    }

    #[test]
    fn names_are_unquoted_and_times_cut() {
        for (text, expect) in [
            ("a/x y\t2024-01-01 10:00:00 +0000", Ok("a/x y")),
            (r#""a/\303\251 \"q\"\\.txt""#, Ok("a/é \"q\"\\.txt")),
            (r#""a/\377""#, Err("expected a path in UTF-8")),
            (
                r#""a/\3""#,
                Err("expected three octal digits in a quoted path"),
            ),
            (r#""a"#, Err("expected a closing quote")),
            ("", Err("expected a path")),
        ] {
            let got = name(text);
            assert_eq!(got.as_deref().map_err(String::as_str), expect, "{text}");
        }
        for (text, expect) in [
            ("a/x y b/x y", Some("x y")),
            (r#""a/\303\251" "b/\303\251""#, Some("é")),
            ("a/x b/y", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(pair(text).as_deref(), expect, "{text}");
        }
    }
}
