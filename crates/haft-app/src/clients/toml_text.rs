//! Edits TOML in place: appends or removes a table and leaves every other byte as it is. `servers` is the dotted name of the table that
//! contains it.

use toml::{Table, Value};

use crate::clients::Launch;
use crate::clients::jsonc::EditError;

/// Returns the table that starts haft.
pub(super) fn table(servers: &str, name: &str, launch: &Launch) -> String {
    let text = |text: &str| Value::String(text.to_owned()).to_string();
    let args: Vec<String> = launch.args.iter().map(|arg| text(arg)).collect();
    format!(
        "[{servers}.{name}]\ncommand = {}\nargs = [{}]\n",
        text(&launch.command),
        args.join(", ")
    )
}

/// Appends haft's table, replacing an existing one.
pub(super) fn put(
    text: &str,
    servers: &str,
    name: &str,
    launch: &Launch,
) -> Result<String, EditError> {
    put_table(text, servers, name, &table(servers, name, launch))
}

/// Appends a table with its header, replacing one with its name.
pub(crate) fn put_table(
    text: &str,
    servers: &str,
    name: &str,
    own: &str,
) -> Result<String, EditError> {
    let before = parse(text)?;
    let rest = remove(text, servers, name)?;
    let mut out = rest.unwrap_or_else(|| text.to_owned());
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    if !out.trim().is_empty() {
        out.push('\n');
    }
    out.push_str(own);
    let mut expected = strip(before, servers, name);
    let new = parse(own)?;
    let new = table_at(&new, servers).and_then(|all| all.get(name));
    let new = new.cloned().ok_or_else(|| EditError {
        what: format!("the new value is not a table `{servers}.{name}`"),
        at: 0..0,
    })?;
    if let Some(at) = get_or_create_table(&mut expected, servers) {
        at.insert(name.to_owned(), new);
    }
    check(&out, &expected, servers)?;
    Ok(out)
}

/// Removes haft's table and its subtables; returns `None` if it is not there.
pub(crate) fn remove(text: &str, servers: &str, name: &str) -> Result<Option<String>, EditError> {
    let before = parse(text)?;
    let there = table_at(&before, servers).and_then(|all| all.get(name));
    if there.is_none() {
        return Ok(None);
    }
    let mut out = String::with_capacity(text.len());
    // Comments and blank lines before the next table belong to that table.
    let mut held = String::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        if let Some(header) = header(line) {
            let was = inside;
            inside = is_below(&header, servers, name);
            if inside && !was {
                // The blank line that separates it.
                let head = out.len();
                if out.ends_with("\n\n") {
                    out.truncate(head - 1);
                }
            }
            if was && !inside {
                out.push_str(&held);
            }
            held.clear();
        }
        if !inside {
            out.push_str(line);
        } else if line.trim().is_empty() || line.trim_start().starts_with('#') {
            held.push_str(line);
        } else {
            held.clear();
        }
    }
    if inside && held.trim_start().starts_with('#') {
        out.push_str(&held);
    }
    let expected = strip(before, servers, name);
    check(&out, &expected, servers)?;
    Ok(Some(out))
}

/// Returns the entry of `name` in the table of servers: as JSON, and as a table that can be added again.
pub(super) fn entry(
    text: &str,
    servers: &str,
    name: &str,
) -> Result<Option<(serde_json::Value, String)>, EditError> {
    let table = parse(text)?;
    let Some(own) = table_at(&table, servers).and_then(|all| all.get(name)) else {
        return Ok(None);
    };
    let unreadable = |what: String| EditError { what, at: 0..0 };
    let json = serde_json::to_value(own).map_err(|e| unreadable(e.to_string()))?;
    let mut all = Table::new();
    if let Some(at) = get_or_create_table(&mut all, servers) {
        at.insert(name.to_owned(), own.clone());
    }
    let text = toml::to_string(&all).map_err(|e| unreadable(e.to_string()))?;
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

fn parse(text: &str) -> Result<Table, EditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    toml::from_str::<Table>(text).map_err(|e| EditError {
        what: e.message().to_owned(),
        at: e.span().unwrap_or(0..0),
    })
}

/// Returns the names in a table's header: `[a."b c"]`.
fn header(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    if !line.starts_with('[') || line.starts_with("[[") {
        return line.starts_with("[[").then(Vec::new);
    }
    let table: Table = toml::from_str(line.trim_end()).ok()?;
    let mut names = Vec::new();
    let mut at = &table;
    while let Some((name, inner)) = at.iter().next() {
        names.push(name.clone());
        at = inner.as_table()?;
    }
    Some(names)
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

/// Fails unless the edited text is exactly what it should be: it was edited by lines, which multi-line strings could confuse.
fn check(text: &str, expected: &Table, servers: &str) -> Result<(), EditError> {
    let mut now = parse(text).map_err(|wrong| EditError {
        what: format!("`{servers}` is not written as a table: {}", wrong.what),
        at: 0..0,
    })?;
    remove_empty_tables(&mut now, servers);
    if now == *expected {
        return Ok(());
    }
    Err(EditError {
        what: format!("`{servers}` is not written in a way that can be edited"),
        at: 0..0,
    })
}

#[cfg(test)]
mod tests {
    use super::{put, put_table, remove};
    use crate::clients::Launch;

    const KEPT: &str = "# mine\nmodel = \"o\" # why\n\n[mcp_servers.docs]\ncommand = 'x'\n\n# note\n[tui]\nx = \"\"\"\n[mcp_servers.haft]\n\"\"\"\n";

    fn launch(command: &str) -> Launch {
        Launch {
            command: command.into(),
            args: vec!["serve".into(), "--workspace".into(), "/a \"b\"".into()],
        }
    }

    #[test]
    fn what_is_put_in_is_taken_out_again() {
        for text in ["", "\n", "model = \"o\"\n", "[a]\nb = 1\n", KEPT] {
            let with = put(text, "mcp_servers", "haft", &launch("/bin/haft"));
            if text == KEPT {
                // A multi-line string that looks like a header defeats the edit by lines: it is refused, not guessed.
                let again = remove(&with.unwrap(), "mcp_servers", "haft");
                assert!(again.is_err());
                continue;
            }
            let with = with.unwrap();
            assert!(with.starts_with(text.trim_end()), "{with}");
            let twice = put(&with, "mcp_servers", "haft", &launch("/opt/haft")).unwrap();
            assert!(
                twice.contains("/opt/haft") && !twice.contains("/bin/haft"),
                "{twice}"
            );
            let without = remove(&twice, "mcp_servers", "haft").unwrap().unwrap();
            assert_eq!(without.trim_end(), text.trim_end());
        }
    }

    #[test]
    fn tables_below_go_and_comments_of_the_next_table_stay() {
        let text = "[mcp_servers.haft]\ncommand = \"a\"\n[mcp_servers.haft.env]\nX = \"1\"\n\n# of the next\n[mcp_servers.\"other one\"]\ncommand = \"b\"\n";
        let without = remove(text, "mcp_servers", "haft").unwrap().unwrap();
        assert_eq!(
            without,
            "\n# of the next\n[mcp_servers.\"other one\"]\ncommand = \"b\"\n"
        );
        assert_eq!(remove(&without, "mcp_servers", "haft").unwrap(), None);
    }

    #[test]
    fn a_table_below_another_one_is_put_in_and_taken_out() {
        let own = "[mcp.servers.docs]\ncommand = \"x\"\n";
        for text in [
            "",
            "# mine\n[mcp]\ntrusted_clients = [\"a\"] # why\n",
            "[mcp.servers.other]\nurl = \"https://x\"\n\n# of the next\n[policy]\nask = []\n",
        ] {
            let with = put_table(text, "mcp.servers", "docs", own).unwrap();
            assert!(with.starts_with(text) && with.ends_with(own), "{with}");
            let with = format!("{with}[mcp.servers.docs.sandbox]\nnetwork = \"host\"\n");
            let without = remove(&with, "mcp.servers", "docs").unwrap().unwrap();
            assert_eq!(without.trim_end(), text.trim_end());
            assert_eq!(remove(&without, "mcp.servers", "docs").unwrap(), None);
        }
        let inline = "mcp = { servers = { docs = { command = \"x\" } } }\n";
        assert!(remove(inline, "mcp.servers", "docs").is_err());
        assert!(
            put_table(
                inline,
                "mcp.servers",
                "more",
                "[mcp.servers.more]\nurl = \"u\"\n"
            )
            .is_err()
        );
    }

    #[test]
    fn what_cannot_be_edited_by_lines_is_refused() {
        for text in [
            "mcp_servers = { haft = { command = \"a\" } }\n",
            "mcp_servers.haft.command = \"a\"\n",
            "[mcp_servers]\nhaft = { command = \"a\" }\n",
        ] {
            assert!(remove(text, "mcp_servers", "haft").is_err(), "{text}");
        }
        let inline = "mcp_servers = {}\n";
        assert!(put(inline, "mcp_servers", "haft", &launch("/bin/haft")).is_err());
        let broken = put("a = \n", "mcp_servers", "haft", &launch("x")).unwrap_err();
        assert_eq!(broken.at.start, 4);
    }
}
