//! The strict check: what the Agent Skills format's reference validator (skills-ref 0.1.1) accepts.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::split::{self, NoFrontMatter};
use crate::yaml::{self, YamlNode, YamlNote};

/// Maximum length of a name, in characters after NFKC.
const MAX_NAME: usize = 64;

/// Maximum length of a description, in characters (Agent Skills format).
pub(super) const MAX_DESCRIPTION: usize = 1024;

/// Maximum length of `compatibility`, in characters.
const MAX_COMPATIBILITY: usize = 500;

/// The keys of the format, sorted.
const KEYS: [&str; 6] = [
    "allowed-tools",
    "compatibility",
    "description",
    "license",
    "metadata",
    "name",
];

/// Returns what the format forbids in this skill in a folder of this name; empty if it is valid.
pub(super) fn faults(text: &str, folder: &str) -> Vec<String> {
    // Python's text mode: every line end is one character.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    match mapping(&text) {
        Ok(node) => fields(&node, folder),
        Err(told) => vec![told],
    }
}

fn mapping(text: &str) -> Result<YamlNode, String> {
    let split = split::by_mark(text).map_err(|uncut| match uncut {
        NoFrontMatter::Missing => "SKILL.md must begin with `---`".to_owned(),
        NoFrontMatter::Open => "the front matter is not closed with `---`".to_owned(),
    })?;
    if let Some(odd) = split.front.chars().find(|c| !is_printable(*c)) {
        return Err(format!("the front matter holds the character {odd:?}"));
    }
    let read = yaml::read(split.front, 0)
        .map_err(|e| format!("the front matter is not valid YAML: {e}"))?;
    if let Some(note) = read.notes.first() {
        return Err(forbidden(note));
    }
    match read.node {
        YamlNode::Map(_) => Ok(read.node),
        YamlNode::Text(..) | YamlNode::List(_) => {
            Err("the front matter must hold `key: value` lines".to_owned())
        }
    }
}

fn forbidden(note: &YamlNote) -> String {
    match note {
        YamlNote::Flow(line) => {
            format!("line {line}: lists and mappings in brackets are not part of the format")
        }
        YamlNote::Anchor(line) => {
            format!("line {line}: anchors (`&name`) are not part of the format")
        }
        YamlNote::Tag(line) => format!("line {line}: tags (`!name`) are not part of the format"),
        YamlNote::Tab(line) => {
            format!("line {line}: a tab outside quotes is not part of the format")
        }
        YamlNote::Duplicate(key, line, _) => format!("line {line}: `{key}` appears twice"),
        YamlNote::Indentation(line) => format!("line {line}: indented unlike the mapping before"),
    }
}

/// Whether YAML permits the character.
fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn fields(node: &YamlNode, folder: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let YamlNode::Map(pairs) = node else {
        return faults;
    };
    let keys = pairs.iter().map(|(key, _)| key.as_str());
    let mut foreign: Vec<&str> = keys.filter(|key| !KEYS.contains(key)).collect();
    if !foreign.is_empty() {
        foreign.sort_unstable();
        let (foreign, known) = (foreign.join(", "), KEYS.join(", "));
        faults.push(format!(
            "unknown fields: {foreign} (the format has {known})"
        ));
    }
    match node.get("name") {
        None => faults.push("`name` is missing".to_owned()),
        Some(YamlNode::Text(name, _)) => faults.extend(name_faults(name, folder)),
        Some(_) => faults.push("`name` must be a text".to_owned()),
    }
    match node.get("description") {
        None => faults.push("`description` is missing".to_owned()),
        Some(YamlNode::Text(text, _)) if text.trim().is_empty() => {
            faults.push("`description` must not be empty".to_owned());
        }
        Some(YamlNode::Text(text, _)) => {
            check_length("the description", text, MAX_DESCRIPTION, &mut faults);
        }
        Some(_) => faults.push("`description` must be a text".to_owned()),
    }
    match node.get("compatibility") {
        None => {}
        Some(YamlNode::Text(text, _)) => {
            check_length("`compatibility`", text, MAX_COMPATIBILITY, &mut faults);
        }
        Some(_) => faults.push("`compatibility` must be a text".to_owned()),
    }
    faults
}

fn check_length(what: &str, text: &str, limit: usize, faults: &mut Vec<String>) {
    let count = text.chars().count();
    if count > limit {
        faults.push(format!(
            "{what} is {count} characters long; {limit} is the limit"
        ));
    }
}

/// Returns what is wrong with the name of a skill in a folder of this name.
pub(super) fn name_faults(name: &str, folder: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let name: String = name.trim().nfkc().collect();
    if name.is_empty() {
        return vec!["`name` must not be empty".to_owned()];
    }
    check_length("the name", &name, MAX_NAME, &mut faults);
    if name != name.to_lowercase() {
        faults.push(format!("the name {name:?} must be in lower case"));
    }
    if name.starts_with('-') || name.ends_with('-') {
        faults.push(format!(
            "the name {name:?} must not begin or end with a hyphen"
        ));
    }
    if name.contains("--") {
        faults.push(format!(
            "the name {name:?} must not contain two hyphens in a row"
        ));
    }
    if !name.chars().all(|c| c == '-' || is_letter_or_digit(c)) {
        faults.push(format!(
            "the name {name:?} must contain only letters, digits and hyphens"
        ));
    }
    if folder.nfkc().collect::<String>() != name {
        faults.push(format!(
            "the name {name:?} differs from its folder's, {folder:?}"
        ));
    }
    faults
}

/// Whether it is a letter or digit by general category, as in the reference: no marks, no squared letters.
fn is_letter_or_digit(c: char) -> bool {
    c.is_alphanumeric() && !is_combining_mark(c) && !('\u{1f130}'..='\u{1f189}').contains(&c)
}
