//! `LowercaseTexts`: whether a name has one of many texts, told without comparing it with each.

/// Texts in lower case, by their first byte.
#[derive(Debug, Clone)]
pub struct LowercaseTexts {
    by_first: Vec<Vec<Box<str>>>,
    /// Whether one of them is empty, which every name has.
    has_empty: bool,
}

impl LowercaseTexts {
    /// Creates the set of these texts, whatever their letter case.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut set = Self {
            by_first: vec![Vec::new(); 256],
            has_empty: false,
        };
        for text in texts {
            let text = text.to_ascii_lowercase();
            match text.bytes().next() {
                Some(first) => set.by_first[usize::from(first)].push(text.into()),
                None => set.has_empty = true,
            }
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
                self.by_first[first].iter().any(|text| starts(at, text))
            })
    }
}
