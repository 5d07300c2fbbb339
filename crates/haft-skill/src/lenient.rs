//! Lenient loading: reads whatever can be read of a skill, and reports what is wrong.

use unicode_normalization::UnicodeNormalization;

use crate::front::{self, FrontMatter, NARROWING, ToolRules};
use crate::quote::quote_values;
use crate::split::{self, NoFrontMatter, SplitText};
use crate::strict::MAX_DESCRIPTION;
use crate::yaml::{self, YamlNode, YamlNote};
use crate::{Severity, SkillProblem, overlay, strict};
use haft_types::text::clip;

/// Maximum length of a usable name, in characters; the format's limit is 64, beyond which there is a warning.
const MAX_NAME: usize = 128;

/// The content of a `SKILL.md` and its overlay.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SkillDeclaration {
    /// A usable name; empty if there is none.
    pub(super) name: String,
    /// The description; empty if there is none.
    pub(super) description: String,
    pub(super) front: FrontMatter,
    pub(super) tools: ToolRules,
    pub(super) problems: Vec<SkillProblem>,
}

impl SkillDeclaration {
    /// Whether the skill can be used.
    pub(super) fn loads(&self) -> bool {
        self.problems.iter().all(|p| p.level == Severity::Warning)
    }
}

/// Reads the head of a `SKILL.md` (all of it, or its first 64 KiB) and the `skill.yaml` beside it.
pub(super) fn declare(head: &TextHead<'_>, over: Option<&str>, folder: &str) -> SkillDeclaration {
    let mut problems = Vec::new();
    let over = over.map(|text| overlay::read(text, &mut problems));
    let node = front_node(head, over.is_some(), &mut problems);
    let (mut front, mut tools) = front::front_matter(&node, &mut problems);
    let mut name = text_of(&node, "name", &mut problems);
    let mut description = text_of(&node, "description", &mut problems);
    if let Some(over) = over {
        over.fill(&mut name, &mut description, &mut problems);
        over.fill_front(&mut front, &mut tools, &mut problems);
    }
    SkillDeclaration {
        name: usable_name(name, folder, &mut problems),
        description: usable_description(description, &mut problems),
        front,
        tools,
        problems,
    }
}

/// The beginning of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextHead<'a> {
    pub(super) text: &'a str,
    /// Whether this is the whole file.
    pub(super) whole: bool,
}

/// Returns the front matter's mapping; if there is none, reports the reason and returns an empty one.
fn front_node(head: &TextHead<'_>, overlaid: bool, problems: &mut Vec<SkillProblem>) -> YamlNode {
    let nothing = || YamlNode::Map(Vec::new());
    let split =
        match split::by_line(head.text).or_else(|e| split::by_mark(head.text).map_err(|_| e)) {
            Ok(split) => split,
            Err(NoFrontMatter::Missing) if overlaid => {
                problems.push(SkillProblem::warning(
                    "SKILL.md has no front matter; skill.yaml is used instead",
                ));
                return nothing();
            }
            Err(uncut) => {
                problems.push(SkillProblem::error(describe_uncut(uncut, head.whole)));
                return nothing();
            }
        };
    match mapping(&split) {
        Ok(read) => {
            report_notes(&read.notes, problems);
            return read.node;
        }
        Err(first) => {
            if let Some((read, warning)) = again(&split, head.text) {
                problems.push(SkillProblem::warning(format!(
                    "the front matter {first}; {warning}"
                )));
                report_notes(&read.notes, problems);
                return read.node;
            }
            problems.push(SkillProblem::error(format!("the front matter {first}")));
        }
    }
    nothing()
}

fn describe_uncut(uncut: NoFrontMatter, whole: bool) -> &'static str {
    match uncut {
        NoFrontMatter::Missing => "SKILL.md has no front matter: its first line must be `---`",
        NoFrontMatter::Open if whole => "the front matter is not closed: a line `---` must end it",
        NoFrontMatter::Open => "the front matter is not closed within 64 KiB",
    }
}

fn mapping(split: &SplitText<'_>) -> Result<yaml::YamlDocument, String> {
    mapping_in(split.front, split.above)
}

fn mapping_in(front: &str, above: usize) -> Result<yaml::YamlDocument, String> {
    let read = yaml::read(front, above).map_err(|e| format!("is not valid YAML: {e}"))?;
    match &read.node {
        YamlNode::Map(_) => Ok(read),
        node if node.is_null() => Err("is empty".to_owned()),
        YamlNode::List(_) => Err("is a list, not `key: value` lines".to_owned()),
        YamlNode::Text(..) => Err("is a text, not `key: value` lines".to_owned()),
    }
}

/// Tries other readings of a front matter that is not valid YAML, mildest first.
fn again(split: &SplitText<'_>, text: &str) -> Option<(yaml::YamlDocument, &'static str)> {
    const QUOTED_NOTE: &str = "it was read with its values quoted";
    if split.front.contains('\0') {
        return None;
    }
    for all in [false, true] {
        let quoted = quote_values(split.front, all);
        if let Ok(read) = mapping_in(&quoted, split.above) {
            return Some((read, QUOTED_NOTE));
        }
    }
    let other = split::by_mark(text).ok()?;
    Some((mapping(&other).ok()?, "it was cut at the first dashes"))
}

fn report_notes(notes: &[YamlNote], problems: &mut Vec<SkillProblem>) {
    for note in notes {
        if let YamlNote::Duplicate(key, line, depth) = note {
            let message = format!("line {line}: `{key}` appears twice; the first one counts");
            // It is unclear which of two limits was meant.
            let narrows = *depth == 0 && NARROWING.contains(&key.as_str());
            problems.push(if narrows {
                SkillProblem::error(message)
            } else {
                SkillProblem::warning(message)
            });
        }
    }
}

fn text_of(node: &YamlNode, key: &str, problems: &mut Vec<SkillProblem>) -> Option<String> {
    let value = node.get(key)?;
    // `null` is a word here, as in the strict check.
    if let YamlNode::Text(text, _) = value {
        let text = text.trim();
        return (!text.is_empty()).then(|| text.to_owned());
    }
    if let Some(text) = lines_of_text(value).filter(|_| key == "description") {
        problems.push(SkillProblem::warning(format!(
            "`{key}` is a mapping and was read as a text: quote it"
        )));
        return Some(text);
    }
    problems.push(SkillProblem::warning(format!(
        "`{key}` is not a text and is left out"
    )));
    None
}

/// Returns a text over several lines that begin like keys, which YAML takes for a mapping.
fn lines_of_text(value: &YamlNode) -> Option<String> {
    let YamlNode::Map(pairs) = value else {
        return None;
    };
    let line = |(key, value): &(String, YamlNode)| match value {
        YamlNode::Text(text, true) => Some(format!("{key}: {text}")),
        _ => None,
    };
    let lines: Option<Vec<String>> = pairs.iter().map(line).collect();
    lines
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.join(" "))
}

fn usable_name(given: Option<String>, folder: &str, problems: &mut Vec<SkillProblem>) -> String {
    if let Some(given) = given {
        let name: String = given.nfkc().collect();
        if is_usable_name(&name) {
            for told in strict::name_faults(&name, folder) {
                problems.push(SkillProblem::warning(told));
            }
            return name;
        }
        let shown = clip(&name, MAX_NAME);
        problems.push(SkillProblem::warning(format!(
            "{shown:?} cannot be used as a name; the folder's name is"
        )));
    } else {
        problems.push(SkillProblem::warning(
            "there is no `name`; the folder's is used",
        ));
    }
    let name: String = folder.nfkc().collect();
    if is_usable_name(&name) {
        return name;
    }
    problems.push(SkillProblem::error(format!(
        "the folder's name {folder:?} cannot be used as the skill's"
    )));
    String::new()
}

/// Whether a name fits on one line and can be a folder's name.
fn is_usable_name(name: &str) -> bool {
    let fits = !name.is_empty() && name.chars().count() <= MAX_NAME && !name.starts_with('.');
    fits && name == name.trim()
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control)
}

fn usable_description(given: Option<String>, problems: &mut Vec<SkillProblem>) -> String {
    let Some(given) = given else {
        problems.push(SkillProblem::error("there is no `description`"));
        return String::new();
    };
    let count = given.chars().count();
    if count > MAX_DESCRIPTION {
        problems.push(SkillProblem::warning(format!(
            "the description is {count} characters long and is cut to {MAX_DESCRIPTION}"
        )));
    }
    let shown = |c: char| {
        if c.is_control() && c != '\n' && c != '\t' {
            ' '
        } else {
            c
        }
    };
    let text: String = given.chars().take(MAX_DESCRIPTION).map(shown).collect();
    text.trim().to_owned()
}
