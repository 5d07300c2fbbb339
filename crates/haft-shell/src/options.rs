//! Options of programs, as tables say: where a program's own words end, and whether all of its options are known.

use crate::word::AsWord;

/// The options of one program that are known.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Letters without a value; several may share a word.
    pub flags: &'static str,
    /// Letters with a value: the rest of the word, or the next word.
    pub valued: &'static str,
    /// Letters whose value, if there is one, is the rest of the word.
    pub joined: &'static str,
    /// Long names without a value.
    pub long: &'static [&'static str],
    /// Long names with a value: behind `=`, or the next word.
    pub long_valued: &'static [&'static str],
    /// True where `-5` is an option.
    pub number: bool,
}

impl Options {
    /// No option is known.
    pub const NONE: Self = Self {
        flags: "",
        valued: "",
        joined: "",
        long: &[],
        long_valued: &[],
        number: false,
    };

    /// Returns how many of the words are leading options; `None` where one is not known.
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

    /// True where every option among the words is known. A value in a word of its own is taken for an operand: one that looks like an
    /// option must be known as one, whatever the program makes of it.
    pub fn know<W: AsWord>(&self, words: &[W]) -> bool {
        let mut before = words.iter().take_while(|word| word.text() != "--");
        before.all(|word| {
            let text = word.text();
            !text.starts_with('-') || text == "-" || self.takes_next(text).is_some()
        })
    }

    /// Whether the option takes the next word as its value; `None` for one that is not known.
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
