//! `TomlHooks`: hooks in Codex's `config.toml`. haft's entries go to the end of the file and are removed alone; every other byte stays.

use std::path::Path;

use crate::edit::EditError;
use crate::edit::toml::{TomlSection, append, cut, parse, same, sections};
use haft_hook::Agent;
use toml::{Table, Value};

use crate::clients::install::record::InstallRecord;
use crate::clients::install::target::{InstallContent, InstalledEntry};
use crate::hook_settings::by_hand;
use crate::hook_settings::json_hooks::JsonHooks;
use crate::hook_settings::places::{HookLayout, HookRegistration as HookEntry};
use crate::plain_file;
use crate::program::HookPosition;

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
            append(&mut out, &own);
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

/// Fails unless the edited text parses to just what it should.
fn check(out: String, expected: &Table) -> Result<String, EditError> {
    if parse(&out).is_ok_and(|now| same(&now, expected)) {
        return Ok(out);
    }
    wrong("`hooks` is not written in a way that can be edited")
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
            let sections = sections(&out)?;
            let Some(own) = sections_of(&sections, spot) else {
                return wrong("`hooks` is not written as tables");
            };
            out = cut(&out, &sections, &own);
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
