//! Parses a settings file of git into keys and values, as git does.

use std::iter::Peekable;
use std::str::Chars;

/// One setting of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The section, in lower case.
    pub section: String,
    /// The name within the section: `origin` in `[remote "origin"]`.
    pub name: Option<String>,
    /// The key, in lower case.
    pub key: String,
    /// The value without quotes and comments; empty for a key alone, which means true.
    pub value: String,
}

impl Setting {
    /// Returns the setting that a dotted key and a value make (`remote.origin.url`), or `None` if the key is not one.
    pub fn from_pair(key: &str, value: String) -> Option<Self> {
        let (section, rest) = key.split_once('.')?;
        let (name, key) = match rest.rsplit_once('.') {
            Some((name, key)) => (Some(name.to_owned()), key),
            None => (None, rest),
        };
        Some(Self {
            section: section.to_ascii_lowercase(),
            name,
            key: key.to_ascii_lowercase(),
            value,
        })
    }
}

/// Returns the settings of a file in order, or `None` if git would refuse the file.
pub fn parse(text: &str) -> Option<Vec<Setting>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n");
    let mut rest = text.chars().peekable();
    let mut section: Option<(String, Option<String>)> = None;
    let mut found = Vec::new();
    while let Some(next) = rest.next() {
        match next {
            '#' | ';' => while rest.next_if(|c| *c != '\n').is_some() {},
            '[' => section = Some(header(&mut rest)?),
            c if c.is_ascii_whitespace() => {}
            c if c.is_ascii_alphabetic() => {
                let (section, name) = section.clone()?;
                let mut key = String::from(c.to_ascii_lowercase());
                while let Some(c) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
                    key.push(c.to_ascii_lowercase());
                }
                found.push(Setting {
                    section,
                    name,
                    key,
                    value: value(&mut rest)?,
                });
            }
            _ => return None,
        }
    }
    Some(found)
}

/// Reads what follows `[`: the section and the name in it.
fn header(rest: &mut Peekable<Chars<'_>>) -> Option<(String, Option<String>)> {
    let mut section = String::new();
    loop {
        match rest.next()? {
            ']' => break,
            ' ' | '\t' => return Some((section, Some(quoted_name(rest)?))),
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => {
                section.push(c.to_ascii_lowercase());
            }
            _ => return None,
        }
    }
    Some(match section.split_once('.') {
        Some((section, name)) => (section.to_owned(), Some(name.to_owned())),
        None => (section, None),
    })
}

/// Reads the rest of a header from its quoted name.
fn quoted_name(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    rest.next_if_eq(&'"')?;
    let mut name = String::new();
    loop {
        match rest.next()? {
            '"' => break,
            '\n' => return None,
            '\\' => name.push(rest.next().filter(|c| *c != '\n')?),
            c => name.push(c),
        }
    }
    rest.next_if_eq(&']').map(|_| name)
}

/// Reads what follows a key, to the end of the line.
fn value(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    match rest.next() {
        None | Some('\n') => return Some(String::new()),
        Some('=') => {}
        Some(_) => return None,
    }
    let (mut value, mut spaces) = (String::new(), String::new());
    let (mut quoted, mut comment) = (false, false);
    loop {
        let c = match rest.next() {
            None | Some('\n') => return (!quoted).then_some(value),
            Some(c) => c,
        };
        if comment {
            continue;
        }
        if !quoted && c.is_ascii_whitespace() {
            if !value.is_empty() {
                spaces.push(c);
            }
            continue;
        }
        if !quoted && matches!(c, '#' | ';') {
            comment = true;
            continue;
        }
        value.push_str(&std::mem::take(&mut spaces));
        match c {
            '"' => quoted = !quoted,
            '\\' => match rest.next()? {
                '\n' => {}
                't' => value.push('\t'),
                'b' => value.push('\u{8}'),
                'n' => value.push('\n'),
                c @ ('\\' | '"') => value.push(c),
                _ => return None,
            },
            c => value.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Setting, parse};

    #[test]
    fn settings_are_read_as_git_reads_them() {
        for (text, expect) in [
            ("[core]\n\tpager = less", "core.pager=less"),
            ("[Core] HooksPath = a ; b", "core.hookspath=a"),
            ("[core]\nhooksPath = \"a;b\"#c", "core.hookspath=a;b"),
            ("[core]\nhooksPath=a\\\nb  c  \n", "core.hookspath=ab  c"),
            (
                "[core]\r\nhooksPath = \"no\"tes\r\n",
                "core.hookspath=notes",
            ),
            ("[diff \"A\\\"b\"]\nx = 1", "diff.A\"b.x=1"),
            ("[a.B.c] d\n", "a.b.c.d="),
        ] {
            let found = parse(text).unwrap();
            let [one] = found.as_slice() else {
                panic!("{text:?}: {found:?}");
            };
            let (key, value) = expect.split_once('=').unwrap();
            assert_eq!(
                Setting::from_pair(key, value.to_owned()).as_ref(),
                Some(one),
                "{text:?}"
            );
        }
        for text in [
            "a = b",
            "[core",
            "[core]\na b",
            "[core]\na = \"b\n",
            "[core]\na = \\x",
            "[core x]",
            "[core]\n=",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(parse("# x\n[core]\n; y\n"), Some(Vec::new()));
    }
}
