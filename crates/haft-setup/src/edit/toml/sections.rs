//! `TomlSection`: a header in a TOML text, with the lines that belong to it.

use std::ops::Range;

use toml_edit::{Document, Item, Table};

use crate::edit::EditError;

/// A table with a header of its own, or an element of a list of tables (`[[…]]`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TomlSection {
    /// The names in the header.
    pub names: Vec<String>,
    /// Whether it is an element of a list.
    pub is_list: bool,
    /// Its lines: from that of the header to that of the last value.
    pub lines: Range<usize>,
}

/// Returns the sections of a text, in its order.
///
/// # Errors
/// The text is not TOML.
pub fn sections(text: &str) -> Result<Vec<TomlSection>, EditError> {
    let document = document(text)?;
    let mut found = SectionReader {
        text,
        names: Vec::new(),
        sections: Vec::new(),
    };
    found.read(document.as_table());
    found.sections.sort_by_key(|section| section.lines.start);
    Ok(found.sections)
}

/// Parses a text with the position of everything in it.
pub(super) fn document(text: &str) -> Result<Document<&str>, EditError> {
    let end = text.len();
    Document::parse(text).map_err(|e| EditError::at(e.message(), e.span().unwrap_or(end..end)))
}

/// Removes those of a text's sections whose flag is set. Comments and blank lines before the next section belong to that one and stay; the
/// blank line before a removed section goes.
pub fn cut(text: &str, sections: &[TomlSection], is_cut: &[bool]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    let mut was_cut = false;
    for (section, is_cut) in sections.iter().zip(is_cut.iter().copied()) {
        if is_cut && !was_cut {
            out.push_str(&text[from..section.lines.start]);
            let blank = ["\r\n\r\n", "\n\n"].iter().find(|end| out.ends_with(*end));
            out.truncate(out.len() - blank.map_or(0, |end| end.len() / 2));
        }
        if is_cut {
            from = section.lines.end;
        }
        was_cut = is_cut;
    }
    // Blank lines at the end of the file separate nothing.
    let rest = &text[from..];
    if !was_cut || !rest.trim().is_empty() {
        out.push_str(rest);
    }
    out
}

struct SectionReader<'t> {
    text: &'t str,
    names: Vec<String>,
    sections: Vec<TomlSection>,
}

impl SectionReader<'_> {
    /// Adds the sections below a table.
    fn read(&mut self, table: &Table) {
        for (name, item) in table {
            self.names.push(name.to_owned());
            match item {
                Item::Table(table) => {
                    if !table.is_implicit() && !table.is_dotted() {
                        self.add(table, false);
                    }
                    self.read(table);
                }
                Item::ArrayOfTables(list) => {
                    for table in list {
                        self.add(table, true);
                        self.read(table);
                    }
                }
                Item::Value(_) | Item::None => {}
            }
            self.names.pop();
        }
    }

    fn add(&mut self, table: &Table, is_list: bool) {
        let Some(header) = table.span() else {
            return;
        };
        let end = end_of_values(table).max(header.end);
        // On the first line, the header may stand after a byte order mark.
        let mark = self.text.len() - self.text.trim_start_matches('\u{feff}').len();
        let line = self.text[..header.start].rfind('\n');
        let rest = self.text[end..].find('\n');
        self.sections.push(TomlSection {
            names: self.names.clone(),
            is_list,
            lines: line.map_or(mark, |at| at + 1)..rest.map_or(self.text.len(), |at| end + at + 1),
        });
    }
}

/// Returns the end of the last value below a table's header, or 0.
fn end_of_values(table: &Table) -> usize {
    let ends = table.iter().map(|(_, item)| match item {
        Item::Value(value) => value.span().map_or(0, |span| span.end),
        Item::Table(table) if table.is_dotted() => end_of_values(table),
        _ => 0,
    });
    ends.max().unwrap_or(0)
}
