//! `Cargo.lock`, `uv.lock` and `poetry.lock`: tables `[[package]]`, read line by line as their tools write them.

use super::package::{Package, Packages};
use super::source::Source;

/// Reads the packages; `None` if a line of a package is none that these tools write.
pub(super) fn parse(text: &str) -> Option<Packages> {
    let mut found = Packages::default();
    let mut current: Option<Table> = None;
    let mut is_source = false;
    for line in text.lines() {
        let content = line.trim();
        if content.starts_with('[') && line.starts_with('[') {
            is_source = content == "[package.source]";
            if content == "[[package]]" {
                finish(&mut found, current.take())?;
                current = Some(Table::default());
            } else if !content.starts_with("[package.") {
                finish(&mut found, current.take())?;
            }
            continue;
        }
        if let Some(table) = &mut current {
            table.read(content, is_source);
        }
    }
    finish(&mut found, current)?;
    Some(found)
}

#[derive(Default)]
struct Table {
    name: String,
    version: String,
    package: Package,
}

impl Table {
    fn read(&mut self, line: &str, is_source: bool) {
        // The files of a package are on lines of their own.
        for at in line.match_indices("hash = \"") {
            self.add_hash(&line[at.0 + 8..]);
        }
        let Some((key, value)) = line.split_once(" = ") else {
            return;
        };
        let text = value.trim().trim_matches('"');
        match (key, is_source) {
            ("name", false) => text.clone_into(&mut self.name),
            ("version", false) => text.clone_into(&mut self.version),
            ("checksum", _) => self.package.hashes.insert(text),
            ("type", true) if text == "git" => self.set(Source::Git(text.to_owned())),
            ("source", false) if value.starts_with('{') => self.set(inline(value)),
            ("url", true) | ("source", false) => self.set(Source::of(text)),
            _ => {}
        }
    }

    fn add_hash(&mut self, rest: &str) {
        let hash = rest.split('"').next().unwrap_or_default();
        self.package.hashes.insert(hash);
    }

    fn set(&mut self, source: Source) {
        match (&self.package.source, source) {
            // Poetry says that it is a git repository, then where.
            (Source::Git(_), Source::Registry(address) | Source::Plain(address)) => {
                self.package.source = Source::Git(address);
            }
            (_, source) => self.package.source = source,
        }
    }
}

/// Reads `{ registry = "https://…" }`, `{ git = "…" }`, `{ editable = "." }` and the like.
fn inline(value: &str) -> Source {
    let inner = value.trim_matches(['{', '}', ' ']);
    let Some((key, text)) = inner.split_once(" = ") else {
        return Source::Unknown;
    };
    let text = text.trim_matches('"');
    match key {
        "registry" | "url" => Source::of(text),
        "git" => Source::Git(text.to_owned()),
        "editable" | "virtual" if text == "." => Source::Own,
        _ => Source::File(text.to_owned()),
    }
}

fn finish(found: &mut Packages, table: Option<Table>) -> Option<()> {
    match table {
        Some(table) if !table.name.is_empty() => {
            found.add(table.name, table.version, table.package)
        }
        Some(_) => None,
        None => Some(()),
    }
}
