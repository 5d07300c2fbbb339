//! `Labels`: names and aliases, to recognize a query that equals one of them.

use crate::document::Document;

/// Maximum length of a stored label, in bytes.
const MAX_LABEL: usize = 128;
/// Maximum number of aliases per document.
const MAX_ALIASES: usize = 32;

/// One label: its position in the common text, its document, and whether it is the name.
#[derive(Debug, Clone, Copy)]
struct Label {
    from: u32,
    to: u32,
    document: u32,
    is_name: bool,
}

/// Labels, sorted by their lower-case texts.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    text: Box<str>,
    sorted: Box<[Label]>,
}

/// Labels in the order they were added.
#[derive(Debug, Default)]
pub(crate) struct LabelsBuilder {
    text: String,
    labels: Vec<Label>,
}

impl LabelsBuilder {
    pub(crate) fn add(&mut self, number: u32, document: &Document<'_>) {
        self.push(number, document.name(), true);
        for alias in document.aliases().iter().take(MAX_ALIASES) {
            self.push(number, alias, false);
        }
    }

    fn push(&mut self, document: u32, label: &str, is_name: bool) {
        let from = self.text.len();
        if label.is_empty() || label.len() > MAX_LABEL || from + label.len() > u32::MAX as usize {
            return;
        }
        self.text.push_str(label);
        let narrow = |place| u32::try_from(place).unwrap_or(u32::MAX);
        self.labels.push(Label {
            from: narrow(from),
            to: narrow(self.text.len()),
            document,
            is_name,
        });
    }

    pub(crate) fn finish(mut self) -> Labels {
        let text = self.text.into_boxed_str();
        let sort = |a: &Label, b: &Label| {
            let (a, b) = (lower(of(&text, a)), lower(of(&text, b)));
            a.cmp(b)
        };
        self.labels.sort_by(sort);
        Labels {
            text,
            sorted: self.labels.into_boxed_slice(),
        }
    }
}

impl Labels {
    /// Returns the documents with a label equal to the query, with a closeness: 3 for the exact name, 2 for the name, 1 for an alias.
    pub(crate) fn fitting<'a>(&'a self, query: &'a str) -> impl Iterator<Item = (u32, f32)> + 'a {
        let query = query.trim();
        let query = if query.len() > MAX_LABEL { "" } else { query };
        let order = |label: &Label| lower(of(&self.text, label)).cmp(lower(query));
        let from = self.sorted.partition_point(|label| order(label).is_lt());
        let rest = self.sorted.get(from..).unwrap_or_default();
        rest.iter()
            .take_while(move |label| order(label).is_eq())
            .map(move |label| {
                let closeness = match label.is_name {
                    true if of(&self.text, label) == query => 3.0,
                    true => 2.0,
                    false => 1.0,
                };
                (label.document, closeness)
            })
    }

    /// Returns their size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.sorted)
    }
}

fn of<'a>(text: &'a str, label: &Label) -> &'a str {
    text.get(label.from as usize..label.to as usize)
        .unwrap_or_default()
}

/// Returns the bytes of a label in lower case; only ASCII letters are converted, since names are ASCII.
fn lower(label: &str) -> impl Iterator<Item = u8> + '_ {
    label.bytes().map(|byte| byte.to_ascii_lowercase())
}
