//! `Document`: the texts of one entry to index.

use crate::words::{clip, terms};

/// Maximum number of bytes read from one text.
const MAX_TEXT: usize = 16 * 1024;
/// Maximum number of terms indexed per document.
const MAX_TERMS: usize = 1_024;

/// The texts of one entry to index. It borrows its texts, so it is cheap to create.
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
    /// Creates a document with this name, which counts twice; a query equal to the name ranks it first.
    pub fn new(name: &'a str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Sets other names; a query equal to one of the first 32 ranks the document after documents of that name.
    pub fn with_aliases(mut self, aliases: &'a [String]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Adds a text after the existing ones. At most 16 KiB of each text and 1,024 terms in total are read, so put the most
    /// descriptive texts first.
    pub fn with_text(mut self, text: &'a str) -> Self {
        self.push_text(text);
        self
    }

    /// Adds a text after the existing ones.
    pub fn push_text(&mut self, text: &'a str) {
        self.texts.push(text);
    }

    /// Adds several texts.
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
