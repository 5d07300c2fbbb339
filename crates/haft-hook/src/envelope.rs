//! `Envelope`: the outer object of an event. Members are read one by one, and only those that are needed are built.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::PathBuf;

use haft_json::members::{Member, members};
use haft_json::scan::scan;
use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::error::ReadError;
use crate::input::ScannedJson;

/// An object with unique names, whose members are looked up by name.
#[derive(Debug)]
pub(crate) struct Envelope<'t> {
    agent: Agent,
    members: Vec<Member<'t>>,
}

impl<'t> Envelope<'t> {
    /// Reads an object that `agent` sent.
    pub(crate) fn read(agent: Agent, text: &'t str) -> Result<Self, ReadError> {
        let members = members(text).map_err(|error| ReadError::NotJson(error.to_string()))?;
        let mut names = HashSet::with_capacity(members.len());
        for member in &members {
            let name = name_of(member);
            if !names.insert(name.clone()) {
                return Err(ReadError::Ambiguous {
                    agent,
                    member: shorten(&name),
                    reason: "it appears twice".to_owned(),
                });
            }
        }
        Ok(Self { agent, members })
    }

    /// Returns the object with another agent as its sender.
    pub(crate) fn with_agent(mut self, agent: Agent) -> Self {
        self.agent = agent;
        self
    }

    /// Returns a member as it is written. `null` counts as missing.
    pub(crate) fn raw(&self, name: &str) -> Option<&'t RawValue> {
        let member = self.members.iter().find(|member| member.is(name))?;
        Some(member.value()).filter(|value| value.get() != "null")
    }

    /// Whether the member is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// Returns a member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    /// Returns the first of these members that is a string and not empty.
    pub(crate) fn any_text(&self, names: &[&str]) -> Option<String> {
        let mut texts = names.iter().filter_map(|name| self.text(name));
        texts.find(|text| !text.is_empty())
    }

    /// Returns a member that must be a string and not empty.
    pub(crate) fn needs(&self, name: &'static str) -> Result<String, ReadError> {
        let text = self.text(name).filter(|text| !text.is_empty());
        text.ok_or(ReadError::Missing {
            agent: self.agent,
            member: name,
            expected: "a text",
        })
    }

    /// Returns a member that is `true` or `false`.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    /// Returns the first of these members that is a number of milliseconds, rounded.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a duration that is no whole number in range becomes the nearest one"
    )]
    pub(crate) fn milliseconds(&self, names: &[&str]) -> Option<u64> {
        let numbers = names.iter().filter_map(|name| self.raw(name));
        let mut numbers = numbers.filter_map(|raw| serde_json::from_str::<f64>(raw.get()).ok());
        numbers.next().map(|number| number.round() as u64)
    }

    /// Returns the folders that a member lists.
    pub(crate) fn folders(&self, name: &str) -> Vec<PathBuf> {
        let list = self
            .raw(name)
            .and_then(|raw| serde_json::from_str::<Vec<String>>(raw.get()).ok());
        let list = list.unwrap_or_default().into_iter();
        list.filter(|folder| !folder.is_empty())
            .map(PathBuf::from)
            .collect()
    }

    /// Returns a member that is an object.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Envelope<'t>>, ReadError> {
        let Some(raw) = self.raw(name).filter(|raw| raw.get().starts_with('{')) else {
            return Ok(None);
        };
        Envelope::read(self.agent, raw.get()).map(Some)
    }

    /// Returns a member that must be an object.
    pub(crate) fn needs_object(&self, name: &'static str) -> Result<Envelope<'t>, ReadError> {
        self.object(name)?.ok_or(ReadError::Missing {
            agent: self.agent,
            member: name,
            expected: "an object",
        })
    }

    /// Returns the input of a tool, once it is certain that every reader reads it alike; `null` if there is none.
    pub(crate) fn input(&self, name: &str) -> Result<ScannedJson<'t>, ReadError> {
        let text = self.raw(name).map_or("null", RawValue::get);
        self.scan_input(name, Cow::Borrowed(text))
    }

    /// Returns the input of a tool that is an object, or a string that holds one.
    pub(crate) fn unpacked_input(&self, name: &str) -> Result<ScannedJson<'t>, ReadError> {
        let outer = self.input(name)?;
        let Some(inner) = outer.inner_json() else {
            return Ok(outer);
        };
        self.scan_input(name, Cow::Owned(inner))
    }

    fn scan_input(&self, name: &str, text: Cow<'t, str>) -> Result<ScannedJson<'t>, ReadError> {
        scan(&text).map_err(|error| ReadError::Ambiguous {
            agent: self.agent,
            member: name.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(ScannedJson::new(text))
    }
}

/// Decodes the name of a member.
fn name_of<'t>(member: &Member<'t>) -> Cow<'t, str> {
    let key = member.key();
    let inner = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
    if inner.contains('\\') {
        // Nothing looks up a name that cannot be decoded (it has a lone surrogate). Its spelling tells it from others.
        return Cow::Owned(serde_json::from_str(key).unwrap_or_else(|_| key.to_owned()));
    }
    Cow::Borrowed(inner)
}

/// Shortens a name, for an error.
fn shorten(name: &str) -> String {
    let end = name.floor_char_boundary(100);
    name[..end].to_owned()
}
