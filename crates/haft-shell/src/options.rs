//! `Options`: tables of program options, used to find where a program's own words end and whether all of its options are known.

use crate::word::AsWord;

/// The known options of a program.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Letters without a value; several may share a word.
    pub flags: &'static str,
    /// Letters with a value: the rest of the word, or the next word.
    pub valued: &'static str,
    /// Letters with an optional value, which is the rest of the word.
    pub joined: &'static str,
    /// Long names without a value.
    pub long: &'static [&'static str],
    /// Long names with a value: after `=`, or the next word.
    pub long_valued: &'static [&'static str],
    /// True if `-5` is an option.
    pub number: bool,
}

/// The operands of a command, and its options.
#[derive(Debug)]
pub struct Operands<'w, W> {
    /// The words that are neither options nor option values.
    pub words: Vec<&'w W>,
    /// The options without a value: letters, and long names without `--`.
    pub flags: Vec<&'w str>,
    /// The options that have a value.
    pub values: Vec<Given<'w>>,
}

/// An option with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given<'w> {
    /// The letter, or the long name without `--`.
    pub name: &'w str,
    /// The value.
    pub value: &'w str,
    /// True if the value is known before the command runs.
    pub is_known: bool,
}

impl Options {
    /// No known options.
    pub const NONE: Self = Self {
        flags: "",
        valued: "",
        joined: "",
        long: &[],
        long_valued: &[],
        number: false,
    };

    /// Returns the number of leading words that are options, or `None` if one of them is unknown.
    pub fn count<W: AsWord>(&self, words: &[W]) -> Option<usize> {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = word.text();
            if !word.is_known() {
                return None;
            }
            if text == "--" {
                return Some(at + 1);
            }
            if !text.starts_with('-') || text == "-" {
                break;
            }
            at += 1;
            if self.takes_next(text)? {
                at += words.get(at).filter(|value| value.is_known()).map(|_| 1)?;
            }
        }
        Some(at)
    }

    /// Returns true if every word that looks like an option is a known one, however the program would read it: it may be the value of
    /// another option, or an operand behind `--`. Since `--` may itself be a value, options may follow it.
    pub fn know<W: AsWord>(&self, words: &[W]) -> bool {
        words.iter().all(|word| {
            let text = word.text();
            !text.starts_with('-') || matches!(text, "-" | "--") || self.takes_next(text).is_some()
        })
    }

    /// Returns the operands and options; options may appear anywhere. Returns `None` if an option, or a word that may be one,
    /// is unknown.
    pub fn split<'w, W: AsWord>(&self, words: &'w [W]) -> Option<Operands<'w, W>> {
        let mut found = Operands {
            words: Vec::new(),
            flags: Vec::new(),
            values: Vec::new(),
        };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let text = word.text();
            if text == "--" {
                found.words.extend(rest);
                break;
            }
            if !text.starts_with('-') || text == "-" {
                found.words.push(word);
                continue;
            }
            if !word.is_known() {
                return None;
            }
            let next = self.takes_next(text)?;
            found.flags.extend(self.flags_in(text));
            let (name, joined) = self.named(text);
            let (value, is_known) = if next {
                let word = rest.next()?;
                (word.text(), word.is_known())
            } else if let Some(value) = joined {
                (value, true)
            } else {
                continue;
            };
            found.values.push(Given {
                name,
                value,
                is_known,
            });
        }
        Some(found)
    }

    /// Returns the name of a known option and, if present, its value from the same word.
    fn named<'t>(&self, text: &'t str) -> (&'t str, Option<&'t str>) {
        if let Some(long) = text.strip_prefix("--") {
            return match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
        }
        let letters = &text[1..];
        let Some(at) = self.first_valued(letters) else {
            return (letters, None);
        };
        let end = at + letters[at..].chars().next().map_or(0, char::len_utf8);
        let value = &letters[end..];
        (&letters[at..end], (!value.is_empty()).then_some(value))
    }

    /// Returns the position of the first letter that may have a value.
    fn first_valued(&self, letters: &str) -> Option<usize> {
        letters.find(|c: char| self.valued.contains(c) || self.joined.contains(c))
    }

    /// Returns the options without a value in a word of known options.
    fn flags_in<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let long = text.strip_prefix("--");
        let name = long.filter(|name| self.long.contains(name));
        let letters = if long.is_some() { "" } else { &text[1..] };
        let end = self.first_valued(letters).unwrap_or(letters.len());
        let each = letters[..end].char_indices();
        name.into_iter()
            .chain(each.map(move |(at, letter)| &letters[at..at + letter.len_utf8()]))
    }

    /// Returns true if the option takes the next word as its value, and `None` for an unknown option.
    fn takes_next(&self, text: &str) -> Option<bool> {
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, _)) => (name, true),
                None => (long, false),
            };
            let flag = !value && self.long.contains(&name);
            let valued = self.long_valued.contains(&name);
            return (flag || valued).then_some(valued && !value && !flag);
        }
        let letters = &text[1..];
        if self.number && letters.bytes().all(|b| b.is_ascii_digit()) {
            return Some(false);
        }
        for (at, letter) in letters.char_indices() {
            if self.valued.contains(letter) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if self.joined.contains(letter) {
                return Some(false);
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn operands_stand_beside_options_and_their_values() {
        const SOME: Options = Options {
            flags: "ab",
            valued: "k",
            joined: "j",
            long: &["all"],
            long_valued: &["key"],
            number: true,
        };
        for (line, expect) in [
            ("x -a y", Some((&["x", "y"][..], &[][..]))),
            ("-abk 1 x", Some((&["x"], &[("k", "1")]))),
            ("-k1 x", Some((&["x"], &[("k", "1")]))),
            ("-j x", Some((&["x"], &[]))),
            ("-j5 x", Some((&["x"], &[("j", "5")]))),
            (
                "--key=v --key w x",
                Some((&["x"], &[("key", "v"), ("key", "w")])),
            ),
            ("-5 x", Some((&["x"], &[]))),
            ("x -- -z", Some((&["x", "-z"], &[]))),
            ("x -", Some((&["x", "-"], &[]))),
            ("-z x", None),
            ("--al x", None),
            ("-k", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let found = SOME.split(&words);
            let found = found.as_ref().map(|found| {
                let words: Vec<&str> = found.words.iter().map(|word| word.as_str()).collect();
                let values: Vec<_> = found
                    .values
                    .iter()
                    .map(|one| (one.name, one.value))
                    .collect();
                (words, values)
            });
            let expect = expect.map(|(words, values)| (words.to_vec(), values.to_vec()));
            assert_eq!(found, expect, "{line}");
        }
    }

    #[test]
    fn flags_are_those_that_are_not_values() {
        const SOME: Options = Options {
            flags: "abr",
            valued: "k",
            joined: "j",
            long: &["all"],
            long_valued: &["key"],
            number: false,
        };
        for (line, expect) in [
            ("-ab x --all", &["a", "b", "all"][..]),
            ("-ak b", &["a"]),
            ("-akb", &["a"]),
            ("-ajb", &["a"]),
            ("--key --all -b", &["b"]),
            ("--key=--all", &[]),
            ("-k -- -a x", &["a"]),
            ("--key -- --all -- -b", &["all"]),
            ("-- -a", &[]),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(SOME.split(&words).unwrap().flags, expect, "{line}");
        }
    }

    #[test]
    fn every_word_that_looks_like_an_option_must_be_known() {
        const SOME: Options = Options {
            flags: "a",
            valued: "k",
            ..Options::NONE
        };
        for (line, expect) in [
            ("-a x -k 5 -- -a -", true),
            ("-k -- -z", false),
            ("-- -z", false),
            ("-k -z", false),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(SOME.know(&words), expect, "{line}");
        }
    }
}
