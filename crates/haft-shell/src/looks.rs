//! `FirstLook`: a quick check, by first letter and length, whether a word may be one of a few names. Most words are not.

/// A filter for a set of names.
#[derive(Debug)]
pub struct FirstLook {
    /// For each first letter, a bit set of the lengths of the names.
    lengths: [u32; 128],
}

impl FirstLook {
    /// The empty set.
    pub const NONE: Self = Self { lengths: [0; 128] };

    /// Adds a name. It must begin with an ASCII character and be shorter than 32 bytes; others do not compile in a constant.
    pub const fn with_name(mut self, name: &str) -> Self {
        let name = name.as_bytes();
        self.lengths[name[0] as usize] |= 1 << name.len();
        self
    }

    /// Adds several names.
    pub const fn with_names(mut self, names: &[&str]) -> Self {
        let mut at = 0;
        while at < names.len() {
            self = self.with_name(names[at]);
            at += 1;
        }
        self
    }

    /// Returns false if the word is certainly none of the names.
    pub fn may_be(&self, word: &str) -> bool {
        let first = word.bytes().next().map(usize::from);
        let lengths = first.and_then(|first| self.lengths.get(first));
        lengths.is_some_and(|lengths| word.len() < 32 && lengths & (1 << word.len()) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::FirstLook;

    #[test]
    fn a_name_is_never_missed_and_other_words_mostly_are() {
        const FIRST_LOOK: FirstLook = FirstLook::NONE.with_names(&["eval", ".", "exec"]);
        for name in ["eval", ".", "exec"] {
            assert!(FIRST_LOOK.may_be(name), "{name}");
        }
        let long = "e".repeat(36);
        for word in ["", "cargo", "e", "evaluate", "..", "ä", &long] {
            assert!(!FIRST_LOOK.may_be(word), "{word}");
        }
    }
}
