//! Edits JSON with comments and trailing commas in place: adds or removes a member or an item and leaves every other byte as it is.

use std::ops::Range;

use serde_json::{Value, json};

use crate::edit::EditError;
use reader::{JsoncMember, JsoncObject, array_at, object_at, root, tree};
use splice::{JsoncStyle, fresh, insert_item, insert_member, is_blank, replace_value, without};
use tree::JsoncTree;

mod reader;
mod splice;
mod tree;

/// A step on the path from the root to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonPathSegment<'a> {
    /// The member of this name.
    Key(&'a str),
    /// The item at this position.
    Item(usize),
}

/// What is written at the end of a path.
#[derive(Clone, Copy)]
enum JsonLeaf<'v> {
    /// The value of the member there.
    Value(&'v Value),
    /// The same, as text.
    Text(&'v str),
    /// One more item of the list there.
    Item(&'v Value),
}

impl JsonLeaf<'_> {
    /// Returns it below these names.
    fn below(self, path: &[&str]) -> Value {
        let leaf = match self {
            Self::Value(value) => value.clone(),
            Self::Text(text) => own(text).map(|own| own.value()).unwrap_or_default(),
            Self::Item(item) => json!([item]),
        };
        let names = path.iter().rev();
        names.fold(leaf, |inner, name| json!({ *name: inner }))
    }
}

/// Parses the whole text; a blank one is an object without members.
///
/// # Errors
/// The text is not such JSON.
pub fn read(text: &str) -> Result<Value, EditError> {
    Ok(tree(text)?.value())
}

/// Returns whether the root has this member.
pub fn has(text: &str, name: &str) -> bool {
    root(text).is_ok_and(|root| root.is_some_and(|root| matches!(root.find(name), Ok(Some(_)))))
}

/// Returns the value of `name` in the object `servers` of the root, and its text as the file has it.
///
/// # Errors
/// The text is not such JSON.
pub fn entry(text: &str, servers: &str, name: &str) -> Result<Option<(Value, String)>, EditError> {
    let Some(root) = root(text)? else {
        return Ok(None);
    };
    let Some((_, member)) = root.find(servers)? else {
        return Ok(None);
    };
    let servers = object_at(text, servers, &member.value)?;
    let found = servers.find(name)?;
    Ok(found.map(|(_, member)| (member.tree.value(), text[member.value.clone()].to_owned())))
}

/// Returns the position of the last value on a path of names that the text has.
pub fn position(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let mut object = root(text).ok()??;
    let mut found = object.open..object.open + 1;
    for name in path {
        let Ok(Some((_, member))) = object.find(name) else {
            break;
        };
        found = member.start..member.value.end;
        match object_at(text, name, &member.value) {
            Ok(inner) => object = inner,
            Err(_) => break,
        }
    }
    Some(found)
}

/// Sets `name` to `value` in the object `servers` of the root, creating that object if it is missing.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn put(text: &str, servers: &str, name: &str, value: &Value) -> Result<String, EditError> {
    write(text, &[servers, name], JsonLeaf::Value(value))
}

/// Sets `name` in the object `servers` of the root to a value that is given as text, to the byte.
///
/// # Errors
/// As for [`put`].
pub fn put_text(text: &str, servers: &str, name: &str, value: &str) -> Result<String, EditError> {
    write(text, &[servers, name], JsonLeaf::Text(value))
}

/// Sets a member of the object `name` in the object `servers` of the root, unless it has that value.
///
/// # Errors
/// As for [`put`].
pub fn put_member(text: &str, path: &[&str; 3], value: &Value) -> Result<String, EditError> {
    let [servers, name, key] = path;
    let before = entry(text, servers, name)?;
    match before {
        Some((before, _)) if before.get(key) == Some(value) => Ok(text.to_owned()),
        _ => write(text, path, JsonLeaf::Value(value)),
    }
}

/// Adds a member to the root if it has none of that name: for what a new file must start with.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn put_first(text: &str, name: &str, value: &Value) -> Result<String, EditError> {
    match root(text)? {
        Some(root) if root.find(name)?.is_some() => Ok(text.to_owned()),
        _ => write(text, &[name], JsonLeaf::Value(value)),
    }
}

/// Appends an item to the list at the end of a path of names; creates the list and the objects on the way if they are missing.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn append(text: &str, path: &[&str], item: &Value) -> Result<String, EditError> {
    write(text, path, JsonLeaf::Item(item))
}

/// Removes `name` from the object `servers` of the root; returns `None` if it is not there.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn remove(text: &str, servers: &str, name: &str) -> Result<Option<String>, EditError> {
    let path = [JsonPathSegment::Key(servers), JsonPathSegment::Key(name)];
    let is_there = entry(text, servers, name)?.is_some();
    is_there.then(|| take(text, &path)).transpose()
}

/// Removes the member `name` from the root if it is an object without members.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn remove_empty(text: &str, name: &str) -> Result<String, EditError> {
    let root = root(text)?;
    let member = root.as_ref().map(|root| root.find(name)).transpose()?;
    let member = member
        .flatten()
        .map(|(_, member)| &text[member.value.clone()]);
    let inside = member.and_then(|value| value.strip_prefix('{')?.strip_suffix('}'));
    if inside.is_some_and(is_blank) {
        take(text, &[JsonPathSegment::Key(name)])
    } else {
        Ok(text.to_owned())
    }
}

/// Removes the member or item at a path.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn take(text: &str, path: &[JsonPathSegment<'_>]) -> Result<String, EditError> {
    let unknown = || EditError::new("the entry to be removed is not there");
    let (last, before) = path.split_last().ok_or_else(unknown)?;
    let mut expected = tree(text)?;
    expected.at(before).ok_or_else(unknown)?.take_at(last);
    let mut object = root(text)?.ok_or_else(unknown)?;
    for (step, next) in before.iter().zip(&path[1..]) {
        let (_, member) = child(&object, step)?.ok_or_else(unknown)?;
        let name = match step {
            JsonPathSegment::Key(name) => name,
            JsonPathSegment::Item(_) => "an item",
        };
        object = match next {
            JsonPathSegment::Key(_) => object_at(text, name, &member.value)?,
            JsonPathSegment::Item(_) => array_at(text, name, &member.value)?,
        };
    }
    let (nth, _) = child(&object, last)?.ok_or_else(unknown)?;
    let place = match path.first() {
        Some(JsonPathSegment::Key(name)) => name,
        _ => "the file",
    };
    let names = path.iter().map_while(|step| match step {
        JsonPathSegment::Key(name) => Some(*name),
        JsonPathSegment::Item(_) => None,
    });
    let names: Vec<&str> = names.collect();
    check(without(text, &object, nth), &expected, place)
        .map_err(|wrong| wrong.or_at(position(text, &names)))
}

fn child<'o>(
    object: &'o JsoncObject,
    step: &JsonPathSegment<'_>,
) -> Result<Option<(usize, &'o JsoncMember)>, EditError> {
    match step {
        JsonPathSegment::Key(name) => object.find(name),
        JsonPathSegment::Item(nth) => Ok(object.members.get(*nth).map(|member| (*nth, member))),
    }
}

/// Writes a leaf at the end of a path of names.
fn write(text: &str, path: &[&str], leaf: JsonLeaf<'_>) -> Result<String, EditError> {
    let mut expected = tree(text)?;
    let place = path
        .iter()
        .fold(&mut expected, |tree, name| tree.entry(name));
    match leaf {
        JsonLeaf::Value(value) => *place = own(&value.to_string())?,
        JsonLeaf::Text(value) => *place = own(value)?,
        JsonLeaf::Item(item) => place.push(own(&item.to_string())?),
    }
    let after = write_unchecked(text, path, leaf)?;
    check(after, &expected, &path.join(".")).map_err(|wrong| wrong.or_at(position(text, path)))
}

fn write_unchecked(text: &str, path: &[&str], leaf: JsonLeaf<'_>) -> Result<String, EditError> {
    let Some(mut object) = root(text)? else {
        return Ok(fresh(text, &leaf.below(path)));
    };
    let style = JsoncStyle::of(text, &object);
    for (at, name) in path.iter().enumerate() {
        let rest = &path[at + 1..];
        let Some((_, member)) = object.find(name)? else {
            let value = leaf.below(rest);
            return Ok(insert_member(text, &object, name, &value, &style));
        };
        object = match leaf {
            JsonLeaf::Value(value) if rest.is_empty() => {
                return Ok(replace_value(text, member, value, &style));
            }
            JsonLeaf::Text(value) if rest.is_empty() => {
                let (head, tail) = (&text[..member.value.start], &text[member.value.end..]);
                return Ok(format!("{head}{value}{tail}"));
            }
            JsonLeaf::Item(_) if rest.is_empty() => array_at(text, name, &member.value)?,
            _ => object_at(text, name, &member.value)?,
        };
    }
    match leaf {
        JsonLeaf::Item(item) => Ok(insert_item(text, &object, item, &style)),
        JsonLeaf::Value(_) | JsonLeaf::Text(_) => Ok(text.to_owned()),
    }
}

/// Returns a value as it will be in the file. Only an object is a document by itself.
fn own(value: &str) -> Result<JsoncTree, EditError> {
    Ok(tree(&format!("{{\"own\": {value}}}"))?.entry("own").clone())
}

/// Parses the result of an edit and fails unless it is exactly what it should be: a file that a client cannot read, or with another
/// meaning, is never written.
fn check(after: String, expected: &JsoncTree, place: &str) -> Result<String, EditError> {
    if tree(&after).as_ref() == Ok(expected) {
        return Ok(after);
    }
    Err(EditError::new(format!(
        "`{place}` is written in a way that cannot be edited without changing something else"
    )))
}

#[cfg(test)]
mod tests;
