//! `JsonHooks`: hooks in JSON. haft's entries go to the end of an agent's lists, are found by their command, and are removed alone.

use haft_hook::Agent;
use serde_json::{Value, json};

use crate::clients::install::record::InstallRecord;
use crate::clients::install::target::{InstallContent, InstalledEntry};
use crate::edit::EditError;
use crate::edit::jsonc::{self, JsonPathSegment};
use crate::hook_settings::by_hand;
use crate::hook_settings::places::HookLayout;
use crate::hook_settings::program::is_ours;
use crate::program::HookPosition;

/// The hooks of an agent in a file of JSON.
#[derive(Debug, Clone)]
pub(crate) struct JsonHooks {
    pub(crate) agent: Agent,
    pub(crate) layout: HookLayout,
}

fn wrong<T>(what: String) -> Result<T, EditError> {
    Err(EditError { what, at: 0..0 })
}

impl JsonHooks {
    /// Returns haft's entries in a text, in their order.
    pub(crate) fn spots(&self, text: &str) -> Result<Vec<HookPosition>, EditError> {
        let root = jsonc::read(text)?;
        self.check_root(&root)?;
        let mut spots = Vec::new();
        let Some(events) = self.events(&root)? else {
            return Ok(spots);
        };
        for (event, list) in events {
            let Some(items) = list.as_array() else {
                if self
                    .layout
                    .entries
                    .iter()
                    .any(|known| known.event == *event)
                {
                    return wrong(format!("`{event}` is not a list"));
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
        root: &'v Value,
    ) -> Result<Option<&'v serde_json::Map<String, Value>>, EditError> {
        let mut at = root;
        for name in self.layout.parent {
            let Some(inner) = at.get(name) else {
                return Ok(None);
            };
            if !inner.is_object() {
                return wrong(format!("`{name}` is not an object"));
            }
            at = inner;
        }
        Ok(at.as_object())
    }

    fn check_root(&self, root: &Value) -> Result<(), EditError> {
        for (name, known) in &self.layout.root {
            let found = root.get(name);
            if let Some(found) = found.filter(|found| *found != known) {
                return wrong(format!("its {name} is {found}, and haft knows {known}"));
            }
        }
        Ok(())
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
            let mut path = self.layout.parent.to_vec();
            path.push(&entry.event);
            out = jsonc::append(&out, &path, &entry.value)?;
        }
        Ok(out)
    }

    fn without_spots(&self, text: &str, spots: &[HookPosition]) -> Result<String, EditError> {
        let mut out = text.to_owned();
        let mut gone: Option<&HookPosition> = None;
        for spot in spots.iter().rev() {
            let is_gone =
                gone.is_some_and(|gone| gone.event == spot.event && gone.item == spot.item);
            if is_gone {
                continue;
            }
            let mut path = self.list_of(&spot.event);
            path.push(JsonPathSegment::Item(spot.item));
            match spot.handler {
                Some(nth) if !spot.is_alone => {
                    path.extend([JsonPathSegment::Key("hooks"), JsonPathSegment::Item(nth)]);
                }
                _ => gone = Some(spot),
            }
            out = jsonc::take(&out, &path)?;
        }
        self.without_empty(&out, spots)
    }

    /// Returns the path to the list of an event.
    fn list_of<'a>(&'a self, event: &'a str) -> Vec<JsonPathSegment<'a>> {
        let parent = self.layout.parent.iter();
        parent
            .copied()
            .chain([event])
            .map(JsonPathSegment::Key)
            .collect()
    }

    /// Removes the lists that only haft was in.
    fn without_empty(&self, text: &str, spots: &[HookPosition]) -> Result<String, EditError> {
        let mut out = text.to_owned();
        for spot in spots {
            let root = jsonc::read(&out)?;
            let list = self
                .events(&root)?
                .and_then(|events| events.get(&spot.event));
            if list.and_then(Value::as_array).is_some_and(Vec::is_empty) {
                out = jsonc::take(&out, &self.list_of(&spot.event))?;
            }
        }
        Ok(out)
    }
}

impl InstallContent for JsonHooks {
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
        self.layout
            .parent
            .first()
            .is_none_or(|name| jsonc::has(text, name))
    }

    fn without(
        &self,
        text: &str,
        record: Option<&InstallRecord>,
    ) -> Result<Option<String>, EditError> {
        let spots = self.spots(text)?;
        if spots.is_empty() {
            return Ok(None);
        }
        let out = self.without_spots(text, &spots)?;
        match self.layout.parent.first() {
            Some(parent) if record.is_some_and(|record| record.made_servers) => {
                jsonc::remove_empty(&out, parent).map(Some)
            }
            _ => Ok(Some(out)),
        }
    }

    fn is_spent(&self, text: &str) -> bool {
        let Ok(Value::Object(root)) = jsonc::read(text) else {
            return false;
        };
        let is_rest = |(name, value): (&String, &Value)| {
            self.layout.root.iter().any(|(known, _)| known == name)
                || self.layout.parent.contains(&name.as_str()) && value == &json!({})
        };
        self.layout.is_own && root.iter().all(is_rest)
    }
}
