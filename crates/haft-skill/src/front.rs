//! `FrontMatter`: a skill's metadata besides its name and description.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::SkillProblem;
use crate::rules::{rules, words};
use crate::yaml::YamlNode;

/// A skill's metadata besides its name and description. Nothing in it is checked or granted: it is what the
/// author wrote.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FrontMatter {
    /// The license, or the file that contains it.
    pub license: Option<String>,
    /// The requirements of the skill on its environment.
    pub compatibility: Option<String>,
    /// `version`, or `metadata.version`.
    pub version: Option<String>,
    /// `metadata`; values other than text as compact JSON.
    pub metadata: BTreeMap<String, String>,
    /// `tags`.
    pub tags: Vec<String>,
    /// Alternative names for search; they load nothing.
    pub aliases: Vec<String>,
    /// A path of categories: `work/reports`.
    pub category: Option<String>,
    /// `when_to_use`, or the overlay's `activation`.
    pub when_to_use: Option<String>,
    /// A hint for what to write after the skill's name.
    pub argument_hint: Option<String>,
    /// The names of its arguments, in order.
    pub arguments: Vec<String>,
    /// Whether a model may load it: true unless `disable-model-invocation` is there and is not clearly false.
    pub model_invocable: bool,
    /// Whether the user may choose it: true unless `user-invocable` is there and is not clearly true.
    pub user_invocable: bool,
    /// Patterns for the files that it applies to.
    pub paths: Vec<String>,
    /// All other keys, as written; scalars are texts.
    pub others: BTreeMap<String, Value>,
}

impl Default for FrontMatter {
    fn default() -> Self {
        Self {
            license: None,
            compatibility: None,
            version: None,
            metadata: BTreeMap::new(),
            tags: Vec::new(),
            aliases: Vec::new(),
            category: None,
            when_to_use: None,
            argument_hint: None,
            arguments: Vec::new(),
            model_invocable: true,
            user_invocable: true,
            paths: Vec::new(),
            others: BTreeMap::new(),
        }
    }
}

/// The content of the keys about tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ToolRules {
    /// `allowed-tools`: rules it asks for.
    pub(super) requests: Vec<String>,
    /// `allowed_tools`: the only rules while the skill is active.
    pub(super) restricts_to: Option<Vec<String>>,
    /// `disallowed-tools`: rules excluded while the skill is active.
    pub(super) excludes: Vec<String>,
}

/// The keys that restrict what may be called: if one of them cannot be parsed, the skill does not load.
pub(super) const NARROWING: [&str; 3] = ["allowed_tools", "disallowed-tools", "disallowed_tools"];

/// Reads the keys of a mapping; reports those that do not fit.
pub(super) fn front_matter(
    node: &YamlNode,
    problems: &mut Vec<SkillProblem>,
) -> (FrontMatter, ToolRules) {
    let mut front = FrontMatter::default();
    let mut tools = ToolRules::default();
    let YamlNode::Map(pairs) = node else {
        return (front, tools);
    };
    for (key, value) in pairs {
        if value.is_null() {
            continue;
        }
        let known = read_description_key(&mut front, key, value)
            || read_tool_rules(&mut tools, key, value, problems);
        if !known && !matches!(key.as_str(), "name" | "description") {
            front.others.insert(key.clone(), value.to_value());
        }
    }
    if front.version.is_none() {
        front.version = front.metadata.get("version").cloned();
    }
    (front, tools)
}

/// Reads a descriptive key; returns whether it was one.
fn read_description_key(front: &mut FrontMatter, key: &str, value: &YamlNode) -> bool {
    let text = || Some(plain(value));
    match key {
        "license" | "licence" => front.license = text(),
        "compatibility" => front.compatibility = text(),
        "version" => front.version = text(),
        "category" => front.category = text(),
        "when_to_use" | "when-to-use" => front.when_to_use = text(),
        "argument-hint" | "argument_hint" => front.argument_hint = text(),
        "tags" => front.tags = words(value, false).unwrap_or_default(),
        "aliases" => front.aliases = words(value, false).unwrap_or_default(),
        "arguments" => front.arguments = words(value, true).unwrap_or_default(),
        "paths" => front.paths = words(value, false).unwrap_or_default(),
        // A key that hides a skill takes effect unless it is clearly off.
        "disable-model-invocation" => front.model_invocable = says(value) == Some(false),
        "user-invocable" => front.user_invocable = says(value) == Some(true),
        "metadata" => match value {
            YamlNode::Map(pairs) => {
                let pairs = pairs.iter().map(|(k, v)| (k.clone(), plain(v)));
                front.metadata = pairs.collect();
            }
            YamlNode::Text(..) | YamlNode::List(_) => return false,
        },
        _ => return false,
    }
    true
}

fn read_tool_rules(
    tools: &mut ToolRules,
    key: &str,
    value: &YamlNode,
    problems: &mut Vec<SkillProblem>,
) -> bool {
    let read = rules(value);
    match key {
        "allowed-tools" => {
            if read.is_none() {
                problems.push(SkillProblem::warning(format!(
                    "`{key}` is not a list of rules and is left out"
                )));
            }
            tools.requests = read.unwrap_or_default();
        }
        "allowed_tools" => tools.restricts_to = narrowing(key, read, problems),
        "disallowed-tools" | "disallowed_tools" => {
            tools
                .excludes
                .extend(narrowing(key, read, problems).unwrap_or_default());
        }
        _ => return false,
    }
    true
}

fn narrowing(
    key: &str,
    read: Option<Vec<String>>,
    problems: &mut Vec<SkillProblem>,
) -> Option<Vec<String>> {
    if read.is_none() {
        problems.push(SkillProblem::error(format!(
            "`{key}` is not a list of rules"
        )));
    }
    read
}

/// Returns a text as it is, anything else as compact JSON.
pub(super) fn plain(node: &YamlNode) -> String {
    match node {
        YamlNode::Text(text, _) => text.trim().to_owned(),
        YamlNode::List(_) | YamlNode::Map(_) => node.to_value().to_string(),
    }
}

fn says(node: &YamlNode) -> Option<bool> {
    match plain(node).to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}
