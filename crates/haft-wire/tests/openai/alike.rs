//! How a recorded body and haft's own may differ: a table with reasons; each difference is removed only by the rule of its row.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::requests::{list, text};

/// The differences, and their reasons. Each row is used by a recording.
pub(crate) const DIFFERS: [(&str, &str); 17] = [
    (
        "stream: false",
        "a reply is not streamed unless it is asked for",
    ),
    ("tool_choice: auto", "it holds without a word"),
    (
        "tool_choice: any",
        "Mistral's word for required, which it takes, too",
    ),
    ("stream_options", "usage is always asked for"),
    (
        "none",
        "an empty description and empty instructions are no members",
    ),
    (
        "tool type",
        "Mistral takes a tool without its type, and with it",
    ),
    (
        "order of required",
        "it is that of the properties, which the recording has lost",
    ),
    (
        "open objects",
        "OpenAI refuses strict with them and haft closes them; OpenRouter passes this schema on to Gemini",
    ),
    (
        "prefix, index",
        "Mistral's members of a message, whose defaults they hold",
    ),
    ("content: none", "null and a list of nothing are the same"),
    ("content: one text", "a list of one text is said short"),
    (
        "thoughts",
        "Groq takes them back under the name that it gives them; the recording client puts them into the content",
    ),
    (
        "additional_tools",
        "haft declares tools among the tools alone",
    ),
    (
        "developer",
        "the role of a host's own words; system is its older word",
    ),
    (
        "of answers",
        "items go back as they came; the recording client leaves out id, status, logprobs and sources, and null for none",
    ),
    (
        "made up",
        "ids and words that the recording client makes up: of the provider's own search, and before ids that came twice",
    ),
    (
        "encrypted_content",
        "a stream gives it twice, encrypted anew; haft takes the last",
    ),
];

/// The rows that were used.
pub(crate) type Seen = BTreeSet<&'static str>;

/// Removes the differences listed in the table.
pub(crate) fn alike(theirs: &mut Value, ours: &mut Value, seen: &mut Seen) {
    members(
        theirs.as_object_mut().unwrap(),
        ours.as_object_mut().unwrap(),
        seen,
    );
    let mut both = |name: &str, rule: fn(&mut Value, &mut Value, &mut Seen)| {
        if let (Some(theirs), Some(ours)) = (theirs.get_mut(name), ours.get_mut(name)) {
            rule(theirs, ours, seen);
        }
    };
    both("messages", messages);
    both("input", items);
    both("tools", tools);
}

/// Handles members of the body itself.
fn members(theirs: &mut Map<String, Value>, ours: &mut Map<String, Value>, seen: &mut Seen) {
    for (name, value, row) in [
        ("stream", json!(false), "stream: false"),
        ("tool_choice", json!("auto"), "tool_choice: auto"),
        ("instructions", json!(""), "none"),
    ] {
        if theirs.get(name) == Some(&value) {
            theirs.remove(name);
            seen.insert(row);
        }
    }
    if theirs.get("tool_choice") == Some(&json!("any")) {
        theirs.insert("tool_choice".to_owned(), json!("required"));
        seen.insert("tool_choice: any");
    }
    if !theirs.contains_key("stream_options") && ours.remove("stream_options").is_some() {
        seen.insert("stream_options");
    }
}

fn tools(theirs: &mut Value, ours: &mut Value, seen: &mut Seen) {
    for tool in theirs.as_array_mut().unwrap() {
        let is_function = tool.get("type").is_none();
        if is_function {
            tool["type"] = json!("function");
            seen.insert("tool type");
        }
    }
    plain(theirs, seen);
    plain(ours, seen);
    if theirs != ours {
        let before = ours.clone();
        close(theirs);
        close(ours);
        if before != *ours {
            seen.insert("open objects");
        }
    }
}

/// Removes empty descriptions from a declaration, and the order from `required`.
fn plain(value: &mut Value, seen: &mut Seen) {
    match value {
        Value::Object(members) => {
            if [Some(&json!(null)), Some(&json!(""))].contains(&members.get("description")) {
                members.remove("description");
                seen.insert("none");
            }
            if let Some(Value::Array(all)) = members.get_mut("required") {
                let before = all.clone();
                all.sort_by_key(ToString::to_string);
                if *all != before {
                    seen.insert("order of required");
                }
            }
            members.values_mut().for_each(|value| plain(value, seen));
        }
        Value::Array(all) => all.iter_mut().for_each(|value| plain(value, seen)),
        _ => {}
    }
}

/// Removes what a strict schema must state and an open one need not.
fn close(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| {
                name != "nullable" && !(name == "additionalProperties" && *value == json!(false))
            });
            members.values_mut().for_each(close);
        }
        Value::Array(all) => all.iter_mut().for_each(close),
        _ => {}
    }
}

fn messages(theirs: &mut Value, ours: &mut Value, seen: &mut Seen) {
    let (theirs, ours) = (theirs.as_array_mut().unwrap(), ours.as_array_mut().unwrap());
    for message in theirs.iter_mut().chain(ours.iter_mut()) {
        message_alike(message, seen);
    }
    for (theirs, ours) in theirs.iter_mut().zip(ours) {
        if !text(theirs, "content").starts_with("<think>") {
            continue;
        }
        if let Some(thoughts) = ours.as_object_mut().unwrap().remove("reasoning") {
            let put = format!("<think>\n{}\n</think>", thoughts.as_str().unwrap());
            assert_eq!(theirs["content"], json!(put));
            theirs["content"] = Value::Null;
            seen.insert("thoughts");
        }
    }
}

fn message_alike(message: &mut Value, seen: &mut Seen) {
    let one = match list(&message["content"]) {
        [one] if one["type"] == "text" => Some(one["text"].clone()),
        _ => None,
    };
    if let Some(one) = one {
        message["content"] = one;
        seen.insert("content: one text");
    }
    if message["role"] != "assistant" {
        return;
    }
    let members = message.as_object_mut().unwrap();
    let nothing = [None, Some(&json!(null)), Some(&json!([])), Some(&json!(""))];
    if nothing.contains(&members.get("content")) {
        members.insert("content".to_owned(), Value::Null);
        seen.insert("content: none");
    }
    let mut is_mistral =
        members.get("prefix") == Some(&json!(false)) && members.remove("prefix").is_some();
    for call in members
        .get_mut("tool_calls")
        .into_iter()
        .flat_map(|calls| calls.as_array_mut().unwrap())
    {
        is_mistral |= call.as_object_mut().unwrap().remove("index").is_some();
    }
    if is_mistral {
        seen.insert("prefix, index");
    }
}

fn items(theirs: &mut Value, ours: &mut Value, seen: &mut Seen) {
    let (theirs, ours) = (theirs.as_array_mut().unwrap(), ours.as_array_mut().unwrap());
    let before = theirs.len();
    theirs.retain(|item| item["type"] != "additional_tools");
    if theirs.len() < before {
        seen.insert("additional_tools");
    }
    if theirs.len() < ours.len() {
        ours.retain(|item| item["type"] != "tool_search_output" || item["execution"] != "server");
        seen.insert("made up");
    }
    for (theirs, ours) in theirs.iter_mut().zip(ours) {
        item(theirs, ours, seen);
    }
}

fn item(theirs: &mut Value, ours: &mut Value, seen: &mut Seen) {
    if theirs["role"] == "system" {
        theirs["role"] = json!("developer");
        seen.insert("developer");
    }
    of_answers(theirs, ours, seen);
    if ours["type"] == "tool_search_call" && ours["execution"] == "server" {
        for name in ["call_id", "arguments"] {
            ours[name] = theirs[name].clone();
        }
    }
    // A search produces a namespace that equals the tool's own name.
    if theirs["namespace"] == theirs["name"] && ours.get("namespace").is_none() {
        theirs.as_object_mut().unwrap().remove("namespace");
    }
    let (own, made) = (
        text(ours, "call_id").to_owned(),
        text(theirs, "call_id").to_owned(),
    );
    let is_made = made.ends_with(&format!(":{own}")) || made.starts_with("fc_");
    if made != own && is_made {
        theirs["call_id"] = json!(own);
        seen.insert("made up");
    }
    let encrypted = |item: &Value| item["encrypted_content"].is_string();
    if encrypted(theirs)
        && encrypted(ours)
        && theirs["encrypted_content"] != ours["encrypted_content"]
    {
        ours["encrypted_content"] = theirs["encrypted_content"].clone();
        seen.insert("encrypted_content");
    }
}

/// Handles members that the recording client omits, or adds without content.
fn of_answers(theirs: &mut Value, ours: &mut Value, seen: &mut Seen) {
    let mut drop = |theirs: &Value, ours: &mut Value, names: &[&str]| {
        for name in names {
            if theirs.get(name).is_none() && ours.as_object_mut().unwrap().remove(*name).is_some() {
                seen.insert("of answers");
            }
        }
    };
    drop(theirs, ours, &["id", "status"]);
    if ours["type"] == "web_search_call" {
        let their_action = theirs["action"].clone();
        drop(&their_action, &mut ours["action"], &["sources"]);
    }
    let parts = ours.get_mut("content").and_then(Value::as_array_mut);
    for (theirs, ours) in list(&theirs["content"])
        .iter()
        .zip(parts.into_iter().flatten())
    {
        drop(theirs, ours, &["logprobs"]);
    }
    if ours["type"] == "reasoning" {
        for item in [theirs, ours] {
            let members = item.as_object_mut().unwrap();
            members.retain(|_, value| !value.is_null() && *value != json!([]));
        }
    }
}
