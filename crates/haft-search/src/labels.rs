//! `Labels`: names and aliases, to recognize a query that is one of them.

use crate::document::Document;

/// Bytes of the longest label that is stored.
const MAX_LABEL: usize = 128;
/// Most aliases of one document.
const MAX_ALIASES: usize = 32;

/// One label: where it is in the one text of all, whose it is, and whether it is the name.
#[derive(Debug, Clone, Copy)]
struct Label {
    from: u32,
    to: u32,
    document: u32,
    is_name: bool,
}

/// Labels in the order of their lower-case texts.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    text: Box<str>,
    sorted: Box<[Label]>,
}

/// Labels as they come in.
#[derive(Debug, Default)]
pub(crate) struct Build {
    text: String,
    labels: Vec<Label>,
}

impl Build {
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
    /// The documents that the query is a label of, with how close it is: the name to the letter 3, the name 2, an alias 1.
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

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.sorted)
    }
}

fn of<'a>(text: &'a str, label: &Label) -> &'a str {
    text.get(label.from as usize..label.to as usize)
        .unwrap_or_default()
}

/// The letters of a label without their case: names are ASCII.
fn lower(label: &str) -> impl Iterator<Item = u8> + '_ {
    label.bytes().map(|byte| byte.to_ascii_lowercase())
}
