//! `HookEntries`: hooks in a settings file. haft's entries go to the end of an agent's lists, are found by their command, and are removed
//! alone. Which text that changes is the matter of the file's format.

use haft_hook::Agent;
use serde_json::{Map, Value, json};

use crate::clients::install::record::InstalledPart;
use crate::clients::install::target::{ContentRole, InstallContent, InstalledEntry};
use crate::edit::{EditError, jsonc};
use crate::hook_settings::places::HookLayout;
use crate::hook_settings::program::is_ours;
use crate::hook_settings::role;
use crate::program::HookPosition;

/// The hooks of an agent in a file that it shares with others.
#[derive(Debug, Clone)]
pub(crate) struct HookEntries {
    pub(crate) agent: Agent,
    pub(crate) layout: HookLayout,
}

impl HookEntries {
    /// Returns haft's entries in a text, in their order.
    pub(crate) fn spots(&self, text: &str) -> Result<Vec<HookPosition>, EditError> {
        let root = self.layout.format.read(text)?;
        self.check_root(text, &root)?;
        let mut spots = Vec::new();
        let Some(events) = self.events(text, &root)? else {
            return Ok(spots);
        };
        for (event, list) in events {
            let Some(items) = list.as_array() else {
                let mut known = self.layout.entries.iter();
                if known.any(|known| known.event == *event) {
                    let path = [self.layout.parent, &[event]].concat();
                    return Err(self.wrong(text, format!("`{event}` is not a list"), &path));
                }
                continue;
            };
            for (at, item) in items.iter().enumerate() {
                let found = self.spots_of(event, at, item).into_iter();
                spots.extend(found.map(|spot| HookPosition {
                    behind: items.len() - at - 1,
                    ..spot
                }));
            }
        }
        Ok(spots)
    }

    fn spots_of(&self, event: &str, at: usize, item: &Value) -> Vec<HookPosition> {
        let matcher = item.get("matcher").and_then(Value::as_str);
        let spot = |handler: Option<usize>, found: &Value, is_alone: bool| HookPosition {
            event: event.to_owned(),
            item: at,
            handler,
            matcher: matcher
                .filter(|matcher| !["", "*", ".*"].contains(matcher))
                .map(str::to_owned),
            words: super::program::words_of(found).unwrap_or_default(),
            behind: 0,
            is_alone,
        };
        if !self.is_grouped() {
            let own = is_ours(item, self.agent).then(|| spot(None, item, true));
            return own.into_iter().collect();
        }
        let Some(handlers) = item.get("hooks").and_then(Value::as_array) else {
            return Vec::new();
        };
        let is_alone = handlers.iter().all(|one| is_ours(one, self.agent));
        let all = handlers.iter().enumerate();
        all.filter(|(_, one)| is_ours(one, self.agent))
            .map(|(nth, one)| spot(Some(nth), one, is_alone))
            .collect()
    }

    /// Returns the lists of events; `None` if the object that holds them is missing.
    fn events<'v>(
        &self,
        text: &str,
        root: &'v Value,
    ) -> Result<Option<&'v Map<String, Value>>, EditError> {
        let mut at = root;
        for name in self.layout.parent {
            let Some(inner) = at.get(name) else {
                return Ok(None);
            };
            if !inner.is_object() {
                let what = format!("`{name}` is not {}", self.layout.format.object());
                return Err(self.wrong(text, what, self.layout.parent));
            }
            at = inner;
        }
        Ok(at.as_object())
    }

    fn check_root(&self, text: &str, root: &Value) -> Result<(), EditError> {
        for (name, known) in &self.layout.root {
            let found = root.get(name);
            if let Some(found) = found.filter(|found| *found != known) {
                let what = format!("its {name} is {found}, and haft knows {known}");
                return Err(self.wrong(text, what, &[name]));
            }
        }
        Ok(())
    }

    fn wrong(&self, text: &str, what: String, path: &[&str]) -> EditError {
        EditError::new(what).or_at(self.layout.format.position(text, path))
    }

    fn is_grouped(&self) -> bool {
        let mut entries = self.layout.entries.iter();
        entries.any(|entry| entry.value.get("hooks").is_some())
    }

    /// Adds haft to every event that lacks it. Existing entries stay as they are: Codex trusts an entry by its text and position.
    pub(crate) fn put(&self, text: &str) -> Result<String, EditError> {
        let spots = self.spots(text)?;
        let mut out = text.to_owned();
        for entry in &self.layout.entries {
            if spots.iter().any(|spot| spot.event == entry.event) {
                continue;
            }
            for (name, value) in &self.layout.root {
                out = jsonc::put_first(&out, name, value)?;
            }
            let HookLayout { format, parent, .. } = &self.layout;
            out = format.append(&out, parent, entry)?;
        }
        Ok(out)
    }

    fn without_positions(
        &self,
        text: &str,
        positions: &[HookPosition],
        known: Option<&InstalledPart>,
    ) -> Result<String, EditError> {
        let HookLayout { format, parent, .. } = &self.layout;
        let mut out = text.to_owned();
        let mut gone: Option<&HookPosition> = None;
        for position in positions.iter().rev() {
            let is_same =
                |gone: &HookPosition| gone.event == position.event && gone.item == position.item;
            if gone.is_some_and(is_same) {
                continue;
            }
            if position.handler.is_none() || position.is_alone {
                gone = Some(position);
            }
            out = format.take(&out, parent, position)?;
        }
        // A list that the user had stays, also if it is empty.
        let is_made =
            |position: &&HookPosition| known.is_none_or(|part| part.has_made(&position.event));
        for position in positions.iter().filter(is_made) {
            let root = format.read(&out)?;
            let list = self.events(&out, &root)?;
            let list = list.and_then(|events| events.get(&position.event)?.as_array());
            if list.is_some_and(Vec::is_empty) {
                out = format.take_list(&out, parent, &position.event)?;
            }
        }
        Ok(out)
    }
}

impl InstallContent for HookEntries {
    fn role(&self) -> ContentRole {
        role(self.agent)
    }

    fn entry(&self, text: &str) -> Result<Option<InstalledEntry>, EditError> {
        let is_there = !self.spots(text)?.is_empty();
        Ok(is_there.then(|| InstalledEntry::unrecorded(true)))
    }

    fn missing(&self, text: &str) -> Vec<String> {
        let root = self.layout.format.read(text).unwrap_or_default();
        let parent = self.layout.parent.iter().map(|name| (*name).to_owned());
        let parent = parent.filter(|name| root.get(name).is_none());
        let events = self.events(text, &root).ok().flatten();
        let entries = self.layout.entries.iter().map(|entry| entry.event.clone());
        let lists = entries.filter(|event| events.is_none_or(|events| !events.contains_key(event)));
        parent.chain(lists).collect()
    }

    fn without(
        &self,
        text: &str,
        known: Option<&InstalledPart>,
    ) -> Result<Option<String>, EditError> {
        let spots = self.spots(text)?;
        if spots.is_empty() {
            return Ok(None);
        }
        let out = self.without_positions(text, &spots, known)?;
        match self.layout.parent.first() {
            Some(parent) if known.is_some_and(|known| known.has_made(parent)) => {
                self.layout.format.take_empty(&out, parent).map(Some)
            }
            _ => Ok(Some(out)),
        }
    }

    fn is_spent(&self, text: &str) -> bool {
        let Ok(Value::Object(root)) = self.layout.format.read(text) else {
            return false;
        };
        let is_rest = |(name, value): (&String, &Value)| {
            self.layout.root.iter().any(|(known, _)| known == name)
                || self.layout.parent.contains(&name.as_str()) && value == &json!({})
        };
        self.layout.is_own && root.iter().all(is_rest)
    }
}
