//! `tool_expand_tools`: makes deferred tools listed and callable for the rest of the run, ignoring names that cannot be expanded.

use std::fmt::Write as _;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::result::ToolResult;
use haft::spec::{Exposure, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::describe::{builtin, idempotent};

/// Maximum number of names per call.
const MAX_NAMES: usize = 200;
/// Maximum bytes of an invalid name that are repeated.
const MAX_ECHO: usize = 128;
/// Maximum number of names that can still be expanded, and their total bytes.
const MAX_LEFT: usize = 200;
const MAX_LEFT_BYTES: usize = 8 * 1024;

/// Names: a list, or one alone.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum NameList {
    /// Several.
    Many(Vec<String>),
    /// One; also a list as JSON text, which some models write.
    One(String),
}

/// What `tool_expand_tools` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpandInput {
    /// Exact names from `tool_search`.
    pub tool_names: NameList,
}

/// What it gives.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExpandData {
    /// Whether any tool was expanded by this call.
    pub success: bool,
    /// Listed and callable from now on.
    pub expanded_tools: Vec<String>,
    /// Not tools of this session.
    pub invalid_tools: Vec<String>,
    /// Already listed before.
    pub already_selected_tools: Vec<String>,
    /// Still deferred; at most 200, fewer if names are long.
    pub available_expandable_tools: Vec<String>,
}

/// The tool `tool_expand_tools`.
#[derive(Debug)]
pub struct ToolExpandTools;

impl TypedTool for ToolExpandTools {
    const NAME: &'static str = "tool_expand_tools";
    const DESCRIPTION: &'static str = "List deferred tools and make them callable for the rest of this run, by their exact names. Find \
        names with tool_search. Valid names are expanded even if others are not.";
    type Input = ExpandInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        idempotent(builtin::<ExpandData>(spec, "discover"))
    }

    fn intent(&self, _: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let data = expand(&wanted(input.tool_names)?, context);
        let result = ToolResult::text(render(&data)).with_data_for_programs(&data)?;
        Ok(result.with_summary(summary(&data)))
    }
}

/// Returns the names in order, trimmed and without duplicates.
pub(super) fn wanted(names: NameList) -> Result<Vec<String>, ToolError> {
    let names = match names {
        NameList::Many(names) => names,
        NameList::One(text) => match serde_json::from_str::<Vec<String>>(&text) {
            Ok(names) => names,
            Err(_) => vec![text],
        },
    };
    if names.len() > MAX_NAMES {
        let message = format!("{} tool names; at most {MAX_NAMES} at once", names.len());
        return Err(ToolError::invalid_arguments(message));
    }
    let mut wanted: Vec<String> = Vec::with_capacity(names.len());
    for name in names.iter().map(|name| name.trim()) {
        if !name.is_empty() && !wanted.iter().any(|known| known == name) {
            wanted.push(name.to_owned());
        }
    }
    Ok(wanted)
}

fn expand(wanted: &[String], context: &CallContext) -> ExpandData {
    let tools = context.tools();
    let expanded = context.expand(wanted.iter().map(String::as_str));
    let mut data = ExpandData {
        success: !expanded.is_empty(),
        expanded_tools: expanded.iter().map(ToString::to_string).collect(),
        ..ExpandData::default()
    };
    for name in wanted {
        if data.expanded_tools.contains(name) {
            continue;
        }
        let exposure = tools.entry(name).map(|entry| entry.spec().exposure);
        match exposure {
            // A deferred tool that this call did not expand was just expanded by a parallel call.
            Some(Exposure::Listed | Exposure::Searchable | Exposure::Deferred) => {
                data.already_selected_tools.push(name.clone());
            }
            Some(Exposure::Unlisted | Exposure::Hidden) | None => {
                data.invalid_tools.push(echo(name).to_owned());
            }
        }
    }
    let left = context.tools();
    let left = left.findable().map(|entry| entry.spec());
    let mut room = MAX_LEFT_BYTES;
    data.available_expandable_tools = left
        .filter(|spec| spec.exposure == Exposure::Deferred)
        .take(MAX_LEFT)
        .map(|spec| spec.name.to_string())
        .take_while(|name| {
            room = room.saturating_sub(name.len());
            room > 0
        })
        .collect();
    data
}

/// Returns the part of an invalid name to repeat.
pub(super) fn echo(name: &str) -> &str {
    let end = name.floor_char_boundary(MAX_ECHO);
    name.get(..end).unwrap_or_default()
}

fn summary(data: &ExpandData) -> String {
    format!(
        "{} expanded, {} listed already, {} unknown",
        data.expanded_tools.len(),
        data.already_selected_tools.len(),
        data.invalid_tools.len()
    )
}

fn render(data: &ExpandData) -> String {
    let mut text = String::new();
    let mut line = |what: &str, names: &[String]| {
        if !names.is_empty() {
            let _ = writeln!(text, "{what}: {}", names.join(", "));
        }
    };
    line("callable now", &data.expanded_tools);
    line("callable already", &data.already_selected_tools);
    line("no such tools", &data.invalid_tools);
    if !data.success {
        let left = &data.available_expandable_tools;
        line(
            "can be expanded",
            left.get(..left.len().min(20)).unwrap_or_default(),
        );
    }
    if text.is_empty() {
        text.push_str("no names given\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAMES, NameList, wanted};

    #[test]
    fn names_come_as_a_list_as_one_or_as_json_text() {
        let rows: [(&str, &[&str]); 6] = [
            (r#"["a"," b ","a",""]"#, &["a", "b"]),
            (r#"" a ""#, &["a"]),
            (r#""[\"a\",\"b\"]""#, &["a", "b"]),
            (r#""[a""#, &["[a"]),
            ("[]", &[]),
            (r#"" ""#, &[]),
        ];
        for (given, expect) in rows {
            let names: NameList = serde_json::from_str(given).unwrap();
            assert_eq!(wanted(names).unwrap(), expect, "{given}");
        }
        assert!(wanted(NameList::Many(vec![String::new(); MAX_NAMES + 1])).is_err());
    }
}
