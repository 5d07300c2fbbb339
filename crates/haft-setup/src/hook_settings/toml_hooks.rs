//! Hooks in TOML, written as tables: a group is appended to the end of the file, and the tables of an entry are removed alone.

use std::path::Path;

use serde_json::{Value as Json, json};
use toml::{Table, Value};

use crate::edit::EditError;
use crate::edit::toml::{TomlSection, append, cut, parse, position, same, sections};
use crate::plain_file;
use crate::program::{HookPosition, HookRegistration, MAX_BYTES};

/// Whether the file has hooks, that is, a list of groups for an event. Codex's list of reviews is in the same table and is not a hook.
pub(crate) fn has_hooks(path: &Path) -> bool {
    let Ok(text) = plain_file::read(path, MAX_BYTES) else {
        return false;
    };
    let table = parse(&text).unwrap_or_default();
    let hooks = table.get("hooks").and_then(Value::as_table);
    hooks.is_some_and(|hooks| hooks.values().any(Value::is_array))
}

/// Reads the hooks of a text, and nothing else of it, as JSON.
pub(super) fn read(text: &str) -> Result<Json, EditError> {
    match parse(text)?.get("hooks") {
        None => Ok(json!({})),
        Some(hooks) => serde_json::to_value(hooks)
            .map(|hooks| json!({ "hooks": hooks }))
            .map_err(|e| EditError::new(format!("`hooks` cannot be read: {e}"))),
    }
}

/// Appends a group of one hook to the list of an event, as tables at the end of the text.
pub(super) fn append_group(text: &str, entry: &HookRegistration) -> Result<String, EditError> {
    let HookRegistration { event, value } = entry;
    let mut expected = parse(text)?;
    let body = toml::to_string(&value["hooks"][0])
        .map_err(|e| EditError::new(format!("the hook cannot be written as TOML: {e}")))?;
    let own = format!("[[hooks.{event}]]\n[[hooks.{event}.hooks]]\n{body}");
    let group = parse(&own)?;
    let group = group
        .get("hooks")
        .and_then(|hooks| hooks.get(event)?.get(0));
    let list = expected
        .entry("hooks")
        .or_insert_with(|| Value::Table(Table::new()))
        .as_table_mut()
        .map(|hooks| {
            hooks
                .entry(event)
                .or_insert_with(|| Value::Array(Vec::new()))
        });
    let (Some(list), Some(group)) = (list.and_then(Value::as_array_mut), group) else {
        return Err(not_tables(text, event));
    };
    list.push(group.clone());
    let mut out = text.to_owned();
    append(&mut out, &own);
    check(out, &expected).ok_or_else(|| not_tables(text, event))
}

/// Removes an entry: its group, or only its own table if the group has other hooks.
pub(super) fn take(text: &str, spot: &HookPosition) -> Result<String, EditError> {
    let mut expected = parse(text)?;
    let sections = sections(text)?;
    let own = sections_of(&sections, spot);
    let own = own.ok_or_else(|| not_tables(text, &spot.event))?;
    let out = cut(text, &sections, &own);
    remove(&mut expected, spot);
    check(out, &expected).ok_or_else(|| not_tables(text, &spot.event))
}

fn not_tables(text: &str, event: &str) -> EditError {
    let wrong = EditError::new(format!(
        "`hooks.{event}` is not written as tables, so it cannot be edited"
    ));
    wrong.or_at(position(text, "hooks", event))
}

/// Returns the edited text if it parses to just what it should.
fn check(out: String, expected: &Table) -> Option<String> {
    let is_same = parse(&out).is_ok_and(|now| same(&now, expected));
    is_same.then_some(out)
}

/// Returns which sections are an entry's: those of its group, or only that of its own table and what is below it if the group has other
/// hooks. `None` if it is not written as tables.
fn sections_of(sections: &[TomlSection], spot: &HookPosition) -> Option<Vec<bool>> {
    let group = ["hooks", spot.event.as_str()];
    let (mut groups, mut handlers) = (0, 0);
    let is_own = sections.iter().map(|section| {
        let names = &section.names;
        let is_inside = names.len() >= 2 && names[..2] == group;
        if section.is_list && is_inside {
            match &names[2..] {
                [] => (groups, handlers) = (groups + 1, 0),
                [name] if name == "hooks" => handlers += 1,
                _ => {}
            }
        }
        let is_handler = names.len() > 2
            && names[2] == "hooks"
            && handlers == spot.handler.unwrap_or_default() + 1;
        is_inside && groups == spot.item + 1 && (spot.is_alone || is_handler)
    });
    let is_own: Vec<bool> = is_own.collect();
    is_own.contains(&true).then_some(is_own)
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

    use crate::clients::install::target::InstallContent as _;
    use crate::hook_settings::entries::HookEntries;
    use crate::hook_settings::format::HookFormat;
    use crate::hook_settings::places::HookLayout;
    use crate::program::HookRegistration;

    fn codex() -> HookEntries {
        let entry = |event: &str| HookRegistration {
            event: event.to_owned(),
            value: json!({"hooks": [{"type": "command", "command": "haft hook codex", "timeout": 600}]}),
        };
        HookEntries {
            agent: Agent::Codex,
            layout: HookLayout {
                format: HookFormat::Toml,
                parent: &["hooks"],
                root: Vec::new(),
                entries: vec![entry("PreToolUse"), entry("PostToolUse")],
                is_own: false,
            },
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
    fn what_is_not_written_as_tables_is_refused() {
        for text in [
            "hooks = 3\n",
            "hooks = { PreToolUse = [] }\n",
            "[hooks]\nPreToolUse = \"x\"\n",
            "[hooks]\nPreToolUse = [{ hooks = [{ command = \"lint\" }] }]\n",
            "a = \n",
        ] {
            assert!(codex().put(text).is_err(), "{text}");
        }
        let inline = "[hooks]\nPreToolUse = [{ hooks = [{ command = \"haft hook codex\" }] }]\n";
        assert!(codex().without(inline, None).is_err());
    }

    #[test]
    fn a_string_that_looks_like_a_header_is_not_taken_for_one() {
        let text = "x = \"\"\"\n[[hooks.PreToolUse]]\n\"\"\"\n";
        let own =
            "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ncommand = \"haft hook codex\"\n";
        let without = codex().without(&format!("{text}{own}"), None).unwrap();
        assert_eq!(without.as_deref(), Some(text));
    }
}
