//! `LowercaseTexts`: whether a name has one of many texts, told without comparing it with each.

/// Texts in lower case, by their first byte.
#[derive(Debug, Clone)]
pub struct LowercaseTexts {
    by_first: Vec<Vec<Box<str>>>,
    /// For each first byte, a bit set of the second bytes, each by its last five bits, which are the same in both letter cases. Most names
    /// have none of these pairs.
    seconds: [u32; 256],
    /// Whether one of them is empty, which every name has.
    has_empty: bool,
}

impl LowercaseTexts {
    /// Creates the set of these texts, whatever their letter case.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut set = Self {
            by_first: vec![Vec::new(); 256],
            seconds: [0; 256],
            has_empty: false,
        };
        for text in texts {
            let text = text.to_ascii_lowercase();
            let Some(first) = text.bytes().next().map(usize::from) else {
                set.has_empty = true;
                continue;
            };
            set.seconds[first] |= text
                .as_bytes()
                .get(1)
                .map_or(u32::MAX, |second| second_bit(*second));
            set.by_first[first].push(text.into());
        }
        set
    }

    /// Whether a name has one of them, in any letter case.
    pub fn are_in(&self, name: &str) -> bool {
        let name = name.as_bytes();
        let starts = |at: usize, text: &str| {
            let part = name.get(at..at + text.len());
            part.is_some_and(|part| part.eq_ignore_ascii_case(text.as_bytes()))
        };
        let mut each = name.iter().enumerate();
        self.has_empty
            || each.any(|(at, first)| {
                let first = usize::from(first.to_ascii_lowercase());
                // The last byte of a name can only be a text of one byte, which every bit stands for.
                let second = name
                    .get(at + 1)
                    .map_or(u32::MAX, |second| second_bit(*second));
                self.seconds[first] & second != 0
                    && self.by_first[first].iter().any(|text| starts(at, text))
            })
    }
}

fn second_bit(byte: u8) -> u32 {
    1 << (byte & 31)
}

#[cfg(test)]
mod tests {
    use super::LowercaseTexts;

    #[test]
    fn a_text_is_found_in_a_name_whatever_its_place_and_letter_case() {
        let texts = ["secret", ".ENV", "k", "é!", "a_b"].map(str::to_owned);
        let texts = LowercaseTexts::new(texts);
        for name in [
            "secret",
            "my-SeCrEt",
            "x.env",
            ".EnV",
            "K",
            "ak",
            "é!",
            "xA_By",
        ] {
            assert!(texts.are_in(name), "{name}");
        }
        for name in [
            "", "secre", "s", ".en", ".enq", "e!", "é", "é1", "a-b", "a?b", "aBb",
        ] {
            assert!(!texts.are_in(name), "{name}");
        }
        assert!(LowercaseTexts::new([String::new()]).are_in(""));
    }
}
