//! `JsoncTree`: the content of a JSON text, to compare a text with what it must hold.

use jsonc_parser::ast::{ObjectProp, Value as AstValue};
use jsonc_parser::common::Ranged as _;
use serde_json::Value;

use super::JsonPathSegment;
use crate::edit::EditError;

/// The content of a JSON text. Numbers and strings are kept as written, so that nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsoncTree {
    /// Members, in order.
    Object(Vec<(String, JsoncTree)>),
    Array(Vec<JsoncTree>),
    Scalar(String),
}

impl JsoncTree {
    /// Returns the content of a parsed value. `text` is what it was parsed from.
    pub(super) fn of(text: &str, value: &AstValue<'_>) -> Result<Self, EditError> {
        Ok(match value {
            AstValue::Object(object) => {
                let mut members = Vec::with_capacity(object.properties.len());
                for member in &object.properties {
                    let key = key_of(text, member)?;
                    members.push((key, Self::of(text, &member.value)?));
                }
                Self::Object(members)
            }
            AstValue::Array(array) => {
                let items = array.elements.iter().map(|item| Self::of(text, item));
                Self::Array(items.collect::<Result<_, _>>()?)
            }
            scalar => {
                let range = scalar.range();
                Self::Scalar(text[range.start..range.end].to_owned())
            }
        })
    }

    /// Returns the members of an object.
    fn members(&mut self) -> Option<&mut Vec<(String, Self)>> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns a member of an object, creating it as an empty object if it is missing.
    pub(super) fn entry(&mut self, name: &str) -> &mut Self {
        let Self::Object(members) = self else {
            return self;
        };
        let at = members.iter().position(|(key, _)| key == name);
        let at = at.unwrap_or_else(|| {
            members.push((name.to_owned(), Self::Object(Vec::new())));
            members.len() - 1
        });
        &mut members[at].1
    }

    /// Returns the value at the end of a path.
    pub(super) fn at(&mut self, path: &[JsonPathSegment<'_>]) -> Option<&mut Self> {
        path.iter().try_fold(self, |tree, step| match (tree, step) {
            (Self::Object(members), JsonPathSegment::Key(name)) => {
                let mut members = members.iter_mut();
                Some(&mut members.find(|(key, _)| key == name)?.1)
            }
            (Self::Array(items), JsonPathSegment::Item(nth)) => items.get_mut(*nth),
            _ => None,
        })
    }

    /// Appends an item to an array; an object without members, as created by `entry`, becomes an array.
    pub(super) fn push(&mut self, item: Self) {
        match self {
            Self::Array(items) => items.push(item),
            Self::Object(members) if members.is_empty() => *self = Self::Array(vec![item]),
            _ => {}
        }
    }

    /// Removes what a step leads to.
    pub(super) fn take_at(&mut self, step: &JsonPathSegment<'_>) {
        match (self, step) {
            (Self::Array(items), JsonPathSegment::Item(nth)) if *nth < items.len() => {
                items.remove(*nth);
            }
            (tree, JsonPathSegment::Key(name)) => tree.take(name),
            _ => {}
        }
    }

    /// Removes a member.
    pub(super) fn take(&mut self, name: &str) {
        if let Some(members) = self.members() {
            members.retain(|(key, _)| key != name);
        }
    }

    /// Converts it to plain JSON.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Object(members) => {
                let members = members.iter();
                Value::Object(
                    members
                        .map(|(key, tree)| (key.clone(), tree.value()))
                        .collect(),
                )
            }
            Self::Array(items) => Value::Array(items.iter().map(Self::value).collect()),
            // A string that is valid JSON but not valid UTF-8 (half a character) stays as written.
            Self::Scalar(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
            }
        }
    }
}

/// Returns the key of a member.
pub(super) fn key_of(text: &str, member: &ObjectProp<'_>) -> Result<String, EditError> {
    let range = member.name.range();
    let range = range.start..range.end;
    serde_json::from_str(&text[range.clone()])
        .map_err(|_| EditError::at("a key is not a JSON string", range))
}
