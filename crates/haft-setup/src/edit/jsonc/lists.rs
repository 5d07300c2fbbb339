//! Appends items to lists and removes them, wherever in the text the list is.

use serde_json::{Value, json};

use super::reader::{JsoncMember, JsoncObject, array_at, object_at, root, tree};
use super::tree::JsoncTree;
use super::{
    JsonPathSegment, JsoncStyle, check, fresh, insert_last_member, insert_member, without,
};
use crate::edit::EditError;

/// Appends an item to the list at the end of a path of names; creates the list and the objects on the way if they are missing.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn append(text: &str, path: &[&str], item: &Value) -> Result<String, EditError> {
    let mut expected = tree(text)?;
    let list = path
        .iter()
        .fold(&mut expected, |tree, name| tree.entry(name));
    list.push(own(item)?);
    let after = append_preserving_text(text, path, item)?;
    check(after, &expected, &path.join("."))
}

fn append_preserving_text(text: &str, path: &[&str], item: &Value) -> Result<String, EditError> {
    let Some(root) = root(text)? else {
        return Ok(fresh(text, &nest_item(path, item)));
    };
    let style = JsoncStyle::of(text, &root);
    let mut object = root;
    for (at, name) in path.iter().enumerate() {
        let Some((_, member)) = object.find(name)? else {
            let value = nest_item(&path[at + 1..], item);
            return Ok(insert_member(text, &object, name, &value, &style));
        };
        object = if at + 1 == path.len() {
            array_at(text, name, &member.value)?
        } else {
            object_at(text, name, &member.value)?
        };
    }
    let written = insert_last_member(text, &object, &style, &|base, lines| {
        style.render(item, base, lines)
    });
    Ok(written)
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
    check(without(text, &object, nth), &expected, "hooks")
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

/// Adds a member to the root if it has none of that name: for what a new file must start with.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn put_first(text: &str, name: &str, value: &Value) -> Result<String, EditError> {
    let Some(root) = root(text)? else {
        return Ok(fresh(text, &json!({ name: value })));
    };
    if root.find(name)?.is_some() {
        return Ok(text.to_owned());
    }
    let mut expected = tree(text)?;
    expected.put(name, own(value)?);
    let style = JsoncStyle::of(text, &root);
    check(
        insert_member(text, &root, name, value, &style),
        &expected,
        name,
    )
}

/// Returns a value as it will be in the file.
fn own(value: &Value) -> Result<JsoncTree, EditError> {
    Ok(tree(&json!({ "own": value }).to_string())?
        .entry("own")
        .clone())
}

/// Returns a list of one item below these names.
fn nest_item(path: &[&str], item: &Value) -> Value {
    let list = json!([item]);
    path.iter()
        .rev()
        .fold(list, |inner, name| json!({ *name: inner }))
}
