//! `Document`: what an index reads of one entry.

use crate::words::{clip, terms};

/// Bytes of one text that are read.
const MAX_TEXT: usize = 16 * 1024;
/// Terms of one document that are indexed.
const MAX_TERMS: usize = 1_024;

/// What an index reads of one entry. It borrows its texts, so it is cheap to make.
///
/// ```
/// use haft_search::{Document, Index};
///
/// let aliases = ["ls".to_owned()];
/// let list = Document::new("list_files").with_aliases(&aliases).with_text("Show what a folder holds");
/// let index = Index::new([(7, list)]);
/// assert_eq!(index.search("ls", 1, |_| true)[0].document, 7);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Document<'a> {
    name: &'a str,
    aliases: &'a [String],
    texts: Vec<&'a str>,
}

impl<'a> Document<'a> {
    /// A document of this name, which counts twice; a query that is the name finds it first.
    pub fn new(name: &'a str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// The same document with other names; a query that is one of the first 32 finds it after documents of that name.
    pub fn with_aliases(mut self, aliases: &'a [String]) -> Self {
        self.aliases = aliases;
        self
    }

    /// The same document with one more text after those it has. At most 16 KiB of each text are read, and 1,024 terms of all, so
    /// the texts that tell most come first.
    pub fn with_text(mut self, text: &'a str) -> Self {
        self.push_text(text);
        self
    }

    /// Adds one more text after those it has.
    pub fn push_text(&mut self, text: &'a str) {
        self.texts.push(text);
    }

    /// The same document with more texts.
    pub fn with_texts(mut self, texts: impl IntoIterator<Item = &'a str>) -> Self {
        self.texts.extend(texts);
        self
    }

    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    pub(crate) fn aliases(&self) -> &'a [String] {
        self.aliases
    }

    /// Calls `each` with the terms that an index stores, in order.
    pub fn terms(&self, mut each: impl FnMut(&str)) {
        let mut left = MAX_TERMS;
        let aliases = self.aliases.iter().map(String::as_str);
        let texts = [self.name, self.name].into_iter().chain(aliases);
        for text in texts.chain(self.texts.iter().copied()) {
            if left == 0 {
                return;
            }
            terms(clip(text, MAX_TEXT), |term| {
                if left > 0 {
                    left -= 1;
                    each(term);
                }
            });
        }
    }
}
