//! `TomlHooks`: hooks in Codex's `config.toml`. haft's entries go to the end of the file and are removed by lines; every other byte stays.

use std::ops::Range;
use std::path::Path;

use haft_hook::Agent;
use toml::{Table, Value};

use crate::clients::install::record::InstallRecord;
use crate::clients::install::target::{InstallContent, InstalledEntry};
use crate::clients::jsonc::EditError;
use crate::hook_settings::by_hand;
use crate::hook_settings::json_hooks::{HookPosition, JsonHooks};
use crate::hook_settings::places::{HookLayout, HookRegistration as HookEntry};
use crate::plain_file;

/// Maximum size of a settings file, in bytes: larger than any real one.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The hooks of Codex in a file of TOML.
#[derive(Debug, Clone)]
pub(crate) struct TomlHooks {
    pub(crate) agent: Agent,
    pub(crate) entries: Vec<HookEntry>,
}

/// Whether the file has hooks, that is, a list of groups for an event. Codex's list of reviews is in the same table and is not a hook.
pub(crate) fn has_hooks(path: &Path) -> bool {
    let Ok(text) = plain_file::read(path, MAX_BYTES) else {
        return false;
    };
    let table = parse(&text).unwrap_or_default();
    let hooks = table.get("hooks").and_then(Value::as_table);
    hooks.is_some_and(|hooks| hooks.values().any(Value::is_array))
}

fn parse(text: &str) -> Result<Table, EditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    toml::from_str(text).map_err(|e| EditError {
        what: e.message().to_owned(),
        at: e.span().unwrap_or(0..0),
    })
}

fn wrong<T>(what: &str) -> Result<T, EditError> {
    Err(EditError {
        what: what.to_owned(),
        at: 0..0,
    })
}

impl TomlHooks {
    /// Returns haft's entries in a text.
    pub(crate) fn spots(&self, text: &str) -> Result<Vec<HookPosition>, EditError> {
        let table = parse(text)?;
        let hooks = match table.get("hooks") {
            None => return Ok(Vec::new()),
            Some(hooks) if hooks.is_table() => hooks,
            Some(_) => return wrong("`hooks` is not a table"),
        };
        let json = serde_json::to_string(&serde_json::json!({ "hooks": hooks }));
        let json = json.map_err(|e| EditError {
            what: format!("`hooks` cannot be read: {e}"),
            at: 0..0,
        })?;
        self.as_json().spots(&json)
    }

    fn as_json(&self) -> JsonHooks {
        JsonHooks {
            agent: self.agent,
            layout: HookLayout {
                parent: &["hooks"],
                root: Vec::new(),
                entries: self.entries.clone(),
                is_own: false,
            },
        }
    }

    /// Adds haft at the end, for every event that lacks it.
    pub(crate) fn put(&self, text: &str) -> Result<String, EditError> {
        let spots = self.spots(text)?;
        let mut expected = parse(text)?;
        let mut out = text.to_owned();
        for entry in &self.entries {
            if spots.iter().any(|spot| spot.event == entry.event) {
                continue;
            }
            let own = tables(&entry.event, &entry.value["hooks"][0])?;
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            if !out.trim().is_empty() {
                out.push('\n');
            }
            out.push_str(&own);
            push(&mut expected, &own, &entry.event)?;
        }
        check(out, &expected)
    }
}

/// Writes a group of one hook as tables.
fn tables(event: &str, handler: &serde_json::Value) -> Result<String, EditError> {
    let body = toml::to_string(handler).map_err(|e| EditError {
        what: format!("write the hook as TOML: {e}"),
        at: 0..0,
    })?;
    Ok(format!(
        "[[hooks.{event}]]\n[[hooks.{event}.hooks]]\n{body}"
    ))
}

/// Adds the group to the table that the text must parse to.
fn push(expected: &mut Table, own: &str, event: &str) -> Result<(), EditError> {
    let own = parse(own)?;
    let group = own
        .get("hooks")
        .and_then(|hooks| hooks.get(event)?.get(0))
        .cloned();
    let hooks = expected
        .entry("hooks")
        .or_insert_with(|| Value::Table(Table::new()));
    let list = hooks.as_table_mut().map(|hooks| {
        hooks
            .entry(event)
            .or_insert_with(|| Value::Array(Vec::new()))
    });
    match (list.and_then(Value::as_array_mut), group) {
        (Some(list), Some(group)) => {
            list.push(group);
            Ok(())
        }
        _ => wrong("`hooks` is not written as tables"),
    }
}

/// Fails unless the edited text parses to just what it should. It was edited by lines, which multi-line strings could confuse.
fn check(out: String, expected: &Table) -> Result<String, EditError> {
    if parse(&out).as_ref() == Ok(expected) {
        return Ok(out);
    }
    wrong("`hooks` is not written in a way that can be edited")
}

/// Parses a table's header. Returns its names, and whether it is an element of a list, as in `[[a."b c"]]`.
fn header(line: &str) -> Option<(Vec<String>, bool)> {
    let line = line.trim();
    let is_list = line.starts_with("[[");
    if !line.starts_with('[') {
        return None;
    }
    let table: Table = toml::from_str(line).ok()?;
    let mut names = Vec::new();
    let mut at = &Value::Table(table);
    loop {
        let table = match at {
            Value::Array(items) => items.first()?.as_table()?,
            other => other.as_table()?,
        };
        let Some((name, inner)) = table.iter().next() else {
            return Some((names, is_list));
        };
        names.push(name.clone());
        at = inner;
    }
}

/// Returns the lines of an entry: those of its group, or only those of its own table if the group has other hooks.
fn lines_of(text: &str, spot: &HookPosition, is_alone: bool) -> Option<Range<usize>> {
    let group = ["hooks", spot.event.as_str()];
    let (mut groups, mut handlers, mut from) = (0, 0, None);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        let Some((names, is_list)) = header(line) else {
            continue;
        };
        let is_group = is_list && names == group;
        let is_handler = is_list && names.len() == 3 && names[..2] == group && names[2] == "hooks";
        let is_inside = names.len() > 2 && names[..2] == group && !is_handler;
        if let Some(from) = from {
            let ends = if is_alone {
                is_group
            } else {
                is_group || is_handler
            };
            if ends || !(is_inside || is_handler) {
                return Some(from..begin);
            }
        }
        if is_group {
            groups += 1;
            handlers = 0;
        }
        handlers += usize::from(is_handler);
        let is_it = groups == spot.item + 1
            && if is_alone {
                is_group
            } else {
                is_handler && handlers == spot.handler.unwrap_or_default() + 1
            };
        if is_it && from.is_none() {
            from = Some(begin);
        }
    }
    from.map(|from| from..text.len())
}

/// Removes lines from a text. Comments and blank lines before the next table belong to that table and stay.
fn without_lines(text: &str, lines: &Range<usize>) -> String {
    let mut end = lines.end;
    let inside = &text[lines.clone()];
    for line in inside.split_inclusive('\n').rev() {
        let is_of_next = line.trim().is_empty() || line.trim_start().starts_with('#');
        if !is_of_next || end == text.len() && line.trim().is_empty() {
            break;
        }
        end -= line.len();
    }
    let mut head = text[..lines.start].to_owned();
    // The blank line before it goes, too.
    if head.ends_with("\n\n") {
        head.pop();
    }
    head + &text[end..]
}

impl InstallContent for TomlHooks {
    fn owner(&self) -> &'static str {
        self.agent.title()
    }

    fn by_hand(&self) -> String {
        by_hand(self.agent)
    }

    fn entry(&self, text: &str) -> Result<Option<InstalledEntry>, EditError> {
        let is_there = !self.spots(text)?.is_empty();
        Ok(is_there.then(|| InstalledEntry::unrecorded(true)))
    }

    fn has_parent(&self, text: &str) -> bool {
        parse(text).is_ok_and(|table| table.contains_key("hooks"))
    }

    fn without(
        &self,
        text: &str,
        _record: Option<&InstallRecord>,
    ) -> Result<Option<String>, EditError> {
        let spots = self.spots(text)?;
        if spots.is_empty() {
            return Ok(None);
        }
        let mut out = text.to_owned();
        let mut expected = parse(text)?;
        let mut gone: Option<&HookPosition> = None;
        for spot in spots.iter().rev() {
            if gone.is_some_and(|gone| gone.event == spot.event && gone.item == spot.item) {
                continue;
            }
            let Some(lines) = lines_of(&out, spot, spot.is_alone) else {
                return wrong("`hooks` is not written as tables");
            };
            out = without_lines(&out, &lines);
            if spot.is_alone {
                gone = Some(spot);
            }
            remove(&mut expected, spot);
        }
        check(out, &expected).map(Some)
    }
}

/// Removes an entry from the table that the text must parse to, with the list and the table that are then empty.
fn remove(expected: &mut Table, spot: &HookPosition) {
    let Some(hooks) = expected.get_mut("hooks").and_then(Value::as_table_mut) else {
        return;
    };
    let Some(list) = hooks.get_mut(&spot.event).and_then(Value::as_array_mut) else {
        return;
    };
    if spot.is_alone {
        list.remove(spot.item);
    } else if let Some(handlers) = list[spot.item]
        .get_mut("hooks")
        .and_then(Value::as_array_mut)
    {
        handlers.remove(spot.handler.unwrap_or_default());
    }
    if list.is_empty() {
        hooks.remove(&spot.event);
    }
    if hooks.is_empty() {
        expected.remove("hooks");
    }
}

#[cfg(test)]
mod tests {
    use haft_hook::Agent;
    use serde_json::json;

    use super::TomlHooks;
    use crate::clients::install::target::InstallContent as _;
    use crate::hook_settings::places::HookRegistration;

    fn codex() -> TomlHooks {
        let entry = |event: &str| HookRegistration {
            event: event.to_owned(),
            value: json!({"hooks": [{"type": "command", "command": "haft hook codex", "timeout": 600}]}),
        };
        TomlHooks {
            agent: Agent::Codex,
            entries: vec![entry("PreToolUse"), entry("PostToolUse")],
        }
    }

    #[test]
    fn what_is_put_at_the_end_is_taken_out_again() {
        let rows = [
            "model = \"o\" # why\n",
            "# mine\n[[hooks.PreToolUse]]\nmatcher = \"Bash\"\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"lint\"\n",
            "[hooks.state.\"/x:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:1\"\n\n[tui]\nx = 1\n",
            "[[hooks.Stop]]\nhooks = [{ type = \"command\", command = \"bell\" }]\n",
        ];
        for text in rows {
            let with = codex().put(text).unwrap();
            assert!(with.starts_with(text), "{with}");
            assert_eq!(codex().spots(&with).unwrap().len(), 2, "{with}");
            // A second run changes nothing: Codex trusts an entry by its text and position.
            assert_eq!(codex().put(&with).unwrap(), with);
            let more = format!("{with}\n# of the next\n[more]\nx = 1\n");
            for (with, rest) in [(with, ""), (more, "\n# of the next\n[more]\nx = 1\n")] {
                let without = codex().without(&with, None).unwrap().unwrap();
                assert_eq!(without, format!("{text}{rest}"));
                assert_eq!(codex().without(&without, None).unwrap(), None);
            }
        }
    }

    #[test]
    fn others_in_our_group_and_groups_around_it_stay() {
        let text = "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ncommand = \"a\"\n\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ncommand = \"b\"\n[[hooks.PreToolUse.hooks]]\ncommand = \"/x/haft hook codex\"\n# c's\n[[hooks.PreToolUse.hooks]]\ncommand = \"c\"\n";
        let without = codex().without(text, None).unwrap().unwrap();
        let expected = text.replace(
            "[[hooks.PreToolUse.hooks]]\ncommand = \"/x/haft hook codex\"\n",
            "",
        );
        assert_eq!(without, expected);
    }

    #[test]
    fn what_cannot_be_edited_by_lines_is_refused() {
        for text in [
            "hooks = 3\n",
            "hooks = { PreToolUse = [] }\n",
            "[hooks]\nPreToolUse = \"x\"\n",
            "[hooks]\nPreToolUse = [{ hooks = [{ command = \"lint\" }] }]\n",
            "a = \n",
        ] {
            assert!(codex().put(text).is_err(), "{text}");
        }
        for text in [
            "[hooks]\nPreToolUse = [{ hooks = [{ command = \"haft hook codex\" }] }]\n",
            "x = \"\"\"\n[[hooks.PreToolUse]]\n\"\"\"\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ncommand = \"haft hook codex\"\n",
        ] {
            assert!(codex().without(text, None).is_err(), "{text}");
        }
    }
}
