//! Edits TOML in place: appends or removes tables and leaves every other byte as it is. The name of a table is dotted: `mcp.servers`.

use std::ops::Range;

use toml::{Table, Value};

use crate::edit::{EditError, newline_of};

use sections::document;

pub use sections::{TomlSection, cut, sections};

mod sections;

/// Maximum size of a text: it is parsed several times, and takes a hundred times its size in memory.
const MAX_BYTES: usize = 8 << 20;

/// Appends a table with its header, or puts it in the place of one with its name.
///
/// # Errors
/// The text is not TOML, or is written in a way that cannot be edited.
pub fn put_table(text: &str, servers: &str, name: &str, own: &str) -> Result<String, EditError> {
    let before = parse(text)?;
    let is_there = table_at(&before, servers).is_some_and(|all| all.contains_key(name));
    let out = if is_there {
        replace(text, servers, name, own)?
    } else {
        let mut out = text.to_owned();
        append(&mut out, own);
        out
    };
    let mut expected = strip(before, servers, name);
    let new = parse(own)?;
    let new = table_at(&new, servers).and_then(|all| all.get(name));
    let new = new.cloned().ok_or_else(|| {
        EditError::new(format!("the new value is not a table `{servers}.{name}`"))
    })?;
    if let Some(at) = get_or_create_table(&mut expected, servers) {
        at.insert(name.to_owned(), new);
    }
    check(&out, &expected, servers).map_err(|wrong| wrong.or_at(position(text, servers, name)))?;
    Ok(out)
}

/// Writes a table over the one with its name.
fn replace(text: &str, servers: &str, name: &str, own: &str) -> Result<String, EditError> {
    let sections = sections(text)?;
    let is_own = |one: &TomlSection| is_below(&one.names, servers, name);
    let Some(first) = sections.iter().position(is_own) else {
        return Err(not_tables(text, servers, name));
    };
    let others = sections.iter().enumerate();
    let others: Vec<bool> = others
        .map(|(nth, one)| nth != first && is_own(one))
        .collect();
    let rest = cut(text, &sections, &others);
    let lines = &sections[first].lines;
    let mut out = rest[..lines.start].to_owned();
    out.push_str(&with_breaks_of(text, own));
    let tail = &rest[lines.end..];
    if !tail.is_empty() && !out.ends_with('\n') {
        out.push_str(newline_of(text));
    }
    out.push_str(tail);
    Ok(out)
}

fn not_tables(text: &str, servers: &str, name: &str) -> EditError {
    let path = format!("{servers}.{name}");
    let wrong = EditError::new(format!(
        "`{path}` is not written as a table with a header, `[{path}]`, so it cannot be edited"
    ));
    wrong.or_at(position(text, servers, name))
}

/// Sets values of the table `name`, each where it stands, and leaves its other values as they are. A value is given as text.
///
/// # Errors
/// As for [`put_table`].
pub fn put_values(
    text: &str,
    servers: &str,
    name: &str,
    values: &[(&str, String)],
) -> Result<String, EditError> {
    let path: Vec<&str> = servers.split('.').chain([name]).collect();
    let mut expected = parse(text)?;
    let mut out = text.to_owned();
    for (key, value) in values {
        let new = parse(&format!("{key} = {value}"))?.remove(*key);
        let table = get_or_create_table(&mut expected, servers)
            .and_then(|all| all.get_mut(name)?.as_table_mut());
        let (Some(new), Some(table)) = (new, table) else {
            return Err(not_tables(text, servers, name));
        };
        if table.get(*key) == Some(&new) {
            continue;
        }
        table.insert((*key).to_owned(), new);
        out = put_value(&out, &path, key, value)
            .map_err(|wrong| wrong.or_at(position(text, servers, name)))?;
    }
    check(&out, &expected, servers).map_err(|wrong| wrong.or_at(position(text, servers, name)))?;
    Ok(out)
}

fn put_value(text: &str, path: &[&str], key: &str, value: &str) -> Result<String, EditError> {
    let document = document(text)?;
    let table = path
        .iter()
        .try_fold(document.as_item(), |at, name| at.get(name));
    let old = table.and_then(|table| table.get(key)?.as_value()?.span());
    if let Some(old) = old {
        return Ok(format!("{}{value}{}", &text[..old.start], &text[old.end..]));
    }
    let sections = sections(text)?;
    let Some(section) = sections.iter().find(|one| one.names == path) else {
        return Err(match path {
            [servers @ .., name] => not_tables(text, &servers.join("."), name),
            [] => EditError::new("the table has no name"),
        });
    };
    let newline = newline_of(text);
    let lines = &text[section.lines.clone()];
    let header = lines.find('\n').map_or(lines.len(), |end| end + 1);
    let (head, tail) = text.split_at(section.lines.start + header);
    let gap = if head.ends_with('\n') { "" } else { newline };
    Ok(format!("{head}{gap}{key} = {value}{newline}{tail}"))
}

/// Returns the position of a table, or of the last one above it that the text has.
pub fn position(text: &str, servers: &str, name: &str) -> Option<Range<usize>> {
    let document = document(text).ok()?;
    let mut item = document.as_item();
    let mut found = None;
    for name in servers.split('.').chain([name]) {
        let Some(table) = item.as_table_like() else {
            break;
        };
        let Some((key, inner)) = table.get_key_value(name) else {
            break;
        };
        found = inner.span().or_else(|| key.span()).or(found);
        item = inner;
    }
    found
}

/// Appends tables to a text, after a blank line and with its line breaks.
pub fn append(text: &mut String, own: &str) {
    let newline = newline_of(text);
    let before = text.trim_start_matches('\u{feff}');
    let (is_empty, is_line) = (before.is_empty(), before.ends_with('\n'));
    if !is_empty && !is_line {
        text.push_str(newline);
    }
    if !is_empty {
        text.push_str(newline);
    }
    let own = with_breaks_of(text, own);
    text.push_str(&own);
}

/// Returns tables with the line breaks of a text.
fn with_breaks_of(text: &str, own: &str) -> String {
    let newline = newline_of(text);
    // In a string of several lines, a line break is part of the value.
    let has_long_string = own.contains("\"\"\"") || own.contains("'''");
    if newline == "\n" || has_long_string || own.contains(newline) {
        own.to_owned()
    } else {
        own.replace('\n', newline)
    }
}

/// Removes a table and the tables below it; returns `None` if it is not there.
///
/// # Errors
/// As for [`put_table`].
pub fn remove(text: &str, servers: &str, name: &str) -> Result<Option<String>, EditError> {
    let before = parse(text)?;
    let there = table_at(&before, servers).and_then(|all| all.get(name));
    if there.is_none() {
        return Ok(None);
    }
    let sections = sections(text)?;
    let own = sections.iter();
    let own: Vec<bool> = own.map(|one| is_below(&one.names, servers, name)).collect();
    let out = cut(text, &sections, &own);
    let expected = strip(before, servers, name);
    check(&out, &expected, servers).map_err(|wrong| wrong.or_at(position(text, servers, name)))?;
    Ok(Some(out))
}

/// Returns the entry of `name` in the table of servers: as JSON, and its text as the file has it, if it is written as tables.
///
/// # Errors
/// The text is not TOML.
pub fn entry(
    text: &str,
    servers: &str,
    name: &str,
) -> Result<Option<(serde_json::Value, String)>, EditError> {
    let table = parse(text)?;
    let Some(own) = table_at(&table, servers).and_then(|all| all.get(name)) else {
        return Ok(None);
    };
    let json = serde_json::to_value(own).map_err(|e| EditError::new(e.to_string()))?;
    let sections = sections(text)?;
    let own = sections.iter();
    let own = own.filter(|one| is_below(&one.names, servers, name));
    let mut tables = String::new();
    for section in own {
        if !tables.is_empty() && !tables.ends_with('\n') {
            tables.push_str(newline_of(text));
        }
        tables.push_str(&text[section.lines.clone()]);
    }
    Ok(Some((json, tables)))
}

/// Returns the table with this dotted name.
fn table_at<'t>(table: &'t Table, dotted: &str) -> Option<&'t Table> {
    let mut names = dotted.split('.');
    names.try_fold(table, |at, name| at.get(name)?.as_table())
}

/// Returns the table with this dotted name, creating it if it is missing.
fn get_or_create_table<'t>(table: &'t mut Table, dotted: &str) -> Option<&'t mut Table> {
    let mut names = dotted.split('.');
    names.try_fold(table, |at, name| {
        let inner = at.entry(name);
        inner
            .or_insert_with(|| Value::Table(Table::new()))
            .as_table_mut()
    })
}

/// Removes the table with this dotted name if it is empty, and any parents that become empty.
fn remove_empty_tables(table: &mut Table, dotted: &str) {
    let (name, rest) = match dotted.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (dotted, None),
    };
    if let (Some(rest), Some(inner)) = (rest, table.get_mut(name).and_then(Value::as_table_mut)) {
        remove_empty_tables(inner, rest);
    }
    if table
        .get(name)
        .and_then(Value::as_table)
        .is_some_and(Table::is_empty)
    {
        table.remove(name);
    }
}

/// Parses a text.
///
/// # Errors
/// The text is not TOML.
pub fn parse(text: &str) -> Result<Table, EditError> {
    if text.len() > MAX_BYTES {
        let what = format!("the TOML is larger than {} MiB", MAX_BYTES >> 20);
        return Err(EditError::new(what));
    }
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = text.len() - plain.len();
    toml::from_str::<Table>(plain).map_err(|e| {
        let at = e.span().unwrap_or(plain.len()..plain.len());
        EditError::at(e.message().trim_end(), at.start + mark..at.end + mark)
    })
}

fn is_below(header: &[String], servers: &str, name: &str) -> bool {
    let path = servers.split('.').chain([name]);
    header.len() >= path.clone().count() && path.zip(header).all(|(part, found)| part == found)
}

/// Returns the table without ours; an empty table of servers counts as none.
fn strip(mut table: Table, servers: &str, name: &str) -> Table {
    if table_at(&table, servers).is_some()
        && let Some(all) = get_or_create_table(&mut table, servers)
    {
        all.remove(name);
    }
    remove_empty_tables(&mut table, servers);
    table
}

/// Whether two tables say the same. A `nan` in them, which never equals itself, is written the same.
pub(crate) fn same(one: &Table, other: &Table) -> bool {
    one == other || one.to_string() == other.to_string()
}

/// Fails unless the edited text is exactly what it should be.
fn check(text: &str, expected: &Table, servers: &str) -> Result<(), EditError> {
    // The position would be one in a text that is not written.
    let mut now = parse(text).map_err(|wrong| {
        let what = wrong.what;
        EditError::new(format!("`{servers}` is not written as a table: {what}"))
    })?;
    remove_empty_tables(&mut now, servers);
    if same(&now, expected) {
        return Ok(());
    }
    Err(EditError::new(format!(
        "`{servers}` is not written in a way that can be edited"
    )))
}

#[cfg(test)]
mod tests;
