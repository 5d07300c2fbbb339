//! `Cargo.lock`, `uv.lock` and `poetry.lock`: tables `[[package]]`, each read on its own, so that a long file needs little memory.

use toml::{Table, Value};

use super::lock::Lockfile;
use super::package::Package;
use super::source::PackageSource;

/// Reads the packages; `None` if it is not what these tools write.
pub(super) fn parse(text: &str) -> Option<Lockfile<'_>> {
    let mut found = Lockfile::default();
    for (header, chunk) in chunks(text)? {
        if header != "package" {
            // Packages in other words than the tools'.
            if header.is_empty() && chunk.parse::<Table>().ok()?.contains_key("package") {
                return None;
            }
            found.add_text(header, None, chunk);
            continue;
        }
        let table: Table = chunk.parse().ok()?;
        let [Value::Table(table)] = &table.get("package")?.as_array()?[..] else {
            return None;
        };
        let text = |name: &str| table.get(name).and_then(Value::as_str);
        let key = (
            text("name").filter(|name| !name.is_empty())?.to_owned(),
            text("version").unwrap_or_default().to_owned(),
        );
        found.add(key.clone(), package(table))?;
        found.add_text(format!("{} {}", key.0, key.1), Some(key), chunk);
    }
    Some(found)
}

/// Splits a file at its headers, each with the normal form of its name. Tables below a package belong to it.
fn chunks(text: &str) -> Option<Vec<(String, &str)>> {
    let (mut chunks, mut header, mut start, mut at) = (Vec::new(), String::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let content = line.trim_start();
        if content.starts_with('[') {
            let name = content.split('#').next()?.trim();
            if name.contains('\\') {
                return None;
            }
            let name: String = name
                .chars()
                .filter(|one| !matches!(one, '[' | ']' | '"' | '\'' | ' ' | '\t'))
                .collect();
            if !(header == "package" && name.starts_with("package.")) {
                chunks.push((std::mem::replace(&mut header, name), &text[start..at]));
                start = at;
            }
        }
        at += line.len();
    }
    chunks.push((header, &text[start..at]));
    Some(chunks)
}

fn package(table: &Table) -> Package {
    let mut package = Package::default();
    match table.get("source") {
        Some(Value::String(text)) => package.source = PackageSource::index(text),
        Some(Value::Table(source)) => package.source = source_of(source),
        _ => {}
    }
    let checksum = table.get("checksum").and_then(Value::as_str);
    package.hashes.extend(checksum.map(str::to_owned));
    let lists = ["files", "wheels"].into_iter();
    let listed = lists
        .filter_map(|name| table.get(name)?.as_array())
        .flatten();
    let files = listed.chain(table.get("sdist"));
    for file in files.filter_map(Value::as_table) {
        let text = |name: &str| Some(file.get(name)?.as_str()?.to_owned());
        package.hashes.extend(text("hash"));
        package.files.extend(text("url").or_else(|| text("path")));
    }
    package
}

/// Reads `{ registry = "https://…" }`, `{ git = "…" }`, `{ editable = "." }` of uv, or `type` and `url` of poetry.
fn source_of(table: &Table) -> PackageSource {
    let text = |name: &str| table.get(name).and_then(Value::as_str);
    if let (Some(kind), Some(url)) = (text("type"), text("url")) {
        let commit = text("resolved_reference").or_else(|| text("reference"));
        return match kind {
            "git" => {
                let commit = commit.map_or_else(String::new, |commit| format!("#{commit}"));
                PackageSource::Git(format!("{url}{commit}"))
            }
            "file" | "directory" => PackageSource::File(url.to_owned()),
            "url" => PackageSource::of(url),
            _ => PackageSource::index(url),
        };
    }
    let Some((kind, value)) = table.iter().next() else {
        return PackageSource::Unknown;
    };
    let value = value.as_str().unwrap_or_default();
    match &**kind {
        "registry" => PackageSource::index(value),
        "url" => PackageSource::of(value),
        "git" => PackageSource::Git(value.to_owned()),
        "editable" | "virtual" if value == "." => PackageSource::Own,
        _ => PackageSource::File(value.to_owned()),
    }
}

/// Returns whether a line says what is compared of packages.
pub(super) fn is_known(line: &str) -> bool {
    let facts = [
        "name = ",
        "version = ",
        "source = ",
        "checksum = ",
        "sdist = ",
    ];
    let is_file = || line.starts_with('{') && line.contains("hash = ");
    line == "[[package]]" || facts.iter().any(|fact| line.starts_with(fact)) || is_file()
}
