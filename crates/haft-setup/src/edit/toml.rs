//! Edits TOML in place: appends or removes tables and leaves every other byte as it is. The name of a table is dotted: `mcp.servers`.

use toml::{Table, Value};

use crate::edit::{EditError, newline_of};

pub use sections::{TomlSection, cut, sections};

mod sections;

/// Maximum size of a text: it is parsed several times, and takes a hundred times its size in memory.
const MAX_BYTES: usize = 8 << 20;

/// Appends a table with its header, replacing one with its name.
///
/// # Errors
/// The text is not TOML, or is written in a way that cannot be edited.
pub fn put_table(text: &str, servers: &str, name: &str, own: &str) -> Result<String, EditError> {
    let before = parse(text)?;
    let rest = remove(text, servers, name)?;
    let mut out = rest.unwrap_or_else(|| text.to_owned());
    append(&mut out, own);
    let mut expected = strip(before, servers, name);
    let new = parse(own)?;
    let new = table_at(&new, servers).and_then(|all| all.get(name));
    let new = new.cloned().ok_or_else(|| {
        EditError::new(format!("the new value is not a table `{servers}.{name}`"))
    })?;
    if let Some(at) = get_or_create_table(&mut expected, servers) {
        at.insert(name.to_owned(), new);
    }
    check(&out, &expected, servers)?;
    Ok(out)
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
    // In a string of several lines, a line break is part of the value.
    let has_long_string = own.contains("\"\"\"") || own.contains("'''");
    if newline == "\n" || has_long_string {
        text.push_str(own);
    } else {
        text.push_str(&own.replace('\n', newline));
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
    check(&out, &expected, servers)?;
    Ok(Some(out))
}

/// Returns the entry of `name` in the table of servers: as JSON, and as a table that can be added again.
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
    let mut all = Table::new();
    if let Some(at) = get_or_create_table(&mut all, servers) {
        at.insert(name.to_owned(), own.clone());
    }
    let text = toml::to_string(&all).map_err(|e| EditError::new(e.to_string()))?;
    Ok(Some((json, text)))
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
        let at = e.span().unwrap_or(0..0);
        EditError::at(e.message(), at.start + mark..at.end + mark)
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
