//! `skill.yaml`: an overlay that fills in what a front matter lacks. If both have a value, the front matter wins.

use crate::SkillProblem;
use crate::front::{FrontMatter, ToolRules, plain};
use crate::rules::{rules, words};
use crate::yaml::{self, YamlNode, YamlNote};

/// The content of a `skill.yaml`.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    version: Option<String>,
    activation: Option<String>,
    allowed_tools: Option<Vec<String>>,
}

/// Parses it. If it cannot be parsed, the skill does not load, since it may contain limits.
pub(super) fn read(text: &str, problems: &mut Vec<SkillProblem>) -> Overlay {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut fail = |told: String| problems.push(SkillProblem::error(format!("skill.yaml {told}")));
    let read = match yaml::read(text, 0) {
        Ok(read) => read,
        Err(e) => {
            fail(format!("is not valid YAML: {e}"));
            return Overlay::default();
        }
    };
    let node = read.node;
    if !matches!(node, YamlNode::Map(_)) && !node.is_null() {
        fail("holds no `key: value` lines".to_owned());
    }
    for note in read.notes {
        if let YamlNote::Duplicate(key, line, _) = note {
            fail(format!("line {line}: `{key}` appears twice"));
        }
    }
    let value = |key| node.get(key).filter(|value| !value.is_null());
    let text = |key| value(key).map(plain).filter(|text| !text.is_empty());
    let allowed_tools = value("allowed_tools").and_then(|value| {
        let read = rules(value);
        if read.is_none() {
            fail("`allowed_tools` is not a list of rules".to_owned());
        }
        read
    });
    Overlay {
        id: text("id"),
        name: text("name"),
        description: text("description"),
        version: text("version"),
        activation: value("activation").map(render),
        allowed_tools,
    }
}

/// Returns a text, the items of a list on one line, or anything else as compact JSON.
fn render(node: &YamlNode) -> String {
    match node {
        YamlNode::List(_) => {
            words(node, false).map_or_else(|| plain(node), |words| words.join("; "))
        }
        YamlNode::Text(..) | YamlNode::Map(_) => plain(node),
    }
}

impl Overlay {
    /// Fills in name and description where the front matter has none. Without a name in either file, the `id` is the
    /// name.
    pub(super) fn fill(
        &self,
        name: &mut Option<String>,
        description: &mut Option<String>,
        problems: &mut Vec<SkillProblem>,
    ) {
        fill("name", name, self.name.as_ref(), problems);
        if name.is_none() {
            name.clone_from(&self.id);
        }
        fill(
            "description",
            description,
            self.description.as_ref(),
            problems,
        );
    }

    /// Fills in what the front matter lacks of the version, `allowed_tools` and when to use the skill; keeps the `id`
    /// among the other keys.
    pub(super) fn fill_front(
        self,
        front: &mut FrontMatter,
        tools: &mut ToolRules,
        problems: &mut Vec<SkillProblem>,
    ) {
        fill(
            "version",
            &mut front.version,
            self.version.as_ref(),
            problems,
        );
        fill(
            "allowed_tools",
            &mut tools.restricts_to,
            self.allowed_tools.as_ref(),
            problems,
        );
        if front.when_to_use.is_none() {
            front.when_to_use = self.activation;
        }
        if let Some(id) = self.id {
            front.others.entry("id".to_owned()).or_insert(id.into());
        }
    }
}

fn fill<T: Clone + PartialEq>(
    key: &str,
    here: &mut Option<T>,
    there: Option<&T>,
    problems: &mut Vec<SkillProblem>,
) {
    match (&here, there) {
        (Some(ours), Some(theirs)) if ours != theirs => problems.push(SkillProblem::warning(
            format!("`{key}` differs between SKILL.md and skill.yaml; SKILL.md counts"),
        )),
        (None, Some(theirs)) => *here = Some(theirs.clone()),
        _ => {}
    }
}
