//! `HookFormat`: how the hooks in a settings file are read and edited as text.

use std::ops::Range;

use serde_json::Value;

use crate::edit::jsonc::{self, JsonPathSegment};
use crate::edit::{EditError, toml};
use crate::hook_settings::toml_hooks;
use crate::program::{HookPosition, HookRegistration};

/// The format of a file with hooks. `parent` is the path to the object that has a list for each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookFormat {
    /// JSON, with comments if the agent allows them.
    Json,
    /// TOML with lists of tables below `hooks`.
    Toml,
}

impl HookFormat {
    /// Reads a text: all of it, or of TOML only the hooks.
    pub(crate) fn read(self, text: &str) -> Result<Value, EditError> {
        match self {
            Self::Json => jsonc::read(text),
            Self::Toml => toml_hooks::read(text),
        }
    }

    /// Returns what the format calls an object, with its article.
    pub(crate) fn object(self) -> &'static str {
        match self {
            Self::Json => "an object",
            Self::Toml => "a table",
        }
    }

    /// Returns the position of the last value on a path that the text has.
    pub(crate) fn position(self, text: &str, path: &[&str]) -> Option<Range<usize>> {
        match (self, path) {
            (Self::Json, path) => jsonc::position(text, path),
            (Self::Toml, [parent, name]) => toml::position(text, parent, name),
            (Self::Toml, path) => toml::position(text, path.first()?, ""),
        }
    }

    /// Appends an entry to the list of its event.
    pub(crate) fn append(
        self,
        text: &str,
        parent: &[&str],
        entry: &HookRegistration,
    ) -> Result<String, EditError> {
        match self {
            Self::Json => {
                let path = [parent, &[&entry.event]].concat();
                jsonc::append(text, &path, &entry.value)
            }
            Self::Toml => toml_hooks::append_group(text, entry),
        }
    }

    /// Removes an entry: with its group, unless the group has other hooks.
    pub(crate) fn take(
        self,
        text: &str,
        parent: &[&str],
        entry: &HookPosition,
    ) -> Result<String, EditError> {
        match self {
            Self::Json => {
                let mut path = list_of(parent, &entry.event);
                path.push(JsonPathSegment::Item(entry.item));
                if let Some(nth) = entry.handler.filter(|_| !entry.is_alone) {
                    path.extend([JsonPathSegment::Key("hooks"), JsonPathSegment::Item(nth)]);
                }
                jsonc::take(text, &path)
            }
            Self::Toml => toml_hooks::take(text, entry),
        }
    }

    /// Removes the list of an event, which is empty.
    pub(crate) fn take_list(
        self,
        text: &str,
        parent: &[&str],
        event: &str,
    ) -> Result<String, EditError> {
        match self {
            Self::Json => jsonc::take(text, &list_of(parent, event)),
            // A list of tables goes with its last table; an empty one is the user's.
            Self::Toml => Ok(text.to_owned()),
        }
    }

    /// Removes the object of this name if it has no members.
    pub(crate) fn take_empty(self, text: &str, parent: &str) -> Result<String, EditError> {
        match self {
            Self::Json => jsonc::remove_empty(text, parent),
            Self::Toml => Ok(text.to_owned()),
        }
    }
}

/// Returns the path to the list of an event.
fn list_of<'a>(parent: &[&'a str], event: &'a str) -> Vec<JsonPathSegment<'a>> {
    let names = parent.iter().copied().chain([event]);
    names.map(JsonPathSegment::Key).collect()
}
